"""The loops of the dense search, compiled by Numba and kept in its cache.

Every similarity that leaves the dense search is summed here, and not by FAISS, whose sums depend
on how many queries come together. One loop serves the exact search and the second look of all
others: on one machine, two vectors have the same similarity to the last bit whatever asks for it.
"""

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from embedtopics._utils.compiling import compiled
from embedtopics.protocols import FloatArray, Int64Array

UInt16Array = npt.NDArray[np.uint16]

NOBODY = -1

AT_ONCE = 128
"""Products whose highest is looked at first, which the processor does for several at once."""


def _given(dtype: Any, n_axes: int) -> Any:
    """Return the type of a contiguous array that may be read-only."""
    return numba.types.Array(dtype, n_axes, "C", readonly=True)


@numba.njit(fastmath={"reassoc", "contract"})
def _dot(a: FloatArray, b: FloatArray) -> np.float32:
    total = np.float32(0.0)
    for c in range(len(a)):
        total += a[c] * b[c]
    return total


@numba.njit(inline="always")
def _before(one: np.float32, row: int, other: np.float32, other_row: int) -> bool:
    """Return whether one row comes before another: nearer, or as near and of a lower number."""
    return bool(one > other or (one == other and row < other_row))


@numba.njit()
def _sift_down(similarities: FloatArray, rows: Int64Array, place: int, n: int) -> None:
    """Move the entry at a place of the heap, whose root comes last of all, to where it belongs."""
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
    """Turn the heap into a list, nearest first."""
    for n in range(len(rows) - 1, 0, -1):
        similarities[0], similarities[n] = similarities[n], similarities[0]
        rows[0], rows[n] = rows[n], rows[0]
        _sift_down(similarities, rows, 0, n)


@numba.njit()
def _empty(similarities: FloatArray, rows: Int64Array) -> None:
    """Begin with nobody; any row comes before that, for it has the highest number."""
    similarities[:] = -np.inf
    rows[:] = np.iinfo(np.int64).max


@numba.njit()
def _close(similarities: FloatArray, rows: Int64Array) -> None:
    """Sort, and mark the places that stayed empty."""
    _sort(similarities, rows)
    for place in range(len(rows)):
        if rows[place] == np.iinfo(np.int64).max:
            rows[place] = NOBODY


@compiled(
    numba.void(
        _given(numba.float32, 2), _given(numba.float32, 2), _given(numba.int64, 2),
        numba.float32[:, ::1], numba.int64[:, ::1],
    ),
    nogil=True,
)  # fmt: skip
def nearest_of_rows(
    queries: FloatArray,
    vectors: FloatArray,
    rows: Int64Array,
    similarities: FloatArray,
    found: Int64Array,
) -> None:
    """Write the nearest of `rows` (a line a query, or one for all; -1 is nobody) to each query."""
    for i in range(len(queries)):
        query, best, names = queries[i], similarities[i], found[i]
        _empty(best, names)
        for row in rows[min(i, len(rows) - 1)]:
            if row == NOBODY:
                continue
            similarity = _dot(query, vectors[row])
            if similarity > best[0] or (similarity == best[0] and row < names[0]):
                _replace_last(best, names, similarity, row)
        _close(best, names)


@compiled(
    numba.void(
        _given(numba.float32, 2), _given(numba.uint16, 2), _given(numba.int64, 2),
        numba.float32[:, ::1], numba.int64[:, ::1],
    ),
    nogil=True,
)  # fmt: skip
def nearest_of_rows_half(
    queries: FloatArray,
    vectors: UInt16Array,
    rows: Int64Array,
    similarities: FloatArray,
    found: Int64Array,
) -> None:
    """Do as `nearest_of_rows` for vectors in float16, given by their bits.

    Moved to where a float32 has them, they are the number times 2**-112 (IEEE 754-2019, 3.4).
    """
    bits = np.empty(vectors.shape[1], dtype=np.uint32)
    values = bits.view(np.float32)
    for i in range(len(queries)):
        query, best, names = queries[i], similarities[i], found[i]
        _empty(best, names)
        for row in rows[min(i, len(rows) - 1)]:
            if row == NOBODY:
                continue
            half = vectors[row]
            for c in range(len(half)):
                h = np.uint32(half[c])
                bits[c] = ((h & np.uint32(0x7FFF)) << np.uint32(13)) | (
                    (h & np.uint32(0x8000)) << np.uint32(16)
                )
            for c in range(len(half)):
                values[c] *= np.float32(2.0**112)
            similarity = _dot(query, values)
            if similarity > best[0] or (similarity == best[0] and row < names[0]):
                _replace_last(best, names, similarity, row)
        _close(best, names)


@compiled(
    numba.void(_given(numba.float32, 2), _given(numba.float32, 2), numba.float32[:, ::1]),
    nogil=True,
)
def projected(queries: FloatArray, axes: FloatArray, out: FloatArray) -> None:
    """Write the inner products of queries and axes, each the same whatever else is asked for."""
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
        _given(numba.float32, 2), _given(numba.int64, 1), numba.float32[:, ::1],
        numba.int64[:, ::1],
    ),
    nogil=True,
)  # fmt: skip
def keep_best(
    products: FloatArray, rows: Int64Array, similarities: FloatArray, found: Int64Array
) -> None:
    """Let the products of queries and rows above the root into the heaps, which begin with -inf."""
    for i in range(len(products)):
        line, best, names = products[i], similarities[i], found[i]
        for start in range(0, len(rows), AT_ONCE):
            end = min(len(rows), start + AT_ONCE)
            if _highest(line[start:end]) <= best[0]:
                continue
            for j in range(start, end):
                if line[j] > best[0]:
                    _replace_last(best, names, line[j], rows[j])
