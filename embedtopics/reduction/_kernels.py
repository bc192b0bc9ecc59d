"""The layout's inner loop, compiled by Numba and kept in its cache."""

from __future__ import annotations

import numba
import numpy as np

from embedtopics.protocols import FloatArray, Int32Array, Int64Array
from embedtopics.reduction.layout import SUB_STEPS, TABLE_SHIFT

__all__ = ["move_all"]

LOW_BITS = np.uint64(0xFFFFFFFF)
TABLE_STEP = np.float32(2.0**-TABLE_SHIFT)


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
def _beats(step: np.int64, rate: np.float32, phase: np.float32) -> np.int64:
    """Count how often something with this rate happens in this step."""
    return np.int64(np.floor((step + 1) * rate + phase)) - np.int64(np.floor(step * rate + phase))


@numba.njit(inline="always")
def _separate(frozen: FloatArray, i: int, j: int, away: FloatArray) -> np.float32:
    """Write the vector from j to i into `away`; return its squared length."""
    squared = np.float32(0.0)
    for c in range(frozen.shape[1]):
        away[c] = frozen[i, c] - frozen[j, c]
        squared += away[c] * away[c]
    return squared


@numba.njit(inline="always")
def _look_up(table: FloatArray, squared: np.float32) -> np.float32:
    """Return a force at a squared distance, by linear interpolation in a table of forces."""
    bits = np.float32(squared).view(np.int32)
    place = bits >> TABLE_SHIFT
    rest = np.float32(bits & ((1 << TABLE_SHIFT) - 1)) * TABLE_STEP
    between: np.float32 = table[place] + rest * (table[place + 1] - table[place])
    return between


@numba.njit(inline="always")
def _add_clipped(move: FloatArray, away: FloatArray, force: np.float32, times: np.float32) -> None:
    for c in range(move.shape[0]):
        move[c] += times * _clip(force * away[c])


@numba.njit(
    numba.void(
        numba.float32[:, ::1], numba.float32[:, ::1], numba.int64[::1], numba.int32[::1],
        numba.float32[::1], numba.float32[::1], numba.float32[::1],
        numba.float32[::1], numba.float32[::1], numba.int64, numba.uint64,
    ),
    parallel=True, fastmath=True, cache=True,
)  # fmt: skip
def move_all(
    positions: FloatArray,
    frozen: FloatArray,
    offsets: Int64Array,
    neighbors: Int32Array,
    weights: FloatArray,
    phases: FloatArray,
    negatives: FloatArray,
    pulls_at: FloatArray,
    pushes_at: FloatArray,
    n_epochs: np.int64,
    seed: np.uint64,
) -> None:
    """Run all epochs, changing `positions` in place; see `layout.layout` for the arrays."""
    n_documents, n_components = positions.shape
    one = np.float32(1.0)
    two = np.float32(2.0)
    for step in range(n_epochs * SUB_STEPS):
        epoch = np.int64(step // SUB_STEPS)
        sub_step = step % SUB_STEPS
        rate = one - np.float32(epoch) / np.float32(n_epochs)
        frozen[:, :] = positions
        for i in numba.prange(n_documents):
            move = np.zeros(n_components, dtype=np.float32)
            away = np.empty(n_components, dtype=np.float32)
            first = offsets[i * SUB_STEPS + sub_step]
            last = offsets[i * SUB_STEPS + sub_step + 1]
            for edge in range(first, last):
                # Each edge pulls a document from both of its directions, hence twice its weight.
                pulls = _beats(epoch, two * weights[edge], phases[edge])
                if pulls > 0:
                    squared = _separate(frozen, i, neighbors[edge], away)
                    if squared > np.float32(0.0):
                        pull = _look_up(pulls_at, squared)
                        _add_clipped(move, away, pull, np.float32(pulls))
            state = _scramble(np.uint64(i) ^ _scramble(np.uint64(step) ^ _scramble(seed)))
            phase = np.float32(_scramble(np.uint64(i) ^ seed)) * np.float32(2.0**-32)
            for _ in range(_beats(np.int64(step), negatives[i], phase)):
                state = _scramble((state + np.uint64(0x9E3779B9)) & LOW_BITS)
                other = int((state * np.uint64(n_documents)) >> np.uint64(32))
                squared = _separate(frozen, i, other, away)
                if squared > np.float32(0.0):
                    push = _look_up(pushes_at, squared)
                    _add_clipped(move, away, push, one)
            for c in range(n_components):
                positions[i, c] = frozen[i, c] + rate * move[c]
