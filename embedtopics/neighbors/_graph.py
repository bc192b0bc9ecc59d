"""The k-nearest-neighbor graph, independent of the number of threads.

FAISS finds candidates. Their similarities are computed again in a fixed order, because the last
bits of FAISS's inner products change with the number of threads. The document number breaks ties,
and the content determines the numbers: the graph is a function of the embeddings alone.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.neighbors._approximate import exact_neighbors, no_neighbors, refined_neighbors
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import FloatArray, Int32Array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


ROWS_AT_ONCE = 4096
"""Vectors that are scaled at a time."""

EXACT_LIMIT = 20_000
"""Documents up to which all pairs are compared; measured on two cores, the search takes about
as long there as the approximate one, and the answer is exact."""


def unit_rows(
    embeddings: npt.ArrayLike,
    *,
    what: str = "embeddings",
    rows: npt.NDArray[np.int64] | None = None,
    row_numbers: npt.NDArray[np.int64] | None = None,
    keep_zeros: bool = False,
) -> FloatArray:
    """Return vectors scaled to length one, as contiguous float32 (n_documents, n_dimensions).

    `rows` selects rows. Errors name the vectors by `what`, and rows by `row_numbers`. Rows of zeros
    raise an error unless `keep_zeros`; their similarity to everything is 0.
    """
    if np.ma.is_masked(embeddings):
        raise InputError(f"{what} must have a value everywhere; got a masked array")
    array = np.asarray(embeddings)
    if array.ndim != 2 or array.dtype.kind not in "fiu" or array.shape[1] == 0:
        raise InputError(
            f"{what} must be a 2-d array of numbers, one row per text; "
            f"got shape {array.shape} of {array.dtype}"
        )
    n_rows = len(array) if rows is None else len(rows)
    unit = np.empty((n_rows, array.shape[1]), dtype=np.float32)
    norms = np.empty(n_rows)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        # A memory map is read from beginning to end, and its pages are released.
        order = np.arange(n_rows) if rows is None else np.argsort(rows, kind="stable")
        for begin in range(0, n_rows, ROWS_AT_ONCE):
            part = order[begin : begin + ROWS_AT_ONCE]
            unit[part] = array[part if rows is None else rows[part]]
            _release(embeddings)
        for begin in range(0, n_rows, ROWS_AT_ONCE):
            scaled = slice(begin, begin + ROWS_AT_ONCE)
            _scale(unit[scaled], norms[scaled])
    numbers = rows if row_numbers is None else row_numbers
    # The squares of finite float32 numbers add up to a finite float64.
    finite = np.isfinite(norms)
    if not finite.all():
        row = _first(~finite, numbers)
        raise InputError(f"{what} must be finite; row {row} holds NaN or an infinite value")
    if keep_zeros:
        unit[norms == 0] = 0.0
    elif not norms.all():
        row = _first(norms == 0, numbers)
        raise InputError(f"{what} must not be zero vectors; row {row} is zero everywhere")
    return unit


def _release(array: npt.ArrayLike) -> None:
    """Release the pages of a memory map."""
    mapped: Any = getattr(array, "_mmap", None)
    if getattr(array, "mode", "") in ("r", "r+") and hasattr(mapped, "madvise"):
        mapped.madvise(mmap.MADV_DONTNEED)


def _scale(block: FloatArray, norms: npt.NDArray[np.float64]) -> None:
    """Scale rows to length one in place, and write their lengths."""
    # float64 sums: the squares of a float32 vector may overflow or vanish in float32.
    norms[:] = np.sqrt(np.einsum("ij,ij->i", block, block, dtype=np.float64))
    tiny = norms < 1e-30
    rest = block[tiny] / norms[tiny, None]
    block /= norms[:, None].astype(np.float32)
    block[tiny] = rest


def _first(bad: npt.NDArray[np.bool_], row_numbers: npt.NDArray[np.int64] | None) -> int:
    """Return the position of the caller's first bad row."""
    rows = np.flatnonzero(bad) if row_numbers is None else row_numbers[bad]
    return int(rows.min())


