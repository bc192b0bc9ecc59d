"""Metadata of new documents as columns of SQLite, checked and converted.

Columns are called ``c0``, ``c1`` ... in SQL, so that no name of the caller can act as SQL. Booleans
are stored as 0 and 1, dates as ISO text that sorts like the dates, lists of texts as JSON, missing
values as NULL.
"""

from __future__ import annotations

import datetime
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.corpus._texts import replace_surrogates
from embedtopics.errors import InputError
from embedtopics.results import Decision
from embedtopics.retrieval.storage._catalog import (
    Column,
    compared_form,
    document_digest,
    present,
    read_columns,
    read_settings,
    write_settings,
)

if TYPE_CHECKING:
    import pandas as pd


_EXACT = 2**53
"""A float64 holds every integer up to this one."""


@dataclass(frozen=True, eq=False)
class NewColumn:
    """A column of new documents, as it will be stored."""

    name: str
    kind: str
    values: list[Any]


def date_text(value: datetime.date) -> str:
    """Return the shortest ISO text of a date, by the clock of its zone; it sorts as dates do."""
    if not isinstance(value, datetime.datetime):
        return value.isoformat()
    value = value.replace(tzinfo=None)
    at_midnight = value.time() == datetime.time()
    return value.date().isoformat() if at_midnight else value.isoformat()


def read_frame(frame: pd.DataFrame, decisions: list[Decision]) -> list[NewColumn]:
    """Read the metadata of new documents, a row each."""
    columns: dict[str, NewColumn] = {}
    for position, name in enumerate(frame.columns):
        is_name = isinstance(name, str) and replace_surrogates(name) == name
        if not is_name or compared_form(name) in columns:
            raise InputError("metadata", "columns whose names are different texts", name)
        columns[compared_form(name)] = _read_column(name, frame.iloc[:, position], decisions)
    return list(columns.values())


def _read_column(name: str, column: pd.Series, decisions: list[Decision]) -> NewColumn:
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
            raise _misfit(name, expected, values[row], row)
        if kinds == {"integer", "real"}:
            kind = "real"
        elif len(kinds) > 1:
            raise _misfit(name, f"{kind} values, as before", values[row], row)
        elif kinds:
            (kind,) = kinds

    stored = [None if v is None else _stored(name, kind, v, row) for row, v in enumerate(values)]
    zoned = sum(getattr(v, "tzinfo", None) is not None for v in values) if kind == "date" else 0
    if zoned:
        message = f"{zoned} dates of the column {name!r} have a time zone, and keep its clock."
        decisions.append(Decision("retrieval", "metadata_time_zones", zoned, message))
    return NewColumn(name, kind, stored)


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


def _misfit(column: str, expected: str, value: Any, row: int) -> InputError:
    return InputError(f"column {column!r} of the metadata", expected, value, row=row)


def _stored(name: str, kind: str, value: Any, row: int) -> Any:
    """Return a value as SQLite stores it: texts and numbers of 64 bits."""
    try:
        return _CONVERTERS[kind](value)
    except (ValueError, OverflowError) as error:
        raise _misfit(name, str(error), value, row) from error


def _integer(value: Any) -> int:
    if not -(2**63) <= int(value) < 2**63:
        raise ValueError("integers of 64 bits, or texts")
    return int(value)


def _real(value: Any) -> float:
    if isinstance(value, int | np.integer) and abs(int(value)) > _EXACT:
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


def fit_columns(
    connection: sqlite3.Connection, new_columns: list[NewColumn], decisions: list[Decision]
) -> tuple[list[Column], list[NewColumn]]:
    """Match the columns of new documents to those of the index.

    Integers and floats mix, because a missing value turns integers into floats; a fraction turns a
    column of integers into floats.
    """
    there = {compared_form(name): column for name, column in read_columns(connection).items()}
    columns, fitted = [], []
    position = len(there)
    for new in new_columns:
        old = there.get(compared_form(new.name))
        if old is None:
            old = Column(position, new.name, new.kind)
            position += 1

        if new.kind != "missing":
            new = _fit(connection, old, new, decisions)
            old = replace(old, kind=new.kind)
        columns.append(old)
        fitted.append(new)
    return columns, fitted


