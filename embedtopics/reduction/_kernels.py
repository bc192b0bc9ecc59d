"""The layout's inner loop, compiled and cached by Numba."""

from typing import Any

import numba
import numpy as np

from embedtopics._utils.compiling import compiled
from embedtopics.protocols import FloatArray, Int32Array, Int64Array

_types: Any = numba.types

SUB_STEPS = 4
"""Parts of an epoch; each edge pulls in one of them."""

PUSHES = 8
"""Negative samples of each document in a sub-step."""

ROWS_AT_ONCE = 256
"""Documents that one thread moves together."""

CYCLE = 8
"""Epochs after which the schedule repeats. Of edges that pull less often, some never pull and
others pull more often, so that the mean is right."""

BEAT_BITS = 24
"""Fractional bits in the rates and phases of edges."""

TABLE_SHIFT = 14
"""Low bits of a float32 that the tables of forces ignore."""

LOW_BITS = np.uint64(0xFFFFFFFF)


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
def _add_pulls(
    move: FloatArray, row: int, away: FloatArray, frozen: FloatArray, i: int,
    pulling: Int32Array, first: int, n_pulling: int, pulls_at: FloatArray, n_components: int,
) -> None:  # fmt: skip
    """Add the pulls of `n_pulling` documents, from `pulling[first]` on, to a row of `move`."""
    for place in range(first, first + n_pulling):
        j = pulling[place]
        squared = np.float32(0.0)
        for c in range(n_components):
            away[c] = frozen[i, c] - frozen[j, c]
            squared += away[c] * away[c]
        pull = _look_up(pulls_at, squared)
        for c in range(n_components):
            move[c, row] += _clip(pull * away[c])


@numba.njit(inline="always")
def _times(epoch: int, rate: np.int32, phase: np.int32) -> np.int64:
    """Return the number of pulls of an edge in an epoch of the cycle: 0, 1 or 2."""
    beat = epoch * np.int64(rate) + phase
    times: np.int64 = ((beat + np.int64(rate)) >> BEAT_BITS) - (beat >> BEAT_BITS)
    return times


@numba.njit(inline="always")
def _count_pulls(
    counts: Int32Array, i: int, offsets: Int64Array, rates: Int32Array, phases: Int32Array
) -> None:
    for sub_step in range(SUB_STEPS):
        at = i * SUB_STEPS + sub_step
        for edge in range(offsets[at], offsets[at + 1]):
            for epoch in range(CYCLE):
                counts[epoch * SUB_STEPS + sub_step] += _times(epoch, rates[edge], phases[edge])


@numba.njit(inline="always")
def _write_pulls(
    pulling: Int32Array, places: Int64Array, i: int, offsets: Int64Array,
    neighbors: Int32Array, rates: Int32Array, phases: Int32Array,
) -> None:  # fmt: skip
    """Write the pulling documents of a document in each sub-step, and advance the places."""
    for sub_step in range(SUB_STEPS):
        at = i * SUB_STEPS + sub_step
        for edge in range(offsets[at], offsets[at + 1]):
            for epoch in range(CYCLE):
                step = epoch * SUB_STEPS + sub_step
                for _ in range(_times(epoch, rates[edge], phases[edge])):
                    pulling[places[step]] = neighbors[edge]
                    places[step] += 1


