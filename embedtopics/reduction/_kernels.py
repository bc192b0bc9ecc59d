"""The layout's inner loop, compiled and cached by Numba."""

from collections.abc import Callable
from functools import cache

import numba
import numpy as np

from embedtopics._utils.compiling import compiled
from embedtopics.protocols import FloatArray, Int32Array, Int64Array

SUB_STEPS = 4
"""Parts of an epoch; each edge pulls in one of them."""

PUSHES = 8
"""Negative samples of each document in a sub-step."""

ROWS_AT_ONCE = 256
"""Documents that one thread moves together."""

CYCLE = 8
"""Epochs after which the schedule repeats. Of edges that pull less often, some never pull and
others pull more often, so that the mean is right."""

TABLE_SHIFT = 14
"""Low bits of a float32 that the tables of forces ignore."""

LOW_BITS = np.uint64(0xFFFFFFFF)

_TYPES = numba.void(
    numba.float32[:, :, ::1], numba.float32[:, :, ::1], numba.int32[:, ::1], numba.int64[:, ::1],
    numba.int32[::1], numba.float32[::1], numba.float32[::1], numba.float32[::1],
    numba.int64, numba.int64, numba.int64, numba.uint64,
)  # fmt: skip


@numba.njit(inline="always")
def _scramble(value: np.uint64) -> np.uint64:
    """Mix the bits of a 32-bit integer (the finaliser of MurmurHash3).

    Numba widens unsigned 32-bit arithmetic to 64 bits, so the wrap-around is written out.
    """
    value = (value ^ (value >> np.uint64(16))) * np.uint64(0x85EBCA6B) & LOW_BITS
    value = (value ^ (value >> np.uint64(13))) * np.uint64(0xC2B2AE35) & LOW_BITS
    return value ^ (value >> np.uint64(16))


@numba.njit(inline="always")
def _clip(value: np.float32) -> np.float32:
    return min(max(value, np.float32(-4.0)), np.float32(4.0))


@numba.njit(inline="always")
def _look_up(table: FloatArray, squared: np.float32) -> np.float32:
    force: np.float32 = table[np.uint64(np.float32(squared).view(np.uint32) >> TABLE_SHIFT)]
    return force


@numba.njit(inline="always")
def _pull(
    move: FloatArray, frozen: FloatArray, start: int, n: int, counts: Int32Array, in_cycle: int,
    pulling: Int32Array, place: int, pulls_at: FloatArray, n_components: int,
) -> None:  # fmt: skip
    """Set `move` to the sums of the pulls on `n` documents from `start` on."""
    for row in range(n):
        i = start + row
        for c in range(n_components):
            move[c, row] = np.float32(0.0)
        end = place + counts[in_cycle, i]
        for edge in range(place, end):
            j = pulling[edge]
            squared = np.float32(0.0)
            for c in range(n_components):
                away = frozen[i, c] - frozen[j, c]
                squared += away * away
            pull = _look_up(pulls_at, squared)
            for c in range(n_components):
                move[c, row] += _clip(pull * (frozen[i, c] - frozen[j, c]))
        place = end


@numba.njit(inline="always")
def _push(
    move: FloatArray, push: FloatArray, by_axis: FloatArray, here: int, start: int, n: int,
    other: np.int64, strong: FloatArray, pushes_at: FloatArray, n_components: int,
) -> None:  # fmt: skip
    """Push `n` documents from `start` on away from `n` others from `other` on, pairwise."""
    for row in range(n):
        push[row] = np.float32(0.0)
    for c in range(n_components):
        positions = by_axis[here, c, start : start + n]
        others = by_axis[here, c, other : other + n]
        for row in range(n):
            away = positions[row] - others[row]
            push[row] += away * away
    for row in range(n):
        push[row] = _look_up(pushes_at, push[row])
    for c in range(n_components):
        positions = by_axis[here, c, start : start + n]
        others = by_axis[here, c, other : other + n]
        total = move[c]
        for row in range(n):
            total[row] += strong[row] * _clip(push[row] * (positions[row] - others[row]))


@cache
def move_chunks(n_components: int, is_parallel: bool) -> Callable[..., None]:
    """Return the loop that runs some sub-steps; the compiler unrolls the number of components.

    A sub-step reads one of the halves and writes the other, so threads meet once per sub-step. The
    halves by axis have the first documents again at the end. The pushes assume that adjacent
    documents are unrelated. The parallel loop takes longer to compile; few documents do without.
    """

    def move_chunks(
        halves: FloatArray, by_axis: FloatArray, counts: Int32Array, starts: Int64Array,
        pulling: Int32Array, strengths: FloatArray, pulls_at: FloatArray, pushes_at: FloatArray,
        first_step: int, end_step: int, n_epochs: int, seed: np.uint64,
    ) -> None:  # fmt: skip
        n_documents = halves.shape[1]
        for step in range(first_step, end_step):
            here, there, in_cycle = step % 2, 1 - step % 2, step % (CYCLE * SUB_STEPS)
            frozen = halves[here]
            left = np.float32(1.0) - np.float32(step // SUB_STEPS) / np.float32(n_epochs)
            rate = left * left
            salt = _scramble(np.uint64(step) ^ _scramble(seed))
            for chunk in numba.prange(starts.shape[1]):
                start = chunk * ROWS_AT_ONCE
                n = min(ROWS_AT_ONCE, n_documents - start)
                move = np.empty((n_components, ROWS_AT_ONCE), dtype=np.float32)
                push = np.empty(ROWS_AT_ONCE, dtype=np.float32)
                place = starts[in_cycle, chunk]
                _pull(
                    move, frozen, start, n, counts, in_cycle, pulling, place, pulls_at, n_components
                )
                strong = strengths[start : start + n]
                state = _scramble(np.uint64(chunk) ^ salt)
                for _ in range(PUSHES):
                    state = _scramble((state + np.uint64(0x9E3779B9)) & LOW_BITS)
                    other = np.int64((state * np.uint64(n_documents)) >> np.uint64(32))
                    _push(
                        move, push, by_axis, here, start, n, other, strong, pushes_at, n_components
                    )
                for row in range(n):
                    i = start + row
                    for c in range(n_components):
                        moved = frozen[i, c] + rate * move[c, row]
                        halves[there, i, c] = by_axis[there, c, i] = moved
                        for copy in range(n_documents + i, by_axis.shape[2], n_documents):
                            by_axis[there, c, copy] = moved

    # The cache tells loops apart by their names and constants, not by options.
    move_chunks.__qualname__ += "_parallel" if is_parallel else "_serial"
    return compiled(_TYPES, parallel=is_parallel, fastmath=True, nogil=True)(move_chunks)
