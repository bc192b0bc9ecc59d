"""Topics by calendar period."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, checked_level
from embedtopics.corpus._dates import read_dates
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.evaluation._shares import wilson
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


class Unit(NamedTuple):
    """Length of a period: so many days ("D") or months ("M")."""

    name: str
    base: str
    size: int


UNITS = {
    "day": Unit("day", "D", 1), "week": Unit("week", "D", 7), "month": Unit("month", "M", 1),
    "quarter": Unit("quarter", "M", 3), "year": Unit("year", "M", 12),
    "decade": Unit("decade", "M", 120),
}  # fmt: skip
ALIASES = {
    "d": "day", "w": "week", "m": "month", "ms": "month", "me": "month", "q": "quarter",
    "qs": "quarter", "qe": "quarter", "y": "year", "ys": "year", "ye": "year", "a": "year",
}  # fmt: skip
"""Those of pandas, in lower case."""

MOST_PERIODS = 2_000
"""More periods than any reader looks at; that many are mostly due to one wrong date."""

AT_MOST, ROWS_EACH = 40, 10
"""Periods, and rows in one on average, at which "auto" takes a coarser unit."""

_WRITTEN = ((2 * 86_400_000_000, 10), (60_000_000, 16), (1_000_000, 19), (0, 26))
"""Microseconds from which so many characters of a date keep the names of equal periods apart."""


def over_time(
    result: TopicResult,
    every: str | int = "auto",
    *,
    time: Any = None,
    n_terms: int = 10,
    evolution_tuning: bool = True,
    global_tuning: bool = True,
    smooth: int = 1,
    confidence: float = 0.95,
    units: Any = None,
) -> TopicTrends:
    """Follow the topics through time: their rows, shares and terms.

    Parameters
    ----------
    result : TopicResult
    every : str or int
        Length of a period: "day", "week", "month", "quarter", "year", "decade", or an alias of
        pandas such as "W" or "3M"; a number asks for so many periods of equal length; "auto" takes
        the shortest that makes at most 40 periods of ten rows or more.
    time : str or array_like of shape (n_rows,), optional
        A column, or a date for each row; by default the time column of the corpus. Times with a
        zone are converted to UTC; others are taken as they are.
    n_terms : int
        Terms of a topic in a period; 0 for none.
    evolution_tuning : bool
        Average the term weights of a topic in a period with those in the period before.
    global_tuning : bool
        Average them with the topic's weights in the whole fit, so that few documents do not decide
        alone what it is about.
    smooth : int
        An odd number of periods, whose rows are taken together in the share of the middle one.
        Counts stay those of the period.
    confidence : float
        Of the Wilson intervals.
    units : str or array_like of shape (n_rows,), optional
        What is independent, such as authors; by default each distinct text. See `by_group`.

    Returns
    -------
    TopicTrends

    Raises
    ------
    InputError
        If there are no dates, their number is not that of the rows, or a parameter is bad.

    Notes
    -----
    Term weights are class-TF-IDF (Grootendorst 2022, "BERTopic", section 3.4): the share of a term
    among those of the topic in the period, times its factor in the whole fit. With either tuning
    they are first scaled to sum 1.
    """
    if checked_count(smooth, "smooth") % 2 == 0:
        raise InputError("smooth", "an odd number of periods", smooth)
    checked_count(n_terms, "n_terms", 0)
    confidence = checked_level(confidence)
    moments, zone, n_undated, decisions = _dates_of(result, time)
    periods = cut_into_periods(moments, every)
    n_topics, n_periods = result.n_topics, len(periods.names)
    window = np.abs(np.subtract.outer(np.arange(n_periods), np.arange(n_periods)))
    pooled = (window <= smooth // 2).astype(np.float64)

    counts = count_rows(result.labels, periods.of_row, (n_topics + 1, n_periods))
    totals = counts.sum(axis=0)
    together, below = counts @ pooled, totals @ pooled
    rows = repeated_rows(result, periods.of_row, n_periods, units)
    effective = rows.effective_sizes(below, pooled)
    low, high = wilson(share_of(together, below) * effective, effective, confidence)
    terms = no_terms(result, n_periods)
    if n_terms and n_topics and result.term_counts.counts.nnz:
        weights = weigh_cells(result, count_cells(result, periods.of_row, n_periods))
        tuning = {"evolution": bool(evolution_tuning), "overall": bool(global_tuning)}
        terms = best_cell_terms(result, weights, n_terms, totals > 0, **tuning)
    return TopicTrends(
        every=periods.every,
        names=periods.names,
        starts=periods.starts,
        ends=periods.ends,
        time_zone=zone,
        labels=tuple(topic.label for topic in result.topics),
        counts=counts,
        totals=totals,
        n_effective=rows.effective_sizes(totals),
        shares=share_of(together, below),
        low=low,
        high=high,
        terms=terms,
        confidence=confidence,
        smooth=int(smooth),
        n_undated=n_undated,
        decisions=(*decisions, *periods.decisions, *rows.decisions),
    )


def _dates_of(result: TopicResult, given: Any) -> tuple[Times, str, int, tuple[Decision, ...]]:
    """Return the date of each row with text, the zone, how many have none, and decisions."""
    corpus = result.corpus
    decisions: tuple[Decision, ...] = ()
    if given is not None:
        values, what = values_of(result, given, "time")
        dates, notes = read_dates(values, what)
        decisions = tuple(note for note in notes if note.name != "dates_missing")
    elif corpus.time is None:
        raise InputError("time", "a column or a date for each row: the corpus has no dates", given)
    else:
        dates, notes = corpus.time, corpus.notes
    has_text = result.documents.of_row >= 0
    moments = dates.to_numpy(dtype="datetime64[us]")
    moments = np.where(has_text, moments, np.datetime64("NaT"))
    if np.isnat(moments).all():
        raise InputError("time", "dates of rows with text", found="none", remedy="name another one")
    if n_undated := int(np.sum(has_text & np.isnat(moments))):
        message = f"{n_undated:,} of {int(has_text.sum()):,} rows with text have no date."
        decisions = (*decisions, Decision("trends", "rows_without_date", n_undated, message))
    zone = "UTC" if any(note.name == "time_zone" for note in notes) else "as given"
    return moments, zone, n_undated, decisions


@dataclass(frozen=True, eq=False)
class Periods:
    """Half-open periods that follow one another; `of_row` is -1 for rows without a date."""

    every: str
    names: tuple[str, ...]
    starts: Times
    ends: Times
    of_row: Int64Array
    decisions: tuple[Decision, ...] = ()


def cut_into_periods(dates: Times, every: Any = "auto") -> Periods:
    """Cut the time from the first of `dates` (n_rows,) to the last."""
    known = dates[~np.isnat(dates)]
    if isinstance(every, (int, np.integer)) and not isinstance(every, bool):
        return _equal_bins(dates, known, int(every))
    is_auto = isinstance(every, str) and every == "auto"
    unit = _finest(known) if is_auto else parse_unit(every)
    first_day, last_day = known.min().astype("M8[D]"), known.max().astype("M8[D]")
    n_periods = _span(known, unit)
    if n_periods > MOST_PERIODS:
        expected = f"such that {first_day} to {last_day} are at most {MOST_PERIODS:,} periods"
        remedy = f"these are {n_periods:,}; else correct the first or the last date"
        raise InputError("every", expected, every, remedy)
    decisions: tuple[Decision, ...] = ()
    if is_auto:
        message = f"Periods are {unit.name}s: {first_day} to {last_day} in {n_periods:,}."
        decisions = (Decision("trends", "every", unit.name, message),)
    first = int(_number(known.min()[None], unit)[0])
    edges = _start(first + np.arange(n_periods + 1), unit)
    of_row = np.where(np.isnat(dates), -1, _number(dates, unit) - first)
    names = tuple(_name(start, unit) for start in edges[:-1])
    return Periods(unit.name, names, edges[:-1], edges[1:], of_row.astype(np.int64), decisions)


def parse_unit(every: Any) -> Unit:
    """Return the unit of a name or of an alias of pandas, such as "quarter", "Q" or "3M"."""
    if isinstance(every, str):
        number, word = re.fullmatch(r"\s*(\d{0,4})(.*)", every, re.DOTALL).groups()  # type: ignore[union-attr]
        word = word.strip().lower()
        unit = UNITS.get(ALIASES.get(word, word.removesuffix("s")))
        if unit is not None and (number == "" or int(number)):
            size = unit.size * int(number or 1)
            same = [u for u in UNITS.values() if (u.base, u.size) == (unit.base, size)]
            return same[0] if same else Unit(f"{int(number)} {unit.name}s", unit.base, size)
    expected = ", ".join(("auto", *UNITS))
    raise InputError("every", f'{expected}, an alias such as "3M", or a number of periods', every)


def _finest(known: Times) -> Unit:
    """Return the unit that "auto" stands for."""
    possible = [unit for unit in UNITS.values() if _is_precise_enough(known, unit)]
    for unit in possible:
        n_periods = _span(known, unit)
        if 2 <= n_periods <= AT_MOST and len(known) >= ROWS_EACH * n_periods:
            return unit
    several = [unit for unit in possible if 2 <= _span(known, unit) <= AT_MOST]
    if several:  # few rows: the longest periods, as long as they are not one
        return several[-1]
    return possible[-1] if _span(known, possible[0]) > 1 else possible[0]


def _is_precise_enough(known: Times, unit: Unit) -> bool:
    """Return whether dates are precise enough: years alone stand for their first days."""
    if (unit.base == "M" and unit.size >= 12) or known.min() == known.max():
        return True
    coarser = UNITS["year" if unit.base == "M" else "month"]
    return bool((_start(_number(known, coarser), coarser) != known).any())


def _span(known: Times, unit: Unit) -> int:
    """Return how many periods lie from the first date to the last."""
    first, last = _number(np.array([known.min(), known.max()]), unit).tolist()
    return int(last - first + 1)


def _zero(unit: Unit) -> int:
    """Return what is added to count from year 0; or in weeks from a Monday, as 1970 began later."""
    return 1970 * 12 if unit.base == "M" else 3 if unit.size % 7 == 0 else 0


def _number(dates: Times, unit: Unit) -> Int64Array:
    """Return the number of the period of each date, in order of time."""
    return (dates.astype(f"M8[{unit.base}]").astype(np.int64) + _zero(unit)) // unit.size


def _start(numbers: Int64Array, unit: Unit) -> Times:
    return (numbers * unit.size - _zero(unit)).astype(f"M8[{unit.base}]").astype("M8[us]")


def _name(start: np.datetime64, unit: Unit) -> str:
    """Return the usual name of a period."""
    if unit.base == "D" and unit.size % 7 == 0:
        year, week, _ = start.astype("M8[us]").astype(datetime).isocalendar()
        return f"{year:04}-W{week:02}"
    written = str(start)  # not by way of datetime, which knows no year 0, when a decade begins
    if unit.name == "quarter":
        return f"{written[:4]} Q{int(written[5:7]) // 3 + 1}"
    if unit.name == "decade":
        return f"{written[:4]}s"
    return written[: 10 if unit.base == "D" else 4 if unit.size % 12 == 0 else 7]


def period_names(dates: Times, every: str) -> list[str]:
    """Return the name of the period of each date, "" where there is none."""
    unit = parse_unit(every)
    known = np.flatnonzero(~np.isnat(dates))
    numbers, places = np.unique(_number(dates[known], unit), return_inverse=True)
    names = [_name(start, unit) for start in _start(numbers, unit)]
    found = [""] * len(dates)
    for row, place in zip(known.tolist(), places.tolist(), strict=True):
        found[row] = names[place]
    return found


def _equal_bins(dates: Times, known: Times, n_bins: int) -> Periods:
    """Cut the time into parts of equal length; the last one holds the last date too."""
    first = known.min()
    span = int((known.max() - first).astype(np.int64)) + 1  # of microseconds
    if not 1 <= n_bins <= min(span, MOST_PERIODS):
        expected = f"from 1 to {MOST_PERIODS:,} periods"
        if n_bins > span:
            expected = f"periods of a day, as all dates are {str(first)[:19]}"
        raise InputError("every", expected, n_bins)
    offsets = np.array([span * edge // n_bins for edge in range(n_bins + 1)], dtype=np.int64)
    passed = (np.where(np.isnat(dates), first, dates) - first).astype(np.int64)
    of_row = np.searchsorted(offsets, passed, side="right") - 1
    edges = first + offsets.astype("m8[us]")
    written = next(n for least, n in _WRITTEN if span // n_bins >= least)
    names = tuple(str(edge)[:written].replace("T", " ") for edge in edges[:-1])
    return Periods("bin", names, edges[:-1], edges[1:], np.where(np.isnat(dates), -1, of_row))
