"""The k-nearest-neighbour graph, by FAISS, with an answer that does not depend on threads.

FAISS finds candidates; the similarities are then computed again in a fixed order, because the
last bits of FAISS's inner products change with the number of threads. Ties are broken by the
document's number, and documents are numbered by content, so the graph is a function of the
embeddings alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int32Array
from embedtopics.results import NeighborGraph

__all__ = ["build_graph", "nearest", "unit_rows"]

EXACT_LIMIT = 20_000
"""Documents up to which all pairs are compared; measured on two cores, the search takes about
as long there as training the inverted lists, and the answer is exact."""

SPARE = 16
"""Extra candidates fetched, so that ties and last-bit differences at the k-th place are settled
by the recomputed similarities and not by FAISS."""

RECALL_SAMPLE = 500
"""Documents whose true neighbours are searched to measure the recall of an approximate graph."""

WANTED_RECALL = 0.975
"""Recall at which an approximate graph looks into no more lists; a little above the 0.97 that is
promised, because the sample has an error of its own."""

PROBED_SHARES = (1 / 25, 1 / 16, 1 / 10, 1 / 6, 1 / 3)
"""Shares of its lists that the index is tried with; the last is what it makes do with."""

PAIRS_AT_ONCE = 65_536
"""Pairs whose similarities are computed together; bounds the memory of the gathered vectors."""


def unit_rows(
    embeddings: npt.ArrayLike,
    *,
    what: str = "embeddings",
    row_numbers: npt.NDArray[np.int64] | None = None,
) -> FloatArray:
    """Return vectors scaled to length one, as contiguous float32.

    Parameters
    ----------
    embeddings : array_like of shape (n_documents, n_dimensions)
        Any floating type, any memory layout; never changed.
    what : str
        What the rows are called in an error.
    row_numbers : int64 ndarray of shape (n_documents,), optional
        The caller's number of each row, from 0, for errors.

    Returns
    -------
    float32 ndarray of shape (n_documents, n_dimensions)

    Raises
    ------
    InputError
        For anything but a 2-d numeric array, and for rows that are not finite or all zero.

    Examples
    --------
    >>> unit_rows([[3.0, 4.0]]).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """
    array = np.asarray(embeddings)
    if array.ndim != 2 or array.dtype.kind not in "fiu" or array.shape[1] == 0:
        raise InputError(
            f"{what} must be a 2-d array of numbers, one row a text; "
            f"got shape {array.shape} of {array.dtype}"
        )
    unit = np.array(array, dtype=np.float32, order="C")
    finite = np.isfinite(unit).all(axis=1)
    if not finite.all():
        row = _first(np.logical_not(finite), row_numbers)
        raise InputError(f"{what} must be finite; row {row} holds NaN or an infinite value")
    # float64 sums: the squares of a float32 vector may overflow or vanish in float32.
    norms = np.sqrt(np.einsum("ij,ij->i", unit, unit, dtype=np.float64))
    if not norms.all():
        row = _first(~norms.astype(bool), row_numbers)
        raise InputError(f"{what} must not be zero vectors; row {row} is zero everywhere")
    unit /= norms[:, None].astype(np.float32) if norms.min() > 1e-30 else norms[:, None]
    return unit


def _first(bad: npt.NDArray[np.bool_], row_numbers: npt.NDArray[np.int64] | None) -> int:
    """Return the number, from 1, of the caller's first bad row."""
    rows = np.flatnonzero(bad) if row_numbers is None else row_numbers[bad]
    return int(rows.min()) + 1


def build_graph(embeddings: FloatArray, k: int = 15, *, seed: int = 0) -> NeighborGraph:
    """Find the k nearest neighbours of every document by cosine similarity.

    All pairs are compared up to 20,000 documents. Above, an inverted-file index is trained
    with a fixed seed on one thread; a sample, searched exactly, tells how many of its lists have
    to be looked into, and the recall that this gives.

    Parameters
    ----------
    embeddings : float32 ndarray of shape (n_documents, n_dimensions)
        Unit vectors (see `unit_rows`).
    k : int
        Neighbours of each document, itself left out; fewer where there are fewer documents.
    seed : int
        Seed of the sample on which recall is measured.

    Returns
    -------
    NeighborGraph

    Notes
    -----
    FAISS rounds: where more than sixteen documents lie within its rounding of the k-th
    neighbour, an exact search may keep one of them and not another equally near.
    """
    n_documents = len(embeddings)
    k = max(0, min(k, n_documents - 1))
    if k == 0:
        empty = np.empty((n_documents, 0))
        return NeighborGraph(empty.astype(np.int32), empty.astype(np.float32))
    fetch = min(k + 1 + SPARE, n_documents)
    itself = np.arange(n_documents)
    if n_documents <= EXACT_LIMIT:
        candidates = _flat_index(embeddings).search(embeddings, fetch)[1]
        indices, similarities = _settle(embeddings, embeddings, candidates, k, itself)
        return NeighborGraph(indices, similarities, "exact", 1.0)
    index = _inverted_index(embeddings)
    recall = _choose_probes(index, embeddings, k, seed)
    candidates = index.search(embeddings, fetch)[1]
    indices, similarities = _settle(embeddings, embeddings, candidates, k, itself)
    return NeighborGraph(indices, similarities, "ivf", recall)