@compiled(
    _types.Tuple((numba.int32[:, ::1], numba.int64[:, ::1], numba.int32[::1]))(
        numba.int64[::1], numba.int32[::1], numba.int32[::1], numba.int32[::1]
    )
)  # fmt: skip
def schedule(
    offsets: Int64Array, neighbors: Int32Array, rates: Int32Array, phases: Int32Array
) -> tuple[Int32Array, Int64Array, Int32Array]:
    """List the pulls of each sub-step in a cycle of epochs.

    Shapes: edges (n_edges,) -> `counts` (CYCLE * SUB_STEPS, n_documents), `starts` (CYCLE *
    SUB_STEPS, n_chunks), `pulling` (n_pulls,).
    """
    n_documents = (len(offsets) - 1) // SUB_STEPS
    n_chunks = (n_documents + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE
    counts = np.zeros((CYCLE * SUB_STEPS, n_documents), dtype=np.int32)
    starts = np.empty((CYCLE * SUB_STEPS, n_chunks), dtype=np.int64)
    for chunk in range(n_chunks):
        first = chunk * ROWS_AT_ONCE
        end = min(n_documents, first + ROWS_AT_ONCE)
        for i in range(first, end):
            _count_pulls(counts[:, i], i, offsets, rates, phases)
        for step in range(CYCLE * SUB_STEPS):
            starts[step, chunk] = 0
            for i in range(first, end):
                starts[step, chunk] += counts[step, i]
    total = 0
    for step in range(CYCLE * SUB_STEPS):
        for chunk in range(n_chunks):
            n_here = starts[step, chunk]
            starts[step, chunk] = total
            total += n_here
    pulling = np.empty(total, dtype=np.int32)
    places = np.empty(CYCLE * SUB_STEPS, dtype=np.int64)
    for chunk in range(n_chunks):
        for step in range(CYCLE * SUB_STEPS):
            places[step] = starts[step, chunk]
        for i in range(chunk * ROWS_AT_ONCE, min(n_documents, (chunk + 1) * ROWS_AT_ONCE)):
            _write_pulls(pulling, places, i, offsets, neighbors, rates, phases)
    return counts, starts, pulling


@numba.njit(inline="always")
def _add_all_pulls(
    move: FloatArray, away: FloatArray, frozen: FloatArray, start: int, n: int,
    counts: Int32Array, pulling: Int32Array, place: int, pulls_at: FloatArray,
) -> None:  # fmt: skip
    """Add the pulls on `n` documents from `start` on."""
    n_components = frozen.shape[1]
    for row in range(n):
        i = start + row
        n_pulling = counts[i]
        # Three times the same: the compiler unrolls loops over a constant.
        if n_components == 5:
            _add_pulls(move, row, away, frozen, i, pulling, place, n_pulling, pulls_at, 5)
        elif n_components == 2:
            _add_pulls(move, row, away, frozen, i, pulling, place, n_pulling, pulls_at, 2)
        else:
            _add_pulls(
                move, row, away, frozen, i, pulling, place, n_pulling, pulls_at, n_components
            )
        place += n_pulling


@numba.njit(inline="always")
def _add_pushes(
    move: FloatArray, push: FloatArray, by_axis: FloatArray, first: int, n: int, other: int,
    strengths: FloatArray, pushes_at: FloatArray,
) -> None:  # fmt: skip
    """Push `n` documents from `first` on away from `n` others from `other` on, pairwise."""
    for row in range(n):
        push[row] = np.float32(0.0)
    for c in range(len(by_axis)):
        positions, others = by_axis[c, first : first + n], by_axis[c, other : other + n]
        for row in range(n):
            away = positions[row] - others[row]
            push[row] += away * away
    for row in range(n):
        push[row] = _look_up(pushes_at, push[row])
    for c in range(len(by_axis)):
        positions, others = by_axis[c, first : first + n], by_axis[c, other : other + n]
        total = move[c]
        for row in range(n):
            total[row] += strengths[first + row] * _clip(push[row] * (positions[row] - others[row]))


@numba.njit(inline="always")
def _repeat_the_first(by_axis: FloatArray, n_documents: int) -> None:
    """Repeat the first documents after the last."""
    for c in range(len(by_axis)):
        for row in range(by_axis.shape[1] - n_documents):
            by_axis[c, n_documents + row] = by_axis[c, row % n_documents]


@compiled(
    numba.void(
        numba.float32[:, ::1], numba.int32[:, ::1], numba.int64[:, ::1], numba.int32[::1],
        numba.float32[::1], numba.float32[::1], numba.float32[::1],
        numba.int64, numba.int64, numba.int64, numba.uint64,
    ),
    parallel=True, fastmath=True, nogil=True,
)  # fmt: skip
def move_all(
    positions: FloatArray,
    counts: Int32Array,
    starts: Int64Array,
    pulling: Int32Array,
    strengths: FloatArray,
    pulls_at: FloatArray,
    pushes_at: FloatArray,
    first_epoch: int,
    end_epoch: int,
    n_epochs: int,
    seed: np.uint64,
) -> None:
    """Run some epochs and change `positions` in place; see `EdgeSchedule` for the arrays.

    The pushes assume that adjacent documents are unrelated.
    """
    n_documents, n_components = positions.shape
    n_chunks = (n_documents + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE
    # Every sub-step reads one half and writes the other: threads meet once per sub-step. The second
    # arrays hold the same by component, with the first documents repeated at the end. The number of
    # sub-steps is even: epochs begin and end with the first half.
    halves = np.empty((2, n_documents, n_components), dtype=np.float32)
    halves_by_axis = np.empty((2, n_components, n_documents + ROWS_AT_ONCE), dtype=np.float32)
    for i in range(n_documents):
        for c in range(n_components):
            halves[0, i, c] = halves_by_axis[0, c, i] = positions[i, c]
    for step in range(first_epoch * SUB_STEPS, end_epoch * SUB_STEPS):
        epoch = step // SUB_STEPS
        in_cycle = step % (CYCLE * SUB_STEPS)
        left = np.float32(1.0) - np.float32(epoch) / np.float32(n_epochs)
        rate = left * left
        frozen, moved = halves[step % 2], halves[1 - step % 2]
        by_axis, moved_by_axis = halves_by_axis[step % 2], halves_by_axis[1 - step % 2]
        _repeat_the_first(by_axis, n_documents)
        salt = _scramble(np.uint64(step) ^ _scramble(seed))
        for chunk in numba.prange(n_chunks):
            start = chunk * ROWS_AT_ONCE
            n = min(ROWS_AT_ONCE, n_documents - start)
            move = np.zeros((n_components, ROWS_AT_ONCE), dtype=np.float32)
            away = np.empty(n_components, dtype=np.float32)
            push = np.empty(ROWS_AT_ONCE, dtype=np.float32)
            _add_all_pulls(
                move,
                away,
                frozen,
                start,
                n,
                counts[in_cycle],
                pulling,
                starts[in_cycle, chunk],
                pulls_at,
            )
            state = _scramble(np.uint64(chunk) ^ salt)
            for _ in range(PUSHES):
                state = _scramble((state + np.uint64(0x9E3779B9)) & LOW_BITS)
                other = int((state * np.uint64(n_documents)) >> np.uint64(32))
                _add_pushes(move, push, by_axis, start, n, other, strengths, pushes_at)
            for row in range(n):
                i = start + row
                for c in range(n_components):
                    moved[i, c] = moved_by_axis[c, i] = frozen[i, c] + rate * move[c, row]
    for i in range(n_documents):
        for c in range(n_components):
            positions[i, c] = halves[0, i, c]
