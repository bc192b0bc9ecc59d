"""Topics by calendar period."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_choice
from embedtopics.corpus._columns import read_dates
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import wilson
from embedtopics.protocols import Int64Array
from embedtopics.topics.results import TopicResult
from embedtopics.topics.trends._by_group import (
    best_cell_terms,
    count_cells,
    count_rows,
    no_terms,
    repeated_rows,
    share_of,
    values_of,
    weigh_cells,
)
from embedtopics.topics.trends.results import TopicTrends

Times = npt.NDArray[np.datetime64]


class PeriodUnit(NamedTuple):
    """Length of a period: a number of days ("D") or months ("M")."""

    name: str
    base: str
    size: int


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
    result: TopicResult,
    every: Any = "auto",
    *,
    time: Any = None,
    n_terms: int = 10,
    units: Any = None,
) -> TopicTrends:
    """Count topics by calendar period, with shares and terms.

    Parameters
    ----------
    result : TopicResult
    every : {"auto", "day", "week", "month", "quarter", "year", "decade"}
        Length of a period. "auto" takes the shortest unit with at most 40 periods and ten rows per
        period on average. Dates are read as `time`.
    time : str or array_like of shape (n_rows,), optional
        A column, or a date for each row; by default the time column of the corpus. Times with a
        zone are converted to UTC; other times stay the same.
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
    """
    if not isinstance(every, str):
        every, time = "auto", every
    moments, zone, n_undated, decisions = _dates_of(result, time)
    periods = cut_into_periods(moments, every)
    n_topics, n_periods = result.n_topics, len(periods.names)
    counts = count_rows(result.labels, periods.of_row, (n_topics + 1, n_periods))
    totals = counts.sum(axis=0)
    rows = repeated_rows(result, periods.of_row, n_periods, units)
    effective = rows.effective_sizes(totals)
    low, high = wilson(share_of(counts, totals) * effective, effective)
    terms = no_terms(result, n_periods)
    if n_terms and n_topics and result.term_counts.counts.nnz:
        weights = weigh_cells(result, count_cells(result, periods.of_row, n_periods))
        terms = best_cell_terms(result, weights, n_terms, totals > 0, evolution=True)
    return TopicTrends(
        every=periods.every,
        names=periods.names,
        starts=periods.starts,
        ends=periods.ends,
        time_zone=zone,
        labels=tuple(topic.label for topic in result.topics),
        counts=counts,
        totals=totals,
        n_effective=effective,
        shares=share_of(counts, totals),
        low=low,
        high=high,
        unit_periods=rows.cells,
        unit_counts=rows.counts,
        terms=terms,
        n_undated=n_undated,
        decisions=(*decisions, *periods.decisions, *rows.decisions),
    )


def _dates_of(result: TopicResult, time: Any) -> tuple[Times, str, int, tuple[Decision, ...]]:
    """Return the date of each row with text, the zone, the number without a date, and decisions."""
    corpus = result.corpus
    decisions: tuple[Decision, ...] = ()
    if time is not None:
        values, what = values_of(result, time, "time")
        dates, notes = read_dates(values, what)
        decisions = tuple(note for note in notes if note.name != "dates_missing")
    elif corpus.time is None:
        raise InputError("time", "a column or a date for each row: the corpus has no dates", time)
    else:
        dates, notes = corpus.time, corpus.notes
    has_text = result.documents.of_row >= 0
    moments = dates.to_numpy(dtype="datetime64[us]")
    moments = np.where(has_text, moments, np.datetime64("NaT"))
    if np.isnat(moments).all():
        raise InputError(
            "time", "dates of rows with text", found="none", remedy="choose another column"
        )
    if n_undated := int(np.sum(has_text & np.isnat(moments))):
        message = f"{n_undated:,} of {int(has_text.sum()):,} rows with text have no date."
        decisions = (*decisions, Decision("trends", "rows_without_date", n_undated, message))
    zone = "UTC" if any(note.name == "time_zone" for note in notes) else "as given"
    return moments, zone, n_undated, decisions


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
    n_periods = _span(valid, unit)
    if n_periods > MAX_PERIODS:
        expected = f"a length with at most {MAX_PERIODS:,} periods from {first_day} to {last_day}"
        remedy = f"these are {n_periods:,} periods; choose longer ones, or correct a wrong date"
        raise InputError("every", expected, every, remedy)
    decisions: tuple[Decision, ...] = ()
    if every == "auto":
        message = f"Periods are {unit.name}s: {n_periods:,} from {first_day} to {last_day}."
        decisions = (Decision("trends", "every", unit.name, message),)
    first = int(_number(valid.min()[None], unit)[0])
    edges = _start(first + np.arange(n_periods + 1), unit)
    of_row = np.where(np.isnat(dates), -1, _number(dates, unit) - first)
    names = tuple(_name(start, unit) for start in edges[:-1])
    return Periods(unit.name, names, edges[:-1], edges[1:], of_row.astype(np.int64), decisions)


def parse_unit(every: str) -> PeriodUnit:
    """Return a unit by its name."""
    return UNITS[checked_choice(every, "every", tuple(UNITS))]


def _finest(valid: Times) -> PeriodUnit:
    """Choose the unit of "auto"."""
    possible = [unit for unit in UNITS.values() if _is_precise_enough(valid, unit)]
    for unit in possible:
        n_periods = _span(valid, unit)
        if 2 <= n_periods <= MAX_PERIODS_AUTO and len(valid) >= MIN_ROWS_AUTO * n_periods:
            return unit
    several = [unit for unit in possible if 2 <= _span(valid, unit) <= MAX_PERIODS_AUTO]
    if several:  # few rows: the longest unit with at least two periods
        return several[-1]
    return possible[-1] if _span(valid, possible[0]) > 1 else possible[0]


def _is_precise_enough(valid: Times, unit: PeriodUnit) -> bool:
    """Return whether dates are more precise than the next coarser unit."""
    if (unit.base == "M" and unit.size >= 12) or valid.min() == valid.max():
        return True
    coarser = UNITS["year" if unit.base == "M" else "month"]
    return bool((_start(_number(valid, coarser), coarser) != valid).any())


def _span(valid: Times, unit: PeriodUnit) -> int:
    """Return the number of periods from the first date to the last."""
    first, last = _number(np.array([valid.min(), valid.max()]), unit).tolist()
    return int(last - first + 1)


def _zero(unit: PeriodUnit) -> int:
    """Return the offset of 1970 from year 0, or from the Monday of its first week."""
    return 1970 * 12 if unit.base == "M" else 3 if unit.size % 7 == 0 else 0


def _number(dates: Times, unit: PeriodUnit) -> Int64Array:
    """Return the number of the period of each date."""
    return (dates.astype(f"M8[{unit.base}]").astype(np.int64) + _zero(unit)) // unit.size


def _start(numbers: Int64Array, unit: PeriodUnit) -> Times:
    return (numbers * unit.size - _zero(unit)).astype(f"M8[{unit.base}]").astype("M8[us]")


def _name(start: np.datetime64, unit: PeriodUnit) -> str:
    """Return the usual name of a period."""
    if unit.base == "D" and unit.size % 7 == 0:
        year, week, _ = start.astype("M8[us]").astype(datetime).isocalendar()
        return f"{year:04}-W{week:02}"
    written = str(start)  # datetime has no year 0, in which a decade begins
    if unit.name == "quarter":
        return f"{written[:4]} Q{int(written[5:7]) // 3 + 1}"
    if unit.name == "decade":
        return f"{written[:4]}s"
    return written[: 10 if unit.base == "D" else 4 if unit.size % 12 == 0 else 7]


def period_names(dates: Times, every: str) -> list[str]:
    """Return the name of the period of each date, "" for missing dates."""
    unit = parse_unit(every)
    dated = np.flatnonzero(~np.isnat(dates))
    numbers, places = np.unique(_number(dates[dated], unit), return_inverse=True)
    names = [_name(start, unit) for start in _start(numbers, unit)]
    name_of_row = [""] * len(dates)
    for row, place in zip(dated.tolist(), places.tolist(), strict=True):
        name_of_row[row] = names[place]
    return name_of_row
