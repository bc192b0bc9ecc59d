"""Whether the similarity of two texts tells that they belong together: two classes of pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.evaluation.bootstrap import resampled_counts, resampled_sums
from embedtopics.evaluation.estimates import estimate, mean_of_values
from embedtopics.results import Estimate

__all__ = ["PairClasses", "area_under_curve", "average_precision", "score_pair_classes"]

Float64Array = npt.NDArray[np.float64]
Counted = Callable[[Float64Array, Float64Array], Float64Array]


@dataclass(frozen=True, eq=False)
class PairClasses:
    """How well similarities tell pairs that belong together from others.

    Parameters
    ----------
    average_precision : Estimate
    area_under_curve : Estimate
    accuracy, f1 : Estimate
        At their thresholds. A threshold that was chosen on the same pairs makes them a little too
        good; the intervals hold the threshold, and do not see that.
    accuracy_threshold, f1_threshold : float
        Pairs with this similarity or a higher one are said to belong together.
    precision, recall : float
        At `f1_threshold`.
    """

    average_precision: Estimate
    area_under_curve: Estimate
    accuracy: Estimate
    f1: Estimate
    accuracy_threshold: float
    f1_threshold: float
    precision: float
    recall: float


def average_precision(
    similarities: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Estimate:
    """Return the mean precision over the recall, from the highest similarity to the lowest.

    With P_i and R_i at the i-th distinct similarity, ``sum_i (R_i - R_{i-1}) P_i``: the area below
    the steps, without interpolation.

    Parameters
    ----------
    similarities : array_like of float, shape (n_pairs,)
        Higher is nearer.
    labels : array_like of int or bool, shape (n_pairs,)
        1 where both belong together, 0 where not.
    n_resamples, seed, confidence
        Of the interval.

    Returns
    -------
    Estimate

    Raises
    ------
    InputError
        Where the lengths differ, a label is neither 0 nor 1, or one class is missing.
    """
    near, is_pair = _checked(similarities, labels)
    return _by_counts(_precisions, near, is_pair, n_resamples, seed, confidence)


def area_under_curve(
    similarities: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Estimate:
    """Return the chance that a pair of class 1 is nearer than one of class 0; ties count half.

    The area under the receiver operating characteristic.

    Parameters
    ----------
    similarities, labels, n_resamples, seed, confidence
        As in `average_precision`.

    Returns
    -------
    Estimate

    Raises
    ------
    InputError
        As `average_precision`.

    References
    ----------
    Hanley and McNeil (1982), "The meaning and use of the area under a receiver operating
    characteristic (ROC) curve".
    """
    near, is_pair = _checked(similarities, labels)
    return _by_counts(_areas, near, is_pair, n_resamples, seed, confidence)


def score_pair_classes(
    similarities: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    thresholds: tuple[float, float] | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> PairClasses:
    """Measure how well similarities tell pairs that belong together from others.

    Parameters
    ----------
    similarities, labels, n_resamples, seed, confidence
        As in `average_precision`.
    thresholds : tuple of (float, float), optional
        For the accuracy and for F1, chosen on other pairs. If left out, the best on these: half
        way between two neighbouring similarities, of equally good ones the highest.

    Returns
    -------
    PairClasses

    Raises
    ------
    InputError
        As `average_precision`.
    """
    near, is_pair = _checked(similarities, labels)
    how: dict[str, Any] = {"n_resamples": n_resamples, "seed": seed, "confidence": confidence}
    for_accuracy, for_f1 = thresholds or _best_thresholds(near, is_pair)
    told = near >= for_f1
    marks = np.column_stack([told & is_pair, told, is_pair]).astype(np.float64)
    hits, n_told, n_true = marks.sum(axis=0)
    drawn: Any = _f1(resampled_sums(marks, n_resamples, seed)) if n_resamples else []
    right = ((near >= for_accuracy) == is_pair).astype(np.float64)
    return PairClasses(
        average_precision=_by_counts(_precisions, near, is_pair, n_resamples, seed, confidence),
        area_under_curve=_by_counts(_areas, near, is_pair, n_resamples, seed, confidence),
        accuracy=mean_of_values(right, **how),
        f1=estimate(
            _f1(np.array([[hits, n_told, n_true]]))[0], drawn, len(near), confidence=confidence
        ),
        accuracy_threshold=float(for_accuracy),
        f1_threshold=float(for_f1),
        precision=float(hits / n_told) if n_told else 0.0,
        recall=float(hits / n_true),
    )


def _by_counts(
    measure: Counted,
    near: Float64Array,
    is_pair: npt.NDArray[np.bool_],
    n_resamples: int,
    seed: int,
    confidence: float,
) -> Estimate:
    """Return a measure of counts by class at each distinct similarity, the highest first."""
    order = np.argsort(-near, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(near[order]) != 0]))
    positive = is_pair[order].astype(np.float64)

    def measured(times: Float64Array) -> Float64Array:
        sorted_times = times[:, order]
        hits = np.add.reduceat(sorted_times * positive, starts, axis=1)
        return measure(hits, np.add.reduceat(sorted_times, starts, axis=1) - hits)

    n = len(near)
    drawn: Any = []
    if n_resamples:
        drawn = np.concatenate([measured(t) for t in resampled_counts(n, n_resamples, seed)])
    return estimate(measured(np.ones((1, n)))[0], drawn, n, confidence=confidence)


def _precisions(hits: Float64Array, misses: Float64Array) -> Float64Array:
    found = np.cumsum(hits, axis=1)
    precision = found / np.maximum(found + np.cumsum(misses, axis=1), 1)
    total = hits.sum(axis=1)
    return np.where(total > 0, (hits * precision).sum(axis=1) / np.maximum(total, 1), np.nan)


def _areas(hits: Float64Array, misses: Float64Array) -> Float64Array:
    above = np.cumsum(hits, axis=1) - hits / 2
    both = hits.sum(axis=1) * misses.sum(axis=1)
    return np.where(both > 0, (above * misses).sum(axis=1) / np.maximum(both, 1), np.nan)


def _f1(sums: Float64Array) -> Float64Array:
    """Return F1 of rows of hits, pairs told and true pairs; 0 where there is no hit."""
    return np.asarray(2 * sums[:, 0] / np.maximum(sums[:, 1] + sums[:, 2], 1))


def _best_thresholds(near: Float64Array, is_pair: npt.NDArray[np.bool_]) -> tuple[float, float]:
    values = np.unique(near)[::-1]
    hits = np.array([0.0, *_counts_from(near[is_pair], values)])
    misses = np.array([0.0, *_counts_from(near[~is_pair], values)])
    below = np.append(values[1:], values[-1])
    middles = (values + below) / 2
    # A rounded middle must not take in the next similarity.
    middles = np.where(middles == below, values, middles)
    middles = np.append(np.nextafter(values[0], np.inf), middles)
    right = hits + misses[-1] - misses
    f1 = 2 * hits / (hits + misses + hits[-1])
    return float(middles[int(np.argmax(right))]), float(middles[int(np.argmax(f1))])


def _counts_from(near: Float64Array, values: Float64Array) -> Float64Array:
    """Count the similarities that are no less than each value."""
    return np.asarray(len(near) - np.searchsorted(np.sort(near), values, side="left"), np.float64)


def _checked(
    similarities: npt.ArrayLike, labels: npt.ArrayLike
) -> tuple[Float64Array, npt.NDArray[np.bool_]]:
    near, known = np.asarray(similarities, dtype=np.float64), np.asarray(labels)
    if near.ndim != 1 or near.shape != known.shape:
        raise InputError(
            f"expected a label for each similarity; got shapes {near.shape} and {known.shape}"
        )
    if not np.isfinite(near).all():
        row = int(np.argmax(~np.isfinite(near)))
        raise InputError(f"expected finite similarities; row {row} is {near[row]}")
    if not np.isin(known, (0, 1)).all():
        row = int(np.argmax(~np.isin(known, (0, 1))))
        raise InputError(f"expected labels 0 or 1; row {row} is {known[row]!r}")
    is_pair = known.astype(np.bool_)
    if not 0 < is_pair.sum() < len(is_pair):
        raise InputError(
            "expected pairs that belong together and pairs that do not; got "
            f"{int(is_pair.sum())} of {len(is_pair)} that do"
        )
    return near, is_pair
