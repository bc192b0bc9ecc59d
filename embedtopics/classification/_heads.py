"""Linear heads on vectors: fitting, cross-validation, calibration and abstention."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_between
from embedtopics.classification.results import RiskCoverage
from embedtopics.corpus._texts import normalize_text
from embedtopics.errors import InputError
from embedtopics.evaluation._labels import stratified_folds
from embedtopics.evaluation._pairs import row_dots
from embedtopics.protocols import Float64Array, Int32Array, Int64Array
from embedtopics.results import Decision

STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Inverse strengths of the penalty in the cross-validation, for vectors of total variance 1."""

DEFAULT_STRENGTH = 3.0
"""Used without cross-validation: the best value on news groups and titles, as in `evaluation`."""

MAX_STEPS = 500


@dataclass(frozen=True, eq=False)
class LinearHead:
    """A linear map to one score per class; "ordinal": the log-odds of exceeding each threshold."""

    kind: str
    weights: Float64Array  # (n_outputs, n_dimensions)
    bias: Float64Array  # (n_outputs,)

    def scores(self, vectors: Any) -> Float64Array:
        """Return the scores of vectors, (n_texts, n_outputs)."""
        width = self.weights.shape[1]
        if vectors.shape[1] != width:
            expected = f"that of the fit, whose vectors have {width} dimensions"
            raise InputError("encoder", expected, found=f"{vectors.shape[1]} dimensions")
        return np.asarray(vectors @ self.weights.T + self.bias, dtype=np.float64)


class FittedHead(NamedTuple):
    """A head with its encoder, and the scores of texts that were left out of the fit."""

    encoder: Any
    head: LinearHead
    left_out_scores: Float64Array  # (n_left_out, n_outputs)
    left_out_codes: Int64Array  # (n_left_out,) or (n_left_out, n_classes)
    decisions: tuple[Decision, ...]
    report: Any = None  # TrainingReport of "fine_tune"


def probabilities(kind: str, scores: Float64Array) -> Float64Array:
    """Return the probability of each class, (n_texts, n_classes)."""
    from scipy.special import expit, softmax

    if kind == "softmax":
        return np.asarray(softmax(scores, axis=1))
    if kind == "multilabel":
        return np.asarray(expit(scores))
    above = expit(scores)
    ends = np.ones((len(scores), 1)), np.zeros((len(scores), 1))
    return np.asarray(-np.diff(np.concatenate([ends[0], above, ends[1]], axis=1), axis=1))


def log_loss(
    kind: str, scores: Float64Array, codes: Int64Array, weights: Float64Array | None = None
) -> float:
    """Return the mean negative log likelihood of labels."""
    from scipy.special import log_expit, log_softmax

    rows = np.arange(len(scores))
    if kind == "softmax":
        losses = -log_softmax(scores, axis=1)[rows, codes]
    elif kind == "multilabel":
        losses = -np.where(codes == 1, log_expit(scores), log_expit(-scores)).mean(axis=1)
    else:
        losses = -np.log(np.maximum(probabilities(kind, scores)[rows, codes], 1e-300))
    return float(np.average(losses, weights=weights))


def fit_head(
    kind: str,
    vectors: Any,
    codes: Int64Array,
    strength: float,
    weights: Float64Array | None = None,
    *,
    text_weights: Float64Array | None = None,
) -> LinearHead:
    """Fit a head by penalized maximum likelihood; `codes` (n,), or 0 and 1 (n, n_classes).

    `weights` are those of the texts in the loss. By `text_weights`, the part of these that is not
    due to classes, a text counts as several texts in the scale of the vectors, too.
    """
    return _Fitter(kind, vectors, codes, weights, text_weights, np.float64).fit(strength)


