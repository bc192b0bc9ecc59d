"""Shares that were counted in a sample: their intervals, and how large the sample has to be.

By hand: statsmodels.stats.proportion takes 2.4 s to import, its sample sizes are those of the
normal interval alone, and without a correction for finite populations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, checked_level
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array

INTERVALS = ("wilson", "exact")
METHODS = ("normal", *INTERVALS)
LARGEST = 10**12


def share_interval(
    n_hits: int, n: int, confidence: float = 0.95, method: str = "wilson"
) -> tuple[float, float]:
    """Return Wilson's interval of a share, or the exact one (Clopper and Pearson 1934)."""
    checked_level(confidence)
    if method not in INTERVALS:
        raise InputError("method", f"one of {', '.join(INTERVALS)}", method)
    if not 0 <= n_hits <= n:
        raise InputError("n_hits", f"from 0 to {n}", n_hits)
    if method == "wilson" or n == 0:
        low, high = wilson(n_hits, n, confidence)
        return float(low), float(high)
    from scipy.stats import binomtest

    bounds = binomtest(int(n_hits), int(n)).proportion_ci(confidence, "exact")
    return float(bounds.low), float(bounds.high)


def wilson(
    counts: npt.ArrayLike, totals: npt.ArrayLike, confidence: float = 0.95
) -> tuple[Float64Array, Float64Array]:
    """Return Wilson's intervals of shares, whose coverage holds for small counts too.

    Source: Wilson (1927), "Probable inference, the law of succession, and statistical inference";
    Brown, Cai and DasGupta (2001), "Interval estimation for a binomial proportion", equation 4.
    """
    from scipy.special import ndtri

    above, n = np.broadcast_arrays(
        np.asarray(counts, dtype=np.float64), np.asarray(totals, dtype=np.float64)
    )
    share = np.where(n > 0, above / np.where(n > 0, n, 1.0), np.nan)
    n = np.where(n > 0, n, 1.0)
    z2 = float(ndtri(0.5 + confidence / 2)) ** 2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    spread = np.maximum(share * (1 - share), 0.0) / n + z2 / (4 * n * n)
    half = np.sqrt(z2 * spread) / (1 + z2 / n)
    # Rounding must not put the end of the scale outside of an interval that reaches it.
    low = np.where(share == 0, 0.0, np.maximum(middle - half, 0.0))
    high = np.where(share == 1, 1.0, np.minimum(middle + half, 1.0))
    return np.where(np.isnan(share), np.nan, low), np.where(np.isnan(share), np.nan, high)


def sample_size(
    precision: float = 0.05,
    confidence: float = 0.95,
    share: float = 0.5,
    population: int | None = None,
    method: str = "normal",
) -> int:
    """Return how many documents have to be coded to estimate a share.

    Parameters
    ----------
    precision : float
        Half the length of the confidence interval.
    confidence : float
    share : float
        Expected share; 0.5 is the worst case.
    population : int, optional
        Size of the collection that the sample is drawn from, without replacement; by default
        infinite.
    method : {"normal", "wilson", "exact"}
        Of the interval: z sqrt(p (1 - p) / n) (Cochran 1977, "Sampling techniques", chapter 4),
        Wilson (1927), or Clopper and Pearson (1934). For shares near 0 or 1 the first is too
        short.

    Returns
    -------
    int
        n / (1 + (n - 1) / population) of the n for an infinite population, rounded up (Cochran,
        chapter 4), and never more than the population.

    Raises
    ------
    InputError
        Where a parameter is bad.

    Examples
    --------
    >>> sample_size(), sample_size(population=1000), sample_size(0.03)
    (385, 278, 1068)
    """
    checked_level(confidence)
    if not 0 < precision < 0.5:
        raise InputError("precision", "between 0 and 0.5", precision)
    if method not in METHODS:
        raise InputError("method", f"one of {', '.join(METHODS)}", method)
    if not 0 <= share <= 1 or (method == "normal" and share in (0, 1)):
        raise InputError("share", "between 0 and 1 (both included but for 'normal')", share)
    if population is not None:
        checked_count(population, "population")
    z = _quantile((1 + confidence) / 2)
    if method == "normal":
        n = z * z * share * (1 - share) / precision**2
    elif method == "wilson":
        n = _least(
            lambda n: z * math.sqrt(share * (1 - share) * n + z * z / 4) / (n + z * z) <= precision
        )
    else:
        n = _least(lambda n: _exact_half(share, n, confidence) <= precision)
    if population is None:
        return _rounded_up(n)
    return min(_rounded_up(n / (1 + (n - 1) / population)), population)


