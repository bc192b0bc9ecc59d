"""Bootstrap intervals of estimates.

Efron and Tibshirani (1993), "An Introduction to the Bootstrap", chapters 6 and 13. Percentile
intervals are too narrow for few documents, and have no width if all resamples are equal. Hence two
intervals, one for a bounded scale and one for any scale. One seed draws the same documents for
every measure, so that estimates with one seed are paired and their differences have intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_between
from embedtopics._utils.machine import one_blas_thread
from embedtopics.errors import InputError
from embedtopics.evaluation.results import Estimate
from embedtopics.protocols import Float64Array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def wilson(
    counts: npt.ArrayLike,
    totals: npt.ArrayLike,
    confidence: float = 0.95,
    *,
    df: npt.ArrayLike = np.inf,
) -> tuple[Float64Array, Float64Array]:
    """Return Wilson's intervals of shares, whose coverage holds for small counts too.

    Source: Brown, Cai and DasGupta (2001), "Interval estimation for a binomial proportion", eq. 4.
    `df` are the degrees of freedom of a variance that was estimated, (...) as the counts.
    """
    from scipy.special import stdtrit

    above, n = np.broadcast_arrays(
        np.asarray(counts, dtype=np.float64), np.asarray(totals, dtype=np.float64)
    )
    share = np.where(n > 0, above / np.where(n > 0, n, 1.0), np.nan)
    n = np.where(n > 0, n, 1.0)
    z2 = np.square(stdtrit(np.asarray(df, dtype=np.float64), 0.5 + confidence / 2))
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    spread = np.maximum(share * (1 - share), 0.0) / n + z2 / (4 * n * n)
    half = np.sqrt(z2 * spread) / (1 + z2 / n)
    # Rounding must not put the end of the scale outside of an interval that reaches it.
    low = np.where(share == 0, 0.0, np.maximum(middle - half, 0.0))
    high = np.where(share == 1, 1.0, np.minimum(middle + half, 1.0))
    return np.where(np.isnan(share), np.nan, low), np.where(np.isnan(share), np.nan, high)


N_RESAMPLES = 1000

RESAMPLES_AT_ONCE = 50
"""Resamples that are drawn together; part of what a seed means."""


def resampled_counts(
    n_documents: int, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> Iterator[Float64Array]:
    """Yield how often each document was drawn, some resamples at a time: (n, n_documents)."""
    rng = np.random.default_rng(seed)
    for begin in range(0, n_resamples, RESAMPLES_AT_ONCE):
        times = np.empty((min(RESAMPLES_AT_ONCE, n_resamples - begin), n_documents))
        for row in times:
            drawn = rng.integers(0, n_documents, n_documents)
            row[:] = np.bincount(drawn, minlength=n_documents)
        yield times


def resampled_sums(
    columns: npt.ArrayLike | csr_matrix, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> Float64Array:
    """Add up columns over documents drawn with replacement, (n_resamples, n_columns)."""
    from scipy.sparse import issparse

    added: Any = columns if issparse(columns) else np.asarray(columns, dtype=np.float64)
    sums = np.empty((n_resamples, added.shape[1]))
    begin = 0
    with one_blas_thread():
        for times in resampled_counts(added.shape[0], n_resamples, seed):
            sums[begin : begin + len(times)] = (added.T @ times.T).T
            begin += len(times)
    return sums


def resampled_means(
    values: npt.ArrayLike, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> Float64Array:
    """Average columns over documents drawn with replacement; a NaN is left out of its mean."""
    array = np.asarray(values, dtype=np.float64)
    is_defined = ~np.isnan(array)
    both = np.concatenate([np.where(is_defined, array, 0.0), is_defined], axis=1)
    totals, counts = np.split(resampled_sums(both, n_resamples, seed), 2, axis=1)
    means = np.full_like(totals, np.nan)
    np.divide(totals, counts, out=means, where=counts > 0)
    return means


def interval(
    resampled: npt.ArrayLike, n_units: npt.ArrayLike, confidence: float = 0.95
) -> tuple[Any, Any]:
    """Return the expanded percentile interval of estimates (n_resamples, ...), NaN left out.

    The expansion makes it Student's t interval for means of a normal distribution (Hesterberg
    2015, "What teachers should know about the bootstrap", section 5.3). `n_units` is the number of
    units drawn with replacement, for all estimates or each; infinite for draws from a
    distribution. Fewer than two units have no interval (NaN).
    """
    from scipy.special import ndtr, stdtrit

    checked_between(confidence, "confidence", 0, 1)
    drawn = np.asarray(resampled, dtype=np.float64)
    flat = drawn.reshape(len(drawn), -1)
    n = np.asarray(n_units, dtype=np.float64)
    reach = _expansion(n) * stdtrit(np.where(n > 1, n - 1, np.nan), 0.5 + confidence / 2)
    reach = np.broadcast_to(reach, drawn.shape[1:])
    bounds = np.full((2, flat.shape[1]), np.nan)
    # Two units can reach further than floats tell from certainty.
    tails = np.maximum(ndtr(-reach.ravel()), 5e-13)
    has_any = (~np.isnan(flat)).any(axis=0)
    for tail in np.unique(tails[~np.isnan(tails) & has_any]):
        columns = (tails == tail) & has_any
        bounds[:, columns] = np.nanquantile(flat[:, columns], [tail, 1 - tail], axis=0)
    low, high = bounds.reshape(2, *drawn.shape[1:])
    return low, high


def bounded_interval(
    values: npt.ArrayLike,
    resampled: npt.ArrayLike,
    n_units: npt.ArrayLike,
    confidence: float = 0.95,
    bounds: tuple[npt.ArrayLike, float] = (0.0, 1.0),
) -> tuple[Any, Any]:
    """Return score intervals of estimates on a bounded scale, `values` (...), by their resamples.

    Wilson's interval of a share, with the number of trials that has the variance of the resamples,
    and with quantiles of Student's t (Korn and Graubard 1998; Franco et al. 2019, "Comparative
    study of confidence intervals for proportions in complex sample surveys"). If all resamples are
    equal, each unit counts as one trial: ten hits of ten prove no more than 72 %. In simulations
    with 5 to 50 queries, intervals of 0.95 cover the mean score in 92 to 99 % of the cases,
    percentile intervals in 15 to 97 %; with 8 to 50 pairs a rank correlation in 94 to 99 %.
    """
    figures, drawn = np.asarray(values, dtype=np.float64), np.asarray(resampled, dtype=np.float64)
    n = np.broadcast_to(np.asarray(n_units, dtype=np.float64), figures.shape)
    least = np.asarray(bounds[0], dtype=np.float64)
    width = bounds[1] - least
    share = np.clip((figures - least) / width, 0.0, 1.0)
    is_defined = ~np.isnan(drawn)
    total = np.maximum(is_defined.sum(axis=0), 1)
    mean = np.where(is_defined, drawn, 0.0).sum(axis=0) / total
    spread = np.where(is_defined, drawn - mean, 0.0) / width
    variance = np.square(spread).sum(axis=0) / total * _expansion(n) ** 2
    varies = (variance > 1e-18) & (share > 0) & (share < 1)
    trials = np.where(varies, share * (1 - share) / np.where(varies, variance, 1.0), n)
    low, high = wilson(share * trials, trials, confidence, df=np.where(varies, n - 1, np.inf))
    unknown = (n < 2) | ~is_defined.any(axis=0)
    low, high = (np.where(unknown, np.nan, least + width * end) for end in (low, high))
    return low, high


def _expansion(n: Float64Array) -> Float64Array:
    """Return the factor by which resamples of n units vary too little; NaN below two."""
    return np.sqrt(1 + 1 / (np.where(n > 1, n, np.nan) - 1))


def estimate(
    value: float,
    drawn: npt.ArrayLike,
    n: int,
    *,
    n_units: float | None = None,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> Estimate:
    """Return an estimate from `n` examples with the interval of its resamples, if any.

    `n_units` is the number of units drawn, by default `n`; `bounds` are the ends of the scale.
    """
    resampled = np.asarray(drawn, dtype=np.float64)
    units = float(n if n_units is None else n_units)
    low, high = np.nan, np.nan
    if len(resampled) and bounds is None:
        low, high = interval(resampled, units)
    elif len(resampled) and bounds is not None:
        low, high = bounded_interval(value, resampled, units, bounds=bounds)
    return Estimate(
        value=float(value),
        low=float(low),
        high=float(high),
        n=int(n),
        drawn=resampled,
        n_units=units,
        bounds=bounds,
    )


def estimate_of_counts(
    measure: Callable[[Float64Array], Float64Array],
    n: int,
    n_resamples: int,
    seed: int,
    **described: Any,
) -> Estimate:
    """Return an estimate; `measure` maps weights of the examples, (n_tables, n), to (n_tables,)."""
    drawn = [measure(times) for times in resampled_counts(n, n_resamples, seed)]
    return estimate(measure(np.ones((1, n)))[0], np.concatenate(drawn), n, **described)


def mean_of_values(values: npt.ArrayLike, seed: int = 0) -> Estimate:
    """Return the mean of values from 0 to 1 of the examples, NaN left out, with its interval."""
    array = np.asarray(values, dtype=np.float64)
    is_defined = ~np.isnan(array)
    drawn = resampled_means(array[:, None], seed=seed)[:, 0]
    return estimate(array[is_defined].mean(), drawn, int(is_defined.sum()))


def means_of_columns(
    by_name: dict[str, Float64Array],
    seed: int,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> dict[str, Estimate]:
    """Return the mean of each column over the same resamples; a single row has no interval."""
    columns = np.column_stack(list(by_name.values()))
    n = len(columns)
    drawn = resampled_means(columns, N_RESAMPLES if n > 1 else 0, seed)
    return {
        name: estimate(columns[:, place].mean(), drawn[:, place], n, bounds=bounds)
        for place, name in enumerate(by_name)
    }


def difference_of(after: Estimate, before: Estimate) -> Estimate:
    """Return the difference of two estimates from the same examples and seed, paired."""
    if after.n != before.n or len(after.drawn) != len(before.drawn):
        found = f"{before.n} and {after.n} examples, {len(before.drawn)} and {len(after.drawn)}"
        raise InputError("after", "of the examples and resamples of before", found=found)
    drawn = after.drawn - before.drawn
    value, n_units = after.value - before.value, min(after.n_units, before.n_units)
    return estimate(value, drawn, after.n, n_units=n_units, bounds=None)
