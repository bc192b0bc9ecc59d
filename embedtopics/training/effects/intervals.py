"""Whether a difference between two encoders is more than the luck of the examples drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.evaluation import interval, resampled_sums
from embedtopics.protocols import Int64Array
from embedtopics.training.effects.statistics import Float64Array, Statistic, mean

__all__ = ["CONFIDENCE", "Difference", "Figure", "compare_scores", "holm", "p_of", "wide_interval"]

CONFIDENCE = 0.95
ENTRIES_AT_ONCE = 4_000_000
"""Counts of resamples that are held at a time."""


@dataclass(frozen=True, eq=False)
class Figure:
    """One figure of both encoders, by what each gives every example.

    Parameters
    ----------
    metric : str
    statistic : callable
        Of `embedtopics.training.effects.statistics`.
    before, after : float64 ndarray of shape (n,)
        Scores of the examples.
    truth : ndarray of shape (n,)
        What the scores are held against; not used by means.
    units : int64 ndarray of shape (n,)
        Examples of one unit are drawn together.
    """

    metric: str
    statistic: Statistic
    before: Float64Array
    after: Float64Array
    truth: npt.NDArray[Any]
    units: Int64Array


@dataclass(frozen=True)
class Difference:
    """What the examples say of a figure.

    Parameters
    ----------
    before, after : float
    low, high : float
        Interval of the difference.
    p : float
        Two-sided, of no difference.
    n_units : int
        What was drawn with replacement.
    n_changed : int
        Units to which the encoders give different scores.
    exact : float
        p-value of the exact test on these units alone, a part of `p`; 0 where there is none.
    """

    before: float
    after: float
    low: float
    high: float
    p: float
    n_units: int
    n_changed: int
    exact: float = 0.0


def compare_scores(figure: Figure, n_resamples: int, seed: int) -> Difference:
    """Draw the units of a figure anew, the same for both encoders, and see how it differs.

    The interval is that of the percentiles, widened for small samples as Student's t is (the
    expanded percentile interval of Hesterberg 2015, "What teachers should know about the
    bootstrap"). Bias and skewness of a figure are much the same for both encoders and cancel in
    the difference of the two: the corrections of a BCa interval would be about nothing.

    Resamples cannot show what they do not hold: where the encoders differ in a handful of examples,
    and all in one direction, nearly every resample does too. So p is also not below that of
    the test which gives each unit's difference a random sign, for means, and not below that of
    as many tosses of a coin, for other figures.

    Parameters
    ----------
    figure : Figure
    n_resamples : int
    seed : int

    Returns
    -------
    Difference
    """
    _, unit_of = np.unique(figure.units, return_inverse=True)
    n_units, n = int(unit_of.max()) + 1, len(unit_of)
    before, after = (float(x[0]) for x in _both(figure, np.ones((1, n))))
    drawn = np.concatenate(
        [
            np.subtract(*_both(figure, counts)[::-1])
            for counts in _resamples(unit_of, n_resamples, seed)
        ]
    )
    moved = np.bincount(unit_of, (figure.before != figure.after).astype(float)) > 0
    low, high = wide_interval(drawn, n_units)
    n_changed = int(moved.sum())
    exact = min(1.0, 2.0 ** (1 - n_changed))
    if figure.statistic is mean:
        by_unit = np.zeros(n_units)
        np.add.at(by_unit, unit_of, figure.after - figure.before)
        exact = _sign_test(by_unit[moved], n_resamples, seed)
    p = max(p_of(drawn, n_units), exact)
    if math.isnan(before) or math.isnan(after):
        low = high = math.nan
        p = 1.0
    return Difference(before, after, low, high, p, n_units, n_changed, exact)


def _both(figure: Figure, counts: Float64Array) -> tuple[Float64Array, Float64Array]:
    before = figure.statistic(figure.before, figure.truth, counts)
    return before, figure.statistic(figure.after, figure.truth, counts)


def _resamples(unit_of: Int64Array, n_resamples: int, seed: int) -> Iterator[Float64Array]:
    """Yield how often each example is in each resample, some resamples at a time."""
    from scipy.sparse import csr_matrix

    n, n_units = len(unit_of), int(unit_of.max()) + 1
    belongs: Any = csr_matrix((np.ones(n), (unit_of, np.arange(n))), shape=(n_units, n))
    at_once = max(1, ENTRIES_AT_ONCE // max(n, n_units))
    seeds = np.random.SeedSequence(seed).generate_state(-(-n_resamples // at_once))
    for number, begin in enumerate(range(0, n_resamples, at_once)):
        size = min(at_once, n_resamples - begin)
        yield resampled_sums(belongs, size, int(seeds[number]))


def wide_interval(drawn: Float64Array, n_units: int) -> tuple[float, float]:
    """Return the 95 % interval of resampled differences; NaN of fewer than two units."""
    from scipy.stats import norm, t

    if n_units < 2:
        return math.nan, math.nan
    reach = math.sqrt(n_units / (n_units - 1)) * t.ppf((1 + CONFIDENCE) / 2, n_units - 1)
    # Two units can reach further than floats tell from certainty.
    low, high = interval(drawn, min(1 - 2 * float(norm.sf(reach)), 1 - 1e-12))
    return float(low), float(high)


def p_of(drawn: Float64Array, n_units: int) -> float:
    """Return the two-sided p-value of no difference: the level at which the interval reaches 0.

    Not below what the number of resamples can tell.
    """
    from scipy.stats import norm, t

    known = np.sort(drawn[~np.isnan(drawn)])
    if n_units < 2 or not len(known):
        return 1.0
    tail = max(min(_reaching(known), _reaching(-known[::-1])), 1 / (len(known) + 1))
    if tail >= 0.5:
        return 1.0
    reach = float(norm.isf(tail)) * math.sqrt((n_units - 1) / n_units)
    return float(2 * t.sf(reach, n_units - 1))


def _reaching(ordered: Float64Array) -> float:
    """Return the largest share whose quantile is not above 0, between two values by a line."""
    n, below = len(ordered), int(np.count_nonzero(ordered <= 0))
    if below in (0, n):
        return float(below > 0)
    last, following = float(ordered[below - 1]), float(ordered[below])
    return (below - 1 - last / (following - last)) / (n - 1)


def _sign_test(differences: Float64Array, n_draws: int, seed: int) -> float:
    """Return the two-sided p-value of differences whose signs are the toss of a coin."""
    from scipy.stats import binomtest

    real = differences[differences != 0]
    if not len(real):
        return 1.0
    sizes = np.abs(real)
    if np.ptp(sizes) <= 1e-12 * sizes.max():
        return float(binomtest(int((real > 0).sum()), len(real)).pvalue)
    rng = np.random.default_rng([seed, 1])
    reached, found = 0, abs(float(real.sum())) * (1 - 1e-12)
    at_once = max(1, ENTRIES_AT_ONCE // len(real))
    for begin in range(0, n_draws, at_once):
        size = min(at_once, n_draws - begin)
        heads = rng.integers(0, 2, size=(size, len(real)), dtype=np.bool_)
        reached += int((np.abs(np.where(heads, real, -real).sum(axis=1)) >= found).sum())
    return (reached + 1) / (n_draws + 1)


def holm(p_values: list[float]) -> list[float]:
    """Return p-values after the correction of Holm (1979) for so many tests."""
    order = np.argsort(p_values, kind="stable")
    raised = np.sort(p_values) * np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
    return [float(p) for p in adjusted]