def nearest(queries: FloatArray, embeddings: FloatArray, k: int) -> tuple[Int32Array, FloatArray]:
    """Find the k documents nearest to each query, exactly.

    Parameters
    ----------
    queries : float32 ndarray of shape (n_queries, n_dimensions)
        Unit vectors.
    embeddings : float32 ndarray of shape (n_documents, n_dimensions)
        Unit vectors.
    k : int
        Neighbours of each query; fewer where there are fewer documents.

    Returns
    -------
    indices : int32 ndarray of shape (n_queries, k)
    similarities : float32 ndarray of shape (n_queries, k)
        Descending. A query's row does not depend on the other queries.
    """
    k = min(k, len(embeddings))
    fetch = min(k + SPARE, len(embeddings))
    candidates = _flat_index(embeddings).search(queries, fetch)[1]
    return _settle(queries, embeddings, candidates, k, None)


def _flat_index(embeddings: FloatArray) -> Any:
    import faiss

    index = faiss.IndexFlatIP(embeddings.shape[1])
    index.add(embeddings)
    return index


def _inverted_index(embeddings: FloatArray) -> Any:
    """Build an inverted-file index whose lists do not depend on the number of threads."""
    import faiss

    n_documents, n_dimensions = embeddings.shape
    n_lists = int(4 * np.sqrt(n_documents))
    index = faiss.IndexIVFFlat(
        faiss.IndexFlatIP(n_dimensions), n_dimensions, n_lists, faiss.METRIC_INNER_PRODUCT
    )
    index.cp.seed = 1234
    index.cp.niter = 8
    index.cp.min_points_per_centroid = 1
    index.cp.max_points_per_centroid = 48
    index.cp.spherical = True
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        index.train(embeddings)
        index.add(embeddings)
    finally:
        faiss.omp_set_num_threads(threads)
    return index


def _choose_probes(index: Any, embeddings: FloatArray, k: int, seed: int) -> float:
    """Let the index look into as few of its lists as give the wanted recall; return the recall."""
    n_documents = len(embeddings)
    sample = np.random.default_rng(seed).choice(n_documents, RECALL_SAMPLE, replace=False)
    queries, fetch = embeddings[sample], min(k + 1 + SPARE, n_documents)
    candidates = _flat_index(embeddings).search(queries, fetch)[1]
    exact, _ = _settle(queries, embeddings, candidates, k, sample)
    recall = 0.0
    for share in PROBED_SHARES:
        index.nprobe = max(1, round(index.nlist * share))
        candidates = index.search(queries, fetch)[1]
        found, _ = _settle(queries, embeddings, candidates, k, sample)
        hits = [np.isin(a, b).sum() for a, b in zip(exact, found, strict=True)]
        recall = float(np.sum(hits) / exact.size)
        if recall >= WANTED_RECALL:
            break
    return recall


def _settle(
    queries: FloatArray,
    embeddings: FloatArray,
    candidates: npt.NDArray[np.int64],
    k: int,
    itself: npt.NDArray[np.int64] | None,
) -> tuple[Int32Array, FloatArray]:
    """Recompute the candidates' similarities, order them, and keep the best k."""
    indices = np.empty((len(queries), k), dtype=np.int32)
    similarities = np.empty((len(queries), k), dtype=np.float32)
    for rows in _slices(len(queries), max(1, PAIRS_AT_ONCE // candidates.shape[1])):
        found = candidates[rows]
        scores = np.einsum("ijk,ik->ij", embeddings[found], queries[rows])
        # FAISS pads with -1 where its lists held too few.
        worthless = found < 0
        if itself is not None:
            worthless |= found == itself[rows, None]
        scores = np.where(worthless, -np.inf, scores)
        order = np.lexsort((found, -scores), axis=1)[:, :k]
        indices[rows] = np.take_along_axis(found, order, axis=1)
        similarities[rows] = np.take_along_axis(scores, order, axis=1)
    missing = ~np.isfinite(similarities)
    if missing.any():
        _fill_missing(queries, embeddings, indices, similarities, itself)
    return indices, np.clip(similarities, -1.0, 1.0)


def _fill_missing(
    queries: FloatArray,
    embeddings: FloatArray,
    indices: Int32Array,
    similarities: FloatArray,
    itself: npt.NDArray[np.int64] | None,
) -> None:
    """Search the rows exactly for which the inverted lists held fewer than k documents."""
    rows = np.flatnonzero(~np.isfinite(similarities).all(axis=1))
    k = indices.shape[1]
    fetch = min(k + 1 + SPARE, len(embeddings))
    candidates = _flat_index(embeddings).search(queries[rows], fetch)[1]
    own = None if itself is None else itself[rows]
    indices[rows], similarities[rows] = _settle(queries[rows], embeddings, candidates, k, own)


def _slices(n: int, size: int) -> Iterator[slice]:
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
