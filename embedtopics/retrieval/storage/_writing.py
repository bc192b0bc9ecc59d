"""Writing to a collection: each call is one write, which is there whole or not at all."""

from __future__ import annotations

import secrets
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from embedtopics._utils.folders import only_writer
from embedtopics.corpus.results import Decision
from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array, Int64Array
from embedtopics.retrieval.storage._catalog import (
    SEGMENTS,
    connect_writer,
    document_digest,
    explaining,
    flush_folder,
    merge_log,
)
from embedtopics.retrieval.storage._metadata import (
    Column,
    GivenColumn,
    fit_columns,
    present,
    read_frame,
    store_columns,
    write_annotations,
)
from embedtopics.retrieval.storage._segments import (
    MakeSegment,
    SegmentFile,
    Sources,
    damage,
    damaged_files,
    find_numbers,
    list_files,
    read_snapshot,
    seal,
    segment_folder,
    unnamed_folders,
    write_passages,
)

if TYPE_CHECKING:
    import pandas as pd


def check_new(
    connection: sqlite3.Connection, ids: Sequence[str], metadata: pd.DataFrame, update: bool
) -> None:
    """Refuse ids and metadata that `Writer.add` would refuse."""
    find_replaced(connection, ids, update)
    fit_columns(connection, read_frame(metadata, []), [])


def find_replaced(connection: sqlite3.Connection, ids: Sequence[str], update: bool) -> list[int]:
    """Return the numbers of documents that new ones take the place of."""
    found = find_numbers(connection, ids)
    if found and not update:
        row = next(row for row, id in enumerate(ids) if id in found)
        raise InputError(
            "id", "new for every document", ids[row],
            f"{len(found):,} of the ids are in the index; pass update=True (--update) to replace "
            "documents, or give new ids", row=row,
        )  # fmt: skip
    return sorted(found.values())


