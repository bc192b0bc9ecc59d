"""Maps turned, mirrored, moved and scaled until a place means the same in each of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import FloatArray

__all__ = ["align_maps", "displacement", "fit_similarity"]

MOST_ROUNDS = 25
MOST_STEPS = 100
SMALL = 1e-7
"""Change, relative to the extent of a map, from which on no more steps are made."""

Float64Array = npt.NDArray[np.float64]


def align_maps(maps: Sequence[npt.ArrayLike], target: npt.ArrayLike) -> tuple[FloatArray, ...]:
    """Align maps with one another, without bending any.

    Generalised Procrustes analysis (Gower, 1975): each map is fitted to the mean of all, and the
    mean taken anew, until it stands still. The fit leaves documents aside that moved (see
    `fit_similarity`), so that those which stayed lie where they lie in the other maps.

    Parameters
    ----------
    maps : sequence of array_like of shape (n_documents, 2)
    target : array_like of shape (n_documents, 2)
        Where the first mean stands; it gives the frame.

    Returns
    -------
    tuple of float32 ndarray of shape (n_documents, 2)
    """
    given = [np.asarray(positions, dtype=np.float64) for positions in maps]
    mean = np.asarray(target, dtype=np.float64)
    extent = _extent(mean)
    aligned = given
    for _ in range(MOST_ROUNDS):
        aligned = [fit_similarity(positions, mean) for positions in given]
        new = np.mean(aligned, axis=0)
        # Averages of maps that differ are smaller than they: without this all would shrink.
        scale = extent / _extent(new) if _extent(new) > 0 else 1.0
        new = (new - new.mean(axis=0)) * scale
        change = np.sqrt(((new - mean) ** 2).sum(axis=1).mean())
        mean = new
        if change <= 1e-3 * SMALL**0.5 * extent:
            break
    return tuple(positions.astype(np.float32) for positions in aligned)


def fit_similarity(moving: npt.ArrayLike, target: npt.ArrayLike) -> Float64Array:
    """Fit one map to another by rotation, reflection, scale and translation.

    Documents are weighed by 1 / (1 + (r / s)²)², r being how far their places in both maps are
    apart and s the median of it (Geman and McClure, 1987), and the fit is repeated with the new
    weights until it stands still. The scale makes the weighted extents of both maps equal, which
    treats both alike; that of least squares shrinks a map the more the two differ.

    Parameters
    ----------
    moving, target : array_like of shape (n_documents, n_components)

    Returns
    -------
    float64 ndarray of shape (n_documents, n_components)
        `moving` after the fit.
    """
    source = np.asarray(moving, dtype=np.float64)
    goal = np.asarray(target, dtype=np.float64)
    extent = _extent(goal)
    weights = np.ones(len(source))
    fitted = source
    for step in range(MOST_STEPS):
        previous, fitted = fitted, _fit(source, goal, weights)
        residuals = np.sqrt(((fitted - goal) ** 2).sum(axis=1))
        scale = max(float(np.median(residuals)), SMALL * extent, np.finfo(np.float64).tiny)
        weights = 1.0 / (1.0 + (residuals / scale) ** 2) ** 2
        if step and np.abs(fitted - previous).max(initial=0.0) <= SMALL * extent:
            break
    return fitted


def displacement(first: npt.ArrayLike, second: npt.ArrayLike) -> Float64Array:
    """Return how far the places of each document are apart in two aligned maps.

    Parameters
    ----------
    first, second : array_like of shape (n_documents, n_components)

    Returns
    -------
    float64 ndarray of shape (n_documents,)
        As a share of the root mean squared distance of two documents drawn from either map: 0
        where the maps coincide, about 1 where they have nothing to do with one another.
    """
    one, other = (np.asarray(positions, dtype=np.float64) for positions in (first, second))
    # Two documents drawn at random are apart, in the root mean square, sqrt(2) times the extent.
    scale = np.sqrt(_extent(one) ** 2 + _extent(other) ** 2)
    apart: Float64Array = np.sqrt(((one - other) ** 2).sum(axis=1))
    return apart / scale if scale > 0 else apart


def _extent(positions: Float64Array) -> float:
    """Return the root mean squared distance from the middle."""
    if not len(positions):
        return 0.0
    return float(np.sqrt(((positions - positions.mean(axis=0)) ** 2).sum(axis=1).mean()))


def _fit(source: Float64Array, goal: Float64Array, weights: Float64Array) -> Float64Array:
    """Return `source` after the weighted fit of Procrustes."""
    share = (weights / weights.sum())[:, None]
    middle, aim = (share * source).sum(axis=0), (share * goal).sum(axis=0)
    centred, wanted = source - middle, goal - aim
    # Sums in a fixed order: BLAS adds up in another with another number of threads.
    cross = np.array(
        [[(share[:, 0] * left * right).sum() for right in wanted.T] for left in centred.T]
    )
    left_axes, _, right_axes = np.linalg.svd(cross)
    size = np.sqrt((share * centred**2).sum())
    scale = np.sqrt((share * wanted**2).sum()) / size if size > 0 else 1.0
    turn = left_axes @ right_axes
    turned = sum(centred[:, [axis]] * turn[axis] for axis in range(len(turn)))
    moved: Float64Array = scale * turned + aim
    return moved
