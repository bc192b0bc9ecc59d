"""Journals as lines of JSON: format 1, and what is exported for people and repositories.

A line is an event. An exported line also has the digest of the event in the journal, the SHA-256 of
the digest before it and of the event, so that changed, missing and added lines are noticed. Format
1 has none; there the form of an event and its number are checked.

A process that was killed may have left the beginning of a line, whose event was never confirmed.
Nothing else may be wrong with a file: whatever is, is named with its line, and the file stays.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from embedtopics._utils.folders import parse_json, replacing_file
from embedtopics.annotation._events import KIND, VERSION, parse_event, text_of_event
from embedtopics.corpus._texts import replace_surrogates
from embedtopics.errors import CorruptFileError

LINES_NAME = "journal.jsonl"
DIGEST = "digest"

LONGEST_LINE = 100_000_000
"""Bytes of a line; the first one names the test texts."""


class JournalLines(NamedTuple):
    """The events of a file, as JSON, and the number of lines that a crash cut short: 0 or 1."""

    texts: list[str]
    n_torn: int


def digest_after(digest: str, text: str) -> str:
    """Return the digest of an event, from the digest before it and its JSON."""
    return sha256(f"{digest}\n{text}".encode()).hexdigest()


def write_lines(rows: Iterable[tuple[str, str]], path: str | os.PathLike[str]) -> Path:
    """Write events, given as JSON and digest, as lines of JSON."""
    with replacing_file(Path(path)) as fresh:
        with fresh.open("w", encoding="ascii", newline="\n") as stream:
            for text, digest in rows:
                stream.write(text_of_event({**json.loads(text), DIGEST: digest}) + "\n")
    return Path(path)


def read_lines(path: Path) -> JournalLines:
    """Read a file of lines, or name the line at fault; the file is not changed."""
    texts: list[str] = []
    digest = ""
    has_digests = False

    with path.open("rb") as stream:
        while line := stream.readline(LONGEST_LINE):
            n = len(texts)
            if _is_torn(line, n):
                return JournalLines(texts, n_torn=1)

            try:
                text, recorded = _read_line(line, n)
                has_digests = has_digests or (n == 0 and recorded is not None)
                digest = digest_after(digest, text)
                if has_digests and recorded != digest:
                    raise ValueError("its digest differs from the recorded one")
            except ValueError as error:
                raise _damaged(path, n, str(error)) from error
            texts.append(text)
    return JournalLines(texts, n_torn=0)


def _is_torn(line: bytes, n: int) -> bool:
    """Return whether a line without end is the beginning of event `n`, cut short by a crash."""
    beginning = f'{{"n": {n}, "time": "'.encode()
    written = line.rstrip(b"\0")  # which a file system may add after a loss of power
    is_cut = not line.endswith((b"\n", b"}")) and len(line) < LONGEST_LINE
    return is_cut and written[: len(beginning)] == beginning[: len(written)]


def _read_line(line: bytes, n: int) -> tuple[str, str | None]:
    """Return the JSON of an event, and its digest if it has one."""
    entry: Any = parse_json(line)
    if not isinstance(entry, dict):
        raise ValueError("it is not an event")
    version = entry.get("version", VERSION)
    if entry.get("kind") == KIND and isinstance(version, int) and version > VERSION:
        raise ValueError(
            f"its format is {version}, and this version reads formats up to {VERSION}; upgrade "
            "embedtopics"
        )
    recorded = entry.pop(DIGEST, None)
    # Ids may hold lone surrogates in format 1.
    entry = json.loads(replace_surrogates(json.dumps(entry, ensure_ascii=False)))
    text = text_of_event(entry)
    parse_event(text, n)
    return text, recorded


def _damaged(path: Path, n: int, problem: str) -> CorruptFileError:
    """Return the error about the line of event `n`."""
    if n == 0:
        message = f"{path} is not the journal of a study; choose another folder (line 1: {problem})"
    else:
        message = f"line {n + 1} of {path} is damaged: {problem}; restore it from a copy"
    return CorruptFileError(message[:1000])
