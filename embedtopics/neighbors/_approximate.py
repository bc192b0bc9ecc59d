"""The neighbours of many documents: a rough search by FAISS, refined along its own graph.

The rough search works on fewer dimensions, each kept in two bits, and looks into a few of the
lists that documents were sorted into. What it finds is compared again in full. Then the neighbours
of a document's neighbours are looked at: where two documents are near, most often one of them
already knows a third that is near to both (Dong, Moses and Li 2011, "Efficient k-nearest neighbor
graph construction for generic similarity measures"). Documents that are far from all others are
those whose neighbours are missed, and are looked for in more lists. How rough the search may be,
who is looked for again and where is estimated from a sample whose true neighbours are known.

Whatever sums in an order that depends on the number of threads is done on one: the projection,
all training, and the searches of FAISS, of which several threads of ours each run a part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.machine import numba_is_threadsafe
from embedtopics.protocols import BoolArray, FloatArray, Int32Array, Int64Array

# Candidates -> nearest neighbours: every similarity is computed here, in one fixed order.

SPARE = 16
"""Extra candidates fetched, so that ties and last-bit differences at the k-th place are settled
by the recomputed similarities and not by FAISS."""

NOBODY = -1
"""Stands where a list of neighbours, or of candidates, has no more."""

LARGEST = 127
"""Largest absolute value in a short form."""

DEVIATIONS = 6.0
"""Standard deviations of what is lost in a short form that are allowed for."""

ROUNDING = 1e-6
"""More than what the rounding of sums in float32 adds to that."""


Neighbors = tuple[Int32Array, FloatArray]
"""Indices and similarities, both of shape (n_queries, k), descending, ties by name."""


class Short(NamedTuple):
    """Vectors in a quarter of their space: `values` (n, n_dimensions), `scale` (n, 2)."""

    values: npt.NDArray[np.int8]
    scale: FloatArray

    def take(self, rows: Int64Array | slice) -> Short:
        """Return some rows."""
        return Short(self.values[rows], self.scale[rows])


def shorten(vectors: FloatArray, at: Int64Array | None = None) -> Short:
    """Return the short forms of unit vectors, or of the rows `at`.

    What is lost of each entry is taken for random and independent of the rest: it changes an inner
    product by a standard deviation of |r| / sqrt(d), r being what is lost of all d entries.
    """
    n_vectors = len(vectors) if at is None else len(at)
    values = np.empty((n_vectors, vectors.shape[1]), dtype=np.int8)
    scale = np.empty((n_vectors, 2), dtype=np.float32)
    for begin in range(0, n_vectors, ROWS_AT_ONCE):
        part = slice(begin, begin + ROWS_AT_ONCE)
        rows = vectors[part] if at is None else vectors[at[part]]
        largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
        step = np.maximum(largest, np.finfo(np.float32).tiny) / np.float32(LARGEST)
        whole = np.rint(rows / step)
        values[part] = whole
        rest = rows - whole * step
        scale[part, :1] = step
        lost = np.sqrt(np.einsum("ij,ij->i", rest, rest) / max(1, vectors.shape[1]))
        scale[part, 1] = DEVIATIONS * lost + ROUNDING
    return Short(values, scale)


def exact_neighbors(
    queries: FloatArray,
    embeddings: FloatArray,
    k: int,
    *,
    itself: Int64Array | None = None,
    names: Int64Array | None = None,
    at: Int64Array | None = None,
) -> Neighbors:
    """Compare every query with every document, (n, n_dimensions) each -> (n_queries, k) twice.

    Documents are all `embeddings`, or the rows `at`, of which one block is held at a time.
    """
    import faiss

    found = no_neighbors(len(queries), k)
    n_documents = len(embeddings) if at is None else len(at)
    for begin in range(0, n_documents, n_documents if at is None else BLOCK):
        block = embeddings if at is None else embeddings[at[begin : begin + BLOCK]]
        n_candidates = min(k + 1 + SPARE, len(block))
        near = faiss.knn(queries, block, n_candidates, faiss.METRIC_INNER_PRODUCT)[1]
        near[near >= 0] += begin
        keep_nearest(found, queries, embeddings, near, itself=itself, names=names, at=at)
    return found


def no_neighbors(n_queries: int, k: int) -> Neighbors:
    """Return lists without any neighbour yet."""
    return (
        np.full((n_queries, k), NOBODY, dtype=np.int32),
        np.full((n_queries, k), -np.inf, dtype=np.float32),
    )


def keep_nearest(
    found: Neighbors,
    queries: FloatArray,
    embeddings: FloatArray,
    candidates: npt.NDArray[np.integer[Any]],
    *,
    itself: Int64Array | None = None,
    names: Int64Array | None = None,
    at: Int64Array | None = None,
    short: tuple[Short, Short] | None = None,
) -> None:
    """Put candidates (n_queries, n_candidates) into the lists of neighbours, where near enough.

    A candidate is a row of `embeddings`, or a place in `at`, which holds rows.
    """
    from embedtopics.neighbors import _kernels

    if short is None:
        short = shorten(queries[:, :0]), shorten(embeddings[:, :0])
    at = np.arange(len(embeddings)) if at is None else at
    _kernels.keep_nearest(
        queries,
        embeddings,
        at,
        np.full(len(queries), NOBODY, dtype=np.int64) if itself is None else itself,
        np.arange(len(at)) if names is None else names,
        np.ascontiguousarray(candidates, dtype=np.int32),
        *short[0],
        *short[1],
        *found,
    )


RECALL_SAMPLE = 500
"""Documents whose true neighbours are searched, to measure the recall."""

WANTED_RECALL, LEAST_RECALL = 0.972, 0.97
"""Recall at which the graph is refined no further, and under which documents are looked for in more
lists. The sample has an error of its own."""

ROUGH_RECALL = 0.8
"""Recall that the first search is given enough lists for: refinement then costs less than looking
into more lists would. Of 0.78, 0.83 and 0.86 the last was the fastest for vectors of titles from an
encoder, by a tenth, and the first two for static vectors; it lies between these."""

DEEP_RECALL, DEEPER = 0.966, 0.002
"""Recall that some documents are looked for in more lists to reach, or how much more than there
was; refinement adds to each."""

MOST_SEARCHES = 4
"""Times that documents are looked for again at most."""

ROUNDS = 2
"""Rounds of refinement after each search; later ones find next to nothing."""

WORTH_A_ROUND = 0.01
"""Recall that a round of refinement has to add for another one to follow."""

BANDS = 5
"""Equal parts of the documents, by their mean similarity to their neighbours, that may be looked
for in a number of lists of their own. What is missed is missed where documents are far from
others: of a million titles, the fifth that is farthest has three fifths of it."""

OVERHEAD = 17_000
"""Documents that could be compared in the time that a search takes but for its comparisons."""

FRIENDS = 15
"""Neighbours, and as many followers, of each document that are asked for their own."""

KEPT_VARIANCE = 0.88
"""Share of the variance that the dimensions of the rough search have to hold."""

BITS = 4
"""Bits for each pair of dimensions in the rough search."""

CANDIDATES = 160
"""Documents that the rough search returns, to be compared in all dimensions."""

LISTS = 2.0
"""Lists, as a multiple of the root of the number of documents."""

PROBED_LISTS = (6, 8, 12, 16, 24, 36, 54, 81, 122, 183, 274, 411)
"""Lists that a document is looked for in; the last is what the search makes do with."""

ROWS_AT_ONCE = 8192
"""Documents whose candidates are held at a time."""

BLOCK = 65_536
"""Documents that are compared with all of a sample at a time."""

MOST_TRAINING_ROWS = 20_000
"""Documents from which the directions of largest variance are learnt."""


def refined_neighbors(
    embeddings: FloatArray, k: int, seed: int, rows: Int64Array | None = None
) -> tuple[Int32Array, FloatArray, float]:
    """Find nearly all of the k nearest neighbours of many documents, (n_documents, k) twice."""
    stock = stock_of(embeddings, rows)
    at, names = stock.at, stock.names
    sample = np.random.default_rng(seed).choice(len(names), RECALL_SAMPLE, replace=False)
    truth = exact_neighbors(
        embeddings[at[sample]], embeddings, k, itself=sample, names=names, at=at
    )
    found, recall = _find(stock, k, sample, truth)
    _fill_missing(found, stock)
    indices, similarities = np.empty_like(found[0]), np.empty_like(found[1])
    for part in parts_of(len(names)):
        indices[names[part]] = names[found[0][part]]
    similarities[names] = found[1]
    return indices, similarities, recall


@dataclass(frozen=True, eq=False)
class Stock:
    """What is searched: documents in the order of their lists, in full (`at`) and shorter forms."""

    embeddings: FloatArray
    at: Int64Array
    short: Short
    names: Int64Array
    axes: FloatArray
    reduced: FloatArray
    quantizer: Any
    index: Any

    def keep(self, own: Neighbors, rows: Int64Array, candidates: npt.NDArray[Any]) -> None:
        """Put candidates into the lists of neighbours of some rows, where they are near enough."""
        self.keep_near(own, self.embeddings[self.at[rows]], candidates, rows, self.short.take(rows))

    def keep_near(
        self,
        own: Neighbors,
        queries: FloatArray,
        candidates: npt.NDArray[Any],
        itself: Int64Array,
        short: Short | None = None,
    ) -> None:
        """Do the same for any unit vectors, of which `itself` tells the rows that they are."""
        short = shorten(queries) if short is None else short
        with _one_loop():
            keep_nearest(
                own, queries, self.embeddings, candidates,
                itself=itself, names=self.names, at=self.at, short=(short, self.short),
            )  # fmt: skip


def stock_of(embeddings: FloatArray, rows: Int64Array | None = None) -> Stock:
    """Sort unit vectors, or some rows of them, into lists, and shorten them."""
    axes, reduced = _principal_part(embeddings, rows)
    quantizer = _train(reduced)
    lists = _nearest_lists(quantizer, reduced)
    # From here on documents of one list stand side by side: what they look at is in the cache.
    names = np.argsort(lists, kind="stable")
    at = names if rows is None else rows[names]
    reduced = reduced[names]
    index = _fill_lists(reduced, lists[names], quantizer)
    return Stock(embeddings, at, shorten(embeddings, at), names, axes, reduced, quantizer, index)


def _find(stock: Stock, k: int, sample: Int64Array, truth: Neighbors) -> tuple[Neighbors, float]:
    """Search roughly and refine; then look into more lists for those of whom most is missed."""
    n_documents = len(stock.names)
    probed = sorted({min(n_lists, stock.quantizer.ntotal) for n_lists in PROBED_LISTS})
    while probed[1:]:
        tried = no_neighbors(len(sample), k)
        _search(stock, tried, sample, probed[0])
        if _recall(tried, truth) >= ROUGH_RECALL:
            break
        del probed[0]
    found = no_neighbors(n_documents, k)
    _search(stock, found, np.arange(n_documents), probed[0])
    fresh = np.ones(found[0].shape, dtype=np.bool_)
    recall = _refine(found, fresh, stock, sample, truth)
    for _ in range(MOST_SEARCHES):
        if recall >= LEAST_RECALL:
            break
        wanted = max(DEEP_RECALL, recall + DEEPER)
        before = found[0].copy()
        for rows, n_lists in _rows_to_deepen(stock, found, sample, truth, probed[1:], wanted):
            own = found[0][rows], found[1][rows]
            _search(stock, own, rows, n_lists)
            found[0][rows], found[1][rows] = own
        _mark_fresh(fresh, found[0], before, is_added=True)
        recall = _refine(found, fresh, stock, sample, truth)
    return found, recall


def _search(stock: Stock, own: Neighbors, rows: Int64Array, n_lists: int) -> None:
    """Look into lists for some documents, (n_rows,), and keep in `own` (n_rows, k) what is near."""
    stock.index.nprobe = n_lists

    def search(part: slice) -> None:
        reduced = stock.reduced[rows[part]]
        probes = lists_near(stock.quantizer, reduced, n_lists)
        nearby = stock.index.search_preassigned(reduced, CANDIDATES, probes, None)[1]
        stock.keep((own[0][part], own[1][part]), rows[part], nearby)

    on_threads(search, list(parts_of(len(rows))))


def _rows_to_deepen(
    stock: Stock,
    found: Neighbors,
    sample: Int64Array,
    truth: Neighbors,
    numbers: list[int],
    wanted: float,
) -> Iterator[tuple[Int64Array, int]]:
    """Return documents, (n_rows,) each, and in how many lists they are to be looked for.

    Bands of documents get lists one after the other, each time those that find most for their cost
    in the sample, until its recall is the wanted one.
    """
    closeness = np.maximum(found[1], -1.0).mean(axis=1)  # some lists may not be full
    ends = np.quantile(closeness, np.arange(1, BANDS) / BANDS)
    band = np.searchsorted(ends, closeness[sample], side="right")
    size = len(stock.names) / stock.quantizer.ntotal
    costs = np.array([0.0, *(n_lists + OVERHEAD / size for n_lists in numbers)])
    recalls = np.empty((BANDS, len(costs)))
    for option, n_lists in enumerate([0, *numbers]):
        own = found[0][sample], found[1][sample]
        if n_lists:
            _search(stock, own, sample, n_lists)
        of_row = (own[1] >= truth[1][:, -1:]).mean(axis=1)
        recalls[:, option] = [
            of_row[band == b].mean() if (band == b).any() else 1 for b in range(BANDS)
        ]
    chosen = np.zeros(BANDS, dtype=np.int64)
    every = np.arange(BANDS)
    while recalls[every, chosen].mean() < wanted:
        extra = costs - costs[chosen][:, None]
        gain = recalls - recalls[every, chosen][:, None]
        rate = np.where(extra > 0, gain / np.where(extra > 0, extra, 1.0), 0.0)
        best = int(rate.max(axis=1).argmax())
        if rate[best].max() <= 0:
            break
        chosen[best] = rate[best].argmax()
    of_document = np.searchsorted(ends, closeness, side="right")
    for option in np.unique(chosen[chosen > 0]).tolist():
        yield np.flatnonzero(chosen[of_document] == option), numbers[option - 1]


def _principal_part(
    embeddings: FloatArray, rows: Int64Array | None
) -> tuple[FloatArray, FloatArray]:
    """Return the directions of largest variance, and the vectors turned into these."""
    from threadpoolctl import threadpool_limits

    rows = np.arange(len(embeddings)) if rows is None else rows
    n_documents, n_dimensions = len(rows), embeddings.shape[1]
    some = embeddings[rows[:: max(1, n_documents // MOST_TRAINING_ROWS)]]
    with threadpool_limits(limits=1, user_api="blas"):
        variances, axes = np.linalg.eigh(np.cov(some, rowvar=False, dtype=np.float32))
        share = np.cumsum(variances[::-1]) / variances.sum()
        wanted = int(np.searchsorted(share, KEPT_VARIANCE)) + 1
        kept = min(n_dimensions, -(-wanted // 8) * 8)  # whole vector registers
        # They are coded in pairs: an odd one is paired with zeros.
        main = np.zeros((n_dimensions, kept + kept % 2), dtype=np.float32)
        main[:, :kept] = axes[:, ::-1][:, :kept]
        reduced = np.empty((n_documents, main.shape[1]), dtype=np.float32)
        for part in parts_of(n_documents):
            np.matmul(embeddings[rows[part]], main, out=reduced[part])
    return main, reduced


def _train(reduced: FloatArray) -> Any:
    import faiss

    n_documents, n_dimensions = reduced.shape
    clusters: Any = faiss.Kmeans(
        n_dimensions, int(LISTS * np.sqrt(n_documents)), niter=4, spherical=True, seed=1234,
        min_points_per_centroid=1, max_points_per_centroid=24,
    )  # fmt: skip
    with _one_thread():
        clusters.train(reduced)
    quantizer = faiss.IndexFlatIP(n_dimensions)
    quantizer.add(clusters.centroids)
    return quantizer


def _nearest_lists(quantizer: Any, rows: FloatArray) -> Int64Array:
    """Return the number of the list that is nearest to each row."""
    nearest = np.empty(len(rows), dtype=np.int64)

    def search(part: slice) -> None:
        nearest[part] = lists_near(quantizer, rows[part], 1)[:, 0]

    on_threads(search, list(parts_of(len(rows))))
    return nearest


def lists_near(quantizer: Any, rows: FloatArray, n: int) -> Int64Array:
    """Return the numbers of the n lists that are nearest to each row, nearest first."""
    found: Int64Array = quantizer.search(rows, n)[1]
    return found


def _fill_lists(reduced: FloatArray, lists: Int64Array, quantizer: Any) -> Any:
    """Build the index; the numbers of the lists are known, so none is searched again."""
    import faiss

    n_dimensions = reduced.shape[1]
    index = faiss.IndexIVFPQ(
        quantizer, n_dimensions, quantizer.ntotal, n_dimensions // 2, BITS,
        faiss.METRIC_INNER_PRODUCT,
    )  # fmt: skip
    index.by_residual = False
    lists = np.ascontiguousarray(lists, dtype=np.int64)
    with _one_thread():
        index.train(np.ascontiguousarray(reduced[:: max(1, len(reduced) // MOST_TRAINING_ROWS)]))
    index.add_core(len(reduced), faiss.swig_ptr(reduced), None, faiss.swig_ptr(lists))
    return faiss.IndexIVFPQFastScan(index)


def _refine(
    found: Neighbors, fresh: BoolArray, stock: Stock, sample: Int64Array, truth: Neighbors
) -> float:
    """Look at neighbours of neighbours while that finds enough; return the recall.

    Edges that are `fresh` (n_documents, k) are those whose ends have not been introduced so far.
    """
    from embedtopics.neighbors._kernels import friends_of_friends

    indices = found[0]
    most = min(FRIENDS, indices.shape[1])
    recall = _recall((indices[sample], found[1][sample]), truth)
    for _ in range(ROUNDS):
        if recall >= WANTED_RECALL:
            break
        before, recall_before = indices.copy(), recall
        offsets, followers, fresh_followers = _followers(before, fresh)
        for part in parts_of(len(indices)):
            rows = np.arange(part.start, part.stop)
            candidates = np.full((len(rows), 2 * most * (2 * most + 1)), NOBODY, dtype=np.int32)
            friends_of_friends(
                before, fresh, offsets, followers, fresh_followers, most, part.start, candidates
            )
            stock.keep((indices[part], found[1][part]), rows, candidates)
        _mark_fresh(fresh, indices, before)
        recall = _recall((indices[sample], found[1][sample]), truth)
        if recall - recall_before < WORTH_A_ROUND:
            break
    return recall


def _mark_fresh(
    fresh: BoolArray, indices: Int32Array, before: Int32Array, *, is_added: bool = False
) -> None:
    """Mark edges that were not there before, beside those marked already or in their place."""
    for part in parts_of(len(indices)):
        is_new = (indices[part, :, None] != before[part, None, :]).all(axis=2)
        fresh[part] = fresh[part] | is_new if is_added else is_new


def _followers(
    indices: Int32Array, fresh: npt.NDArray[np.bool_]
) -> tuple[Int64Array, Int32Array, npt.NDArray[np.bool_]]:
    """Turn the graph round: who has a row in its list, those that have it nearest first."""
    from scipy.sparse import csr_matrix

    n_rows, target = len(indices), indices.T.ravel()
    is_there = target != NOBODY
    # An edge is a row, nearest neighbours first: in a column, edges keep this order.
    begins = np.concatenate([[0], np.cumsum(is_there)])
    edges = csr_matrix(
        (fresh.T.ravel()[is_there], target[is_there], begins), shape=(len(target), n_rows)
    ).tocsc()
    return edges.indptr.astype(np.int64), (edges.indices % n_rows).astype(np.int32), edges.data


def _recall(found: Neighbors, truth: Neighbors) -> float:
    """Return the share of found neighbours that are as near as the true ones."""
    return float((found[1] >= truth[1][:, -1:]).mean())


def _fill_missing(found: Neighbors, stock: Stock) -> None:
    """Search the rows exactly whose lists held too few documents."""
    indices, similarities = found
    rows = np.flatnonzero((indices == NOBODY).any(axis=1))
    if len(rows):
        indices[rows], similarities[rows] = exact_neighbors(
            stock.embeddings[stock.at[rows]], stock.embeddings, indices.shape[1],
            itself=rows, names=stock.names, at=stock.at,
        )  # fmt: skip


def parts_of(n: int, size: int = ROWS_AT_ONCE) -> Iterator[slice]:
    """Yield slices of so many rows, and of the rest."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def on_threads(work: Callable[[slice], None], parts: list[slice]) -> None:
    """Work on all parts, on threads of ours, each with one of FAISS's and one of Numba's.

    FAISS's own threads would share a part as their number wants it, and sum in another order.
    """
    import faiss
    import numba

    def work_alone(part: slice) -> None:
        numba.set_num_threads(1)  # of this thread of ours
        with _one_thread():
            work(part)

    with ThreadPoolExecutor(min(len(parts), faiss.omp_get_max_threads())) as threads:
        for _ in threads.map(work_alone, parts):
            pass


_turn = Lock()


def _one_loop() -> AbstractContextManager[Any]:
    """Let loops of Numba take turns where they may not run in two threads at once."""
    return nullcontext() if numba_is_threadsafe() else _turn


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
