"""Tests for emerging, fading and bursting topics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats
from scipy.optimize import isotonic_regression
from scipy.special import betainc, expit, gammaincc, log_expit, logit, ndtri, stdtr

from embedtopics.protocols import Float64Array, Int64Array
from embedtopics.topics.reading._keyness import false_discovery_rates
from embedtopics.topics.trends.results import TopicTrends

MIN_PERIODS = 3
ALPHA, CONFIDENCE = 0.05, 0.95
"""False discovery rate, and level of the intervals."""
SURE = 0.05
"""p-value up to which a burst is left out of the trend, and up to which bursts are measured above a
trend."""

MIN_ROWS = 5
"""Minimum number of rows of a topic. With fewer, up to 18 % have p <= 0.05 without any change."""

COLUMNS = (
    "odds_ratio", "low", "high", "share_first", "share_last", "p", "q", "dispersion", "n_bursts",
    "burst_start", "burst_end", "burst_strength", "burst_p", "burst_q",
)  # fmt: skip


def changes(trends: TopicTrends) -> pd.DataFrame:
    """Test which topics emerge, fade or burst.

    A topic is *emerging* or *fading* if its share rises or falls from the first period to the last.
    It is *bursting* if it is more frequent in some consecutive periods than in the others. Both
    verdicts need a q of at most 0.05, the expected share of wrong verdicts among all. A topic can
    have both ("emerging, bursting"): a trend outside of the bursts and a burst above the trend. The
    verdict *no trend found* does not prove that there is none.

    Parameters
    ----------
    trends : TopicTrends
        Trends of `over_time`.

    Returns
    -------
    DataFrame
        One row per topic. Columns topic, label, verdict ("not tested" for topics with fewer than
        five rows or with all rows, and if fewer than three periods have rows); odds_ratio (odds of
        the topic in the last period over those in the first, by the fitted trend), low and high;
        share_first and share_last (fitted); p and q of the trend; dispersion (1 for binomial
        counts); n_bursts, burst_start and burst_end (first and last period of the strongest burst),
        burst_strength (Kleinberg's weight, in units of log-likelihood), burst_p and burst_q.

    Notes
    -----
    Rows count as in the intervals of `over_time`: copies of a text in one period are one row.

    The trend is a logistic regression of the share on time, with an interval by profile likelihood.
    p is the larger of two: that of the likelihood ratio for binomial counts, and that of the F test
    that divides the ratio by the dispersion (quasi-likelihood; McCullagh and Nelder 1989,
    "Generalized linear models", section 4.5). The dispersion is measured around the best monotone
    curve, corrected for autocorrelation, and shrunken to that of all topics (Lund et al. 2012). In
    simulations without any change, 1 to 6 % of the topics have p <= 0.05, but 10 to 36 % if
    neighbouring periods correlate by 0.5 to 0.8. If the odds of a topic triple, from 5 % of 400
    rows per period, the test finds it in half of the cases in 4 or 6 periods, and in 90 % in 12.

    Bursts are those of Kleinberg (2002, "Bursty and hierarchical structure in streams", section 4;
    s = 2, gamma = 1). burst_p is the probability of at least as many rows in the strongest burst
    under a constant share, times the number of stretches of periods. Without bursts it is 0.05 or
    less for under 1 % of the topics with binomial counts, and for 2 to 16 % if shares scatter by a
    third to two thirds from period to period.

    q values are those of Benjamini and Hochberg (1995) over both tests of all topics.
    """
    periods = np.flatnonzero(trends.totals > 0)
    totals = trends.n_effective[periods]
    counts = trends.counts[:-1, periods] * (totals / trends.totals[periods])
    is_part = trends.counts[:-1].sum(axis=1) < trends.totals.sum()
    is_tested = (counts.sum(axis=1) >= MIN_ROWS) & is_part & (len(periods) >= MIN_PERIODS)
    frame = pd.DataFrame({"topic": np.arange(trends.n_topics), "label": list(trends.labels)})
    frame["verdict"] = "not tested"
    none: dict[str, Any] = dict.fromkeys(COLUMNS, np.nan)
    none |= {"n_bursts": 0, "burst_start": "", "burst_end": ""}
    frame = frame.assign(**none)
    usable = np.flatnonzero(is_tested)
    if not len(usable):
        return frame
    tests = _test_topics(trends, counts[usable], totals, periods)
    both = false_discovery_rates(np.concatenate([tests["p"], tests["burst_p"]]))
    tests["q"], tests["burst_q"] = np.split(both, 2)
    is_changing, is_bursting = tests["q"] <= ALPHA, tests["burst_q"] <= ALPHA
    rising = np.where(tests["odds_ratio"] > 1, "emerging", "fading")
    words = [
        [trend] * bool(changing) + ["bursting"] * bool(bursting)
        for trend, changing, bursting in zip(rising, is_changing, is_bursting, strict=True)
    ]
    verdicts = [", ".join(parts) or "no trend found" for parts in words]
    frame.loc[usable, "verdict"] = verdicts
    for name in COLUMNS:
        frame.loc[usable, name] = tests[name].to_numpy()
    return frame


def _test_topics(
    trends: TopicTrends, counts: Float64Array, totals: Float64Array, periods: Int64Array
) -> pd.DataFrame:
    """Return the columns of the tested topics, `counts` (n_tested, n_filled), without q."""
    places = (periods - periods[0]) / (periods[-1] - periods[0]) - 0.5
    below = np.tile(totals, (len(counts), 1))
    slopes = fit_slopes(counts, below, places, CONFIDENCE)
    # A burst above the trend is not a part of it, so the second fit leaves it out.
    outside = np.ones(counts.shape, dtype=bool)
    for row, expected in enumerate(_expected(slopes, totals, places)):
        above = find_bursts(counts[row], expected)
        if strongest_p(counts[row], expected, above) <= SURE:
            is_outside = ~_inside(above, len(periods))
            n_inside = counts[row, is_outside].sum()
            is_enough = is_outside.sum() >= MIN_PERIODS
            if is_enough and 0 < n_inside < totals[is_outside].sum():
                outside[row] = is_outside
    slopes = fit_slopes(counts * outside, below * outside, places, CONFIDENCE)
    rows = []
    for row in range(len(counts)):
        others = totals
        if slopes.p[row] <= SURE:  # bursts are measured above the best monotone curve
            others = _monotone(counts[row], totals, outside[row], slopes.slope[row] > 0)
        bursts = find_bursts(counts[row], others)
        strongest = max(bursts, key=lambda burst: burst.strength, default=None)
        rows.append(
            {
                "n_bursts": len(bursts),
                "burst_start": trends.names[periods[strongest.first]] if strongest else "",
                "burst_end": trends.names[periods[strongest.last]] if strongest else "",
                "burst_strength": strongest.strength if strongest else 0.0,
                "burst_p": strongest_p(counts[row], others, bursts),
            }
        )
    with np.errstate(over="ignore"):
        odds = [np.exp(values) for values in (slopes.slope, slopes.low, slopes.high)]
    fitted = [*odds, slopes.first, slopes.last, slopes.p, slopes.dispersion]
    names = ("odds_ratio", "low", "high", "share_first", "share_last", "p", "dispersion")
    return pd.DataFrame(rows).assign(**dict(zip(names, fitted, strict=True)))


def _expected(slopes: Slopes, totals: Float64Array, places: Float64Array) -> Float64Array:
    """Return totals in proportion to the fitted shares, (n_topics, n_periods)."""
    first, last = (
        np.clip(logit(ends), -STEEPEST, STEEPEST)[:, None] for ends in (slopes.first, slopes.last)
    )
    expected = totals * expit(first + (places + 0.5) * (last - first))
    scaled: Float64Array = expected * (totals.sum() / expected.sum(axis=1, keepdims=True))
    return scaled


def _monotone(
    counts: Float64Array, totals: Float64Array, is_outside: npt.NDArray[np.bool_], rises: bool
) -> Float64Array:
    """Return totals in proportion to the best monotone shares outside of bursts, (n_periods,)."""
    curve = isotonic_regression(
        counts[is_outside] / totals[is_outside], weights=totals[is_outside], increasing=bool(rises)
    )
    number = np.arange(len(counts))
    place = np.searchsorted(number[is_outside], number, side="left" if rises else "right")
    expected = totals * curve.x[np.clip(place - (not rises), 0, len(curve.x) - 1)]
    scaled: Float64Array = expected * (totals.sum() / expected.sum())
    return scaled


def _inside(bursts: list[Burst], n_periods: int) -> npt.NDArray[np.bool_]:
    inside = np.zeros(n_periods, dtype=bool)
    for burst in bursts:
        inside[burst.first : burst.last + 1] = True
    return inside


# Logistic regression of shares on time, for all topics at once, by profile likelihood.
#
# Estimate, test and interval come from one likelihood, so that they are consistent, even if a topic
# occurs at one end of time only. There statsmodels' GLM warns of separation, and its Wald test has
# p = 0.998 for 30 of 30 rows in the last of 8 periods (here p < 1e-6).

STEEPEST = 40.0
"""Change of the log-odds beyond which a slope is infinite to double precision."""

HALVINGS = 36
BORROWED = 4.0
"""Minimum degrees of freedom that the dispersion of a topic borrows from that of all topics: with
fewer, the F distribution has no finite variance."""

ENDLESS = 2000.0
"""Degrees of freedom from which an F distribution equals that of a known dispersion."""

LEVEL = 1.25
"""Degrees of freedom of each level of a monotone curve: between 1 and 1.5 (Meyer and Woodroofe
2000, "On the degrees of freedom in shape-restricted regression"). Among 1, 1.25 and 1.5 this value
kept the test nearest to its level in simulations of 6 to 24 periods."""


class Slopes(NamedTuple):
    """Change of the log-odds of each topic from the first period to the last; each (n_topics,).

    `first` and `last` are fitted shares. `dispersion` is the variance of the counts around the
    trend over that of binomial counts, with autocorrelation.
    """

    slope: Float64Array
    low: Float64Array
    high: Float64Array
    p: Float64Array
    first: Float64Array
    last: Float64Array
    dispersion: Float64Array


def fit_slopes(
    counts: npt.ArrayLike, totals: npt.ArrayLike, places: Float64Array, confidence: float
) -> Slopes:
    """Fit and test slopes of `counts` (n_topics, n_periods) over `places` (n_periods,)."""
    above = np.asarray(counts, dtype=np.float64)
    model = _Model(
        above, np.broadcast_to(np.asarray(totals, dtype=np.float64), above.shape), places
    )
    n_topics = len(model.counts)
    edge = np.full(n_topics, STEEPEST)
    slope = _bisect(lambda s: model.score(s) > 0, -edge, edge)
    intercept = model.intercept(slope)
    deviance = model.deviance(slope)
    dispersion, freedom = _slope_dispersion(model, slope)
    ratio = np.maximum(model.deviance(np.zeros(n_topics)) - deviance, 0.0)
    scaled = np.divide(ratio, dispersion, out=np.full(n_topics, np.inf), where=dispersion > 0)
    p = np.maximum(stats.chi2.sf(ratio, 1), stats.f.sf(scaled, 1, freedom))
    allowed = deviance + np.maximum(
        stats.chi2.ppf(confidence, 1), dispersion * stats.f.ppf(confidence, 1, freedom)
    )
    high = _bisect(lambda s: model.deviance(s) < allowed, slope, edge)
    low = _bisect(lambda s: model.deviance(s) >= allowed, -edge, slope)
    return Slopes(
        slope=_unbounded(slope),
        low=_unbounded(low),
        high=_unbounded(high),
        p=p,
        first=expit(intercept - slope / 2),
        last=expit(intercept + slope / 2),
        dispersion=dispersion,
    )


@dataclass(frozen=True, eq=False)
class _Model:
    """Binomial counts of each topic with logit(share) = intercept + slope * place."""

    counts: Float64Array
    totals: Float64Array
    places: Float64Array

    def intercept(self, slope: Float64Array) -> Float64Array:
        """Return the best intercepts for slopes, by Newton steps between two bounds."""
        sums = self.counts.sum(axis=1)
        middle = logit(sums / self.totals.sum(axis=1))
        below, above = middle - np.abs(slope) / 2 - 1, middle + np.abs(slope) / 2 + 1
        for _ in range(HALVINGS):
            share = expit(middle[:, None] + slope[:, None] * self.places)
            excess = (share * self.totals).sum(axis=1) - sums
            below = np.where(excess < 0, middle, below)
            above = np.where(excess < 0, above, middle)
            curvature = (share * (1 - share) * self.totals).sum(axis=1)
            step = np.divide(
                excess, curvature, out=np.full_like(excess, np.inf), where=curvature > 1e-12
            )
            after = middle - step
            # A step of zero stays inside the bounds.
            after = np.where((after >= below) & (after <= above), after, (below + above) / 2)
            has_moved = np.max(np.abs(after - middle), initial=0.0) >= 1e-9
            middle = after
            if not has_moved:
                break
        best: Float64Array = middle
        return best

    def score(self, slope: Float64Array) -> Float64Array:
        """Return the derivative of the profile likelihood."""
        share = expit(self.intercept(slope)[:, None] + slope[:, None] * self.places)
        rise: Float64Array = (self.counts - self.totals * share) @ self.places
        return rise

    def deviance(self, slope: Float64Array) -> Float64Array:
        """Return minus twice the profile log-likelihood, up to a constant of the counts."""
        line = self.intercept(slope)[:, None] + slope[:, None] * self.places
        others = self.totals - self.counts
        fit: Float64Array = (self.counts * log_expit(line) + others * log_expit(-line)).sum(axis=1)
        return -2.0 * fit


def _bisect(
    is_below: Callable[[Float64Array], npt.NDArray[np.bool_]], low: Float64Array, high: Float64Array
) -> Float64Array:
    """Return the slope of each topic up to which a condition holds."""
    low, high = low.copy(), high.copy()
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = is_below(middle)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def _unbounded(slope: Float64Array) -> Float64Array:
    return np.where(np.abs(slope) > STEEPEST - 1e-6, np.sign(slope) * np.inf, slope)


def _slope_dispersion(model: _Model, slope: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return the dispersion of the counts around the best monotone curve, and its freedom.

    Around the line itself, a topic with a sudden start would scatter most. An autocorrelation a
    multiplies the variance of sums over time by (1 + a) / (1 - a). The dispersions are shrunken
    towards their median, the more the less they differ beyond chance (empirical Bayes as in Smyth
    2004, "Linear models and empirical Bayes methods", by moments).
    """
    dispersion, freedom = np.ones(len(slope)), np.ones(len(slope))
    for topic in range(len(slope)):
        has_rows = model.totals[topic] > 0
        counts, totals = model.counts[topic, has_rows], model.totals[topic, has_rows]
        n_periods = has_rows.sum()
        curve = isotonic_regression(
            counts / totals, weights=totals, increasing=bool(slope[topic] >= 0)
        )
        expected = totals * curve.x
        spread = np.sqrt(expected * (1 - curve.x))
        residuals = np.zeros(n_periods)
        np.divide(counts - expected, spread, out=residuals, where=spread > 1e-9)
        squares = float(residuals @ residuals)
        freedom[topic] = max(n_periods - LEVEL * (len(curve.blocks) - 1), 1)
        neighbors = float(residuals[1:] @ residuals[:-1]) / squares if squares > 0 else 0.0
        neighbors += (1 + 4 * neighbors) / n_periods  # too low: Marriott and Pope (1954)
        neighbors = min(max(neighbors, 0.0), 0.9)
        dispersion[topic] = squares / freedom[topic] * (1 + neighbors) / (1 - neighbors)
    typical = dispersion * freedom / stats.chi2.ppf(0.5, freedom)  # so that its median is unbiased
    shared = max(float(np.median(typical)), 1.0)
    square = np.mean(dispersion) ** 2
    differs = np.mean(dispersion**2 / (1 + 2 / freedom)) / square - 1 if square > 0 else 0.0
    borrowed = min(BORROWED + 2 / max(float(differs), 1e-9), ENDLESS)
    dispersion = (borrowed * shared + freedom * dispersion) / (borrowed + freedom)
    # No topic has more degrees of freedom than all topics together.
    max_freedom = np.maximum(freedom + BORROWED, freedom.sum())
    return dispersion, np.minimum(freedom + borrowed, max_freedom)


SCALE, COST = 2.0, 1.0
"""Factor of the share in a burst, and cost to enter one: Kleinberg's s and gamma."""


class Burst(NamedTuple):
    """One burst of a topic: its first and last period, and Kleinberg's weight."""

    first: int
    last: int
    strength: float


def find_bursts(counts: npt.ArrayLike, totals: npt.ArrayLike) -> list[Burst]:
    """Find the bursts of one topic: the cheapest sequence of two states.

    The cost of a period is minus the log of its binomial probability, with `SCALE` times the
    overall share in a burst. Each burst adds `COST` times the log of the number of periods.
    """
    r, d = np.asarray(counts, dtype=np.float64), np.asarray(totals, dtype=np.float64)
    periods = np.flatnonzero(d > 0)
    r, d = r[periods], d[periods]
    base = r.sum() / d.sum() if len(periods) else 0.0
    if not 0 < base < 1 or len(periods) < 2:
        return []
    high = min(SCALE * base, (1 + base) / 2)
    gains = r * np.log(high / base) + (d - r) * np.log((1 - high) / (1 - base))
    states = _cheapest(gains, COST * np.log(len(periods)))
    steps = np.diff(np.concatenate([[0], states, [0]]))
    begins, ends = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1) - 1
    return [
        Burst(int(periods[begin]), int(periods[end]), float(gains[begin : end + 1].sum()))
        for begin, end in zip(begins, ends, strict=True)
    ]


