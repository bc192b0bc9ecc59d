"""Words in their contexts: uses, neighbors, separation of senses, and maps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from embedtopics._utils.checks import is_number
from embedtopics._utils.display import SCORE_ROWS, Displayed
from embedtopics.errors import InputError
from embedtopics.protocols import BoolArray, Float64Array, FloatArray
from embedtopics.results import Decision

CANDIDATES = 200
"""Words nearest to a predicted vector that are compared with another."""


@dataclass(frozen=True, eq=False, repr=False)
class WordNeighbors(Displayed):
    """The uses of words nearest to one use of a word.

    Parameters
    ----------
    query : Series
        The use whose neighbors these are; its fields are the columns of `uses`.
    uses : DataFrame
        A row for each neighbor, nearest first: row of the hidden states, text, position among the
        units of the text, word as written, its start and end in the text, sentence, and offset of
        the word in the sentence.
    similarities : float64 ndarray of shape (n_neighbors,)
        Cosines.
    layer : int
    encoder : str
    decisions : tuple of Decision
    """

    query: pd.Series
    uses: pd.DataFrame
    similarities: Float64Array
    layer: int
    encoder: str
    decisions: tuple[Decision, ...] = ()

    def _summary(self) -> str:
        return f"{len(self.uses)} nearest to {self.query['word']!r}, layer {self.layer}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per neighbor.

        Columns rank, word, similarity, text, position, start and end of the word in its text, and
        sentence.
        """
        frame = self.uses[["word", "text", "position", "start", "end", "sentence"]].copy()
        frame.insert(0, "rank", np.arange(1, len(frame) + 1))
        frame.insert(2, "similarity", self.similarities)
        return frame


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SenseSeparation(Displayed):
    """How well each layer separates labelled senses.

    Parameters
    ----------
    table : DataFrame
        The scores, see `to_frame`.
    encoder, word : str
    decisions : tuple of Decision
    """

    table: pd.DataFrame
    encoder: str
    word: str
    decisions: tuple[Decision, ...] = ()

    _n_rows_displayed = SCORE_ROWS

    def _summary(self) -> str:
        return f"{self.word!r}: {len(self.table)} scores, {self.encoder}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per score.

        Returns
        -------
        DataFrame
            Columns measure: "majority", a baseline without a layer, then "1-NN accuracy" and
            "silhouette" of each layer; layer; value, low and high, the score and its 95 % interval
            over texts; n, the uses.
        """
        return self.table.copy()


@dataclass(frozen=True, eq=False, repr=False)
class WordMap(Displayed):
    """Coordinates of the uses of a word at each layer.

    Parameters
    ----------
    word : str
        Several words are joined by commas.
    uses : DataFrame
        A row for each use, in the order of the texts, with the columns of `WordNeighbors.uses`.
    n_texts : int
        Texts of the hidden states.
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
    uses: pd.DataFrame
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
        }
        for name in ("text", "word", "sentence"):
            columns[name] = np.tile(self.uses[name].to_numpy(), n_layers)
        return pd.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class WordFit:
    """The regression of one word.

    Parameters
    ----------
    word : str
    uses : DataFrame
        A row for each use, with the columns of `WordNeighbors.uses`.
    vectors : float32 ndarray of shape (n_uses, width)
    coefficients : float64 ndarray of shape (n_columns, width)
    design : Design
        Its `matrix` (n_uses, n_columns) and the names of its `columns`.
    """

    word: str
    uses: pd.DataFrame
    vectors: FloatArray
    coefficients: Float64Array
    design: Any

    def row(self, profile: Mapping[str, Any]) -> Float64Array:
        """Return the mean row of the design matrix with some values, (n_columns,)."""
        values = dict(profile)
        for name, value in profile.items():
            if name not in self.design.variables:
                names = ", ".join(map(str, self.design.variables))
                raise InputError("profile", f"values of {names}", name)
            column = self.design.variables[name]
            if hasattr(column, "cat"):
                levels = list(column.cat.categories)
                values[name] = str(value)
                if str(value) not in levels:
                    raise InputError("profile", f"one with {name} among {', '.join(levels)}", value)
                continue
            low, high = column.min(), column.max()
            if not is_number(value) or not low <= value <= high:
                raise InputError("profile", f"one with {name} from {low:g} to {high:g}", value)
        return np.asarray(self.design.matrix_with(**values).mean(axis=0))

    def near(self, profile: Mapping[str, Any]) -> BoolArray:
        """Return the uses with the levels of a profile, and the third nearest to its numbers."""
        near = np.ones(len(self.uses), dtype=np.bool_)
        for name, value in profile.items():
            column = self.design.variables[name]
            if hasattr(column, "cat"):
                near &= (column == str(value)).to_numpy()
            else:
                distance = np.abs(column - value).to_numpy()
                near &= distance <= np.quantile(distance, 1 / 3)
        return near


@dataclass(frozen=True, eq=False, repr=False)
class UsePrediction(Displayed):
    """The use of a word that is predicted for a profile, or what sets it apart from another.

    Parameters
    ----------
    word : str
    profile : mapping of str to object
    vector : float64 ndarray of shape (width,)
        The predicted vector, or the difference.
    words : tuple of str
        Words with the nearest mean vectors, or those that are nearer to this profile than to the
        other.
    similarities : float64 ndarray of shape (n_words,)
        Cosines of the words, or their differences.
    uses : DataFrame
        Uses with such a profile nearest to the vector, or furthest in the direction of the
        difference, with the columns of `WordNeighbors.uses`.
    """

    word: str
    profile: Mapping[str, Any]
    vector: Float64Array
    words: tuple[str, ...]
    similarities: Float64Array
    uses: pd.DataFrame

    @property
    def label(self) -> str:
        """The profile in words."""
        return ", ".join(f"{name} {value}" for name, value in self.profile.items()) or "all uses"

    def _summary(self) -> str:
        return f"{self.word!r}, {self.label}: {', '.join(self.words[:8])}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per rank: word, similarity and passage."""
        passages = self.uses["sentence"].tolist()
        columns = {"word": self.words, "similarity": self.similarities, "passage": passages}
        frame = pd.DataFrame({name: pd.Series(cells) for name, cells in columns.items()})
        return frame.rename_axis("rank").reset_index().assign(rank=lambda one: one["rank"] + 1)