def build_graph(
    embeddings: FloatArray, k: int = 15, *, seed: int = 0, rows: npt.NDArray[np.int64] | None = None
) -> NeighborGraph:
    """Find the k nearest neighbors of every unit vector (n_documents, n_dimensions) by cosine.

    Up to 20,000 documents all pairs are compared. Above, a rough search is refined along its own
    graph until its recall on an exactly searched sample is high enough. FAISS rounds: if more than
    sixteen documents are within its rounding error of the k-th neighbor, an exact search may keep
    one and drop another that is equally near.
    """
    n_documents = len(embeddings) if rows is None else len(rows)
    k = max(0, min(k, n_documents - 1))
    if k == 0:
        return NeighborGraph(*no_neighbors(n_documents, 0))
    method, recall = "exact", 1.0
    if n_documents <= EXACT_LIMIT:
        embeddings = embeddings if rows is None else embeddings[rows]
        indices, similarities = exact_neighbors(
            embeddings, embeddings, k, exclude=np.arange(n_documents)
        )
    else:
        method = "ivf"
        indices, similarities, recall = refined_neighbors(embeddings, k, seed, rows)
    return NeighborGraph(indices, np.clip(similarities, -1.0, 1.0), method, recall)


def build_partial_graph(
    embeddings: FloatArray, k: int, has_vector: npt.NDArray[np.bool_], seed: int
) -> NeighborGraph:
    """Build a graph in which documents without a vector have neighbors of a similarity of 0."""
    rows, n_documents = np.flatnonzero(has_vector), len(has_vector)
    if len(rows) == n_documents:
        return build_graph(embeddings, k, seed=seed)
    graph = build_graph(embeddings, k, seed=seed, rows=rows)
    indices = np.tile(np.arange(k, dtype=np.int32), (n_documents, 1))
    # The first documents, without the document itself.
    indices += indices >= np.arange(n_documents, dtype=np.int32)[:, None]
    similarities = np.zeros((n_documents, k), dtype=np.float32)
    indices[rows] = rows[graph.indices]
    similarities[rows] = graph.similarities
    return NeighborGraph(indices, similarities, graph.method, graph.recall)


def nearest(queries: FloatArray, embeddings: FloatArray, k: int) -> tuple[Int32Array, FloatArray]:
    """Find the k nearest documents of each query exactly: indices, similarities (n_queries, k).

    Queries and documents are unit vectors (n, n_dimensions). The row of a query does not depend on
    the other queries.
    """
    indices, similarities = exact_neighbors(queries, embeddings, min(k, len(embeddings)))
    return indices, np.clip(similarities, -1.0, 1.0)


def build_sparse_graph(rows: csr_matrix, k: int = 15) -> NeighborGraph:
    """Find the k nearest neighbors of every sparse row of length one or zero by cosine, exactly.

    An inverted index compares rows along their columns, without dense rows. Ties are in the order
    of the documents. If fewer than k documents share a column with a row, others at a similarity
    of 0 fill its list in their order.
    """
    from scipy.sparse import csr_matrix

    n_documents = rows.shape[0]
    k = max(0, min(k, n_documents - 1))
    indices, similarities = no_neighbors(n_documents, k)
    if k == 0:
        return NeighborGraph(indices, similarities)
    from embedtopics.neighbors._sparse_kernels import nearest_of_sparse

    by_row = csr_matrix(rows, dtype=np.float32)
    if not by_row.has_canonical_format:
        by_row = by_row.copy()
        by_row.sum_duplicates()
    by_column = by_row.tocsc()
    nearest_of_sparse(
        by_row.indptr.astype(np.int64),
        by_row.indices.astype(np.int32),
        by_row.data,
        by_column.indptr.astype(np.int64),
        by_column.indices.astype(np.int32),
        by_column.data,
        indices,
        similarities,
    )
    return NeighborGraph(indices, np.clip(similarities, -1.0, 1.0), "exact", 1.0)
