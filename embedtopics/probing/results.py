"""Results of probing: hidden states, tasks, scores by layer, treebanks, positions, word uses."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.display import Displayed, excerpt
from embedtopics.corpus._alignment import align_values
from embedtopics.corpus._corpus import Corpus
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import bounded_interval, resampled_means
from embedtopics.evaluation.results import Estimate, ScoreTable
from embedtopics.probing._rows import GeometryScore, ProbeScore
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

if TYPE_CHECKING:
    from embedtopics.inference import Measurement


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
class LayerScores(ScoreTable[ProbeScore]):
    """How well a probe predicts labels from each layer, with its baselines and controls.

    Parameters
    ----------
    rows : tuple of ProbeScore
        Of each kind and metric by ascending layer.
    decisions : tuple of Decision
    task, encoder : str
    labels : tuple of str
        The classes, sorted.
    n_train, n_dev, n_test : int
        Units of each part.
    mix : ScalarMix or None
    chosen_layer : int or None
        Layer with the least cross-entropy on the dev part; None if no layers were compared.
    """

    task: str
    encoder: str
    labels: tuple[str, ...]
    n_train: int
    n_dev: int
    n_test: int
    mix: ScalarMix | None = None
    chosen_layer: int | None = None

    row_type = ProbeScore

    def _summary(self) -> str:
        return f"{self.task!r}: {len(self)} scores on {self.n_test:,} units, {self.encoder}"

    def best(self, metric: str = "accuracy", what: str = "probe") -> ProbeScore:
        """Return the best score of one kind; of equal scores that of the lowest layer.

        The score is too optimistic, because the test part itself selects it. Use `chosen` to
        report a score.

        Raises
        ------
        InputError
            If there is no such score.
        """
        scores = [score for score in self._scores_of(metric, what) if not math.isnan(score.value)]
        if not scores:
            raise InputError("metric", "one with a defined score", metric, found="NaN only")
        sign = -1 if metric in LOWER_IS_BETTER else 1
        return max(scores, key=lambda score: sign * score.value)

    def chosen(self, metric: str = "accuracy", what: str = "probe") -> ProbeScore:
        """Return the score of the layer that the dev part selects.

        The test part does not influence the selection, so the score and its interval are unbiased.

        Raises
        ------
        InputError
            If the dev part selected no layer, or there is no such score.
        """
        for score in self._scores_of(metric, what):
            if self.chosen_layer is not None and score.layer == self.chosen_layer:
                return score
        raise InputError("what", f"of layer {self.chosen_layer}, chosen on the dev part", what)

    def _scores_of(self, metric: str, what: str) -> tuple[ProbeScore, ...]:
        scores = self.of(what=what, metric=metric)
        if not scores:
            kinds = sorted({f"{score.what}, {score.metric}" for score in self})
            raise InputError("metric", f"one of {'; '.join(kinds)}", f"{what}, {metric}")
        return scores

    def to_frame(self) -> pd.DataFrame:
        """Return columns task, what, layer, metric, value, low, high and n."""
        frame = super().to_frame()
        frame.insert(0, "task", self.task)
        return frame


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Contextualization(ScoreTable[GeometryScore]):
    """How much the vectors of a word depend on its context, layer by layer.

    Parameters
    ----------
    rows : tuple of GeometryScore
        Measures "self-similarity" and "intra-sentence similarity"; the same with the prefix
        "corrected", minus the baseline; and the baseline "anisotropy" (mean cosine of two different
        words). Layers ascend.
    decisions : tuple of Decision
    encoder : str
    layers : tuple of int
    words : tuple of str
    n_uses : int32 ndarray of shape (n_words,)
    """

    encoder: str
    layers: tuple[int, ...]
    words: tuple[str, ...]
    n_uses: Int32Array

    row_type = GeometryScore

    def _summary(self) -> str:
        return f"{len(self.words):,} words on {len(self.layers)} layers, {self.encoder}"


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


def intervals(values: Any, draws: Float64Array, df: float) -> tuple[Float64Array, Float64Array]:
    """Return 95 % intervals (n,) of values by their draws (n, n_draws); NaN without draws."""
    from scipy.special import stdtrit

    error = draws.std(axis=1, ddof=1) if draws.shape[1] else np.full(len(values), np.nan)
    reach = error * stdtrit(max(df, 1), 0.975)
    return values - reach, values + reach


@dataclass(frozen=True, eq=False, repr=False)
class Positions(Displayed):
    """Positions of texts on an axis.

    Parameters
    ----------
    corpus : Corpus
    values : float64 ndarray of shape (n_rows,)
        NaN for rows without text.
    draws : float64 ndarray of shape (n_rows, n_draws)
        Positions on axes of resampled seeds or scored texts.
    df : int
        Degrees of freedom of the axis; 0 if it has no draws.
    encoder : str
    decisions : tuple of Decision
    """

    corpus: Corpus
    values: Float64Array
    draws: Float64Array
    df: int
    encoder: str
    decisions: tuple[Decision, ...] = ()

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.values)

    def _summary(self) -> str:
        return f"{len(self):,} texts, {self.encoder}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per text: id, text, position, low, high and the metadata.

        The interval covers the choice of the seeds alone.
        """
        low, high = intervals(self.values, self.draws, self.df)
        places = pd.DataFrame({"position": self.values, "low": low, "high": high})
        frame = self.corpus.to_frame()
        places.index = frame.index
        rest = frame.columns.difference(["id", "text", *places], sort=False)
        return pd.concat([frame[["id", "text"]], places, frame[rest]], axis=1)

    def ends(self, k: int = 5) -> pd.DataFrame:
        """Return the k different texts at either end, the highest first."""
        frame = self.to_frame().dropna(subset="position").drop_duplicates("text")
        frame = frame.sort_values(["position", "text"], ascending=[False, True])
        both = pd.concat([frame.head(k), frame.tail(max(0, min(k, len(frame) - k)))])
        return both[["position", "id", "text"]].assign(text=[excerpt(one) for one in both["text"]])

    def within(self, labels: Any) -> "Positions":
        """Return differences from the mean of each row's topic; see `Scale.positions`."""
        expected = f"topics of the {len(self):,} rows"
        topics = np.asarray(align_values(labels, self.corpus, "within", expected))
        both = pd.DataFrame(np.column_stack([self.values, self.draws]))
        centered = (both - both.groupby(topics).transform("mean")).to_numpy()
        metadata = self.corpus.metadata.assign(topic=topics)
        corpus = Corpus(list(self.corpus.texts), ids=list(self.corpus.ids), metadata=metadata)
        return replace(self, corpus=corpus, values=centered[:, 0], draws=centered[:, 1:])

    def agreement(self, other: "Positions") -> Estimate:
        """Compare with the positions of the same texts by other seeds or by another encoder.

        Returns
        -------
        Estimate
            Pearson correlation, with a 95 % bootstrap interval over the texts.

        Raises
        ------
        InputError
            If `other` has other texts.
        """
        if list(self.corpus.texts) != list(other.corpus.texts):
            raise InputError("other", "positions of the same texts")

        has_both = ~np.isnan(self.values) & ~np.isnan(other.values)
        x = _standardized(self.values[has_both])
        y = _standardized(other.values[has_both])
        correlation = float((x * y).mean())

        # The correlation in a resample follows from the means of x, y and their products.
        means = resampled_means(np.column_stack([x * y, x, y, x * x, y * y]))
        mean_xy, mean_x, mean_y, mean_xx, mean_yy = means.T
        covariance = mean_xy - mean_x * mean_y
        spread = np.sqrt((mean_xx - mean_x**2) * (mean_yy - mean_y**2))
        drawn = covariance / spread

        n = len(x)
        bounds = (-1.0, 1.0)
        low, high = bounded_interval(correlation, drawn, n, bounds=bounds)
        return Estimate(
            value=correlation,
            low=float(low),
            high=float(high),
            n=n,
            drawn=drawn,
            n_units=n,
            bounds=bounds,
        )

    def measurement(
        self,
        gold: Any = None,
        *,
        sampling: str | None = None,
        probability: Any = None,
        strata: Any = None,
        units: Any = None,
        name: str = "position",
    ) -> "Measurement":
        """Return the positions as a variable for `inference.shares` and `inference.regress`.

        These functions take the positions themselves too: ``et.inference.shares(positions, by)``.

        Parameters
        ----------
        gold : array_like of shape (n_rows,), optional
            Positions that people gave to a random sample, NaN for the other rows. The positions
            then are predictions, whose errors are corrected. Without gold, positions count as the
            truth, and the choice of the seeds adds to the errors.
        sampling, probability, strata : optional
            With `gold`: how its rows were drawn; see `inference.Measurement`. The last two are
            columns, or have a value for each row.
        units : str or sequence, optional
            Units that are independent, such as the column "speaker"; by default the rows.
        name : str
            Name of the variable in formulas.

        Returns
        -------
        Measurement
        """
        from scipy.special import ndtri, stdtrit

        from embedtopics.inference import Measurement

        gold = None if gold is None else align_values(gold, self.corpus, "gold")
        rows = np.flatnonzero(~np.isnan(self.values))
        values = self.values[rows]
        data = self.corpus.metadata.iloc[rows]
        options: dict[str, Any] = {"name": name, "data": data, "kind": "number"}
        for key, value in {"units": units, "strata": strata, "probability": probability}.items():
            if isinstance(value, str):
                options[key] = data[value]
            elif value is not None:
                options[key] = np.asarray(align_values(value, self.corpus, key))[rows]

        # With gold positions, ours are predictions of them.
        if gold is not None:
            return Measurement(np.asarray(gold)[rows], values, sampling=sampling, **options)

        # Without, ours are the truth, up to the choice of the seeds. `regress` takes the draws as
        # normal; few seeds call for Student's t, whose 95 % interval is wider.
        draws = np.full((len(rows), 2), np.nan)
        if self.df > 0:
            draws = self.draws[rows]
        wider = stdtrit(max(self.df, 1), 0.975) / ndtri(0.975)
        draws = values[:, None] + wider * (draws - values[:, None])
        measurement = Measurement(values, values, sampling="random", **options)
        return measurement.with_draws(draws)


def _standardized(values: Float64Array) -> Float64Array:
    """Scale values to a mean of 0 and a standard deviation of 1."""
    return np.asarray((values - values.mean()) / values.std())