def _cheapest(gains: Float64Array, entrance: float) -> npt.NDArray[np.int8]:
    """Return the states of the cheapest sequence; ties are not bursts."""
    low, high = 0.0, np.inf
    stays_low = np.zeros(len(gains), dtype=bool)
    stays_high = np.zeros(len(gains), dtype=bool)
    for period, gain in enumerate(gains.tolist()):
        stays_low[period] = low <= high
        stays_high[period] = high < low + entrance
        low, high = min(low, high), min(high, low + entrance) - gain
    states = np.zeros(len(gains), dtype=np.int8)
    state = int(high < low)
    for period in range(len(gains) - 1, -1, -1):
        states[period] = state
        state = int(stays_high[period]) if state else int(not stays_low[period])
    return states


def strongest_p(counts: Float64Array, totals: Float64Array, bursts: list[Burst]) -> float:
    """Bound the probability of a peak as high for a topic with a constant share."""
    if not bursts:
        return 1.0
    inside = _inside([max(bursts, key=lambda burst: burst.strength)], len(counts))
    n_periods = int(np.count_nonzero(totals))
    n_stretches = n_periods * (n_periods + 1) / 2
    dispersion, is_sure = _dispersion(counts[~inside], totals[~inside])
    within = counts[inside].sum() / dispersion
    without = counts[~inside].sum() / dispersion
    expected = totals[inside].sum() / totals.sum()
    chance = float(betainc(within, without + 1, expected)) if expected < 1 else 1.0
    if is_sure:
        chance = float(stdtr(max(n_periods - int(inside.sum()) - 1, 1), ndtri(chance)))
    return min(1.0, chance * n_stretches)


def _dispersion(counts: Float64Array, totals: Float64Array) -> tuple[float, bool]:
    """Return the dispersion of periods over that of binomial counts, and its significance."""
    has_rows = totals > 0
    share = counts.sum() / max(float(totals.sum()), 1.0)
    if has_rows.sum() < 3 or not 0 < share < 1:
        return 1.0, False
    expected = totals[has_rows] * share
    pearson = float((np.square(counts[has_rows] - expected) / (expected * (1 - share))).sum())
    freedom = int(has_rows.sum()) - 1
    return max(1.0, pearson / freedom), bool(gammaincc(freedom / 2, pearson / 2) < 0.05)
