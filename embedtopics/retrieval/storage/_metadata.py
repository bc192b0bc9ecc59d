"""Metadata in a table of SQL: what kind a column is, and its values there and back.

A column of the caller's name becomes one called ``c0``, ``c1`` ..., so that no name can be read as
SQL. Its values are stored as they are, without SQL types: truth values as 0 and 1, dates as ISO
text that sorts as the dates do, lists of texts as JSON, missing values as NULL.
"""

from __future__ import annotations

import datetime
import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.folders import parse_json
from embedtopics.corpus._texts import replace_surrogates
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.retrieval.storage._catalog import document_digest, read_settings, write_settings

if TYPE_CHECKING:
    import pandas as pd


_MOST_COLUMNS = 1900
_EXACT = 2**53
"""Up to here floating-point numbers hold every integer."""


@dataclass(frozen=True)
class Column:
    """A column of the metadata, in the order of adding; "missing" until a value was seen."""

    position: int
    name: str
    kind: str

    @property
    def sql(self) -> str:
        """Its name in SQL."""
        return f"metadata.c{self.position}"


@dataclass(frozen=True, eq=False)
class GivenColumn:
    """A column of new rows, as it will be stored."""

    name: str
    kind: str
    values: list[Any]


def read_columns(connection: sqlite3.Connection) -> dict[str, Column]:
    """Return the columns that there are, by name."""
    query = "SELECT position, name, kind FROM columns ORDER BY position"
    return {name: Column(at, name, kind) for at, name, kind in connection.execute(query)}


def date_text(value: datetime.date) -> str:
    """Return a date in ISO, in UTC if it has a zone, as short as may be: it sorts as dates do."""
    if not isinstance(value, datetime.datetime):
        return value.isoformat()
    if value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    at_midnight = value.time() == datetime.time()
    return value.date().isoformat() if at_midnight else value.isoformat()


def read_frame(frame: pd.DataFrame, decisions: list[Decision]) -> list[GivenColumn]:
    """Read the metadata of new documents, one row each."""
    columns: dict[str, GivenColumn] = {}
    for position, name in enumerate(frame.columns):
        if not isinstance(name, str) or replace_surrogates(name) != name or name in columns:
            raise InputError("metadata", "columns whose names are different texts", name)
        columns[name] = _read_column(name, frame.iloc[:, position], decisions)
    return list(columns.values())


def _read_column(name: str, column: pd.Series, decisions: list[Decision]) -> GivenColumn:
    values: list[Any] = column.astype(object).tolist()
    gaps = column.isna().tolist()
    # Columns of Arrow hold NaN that pandas does not count as missing, and SQL would.
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
        return GivenColumn(name, kind, values)
    return GivenColumn(name, kind, _stored(name, kind, values, decisions))


def _kind(name: str, row: int, value: Any) -> str:
    for types, kind in (
        ((bool, np.bool_), "boolean"),
        ((int, np.integer), "integer"),
        ((float, np.floating), "real"),
        ((str,), "text"),
        ((datetime.date, np.datetime64), "date"),
        ((list, tuple, np.ndarray), "list"),
    ):
        # A timedelta of NumPy is an integer to Python.
        if isinstance(value, types) and not isinstance(value, np.timedelta64):  # type: ignore[arg-type]
            return kind
    raise _misfit(name, "text, numbers, truth values, dates or lists of texts", value, row)


def _misfit(column: str, expected: str, value: Any, row: int, remedy: str = "") -> InputError:
    return InputError(f"column {column!r} of the metadata", expected, value, remedy, row=row)


def _stored(name: str, kind: str, values: list[Any], decisions: list[Decision]) -> list[Any]:
    """Return values as they go into SQL, which knows only text and numbers of 64 bits."""
    convert: Callable[[int, Any], Any] = {
        "boolean": lambda row, value: int(value),
        "integer": lambda row, value: _integer(name, row, value),
        "real": lambda row, value: _real(name, row, value),
        # Not str(value), which gives the name of a member of an Enum.
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
                f"half characters in {repaired} values of the column {name!r} were replaced by "
                "U+FFFD, because they cannot be written as UTF-8",
            ))  # fmt: skip
    if kind == "date":
        zoned = sum(getattr(value, "tzinfo", None) is not None for value in values)
        if zoned:
            decisions.append(Decision(
                "retrieval", "metadata_time_zones", zoned,
                f"{zoned} dates of the column {name!r} had a time zone; they are kept in UTC",
            ))  # fmt: skip
    return stored


def _integer(name: str, row: int, value: Any) -> int:
    if not -(2**63) <= int(value) < 2**63:
        raise _misfit(name, "integers of 64 bits", value, row, "give that column as text")
    return int(value)


def _real(name: str, row: int, value: Any) -> float:
    if isinstance(value, int | np.integer) and abs(int(value)) > _EXACT:
        expected = "numbers that float64 holds exactly, as some have a fraction"
        raise _misfit(name, expected, value, row, "give that column as text")
    if isinstance(value, np.longdouble) and float(value) != value:
        raise _misfit(name, "numbers of 64 bits", value, row, "turn that column into float64")
    return float(value) + 0.0  # SQLite knows no negative zero


