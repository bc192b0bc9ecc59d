"""The shape of the spaces that an encoder's layers span."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array
from embedtopics.results.inputs import Decision

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Contextualization", "GeometryScore", "LayerNorms", "LayerSimilarity"]

Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class GeometryScore:
    """One figure of one layer.

    Parameters
    ----------
    measure : str
    layer : int
    value, low, high : float
        The figure, and its 95 % interval.
    n : int
        Words or sentences that it is a mean over.
    """

    measure: str
    layer: int
    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, eq=False)
class Contextualization:
    """How much the vectors of a word depend on its context, layer by layer.

    Parameters
    ----------
    encoder : str
    layers : tuple of int
    scores : tuple of GeometryScore
        Measures "self-similarity", "intra-sentence similarity", "maximum explainable variance";
        the baselines "anisotropy" (mean cosine of different words in different sentences) and
        "chance variance" (maximum explainable variance of as many uses drawn from all words); and
        "corrected self-similarity", "corrected intra-sentence similarity" and "corrected maximum
        explainable variance", the differences.
    words : tuple of str
        Those that were looked at.
    n_uses : int32 ndarray of shape (n_words,)
        Uses of each that were looked at.
    self_similarity, explainable : float64 ndarray of shape (n_layers, n_words)
        Of each word; nothing is subtracted.
    decisions : tuple of Decision
    """

    encoder: str
    layers: tuple[int, ...]
    scores: tuple[GeometryScore, ...]
    words: tuple[str, ...]
    n_uses: Int32Array
    self_similarity: Float64Array
    explainable: Float64Array
    decisions: tuple[Decision, ...] = field(default=())

    def of(self, measure: str) -> tuple[GeometryScore, ...]:
        """Return the figures of one measure by layer.

        Raises
        ------
        InputError
            If there is no such measure.
        """
        found = [score for score in self.scores if score.measure == measure]
        if not found:
            names = ", ".join(dict.fromkeys(score.measure for score in self.scores))
            raise InputError(f"expected one of the measures {names}; got {measure!r}")
        return tuple(sorted(found, key=lambda score: score.layer))

    def to_frame(self) -> pd.DataFrame:
        """Return the figures as a table: measure, layer, value, low, high and n."""
        import pandas as pd

        rows = [(s.measure, s.layer, s.value, s.low, s.high, s.n) for s in self.scores]
        return pd.DataFrame(rows, columns=["measure", "layer", "value", "low", "high", "n"])

    def words_frame(self) -> pd.DataFrame:
        """Return a row a layer and word: layer, word, n_uses, self_similarity, explainable."""
        import pandas as pd

        n_layers, n_words = self.self_similarity.shape
        return pd.DataFrame(
            {
                "layer": np.repeat(self.layers, n_words),
                "word": list(self.words) * n_layers,
                "n_uses": np.tile(self.n_uses, n_layers),
                "self_similarity": self.self_similarity.ravel(),
                "explainable": self.explainable.ravel(),
            }
        )


@dataclass(frozen=True, eq=False)
class LayerSimilarity:
    """How alike the layers of one or two encoders are on the same units.

    Parameters
    ----------
    measure : {"linear CKA", "debiased linear CKA"}
    encoder_a, encoder_b : str
    layers_a, layers_b : tuple of int
    values : float64 ndarray of shape (n_layers_a, n_layers_b)
        1 for layers that differ by a rotation, a shift and a scale alone. Near 0 for unrelated
        ones, if debiased.
    errors : float64 ndarray of shape (n_layers_a, n_layers_b)
        Standard errors, by a jackknife over groups of texts; NaN where texts are too few.
    n_units, n_texts : int
        That were compared.
    decisions : tuple of Decision
    """

    measure: str
    encoder_a: str
    encoder_b: str
    layers_a: tuple[int, ...]
    layers_b: tuple[int, ...]
    values: Float64Array
    errors: Float64Array
    n_units: int
    n_texts: int
    decisions: tuple[Decision, ...] = field(default=())

    def to_frame(self) -> pd.DataFrame:
        """Return a row a pair of layers: layer_a, layer_b, value and error."""
        import pandas as pd

        return pd.DataFrame(
            {
                "layer_a": np.repeat(self.layers_a, len(self.layers_b)),
                "layer_b": np.tile(self.layers_b, len(self.layers_a)),
                "value": self.values.ravel(),
                "error": self.errors.ravel(),
            }
        )


@dataclass(frozen=True, eq=False)
class LayerNorms:
    """How long the vectors of each layer are, and which dimensions dominate them.

    Parameters
    ----------
    encoder : str
    layers : tuple of int
    n_units : int
    mean, sd, low, median, high : float64 ndarray of shape (n_layers,)
        Of the Euclidean norms; low and high hold 95 % of the units between them.
    mean_cosine : float64 ndarray of shape (n_layers,)
        Of two units of different sentences.
    contributions : float64 ndarray of shape (n_layers, width)
        What each dimension adds to that; a row sums to the mean cosine.
    dimension_means, dimension_sds : float64 ndarray of shape (n_layers, width)
        Of the entries of each dimension.
    is_outlier : bool ndarray of shape (n_layers, width)
        Dimensions whose mean lies more than three standard deviations from that of all dimensions.
    decisions : tuple of Decision
    """

    encoder: str
    layers: tuple[int, ...]
    n_units: int
    mean: Float64Array
    sd: Float64Array
    low: Float64Array
    median: Float64Array
    high: Float64Array
    mean_cosine: Float64Array
    contributions: Float64Array
    dimension_means: Float64Array
    dimension_sds: Float64Array
    is_outlier: npt.NDArray[np.bool_]
    decisions: tuple[Decision, ...] = field(default=())

    def to_frame(self) -> pd.DataFrame:
        """Return a row a layer.

        Returns
        -------
        DataFrame
            Columns layer, mean, sd, low, median, high, mean_cosine, n_outliers, top_dimension
            and top_share: the dimension that adds most to the mean cosine, and its share of it.
        """
        import pandas as pd

        top = self.contributions.argmax(axis=1)
        share = np.full(len(top), np.nan)
        largest = self.contributions[np.arange(len(top)), top]
        np.divide(largest, self.mean_cosine, out=share, where=self.mean_cosine > 0)
        names = ("mean", "sd", "low", "median", "high", "mean_cosine")
        frame = pd.DataFrame(
            {"layer": self.layers, **{name: getattr(self, name) for name in names}}
        )
        return frame.assign(
            n_outliers=self.is_outlier.sum(axis=1), top_dimension=top, top_share=share
        )

    def dimensions_frame(self, n: int = 10) -> pd.DataFrame:
        """Return the dimensions that add most to the mean cosine of each layer, largest first.

        Returns
        -------
        DataFrame
            Columns layer, rank, dimension, contribution, mean, sd and is_outlier.
        """
        import pandas as pd

        rows = []
        for place, layer in enumerate(self.layers):
            order = np.argsort(-self.contributions[place], kind="stable")[:n]
            rows += [
                (layer, rank, d, float(self.contributions[place, d]),
                 float(self.dimension_means[place, d]), float(self.dimension_sds[place, d]),
                 bool(self.is_outlier[place, d]))
                for rank, d in enumerate(order.tolist(), start=1)
            ]  # fmt: skip
        columns = ["layer", "rank", "dimension", "contribution", "mean", "sd", "is_outlier"]
        return pd.DataFrame(rows, columns=columns)
