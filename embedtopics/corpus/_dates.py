"""Dates of files: one format for a whole column, because one value (03/04/2021) may be ambiguous.

A value in another format is an error: a misread date would silently move a document in time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Any, Literal, NoReturn

import numpy as np
import pandas as pd

from embedtopics.corpus._texts import MISSING_MARKERS, is_missing
from embedtopics.decisions import Decision
from embedtopics.errors import InputError, name_rows

_TIME = r":\d{2}(?::\d{2}(?:\.\d{1,9})?)?"
_ISO = "ISO 8601 (like 2021-05-17 or 2021)"
_SLASHED = "day and month before the year (like 17/05/2021)"
_COMPACT = "YYYYMMDD (like 20210517)"
_SECONDS, _MILLISECONDS = "Unix time in seconds", "Unix time in milliseconds"
_PATTERNS = {
    _ISO: re.compile(
        rf"\d{{4}}(-\d{{2}}(-\d{{2}}([T ]\d{{2}}{_TIME} ?(Z|[+-]\d{{2}}(:?\d{{2}})?)?)?)?)?",
        re.ASCII,
    ),
    _SLASHED: re.compile(
        rf"(\d{{1,2}})([/.-])(\d{{1,2}})\2(\d{{4}})(?:[T ](\d{{1,2}})({_TIME}))?", re.ASCII
    ),
    _COMPACT: re.compile(r"\d{8}", re.ASCII),
    _SECONDS: re.compile(r"\d{9,11}", re.ASCII),
    _MILLISECONDS: re.compile(r"\d{12,14}", re.ASCII),
}
_ZONE = re.compile(r":\d{2}.*(?:Z|[+-]\d{2}(?::?\d{2})?)$")
_REMEDY = "write every date as YYYY-MM-DD, or convert the column with pandas.to_datetime first"


def read_dates(
    values: Iterable[Any], name: str, lines: Sequence[int] | None = None
) -> tuple[pd.Series, tuple[Decision, ...]]:
    """Read dates of one format as datetime64[us] without time zone, and report the decisions.

    `Corpus` lists the formats. Years and months alone stand for their first day; integers from
    10**8 up are Unix time in seconds, from 10**11 up in milliseconds. Times with a zone are
    converted to UTC. None, NaN, "" and "NA" are missing.
    """
    series = values if isinstance(values, pd.Series) else pd.Series(list(values), dtype=object)
    decisions: list[Decision] = []
    if isinstance(series.dtype, np.dtype) and series.dtype.kind == "M":
        dates = series.astype("datetime64[us]")
    else:
        texts = np.array([_as_string(value) for value in series.tolist()], dtype=object)
        codes, distinct = pd.factorize(texts)  # -1 for a missing value

        def refuse(code: int, expected: str, earlier: int | None = None) -> NoReturn:
            """Raise the error for a distinct value that contradicts an earlier one."""
            rows = [int(np.argmax(codes == one)) for one in (code, earlier) if one is not None]
            if earlier is not None:
                expected += f", as in {name_rows(rows[1:], lines)} ({distinct[earlier]!r})"
            raise InputError(
                f"{name}, {name_rows(rows[:1], lines)}: expected {expected}, got "
                f"{series.iloc[rows[0]]!r}; {_REMEDY}"
            )

        moments = np.array([], "datetime64[us]")
        if len(distinct):
            moments, decisions = _parse(distinct.tolist(), codes, name, refuse)
        # The last entry is NaT, and the code of a missing value is -1.
        moments = np.append(moments, np.datetime64("NaT", "us"))
        dates = pd.Series(moments[codes], index=series.index, name=series.name)
    n_missing = int(dates.isna().sum())
    if n_missing:
        message = f"{n_missing} of {len(dates)} rows have no date in {name}."
        decisions.append(Decision("corpus", "dates_missing", n_missing, message))
    return dates, tuple(decisions)


def _as_string(value: object) -> str | None:
    """Return a value as text, None where missing."""
    if is_missing(value):
        return None
    if isinstance(value, date):  # datetimes and pandas timestamps are dates
        return value.isoformat()
    if isinstance(value, np.datetime64):
        return str(value.astype("datetime64[us]"))
    if isinstance(value, float | np.floating) and value.is_integer():
        value = int(value)
    text = str(value).strip()
    return None if not text or text in MISSING_MARKERS else text


def _format_of(text: str) -> str | None:
    return next((name for name, form in _PATTERNS.items() if form.fullmatch(text)), None)


def _parse(
    texts: list[str], codes: np.ndarray, name: str, refuse: Callable[..., NoReturn]
) -> tuple[np.ndarray, list[Decision]]:
    """Parse the distinct values, all in the format of the first, as datetime64[us]."""
    description = _format_of(texts[0])
    if description is None:
        refuse(0, f"{_ISO}, {_SLASHED} or Unix time")
    for code, text in enumerate(texts):
        if _format_of(text) != description:
            refuse(code, description, 0)
    decisions = _describe_iso(texts, codes, name, refuse) if description == _ISO else []
    if description in (_SECONDS, _MILLISECONDS):
        unit: Literal["s", "ms"] = "s" if description == _SECONDS else "ms"
        moments = pd.to_datetime(
            [int(text) for text in texts], unit=unit, errors="coerce", utc=True
        )
    else:
        if description == _SLASHED:
            day_first = _day_comes_first(texts, refuse)
            description = "day/month/year" if day_first else "month/day/year"
            texts = [_iso_of_slashed(text, day_first) for text in texts]
        format = "%Y%m%d" if description == _COMPACT else "ISO8601"
        # Nanoseconds would narrow the range of dates.
        texts = [re.sub(r"(\.\d{6})\d+", r"\1", text) for text in texts]
        texts = [text[:11] + text[11:].replace(" ", "") for text in texts]
        moments = pd.to_datetime(texts, format=format, errors="coerce", utc=True)
    impossible = np.flatnonzero(moments.isna() | (moments.year < 1))
    if len(impossible):
        refuse(int(impossible[0]), f"a day that exists, as {description}")
    message = f"Dates in {name} are {description}."
    decisions.insert(0, Decision("corpus", "dates", description, message))
    return moments.tz_localize(None).to_numpy().astype("datetime64[us]"), decisions


def _iso_of_slashed(text: str, day_first: bool) -> str:
    first, _, second, year, hour, clock = _PATTERNS[_SLASHED].findall(text)[0]
    day, month = (first, second) if day_first else (second, first)
    return f"{year}-{month:0>2}-{day:0>2}" + (f"T{hour:0>2}{clock}" if hour else "")


def _day_comes_first(texts: list[str], refuse: Callable[..., NoReturn]) -> bool:
    """Decide over the whole column which number is the day: the one above 12."""
    parts = [_PATTERNS[_SLASHED].findall(text)[0] for text in texts]
    first, second = (
        next((code for code, part in enumerate(parts) if int(part[group]) > 12), None)
        for group in (0, 2)
    )
    if first is not None and second is not None:
        refuse(max(first, second), "one order of day and month", min(first, second))
    if first is None and second is None:
        refuse(0, "some value above 12 in the column to tell days from months")
    return first is not None


def _describe_iso(
    texts: list[str], codes: np.ndarray, name: str, refuse: Callable[..., NoReturn]
) -> list[Decision]:
    """Report dates without a day and times with a zone; refuse a column with zones in part."""
    decisions = []
    has_zone = [bool(_ZONE.search(text)) for text in texts]
    if any(has_zone):
        zoned = has_zone.index(True)
        for code, text in enumerate(texts):
            if ":" in text and not has_zone[code]:  # a day alone needs no zone
                refuse(max(code, zoned), "a time zone in every row or in none", min(code, zoned))
        message = f"Times in {name} were converted to UTC."
        decisions.append(Decision("corpus", "time_zone", "UTC", message))
    is_rounded = np.array([len(text) < len("2021-05-17") for text in texts])
    n_rounded = int(is_rounded[codes[codes >= 0]].sum())
    if n_rounded:
        message = f"{n_rounded} dates in {name} name no day; each stands for its first day."
        decisions.append(Decision("corpus", "dates_without_day", n_rounded, message))
    return decisions
