"""What the gold rows of a regression can tell: which effects they determine, and how surely.

A column that is zero in all gold rows, such as a level that chance left out, has no effect that
could be estimated, and an effect that a single gold unit decides has no error. Both become NaN. In
a linear model of a class, a level in which the rarer kind has few gold rows has residuals that are
too small, and none at all if the kind is absent: half a gold row of each kind more gives them a
variance.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from embedtopics._utils.display import spell_count
from embedtopics.errors import InputError
from embedtopics.inference._design import TOLERANCE, Design, find_dependence
from embedtopics.inference._equations import Equations
from embedtopics.inference._sample import Sample
from embedtopics.protocols import BoolArray, Float64Array, Int64Array
from embedtopics.results import Decision

MIN_RARE = 5
"""Gold rows of the rarer kind in a level below which half a row more of each kind counts."""

ALONE = 1 - 1e-8
"""Leverage of a unit, of 1 at most, from which it alone decides a coefficient."""


class GoldDesign(NamedTuple):
    """The rows that gold rows tell something about, and what they leave open.

    `unknown` are directions of coefficients, (n_columns, n_directions), that are not determined: a
    linear combination of coefficients is known if it is orthogonal to them. `is_absent` are the
    columns, (n_columns,), that are zero in all gold rows.
    """

    is_kept: BoolArray
    is_absent: BoolArray
    unknown: Float64Array
    decisions: tuple[Decision, ...]

    def knows(self, combination: Float64Array) -> bool:
        """Return whether the gold rows determine a combination (n_columns,) of coefficients."""
        return not (np.abs(combination @ self.unknown) > TOLERANCE).any()


def read_gold(design: Design, sample: Sample) -> GoldDesign:
    """Find the rows and effects that gold rows tell something about; the sample has its rows."""
    sizes = np.abs(design.matrix).max(axis=0)
    gold = design.matrix[sample.is_gold]
    is_absent = np.abs(gold).max(axis=0) <= TOLERANCE * sizes
    is_kept = ~(np.abs(design.matrix[:, is_absent]) > TOLERANCE * sizes[is_absent]).any(axis=1)
    decisions = []
    if is_absent.any():
        names = ", ".join(np.array(design.columns)[is_absent].tolist())
        left_out = spell_count(int((~is_kept).sum()), "row with it is", "rows with it are")
        message = f"No gold row has {names}: its effects are NaN, and {left_out} left out."
        decisions.append(Decision("inference", "without_gold", names, message))

    names_present = [name for name, no in zip(design.columns, is_absent, strict=True) if not no]
    if (dependence := find_dependence(gold[:, ~is_absent], names_present)) is not None:
        expected = "one of columns that the gold rows tell apart"
        remedy = "give more rows a gold value, leave one out, or choose another reference"
        found = f"{dependence} in the gold rows"
        raise InputError("formula", expected, None, remedy, found=found)

    unknown = np.eye(len(is_absent))[:, is_absent]
    alone = _decided_alone(gold, sample.unit[sample.is_gold])
    if alone.shape[1]:
        touched = np.flatnonzero((np.abs(alone) > TOLERANCE).any(axis=1))
        names = ", ".join(design.columns[column] for column in touched.tolist())
        message = f"A single gold unit decides {names}, which has no error and is NaN."
        decisions.append(Decision("inference", "single_gold_unit", names, message))
    return GoldDesign(is_kept, is_absent, np.hstack([unknown, alone]), tuple(decisions))


def _decided_alone(gold: Float64Array, unit: Int64Array) -> Float64Array:
    """Return directions of coefficients, (n_columns, n_directions), that one unit decides."""
    scale = np.linalg.norm(gold, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    left, sizes, right = np.linalg.svd(gold / scale, full_matrices=False)
    is_used = sizes > TOLERANCE * 1e-3
    left = left[:, is_used]
    sizes = sizes[is_used]
    right = right[is_used]

    # The leverage of a unit is 1 in the directions that it decides, and less in the others.
    total = np.bincount(unit, np.square(left).sum(axis=1))
    found = [np.zeros((gold.shape[1], 0))]
    for candidate in np.flatnonzero(total >= ALONE).tolist():
        rows = left[unit == candidate]
        leverages, axes = np.linalg.eigh(rows.T @ rows)
        decided = axes[:, leverages >= ALONE]
        directions = (right.T / sizes) @ decided / scale[:, None]
        found.append(directions / np.maximum(np.abs(directions).max(axis=0), 1e-300))
    return np.hstack(found)


def has_rare_kind(matrix: Float64Array, truth: Float64Array) -> bool:
    """Return whether a level has few gold rows of a kind; `truth` (n_gold,) is 0 or 1.

    A level, or a cell of levels, is a column of two values.
    """
    for column in matrix.T:
        low = column.min()
        high = column.max()
        is_high = column == high
        if low == high or not (is_high | (column == low)).all():
            continue

        for inside in (is_high, ~is_high):
            n_hits = truth[inside].sum()
            if min(n_hits, inside.sum() - n_hits) < MIN_RARE:
                return True
    return False


def correlation_in_units(truth: Float64Array, unit: Int64Array) -> float:
    """Return the correlation of a class (n_gold,) within units (Fleiss and Cuzick 1979)."""
    number = np.unique(unit, return_inverse=True)[1]
    n = np.bincount(number).astype(np.float64)
    hits = np.bincount(number, truth)
    share = float(truth.mean())
    by_chance = (len(truth) - len(n)) * share * (1 - share)
    if by_chance <= 0:
        return 0.0
    differing = float((hits * (n - hits) / n).sum())
    return min(max(1 - differing / float(by_chance), 0.0), 1.0)


def half_rows(
    design: Design,
    matrix: Float64Array,
    unit: Int64Array,
    correlation: float,
    weight: Float64Array | None = None,
) -> Equations:
    """Return equations of half a row more inside and half a row more outside of a class.

    They count at each level, and two standard deviations to both sides of each number. A row
    counts as a unit if the class correlates by 1 within units.

    Parameters
    ----------
    matrix, unit, weight
        The rows (n, n_columns), their units and their weights, by default 1.
    """
    weights = np.ones(len(matrix)) if weight is None else weight
    points: list[Float64Array] = []
    counts: list[float] = []

    def add(is_inside: BoolArray) -> None:
        inside = weights[is_inside]
        total = float(inside.sum())
        sizes = np.bincount(unit[is_inside], inside)
        of_row = float(inside @ inside) / total
        of_unit = float(sizes @ sizes) / total
        points.append(matrix[is_inside].mean(axis=0))
        counts.append(of_row + correlation * (of_unit - of_row))

    everything = np.ones(len(matrix), dtype=bool)
    for name, columns in _columns_of(design):
        if name in design.references:
            is_other = matrix[:, columns] > 0
            for is_level in (~is_other.any(axis=1), *is_other.T):
                if is_level.any():
                    add(is_level)
            continue

        # At the mean of the other columns among rows with so high a number.
        for column in columns:
            number = matrix[:, column] - matrix[:, column].mean()
            if not number.any():
                continue
            for side in (-2.0, 2.0):
                add(everything)
                points[-1] += side * (number @ matrix) / len(matrix) / number.std()

    halves = np.full((len(points), 1), 0.5)
    return Equations(np.array(points), halves, np.array(counts), np.zeros(len(points), np.int64))


def _columns_of(design: Design) -> Iterator[tuple[str, list[int]]]:
    """Yield each covariate with its columns."""
    for name in dict.fromkeys(design.covariates[1:]):
        yield name, [i for i, covariate in enumerate(design.covariates) if covariate == name]
