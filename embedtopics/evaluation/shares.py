"""Shares that were counted in a sample: their intervals, and how large the sample has to be."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_level
from embedtopics.errors import InputError

__all__ = [
    "sample_size",
    "sample_size_for_alpha",
    "sample_size_for_difference",
    "share_interval",
    "wilson",
]

Float64Array = npt.NDArray[np.float64]

INTERVALS = ("wilson", "exact")
METHODS = ("normal", *INTERVALS)
LARGEST = 10**12


def share_interval(
    n_hits: int, n: int, confidence: float = 0.95, method: str = "wilson"
) -> tuple[float, float]:
    """Return the confidence interval of a share.

    Parameters
    ----------
    n_hits : int
    n : int
        Of so many.
    confidence : float
    method : {"wilson", "exact"}
        Wilson (1927), whose coverage is right on average; or Clopper and Pearson (1934), whose
        coverage is never too small, at the price of longer intervals.

    Returns
    -------
    low, high : float
        NaN for a sample of none.

    Raises
    ------
    InputError
        Where there are more hits than cases, or a parameter is bad.

    Examples
    --------
    >>> [round(bound, 3) for bound in share_interval(8, 10)]
    [0.49, 0.943]
    """
    checked_level(confidence)
    if method not in INTERVALS:
        raise InputError(f"method must be one of {', '.join(INTERVALS)}; got {method!r}")
    if not 0 <= n_hits <= n:
        raise InputError(f"n_hits must be from 0 to n; got {n_hits} of {n}")
    if method == "wilson" or n == 0:
        low, high = wilson(n_hits, n, confidence)
        return float(low), float(high)
    from scipy.stats import binomtest

    bounds = binomtest(int(n_hits), int(n)).proportion_ci(confidence, "exact")
    return float(bounds.low), float(bounds.high)


def wilson(
    counts: npt.ArrayLike, totals: npt.ArrayLike, confidence: float = 0.95
) -> tuple[Float64Array, Float64Array]:
    """Return Wilson's interval of shares.

    Unlike estimate plus and minus a few standard errors, it holds its promise for small counts
    too, never leaves 0 to 1, and does not shrink to nothing where a count is 0.

    Parameters
    ----------
    counts, totals : array_like, of shapes that broadcast
        No whole numbers where a sample is worth fewer cases than it has.
    confidence : float

    Returns
    -------
    low, high : float64 ndarray
        NaN where the total is 0.

    References
    ----------
    Wilson (1927), "Probable inference, the law of succession, and statistical inference"; Brown,
    Cai and DasGupta (2001), "Interval estimation for a binomial proportion", equation 4.

    Examples
    --------
    >>> low, high = wilson(8, 10)
    >>> round(float(low), 4), round(float(high), 4)
    (0.4902, 0.9433)
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
    """Return how many documents have to be coded to know a share to a precision.

    Parameters
    ----------
    precision : float
        Half the length of the confidence interval.
    confidence : float
    share : float
        The share that is expected; a half, the worst case, where nothing is.
    population : int, optional
        Documents that the sample is drawn from, without replacement; by default without end.
    method : {"normal", "wilson", "exact"}
        The interval that is meant: z sqrt(p (1 - p) / n) (Cochran 1977, "Sampling techniques",
        chapter 4), or those of `share_interval`. For shares near 0 or 1 the first is too
        hopeful.

    Returns
    -------
    int
        n / (1 + (n - 1) / population) of the n for a population without end, rounded up (Cochran,
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
        raise InputError(f"precision must be between 0 and 0.5; got {precision!r}")
    if not 0 <= share <= 1 or (method == "normal" and share in (0, 1)):
        raise InputError(
            f"share must be between 0 and 1 (these included for other methods than 'normal'); "
            f"got {share!r}"
        )
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}; got {method!r}")
    if population is not None and population < 1:
        raise InputError(f"population must be at least 1 document; got {population}")
    z = _quantile((1 + confidence) / 2)
    if method == "normal":
        n = z * z * share * (1 - share) / precision**2
    else:
        half = _wilson(share, z) if method == "wilson" else _exact(share, confidence)
        n = float(_least(lambda size: half(size) <= precision))
    if population is None:
        return _up(n)
    return min(_up(n / (1 + (n - 1) / population)), population)


def sample_size_for_difference(
    share: float, other_share: float, *, confidence: float = 0.95, power: float = 0.8
) -> int:
    """Return how many documents of each of two groups tell two shares apart.

    Parameters
    ----------
    share, other_share : float
        The shares that are expected.
    confidence : float
        1 less the chance to see a difference where there is none, in a two-sided test.
    power : float
        Chance to see the difference.

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
        raise InputError(f"the two shares must differ; got {share!r} twice")
    mean = (share + other_share) / 2
    at_random = math.sqrt(2 * mean * (1 - mean)) * _quantile((1 + confidence) / 2)
    apart = math.sqrt(share * (1 - share) + other_share * (1 - other_share)) * _quantile(power)
    return _up(((at_random + apart) / (share - other_share)) ** 2)


def sample_size_for_alpha(
    least: float = 0.8, share: float = 0.5, *, significance: float = 0.05, n_coders: int = 2
) -> int:
    """Return how many documents have to be coded twice to show that coders agree well enough.

    Parameters
    ----------
    least : float
        Krippendorff's alpha that has to be shown; 0.8 for conclusions, 0.667 for tentative ones.
    share : float
        Of the documents in the rarest category; one over the categories if they are alike.
    significance : float
        Chance to accept codings of just this alpha, or of a lower one.
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
    if n_coders < 2:
        raise InputError(f"n_coders must be at least 2; got {n_coders}")
    z = _quantile(1 - significance)
    spread = (1 + least) * (3 - least) / (4 * (1 - least) * share * (1 - share))
    return _up(n_coders * z * z * (spread - least))


def _wilson(share: float, z: float) -> Callable[[int], float]:
    """Return half the length of Wilson's interval by the size of a sample."""
    return lambda n: z * math.sqrt(share * (1 - share) * n + z * z / 4) / (n + z * z)


def _exact(share: float, confidence: float) -> Callable[[int], float]:
    """Return half the length of Clopper and Pearson's interval, hits between integers included."""
    from scipy.stats import beta

    tail = (1 - confidence) / 2

    def half(n: int) -> float:
        hits = share * n
        low = float(beta.ppf(tail, hits, n - hits + 1)) if hits > 0 else 0.0
        high = float(beta.ppf(1 - tail, hits + 1, n - hits)) if hits < n else 1.0
        return (high - low) / 2

    return half


def _least(is_enough: Callable[[int], bool]) -> int:
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
    return above


def _up(n: float) -> int:
    """Round up, and not for a rounding error."""
    return max(1, math.ceil(n - 1e-9))


def _quantile(probability: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)
