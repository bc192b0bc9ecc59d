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
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.corpus._texts import replace_surrogates
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.retrieval.storage._catalog import (
    Column,
    document_digest,
    present,
    read_columns,
    read_settings,
    write_settings,
)

if TYPE_CHECKING:
    import pandas as pd


_MOST_COLUMNS = 1900
_EXACT = 2**53
"""A float64 holds every integer up to this one."""


@dataclass(frozen=True, eq=False)
class NewColumn:
    """A column of new documents, as it will be stored."""

    name: str
    kind: str
    values: list[Any]


def date_text(value: datetime.date) -> str:
    """Return the shortest ISO text of a date, in UTC if it has a zone; it sorts as dates do."""
    if not isinstance(value, datetime.datetime):
        return value.isoformat()
    if value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    at_midnight = value.time() == datetime.time()
    return value.date().isoformat() if at_midnight else value.isoformat()


def read_frame(frame: pd.DataFrame, decisions: list[Decision]) -> list[NewColumn]:
    """Read the metadata of new documents, a row each."""
    columns: dict[str, NewColumn] = {}
    for position, name in enumerate(frame.columns):
        if not isinstance(name, str) or replace_surrogates(name) != name or name in columns:
            raise InputError("metadata", "columns whose names are different texts", name)
        columns[name] = _read_column(name, frame.iloc[:, position], decisions)
    return list(columns.values())


def _read_column(name: str, column: pd.Series, decisions: list[Decision]) -> NewColumn:
    values: list[Any] = column.astype(object).tolist()
    gaps = column.isna().tolist()
    # Columns of Arrow may hold NaN, which pandas does not count as missing and SQLite does.
    values = [
        None if gap or (isinstance(value, float) and value != value) else value
        for gap, value in zip(gaps, values, strict=True)
    ]
    kind_of = {type(None): "missing"}
    for row, value in enumerate(values):
        if type(value) not in kind_of:
            kind_of[type(value)] = _kind(name, row, value)
    kinds = set(kind_of.values()) - {"missing"}
    if kinds == {"integer", "real"}:
        kinds = {"real"}
    if len(kinds) > 1:
        (expected,) = {kind_of[type(next(v for v in values if v is not None))]}
        numbers = {"integer", "real"}
        for row, value in enumerate(values):
            kind = expected if value is None else kind_of[type(value)]
            if kind != expected and {kind, expected} != numbers:
                raise _misfit(name, f"{expected} values, as before", value, row)
    kind = kinds.pop() if kinds else "missing"
    if kind == "missing":
        return NewColumn(name, kind, values)
    return NewColumn(name, kind, _stored(name, kind, values, decisions))


def _kind(name: str, row: int, value: Any) -> str:
    for types, kind in (
        ((bool, np.bool_), "boolean"),
        ((int, np.integer), "integer"),
        ((float, np.floating), "real"),
        ((str,), "text"),
        ((datetime.date, np.datetime64), "date"),
        ((list, tuple, np.ndarray), "list"),
    ):
        # A timedelta of NumPy is an instance of numpy.integer.
        if isinstance(value, types) and not isinstance(value, np.timedelta64):  # type: ignore[arg-type]
            return kind
    raise _misfit(name, "texts, numbers, booleans, dates or lists of texts", value, row)


def _misfit(column: str, expected: str, value: Any, row: int, remedy: str = "") -> InputError:
    return InputError(f"column {column!r} of the metadata", expected, value, remedy, row=row)


