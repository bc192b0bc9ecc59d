"""Refusing what cannot be added before hours are spent on its vectors."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from embedtopics.errors import InputError
from embedtopics.retrieval.collection.batches import DocumentId, checked_id
from embedtopics.retrieval.collection.metadata import fit_columns, read_frame
from embedtopics.retrieval.collection.reading import find_numbers

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["check_new", "find_replaced"]


def check_new(
    connection: sqlite3.Connection,
    ids: Iterable[object],
    metadata: pd.DataFrame | None,
    update: bool,
) -> None:
    """Refuse ids and metadata that `Writer.add` would refuse.

    Raises
    ------
    InputError
    """
    find_replaced(connection, [checked_id(value, row) for row, value in enumerate(ids)], update)
    if metadata is not None:
        fit_columns(connection, read_frame(metadata, []), [])


def find_replaced(
    connection: sqlite3.Connection, ids: Sequence[DocumentId], update: bool
) -> list[int]:
    """Return the numbers of documents that new ones take the place of.

    Raises
    ------
    InputError
        If there are any, and they are not to be replaced.
    """
    if connection.execute("SELECT 1 FROM documents LIMIT 1").fetchone() is None:
        return []
    found = find_numbers(connection, ids)
    if found and not update:
        row = next(row for row, id in enumerate(ids) if id in found)
        raise InputError(
            f"the id {ids[row]!r} in row {row + 1} is in the collection already"
            + (f", and {len(found) - 1:,} others are" if len(found) > 1 else "")
            + "; pass update=True (--update) to replace documents, or give new ids"
        )
    return sorted(found.values())