class _Fitter:
    """Fit heads of one kind to the same texts, each started from the previous solution."""

    def __init__(
        self,
        kind: str,
        vectors: Any,
        codes: Int64Array,
        weights: Float64Array | None,
        text_weights: Float64Array | None,
        dtype: Any,
    ) -> None:
        self.kind, self.codes, self.weights = kind, codes, weights
        X, self.mean, self.factor = _scaled(vectors, text_weights)
        self.X = X.astype(dtype)
        self.models: dict[int, Any] = {}
        self.guess: Float64Array | None = None

    def fit(self, strength: float) -> LinearHead:
        with _blas().limit(limits=1, user_api="blas"):  # the same order of sums on any machine
            if self.kind == "ordinal":
                self.guess = _fit_ordinal(self.X, self.codes, strength, self.weights, self.guess)
                slope, thresholds = _ordinal_parts(self.guess, self.X.shape[1])
                slopes, bias = np.tile(slope, (len(thresholds), 1)), -thresholds
            elif self.kind == "softmax":
                slopes, bias = self._logistic(0, self.codes, strength)
            else:
                each = [self._logistic(i, one, strength) for i, one in enumerate(self.codes.T)]
                slopes = np.stack([one[0][1] - one[0][0] for one in each])
                bias = np.array([one[1][1] - one[1][0] for one in each])
        slopes = slopes * self.factor
        return LinearHead(self.kind, slopes, bias - slopes @ self.mean)

    def _logistic(
        self, column: int, codes: Int64Array, strength: float
    ) -> tuple[Float64Array, Float64Array]:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        present = np.unique(codes)
        n_classes, n_dimensions = int(codes.max(initial=1)) + 1, self.X.shape[1]
        if len(present) < 2:  # a label that a fold has everywhere or nowhere
            sign = np.array([-5.0, 5.0]) if present[0] == 1 else np.array([5.0, -5.0])
            return np.zeros((2, n_dimensions)), sign
        fresh = LogisticRegression(max_iter=MAX_STEPS, warm_start=True)
        model = self.models.setdefault(column, fresh).set_params(C=strength)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # left-out texts decide
            model.fit(self.X, codes, sample_weight=self.weights)
        slopes, bias = np.zeros((n_classes, n_dimensions)), np.full(n_classes, -30.0)
        if len(present) == 2:
            slopes[present[1]], bias[present] = model.coef_[0], (0.0, model.intercept_[0])
        else:
            slopes[present], bias[present] = model.coef_, model.intercept_
        return slopes, bias


@cache
def _blas() -> Any:
    """Return the thread control, cached: finding the libraries takes longer than a small fit."""
    import sklearn.linear_model  # noqa: F401, loads SciPy's library
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _scaled(
    vectors: Any, text_weights: Float64Array | None = None
) -> tuple[Any, Float64Array, float]:
    """Center vectors and scale their total variance to 1, so that strengths are comparable."""
    squares = row_dots(vectors, vectors)
    if text_weights is None:
        mean = np.asarray(vectors.mean(axis=0, dtype=np.float64)).ravel()
        variance = float(squares.mean() - mean @ mean)
    else:
        shares = text_weights / text_weights.sum()
        mean = np.asarray(vectors.T @ shares, dtype=np.float64).ravel()
        variance = float(shares @ squares - mean @ mean)
    factor = 1.0 / np.sqrt(variance) if variance > 1e-12 else 1.0
    if isinstance(vectors, np.ndarray):
        return (np.asarray(vectors, dtype=np.float64) - mean) * factor, mean, factor
    return vectors.astype(np.float64) * factor, np.zeros(len(mean)), factor