def _stored(name: str, kind: str, values: list[Any], decisions: list[Decision]) -> list[Any]:
    """Return values as SQLite stores them: texts and numbers of 64 bits."""
    convert: Callable[[int, Any], Any] = {
        "boolean": lambda row, value: int(value),
        "integer": lambda row, value: _integer(name, row, value),
        "real": lambda row, value: _real(name, row, value),
        # Not str(value), which returns the name of a member of an Enum.
        "text": lambda row, value: replace_surrogates(str.__str__(value)),
        "date": lambda row, value: date_text(_date(name, row, value)),
        "list": lambda row, value: _list(name, row, value),
    }[kind]
    stored = [None if v is None else convert(row, v) for row, v in enumerate(values)]
    if kind == "text":
        repaired = sum(a is not None and a != b for a, b in zip(values, stored, strict=True))
        if repaired:
            decisions.append(Decision(
                "retrieval", "metadata_surrogates", repaired,
                f"Lone surrogates in {repaired} values of the column {name!r} were replaced by "
                "U+FFFD, because UTF-8 cannot represent them.",
            ))  # fmt: skip
    if kind == "date":
        zoned = sum(getattr(value, "tzinfo", None) is not None for value in values)
        if zoned:
            decisions.append(Decision(
                "retrieval", "metadata_time_zones", zoned,
                f"{zoned} dates of the column {name!r} had a time zone; they are stored in UTC.",
            ))  # fmt: skip
    return stored


def _integer(name: str, row: int, value: Any) -> int:
    if not -(2**63) <= int(value) < 2**63:
        raise _misfit(name, "integers of 64 bits", value, row, "convert the column to text")
    return int(value)


def _real(name: str, row: int, value: Any) -> float:
    if isinstance(value, int | np.integer) and abs(int(value)) > _EXACT:
        expected = "numbers that float64 holds exactly, because some have a fraction"
        raise _misfit(name, expected, value, row, "convert the column to text")
    if isinstance(value, np.longdouble) and float(value) != value:
        raise _misfit(name, "numbers of 64 bits", value, row, "convert the column to float64")
    return float(value) + 0.0  # SQLite has no negative zero


def _list(name: str, row: int, value: Any) -> str:
    if getattr(value, "ndim", 1) != 1 or not all(isinstance(text, str) for text in value):
        raise _misfit(name, "lists of texts", value, row)
    texts = [replace_surrogates(str.__str__(text)) for text in value]
    return json.dumps(texts, ensure_ascii=False)


def _date(name: str, row: int, value: Any) -> datetime.date:
    import pandas as pd

    try:
        if isinstance(value, np.datetime64):
            value = pd.Timestamp(value)
        if getattr(value, "nanosecond", 0):
            raise ValueError("round it to microseconds with Series.dt.floor('us')")
        if isinstance(value, pd.Timestamp):
            value = value.to_pydatetime()
        if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            value = value.astimezone(datetime.UTC)
    except (ValueError, OverflowError) as error:
        raise _misfit(name, "dates that can be stored", value, row, str(error)) from error
    stored: datetime.date = value
    return stored


def fit_columns(
    connection: sqlite3.Connection, new_columns: list[NewColumn], decisions: list[Decision]
) -> tuple[list[Column], list[NewColumn]]:
    """Match the columns of new documents to those of the index.

    Integers and floats mix, because a missing value turns integers into floats; a fraction turns a
    column of integers into floats.
    """
    there = read_columns(connection)
    columns, fitted = [], []
    position = len(there)
    for new in new_columns:
        old = there.get(new.name)
        if old is None:
            old = Column(position, new.name, new.kind)
            position += 1
        if new.kind != "missing":
            new = _fit(connection, old, new, decisions)
            old = replace(old, kind=new.kind)
        columns.append(old)
        fitted.append(new)
    if position > _MOST_COLUMNS:
        raise InputError("metadata", f"at most {_MOST_COLUMNS:,} columns", position)
    return columns, fitted


def _fit(
    connection: sqlite3.Connection, old: Column, new: NewColumn, decisions: list[Decision]
) -> NewColumn:
    pair = (old.kind, new.kind)
    if old.kind in ("missing", new.kind):
        return new
    if pair == ("real", "integer"):
        values = [
            None if v is None else _real(new.name, row, v) for row, v in enumerate(new.values)
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
    """Replace columns of every document and renew the checksums, but those of damaged documents."""
    positions = sorted(column.position for column in read_columns(connection).values())
    names = "".join(f", metadata.c{position}" for position in positions)
    query = (
        f"SELECT number, id, digest, text{names} FROM documents JOIN metadata USING (number) "
        "WHERE number > ? ORDER BY number LIMIT ?"
    )
    update = ", ".join(f"c{position} = ?" for position in written)
    nothing, after = (None,) * len(written), -1
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
