"""A file of the answers of a language model: a line of JSON for each question, with a checksum.

The first line of a new file, and every other one, begins with the field "time" or "prompt". A file
that begins otherwise is somebody else's and stays as it is. Lines that a crash cut short, and lines
that were changed, count as no answer: their questions are asked again. Lines of former versions
have no checksum.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO

from embedtopics._utils.folders import parse_json
from embedtopics._utils.records import ForeignRecord
from embedtopics.errors import InputError

BEGINNINGS = (b'{"time": ', b'{"prompt": ')
"""What the lines of a record begin with."""

CHECKSUM = "checksum"

LONGEST_LINE = 16_000_000
"""Bytes of a line; an answer has at most a million."""


class RecordedAnswer(ForeignRecord):
    """An answer of a record: a label or a name, or the error for which there is none."""

    endpoint: str
    request: dict[str, Any]
    prompt: Any
    text: str | None = None
    answer: str
    label: str | None = None
    name: str | None = None
    error: str | None = None

    @property
    def value(self) -> str | None:
        """The label or the name."""
        return self.name if self.label is None else self.label


class AnswerRecord:
    """A file with a line for each question; recorded answers are not asked for again.

    Raises
    ------
    InputError
        The path, the argument `parameter`, is not that of a new file or of a record, or it cannot
        be written.
    """

    def __init__(self, path: str | os.PathLike[str] | None, parameter: str = "record") -> None:
        """Read the file, and make sure that it can be written before anything is asked."""
        self.path = None if path is None else Path(path).expanduser()
        self.parameter = parameter
        self._answers: dict[str, RecordedAnswer] = {}
        self._lock = Lock()
        if self.path is None:
            return

        name = os.fspath(self.path)
        try:
            if self.path.exists() and not self.path.is_file():  # a pipe would be waited for
                remedy = "choose another file, or pass None to keep no record"
                raise InputError(
                    parameter, "a file, not a folder, a pipe or a device", name, remedy
                )
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab+") as stream:
                is_ours = self._read(stream)
        except OSError as error:
            raise self._not_written(error) from error

        if not is_ours:
            remedy = "choose another file; this one was left as it is"
            raise InputError(parameter, "a new file, or a record of answers", name, remedy)

    def _read(self, stream: BinaryIO) -> bool:
        """Read the answers; return whether the file is a record, or empty."""
        stream.seek(0)
        line = b""
        for number, line in enumerate(_lines(stream), 1):
            if number == 1 and not line.startswith(BEGINNINGS):
                return False
            answer = _parse_line(line)
            if answer is not None:
                self._answers[_key_of(answer.model_dump())] = answer
        # A line that a crash cut short must not swallow the next one.
        if line and not line.endswith(b"\n"):
            stream.write(b"\n")
        return True

    def _not_written(self, error: OSError) -> InputError:
        reason = error.strerror or error
        return InputError(
            f"could not write {self.path}: {reason}; the answers in it are intact; free some "
            "space or choose another file"
        )

    def find(self, entry: Mapping[str, Any]) -> RecordedAnswer | None:
        """Return the recorded answer to the same question, or None."""
        return self._answers.get(_key_of(entry))

    def add(self, entry: Mapping[str, Any]) -> None:
        """Append one line; a failure leaves the file as it was."""
        if self.path is None:
            return
        line = _line_of({**entry, CHECKSUM: _checksum(entry)})
        with self._lock:
            length = self.path.stat().st_size if self.path.exists() else 0
            try:
                with self.path.open("ab") as stream:
                    stream.write(line)
            except OSError as error:
                with suppress(OSError):
                    os.truncate(self.path, length)
                raise self._not_written(error) from error


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file; one without end comes in pieces, which are no answers."""
    while line := stream.readline(LONGEST_LINE):
        yield line


def _parse_line(line: bytes) -> RecordedAnswer | None:
    """Return the answer that a line holds; None for another line and for a damaged one."""
    try:
        entry = parse_json(line)
        checksum = entry.pop(CHECKSUM, None)
        if checksum is not None and checksum != _checksum(entry):
            return None
        answer = RecordedAnswer.model_validate(entry)
    except (AttributeError, TypeError, ValueError):
        return None
    # Neither a label nor a reason: the answer was not read to its end.
    return answer if answer.value is not None or answer.error else None


def _line_of(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _checksum(entry: Mapping[str, Any]) -> str:
    return sha256(_line_of(entry)).hexdigest()[:32]


def _key_of(entry: Mapping[str, Any]) -> str:
    """Return what makes two questions the same."""
    fields = [entry["endpoint"], entry["request"], entry["prompt"], entry.get("text")]
    return json.dumps(fields, sort_keys=True)
