"""Writing to a collection: each call is one write, which is there whole or not at all."""

from __future__ import annotations

import secrets
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from embedtopics._locking import only_writer
from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array, Int64Array
from embedtopics.results import Decision
from embedtopics.retrieval.collection.annotating import write_annotations
from embedtopics.retrieval.collection.batches import Batch, read_batch
from embedtopics.retrieval.collection.catalog import (
    SEGMENTS,
    connect_writer,
    document_digest,
    explaining,
    flush_folder,
    merge_log,
)
from embedtopics.retrieval.collection.foreseeing import find_replaced
from embedtopics.retrieval.collection.metadata import (
    Column,
    GivenColumn,
    fit_columns,
    read_frame,
    store_columns,
)
from embedtopics.retrieval.collection.reading import find_numbers, read_snapshot
from embedtopics.retrieval.collection.segments import (
    MakeSegment,
    SegmentFile,
    Sources,
    damage,
    damaged_files,
    list_files,
    seal,
    segment_folder,
    sweep,
    write_passages,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Writer", "open_writer"]


class Writer:
    """The one that writes a collection; made by `Collection.writing`.

    Each call is a write of its own: when it returns, all of it is on disk, and when it fails or is
    killed, nothing of it is.

    Attributes
    ----------
    decisions : list of Decision
        What was done to metadata so far.
    """

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self._folder = folder
        self._connection = connection
        self._is_uncertain = False
        self.decisions: list[Decision] = []

    def add(
        self,
        ids: Iterable[object],
        texts: Iterable[object],
        metadata: pd.DataFrame | None,
        passages: tuple[npt.ArrayLike, npt.ArrayLike],
        make_segment: MakeSegment,
        *,
        update: bool = False,
    ) -> Int64Array:
        """Add documents.

        Parameters
        ----------
        ids : iterable of str, int or float
            A different one for each. As in Python, 1 and 1.0 are the same and "1" is another.
        texts : iterable of str
        metadata : pandas.DataFrame or None
            One row a document. Columns that are new are missing for older documents. Integers of
            more than 64 bits are refused; dates with a time zone are kept in UTC.
        passages : (int array of shape (n_passages,), int array of shape (n_passages, 2))
            Position of each passage's document in this call, and its span of characters. In the
            order of documents; each has one at least.
        make_segment : callable
            ``make_segment(folder, documents, spans, sources)`` writes what else the segment has
            into `folder`; `documents` are numbers in the collection, `sources` is None.
        update : bool
            Replace documents that are there; they get a new number. Otherwise they are refused.

        Returns
        -------
        int64 ndarray of shape (n_documents,)
            Numbers of the new documents. Without documents nothing is written, and no version is
            made.

        Raises
        ------
        InputError
            If something is not as it should be, or cannot be written.
        """
        batch = read_batch(ids, texts, metadata, passages)
        if not batch.ids:
            return np.empty(0, np.int64)
        notes: list[Decision] = []
        given = [] if metadata is None else read_frame(metadata, notes)
        with explaining(self._folder, is_writing=True):
            replaced = find_replaced(self._connection, batch.ids, update)
            columns, given = fit_columns(self._connection, given, notes)
            first = self._next_number("documents")
            documents = first + batch.positions
            with self._new_segment(documents, batch.spans, make_segment, None) as files:
                with self._transaction():
                    emptied = self._tombstone(replaced)
                    store_columns(self._connection, columns)
                    self._insert(first, batch, columns, given)
                    self._name_segment(files, documents, len(batch.ids))
        self._delete(emptied)
        self.decisions += notes
        return np.arange(first, first + len(batch.ids), dtype=np.int64)

    def remove(
        self, ids: Iterable[object], *, missing: Literal["raise", "ignore"] = "raise"
    ) -> int:
        """Remove documents; their texts and metadata are overwritten in the file.

        That is done when the writer ends; or, where another process still reads an older version,
        when the next one does.

        Parameters
        ----------
        ids : iterable of str, int or float
            May repeat.
        missing : {"raise", "ignore"}
            What to do about ids that are not there.

        Returns
        -------
        int
            Documents that were removed. Where there are none, no version is made.

        Raises
        ------
        InputError
            If ids are not there; nothing is removed then.
        """
        if missing not in ("raise", "ignore"):
            raise InputError(f"missing must be 'raise' or 'ignore'; got {missing!r}")
        wanted = list(ids)
        with explaining(self._folder, is_writing=True):
            found = find_numbers(self._connection, wanted)
            unknown = [id for id in dict.fromkeys(wanted) if id not in found]
            if unknown and missing == "raise":
                raise InputError(
                    f"{len(unknown):,} of the ids to remove are not in the collection, such as "
                    f"{', '.join(map(repr, unknown[:3]))}; leave them out, or pass missing='ignore'"
                )
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

        Parameters
        ----------
        make_segment : callable
            As in `add`, but `sources` is a `Sources`: it says where each passage was before, so
            that vectors can be copied.
        always : bool
            Even if there is one segment and nothing was removed.

        Returns
        -------
        bool
            Whether there was anything to do.

        Raises
        ------
        InputError
            If it cannot be written.
        CorruptFileError
            If a file differs from its checksum: a new one must not make damage good.
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
        self, first: int, batch: Batch, columns: list[Column], given: list[GivenColumn]
    ) -> None:
        n = len(batch.ids)
        known = list(zip(*(column.values for column in given), strict=True)) if given else [()] * n
        positions = [column.position for column in columns]
        self._connection.executemany(
            "INSERT INTO documents (number, id, digest, text) VALUES (?, ?, ?, ?)",
            (
                (number, id, document_digest(number, id, text, _present(positions, values)), text)
                for number, (id, text, values) in enumerate(
                    zip(batch.ids, batch.texts, known, strict=True), first
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


def _present(positions: list[int], values: tuple[Any, ...]) -> list[tuple[int, Any]]:
    return sorted((at, v) for at, v in zip(positions, values, strict=True) if v is not None)


def _named(connection: sqlite3.Connection) -> set[int]:
    return {number for (number,) in connection.execute("SELECT number FROM segments")}


@contextmanager
def open_writer(folder: Path) -> Iterator[Writer]:
    """Be the one writer of a collection, of all processes.

    Raises
    ------
    InputError
        If another writes it, or nothing can be written there.
    CorruptFileError
        If there is no collection, or its catalogue is damaged.
    """
    with only_writer(folder):
        with explaining(folder, is_writing=True):
            connection = connect_writer(folder)
        try:
            with explaining(folder, is_writing=True):
                (folder / SEGMENTS).mkdir(exist_ok=True)
                flush_folder(folder)
                if merge_log(connection):
                    sweep(folder, _named(connection))
            yield Writer(folder, connection)
            merge_log(connection)  # so that closing has nothing to write that readers wait for
        finally:
            connection.close()
