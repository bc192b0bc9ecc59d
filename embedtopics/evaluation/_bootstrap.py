"""How far a figure would change with other documents of the same kind: bootstrap intervals.

Efron and Tibshirani (1993), "An Introduction to the Bootstrap", chapters 6 and 13. One seed draws
the same documents whatever is measured: figures from one seed are paired, and their differences
have intervals of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_level
from embedtopics.errors import InputError
from embedtopics.evaluation.results import Estimate
from embedtopics.protocols import Float64Array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


RESAMPLES_AT_ONCE = 50
"""Resamples that are drawn together; part of what a seed means."""


def resampled_counts(
    n_documents: int, n_resamples: int = 1000, seed: int = 0
) -> Iterator[Float64Array]:
    """Yield how often each document was drawn, some resamples at a time: (n, n_documents)."""
    if n_documents < 1 or n_resamples < 1:
        raise InputError(
            "resampling needs at least 1 document and at least 1 resample; "
            f"got {n_documents} documents and {n_resamples} resamples"
        )
    rng = np.random.default_rng(seed)
    for begin in range(0, n_resamples, RESAMPLES_AT_ONCE):
        times = np.empty((min(RESAMPLES_AT_ONCE, n_resamples - begin), n_documents))
        for row in times:
            drawn = rng.integers(0, n_documents, n_documents)
            row[:] = np.bincount(drawn, minlength=n_documents)
        yield times


def resampled_sums(
    columns: npt.ArrayLike | csr_matrix, n_resamples: int = 1000, seed: int = 0
) -> Float64Array:
    """Add up columns over documents drawn with replacement, (n_resamples, n_columns)."""
    from scipy.sparse import issparse
    from threadpoolctl import threadpool_limits

    added: Any = columns if issparse(columns) else np.asarray(columns, dtype=np.float64)
    if added.ndim != 2 or added.shape[0] == 0 or n_resamples < 1:
        raise InputError(
            "resampling needs a row for each of some documents and at least 1 resample; "
            f"got shape {added.shape} and {n_resamples} resamples"
        )
    sums = np.empty((n_resamples, added.shape[1]))
    begin = 0
    # On one thread: the order in which BLAS sums depends on how many it has.
    with threadpool_limits(limits=1, user_api="blas"):
        for times in resampled_counts(added.shape[0], n_resamples, seed):
            sums[begin : begin + len(times)] = (added.T @ times.T).T
            begin += len(times)
    return sums


def resampled_means(values: npt.ArrayLike, n_resamples: int = 1000, seed: int = 0) -> Float64Array:
    """Average columns over documents drawn with replacement; a NaN is left out of its mean."""
    array = np.asarray(values, dtype=np.float64)
    known = ~np.isnan(array)
    both = np.concatenate([np.where(known, array, 0.0), known], axis=1)
    totals, counts = np.split(resampled_sums(both, n_resamples, seed), 2, axis=1)
    means = np.full_like(totals, np.nan)
    np.divide(totals, counts, out=means, where=counts > 0)
    return means


def interval(resampled: npt.ArrayLike, confidence: float = 0.95) -> tuple[Any, Any]:
    """Return the percentile interval of figures (n_resamples, ...), NaN resamples left out."""
    checked_level(confidence)
    drawn = np.asarray(resampled, dtype=np.float64)
    flat = drawn.reshape(len(drawn), -1)
    bounds = np.full((2, flat.shape[1]), np.nan)
    tail = (1 - confidence) / 2
    is_missing = np.isnan(flat)
    whole = ~is_missing.any(axis=0)
    if len(flat):
        bounds[:, whole] = np.quantile(flat[:, whole], [tail, 1 - tail], axis=0)
    for column in np.flatnonzero(~whole).tolist():
        known = flat[~is_missing[:, column], column]
        if len(known):
            bounds[:, column] = np.quantile(known, [tail, 1 - tail])
    low, high = bounds.reshape(2, *drawn.shape[1:])
    return low, high


def estimate(value: float, drawn: npt.ArrayLike, n: int, *, confidence: float = 0.95) -> Estimate:
    """Return a figure of `n` examples with the percentile interval of its resamples, if any."""
    resampled = np.asarray(drawn, dtype=np.float64)
    low, high = interval(resampled, confidence) if len(resampled) else (np.nan, np.nan)
    return Estimate(float(value), float(low), float(high), int(n), resampled)


def estimate_of_counts(
    measure: Callable[[Float64Array], Float64Array],
    n: int,
    n_resamples: int,
    seed: int,
    confidence: float,
) -> Estimate:
    """Return a figure of how often each example counts, (n_tables, n) -> (n_tables,)."""
    drawn: Any = []
    if n_resamples:
        drawn = np.concatenate([measure(times) for times in resampled_counts(n, n_resamples, seed)])
    return estimate(measure(np.ones((1, n)))[0], drawn, n, confidence=confidence)


def mean_of_values(
    values: npt.ArrayLike, *, n_resamples: int = 1000, seed: int = 0, confidence: float = 0.95
) -> Estimate:
    """Return the mean of the values of the examples, NaN left out, with its interval."""
    array = np.asarray(values, dtype=np.float64)
    known = ~np.isnan(array)
    if array.ndim != 1 or not known.any():
        raise InputError(f"expected a value for some examples; got none in shape {array.shape}")
    drawn: npt.ArrayLike = []
    if n_resamples:
        drawn = resampled_means(array[:, None], n_resamples, seed)[:, 0]
    return estimate(array[known].mean(), drawn, int(known.sum()), confidence=confidence)


def means_of_columns(
    by_name: dict[str, Float64Array], n_resamples: int, seed: int, confidence: float
) -> dict[str, Estimate]:
    """Return the mean of each column over the same resamples; of a single row, no interval."""
    columns = np.column_stack(list(by_name.values()))
    drawn = None
    if n_resamples and len(columns) > 1:
        drawn = resampled_means(columns, n_resamples, seed)
    return {
        name: estimate(
            columns[:, place].mean(),
            [] if drawn is None else drawn[:, place],
            len(columns),
            confidence=confidence,
        )
        for place, name in enumerate(by_name)
    }


def mean_of_estimates(estimates: Sequence[Estimate], *, confidence: float = 0.95) -> Estimate:
    """Return the mean of the figures of several sets, each set counting the same."""
    lengths = {len(one.drawn) for one in estimates}
    if len(lengths) != 1:
        raise InputError("estimates", "figures with equally many resamples", sorted(lengths))
    drawn = np.mean([one.drawn for one in estimates], axis=0)
    value = float(np.mean([one.value for one in estimates]))
    return estimate(value, drawn, sum(one.n for one in estimates), confidence=confidence)


def difference_of(after: Estimate, before: Estimate, *, confidence: float = 0.95) -> Estimate:
    """Return by how much one figure is above another of the same examples and seed, paired."""
    if after.n != before.n or len(after.drawn) != len(before.drawn):
        raise InputError(
            "a difference needs two figures of the same examples and resamples; got "
            f"{after.n} and {before.n} examples, {len(after.drawn)} and {len(before.drawn)} "
            "resamples"
        )
    drawn = after.drawn - before.drawn
    return estimate(after.value - before.value, drawn, after.n, confidence=confidence)
