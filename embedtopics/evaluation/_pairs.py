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
from embedtopics.evaluation._bootstrap import (
    estimate,
    estimate_of_counts,
    mean_of_values,
    resampled_sums,
)
from embedtopics.evaluation.results import Estimate
from embedtopics.protocols import BoolArray, Float64Array

ROWS_AT_ONCE = 4096
FEWEST_PAIRS = 3
"""Pairs that a correlation needs."""

Measure = Callable[[Float64Array], Float64Array]
"""Takes how often each pair counts, (n_tables, n_pairs), and returns figures, (n_tables,)."""


def pair_similarities(first: Any, second: Any) -> Float64Array:
    """Return the cosine of the two vectors of each pair, (n_pairs,); 0 with a zero vector.

    In float64, row by row: the cosine of a vector with itself is exactly 1, so that pairs of equal
    texts are tied in a ranking.
    """
    from scipy.sparse import issparse

    one, other = checked_vectors(first, "first"), checked_vectors(second, "second")
    if one.shape != other.shape or issparse(one) != issparse(other):
        raise InputError(
            "second",
            "of the shape of first, both dense or both sparse",
            found=f"shapes {one.shape} and {other.shape}",
        )
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
        raise InputError(
            name, "numbers of shape (n, n_dimensions)", found=f"{array.shape} of {array.dtype}"
        )
    if array.dtype.kind == "f":
        # A sum has a NaN or an infinity where one of its terms has.
        sums: Any = abs(array).sum(axis=1) if is_sparse else array.sum(axis=1)
        is_bad = ~np.isfinite(np.asarray(sums, dtype=np.float64)).ravel()
        if not is_sparse and is_bad.any():  # or where finite terms overflow
            is_bad = ~np.isfinite(array).all(axis=1)
        if is_bad.any():
            raise InputError(
                name,
                "finite vectors",
                found="a NaN or an infinity",
                row=int(np.argmax(is_bad)),
                remedy="check the text of that row, or the encoder",
            )
    return array


