"""Shares of classes and means of numbers, by group and over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

from embedtopics._utils.checks import checked_between, checked_choice
from embedtopics._utils.display import spell_count
from embedtopics.corpus._classes import spell_class
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import wilson
from embedtopics.inference._measurement import Measurement, measurement_of
from embedtopics.inference._sample import Sample
from embedtopics.inference.results import MeasuredShares, shares_table
from embedtopics.protocols import Float64Array, Int64Array
from embedtopics.results import Decision

PERIODS = {"year": "Y", "quarter": "Q", "month": "M", "week": "W", "day": "D"}

MIN_RARE = 5
"""With fewer gold rows of the rarer kind in a group, predictions do not narrow its interval further
than they narrow that of all rows."""

SHRINK = 6
"""Gold rows as which the factor of all rows counts in a group that it harms. Chosen by the width
and coverage of a rare group in simulations, and not checked on other designs."""

EXPECTED_ROWS = 9
"""Gold rows with the overall share of a kind that are added to a stratum: half a row at most. Of
six variants, it held the share of a rare class at the smallest width, in simulations of the designs
on which it was chosen."""

LEVEL_OF_TESTS = 0.95
"""Confidence of the intervals that give p-values, whatever the confidence of those shown."""

NO_VARIANCE = 1e-24
"""Variance of a mean, relative to its square, that is a rounding error."""


def shares(
    measurement: Any,
    by: str | Sequence[str] | None = None,
    *,
    every: str = "year",
    confidence: float = 0.95,
) -> MeasuredShares:
    """Estimate the share of each class, or the mean of a number, corrected for errors.

    Parameters
    ----------
    measurement : Measurement, or object with ``measurement()``
        Such as an `AnnotationProject`, which has one.
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
    of those of gold rows, times a factor from 0 to 1. A group that this factor would harm has its
    own, shrunk towards it. Intervals treat the rows as a sample of rows
    of their kind. Those of shares are Wilson's, for the number of trials that has the variance of
    the estimate (Franco et al. 2019), with Student's t for the effective number of gold units.

    Examples
    --------
    >>> import embedtopics as et
    >>> corpus = et.Corpus("embedtopics:demo")
    >>> rows = corpus.metadata.assign(text=corpus.texts)
    >>> rows["coder"] = rows["text"].str.contains("heat|pump").map({True: "heat", False: "other"})
    >>> truth = (rows["theme"] == "heat_pumps").map({True: "heat", False: "other"})
    >>> is_read = rows.index.isin(rows.sample(200, random_state=0).index)
    >>> rows["people"] = truth.where(is_read)  # None for rows that nobody read
    >>> measured = et.inference.Measurement.from_frame(rows, "people", "coder", sampling="random")
    >>> shares = et.inference.shares(measured).to_frame()
    >>> shares[["class", "estimate", "low", "high", "naive"]].round(2)
       class  estimate   low  high  naive
    0   heat      0.09  0.06  0.13    0.1
    1  other      0.91  0.87  0.94    0.9
    >>> by_source = et.inference.shares(measured, by="source").to_frame()
    >>> by_source.query("`class` == 'heat'")[["group", "n", "n_gold"]]
            group    n  n_gold
    0       forum  176      54
    1  newsletter  152      42
    2       press  193      64
    3      report  149      40
    """
    checked_between(confidence, "confidence", 0, 1)
    measurement = measurement_of(measurement)
    names, cells = groups_of(measurement.data, by, every)
    n_cells = max(len(names), 1)

    rows: list[dict[str, Any]] = []
    variances: list[tuple[float, float]] = []
    correlations: dict[Any, Float64Array] = {}
    ends: dict[Any, Float64Array] = {}
    for column, name in enumerate(measurement.classes or (None,)):
        estimates = _Cells(measurement, column, cells, n_cells)
        correlations[name] = estimates.correlations()
        at_95 = []
        for cell in range(n_cells):
            group = names[cell] if names else None
            rows.append(estimates.row(cell, group, name, confidence))
            variances.append(estimates.variances(cell))
            tested = estimates.row(cell, group, name, LEVEL_OF_TESTS)
            at_95.append((tested["low"], tested["high"]))
        ends[name] = np.array(at_95)

    columns: tuple[str, ...] = ()
    if by is not None:
        columns = (by,) if isinstance(by, str) else tuple(by)
    return MeasuredShares(
        table=shares_table(rows),
        name=measurement.name,
        by=columns,
        confidence=confidence,
        decisions=(*measurement.decisions, *_notes_on_groups(rows)),
        _variances=np.array(variances),
        _correlations=correlations,
        _ends=ends,
    )


def _notes_on_groups(rows: Sequence[Mapping[str, Any]]) -> list[Decision]:
    """Name the groups without an estimate, and those whose gold values are all equal."""
    empty = list(dict.fromkeys(str(row["group"]) for row in rows if row["n_gold"] < 2))
    equal = [str(row["group"]) for row in rows if row["n_gold"] >= 2 and np.isnan(row["low"])]
    decisions = []

    if empty:
        shown = ", ".join(empty[:5]) + (", ..." if len(empty) > 5 else "")
        groups = spell_count(len(empty), "group", "groups")
        message = f"The estimates of {groups} with fewer than two gold rows are NaN: {shown}."
        decisions.append(Decision("inference", "groups_without_gold", len(empty), message))

    if equal:
        shown = ", ".join(equal[:5]) + (", ..." if len(equal) > 5 else "")
        message = f"The gold rows of {shown} do not vary between units, so intervals are NaN."
        decisions.append(Decision("inference", "equal_gold", len(equal), message))

    return decisions


def groups_of(data: pd.DataFrame, by: Any, every: str) -> tuple[list[Any], Int64Array]:
    """Return the sorted groups, and the group of each row, -1 where a value is missing."""
    checked_choice(every, "every", PERIODS)
    if by is None:
        return [], np.zeros(len(data), dtype=np.int64)

    columns = {}
    for name in [by] if isinstance(by, str) else list(by):
        if name not in data:
            raise InputError("by", f"among the columns {', '.join(map(str, data.columns))}", name)
        column = data[name]
        if pd.api.types.is_datetime64_any_dtype(column):
            starts = column.dt.tz_localize(None).dt.to_period(PERIODS[every]).dt.start_time
            column = starts.dt.strftime("%Y-%m-%d")
        columns[name] = pd.Series(map(spell_class, column.tolist()), column.index, dtype=object)

    grouped = pd.DataFrame(columns).groupby(list(columns))
    names: list[Any] = [key if len(columns) > 1 else key[0] for key, _ in grouped]
    return names, np.asarray(grouped.ngroup().fillna(-1), dtype=np.int64)


class _Contributions(NamedTuple):
    """Two estimates of each cell, (n_cells,), and what each unit adds, (n_units, n_cells).

    `gold` is the mean of the gold values. `shift` is the mean of all predictions less the mean of
    the predictions of gold rows. The variance of both is the sum of the squares over units.
    """

    gold: Float64Array
    shift: Float64Array
    gold_by_unit: Float64Array
    shift_by_unit: Float64Array

    def factors(
        self,
        n_gold: Int64Array | None = None,
        whole: _Contributions | None = None,
        n_whole: int = 0,
    ) -> Float64Array:
        """Return the factor of the predictions, from 0 to 1, with the least variance, (n_cells,).

        Cells of few gold rows have a factor nearer to that of the whole, which counts as some gold
        rows more. Variances of means are those of rows over the number of gold rows.
        """
        covariance = (self.gold_by_unit * self.shift_by_unit).sum(axis=0)
        variance = np.square(self.shift_by_unit).sum(axis=0)
        if whole is not None and n_gold is not None:
            covariance_of_whole = (whole.gold_by_unit * whole.shift_by_unit).sum()
            variance_of_whole = np.square(whole.shift_by_unit).sum()
            covariance = n_gold**2 * covariance + SHRINK * n_whole * covariance_of_whole
            variance = n_gold**2 * variance + SHRINK * n_whole * variance_of_whole
        ratio = np.zeros(len(variance))
        np.divide(-covariance, variance, out=ratio, where=variance > 0)
        return np.clip(ratio, 0.0, 1.0)


class _Cells:
    """The estimates of one column of a measurement in all cells."""

    def __init__(
        self, measurement: Measurement, column: int, cells: Int64Array, n_cells: int
    ) -> None:
        self.sample = measurement.sample
        self.is_share = measurement.classes is not None
        truth = measurement.truth[:, column]
        predicted = measurement.proxy[:, column]

        # Tune the power of the predictions on all rows together: the factor from 0 to 1 that
        # minimizes the variance of the corrected mean.
        one_cell = np.zeros(len(truth), dtype=np.int64)
        whole = self._contributions(self.sample, truth, predicted, one_cell, 1)
        factor = whole.factors()

        # Ratio of the variances without and with predictions.
        corrected = whole.gold_by_unit + factor * whole.shift_by_unit
        corrected_variance = max(np.square(corrected).sum(), 1e-300)
        self.gain = max(1.0, np.square(whole.gold_by_unit).sum() / corrected_variance)

        # The estimates of the cells. A unit with rows in several cells correlates them.
        is_gold = self.sample.is_gold
        parts = self._contributions(self.sample, truth, predicted, cells, n_cells)
        corrected = parts.gold_by_unit + factor * parts.shift_by_unit

        # Where this factor does harm, a cell has one of its own. The others keep it: a factor that
        # is tuned to few rows makes their intervals too narrow.
        variance_of_gold = np.square(parts.gold_by_unit).sum(axis=0)
        is_harmed = np.square(corrected).sum(axis=0) > variance_of_gold
        if n_cells > 1 and is_harmed.any():
            n_gold = np.bincount(cells[is_gold & (cells >= 0)], minlength=n_cells)
            own = parts.factors(n_gold, whole, int(is_gold.sum()))
            factor = np.where(is_harmed, own, factor)
            corrected = parts.gold_by_unit + factor * parts.shift_by_unit
        self.gold = parts.gold
        self.gold_variance = variance_of_gold
        self.value = parts.gold + factor * parts.shift
        self.covariance = corrected.T @ corrected

        smoothing = self._smoothing(truth, cells, n_cells, float(whole.gold[0]))
        self.gold_variance = self.gold_variance + smoothing
        np.fill_diagonal(self.covariance, self.covariance.diagonal() + smoothing)

        # The part of the variance that more gold rows would reduce.
        holds_gold = self.sample.by_unit(is_gold[:, None].astype(np.float64))[:, 0] > 0
        self.variance_of_gold = np.square(corrected[holds_gold]).sum(axis=0) + smoothing

        # Gold numbers that could have been others, such as positions by other seeds.
        if measurement.draws is not None:
            weight = self.sample.weight
            means = [_means(values, weight, cells, n_cells) for values in measurement.draws.T]
            between_draws = np.atleast_2d(np.cov(np.array(means), rowvar=False))
            self.covariance = self.covariance + between_draws
            self.gold_variance = self.gold_variance + between_draws.diagonal()

        # Rows, gold rows, and gold rows of the rarer kind.
        self.n = np.bincount(cells[cells >= 0], minlength=n_cells)
        counted = is_gold & (cells >= 0)
        self.n_gold = np.bincount(cells[counted], minlength=n_cells)
        n_hits = np.bincount(cells[counted], truth[counted], n_cells)
        self.rare = np.minimum(n_hits, self.n_gold - n_hits)

        self.naive = _means(measurement.naive[:, column], np.ones(len(truth)), cells, n_cells)
        self.df = self.sample.effective_units(_columns(self.sample.weight, cells, n_cells)) - 1

    @staticmethod
    def _contributions(
        sample: Sample,
        truth: Float64Array,
        predicted: Float64Array,
        cells: Int64Array,
        n_cells: int,
    ) -> _Contributions:
        """Return the mean of the gold values and the shift of each cell, and their parts."""
        equal = np.ones(len(truth))
        mean_truth = _means(truth, sample.weight, cells, n_cells)
        mean_of_gold = _means(predicted, sample.weight, cells, n_cells)
        mean_of_all = _means(predicted, equal, cells, n_cells)

        # The residuals of n units vary too little by a factor of n - 1 in n.
        counted = sample.is_gold & (cells >= 0)
        cell_and_unit = np.unique(np.stack([cells, sample.unit])[:, counted], axis=1)
        n_units = np.bincount(cell_and_unit[0], minlength=n_cells)
        correction = np.sqrt(n_units / np.maximum(n_units - 1, 1))

        # Each row's part in the three means.
        truth_residuals = _residuals(truth, mean_truth, sample.weight, cells)
        gold_residuals = _residuals(predicted, mean_of_gold, sample.weight, cells)
        truth_parts = sample.parts(truth_residuals, correction)
        gold_parts = sample.parts(gold_residuals, correction)
        all_parts = _residuals(predicted, mean_of_all, equal, cells)
        return _Contributions(
            gold=mean_truth,
            shift=mean_of_all - mean_of_gold,
            gold_by_unit=sample.by_unit(truth_parts),
            shift_by_unit=sample.by_unit(all_parts - gold_parts),
        )

    def _smoothing(
        self, truth: Float64Array, cells: Int64Array, n_cells: int, overall: float
    ) -> Float64Array:
        """Return the increase in variance by half a gold row more of each kind, (n_cells,).

        If chance draws few rows of a class from a stratum, the variance of its share is estimated
        too small, and as 0 if it draws none. Of a kind that is rare `overall`, less than half a row
        is to be expected. Numbers have no such kinds.
        """
        stratum = self.sample.stratum
        n_strata = int(stratum.max()) + 1
        if not self.is_share or n_strata == 1:
            return np.zeros(n_cells)

        in_cell = cells >= 0
        cell_and_stratum = (cells * n_strata + stratum)[in_cell]

        def count(weights: npt.NDArray[Any]) -> Float64Array:
            """Sum up weights of rows, (n_rows,), by cell and stratum, (n_cells, n_strata)."""
            sums = np.bincount(cell_and_stratum, weights[in_cell], n_cells * n_strata)
            return np.asarray(sums.reshape(n_cells, n_strata))

        n_rows = count(np.ones(len(truth)))
        n_gold = count(self.sample.is_gold)
        n_hits = count(truth * self.sample.is_gold)

        # The variance of a share, p (1 - p) / (n - 1), with the smoothed p less with the observed.
        share = n_hits / np.maximum(n_gold, 1)
        more_hits = min(0.5, EXPECTED_ROWS * overall)
        more_misses = min(0.5, EXPECTED_ROWS * (1 - overall))
        smoothed = (n_hits + more_hits) / (n_gold + more_hits + more_misses)
        increase = smoothed * (1 - smoothed) - share * (1 - share)
        increase = increase / np.maximum(n_gold - 1, 1)
        increase[n_gold == 0] = 0.0

        # A stratum counts by its share of the rows of the cell.
        weight = n_rows / np.maximum(n_rows.sum(axis=1, keepdims=True), 1)
        return np.asarray((np.square(weight) * increase).sum(axis=1))

    def correlations(self) -> Float64Array:
        """Return how the estimates of the cells correlate, 0 for one without an error."""
        errors = np.sqrt(np.diag(self.covariance))
        errors = np.where(errors > 0, errors, np.inf)
        return np.asarray(self.covariance / np.outer(errors, errors))

    def variances(self, cell: int) -> tuple[float, float]:
        """Return the variance of an estimate by its gold rows, and by the predictions of others.

        A single gold row has no variance.
        """
        if self.n_gold[cell] < 2:
            return np.nan, np.nan
        by_gold = float(self.variance_of_gold[cell])
        return by_gold, max(float(self.covariance[cell, cell]) - by_gold, 0.0)

    def row(self, cell: int, group: Any, name: Any, confidence: float) -> dict[str, Any]:
        """Return the estimate of a cell, beside those by gold rows and by predictions alone."""
        n_gold = int(self.n_gold[cell])
        gold = float(self.gold[cell])
        gold_variance = float(self.gold_variance[cell])
        value = float(self.value[cell])
        variance = float(self.covariance[cell, cell])
        if self.is_share:
            value = min(max(value, 0.0), 1.0)

        # A single gold row has no variance.
        if n_gold < 2:
            value = np.nan
            gold = np.nan

        # The number of gold rows that would be as precise without predictions.
        n_effective = np.nan
        if variance > 0:
            n_effective = n_gold * gold_variance / variance

        low, high = self._interval(value, variance, cell, confidence, gain=self.gain)
        gold_low, gold_high = self._interval(gold, gold_variance, cell, confidence, gain=1.0)
        return {
            "group": group,
            "class": name,
            "n": int(self.n[cell]),
            "n_gold": n_gold,
            "estimate": value,
            "low": low,
            "high": high,
            "gold": gold,
            "gold_low": gold_low,
            "gold_high": gold_high,
            "naive": float(self.naive[cell]),
            "n_effective": n_effective,
        }

    def _interval(
        self, value: float, variance: float, cell: int, confidence: float, gain: float
    ) -> tuple[float, float]:
        """Return the ends of an interval: by Student's t for a mean, Wilson's for a share."""
        df = float(self.df[cell])
        if np.isnan(value) or df <= 0:
            return np.nan, np.nan
        if not self.is_share:
            if variance <= NO_VARIANCE * value**2:  # equal values say nothing about others
                return np.nan, np.nan
            reach = float(stdtrit(df, 0.5 + confidence / 2)) * variance**0.5
            return value - reach, value + reach

        # The number of independent trials whose share has this variance; at 0 and 1, where the
        # variance says nothing, the number of gold units.
        trials = df + 1
        if variance > 0 and 0 < value < 1:
            trials = value * (1 - value) / variance
        if self.rare[cell] < MIN_RARE:
            trials = min(trials, (df + 1) * gain)
        low, high = wilson(value * trials, trials, confidence, df=df)
        return float(low), float(high)


def _columns(values: Float64Array, cells: Int64Array, n_cells: int) -> Float64Array:
    """Put the value of each row into the column of its cell, (n_rows, n_cells)."""
    rows = np.flatnonzero(cells >= 0)
    columns = np.zeros((len(values), n_cells))
    columns[rows, cells[rows]] = values[rows]
    return columns


def _means(
    values: Float64Array, weight: Float64Array, cells: Int64Array, n_cells: int
) -> Float64Array:
    """Return the weighted mean of each cell; NaN without weights."""
    rows = cells >= 0
    sums = np.bincount(cells[rows], (weight * values)[rows], n_cells)
    totals = np.bincount(cells[rows], weight[rows], n_cells)
    return np.asarray(sums / np.where(totals > 0, totals, np.nan))


def _residuals(
    values: Float64Array, means: Float64Array, weight: Float64Array, cells: Int64Array
) -> Float64Array:
    """Return how each row differs from the mean of its cell, by the sum of its weights."""
    totals = np.bincount(cells[cells >= 0], weight[cells >= 0], len(means))
    scale = 1 / np.where(totals > 0, totals, np.inf)
    return _columns((values - np.nan_to_num(means)[cells]) * scale[cells], cells, len(means))
