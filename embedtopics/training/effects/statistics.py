"""Figures of similarities, for many samples of the same examples at once.

A sample is how often each example is in it, so that a bootstrap sample is a row of counts; figures
are those of a set in which an example is repeated so often. All examples once is a row of ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Statistic", "auc", "average_precision", "mean", "pearson", "spearman"]

Float64Array = npt.NDArray[np.float64]

Statistic = Callable[[Float64Array, npt.NDArray[Any], Float64Array], Float64Array]
"""Takes scores and truth of shape (n,) and counts of shape (n_samples, n), gives (n_samples,)."""


def mean(scores: Float64Array, truth: npt.NDArray[Any], counts: Float64Array) -> Float64Array:
    """Return the mean score; the truth is in the scores already."""
    return _ratio((counts * scores).sum(axis=1), counts.sum(axis=1))


def pearson(scores: Float64Array, truth: npt.NDArray[Any], counts: Float64Array) -> Float64Array:
    """Return Pearson's correlation of scores and truth; NaN where one of them does not vary."""
    return _correlation(np.broadcast_to(scores, counts.shape), truth, counts)


def spearman(scores: Float64Array, truth: npt.NDArray[Any], counts: Float64Array) -> Float64Array:
    """Return Spearman's correlation, the ranks being those within each sample."""
    return _correlation(_ranks(scores, counts), _ranks(truth, counts), counts)


def auc(scores: Float64Array, truth: npt.NDArray[Any], counts: Float64Array) -> Float64Array:
    """Return how often a true example has a higher score than a false one, ties counting half."""
    positive, negative = _by_score(scores, truth, counts)
    below = np.cumsum(negative, axis=1) - negative
    won = (positive * (below + negative / 2)).sum(axis=1)
    return _ratio(won, positive.sum(axis=1) * negative.sum(axis=1))


def average_precision(
    scores: Float64Array, truth: npt.NDArray[Any], counts: Float64Array
) -> Float64Array:
    """Return the mean precision at the true examples, those of one score being found together."""
    positive, negative = (part[:, ::-1] for part in _by_score(scores, truth, counts))
    found = np.cumsum(positive, axis=1)
    precision = _ratio(found, found + np.cumsum(negative, axis=1), empty=0.0)
    return _ratio((positive * precision).sum(axis=1), positive.sum(axis=1))


def _by_score(
    scores: Float64Array, truth: npt.NDArray[Any], counts: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return how many true and false examples have each score, the lowest first."""
    order, starts, _ = _groups(scores)
    is_true = (np.asarray(truth) > 0)[order]
    drawn = counts[:, order]
    positive = np.add.reduceat(drawn * is_true, starts, axis=1)
    negative = np.add.reduceat(drawn * ~is_true, starts, axis=1)
    return positive, negative


def _ranks(values: npt.NDArray[Any], counts: Float64Array) -> Float64Array:
    """Return the mean rank, in each sample, of the copies of an example and of its ties."""
    order, starts, group_of = _groups(values)
    size = np.add.reduceat(counts[:, order], starts, axis=1)
    middle = np.cumsum(size, axis=1) - (size - 1) / 2
    return np.asarray(middle[:, group_of])


def _groups(values: npt.NDArray[Any]) -> tuple[Any, Any, Any]:
    """Return the ascending order, where each distinct value begins in it, and whose each is."""
    distinct, group_of = np.unique(values, return_inverse=True)
    order = np.argsort(group_of, kind="stable")
    starts = np.searchsorted(group_of[order], np.arange(len(distinct)))
    return order, starts, group_of


def _correlation(x: npt.NDArray[Any], y: npt.NDArray[Any], counts: Float64Array) -> Float64Array:
    total = counts.sum(axis=1, keepdims=True)
    y = np.broadcast_to(np.asarray(y, dtype=np.float64), counts.shape)
    # Centred first: the sums of squares alone would lose half of the digits.
    dx = x - _ratio((counts * x).sum(axis=1, keepdims=True), total)
    dy = y - _ratio((counts * y).sum(axis=1, keepdims=True), total)
    both, of_x, of_y = (
        (counts * one * other).sum(axis=1) for one, other in ((dx, dy), (dx, dx), (dy, dy))
    )
    varies = (of_x > _SMALL * _spread(x)) & (of_y > _SMALL * _spread(y))
    correlation = _ratio(both, np.sqrt(of_x) * np.sqrt(of_y))
    return np.where(varies, np.clip(correlation, -1.0, 1.0), np.nan)


_SMALL = 1e-24
"""Share of the squared size below which a sum of squared deviations is rounding alone."""


def _spread(values: npt.NDArray[Any]) -> float:
    return float(np.square(values, dtype=np.float64).sum(axis=1).max(initial=0.0))


def _ratio(above: Float64Array, below: Float64Array, empty: float = np.nan) -> Float64Array:
    ratio = np.full(np.broadcast_shapes(np.shape(above), np.shape(below)), empty)
    np.divide(above, below, out=ratio, where=below != 0)
    return ratio
