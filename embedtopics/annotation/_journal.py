"""The journal of a study: a database of SQLite to which events are only ever added.

The table `events` holds the events as JSON, in order. The digest of an event is the SHA-256 of the
digest before it and of its JSON, so that a changed letter and a missing event are noticed. The one
row of `head` holds the number of events and the last digest; it is written in the transaction of
each event. A transaction is on disk before an event counts as written. The database has no log of
its own beside it between transactions, so a copy of the file is complete.

A folder may come from others. The files are looked at before they are opened: pipes, devices and
links are refused, and a file that is no database, or that of another program, stays as it is.
Triggers, views and other tables are refused before anything is read.

Journals of format 1, `journal.jsonl`, are read once and copied, see `_journal_lines`.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from embedtopics._utils.folders import flush_folder, only_writer
from embedtopics.annotation._answers import Records
from embedtopics.annotation._events import Event, parse_event, text_of_event
from embedtopics.annotation._journal_lines import LINES_NAME, digest_after, read_lines
from embedtopics.errors import CorruptFileError, InputError

NAME = "journal.sqlite"

APPLICATION_ID = 0x65746A6C
"""Bytes 68 to 71 of the file, "etjl", which other databases do not have."""

FORMAT = 2

SCHEMA = (
    "CREATE TABLE events (n INTEGER PRIMARY KEY, event TEXT NOT NULL, digest TEXT NOT NULL)",
    "CREATE TABLE head (id INTEGER PRIMARY KEY, n_events INTEGER NOT NULL, digest TEXT NOT NULL)",
)

# The header of a database: its first bytes, and where its numbers stand.
MAGIC = b"SQLite format 3\0"
HEADER_BYTES = 100
FORMAT_BYTES = slice(60, 64)
APPLICATION_BYTES = slice(68, 72)

COMPANIONS = ("", "-journal", "-wal", "-shm")
"""Ends of the names of the files that SQLite opens with a database."""

NOT_ACCESSIBLE = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
)
"""Errors of a file that another process uses or that has no permission; others mean damage."""

LONGEST_EVENT = 100_000_000
"""Bytes of an event; the first one names the test texts."""

PATIENCE = 10.0
"""Seconds to wait while another process writes an event."""


class Journal:
    """The journal of one study, locked for other processes until it is closed.

    The file is created with the first event. `n_converted` counts events of format 1 that were
    copied, and `n_torn` lines that a crash had cut short there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / NAME
        self.events: list[Event] = []
        self.n_converted = 0
        self.n_torn = 0
        self._digest = ""
        self._connection: sqlite3.Connection | None = None
        self._is_closed = False
        self._resources = ExitStack()

        try:
            self._resources.enter_context(only_writer(folder))
            self._open()
        except BaseException:
            self._resources.close()
            raise

    def close(self) -> None:
        """Let other processes write."""
        self._is_closed = True
        self._resources.close()

    def _open(self) -> None:
        if _exists(self.path):
            self._connect()
        elif _exists(self.folder / LINES_NAME):
            self._convert()
        elif os.path.isdir(self.folder):
            _check_new(self.folder)
        elif os.path.lexists(self.folder):
            raise InputError("folder", "a folder, not a file", str(self.folder))

    def _connect(self) -> None:
        self._connection = self._resources.enter_context(_connected(self.path, "rw"))
        self.events, self._digest = _read(self._connection, self.path)

    def _convert(self) -> None:
        """Copy the events of a journal of format 1, which stays as it is, if its answers fit."""
        with _reading(self.folder):
            lines = read_lines(self.folder / LINES_NAME)
        self.n_torn = lines.n_torn
        if lines.texts:
            Records([parse_event(text, n) for n, text in enumerate(lines.texts)])
            self._create(lines.texts)
            self.n_converted = len(self.events)

    def _create(self, texts: Iterable[str]) -> None:
        """Create the file with its first events; a crash leaves no journal without them."""
        fresh = self.folder / f".{NAME}.new"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for end in COMPANIONS:
                fresh.with_name(f"{fresh.name}{end}").unlink(missing_ok=True)

            with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
                for statement in SCHEMA:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")
                connection.execute("INSERT INTO head VALUES (0, 0, '')")
                _append(connection, texts, 0, "")

            os.replace(fresh, self.path)
            flush_folder(self.folder)
        except (OSError, sqlite3.Error) as error:
            raise self._not_written(error) from error

        self._connect()

    def add(self, event: str, **fields: Any) -> Event:
        """Write an event to disk and return it; a failure changes nothing."""
        (written,) = self.add_all([{"event": event, **fields}])
        return written

    def add_all(self, entries: Iterable[Mapping[str, Any]]) -> list[Event]:
        """Write events in one transaction and return them; a failure changes nothing."""
        if self._is_closed:
            raise InputError("the study was closed; open it again")
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        first = len(self.events)
        texts = [
            text_of_event({"n": n, "time": time, **entry}) for n, entry in enumerate(entries, first)
        ]
        events = [parse_event(text, n) for n, text in enumerate(texts, first)]
        if self._connection is None:
            self._create(texts)
            return self.events

        try:
            self._digest = _append(self._connection, texts, first, self._digest)
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise self._not_written(error) from error
        self.events.extend(events)
        return events

    def rows(self) -> list[tuple[str, str]]:
        """Return each event as JSON, with its digest."""
        if self._connection is None or self._is_closed:
            raise InputError("the study was closed; open it again")
        return self._connection.execute("SELECT event, digest FROM events ORDER BY n").fetchall()

    def _not_written(self, error: Exception) -> InputError:
        reason = getattr(error, "strerror", None) or error
        return InputError(
            f"could not write {self.path}: {reason}; earlier answers are intact; free some "
            "space and try again, or choose another folder"
        )