def row_dots(one: Any, other: Any) -> Float64Array:
    """Return the dot product of each row with that of the other array, in float64."""
    if isinstance(one, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", one, other, dtype=np.float64))
    return np.asarray(one.multiply(other).sum(axis=1), dtype=np.float64).ravel()


def spearman_correlation(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Return the rank correlation (Spearman 1904), with new ranks in every resample."""
    rows = _checked_numbers(first, second)
    measure = rank_correlations(*rows)
    return estimate_of_counts(measure, len(rows[0]), n_resamples, seed, bounds=(-1.0, 1.0))


def rank_correlations(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> Measure:
    """Return the measure of the rank correlation of two numbers of each pair."""
    groups = _Groups(first), _Groups(second)

    def measure(times: Float64Array) -> Float64Array:
        one, other = (group.centered_ranks(times) for group in groups)
        weighted = times * one
        both = np.einsum("ij,ij->i", weighted, other)
        spread = np.einsum("ij,ij->i", weighted, one)
        spread = np.sqrt(spread) * np.sqrt(np.einsum("ij,ij,ij->i", times, other, other))
        return _ratio(both, spread)

    return measure


def pearson_correlation(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Return the linear correlation; NaN if all numbers of one row are equal."""
    # Near mean 0 and variance 1, so that the differences of sums below keep their digits.
    one, other = (_standardized(values) for values in _checked_numbers(first, second))
    n = len(one)
    columns = np.column_stack([one, other, one * one, other * other, one * other])
    value = _linear_correlations(columns.sum(axis=0)[None], n)[0]
    drawn: Any = []
    if n_resamples:
        drawn = _linear_correlations(resampled_sums(columns, n_resamples, seed), n)
    return estimate(value, drawn, n, bounds=(-1.0, 1.0))


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


def _linear_correlations(sums: Float64Array, n: int) -> Float64Array:
    one, other, squared, other_squared, product = (sums / n).T
    spreads = np.array([squared - one**2, other_squared - other**2])
    # Of a variance of 1: below this, a spread is the rounding of equal numbers.
    spreads = np.sqrt(np.where(spreads > 1e-12, spreads, 0.0))
    return _ratio(product - one * other, spreads[0] * spreads[1])


def _ratio(above: Float64Array, below: Float64Array) -> Float64Array:
    ratios = np.full(len(above), np.nan)
    np.divide(above, below, out=ratios, where=below > 0)
    return np.asarray(np.clip(ratios, -1.0, 1.0))


def _standardized(values: Float64Array) -> Float64Array:
    if (values == values[0]).all():
        return np.zeros_like(values)
    centered = values - values.mean()
    return np.asarray(centered / centered.std())


def _checked_numbers(first: npt.ArrayLike, second: npt.ArrayLike) -> list[Float64Array]:
    rows = [np.asarray(values, dtype=np.float64) for values in (first, second)]
    if rows[0].ndim != 1 or rows[0].shape != rows[1].shape or len(rows[0]) < FEWEST_PAIRS:
        raise InputError(
            "second",
            f"as long as first, at least {FEWEST_PAIRS} numbers",
            found=f"shapes {rows[0].shape} and {rows[1].shape}",
        )
    for name, values in zip(("first", "second"), rows, strict=True):
        _refuse_infinite(values, name)
    return rows


def _refuse_infinite(values: Float64Array, name: str) -> None:
    is_bad = ~np.isfinite(values)
    if is_bad.any():
        row = int(np.argmax(is_bad))
        raise InputError(name, "finite numbers", float(values[row]), row=row)


def pair_class_scores(
    similarities: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Estimate]:
    """Return average_precision, area_under_curve, best_accuracy and best_f1.

    The last two use the best threshold on the same pairs, halfway between two neighboring
    similarities, which makes them slightly optimistic; the intervals keep the threshold fixed.
    """
    near, is_pair = _checked_classes(similarities, labels)
    for_accuracy, for_f1 = _best_thresholds(near, is_pair)
    predicted = near >= for_f1
    marks = np.column_stack([predicted & is_pair, predicted, is_pair]).astype(np.float64)
    drawn: Any = _f1(resampled_sums(marks, n_resamples, seed)) if n_resamples else []
    right = ((near >= for_accuracy) == is_pair).astype(np.float64)
    best_f1 = _f1(marks.sum(axis=0)[None])[0]
    precision, area = (
        _over_classes(near, is_pair, measure, n_resamples, seed) for measure in (precisions, areas)
    )
    return {
        "average_precision": precision,
        "area_under_curve": area,
        "best_accuracy": mean_of_values(right, n_resamples=n_resamples, seed=seed),
        "best_f1": estimate(best_f1, drawn, len(near)),
    }


def _over_classes(
    near: Float64Array,
    is_pair: BoolArray,
    figure: Callable[[Float64Array, Float64Array], Float64Array],
    n_resamples: int,
    seed: int,
) -> Estimate:
    """Return an estimate for two classes; the smaller one determines its effective size."""
    measure, n_units = over_thresholds(near, is_pair, figure), min(is_pair.sum(), (~is_pair).sum())
    return estimate_of_counts(measure, len(near), n_resamples, seed, n_units=n_units)


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


def _f1(sums: Float64Array) -> Float64Array:
    """Return F1 of rows of true positives, predicted and true pairs; 0 without a hit."""
    return np.asarray(2 * sums[:, 0] / np.maximum(sums[:, 1] + sums[:, 2], 1))


def _best_thresholds(near: Float64Array, is_pair: BoolArray) -> tuple[float, float]:
    """Return the thresholds of the best accuracy and F1, the highest where several are."""
    values = np.unique(near)[::-1]
    hits, misses = (
        np.array([0.0, *(len(of_class) - np.searchsorted(np.sort(of_class), values, side="left"))])
        for of_class in (near[is_pair], near[~is_pair])
    )
    below = np.append(values[1:], values[-1])
    middles = (values + below) / 2
    # A rounded middle must not take in the next similarity.
    middles = np.where(middles == below, values, middles)
    middles = np.append(np.nextafter(values[0], np.inf), middles)
    right = hits + misses[-1] - misses
    f1 = 2 * hits / (hits + misses + hits[-1])
    return float(middles[int(np.argmax(right))]), float(middles[int(np.argmax(f1))])


def _checked_classes(
    similarities: npt.ArrayLike, labels: npt.ArrayLike
) -> tuple[Float64Array, BoolArray]:
    near, classes = np.asarray(similarities, dtype=np.float64), np.asarray(labels)
    if near.ndim != 1 or near.shape != classes.shape:
        raise InputError(
            "labels", "one for each similarity", found=f"shapes {near.shape} and {classes.shape}"
        )
    _refuse_infinite(near, "similarities")
    if not np.isin(classes, (0, 1)).all():
        row = int(np.argmax(~np.isin(classes, (0, 1))))
        raise InputError("labels", "0 or 1", classes[row].item(), row=row)
    is_pair = classes.astype(np.bool_)
    if not 0 < is_pair.sum() < len(is_pair):
        raise InputError(
            "labels", "of both classes", found=f"{int(is_pair.sum())} of {len(is_pair)} that are 1"
        )
    return near, is_pair
