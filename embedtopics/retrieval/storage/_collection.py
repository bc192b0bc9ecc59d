"""A collection of documents in a folder: one writes it, many read it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.retrieval.results import Document
from embedtopics.retrieval.storage._catalog import Moved, ask, read_meta, reading
from embedtopics.retrieval.storage._checks import (
    check_presence,
    copy_collection,
    create_folder,
    find_folder,
    require_whole,
)
from embedtopics.retrieval.storage._metadata import read_columns
from embedtopics.retrieval.storage._segments import (
    PassageCache,
    Snapshot,
    fetch_batch,
    fetch_documents,
    find_candidates,
    find_numbers,
    read_snapshot,
)
from embedtopics.retrieval.storage._writing import Writer, check_new, open_writer

if TYPE_CHECKING:
    import pandas as pd


class Collection:
    """Documents, their metadata, and the segments in which their passages are indexed.

    Make one with `create` or `open`. Every question is answered from one version; threads may ask
    at the same time, a process may write at the same time, and the folder may be read-only.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._passages: PassageCache = {}

    @classmethod
    def create(cls, folder: str | Path, settings: Mapping[str, Any]) -> Collection:
        """Make an empty collection."""
        path = Path(os.path.realpath(folder))
        create_folder(path, json.dumps(dict(settings), allow_nan=False))
        return cls(path)

    @classmethod
    def open(cls, folder: str | Path, *, verify: bool = False) -> Collection:
        """Open a collection."""
        path = find_folder(folder)
        check_presence(path)
        if verify:
            require_whole(path)
        return cls(path)

    def snapshot(self) -> Snapshot:
        """Return the newest version; its files may be deleted by a later compaction."""
        return read_snapshot(self.folder, self._passages)

    def version(self) -> int:
        """Return the number of the newest version; it goes up with every write."""
        return ask(self.folder, lambda connection: int(read_meta(connection, "version")))

    def stamp(self) -> str:
        """Return what names the newest version's content; a copy has the same stamp."""
        return ask(self.folder, lambda connection: str(read_meta(connection, "stamp")))

    def settings(self) -> dict[str, Any]:
        """Return what the collection was made with."""
        return dict(ask(self.folder, lambda c: json.loads(read_meta(c, "settings"))))

    def documents(self, numbers: Sequence[int]) -> list[Document | None]:
        """Return documents by number, None for each that is not there (any more)."""
        return ask(self.folder, lambda connection: fetch_documents(connection, numbers))

    def numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the number of each id that there is; others are left out."""
        return ask(self.folder, lambda connection: find_numbers(connection, ids))

    def check_new(self, ids: Sequence[str], metadata: pd.DataFrame, *, update: bool) -> None:
        """Refuse ids and metadata that a writer would refuse, before vectors are made."""
        ask(self.folder, lambda connection: check_new(connection, ids, metadata, update))

    def ids(self) -> list[str]:
        """Return all ids, in the order of the documents' numbers."""
        query = "SELECT id FROM documents ORDER BY number"
        return ask(self.folder, lambda connection: [id for (id,) in connection.execute(query)])

    def batches(self, size: int = 10_000) -> Iterator[list[Document]]:
        """Give all documents of one version, in the order of their numbers."""
        try:
            with reading(self.folder) as connection:
                after = -1
                while batch := fetch_batch(connection, after, size):
                    yield batch
                    after = batch[-1].number
        except Moved:
            raise InputError(
                f"{self.folder} was written while it was read from where it cannot be locked; "
                "begin again when its writer is done"
            ) from None

    def columns(self) -> dict[str, str]:
        """Return the kind of each column of the metadata."""
        columns = ask(self.folder, read_columns)
        return {name: column.kind for name, column in columns.items()}

    def column_sql(self, name: str) -> str:
        """Return what a column of the metadata is called in conditions of `candidates`."""
        columns = ask(self.folder, read_columns)
        return columns[name].sql

    def candidates(self, condition: str, parameters: Sequence[Any] = ()) -> Int64Array:
        """Return the numbers of the documents that meet a condition."""
        return ask(self.folder, lambda c: find_candidates(c, condition, parameters))

    def writing(self) -> AbstractContextManager[Writer]:
        """Be the one writer of the collection, of all processes."""
        return open_writer(self.folder)

    def copy_to(self, folder: str | Path, *, overwrite: bool = False) -> Collection:
        """Copy the newest version to another folder; it appears there whole or not at all."""
        path = find_folder(folder)
        copy_collection(self.folder, path, overwrite)
        return Collection(path)
