"""Dates of files: one format for a whole column.

A single value may be ambiguous (is 03/04/2021 in March or in April?). The whole column decides, or
nothing does, and a value in another format is an error that names its row: a misread date would
silently move a document in time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from embedtopics.corpus._texts import MISSING_MARKERS, is_missing
from embedtopics.decisions import Decision
from embedtopics.errors import InputError, name_rows

_TIME = r":\d{2}(?::\d{2}(?:\.\d{1,9})?)?"
_ISO = re.compile(
    rf"\d{{4}}(?:-\d{{2}}(?:-\d{{2}}(?:[Tt ]\d{{2}}{_TIME} ?(?:Z|[+-]\d{{2}}(?::?\d{{2}})?)?)?)?)?"
)
_SLASHED = re.compile(rf"(\d{{1,2}})([/.-])(\d{{1,2}})\2(\d{{4}})(?:[T ](\d{{1,2}})({_TIME}))?")
_ZONE = re.compile(r":\d{2}.*(?:Z|[+-]\d{2}(?::?\d{2})?)$")
_STAMP = re.compile(r"\d{9,14}")
_SMALLEST_STAMP, _SMALLEST_MILLISECONDS = 10**8, 10**11

_ISO_NAME = "ISO 8601 (like 2021-05-17 or 2021)"
_SLASHED_NAME = "day and month before the year (like 17/05/2021)"
_COMPACT_NAME = "YYYYMMDD (like 20210517)"
_UNITS = {"Unix time in seconds": "s", "Unix time in milliseconds": "ms"}
_REMEDY = "write every date as YYYY-MM-DD, or convert the column with pandas.to_datetime first"


class _Column:
    """A column of dates: its distinct values as strings, and the names of its rows in messages."""

    def __init__(self, series: pd.Series, name: str, lines: Sequence[int] | None) -> None:
        self.name, self.lines = name, lines
        code_of: dict[str, int] = {}
        self.first_rows: list[int] = []
        codes = []
        for row, value in enumerate(series.tolist()):
            text = _as_string(value)
            if text is None:
                raise self.refuse(row, value, "a date")
            if not text or text in MISSING_MARKERS:
                codes.append(-1)
                continue
            code = code_of.setdefault(text, len(code_of))
            if code == len(self.first_rows):
                self.first_rows.append(row)
            codes.append(code)
        self.distinct = list(code_of)
        self.codes = np.array(codes, dtype=np.int64)  # -1 for a missing value

    def refuse(self, row: int, value: object, expected: str) -> InputError:
        """Return the error for one value."""
        row_name = name_rows([row], self.lines)
        return InputError(f"{self.name}, {row_name}: expected {expected}, got {value!r}; {_REMEDY}")

    def refuse_second(self, one: int, other: int, expected: str) -> InputError:
        """Return the error for the later of two distinct values that contradict each other."""
        earlier, later = sorted((one, other))
        before = name_rows([self.first_rows[earlier]], self.lines)
        expected = f"{expected}, as in {before} ({self.distinct[earlier]!r})"
        return self.refuse(self.first_rows[later], self.distinct[later], expected)


def parse_dates(values: Iterable[Any]) -> pd.Series:
    """Read dates of one format.

    The formats are ISO 8601 dates and times, including years and months alone ("2021", 2021,
    "2021-05"); day and month in either order before the year, if some value above 12 shows the
    order; "20210517"; and integers above 10**8 as Unix time in seconds, above 10**11 in
    milliseconds. Times with a zone are converted to UTC.

    Parameters
    ----------
    values : Series or iterable
        Strings, integers, dates or datetimes; None, NaN, "" and "NA" are missing.

    Returns
    -------
    Series of datetime64[us], without time zone
        With the index and the name of `values`; NaT if missing. A year or a month alone
        stands for its first day.

    Raises
    ------
    InputError
        If a value has an unknown format, another format than the first, or does not exist; or if
        no value shows the order of days and months.

    Examples
    --------
    >>> parse_dates(["03/04/2021", "17/04/2021"]).dt.day.tolist()
    [3, 17]
    """
    return read_dates(values, "dates")[0]


def read_dates(
    values: Iterable[Any], name: str, lines: Sequence[int] | None = None
) -> tuple[pd.Series, tuple[Decision, ...]]:
    """Read dates as `parse_dates` does, and report the decisions."""
    series = values if isinstance(values, pd.Series) else pd.Series(list(values), dtype=object)
    decisions: list[Decision] = []
    if isinstance(series.dtype, np.dtype) and series.dtype.kind == "M":
        dates = series.astype("datetime64[us]")
    else:
        column = _Column(series, name, lines)
        moments, decisions = _parse(column)
        # The last entry is NaT, and the code of a missing value is -1.
        table = np.append(moments, np.datetime64("NaT", "us"))
        dates = pd.Series(table[column.codes], index=series.index, name=series.name)
    n_missing = int(dates.isna().sum())
    if n_missing:
        message = f"{n_missing} of {len(dates)} rows have no date in {name}."
        decisions.append(Decision("corpus", "dates_missing", n_missing, message))
    return dates, tuple(decisions)


def _as_string(value: object) -> str | None:
    """Return a value as text, "" where missing, None if it cannot be a date."""
    if isinstance(value, str):
        return value.strip()
    if is_missing(value):
        return ""
    if isinstance(value, date):  # datetimes and pandas timestamps are dates
        return value.isoformat()
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, float | np.floating) and not float(value).is_integer():
        return None
    if isinstance(value, int | float | np.integer | np.floating):
        return str(int(value))
    return str(value.astype("datetime64[us]")) if isinstance(value, np.datetime64) else None


def _name_format(text: str) -> str | None:
    patterns = {_ISO_NAME: _ISO, _SLASHED_NAME: _SLASHED, _COMPACT_NAME: re.compile(r"\d{8}")}
    for name, pattern in patterns.items():
        if pattern.fullmatch(text):
            return name
    if _STAMP.fullmatch(text) and int(text) > _SMALLEST_STAMP:
        return list(_UNITS)[int(text) >= _SMALLEST_MILLISECONDS]
    return None


def _parse(column: _Column) -> tuple[np.ndarray, list[Decision]]:
    """Parse the distinct values, all in the format of the first, as datetime64[us]."""
    if not column.distinct:
        return np.empty(0, "datetime64[us]"), []
    expected = _name_format(column.distinct[0])
    if expected is None:
        formats = f"{_ISO_NAME}, {_SLASHED_NAME} or Unix time"
        raise column.refuse(column.first_rows[0], column.distinct[0], formats)
    for text, row in zip(column.distinct, column.first_rows, strict=True):
        if _name_format(text) != expected:
            first = name_rows([column.first_rows[0]], column.lines)
            raise column.refuse(row, text, f"{expected} as in {first}")
    # Digits may be those of another script.
    texts = [
        text if text.isascii() else "".join(str(int(c)) if c.isdecimal() else c for c in text)
        for text in column.distinct
    ]
    description = expected
    if expected == _SLASHED_NAME:
        day_first = _day_comes_first(column)
        description = "day/month/year" if day_first else "month/day/year"
        texts = [_iso_of_slashed(text, day_first) for text in texts]
    if expected in _UNITS:
        numbers, seconds = [int(text) for text in texts], _UNITS[expected] == "s"
        moments = pd.to_datetime(numbers, unit="s" if seconds else "ms", errors="coerce", utc=True)
    else:
        texts = [re.sub(r"(\.\d{6})\d+", r"\1", text).replace("t", "T") for text in texts]
        texts = [text[:11] + text[11:].replace(" ", "") for text in texts]
        format = "%Y%m%d" if expected == _COMPACT_NAME else "ISO8601"
        moments = pd.to_datetime(texts, format=format, errors="coerce", utc=True)
    impossible = np.flatnonzero(moments.isna() | (moments.year < 1))
    if len(impossible):
        text, row = column.distinct[impossible[0]], column.first_rows[impossible[0]]
        raise column.refuse(row, text, f"a day that exists, as {description}")
    decisions = [
        Decision("corpus", "dates", description, f"Dates in {column.name} are {description}.")
    ]
    if expected == _ISO_NAME:
        decisions += _describe_iso(column)
    return moments.tz_localize(None).to_numpy().astype("datetime64[us]"), decisions


def _iso_of_slashed(text: str, day_first: bool) -> str:
    match = _SLASHED.fullmatch(text)
    assert match is not None  # this pattern recognized the format
    day, month = (match[1], match[3]) if day_first else (match[3], match[1])
    clock = f"T{match[5]:0>2}{match[6]}" if match[5] else ""
    return f"{match[4]}-{month:0>2}-{day:0>2}{clock}"


def _day_comes_first(column: _Column) -> bool:
    """Decide over the whole column which number is the day: the one above 12."""
    parts = [_SLASHED.findall(text)[0] for text in column.distinct]
    first, second = (
        next((row for row, part in enumerate(parts) if int(part[group]) > 12), None)
        for group in (0, 2)
    )
    if first is not None and second is not None:
        raise column.refuse_second(first, second, "one order of day and month")
    if first is None and second is None:
        expected = "some value above 12 in the column to tell days from months"
        raise column.refuse(column.first_rows[0], column.distinct[0], expected)
    return first is not None


def _describe_iso(column: _Column) -> list[Decision]:
    """Report dates without a day and times with a zone; refuse a column with zones in part."""
    decisions = []
    zoned = [code for code, text in enumerate(column.distinct) if _ZONE.search(text)]
    if zoned:
        for code, text in enumerate(column.distinct):
            if ":" in text and not _ZONE.search(text):  # a day alone needs no zone
                raise column.refuse_second(zoned[0], code, "a time zone in every row or in none")
        message = f"Times in {column.name} were converted to UTC."
        decisions.append(Decision("corpus", "time_zone", "UTC", message))
    is_rounded = np.array([len(text) < len("2021-05-17") for text in column.distinct])
    n_rounded = int(is_rounded[column.codes[column.codes >= 0]].sum())
    if n_rounded:
        message = f"{n_rounded} dates in {column.name} name no day; each stands for its first day."
        decisions.append(Decision("corpus", "dates_without_day", n_rounded, message))
    return decisions
