"""Estimators of a share: prediction-powered, design-based, adjusted count and EM."""

from __future__ import annotations

import numpy as np

from embedtopics.classification._heads import confusion_of, probabilities
from embedtopics.classification.results import Share
from embedtopics.evaluation._bootstrap import wilson
from embedtopics.protocols import Float64Array, Int64Array

N_FOLDS = 5
MIN_RARE = 5
"""With fewer labels of the rarer kind, predictions do not narrow a group's interval further than
they narrow the interval of the whole corpus."""

N_RESAMPLES = 400


def tuned(y: Float64Array, f: Float64Array, weights: Float64Array, ratio: float) -> float:
    """Return the power-tuning factor, from 0 to 1 (Angelopoulos et al. 2023b, example 6.1)."""
    if len(y) < 2:
        return 0.0
    mean_y, mean_f = np.average(y, weights=weights), np.average(f, weights=weights)
    spread = np.average(np.square(f - mean_f), weights=weights) * (1 + ratio)
    both = np.average((y - mean_y) * (f - mean_f), weights=weights)
    return float(np.clip(both / spread, 0.0, 1.0)) if spread > 1e-12 else 0.0


def tuned_by_fold(
    y: Float64Array, f: Float64Array, weights: Float64Array, ratio: float, seed: int
) -> Float64Array:
    """Return the factor of each labelled text, estimated on the other folds, (n,)."""
    folds = np.random.default_rng(seed).permutation(len(y)) % N_FOLDS
    each = [tuned(y[folds != k], f[folds != k], weights[folds != k], ratio) for k in range(N_FOLDS)]
    return np.array(each)[folds]


def ppi_share(
    y: Float64Array, f: Float64Array, others: Float64Array, factor: Float64Array
) -> Share:
    """Estimate a share by prediction-powered inference with power tuning (PPI++).

    `y` and `f` (n,) are labels and predictions of a random sample, `others` (N,) the predictions
    of the other texts. With factors k, the estimate is mean(y - k f) + mean(k) mean(others); its
    variance is var(y - k f) / n + mean(k)^2 var(others) / N (Angelopoulos, Duchi and Zrnic 2023,
    section 6).
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
    """Estimate a share from a sample with known probabilities (Egami et al. 2023, equation 4).

    The pseudo-outcome of a text is its prediction; labelled texts add their residual, divided by
    their sampling probability `chance`. `everything` (N,) are the predictions of all texts,
    including the labelled ones. The weights are normalized (Hajek).
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
    """Return Wilson's 95 % interval, for the number of trials with the estimate's variance.

    `n_rare` counts the labels of the rarer kind. A variance from few such labels is unreliable, so
    the trials are then at most `gain` times the labels. In 500 draws for classifiers of 60 to 95 %
    accuracy, at a prevalence of 50 and of 2 %, the interval covers 94.8 to 97.2 % for random
    samples, and 91.2 to 95.4 % for samples with unequal, known probabilities.
    """
    n = share.n
    if n < 2 or np.isnan(share.value):
        return np.nan, np.nan
    value = float(np.clip(share.value, 0.0, 1.0))
    varies = share.variance > 0 and 0 < value < 1
    trials = value * (1 - value) / share.variance if varies else float(n)
    if n_rare < MIN_RARE:
        trials = min(trials, n * max(1.0, gain) if np.isfinite(gain) else float(n))
    low, high = wilson(value * trials, trials, 0.95, df=n - 1)
    return float(low), float(high)


def adjusted_count(confusion: Float64Array, shares: Float64Array) -> Float64Array:
    """Return the class shares that explain the predicted shares (Forman 2008), on the simplex."""
    from scipy.optimize import nnls

    # Rows are true classes. A heavy last equation makes the shares add up to 1.
    heavy = 1e4
    equations = np.vstack([confusion.T, np.full(len(confusion), heavy)])
    solution = nnls(equations, np.append(shares, heavy))[0]
    return np.asarray(solution / max(solution.sum(), 1e-12))


def em_shares(posteriors: Float64Array, prior: Float64Array) -> Float64Array:
    """Return the class shares under prior shift by EM (Saerens et al. 2002, equation 9)."""
    shares = prior.copy()
    safe = np.maximum(prior, 1e-12)
    for _ in range(1000):
        weighed = posteriors * (shares / safe)
        new = (weighed / np.maximum(weighed.sum(axis=1, keepdims=True), 1e-300)).mean(axis=0)
        if np.abs(new - shares).max() < 1e-8:
            return np.asarray(new)
        shares = new
    return shares


def bias_corrected(kind: str, scores: Float64Array, codes: Int64Array) -> Float64Array:
    """Return the temperature and biases for EM (Alexandari et al. 2020, section 3)."""
    from scipy.optimize import minimize

    n_outputs = scores.shape[1]
    rows = np.arange(len(codes))

    def loss(parameters: Float64Array) -> float:
        chances = probabilities(kind, scores / np.exp(parameters[0]) + parameters[1:])
        likelihoods = np.maximum(chances[rows, codes], 1e-12)
        return float(-np.log(likelihoods).mean() + 1e-4 * parameters[1:] @ parameters[1:])

    return np.asarray(minimize(loss, np.zeros(1 + n_outputs), method="L-BFGS-B").x)


def shifted_shares(
    kind: str,
    method: str,
    left_out: tuple[Float64Array, Int64Array],
    scores: Float64Array,
    seed: int,
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return shares of texts without labels, (n_classes,), and the ends of their intervals.

    `left_out` holds the scores and classes of texts left out of the fit. The intervals are
    percentiles over resamples of both sets of texts, the left-out texts within their classes.
    """
    left_out_scores, codes = left_out
    estimate = _adjusted_shares if method == "adjusted" else _em_shares
    rng = np.random.default_rng(seed)
    classes = [np.flatnonzero(codes == k) for k in np.unique(codes)]
    value, drawn = estimate(kind, left_out_scores, codes, scores), []
    for _ in range(N_RESAMPLES if method == "adjusted" else N_RESAMPLES // 4):
        rows = np.concatenate([rng.choice(part, len(part)) for part in classes])
        texts = rng.integers(0, len(scores), len(scores))
        drawn.append(estimate(kind, left_out_scores[rows], codes[rows], scores[texts]))
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    return value, low, high


def _adjusted_shares(
    kind: str, left_out: Float64Array, codes: Int64Array, scores: Float64Array
) -> Float64Array:
    guess, predicted = (probabilities(kind, s).argmax(axis=1) for s in (left_out, scores))
    n_classes = scores.shape[1] + (kind == "ordinal")
    table = confusion_of(codes, guess, n_classes)
    rates = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    return adjusted_count(rates, np.bincount(predicted, minlength=n_classes) / len(scores))


def _em_shares(
    kind: str, left_out: Float64Array, codes: Int64Array, scores: Float64Array
) -> Float64Array:
    parameters = bias_corrected(kind, left_out, codes)
    posteriors = probabilities(kind, scores / np.exp(parameters[0]) + parameters[1:])
    prior = np.bincount(codes, minlength=posteriors.shape[1]) / len(codes)
    return em_shares(posteriors, prior)
