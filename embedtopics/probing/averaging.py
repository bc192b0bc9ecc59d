"""Vectors of words averaged to vectors of sentences or texts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.results import HiddenStates

__all__ = ["pooled"]

_ROWS = 16_384
"""Words read from disk at a time."""


def pooled(states: HiddenStates, by: str = "text") -> HiddenStates:
    """Return the mean of the words of each text or sentence at every layer.

    So a question on whole sentences can be put to each layer. Missing words are left out of the
    mean. The words' vectors are read a part at a time.

    Parameters
    ----------
    states : HiddenStates
        Of words or tokens.
    by : {"text", "sentence"}

    Returns
    -------
    HiddenStates
        Its unit is "text". By text, there is a row for every text, also for one without words,
        which is then missing; by sentence, one for every sentence with a word. Vectors are float32
        and in memory; `n_pieces` counts the words that each is the mean of.

    Raises
    ------
    InputError
        If the states are of texts already, or `by` is something else.
    """
    if by not in ("text", "sentence"):
        raise InputError(f"expected by to be text or sentence; got {by!r}")
    if states.unit == "text":
        raise InputError("expected states of words or tokens, got those of texts")
    if by == "text":
        groups = states.of_text.astype(np.int64)
        of_text = np.arange(len(states.texts), dtype=np.int32)
    else:
        kept, groups = np.unique(states.sentences, return_inverse=True)
        of_text = states.of_text[np.searchsorted(states.sentences, kept)]
    bounds = np.searchsorted(groups, np.arange(len(of_text) + 1))
    n_pieces = np.bincount(groups[~states.missing], minlength=len(of_text)).astype(np.int32)
    spans = _spans(states, bounds)
    return replace(
        states,
        words=tuple(
            states.texts[text][begin:end]
            for text, (begin, end) in zip(of_text.tolist(), spans.tolist(), strict=True)
        ),
        vectors=tuple(_means(layer, groups, n_pieces) for layer in states.vectors),
        of_text=of_text,
        position=_positions(of_text),
        sentences=_first_sentences(states, bounds),
        spans=spans,
        n_pieces=n_pieces,
        unit="text",
        folder="",
    )


def _means(
    vectors: npt.NDArray[np.floating], groups: Int64Array, sizes: npt.NDArray[np.int32]
) -> FloatArray:
    """Return the mean of each group; vectors of missing words are zero, and add nothing."""
    total = np.zeros((len(sizes), vectors.shape[1]), dtype=np.float32)
    for start in range(0, len(groups), _ROWS):
        own = groups[start : start + _ROWS]
        begins = np.flatnonzero(np.diff(own, prepend=-1))
        part = np.asarray(vectors[start : start + _ROWS], dtype=np.float32)
        total[own[begins]] += np.add.reduceat(part, begins, axis=0)
    total /= np.maximum(sizes, 1).astype(np.float32)[:, None]
    return total


def _spans(states: HiddenStates, bounds: Int64Array) -> npt.NDArray[np.int32]:
    """Return from where to where the words of each group reach; nothing for one without words."""
    spans = np.zeros((len(bounds) - 1, 2), dtype=np.int32)
    filled = np.flatnonzero(np.diff(bounds))
    spans[filled, 0] = states.spans[bounds[filled], 0]
    spans[filled, 1] = states.spans[bounds[filled + 1] - 1, 1]
    return spans


def _positions(of_text: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    begins = np.searchsorted(of_text, of_text)
    return (np.arange(len(of_text)) - begins).astype(np.int32)


def _first_sentences(states: HiddenStates, bounds: Int64Array) -> npt.NDArray[np.int32]:
    """Return the first sentence of each group; for a text without words, that of the next."""
    if not len(states):
        return np.arange(len(bounds) - 1, dtype=np.int32)
    return states.sentences[np.minimum(bounds[:-1], len(states) - 1)]
