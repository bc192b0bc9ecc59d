"""How far a figure would change with other documents of the same kind: bootstrap intervals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["interval", "resampled_counts", "resampled_means", "resampled_sums"]

RESAMPLES_AT_ONCE = 50
"""Resamples that are drawn together; part of what a seed means."""

Float64Array = npt.NDArray[np.float64]


def resampled_counts(
    n_documents: int, n_resamples: int = 1000, seed: int = 0
) -> Iterator[Float64Array]:
    """Draw documents with replacement, and count how often each was drawn.

    For figures that are no sum over documents, such as rank correlations. The draws are those of
    `resampled_sums` with the same seed.

    Parameters
    ----------
    n_documents : int
    n_resamples : int
    seed : int

    Yields
    ------
    float64 ndarray of shape (n, n_documents)
        Some resamples at a time; each row adds up to `n_documents`.

    Raises
    ------
    InputError
        Without documents, or with fewer than one resample.
    """
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
    """Add up columns over documents drawn with replacement.

    The same seed draws the same documents, whatever the columns are: figures of several encoders
    from one seed are paired, and their differences have intervals of their own.

    Parameters
    ----------
    columns : array_like or csr_matrix of shape (n_documents, n_columns)
        What each document adds.
    n_resamples : int
    seed : int

    Returns
    -------
    float64 ndarray of shape (n_resamples, n_columns)

    Raises
    ------
    InputError
        Without documents, or with fewer than one resample.

    References
    ----------
    Efron and Tibshirani (1993), "An Introduction to the Bootstrap", chapters 6 and 13.
    """
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
    """Average columns over documents drawn with replacement.

    Parameters
    ----------
    values : array_like of shape (n_documents, n_columns)
        NaN where a document has no value; the mean is over those that have one.
    n_resamples : int
    seed : int

    Returns
    -------
    float64 ndarray of shape (n_resamples, n_columns)
        NaN where none of the documents drawn has a value.
    """
    array = np.asarray(values, dtype=np.float64)
    known = ~np.isnan(array)
    both = np.concatenate([np.where(known, array, 0.0), known], axis=1)
    sums = resampled_sums(both, n_resamples, seed)
    totals, counts = np.split(sums, 2, axis=1)
    means = np.full_like(totals, np.nan)
    np.divide(totals, counts, out=means, where=counts > 0)
    return means


def interval(resampled: npt.ArrayLike, confidence: float = 0.95) -> tuple[Any, Any]:
    """Return the percentile interval of resampled figures.

    Parameters
    ----------
    resampled : array_like of shape (n_resamples, ...)
        NaN resamples are left out.
    confidence : float
        Share of the resamples inside.

    Returns
    -------
    low, high : float64 ndarray
        Of the remaining shape; NaN where all resamples are.

    Examples
    --------
    >>> [round(float(bound), 3) for bound in interval(range(101), 0.9)]
    [5.0, 95.0]
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence must be between 0 and 1; got {confidence!r}")
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
