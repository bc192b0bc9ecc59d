"""Shares of classes and means of numbers, by group and over time, and the labels they need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtrit

from embedtopics._utils.checks import checked_between, checked_choice, checked_level
from embedtopics.corpus._texts import is_missing
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import wilson
from embedtopics.inference._measurement import Measurement
from embedtopics.inference.results import LabelPlan, MeasuredShare, MeasuredShares
from embedtopics.protocols import Float64Array, Int64Array

PERIODS = {"year": "Y", "quarter": "Q", "month": "M", "week": "W", "day": "D"}

MIN_RARE = 5
"""With fewer gold rows of the rarer kind in a group, predictions do not narrow its interval further
than they narrow that of all rows."""


def shares(
    measurement: Measurement,
    by: str | Sequence[str] | None = None,
    *,
    every: str = "year",
    confidence: float = 0.95,
) -> MeasuredShares:
    """Estimate the share of each class, or the mean of a number, corrected for errors.

    Parameters
    ----------
    measurement : Measurement
    by : str or sequence of str, optional
        Columns of its data: groups, or dates. Several columns are crossed.
    every : {"year", "quarter", "month", "week", "day"}
        Period of dates.
    confidence : float

    Returns
    -------
    MeasuredShares

    Raises
    ------
    InputError
        If a column does not exist.

    Notes
    -----
    Prediction-powered inference with tuned power (Angelopoulos, Duchi and Zrnic 2023, "PPI++"), by
    the probabilities of the gold rows: mean of gold, plus the mean of all predictions less the mean
    of those of gold rows, times a factor from 0 to 1. Intervals treat the rows as a sample of rows
    of their kind. Those of shares are Wilson's, for the number of trials that has the variance of
    the estimate (Franco et al. 2019), with Student's t for the effective number of gold units.
    """
    checked_level(confidence)
    names, cells = _groups(measurement.data, by, every)
    n_cells = max(len(names), 1)
    weight = _weights(measurement)
    rows: list[MeasuredShare] = []
    correlations: dict[Any, Float64Array] = {}
    for column, name in enumerate(measurement.classes or (None,)):
        estimates = _Cells(measurement, column, weight, cells, n_cells)
        correlations[name] = estimates.correlations()
        for cell in range(n_cells):
            rows.append(estimates.row(cell, names[cell] if names else None, name, confidence))
    columns = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    return MeasuredShares(
        tuple(rows),
        measurement.decisions,
        name=measurement.name,
        by=columns,
        confidence=confidence,
        correlations=correlations,
    )


def _groups(data: pd.DataFrame, by: Any, every: str) -> tuple[list[Any], Int64Array]:
    """Return the sorted groups, and the group of each row, -1 where a value is missing."""
    checked_choice(every, "every", PERIODS)
    if by is None:
        return [], np.zeros(len(data), dtype=np.int64)
    parts = []
    for name in [by] if isinstance(by, str) else list(by):
        if name not in data:
            raise InputError("by", f"among the columns {', '.join(map(str, data.columns))}", name)
        column = data[name]
        if pd.api.types.is_datetime64_any_dtype(column):
            starts = column.dt.tz_localize(None).dt.to_period(PERIODS[every]).dt.start_time
            column = starts.dt.strftime("%Y-%m-%d")
        parts.append([None if is_missing(one) else str(one) for one in column.tolist()])
    keys = [None if None in row else row for row in zip(*parts, strict=True)]
    names = sorted({key for key in keys if key is not None})
    place = {key: code for code, key in enumerate(names)}
    codes = np.array([-1 if key is None else place[key] for key in keys], dtype=np.int64)
    return [key[0] if len(key) == 1 else key for key in names], codes


def _weights(measurement: Measurement) -> Float64Array:
    """Return the weight of each gold row, 0 for others; those of a stratum add up to its rows."""
    weight = np.where(measurement.is_gold, 1 / measurement.chance, 0.0)
    sizes = np.bincount(measurement.stratum)
    drawn = np.bincount(measurement.stratum, weight)
    return np.asarray(weight * (sizes / np.where(drawn > 0, drawn, 1.0))[measurement.stratum])


class _Cells:
    """The estimates of one column of a measurement in all cells, and what each row adds to them."""

    def __init__(
        self,
        measurement: Measurement,
        column: int,
        weight: Float64Array,
        cells: Int64Array,
        n_cells: int,
    ) -> None:
        self.measurement, self.weight, self.cells = measurement, weight, cells
        inside = cells >= 0
        y, f = measurement.truth[:, column], measurement.proxy[:, column]
        self.is_share = measurement.classes is not None

        def means(values: Float64Array, weights: Float64Array) -> Float64Array:
            sums = np.bincount(cells[inside], (weights * values)[inside], n_cells)
            totals = np.bincount(cells[inside], weights[inside], n_cells)
            return np.asarray(sums / np.where(totals > 0, totals, np.nan))

        ones = np.ones(len(y))
        is_gold = measurement.is_gold.astype(np.float64)
        self.n = np.bincount(cells[inside], minlength=n_cells)
        self.n_gold = np.bincount(cells[inside], is_gold[inside], n_cells).astype(np.int64)
        self.gold, gold_proxy, proxy = means(y, weight), means(f, weight), means(f, ones)
        self.naive = means(measurement.naive[:, column], ones)
        self.rare = np.bincount(cells[inside], (is_gold * y)[inside], n_cells)
        self.rare = np.minimum(self.rare, self.n_gold - self.rare)
        whole = np.zeros(len(y), dtype=np.int64)
        a, b = self._added(y, f, whole, 1, is_gold)
        square = float(np.square(b).sum())
        factor = min(max(-float((a * b).sum()) / square, 0.0), 1.0) if square > 0 else 0.0
        gain = np.square(a).sum() / max(np.square(a + factor * b).sum(), 1e-300)
        self.gain = max(1.0, float(gain))
        a, b = self._added(y, f, cells, n_cells, is_gold)
        self.value = self.gold + factor * (proxy - gold_proxy)
        self.covariance = (a + factor * b).T @ (a + factor * b)
        self.gold_variance = np.square(a).sum(axis=0)
        self.df = self._degrees(n_cells)

    def _added(
        self, y: Float64Array, f: Float64Array, cells: Int64Array, n_cells: int, gold: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Return what each unit adds to the mean of gold, and to the means of all less gold."""
        weight, m = self.weight, self.measurement
        inside = cells >= 0
        rows = np.flatnonzero(inside)
        of = cells[rows]
        totals = np.bincount(of, weight[rows], n_cells)
        sizes = np.bincount(of, minlength=n_cells).astype(np.float64)
        n_units = np.zeros(n_cells)
        pairs = np.unique(np.stack([of[gold[rows] > 0], m.unit[rows][gold[rows] > 0]]), axis=1)
        np.add.at(n_units, pairs[0], 1)
        # The residuals of n units vary too little by a factor of n - 1 in n.
        small = np.sqrt(n_units / np.maximum(n_units - 1, 1))
        out = []
        for values in (y, f):
            sums = np.bincount(of, (weight * values)[rows], n_cells)
            mean = sums / np.where(totals > 0, totals, 1.0)
            apart = np.zeros((len(y), n_cells))
            apart[rows, of] = (values[rows] - mean[of]) / np.where(totals > 0, totals, 1.0)[of]
            out.append(self._design_part(apart, small))
        sums = np.bincount(of, f[rows], n_cells)
        everything = np.zeros((len(y), n_cells))
        everything[rows, of] = (f[rows] - (sums / np.maximum(sizes, 1))[of]) / sizes[of]
        return self._by_unit(out[0]), self._by_unit(everything - out[1])

    def _design_part(self, values: Float64Array, small: Float64Array) -> Float64Array:
        """Spread the mean of each stratum over its rows; gold rows add how they differ from it."""
        m, weight = self.measurement, self.weight
        sizes = np.bincount(m.stratum).astype(np.float64)
        means = np.zeros((len(sizes), values.shape[1]))
        np.add.at(means, m.stratum, values * weight[:, None])
        means /= sizes[:, None]
        apart = (values - means[m.stratum]) * weight[:, None] * small
        return np.asarray(means[m.stratum] + apart)

    def _by_unit(self, values: Float64Array) -> Float64Array:
        unit = np.unique(self.measurement.unit, return_inverse=True)[1]
        if unit.max() + 1 == len(values):
            return values
        sums = np.zeros((unit.max() + 1, values.shape[1]))
        np.add.at(sums, unit, values)
        return sums

    def _degrees(self, n_cells: int) -> Float64Array:
        """Return the effective number of gold units of each cell, less one."""
        m = self.measurement
        rows = np.flatnonzero((self.cells >= 0) & m.is_gold)
        sums = pd.Series(self.weight[rows]).groupby([self.cells[rows], m.unit[rows]]).sum()
        squares = np.square(sums.to_numpy())
        of = sums.index.get_level_values(0).to_numpy(dtype=np.int64)
        total, fourth = np.bincount(of, squares, n_cells), np.bincount(of, squares**2, n_cells)
        return np.asarray(total**2 / np.where(fourth > 0, fourth, 1.0) - 1)

    def correlations(self) -> Float64Array:
        errors = np.sqrt(np.diag(self.covariance))
        errors = np.where(errors > 0, errors, np.inf)
        return np.asarray(self.covariance / np.outer(errors, errors))

    def row(self, cell: int, group: Any, name: Any, confidence: float) -> MeasuredShare:
        value, gold = float(self.value[cell]), float(self.gold[cell])
        variance = float(self.covariance[cell, cell])
        gold_variance = float(self.gold_variance[cell])
        if self.is_share:
            value = min(max(value, 0.0), 1.0)
        if self.n_gold[cell] < 2:
            value = gold = np.nan
        low, high = self._interval(value, variance, cell, confidence, self.gain)
        gold_low, gold_high = self._interval(gold, gold_variance, cell, confidence, 1.0)
        effective = self.n_gold[cell] * gold_variance / variance if variance > 0 else np.nan
        return MeasuredShare(
            group=group,
            name=name,
            n=int(self.n[cell]),
            n_gold=int(self.n_gold[cell]),
            value=value,
            low=low,
            high=high,
            gold_value=gold,
            gold_low=gold_low,
            gold_high=gold_high,
            naive=float(self.naive[cell]),
            n_effective=float(effective),
        )

    def _interval(
        self, value: float, variance: float, cell: int, confidence: float, gain: float
    ) -> tuple[float, float]:
        df = float(self.df[cell])
        if np.isnan(value) or df <= 0:
            return np.nan, np.nan
        if not self.is_share:
            reach = float(stdtrit(df, 0.5 + confidence / 2)) * variance**0.5
            return value - reach, value + reach
        varies = variance > 0 and 0 < value < 1
        trials = value * (1 - value) / variance if varies else df + 1
        if self.rare[cell] < MIN_RARE:
            trials = min(trials, (df + 1) * gain)
        low, high = wilson(value * trials, trials, confidence, df=df)
        return float(low), float(high)