def _list(name: str, row: int, value: Any) -> str:
    if getattr(value, "ndim", 1) != 1 or not all(isinstance(one, str) for one in value):
        raise _misfit(name, "lists of texts", value, row)
    return json.dumps([replace_surrogates(str.__str__(one)) for one in value], ensure_ascii=False)


def _read_list(stored: str) -> list[str]:
    texts = parse_json(stored)
    if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        raise ValueError("a list of texts is none")
    return texts


def _date(name: str, row: int, value: Any) -> datetime.date:
    import pandas as pd

    try:
        if isinstance(value, np.datetime64):
            value = pd.Timestamp(value)
        if getattr(value, "nanosecond", 0):
            raise ValueError("it is finer than a microsecond; round it with Series.dt.floor('us')")
        if isinstance(value, pd.Timestamp):
            value = value.to_pydatetime()
        if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            value = value.astimezone(datetime.UTC)
    except (ValueError, OverflowError) as error:
        raise _misfit(name, "dates that can be stored", value, row, str(error)) from error
    stored: datetime.date = value
    return stored


def fit_columns(
    connection: sqlite3.Connection, given: list[GivenColumn], decisions: list[Decision]
) -> tuple[list[Column], list[GivenColumn]]:
    """Fit columns of new rows to those that there are.

    Whole and real numbers mix, because a missing value turns integers into reals; other reals make
    a column of integers one of real numbers.
    """
    there = read_columns(connection)
    columns, fitted = [], []
    position = len(there)
    for new in given:
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
        found = f"{position:,} of them"
        raise InputError("metadata", f"at most {_MOST_COLUMNS:,} columns", found=found)
    return columns, fitted


def _fit(
    connection: sqlite3.Connection, old: Column, new: GivenColumn, decisions: list[Decision]
) -> GivenColumn:
    pair = (old.kind, new.kind)
    if old.kind in ("missing", new.kind):
        return new
    if pair == ("real", "integer"):
        values = [
            None if v is None else _real(new.name, row, v) for row, v in enumerate(new.values)
        ]
        return GivenColumn(new.name, "real", values)
    if pair == ("integer", "real"):
        if all(v is None or (v.is_integer() and abs(v) <= _EXACT) for v in new.values):
            values = [None if v is None else int(v) for v in new.values]
            return GivenColumn(new.name, "integer", values)
        beyond = f"SELECT 1 FROM metadata WHERE {old.sql} NOT BETWEEN ? AND ? LIMIT 1"
        if connection.execute(beyond, (-_EXACT, _EXACT)).fetchone() is None:
            decisions.append(Decision(
                "retrieval", "metadata_widened", new.name,
                f"the column {new.name!r} held integers; it holds real numbers from now on",
            ))  # fmt: skip
            return new
    row = next(row for row, value in enumerate(new.values) if value is not None)
    raise _misfit(new.name, f"{old.kind} values, as in the index", new.values[row], row)


def store_columns(connection: sqlite3.Connection, columns: list[Column]) -> None:
    """Make the columns that are new, and note what kind each is now."""
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


_RESTORE: Mapping[str, Callable[[Any], Any]] = {
    "boolean": bool, "real": float, "date": datetime.datetime.fromisoformat, "list": _read_list,
}  # fmt: skip


def restore_row(columns: list[Column], values: tuple[Any, ...]) -> dict[str, Any]:
    """Return a row of the metadata as the caller knows it; dates are `datetime.datetime`."""
    restored = {}
    for column, value in zip(columns, values, strict=True):
        restore = _RESTORE.get(column.kind)
        restored[column.name] = value if value is None or restore is None else restore(value)
    return restored


DOCUMENTS_AT_ONCE = 10_000


def write_annotations(
    connection: sqlite3.Connection,
    numbers: Sequence[int],
    frame: pd.DataFrame,
    settings: Mapping[str, Any],
) -> list[Decision]:
    """Write columns of the metadata anew, within a transaction of the caller."""
    notes: list[Decision] = []
    columns, given = fit_columns(connection, read_frame(frame, notes), notes)
    store_columns(connection, columns)
    if columns:
        rows = zip(*(column.values for column in given), strict=True)
        values = dict(zip(map(int, numbers), rows, strict=True))
        _write_values(connection, [column.position for column in columns], values)
    known = {**read_settings(connection), **settings}
    write_settings(connection, json.dumps(known, allow_nan=False))
    return notes


def _write_values(
    connection: sqlite3.Connection, written: list[int], values: Mapping[int, tuple[Any, ...]]
) -> None:
    """Write columns of every document anew, and checksums; damage stays to be seen."""
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
        for number, id, digest, text, *there in rows:
            known = dict(zip(positions, there, strict=True))
            if document_digest(number, id, text, present(known, known.values())) == digest:
                known.update(zip(written, values.get(number, nothing), strict=True))
                kept = present(known, known.values())
                digests.append((document_digest(number, id, text, kept), number))
        connection.executemany(
            f"UPDATE metadata SET {update} WHERE number = ?",
            ((*values.get(row[0], nothing), row[0]) for row in rows),
        )
        connection.executemany("UPDATE documents SET digest = ? WHERE number = ?", digests)
        after = rows[-1][0]


def present(positions: Iterable[int], values: Iterable[Any]) -> list[tuple[int, Any]]:
    """Return the values that are there, with their columns, as checksums take them."""
    return sorted((at, v) for at, v in zip(positions, values, strict=True) if v is not None)
