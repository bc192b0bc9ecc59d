"""Results of probing: hidden states, tasks, scores by layer, treebanks, positions, word uses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.display import SCORE_ROWS, Displayed
from embedtopics.errors import InputError
from embedtopics.probing._positions import Positions
from embedtopics.probing.words.results import (
    SenseSeparation,
    UseDifference,
    UsePrediction,
    UseRegression,
    WordMap,
    WordNeighbors,
)
from embedtopics.protocols import BoolArray, Float64Array, Int32Array
from embedtopics.results import Decision

__all__ = [
    "Contextualization",
    "HiddenStates",
    "LayerScores",
    "Positions",
    "ProbeTask",
    "SenseSeparation",
    "Sentence",
    "Treebank",
    "UseDifference",
    "UsePrediction",
    "UseRegression",
    "WordMap",
    "WordNeighbors",
]


@dataclass(frozen=True, eq=False, repr=False)
class HiddenStates(Displayed):
    """The vectors of all units at all layers, and the positions of the units in the texts.

    Rows are units in reading order. A word without a token, such as a zero-width space, keeps its
    row, so that labels never shift: its vectors are zero, and it is `missing`.

    Parameters
    ----------
    texts, words : tuple of str
        Texts as the encoder read them, and the unit of each row as written in its text.
    layers : tuple of int
        0 is the embedding layer, before any attention.
    vectors : tuple of float16 or float32 ndarray of shape (n_units, width)
        One array per layer; memory-mapped if they come from a folder.
    of_text, position : int32 ndarray of shape (n_units,)
        The text of each unit, and its position there, from 0.
    sentences : int32 ndarray of shape (n_units,)
        The sentence of each unit, numbered through all texts.
    spans : int32 ndarray of shape (n_units, 2)
        First character of each unit in its text, and the one after its last.
    n_pieces : int32 ndarray of shape (n_units,)
        Tokens that each unit was pooled from.
    unit : {"word", "token", "text"}
    encoder, fingerprint : str
        Name of the checkpoint, and a hash of the weights and options.
    decisions : tuple of Decision
    forms : mapping of str to str
        Words that the tokenizer changes before it cuts them into tokens, such as to small letters
        without accents, and what they become: words of one form are one word type.
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
    encoder: str
    fingerprint: str
    decisions: tuple[Decision, ...] = ()
    forms: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of units."""
        return len(self.words)

    def _summary(self) -> str:
        return (
            f"{len(self):,} {self.unit}s of {len(self.texts):,} texts, {len(self.layers)} layers "
            f"of width {self.width}, {self.encoder}"
        )

    @property
    def width(self) -> int:
        """Length of a vector."""
        return int(self.vectors[0].shape[1])

    @property
    def missing(self) -> BoolArray:
        """Whether each unit has no vector, of shape (n_units,)."""
        return np.asarray(self.n_pieces == 0)

    def layer(self, layer: int) -> npt.NDArray[Any]:
        """Return the vectors of one layer, of shape (n_units, width); negative from the last.

        Raises
        ------
        InputError
            If the layer does not exist, or is not stored.
        """
        number = self.layers[-1] + 1 + layer if layer < 0 else layer
        if number not in self.layers:
            raise InputError("layer", f"one of {', '.join(map(str, self.layers))}", layer)
        return self.vectors[self.layers.index(number)]

    def rows_of(self, text: int) -> slice:
        """Return the rows of one text's units."""
        begin, end = np.searchsorted(self.of_text, [text, text + 1])
        return slice(int(begin), int(end))

    def pooled(self) -> "HiddenStates":
        """Return the mean vector of the words of each text at every layer.

        Missing words are left out of the mean. The vectors are read in blocks.

        Returns
        -------
        HiddenStates
            With the unit "text" and one row per text; a text without words is missing. Vectors are
            float32 and in memory; `n_pieces` counts the words of each mean.

        Raises
        ------
        InputError
            If the states already have one vector per text.
        """
        from embedtopics.probing._layers import pool_texts

        return pool_texts(self)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per unit: text, word and position."""
        words = list(self.words)
        return pd.DataFrame({"text": self.of_text, "word": words, "position": self.position})


LOWER_IS_BETTER = ("bits per label",)
"""Metrics whose lowest value is best."""


@dataclass(frozen=True, eq=False, repr=False)
class ProbeTask(Displayed):
    """A task for a probe: texts with a label for each word or each text.

    Parameters
    ----------
    name : str
    unit : {"word", "text"}
        Unit that is labelled.
    texts : tuple of str or tuple of tuple of str
        Whole texts, or lists of words.
    labels : tuple of tuple of str
        For each text the labels of its words, or its single label. An empty string is no label:
        `probe` leaves the unit out.
    parts : tuple of str
        "train", "dev" or "test" for each text; if empty, `probe` splits at random.
    decisions : tuple of Decision
    """

    name: str
    unit: str
    texts: tuple[str, ...] | tuple[tuple[str, ...], ...]
    labels: tuple[tuple[str, ...], ...]
    parts: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()

    def _summary(self) -> str:
        n_labels = sum(map(len, self.labels))
        return f"{self.name!r}: {n_labels:,} labels of {self.unit}s, {len(self.texts):,} texts"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per text: its part, text and labels, words joined by spaces."""
        texts = [text if isinstance(text, str) else " ".join(text) for text in self.texts]
        labels = [" ".join(of_text) for of_text in self.labels]
        parts = self.parts or [""] * len(texts)
        return pd.DataFrame({"part": parts, "text": texts, "labels": labels})


