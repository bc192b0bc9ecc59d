"""Topics over calendar periods, and tests of whether their shares change."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression

from embedtopics._utils.checks import checked_choice
from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics.corpus._dates import read_dates
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array, Int64Array
from embedtopics.results import Decision
from embedtopics.topics.reading._words import Z_OF_95, false_discovery_rates
from embedtopics.topics.results import Times, TopicResult, TopicTrends
from embedtopics.topics.trends._by_group import (
    CellCounts,
    best_cell_terms,
    count_cells,
    count_rows,
    no_terms,
    values_of,
)
from embedtopics.topics.trends._change_test import UnitTable, permutation_p


class PeriodUnit(NamedTuple):
    """Length of a period: a number of days ("D") or months ("M")."""

    name: str
    base: str
    size: int

    @property
    def zero(self) -> int:
        """Offset of 1970 from year 0, or from the Monday of its first week."""
        return 1970 * 12 if self.base == "M" else 3 if self.size % 7 == 0 else 0

    def number(self, dates: Times) -> Int64Array:
        """Return the number of the period of each date."""
        return (dates.astype(f"M8[{self.base}]").astype(np.int64) + self.zero) // self.size

    def start(self, numbers: Int64Array) -> Times:
        """Return the start of each period."""
        return (numbers * self.size - self.zero).astype(f"M8[{self.base}]").astype("M8[us]")

    def span(self, dates: Times) -> int:
        """Return the number of periods from the first date to the last."""
        first, last = self.number(np.array([dates.min(), dates.max()])).tolist()
        return int(last - first + 1)

    def spell(self, start: np.datetime64) -> str:
        """Return the usual name of a period."""
        if self.name == "week":
            year, week, _ = start.astype("M8[us]").astype(datetime).isocalendar()
            return f"{year:04}-W{week:02}"
        written = str(start)  # datetime has no year 0, in which a decade begins
        if self.name == "quarter":
            return f"{written[:4]} Q{int(written[5:7]) // 3 + 1}"
        if self.name == "decade":
            return f"{written[:4]}s"
        return written[: {"day": 10, "month": 7, "year": 4}[self.name]]


UNITS = {
    name: PeriodUnit(name, base, size)
    for name, base, size in (
        ("day", "D", 1), ("week", "D", 7), ("month", "M", 1), ("quarter", "M", 3),
        ("year", "M", 12), ("decade", "M", 120),
    )
}  # fmt: skip
MAX_PERIODS = 2_000
"""Maximum number of periods; more are mostly due to one wrong date."""

MAX_PERIODS_AUTO, MIN_ROWS_AUTO = 40, 10
"""Maximum number of periods, and minimum mean number of rows in a period, of "auto"."""


def over_time(
    result: FittedTopics,
    every: str = "auto",
    *,
    time: Any = None,
    n_terms: int = 10,
    units: Any = None,
) -> TopicTrends:
    """Count topics by calendar period, with shares and terms.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    every : {"auto", "day", "week", "month", "quarter", "year", "decade"}
        Length of a period. "auto" takes the shortest unit with at most 40 periods and ten rows per
        period on average.
    time : str or array_like of shape (n_rows,), optional
        A column, or a date for each row; by default the time column of the corpus. Times with a
        zone keep its clock, so that midnights of a place stay on their day.
    n_terms : int
        Number of terms of a topic in a period; 0 for none.
    units : str or array_like of shape (n_rows,), optional
        Independent units, such as authors; by default each distinct text. See `by_group`.

    Returns
    -------
    TopicTrends

    Raises
    ------
    InputError
        If there are no dates, if their number differs from the number of rows, or if there is no
        such period.

    Notes
    -----
    Intervals are Wilson's, at 95 %. Term weights are class-TF-IDF (Grootendorst 2022, "BERTopic",
    section 3.4): the relative frequency of a term in the topic and period, times its factor in the
    whole fit. They are scaled to sum 1, averaged with those of the period before, and then with
    the topic's weights in the whole fit.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=120))
    >>> trends = et.topics.over_time(model, "month")
    >>> trends
    TopicTrends(4 topics, 5 periods: 2023-01 to 2023-05, every month)
    """
    result = result_of(result)
    moments, zone, decisions = _dates_of(result, time)
    periods = cut_into_periods(moments, every)
    n_topics, n_periods = result.n_topics, len(periods.names)
    rows = count_rows(result, periods.of_row, n_periods, units)

    terms = no_terms(result, n_periods)
    if n_terms and n_topics and result.term_counts.counts.nnz:
        cell_counts = count_cells(result, periods.of_row, n_periods)
        terms = best_cell_terms(result, cell_counts, n_terms, rows.totals > 0, evolution=True)

    return TopicTrends(
        every=periods.every,
        names=periods.names,
        starts=periods.starts,
        ends=periods.ends,
        time_zone=zone,
        topic_names=tuple(topic.name for topic in result.topics),
        counts=rows.counts,
        totals=rows.totals,
        n_effective=rows.n_effective,
        shares=rows.shares,
        low=rows.low,
        high=rows.high,
        unit_periods=rows.unit_cells,
        unit_counts=rows.unit_counts,
        units=rows.unit_numbers,
        terms=terms,
        decisions=(*decisions, *periods.decisions, *rows.decisions, *_notes_on_units(rows)),
    )


def _notes_on_units(rows: CellCounts) -> list[Decision]:
    """Say that units have rows in several periods, if the caller named units."""
    if rows.unit_numbers is None or not rows.decisions:
        return []
    n_periods = np.bincount(rows.unit_numbers)
    n_several = int((n_periods > 1).sum())
    message = (
        f"{n_several:,} of {len(n_periods):,} units have rows in several periods; tests of changes "
        "keep the rows of a unit together."
    )
    return [Decision("trends", "units_in_several_periods", n_several, message)]


def _dates_of(result: TopicResult, time: Any) -> tuple[Times, str, tuple[Decision, ...]]:
    """Return the date of each row with text, the time zone, and decisions."""
    corpus = result.corpus
    decisions: tuple[Decision, ...] = ()

    if time is not None:
        values, what = values_of(result, time, "time")
        dates, notes = read_dates(values, what)
        decisions = tuple(note for note in notes if note.name != "dates_missing")
    elif corpus.time is None:
        raise InputError("time", "a column or a date for each row: the corpus has no dates", time)
    else:
        dates, notes = corpus.time, corpus.decisions

    has_text = result.distinct.of_row >= 0
    moments = dates.to_numpy(dtype="datetime64[us]")
    moments = np.where(has_text, moments, np.datetime64("NaT"))
    if np.isnat(moments).all():
        raise InputError(
            "time", "dates of rows with text", found="none", remedy="choose another column"
        )

    if n_undated := int(np.sum(has_text & np.isnat(moments))):
        message = f"{n_undated:,} of {int(has_text.sum()):,} rows with text have no date."
        decisions = (*decisions, Decision("trends", "rows_without_date", n_undated, message))

    zones = [str(note.value) for note in notes if note.name == "time_zone"]
    zone = zones[0] if zones else "as given"
    return moments, zone, decisions


@dataclass(frozen=True, eq=False)
class Periods:
    """Consecutive half-open periods; `of_row` is -1 for rows without a date."""

    every: str
    names: tuple[str, ...]
    starts: Times
    ends: Times
    of_row: Int64Array
    decisions: tuple[Decision, ...] = ()


def cut_into_periods(dates: Times, every: str = "auto") -> Periods:
    """Cut the time from the first to the last of `dates` (n_rows,) into periods."""
    valid = dates[~np.isnat(dates)]
    unit = _finest(valid) if every == "auto" else parse_unit(every)
    first_day, last_day = valid.min().astype("M8[D]"), valid.max().astype("M8[D]")
    n_periods = unit.span(valid)
    if n_periods > MAX_PERIODS:
        expected = f"a length with at most {MAX_PERIODS:,} periods from {first_day} to {last_day}"
        remedy = f"these are {n_periods:,} periods; choose longer ones, or correct a wrong date"
        raise InputError("every", expected, every, remedy)
    decisions: tuple[Decision, ...] = ()
    if every == "auto":
        message = f"Periods are {unit.name}s: {n_periods:,} from {first_day} to {last_day}."
        decisions = (Decision("trends", "every", unit.name, message),)
    first = int(unit.number(valid.min()[None])[0])
    edges = unit.start(first + np.arange(n_periods + 1))
    of_row = np.where(np.isnat(dates), -1, unit.number(dates) - first)
    names = tuple(map(unit.spell, edges[:-1]))
    return Periods(unit.name, names, edges[:-1], edges[1:], of_row.astype(np.int64), decisions)


def parse_unit(every: str) -> PeriodUnit:
    """Return a unit by its name."""
    return UNITS[checked_choice(every, "every", tuple(UNITS))]


def _finest(valid: Times) -> PeriodUnit:
    """Choose the unit of "auto", among those whose next coarser unit is not precise enough."""
    is_one = valid.min() == valid.max()
    possible = []
    for unit in UNITS.values():
        coarser = UNITS["year" if unit.base == "M" else "month"]
        is_coarsest = unit.name in ("year", "decade") or is_one
        if is_coarsest or (coarser.start(coarser.number(valid)) != valid).any():
            possible.append(unit)
    several = [unit for unit in possible if 2 <= unit.span(valid) <= MAX_PERIODS_AUTO]
    for unit in several:
        if len(valid) >= MIN_ROWS_AUTO * unit.span(valid):
            return unit
    if several:  # few rows: the longest unit with at least two periods
        return several[-1]
    return possible[-1] if possible[0].span(valid) > 1 else possible[0]


def period_names(dates: Times, every: str) -> list[str]:
    """Return the name of the period of each date, "" for missing dates."""
    unit = parse_unit(every)
    dated = ~np.isnat(dates)
    numbers, places = np.unique(unit.number(dates[dated]), return_inverse=True)
    name_of_row = np.full(len(dates), "", dtype=object)
    name_of_row[dated] = np.array([*map(unit.spell, unit.start(numbers))], dtype=object)[places]
    return list(name_of_row.tolist())


MIN_PERIODS, MIN_ROWS = 3, 5
ALPHA = 0.05
"""False discovery rate."""

EXPLAINED = 0.75
"""Part of the variance beyond chance that a shape must explain."""

SIDE = 3.0
"""Standard errors by which a peak exceeds the periods before it, and those after it."""

WORK, MIN_DRAWS, MAX_DRAWS = 100_000_000, 499, 9_999
"""Cells and units in all permutations together, and limits of the number of permutations."""


def changes(trends: TopicTrends) -> pd.DataFrame:
    """Test whether the share of each topic changes, and name the shape of the change.

    The test asks whether the share is the same in all periods. If q is above 0.05, the verdict is
    *no trend found*, which does not prove that there is none. Else the verdict is the shape that
    explains at least three quarters of the variance between periods beyond chance: *rises* or
    *falls* (a monotone curve, and an odds ratio whose interval excludes 1), or *peaks in 2015* (a
    stretch above the periods on both sides). Without such a shape the share *varies*. A verdict
    describes the periods of the corpus; it predicts no others.

    Parameters
    ----------
    trends : TopicTrends
        Trends of `over_time`.

    Returns
    -------
    DataFrame
        One row per topic. Columns topic, topic_name, verdict ("not tested" for topics with fewer
        than five rows or with all rows, and if fewer than three periods have rows); p and q;
        dispersion (variance between periods over that of a constant share); explained (part of the
        variance beyond chance that the shape explains); peak_start and peak_end (first and last
        period of a peak, or ""); share_from and share_to (in the first and the last third of the
        periods, or outside and inside of a peak); odds_ratio (of share_to to share_from), low and
        high (95 % interval; too narrow for a peak, because the data chose its periods).

    Notes
    -----
    The test moves independent units (texts, or `units` of `over_time`) between periods at random,
    each with all its rows in a period, so topics may correlate within units. If units have rows in
    several periods, such as authors who stay, it gives each the topics of another unit with about
    as many rows, in their order from a random row on, so that topics may correlate within units
    over time as well. Its
    statistic is the smallest p-value of the chi-square test, of the first 1, 2, 4, ... components
    of chi-square, the smoothest first (Neyman 1937; Rayner and Best 1989, "Smooth tests of goodness
    of fit"), and of the most deviating period. p is at least 1 / 10,000, in corpora of 200,000
    units 1 / 500.
    q values are those of Benjamini and Hochberg (1995): of the topics with a change, one in twenty
    is expected to have none.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=120))
    >>> trends = et.topics.over_time(model, "month", n_terms=0)
    >>> et.topics.changes(trends)[["topic", "verdict"]].shape
    (4, 2)
    """
    if not isinstance(trends, TopicTrends):
        remedy = "call et.topics.over_time(result) first"
        raise InputError("trends", "a TopicTrends", trends, remedy)
    periods = np.flatnonzero(trends.totals > 0)
    rows = trends.counts[:-1].sum(axis=1)
    is_tested = (rows >= MIN_ROWS) & (rows < trends.totals.sum()) & (len(periods) >= MIN_PERIODS)
    numbers = ("share_from", "share_to", "odds_ratio", "low", "high")
    none: dict[str, Any] = dict.fromkeys(("p", "q", "dispersion", "explained"), np.nan)
    none |= {"peak_start": "", "peak_end": ""} | dict.fromkeys(numbers, np.nan)
    frame = pd.DataFrame(
        {"topic": np.arange(trends.n_topics), "topic_name": list(trends.topic_names)}
    )
    frame = frame.assign(verdict="not tested", **none)
    if not (topics := np.flatnonzero(is_tested)).size:
        return frame

    table = UnitTable.of(trends, topics, periods)
    residuals = table.residuals(table.period)
    frame.loc[topics, "dispersion"] = np.square(residuals).sum(axis=1) / (len(periods) - 1)
    n_draws = WORK // (len(table.size) + len(table.n) + 5 * residuals.size)
    p = permutation_p(table, residuals, min(max(n_draws, MIN_DRAWS), MAX_DRAWS))
    q = false_discovery_rates(p)
    frame.loc[topics, "p"] = p
    frame.loc[topics, "q"] = q

    names = [trends.names[period] for period in periods]
    before = {"day": "on ", "decade": "in the "}.get(trends.every, "in ")
    for row, topic in enumerate(topics.tolist()):
        weights = table.sizes**2 / (table.n_units * table.variance[row])
        shares = table.counts[row] / table.sizes
        shape = fit_shape(shares, weights)
        first, last = "", ""
        third = -(-len(names) // 3)
        inside, outside = np.zeros((2, len(names)), dtype=bool)
        inside[-third:] = True
        outside[:third] = True

        if q[row] > ALPHA:
            verdict = "no trend found"
        else:
            verdict = shape.word
            if verdict == "peaks":
                first, last = names[shape.first], names[shape.last]
                inside = np.isin(np.arange(len(names)), range(shape.first, shape.last + 1))
                outside = ~inside
                verdict += f" {before}{first}" + (f" to {last}" if last != first else "")

        spread = table.spread(row, outside, inside)
        values = _odds_ratio(shares, weights, table.sizes, outside, inside, spread)
        _, _, _, low, high = values
        if (verdict == "rises" and low <= 1) or (verdict == "falls" and high >= 1):
            verdict = "varies"

        frame.loc[topic, "verdict"] = verdict
        frame.loc[topic, ["peak_start", "peak_end"]] = first, last
        if verdict != "no trend found":
            frame.loc[topic, "explained"] = shape.explained
        frame.loc[topic, list(numbers)] = values

    return frame


class Shape(NamedTuple):
    """The word for a curve, the variance beyond chance that it explains, and a peak's periods."""

    word: str
    explained: float
    first: int = -1
    last: int = -1


