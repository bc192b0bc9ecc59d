"""Results of classification: scores of a classifier, and shares of classes in a corpus."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from embedtopics._utils.checks import checked_level
from embedtopics.evaluation.results import ScoreTable
from embedtopics.protocols import Float64Array

if TYPE_CHECKING:
    import pandas as pd

_Z = 1.959964


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """The error among the predictions above a confidence.

    Parameters
    ----------
    coverage, error, high, thresholds : float64 ndarray of shape (n_points,)
        Share of the texts that are predicted, share of errors among them, upper bound of this
        share (all bounds hold jointly in 95 % of the samples of labels), and lowest confidence of
        the predicted texts.
    n : int
        Number of labelled texts.
    """

    coverage: Float64Array
    error: Float64Array
    high: Float64Array
    thresholds: Float64Array
    n: int


@dataclass(frozen=True)
class Score:
    """One figure of a classifier or a baseline, with its 95 % interval.

    Parameters
    ----------
    of : str
        "classifier" or the name of a baseline.
    name : str or int or None
        The class; None for all classes together.
    metric : str
    value, low, high : float
    n : int
        Number of texts.
    """

    of: str
    name: Any = field(metadata={"column": "class"})
    metric: str
    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ClassificationReport(ScoreTable[Score]):
    """The scores of a classifier on labelled texts that it was not fitted on.

    Parameters
    ----------
    rows : tuple of Score
        Scores of the classifier for all classes together and for each class, then scores of the
        baselines: the most frequent class, and logistic regression on TF-IDF. The 95 % intervals
        are bootstrap intervals over texts; near-duplicates are resampled together.
    decisions : tuple of Decision
    classes : tuple
    head : str
    confusion : float64 ndarray of shape (n_classes, n_classes) or None
        True classes in rows, predicted classes in columns; None for "multilabel".
    calibration_error : float
        Expected calibration error of the most probable class.
    calibration : float64 ndarray of shape (n_bins, 3)
        Mean confidence, accuracy and number of texts of bins of equal size.
    risk_coverage : RiskCoverage or None
    n, n_groups : int
        Number of texts, and of groups of near-duplicates.
    n_looks : int
        Number of evaluations of this classifier on these texts, including this one and those of
        classifiers saved to the same folder.
    """

    classes: tuple[Any, ...]
    head: str
    confusion: Float64Array | None
    calibration_error: float
    calibration: Float64Array
    risk_coverage: RiskCoverage | None
    n: int
    n_groups: int
    n_looks: int

    row_type = Score

    def _summary(self) -> str:
        metric = "quadratic kappa" if self.head == "ordinal" else "macro F1"
        score, *baselines = self.of(metric=metric, name=None)
        best = max((one.value for one in baselines), default=math.nan)
        times = "once" if self.n_looks == 1 else f"{self.n_looks} times"
        return (
            f"{metric} {score.value:.3f} [{score.low:.3f}, {score.high:.3f}] on {self.n:,} texts, "
            f"best baseline {best:.3f}, evaluated {times}"
        )


class Share(NamedTuple):
    """An estimated share; its variance is ``residual / n + predictions``.

    `residual` is the variance of the residuals of `n` labels, `predictions` the variance that the
    predictions of other texts add.
    """

    value: float
    residual: float
    predictions: float
    n: int

    @property
    def variance(self) -> float:
        """The variance of the estimate."""
        return self.residual / max(self.n, 1) + self.predictions

    def labels_needed(self, width: float) -> float:
        """Return the number of further labels for an interval of `width`; infinite if none do."""
        allowed = (width / (2 * _Z)) ** 2 - self.predictions
        if np.isnan(self.residual):
            return np.nan
        if allowed <= 0:
            return np.inf
        return max(0.0, float(np.ceil(self.residual / allowed)) - self.n)


@dataclass(frozen=True, kw_only=True)
class ShareOfClass:
    """The share of one class in a corpus or in a group of it.

    Parameters
    ----------
    group : str or None
    name : str or int
        The class.
    n, n_labelled : int
        Number of texts, and of labelled texts.
    share, low, high : float
        The corrected estimate and its 95 % interval.
    labels_share, labels_low, labels_high : float
        The estimate from the labels alone; NaN without labels.
    predicted : float
        Share of the predicted class, which is biased.
    estimate : Share or None
        The corrected estimate with the parts of its variance; None without labels.
    """

    group: str | None
    name: Any = field(metadata={"column": "class"})
    n: int
    n_labelled: int
    share: float
    low: float
    high: float
    labels_share: float = math.nan
    labels_low: float = math.nan
    labels_high: float = math.nan
    predicted: float
    estimate: Share | None = field(default=None, metadata={"column": None})


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Prevalence(ScoreTable[ShareOfClass]):
    """The share of each class in a corpus.

    Parameters
    ----------
    rows : tuple of ShareOfClass
    decisions : tuple of Decision
    method : {"ppi", "design", "adjusted"}
    by : str or None
        Column of the groups.
    """

    method: str
    by: str | None = None

    row_type = ShareOfClass

    def further_labels(self, width: float) -> pd.DataFrame:
        """Return the number of further labels that would narrow each interval to `width`.

        It is infinite if more predictions are needed as well, and NaN if the variance is unknown.
        The labels must be drawn at random like the first ones. Intervals treat the corpus as a
        sample, so more labels may be needed than the corpus has texts.

        Raises
        ------
        InputError
            `width` is not between 0 and 1.
        """
        checked_level(width, "width")
        frame = self.to_frame()[["group", "class", "n_labelled", "low", "high"]].copy()
        frame["further_labels"] = [
            math.nan if one.estimate is None else one.estimate.labels_needed(width) for one in self
        ]
        return frame

    def _summary(self) -> str:
        first = [
            f"{one.name} {one.share:.1%} [{one.low:.1%}, {one.high:.1%}]" for one in self.rows[:3]
        ]
        more = ", ..." if len(self) > 3 else ""
        return f"{self.method}: {', '.join(first)}{more}"
