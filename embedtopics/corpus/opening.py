"""Opening files of text so that whatever is wrong with them is said in one line."""

from __future__ import annotations

import codecs
import difflib
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from embedtopics.corpus.tables import note
from embedtopics.errors import InputError
from embedtopics.results import Decision

__all__ = ["check_path", "describe_encoding", "open_binary", "open_text"]

# UTF-32 is left out: its mark begins like UTF-16's, and no tool of the field writes it.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def check_path(path: Path) -> None:
    """Raise InputError where there is nothing to read at a path."""
    try:
        path.stat()
    except FileNotFoundError:
        raise InputError(
            f"{path}: no such file or folder; {_nearest(path)}check the path"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be reached ({error}); check the path") from None


def _nearest(path: Path) -> str:
    try:
        names = sorted(entry.name for entry in path.parent.iterdir())
    except OSError:
        return ""
    close = difflib.get_close_matches(path.name, names, n=1)
    return f"did you mean {close[0]!r}? Otherwise " if close else ""


@contextmanager
def open_binary(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, decompressed where its name ends in .gz.

    Raises
    ------
    InputError
        The file cannot be read, or its compression is damaged; raised wherever in the body of
        the ``with`` the bytes run out.
    """
    try:
        if path.suffix.lower() == ".gz":
            with gzip.open(path, "rb") as stream:
                yield cast(BinaryIO, stream)
        else:
            with path.open("rb") as file:
                yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(
            f"{path.name}: expected a gzip file, got damaged or incomplete data ({error}); "
            "fetch or compress the file again"
        ) from None
    except PermissionError:
        raise InputError(
            f"{path.name}: permission to read the file was denied; change its access rights"
        ) from None
    except OSError as error:
        raise InputError(f"{path.name}: cannot be read ({error.strerror or error})") from None


@contextmanager
def open_text(path: Path, encoding: str, newline: str | None = None) -> Iterator[io.TextIOBase]:
    """Open a file for reading text; a byte-order mark wins over the encoding "utf-8".

    Parameters
    ----------
    path : Path
    encoding : str
        Any that Python knows.
    newline : str, optional
        As in `open`.

    Raises
    ------
    InputError
        As `open_binary`, and for bytes that the encoding does not allow (with their offset).
    """
    actual = _actual_encoding(path, encoding)
    try:
        with open_binary(path) as stream:
            yield cast(io.TextIOBase, io.TextIOWrapper(stream, encoding=actual, newline=newline))
    except UnicodeDecodeError as error:
        offset = _first_bad_byte(path, actual)
        where = "decompressed " if path.suffix.lower() == ".gz" else ""
        wrong = error.object[error.start : error.start + 1].hex()
        raise InputError(
            f"{path.name}: expected {encoding} text, got the byte 0x{wrong} at {where}offset "
            f"{offset}; name the file's encoding, for example --encoding latin-1 "
            '(encoding="latin-1")'
        ) from None


def describe_encoding(path: Path, encoding: str) -> tuple[Decision, ...]:
    """Return a note if a byte-order mark decides over the file's encoding."""
    actual = _actual_encoding(path, encoding)
    if actual == encoding:
        return ()
    name = actual.removesuffix("-sig")
    return (note("encoding", name, f"{path.name} begins with the byte-order mark of {name}."),)


def _actual_encoding(path: Path, encoding: str) -> str:
    try:
        name = codecs.lookup(encoding).name
        "".encode(name)  # refuses codecs that do not read text, such as "hex"
    except LookupError:
        raise InputError(
            f"{encoding!r} is no text encoding that Python knows; "
            "expected a name such as utf-8, latin-1 or cp1252"
        ) from None
    if name != "utf-8":
        return encoding
    with open_binary(path) as stream:
        head = stream.read(3)
    return next((marked for mark, marked in _MARKS if head.startswith(mark)), encoding)


def _first_bad_byte(path: Path, encoding: str) -> int:
    """Return the offset at which decoding fails; a text stream only knows it within its buffer."""
    decoder = codecs.getincrementaldecoder(encoding.removesuffix("-sig"))()
    offset = 0
    with open_binary(path) as stream:
        while True:
            chunk = stream.read(1 << 20)
            pending = len(decoder.getstate()[0])
            try:
                decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                return offset - pending + error.start
            if not chunk:
                return offset
            offset += len(chunk)
