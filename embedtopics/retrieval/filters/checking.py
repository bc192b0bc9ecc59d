"""Which values can be compared with a column: types, dates, and names that are nearly right."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from embedtopics.errors import InputError
from embedtopics.retrieval.filters.tree import KINDS, TEXTUAL, Condition, Period, Value

__all__ = ["Unfit", "check_columns", "checked_condition", "found_column", "in_utc", "period_of"]

_DATE = re.compile(
    r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2})"
    r"(?:[T ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,6}))?)?"
    r"(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})?)?)?)?"
)
_NAMES = {
    "text": "texts", "integer": "integers", "real": "numbers", "boolean": "true or false",
    "date": "dates",
}  # fmt: skip
_HOW = {
    "text": "put the text in quotes",
    "integer": "write a number without quotes",
    "real": "write a number without quotes",
    "boolean": "write true or false without quotes",
    "date": "write it as '2020-01-31' or '2020-01', in quotes, or a year as 2020",
}
_SHOWN_NAMES = 20


class Unfit(Exception):
    """A value or name that does not fit; whoever knows its place makes an InputError of it."""


def check_columns(columns: Mapping[str, str]) -> None:
    """Refuse kinds of columns that there are not."""
    for name, kind in columns.items():
        if kind not in KINDS:
            raise InputError(
                f"column {name!r} must be of one of the kinds {', '.join(KINDS)}; got {kind!r}"
            )


def found_column(name: str, columns: Mapping[str, str]) -> str:
    """Return the kind of a column, or refuse its name with those that are near."""
    if name in columns:
        return columns[name]
    by_lower = {str(column).casefold(): column for column in columns}
    close = difflib.get_close_matches(name.casefold(), list(by_lower), n=3)
    if close:
        hint = "did you mean " + " or ".join(repr(by_lower[one]) for one in close) + "?"
    elif columns:
        shown = [repr(column) for column in columns][:_SHOWN_NAMES]
        more = f" and {len(columns) - len(shown)} more" if len(columns) > len(shown) else ""
        hint = f"the columns are {', '.join(shown)}{more}"
    else:
        hint = "the documents have no metadata"
    raise Unfit(f"there is no column {name!r}; {hint}")


def checked_condition(
    column: str, kind: str, operator: str, values: Sequence[Value | datetime]
) -> Condition:
    """Return a condition whose values have the type of the column.

    Raises
    ------
    Unfit
    """
    if kind == "missing":
        kind = _kind_of(values[0]) if values else "text"
    if operator in TEXTUAL and kind != "text":
        raise Unfit(
            f"{operator} looks into texts; column {column!r} holds {_NAMES[kind]}; compare it "
            "with ==, < or >"
        )
    if kind == "boolean" and operator not in ("==", "in", "is null"):
        raise Unfit(
            f"column {column!r} holds true or false, which have no order; write {column} == true"
        )
    checked = tuple(_checked(column, kind, value) for value in values)
    # Twice the same value asks nothing more; one alone is an equality.
    distinct = tuple(dict.fromkeys(checked))
    if operator == "in" and len(distinct) == 1:
        operator = "=="
    return Condition(column, kind, operator, distinct)


def _checked(column: str, kind: str, value: Value | datetime) -> Value:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "date" and isinstance(value, (int, float)) and 1000 <= value <= 9999:
        if value == int(value):
            return period_of(f"{int(value)}")
    if kind == "date" and isinstance(value, (str, datetime, Period)):
        return value if isinstance(value, Period) else period_of(value)
    fits = {
        "text": isinstance(value, str),
        "integer": is_number,
        "real": is_number,
        "boolean": isinstance(value, bool),
        "date": False,
    }[kind]
    if not fits or isinstance(value, (datetime, Period)):
        raise Unfit(
            f"column {column!r} holds {_NAMES[kind]}; got {_described(value)}; {_HOW[kind]}"
        )
    if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53:
        return int(value)  # 2.0 and 2 are one value
    return value


def _kind_of(value: Value | datetime) -> str:
    """Return what a column without any value is compared as: nothing in it is equal to anything."""
    if isinstance(value, (bool, str)):
        return "boolean" if isinstance(value, bool) else "text"
    return "date" if isinstance(value, (datetime, Period)) else "real"


def _described(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text {value if len(value) <= 40 else value[:37] + '...'!r}"
    return f"the date {value}" if isinstance(value, (datetime, Period)) else f"the number {value}"


def period_of(value: str | datetime) -> Period:
    """Read a date as the stretch of time that it names.

    Parameters
    ----------
    value : str or datetime
        Years, months, days, minutes, seconds and parts of seconds in ISO 8601; a time with a zone
        is converted to UTC. A datetime is the microsecond that it names.

    Raises
    ------
    Unfit
        For any other text, or a day that does not exist.

    Examples
    --------
    >>> period = period_of("2020-02")
    >>> period.start.isoformat(), period.stop.isoformat()
    ('2020-02-01T00:00:00', '2020-03-01T00:00:00')
    """
    if isinstance(value, datetime):
        return period_of(in_utc(value).isoformat(timespec="microseconds"))
    match = _DATE.fullmatch(value.strip())
    if not match:
        raise Unfit(
            "expected a date such as '2020-01-31', '2020-01', '2020' or '2020-01-31T12:00'; got "
            f"{value[:40]!r}; write it as YYYY-MM-DD"
        )
    parts = match.groupdict()
    fraction = parts["fraction"] or ""
    zone = (parts["zone"] or "").replace("Z", "+00:00")
    try:
        start = datetime.fromisoformat(
            f"{parts['year']}-{parts['month'] or '01'}-{parts['day'] or '01'}"
            f"T{parts['hour'] or '00'}:{parts['minute'] or '00'}:{parts['second'] or '00'}"
            f".{fraction.ljust(6, '0')}{zone}"
        )
        start = in_utc(start)
    except (ValueError, OverflowError) as error:
        raise Unfit(f"the date {value!r} does not exist ({error}); correct it") from None
    try:
        stop = _end(start, parts, len(fraction))
    except (ValueError, OverflowError):  # behind the year 9999
        stop = None
    return Period(value.strip(), start, stop)


def in_utc(moment: datetime) -> datetime:
    """Return a moment in UTC and without a zone; one without a zone is taken for UTC."""
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def _end(start: datetime, parts: Mapping[str, str | None], n_digits: int) -> datetime:
    if parts["month"] is None:
        return start.replace(year=start.year + 1)
    if parts["day"] is None:
        later = start.year * 12 + start.month
        return start.replace(year=later // 12, month=later % 12 + 1)
    if parts["hour"] is None:
        return start + timedelta(days=1)
    if parts["second"] is None:
        return start + timedelta(minutes=1)
    return start + timedelta(microseconds=10 ** (6 - n_digits))
