"""One version of a collection, and the files of its segments."""

import sqlite3
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from embedtopics._utils.folders import flush_file, flush_folder, is_below, sha256_of
from embedtopics.errors import CorruptFileError
from embedtopics.protocols import Int32Array, Int64Array
from embedtopics.retrieval.storage._catalog import (
    CATALOG,
    SEGMENTS,
    ask,
    damage,
    read_numbers,
    read_settings,
    read_stamp,
    read_version,
)

PASSAGES = "passages.npz"

PassageCache = dict[str, tuple[Int64Array, Int32Array]]
"""Documents and spans of passages, by the checksum of the file that holds them."""


@dataclass(frozen=True, eq=False)
class SegmentView:
    """One immutable part of a collection; an equal `content` means equal files."""

    name: str
    folder: Path
    documents: Int64Array  # (n_passages,), of each passage, ascending
    spans: Int32Array  # (n_passages, 2), its characters
    alive: npt.NDArray[np.bool_]  # (n_passages,), False after a removal of the document
    files: tuple["SegmentFile", ...]

    @property
    def content(self) -> str:
        """The checksums of all files."""
        return "".join(file.sha256 for file in self.files)

    @property
    def findable(self) -> npt.NDArray[np.bool_]:
        """Passages of living documents that have text, (n_passages,)."""
        return np.asarray(self.alive & (self.spans[:, 1] > self.spans[:, 0]))

    def check(self) -> None:
        """Raise CorruptFileError where a file differs from its checksum."""
        for path, what in damaged_files(self.folder.parent.parent, self.files):
            raise damage(path, what)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One version of a collection; every write raises `version` and draws a new `stamp`."""

    version: int
    stamp: str
    settings: Mapping[str, Any]
    segments: tuple[SegmentView, ...]
    n_documents: int

    @property
    def n_passages(self) -> int:
        """Passages of all documents of this version."""
        return sum(int(segment.alive.sum()) for segment in self.segments)


@dataclass(frozen=True, eq=False)
class Sources:
    """The former place of each passage of a compacted segment: segment and row."""

    segments: tuple[SegmentView, ...]
    segment: Int32Array
    row: Int64Array


MakeSegment: TypeAlias = Callable[[Path, Int64Array, Int32Array, Sources | None], object]
"""``make_segment(folder, documents, spans, sources)`` writes the vectors and indices of a segment
into its folder; `sources` is None for new documents."""


@dataclass(frozen=True)
class SegmentFile:
    """A file as it was written; `path` is relative to the folder of the segment, with slashes."""

    segment: int
    path: str
    bytes: int
    sha256: str

    def below(self, folder: Path) -> Path:
        """Return the path of the file in a collection."""
        return segment_folder(folder, self.segment) / self.path


def segment_folder(folder: Path, number: int) -> Path:
    """Return the folder of a segment."""
    return folder / SEGMENTS / f"{number:06d}"


def list_files(connection: sqlite3.Connection) -> list[SegmentFile]:
    """Return all files that the catalog names."""
    query = "SELECT segment, path, bytes, sha256 FROM files ORDER BY segment, path"
    files = [SegmentFile(*row) for row in connection.execute(query)]
    for file in files:
        kinds = tuple(type(getattr(file, field.name)) for field in fields(file))
        if kinds != (int, str, int, str) or not is_below(file.path):
            raise damage(CATALOG, f"it names {str(file.path)[:100]!r}, a file outside the index")
    return files


def read_passages(folder: Path) -> tuple[Int64Array, Int32Array]:
    """Return the document and the span of each passage, as read-only arrays."""
    path = folder / PASSAGES
    try:
        # Opened here, because NumPy leaves a damaged file open.
        with path.open("rb") as file:
            with zipfile.ZipFile(file) as archive:
                # As they are written; a packed file may unpack to any size.
                if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
                    raise ValueError("arrays that are packed")
            file.seek(0)
            with np.load(file, allow_pickle=False) as arrays:
                documents, spans = arrays["documents"], arrays["spans"]

        if documents.ndim != 1 or spans.shape != (len(documents), 2):
            raise ValueError(f"arrays of the shapes {documents.shape} and {spans.shape}")
        if not {documents.dtype.kind, spans.dtype.kind} <= {"i"}:
            raise ValueError(f"arrays of {documents.dtype} and {spans.dtype}")
        if not len(documents) or documents[0] < 0 or (np.diff(documents) < 0).any():
            raise ValueError("documents that do not ascend")
        if (spans[:, 0] < 0).any() or (spans[:, 1] < spans[:, 0]).any():
            raise ValueError("passages that end before they begin")
    except FileNotFoundError:
        raise
    except Exception as error:  # damaged zip files and arrays fail in many ways
        raise damage(path, str(error)) from error

    for array in (documents, spans):
        array.flags.writeable = False
    return documents.astype(np.int64, copy=False), spans.astype(np.int32, copy=False)


def seal(folder: Path, number: int) -> list[SegmentFile]:
    """Flush all files of a new segment and their folders to disk, and take their checksums."""
    root = segment_folder(folder, number)
    paths = []
    for path in sorted(root.rglob("*")):
        if path.is_file():
            flush_file(path)
            paths.append(path)
    for below in sorted((p for p in root.rglob("*") if p.is_dir()), reverse=True):
        flush_folder(below)
    for above in (root, root.parent, folder):
        flush_folder(above)
    return [
        SegmentFile(number, path.relative_to(root).as_posix(), path.stat().st_size, digest)
        for path, digest in zip(paths, sha256_of(paths), strict=True)
    ]


def check_sizes(folder: Path, files: Sequence[SegmentFile]) -> Iterator[tuple[Path, str]]:
    """Yield each file that is missing or has another size than written, and what is wrong."""
    root = folder.resolve()
    for file in files:
        path = file.below(folder)
        if not path.resolve().is_relative_to(root):
            yield path, "it is a link out of the index"
            continue
        try:
            size = path.stat().st_size if path.is_file() else None
        except OSError:  # deleted since, or with a name that cannot be
            size = None

        if size is None:
            yield path, "it is missing"
        elif size != file.bytes:
            yield path, f"it has {size:,} bytes instead of {file.bytes:,}"


def damaged_files(folder: Path, files: Sequence[SegmentFile]) -> Iterator[tuple[Path, str]]:
    """Read all files; yield each that differs from what was written, and what is wrong."""
    wrong = dict(check_sizes(folder, files))
    there = {path: file for file in files if (path := file.below(folder)) not in wrong}
    for (path, file), digest in zip(there.items(), sha256_of(there), strict=True):
        if digest != file.sha256:
            wrong[path] = "its checksum differs from the one recorded at writing"
    yield from sorted(wrong.items())


def unnamed_folders(folder: Path, named: set[int]) -> list[Path]:
    """Return the folders of segments that the catalog does not name."""
    above = folder / SEGMENTS
    paths = sorted(above.iterdir()) if above.is_dir() else []
    names = {segment_folder(folder, number).name for number in named}
    return [
        path
        for path in paths
        if is_segment_name(path.name) and path.name not in names and not path.is_symlink()
    ]


def named_segments(connection: sqlite3.Connection) -> set[int]:
    """Return the numbers of the segments that the catalog names."""
    return {number for (number,) in connection.execute("SELECT number FROM segments")}


def is_segment_name(name: str) -> bool:
    """Return whether a folder has the name of a segment."""
    return len(name) >= 6 and name.isascii() and name.isdigit()


def read_snapshot(folder: Path, cache: PassageCache) -> Snapshot:
    """Read one version of a collection."""
    while True:
        try:
            return ask(folder, lambda connection: _read_version(connection, folder, cache))
        except (CorruptFileError, sqlite3.Error):
            raise
        except (TypeError, ValueError, OverflowError) as error:  # a value of a wrong type
            raise damage(folder / CATALOG, str(error)[:200]) from error
        except FileNotFoundError as error:
            # A compaction deletes segments once there is a version without them.
            path = Path(error.filename)
            named = {segment_folder(folder, n) for n in ask(folder, named_segments)}
            if path.parent in named and not path.exists():
                raise damage(path, "it is missing") from None


def _read_version(connection: sqlite3.Connection, folder: Path, cache: PassageCache) -> Snapshot:
    files: dict[int, list[SegmentFile]] = {}
    for file in list_files(connection):
        files.setdefault(file.segment, []).append(file)
    removed = read_numbers(connection, "SELECT number FROM removed ORDER BY number")
    views, used, n_documents = [], {}, 0
    names = "number, first, last, n_passages, n_living, n_files"
    for number, *stored in connection.execute(f"SELECT {names} FROM segments ORDER BY number"):
        below = segment_folder(folder, number)
        of_files = tuple(files.get(number, ()))
        checksum = next((file.sha256 for file in of_files if file.path == PASSAGES), None)
        if checksum is None:
            raise damage(below / PASSAGES, "the catalog does not name it")
        documents, spans = used[checksum] = cache.get(checksum) or read_passages(below)

        alive = ~np.isin(documents, removed)
        alive.flags.writeable = False
        n_living = int(np.count_nonzero(np.diff(documents[alive], prepend=-1)))
        expected = [*documents[[0, -1]].tolist(), len(documents), n_living, len(of_files)]
        if stored != expected:
            raise damage(CATALOG, f"its numbers of the segment {below.name} do not fit its files")
        views.append(SegmentView(below.name, below, documents, spans, alive, of_files))
        n_documents += n_living

    for checksum in cache.keys() - used.keys():
        cache.pop(checksum, None)
    cache.update(used)

    return Snapshot(
        read_version(connection),
        read_stamp(connection),
        read_settings(connection),
        tuple(views),
        n_documents,
    )
