"""A collection of documents in a folder, with one writer and many readers."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.folders import find_folder, flush_folder, only_writer
from embedtopics.corpus.filters._values import TypedColumn
from embedtopics.errors import CorruptFileError, InputError, Remedy
from embedtopics.protocols import Int32Array, Int64Array
from embedtopics.results import Decision
from embedtopics.retrieval.results import Document
from embedtopics.retrieval.storage._catalog import (
    CATALOG,
    SEGMENTS,
    STORED_TYPES,
    Column,
    ask,
    composed_sql,
    connect_writer,
    damage,
    document_digest,
    explaining,
    find_numbers,
    merge_log,
    present,
    read_columns,
    read_numbers,
    read_settings,
    read_stamp,
    reading,
    select_documents,
)
from embedtopics.retrieval.storage._checks import (
    check_presence,
    copy_collection,
    create_folder,
    find_damage,
)
from embedtopics.retrieval.storage._metadata import (
    fit_columns,
    read_frame,
    store_columns,
    write_annotations,
)
from embedtopics.retrieval.storage._segments import (
    PASSAGES,
    MakeSegment,
    PassageCache,
    SegmentFile,
    Snapshot,
    Sources,
    damaged_files,
    list_files,
    named_segments,
    read_snapshot,
    seal,
    segment_folder,
    unnamed_folders,
)

if TYPE_CHECKING:
    import pandas as pd


_LISTED = "IN (SELECT value FROM json_each(?))"
"""A condition for the numbers of a JSON array, however many."""


class Collection:
    """Documents, their metadata, and the segments that index their passages.

    Any thread may read while a process writes; every call reads one version. The folder may be
    read-only.
    """

    def __init__(self, folder: Path, is_checked: bool = True) -> None:
        self.folder = folder
        self.is_checked = is_checked
        self._passages: PassageCache = {}

    @classmethod
    def create(cls, folder: str | Path, settings: Mapping[str, Any]) -> Collection:
        """Create an empty collection."""
        path = Path(os.path.realpath(folder))
        create_folder(path, json.dumps(dict(settings), allow_nan=False))
        return cls(path)

    @classmethod
    def open(cls, folder: str | Path, *, verify: bool | None = None) -> Collection:
        """Open a collection; see `SearchIndex.load`."""
        path = find_folder(folder)
        check_presence(path)
        if problems := find_damage(path) if verify else []:
            more = f" (and {len(problems) - 1:,} more problems)" if len(problems) > 1 else ""
            raise CorruptFileError(f"{problems[0]}{more}")
        return cls(path, verify is not False)

    def snapshot(self) -> Snapshot:
        """Return the newest version; its files may be deleted by a later compaction."""
        return read_snapshot(self.folder, self._passages)

    def stamp(self) -> str:
        """Return the stamp of the newest version; a copy has the same stamp."""
        return ask(self.folder, read_stamp)

    def settings(self) -> dict[str, Any]:
        """Return the settings of the collection."""
        return ask(self.folder, read_settings)

    def documents(self, numbers: Sequence[int]) -> list[Document | None]:
        """Return documents by number, None for each that does not exist."""
        parameters = [json.dumps([*map(int, numbers)])]

        def fetch(connection: sqlite3.Connection) -> dict[int, Document]:
            rows = select_documents(connection, f"number {_LISTED}", parameters)
            return {document.number: document for document in rows}

        documents = ask(self.folder, fetch)
        return [documents.get(int(number)) for number in numbers]

    def numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the number of each id that is in the index."""
        return ask(self.folder, lambda connection: find_numbers(connection, ids))

    def check_new(self, ids: Sequence[str], metadata: pd.DataFrame, *, update: bool) -> None:
        """Refuse before encoding the ids and metadata that a writer would refuse."""

        def refuse(connection: sqlite3.Connection) -> None:
            find_replaced(connection, ids, update)
            fit_columns(connection, read_frame(metadata, []), [])

        ask(self.folder, refuse)

    def ids(self) -> dict[int, str]:
        """Return all ids by number, in the order of adding."""
        query = "SELECT number, id FROM documents ORDER BY number"
        return ask(self.folder, lambda connection: dict(connection.execute(query).fetchall()))

    def batches(self, size: int = 10_000) -> Iterator[list[Document]]:
        """Yield all documents of one version, in the order of adding."""
        with reading(self.folder) as connection:
            after = -1
            following = "number > ? ORDER BY number LIMIT ?"
            while batch := list(select_documents(connection, following, (after, size))):
                yield batch
                after = batch[-1].number

    def columns(self) -> dict[str, str]:
        """Return the kind of each column of the metadata."""
        return {name: column.kind for name, column in ask(self.folder, read_columns).items()}

    def column_sql(self, name: str) -> str:
        """Return the name of a column, or of the ids, in conditions of `candidates`."""
        columns = ask(self.folder, read_columns)
        return columns[name].compared_sql if name in columns else composed_sql("documents.id")

    def candidates(self, condition: str, parameters: Sequence[Any] = ()) -> Int64Array:
        """Return the numbers of the documents that meet a condition, ascending."""
        # SQLite omits the join where the condition names no column of documents.
        query = (
            "SELECT metadata.number FROM metadata LEFT JOIN documents "
            f"ON documents.number = metadata.number WHERE ({condition}) ORDER BY metadata.number"
        )
        return ask(self.folder, lambda connection: read_numbers(connection, query, parameters))

    def counts(self, name: str, numbers: Int64Array | None) -> Counter[Any]:
        """Count the documents by value of a column: by text of lists, by year of dates."""
        column = ask(self.folder, read_columns)[name]
        value, table = column.compared_sql, "metadata"
        if column.kind == "list":
            value, table = "json_each.value", f"metadata, json_each({value})"
        elif column.kind == "date":
            value = f"substr({column.sql}, 1, 4)"
        counted = "count(DISTINCT metadata.number)"
        query = f"SELECT {value}, {counted} FROM {table} WHERE {value} IS NOT NULL"
        parameters = []
        if numbers is not None:
            query += f" AND metadata.number {_LISTED}"
            parameters.append(json.dumps(numbers.tolist()))

        def count(connection: sqlite3.Connection) -> Counter[Any]:
            counts: Counter[Any] = Counter()
            for stored, n in connection.execute(f"{query} GROUP BY 1", parameters):
                if not isinstance(stored, STORED_TYPES[column.kind]):
                    raise damage(CATALOG, f"a value of {name[:100]!r} is no {column.kind}")
                counts[bool(stored) if column.kind == "boolean" else stored] += n
            return counts

        return ask(self.folder, count)

    @contextmanager
    def writing(self) -> Iterator[CollectionWriter]:
        """Give the only writer of all processes."""
        folder = self.folder
        with only_writer(folder):
            with explaining(folder, is_writing=True):
                connection = connect_writer(folder)
            try:
                with explaining(folder, is_writing=True):
                    (folder / SEGMENTS).mkdir(exist_ok=True)
                    flush_folder(folder)
                    if merge_log(connection):
                        for path in unnamed_folders(folder, named_segments(connection)):
                            shutil.rmtree(path, ignore_errors=True)  # left by killed writers
                yield CollectionWriter(folder, connection)
                merge_log(connection)  # else closing would write, and readers wait
            finally:
                connection.close()

    def copy_to(self, folder: str | Path, *, overwrite: bool = False) -> Collection:
        """Copy the newest version to another folder, which appears whole or not at all."""
        path = find_folder(folder)
        copy_collection(self.folder, path, overwrite)
        return Collection(path)


