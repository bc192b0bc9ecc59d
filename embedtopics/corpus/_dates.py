"""Dates as files write them, read without guessing row by row.

A column is read in one format. What a single value leaves open (is 03/04/2021 in March or in
April?) is decided by the whole column or not at all, and a value that departs from the rest is
an error that names its row: a date that was misread silently moves a document in time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
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
_COMPACT = re.compile(r"\d{8}")
_STAMP = re.compile(r"\d{9,14}")
_SMALLEST_STAMP, _SMALLEST_MILLISECONDS = 10**8, 10**11
_EPOCH = datetime(1970, 1, 1)

_ISO_NAME = "ISO 8601 (like 2021-05-17 or 2021)"
_SLASHED_NAME = "day and month before the year (like 17/05/2021)"
_COMPACT_NAME = "YYYYMMDD (like 20210517)"
_SECONDS_NAME = "Unix time in seconds"
_MILLISECONDS_NAME = "Unix time in milliseconds"
_REMEDY = "write every date as YYYY-MM-DD, or convert the column with pandas.to_datetime first"


class _Column:
    """A column of dates: its distinct values as strings, and how messages call its rows."""

    def __init__(self, series: pd.Series, what: str, lines: Sequence[int] | None) -> None:
        self.what, self.lines = what, lines
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
        self.codes = np.array(codes, dtype=np.int64)  # -1 where there is no value

    def refuse(self, row: int, value: object, expected: str) -> InputError:
        """Return the error for one value."""
        where = name_rows([row], self.lines)
        return InputError(f"{self.what}, {where}: expected {expected}, got {value!r}; {_REMEDY}")

    def refuse_second(self, one: int, other: int, expected: str) -> InputError:
        """Return the error for the later of two distinct values that contradict each other."""
        earlier, later = sorted((one, other))
        before = name_rows([self.first_rows[earlier]], self.lines)
        because = f"{expected}, as in {before} ({self.distinct[earlier]!r})"
        return self.refuse(self.first_rows[later], self.distinct[later], because)


def parse_dates(values: Iterable[Any]) -> pd.Series:
    """Read dates of one format.

    Understood are ISO 8601 dates and times, also years and months alone ("2021", 2021,
    "2021-05"); days and months in either order before the year, if some value above 12 tells
    which; "20210517"; and integers above 10**8 as Unix time in seconds, above 10**11 in
    milliseconds. Times with a zone are converted to UTC.

    Parameters
    ----------
    values : Series or iterable
        Strings, integers, dates or datetimes; None, NaN, "" and "NA" are missing.

    Returns
    -------
    Series of datetime64[us], without time zone
        With the index and the name of `values`; NaT where missing. A year or a month alone
        stands for its first day.

    Raises
    ------
    InputError
        A value is in no known format, departs from the format of the first, or does not exist;
        or nothing in the column tells days from months.

    Examples
    --------
    >>> parse_dates(["03/04/2021", "17/04/2021"]).dt.day.tolist()
    [3, 17]
    """
    return read_dates(values, "dates")[0]


def read_dates(
    values: Iterable[Any], what: str, lines: Sequence[int] | None = None
) -> tuple[pd.Series, tuple[Decision, ...]]:
    """Read dates as `parse_dates` does, and say what was decided."""
    series = values if isinstance(values, pd.Series) else pd.Series(list(values), dtype=object)
    notes: list[Decision] = []
    if isinstance(series.dtype, np.dtype) and series.dtype.kind == "M":
        parsed = series.astype("datetime64[us]")
    else:
        column = _Column(series, what, lines)
        moments, notes = _parse(column)
        # The last place is NaT, and the code of a missing value is -1.
        table = np.array([*moments, np.datetime64("NaT")], dtype="datetime64[us]")
        parsed = pd.Series(table[column.codes], index=series.index, name=series.name)
    n_missing = int(parsed.isna().sum())
    if n_missing:
        message = f"{n_missing} of {len(parsed)} rows have no date in {what}."
        notes.append(Decision("corpus", "dates_missing", n_missing, message))
    return parsed, tuple(notes)


def _as_string(value: object) -> str | None:
    """Return a value as files write it, "" where missing, None where it cannot be a date."""
    if isinstance(value, str):
        return value.strip()
    if is_missing(value):
        return ""
    if isinstance(value, date):  # datetimes and pandas timestamps are dates
        return value.isoformat()
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, np.datetime64):
        return str(value.astype("datetime64[us]"))
    return None


def _name_format(text: str) -> str | None:
    known = {_ISO_NAME: _ISO, _SLASHED_NAME: _SLASHED, _COMPACT_NAME: _COMPACT}
    for name, pattern in known.items():
        if pattern.fullmatch(text):
            return name
    if _STAMP.fullmatch(text) and int(text) > _SMALLEST_STAMP:
        return _SECONDS_NAME if int(text) < _SMALLEST_MILLISECONDS else _MILLISECONDS_NAME
    return None


def _parse(column: _Column) -> tuple[list[datetime], list[Decision]]:
    """Parse the distinct values, all in the format of the first."""
    if not column.distinct:
        return [], []
    expected = _name_format(column.distinct[0])
    if expected is None:
        known = f"{_ISO_NAME}, {_SLASHED_NAME} or Unix time"
        raise column.refuse(column.first_rows[0], column.distinct[0], known)
    for text, row in zip(column.distinct, column.first_rows, strict=True):
        if _name_format(text) != expected:
            first = name_rows([column.first_rows[0]], column.lines)
            raise column.refuse(row, text, f"{expected} as in {first}")
    parse, described = _PARSERS.get(expected), expected
    if parse is None:
        day_first = _day_comes_first(column)
        described = "day/month/year" if day_first else "month/day/year"
        parse = partial(_parse_slashed, *((1, 3) if day_first else (3, 1)))
    moments = []
    for text, row in zip(column.distinct, column.first_rows, strict=True):
        plain = text
        if not text.isascii():  # digits may be those of another script
            plain = "".join(str(int(c)) if c.isdecimal() else c for c in text)
        try:
            moments.append(parse(plain))
        except (ValueError, OverflowError):
            raise column.refuse(row, text, f"a day that exists, as {described}") from None
    notes = [
        Decision("corpus", "dates", described, f"Dates in {column.what} are read as {described}.")
    ]
    if expected == _ISO_NAME:
        moments, zone_notes = _resolve_zones(moments, column)
        notes += zone_notes
        is_rounded = np.array([len(text) < len("2021-05-17") for text in column.distinct])
        n_rounded = int(is_rounded[column.codes[column.codes >= 0]].sum())
        if n_rounded:
            message = (
                f"{n_rounded} dates in {column.what} name no day; the first one stands for them."
            )
            notes.append(Decision("corpus", "dates_without_day", n_rounded, message))
    return moments, notes


def _parse_iso(text: str) -> datetime:
    if len(text) < len("2021-05-17"):
        return datetime(int(text[:4]), int(text[5:] or 1), 1)
    moment = datetime.fromisoformat(text[:11] + text[11:].replace(" ", ""))
    return moment.astimezone(UTC) if moment.tzinfo else moment


def _parse_slashed(day: int, month: int, text: str) -> datetime:
    """Parse a date of which the day and the month are groups of the pattern."""
    parts = _SLASHED.fullmatch(text)
    assert parts is not None  # the format was recognised by this pattern
    clock = f"{parts[5]:0>2}{parts[6]}" if parts[5] else "00:00"
    return datetime.fromisoformat(f"{parts[4]}-{parts[month]:0>2}-{parts[day]:0>2}T{clock}")


_PARSERS: dict[str, Callable[[str], datetime]] = {
    _ISO_NAME: _parse_iso,
    _COMPACT_NAME: datetime.fromisoformat,
    _SECONDS_NAME: lambda text: _EPOCH + timedelta(seconds=int(text)),
    _MILLISECONDS_NAME: lambda text: _EPOCH + timedelta(milliseconds=int(text)),
}


def _day_comes_first(column: _Column) -> bool:
    """Decide, over the whole column, which of two numbers is the day: the one above 12."""
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


def _resolve_zones(
    moments: list[datetime], column: _Column
) -> tuple[list[datetime], list[Decision]]:
    """Take the zone, by now UTC, off all times; refuse it where only some rows name theirs."""
    zoned = [place for place, moment in enumerate(moments) if moment.tzinfo]
    if not zoned:
        return moments, []
    for place, (moment, text) in enumerate(zip(moments, column.distinct, strict=True)):
        if not moment.tzinfo and ":" in text:  # a day alone has no zone to name
            expected = "a time zone in every row or in none"
            raise column.refuse_second(zoned[0], place, expected)
    message = f"Times in {column.what} were converted to UTC."
    return [moment.replace(tzinfo=None) for moment in moments], [
        Decision("corpus", "time_zone", "UTC", message)
    ]