def power(
    *,
    n_rows: int,
    width: float | None = None,
    effect: float | None = None,
    share: float = 0.5,
    group_share: float = 0.5,
    accuracy: float | None = None,
    correlation: float | None = None,
    confidence: float = 0.95,
    power: float = 0.8,
) -> LabelPlan:
    """Return how many gold rows, drawn at random, an interval or a difference needs.

    Parameters
    ----------
    n_rows : int
        Rows of the corpus, each with a prediction.
    width : float, optional
        Width of the interval of a share.
    effect : float, optional
        Difference of a share between two groups, to be detected. Pass either `width` or `effect`.
    share : float
        The share that is expected.
    group_share : float
        Share of the rows in the first group.
    accuracy : float, optional
        Share of correct predictions in each class; by default there are no predictions.
    correlation : float, optional
        Correlation of predictions and truth, instead of the accuracy.
    confidence, power : float
        Level of the interval or test, and the probability of detecting the effect.

    Returns
    -------
    LabelPlan
    """
    if (width is None) == (effect is None):
        raise InputError("width", "given, or effect, but not both", width)
    checked_between(share, "share", 0, 1)
    if correlation is None:
        correlation = 0.0 if accuracy is None else _phi(share, accuracy)
    variance = share * (1 - share)
    if width is not None:
        allowed = (width / (2 * ndtri(0.5 + confidence / 2))) ** 2
        parts = 1.0
    else:
        assert effect is not None
        allowed = (effect / (ndtri(0.5 + confidence / 2) + ndtri(power))) ** 2
        parts = 1 / checked_between(group_share, "group_share", 0, 1) + 1 / (1 - group_share)
    explained = correlation**2
    rest = allowed - explained * variance * parts / n_rows
    labels = (1 - explained) * variance * parts / rest if rest > 0 else np.inf
    alone = variance * parts / allowed
    return LabelPlan(float(np.ceil(labels)), float(np.ceil(alone)), float(correlation))


def _phi(share: float, accuracy: float) -> float:
    """Return the correlation of a class and its prediction, right with the same probability."""
    checked_between(accuracy, "accuracy", 0, 1)
    predicted = share * accuracy + (1 - share) * (1 - accuracy)
    both = share * accuracy - share * predicted
    return float(both / np.sqrt(share * (1 - share) * predicted * (1 - predicted)))
