"""Comparing queries with every vector, or with every one that is allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.retrieval.dense._threads import parts_of, work_on_parts

__all__ = ["nearest_among", "nearest_exactly"]

BATCH = 8
"""Queries from which matrices are multiplied, several times faster than FAISS does it for fewer
than some hundred queries; fewer are compared by our own loop, as fast as by FAISS's."""

QUERIES_AT_ONCE = 256
"""Queries that are multiplied at a time."""

ROWS_AT_ONCE = 8192
"""Vectors that are multiplied at a time, and gathered before if not all are allowed."""

SPARE = 16
"""Rows fetched beyond k, so that the k-th place is settled by similarities of our own."""

UNIT = 1.01
"""More than the norm of a unit vector that was rounded."""


def nearest_among(
    queries: FloatArray, vectors: npt.NDArray[Any], rows: Int64Array, k: int
) -> tuple[FloatArray, Int64Array]:
    """Find the nearest among some rows, by similarities that depend on nothing else.

    Parameters
    ----------
    queries : float32 ndarray of shape (n_queries, d)
    vectors : ndarray of shape (n, d)
        float32, or the bits of float16 as uint16.
    rows : int64 ndarray of shape (1 or n_queries, n_rows)
        Those of all queries, or of each; -1 is nobody.
    k : int

    Returns
    -------
    similarities : float32 ndarray of shape (n_queries, k)
        Descending; -inf where there is none.
    found : int64 ndarray of shape (n_queries, k)
        Ties ascending; -1 where there is none.
    """
    from embedtopics.retrieval.dense import _kernels

    similarities = np.empty((len(queries), k), dtype=np.float32)
    found = np.empty((len(queries), k), dtype=np.int64)
    half = vectors.dtype == np.uint16
    compare = _kernels.nearest_of_rows_half if half else _kernels.nearest_of_rows
    if k:
        compare(queries, vectors, np.ascontiguousarray(rows), similarities, found)
    return similarities, found


def nearest_exactly(
    queries: FloatArray, vectors: npt.NDArray[Any], rows: Int64Array, k: int
) -> tuple[FloatArray, Int64Array]:
    """Find the nearest of all allowed vectors to each query.

    The answer is that of `nearest_among`, to the last bit.

    Parameters
    ----------
    queries : float32 ndarray of shape (n_queries, d)
    vectors : ndarray of shape (n, d)
        float32, or the bits of float16 as uint16.
    rows : int64 ndarray of shape (n_rows,)
        Ascending.
    k : int
        At most the number of rows.

    Returns
    -------
    similarities : float32 ndarray of shape (n_queries, k)
    found : int64 ndarray of shape (n_queries, k)
    """
    if len(queries) == 1:
        return nearest_among(queries, vectors, rows[None], k)
    similarities = np.empty((len(queries), k), dtype=np.float32)
    found = np.empty((len(queries), k), dtype=np.int64)
    if vectors.dtype == np.float32 and len(queries) >= BATCH:
        for part in parts_of(len(queries), QUERIES_AT_ONCE):
            similarities[part], found[part] = _by_products(queries[part], vectors, rows, k)
        return similarities, found

    def work(part: slice) -> None:
        similarities[part], found[part] = nearest_among(queries[part], vectors, rows[None], k)

    work_on_parts(work, parts_of(len(queries), 1))
    return similarities, found


def _by_products(
    queries: FloatArray, vectors: FloatArray, rows: Int64Array, k: int
) -> tuple[FloatArray, Int64Array]:
    """Multiply matrices, look at the best again, and start anew where that might not suffice.

    A sum of d products in float32 is off by d * 2**-24 of the norms at most, in whatever order it
    is taken (Higham 2002, equation 3.5). The sums of BLAS and ours then differ by twice that: a
    row that was left out cannot be among the nearest if the last that was kept is further below
    our k-th.
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
    similarities, found = nearest_among(queries, vectors, candidates, k)
    below = rough[:, 0] if n_kept < len(rows) else np.full(len(queries), -np.inf)
    norms = np.linalg.norm(queries.astype(np.float64), axis=1)
    error = 2.0 * queries.shape[1] * 2.0**-24 * UNIT * norms
    unsure = np.flatnonzero(below + error >= similarities[:, -1])

    def work(part: slice) -> None:
        asking = unsure[part]
        similarities[asking], found[asking] = nearest_among(queries[asking], vectors, rows[None], k)

    work_on_parts(work, parts_of(len(unsure), 1))
    return similarities, found
