"""Results of classification: scores of a classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from embedtopics._utils.display import Displayed, html_table
from embedtopics.protocols import Float64Array
from embedtopics.results import Decision

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ClassificationReport", "RiskCoverage"]


@dataclass(frozen=True, eq=False, repr=False)
class RiskCoverage(Displayed):
    """The error among the predictions above a confidence.

    Parameters
    ----------
    coverage, error, high, thresholds : float64 ndarray of shape (n_points,)
        Share of the texts that are predicted, share of errors among them, upper bound of this
        share (all bounds hold jointly in 95 % of the samples of labels), and lowest confidence of
        the predicted texts.
    n : int
        Number of labelled texts.

    Examples
    --------
    >>> import embedtopics as et
    >>> texts = ["ripe plums", "late trains", "sweet pears", "slow trains"]
    >>> labels = ["fruit", "rail", "fruit", "rail"]
    >>> classifier = et.TextClassifier("tfidf").fit(texts, labels)
    >>> classifier.risk_coverage().to_frame().columns.tolist()
    ['coverage', 'error', 'high', 'threshold']
    """

    coverage: Float64Array
    error: Float64Array
    high: Float64Array
    thresholds: Float64Array
    n: int

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each point: coverage, error, high and threshold."""
        import pandas as pd

        columns = {"coverage": self.coverage, "error": self.error, "high": self.high}
        return pd.DataFrame({**columns, "threshold": self.thresholds})

    def _summary(self) -> str:
        return f"error {self.error[-1]:.3f} at full coverage, on {self.n:,} labelled texts"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ClassificationReport(Displayed):
    """The scores of a classifier on labelled texts that it was not fitted on.

    Parameters
    ----------
    table : DataFrame
        The scores, see `to_frame`.
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

    Examples
    --------
    >>> import embedtopics as et
    >>> texts = ["ripe plums", "late trains", "sweet pears", "slow trains"]
    >>> labels = ["fruit", "rail", "fruit", "rail"]
    >>> classifier = et.TextClassifier("tfidf").fit(texts, labels)
    >>> test = ["plum jam with plums", "many trains"], ["fruit", "rail"]
    >>> report = et.classification.evaluate(classifier, test, (texts, labels))
    >>> report.classes, report.n
    (('fruit', 'rail'), 2)
    >>> report.confusion.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    table: pd.DataFrame
    classes: tuple[Any, ...]
    head: str
    confusion: Float64Array | None
    calibration_error: float
    calibration: Float64Array
    risk_coverage: RiskCoverage | None
    n: int
    n_groups: int
    n_looks: int

    decisions: tuple[Decision, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each score.

        The rows are the scores of the classifier for all classes together and for each class, then
        those of the baselines: the most frequent class, logistic regression on TF-IDF and, for a
        trained encoder, on its vectors before training ("frozen").

        Returns
        -------
        DataFrame
            Columns of ("classifier" or the name of a baseline), class (None for all classes
            together), metric, value, low and high (95 % bootstrap intervals over texts, in which
            near-duplicates are resampled together) and n, the number of texts.
        """
        return self.table.copy()

    def _summary(self) -> str:
        metric = "quadratic kappa" if self.head == "ordinal" else "macro F1"
        of_all = self.table[(self.table["metric"] == metric) & self.table["class"].isna()]
        score = of_all.iloc[0]
        best = of_all["value"].iloc[1:].max()
        times = "once" if self.n_looks == 1 else f"{self.n_looks} times"
        return (
            f"{metric} {score['value']:.3f} [{score['low']:.3f}, {score['high']:.3f}] on "
            f"{self.n:,} texts, best baseline {best:.3f}, evaluated {times}"
        )

    def _repr_html_(self) -> str:
        return html_table(self.table, f"ClassificationReport: {self._summary()}", n_rows=30)
