"""How the rows with gold values stand for all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import BoolArray, Float64Array, Int64Array


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
