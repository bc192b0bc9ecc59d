"""Dates -> calendar periods without gaps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.results import Decision

__all__ = ["Periods", "cut_into_periods"]

Times = npt.NDArray[np.datetime64]

UNITS = ("day", "week", "month", "quarter", "year", "decade")
MOST_PERIODS = 2_000
"""More periods than any reader looks at; that many are mostly due to one wrong date."""

AT_MOST, ROWS_EACH = 40, 10
"""Periods, and rows in one on average, at which "auto" takes a coarser unit."""

_WRITTEN = ((2 * 86_400_000_000, 10), (60_000_000, 16), (1_000_000, 19), (0, 26))
"""Microseconds from which so many characters of a date keep the names of equal periods apart."""

_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}


@dataclass(frozen=True, eq=False)
class Periods:
    """Half-open periods that follow one another.

    Parameters
    ----------
    every : str
    names : tuple of str
    starts, ends : datetime64[us] ndarray of shape (n_periods,)
    of_row : int64 ndarray of shape (n_rows,)
        Period of each row; -1 for rows without a date.
    decisions : tuple of Decision
    """

    every: str
    names: tuple[str, ...]
    starts: Times
    ends: Times
    of_row: Int64Array
    decisions: tuple[Decision, ...] = ()


def cut_into_periods(dates: Times, every: Any = "auto") -> Periods:
    """Cut the time from the first date to the last.

    Parameters
    ----------
    dates : datetime64[us] ndarray of shape (n_rows,)
        NaT where missing; at least one is not.
    every : "auto", a unit, or int
        "day", "week" (from Monday, ISO 8601), "month", "quarter", "year", "decade"; a number asks
        for so many periods of equal length; "auto" takes the finest unit that the dates allow and
        that makes at most 40 periods of ten rows or more on average.

    Returns
    -------
    Periods

    Raises
    ------
    InputError
        Where `every` is none of these, or makes more than 2,000 periods.
    """
    known = dates[~np.isnat(dates)]
    if isinstance(every, (int, np.integer)) and not isinstance(every, bool):
        return _equal_bins(dates, known, int(every))
    if every == "auto":
        unit = _finest(known)
        n_periods = _span(known, unit)
        message = (
            f"Periods are {unit}s: {known.min().astype('M8[D]')} to {known.max().astype('M8[D]')} "
            f"in {n_periods:,}."
        )
        decisions: tuple[Decision, ...] = (Decision("trends", "every", unit, message),)
    elif isinstance(every, str) and every in UNITS:
        unit, decisions = every, ()
    else:
        expected = ", ".join(("auto", *UNITS))
        raise InputError(f"every must be one of {expected}, or a number of periods; got {every!r}")
    n_periods = _span(known, unit)
    if n_periods > MOST_PERIODS:
        raise InputError(_too_many(unit, known, n_periods))
    numbers = _number(dates, unit)
    first = int(_number(known.min()[None], unit)[0])
    edges = _start(first + np.arange(n_periods + 1), unit)
    of_row = np.where(np.isnat(dates), -1, numbers - first)
    names = tuple(_name(start, unit) for start in edges[:-1])
    return Periods(unit, names, edges[:-1], edges[1:], of_row.astype(np.int64), decisions)


def _too_many(unit: str, known: Times, n_periods: int) -> str:
    return (
        f"periods of a {unit} would cut the time from {known.min().astype('M8[D]')} to "
        f"{known.max().astype('M8[D]')} into {n_periods:,} periods, more than {MOST_PERIODS:,}; "
        "take longer periods, or mend the first or the last date"
    )


def _finest(known: Times) -> str:
    """Return the unit that "auto" stands for."""
    possible = [unit for unit in UNITS if _is_told(known, unit)]
    for unit in possible:
        n_periods = _span(known, unit)
        if 2 <= n_periods <= AT_MOST and len(known) >= ROWS_EACH * n_periods:
            return unit
    several = [unit for unit in possible if 2 <= _span(known, unit) <= AT_MOST]
    if several:  # few rows: the longest periods, as long as they are not one
        return several[-1]
    return possible[-1] if _span(known, possible[0]) > 1 else possible[0]


def _is_told(known: Times, unit: str) -> bool:
    """Tell whether dates are precise enough: years alone stand for their first days."""
    if _MONTHS.get(unit, 0) >= 12 or known.min() == known.max():
        return True
    coarser = "year" if unit in _MONTHS else "month"
    return bool((_start(_number(known, coarser), coarser) != known).any())


def _span(known: Times, unit: str) -> int:
    """Return how many periods lie from the first date to the last."""
    first, last = _number(np.array([known.min(), known.max()]), unit).tolist()
    return int(last - first + 1)


def _number(dates: Times, unit: str) -> Int64Array:
    """Return the number of the period of each date, in order of time."""
    if unit == "day":
        return dates.astype("M8[D]").astype(np.int64)
    if unit == "week":  # 1970 began on a Thursday
        return (dates.astype("M8[D]").astype(np.int64) + 3) // 7
    months = dates.astype("M8[M]").astype(np.int64) + 1970 * 12
    return months // _MONTHS[unit]


def _start(numbers: Int64Array, unit: str) -> Times:
    """Return when periods begin."""
    if unit == "day":
        return numbers.astype("M8[D]").astype("M8[us]")
    if unit == "week":
        return (numbers * 7 - 3).astype("M8[D]").astype("M8[us]")
    months = numbers * _MONTHS[unit] - 1970 * 12
    return months.astype("M8[M]").astype("M8[us]")


def _name(start: np.datetime64, unit: str) -> str:
    """Return what people call a period."""
    if unit == "week":
        year, week, _ = start.astype("M8[us]").astype(datetime).isocalendar()
        return f"{year:04}-W{week:02}"
    written = str(start)  # not by way of datetime, which knows no year 0, when a decade begins
    if unit == "quarter":
        return f"{written[:4]} Q{int(written[5:7]) // 3 + 1}"
    if unit == "decade":
        return f"{written[:4]}s"
    return written[: {"day": 10, "month": 7, "year": 4}[unit]]


def _equal_bins(dates: Times, known: Times, n_bins: int) -> Periods:
    """Cut the time into parts of equal length; the last one holds the last date too."""
    first = known.min()
    span = int((known.max() - first).astype(np.int64)) + 1  # of microseconds
    if n_bins < 1 or n_bins > MOST_PERIODS:
        raise InputError(f"every must be from 1 to {MOST_PERIODS:,} periods; got {n_bins}")
    if n_bins > span:
        raise InputError(
            f"all dates are {str(first)[:19]}, which cannot be cut into {n_bins} periods; "
            "take periods of a day"
        )
    offsets = np.array([span * edge // n_bins for edge in range(n_bins + 1)], dtype=np.int64)
    passed = (np.where(np.isnat(dates), first, dates) - first).astype(np.int64)
    of_row = np.searchsorted(offsets, passed, side="right") - 1
    edges = first + offsets.astype("m8[us]")
    written = next(n for least, n in _WRITTEN if span // n_bins >= least)
    names = tuple(str(edge)[:written].replace("T", " ") for edge in edges[:-1])
    return Periods("bin", names, edges[:-1], edges[1:], np.where(np.isnat(dates), -1, of_row))
