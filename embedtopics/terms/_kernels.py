"""Loops over the words of large corpora, compiled by Numba."""

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from embedtopics._utils.compiling import compiled
from embedtopics.protocols import Int32Array, Int64Array

Bytes = npt.NDArray[np.uint8]
_types: Any = numba.types
UInt64Array = npt.NDArray[np.uint64]
SMALLEST_TABLE = 1 << 12


@numba.njit(inline="always")
def _mix(hashed: np.uint64) -> np.uint64:
    return hashed ^ (hashed >> np.uint64(32))


@numba.njit(inline="always")
def _find(
    data: Bytes, first: int, length: int, hashed: np.uint64,
    table: Int32Array, spans: Int64Array, hashes: UInt64Array,
) -> np.uint64:  # fmt: skip
    """Return the slot of a piece in the table, or its free slot."""
    mask = np.uint64(len(table) - 1)
    slot = _mix(hashed) & mask
    while table[slot] >= 0:
        piece = table[slot]
        begin = spans[piece, 0]
        if hashes[piece] == hashed and spans[piece, 1] - begin == length:
            same = 0
            while same < length and data[begin + same] == data[first + same]:
                same += 1
            if same == length:
                break
        slot = (slot + np.uint64(1)) & mask
    return slot


@numba.njit(inline="always")
def _count_pieces(data: Bytes, belongs: npt.NDArray[np.bool_], ends: Int64Array) -> Int64Array:
    """Return the offsets of each text's pieces among all pieces."""
    offsets = np.zeros(len(ends) + 1, dtype=np.int64)
    begin = 0
    for text in range(len(ends)):
        inside, n = False, 0
        for place in range(begin, ends[text]):
            now = belongs[data[place]]
            n += now and not inside
            inside = now
        offsets[text + 1] = offsets[text] + n
        begin = ends[text]
    return offsets


@compiled(
    _types.Tuple((numba.int32[::1], numba.int64[::1], numba.int64[:, ::1]))(
        _types.Array(numba.uint8, 1, "C", readonly=True),
        _types.Array(numba.boolean, 1, "C", readonly=True),
        _types.Array(numba.int64, 1, "C", readonly=True),
    ),
    nogil=True,
)
def number_pieces(
    data: Bytes, belongs: npt.NDArray[np.bool_], ends: Int64Array
) -> tuple[Int32Array, Int64Array, Int64Array]:
    """Cut texts into pieces between separators, and number the different pieces.

    Shapes: `data` (n_bytes,), `belongs` (256,), `ends` (n_texts,) -> `pieces` (n_pieces,),
    `offsets` (n_texts + 1,), `spans` (n_different, 2).
    """
    offsets = _count_pieces(data, belongs, ends)
    # These have space for all pieces; what is not written takes no memory.
    pieces = np.empty(offsets[-1], dtype=np.int32)
    spans = np.empty((offsets[-1], 2), dtype=np.int64)
    hashes = np.empty(offsets[-1], dtype=np.uint64)
    table = np.empty(0, dtype=np.int32)  # a hash table with open addressing; -1 is a free slot
    n_different = n_pieces = place = 0
    for end in ends:
        while place < end:
            if not belongs[data[place]]:
                place += 1
                continue
            if 2 * n_different >= len(table):
                table = np.empty(max(2 * len(table), SMALLEST_TABLE), dtype=np.int32)
                table[:] = -1
                mask = np.uint64(len(table) - 1)
                for piece in range(n_different):
                    slot = _mix(hashes[piece]) & mask
                    while table[slot] >= 0:
                        slot = (slot + np.uint64(1)) & mask
                    table[slot] = piece
            first, hashed = place, np.uint64(0xCBF29CE484222325)  # FNV-1a
            while place < end and belongs[data[place]]:
                hashed = (hashed ^ np.uint64(data[place])) * np.uint64(0x100000001B3)
                place += 1
            slot = _find(data, first, place - first, hashed, table, spans, hashes)
            if table[slot] < 0:
                table[slot] = n_different
                spans[n_different, 0], spans[n_different, 1] = first, place
                hashes[n_different] = hashed
                n_different += 1
            pieces[n_pieces] = table[slot]
            n_pieces += 1
    return pieces, offsets, spans[:n_different]


@numba.njit(inline="always")
def _slot_of_pair(pair: np.int64, size: int) -> np.uint64:
    mixed = np.uint64(pair) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed ^ (mixed >> np.uint64(32))) & np.uint64(size - 1)


@numba.njit(inline="always")
def _find_pair(pair: np.int64, table: Int32Array, pairs: Int64Array) -> np.uint64:
    """Return the slot of a pair in the table, or its free slot."""
    slot = _slot_of_pair(pair, len(table))
    while table[slot] >= 0 and pairs[table[slot]] != pair:
        slot = (slot + np.uint64(1)) & np.uint64(len(table) - 1)
    return slot


@compiled(
    _types.Tuple((numba.int32[::1], numba.int64[::1]))(
        _types.Array(numba.int32, 1, "C", readonly=True),
        _types.Array(numba.int32, 1, "C", readonly=True),
        _types.Array(numba.int64, 1, "C", readonly=True),
        _types.Array(numba.boolean, 1, "C", readonly=True),
        _types.Array(numba.boolean, 1, "C", readonly=True),
        numba.int64,
        numba.int64,
        numba.int64,
    ),
    nogil=True,
)
def number_ngrams(
    grams: Int32Array, ids: Int32Array, offsets: Int64Array, begins: npt.NDArray[np.bool_],
    ends: npt.NDArray[np.bool_], n: int, fewest: int, n_slots: int,
) -> tuple[Int32Array, Int64Array]:  # fmt: skip
    """Return a number for each n-gram, which is an (n-1)-gram and a last word.

    `begins` and `ends` mark the allowed (n-1)-grams and last words. Returns the numbers,
    (n_places,), -1 for none, and the pair of each n-gram: its (n-1)-gram times the number of words,
    plus its last word. Most n-grams with fewer than `fewest` occurrences get no number: a first
    pass counts n-grams in `n_slots` slots, a power of two, so that memory is bounded.
    """
    n_words = len(ends)
    times = np.zeros(n_slots, dtype=np.uint8)
    numbers = np.empty(len(ids), dtype=np.int32)
    pairs = np.empty(len(ids), dtype=np.int64)  # what is not written takes no memory
    table = np.empty(0, dtype=np.int32)
    n_different = 0
    for step in range(2):
        numbers[:] = -1
        for document in range(len(offsets) - 1):
            for place in range(offsets[document], offsets[document + 1] - n + 1):
                gram, last = grams[place], ids[place + n - 1]
                if gram < 0 or not begins[gram] or not ends[last]:
                    continue
                pair = np.int64(gram) * n_words + last
                slot = _slot_of_pair(pair, n_slots)
                if step == 0:
                    times[slot] = min(times[slot] + 1, 255)
                    continue
                if times[slot] < min(fewest, 255):
                    continue
                if 2 * n_different >= len(table):
                    table = np.empty(max(2 * len(table), 2 * SMALLEST_TABLE), dtype=np.int32)
                    table[:] = -1
                    for number in range(n_different):
                        table[_find_pair(pairs[number], table, pairs)] = number
                pair_slot = _find_pair(pair, table, pairs)
                if table[pair_slot] < 0:
                    table[pair_slot] = n_different
                    pairs[n_different] = pair
                    n_different += 1
                numbers[place] = table[pair_slot]
    return numbers, pairs[:n_different]
