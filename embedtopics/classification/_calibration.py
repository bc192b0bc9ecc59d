"""Probabilities that mean what they say, and predictions held back where they would not hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_level
from embedtopics.classification._heads import log_loss, probabilities
from embedtopics.classification.results import RiskCoverage
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array, Int64Array

CALIBRATIONS = (None, "temperature", "isotonic")

N_COVERAGES = 10
"""Coverages at which the error is bounded: as many bounds hold together (Bonferroni)."""

RISK_CONFIDENCE = 0.95
"""Share of samples of labels in which the largest error that is allowed holds."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """From scores to probabilities, learned on texts that their heads had not seen.

    "temperature" divides scores by one number (Guo et al. 2017); "isotonic" maps the probability
    of each class by a rising step function, `knots` of (2, n) each (Zadrozny and Elkan 2002).
    """

    head: str
    temperature: float = 1.0
    knots: tuple[Float64Array, ...] = ()

    def apply(self, scores: Float64Array) -> Float64Array:
        """Return probabilities (n_texts, n_classes) of scores (n_texts, n_outputs)."""
        found = probabilities(self.head, scores / self.temperature)
        if not self.knots:
            return found
        columns = [np.interp(c, *k) for c, k in zip(found.T, self.knots, strict=True)]
        mapped = np.column_stack(columns)
        if self.head == "multilabel":
            return mapped
        total = mapped.sum(axis=1, keepdims=True)
        return np.where(total > 0, mapped / np.where(total > 0, total, 1.0), found)


def calibrate(kind: str | None, head: str, scores: Float64Array, codes: Int64Array) -> Calibration:
    """Learn a calibration from scores of left-out texts."""
    if kind is None or not len(scores):
        return Calibration(head)
    if kind == "temperature":
        from scipy.optimize import minimize_scalar

        found = minimize_scalar(
            lambda t: log_loss(head, scores / np.exp(t), codes), bounds=(-4, 4), method="bounded"
        )
        return Calibration(head, float(np.exp(found.x)))
    from sklearn.isotonic import IsotonicRegression

    plain, knots = probabilities(head, scores), []
    truth = codes if codes.ndim == 2 else np.eye(plain.shape[1], dtype=np.int64)[codes]
    for column, is_class in zip(plain.T, truth.T, strict=True):
        model = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(column, is_class)
        knots.append(np.stack([model.X_thresholds_, model.y_thresholds_]).astype(np.float64))
    return Calibration(head, 1.0, tuple(knots))


def calibration_error(
    confidence: npt.ArrayLike, is_right: npt.ArrayLike, n_bins: int = 10
) -> tuple[float, Float64Array]:
    """Return the expected calibration error, and the bins (n_bins, 3): confidence, share right, n.

    Of bins with equally many texts: the mean distance of confidence and share right, by size
    (Naeini et al. 2015; Nixon et al. 2019 for bins of equal mass).
    """
    sure = np.asarray(confidence, dtype=np.float64)
    right = np.asarray(is_right, dtype=np.float64)
    order = np.argsort(sure, kind="stable")
    parts = [part for part in np.array_split(order, min(n_bins, len(order))) if len(part)]
    bins = np.array([[sure[part].mean(), right[part].mean(), len(part)] for part in parts])
    bins = bins.reshape(-1, 3)
    weights = bins[:, 2] / max(bins[:, 2].sum(), 1)
    return float(np.abs(bins[:, 0] - bins[:, 1]) @ weights), bins


def risk_coverage(confidence: npt.ArrayLike, is_right: npt.ArrayLike) -> RiskCoverage:
    """Return the error among the surest texts for each share of them that is predicted.

    `high` are upper bounds of the error at ten coverages that hold together in 95 % of the samples
    of labels: Clopper and Pearson's, each at a tenth of the rest (Geifman and El-Yaniv 2017,
    "Selective classification for deep neural networks", section 3).
    """
    from scipy.stats import beta

    sure = np.asarray(confidence, dtype=np.float64)
    right = np.asarray(is_right, dtype=np.bool_)
    order = np.argsort(-sure, kind="stable")
    n = len(order)
    wrong = np.cumsum(~right[order])
    ends = np.unique(np.round(np.linspace(0, n, N_COVERAGES + 1)[1:]).astype(np.int64))
    # Texts that are as sure as the last one are predicted along with it.
    ends = np.unique(np.searchsorted(-sure[order], -sure[order][ends - 1], side="right"))
    level = 1 - (1 - RISK_CONFIDENCE) / N_COVERAGES
    high = beta.ppf(level, wrong[ends - 1] + 1, ends - wrong[ends - 1])
    high = np.where(wrong[ends - 1] == ends, 1.0, high)
    thresholds = sure[order][ends - 1]
    return RiskCoverage(ends / n, wrong[ends - 1] / ends, high, thresholds, n)


def threshold_for(max_error: float, curve: RiskCoverage) -> float:
    """Return the least confidence at which the error holds; infinite where it holds nowhere."""
    checked_level(max_error, "max_error")
    holds = np.flatnonzero(curve.high <= max_error)
    return float(curve.thresholds[holds[-1]]) if len(holds) else np.inf


def confidences(
    probabilities: Float64Array, codes: Int64Array | None = None
) -> tuple[Float64Array, npt.NDArray[Any]]:
    """Return how sure predictions are, and whether they are right where `codes` are given."""
    if probabilities.shape[1:] and codes is not None and codes.ndim == 2:
        raise InputError("head", '"softmax" or "ordinal" where predictions are held back',
                         "multilabel")  # fmt: skip
    right = probabilities.argmax(axis=1) == codes if codes is not None else np.empty(0)
    return probabilities.max(axis=1), right
