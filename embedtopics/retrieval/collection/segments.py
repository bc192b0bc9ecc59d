"""The files of segments: written once, put on disk, measured, and never changed."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from embedtopics.errors import CorruptFileError
from embedtopics.protocols import Int32Array, Int64Array
from embedtopics.retrieval.collection.catalog import SEGMENTS, flush_folder
from embedtopics.retrieval.collection.views import SegmentView

__all__ = [
    "MakeSegment", "SegmentFile", "Sources", "check_sizes", "damage", "damaged_files",
    "is_segment_name", "list_files", "read_passages", "seal", "segment_folder", "sweep",
    "unnamed_folders", "write_passages",
]  # fmt: skip

PASSAGES = "passages.npz"


@dataclass(frozen=True, eq=False)
class Sources:
    """Where the passages of a compacted segment were before, so that vectors can be copied.

    Parameters
    ----------
    segments : tuple of SegmentView
    segment : int32 ndarray of shape (n_passages,)
        Position in `segments`.
    row : int64 ndarray of shape (n_passages,)
        In that segment.
    """

    segments: tuple[SegmentView, ...]
    segment: Int32Array
    row: Int64Array


MakeSegment: TypeAlias = Callable[[Path, Int64Array, Int32Array, Sources | None], object]
"""``make_segment(folder, documents, spans, sources)`` writes all else that a segment has into its
folder; `sources` is None for new documents."""


@dataclass(frozen=True)
class SegmentFile:
    """A file as it was written.

    Parameters
    ----------
    segment : int
    path : str
        Below the segment's folder, with slashes.
    bytes : int
    sha256 : str
    """

    segment: int
    path: str
    bytes: int
    sha256: str

    def below(self, folder: Path) -> Path:
        """Return where it is in a collection."""
        return segment_folder(folder, self.segment) / self.path


def segment_folder(folder: Path, number: int) -> Path:
    """Return the folder of a segment."""
    return folder / SEGMENTS / f"{number:06d}"


def list_files(connection: sqlite3.Connection) -> list[SegmentFile]:
    """Return all files that the catalogue names."""
    query = "SELECT segment, path, bytes, sha256 FROM files ORDER BY segment, path"
    return [SegmentFile(*row) for row in connection.execute(query)]


def write_passages(folder: Path, documents: Int64Array, spans: Int32Array) -> None:
    """Write which document each passage belongs to, and where it is in its text."""
    np.savez(folder / PASSAGES, documents=documents, spans=spans)


def read_passages(folder: Path) -> tuple[Int64Array, Int32Array]:
    """Read what `write_passages` wrote; the arrays cannot be written to.

    Raises
    ------
    CorruptFileError
        If the file is damaged.
    FileNotFoundError
        If it is missing; a compaction may have deleted it.
    """
    path = folder / PASSAGES
    try:
        # Opened here, because NumPy leaves a file open that it finds damaged.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            documents, spans = arrays["documents"], arrays["spans"]
        if documents.ndim != 1 or spans.shape != (len(documents), 2):
            raise ValueError(f"arrays of the shapes {documents.shape} and {spans.shape}")
    except FileNotFoundError:
        raise
    except Exception as error:  # damage makes zip files and arrays fail in many ways
        raise damage(path, str(error)) from error
    for array in (documents, spans):
        array.flags.writeable = False
    return documents.astype(np.int64, copy=False), spans.astype(np.int32, copy=False)


def damage(path: Path, what: str) -> CorruptFileError:
    """Return the error for a damaged file of a segment."""
    return CorruptFileError(
        f"{path} is damaged ({what}); restore the folder from a copy, or build the collection again"
    )


def seal(folder: Path, number: int) -> list[SegmentFile]:
    """Put all files of a new segment on disk, then the names of the files, and measure them."""
    root = segment_folder(folder, number)
    paths = []
    for path in sorted(root.rglob("*")):
        if path.is_file():
            _flush_file(path)
            paths.append(path)
    for below in sorted((p for p in root.rglob("*") if p.is_dir()), reverse=True):
        flush_folder(below)
    for above in (root, root.parent, folder):
        flush_folder(above)
    return [
        SegmentFile(number, path.relative_to(root).as_posix(), path.stat().st_size, digest)
        for path, digest in zip(paths, _checksums(paths), strict=True)
    ]


def _flush_file(path: Path) -> None:
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksums(paths: Sequence[Path]) -> list[str]:
    """Hash files beside one another, which releases the interpreter."""
    with ThreadPoolExecutor(4) as threads:
        return list(threads.map(checksum, paths))


def check_sizes(folder: Path, files: Sequence[SegmentFile]) -> Iterator[tuple[Path, str]]:
    """Give each file that is missing, or has another size than was written, and which."""
    for file in files:
        path = file.below(folder)
        if not path.is_file():
            yield path, "it is missing"
        elif path.stat().st_size != file.bytes:
            yield path, f"it has {path.stat().st_size:,} bytes, not the {file.bytes:,} written"


def damaged_files(folder: Path, files: Sequence[SegmentFile]) -> Iterator[tuple[Path, str]]:
    """Read all files, and give each that is not as it was written, and what is wrong with it."""
    wrong = dict(check_sizes(folder, files))
    for file in files:
        path = file.below(folder)
        if path in wrong:
            yield path, wrong[path]
        elif checksum(path) != file.sha256:
            yield path, "its checksum differs from the one recorded when written"


def unnamed_folders(folder: Path, named: set[int]) -> list[Path]:
    """Return folders of segments that the catalogue does not name; other folders are not ours."""
    above = folder / SEGMENTS
    found = sorted(above.iterdir()) if above.is_dir() else []
    names = {segment_folder(folder, number).name for number in named}
    return [
        path
        for path in found
        if is_segment_name(path.name) and path.name not in names and not path.is_symlink()
    ]


def is_segment_name(name: str) -> bool:
    """Tell whether a folder of this name was made here."""
    return len(name) >= 6 and name.isascii() and name.isdigit()


def sweep(folder: Path, named: set[int]) -> None:
    """Delete what writers that were killed left behind."""
    for path in unnamed_folders(folder, named):
        shutil.rmtree(path, ignore_errors=True)