LEVEL = 1.25
"""Degrees of freedom of each level of a monotone curve: between 1 and 1.5 (Meyer and Woodroofe
2000, "On the degrees of freedom in shape-restricted regression")."""


def fit_shape(shares: Float64Array, weights: Float64Array) -> Shape:
    """Return the shape of `shares` (n_periods,), whose variances are one over `weights`."""
    n_periods = len(shares)
    mean = weights @ shares / weights.sum()
    whole = float(weights @ np.square(shares - mean))
    beyond = whole - (n_periods - 1)

    def explained(rest: float, freedom: float) -> float:
        return 1 - max(rest - freedom, 0.0) / beyond if beyond > 0 else 0.0

    shapes = []
    for word in ("rises", "falls"):
        curve = isotonic_regression(shares, weights=weights, increasing=word == "rises")
        freedom = n_periods - 1 - LEVEL * (len(curve.blocks) - 2)
        rest = float(weights @ np.square(shares - curve.x))
        shapes.append(Shape(word, explained(rest, max(freedom, 0.0))))
    first, last, gain = _best_peak(shares, weights)
    shapes.append(Shape("peaks", explained(whole - gain, n_periods - 2), first, last))
    best = max(shapes, key=lambda shape: shape.explained)
    return best if best.explained >= EXPLAINED else Shape("varies", best.explained)