@dataclass(frozen=True, eq=False)
class ScalarMix:
    """The weight of each layer in a mix learned with the probe (Peters et al. 2018, equation 1).

    Parameters
    ----------
    layers : tuple of int
    weights : float64 ndarray of shape (n_seeds, n_layers)
        Each row sums to 1.
    gain : float64 ndarray of shape (n_seeds,)
    """

    layers: tuple[int, ...]
    weights: Float64Array
    gain: Float64Array


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LayerScores(Displayed):
    """How well a probe predicts labels from each layer, with its baselines and controls.

    Parameters
    ----------
    table : DataFrame
        The scores, see `to_frame`; those of one kind and metric are in the order of the layers.
    task, encoder : str
    labels : tuple of str
        The classes, sorted.
    n_train, n_dev, n_test : int
        Units of each part.
    mix : ScalarMix or None
    chosen_layer : int or None
        Layer with the least cross-entropy on the dev part; None if no layers were compared.
    decisions : tuple of Decision
    """

    table: pd.DataFrame
    task: str
    encoder: str
    labels: tuple[str, ...]
    n_train: int
    n_dev: int
    n_test: int
    mix: ScalarMix | None = None
    chosen_layer: int | None = None
    decisions: tuple[Decision, ...] = ()

    _n_rows_displayed = SCORE_ROWS

    def _summary(self) -> str:
        return f"{self.task!r}: {len(self.table)} scores on {self.n_test:,} units, {self.encoder}"

    def best(self, metric: str = "accuracy", what: str = "probe") -> pd.Series:
        """Return the best score of one kind; of equal scores that of the lowest layer.

        The score is too optimistic, because the test part itself selects it. Use `chosen` to
        report a score.

        Returns
        -------
        Series
            The row of `to_frame`.

        Raises
        ------
        InputError
            If there is no such score.
        """
        scores = self._scores_of(metric, what).dropna(subset="value")
        if scores.empty:
            raise InputError("metric", "one with a defined score", metric, found="NaN only")
        values = scores["value"].to_numpy()
        place = values.argmin() if metric in LOWER_IS_BETTER else values.argmax()
        return scores.iloc[int(place)]

    def chosen(self, metric: str = "accuracy", what: str = "probe") -> pd.Series:
        """Return the score of the layer that the dev part selects.

        The test part does not influence the selection, so the score and its interval are unbiased.

        Returns
        -------
        Series
            The row of `to_frame`.

        Raises
        ------
        InputError
            If the dev part selected no layer, or there is no such score.
        """
        scores = self._scores_of(metric, what)
        if self.chosen_layer is not None:
            scores = scores[scores["layer"] == self.chosen_layer]
        if self.chosen_layer is None or scores.empty:
            raise InputError("what", f"of layer {self.chosen_layer}, chosen on the dev part", what)
        return scores.iloc[0]

    def _scores_of(self, metric: str, what: str) -> pd.DataFrame:
        is_asked = (self.table["what"] == what) & (self.table["metric"] == metric)
        if not is_asked.any():
            kinds = sorted(set(self.table["what"] + ", " + self.table["metric"]))
            raise InputError("metric", f"one of {'; '.join(kinds)}", f"{what}, {metric}")
        return self.table[is_asked]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per score.

        Returns
        -------
        DataFrame
            Columns task; what: "probe", "scalar mix" (of all layers), "combination" (of vectors
            that the caller passed), "control", or a baseline: "majority", "word type", "random
            model", "embedding layer"; layer, missing for scores of no single layer; metric:
            "accuracy", "macro F1", "selectivity", "bits per label" or "compression"; value, low and
            high, the score and its 95 % interval over sentences, NaN without an interval; n, the
            units behind the score.
        """
        return self.table.copy()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Contextualization(Displayed):
    """How much the vectors of a word depend on its context, layer by layer.

    Parameters
    ----------
    table : DataFrame
        The measures, see `to_frame`; layers ascend.
    encoder : str
    layers : tuple of int
    words : tuple of str
    n_uses : int32 ndarray of shape (n_words,)
    decisions : tuple of Decision
    """

    table: pd.DataFrame
    encoder: str
    layers: tuple[int, ...]
    words: tuple[str, ...]
    n_uses: Int32Array
    decisions: tuple[Decision, ...] = ()

    _n_rows_displayed = SCORE_ROWS

    def _summary(self) -> str:
        return f"{len(self.words):,} words on {len(self.layers)} layers, {self.encoder}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per measure and layer.

        Returns
        -------
        DataFrame
            Columns measure: "self-similarity" and "intra-sentence similarity", the same with the
            prefix "corrected", minus the baseline, and the baseline "anisotropy" (mean cosine of
            two different words); layer; value, low and high, the measure and its 95 % interval; n,
            the words or sentences.
        """
        return self.table.copy()


