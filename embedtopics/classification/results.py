"""What a classifier was measured to do, and what share of a corpus each class is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from embedtopics._utils.display import Displayed
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """The error among predictions for which a classifier is sure enough.

    Parameters
    ----------
    coverage, error, high, thresholds : float64 ndarray of shape (n_points,)
        Share of the texts that are predicted, the share of errors among these, an upper bound of
        it (all bounds hold together in 95 % of the samples of labels), and the confidence from
        which on texts are predicted.
    n : int
        Labelled texts that they come from.
    """

    coverage: Float64Array
    error: Float64Array
    high: Float64Array
    thresholds: Float64Array
    n: int


@dataclass(frozen=True)
class Score:
    """One figure of a classifier or a baseline (`of`), with its 95 % interval.

    `name` is the class, None for all together; `n` its texts, or all.
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
    """How well a classifier does on texts that it has not learned from.

    Parameters
    ----------
    classes : tuple
    head : str
    scores : tuple of Score
        Of all classes together and of each, with 95 % intervals over texts; near-copies are drawn
        together.
    baselines : tuple of Score
        Of the most frequent class, and of logistic regression on TF-IDF.
    confusion : float64 ndarray of shape (n_classes, n_classes) or None
        True classes in rows, predicted ones in columns; None for several labels a text.
    calibration_error : float
        Expected calibration error of the likeliest class.
    calibration : float64 ndarray of shape (n_bins, 3)
        Mean confidence, share right and texts of bins of equal size.
    risk_coverage : RiskCoverage or None
    n, n_groups : int
        Texts, and groups of near-copies among them.
    n_looks : int
        How often this classifier, or one saved to the same folder, was measured on these texts,
        this time included.
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
        """Return a figure of a class, or of all together."""
        for one in self.scores:
            if (one.metric, one.name) == (metric, name):
                return one
        known = sorted({one.metric for one in self.scores})
        raise InputError("metric", f"one of {', '.join(known)}, and a class or None", metric)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each figure: of whom, class, metric, value, low, high, n."""
        import pandas as pd

        rows = [vars(one) for one in (*self.scores, *self.baselines)]
        frame = pd.DataFrame(rows).rename(columns={"name": "class"})
        return frame[["of", "class", "metric", "value", "low", "high", "n"]]

    def _summary(self) -> str:
        metric = "quadratic kappa" if self.head == "ordinal" else "macro F1"
        one, looks = self.score(metric), "1 look" if self.n_looks == 1 else f"{self.n_looks} looks"
        best = max((b.value for b in self.baselines if b.metric == metric), default=float("nan"))
        return (
            f"{metric} {one.value:.3f} [{one.low:.3f}, {one.high:.3f}] on {self.n:,} texts, "
            f"best baseline {best:.3f}, {looks} at them"
        )


@dataclass(frozen=True)
class ShareOfClass:
    """The share of one class (`name`) in a corpus or a group of it.

    `share` is the corrected estimate between the ends of its 95 % interval, `labels_share` that of
    the labels alone, `predicted` the share of the predicted class, which is biased. The residual
    variance is divided by the labels in the variance of the estimate, that of predictions is not.
    """

    group: str | None
    name: Any
    n: int
    n_labelled: int
    share: float
    low: float
    high: float
    labels_share: float
    labels_low: float
    labels_high: float
    predicted: float
    residual_variance: float
    prediction_variance: float


@dataclass(frozen=True, eq=False, repr=False)
class Prevalence(Displayed):
    """What share of a corpus each class is.

    Parameters
    ----------
    shares : tuple of ShareOfClass
    method : {"ppi", "design", "adjusted", "em"}
    by : str or None
        What the groups are of.
    decisions : tuple of Decision
    """

    shares: tuple[ShareOfClass, ...]
    method: str
    by: str | None
    decisions: tuple[Decision, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each group and class."""
        import pandas as pd

        frame = pd.DataFrame([vars(one) for one in self.shares])
        frame = frame.rename(columns={"name": "class"})
        return frame.drop(columns=["residual_variance", "prediction_variance"])

    def further_labels(self, width: float) -> pd.DataFrame:
        """Return how many labels more would make each interval as narrow as `width`.

        Infinite where predictions would have to be of more texts; NaN where nothing is known of
        the variance. The labels must be drawn at random as the first ones. Intervals are for texts
        of this kind, of which the corpus is a sample: more may be needed than it has texts.

        Raises
        ------
        InputError
            If `width` is not between 0 and 1.
        """
        from embedtopics._utils.checks import checked_level
        from embedtopics.classification._prevalence import Share, labels_needed

        checked_level(width, "width")
        frame = self.to_frame()[["group", "class", "n_labelled", "low", "high"]].copy()
        parts = [
            Share(one.share, one.residual_variance, one.prediction_variance, one.n_labelled)
            for one in self.shares
        ]
        frame["further_labels"] = [labels_needed(part, width) for part in parts]
        return frame

    def _summary(self) -> str:
        found = [f"{one.name} {one.share:.1%} [{one.low:.1%}, {one.high:.1%}]"
                 for one in self.shares[:3]]  # fmt: skip
        more = ", ..." if len(self.shares) > 3 else ""
        return f"{self.method}: {', '.join(found)}{more}"