def _best_peak(shares: Float64Array, weights: Float64Array) -> tuple[int, int, float]:
    """Return first and last period of the highest peak, and the chi-square that it explains."""
    n_periods = len(shares)
    sums = np.concatenate([[0], np.cumsum(weights)])
    above = np.concatenate([[0], np.cumsum(weights * shares)])
    first, end = (
        cells.ravel() for cells in np.meshgrid(np.arange(n_periods), np.arange(1, n_periods + 1))
    )
    is_peak = (first > 0) & (first < end) & (end < n_periods) & (end - first <= n_periods / 2)
    first, end = first[is_peak], end[is_peak]
    stretches = [(first, end), (0 * first, first), (end, 0 * end + n_periods)]
    inside, before, after = (sums[stop] - sums[start] for start, stop in stretches)
    level, early, late = (
        (above[stop] - above[start]) / n
        for (start, stop), n in zip(stretches, (inside, before, after), strict=True)
    )
    outside = (early * before + late * after) / (before + after)
    gain = np.square(level - outside) * inside * (before + after) / sums[-1]
    is_above = (level - early > SIDE * np.sqrt(1 / inside + 1 / before)) & (
        level - late > SIDE * np.sqrt(1 / inside + 1 / after)
    )
    # Nor is another period clearly higher, early or late.
    least = np.concatenate([[-np.inf], shares - SIDE / np.sqrt(weights), [-np.inf]])
    highest_before = np.maximum.accumulate(least)[first]
    is_above &= level > np.maximum(
        highest_before, np.maximum.accumulate(least[::-1])[::-1][end + 1]
    )
    gain = np.where(is_above, gain, 0.0)
    if not gain.any():
        return -1, -1, 0.0
    best = int(np.argmax(gain))
    return int(first[best]), int(end[best]) - 1, float(gain[best])


def _odds_ratio(
    shares: Float64Array,
    weights: Float64Array,
    sizes: Float64Array,
    from_periods: Any,
    to_periods: Any,
    spread: float,
) -> list[float]:
    """Return pooled shares of two sets of periods, their odds ratio and its interval.

    `spread` is the factor of the variance by which periods with the same units depend.
    """
    pooled, logits, error = [], [], 0.0
    mean = shares @ sizes / sizes.sum()
    for periods in (from_periods, to_periods):
        size = sizes[periods]
        share = shares[periods] @ size / size.sum()
        n = mean * (1 - mean) * size.sum() ** 2 / (size**2 / weights[periods]).sum()
        inside = share * n + 0.5
        outside = (1 - share) * n + 0.5
        pooled.append(float(share))
        logits.append(np.log(inside / outside))
        error += 1 / inside + 1 / outside

    change = logits[1] - logits[0]
    width = Z_OF_95 * np.sqrt(error * spread)
    return [*pooled, *np.exp([change, change - width, change + width]).tolist()]
