"""The loops of the neighbor search, compiled and cached by Numba."""

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from embedtopics._utils.compiling import compiled
from embedtopics.protocols import FloatArray, Int32Array, Int64Array

Int8Array = npt.NDArray[np.int8]

NOBODY = -1  # as in `_approximate`: the cache of Numba notices only changes of this file


def _given(dtype: Any, n_axes: int) -> Any:
    """Return the type of a contiguous array that may be read-only."""
    return numba.types.Array(dtype, n_axes, "C", readonly=True)


@numba.njit(inline="always")
def _most(
    short_query: Int8Array, query_scale: FloatArray, short: Int8Array, scale: FloatArray
) -> np.float32:
    """Return an upper bound of the similarity of two vectors, from their codes."""
    product = np.int32(0)
    for c in range(len(short)):
        product = np.int32(product + np.int32(np.int16(short_query[c]) * np.int16(short[c])))
    most: np.float32 = np.float32(product) * query_scale[0] * scale[0] + query_scale[1] + scale[1]
    return most


@numba.njit(inline="always")
def _is_listed(listed: Int32Array, j: int) -> bool:
    """Return whether a row is in a list, without branches."""
    is_listed = False
    for place in range(len(listed)):
        is_listed |= listed[place] == j
    return is_listed


@compiled(
    numba.void(
        numba.int64, numba.int64,
        _given(numba.float32, 2), _given(numba.float32, 2), _given(numba.int64, 1),
        _given(numba.int64, 1), _given(numba.int64, 1), _given(numba.int32, 2),
        _given(numba.int8, 2), _given(numba.float32, 2),
        _given(numba.int8, 2), _given(numba.float32, 2),
        numba.int32[:, ::1], numba.float32[:, ::1],
    ),
    nogil=True, fastmath={"reassoc", "contract"},
)  # fmt: skip
def keep_nearest(
    first: int,
    end: int,
    queries: FloatArray,
    embeddings: FloatArray,
    rows: Int64Array,
    exclude: Int64Array,
    row_ids: Int64Array,
    candidates: Int32Array,
    short_queries: Int8Array,
    queries_scale: FloatArray,
    short: Int8Array,
    scale: FloatArray,
    indices: Int32Array,
    similarities: FloatArray,
) -> None:
    """Insert the candidates of some queries into their lists of neighbors if near enough.

    All similarities of the package come from this one loop: equal vectors have equal similarities.
    Lists are descending, ties in the order of `row_ids`. The vector of candidate j is the row
    rows[j]; a candidate in the list is not repeated.
    """
    n_dimensions = embeddings.shape[1]
    n_short = short.shape[1]
    k = indices.shape[1]
    for i in range(first, end):
        for j in candidates[i]:
            if j == NOBODY or j == exclude[i]:
                continue
            if (
                n_short
                and _most(short_queries[i], queries_scale[i], short[j], scale[j])
                < (similarities[i, k - 1])
            ):
                continue
            similarity = np.float32(0.0)
            row = rows[j]
            for c in range(n_dimensions):
                similarity += queries[i, c] * embeddings[row, c]
            if similarity < similarities[i, k - 1] or _is_listed(indices[i], j):
                continue
            place = k
            while place > 0:
                before = indices[i, place - 1]
                if before != NOBODY and (
                    similarities[i, place - 1] > similarity
                    or (similarities[i, place - 1] == similarity and row_ids[before] < row_ids[j])
                ):
                    break
                if place < k:
                    indices[i, place] = before
                    similarities[i, place] = similarities[i, place - 1]
                place -= 1
            if place < k:
                indices[i, place] = j
                similarities[i, place] = similarity
