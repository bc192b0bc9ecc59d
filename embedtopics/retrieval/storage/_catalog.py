"""The catalog of a collection, one SQLite file: tables, connections, errors, documents."""

import datetime
import hashlib
import re
import secrets
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from embedtopics._utils.display import one_line
from embedtopics._utils.folders import find_folder, parse_json
from embedtopics.corpus.filters._values import compared_form
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.protocols import Int64Array
from embedtopics.retrieval.results import Document

CATALOG = "catalog.sqlite"
SEGMENTS = "segments"
ENCODER = "encoder"
"""Folder of an encoder that learned words from the texts, if the index has one."""

SCHEMA_VERSION = 1
_APPLICATION_ID = 0x45545831
_PATIENCE = 30.0
"""Seconds to wait while SQLite recovers what a killed process left."""

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


def damage(path: Path | str, what: object) -> CorruptFileError:
    """Return the error for a damaged file."""
    return CorruptFileError(
        f"{path} is damaged ({what}); restore the folder from a copy, or build the index again"
    )


def make_catalog(path: Path, settings: str) -> None:
    """Write an empty catalog to a new file, and return when it is on disk."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
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


def connect_writer(folder: Path) -> sqlite3.Connection:
    """Open the catalog to write it; a COMMIT returns when its changes are on disk."""
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
    """Answer a question from one read transaction, on a new connection."""
    # A new connection costs a third of a millisecond. Threads never share one, none survives a
    # fork, and each sees at once that a folder was replaced.
    while True:
        before = _inode(folder / CATALOG)
        try:
            with reading(folder) as connection:
                return question(connection)
        except (InputError, OSError):
            # Segments are read by path: those of a collection that replaced this one do not fit.
            if _inode(folder / CATALOG) == before:
                raise


@contextmanager
def reading(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open a read transaction on the catalog, which sees one version."""
    path = _existing(folder)
    with explaining(folder):
        connection = _connect_reader(path)
    try:
        with explaining(folder):
            connection.execute("BEGIN")
            _check_format(connection, path)
            yield connection
    finally:
        connection.close()


def _connect_reader(path: Path) -> sqlite3.Connection:
    """Open the catalog; SQLite cannot lock it in a read-only folder, where nobody may write."""

    def connect(mode: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{path.as_uri()}?{mode}", uri=True, isolation_level=None, timeout=_PATIENCE,
            check_same_thread=False,
        )  # fmt: skip
        try:
            _distrust(connection)
            connection.create_function("composed", 1, _composed, deterministic=True)
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        except BaseException:
            connection.close()
            raise
        return connection

    try:
        return connect("mode=ro")
    except sqlite3.OperationalError as error:
        if _code(error) not in _NO_LOCKS:
            raise
    log = path.with_name(path.name + "-wal")
    if log.is_file() and log.stat().st_size:
        raise InputError(
            f"{path} was not closed by its last writer, and its folder is read-only; open the "
            "index once with write permission, or copy the folder"
        )
    return connect("mode=ro&immutable=1")


def _existing(folder: Path) -> Path:
    path = folder / CATALOG
    if not folder.is_dir():  # unless another process is replacing it
        find_folder(folder)
    if not folder.is_dir():
        raise InputError("folder", "the folder of an index", str(folder))
    if not path.is_file():
        raise CorruptFileError(
            f"{folder} is not an index: it has no {CATALOG}; name another folder, or restore the "
            "file from a copy"
        )
    return path


def _inode(path: Path) -> int:
    """Return what changes when another file takes the place of a file; -1 in between."""
    try:
        return path.stat().st_ino
    except OSError:
        return -1


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    # Not by opening the file: closing it again would release all locks of SQLite.
    application, version = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version")
    )

    if application != _APPLICATION_ID:
        raise CorruptFileError(
            f"{path} is not the catalog of an index, or its header is damaged; name another "
            "folder, or restore the file from a copy"
        )

    log = path.with_name(path.name + "-wal")
    size = path.stat().st_size
    page = connection.execute("PRAGMA page_size").fetchone()[0]
    if size % page and not (log.exists() and log.stat().st_size):
        # SQLite would read the missing part of the last page as zeros.
        raise damage(path, "its last page is cut off")

    if version > SCHEMA_VERSION:
        raise CorruptFileError(
            f"{path} has format {version}, newer than this version reads ({SCHEMA_VERSION}); "
            "upgrade embedtopics"
        )
    if version < 1:
        raise damage(path, f"it has format {version}")
    _check_schema(connection, path)