def sample_size_for_difference(
    share: float, other_share: float, *, confidence: float = 0.95, power: float = 0.8
) -> int:
    """Return how many documents of each of two groups show that their shares differ.

    Parameters
    ----------
    share, other_share : float
        Expected shares.
    confidence : float
        1 less the significance level of a two-sided test.
    power : float
        Probability to find the difference.

    Returns
    -------
    int
        Documents of each group, (z_a sqrt(2 p q) + z_b sqrt(p1 q1 + p2 q2))^2 / (p1 - p2)^2 with
        the mean share p, rounded up (Fleiss, Levin and Paik 2003, "Statistical methods for rates
        and proportions", chapter 4, without the correction for continuity).

    Raises
    ------
    InputError
        Where a parameter is not between 0 and 1, or the shares are equal.

    Examples
    --------
    >>> sample_size_for_difference(0.5, 0.75, power=0.9)
    77
    """
    for value, name in ((share, "share"), (other_share, "other_share"), (power, "power"),
                        (confidence, "confidence")):  # fmt: skip
        checked_level(value, name)
    if share == other_share:
        raise InputError("other_share", "different from share", other_share)
    mean = (share + other_share) / 2
    under_null = math.sqrt(2 * mean * (1 - mean)) * _quantile((1 + confidence) / 2)
    apart = math.sqrt(share * (1 - share) + other_share * (1 - other_share)) * _quantile(power)
    return _rounded_up(((under_null + apart) / (share - other_share)) ** 2)


def sample_size_for_alpha(
    least: float = 0.8, share: float = 0.5, *, significance: float = 0.05, n_coders: int = 2
) -> int:
    """Return how many documents several coders have to code to show that they agree.

    Parameters
    ----------
    least : float
        Krippendorff's alpha that has to be shown; 0.8 for conclusions, 0.667 for tentative ones.
    share : float
        Of the documents in the rarest category; 1 / n_categories if they are equally frequent.
    significance : float
        Probability to accept codings of this alpha or of a lower one.
    n_coders : int

    Returns
    -------
    int
        n_coders z^2 ((1 + a) (3 - a) / (4 (1 - a) p (1 - p)) - a), rounded up (Bloch and Kraemer
        1989, equation 3.7; Krippendorff 2019, "Content analysis").

    Raises
    ------
    InputError
        Where a parameter is not between 0 and 1, or there are fewer than two coders.

    Examples
    --------
    >>> sample_size_for_alpha(0.8, share=0.25), sample_size_for_alpha(0.667, share=0.25)
    (139, 81)
    """
    for value, name in ((least, "least"), (share, "share"), (significance, "significance")):
        checked_level(value, name)
    checked_count(n_coders, "n_coders", 2)
    z = _quantile(1 - significance)
    spread = (1 + least) * (3 - least) / (4 * (1 - least) * share * (1 - share))
    return _rounded_up(n_coders * z * z * (spread - least))


def _exact_half(share: float, n: int, confidence: float) -> float:
    """Return half the length of Clopper and Pearson's interval, also for fractional hits."""
    from scipy.stats import beta

    tail, hits = (1 - confidence) / 2, share * n
    low = float(beta.ppf(tail, hits, n - hits + 1)) if hits > 0 else 0.0
    high = float(beta.ppf(1 - tail, hits + 1, n - hits)) if hits < n else 1.0
    return (high - low) / 2


def _least(is_enough: Callable[[int], bool]) -> float:
    """Return the smallest number from 1 that is enough, where all above it are."""
    above = 1
    while not is_enough(above):
        above *= 2
        if above > LARGEST:
            raise InputError(f"no sample below {LARGEST:,} is precise enough; ask for less")
    below = above // 2
    while above - below > 1:
        middle = (above + below) // 2
        above, below = (middle, below) if is_enough(middle) else (above, middle)
    return float(above)


def _rounded_up(n: float) -> int:
    return max(1, math.ceil(n - 1e-9))  # not for a rounding error


def _quantile(probability: float) -> float:
    return NormalDist().inv_cdf(probability)
