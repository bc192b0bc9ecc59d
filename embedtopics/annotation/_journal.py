"""The append-only journal of a study, in lines of JSON, and the answers that it records."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from embedtopics._utils.folders import flush_folder, only_writer, parse_json
from embedtopics.annotation._codebook import Label, StudyDesign, read_labels
from embedtopics.errors import CorruptFileError, InputError

KIND = "embedtopics annotation"
VERSION = 1
NAME = "journal.jsonl"


class Journal:
    """The journal of one study, locked for other processes until it is closed.

    `events` holds the events on disk. A killed process may leave an incomplete last line, whose
    event was never confirmed; the next process removes it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / NAME
        self.events: list[dict[str, Any]] = []
        self.n_repaired = 0
        self._resources = ExitStack()
        try:
            self._resources.enter_context(only_writer(folder))
            self._file = self._open()
            self._resources.callback(self._file.close)
            self._read()
        except BaseException:
            self._resources.close()
            raise

    def close(self) -> None:
        """Let other processes write."""
        self._resources.close()

    def _open(self) -> BinaryIO:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            names = [path.name for path in self.folder.iterdir()]
            if names and NAME not in names:
                raise InputError(
                    f"expected a new folder or the folder of a study; {self.folder} holds other "
                    "files; choose another folder"
                )
            # Never opened with "w", which would delete the content.
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
            flush_folder(self.folder)
        except OSError as error:
            reason = error.strerror or error
            raise InputError(
                f"cannot write {self.path}: {reason}; choose another folder"
            ) from error
        return os.fdopen(handle, "r+b", buffering=0)

    def _read(self) -> None:
        content = self._file.read() or b""
        self.events, length = _parse(content, self.path)
        if length < len(content):
            self.n_repaired = 1
            self._truncate(length)
        self._length = length

    def _truncate(self, length: int) -> None:
        self._file.truncate(length)
        os.fsync(self._file.fileno())

    def add(self, event: str, **fields: Any) -> dict[str, Any]:
        """Write an event to disk and return it; a failure changes nothing."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        entry = {"n": len(self.events), "time": now, "event": event, **fields}
        line = json.dumps(entry, ensure_ascii=True, allow_nan=False).encode() + b"\n"
        try:
            self._file.seek(self._length)
            written = 0
            while written < len(line):  # a full disk may accept part of a line
                written += self._file.write(line[written:])
            os.fsync(self._file.fileno())
        except ValueError as error:  # the file was closed
            raise InputError("the study was closed; open it again") from error
        except OSError as error:
            with suppress(OSError):
                self._truncate(self._length)
            reason = error.strerror or error
            raise InputError(
                f"could not write {self.path}: {reason}; earlier answers are intact; free some "
                "space and try again"
            ) from error
        self._length += len(line)
        self.events.append(entry)
        return entry


def read_events(path: Path) -> list[dict[str, Any]]:
    """Return the events of a journal, without locking it."""
    try:
        events, _ = _parse(path.read_bytes(), path)
    except OSError as error:
        raise InputError("folder", "the folder of a study", str(path.parent)) from error
    if not events:
        raise InputError("folder", "the folder of a study with events", str(path.parent))
    return events


def _parse(content: bytes, path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the events and their length in bytes, without an incomplete last line."""
    *lines, rest = content.split(b"\n")
    length, events = len(content) - len(rest), []
    for number, line in enumerate(lines, 1):
        try:
            event = parse_json(line)
            if not isinstance(event, dict) or not isinstance(event.get("event"), str):
                raise ValueError("it is not an event")
        except ValueError as error:
            if number < len(lines):
                raise CorruptFileError(
                    f"line {number} of {path} is damaged ({str(error)[:200]}); restore it "
                    "from a copy"
                ) from error
            length -= len(line) + 1
            break
        events.append(event)
    header: dict[str, Any] = events[0] if events else {"kind": KIND, "version": VERSION}
    if header.get("kind") != KIND or not isinstance(header.get("version"), int):
        raise CorruptFileError(f"{path} is not the journal of a study; choose another folder")
    if header["version"] > VERSION:
        raise CorruptFileError(
            f"{path} has format {header['version']}; this version reads formats up to {VERSION}; "
            "upgrade embedtopics"
        )
    return events, length


