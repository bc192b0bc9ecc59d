"""Looking for damage: everything that a collection holds, against what was written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from embedtopics.errors import CorruptFileError
from embedtopics.protocols import Int64Array
from embedtopics.retrieval.collection.catalog import CATALOG, ask, document_digest, read_meta
from embedtopics.retrieval.collection.copying import find_folder
from embedtopics.retrieval.collection.metadata import read_columns
from embedtopics.retrieval.collection.reading import living_passages
from embedtopics.retrieval.collection.segments import (
    SegmentFile,
    check_sizes,
    damaged_files,
    list_files,
    read_passages,
    segment_folder,
    unnamed_folders,
)

__all__ = ["Problem", "check", "check_presence", "find_damage", "require_whole"]

_RESTORE = "restore the folder from a copy, or build the collection again"


@dataclass(frozen=True)
class Problem:
    """Something that is not as it was written.

    Parameters
    ----------
    file : Path
    what : str
        What is wrong with it.
    remedy : str
        What to do.
    """

    file: Path
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}; {self.remedy}"


def check(folder: str | Path) -> list[Problem]:
    """Look at all that a collection holds.

    Every file is read and compared with the size and checksum recorded when it was written, every
    document with its own checksum; documents, metadata and passages must belong together.

    Parameters
    ----------
    folder : str or Path

    Returns
    -------
    list of Problem
        Empty where all is well. Folders that a killed writer left behind are among them.

    Raises
    ------
    InputError
        If there is no such folder, or it cannot be read.
    """
    folder = find_folder(folder)
    problems = find_damage(folder)
    try:
        named = ask(folder, lambda c: {n for (n,) in c.execute("SELECT number FROM segments")})
    except CorruptFileError:
        return problems
    problems += [
        Problem(
            path, "no version of the collection names it",
            "nothing is lost: the next writer deletes it, unless one is at work on it now",
        )
        for path in unnamed_folders(folder, named)
    ]  # fmt: skip
    return problems


def find_damage(folder: Path) -> list[Problem]:
    """Return all that is damaged, what a killed writer left behind not counted."""
    while True:
        try:
            version, problems, files = ask(folder, _check_catalog)
            problems += [
                Problem(path, what, _RESTORE) for path, what in damaged_files(folder, files)
            ]
            problems += ask(folder, lambda c: list(_check_passages(c, folder)))
            if ask(folder, lambda c: int(read_meta(c, "version"))) == version:
                return [Problem(folder / p.file, p.what, p.remedy) for p in problems]
        except CorruptFileError as error:
            return [Problem(folder / CATALOG, str(error), _RESTORE)]
        except sqlite3.Error as error:  # such as a table that is not there
            return [Problem(folder / CATALOG, f"it is damaged ({error})", _RESTORE)]


def check_presence(folder: Path) -> None:
    """Make sure that all files are there and have their sizes, which takes no time.

    Raises
    ------
    CorruptFileError
        If one is missing or has another size.
    """
    while True:
        files = ask(folder, list_files)
        found = next(check_sizes(folder, files), None)
        if found is None:
            return
        if files == ask(folder, list_files):  # a compaction deletes files, too
            raise CorruptFileError(f"{found[0]} is damaged: {found[1]}; {_RESTORE}")


def _check_catalog(
    connection: sqlite3.Connection,
) -> tuple[int, list[Problem], list[SegmentFile]]:
    problems = [
        Problem(Path(CATALOG), f"SQLite finds: {message}", _RESTORE)
        for (message,) in connection.execute("PRAGMA integrity_check(20)")
        if message != "ok"
    ]
    doubled = connection.execute(
        "SELECT id, count(*) FROM documents NOT INDEXED GROUP BY id HAVING count(*) > 1"
    )
    problems += [
        Problem(Path(CATALOG), f"the id {id!r} has {count} documents", _RESTORE)
        for id, count in doubled
    ]
    lacking = connection.execute(
        "SELECT number FROM segments WHERE n_files != "
        "(SELECT count(*) FROM files WHERE segment = segments.number)"
    )
    problems += [
        Problem(Path(CATALOG), f"it does not name all files of segment {number:06d}", _RESTORE)
        for (number,) in lacking
    ]
    problems += _check_documents(connection)
    return int(read_meta(connection, "version")), problems, list_files(connection)


def _check_documents(connection: sqlite3.Connection) -> Iterator[Problem]:
    """Compare each document with its checksum."""
    positions = [column.position for column in read_columns(connection).values()]
    names = "".join(f", metadata.c{position}" for position in positions)
    rows = connection.execute(
        f"SELECT number, id, digest, text, metadata.number{names} FROM documents "
        "LEFT JOIN metadata USING (number) ORDER BY number"
    )
    for number, id, digest, text, row, *values in rows:
        if row is None:
            yield Problem(Path(CATALOG), f"the document {id!r} has no metadata", _RESTORE)
            continue
        known = [(at, v) for at, v in zip(positions, values, strict=True) if v is not None]
        if document_digest(number, id, text, known) != digest:
            what = f"the document {id!r} differs from its checksum"
            yield Problem(Path(CATALOG), what, _RESTORE)
    query = "SELECT number FROM metadata WHERE number NOT IN (SELECT number FROM documents)"
    for (number,) in connection.execute(query):
        yield Problem(Path(CATALOG), f"metadata {number} belong to no document", _RESTORE)


def _check_passages(connection: sqlite3.Connection, folder: Path) -> Iterator[Problem]:
    """Compare documents with the passages of segments."""
    numbers = _numbers(connection, "documents")
    removed = _numbers(connection, "removed")
    with_passages = [np.empty(0, np.int64)]
    query = "SELECT number, first, last, n_passages, n_living FROM segments"
    for segment, first, last, n_passages, n_living in connection.execute(query):
        below = segment_folder(folder, segment)
        try:
            documents, _ = read_passages(below)
        except (CorruptFileError, FileNotFoundError) as error:
            if isinstance(error, CorruptFileError):
                yield Problem(below / "passages.npz", "it cannot be read", _RESTORE)
            with_passages.append(numbers[(numbers >= first) & (numbers <= last)])
            continue
        alive = documents[living_passages(documents, removed)]
        with_passages.append(alive)
        lost = np.setdiff1d(alive, numbers)
        if lost.size:
            what = f"passages of {lost.size:,} documents that are not there, such as {lost[0]}"
            yield Problem(below, what, _RESTORE)
        outside = ((documents < first) | (documents > last)).any() or (np.diff(documents) < 0).any()
        if len(documents) != n_passages or len(np.unique(alive)) != n_living or outside:
            yield Problem(below, "its passages are not those that the catalogue counts", _RESTORE)
    bare = np.setdiff1d(numbers, np.concatenate(with_passages))
    if bare.size:
        what = f"{bare.size:,} documents have no passage, such as number {bare[0]}"
        yield Problem(Path(CATALOG), what, _RESTORE)
    both = np.intersect1d(numbers, removed)
    if both.size:
        what = f"{both.size:,} documents are there and removed, such as number {both[0]}"
        yield Problem(Path(CATALOG), what, _RESTORE)


def _numbers(connection: sqlite3.Connection, table: str) -> Int64Array:
    rows = connection.execute(f"SELECT number FROM {table} ORDER BY number")
    return np.fromiter((number for (number,) in rows), np.int64)


def require_whole(folder: Path) -> None:
    """Read and compare everything.

    Raises
    ------
    CorruptFileError
        If something is damaged.
    """
    problems = find_damage(folder)
    if problems:
        more = f" (and {len(problems) - 1:,} more problems)" if len(problems) > 1 else ""
        raise CorruptFileError(f"{problems[0]}{more}")