def read_journal(folder: Path) -> list[Event]:
    """Return the events of a study, without locking or changing its folder; none for no study."""
    path = folder / NAME
    if _exists(path):
        with _connected(path, "ro") as connection:
            return _read(connection, path)[0]
    if _exists(folder / LINES_NAME):
        with _reading(folder):
            texts = read_lines(folder / LINES_NAME).texts
        return [parse_event(text, n) for n, text in enumerate(texts)]
    return []


def _exists(path: Path) -> bool:
    """Return whether there is a journal; a pipe, a device, a link or a folder is refused."""
    for end in COMPANIONS:
        companion = path.with_name(f"{path.name}{end}")
        try:
            mode = companion.lstat().st_mode
        except (OSError, ValueError):  # there is none
            continue
        if not stat.S_ISREG(mode):
            raise CorruptFileError(
                f"{companion} must be a regular file, not a link, a pipe, a device or a folder; "
                "choose another folder"
            )
    return os.path.lexists(path)


def _check_new(folder: Path) -> None:
    """Refuse a folder with other files than what a crash left before the first event."""
    with _reading(folder):
        names = [path.name for path in folder.iterdir()]
    if not all(name.startswith(f".{NAME}.new") for name in names):
        expected = "a new folder, or the folder of a study"
        got = f"{folder}, which holds other files"
        raise InputError("folder", expected, found=got, remedy="choose another folder")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Name the path that cannot be read."""
    try:
        yield
    except CorruptFileError:  # an OSError too
        raise
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"could not read {path}: {reason}; check its permissions") from error


@contextmanager
def _connected(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """Open a journal after a look at its header; a foreign file is not touched."""
    with _reading(path), path.open("rb") as stream:
        header = stream.read(HEADER_BYTES)
    application = int.from_bytes(header[APPLICATION_BYTES])
    if not header.startswith(MAGIC) or application != APPLICATION_ID:
        raise CorruptFileError(
            f"{path} is not the journal of a study, or its beginning is damaged; choose another "
            "folder, or restore it from a copy"
        )

    version = int.from_bytes(header[FORMAT_BYTES])
    if version > FORMAT:
        raise CorruptFileError(
            f"{path} has format {version}; this version reads formats up to {FORMAT}; upgrade "
            "embedtopics"
        )

    address = f"{path.absolute().as_uri()}?mode={mode}"
    try:
        connection = sqlite3.connect(
            address, timeout=PATIENCE, isolation_level=None, check_same_thread=False, uri=True
        )
    except sqlite3.Error as error:
        raise InputError(f"could not open {path}: {error}; choose another folder") from error

    with closing(connection):
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_EVENT)
        connection.text_factory = _decode
        yield connection


def _read(connection: sqlite3.Connection, path: Path) -> tuple[list[Event], str]:
    """Return the events and the last digest, or name the first event at fault."""
    try:
        # What a crafted schema holds must not run; the rest of a transaction is on disk (EXTRA).
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA synchronous = EXTRA")
        schema = connection.execute("SELECT sql FROM sqlite_master ORDER BY name").fetchall()
        if schema != [(statement,) for statement in SCHEMA]:
            raise ValueError("it has other tables than a journal")

        events: list[Event] = []
        digest = ""
        rows = connection.execute("SELECT n, event, digest FROM events ORDER BY n")
        for n, text, recorded in rows:
            if n != len(events):
                raise ValueError(f"event {len(events)} is missing")
            digest = digest_after(digest, str(text))
            if digest != recorded:
                raise ValueError(f"event {n} was changed: its digest differs from the recorded one")
            events.append(_parse(text, n))

        head = connection.execute("SELECT id, n_events, digest FROM head").fetchmany(2)
        if head != [(0, len(events), digest)]:
            n_events = head[0][1] if len(head) == 1 else "other"
            raise ValueError(f"it holds {len(events)} events in place of {n_events}")
        if not events:
            raise ValueError("it holds no events")
        return events, digest
    except (sqlite3.Error, ValueError, TypeError) as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_READONLY:
            raise InputError(
                f"{path} was interrupted while it wrote an answer, which has to be undone; open "
                "that study once, then try again"
            ) from error
        if code in NOT_ACCESSIBLE:
            message = f"could not read {path}: {error}; close the study elsewhere and try again"
            raise InputError(message) from error
        raise CorruptFileError(
            f"{path} is damaged: {str(error)[:300]}; restore it from a copy"
        ) from error


def _decode(content: bytes) -> str:
    """Decode text of the database; a damaged letter changes the digest."""
    return content.decode("utf-8", "replace")


def _parse(text: object, n: int) -> Event:
    """Parse a row of the table."""
    if not isinstance(text, str):
        raise ValueError(f"event {n} is no text")
    try:
        return parse_event(text, n)
    except ValueError as error:
        raise ValueError(f"event {n}: {error}") from error


def _append(connection: sqlite3.Connection, texts: Iterable[str], first: int, digest: str) -> str:
    """Write events in one transaction; return the last digest."""
    connection.execute("BEGIN IMMEDIATE")
    n_events = first
    for text in texts:
        digest = digest_after(digest, text)
        connection.execute("INSERT INTO events VALUES (?, ?, ?)", (n_events, text, digest))
        n_events += 1
    connection.execute("UPDATE head SET n_events = ?, digest = ?", (n_events, digest))
    connection.execute("COMMIT")
    return digest