_METADATA = re.compile(r"CREATE TABLE metadata \(number INTEGER PRIMARY KEY((?:, c[0-9]+)*)\)")


def _check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a catalog with other tables than ours, with views or with triggers.

    A view may be endless, and a computed column or a trigger does more than it stores.
    """
    schema = _read_schema(connection)
    metadata = _METADATA.fullmatch(schema.pop(("table", "metadata"), ""))
    columns = "" if metadata is None else metadata[1]
    in_order = "".join(f", c{position}" for position in range(columns.count(",")))
    if metadata is None or columns != in_order or schema != _fixed_schema():
        raise damage(path, "its tables are not those of an index")


def _read_schema(connection: sqlite3.Connection) -> dict[tuple[str, str], str]:
    """Return the SQL of all that a database holds by kind and name, without comments."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master")
    return {(str(kind), str(name)): _without_comments(str(sql)) for kind, name, sql in rows}


@lru_cache(maxsize=256)
def _without_comments(sql: str) -> str:
    return " ".join(re.sub("--[^\n]*", "", sql).split())


@cache
def _fixed_schema() -> dict[tuple[str, str], str]:
    """Return the schema of each catalog, without the metadata, whose columns differ."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA)
        schema = _read_schema(connection)
    del schema["table", "metadata"]
    return schema


def _distrust(connection: sqlite3.Connection) -> None:
    """Keep a file from an unknown source from running code or writing elsewhere."""
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")


def write_settings(connection: sqlite3.Connection, settings: str) -> None:
    """Write the settings and their checksum."""
    digest = hashlib.sha256(settings.encode()).hexdigest()
    rows = [("settings", settings), ("settings_sha256", digest)]
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)


def read_settings(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return the settings of the index, which must match their checksum."""
    query = "SELECT name, value FROM meta WHERE name IN ('settings', 'settings_sha256')"
    entries = dict(connection.execute(query).fetchall())
    try:
        text = str(entries["settings"])
        if hashlib.sha256(text.encode()).hexdigest() != entries["settings_sha256"]:
            raise ValueError("they differ from their checksum")
        return dict(parse_json(text))
    except (KeyError, TypeError, ValueError) as error:
        raise damage(CATALOG, f"its settings: {error}") from None


def read_version(connection: sqlite3.Connection) -> int:
    """Return the number of the version."""
    version = _read_meta(connection, "version")
    if not isinstance(version, int) or version < 0:
        raise damage(CATALOG, "its version is no number")
    return version


def read_stamp(connection: sqlite3.Connection) -> str:
    """Return the random text that each version has."""
    stamp = _read_meta(connection, "stamp")
    if not isinstance(stamp, str):
        raise damage(CATALOG, "its stamp is no text")
    return stamp


def _read_meta(connection: sqlite3.Connection, name: str) -> Any:
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise damage(CATALOG, f"it has no {name}")
    return row[0]


def merge_log(connection: sqlite3.Connection) -> bool:
    """Empty the write-ahead log; return False where a reader or a full disk prevents it."""
    # Afterwards no commit is pending: the catalog will never name a segment it does not name now.
    try:
        connection.execute("PRAGMA busy_timeout = 0")
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except sqlite3.OperationalError:
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(1000 * _PATIENCE)}")
    return not busy


def document_digest(number: int, id: Any, text: str, metadata: Iterable[tuple[int, Any]]) -> int:
    """Return 64 bits that depend on everything stored of a document; SQLite has no checksums."""
    hash = hashlib.blake2b(text.encode(), digest_size=8)
    hash.update(repr((number, id, *metadata)).encode())
    return int.from_bytes(hash.digest(), "little", signed=True)


_NO_LOCKS = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
_OF_THE_DISK = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, *_NO_LOCKS}


