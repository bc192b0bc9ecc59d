"""Results of classification: scores of a classifier, and shares of classes in a corpus."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from embedtopics._utils.checks import checked_level
from embedtopics._utils.display import Displayed
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
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
    """One figure of a classifier or a baseline (`of`), with its 95 % interval.

    `name` is the class, None for all classes together; `n` is the number of its texts.
    """

    of: str
    name: Any
    metric: str
    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, eq=False, repr=False)
class ClassificationReport(Displayed):
    """The scores of a classifier on labelled texts that it was not fitted on.

    Parameters
    ----------
    classes : tuple
    head : str
    scores : tuple of Score
        For all classes together and for each class, with 95 % bootstrap intervals over texts;
        near-duplicates are resampled together.
    baselines : tuple of Score
        Scores of the most frequent class, and of logistic regression on TF-IDF.
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
    decisions : tuple of Decision
    """

    classes: tuple[Any, ...]
    head: str
    scores: tuple[Score, ...]
    baselines: tuple[Score, ...]
    confusion: Float64Array | None
    calibration_error: float
    calibration: Float64Array
    risk_coverage: RiskCoverage | None
    n: int
    n_groups: int
    n_looks: int
    decisions: tuple[Decision, ...] = ()

    def score(self, metric: str, name: Any = None) -> Score:
        """Return one figure of a class, or of all classes together."""
        for score in self.scores:
            if (score.metric, score.name) == (metric, name):
                return score
        metrics = sorted({score.metric for score in self.scores})
        raise InputError("metric", f"one of {', '.join(metrics)}, and a class or None", metric)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each figure: of, class, metric, value, low, high, n."""
        import pandas as pd

        rows = [vars(score) for score in (*self.scores, *self.baselines)]
        frame = pd.DataFrame(rows).rename(columns={"name": "class"})
        return frame[["of", "class", "metric", "value", "low", "high", "n"]]

    def _summary(self) -> str:
        metric = "quadratic kappa" if self.head == "ordinal" else "macro F1"
        score, times = self.score(metric), "once" if self.n_looks == 1 else f"{self.n_looks} times"
        best = max((b.value for b in self.baselines if b.metric == metric), default=math.nan)
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


_UNKNOWN = Share(math.nan, math.nan, math.nan, 0)


@dataclass(frozen=True)
class ShareOfClass:
    """The share of one class (`name`) in a corpus or in a group of it.

    Parameters
    ----------
    group : str or None
    name : str or int
        The class.
    n, n_labelled : int
        Number of texts, and of labelled texts.
    share, low, high : float
        The corrected estimate and its 95 % interval.
    predicted : float
        Share of the predicted class, which is biased.
    labels_share, labels_low, labels_high : float
        The estimate from the labels alone; NaN without labels.
    estimate : Share
        The corrected estimate with the parts of its variance; NaN without labels.
    """

    group: str | None
    name: Any
    n: int
    n_labelled: int
    share: float
    low: float
    high: float
    predicted: float
    labels_share: float = math.nan
    labels_low: float = math.nan
    labels_high: float = math.nan
    estimate: Share = _UNKNOWN


@dataclass(frozen=True, eq=False, repr=False)
class Prevalence(Displayed):
    """The share of each class in a corpus.

    Parameters
    ----------
    shares : tuple of ShareOfClass
    method : {"ppi", "design", "adjusted", "em"}
    by : str or None
        Column of the groups.
    decisions : tuple of Decision
    """

    shares: tuple[ShareOfClass, ...]
    method: str
    by: str | None
    decisions: tuple[Decision, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each group and class."""
        import pandas as pd

        frame = pd.DataFrame([vars(share) for share in self.shares])
        columns = ["group", "class", "n", "n_labelled", "share", "low", "high"]
        columns += ["labels_share", "labels_low", "labels_high", "predicted"]
        return frame.rename(columns={"name": "class"})[columns]

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
        frame["further_labels"] = [one.estimate.labels_needed(width) for one in self.shares]
        return frame

    def _summary(self) -> str:
        first = [
            f"{one.name} {one.share:.1%} [{one.low:.1%}, {one.high:.1%}]" for one in self.shares[:3]
        ]
        more = ", ..." if len(self.shares) > 3 else ""
        return f"{self.method}: {', '.join(first)}{more}"