def _fit_ordinal(
    X: Any,
    codes: Int64Array,
    strength: float,
    weights: Float64Array | None,
    guess: Float64Array | None,
) -> Float64Array:
    """Fit cumulative logits, P(y <= k) = sigmoid(t_k - w x) (McCullagh 1980)."""
    from scipy.optimize import minimize
    from scipy.special import expit, log_expit, logit

    n, n_dimensions = X.shape
    n_classes = int(codes.max()) + 1
    each = np.ones(n) if weights is None else weights
    shares = np.cumsum(np.bincount(codes, each, n_classes) + 0.5)[:-1]
    start = logit(shares / (each.sum() + 0.5 * n_classes))
    if guess is None:
        guess = np.concatenate([np.zeros(n_dimensions), start[:1], np.log(np.diff(start))])
    is_first, is_last = codes == 0, codes == n_classes - 1

    def loss_and_gradient(parameters: Float64Array) -> tuple[float, Float64Array]:
        slope, thresholds = _ordinal_parts(parameters, n_dimensions)
        z = X @ slope
        high = np.where(is_last, np.inf, np.append(thresholds, 0.0)[codes] - z)
        low = np.where(is_first, -np.inf, np.append(thresholds, 0.0)[codes - 1] - z)
        apart = -np.expm1(np.where(is_first | is_last, -np.inf, low - high))
        logs = log_expit(high) + log_expit(-low) + np.log(np.maximum(apart, 1e-300))
        # Derivatives of the logarithm of sigmoid(high) - sigmoid(low).
        by_high = np.where(is_last, 0.0, expit(-high) / (expit(-low) * np.maximum(apart, 1e-12)))
        by_low = np.where(is_first, 0.0, -expit(low) / (expit(high) * np.maximum(apart, 1e-12)))
        loss = -each @ logs + slope @ slope / (2 * strength)
        of_z = -each * (1 - expit(high) - expit(low))
        of_thresholds = np.bincount(codes, each * by_high, n_classes)[:-1]
        of_thresholds += np.bincount(np.maximum(codes - 1, 0), each * by_low, n_classes)[:-1]
        tails = np.cumsum(of_thresholds[::-1])[::-1]
        of_slope, of_steps = -(X.T @ of_z) + slope / strength, -tails[1:] * np.diff(thresholds)
        return float(loss), np.concatenate([of_slope, -tails[:1], of_steps])

    options: Any = {"maxiter": MAX_STEPS, "ftol": 1e-12, "gtol": 1e-7}
    solution = minimize(loss_and_gradient, guess, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(solution.x)


def _ordinal_parts(
    parameters: Float64Array, n_dimensions: int
) -> tuple[Float64Array, Float64Array]:
    """Return the slope (n_dimensions,) and the thresholds (n_classes - 1,)."""
    # The parameters are the first threshold and the logarithms of the steps, which are positive.
    steps = np.exp(np.clip(parameters[n_dimensions + 1 :], -30, 30))
    thresholds = parameters[n_dimensions] + np.concatenate([[0.0], np.cumsum(steps)])
    return parameters[:n_dimensions], thresholds


def cross_fit(
    kind: str,
    vectors: Any,
    codes: Int64Array,
    folds: Int32Array,
    weights: Float64Array | None = None,
    strengths: tuple[float, ...] = STRENGTHS,
    *,
    text_weights: Float64Array | None = None,
) -> tuple[float, Float64Array]:
    """Return the best strength and the scores of left-out texts, (n_texts, n_outputs)."""
    n_outputs = codes.shape[1] if codes.ndim == 2 else int(codes.max()) + 1
    fitters = {}
    for fold in np.unique(folds).tolist():
        rows = np.flatnonzero(folds != fold)
        in_loss = None if weights is None else weights[rows]
        in_scale = None if text_weights is None else text_weights[rows]
        # Single precision: the best strength does not depend on the last digits.
        fitters[fold] = _Fitter(kind, vectors[rows], codes[rows], in_loss, in_scale, np.float32)
    best, best_strength, best_scores, n_worse = np.inf, strengths[0], np.empty((0, 0)), 0
    for strength in strengths:
        scores = np.full((len(codes), n_outputs - (kind == "ordinal")), -30.0)
        for fold, fitter in fitters.items():
            head, rows = fitter.fit(strength), np.flatnonzero(folds == fold)
            scores[rows, : len(head.bias)] = head.scores(vectors[rows])
        loss = log_loss(kind, scores, codes, weights)
        n_worse = 0 if loss < best else n_worse + 1
        if loss < best:
            best, best_strength, best_scores = loss, strength, scores
        if n_worse == 2:
            break
    return best_strength, best_scores


def sample_weights(codes: Int64Array, class_weights: Float64Array | None) -> Float64Array | None:
    """Return the weight of each text, (n,): that of its class, or the mean of its classes."""
    if class_weights is None:
        return None
    if codes.ndim == 1:
        return np.asarray(class_weights[codes])
    n_labels = codes.sum(axis=1)
    return np.where(n_labels > 0, codes @ class_weights / np.maximum(n_labels, 1), 1.0)


def confusion_of(truth: Int64Array, guess: Int64Array, n_classes: int) -> Float64Array:
    """Return the counts of true (rows) and predicted classes (columns), (n_classes, n_classes)."""
    cells = np.bincount(truth * n_classes + guess, minlength=n_classes**2)
    return cells.reshape(n_classes, n_classes).astype(np.float64)


def precision_recall_f1(
    hits: Float64Array, true: Float64Array, predicted: Float64Array
) -> dict[str, Float64Array]:
    """Return precision, recall and F1 of counts (..., n_classes); 0 for an empty denominator."""

    def ratio(above: Float64Array, below: Float64Array) -> Float64Array:
        return np.where(below > 0, above / np.where(below > 0, below, 1.0), 0.0)

    return {
        "precision": ratio(hits, predicted),
        "recall": ratio(hits, true),
        "f1": ratio(2 * hits, predicted + true),
    }


def kappa(confusion: Float64Array) -> Float64Array:
    """Return the quadratically weighted kappa of tables (..., n, n) (Cohen 1968)."""
    n = confusion.shape[-1]
    ranks = np.arange(n)
    weights = np.square(ranks[:, None] - ranks) / max(1, n - 1) ** 2
    total = confusion.sum(axis=(-2, -1))
    true, predicted = confusion.sum(axis=-1), confusion.sum(axis=-2)
    observed = (confusion * weights).sum(axis=(-2, -1))
    expected = np.einsum("...i,ij,...j->...", true, weights, predicted) / np.maximum(total, 1)
    return np.where(expected > 0, 1 - observed / np.where(expected > 0, expected, 1.0), 0.0)


NEAR_DUPLICATE = 0.95
"""Minimum similarity of near-duplicates, on a scale where 0 is the mean similarity of all texts."""

N_NEIGHBORS = 5
MANY_TEXTS = 5_000
"""From this number of labels on, 3 folds are enough and take half the time of 5."""


def near_duplicates(texts: Sequence[str], vectors: Any) -> Int64Array:
    """Return the group of each text, (n_texts,): equal texts and nearly parallel vectors."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n = len(texts)
    first: dict[str, int] = {}
    partner = np.array([first.setdefault(normalize_text(t), row) for row, t in enumerate(texts)])
    rows, others = [np.arange(n)], [partner]
    if isinstance(vectors, np.ndarray) and n > 2:
        from embedtopics.neighbors._graph import build_graph, unit_rows

        units = unit_rows(vectors, keep_zeros=True)
        graph = build_graph(units, N_NEIGHBORS)
        mean = float(np.square(units.mean(axis=0, dtype=np.float64)).sum())
        near = graph.similarities >= mean + NEAR_DUPLICATE * (1 - mean)
        rows.append(np.repeat(np.arange(n), near.sum(axis=1)))
        others.append(graph.indices[near].astype(np.int64))
    pairs = np.concatenate(rows), np.concatenate(others)
    links = coo_matrix((np.ones(len(pairs[0]), dtype=np.int8), pairs), shape=(n, n))
    return connected_components(links, directed=False)[1].astype(np.int64)


def grouped_folds(codes: Int64Array, groups: Int64Array, n_folds: int, seed: int) -> Int32Array:
    """Split texts into stratified folds, (n_texts,), without splitting groups."""
    if codes.ndim == 2:  # stratify by the rarest label of each text
        rare = np.where(codes == 1, codes.sum(axis=0), len(codes) + 1)
        codes = np.where(codes.any(axis=1), rare.argmin(axis=1) + 1, 0)
    _, first, of_text = np.unique(groups, return_index=True, return_inverse=True)
    return np.asarray(stratified_folds(codes[first], n_folds, seed)[of_text])


def n_folds_for(codes: Int64Array, most: int = 5) -> int:
    """Return the number of folds: the size of the rarest class, from 2 to `most`."""
    most = 3 if len(codes) > MANY_TEXTS else most
    counts = codes.sum(axis=0) if codes.ndim == 2 else np.bincount(codes)
    return int(np.clip(counts[counts > 0].min(initial=most), 2, most))


CALIBRATIONS = (None, "temperature")

N_COVERAGES = 10
"""Coverages at which the error is bounded; the bounds hold jointly (Bonferroni)."""

RISK_CONFIDENCE = 0.95
"""Share of samples of labels in which the error stays below its bound."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """Temperature scaling of scores, learned on texts left out of the fit (Guo et al. 2017)."""

    head: str
    temperature: float = 1.0

    def apply(self, scores: Float64Array) -> Float64Array:
        """Return probabilities (n_texts, n_classes) of scores (n_texts, n_outputs)."""
        return probabilities(self.head, scores / self.temperature)


def calibrate(
    kind: str | None,
    head: str,
    scores: Float64Array,
    codes: Int64Array,
    text_weights: Float64Array | None = None,
) -> Calibration:
    """Learn the temperature that minimizes the log loss of left-out texts."""
    if kind is None or not len(scores):
        return Calibration(head)
    from scipy.optimize import minimize_scalar

    solution = minimize_scalar(
        lambda t: log_loss(head, scores / np.exp(t), codes, text_weights),
        bounds=(-4, 4),
        method="bounded",
    )
    return Calibration(head, float(np.exp(solution.x)))


def calibration_error(
    confidence: Float64Array, is_right: npt.NDArray[Any], n_bins: int = 10
) -> tuple[float, Float64Array]:
    """Return the expected calibration error, and the bins (n_bins, 3): confidence, accuracy, n."""
    # Naeini et al. 2015, with bins of equal mass (Nixon et al. 2019).
    order = np.argsort(confidence, kind="stable")
    parts = np.array_split(order, min(n_bins, len(order)))
    bins = np.array([[confidence[part].mean(), is_right[part].mean(), len(part)] for part in parts])
    weights = bins[:, 2] / max(bins[:, 2].sum(), 1)
    return float(np.abs(bins[:, 0] - bins[:, 1]) @ weights), bins


def risk_coverage(confidence: Float64Array, is_right: npt.NDArray[np.bool_]) -> RiskCoverage:
    """Return the error among the most confident texts, for ten shares of predicted texts."""
    # Bounds of Clopper and Pearson with Bonferroni's correction (Geifman and El-Yaniv 2017).
    from scipy.stats import beta

    order = np.argsort(-confidence, kind="stable")
    n, values = len(order), confidence[order]
    wrong = np.cumsum(~is_right[order])
    ends = np.unique(np.round(np.linspace(0, n, N_COVERAGES + 1)[1:]).astype(np.int64))
    # Texts with the confidence of the last one are predicted along with it.
    ends = np.unique(np.searchsorted(-values, -values[ends - 1], side="right"))
    level = 1 - (1 - RISK_CONFIDENCE) / N_COVERAGES
    high = beta.ppf(level, wrong[ends - 1] + 1, ends - wrong[ends - 1])
    high = np.where(wrong[ends - 1] == ends, 1.0, high)
    return RiskCoverage(ends / n, wrong[ends - 1] / ends, high, values[ends - 1], n)


def threshold_for(max_error: float, curve: RiskCoverage) -> float:
    """Return the lowest confidence whose error bound holds."""
    checked_between(max_error, "max_error", 0, 1)
    holds = np.flatnonzero(curve.high <= max_error)
    if not len(holds):
        least = np.ceil(1000 * curve.high.min()) / 1000
        expected = f"at least {least}, the lowest bound that {curve.n:,} held-out texts allow"
        raise InputError("max_error", expected, max_error, "or label more texts")
    return float(curve.thresholds[holds[-1]])
