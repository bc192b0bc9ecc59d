"""Shares of a class from predictions and some labels: estimates and variances, in arrays alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from embedtopics.classification._heads import confusion_of, probabilities
from embedtopics.evaluation._shares import wilson
from embedtopics.protocols import Float64Array, Int64Array

N_FOLDS = 5
FEW = 5
"""Labels of either kind below which predictions make no interval narrower than all texts' do."""

N_RESAMPLES = 400
_Z = 1.959964


class Share(NamedTuple):
    """An estimate with the parts of its variance: of labels ``residual / n``, and `predictions`."""

    value: float
    residual: float
    predictions: float
    n: int

    @property
    def variance(self) -> float:
        """The variance of the estimate."""
        return self.residual / max(self.n, 1) + self.predictions


def tuned(y: Float64Array, f: Float64Array, weights: Float64Array, ratio: float) -> float:
    """Return how much predictions count, from 0 to 1 (Angelopoulos et al. 2023b, example 6.1).

    `ratio` is that of labelled to other texts.
    """
    if len(y) < 2:
        return 0.0
    mean_y, mean_f = np.average(y, weights=weights), np.average(f, weights=weights)
    spread = np.average(np.square(f - mean_f), weights=weights) * (1 + ratio)
    both = np.average((y - mean_y) * (f - mean_f), weights=weights)
    return float(np.clip(both / spread, 0.0, 1.0)) if spread > 1e-12 else 0.0


def tuned_by_fold(
    y: Float64Array, f: Float64Array, weights: Float64Array, ratio: float, seed: int
) -> Float64Array:
    """Return for each labelled text the factor that the texts of other folds have, (n,)."""
    folds = np.random.default_rng(seed).permutation(len(y)) % N_FOLDS
    each = [tuned(y[folds != k], f[folds != k], weights[folds != k], ratio) for k in range(N_FOLDS)]
    return np.array(each)[folds]


def ppi_share(
    y: Float64Array, f: Float64Array, others: Float64Array, factor: Float64Array
) -> Share:
    """Return a share by prediction-powered inference with tuned power (PPI++).

    `y` and `f` (n,) are labels and predictions of a random sample, `others` (N,) the predictions
    of the other texts. With k the factors: mean(y - k f) + mean(k) mean(others), and its variance
    var(y - k f) / n + mean(k)^2 var(others) / N (Angelopoulos, Duchi and Zrnic 2023, section 6).
    """
    residuals, power = y - factor * f, float(factor.mean()) if len(factor) else 0.0
    if not len(others):
        residuals, power, others = y, 0.0, np.zeros(1)
    n = len(y)
    value = float(residuals.mean()) + power * float(others.mean()) if n else np.nan
    residual = float(residuals.var(ddof=1)) if n > 1 else np.nan
    spread = float(others.var(ddof=1)) if len(others) > 1 else 0.0
    return Share(value, residual, power**2 * spread / len(others), n)


def design_share(
    y: Float64Array,
    f: Float64Array,
    everything: Float64Array,
    chance: Float64Array,
    factor: Float64Array,
) -> Share:
    """Return a share of a sample with known probabilities (Egami et al. 2023, equation 4).

    Each text has a pseudo-outcome: its prediction, and where it was labelled the residual divided
    by the probability `chance` of that; `everything` (N,) are the predictions of all texts, the
    labelled ones among them. The weights add up to the number of texts (Hajek).
    """
    n, power = len(y), float(factor.mean()) if len(factor) else 0.0
    if n < 2:
        return Share(np.nan, np.nan, 0.0, n)
    weights = 1 / chance
    weights = weights / weights.sum()
    residuals = y - factor * f
    middle = float(weights @ residuals)
    apart = residuals - middle
    residual = float(np.square(weights * apart).sum()) * n * n / (n - 1)
    spread = float(everything.var(ddof=1)) / len(everything) if len(everything) > 1 else 0.0
    shared = 2 * power * float((weights * apart) @ (f - everything.mean())) / len(everything)
    predictions = max(power**2 * spread + shared, 0.0)
    return Share(middle + power * float(everything.mean()), residual, predictions, n)


def interval_of(share: Share, n_rare: float, gain: float = np.inf) -> tuple[float, float]:
    """Return a 95 % interval: Wilson's, of as many trials as have the variance of the estimate.

    `n_rare` counts the labels of the rarer kind. Where they are few, their variance says little:
    the trials are at most `gain` times the labels. In 500 draws for classifiers of 60 to 95 %
    accuracy, at a prevalence of 50 and of 2 %, it covers 94.8 to 97.2 % where labels are a random
    sample, and 91.2 to 95.4 % where their chances differ and are known.
    """
    n = share.n
    if n < 2 or np.isnan(share.value):
        return np.nan, np.nan
    value = float(np.clip(share.value, 0.0, 1.0))
    varies = share.variance > 0 and 0 < value < 1
    trials = value * (1 - value) / share.variance if varies else float(n)
    if n_rare < FEW:
        trials = min(trials, n * max(1.0, gain) if np.isfinite(gain) else float(n))
    low, high = wilson(value * trials, trials, 0.95, df=n - 1)
    return float(low), float(high)