@dataclass(frozen=True)
class Answer:
    """The answer of one annotator to one text; `labels` is None for a skipped text."""

    text: str
    id: str
    by: str
    labels: tuple[str, ...] | None
    stream: str
    unsure: bool = False
    note: str = ""
    time: str = ""
    number: int = -1
    spans: tuple[tuple[str, int, int], ...] = ()  # label, begin and end, in characters


class Records:
    """The answers of a study by text and annotator, and its codebook."""

    def __init__(self, header: Mapping[str, Any]) -> None:
        self.kind: str = header["labels_kind"]
        self.pairs: bool = header.get("pairs", False)
        self.labels: tuple[Label, ...] = read_labels(header["labels"])
        self.design = StudyDesign(**header["design"])
        self.test: frozenset[str] = frozenset(header["test"])
        self.answers: dict[str, dict[str, list[Answer]]] = {}  # by text and annotator
        self.texts_by: dict[str, list[str]] = {}  # texts of each annotator, in order
        self.stream_of: dict[str, str] = {}  # stream of the first answer to a text
        self.n_by_stream: Counter[str] = Counter()
        self.version = 0

    def apply(self, event: Mapping[str, Any]) -> None:
        """Apply one event; a missing or invalid field means a damaged journal."""
        try:
            self._apply(event)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            message = f"event {event.get('n')!r} of the journal is damaged: {error}"
            raise CorruptFileError(f"{message}; restore it from a copy") from error
        self.version += 1

    def _apply(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "answer":
            spans = tuple((str(name), int(a), int(b)) for name, a, b in event.get("spans", ()))
            names = ("text", "id", "by", "stream", "unsure", "note", "time")
            labels = None if event["labels"] is None else tuple(map(str, event["labels"]))
            fields = {name: event[name] for name in names}
            self._add(Answer(**fields, labels=labels, spans=spans, number=int(event["n"])))
        elif event["event"] == "undo":
            self._undo(event["by"])
        elif event["event"] != "study":
            raise ValueError(f"the event {event['event']!r} is unknown")

    def _add(self, answer: Answer) -> None:
        of_text = self.answers.setdefault(answer.text, {})
        if answer.text not in self.stream_of:
            self.stream_of[answer.text] = answer.stream
            self.n_by_stream[answer.stream] += 1
        of_text.setdefault(answer.by, []).append(answer)
        self.texts_by.setdefault(answer.by, []).append(answer.text)

    def _undo(self, by: str) -> None:
        """Remove the last answer of an annotator."""
        if not self.texts_by.get(by):
            return
        text = self.texts_by[by].pop()
        of_text = self.answers[text]
        of_text[by].pop()
        if not of_text[by]:
            del of_text[by]
        if not of_text:
            del self.answers[text]
            self.n_by_stream[self.stream_of.pop(text)] -= 1

    def current(self, text: str) -> dict[str, Answer]:
        """Return the latest answer of each annotator to a text."""
        return {by: answers[-1] for by, answers in self.answers.get(text, {}).items()}

    def label_of(self, text: str) -> tuple[str, ...] | None:
        """Return the labels that most annotators gave; None for a tie."""
        answers = [one for one in self.current(text).values() if one.labels is not None]
        ballots = Counter((tuple(sorted(one.labels or ())), one.spans) for one in answers)
        votes = ballots.most_common(2)
        if not votes or (len(votes) == 2 and votes[0][1] == votes[1][1]):
            return None
        return votes[0][0][0]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the labels, in the codebook's order."""
        return tuple(label.name for label in self.labels)
