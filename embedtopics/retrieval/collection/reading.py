"""What is asked of a collection: a version of it, its documents, those under a condition."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from embedtopics.errors import CorruptFileError
from embedtopics.protocols import Int32Array, Int64Array
from embedtopics.retrieval.collection.batches import DocumentId, checked_id
from embedtopics.retrieval.collection.catalog import ask, in_chunks, read_meta
from embedtopics.retrieval.collection.metadata import read_columns, restore_row
from embedtopics.retrieval.collection.segments import (
    PASSAGES,
    damage,
    read_passages,
    segment_folder,
)
from embedtopics.retrieval.collection.views import SegmentView, Snapshot

__all__ = [
    "PassageCache", "StoredDocument", "fetch_batch", "fetch_documents", "find_candidates",
    "find_numbers", "read_snapshot",
]  # fmt: skip

PassageCache = dict[str, tuple[Int64Array, Int32Array]]
"""Arrays of a segment by the checksum of their file, which is what they depend on."""


class StoredDocument(NamedTuple):
    """A document as it is stored.

    Parameters
    ----------
    number : int
        In the collection; later documents have higher ones, and none is used twice.
    id : str, int or float
        As the caller gave it.
    text : str
    metadata : mapping of str to object
        By the caller's names: text, int, float, bool, datetime.datetime, or None where it is
        missing.
    """

    number: int
    id: DocumentId
    text: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class _Version:
    """What the catalogue says of a version."""

    number: int
    stamp: str
    settings: Mapping[str, Any]
    segments: list[tuple[int, int, str, str]]  # number, passages, checksums of them and of all
    removed: Int64Array
    n_documents: int


def read_snapshot(folder: Path, cache: PassageCache) -> Snapshot:
    """Read one version of a collection.

    Parameters
    ----------
    folder : Path
    cache : dict
        Arrays of segments that were read before; those of segments that are no more are dropped.

    Raises
    ------
    CorruptFileError
        If a segment's table of passages is missing or damaged.
    """
    while True:
        version = ask(folder, _read_version)
        try:
            return _assemble(folder, version, cache)
        except FileNotFoundError as error:
            # A compaction deletes segments once there is a version without them.
            if ask(folder, lambda c: str(read_meta(c, "stamp"))) == version.stamp:
                raise damage(Path(error.filename), "it is missing") from None


def _read_version(connection: sqlite3.Connection) -> _Version:
    segments = connection.execute(
        "SELECT number, n_passages, sha256, n_living FROM segments LEFT JOIN files ON "
        "files.segment = segments.number AND files.path = ? ORDER BY number",
        (PASSAGES,),
    ).fetchall()
    contents: dict[int, str] = {}
    for segment, checksum in connection.execute(
        "SELECT segment, sha256 FROM files ORDER BY segment, path"
    ):
        contents[segment] = contents.get(segment, "") + checksum
    removed = connection.execute("SELECT number FROM removed ORDER BY number")
    return _Version(
        int(read_meta(connection, "version")),
        str(read_meta(connection, "stamp")),
        json.loads(read_meta(connection, "settings")),
        [
            (number, n_passages, checksum or "", contents.get(number, ""))
            for number, n_passages, checksum, _ in segments
        ],
        _as_numbers(removed),
        sum(n_living for *_, n_living in segments),
    )


def _as_numbers(rows: Iterable[tuple[int]]) -> Int64Array:
    return np.fromiter((number for (number,) in rows), np.int64)


def _assemble(folder: Path, version: _Version, cache: PassageCache) -> Snapshot:
    views, used = [], {}
    for number, n_passages, checksum, content in version.segments:
        below = segment_folder(folder, number)
        if not checksum:
            raise damage(below / PASSAGES, "the catalogue does not name it")
        arrays = cache.get(checksum) or read_passages(below)
        documents, spans = used[checksum] = arrays
        if len(documents) != n_passages:
            raise damage(below / PASSAGES, f"{len(documents):,} passages, not {n_passages:,}")
        alive = living_passages(documents, version.removed)
        views.append(SegmentView(below.name, below, documents, spans, alive, content))
    for checksum in cache.keys() - used.keys():
        cache.pop(checksum, None)
    cache.update(used)
    return Snapshot(
        version.number, version.stamp, version.settings, tuple(views), version.n_documents
    )


def living_passages(documents: Int64Array, removed: Int64Array) -> np.ndarray:
    """Return which passages have a document that was not removed; both arrays ascend."""
    alive = np.ones(len(documents), dtype=bool)
    starts = np.searchsorted(documents, removed, "left")
    ends = np.searchsorted(documents, removed, "right")
    edges = np.zeros(len(documents) + 1, np.int64)
    np.add.at(edges, starts, 1)
    np.add.at(edges, ends, -1)
    alive[np.cumsum(edges[:-1]) > 0] = False
    alive.flags.writeable = False
    return alive


def find_numbers(connection: sqlite3.Connection, ids: Sequence[object]) -> dict[DocumentId, int]:
    """Return the number of each id that there is."""
    checked = [checked_id(value, row) for row, value in enumerate(ids)]
    found: dict[DocumentId, int] = {}
    for marks, part in in_chunks(checked):
        found.update(
            connection.execute(f"SELECT id, number FROM documents WHERE id IN ({marks})", part)
        )
    return found


def fetch_documents(
    connection: sqlite3.Connection, numbers: Sequence[int]
) -> list[StoredDocument | None]:
    """Return the documents of some numbers, None for each that is not there."""
    wanted = [int(number) for number in numbers]
    found: dict[int, StoredDocument] = {}
    for marks, part in in_chunks(sorted(set(wanted))):
        for document in _select(connection, f"number IN ({marks})", part):
            found[document.number] = document
    return [found.get(number) for number in wanted]


def fetch_batch(connection: sqlite3.Connection, after: int, size: int) -> list[StoredDocument]:
    """Return the next documents behind a number, in the order of their numbers."""
    return list(_select(connection, "number > ? ORDER BY number LIMIT ?", (after, size)))


def _select(
    connection: sqlite3.Connection, condition: str, parameters: Sequence[Any]
) -> Iterator[StoredDocument]:
    columns = list(read_columns(connection).values())
    names = "".join(f", {column.sql}" for column in columns)
    query = (
        f"SELECT number, id, text{names} FROM documents JOIN metadata USING (number) "
        f"WHERE {condition}"
    )
    for number, id, text, *values in connection.execute(query, parameters):
        try:
            yield StoredDocument(number, id, text, restore_row(columns, tuple(values)))
        except (TypeError, ValueError) as error:
            raise CorruptFileError(
                f"the metadata of the document {id!r} are damaged ({error}); restore the folder "
                "from a copy, or build the collection again"
            ) from error


def find_candidates(
    connection: sqlite3.Connection, condition: str, parameters: Sequence[Any]
) -> Int64Array:
    """Return the numbers of the documents that meet a condition, ascending."""
    # SQLite leaves the join out where the condition does not speak of documents.
    query = (
        "SELECT metadata.number FROM metadata LEFT JOIN documents "
        f"ON documents.number = metadata.number WHERE ({condition}) ORDER BY metadata.number"
    )
    return _as_numbers(connection.execute(query, tuple(parameters)))
