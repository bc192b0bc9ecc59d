"""What was asked and answered: kept so that nothing is asked twice, and written down to be read."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any

from embedtopics.encoders.cache_folder import NAMES
from embedtopics.encoders.store import default_folder
from embedtopics.errors import InputError

__all__ = ["AnswerCache", "Audit", "open_audit", "open_cache"]


@dataclass(frozen=True)
class AnswerCache:
    """Answers on disk, each in a file named by a hash of what was asked.

    Parameters
    ----------
    folder : Path or None
        None keeps nothing.
    """

    folder: Path | None

    def find(self, request: Mapping[str, Any]) -> str | None:
        """Return the answer to a request; None where there is none, or it is damaged."""
        if self.folder is None:
            return None
        try:
            kept = json.loads(self._path(request).read_text("utf-8"))
            answer = kept["answer"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return answer if isinstance(answer, str) else None

    def keep(self, request: Mapping[str, Any], answer: str) -> None:
        """Keep an answer; a cache that cannot be written costs a question, not the run."""
        if self.folder is None:
            return
        path = self._path(request)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            number, fresh = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".new")
            try:
                with open(number, "w", encoding="utf-8") as stream:
                    json.dump({"model": request.get("model"), "answer": answer}, stream)
                os.replace(fresh, path)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(fresh)

    def _path(self, request: Mapping[str, Any]) -> Path:
        assert self.folder is not None
        whole = json.dumps(request, ensure_ascii=True, sort_keys=True)
        name = blake2b(whole.encode(), digest_size=16).hexdigest()
        return self.folder / f"{name}.json"


def open_cache(cache: Any) -> AnswerCache:
    """Return the cache of a folder; True is the toolkit's own, False is none."""
    if isinstance(cache, bool):
        return AnswerCache(default_folder() / NAMES if cache else None)
    if isinstance(cache, (str, os.PathLike)):
        folder = Path(cache).expanduser()
        if folder.exists() and not folder.is_dir():
            raise InputError(f"cache must be a folder; {folder} is a file; name another one")
        return AnswerCache(folder)
    raise InputError(f"cache must be True, False or a folder; got {cache!r}")


@dataclass(frozen=True)
class Audit:
    """A file with a line of JSON for every call.

    Parameters
    ----------
    path : Path or None
        None writes nothing.
    """

    path: Path | None
    _lock: Lock = field(default_factory=Lock, repr=False)

    def add(self, entry: Mapping[str, Any]) -> None:
        """Append a line in one piece.

        Raises
        ------
        InputError
            Where it cannot be written: what is not on record must not go on.
        """
        if self.path is None:
            return
        line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        try:
            with self._lock:
                number = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
                try:
                    if os.write(number, line) < len(line):
                        raise OSError("the disk is full")
                finally:
                    os.close(number)
        except OSError as error:
            raise InputError(
                f"could not write the record {self.path}: {error.strerror or error}; free some "
                "space or name another file with audit="
            ) from error


def open_audit(audit: Any) -> Audit:
    """Make sure that the record can be written before anything is asked.

    Raises
    ------
    InputError
        Where it cannot.
    """
    if audit is None:
        return Audit(None)
    if not isinstance(audit, (str, os.PathLike)):
        raise InputError(f"audit must be a file, or None for no record; got {audit!r}")
    path = Path(audit).expanduser()
    try:
        with path.open("ab") as stream:
            # A line that was broken off by a crash must not swallow the next.
            if stream.tell():
                with path.open("rb") as content:
                    content.seek(-1, os.SEEK_END)
                    is_whole = content.read(1) == b"\n"
                if not is_whole:
                    stream.write(b"\n")
    except OSError as error:
        raise InputError(
            f"cannot write the record {path}: {error.strerror or error}; name another file with "
            "audit=, or None for no record"
        ) from error
    return Audit(path)
