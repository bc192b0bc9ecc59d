"""Filters as mappings: ``{"year": [2019, 2020], "source": "Le Monde"}``.

A row passes if each column holds the value, or one of several values; None stands for no
value. Values are bound as parameters of SQL. They are never parsed, so a text may hold quotes and
words such as *and*.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np

from embedtopics.corpus._texts import is_missing
from embedtopics.corpus.filters._expressions import (
    KEYWORDS,
    Filter,
    InvalidCondition,
    Period,
    Sql,
    Value,
    condition_of,
    find_column,
    join_conditions,
    read_period,
    typed_value,
)
from embedtopics.corpus.filters._values import date_text
from embedtopics.errors import InputError

MOST_VALUES = 10_000
"""Values of a mapping; SQLite binds at most 32,766 parameters, and a date needs two."""

_HINTS = {
    "text": "give a text",
    "list": "give a text that a list should hold",
    "integer": "give a number",
    "real": "give a number",
    "boolean": "give True or False",
    "date": "give a date, a year, or a text such as '2020-01'",
}
_NAME = re.compile(r"[^\W\d]\w*")


def read_mapping(
    where: Mapping[Any, Any],
    columns: Mapping[str, str],
    column_sql: Callable[[str], str] = str,
    parameter: str = "where",
) -> Filter | None:
    """Return a filter, given the kind and the name in SQL of each column; None if it is empty."""
    conditions: list[Sql] = []
    written: list[str] = []
    n_values = 0
    for name, value in where.items():
        values = _list_values(value)
        n_values += len(values)

        try:
            if n_values > MOST_VALUES:
                raise InvalidCondition(f"a mapping may hold at most {MOST_VALUES:,} values")
            column = find_column(name, columns)
            typed = _type_values(column, columns[column], values)
        except InvalidCondition as error:
            expected = "a mapping of columns to values"
            raise InputError(parameter, expected, {name: value}, remedy=str(error)) from None

        conditions.append(_condition(column_sql(column), columns[column], typed))
        written.append(_write(column, values))

    if not conditions:
        return None
    return Filter(" and ".join(written), join_conditions(conditions, "AND"))


def _list_values(value: Any) -> list[Any]:
    """Return the values for a column; None stands for a missing one."""
    is_several = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    values = list(value) if is_several and getattr(value, "ndim", 1) == 1 else [value]
    return [_plain(element) for element in values]


def _plain(value: Any) -> Any:
    """Return a value of Python for one of NumPy or pandas."""
    if is_missing(value):
        return None
    if isinstance(value, np.datetime64):
        is_moment = np.datetime_data(value)[0] not in ("Y", "M", "D")
        return value.astype("datetime64[us]").item() if is_moment else str(value)
    if isinstance(value, np.generic):
        return value.item()
    return value


def _type_values(column: str, kind: str, values: list[Any]) -> list[Value | None]:
    if not values:
        raise InvalidCondition("a list must hold a value")
    return [None if value is None else _type_value(column, kind, value) for value in values]


def _type_value(column: str, kind: str, value: Any) -> Value:
    if isinstance(value, date) and kind == "date":
        return _period_of(value)
    is_value = isinstance(value, str | int | float | date)
    if kind == "missing" and is_value:
        return str(value)
    if not is_value or (isinstance(value, int) and not -(1 << 63) <= value < 1 << 63):
        raise InvalidCondition(
            f"a filter cannot hold {reprlib.repr(value)}; {_HINTS.get(kind, 'give a text')}"
        )
    return typed_value(column, kind, value, _HINTS)


def _period_of(value: date) -> Period:
    """Return the whole day of a date, but the moment of a datetime, by the clock of its zone."""
    if not isinstance(value, datetime):
        return read_period(value.isoformat())
    moment = datetime.fromisoformat(date_text(value))
    is_last = moment == datetime.max
    return Period(moment, None if is_last else moment + timedelta(microseconds=1))


def _condition(column_sql: str, kind: str, values: list[Value | None]) -> Sql:
    present = [value for value in values if value is not None]
    conditions = []
    if present:
        conditions.append(condition_of(column_sql, kind, "in", present))
    if len(present) < len(values):
        conditions.append(condition_of(column_sql, kind, "is null", []))
    return join_conditions(conditions, "OR")


def _write(column: str, values: list[Any]) -> str:
    """Return a condition as a filter shows it."""
    is_plain = _NAME.fullmatch(column) and column.lower() not in KEYWORDS
    name = column if is_plain else _quote(column, '"')
    present = [_write_value(value) for value in values if value is not None]
    parts = []
    if len(present) == 1:
        parts.append(f"{name} == {present[0]}")
    elif present:
        parts.append(f"{name} in ({', '.join(present)})")
    if len(present) < len(values):
        parts.append(f"{name} is null")
    return parts[0] if len(parts) == 1 else f"({' or '.join(parts)})"


def _write_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return _quote(value.isoformat() if isinstance(value, date) else str(value), "'")


def _quote(text: str, quote: str) -> str:
    return quote + text.replace("\\", "\\\\").replace(quote, quote * 2) + quote