def labels_needed(share: Share, width: float) -> float:
    """Return how many labels more give an interval of a width; infinite where none do."""
    allowed = (width / (2 * _Z)) ** 2 - share.predictions
    if np.isnan(share.residual):
        return np.nan
    return max(0.0, float(np.ceil(share.residual / allowed)) - share.n) if allowed > 0 else np.inf


def adjusted_count(confusion: Float64Array, shares: Float64Array) -> Float64Array:
    """Return shares of classes that explain the predicted ones (Forman 2008), on the simplex.

    `confusion` (n_classes, n_classes) has the share of each true class (row) by predicted class.
    """
    from scipy.optimize import nnls

    # A heavy last equation makes them add up to 1.
    heavy = 1e4
    found = nnls(
        np.vstack([confusion.T, np.full(len(confusion), heavy)]), np.append(shares, heavy)
    )[0]
    return np.asarray(found / max(found.sum(), 1e-12))


def em_shares(found: Float64Array, prior: Float64Array) -> Float64Array:
    """Return shares of classes under prior shift by EM (Saerens et al. 2002, equation 9).

    `found` (n, n_classes) are probabilities under the shares `prior` of the training texts.
    """
    shares = prior.copy()
    safe = np.maximum(prior, 1e-12)
    for _ in range(1000):
        weighed = found * (shares / safe)
        new = (weighed / np.maximum(weighed.sum(axis=1, keepdims=True), 1e-300)).mean(axis=0)
        if np.abs(new - shares).max() < 1e-8:
            return np.asarray(new)
        shares = new
    return shares


def bias_corrected(kind: str, scores: Float64Array, codes: Int64Array) -> Float64Array:
    """Return a temperature and a bias for each output that minimize the loss of left-out texts.

    EM needs them (Alexandari, Kundaje and Shrikumar 2020, section 3). Shape (1 + n_outputs,).
    """
    from scipy.optimize import minimize

    n_outputs = scores.shape[1]
    rows = np.arange(len(codes))

    def loss(parameters: Float64Array) -> float:
        chances = probabilities(kind, scores / np.exp(parameters[0]) + parameters[1:])
        chosen = np.maximum(chances[rows, codes], 1e-12)
        return float(-np.log(chosen).mean() + 1e-4 * parameters[1:] @ parameters[1:])

    return np.asarray(minimize(loss, np.zeros(1 + n_outputs), method="L-BFGS-B").x)


def shifted_shares(
    kind: str, method: str, held: tuple[Float64Array, Int64Array], scores: Float64Array, seed: int
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return shares of texts without labels, (n_classes,), and the ends of their intervals.

    `held` are scores of left-out texts, and their classes. Intervals are percentiles over both
    samples drawn with replacement, the left-out texts within their classes.
    """
    of_held, codes = held
    estimate = _by_count if method == "adjusted" else _by_em
    rng = np.random.default_rng(seed)
    classes = [np.flatnonzero(codes == k) for k in np.unique(codes)]
    value, drawn = estimate(kind, of_held, codes, scores), []
    for _ in range(N_RESAMPLES if method == "adjusted" else N_RESAMPLES // 4):
        rows = np.concatenate([rng.choice(part, len(part)) for part in classes])
        texts = rng.integers(0, len(scores), len(scores))
        drawn.append(estimate(kind, of_held[rows], codes[rows], scores[texts]))
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    return value, low, high


def _by_count(
    kind: str, of_held: Float64Array, codes: Int64Array, scores: Float64Array
) -> Float64Array:
    guess, given = (probabilities(kind, each).argmax(axis=1) for each in (of_held, scores))
    n_classes = scores.shape[1] + (kind == "ordinal")
    table = confusion_of(codes, guess, n_classes)
    rates = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    return adjusted_count(rates, np.bincount(given, minlength=n_classes) / len(scores))


def _by_em(
    kind: str, of_held: Float64Array, codes: Int64Array, scores: Float64Array
) -> Float64Array:
    parameters = bias_corrected(kind, of_held, codes)
    found = probabilities(kind, scores / np.exp(parameters[0]) + parameters[1:])
    prior = np.bincount(codes, minlength=found.shape[1]) / len(codes)
    return em_shares(found, prior)
