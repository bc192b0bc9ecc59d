"""The loop that expands neighbors, which only large corpora compile."""

import numba
import numpy as np

from embedtopics._utils.compiling import compiled
from embedtopics.protocols import BoolArray, Int32Array, Int64Array

NOBODY = -1  # as in `_approximate`: the cache of Numba notices only changes of this file

ROWS_AT_ONCE = 512
"""Rows per array of marks."""


@compiled(
    numba.void(
        numba.int32[:, ::1], numba.boolean[:, ::1], numba.int64[::1], numba.int32[::1],
        numba.boolean[::1], numba.int64, numba.int64, numba.int32[:, ::1],
    ),
    parallel=True, nogil=True,
)  # fmt: skip
def expand_neighbors(
    indices: Int32Array,
    fresh: BoolArray,
    offsets: Int64Array,
    followers: Int32Array,
    fresh_followers: BoolArray,
    most: int,
    first_row: int,
    candidates: Int32Array,
) -> None:
    """Write the neighbors of each row's neighbors that are not its own.

    Neighbors are the first `most` of a row's list and of its `followers`, the rows that list it.
    Paths over two edges that are not fresh are skipped.
    """
    n_rows, n_wanted = len(indices), len(candidates)
    for chunk in numba.prange((n_wanted + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE):
        marks = np.full(n_rows, -1, dtype=np.int32)
        for row in range(chunk * ROWS_AT_ONCE, min(n_wanted, (chunk + 1) * ROWS_AT_ONCE)):
            i = first_row + row
            marks[i] = i
            for j in indices[i]:
                if j != NOBODY:
                    marks[j] = i
            n_found = 0
            n_followers = min(most, offsets[i + 1] - offsets[i])
            for a in range(most + n_followers):
                if a < most:
                    j, is_fresh = indices[i, a], fresh[i, a]
                else:
                    place = offsets[i] + a - most
                    j, is_fresh = followers[place], fresh_followers[place]
                if j == NOBODY:
                    continue
                if marks[j] != i:
                    marks[j] = i
                    candidates[row, n_found] = j
                    n_found += 1
                for b in range(most + min(most, offsets[j + 1] - offsets[j])):
                    if b < most:
                        other, other_fresh = indices[j, b], fresh[j, b]
                    else:
                        place = offsets[j] + b - most
                        other, other_fresh = followers[place], fresh_followers[place]
                    if other != NOBODY and (is_fresh or other_fresh) and marks[other] != i:
                        marks[other] = i
                        candidates[row, n_found] = other
                        n_found += 1
