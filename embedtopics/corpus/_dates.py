"""Columns of dates.

Dates have one format for a whole column, because one value (03/04/2021) may be ambiguous. A value
in another format is an error: a misread date would silently move a document in time.

A time with a zone keeps its own clock, without the zone: what was written on the first of a month
in Rome belongs to this month, although it was the last evening of the month before in Greenwich.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Any, Literal, NoReturn

import numpy as np
import pandas as pd

from embedtopics.corpus._classes import is_absent
from embedtopics.corpus._texts import is_missing
from embedtopics.errors import InputError, name_rows
from embedtopics.results import Decision

MOST_CHARACTERS = 100
"""Characters of a date; one with the names of its day, month and time zone has up to 70."""

_CLOCK = r":\d{2}(?::\d{2}(?:\.\d{1,9})?)?"
_ZONE = r"(?:Z|[+-](?:0\d|1[0-4])(?::?[0-5]\d)?)"
_ZONE_AT_END = re.compile(
    rf"(?P<zone>(?:(?<=[\d ])|(?<=GMT)|(?<=UTC)){_ZONE}| GMT| UTC)"
    r"(?: \([^()]*\))?(?P<year> \d{4})?$"
)
"""A zone at the end or before the year."""

_CLOCK_TIME = re.compile(r":\d{2}")

_ISO = "ISO 8601 (like 2021-05-17 or 2021)"
_SLASHED = "day and month before the year (like 17/05/2021)"
_NAMED = "the month by its English name (like 17 May 2021)"
_COMPACT = "YYYYMMDD (like 20210517)"
_SECONDS, _MILLISECONDS = "Unix time in seconds", "Unix time in milliseconds"
_FORMATS = {
    name: re.compile(pattern, re.ASCII)
    for name, pattern in {
        _ISO: rf"\d{{4}}(-\d{{2}}(-\d{{2}}([T ]\d{{2}}{_CLOCK} ?{_ZONE}?)?)?)?",
        _SLASHED: rf"(\d{{1,2}})([/.-])(\d{{1,2}})\2(\d{{4}})(?:[T ](\d{{1,2}})({_CLOCK}))?",
        # Time may come between day and year, as at Twitter; an offset, such as +1400, is no year.
        _NAMED: r"(?i)(?=.*\b\d\d?\b)(?=.*(?<!\+)\b(?:1[4-9]|20)\d\d\b)"
        r".*\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b.*",
        _COMPACT: r"\d{8}",
        _SECONDS: r"\d{9,11}",
        _MILLISECONDS: r"\d{12,14}",
    }.items()
}
_REMEDY = "write every date as YYYY-MM-DD, or convert the column with pandas.to_datetime first"

Refuse = Callable[..., NoReturn]


def read_dates(
    values: Iterable[Any], name: str, lines: Sequence[int] | None = None
) -> tuple[pd.Series, tuple[Decision, ...]]:
    """Read dates of one format as datetime64[us] without time zone, and report the decisions.

    `Corpus` lists the formats. Years and months alone stand for their first day; integers from
    10**8 up are Unix time in seconds, from 10**11 up in milliseconds. Times with a zone keep their
    clock, Unix times have that of UTC. None, NaN, "" and "NA" are missing.
    """
    series = values if isinstance(values, pd.Series) else pd.Series(list(values), dtype=object)
    decisions: list[Decision] = []

    if isinstance(series.dtype, pd.DatetimeTZDtype):
        dates = series.dt.tz_localize(None).astype("datetime64[us]")
        decisions.append(_describe_zone(name, is_utc=str(series.dt.tz) in ("UTC", "utc")))
    elif isinstance(series.dtype, np.dtype) and series.dtype.kind == "M":
        dates = series.astype("datetime64[us]")
    else:
        texts = pd.Series([_as_string(value) for value in series.tolist()], dtype=object)
        distinct = texts.dropna().drop_duplicates()  # the index is that of their first rows

        def refuse(row: int, expected: str, earlier: int | None = None) -> NoReturn:
            """Raise the error for a value that contradicts an earlier one."""
            if earlier is not None:
                expected += f", as in {name_rows([earlier], lines)} ({distinct[earlier]!r})"
            got = repr(series.iloc[row])
            if len(got) > MOST_CHARACTERS:
                got = f"{got[:MOST_CHARACTERS]} ... ({len(got):,} characters)"
            raise InputError(
                f"{name}, {name_rows([row], lines)}: expected {expected}, got {got}; {_REMEDY}"
            )

        moments = dict.fromkeys([None], np.datetime64("NaT", "us"))
        too_long = distinct[distinct.str.len() > MOST_CHARACTERS]
        if len(too_long):
            refuse(too_long.index.tolist()[0], f"a date of at most {MOST_CHARACTERS} characters")

        if len(distinct):
            parsed, decisions = _parse(distinct, texts, name, refuse)
            moments |= dict(zip(distinct, parsed, strict=True))
        read = np.array([moments[text] for text in texts], dtype="datetime64[us]")
        dates = pd.Series(read, index=series.index, name=series.name)

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
    return None if is_absent(text) else text


def _parse(
    distinct: pd.Series, texts: pd.Series, name: str, refuse: Refuse
) -> tuple[np.ndarray, list[Decision]]:
    """Parse distinct values, all in the format of the first, as datetime64[us]."""
    first = distinct.index.tolist()[0]
    formats = (form for form, pattern in _FORMATS.items() if pattern.fullmatch(distinct[first]))
    description = next(formats, None)
    if description is None:
        refuse(first, f"{_ISO}, {_SLASHED}, {_NAMED} or Unix time")

    others = distinct[~distinct.str.fullmatch(_FORMATS[description])]
    if len(others):
        refuse(int(others.index[0]), description, first)

    decisions: list[Decision] = []
    if description in (_ISO, _NAMED):
        distinct, decisions = _without_zones(distinct, texts, name, refuse)
    if description in (_SECONDS, _MILLISECONDS):
        unit: Literal["s", "ms"] = "s" if description == _SECONDS else "ms"
        moments = pd.to_datetime(distinct.map(int), unit=unit, errors="coerce", utc=True)
    else:
        if description == _SLASHED:
            description, distinct = _iso_of_slashed(distinct, refuse)
        format = {_COMPACT: "%Y%m%d", _NAMED: "mixed"}.get(description, "ISO8601")
        moments = pd.to_datetime(distinct, format=format, errors="coerce", utc=True)

    impossible = moments.isna() | (moments.dt.year < 1)
    if impossible.any():
        refuse(int(impossible[impossible].index[0]), f"a day that exists, as {description}")

    message = f"Dates in {name} are {description}."
    decisions.insert(0, Decision("corpus", "dates", description, message))
    return moments.dt.tz_localize(None).to_numpy().astype("datetime64[us]"), decisions


def _iso_of_slashed(distinct: pd.Series, refuse: Refuse) -> tuple[str, pd.Series]:
    """Rewrite dates as ISO 8601; the number above 12 in the whole column is the day."""
    parts = distinct.str.extract(_FORMATS[_SLASHED]).fillna("")
    first = parts[0].astype(int) > 12
    second = parts[2].astype(int) > 12
    _refuse_both(first, second, "one order of day and month", refuse)
    if not (first.any() or second.any()):
        expected = "some value above 12 in the column to tell days from months"
        refuse(distinct.index.tolist()[0], expected)

    day, month = (0, 2) if first.any() else (2, 0)
    days = parts[3] + "-" + parts[month].str.zfill(2) + "-" + parts[day].str.zfill(2)
    times = ("T" + parts[4].str.zfill(2) + parts[5]).where(parts[4] != "", "")
    return "day/month/year" if day == 0 else "month/day/year", days + times


def _refuse_both(first: pd.Series, second: pd.Series, expected: str, refuse: Refuse) -> None:
    """Refuse a column that has both kinds of values."""
    if first.any() and second.any():
        earlier, later = sorted(int(mask[mask].index[0]) for mask in (first, second))
        refuse(later, expected, earlier)


def _without_zones(
    distinct: pd.Series, texts: pd.Series, name: str, refuse: Refuse
) -> tuple[pd.Series, list[Decision]]:
    """Return the texts without their zones, and report zones and dates without a day.

    Zones in some rows alone are refused.
    """
    parts = distinct.map(_zone_of)
    has_zone = parts.notna()
    is_local = distinct.str.contains(":") & ~has_zone  # a day alone needs no zone
    _refuse_both(has_zone, is_local, "a time zone in every row or in none", refuse)

    decisions = []
    zoned = parts[has_zone]
    if len(zoned):
        digits = zoned.map(lambda part: part["zone"].strip("ZGMTUC+-: 0"))
        decisions.append(_describe_zone(name, is_utc=not digits.any()))
        local = zoned.map(lambda part: part.string[: part.start()] + (part["year"] or ""))
        distinct = distinct.where(~has_zone, local)

    n_rounded = int((texts.str.len() < len("2021-05-17")).sum())
    if n_rounded:
        message = f"{n_rounded} dates in {name} name no day; each stands for its first day."
        decisions.append(Decision("corpus", "dates_without_day", n_rounded, message))
    return distinct, decisions


def _zone_of(text: str) -> re.Match[str] | None:
    """Find the zone of a time, after the clock; a date alone has none."""
    zone = _ZONE_AT_END.search(text)
    has_clock = zone is not None and _CLOCK_TIME.search(text, 0, zone.start())
    return zone if has_clock else None


def _describe_zone(name: str, *, is_utc: bool) -> Decision:
    """Report times with a zone."""
    if is_utc:
        return Decision("corpus", "time_zone", "UTC", f"Times in {name} are in UTC.")
    message = (
        f"Times in {name} have a zone and keep its clock, so that days, months and years are those "
        "of the place."
    )
    return Decision("corpus", "time_zone", "local", message)
