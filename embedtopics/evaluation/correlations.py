"""Correlations of two rows of numbers, with bootstrap intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.evaluation.bootstrap import resampled_counts, resampled_sums
from embedtopics.evaluation.estimates import estimate
from embedtopics.evaluation.vector_pairs import pair_similarities
from embedtopics.results import Estimate

__all__ = ["pearson_correlation", "similarity_correlations", "spearman_correlation"]

Float64Array = npt.NDArray[np.float64]
LEAST = 3
"""Pairs below which a correlation says nothing."""


def spearman_correlation(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Estimate:
    """Return the rank correlation of two rows of numbers; equal numbers share their mean rank.

    In every resample the ranks are taken anew.

    Parameters
    ----------
    first, second : array_like of float, shape (n,)
    n_resamples : int
        0 for a figure without an interval.
    seed : int
    confidence : float

    Returns
    -------
    Estimate
        NaN where all numbers of one row are equal.

    Raises
    ------
    InputError
        Where the lengths differ, there are fewer than three pairs, or a number is not finite.

    References
    ----------
    Spearman (1904), "The proof and measurement of association between two things".

    Examples
    --------
    >>> round(spearman_correlation([1, 2, 3, 4], [1, 2, 4, 3]).value, 6)
    0.8
    """
    one, other = _checked(first, second)
    n = len(one)
    groups = [_Groups(one), _Groups(other)]
    value = _rank_correlations(groups, np.ones((1, n)))[0]
    drawn: Any = []
    if n_resamples:
        blocks = resampled_counts(n, n_resamples, seed)
        drawn = np.concatenate([_rank_correlations(groups, times) for times in blocks])
    return estimate(value, drawn, n, confidence=confidence)


def pearson_correlation(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Estimate:
    """Return the linear correlation of two rows of numbers.

    Parameters
    ----------
    first, second : array_like of float, shape (n,)
    n_resamples : int
        0 for a figure without an interval.
    seed : int
    confidence : float

    Returns
    -------
    Estimate
        NaN where all numbers of one row are equal.

    Raises
    ------
    InputError
        As `spearman_correlation`.
    """
    one, other = _checked(first, second)
    n = len(one)
    # Near mean 0 and variance 1, so that the differences of sums below keep their digits.
    one, other = _standard(one), _standard(other)
    columns = np.column_stack([one, other, one * one, other * other, one * other])
    value = _linear_correlations(columns.sum(axis=0)[None], n)[0]
    drawn: Any = []
    if n_resamples:
        drawn = _linear_correlations(resampled_sums(columns, n_resamples, seed), n)
    return estimate(value, drawn, n, confidence=confidence)


def similarity_correlations(
    first: Any,
    second: Any,
    scores: npt.ArrayLike,
    *,
    similarities: tuple[str, ...] = ("cosine",),
    n_resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> dict[str, Estimate]:
    """Correlate the similarity of two vectors with what people said of the two texts.

    The measure of semantic textual similarity (STS). The rank correlation is what is published.

    Parameters
    ----------
    first, second : array_like or csr_matrix of shape (n_pairs, n_dimensions)
    scores : array_like of float, shape (n_pairs,)
        Of people, on any scale; higher is more alike.
    similarities : tuple of str
        See `pair_similarities`.
    n_resamples, seed, confidence
        Of the intervals.

    Returns
    -------
    dict of str to Estimate
        "spearman_cosine" and "pearson_cosine", and so on for the other similarities.

    Raises
    ------
    InputError
        Where the numbers of vectors and scores differ, or all scores are equal.

    References
    ----------
    Reimers, Beyer and Gurevych (2016), "Task-Oriented Intrinsic Evaluation of Semantic Textual
    Similarity", on ranks against linear correlation.
    """
    gold = np.asarray(scores, dtype=np.float64)
    if gold.size and (gold == gold.flat[0]).all():
        raise InputError(
            f"expected scores that differ; all {gold.size} are {float(gold.flat[0])}; a "
            "correlation with them is not defined"
        )
    found: dict[str, Estimate] = {}
    how: dict[str, Any] = {"n_resamples": n_resamples, "seed": seed, "confidence": confidence}
    for similarity in similarities:
        near = pair_similarities(first, second, similarity)
        found[f"spearman_{similarity}"] = spearman_correlation(near, gold, **how)
        found[f"pearson_{similarity}"] = pearson_correlation(near, gold, **how)
    return found


class _Groups:
    """Numbers in ascending order, equal ones together."""

    def __init__(self, values: Float64Array) -> None:
        _, self.of, counts = np.unique(values, return_inverse=True, return_counts=True)
        self.order = np.argsort(self.of, kind="stable")
        self.starts = np.concatenate([[0], np.cumsum(counts)[:-1]])

    def centered_ranks(self, times: Float64Array) -> Float64Array:
        """Return mean ranks less their mean, each number occurring so often; shape of `times`."""
        sizes = np.add.reduceat(times[:, self.order], self.starts, axis=1)
        ends = np.cumsum(sizes, axis=1)
        ranks = ends - (sizes - 1) / 2
        middle = (times.sum(axis=1, keepdims=True) + 1) / 2
        return np.asarray((ranks - middle)[:, self.of])


def _rank_correlations(groups: list[_Groups], times: Float64Array) -> Float64Array:
    one, other = (group.centered_ranks(times) for group in groups)
    weighted = times * one
    both = np.einsum("ij,ij->i", weighted, other)
    spread = np.einsum("ij,ij->i", weighted, one)
    spread = np.sqrt(spread) * np.sqrt(np.einsum("ij,ij,ij->i", times, other, other))
    return _ratio(both, spread)


def _linear_correlations(sums: Float64Array, n: int) -> Float64Array:
    one, other, squared, other_squared, product = (sums / n).T
    spreads = np.array([squared - one**2, other_squared - other**2])
    # Of a variance of 1: below this, a spread is the rounding of equal numbers.
    spreads = np.sqrt(np.where(spreads > 1e-12, spreads, 0.0))
    return _ratio(product - one * other, spreads[0] * spreads[1])


def _ratio(above: Float64Array, below: Float64Array) -> Float64Array:
    found = np.full(len(above), np.nan)
    np.divide(above, below, out=found, where=below > 0)
    return np.asarray(np.clip(found, -1.0, 1.0))


def _standard(values: Float64Array) -> Float64Array:
    if (values == values[0]).all():
        return np.zeros_like(values)
    centered = values - values.mean()
    return np.asarray(centered / centered.std())


def _checked(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[Float64Array, Float64Array]:
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.ndim != 1 or one.shape != other.shape or len(one) < LEAST:
        raise InputError(
            f"a correlation needs two rows of {LEAST} or more numbers each; got shapes "
            f"{one.shape} and {other.shape}"
        )
    for values in (one, other):
        is_bad = ~np.isfinite(values)
        if is_bad.any():
            row = int(np.argmax(is_bad))
            raise InputError(f"expected finite numbers; row {row} is {values[row]}")
    return one, other
