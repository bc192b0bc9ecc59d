"""The loop of the neighbor search among sparse rows, compiled and cached by Numba."""

from typing import Any

import numba
import numpy as np

from embedtopics._utils.compiling import compiled
from embedtopics.protocols import FloatArray, Int32Array, Int64Array

ROWS_AT_ONCE = 128
"""Rows per array of sums."""


def _given(dtype: Any) -> Any:
    """Return the type of a contiguous vector that may be read-only."""
    return numba.types.Array(dtype, 1, "C", readonly=True)


@compiled(
    numba.void(
        _given(numba.int64), _given(numba.int32), _given(numba.float32),
        _given(numba.int64), _given(numba.int32), _given(numba.float32),
        numba.int32[:, ::1], numba.float32[:, ::1],
    ),
    parallel=True, nogil=True,
)  # fmt: skip
def nearest_of_sparse(
    offsets: Int64Array,
    columns: Int32Array,
    values: FloatArray,
    starts: Int64Array,
    holders: Int32Array,
    holder_values: FloatArray,
    indices: Int32Array,
    similarities: FloatArray,
) -> None:
    """Write the nearest rows of every row, (n_rows, k), by the products along its columns.

    The products of a pair are summed in the order of the columns for both rows: the similarity is
    the same in both lists, to the last bit.
    """
    n_rows, k = indices.shape
    for chunk in numba.prange((n_rows + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE):
        sums = np.zeros(n_rows, dtype=np.float32)
        for i in range(chunk * ROWS_AT_ONCE, min(n_rows, (chunk + 1) * ROWS_AT_ONCE)):
            for place in range(offsets[i], offsets[i + 1]):
                value = values[place]
                column = columns[place]
                for at in range(starts[column], starts[column + 1]):
                    sums[holders[at]] += value * holder_values[at]
            n_found = 0
            for j in range(n_rows):
                similarity = sums[j]
                sums[j] = np.float32(0.0)
                if j == i or (n_found == k and similarity <= similarities[i, k - 1]):
                    continue
                n_found = min(k, n_found + 1)
                place = n_found - 1
                while place > 0 and similarities[i, place - 1] < similarity:
                    indices[i, place] = indices[i, place - 1]
                    similarities[i, place] = similarities[i, place - 1]
                    place -= 1
                indices[i, place] = j
                similarities[i, place] = similarity