class Writer:
    """The one that writes a collection; made by `Collection.writing`.

    Each call is a write of its own: when it returns, all of it is on disk, and when it fails or is
    killed, nothing of it is. `decisions` are what was done to metadata so far.
    """

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self._folder = folder
        self._connection = connection
        self._is_uncertain = False
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
        """Add documents with distinct ids.

        `positions` (n_passages,) is the document of each passage, ascending from 0, each document
        with one or more; `spans` (n_passages, 2) lie within its text.
        """
        if not len(ids):
            return
        notes: list[Decision] = []
        given = read_frame(metadata, notes)
        with explaining(self._folder, is_writing=True):
            replaced = find_replaced(self._connection, ids, update)
            columns, given = fit_columns(self._connection, given, notes)
            first = self._next_number("documents")
            documents = first + positions
            with self._new_segment(documents, spans, make_segment, None) as files:
                with self._transaction():
                    emptied = self._tombstone(replaced)
                    store_columns(self._connection, columns)
                    self._insert(first, ids, texts, columns, given)
                    self._name_segment(files, documents, len(ids))
        self._delete(emptied)
        self.decisions += notes

    def remove(self, ids: Sequence[str], *, missing: Literal["raise", "ignore"] = "raise") -> int:
        """Remove documents; their texts and metadata are overwritten in the file.

        That is done when the writer ends; or, where another process still reads an older version,
        when the next one does.
        """
        if missing not in ("raise", "ignore"):
            raise InputError("missing", "'raise' or 'ignore'", missing)
        with explaining(self._folder, is_writing=True):
            found = find_numbers(self._connection, ids)
            unknown = [id for id in dict.fromkeys(ids) if id not in found]
            if unknown and missing == "raise":
                raise InputError(
                    "ids", "those of documents in the index",
                    found=f"{len(unknown):,} that are not, such as {str(unknown[:3])[1:-1]}",
                    remedy="leave them out, or pass missing='ignore'",
                )  # fmt: skip
            if not found:
                return 0
            with self._transaction():
                emptied = self._tombstone(sorted(found.values()))
        self._delete(emptied)
        return len(found)

    def compact(self, make_segment: MakeSegment, *, always: bool = False) -> bool:
        """Write all living passages to one new segment, without those of removed documents.

        Readers that hold files of the old segments open, or have them mapped, keep them (but for
        Windows, where such files stay until the next writer).
        """
        snapshot = read_snapshot(self._folder, {})
        is_compact = len(snapshot.segments) <= 1 and all(s.alive.all() for s in snapshot.segments)
        if not snapshot.segments or (is_compact and not always):
            return False
        for path, what in damaged_files(self._folder, list_files(self._connection)):
            raise damage(path, what)
        rows = [np.flatnonzero(view.alive) for view in snapshot.segments]
        segment = np.repeat(np.arange(len(rows), dtype=np.int32), [part.size for part in rows])
        # Numbers go up from segment to segment, so that this is their order already.
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
        n_before = sum(len(view.documents) for view in snapshot.segments)
        self._shrink(n_before / len(documents) - 1)
        return True

    def annotate(
        self, numbers: Sequence[int], frame: pd.DataFrame, settings: Mapping[str, Any]
    ) -> None:
        """Write columns of the metadata anew, and entries of the settings.

        See `write_annotations`; documents that are not among `numbers` lose what they had there.
        """
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
        """Write a segment and put it on disk; what comes next has to name it, or it goes again."""
        number = self._next_number("segments")
        while segment_folder(self._folder, number).exists():  # what failed and could not be deleted
            number += 1
        folder = segment_folder(self._folder, number)
        try:
            folder.mkdir(parents=True)
            write_passages(folder, documents, spans)
            documents, spans = documents.view(), spans.view()
            documents.flags.writeable = spans.flags.writeable = False
            make(folder, documents, spans, sources)
            yield seal(self._folder, number)
        except BaseException:
            # A commit that failed may still be in the log, and come back after a crash. Where the
            # log cannot be emptied now, the next writer deletes the folder.
            with suppress(sqlite3.Error):
                is_certain = not self._is_uncertain or merge_log(self._connection)
                if is_certain and number not in _named(self._connection):
                    shutil.rmtree(folder, ignore_errors=True)
            raise

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Make a version of what is done inside."""
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        try:
            yield
            run("UPDATE meta SET value = value + 1 WHERE name = 'version'")
            run("UPDATE meta SET value = ? WHERE name = 'stamp'", (secrets.token_hex(8),))
            self._is_uncertain = True
            run("COMMIT")
            self._is_uncertain = False
        except BaseException:
            with suppress(sqlite3.Error):  # SQLite has taken it back itself
                run("ROLLBACK")
            raise

    def _tombstone(self, numbers: list[int]) -> list[int]:
        """Remove documents; return the segments in which none is left, which go, too."""
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
        given: list[GivenColumn],
    ) -> None:
        n = len(ids)
        known = list(zip(*(column.values for column in given), strict=True)) if given else [()] * n
        positions = [column.position for column in columns]
        self._connection.executemany(
            "INSERT INTO documents (number, id, digest, text) VALUES (?, ?, ?, ?)",
            (
                (number, id, document_digest(number, id, text, present(positions, values)), text)
                for number, (id, text, values) in enumerate(
                    zip(ids, texts, known, strict=True), first
                )
            ),
        )
        names = "".join(f", c{position}" for position in positions)
        self._connection.executemany(
            f"INSERT INTO metadata (number{names}) VALUES (?{', ?' * len(positions)})",
            ((number, *values) for number, values in enumerate(known, first)),
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

    def _shrink(self, removed: float) -> None:
        """Give back the space of removed passages, where these are a quarter of the others."""
        free, pages = (
            self._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("freelist_count", "page_count")
        )
        if removed >= 0.25 or 4 * free >= pages:
            with suppress(sqlite3.Error):  # it needs as much space again for a while
                self._connection.execute("VACUUM")


def _named(connection: sqlite3.Connection) -> set[int]:
    return {number for (number,) in connection.execute("SELECT number FROM segments")}


@contextmanager
def open_writer(folder: Path) -> Iterator[Writer]:
    """Be the one writer of a collection, of all processes."""
    with only_writer(folder):
        with explaining(folder, is_writing=True):
            connection = connect_writer(folder)
        try:
            with explaining(folder, is_writing=True):
                (folder / SEGMENTS).mkdir(exist_ok=True)
                flush_folder(folder)
                if merge_log(connection):
                    for path in unnamed_folders(folder, _named(connection)):
                        shutil.rmtree(path, ignore_errors=True)  # of writers that were killed
            yield Writer(folder, connection)
            merge_log(connection)  # so that closing has nothing to write that readers wait for
        finally:
            connection.close()