@dataclass(frozen=True, eq=False, repr=False)
class UseDifference(Displayed):
    """What sets the uses of two profiles apart.

    Parameters
    ----------
    first, second : UsePrediction
        Words and passages of each profile beside the other; the vectors are the difference.
    """

    first: UsePrediction
    second: UsePrediction

    def _summary(self) -> str:
        return f"{self.first._summary()} / {self.second._summary()}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per profile and rank: word, similarity and passage."""
        sides = {one.label: one.to_frame() for one in (self.first, self.second)}
        return pd.concat(sides, names=["profile"]).reset_index("profile").reset_index(drop=True)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class UseRegression(Displayed):
    """Regressions of the uses of words on covariates.

    Parameters
    ----------
    table : DataFrame
        The effects, see `to_frame`.
    formula, units, encoder : str
    layers : tuple of int
    fits : tuple of WordFit
    vocabulary : tuple of str
        Words with five uses or more.
    word_vectors : float32 ndarray of shape (n_words, width)
        The mean vector of the uses of each, of length one.
    decisions : tuple of Decision
    """

    table: pd.DataFrame
    formula: str
    units: str
    encoder: str
    layers: tuple[int, ...]
    fits: tuple[WordFit, ...]
    vocabulary: tuple[str, ...]
    word_vectors: FloatArray
    decisions: tuple[Decision, ...] = ()

    _n_rows_displayed = SCORE_ROWS

    def _summary(self) -> str:
        words = ", ".join(fit.word for fit in self.fits)
        return f"{words} ~ {self.formula}: {len(self.table)} effects, {self.encoder}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per effect of a covariate on the uses of a word.

        Returns
        -------
        DataFrame
            Columns word; term, the variable or interaction; level, which is compared with the
            reference; norm, low and high, the length of the difference, corrected for the number of
            uses, and its 95 % interval, where vectors have length one; p, by permutation; q, the
            false discovery rate over the words; n, the uses; n_units, the independent units behind
            them. Without a level, norm is the root mean square distance of the uses predicted for
            all values of the variable, or the part of the prediction that only the interaction
            explains.
        """
        return self.table.copy()

    def fit_of(self, word: str | None = None) -> WordFit:
        """Return the regression of one word; None if there is only one."""
        fits = [fit for fit in self.fits if word in (None, fit.word)]
        if len(fits) != 1:
            names = ", ".join(repr(fit.word) for fit in self.fits)
            raise InputError("word", f"one of {names}", word)
        return fits[0]

    def predict(
        self, profile: Mapping[str, Any], word: str | None = None, *, k: int = 10
    ) -> UsePrediction:
        """Predict the use of a word for a profile, such as ``{"party": "Left", "year": 1999}``.

        Variables without a value are averaged over the uses.

        Parameters
        ----------
        profile : mapping of str to object
        word : str, optional
            Needed if there are several.
        k : int
            Words and passages.

        Raises
        ------
        InputError
            If a variable or level does not exist, or a number is outside of those of the uses.
        """
        fit = self.fit_of(word)
        vector = fit.row(profile) @ fit.coefficients
        cosines = self.word_vectors @ vector / np.linalg.norm(vector)
        return self._described(fit, profile, vector, cosines, k)

    def difference(
        self,
        first: Mapping[str, Any],
        second: Mapping[str, Any],
        word: str | None = None,
        *,
        k: int = 10,
    ) -> UseDifference:
        """Compare the uses of a word that are predicted for two profiles.

        Of the words nearest to either prediction, those are listed that are nearer to one of them.

        Parameters
        ----------
        first, second, word, k
            As for `predict`.
        """
        fit = self.fit_of(word)
        ends = [fit.row(profile) @ fit.coefficients for profile in (first, second)]
        cosines = [self.word_vectors @ end / np.linalg.norm(end) for end in ends]
        near = np.zeros(len(self.vocabulary), dtype=np.bool_)
        for one in cosines:
            near[np.argsort(-one, kind="stable")[:CANDIDATES]] = True
        change = np.where(near, cosines[0] - cosines[1], 0.0)
        vector = ends[0] - ends[1]
        return UseDifference(
            self._described(fit, first, vector, change, k),
            self._described(fit, second, -vector, -change, k),
        )

    def _described(
        self,
        fit: WordFit,
        profile: Mapping[str, Any],
        vector: Float64Array,
        scores: Float64Array,
        k: int,
    ) -> UsePrediction:
        best = np.argsort(-scores, kind="stable")[:k]
        along = np.where(fit.near(profile), fit.vectors @ vector, -np.inf)
        order = [place for place in np.argsort(-along, kind="stable") if along[place] > -np.inf]
        sentences = fit.uses["sentence"].tolist()
        place_of_sentence = {sentences[place]: place for place in reversed(order[: 3 * k])}
        places = list(reversed(place_of_sentence.values()))[:k]
        return UsePrediction(
            word=fit.word,
            profile=dict(profile),
            vector=vector,
            words=tuple(self.vocabulary[place] for place in best),
            similarities=scores[best],
            uses=fit.uses.iloc[places].reset_index(drop=True),
        )
