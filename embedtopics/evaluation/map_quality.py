"""Whether neighbours on a map are neighbours in the vectors, and the reverse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int64Array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["trustworthiness_and_continuity"]

ROWS_AT_ONCE = 128
"""Documents whose distances to all others are held at a time."""

Float64Array = npt.NDArray[np.float64]


def trustworthiness_and_continuity(
    vectors: FloatArray | csr_matrix,
    positions: npt.ArrayLike,
    k: int = 15,
    *,
    rows: npt.ArrayLike | None = None,
) -> tuple[Float64Array, Float64Array]:
    """Measure how well a map keeps the neighbours of some documents.

    With r(i, j) the rank of document j by distance from i in the vectors, and q(i, j) on the map,

        T(i) = 1 - 2 / (k (2n - 3k - 1)) sum over the k nearest j on the map of max(0, r(i, j) - k)

    is low where the map puts strangers next to a document, and C(i), the same with r and q
    exchanged, where it tears neighbours away. Their means over all documents are the
    trustworthiness and the continuity of the map (Venna and Kaski, 2001, "Neighborhood
    Preservation in Nonlinear Projection Methods: An Experimental Study", equations 1 and 2).

    Parameters
    ----------
    vectors : float32 ndarray or csr_matrix of shape (n_documents, n_dimensions)
        Rows of length one, compared by cosine.
    positions : array_like of shape (n_documents, n_components)
        Compared by Euclidean distance.
    k : int
        Below half the documents.
    rows : array_like of int, shape (n_rows,), optional
        Documents to look at, each against all; by default all.

    Returns
    -------
    trustworthiness, continuity : float64 ndarray of shape (n_rows,)
        1 where nothing is wrong. Documents equally far share their mean rank.

    Raises
    ------
    InputError
        Where the shapes do not fit or `k` is too large.
    """
    from threadpoolctl import threadpool_limits

    places = np.asarray(positions, dtype=np.float64)
    n_documents = vectors.shape[0]
    if places.ndim != 2 or len(places) != n_documents:
        raise InputError(
            f"positions must have one row for each of the {n_documents} vectors; "
            f"got shape {places.shape}"
        )
    if not 1 <= k < n_documents / 2:
        raise InputError(f"k must be from 1 to below half of {n_documents} documents; got {k}")
    wanted = np.arange(n_documents) if rows is None else np.asarray(rows, dtype=np.int64)
    found = np.empty((2, len(wanted)))
    transposed = vectors.T
    # On one thread: the order in which BLAS sums depends on how many it has.
    with threadpool_limits(limits=1, user_api="blas"):
        for begin in range(0, len(wanted), ROWS_AT_ONCE):
            part = slice(begin, begin + ROWS_AT_ONCE)
            some = wanted[part]
            apart = _cosine_distances(vectors[some], transposed)
            away = _squared_distances(places[some], places)
            for distances in (apart, away):
                distances[np.arange(len(some)), some] = np.inf
            found[0, part] = _rank_excess(apart, _nearest(away, k), k)
            found[1, part] = _rank_excess(away, _nearest(apart, k), k)
    quality = 1.0 - 2.0 / (k * (2 * n_documents - 3 * k - 1)) * found
    return quality[0], quality[1]


def _cosine_distances(rows: Any, transposed: Any) -> Float64Array:
    product = rows @ transposed
    similarities = product if isinstance(product, np.ndarray) else product.toarray()
    return 1.0 - np.asarray(similarities, dtype=np.float64)


def _squared_distances(some: Float64Array, places: Float64Array) -> Float64Array:
    squared = np.zeros((len(some), len(places)))
    for axis in range(places.shape[1]):
        squared += (some[:, axis, None] - places[None, :, axis]) ** 2
    return squared


def _nearest(distances: Float64Array, k: int) -> Int64Array:
    """Return the k nearest of each row, ties by number."""
    kth = np.partition(distances, k - 1, axis=1)[:, k - 1]
    nearest = np.empty((len(distances), k), dtype=np.int64)
    for row, (values, limit) in enumerate(zip(distances, kth, strict=True)):
        within = np.flatnonzero(values <= limit)
        nearest[row] = within[np.argsort(values[within], kind="stable")[:k]]
    return nearest


def _rank_excess(distances: Float64Array, chosen: Int64Array, k: int) -> Float64Array:
    """Return by how much the ranks of chosen documents are above k, summed for each row."""
    excess = np.zeros(len(distances))
    for row, (values, documents) in enumerate(zip(distances, chosen, strict=True)):
        for value in values[documents]:  # counting is much cheaper than to sort all of them
            rank = (np.count_nonzero(values < value) + 1 + np.count_nonzero(values <= value)) / 2.0
            excess[row] += max(0.0, rank - k)
    return excess
