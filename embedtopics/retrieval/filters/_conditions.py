"""A filter as a tree of conditions, whose columns, types and dates are checked."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

ORDERED = ("<", "<=", ">", ">=")
TEXTUAL = ("contains", "startswith", "endswith")


@dataclass(frozen=True)
class Period:
    """The stretch of time that a date names: "2020-01" is a month, "2020-01-31" a day.

    `start` is its first moment and `stop` the first moment after it, in UTC and without a zone;
    `stop` is None after the year 9999.
    """

    start: datetime
    stop: datetime | None


Value: TypeAlias = str | int | float | bool | Period


@dataclass(frozen=True)
class Condition:
    """One test of one column.

    `operator` is "==", one of `ORDERED` or `TEXTUAL`, "in" or "is null"; ``!=``, ``not in`` and
    ``is not null`` are negations. There is one value, several for "in", none for "is null".
    """

    column: str
    kind: str
    operator: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Not:
    """Negation."""

    part: Node


@dataclass(frozen=True)
class And:
    """Conjunction of two or more parts."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Or:
    """Disjunction of two or more parts."""

    parts: tuple[Node, ...]


Node: TypeAlias = Condition | Not | And | Or


@dataclass(frozen=True)
class Filter:
    """A filter whose columns and types were checked, and its text as the caller gave it."""

    text: str
    tree: Node


_NAMES = {
    "text": "texts", "integer": "integers", "real": "numbers", "boolean": "true or false",
    "date": "dates",
}  # fmt: skip
_HINTS = {
    "text": "put the text in quotes",
    "integer": "write a number without quotes",
    "real": "write a number without quotes",
    "boolean": "write true or false without quotes",
    "date": "write it as '2020-01-31' or '2020-01', in quotes, or a year as 2020",
}
_MOST_SHOWN = 20


class InvalidCondition(Exception):
    """A value or name that does not fit; who knows its place makes an InputError of it."""


def kind_of_column(name: str, columns: Mapping[str, str]) -> str:
    """Return the kind of a column, or refuse its name and suggest similar ones."""
    if name in columns:
        return columns[name]
    by_lower = {str(column).casefold(): column for column in columns}
    close = difflib.get_close_matches(name.casefold(), list(by_lower), n=3)
    if close:
        hint = "did you mean " + " or ".join(repr(by_lower[one]) for one in close) + "?"
    elif columns:
        more = f" and {len(columns) - _MOST_SHOWN} more" if len(columns) > _MOST_SHOWN else ""
        hint = f"the columns are {', '.join(map(repr, list(columns)[:_MOST_SHOWN]))}{more}"
    else:
        hint = "the documents have no metadata"
    raise InvalidCondition(f"there is no column {name!r}; {hint}")


def make_condition(
    column: str, kind: str, operator: str, values: Sequence[Value | datetime]
) -> Condition:
    """Return a condition whose values have the type of the column."""
    if kind == "missing":  # compared as what it is compared with: no value of it is equal to any
        kind = _kind_of_value(values[0]) if values else "text"
    if operator in TEXTUAL and kind != "text":
        raise InvalidCondition(
            f"{operator} searches texts; column {column!r} holds {_NAMES[kind]}; compare it with "
            "==, < or >"
        )
    if kind == "boolean" and operator not in ("==", "in", "is null"):
        raise InvalidCondition(
            f"column {column!r} holds true or false, which have no order; write {column} == true"
        )
    distinct = tuple(dict.fromkeys(_typed(column, kind, value) for value in values))
    if operator == "in" and len(distinct) == 1:
        operator = "=="
    return Condition(column, kind, operator, distinct)


def _typed(column: str, kind: str, value: Value | datetime) -> Value:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "date":
        if isinstance(value, Period):
            return value
        if isinstance(value, str | datetime):
            return read_period(value)
        if is_number and 1000 <= value <= 9999 and value == int(value):
            return read_period(f"{int(value)}")
    elif kind == "boolean":
        if isinstance(value, bool):
            return value
    elif kind == "text":
        if isinstance(value, str):
            return value
    elif isinstance(value, int | float) and is_number:
        # 2.0 and 2 are one value.
        is_exact = isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53
        return int(value) if is_exact else value
    raise InvalidCondition(
        f"column {column!r} holds {_NAMES[kind]}; got {_described(value)}; {_HINTS[kind]}"
    )


def _kind_of_value(value: Value | datetime) -> str:
    if isinstance(value, bool | str):
        return "boolean" if isinstance(value, bool) else "text"
    return "date" if isinstance(value, datetime | Period) else "real"


def _described(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text {value if len(value) <= 40 else value[:37] + '...'!r}"
    return f"the {'date' if isinstance(value, datetime | Period) else 'number'} {value}"


_DATE = re.compile(
    r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2})"
    r"(?:[T ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,6}))?)?"
    r"(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})?)?)?)?"
)


def read_period(value: str | datetime) -> Period:
    """Read a date as the stretch of time that it names."""
    if isinstance(value, datetime):
        return read_period(in_utc(value).isoformat(timespec="microseconds"))
    match = _DATE.fullmatch(value.strip())
    if not match:
        raise InvalidCondition(
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
        raise InvalidCondition(f"the date {value!r} does not exist ({error}); correct it") from None
    try:
        stop = _end(start, parts, len(fraction))
    except (ValueError, OverflowError):  # after the year 9999
        stop = None
    return Period(start, stop)


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
