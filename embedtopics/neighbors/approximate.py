"""The neighbours of many documents: a rough search by FAISS, refined along its own graph.

The rough search works on fewer dimensions and looks into a few of the lists that documents were
sorted into. Then the neighbours of a document's neighbours are looked at: where two documents
are near, most often one of them already knows a third that is near to both (Dong, Moses and Li
2011, "Efficient k-nearest neighbor graph construction for generic similarity measures"). How
rough the search may be, and how often the graph is refined, is told by a sample of documents
whose true neighbours are known.

Whatever sums in an order that depends on the number of threads is done on one: the projection,
the training of the lists and the choice of lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.neighbors.comparing import (
    NOBODY,
    Neighbors,
    exact_neighbors,
    keep_nearest,
    no_neighbors,
)
from embedtopics.protocols import FloatArray, Int32Array, Int64Array

__all__ = ["refined_neighbors"]

RECALL_SAMPLE = 500
"""Documents whose true neighbours are searched, to measure the recall."""

WANTED_RECALL = 0.975
"""Recall at which the graph is refined no further; a little above the 0.97 that is promised,
because the sample has an error of its own."""

ROUGH_RECALL = 0.9
"""Recall that the rough search is given enough lists for; two rounds of refinement then cost
less than looking into more lists would."""

ROUNDS = 4
"""Rounds of refinement at most; later ones find next to nothing."""

FRIENDS = 12
"""Neighbours, and as many followers, of each document that are asked for their own."""

KEPT_VARIANCE = 0.8
"""Share of the variance that the dimensions of the rough search have to hold."""

CANDIDATES = 48
"""Documents that the rough search returns, to be compared in all dimensions."""

PROBED_LISTS = (8, 12, 16, 24, 36, 54, 81, 122, 183, 274)
"""Lists that a document is looked for in; the last is what the search makes do with."""

ROWS_AT_ONCE = 8192
"""Documents whose candidates are held at a time."""

MOST_TRAINING_ROWS = 20_000
"""Documents from which the directions of largest variance are learnt."""


def refined_neighbors(
    embeddings: FloatArray, k: int, seed: int
) -> tuple[Int32Array, FloatArray, float]:
    """Find nearly all of the k nearest neighbours of many documents.

    Parameters
    ----------
    embeddings : float32 ndarray of shape (n_documents, n_dimensions)
        Unit vectors.
    k : int
    seed : int
        Seed of the sample on which recall is measured.

    Returns
    -------
    indices : int32 ndarray of shape (n_documents, k)
    similarities : float32 ndarray of shape (n_documents, k)
        Descending, ties by the document's number.
    recall : float
        Share of the sample's true neighbours that were found, others equally near included.
    """
    reduced = _principal_part(embeddings)
    centroids = _train(reduced)
    lists = _nearest_centroids(reduced, centroids, 1)[:, 0]
    # From here on documents of one list stand side by side: what they look at is in the cache.
    names = np.argsort(lists, kind="stable")
    embeddings, reduced = embeddings[names], reduced[names]
    index = _fill_lists(reduced, lists[names], centroids)
    sample = np.random.default_rng(seed).choice(len(names), RECALL_SAMPLE, replace=False)
    truth = exact_neighbors(embeddings[sample], embeddings, k, itself=sample, names=names)

    def search(rows: Int64Array, n_lists: int) -> Neighbors:
        index.nprobe = n_lists
        probes = _nearest_centroids(reduced[rows], centroids, n_lists)
        found = no_neighbors(len(rows), k)
        for part in _parts(len(rows)):
            nearby = index.search_preassigned(reduced[rows[part]], CANDIDATES, probes[part], None)
            within = (found[0][part], found[1][part])
            keep_nearest(
                within, embeddings[rows[part]], embeddings, nearby[1],
                itself=rows[part], names=names,
            )  # fmt: skip
        return found

    for n_lists in PROBED_LISTS:
        n_lists = min(n_lists, len(centroids))
        if _recall(search(sample, n_lists), truth) >= ROUGH_RECALL:
            break
    found = search(np.arange(len(names)), n_lists)
    recall = _refine(found, embeddings, names, sample, truth)
    _fill_missing(found, embeddings, names)
    indices, similarities = np.empty_like(found[0]), np.empty_like(found[1])
    indices[names], similarities[names] = names[found[0]], found[1]
    return indices, similarities, recall


def _principal_part(embeddings: FloatArray) -> FloatArray:
    """Turn the vectors into the directions of largest variance, and leave out the others."""
    from threadpoolctl import threadpool_limits

    n_documents, n_dimensions = embeddings.shape
    some = embeddings[:: max(1, n_documents // MOST_TRAINING_ROWS)]
    with threadpool_limits(limits=1, user_api="blas"):
        variances, axes = np.linalg.eigh(np.cov(some, rowvar=False, dtype=np.float32))
        share = np.cumsum(variances[::-1]) / variances.sum()
        wanted = int(np.searchsorted(share, KEPT_VARIANCE)) + 1
        kept = min(n_dimensions, -(-wanted // 8) * 8)  # whole vector registers
        reduced: FloatArray = embeddings @ np.ascontiguousarray(axes[:, ::-1][:, :kept])
    return reduced


def _train(reduced: FloatArray) -> FloatArray:
    """Return the middles of the lists, of shape (n_lists, n_dimensions)."""
    import faiss

    n_documents, n_dimensions = reduced.shape
    clusters: Any = faiss.Kmeans(
        n_dimensions, int(4 * np.sqrt(n_documents)), niter=4, spherical=True, seed=1234,
        min_points_per_centroid=1, max_points_per_centroid=24,
    )  # fmt: skip
    with _one_thread():
        clusters.train(reduced)
    centroids: FloatArray = clusters.centroids
    return centroids


def _nearest_centroids(rows: FloatArray, centroids: FloatArray, n: int) -> Int64Array:
    """Return the numbers of the n nearest centroids of each row, nearest first."""
    import faiss

    index: Any = faiss.IndexFlatIP(centroids.shape[1])
    index.add(centroids)

    def search(part: slice) -> Int64Array:
        # Threads of ours, each with one of FAISS's: its sums would depend on how many it has.
        with _one_thread():
            return index.search(rows[part], n)[1]  # type: ignore[no-any-return]

    with ThreadPoolExecutor(faiss.omp_get_max_threads()) as threads:
        return np.concatenate(list(threads.map(search, _parts(len(rows)))))


def _fill_lists(reduced: FloatArray, lists: Int64Array, centroids: FloatArray) -> Any:
    """Build the index; the numbers of the lists are known, so no centroid is searched again."""
    import faiss

    n_dimensions = reduced.shape[1]
    quantizer = faiss.IndexFlatIP(n_dimensions)
    quantizer.add(centroids)
    index = faiss.IndexIVFFlat(quantizer, n_dimensions, len(centroids), faiss.METRIC_INNER_PRODUCT)
    index.is_trained = True
    index.parallel_mode = 3  # over the queries; by default, given lists are searched by one thread
    lists = np.ascontiguousarray(lists, dtype=np.int64)
    index.add_core(len(reduced), faiss.swig_ptr(reduced), None, faiss.swig_ptr(lists))
    return index


def _refine(
    found: Neighbors,
    embeddings: FloatArray,
    names: Int64Array,
    sample: Int64Array,
    truth: Neighbors,
) -> float:
    """Look at neighbours of neighbours until the recall suffices; return the recall."""
    from embedtopics.neighbors._kernels import friends_of_friends

    indices = found[0]
    most = min(FRIENDS, indices.shape[1])
    fresh: npt.NDArray[np.bool_] = np.ones(indices.shape, dtype=np.bool_)
    for _ in range(ROUNDS):
        recall = _recall((indices[sample], found[1][sample]), truth)
        if recall >= WANTED_RECALL:
            break
        before = indices.copy()
        offsets, followers, fresh_followers = _followers(before, fresh)
        for part in _parts(len(indices)):
            rows = np.arange(part.start, part.stop)
            candidates = np.full((len(rows), 2 * most * (2 * most + 1)), NOBODY, dtype=np.int32)
            friends_of_friends(
                before, fresh, offsets, followers, fresh_followers, most, part.start, candidates
            )
            within = (indices[part], found[1][part])
            keep_nearest(within, embeddings[part], embeddings, candidates, itself=rows, names=names)
        for part in _parts(len(indices)):
            fresh[part] = (indices[part, :, None] != before[part, None, :]).all(axis=2)
    return _recall((indices[sample], found[1][sample]), truth)


def _followers(
    indices: Int32Array, fresh: npt.NDArray[np.bool_]
) -> tuple[Int64Array, Int32Array, npt.NDArray[np.bool_]]:
    """Turn the graph round: who has a row in its list, those that have it nearest first."""
    n_rows = len(indices)
    target = indices.T.ravel()
    order = np.argsort(target, kind="stable")[np.count_nonzero(target == NOBODY) :]
    offsets = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(target[order], minlength=n_rows), out=offsets[1:])
    return offsets, (order % n_rows).astype(np.int32), fresh.T.ravel()[order]


def _recall(found: Neighbors, truth: Neighbors) -> float:
    """Return the share of found neighbours that are as near as the true ones."""
    return float((found[1] >= truth[1][:, -1:]).mean())


def _fill_missing(found: Neighbors, embeddings: FloatArray, names: Int64Array) -> None:
    """Search the rows exactly whose lists held too few documents."""
    indices, similarities = found
    rows = np.flatnonzero((indices == NOBODY).any(axis=1))
    if len(rows):
        indices[rows], similarities[rows] = exact_neighbors(
            embeddings[rows], embeddings, indices.shape[1], itself=rows, names=names
        )


def _parts(n: int) -> Iterator[slice]:
    for start in range(0, n, ROWS_AT_ONCE):
        yield slice(start, min(start + ROWS_AT_ONCE, n))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let FAISS use one thread where it is called from this one."""
    import faiss

    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)
