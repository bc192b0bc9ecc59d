"""One map per encoder, from a common start, so that only the encoders make them differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.machine import one_blas_thread
from embedtopics.comparison._vectors import Vectors
from embedtopics.protocols import Float64Array, FloatArray
from embedtopics.reduction._components import principal_start
from embedtopics.reduction._layout import default_epochs, edge_schedule, layout

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MOST_ROUNDS = 25
MOST_STEPS = 100
SMALL = 1e-7
"""Change, relative to the extent of a map, from which on no more steps are made."""


def align_maps(maps: Sequence[npt.ArrayLike], target: npt.ArrayLike) -> tuple[FloatArray, ...]:
    """Align maps, (n_documents, 2) each, by generalised Procrustes analysis (Gower, 1975)."""
    positions_by_map = [np.asarray(positions, dtype=np.float64) for positions in maps]
    mean = np.asarray(target, dtype=np.float64)  # at first
    extent = _extent(mean)
    aligned = positions_by_map
    for _ in range(MOST_ROUNDS):
        aligned = [fit_similarity(positions, mean) for positions in positions_by_map]
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
    """Return a map fitted to another by rotation, reflection, scale and translation.

    Weights of documents follow Geman and McClure (1987). The scale makes the weighted extents
    equal; that of least squares shrinks a map the more the two differ.
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
    """Return how far documents lie apart in two aligned maps, as a share of random places."""
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
    centred, centred_goal = source - middle, goal - aim
    # Sums in a fixed order: the order of BLAS depends on the number of threads.
    cross = np.array(
        [[(share[:, 0] * left * right).sum() for right in centred_goal.T] for left in centred.T]
    )
    left_axes, _, right_axes = np.linalg.svd(cross)
    size = np.sqrt((share * centred**2).sum())
    scale = np.sqrt((share * centred_goal**2).sum()) / size if size > 0 else 1.0
    turn = left_axes @ right_axes
    turned = sum(centred[:, [axis]] * turn[axis] for axis in range(len(turn)))
    moved: Float64Array = scale * turned + aim
    return moved


MAP_MIN_DIST = 0.1
"""Minimum distance of documents on the map, as on the map of topics."""

LEFT_OUT = 0.5
"""Share of the epochs that is left out where a map starts from the layout of the mean. Where none
is, chance moves documents about as much as what the encoders disagree on. Where 0.7 are, an encoder
that has nothing in common with the others does not get away from them: its map loses 0.1 of its
trustworthiness, against 0.01 here."""

NARROW = 16
"""Number of dimensions to which sparse vectors are reduced for the start."""

POWER_STEPS = 2


def draw_maps(
    encoders: Sequence[Vectors], edges: Sequence[csr_matrix], seed: int
) -> tuple[FloatArray, ...]:
    """Draw a map for every encoder, from the layout of the mean of all graphs, and align them."""
    mean: Any = edges[0]
    for more in edges[1:]:
        mean = mean + more
    mean = (mean * np.float32(1 / len(edges))).tocsr()
    mean.sort_indices()
    beside = np.hstack([_scaled(narrow(vectors.rows, seed)) for vectors in encoders])
    start = principal_start(beside, 2)
    common = layout(edge_schedule(mean, seed=seed), start, min_dist=MAP_MIN_DIST)
    first_epoch = int(LEFT_OUT * default_epochs(len(common)))
    drawn = [
        layout(
            edge_schedule(graph, seed=seed), common, min_dist=MAP_MIN_DIST, first_epoch=first_epoch
        )
        for graph in edges
    ]
    return align_maps(drawn, common)


def narrow(rows: FloatArray | csr_matrix, seed: int) -> FloatArray:
    """Return dense vectors; project sparse ones (Halko et al. 2011, algorithm 4.4)."""
    if isinstance(rows, np.ndarray):
        return rows
    n_wanted = min(NARROW, *rows.shape)
    directions = np.random.default_rng(seed).normal(size=(rows.shape[1], n_wanted))
    # On one thread: the order in which BLAS sums depends on how many it has.
    with one_blas_thread():
        for _ in range(POWER_STEPS):
            basis = np.linalg.qr(rows @ directions)[0]
            directions = np.linalg.qr(rows.T @ basis)[0]
    return np.asarray(rows @ directions, dtype=np.float32)


def _scaled(rows: FloatArray) -> FloatArray:
    """Return vectors with a total variance of 1, so that all encoders weigh the same."""
    spread = float(np.sqrt(rows.var(axis=0, dtype=np.float64).sum()))
    return rows / np.float32(spread) if spread > 1e-6 else rows
