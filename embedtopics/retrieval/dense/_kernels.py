"""Kernels of dense search, compiled by Numba and cached.

Every similarity that dense search returns is summed here, and not by FAISS, whose sums depend on
the number of queries. One loop serves exact search and the candidates of FAISS: on one machine, two
vectors have the same similarity to the last bit in every search.
"""

from typing import Any

import numba
import numpy as np

from embedtopics._utils.compiling import compiled
from embedtopics.protocols import FloatArray, Int64Array

NO_ROW = -1

AT_ONCE = 128
"""Products whose maximum is computed first, with vector instructions."""


def _read_only(dtype: Any, n_axes: int) -> Any:
    """Return the type of a contiguous array, which may be read-only."""
    return numba.types.Array(dtype, n_axes, "C", readonly=True)


@numba.njit(fastmath={"reassoc", "contract"})
def _dot(a: FloatArray, b: FloatArray) -> np.float32:
    total = np.float32(0.0)
    for c in range(len(a)):
        total += a[c] * b[c]
    return total


@numba.njit(inline="always")
def _before(one: np.float32, row: int, other: np.float32, other_row: int) -> bool:
    """Return whether one row precedes another: nearer, or as near with a lower number."""
    return bool(one > other or (one == other and row < other_row))


@numba.njit()
def _sift_down(similarities: FloatArray, rows: Int64Array, place: int, n: int) -> None:
    """Restore the heap, whose root is the last row in order, from one entry downwards."""
    similarity, row = similarities[place], rows[place]
    while True:
        child = 2 * place + 1
        if child >= n:
            break
        if child + 1 < n and _before(
            similarities[child], rows[child], similarities[child + 1], rows[child + 1]
        ):
            child += 1
        if not _before(similarity, row, similarities[child], rows[child]):
            break
        similarities[place], rows[place] = similarities[child], rows[child]
        place = child
    similarities[place], rows[place] = similarity, row


@numba.njit()
def _replace_last(similarities: FloatArray, rows: Int64Array, s: np.float32, row: int) -> None:
    similarities[0], rows[0] = s, row
    _sift_down(similarities, rows, 0, len(rows))


@numba.njit()
def _sort(similarities: FloatArray, rows: Int64Array) -> None:
    """Sort the heap, nearest first."""
    for n in range(len(rows) - 1, 0, -1):
        similarities[0], similarities[n] = similarities[n], similarities[0]
        rows[0], rows[n] = rows[n], rows[0]
        _sift_down(similarities, rows, 0, n)


@numba.njit()
def _empty(similarities: FloatArray, rows: Int64Array) -> None:
    """Fill the heap with entries that every row precedes."""
    similarities[:] = -np.inf
    rows[:] = np.iinfo(np.int64).max


@numba.njit()
def _close(similarities: FloatArray, rows: Int64Array) -> None:
    """Sort the heap, and mark unused entries."""
    _sort(similarities, rows)
    for place in range(len(rows)):
        if rows[place] == np.iinfo(np.int64).max:
            rows[place] = NO_ROW


@compiled(
    numba.void(
        _read_only(numba.float32, 2), _read_only(numba.float32, 2), _read_only(numba.int64, 2),
        numba.float32[:, ::1], numba.int64[:, ::1],
    ),
    nogil=True,
)  # fmt: skip
def nearest_of_rows(
    queries: FloatArray,
    vectors: FloatArray,
    rows: Int64Array,
    similarities: FloatArray,
    nearest: Int64Array,
) -> None:
    """Write the nearest of `rows` to each query; -1 in a row list is skipped.

    `rows` has a line for each query, or one for all.
    """
    for i in range(len(queries)):
        query, best, best_rows = queries[i], similarities[i], nearest[i]
        _empty(best, best_rows)
        for row in rows[min(i, len(rows) - 1)]:
            if row == NO_ROW:
                continue
            similarity = _dot(query, vectors[row])
            if similarity > best[0] or (similarity == best[0] and row < best_rows[0]):
                _replace_last(best, best_rows, similarity, row)
        _close(best, best_rows)


@compiled(
    numba.void(_read_only(numba.float32, 2), _read_only(numba.float32, 2), numba.float32[:, ::1]),
    nogil=True,
)
def projected(queries: FloatArray, axes: FloatArray, out: FloatArray) -> None:
    """Write the inner products of queries and axes, each independent of the others."""
    for i in range(len(queries)):
        for a in range(len(axes)):
            out[i, a] = _dot(queries[i], axes[a])


@numba.njit(fastmath={"nnan", "reassoc"})
def _highest(values: FloatArray) -> np.float32:
    highest = np.float32(-np.inf)
    for value in values:
        highest = max(highest, value)
    return highest


@compiled(
    numba.void(
        _read_only(numba.float32, 2), _read_only(numba.int64, 1), numba.float32[:, ::1],
        numba.int64[:, ::1],
    ),
    nogil=True,
)  # fmt: skip
def keep_best(
    products: FloatArray, rows: Int64Array, similarities: FloatArray, nearest: Int64Array
) -> None:
    """Insert products above the root into the heaps of the queries, which begin with -inf."""
    for i in range(len(products)):
        line, best, best_rows = products[i], similarities[i], nearest[i]
        for start in range(0, len(rows), AT_ONCE):
            end = min(len(rows), start + AT_ONCE)
            if _highest(line[start:end]) <= best[0]:
                continue
            for j in range(start, end):
                if line[j] > best[0]:
                    _replace_last(best, best_rows, line[j], rows[j])