@dataclass(frozen=True)
class Sentence:
    """One sentence.

    Parameters
    ----------
    id, text : str
    words : tuple of str
        Syntactic words: "du" of a French text is "de" and "le".
    columns : mapping of str to tuple of str
        The annotation of each word by column, as in the file: "_" for none.
    heads : tuple of int
        The head of each word, counted from 1; 0 for the root. Empty without a tree.
    spans : tuple of (int, int)
        First character of each word, or of its multi-word token, and the position after its end.
    """

    id: str
    text: str
    words: tuple[str, ...]
    columns: Mapping[str, tuple[str, ...]]
    heads: tuple[int, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Treebank(Displayed):
    """The sentences of a file.

    Parameters
    ----------
    source : str
        Name of the file.
    sentences : tuple of Sentence
    columns : tuple of str
        In the order of the file.
    decisions : tuple of Decision
    """

    source: str
    sentences: tuple[Sentence, ...]
    columns: tuple[str, ...]
    decisions: tuple[Decision, ...] = ()

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self.sentences)

    def _summary(self) -> str:
        n_words = sum(len(sentence.words) for sentence in self.sentences)
        return f"{self.source}: {len(self):,} sentences, {n_words:,} words"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per word: sentence, word, and each of `columns`."""
        columns = {
            "sentence": [one.id for one in self.sentences for _ in one.words],
            "word": [word for one in self.sentences for word in one.words],
        }
        for name in self.columns:
            columns[name] = [cell for one in self.sentences for cell in one.columns[name]]
        return pd.DataFrame(columns)
