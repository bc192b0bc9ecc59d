"""Creating, copying and checking the folder of a collection."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from embedtopics._utils.folders import (
    find_folder,
    flush_file,
    flush_folder,
    fresh_folder,
    only_writer,
    take_the_place,
)
from embedtopics.errors import CorruptFileError, InputError, Remedy
from embedtopics.retrieval.storage._catalog import (
    CATALOG,
    ENCODER,
    SEGMENTS,
    ask,
    damage,
    document_digest,
    explaining,
    make_catalog,
    present,
    read_columns,
    read_version,
)
from embedtopics.retrieval.storage._segments import (
    check_sizes,
    damaged_files,
    is_segment_name,
    list_files,
    named_segments,
    unnamed_folders,
)

if TYPE_CHECKING:
    import pandas as pd


def create_folder(folder: Path, settings: str) -> None:
    """Create an empty collection."""

    def fill(fresh: Path) -> None:
        (fresh / SEGMENTS).mkdir()
        make_catalog(fresh / CATALOG, settings)

    _appear(folder, fill, overwrite=False)


def copy_collection(source: Path, target: Path, overwrite: bool) -> None:
    """Copy one version of a collection; link its files, which never change, where possible."""
    if target == source or source in target.parents or target in source.parents:
        raise InputError("folder", f"neither inside nor around the index in {source}", str(target))
    ask(source, lambda connection: None)  # report damage of the source as such
    _appear(target, lambda fresh: _copy_into(source, fresh), overwrite)


def _copy_into(source: Path, fresh: Path) -> None:
    while True:
        with closing(sqlite3.connect(fresh / CATALOG)) as copy:
            ask(source, partial(sqlite3.Connection.backup, target=copy))
        with closing(sqlite3.connect(fresh / CATALOG)) as copy:
            files = list_files(copy)
            copy.execute("PRAGMA wal_checkpoint(TRUNCATE)")

        try:
            for file in files:
                _link(file.below(source), file.below(fresh))
            break
        except FileNotFoundError as error:
            # A compaction deletes segments that the newest version does not name.
            if files == ask(source, list_files):
                raise damage(Path(error.filename), "it is missing") from None
            shutil.rmtree(fresh / SEGMENTS, ignore_errors=True)
            for path in fresh.iterdir():
                path.unlink()

    (fresh / SEGMENTS).mkdir(exist_ok=True)
    for path in sorted((source / ENCODER).glob("*")):  # it never changes
        _link(path, fresh / ENCODER / path.name)
    flush_file(fresh / CATALOG)  # after its connections are closed
    for below in sorted((p for p in fresh.rglob("*") if p.is_dir()), reverse=True):
        flush_folder(below)


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:  # another disk, or a file system without links
        shutil.copyfile(source, target)
        flush_file(target)


def _appear(folder: Path, fill: Callable[[Path], None], overwrite: bool) -> None:
    """Fill a temporary folder, and rename it when it is complete."""
    check_target(folder, overwrite)
    with only_writer(folder), explaining(folder, is_writing=True):
        with fresh_folder(folder) as fresh:
            check_target(folder, overwrite)
            fill(fresh)
            check_target(folder, overwrite)
            take_the_place(fresh, folder)


def check_target(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that a collection must not replace."""
    expected, content = "an empty or new folder", ""
    remedy: str | Remedy = "name another folder"
    if folder.exists() and not folder.is_dir():
        expected, content = "a folder for the index", "which is a file"
    elif os.path.ismount(folder):
        expected, content, remedy = "a folder for the index", "a mount point", "name one inside it"
    elif folder.is_dir() and any(folder.iterdir()):
        if not _is_ours(folder):
            content = "which holds other files"
        elif not overwrite:
            content = "which holds an index"
            remedy = Remedy("overwrite", True, "name another folder")
    if content:
        raise InputError("folder", expected, found=f"{folder}, {content}", remedy=remedy)