def find_replaced(connection: sqlite3.Connection, ids: Sequence[str], update: bool) -> list[int]:
    """Return the numbers of documents that an update replaces."""
    numbers = find_numbers(connection, ids)
    if numbers and not update:
        row = next(row for row, id in enumerate(ids) if id in numbers)
        raise InputError(
            "id", f"new for every document, but {len(numbers):,} are in the index", ids[row],
            Remedy("update", True, "give new ids"), row=row,
        )  # fmt: skip
    return sorted(numbers.values())


class CollectionWriter:
    """The writer of a collection, made by `Collection.writing`.

    Each call is on disk when it returns, and is undone when it fails or is killed.
    """

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self._folder = folder
        self._connection = connection
        self.decisions: list[Decision] = []

    def add(
        self,
        ids: Sequence[str],
        texts: Sequence[str],
        metadata: pd.DataFrame,
        positions: Int64Array,
        spans: Int32Array,
        make_segment: MakeSegment,
        *,
        update: bool = False,
    ) -> None:
        """Add documents with distinct ids, cut into passages.

        `positions` (n_passages,) are the documents of the passages, counted from 0, ascending;
        `spans` (n_passages, 2) their characters.
        """
        if not len(ids):
            return
        notes: list[Decision] = []
        new_columns = read_frame(metadata, notes)
        with explaining(self._folder, is_writing=True):
            replaced = find_replaced(self._connection, ids, update)
            columns, new_columns = fit_columns(self._connection, new_columns, notes)
            first = self._next_number("documents")
            documents = first + positions
            with self._new_segment(documents, spans, make_segment, None) as files:
                with self._transaction():
                    emptied = self._tombstone(replaced)
                    store_columns(self._connection, columns)
                    self._insert(first, ids, texts, columns, new_columns)
                    self._name_segment(files, documents, len(ids))
        self._delete(emptied)
        self.decisions += notes

    def remove(self, ids: Sequence[str]) -> int:
        """Remove documents; SQLite overwrites them when nobody reads an older version."""
        with explaining(self._folder, is_writing=True):
            numbers = find_numbers(self._connection, ids)
            unknown = [id for id in dict.fromkeys(ids) if id not in numbers]
            if unknown:
                raise InputError(
                    "ids", "those of documents in the index",
                    found=f"{len(unknown):,} that are not, such as {str(unknown[:3])[1:-1]}",
                )  # fmt: skip
            if not numbers:
                return 0
            with self._transaction():
                emptied = self._tombstone(sorted(numbers.values()))
        self._delete(emptied)
        return len(numbers)

    def compact(self, make_segment: MakeSegment) -> bool:
        """Write all living passages to one new segment; readers keep their open files."""
        snapshot = read_snapshot(self._folder, {})
        if len(snapshot.segments) <= 1 and all(s.alive.all() for s in snapshot.segments):
            return False
        for path, what in damaged_files(self._folder, list_files(self._connection)):
            raise damage(path, what)
        rows = [np.flatnonzero(view.alive) for view in snapshot.segments]
        segment = np.repeat(np.arange(len(rows), dtype=np.int32), [part.size for part in rows])
        # Numbers ascend from segment to segment.
        documents = np.concatenate([s.documents[s.alive] for s in snapshot.segments])
        spans = np.concatenate([s.spans[s.alive] for s in snapshot.segments])
        sources = Sources(snapshot.segments, segment, np.concatenate(rows))
        old = [int(view.name) for view in snapshot.segments]
        with explaining(self._folder, is_writing=True):
            with self._new_segment(documents, spans, make_segment, sources) as files:
                with self._transaction():
                    self._forget(old)
                    self._connection.execute("DELETE FROM removed")
                    self._name_segment(files, documents, snapshot.n_documents)
        self._delete(old)
        with suppress(sqlite3.Error):  # it needs as much space again for a while
            self._connection.execute("VACUUM")
        return True

    def annotate(
        self, numbers: Sequence[int], frame: pd.DataFrame, settings: Mapping[str, Any]
    ) -> None:
        """Replace columns of the metadata of all documents, and entries of the settings."""
        with explaining(self._folder, is_writing=True), self._transaction():
            self.decisions += write_annotations(self._connection, numbers, frame, settings)

    def _next_number(self, table: str) -> int:
        query = "SELECT seq FROM sqlite_sequence WHERE name = ?"
        row = self._connection.execute(query, (table,)).fetchone()
        return 1 + (int(row[0]) if row else 0)

    @contextmanager
    def _new_segment(
        self, documents: Int64Array, spans: Int32Array, make: MakeSegment, sources: Sources | None
    ) -> Iterator[list[SegmentFile]]:
        """Write a segment to disk; the body has to name it in the catalog, else it is deleted."""
        number = self._next_number("segments")
        while segment_folder(self._folder, number).exists():  # left by a failed write
            number += 1
        folder = segment_folder(self._folder, number)
        try:
            folder.mkdir(parents=True)
            np.savez(folder / PASSAGES, documents=documents, spans=spans)
            documents, spans = documents.view(), spans.view()
            documents.flags.writeable = spans.flags.writeable = False
            make(folder, documents, spans, sources)
            yield seal(self._folder, number)
        except BaseException:
            # A failed commit may still be in the log, and return after a crash. Where the log
            # cannot be emptied now, the next writer deletes the folder.
            with suppress(sqlite3.Error):
                if merge_log(self._connection) and number not in named_segments(self._connection):
                    shutil.rmtree(folder, ignore_errors=True)
            raise

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Make one version of the changes of the body."""
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        try:
            yield
            run("UPDATE meta SET value = value + 1 WHERE name = 'version'")
            run("UPDATE meta SET value = ? WHERE name = 'stamp'", (secrets.token_hex(8),))
            run("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # SQLite has rolled back already
                run("ROLLBACK")
            raise

    def _tombstone(self, numbers: list[int]) -> list[int]:
        """Remove documents and segments without documents; return the numbers of these segments."""
        if not numbers:
            return []
        run, rows = self._connection.execute, [(number,) for number in numbers]
        for statement in (
            "DELETE FROM documents WHERE number = ?",
            "DELETE FROM metadata WHERE number = ?",
            "INSERT INTO removed VALUES (?)",
        ):
            self._connection.executemany(statement, rows)
        emptied = []
        removed = np.array(numbers, np.int64)
        segments = run("SELECT number, first, last, n_living FROM segments").fetchall()
        for segment, first, last, n_living in segments:
            n_living -= int(((first <= removed) & (removed <= last)).sum())
            run("UPDATE segments SET n_living = ? WHERE number = ?", (n_living, segment))
            if not n_living:
                emptied.append(segment)
                run("DELETE FROM removed WHERE number BETWEEN ? AND ?", (first, last))
        self._forget(emptied)
        return emptied

    def _forget(self, segments: list[int]) -> None:
        for segment in segments:
            self._connection.execute("DELETE FROM segments WHERE number = ?", (segment,))
            self._connection.execute("DELETE FROM files WHERE segment = ?", (segment,))

    def _insert(
        self,
        first: int,
        ids: Sequence[str],
        texts: Sequence[str],
        columns: list[Column],
        new_columns: list[TypedColumn],
    ) -> None:
        rows: list[tuple[Any, ...]] = [()] * len(ids)
        if new_columns:
            rows = list(zip(*(column.values for column in new_columns), strict=True))
        positions = [column.position for column in columns]
        self._connection.executemany(
            "INSERT INTO documents (number, id, digest, text) VALUES (?, ?, ?, ?)",
            (
                (number, id, document_digest(number, id, text, present(positions, values)), text)
                for number, (id, text, values) in enumerate(
                    zip(ids, texts, rows, strict=True), first
                )
            ),
        )
        names = "".join(f", c{position}" for position in positions)
        self._connection.executemany(
            f"INSERT INTO metadata (number{names}) VALUES (?{', ?' * len(positions)})",
            ((number, *values) for number, values in enumerate(rows, first)),
        )

    def _name_segment(self, files: list[SegmentFile], documents: Int64Array, n_living: int) -> None:
        number = files[0].segment
        self._connection.execute(
            "INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?)",
            (number, int(documents[0]), int(documents[-1]), len(documents), n_living, len(files)),
        )
        self._connection.executemany(
            "INSERT INTO files VALUES (?, ?, ?, ?)",
            [(file.segment, file.path, file.bytes, file.sha256) for file in files],
        )

    def _delete(self, segments: list[int]) -> None:
        for segment in segments:
            shutil.rmtree(segment_folder(self._folder, segment), ignore_errors=True)