def _code(error: sqlite3.Error) -> int:
    """Return the primary code of an error; errors of Python, such as bad UTF-8, have none."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


@contextmanager
def explaining(folder: Path, is_writing: bool = False) -> Iterator[None]:
    """Turn errors of SQLite and of the disk into messages with a remedy."""
    path, verb = folder / CATALOG, "write" if is_writing else "read"
    whole = "; the index is as it was before" if is_writing else ""
    remedy = "free some space, or check the permissions"

    try:
        yield
    except (CorruptFileError, InputError):
        raise
    except sqlite3.DatabaseError as error:
        code = _code(error)
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise InputError(
                f"another process is using {path}{whole}; try again when it is done"
            ) from error
        if code in _OF_THE_DISK:
            raise InputError(f"could not {verb} {path}: {error}{whole}; {remedy}") from error
        if code or "decode to UTF-8" in str(error):  # its tables or values are not ours
            raise damage(path, one_line(error)) from error
        raise
    except OSError as error:
        if not is_writing:
            raise
        reason = error.strerror or error
        raise InputError(f"could not write {folder}: {reason}{whole}; {remedy}") from error


def read_numbers(
    connection: sqlite3.Connection, query: str, parameters: Sequence[Any] = ()
) -> Int64Array:
    """Return the only column of a query, of integers."""
    rows = connection.execute(query, tuple(parameters))
    return np.fromiter((number for (number,) in rows), np.int64)


@dataclass(frozen=True)
class Column:
    """A column of the metadata; its kind is "missing" until it has a value."""

    position: int
    name: str
    kind: str

    @property
    def sql(self) -> str:
        """Name of the column in SQL."""
        return f"metadata.c{self.position}"

    @property
    def compared_sql(self) -> str:
        """The values in the form in which filters and facets compare them."""
        return composed_sql(self.sql) if self.kind in ("text", "list") else self.sql


def composed_sql(column: str) -> str:
    """Return the SQL for the composed texts of a column; ASCII takes a tenth of the time."""
    is_ascii = f"length({column}) = length(CAST({column} AS BLOB))"
    return f"(CASE WHEN {is_ascii} THEN {column} ELSE composed({column}) END)"


def _composed(value: Any) -> Any:
    return compared_form(value) if isinstance(value, str) else value


def read_columns(connection: sqlite3.Connection) -> dict[str, Column]:
    """Return the columns of the metadata by name."""
    query = "SELECT position, name, kind FROM columns ORDER BY position"
    columns = {}
    for number, (position, name, kind) in enumerate(connection.execute(query)):
        is_known = kind == "missing" or kind in STORED_TYPES
        if position != number or not isinstance(name, str) or not is_known:
            raise damage(CATALOG, f"its column {position} of the metadata is not ours")
        columns[name] = Column(position, name, kind)
    return columns


STORED_TYPES: Mapping[str, tuple[type, ...]] = {
    "text": (str,),
    "integer": (int,),
    "boolean": (int,),
    "real": (float, int),  # integers of a column that was widened
    "date": (str,),
    "list": (str,),
}
"""Types in SQLite of the values of each kind of column."""


def _read_list(value: str) -> list[str]:
    texts = parse_json(value)
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("a value is no list of texts")
    return texts


_RESTORE: Mapping[str, Callable[[Any], Any]] = {
    "text": str, "integer": int, "boolean": bool, "real": float,
    "date": datetime.datetime.fromisoformat, "list": _read_list,
}  # fmt: skip


def _restore(column: Column, value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, STORED_TYPES.get(column.kind, ())):
        raise ValueError(f"its value of {column.name[:100]!r} is no {column.kind}")
    return _RESTORE[column.kind](value)


def present(positions: Iterable[int], values: Iterable[Any]) -> list[tuple[int, Any]]:
    """Return the values that are not missing with their columns, for `document_digest`."""
    pairs = zip(positions, values, strict=True)
    return sorted((position, value) for position, value in pairs if value is not None)


def find_numbers(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, int]:
    """Return the number of each id that is in the index."""
    query = "SELECT number FROM documents WHERE id = ?"
    rows = {id: connection.execute(query, (id,)).fetchone() for id in ids}
    return {id: row[0] for id, row in rows.items() if row}


def select_documents(
    connection: sqlite3.Connection, condition: str, parameters: Sequence[Any]
) -> Iterator[Document]:
    """Yield the documents that meet a condition."""
    columns = list(read_columns(connection).values())
    names = "".join(f", {column.sql}" for column in columns)
    query = (
        f"SELECT number, id, digest, text{names} FROM documents JOIN metadata USING (number) "
        f"WHERE {condition}"
    )
    positions = [column.position for column in columns]

    for number, id, digest, text, *values in connection.execute(query, parameters):
        try:
            if document_digest(number, id, text, present(positions, values)) != digest:
                raise ValueError("it differs from its checksum")
            if not isinstance(id, str | int | float):
                raise ValueError("its id is no text")
            metadata = {
                column.name: _restore(column, value)
                for column, value in zip(columns, values, strict=True)
            }
            yield Document(number, id, text, metadata)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise damage(f"the document {str(id)[:100]!r}", error) from error