def _is_ours(folder: Path) -> bool:
    """Return whether a folder holds a collection and nothing else."""
    try:
        ask(folder, lambda connection: None)
    except (CorruptFileError, InputError):
        return False

    catalog = {CATALOG + suffix for suffix in ("", "-wal", "-shm")}
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        in_segment = parts[0] == SEGMENTS and len(parts) > 1 and is_segment_name(parts[1])
        is_encoder = parts[0] == ENCODER and len(parts) < 3
        is_root = parts in {(SEGMENTS,), *((name,) for name in catalog)}
        if not (in_segment or is_encoder or is_root):
            return False
    return True


_RESTORE = "restore the folder from a copy, or build the index again"


@dataclass(frozen=True)
class Problem:
    """Damage of a file."""

    file: Path
    what: str
    remedy: str = _RESTORE

    def __str__(self) -> str:
        return f"{self.file}: {self.what}; {self.remedy}"


def check(folder: str | Path) -> list[Problem]:
    """Check a whole index for damage.

    The check reads every file and every document, and compares them with the sizes and checksums
    recorded at writing.

    Parameters
    ----------
    folder : str or Path

    Returns
    -------
    list of Problem
        Empty for an intact index. Folders that a killed writer left are included.

    Raises
    ------
    InputError
        If the folder does not exist or cannot be read.
    """
    folder = find_folder(folder)
    problems = find_damage(folder)
    try:
        named = ask(folder, named_segments)
    except CorruptFileError:
        return problems
    remedy = "nothing is lost: the next writer deletes it"
    return problems + [
        Problem(path, "a killed writer left it", remedy) for path in unnamed_folders(folder, named)
    ]


def problem_table(folder: Path) -> pd.DataFrame:
    """Return the problems of an index as a table; see `SearchIndex.check`."""
    import pandas as pd

    rows = [(str(problem.file), problem.what, problem.remedy) for problem in check(folder)]
    return pd.DataFrame(rows, columns=["file", "problem", "remedy"])


def find_damage(folder: Path) -> list[Problem]:
    """Return all damage; folders left by a killed writer do not count."""
    while True:
        try:
            version = ask(folder, read_version)
            problems = [Problem(folder / CATALOG, what) for what in ask(folder, _check_catalog)]
            files = damaged_files(folder, ask(folder, list_files))
            problems += [Problem(path, what) for path, what in files]
            if ask(folder, read_version) == version:
                return problems
        except CorruptFileError as error:
            return [Problem(folder / CATALOG, str(error))]
        except sqlite3.Error as error:  # such as a missing table
            return [Problem(folder / CATALOG, f"it is damaged ({error})")]


def check_presence(folder: Path) -> None:
    """Raise CorruptFileError where a file is missing or has another size."""
    while True:
        files = ask(folder, list_files)
        fault = next(check_sizes(folder, files), None)
        if fault is None:
            return
        if files == ask(folder, list_files):  # unless a compaction deleted it
            raise damage(*fault)


def _check_catalog(connection: sqlite3.Connection) -> list[str]:
    run = connection.execute
    faults = [f"SQLite finds: {m}" for (m,) in run("PRAGMA integrity_check(20)") if m != "ok"]
    return [*faults, *_check_documents(connection)]


def _check_documents(connection: sqlite3.Connection) -> Iterator[str]:
    positions = [column.position for column in read_columns(connection).values()]
    names = "".join(f", metadata.c{position}" for position in positions)
    rows = connection.execute(
        f"SELECT number, id, digest, text, metadata.number{names} FROM documents "
        "LEFT JOIN metadata USING (number) ORDER BY number"
    )
    for number, id, digest, text, row, *values in rows:
        if row is None:
            yield f"the document {id!r} has no metadata"
        elif document_digest(number, id, text, present(positions, values)) != digest:
            yield f"the document {id!r} differs from its checksum"
