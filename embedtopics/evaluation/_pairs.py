"""Similarities of pairs of vectors compared with scores or classes of the pairs.

All measures take many resamples at once: 1,000 of 1,500 pairs take 0.15 s for the rank
correlation and 0.11 s for the area under the curve, scipy's and scikit-learn's functions called
once a resample 1.0 s and 4.5 s.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import N_RESAMPLES, estimate_of_counts
from embedtopics.evaluation.results import Estimate
from embedtopics.protocols import BoolArray, Float64Array

ROWS_AT_ONCE = 4096

Measure = Callable[[Float64Array], Float64Array]
"""Takes how often each pair counts, (n_tables, n_pairs), and returns figures, (n_tables,)."""


def pair_similarities(first: Any, second: Any) -> Float64Array:
    """Return the cosine of the two vectors of each pair, (n_pairs,); 0 with a zero vector.

    In float64, row by row: the cosine of a vector with itself is exactly 1, so that pairs of equal
    texts are tied in a ranking.
    """
    one, other = checked_vectors(first, "first"), checked_vectors(second, "second")
    cosines = np.zeros(one.shape[0])
    for begin in range(0, len(cosines), ROWS_AT_ONCE):
        part = slice(begin, begin + ROWS_AT_ONCE)
        left, right = one[part].astype(np.float64), other[part].astype(np.float64)
        # The root of a square is exact in binary floating point: equal vectors give exactly 1.
        lengths = np.sqrt(row_dots(left, left) * row_dots(right, right))
        np.divide(row_dots(left, right), lengths, out=cosines[part], where=lengths > 0)
    return cosines


def checked_vectors(vectors: Any, name: str) -> Any:
    """Return vectors as a dense array or a csr_matrix, one a row, or refuse them."""
    from scipy.sparse import csr_matrix, issparse

    is_sparse = bool(issparse(vectors))
    array: Any = csr_matrix(vectors) if is_sparse else np.asarray(vectors)
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        found = f"{array.shape} of {array.dtype}"
        raise InputError(name, "numbers of shape (n, n_dimensions)", found=found)
    is_finite = np.isfinite(array.data if is_sparse else array)
    if not is_finite.all():
        place = int(is_finite.argmin())
        ends = array.indptr if is_sparse else np.arange(len(array) + 1) * array.shape[1]
        row = int(np.searchsorted(ends, place, "right")) - 1
        remedy = "check the text of that row, or the encoder"
        raise InputError(name, "finite vectors", remedy=remedy, found="others", row=row)
    return array


def row_dots(one: Any, other: Any) -> Float64Array:
    """Return the dot product of each row with that of the other array, in float64."""
    if isinstance(one, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", one, other, dtype=np.float64))
    return np.asarray(one.multiply(other).sum(axis=1), dtype=np.float64).ravel()


def rank_correlations(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> Measure:
    """Return the measure of the rank correlation of two numbers of each pair."""
    groups = _Groups(first), _Groups(second)

    def measure(times: Float64Array) -> Float64Array:
        one, other = (group.centered_ranks(times) for group in groups)
        weighted = times * one
        both = np.einsum("ij,ij->i", weighted, other)
        spread = np.einsum("ij,ij->i", weighted, one)
        spread = np.sqrt(spread) * np.sqrt(np.einsum("ij,ij,ij->i", times, other, other))
        ratios = np.full(len(both), np.nan)
        np.divide(both, spread, out=ratios, where=spread > 0)
        return np.asarray(np.clip(ratios, -1.0, 1.0))

    return measure


class _Groups:
    """Numbers in ascending order, equal ones together."""

    def __init__(self, values: npt.NDArray[Any]) -> None:
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


def pair_class_scores(near: Float64Array, is_pair: BoolArray, seed: int = 0) -> dict[str, Estimate]:
    """Return average_precision and area_under_curve of similarities of pairs and others, (n,).

    The smaller class determines the effective size.
    """
    n_units = min(is_pair.sum(), (~is_pair).sum())
    measures = {"average_precision": precisions, "area_under_curve": areas}
    return {
        name: estimate_of_counts(
            over_thresholds(near, is_pair, measure), len(near), N_RESAMPLES, seed, n_units=n_units
        )
        for name, measure in measures.items()
    }


def over_thresholds(
    near: Float64Array,
    is_pair: npt.NDArray[Any],
    measure: Callable[[Float64Array, Float64Array], Float64Array],
) -> Measure:
    """Return a measure of the hits and misses at each distinct similarity, the highest first."""
    order = np.argsort(-near, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(near[order]) != 0]))
    positive = is_pair[order].astype(np.float64)

    def measured(times: Float64Array) -> Float64Array:
        sorted_times = times[:, order]
        hits = np.add.reduceat(sorted_times * positive, starts, axis=1)
        return measure(hits, np.add.reduceat(sorted_times, starts, axis=1) - hits)

    return measured


def precisions(hits: Float64Array, misses: Float64Array) -> Float64Array:
    """Return average precisions, NaN without hits; (n_tables, n_similarities) both."""
    n_hits = np.cumsum(hits, axis=1)
    precision = n_hits / np.maximum(n_hits + np.cumsum(misses, axis=1), 1)
    total = hits.sum(axis=1)
    return np.where(total > 0, (hits * precision).sum(axis=1) / np.maximum(total, 1), np.nan)


def areas(hits: Float64Array, misses: Float64Array) -> Float64Array:
    """Return areas under ROC curves, NaN without both; (n_tables, n_similarities) both."""
    above = np.cumsum(hits, axis=1) - hits / 2
    both = hits.sum(axis=1) * misses.sum(axis=1)
    return np.where(both > 0, (above * misses).sum(axis=1) / np.maximum(both, 1), np.nan)
