"""The loops of the neighbour search, compiled by Numba and kept in its cache."""

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from embedtopics._utils.compiling import compiled
from embedtopics.protocols import BoolArray, FloatArray, Int32Array, Int64Array

Int8Array = npt.NDArray[np.int8]

NOBODY = -1  # As in `comparing`; a constant of this file, for Numba notices no other's change.

ROWS_AT_ONCE = 512
"""Rows that share one array of marks."""


def _given(dtype: Any, n_axes: int) -> Any:
    """Return the type of a contiguous array that may be read-only."""
    return numba.types.Array(dtype, n_axes, "C", readonly=True)


@numba.njit(inline="always")
def _most(
    short_query: Int8Array, query_scale: FloatArray, short: Int8Array, scale: FloatArray
) -> np.float32:
    """Return what the similarity of two vectors is at most, as their short forms tell."""
    product = np.int32(0)
    for c in range(len(short)):
        product = np.int32(product + np.int32(np.int16(short_query[c]) * np.int16(short[c])))
    most: np.float32 = np.float32(product) * query_scale[0] * scale[0] + query_scale[1] + scale[1]
    return most


@numba.njit(inline="always")
def _is_listed(listed: Int32Array, j: int) -> bool:
    """Return whether a row is in a list; all places are compared, for that takes no branches."""
    found = False
    for place in range(len(listed)):
        found |= listed[place] == j
    return found


@compiled(
    numba.void(
        _given(numba.float32, 2), _given(numba.float32, 2), _given(numba.int64, 1),
        _given(numba.int64, 1), _given(numba.int64, 1), _given(numba.int32, 2),
        _given(numba.int8, 2), _given(numba.float32, 2),
        _given(numba.int8, 2), _given(numba.float32, 2),
        numba.int32[:, ::1], numba.float32[:, ::1],
    ),
    parallel=True, nogil=True, fastmath={"reassoc", "contract"},
)  # fmt: skip
def keep_nearest(
    queries: FloatArray,
    embeddings: FloatArray,
    at: Int64Array,
    itself: Int64Array,
    names: Int64Array,
    candidates: Int32Array,
    short_queries: Int8Array,
    queries_scale: FloatArray,
    short: Int8Array,
    scale: FloatArray,
    indices: Int32Array,
    similarities: FloatArray,
) -> None:
    """Put each query's candidates into its list of neighbours where they are near enough.

    All similarities of the package come from this one loop, so that equal vectors have equal
    similarities. Lists are descending, ties in the order of `names`. The vector of candidate j is
    the row at[j]; one that is in the list already stays there once.
    """
    n_dimensions = embeddings.shape[1]
    n_short = short.shape[1]
    k = indices.shape[1]
    for i in numba.prange(len(queries)):
        for j in candidates[i]:
            if j == NOBODY or j == itself[i]:
                continue
            if (
                n_short
                and _most(short_queries[i], queries_scale[i], short[j], scale[j])
                < (similarities[i, k - 1])
            ):
                continue
            similarity = np.float32(0.0)
            row = at[j]
            for c in range(n_dimensions):
                similarity += queries[i, c] * embeddings[row, c]
            if similarity < similarities[i, k - 1] or _is_listed(indices[i], j):
                continue
            place = k
            while place > 0:
                before = indices[i, place - 1]
                if before != NOBODY and (
                    similarities[i, place - 1] > similarity
                    or (similarities[i, place - 1] == similarity and names[before] < names[j])
                ):
                    break
                if place < k:
                    indices[i, place] = before
                    similarities[i, place] = similarities[i, place - 1]
                place -= 1
            if place < k:
                indices[i, place] = j
                similarities[i, place] = similarity


@compiled(
    numba.void(
        numba.int32[:, ::1], numba.boolean[:, ::1], numba.int64[::1], numba.int32[::1],
        numba.boolean[::1], numba.int64, numba.int64, numba.int32[:, ::1],
    ),
    parallel=True, nogil=True,
)  # fmt: skip
def friends_of_friends(
    indices: Int32Array,
    fresh: BoolArray,
    offsets: Int64Array,
    followers: Int32Array,
    fresh_followers: BoolArray,
    most: int,
    first_row: int,
    candidates: Int32Array,
) -> None:
    """Write, for each row, the neighbours of its neighbours that are not its own.

    Neighbours are the first `most` in a row's list, and the first `most` rows in whose lists it is
    (its `followers`). A way over two edges that were both there before is not gone again.
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
