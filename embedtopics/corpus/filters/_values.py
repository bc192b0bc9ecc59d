"""Columns of metadata as values that SQLite stores and filters compare.

Booleans become 0 and 1, dates ISO text that sorts like the dates, lists of texts JSON, missing
values None.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.corpus._texts import compose, replace_surrogates
from embedtopics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

MAX_EXACT = 2**53
"""A float64 holds every integer up to this one."""


@dataclass(frozen=True, eq=False)
class TypedColumn:
    """A column in the form in which SQLite stores it.

    `kind` is "text", "integer", "real", "boolean", "date" or "list", and "missing" for a column
    without values. `n_zoned` is the number of dates with a time zone.
    """

    name: str
    kind: str
    values: list[Any]
    n_zoned: int = 0


def date_text(value: datetime.date) -> str:
    """Return the shortest ISO text of a date, by the clock of its zone; it sorts as dates do."""
    if not isinstance(value, datetime.datetime):
        return value.isoformat()
    value = value.replace(tzinfo=None)
    at_midnight = value.time() == datetime.time()
    return value.date().isoformat() if at_midnight else value.isoformat()


def compared_form(text: str) -> str:
    """Return a text as filters and facets compare it: composed (Unicode NFC), without surrogates.

    The metadata of an index are stored as they are given, so that hits and exports return what
    came in.
    """
    return compose(replace_surrogates(text))


def read_column(name: str, column: pd.Series) -> TypedColumn:
    """Read a column with values of one kind, or refuse the first value of another kind."""
    objects = column.astype(object)
    # Asked of objects: columns of Arrow may hold NaN, which is missing for SQLite only.
    values: list[Any] = objects.where(objects.notna(), None).tolist()
    types = [*map(type, values)]
    kind = "missing"

    for cell_type in dict.fromkeys(types):
        row = types.index(cell_type)
        kinds = {kind, _kind_of(cell_type)} - {"missing"}
        if "" in kinds:
            expected = "texts, numbers, booleans, dates or lists of texts"
            raise misfit(name, expected, values[row], row)
        if kinds == {"integer", "real"}:
            kind = "real"
        elif len(kinds) > 1:
            raise misfit(name, f"{kind} values, as before", values[row], row)
        elif kinds:
            (kind,) = kinds

    stored = [
        None if v is None else stored_value(name, kind, v, row) for row, v in enumerate(values)
    ]
    n_zoned = sum(getattr(v, "tzinfo", None) is not None for v in values) if kind == "date" else 0
    return TypedColumn(name, kind, stored, n_zoned)


@cache
def _kind_of(type_: type) -> str:
    """Return the kind of the values of a type, "" if no column can hold them."""
    for types, kind in (
        ((type(None),), "missing"),
        ((np.timedelta64,), ""),  # which NumPy counts among the integers
        ((bool, np.bool_), "boolean"),
        ((int, np.integer), "integer"),
        ((float, np.floating), "real"),
        ((str,), "text"),
        ((datetime.date, np.datetime64), "date"),
        ((list, tuple, np.ndarray), "list"),
    ):
        if issubclass(type_, types):
            return kind
    return ""


def misfit(column: str, expected: str, value: Any, row: int) -> InputError:
    return InputError(f"column {column!r} of the metadata", expected, value, row=row)


def stored_value(name: str, kind: str, value: Any, row: int) -> Any:
    """Return a value as SQLite stores it: texts and numbers of 64 bits."""
    try:
        return _CONVERTERS[kind](value)
    except (ValueError, OverflowError) as error:
        raise misfit(name, str(error), value, row) from error


def _integer(value: Any) -> int:
    if not -(2**63) <= int(value) < 2**63:
        raise ValueError("integers of 64 bits, or texts")
    return int(value)


def _real(value: Any) -> float:
    if isinstance(value, int | np.integer) and abs(int(value)) > MAX_EXACT:
        raise ValueError("texts, because a float cannot hold such integers beside fractions")
    return float(value) + 0.0  # SQLite has no negative zero


def _list(value: Any) -> str:
    if getattr(value, "ndim", 1) != 1 or not all(isinstance(text, str) for text in value):
        raise ValueError("lists of texts")
    texts = [replace_surrogates(str.__str__(text)) for text in value]
    return json.dumps(texts, ensure_ascii=False)


def _date(value: Any) -> str:
    import pandas as pd

    try:
        if isinstance(value, np.datetime64):
            value = pd.Timestamp(value)
        if getattr(value, "nanosecond", 0):
            raise ValueError
        return date_text(value.to_pydatetime() if isinstance(value, pd.Timestamp) else value)
    except (ValueError, OverflowError):
        raise ValueError("dates up to the year 9999 without nanoseconds") from None


_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "boolean": int,
    "integer": _integer,
    "real": _real,
    # Not str(value), which returns the name of a member of an Enum.
    "text": lambda value: replace_surrogates(str.__str__(value)),
    "date": _date,
    "list": _list,
}
