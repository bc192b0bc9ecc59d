"""A sample of gold rows: weights, strata and units, and whether chance would draw such rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, ndtr

from embedtopics.protocols import BoolArray, Float64Array, Int64Array
from embedtopics.results import Decision


@dataclass(frozen=True, eq=False)
class Sample:
    """The weight, stratum and unit of each row, (n_rows,); strata and units count from 0.

    The weight is 0 without a gold value. The weights of a stratum add up to its rows.
    """

    weight: Float64Array
    stratum: Int64Array
    unit: Int64Array

    @classmethod
    def of(cls, weight: Float64Array, stratum: npt.NDArray[Any], unit: npt.NDArray[Any]) -> Sample:
        """Scale weights, such as inverse probabilities, so that they add up to the rows."""
        of_stratum = np.unique(stratum, return_inverse=True)[1]
        drawn = np.bincount(of_stratum, weight)
        scale = np.bincount(of_stratum) / np.where(drawn > 0, drawn, 1.0)
        of_unit = np.unique(unit, return_inverse=True)[1]
        return cls(weight * scale[of_stratum], of_stratum, of_unit)

    def take(self, rows: Int64Array) -> Sample:
        """Return the sample among some rows."""
        return Sample.of(self.weight[rows], self.stratum[rows], self.unit[rows])

    @property
    def is_gold(self) -> BoolArray:
        """Whether each row has a gold value, (n_rows,)."""
        return self.weight > 0

    def chances(self) -> Float64Array:
        """Return the share of rows that were drawn from the stratum of each row, (n_rows,)."""
        drawn = np.bincount(self.stratum, self.is_gold)
        return np.asarray((drawn / np.bincount(self.stratum))[self.stratum])

    def parts(self, values: Float64Array, factor: Float64Array) -> Float64Array:
        """Return what each row adds to the weighted sums of gold rows, (n_rows, n_columns).

        The rows of a stratum share its mean, and the gold rows add how they differ from it, times
        a factor that broadcasts: in a stratum, the number of gold rows is given, not random.
        """
        means = np.zeros((int(self.stratum.max()) + 1, values.shape[1]))
        np.add.at(means, self.stratum, values * self.weight[:, None])
        of_row = (means / np.bincount(self.stratum)[:, None])[self.stratum]
        return np.asarray(of_row + (values - of_row) * self.weight[:, None] * factor)

    def by_unit(self, values: Float64Array) -> Float64Array:
        """Add up the rows of each unit, (n_units, n_columns)."""
        sums = np.zeros((int(self.unit.max()) + 1, values.shape[1]))
        np.add.at(sums, self.unit, values)
        return sums

    def effective_units(self, parts: Float64Array) -> Float64Array:
        """Return the effective number of units behind each column of sizes of parts (Kish 1965)."""
        shares = np.square(self.by_unit(np.abs(parts)))
        total = np.square(shares).sum(axis=0)
        return np.asarray(shares.sum(axis=0) ** 2 / np.where(total > 0, total, 1.0))


UNLIKELY = 0.001
"""Probability of a random sample below which its predictions are worth a word."""


def balance_notes(
    predicted: Float64Array,
    classes: Sequence[Any] | None,
    sample: Sample,
    chance: Float64Array,
    source: str,
) -> list[Decision]:
    """Compare the predictions of gold rows with those of all rows, which chance makes nearly equal.

    Parameters
    ----------
    predicted : float64 ndarray of shape (n_rows, n_columns)
        Indicators of predicted classes, or one column of numbers.
    chance : float64 ndarray of shape (n_rows,)
        Probability of each row to be drawn.
    """
    n = len(predicted)
    most: tuple[float, str] | None = None
    for column, values in enumerate(predicted.T):
        strata = np.bincount(sample.stratum, values) / np.bincount(sample.stratum)
        apart = values - strata[sample.stratum]
        # The variance of the mean if each unit was drawn as a whole, with this probability.
        spread = apart * np.sqrt((1 - chance) / chance) / n
        variance = float(np.square(sample.by_unit(spread[:, None])).sum())
        of_all = float(values.mean())
        of_gold = float(sample.weight @ values / n)
        if variance <= 1e-12 * max(of_all**2, 1e-12):
            continue

        if classes is None:
            p = 2 * float(ndtr(-abs(of_gold - of_all) / variance**0.5))
            what = f"Their mean by {source} is {of_gold:.3g}, that of all rows {of_all:.3g}"
        else:
            trials = of_all * (1 - of_all) / variance
            p = _binomial_p(of_gold, of_all, trials) * len(classes)
            shares = f"for {of_gold:.1%} of them, and for {of_all:.1%} of all rows"
            what = f"By {source}, {classes[column]} is predicted {shares}"

        if p < UNLIKELY and (most is None or p < most[0]):
            most = p, what

    if most is None:
        return []
    message = (
        f"The gold rows differ from a random sample. {most[1]}, weighted as they were drawn. By "
        f"chance this happens with a probability below {UNLIKELY}: check how they were drawn."
    )
    return [Decision("inference", "unlikely_sample", most[0], message)]


def _binomial_p(share: float, expected: float, trials: float) -> float:
    """Return the probability of a share of trials as extreme as this one, to either side."""
    hits = share * trials
    more = betainc(max(hits, 1e-9), max(trials - hits + 1, 1e-9), expected)
    less = betainc(max(trials - hits, 1e-9), hits + 1, 1 - expected)
    return float(min(1.0, 2 * min(more, less)))
