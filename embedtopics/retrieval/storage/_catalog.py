"""The catalogue of a collection, one SQLite file: its tables, connections to it, its errors."""

import hashlib
import re
import secrets
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from embedtopics._utils.display import one_line
from embedtopics._utils.folders import find_folder, parse_json
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.protocols import Int64Array

CATALOG = "catalog.sqlite"
SEGMENTS = "segments"
SCHEMA_VERSION = 1
_APPLICATION_ID = 0x45545831
_PATIENCE = 30.0
"""Seconds to wait where SQLite itself is busy: with what a killed process left, for instance."""
_TRIES = 10

_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE segments (
    number INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice
    first INTEGER NOT NULL,                    -- its documents have numbers from here
    last INTEGER NOT NULL,                     -- to here, and no others have
    n_passages INTEGER NOT NULL,
    n_living INTEGER NOT NULL,
    n_files INTEGER NOT NULL
);
CREATE TABLE files (
    segment INTEGER NOT NULL, path TEXT NOT NULL, bytes INTEGER NOT NULL, sha256 TEXT NOT NULL,
    PRIMARY KEY (segment, path)
) WITHOUT ROWID;
CREATE TABLE documents (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id NOT NULL UNIQUE,                        -- no type: "1", 1 and 1.5 stay what they are
    digest INTEGER NOT NULL,
    text TEXT NOT NULL
);
CREATE TABLE removed (number INTEGER PRIMARY KEY);
CREATE TABLE columns (position INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL);
CREATE TABLE metadata (number INTEGER PRIMARY KEY);
"""

T = TypeVar("T")


class Moved(Exception):
    """What was read without locks was written in the meantime."""


def make_catalog(path: Path, settings: str) -> None:
    """Write an empty catalogue to a file that does not exist; it is on disk when this returns."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(f"BEGIN;{_SCHEMA}")
        connection.executemany(
            "INSERT INTO meta VALUES (?, ?)", [("version", 0), ("stamp", secrets.token_hex(8))]
        )
        write_settings(connection, settings)
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    finally:
        connection.close()


def connect_writer(folder: Path) -> sqlite3.Connection:
    """Open the catalogue to write it; a COMMIT returns when what it says is on disk."""
    path = _existing(folder)
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=_PATIENCE
    )
    try:
        _distrust(connection)
        _check_format(connection, path)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")  # a removed text is overwritten
        connection.execute("PRAGMA cache_size = -65536")
    except BaseException:
        connection.close()
        raise
    return connection


def ask(folder: Path, question: Callable[[sqlite3.Connection], T]) -> T:
    """Answer a question from one read transaction, on a connection of its own."""
    # That costs a third of a millisecond; a connection is never shared by threads, never survives
    # a fork, and sees at once that a folder was replaced.
    for _ in range(_TRIES):
        before = _signature(folder / CATALOG)[0]
        try:
            with reading(folder) as connection:
                return question(connection)
        except Moved:
            continue
        except (InputError, OSError):
            # Segments are read by their paths: in another collection's folder they do not fit.
            if _signature(folder / CATALOG)[0] == before:
                raise
    raise InputError(
        f"{folder} cannot be locked from here and is being written all the time; read it where you "
        "may write, or wait until its writer is done."
    )


