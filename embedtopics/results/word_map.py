"""Every use of a word on a map, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from embedtopics.results.inputs import Decision

__all__ = ["WordMap"]

Float64Array = npt.NDArray[np.float64]
Int32Array = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class WordMap:
    """Where each use of a word lies, by layer.

    Parameters
    ----------
    word : str
        As it was asked for; several are joined by commas.
    uses : tuple of str
        The word as each use writes it, in the order of the texts.
    sentences : tuple of str
        The sentence around each use.
    spans : int32 ndarray of shape (n_uses, 2)
        First character of the word in its sentence, and the one behind its last.
    rows, of_text : int32 ndarray of shape (n_uses,)
        The row of each use among all units of the states, and its text.
    n_units, n_texts : int
        Of the states.
    layers : tuple of int
        As asked for.
    coordinates : float64 ndarray of shape (n_layers, n_uses, 2)
        On the plane of each layer on which its uses are spread most, turned and mirrored so that
        neighbouring layers lie alike.
    joint : float64 ndarray of shape (n_layers, n_uses, 2)
        On one plane for all layers, on which the path of a use can be followed.
    shown, shown_jointly : float64 ndarray of shape (n_layers,)
        Share of each layer's variance that lies in its own plane, and in the one for all; NaN
        where all uses are alike.
    similarity : float64 ndarray of shape (n_layers,)
        Mean cosine similarity of two uses; NaN for a single one.
    encoder : str
    decisions : tuple of Decision
    """

    word: str
    uses: tuple[str, ...]
    sentences: tuple[str, ...]
    spans: Int32Array
    rows: Int32Array
    of_text: Int32Array
    n_units: int
    n_texts: int
    layers: tuple[int, ...]
    coordinates: Float64Array
    joint: Float64Array
    shown: Float64Array
    shown_jointly: Float64Array
    similarity: Float64Array
    encoder: str
    decisions: tuple[Decision, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.uses)
