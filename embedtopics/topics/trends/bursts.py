"""Times at which a topic is far more frequent than it is on the whole: Kleinberg's automaton."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import Int64Array

__all__ = ["Burst", "find_bursts", "strongest_p"]

Float64Array = npt.NDArray[np.float64]

SCALE, COST = 2.0, 1.0
"""How much more frequent a topic is in a burst, and what it costs to enter one: Kleinberg's s and
gamma, as he sets them."""


@dataclass(frozen=True)
class Burst:
    """One burst of a topic.

    Parameters
    ----------
    first, last : int
        Periods, both in the burst.
    strength : float
        How much better the higher rate fits, in units of log-likelihood (Kleinberg's weight).
    """

    first: int
    last: int
    strength: float


def find_bursts(
    counts: npt.ArrayLike, totals: npt.ArrayLike, *, scale: float = SCALE, cost: float = COST
) -> list[Burst]:
    """Find the bursts of one topic by the cheapest sequence of two states.

    With r and d the counts and totals of the n periods that have rows, R and D their sums, a
    period costs -ln Binomial(r; d, p) in a state of rate p: p0 = R / D in the base state, p1 =
    `scale` * p0 in a burst; and each entrance into a burst costs `cost` * ln n.

    Parameters
    ----------
    counts, totals : array_like of int, shape (n_periods,)
        Periods without rows are passed over.
    scale : float
        Above 1. Where the higher rate would leave less than half of what is not in the topic,
        it is taken half-way between p0 and 1.
    cost : float

    Returns
    -------
    list of Burst
        In order of time.

    References
    ----------
    Kleinberg (2002), "Bursty and hierarchical structure in streams", section 4.

    Examples
    --------
    >>> [(b.first, b.last) for b in find_bursts([1, 0, 9, 8, 1, 2, 1, 0], [20] * 8)]
    [(2, 3)]
    """
    r, d = np.asarray(counts, dtype=np.float64), np.asarray(totals, dtype=np.float64)
    held = np.flatnonzero(d > 0)
    r, d = r[held], d[held]
    base = r.sum() / d.sum() if len(held) else 0.0
    if not 0 < base < 1 or len(held) < 2:
        return []
    high = min(scale * base, (1 + base) / 2)
    gains = r * np.log(high / base) + (d - r) * np.log((1 - high) / (1 - base))
    states = _cheapest(gains, cost * np.log(len(held)))
    steps = np.diff(np.concatenate([[0], states, [0]]))
    begins, ends = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1) - 1
    return [
        Burst(int(held[begin]), int(held[end]), float(gains[begin : end + 1].sum()))
        for begin, end in zip(begins, ends, strict=True)
    ]


def _cheapest(gains: Float64Array, entrance: float) -> npt.NDArray[np.int8]:
    """Return the states of the cheapest sequence, which begins in the base state.

    The base state costs nothing in each period and a burst costs minus its gain. Where both ways
    cost the same, there is no burst.
    """
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


def strongest_p(counts: Int64Array, totals: Int64Array, bursts: list[Burst]) -> float:
    """Return how often a topic of constant share would show as high a peak, at most.

    Given its rows in all periods, those in the strongest burst are binomial. The probability of so
    many is multiplied by the number of stretches of periods among which the burst was found. Where
    the other periods scatter more than rows drawn one by one would, all counts are divided by that
    dispersion first.

    Parameters
    ----------
    counts, totals : int64 ndarray of shape (n_periods,)
    bursts : list of Burst

    Returns
    -------
    float
        1 where there is no burst.
    """
    from scipy.special import betainc, ndtri, stdtr

    if not bursts:
        return 1.0
    strongest = max(bursts, key=lambda burst: burst.strength)
    inside = np.zeros(len(counts), dtype=bool)
    inside[strongest.first : strongest.last + 1] = True
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


def _dispersion(counts: Int64Array, totals: Int64Array) -> tuple[float, bool]:
    """Return by how much periods scatter more than binomial counts of one share, and if surely."""
    from scipy.special import gammaincc

    held = totals > 0
    share = counts.sum() / max(int(totals.sum()), 1)
    if held.sum() < 3 or not 0 < share < 1:
        return 1.0, False
    expected = totals[held] * share
    pearson = float((np.square(counts[held] - expected) / (expected * (1 - share))).sum())
    freedom = int(held.sum()) - 1
    return max(1.0, pearson / freedom), bool(gammaincc(freedom / 2, pearson / 2) < 0.05)