def _fit(
    connection: sqlite3.Connection, old: Column, new: NewColumn, decisions: list[Decision]
) -> NewColumn:
    pair = (old.kind, new.kind)
    if old.kind in ("missing", new.kind):
        return new
    if pair == ("real", "integer"):
        values = [
            None if v is None else _stored(new.name, "real", v, row)
            for row, v in enumerate(new.values)
        ]
        return NewColumn(new.name, "real", values)
    if pair == ("integer", "real"):
        if all(v is None or (v.is_integer() and abs(v) <= _EXACT) for v in new.values):
            values = [None if v is None else int(v) for v in new.values]
            return NewColumn(new.name, "integer", values)
        beyond = f"SELECT 1 FROM metadata WHERE {old.sql} NOT BETWEEN ? AND ? LIMIT 1"
        if connection.execute(beyond, (-_EXACT, _EXACT)).fetchone() is None:
            decisions.append(Decision(
                "retrieval", "metadata_widened", new.name,
                f"The column {new.name!r} changed from integers to floats.",
            ))  # fmt: skip
            return new
    row = next(row for row, value in enumerate(new.values) if value is not None)
    raise _misfit(new.name, f"{old.kind} values, as in the index", new.values[row], row)


def store_columns(connection: sqlite3.Connection, columns: list[Column]) -> None:
    """Create new columns, and store the kind of each."""
    there = {column.position: column for column in read_columns(connection).values()}
    for column in columns:
        if column.position not in there:
            connection.execute(f"ALTER TABLE metadata ADD COLUMN c{column.position}")
            connection.execute(
                "INSERT INTO columns VALUES (?, ?, ?)", (column.position, column.name, column.kind)
            )
        elif there[column.position] != column:
            connection.execute(
                "UPDATE columns SET kind = ? WHERE position = ?", (column.kind, column.position)
            )


DOCUMENTS_AT_ONCE = 10_000


def write_annotations(
    connection: sqlite3.Connection,
    numbers: Sequence[int],
    frame: pd.DataFrame,
    settings: Mapping[str, Any],
) -> list[Decision]:
    """Replace columns of the metadata, within a transaction of the caller."""
    notes: list[Decision] = []
    columns, new_columns = fit_columns(connection, read_frame(frame, notes), notes)
    store_columns(connection, columns)
    if columns:
        rows = zip(*(column.values for column in new_columns), strict=True)
        values = dict(zip(map(int, numbers), rows, strict=True))
        _write_values(connection, [column.position for column in columns], values)
    merged = {**read_settings(connection), **settings}
    write_settings(connection, json.dumps(merged, allow_nan=False))
    return notes


def _write_values(
    connection: sqlite3.Connection, written: list[int], values: Mapping[int, tuple[Any, ...]]
) -> None:
    """Replace columns of all documents and renew the checksums, except of damaged documents."""
    positions = sorted(column.position for column in read_columns(connection).values())
    names = "".join(f", metadata.c{position}" for position in positions)
    query = (
        f"SELECT number, id, digest, text{names} FROM documents JOIN metadata USING (number) "
        "WHERE number > ? ORDER BY number LIMIT ?"
    )
    update = ", ".join(f"c{position} = ?" for position in written)
    nothing = (None,) * len(written)
    after = -1

    while rows := connection.execute(query, (after, DOCUMENTS_AT_ONCE)).fetchall():
        digests = []
        for number, id, digest, text, *stored in rows:
            row = dict(zip(positions, stored, strict=True))
            if document_digest(number, id, text, present(row, row.values())) == digest:
                row.update(zip(written, values.get(number, nothing), strict=True))
                entries = present(row, row.values())
                digests.append((document_digest(number, id, text, entries), number))

        connection.executemany(
            f"UPDATE metadata SET {update} WHERE number = ?",
            ((*values.get(row[0], nothing), row[0]) for row in rows),
        )
        connection.executemany("UPDATE documents SET digest = ? WHERE number = ?", digests)
        after = rows[-1][0]
