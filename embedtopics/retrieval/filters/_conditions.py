"""A filter as a tree of conditions, whose columns, types and dates are checked; and as SQL."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

ORDERED = ("<", "<=", ">", ">=")
TEXTUAL = ("contains", "startswith", "endswith")


@dataclass(frozen=True)
class Period:
    """The time that a date names, up to before `stop` (None after the year 9999), in UTC."""

    start: datetime
    stop: datetime | None


Value: TypeAlias = str | int | float | bool | Period


@dataclass(frozen=True)
class Condition:
    """One test of one column; `values` are several for "in", none for "is null", else one."""

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
    "date": "dates", "list": "lists of texts",
}  # fmt: skip
_HINTS = {
    "text": "put the text in quotes",
    "list": "put the text that a list should hold in quotes",
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


def make_condition(column: str, kind: str, operator: str, values: Sequence[Value]) -> Condition:
    """Return a condition whose values have the type of the column."""
    if kind == "missing":  # compared as what it is compared with: no value of it is equal to any
        kind = _kind_of_value(values[0]) if values else "text"
    if operator in TEXTUAL and kind not in ("text", "list"):
        raise InvalidCondition(
            f"{operator} searches texts; column {column!r} holds {_NAMES[kind]}; compare it with "
            "==, < or >"
        )
    if kind == "boolean" and operator not in ("==", "in", "is null"):
        raise InvalidCondition(
            f"column {column!r} holds true or false, which have no order; write {column} == true"
        )
    if kind == "list" and operator in ORDERED:
        raise InvalidCondition(
            f"column {column!r} holds lists, which have no order; write {column} == 'a' for those "
            "that hold 'a'"
        )
    distinct = tuple(dict.fromkeys(_typed(column, kind, value) for value in values))
    if operator == "in" and len(distinct) == 1:
        operator = "=="
    return Condition(column, kind, operator, distinct)


def _typed(column: str, kind: str, value: Value) -> Value:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "date":
        if isinstance(value, Period):
            return value
        if isinstance(value, str):
            return read_period(value)
        if is_number and 1000 <= value <= 9999 and value == int(value):
            return read_period(f"{int(value)}")
    elif kind == "boolean":
        if isinstance(value, bool):
            return value
    elif kind in ("text", "list"):
        if isinstance(value, str):
            return value
    elif isinstance(value, int | float) and is_number:
        # 2.0 and 2 are one value.
        is_exact = isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53
        return int(value) if is_exact else value
    raise InvalidCondition(
        f"column {column!r} holds {_NAMES[kind]}; got {_described(value)}; {_HINTS[kind]}"
    )


def _kind_of_value(value: Value) -> str:
    if isinstance(value, bool | str):
        return "boolean" if isinstance(value, bool) else "text"
    return "date" if isinstance(value, Period) else "real"


def _described(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text {value if len(value) <= 40 else value[:37] + '...'!r}"
    return f"the {'date' if isinstance(value, Period) else 'number'} {value}"


_DATE = re.compile(
    r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2})"
    r"(?:[T ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,6}))?)?"
    r"(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})?)?)?)?"
)


def read_period(value: str) -> Period:
    """Read a date as the stretch of time that it names."""
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


Sql: TypeAlias = tuple[str, list[str | int | float]]


def filter_sql(where: Filter, column_sql: Callable[[str], str]) -> Sql:
    """Write a filter as a condition for SQLite: true or false for every row, never NULL."""
    return _node(where.tree, column_sql)


def _node(node: Node, column_sql: Callable[[str], str]) -> Sql:
    if isinstance(node, Condition):
        return _condition(node, column_sql(node.column))
    if isinstance(node, Not):
        text, parameters = _node(node.part, column_sql)
        return f"NOT {text}", parameters
    parts = [_node(part, column_sql) for part in node.parts]
    return _joined(parts, "AND" if isinstance(node, And) else "OR")


def _joined(parts: Sequence[Sql], word: str) -> Sql:
    """Join as a balanced tree: SQLite refuses expressions that are deeper than 1,000."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    one, other = _joined(parts[:half], word), _joined(parts[half:], word)
    return f"({one[0]} {word} {other[0]})", [*one[1], *other[1]]


def _condition(condition: Condition, column: str) -> Sql:
    operator = condition.operator
    if operator == "is null":
        return f"({column} IS NULL)", []
    periods = [value for value in condition.values if isinstance(value, Period)]
    if periods:
        text, parameters = _joined([_date(column, operator, value) for value in periods], "OR")
    else:
        values = [v for v in condition.values if not isinstance(v, Period)]
        # A list passes where one of its texts does.
        is_list = condition.kind == "list"
        text, parameters = _compared("json_each.value" if is_list else column, operator, values)
        text = f"EXISTS (SELECT 1 FROM json_each({column}) WHERE {text})" if is_list else text
    return f"({column} IS NOT NULL AND {text})", parameters


def _compared(column: str, operator: str, values: Sequence[str | int | float]) -> Sql:
    values = [int(value) if isinstance(value, bool) else value for value in values]
    if operator == "in":
        return f"{column} IN ({', '.join('?' * len(values))})", values
    text = str(values[0])
    # Not LIKE, whose wildcards and case would have to be taken out of the text.
    if operator == "contains":
        return f"instr({column}, ?) > 0", [text]
    if operator == "startswith":
        return f"substr({column}, 1, ?) = ?", [len(text), text]
    if operator == "endswith":
        # As bytes, because substr takes a NUL for the end of a text. Of an empty text, whose last
        # 0 bytes it would take for all of them, always; of no bytes it would make NULL.
        end = f"{column} != '' AND substr(CAST({column} AS BLOB), -?) = CAST(? AS BLOB)"
        return (end, [len(text.encode()), text]) if text else ("1", [])
    return f"{column} {'=' if operator == '==' else operator} ?", values[:1]


def _date(column: str, operator: str, value: Period) -> Sql:
    start = _bound(value.start)
    stop = None if value.stop is None else _bound(value.stop)
    if operator in ("<", ">="):
        return f"{column} {operator} ?", [start]
    if operator == "<=":
        return (f"{column} < ?", [stop]) if stop else ("1", [])
    if operator == ">":
        return (f"{column} >= ?", [stop]) if stop else ("0", [])
    within: Sql = (f"{column} >= ?", [start])
    return _joined([within, (f"{column} < ?", [stop])], "AND") if stop else within


def _bound(moment: datetime) -> str:
    """Return the shortest text before all texts of this moment and of later ones."""
    text = moment.isoformat()
    return text.rstrip("0") if "." in text else text.removesuffix("T00:00:00")
