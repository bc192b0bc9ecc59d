"""Results of classification: scores of a classifier."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from embedtopics.evaluation.results import ScoreTable
from embedtopics.protocols import Float64Array

if TYPE_CHECKING:
    pass


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
        baselines: the most frequent class, logistic regression on TF-IDF and, for a trained
        encoder, on its vectors before training ("frozen"). The 95 % intervals
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
