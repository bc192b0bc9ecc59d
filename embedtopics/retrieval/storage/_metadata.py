"""Metadata of new documents as columns of SQLite, checked and converted.

Columns are called ``c0``, ``c1`` ... in SQL, so that no name of the caller can act as SQL. Values
are stored as `embedtopics.corpus.filters._values` converts them, missing ones as NULL.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from embedtopics.corpus._texts import replace_surrogates
from embedtopics.corpus.filters._values import (
    MAX_EXACT,
    TypedColumn,
    compared_form,
    misfit,
    read_column,
    stored_value,
)
from embedtopics.errors import InputError
from embedtopics.results import Decision
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


def read_frame(frame: pd.DataFrame, decisions: list[Decision]) -> list[TypedColumn]:
    """Read the metadata of new documents, a row each."""
    columns: dict[str, TypedColumn] = {}
    for position, name in enumerate(frame.columns):
        is_name = isinstance(name, str) and replace_surrogates(name) == name
        if not is_name or compared_form(name) in columns:
            raise InputError("metadata", "columns whose names are different texts", name)
        columns[compared_form(name)] = _read_column(name, frame.iloc[:, position], decisions)
    return list(columns.values())


def _read_column(name: str, values: pd.Series, decisions: list[Decision]) -> TypedColumn:
    column = read_column(name, values)
    if column.n_zoned:
        n = column.n_zoned
        message = f"{n} dates of the column {name!r} have a time zone, and keep its clock."
        decisions.append(Decision("retrieval", "metadata_time_zones", n, message))
    return column


def fit_columns(
    connection: sqlite3.Connection, new_columns: list[TypedColumn], decisions: list[Decision]
) -> tuple[list[Column], list[TypedColumn]]:
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
    connection: sqlite3.Connection, old: Column, new: TypedColumn, decisions: list[Decision]
) -> TypedColumn:
    pair = (old.kind, new.kind)
    if old.kind in ("missing", new.kind):
        return new
    if pair == ("real", "integer"):
        values = [
            None if v is None else stored_value(new.name, "real", v, row)
            for row, v in enumerate(new.values)
        ]
        return TypedColumn(new.name, "real", values)
    if pair == ("integer", "real"):
        if all(v is None or (v.is_integer() and abs(v) <= MAX_EXACT) for v in new.values):
            values = [None if v is None else int(v) for v in new.values]
            return TypedColumn(new.name, "integer", values)
        beyond = f"SELECT 1 FROM metadata WHERE {old.sql} NOT BETWEEN ? AND ? LIMIT 1"
        if connection.execute(beyond, (-MAX_EXACT, MAX_EXACT)).fetchone() is None:
            decisions.append(Decision(
                "retrieval", "metadata_widened", new.name,
                f"The column {new.name!r} changed from integers to floats.",
            ))  # fmt: skip
            return new
    row = next(row for row, value in enumerate(new.values) if value is not None)
    raise misfit(new.name, f"{old.kind} values, as in the index", new.values[row], row)


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
