"""Accuracy and macro F1 of many probes on the same units, with intervals over sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from embedtopics.evaluation.bootstrap import resampled_sums
from embedtopics.evaluation.estimates import estimate
from embedtopics.protocols import Int64Array
from embedtopics.results import Estimate, ProbeScore

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["Answers", "figures", "mean_per_unit", "score"]

N_RESAMPLES = 1000
COLUMNS_AT_ONCE = 3000

Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Answers:
    """What one probe, of one layer, says of the units that it is measured on.

    Parameters
    ----------
    what : str
    layer : int or None
    predicted : int64 ndarray of shape (n_seeds, n_units)
    asked : int64 ndarray of shape (n_units,)
        What would be right.
    """

    what: str
    layer: int | None
    predicted: Int64Array
    asked: Int64Array


def figures(
    answers: Sequence[Answers], group: Int64Array, n_classes: int, seed: int
) -> list[tuple[Estimate, Estimate]]:
    """Measure accuracy and macro F1 of each, and how far other sentences would change them.

    Sentences are drawn anew with all their words, the same for all answers, so that figures can
    be subtracted draw by draw. Where a probe was trained from several seeds, the figure is the
    mean of theirs.

    Parameters
    ----------
    answers : sequence of Answers
    group : int64 ndarray of shape (n_units,)
        Sentence of each unit.
    n_classes : int
    seed : int
        Of the draws.

    Returns
    -------
    list of (Estimate, Estimate)
        Accuracy and macro F1: the mean over the classes that were asked for or answered, as
        scikit-learn takes it.
    """
    numbered = np.unique(group, return_inverse=True)[1]
    n_groups = int(numbered.max()) + 1
    found = []
    for some in _portions(answers, n_classes):
        table = _counts(some, numbered, n_groups, n_classes)
        whole = np.asarray(table.sum(axis=0), dtype=np.float64).reshape(1, -1)
        drawn = resampled_sums(table, N_RESAMPLES, seed) if n_groups > 1 else np.empty((0, 0))
        begin = 0
        for one in some:
            end = begin + 3 * n_classes * len(one.predicted)
            sides = [_both(sums[:, begin:end], n_classes) for sums in (whole, drawn) if sums.size]
            again = sides[1] if n_groups > 1 else (np.empty(0), np.empty(0))
            n = len(one.asked)
            accuracy = estimate(float(sides[0][0][0]), again[0], n)
            found.append((accuracy, estimate(float(sides[0][1][0]), again[1], n)))
            begin = end
    return found


def score(what: str, layer: int | None, metric: str, figure: Estimate) -> ProbeScore:
    """Return a figure as it is reported."""
    return ProbeScore(what, layer, metric, figure.value, figure.low, figure.high, figure.n)


def mean_per_unit(values: npt.ArrayLike, group: Int64Array, seed: int) -> Estimate:
    """Return the mean over units, with its interval over sentences.

    Parameters
    ----------
    values : array_like of float, shape (n_units,)
    group : int64 ndarray of shape (n_units,)
    seed : int
    """
    array = np.asarray(values, dtype=np.float64)
    numbered = np.unique(group, return_inverse=True)[1]
    sums = np.column_stack([np.bincount(numbered, array), np.bincount(numbered)])
    drawn = resampled_sums(sums, N_RESAMPLES, seed) if len(sums) > 1 else np.empty((0, 2))
    return estimate(float(array.mean()), drawn[:, 0] / drawn[:, 1], len(array))


def _portions(answers: Sequence[Answers], n_classes: int) -> Iterator[list[Answers]]:
    """Yield some answers at a time, so that the draws of all of them need little memory."""
    some: list[Answers] = []
    n_columns = 0
    for one in answers:
        own = 3 * n_classes * len(one.predicted)
        if some and n_columns + own > COLUMNS_AT_ONCE:
            yield some
            some, n_columns = [], 0
        some.append(one)
        n_columns += own
    if some:
        yield some


def _counts(
    answers: Sequence[Answers], numbered: Int64Array, n_groups: int, n_classes: int
) -> csr_matrix:
    """Count units by sentence, and by class: right, answered and asked."""
    from scipy.sparse import csr_matrix

    columns, of_group = [], []
    begin = 0
    for one in answers:
        for predicted in one.predicted:
            is_right = predicted == one.asked
            columns += [
                begin + one.asked[is_right], begin + n_classes + predicted,
                begin + 2 * n_classes + one.asked,
            ]  # fmt: skip
            of_group += [numbered[is_right], numbered, numbered]
            begin += 3 * n_classes
    at = np.concatenate(of_group), np.concatenate(columns)
    return csr_matrix((np.ones(len(at[0])), at), shape=(n_groups, begin))


def _both(sums: Float64Array, n_classes: int) -> tuple[Float64Array, Float64Array]:
    """Return accuracy and macro F1 from counts, the mean of those of all seeds."""
    right, answered, asked = sums.reshape(len(sums), -1, 3, n_classes).transpose(2, 0, 1, 3)
    accuracy = right.sum(axis=2) / asked.sum(axis=2)
    below = answered + asked
    f1 = np.divide(2 * right, below, out=np.zeros_like(below), where=below > 0)
    macro = f1.sum(axis=2) / (below > 0).sum(axis=2)
    return accuracy.mean(axis=1), macro.mean(axis=1)
