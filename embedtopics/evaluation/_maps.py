"""Trustworthiness and continuity of a map, and the overlap of two lists of neighbors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.machine import one_blas_thread
from embedtopics.protocols import Float64Array, FloatArray, Int64Array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


ROWS_AT_ONCE = 128
"""Documents whose distances to all others are held at a time."""


def trustworthiness_and_continuity(
    vectors: FloatArray | csr_matrix,
    positions: npt.ArrayLike,
    k: int = 15,
    *,
    rows: npt.ArrayLike | None = None,
) -> tuple[Float64Array, Float64Array]:
    """Return trustworthiness and continuity of a map for some documents, (n_rows,) each; 1 is best.

    With r(i, j) the rank of document j by distance from i in the vectors, and q(i, j) on the map,

        T(i) = 1 - 2 / (k (2n - 3k - 1)) sum over the k nearest j on the map of max(0, r(i, j) - k)

    is low if the map shows distant documents as neighbors. C(i), the same with r and q exchanged,
    is low if the map separates neighbors (Venna and Kaski, 2001, "Neighborhood Preservation in
    Nonlinear Projection Methods: An Experimental Study", equations 1 and 2). Documents at equal
    distance share their mean rank.
    """
    places = np.asarray(positions, dtype=np.float64)
    n_documents = vectors.shape[0]
    queries = np.arange(n_documents) if rows is None else np.asarray(rows, dtype=np.int64)
    excess = np.empty((2, len(queries)))
    transposed = vectors.T
    with one_blas_thread():
        for begin in range(0, len(queries), ROWS_AT_ONCE):
            part = slice(begin, begin + ROWS_AT_ONCE)
            some = queries[part]
            product: Any = vectors[some] @ transposed
            similarities = product if isinstance(product, np.ndarray) else product.toarray()
            in_vectors = 1.0 - np.asarray(similarities, dtype=np.float64)
            on_map = np.zeros((len(some), len(places)))
            for axis in range(places.shape[1]):
                on_map += (places[some][:, axis, None] - places[None, :, axis]) ** 2
            for distances in (in_vectors, on_map):
                distances[np.arange(len(some)), some] = np.inf
            excess[0, part] = _rank_excess(in_vectors, _nearest(on_map, k), k)
            excess[1, part] = _rank_excess(on_map, _nearest(in_vectors, k), k)
    quality = 1.0 - 2.0 / (k * (2 * n_documents - 3 * k - 1)) * excess
    return quality[0], quality[1]


def _nearest(distances: Float64Array, k: int) -> Int64Array:
    """Return the k nearest of each row, ties by number."""
    kth = np.partition(distances, k - 1, axis=1)[:, k - 1]
    nearest = np.empty((len(distances), k), dtype=np.int64)
    for row, (values, limit) in enumerate(zip(distances, kth, strict=True)):
        within = np.flatnonzero(values <= limit)
        nearest[row] = within[np.argsort(values[within], kind="stable")[:k]]
    return nearest


def _rank_excess(distances: Float64Array, neighbors: Int64Array, k: int) -> Float64Array:
    """Return by how much the ranks of chosen documents are above k, summed for each row."""
    excess = np.zeros(len(distances))
    for row, (values, documents) in enumerate(zip(distances, neighbors, strict=True)):
        for value in values[documents]:  # counting is much cheaper than sorting all of them
            rank = (np.count_nonzero(values < value) + 1 + np.count_nonzero(values <= value)) / 2.0
            excess[row] += max(0.0, rank - k)
    return excess


PERSISTENCE = 0.9
"""Weight of each further rank; at 0.9 the first ten ranks have 86 % of the weight."""

OVERLAP_ROWS_AT_ONCE = 4096
"""Lists that are compared together."""

IntArray = npt.NDArray[np.integer]


def jaccard_overlap(first: npt.ArrayLike, second: npt.ArrayLike) -> FloatArray:
    """Return the items in both lists (n_documents, k) as a share of those in either."""
    one, other = np.asarray(first), np.asarray(second)
    shared = np.concatenate([met[:, -1] for met in _agreements(one, other)] or [np.zeros(0)])
    either = (one >= 0).sum(axis=1) + (other >= 0).sum(axis=1) - shared
    return np.asarray(shared / np.maximum(either, 1), dtype=np.float32)


def rank_biased_overlap(
    first: npt.ArrayLike, second: npt.ArrayLike, p: float = PERSISTENCE
) -> FloatArray:
    """Return the extrapolated rank-biased overlap of two rankings, best first.

    Webber, Moffat and Zobel (2010), "A similarity measure for indefinite rankings", equation 32,
    for lists of any lengths, filled up with -1.
    """
    one, other = np.asarray(first), np.asarray(second)
    lengths = np.column_stack([(one >= 0).sum(axis=1), (other >= 0).sum(axis=1)])
    overlap = np.zeros(len(one))
    begin = 0
    for met in _agreements(one, other):
        part = slice(begin, begin + len(met))
        shorter, longer = lengths[part].min(axis=1), lengths[part].max(axis=1)
        overlap[part] = _extrapolated_overlap(met, shorter, longer, p)
        begin += len(met)
    return overlap.astype(np.float32)


def chance_overlap(n_documents: int, k: int, p: float = PERSISTENCE) -> tuple[float, float]:
    """Return the expected Jaccard and rank-biased overlap of k neighbours drawn at random."""
    from scipy.stats import hypergeom

    n_others = n_documents - 1
    shared = np.arange(k + 1)
    chances = hypergeom(n_others, k, k).pmf(shared)
    depths = np.arange(1, k + 1)
    # The expected agreement at depth d is d / n_others, and the measure is linear in it.
    head = (1 - p) / p * float((depths / n_others * p**depths).sum())
    return float((chances * shared / (2 * k - shared)).sum()), head + k / n_others * p**k


def _agreements(one: IntArray, other: IntArray) -> list[Float64Array]:
    """Return, for parts of the rows, how many items both lists hold down to each depth."""
    deepest = max(one.shape[1], other.shape[1])
    depth = np.maximum.outer(np.arange(one.shape[1]), np.arange(other.shape[1]))
    parts = []
    for begin in range(0, len(one), OVERLAP_ROWS_AT_ONCE):
        left = one[begin : begin + OVERLAP_ROWS_AT_ONCE, :, None]
        equal = (left == other[begin : begin + OVERLAP_ROWS_AT_ONCE, None, :]) & (left >= 0)
        row, *places = np.nonzero(equal)
        entered = row * deepest + depth[tuple(places)]
        new = np.bincount(entered, minlength=len(equal) * deepest).reshape(-1, deepest)
        parts.append(np.cumsum(new, axis=1).astype(np.float64))
    return parts


def _extrapolated_overlap(
    met: Float64Array, shorter: IntArray, longer: IntArray, p: float
) -> Float64Array:
    """Return equation 32 for agreements (n_pairs, depth) and lengths (n_pairs,)."""
    depths = np.arange(1, met.shape[1] + 1)
    rows = np.arange(len(met))
    some = shorter > 0
    s, l_ = np.maximum(shorter, 1)[:, None], np.maximum(longer, 1)[:, None]
    at_s, at_l = met[rows, s[:, 0] - 1][:, None], met[rows, l_[:, 0] - 1][:, None]
    terms = np.where(depths <= l_, met / depths, 0.0)
    terms += np.where((depths > s) & (depths <= l_), at_s * (depths - s) / (s * depths), 0.0)
    head = (1 - p) / p * (terms * p**depths).sum(axis=1)
    tail = (((at_l - at_s) / l_ + at_s / s) * p**l_)[:, 0]
    return np.where(some, np.minimum(head + tail, 1.0), 0.0)
