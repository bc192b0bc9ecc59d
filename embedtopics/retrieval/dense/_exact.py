"""Exact search: comparison of queries with every allowed vector."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import FloatArray, Int64Array


class Nearest(NamedTuple):
    """The nearest passages of queries, each (n_queries, k); -1 if there are no more."""

    similarities: FloatArray
    segments: Int64Array
    rows: Int64Array


def merge_nearest(parts: Sequence[tuple[FloatArray, Int64Array]], k: int) -> Nearest:
    """Merge similarities and rows of segments into one list for each query."""
    n_queries = len(parts[0][0])
    near = np.concatenate([similarities for similarities, _ in parts], axis=1)
    row_ids = np.concatenate([rows for _, rows in parts], axis=1)
    segments = np.repeat(np.arange(len(parts)), [rows.shape[1] for _, rows in parts])
    segments = np.where(row_ids < 0, -1, segments[None, :])
    order = np.lexsort((row_ids, segments, -near, row_ids < 0), axis=1)[:, :k]
    merged: list[npt.NDArray[Any]] = [
        np.full((n_queries, k), -np.inf, dtype=np.float32),
        np.full((n_queries, k), -1, dtype=np.int64),
        np.full((n_queries, k), -1, dtype=np.int64),
    ]
    for whole, values in zip(merged, (near, segments, row_ids), strict=True):
        whole[:, : order.shape[1]] = np.take_along_axis(values, order, axis=1)
    return Nearest(*merged)


def faiss_module() -> Any:
    """Import FAISS, whose type hints are incomplete."""
    return import_module("faiss")


def parts_of(n: int, size: int) -> list[slice]:
    """Cut ``0 .. n - 1`` into parts of one size; the last may be shorter."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def work_on_parts(work: Callable[[slice], None], parts: list[slice]) -> None:
    """Work on each part with one thread, so that no sum depends on the number of threads."""
    n_threads = min(len(parts), faiss_module().omp_get_max_threads())

    def work_alone(part: slice) -> None:
        with one_thread():
            work(part)

    if n_threads < 2:
        for part in parts:
            work_alone(part)
        return
    with ThreadPoolExecutor(n_threads) as threads:
        for _ in threads.map(work_alone, parts):
            pass


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit FAISS to one thread for calls from this one."""
    faiss = faiss_module()
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


BATCH = 8
"""Minimum queries for matrix products, which are several times faster than FAISS below some hundred
queries. For fewer queries, the loop of `_kernels` is as fast as that of FAISS."""

QUERIES_AT_ONCE = 256
"""Queries of one matrix product."""

ROWS_AT_ONCE = 8192
"""Vectors of one matrix product."""

SPARE = 16
"""Rows beyond k whose similarities are computed again by `_kernels`."""

UNIT = 1.01
"""Upper bound of the norm of a rounded unit vector."""


def nearest_among(
    queries: FloatArray, vectors: npt.NDArray[Any], rows: Int64Array, k: int
) -> tuple[FloatArray, Int64Array]:
    """Find the nearest among some rows; a similarity depends only on its two vectors.

    `queries` (n_queries, d), `vectors` (n, d), `rows` (1 or n_queries, n_rows) -> (n_queries, k).
    """
    from embedtopics.retrieval.dense import _kernels

    similarities = np.empty((len(queries), k), dtype=np.float32)
    nearest = np.empty((len(queries), k), dtype=np.int64)
    if k:
        rows = np.ascontiguousarray(rows)
        _kernels.nearest_of_rows(queries, vectors, rows, similarities, nearest)
    return similarities, nearest


def nearest_exactly(
    queries: FloatArray, vectors: npt.NDArray[Any], rows: Int64Array, k: int
) -> tuple[FloatArray, Int64Array]:
    """Find the nearest of all allowed rows (n_rows,), as `nearest_among` to the last bit."""
    if len(queries) == 1:
        return nearest_among(queries, vectors, rows[None], k)
    similarities = np.empty((len(queries), k), dtype=np.float32)
    nearest = np.empty((len(queries), k), dtype=np.int64)
    if len(queries) >= BATCH:
        for part in parts_of(len(queries), QUERIES_AT_ONCE):
            similarities[part], nearest[part] = _by_products(queries[part], vectors, rows, k)
        return similarities, nearest

    def work(part: slice) -> None:
        similarities[part], nearest[part] = nearest_among(queries[part], vectors, rows[None], k)

    work_on_parts(work, parts_of(len(queries), 1))
    return similarities, nearest


def _by_products(
    queries: FloatArray, vectors: FloatArray, rows: Int64Array, k: int
) -> tuple[FloatArray, Int64Array]:
    """Multiply matrices, compute the best again, and compare all rows where these may not suffice.

    The error of a sum of d products in float32 is at most d * 2**-24 of the norms (Higham 2002,
    equation 3.5), the difference of two sums twice that. An omitted row cannot be among the nearest
    if the last candidate is further below the k-th similarity.
    """
    from embedtopics.retrieval.dense._kernels import keep_best

    n_kept = min(len(rows), k + SPARE)
    rough = np.full((len(queries), n_kept), -np.inf, dtype=np.float32)
    candidates = np.full((len(queries), n_kept), -1, dtype=np.int64)
    for part in parts_of(len(rows), ROWS_AT_ONCE):
        block = rows[part]
        values = vectors[block[0] : block[-1] + 1]
        if len(values) != len(block):
            values = vectors[block]
        keep_best(queries @ values.T, block, rough, candidates)
    similarities, nearest = nearest_among(queries, vectors, candidates, k)
    below = rough[:, 0] if n_kept < len(rows) else np.full(len(queries), -np.inf)
    norms = np.linalg.norm(queries.astype(np.float64), axis=1)
    error = 2.0 * queries.shape[1] * 2.0**-24 * UNIT * norms
    unsure = np.flatnonzero(below + error >= similarities[:, -1])

    def work(part: slice) -> None:
        asking = unsure[part]
        similarities[asking], nearest[asking] = nearest_among(
            queries[asking], vectors, rows[None], k
        )

    work_on_parts(work, parts_of(len(unsure), 1))
    return similarities, nearest
