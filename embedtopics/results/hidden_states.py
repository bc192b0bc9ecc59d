"""What each layer of an encoder makes of every word."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.results.inputs import Decision

__all__ = ["UNITS", "Attention", "HiddenStates"]

Int32Array = npt.NDArray[np.int32]

UNITS = ("word", "token", "text")
"""What has a vector: a word, a sub-token, or a whole text."""


@dataclass(frozen=True, eq=False)
class HiddenStates:
    """The vectors of all units at all layers, and where in the texts the units are.

    Rows are units in the order of the texts, and within a text in reading order. A word that the
    tokenizer leaves nothing of, such as a zero-width space, keeps its row: its vectors are zero and
    `missing` says so, so that labels never shift.

    Parameters
    ----------
    texts : tuple of str
        As they were read; pre-split words are joined by single spaces.
    words : tuple of str
        The unit of each row, as it stands in its text.
    layers : tuple of int
        0 is the embedding layer, before any attention; n is what the n-th layer gives.
    vectors : tuple of float16 or float32 ndarray of shape (n_units, width)
        Those of each layer, in the order of `layers`; memory-mapped where they come from a store.
    of_text : int32 ndarray of shape (n_units,)
        The text of each unit, ascending.
    position : int32 ndarray of shape (n_units,)
        The place of each unit within its text, from 0.
    sentences : int32 ndarray of shape (n_units,)
        The sentence of each unit, numbered through all texts, ascending.
    spans : int32 ndarray of shape (n_units, 2)
        First character of each unit in its text, and the one behind its last.
    n_pieces : int32 ndarray of shape (n_units,)
        Sub-tokens that each unit was pooled from; 0 for a missing one.
    unit : {"word", "token", "text"}
    pooling : str
        How sub-tokens became one vector.
    encoder, fingerprint : str
        Name of the checkpoint, and the SHA-256 over all that its vectors depend on.
    folder : str
        Of the store; empty where the vectors are in memory alone.
    decisions : tuple of Decision
        What was decided on the way: texts in windows, missing words.
    """

    texts: tuple[str, ...]
    words: tuple[str, ...]
    layers: tuple[int, ...]
    vectors: tuple[npt.NDArray[Any], ...]
    of_text: Int32Array
    position: Int32Array
    sentences: Int32Array
    spans: Int32Array
    n_pieces: Int32Array
    unit: str
    pooling: str
    encoder: str
    fingerprint: str
    folder: str = ""
    decisions: tuple[Decision, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.words)

    @property
    def width(self) -> int:
        """Length of a vector."""
        return int(self.vectors[0].shape[1])

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        """Whether each unit has no vector, of shape (n_units,)."""
        return np.asarray(self.n_pieces == 0)

    def layer(self, layer: int) -> npt.NDArray[Any]:
        """Return the vectors of one layer, of shape (n_units, width); negative from the last.

        Raises
        ------
        InputError
            If there is no such layer, or it was not kept.
        """
        found = self.layers[-1] + 1 + layer if layer < 0 else layer
        if found not in self.layers:
            kept = ", ".join(map(str, self.layers))
            raise InputError(f"expected one of the layers {kept}; got {layer}")
        return self.vectors[self.layers.index(found)]

    def rows_of(self, text: int) -> slice:
        """Return the rows of one text's units.

        Raises
        ------
        InputError
            If there is no such text.
        """
        if not 0 <= text < len(self.texts):
            raise InputError(
                f"expected the number of a text from 0 to {len(self.texts) - 1}, got {text}"
            )
        begin, end = np.searchsorted(self.of_text, [text, text + 1])
        return slice(int(begin), int(end))


@dataclass(frozen=True, eq=False)
class Attention:
    """Who looks at whom in one text, by layer and head.

    Parameters
    ----------
    text : str
    tokens : tuple of str
        Special tokens included, as people read them.
    layers : tuple of int
        From 1: the embedding layer has no attention.
    weights : float32 ndarray of shape (n_layers, n_heads, n_tokens, n_tokens)
        Row i is where token i takes its information from; it sums to 1.
    encoder : str
    """

    text: str
    tokens: tuple[str, ...]
    layers: tuple[int, ...]
    weights: npt.NDArray[np.float32]
    encoder: str
