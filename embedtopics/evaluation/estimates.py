"""Figures with intervals, from figures that were drawn anew."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.evaluation.bootstrap import interval, resampled_means
from embedtopics.results import Estimate

__all__ = ["difference_of", "estimate", "mean_of_estimates", "mean_of_values"]

Float64Array = npt.NDArray[np.float64]


def estimate(value: float, drawn: npt.ArrayLike, n: int, *, confidence: float = 0.95) -> Estimate:
    """Return a figure with the percentile interval of those drawn anew.

    Parameters
    ----------
    value : float
    drawn : array_like of float, shape (n_resamples,)
    n : int
        Examples.
    confidence : float

    Returns
    -------
    Estimate
    """
    resampled = np.asarray(drawn, dtype=np.float64)
    low, high = interval(resampled, confidence) if len(resampled) else (np.nan, np.nan)
    return Estimate(float(value), float(low), float(high), int(n), resampled)


def mean_of_values(
    values: npt.ArrayLike, *, n_resamples: int = 1000, seed: int = 0, confidence: float = 0.95
) -> Estimate:
    """Return the mean of what each example adds, with its interval.

    Parameters
    ----------
    values : array_like of float, shape (n_examples,)
        NaN where an example has no value: it counts neither in the mean nor in n.
    n_resamples : int
        0 for a figure without an interval.
    seed : int
    confidence : float

    Returns
    -------
    Estimate

    Raises
    ------
    InputError
        Without any value.
    """
    array = np.asarray(values, dtype=np.float64)
    known = ~np.isnan(array)
    if array.ndim != 1 or not known.any():
        raise InputError(f"expected a value for some examples; got none in shape {array.shape}")
    drawn: npt.ArrayLike = []
    if n_resamples:
        drawn = resampled_means(array[:, None], n_resamples, seed)[:, 0]
    return estimate(array[known].mean(), drawn, int(known.sum()), confidence=confidence)


def mean_of_estimates(estimates: Sequence[Estimate], *, confidence: float = 0.95) -> Estimate:
    """Return the mean of figures of several sets, each set counting the same.

    As leaderboards average over sets. The interval is that of sets whose examples were drawn
    apart from one another, or together where the sets came from one seed.

    Parameters
    ----------
    estimates : sequence of Estimate
        With equally many resamples.
    confidence : float

    Returns
    -------
    Estimate
        Its n is that of all sets together.

    Raises
    ------
    InputError
        Without any, or where the numbers of resamples differ.
    """
    lengths = {len(one.drawn) for one in estimates}
    if len(lengths) != 1:
        raise InputError(
            "expected figures with equally many resamples; got "
            f"{', '.join(map(str, sorted(lengths))) or 'no figures'}"
        )
    drawn = np.mean([one.drawn for one in estimates], axis=0)
    value = float(np.mean([one.value for one in estimates]))
    return estimate(value, drawn, sum(one.n for one in estimates), confidence=confidence)


def difference_of(after: Estimate, before: Estimate, *, confidence: float = 0.95) -> Estimate:
    """Return by how much one figure is above another on the same examples, paired.

    Both must come from the same examples in the same order and from one seed: then each resample
    of the one has a twin, and what makes examples easy or hard for both falls out.

    Parameters
    ----------
    after, before : Estimate
    confidence : float

    Returns
    -------
    Estimate

    Raises
    ------
    InputError
        Where they are of other numbers of examples or of resamples.

    References
    ----------
    Efron and Tibshirani (1993), "An Introduction to the Bootstrap", section 13.3.
    """
    if after.n != before.n or len(after.drawn) != len(before.drawn):
        raise InputError(
            "a difference needs two figures of the same examples and resamples; got "
            f"{after.n} and {before.n} examples, {len(after.drawn)} and {len(before.drawn)} "
            "resamples"
        )
    drawn = after.drawn - before.drawn
    return estimate(after.value - before.value, drawn, after.n, confidence=confidence)
