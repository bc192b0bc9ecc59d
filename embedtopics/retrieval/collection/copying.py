"""Making a collection, and copying one: it appears under its name when it is whole."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from embedtopics._locking import only_writer
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.retrieval.collection.catalog import (
    CATALOG,
    SEGMENTS,
    ask,
    explaining,
    flush_folder,
    make_catalog,
)
from embedtopics.retrieval.collection.segments import damage, is_segment_name, list_files

__all__ = ["check_target", "copy_collection", "create_folder", "find_folder"]


def create_folder(folder: Path, settings: str) -> None:
    """Make an empty collection.

    Raises
    ------
    InputError
        If something else is there, or nothing can be written.
    """

    def fill(fresh: Path) -> None:
        (fresh / SEGMENTS).mkdir()
        make_catalog(fresh / CATALOG, settings)

    _appear(folder, fill, overwrite=False)


def copy_collection(source: Path, target: Path, overwrite: bool) -> None:
    """Copy one version of a collection to another folder.

    Files of segments, which never change, are hard links where the file system has them.

    Raises
    ------
    InputError
        If the other folder holds something else, or cannot be written.
    CorruptFileError
        If a file of the source is missing.
    """
    if target == source or source in target.parents or target in source.parents:
        raise InputError(
            f"expected a folder to copy to that is apart from the collection; got {target} for the "
            f"collection in {source}; name another one"
        )
    ask(source, lambda connection: None)  # damage of the source is not taken for the target's
    _appear(target, lambda fresh: _copy_into(source, fresh), overwrite)


def _copy_into(source: Path, fresh: Path) -> None:
    while True:
        with closing(sqlite3.connect(fresh / CATALOG)) as copy:
            ask(source, partial(_back_up, copy))
        with closing(sqlite3.connect(fresh / CATALOG)) as copy:
            files = list_files(copy)
            copy.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        try:
            for file in files:
                _link(file.below(source), file.below(fresh))
            break
        except FileNotFoundError as error:
            # A compaction deletes segments once there is a version without them.
            if files == ask(source, list_files):
                raise damage(Path(error.filename), "it is missing") from None
            shutil.rmtree(fresh / SEGMENTS, ignore_errors=True)
            for path in fresh.iterdir():
                path.unlink()
    (fresh / SEGMENTS).mkdir(exist_ok=True)
    with (fresh / CATALOG).open("r+b") as catalog:  # no connection to it is open
        os.fsync(catalog.fileno())
    for below in sorted((p for p in fresh.rglob("*") if p.is_dir()), reverse=True):
        flush_folder(below)


def _back_up(copy: sqlite3.Connection, connection: sqlite3.Connection) -> None:
    connection.backup(copy)


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:  # another disk, or a file system without links
        shutil.copyfile(source, target)
        with target.open("r+b") as file:
            os.fsync(file.fileno())


def _appear(folder: Path, fill: Callable[[Path], None], overwrite: bool) -> None:
    """Fill a folder beside another, and give it the other's name when it is whole."""
    check_target(folder, overwrite)
    with only_writer(folder), explaining(folder, is_writing=True):
        put_back(folder)
        check_target(folder, overwrite)
        _sweep_beside(folder)
        fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".new", dir=folder.parent))
        try:
            fill(fresh)
            fresh.chmod(0o777 & ~_umask())
            flush_folder(fresh)
            _take_the_place(fresh, folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)


def check_target(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that a collection cannot take the place of.

    Raises
    ------
    InputError
        If it holds something else, or a collection that is not to be replaced.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(
            f"expected a folder for a collection; {folder} is a file; name another one"
        )
    if os.path.ismount(folder):
        raise InputError(f"{folder} is a mount point, which cannot be replaced; name one below it")
    found = list(folder.iterdir()) if folder.is_dir() else []
    if not found:
        return
    if not _is_ours(folder):
        raise InputError(
            f"expected an empty or new folder for a collection; {folder} holds other files; name "
            "another one, or empty it yourself"
        )
    if not overwrite:
        raise InputError(
            f"there is a collection in {folder} already; open that one, pass overwrite=True "
            "(--overwrite) where it can be given, or name another folder"
        )


def _is_ours(folder: Path) -> bool:
    """Tell whether a folder holds a collection and nothing else that would be lost with it."""
    try:
        ask(folder, lambda connection: None)
    except (CorruptFileError, InputError):
        return False
    catalog = {CATALOG + suffix for suffix in ("", "-wal", "-shm")}
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        in_segment = parts[0] == SEGMENTS and len(parts) > 1 and is_segment_name(parts[1])
        if not in_segment and parts not in {(SEGMENTS,), *((name,) for name in catalog)}:
            return False
    return True


def _take_the_place(fresh: Path, folder: Path) -> None:
    old = fresh.with_suffix(".old")
    if folder.exists():
        folder.rename(old)
    try:
        fresh.rename(folder)
        flush_folder(folder.parent)
    except BaseException:  # an interrupt too
        if folder.exists() and not fresh.exists():
            folder.rename(fresh)
        if old.exists() and not folder.exists():
            old.rename(folder)
        raise
    if old.exists():
        # First out of the way, so that one half deleted is never taken for a collection.
        shutil.rmtree(old.rename(fresh), ignore_errors=True)


def find_folder(folder: str | Path) -> Path:
    """Return where a collection really is, so that two names of it have one lock.

    What a process that was killed while it replaced a collection left undone is undone.
    """
    folder = Path(os.path.realpath(folder))
    for _ in range(20):
        if os.path.lexists(folder) or not _set_aside(folder):
            break
        try:
            with only_writer(folder):
                put_back(folder)
        except InputError:  # another process replaces it in this moment
            time.sleep(0.05)
    return folder


def put_back(folder: Path) -> None:
    """Give the collection its name again that was set aside to be replaced; under the lock."""
    if not os.path.lexists(folder):
        for old in _set_aside(folder)[:1]:
            old.rename(folder)


def _set_aside(folder: Path) -> list[Path]:
    return [old for old in _beside(folder, "old") if (old / CATALOG).is_file()]


def _beside(folder: Path, kind: str) -> list[Path]:
    """Return what was made beside a folder to take its place, or was set aside; no other's."""
    # Of a collection "a" this is not what belongs to one that is called "a.b".
    name = re.compile(rf"\.{re.escape(folder.name)}\.[a-z0-9_]+\.{kind}")
    found = sorted(folder.parent.iterdir()) if folder.parent.is_dir() else []
    return [path for path in found if name.fullmatch(path.name) and not path.is_symlink()]


def _sweep_beside(folder: Path) -> None:
    """Delete what processes that were killed left beside a folder; under the lock."""
    left = _beside(folder, "new")
    if os.path.lexists(folder):
        left += _beside(folder, "old")
    for path in left:
        shutil.rmtree(path, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