@contextmanager
def reading(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open a read transaction on the catalogue: one version, whatever a writer does."""
    path = _existing(folder)
    before = _signature(path)
    with explaining(folder):
        connection, is_locked = _connect_reader(path)
    try:
        with explaining(folder):
            try:
                connection.execute("BEGIN")
                _check_format(connection, path)
                yield connection
            except (sqlite3.Error, CorruptFileError):
                if not is_locked and _signature(path) != before:
                    raise Moved from None
                raise
        if not is_locked and _signature(path) != before:
            raise Moved
    finally:
        connection.close()


def _connect_reader(path: Path) -> tuple[sqlite3.Connection, bool]:
    """Open the catalogue; return whether SQLite keeps a writer from changing what is read, too.

    It cannot where nothing may be written; the reader checks afterwards if it is still that file.
    """
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        connection = sqlite3.connect(
            f"{path.as_uri()}?{mode}", uri=True, isolation_level=None, timeout=_PATIENCE,
            check_same_thread=False,
        )  # fmt: skip
        try:
            _distrust(connection)
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
            return connection, "immutable" not in mode
        except sqlite3.OperationalError as error:
            connection.close()
            if "immutable" in mode or _code(error) not in _NO_LOCKS:
                raise
        except BaseException:
            connection.close()
            raise
        log = path.with_name(path.name + "-wal")
        if log.is_file() and log.stat().st_size:
            raise InputError(
                f"{path} was not closed by its last writer and nothing may be written beside it; "
                "open it once where you may write, or copy the folder to such a place"
            )
    raise AssertionError("unreachable")


def _existing(folder: Path) -> Path:
    path = folder / CATALOG
    if not folder.is_dir():  # or another process replaces it in this moment
        find_folder(folder)
    if not folder.is_dir():
        raise InputError("folder", "the folder of an index", str(folder))
    if not path.is_file():
        raise CorruptFileError(
            f"{folder} is no index: it has no {CATALOG}; name another folder, or restore the file "
            "from a copy"
        )
    return path


def _signature(path: Path) -> tuple[int, ...]:
    try:
        about = path.stat()
    except (FileNotFoundError, NotADirectoryError):  # the folder is replaced in this moment
        return (-1,)
    log = path.with_name(path.name + "-wal")
    return about.st_ino, about.st_size, about.st_mtime_ns, log.stat().st_size if log.exists() else 0


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    # Never by opening the file oneself: closing it again would let go of all of SQLite's locks.
    application, version = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version")
    )
    if application != _APPLICATION_ID:
        raise CorruptFileError(
            f"{path} is not the catalogue of an index, or its head is damaged; name another "
            "folder, or restore the file from a copy"
        )
    log = path.with_name(path.name + "-wal")
    size, page = path.stat().st_size, connection.execute("PRAGMA page_size").fetchone()[0]
    if size % page and not (log.exists() and log.stat().st_size):
        # SQLite would take what is missing of the last page for zeros.
        raise CorruptFileError(
            f"{path} is damaged: its last page is cut off; restore the folder from a copy, or "
            "build the index again"
        )
    if version > SCHEMA_VERSION:
        raise CorruptFileError(
            f"{path} has format {version}, newer than this version reads ({SCHEMA_VERSION}); "
            "upgrade embedtopics"
        )
    if _schema_of(connection) != _our_schema():
        raise CorruptFileError(
            f"{path} does not have the tables of an index alone, but others, views or triggers; "
            "take nothing of it, and build the index again"
        )


def _distrust(connection: sqlite3.Connection) -> None:
    """Let nothing in a file that anybody may have written run code, or write where it must not."""
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")


def _schema_of(connection: sqlite3.Connection) -> set[tuple[str, str, str, str]]:
    """Return what a file says of its tables, without comments and columns of the metadata."""
    found = set()
    for kind, name, table, sql in connection.execute(
        "SELECT type, name, tbl_name, substr(sql, 1, 65536) FROM sqlite_master LIMIT 100"
    ):
        text = " ".join(re.sub(r"--[^\n]*", "", str(sql)).split())
        if name == "metadata":
            text = re.sub(r"(, c\d+)+\)$", ")", text)
        found.add((str(kind), str(name), str(table), text))
    return found


@cache
def _our_schema() -> frozenset[tuple[str, str, str, str]]:
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(_SCHEMA)
        return frozenset(_schema_of(connection))
    finally:
        connection.close()


def write_settings(connection: sqlite3.Connection, settings: str) -> None:
    """Write the settings, and what tells whether they are as they were written."""
    digest = hashlib.sha256(settings.encode()).hexdigest()
    rows = [("settings", settings), ("settings_sha256", digest)]
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)


def read_settings(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return the settings; those that the first versions wrote have no checksum."""
    query = "SELECT name, value FROM meta WHERE name IN ('settings', 'settings_sha256')"
    found = dict(connection.execute(query).fetchall())
    try:
        text = str(found["settings"])
        if hashlib.sha256(text.encode()).hexdigest() != found.get("settings_sha256"):
            if "settings_sha256" in found:
                raise ValueError("they differ from their checksum")
        return dict(parse_json(text))
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptFileError(
            f"the settings of the index are damaged ({error}); restore the folder from a copy, or "
            "build the index again"
        ) from None


def read_meta(connection: sqlite3.Connection, name: str) -> Any:
    """Return one entry of the table `meta`: "version" or "stamp"."""
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise CorruptFileError(f"{CATALOG} is damaged: it has no {name}; build the index again")
    return row[0]


def merge_log(connection: sqlite3.Connection) -> bool:
    """Empty the write-ahead log; return False where a reader or a full disk stands against it."""
    # After that no commit is pending: what the catalogue does not name now, it never will.
    try:
        connection.execute("PRAGMA busy_timeout = 0")
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except sqlite3.OperationalError:
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(1000 * _PATIENCE)}")
    return not busy


def document_digest(number: int, id: Any, text: str, metadata: Iterable[tuple[int, Any]]) -> int:
    """Return 64 bits that depend on all that is stored of a document; SQLite has no checksums."""
    hash = hashlib.blake2b(text.encode(), digest_size=8)
    hash.update(repr((number, id, *metadata)).encode())
    return int.from_bytes(hash.digest(), "little", signed=True)


_NO_LOCKS = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
_OF_THE_DISK = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, *_NO_LOCKS}


def _code(error: sqlite3.Error) -> int:
    """Return the primary code of an error; what Python found, such as no UTF-8, has none."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


@contextmanager
def explaining(folder: Path, is_writing: bool = False) -> Iterator[None]:
    """Turn errors of SQLite and of the disk into ones that say what to do."""
    path = folder / CATALOG
    whole = "; the index is as it was before" if is_writing else ""
    try:
        yield
    except (CorruptFileError, InputError):
        raise
    except sqlite3.DatabaseError as error:
        code = _code(error)
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise InputError(
                f"{path} is kept busy by another process{whole}; try again when it is done"
            ) from error
        if code in _OF_THE_DISK:
            verb = "write" if is_writing else "read"
            raise InputError(
                f"could not {verb} {path}: {error}{whole}; free some space, or see whether you may "
                f"{verb} there"
            ) from error
        is_damage = code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
        marks = ("decode to UTF-8", "no such column", "malformed JSON")
        if is_damage or any(mark in str(error) for mark in marks):
            raise CorruptFileError(
                f"{path} is damaged ({one_line(error)}); restore the folder from a copy, or build "
                "the index again"
            ) from error
        raise
    except OSError as error:
        if not is_writing:
            raise
        raise InputError(
            f"could not write {folder}: {error.strerror or error}{whole}; free some space, or see "
            "whether you may write there"
        ) from error


def read_numbers(
    connection: sqlite3.Connection, query: str, parameters: Sequence[Any] = ()
) -> Int64Array:
    """Return the one column of whole numbers that a query gives."""
    rows = connection.execute(query, tuple(parameters))
    return np.fromiter((number for (number,) in rows), np.int64)


def in_chunks(values: Sequence[T], size: int = 900) -> Iterator[tuple[str, Sequence[T]]]:
    """Yield values in parts that one statement takes, with the question marks for each."""
    for start in range(0, len(values), size):
        part = values[start : start + size]
        yield ",".join("?" * len(part)), part
