"""The journal of a study: lines of JSON that are only ever added, each on disk before it counts."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from embedtopics._utils.folders import flush_folder, only_writer, parse_json
from embedtopics.errors import CorruptFileError, InputError

KIND = "embedtopics annotation"
VERSION = 1
NAME = "journal.jsonl"


class Journal:
    """The events of one study; the only writer of its folder until it is closed.

    `events` are those that are on disk. A process that was killed may leave half a line at the
    end: nobody was promised that it was kept, so the next to open the journal removes it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / NAME
        self.events: list[dict[str, Any]] = []
        self.n_mended = 0
        self._opened = ExitStack()
        try:
            self._opened.enter_context(only_writer(folder))
            self._file = self._open()
            self._opened.callback(self._file.close)
            self._read()
        except BaseException:
            self._opened.close()
            raise

    def close(self) -> None:
        """Let others write."""
        self._opened.close()

    def _open(self) -> BinaryIO:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            others = [path.name for path in self.folder.iterdir()]
            if others and NAME not in others:
                raise InputError(
                    f"expected a new folder or that of a study; {self.folder} holds other files; "
                    "name another one"
                )
            # Never opened with "w": what is there is never lost.
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
            flush_folder(self.folder)
        except OSError as error:
            reason = error.strerror or error
            raise InputError(f"cannot write {self.path}: {reason}; name another folder") from error
        return os.fdopen(handle, "r+b", buffering=0)

    def _read(self) -> None:
        content = self._file.read() or b""
        self.events, whole = _parsed(content, self.path)
        if whole < len(content):
            self.n_mended = 1
            self._cut(whole)
        self._length = whole

    def _cut(self, length: int) -> None:
        self._file.truncate(length)
        os.fsync(self._file.fileno())

    def add(self, event: str, **fields: Any) -> dict[str, Any]:
        """Put an event on disk and return it; where that fails nothing has happened."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        entry = {"n": len(self.events), "time": now, "event": event, **fields}
        line = json.dumps(entry, ensure_ascii=True, allow_nan=False).encode() + b"\n"
        try:
            self._file.seek(self._length)
            written = 0
            while written < len(line):  # of a full disk the first part of a line may succeed
                written += self._file.write(line[written:])
            os.fsync(self._file.fileno())
        except ValueError as error:  # the file was closed
            raise InputError("the study was closed; open it again") from error
        except OSError as error:
            with suppress(OSError):
                self._cut(self._length)
            reason = error.strerror or error
            raise InputError(
                f"could not write {self.path}: {reason}; what was there before is whole; free some "
                "space and try again"
            ) from error
        self._length += len(line)
        self.events.append(entry)
        return entry


def read_events(path: Path) -> list[dict[str, Any]]:
    """Return the events of a journal that is only read; another process may have it open."""
    try:
        events, _ = _parsed(path.read_bytes(), path)
    except OSError as error:
        raise InputError("folder", "that of a study", str(path.parent)) from error
    if not events:
        raise InputError("folder", "that of a study that was begun", str(path.parent))
    return events


def _parsed(content: bytes, path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return events, and how many bytes they are: half a line at the end is none."""
    *lines, rest = content.split(b"\n")
    whole, events = len(content) - len(rest), []
    for number, line in enumerate(lines, 1):
        try:
            event = parse_json(line)
            if not isinstance(event, dict) or not isinstance(event.get("event"), str):
                raise ValueError("it is no event")
        except ValueError as error:
            if number < len(lines):
                raise CorruptFileError(
                    f"line {number} of {path} is damaged ({str(error)[:200]}); restore it "
                    "from a copy"
                ) from error
            whole -= len(line) + 1
            break
        events.append(event)
    header: dict[str, Any] = events[0] if events else {"kind": KIND, "version": VERSION}
    if header.get("kind") != KIND or not isinstance(header.get("version"), int):
        raise CorruptFileError(f"{path} is no journal of a study; name another folder")
    if header["version"] > VERSION:
        raise CorruptFileError(
            f"{path} is of format {header['version']}, newer than this version reads "
            f"({VERSION}); upgrade embedtopics"
        )
    return events, whole
