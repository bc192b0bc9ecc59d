"""Words in their contexts: uses, neighbors, separation of senses, and maps."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from embedtopics._utils.display import Displayed
from embedtopics.decisions import Decision
from embedtopics.evaluation.results import ScoreTable
from embedtopics.probing.results import GeometryScore
from embedtopics.protocols import Float64Array


@dataclass(frozen=True)
class WordUse:
    """One use of a word.

    Parameters
    ----------
    row, text, position : int
        Row of the hidden states, text, and place among the units of the text.
    word : str
        As written in the text.
    span : tuple of int
        First character in the text, and the position after the last.
    sentence : str
    start : int
        First character of the word in `sentence`.
    """

    row: int
    text: int
    position: int
    word: str
    span: tuple[int, int]
    sentence: str
    start: int

    @property
    def parts(self) -> tuple[str, str, str]:
        """The sentence before the word, the word, and the sentence after it."""
        end = self.start + self.span[1] - self.span[0]
        return self.sentence[: self.start], self.sentence[self.start : end], self.sentence[end:]


def _columns_of(uses: Sequence[WordUse], *names: str) -> dict[str, list[object]]:
    return {name: [getattr(use, name) for use in uses] for name in names}


@dataclass(frozen=True, eq=False, repr=False)
class WordNeighbors(Displayed):
    """The uses of words nearest to one use of a word.

    Parameters
    ----------
    query : WordUse
    uses : tuple of WordUse
        Nearest first.
    similarities : float64 ndarray of shape (n_neighbors,)
        Cosines.
    layer : int
    encoder, among : str
    decisions : tuple of Decision
    """

    query: WordUse
    uses: tuple[WordUse, ...]
    similarities: Float64Array
    layer: int
    encoder: str
    among: str
    decisions: tuple[Decision, ...] = ()

    def _summary(self) -> str:
        return f"{len(self.uses)} nearest to {self.query.word!r}, layer {self.layer}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per neighbor.

        Columns rank, word, similarity, text, position, start and end of the word in its text, and
        sentence.
        """
        columns = {
            "rank": np.arange(1, len(self.uses) + 1),
            **_columns_of(self.uses, "word"),
            "similarity": self.similarities,
            **_columns_of(self.uses, "text", "position"),
            "start": [use.span[0] for use in self.uses],
            "end": [use.span[1] for use in self.uses],
            **_columns_of(self.uses, "sentence"),
        }
        return pd.DataFrame(columns)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SenseSeparation(ScoreTable[GeometryScore]):
    """How well each layer separates labelled senses.

    Parameters
    ----------
    rows : tuple of GeometryScore
        "majority", a baseline without a layer, then "1-NN accuracy", "centroid accuracy" and
        "silhouette" of each layer, with intervals over texts.
    decisions : tuple of Decision
    encoder, word : str
    n_senses : int
    """

    encoder: str
    word: str
    n_senses: int

    row_type = GeometryScore

    def _summary(self) -> str:
        return f"{self.word!r}: {len(self)} scores, {self.encoder}"


@dataclass(frozen=True, eq=False, repr=False)
class WordMap(Displayed):
    """Coordinates of the uses of a word at each layer.

    Parameters
    ----------
    word : str
        Several words are joined by commas.
    uses : tuple of WordUse
        In the order of the texts.
    n_units, n_texts : int
        Numbers of units and texts of the hidden states.
    layers : tuple of int
    coordinates : float64 ndarray of shape (n_layers, n_uses, 2)
        On the first two principal components of each layer, rotated or reflected towards the map
        of the next layer.
    joint : float64 ndarray of shape (n_layers, n_uses, 2)
        On one plane for all layers.
    explained_variance, joint_explained_variance : float64 ndarray of shape (n_layers,)
        Share of the variance of each layer on its plane, and on the joint plane; NaN if all uses
        have one vector.
    similarity : float64 ndarray of shape (n_layers,)
        Mean cosine similarity of two uses; NaN for a single use.
    encoder : str
    decisions : tuple of Decision
    """

    word: str
    uses: tuple[WordUse, ...]
    n_units: int
    n_texts: int
    layers: tuple[int, ...]
    coordinates: Float64Array
    joint: Float64Array
    explained_variance: Float64Array
    joint_explained_variance: Float64Array
    similarity: Float64Array
    encoder: str
    decisions: tuple[Decision, ...] = ()

    def __len__(self) -> int:
        """Return the number of uses."""
        return len(self.uses)

    def _summary(self) -> str:
        return f"{self.word!r}: {len(self)} uses on {len(self.layers)} layers, {self.encoder}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per layer and use: layer, use, x, y, text, word and sentence."""
        n_layers, n_uses = self.coordinates.shape[:2]
        columns = {
            "layer": np.repeat(self.layers, n_uses),
            "use": np.tile(np.arange(n_uses), n_layers),
            "x": self.coordinates[:, :, 0].ravel(),
            "y": self.coordinates[:, :, 1].ravel(),
            **_columns_of(self.uses * n_layers, "text", "word", "sentence"),
        }
        return pd.DataFrame(columns)
