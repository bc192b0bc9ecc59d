"""The neighbors of many documents: a rough search by FAISS, refined along its own graph.

The rough search works on fewer dimensions with two bits each, in a few lists of an inverted file.
Its candidates are compared again in full. Then the neighbors of neighbors are candidates: if two
documents are near, one of them usually has a third neighbor near to both (Dong, Moses and Li 2011,
"Efficient k-nearest neighbor graph construction for generic similarity measures"). Missed neighbors
are mostly those of documents far from all others, which are searched in more lists. A sample with
known true neighbors determines the number of lists, and which documents are searched again.

Steps whose order of summation depends on the number of threads run on one thread: the projection,
all training, and the searches of FAISS; several of our own threads run a part of these each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.machine import in_parts, one_blas_thread
from embedtopics.protocols import BoolArray, Float64Array, FloatArray, Int32Array, Int64Array

# Candidates -> nearest neighbors: every similarity is computed here, in one fixed order.

SPARE = 16
"""Extra candidates: the recomputed similarities decide ties and last-bit differences at the k-th
place, not FAISS."""

NOBODY = -1
"""Fills lists of neighbors and candidates that are too short."""

LARGEST = 127
"""Largest absolute value of a code."""

DEVIATIONS = 6.0
"""Standard deviations of the quantization error in the bound of a similarity."""

ROUNDING = 1e-6
"""Bound of the rounding error of sums in float32."""

WORTH_THREADS = 1024
"""Queries below which several threads cost more than they save."""


Neighbors = tuple[Int32Array, FloatArray]
"""Indices and similarities, (n_queries, k) each, descending, ties by row id."""


class Int8Codes(NamedTuple):
    """Vectors quantized to int8: `values` (n, n_dimensions), `scale` (n, 2)."""

    values: npt.NDArray[np.int8]
    scale: FloatArray

    def take(self, rows: Int64Array | slice) -> Int8Codes:
        """Return some rows."""
        return Int8Codes(self.values[rows], self.scale[rows])


def quantize(vectors: FloatArray, rows: Int64Array | None = None) -> Int8Codes:
    """Return the codes of unit vectors, or of some rows.

    The quantization errors of the entries count as random and independent: they change an inner
    product by a standard deviation of |r| / sqrt(d), with r the errors of all d entries.
    """
    n_vectors = len(vectors) if rows is None else len(rows)
    values = np.empty((n_vectors, vectors.shape[1]), dtype=np.int8)
    scale = np.empty((n_vectors, 2), dtype=np.float32)
    for begin in range(0, n_vectors, ROWS_AT_ONCE):
        part = slice(begin, begin + ROWS_AT_ONCE)
        block = vectors[part] if rows is None else vectors[rows[part]]
        largest = np.abs(block).max(axis=1, keepdims=True, initial=0.0)
        step = np.maximum(largest, np.finfo(np.float32).tiny) / np.float32(LARGEST)
        whole = np.rint(block / step)
        values[part] = whole
        rest = block - whole * step
        scale[part, :1] = step
        error = np.sqrt(np.einsum("ij,ij->i", rest, rest) / max(1, vectors.shape[1]))
        scale[part, 1] = DEVIATIONS * error + ROUNDING
    return Int8Codes(values, scale)


def exact_neighbors(
    queries: FloatArray,
    embeddings: FloatArray,
    k: int,
    *,
    exclude: Int64Array | None = None,
    row_ids: Int64Array | None = None,
    rows: Int64Array | None = None,
) -> Neighbors:
    """Compare every query with every document, (n, n_dimensions) each -> (n_queries, k) twice.

    Documents are all `embeddings`, or some `rows`, compared in blocks. `exclude` (n_queries,) is
    the own position of each query.
    """
    import faiss

    neighbors = no_neighbors(len(queries), k)
    n_documents = len(embeddings) if rows is None else len(rows)
    for begin in range(0, n_documents, n_documents if rows is None else BLOCK):
        block = embeddings if rows is None else embeddings[rows[begin : begin + BLOCK]]
        n_candidates = min(k + 1 + SPARE, len(block))
        near = faiss.knn(queries, block, n_candidates, faiss.METRIC_INNER_PRODUCT)[1]
        near[near >= 0] += begin
        keep_nearest(
            neighbors, queries, embeddings, near, exclude=exclude, row_ids=row_ids, rows=rows
        )
    return neighbors


def no_neighbors(n_queries: int, k: int) -> Neighbors:
    """Return empty lists of neighbors."""
    return (
        np.full((n_queries, k), NOBODY, dtype=np.int32),
        np.full((n_queries, k), -np.inf, dtype=np.float32),
    )


def keep_nearest(
    neighbors: Neighbors,
    queries: FloatArray,
    embeddings: FloatArray,
    candidates: npt.NDArray[np.integer[Any]],
    *,
    exclude: Int64Array | None = None,
    row_ids: Int64Array | None = None,
    rows: Int64Array | None = None,
    codes: tuple[Int8Codes, Int8Codes] | None = None,
) -> None:
    """Insert candidates (n_queries, n_candidates) into the lists of neighbors if near enough.

    A candidate is a row of `embeddings`, or a position in `rows`.
    """
    from embedtopics.neighbors import _kernels

    if codes is None:
        codes = quantize(queries[:, :0]), quantize(embeddings[:, :0])
    rows = np.arange(len(embeddings)) if rows is None else rows
    exclude = np.full(len(queries), NOBODY, dtype=np.int64) if exclude is None else exclude
    row_ids = np.arange(len(rows)) if row_ids is None else row_ids
    near = np.ascontiguousarray(candidates, dtype=np.int32)
    arrays = queries, embeddings, rows, exclude, row_ids, near, *codes[0], *codes[1], *neighbors
    in_parts(_kernels.keep_nearest, len(queries), *arrays, few=WORTH_THREADS)


RECALL_SAMPLE = 500
"""Documents of the sample with known true neighbors."""

TARGET_RECALL, LEAST_RECALL = 0.972, 0.97
"""Recall that ends the refinement, and recall below which documents are searched in more lists. The
sample has a sampling error."""

ROUGH_RECALL = 0.8
"""Recall of the first search: beyond it, refinement costs less than more lists. Of 0.78, 0.83 and
0.86 the last was the fastest for encoded titles, by a tenth, and the first two for static vectors;
this value lies between."""

DEEP_RECALL, DEEPER = 0.966, 0.002
"""Recall to reach by more lists for some documents, or its smallest increase; refinement adds to
each."""

MOST_SEARCHES = 4
"""Largest number of repeated searches."""

ROUNDS = 2
"""Rounds of refinement after each search; later rounds find almost nothing."""

WORTH_A_ROUND = 0.01
"""Smallest gain in recall of a round for another round."""

BANDS = 5
"""Equal parts of the documents by mean similarity to their neighbors; each part may have its own
number of lists. Of a million titles, the farthest fifth has three fifths of the missed
neighbors."""

OVERHEAD = 17_000
"""Overhead of a search, in comparisons of documents."""

N_EXPANDED = 15
"""Neighbors of each document, and as many followers, whose neighbors become candidates."""

MIN_VARIANCE = 0.88
"""Smallest share of the variance in the dimensions of the rough search."""

BITS = 4
"""Bits for each pair of dimensions in the rough search."""

CANDIDATES = 160
"""Candidates of the rough search, to compare in all dimensions."""

LISTS = 2.0
"""Number of lists, as a multiple of the square root of the number of documents."""

PROBED_LISTS = (6, 8, 12, 16, 24, 36, 54, 81, 122, 183, 274, 411)
"""Numbers of lists to search for a document; the search makes do with the last."""

ROWS_AT_ONCE = 8192
"""Documents per block of candidates."""

BLOCK = 65_536
"""Documents per block of comparisons with a sample."""

MOST_TRAINING_ROWS = 20_000
"""Documents for the directions of largest variance."""


def refined_neighbors(
    embeddings: FloatArray, k: int, seed: int, rows: Int64Array | None = None
) -> tuple[Int32Array, FloatArray, float]:
    """Find nearly all of the k nearest neighbors of many documents, (n_documents, k) each."""
    corpus = build_corpus(embeddings, rows)
    row_ids = corpus.row_ids
    sample = np.random.default_rng(seed).choice(len(row_ids), RECALL_SAMPLE, replace=False)
    truth = exact_neighbors(
        embeddings[corpus.rows[sample]],
        embeddings,
        k,
        exclude=sample,
        row_ids=row_ids,
        rows=corpus.rows,
    )
    neighbors, recall = _find(corpus, k, sample, truth)
    _fill_missing(neighbors, corpus)
    indices, similarities = np.empty_like(neighbors[0]), np.empty_like(neighbors[1])
    for part in parts_of(len(row_ids)):
        indices[row_ids[part]] = row_ids[neighbors[0][part]]
    similarities[row_ids] = neighbors[1]
    return indices, similarities, recall


@dataclass(frozen=True, eq=False)
class SearchCorpus:
    """Documents to search, in the order of their lists: full vectors (`rows`) and codes."""

    embeddings: FloatArray
    rows: Int64Array
    codes: Int8Codes
    row_ids: Int64Array
    axes: FloatArray
    reduced: FloatArray
    quantizer: Any
    index: Any

    def keep(self, neighbors: Neighbors, positions: Int64Array, candidates: Int32Array) -> None:
        """Insert candidates into the lists of neighbors of some documents."""
        queries, codes = self.embeddings[self.rows[positions]], self.codes.take(positions)
        self.keep_near(neighbors, queries, candidates, positions, codes)

    def keep_near(
        self,
        neighbors: Neighbors,
        queries: FloatArray,
        candidates: Int32Array,
        exclude: Int64Array,
        codes: Int8Codes | None = None,
    ) -> None:
        """Insert candidates into the lists of any unit vectors."""
        query_codes = quantize(queries) if codes is None else codes
        keep_nearest(
            neighbors,
            queries,
            self.embeddings,
            candidates,
            exclude=exclude,
            row_ids=self.row_ids,
            rows=self.rows,
            codes=(query_codes, self.codes),
        )


def build_corpus(embeddings: FloatArray, rows: Int64Array | None = None) -> SearchCorpus:
    """Sort unit vectors, or some rows of them, into lists, and quantize them."""
    axes, reduced = _principal_part(embeddings, rows)
    quantizer = _train(reduced)
    lists = _nearest_lists(quantizer, reduced)
    # From here on the documents of a list are adjacent in memory, for the cache.
    row_ids = np.argsort(lists, kind="stable")
    rows = row_ids if rows is None else rows[row_ids]
    reduced = reduced[row_ids]
    index = _fill_lists(reduced, lists[row_ids], quantizer)
    codes = quantize(embeddings, rows)
    return SearchCorpus(embeddings, rows, codes, row_ids, axes, reduced, quantizer, index)


def _find(
    corpus: SearchCorpus, k: int, sample: Int64Array, truth: Neighbors
) -> tuple[Neighbors, float]:
    """Search roughly and refine; then search more lists for documents with missed neighbors."""
    n_documents = len(corpus.row_ids)
    probed = sorted({min(n_lists, corpus.quantizer.ntotal) for n_lists in PROBED_LISTS})
    while probed[1:]:
        tried = no_neighbors(len(sample), k)
        _search(corpus, tried, sample, probed[0])
        if _recall(tried, truth) >= ROUGH_RECALL:
            break
        del probed[0]

    neighbors = no_neighbors(n_documents, k)
    _search(corpus, neighbors, np.arange(n_documents), probed[0])
    fresh = np.ones(neighbors[0].shape, dtype=np.bool_)
    recall = _refine(neighbors, fresh, corpus, sample, truth)

    for _ in range(MOST_SEARCHES):
        if recall >= LEAST_RECALL:
            break
        target = max(DEEP_RECALL, recall + DEEPER)
        before = neighbors[0].copy()
        steps = _rows_to_deepen(
            corpus, neighbors, sample, truth, list_numbers=probed[1:], target_recall=target
        )
        for rows, n_lists in steps:
            deeper = neighbors[0][rows], neighbors[1][rows]
            _search(corpus, deeper, rows, n_lists)
            neighbors[0][rows], neighbors[1][rows] = deeper
        _mark_fresh(fresh, neighbors[0], before, is_added=True)
        recall = _refine(neighbors, fresh, corpus, sample, truth)
    return neighbors, recall


def _search(corpus: SearchCorpus, neighbors: Neighbors, rows: Int64Array, n_lists: int) -> None:
    """Search lists for some documents (n_rows,), and insert the near ones into their lists."""
    corpus.index.nprobe = n_lists

    def search(part: slice) -> None:
        reduced = corpus.reduced[rows[part]]
        probes = corpus.quantizer.search(reduced, n_lists)[1]
        nearby = corpus.index.search_preassigned(reduced, CANDIDATES, probes, None)[1]
        corpus.keep((neighbors[0][part], neighbors[1][part]), rows[part], nearby)

    on_threads(search, list(parts_of(len(rows))))


def _rows_to_deepen(
    corpus: SearchCorpus,
    neighbors: Neighbors,
    sample: Int64Array,
    truth: Neighbors,
    list_numbers: list[int],
    target_recall: float,
) -> Iterator[tuple[Int64Array, int]]:
    """Yield documents to search again (n_selected,), and the number of lists to search for them.

    Most missed neighbors are those of documents far from all others. The documents are therefore
    divided into bands by their mean similarity to their neighbors. The recall of each band is
    measured on the sample for every number of lists, and each band gets its own number.
    """
    indices, similarities = neighbors

    # Bands of equal size, the farthest documents first. A missing neighbor counts as opposite.
    closeness = np.maximum(similarities, -1.0).mean(axis=1)
    band_edges = np.quantile(closeness, np.arange(1, BANDS) / BANDS)
    band_of_document = np.searchsorted(band_edges, closeness, side="right")
    band_of_sample = band_of_document[sample]

    # Options of a band: no further search, or one of the numbers of lists. Costs are in lists.
    options = [0, *list_numbers]
    documents_per_list = len(corpus.row_ids) / corpus.quantizer.ntotal
    overhead = OVERHEAD / documents_per_list
    costs = np.array([0.0, *(n_lists + overhead for n_lists in list_numbers)])

    # A band without sampled documents keeps a recall of 1: nothing shows that it needs more.
    recalls = np.ones((BANDS, len(options)))
    for option, n_lists in enumerate(options):
        tried = (indices[sample], similarities[sample])
        if n_lists > 0:
            _search(corpus, tried, sample, n_lists)
        recall_of_document = _is_recalled(tried, truth).mean(axis=1)
        for band in np.unique(band_of_sample):
            recalls[band, option] = recall_of_document[band_of_sample == band].mean()

    option_of_band = _options_for_recall(recalls, costs, target_recall)
    for option in np.unique(option_of_band[option_of_band > 0]).tolist():
        yield np.flatnonzero(option_of_band[band_of_document] == option), options[option]


def _options_for_recall(recalls: Float64Array, costs: Float64Array, target: float) -> Int64Array:
    """Choose an option for each band, (n_bands,), so that their mean recall reaches the target.

    The choice is greedy: every step takes the option with the largest gain in recall per cost.
    `recalls` are (n_bands, n_options), `costs` (n_options,); all bands begin with option 0.
    """
    bands = np.arange(len(recalls))
    option_of_band = np.zeros(len(recalls), dtype=np.int64)

    while recalls[bands, option_of_band].mean() < target:
        # Compare every option with the present one of its band; cheaper ones are no progress.
        gain = recalls - recalls[bands, option_of_band][:, None]
        extra_cost = costs - costs[option_of_band][:, None]
        gain_per_cost = np.zeros_like(gain)
        np.divide(gain, extra_cost, out=gain_per_cost, where=extra_cost > 0)

        band, option = np.unravel_index(gain_per_cost.argmax(), gain_per_cost.shape)
        if gain_per_cost[band, option] <= 0:
            break  # more lists help no band
        option_of_band[band] = option

    return option_of_band


def _principal_part(
    embeddings: FloatArray, rows: Int64Array | None
) -> tuple[FloatArray, FloatArray]:
    """Return the directions of largest variance, and the vectors projected on them."""
    rows = np.arange(len(embeddings)) if rows is None else rows
    n_documents, n_dimensions = len(rows), embeddings.shape[1]
    some = embeddings[rows[:: max(1, n_documents // MOST_TRAINING_ROWS)]]
    with one_blas_thread():
        variances, axes = np.linalg.eigh(np.cov(some, rowvar=False, dtype=np.float32))
        share = np.cumsum(variances[::-1]) / variances.sum()
        n_needed = int(np.searchsorted(share, MIN_VARIANCE)) + 1
        n_axes = min(n_dimensions, -(-n_needed // 8) * 8)  # whole vector registers
        # Dimensions are coded in pairs: an odd one is paired with zeros.
        main = np.zeros((n_dimensions, n_axes + n_axes % 2), dtype=np.float32)
        main[:, :n_axes] = axes[:, ::-1][:, :n_axes]
        reduced = np.empty((n_documents, main.shape[1]), dtype=np.float32)
        for part in parts_of(n_documents):
            np.matmul(embeddings[rows[part]], main, out=reduced[part])
    return main, reduced


def _train(reduced: FloatArray) -> Any:
    import faiss

    n_documents, n_dimensions = reduced.shape
    clusters: Any = faiss.Kmeans(
        n_dimensions,
        int(LISTS * np.sqrt(n_documents)),
        niter=4,
        spherical=True,
        seed=1234,
        min_points_per_centroid=1,
        max_points_per_centroid=24,
    )
    with _one_thread():
        clusters.train(reduced)
    quantizer = faiss.IndexFlatIP(n_dimensions)
    quantizer.add(clusters.centroids)
    return quantizer


def _nearest_lists(quantizer: Any, rows: FloatArray) -> Int64Array:
    """Return the number of the nearest list of each row."""
    nearest = np.empty(len(rows), dtype=np.int64)

    def search(part: slice) -> None:
        nearest[part] = quantizer.search(rows[part], 1)[1][:, 0]

    on_threads(search, list(parts_of(len(rows))))
    return nearest


def _fill_lists(reduced: FloatArray, lists: Int64Array, quantizer: Any) -> Any:
    """Build the index from known list numbers."""
    import faiss

    n_dimensions = reduced.shape[1]
    index = faiss.IndexIVFPQ(
        quantizer,
        n_dimensions,
        quantizer.ntotal,
        n_dimensions // 2,
        BITS,
        faiss.METRIC_INNER_PRODUCT,
    )
    index.by_residual = False
    lists = np.ascontiguousarray(lists, dtype=np.int64)
    with _one_thread():
        index.train(np.ascontiguousarray(reduced[:: max(1, len(reduced) // MOST_TRAINING_ROWS)]))
    index.add_core(len(reduced), faiss.swig_ptr(reduced), None, faiss.swig_ptr(lists))
    return faiss.IndexIVFPQFastScan(index)


def _refine(
    neighbors: Neighbors,
    fresh: BoolArray,
    corpus: SearchCorpus,
    sample: Int64Array,
    truth: Neighbors,
) -> float:
    """Compare neighbors of neighbors while the recall grows; return the recall.

    `fresh` (n_documents, k) marks edges whose ends have not been expanded so far.
    """
    from embedtopics.neighbors._expansion_kernels import expand_neighbors

    indices = neighbors[0]
    most = min(N_EXPANDED, indices.shape[1])
    recall = _recall((indices[sample], neighbors[1][sample]), truth)
    for _ in range(ROUNDS):
        if recall >= TARGET_RECALL:
            break
        before, recall_before = indices.copy(), recall
        offsets, followers, fresh_followers = _followers(before, fresh)
        for part in parts_of(len(indices)):
            rows = np.arange(part.start, part.stop)
            candidates = np.full((len(rows), 2 * most * (2 * most + 1)), NOBODY, dtype=np.int32)
            expand_neighbors(
                before, fresh, offsets, followers, fresh_followers, most, part.start, candidates
            )
            corpus.keep((indices[part], neighbors[1][part]), rows, candidates)
        _mark_fresh(fresh, indices, before)
        recall = _recall((indices[sample], neighbors[1][sample]), truth)
        if recall - recall_before < WORTH_A_ROUND:
            break
    return recall


def _mark_fresh(
    fresh: BoolArray, indices: Int32Array, before: Int32Array, *, is_added: bool = False
) -> None:
    """Mark new edges, in addition to the marked ones or instead of them."""
    for part in parts_of(len(indices)):
        is_new = (indices[part, :, None] != before[part, None, :]).all(axis=2)
        fresh[part] = fresh[part] | is_new if is_added else is_new


def _followers(
    indices: Int32Array, fresh: npt.NDArray[np.bool_]
) -> tuple[Int64Array, Int32Array, npt.NDArray[np.bool_]]:
    """Return the reverse graph: the rows that list each row, those with it nearest first."""
    from scipy.sparse import csr_matrix

    n_rows, target = len(indices), indices.T.ravel()
    is_there = target != NOBODY
    # Each edge is a row, nearest neighbors first; columns keep this order.
    begins = np.concatenate([[0], np.cumsum(is_there)])
    edges = csr_matrix(
        (fresh.T.ravel()[is_there], target[is_there], begins), shape=(len(target), n_rows)
    ).tocsc()
    return edges.indptr.astype(np.int64), (edges.indices % n_rows).astype(np.int32), edges.data


def _recall(neighbors: Neighbors, truth: Neighbors) -> float:
    """Return the share of neighbors that are as near as the true ones."""
    return float(_is_recalled(neighbors, truth).mean())


def _is_recalled(neighbors: Neighbors, truth: Neighbors) -> BoolArray:
    """Return whether each neighbor is as near as the true k-th one, (n_queries, k)."""
    similarities = neighbors[1]
    true_similarities = truth[1]
    return np.asarray(similarities >= true_similarities[:, -1:])


def _fill_missing(neighbors: Neighbors, corpus: SearchCorpus) -> None:
    """Search exactly for rows with short lists."""
    indices, similarities = neighbors
    rows = np.flatnonzero((indices == NOBODY).any(axis=1))
    if len(rows):
        indices[rows], similarities[rows] = exact_neighbors(
            corpus.embeddings[corpus.rows[rows]],
            corpus.embeddings,
            indices.shape[1],
            exclude=rows,
            row_ids=corpus.row_ids,
            rows=corpus.rows,
        )


def parts_of(n: int, size: int = ROWS_AT_ONCE) -> Iterator[slice]:
    """Yield slices of `size` rows, and one of the rest."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def on_threads(work: Callable[[slice], None], parts: list[slice]) -> None:
    """Work on all parts in threads with one FAISS thread and one Numba thread each.

    The order of summation in FAISS's own threads depends on their number.
    """
    import faiss
    import numba

    def work_alone(part: slice) -> None:
        numba.set_num_threads(1)  # of this thread
        with _one_thread():
            work(part)

    with ThreadPoolExecutor(min(len(parts), faiss.omp_get_max_threads())) as threads:
        for _ in threads.map(work_alone, parts):
            pass


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit FAISS to one thread in calls from this thread."""
    import faiss

    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)
