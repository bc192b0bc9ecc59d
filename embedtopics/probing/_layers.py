"""The layers of hidden states: chosen by number, read in blocks, pooled to texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import is_whole
from embedtopics.errors import InputError
from embedtopics.probing.results import HiddenStates
from embedtopics.protocols import FloatArray, Int64Array

Layers = int | str | Sequence[int]

ROWS_AT_ONCE = 8192
WORDS_AT_ONCE = 16_384


def layer_numbers(layers: Layers, available: Sequence[int]) -> tuple[int, ...]:
    """Return layers as numbers, ascending; negative ones count from the last."""
    expected = f'"all", "last N", or numbers from {available[0]} to {available[-1]}'
    if isinstance(layers, str):
        parts = layers.split()
        if parts == ["all"]:
            return tuple(available)
        n = int(parts[1]) if len(parts) == 2 and parts[1].isdecimal() else 0
        if parts[:1] != ["last"] or not 1 <= n <= len(available):
            raise InputError("layers", expected, layers)
        return tuple(available[-n:])
    numbers = list(layers) if isinstance(layers, Iterable) else [layers]
    last = available[-1]
    resolved = [last + 1 + one if is_whole(one) and one < 0 else one for one in numbers]
    if not resolved or not all(is_whole(one) and one in available for one in resolved):
        raise InputError("layers", expected, layers)
    return tuple(sorted({int(one) for one in resolved}))


@dataclass(frozen=True, eq=False)
class Space:
    """One layer, read in parts."""

    layer: int
    vectors: npt.NDArray[Any]

    def raw(self, rows: Int64Array | slice, dtype: type = np.float64) -> npt.NDArray[Any]:
        """Return some vectors."""
        vectors: npt.NDArray[Any] = np.array(self.vectors[rows], dtype=dtype)
        is_finite = np.isfinite(vectors).all(axis=1)
        if not is_finite.all():
            bad = int(np.flatnonzero(~is_finite)[0])
            row = rows.start + bad if isinstance(rows, slice) else int(rows[bad])
            expected, remedy = f"finite at layer {self.layer}", "extract them again in float32"
            raise InputError("states", expected, remedy=remedy, found="infinite values", row=row)
        return vectors

    def unit(self, rows: Int64Array | slice, dtype: type = np.float64) -> npt.NDArray[Any]:
        """Return some vectors at length one; zeros stay."""
        vectors = self.raw(rows, dtype)
        vectors /= lengths_of(vectors)[:, None]
        return vectors


def lengths_of(vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the length of each vector; 1 for those of zeros."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return np.asarray(np.where(lengths > 0, lengths, lengths.dtype.type(1)))


def blocks(n: int, size: int = ROWS_AT_ONCE) -> Iterator[slice]:
    """Cut rows into stretches that fit into memory."""
    for begin in range(0, n, size):
        yield slice(begin, min(begin + size, n))


def open_space(states: HiddenStates, layer: int) -> Space:
    """Return one layer; a negative number counts from the last."""
    vectors = states.layer(layer)
    return Space(layer if layer >= 0 else states.layers[-1] + 1 + layer, vectors)


def check_states(states: Any, parameter: str = "states") -> None:
    """Refuse what are no hidden states, such as texts or an encoder."""
    if not isinstance(states, HiddenStates):
        remedy = "call et.probing.hidden_states(encoder, texts) first"
        raise InputError(
            parameter, "HiddenStates", remedy=remedy, found=f"a {type(states).__name__}"
        )


def pool_texts(states: HiddenStates) -> HiddenStates:
    """Return the mean vectors of the words of each text; see `HiddenStates.pooled`."""
    if states.unit == "text":
        raise InputError("states", "states of words or tokens", found="states of texts")
    n = len(states.texts)
    of_text = np.arange(n, dtype=np.int32)
    n_pieces = np.bincount(states.of_text[~states.missing], minlength=n).astype(np.int32)
    return replace(
        states,
        words=states.texts,
        vectors=tuple(_means(layer, states.of_text, n_pieces) for layer in states.vectors),
        of_text=of_text,
        position=np.zeros(n, dtype=np.int32),
        sentences=of_text,
        spans=np.array([(0, len(text)) for text in states.texts], dtype=np.int32).reshape(-1, 2),
        n_pieces=n_pieces,
        unit="text",
    )


def _means(
    vectors: npt.NDArray[Any], groups: npt.NDArray[np.int32], sizes: npt.NDArray[np.int32]
) -> FloatArray:
    """Return the mean of each group; the vectors of missing words are zero, and add nothing."""
    total = np.zeros((len(sizes), vectors.shape[1]), dtype=np.float32)
    for part in blocks(len(groups), WORDS_AT_ONCE):
        group_of_row = groups[part]
        begins = np.flatnonzero(np.diff(group_of_row, prepend=-1))
        total[group_of_row[begins]] += np.add.reduceat(
            np.asarray(vectors[part], dtype=np.float32), begins, axis=0
        )
    total /= np.maximum(sizes, 1).astype(np.float32)[:, None]
    return total
