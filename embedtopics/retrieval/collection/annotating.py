"""Metadata that documents get later, such as the topics of a fit."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from embedtopics.errors import InputError
from embedtopics.results import Decision
from embedtopics.retrieval.collection.catalog import document_digest, read_meta
from embedtopics.retrieval.collection.metadata import (
    fit_columns,
    read_columns,
    read_frame,
    store_columns,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["write_annotations"]

DOCUMENTS_AT_ONCE = 10_000


def write_annotations(
    connection: sqlite3.Connection,
    numbers: Sequence[int],
    frame: pd.DataFrame,
    settings: Mapping[str, Any],
) -> list[Decision]:
    """Write columns of the metadata anew, within a transaction of the caller.

    Parameters
    ----------
    connection : sqlite3.Connection
    numbers : sequence of int
        Of documents that are there, each once.
    frame : pandas.DataFrame of len(numbers) rows
        All other documents have nothing in its columns afterwards.
    settings : mapping
        Entries that the settings get.

    Returns
    -------
    list of Decision

    Raises
    ------
    InputError
        If a column holds values of another kind.
    """
    if len(frame) != len(numbers):
        raise InputError(
            f"expected a row for each of {len(numbers):,} documents, got {len(frame):,}"
        )
    notes: list[Decision] = []
    columns, given = fit_columns(connection, read_frame(frame, notes), notes)
    store_columns(connection, columns)
    rows = zip(*(column.values for column in given), strict=True)
    _write_values(
        connection,
        [column.position for column in columns],
        dict(zip(map(int, numbers), rows, strict=False)),
    )
    known = {**json.loads(read_meta(connection, "settings")), **settings}
    connection.execute(
        "UPDATE meta SET value = ? WHERE name = 'settings'", (json.dumps(known, allow_nan=False),)
    )
    return notes


def _write_values(
    connection: sqlite3.Connection, written: list[int], values: Mapping[int, tuple[Any, ...]]
) -> None:
    """Write columns of every document anew, and checksums with them.

    A document that differs from its checksum before does so afterwards: damage stays to be seen.
    """
    if not written:
        return
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
            if document_digest(number, id, text, _present(known)) == digest:
                known.update(zip(written, values.get(number, nothing), strict=True))
                digests.append((document_digest(number, id, text, _present(known)), number))
        connection.executemany(
            f"UPDATE metadata SET {update} WHERE number = ?",
            ((*values.get(row[0], nothing), row[0]) for row in rows),
        )
        connection.executemany("UPDATE documents SET digest = ? WHERE number = ?", digests)
        after = rows[-1][0]


def _present(values: Mapping[int, Any]) -> list[tuple[int, Any]]:
    return [(position, value) for position, value in values.items() if value is not None]
