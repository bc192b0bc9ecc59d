"""Opening files of unknown origin: what kind, which encoding, and how much may come out."""

import codecs
import difflib
import gzip
import io
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from embedtopics.decisions import Decision
from embedtopics.errors import InputError, Remedy

# UTF-32 first: its mark begins like that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def check_path(path: Path) -> None:
    """Raise InputError where there is nothing to read at a path."""
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise InputError(f"{path}: is a pipe or a device; write its content to a file first")
    except FileNotFoundError:
        names: list[str] = []
        with suppress(OSError):
            names = sorted(entry.name for entry in path.parent.iterdir())
        close = difflib.get_close_matches(path.name, names, n=1)
        nearest = f"did you mean {close[0]!r}? Otherwise " if close else ""
        raise InputError(f"{path}: no such file or folder; {nearest}check the path") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be reached ({error}); check the path") from None


MOST_UNPACKED, MOST_RATIO = 1 << 30, 100
"""Bytes that a packed file may always unpack to, and times its own size. Texts shrink to a third or
a tenth; what shrinks a thousand times was made to fill a memory."""


def check_unpacked(path: Path, n_bytes: int) -> None:
    """Refuse a packed file of which so much comes out."""
    most = max(MOST_UNPACKED, MOST_RATIO * path.stat().st_size)
    if n_bytes > most:
        raise InputError(
            f"{path.name}: unpacks to more than {most:,} bytes, over {MOST_RATIO} times its size; "
            "if that is meant, unpack it yourself and read the unpacked file"
        )


class _Unpacked(gzip.GzipFile):
    """A gzip file of which no more is unpacked than a corpus holds."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "rb")
        self._path = path
        self._most = max(MOST_UNPACKED, MOST_RATIO * path.stat().st_size)

    def read(self, size: int | None = -1) -> bytes:
        left = self._most + 1 - self.tell()
        return self._checked(super().read(left if size is None or size < 0 else min(size, left)))

    def read1(self, size: int = -1) -> bytes:
        return self._checked(super().read1(size))

    def _checked(self, data: bytes) -> bytes:
        check_unpacked(self._path, self.tell())
        return data


@contextmanager
def open_binary(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, decompressed where its name ends in .gz."""
    try:
        if path.suffix.lower() == ".gz":
            with _Unpacked(path) as stream:
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
    """Open a file for reading text; a byte-order mark wins over the encoding "utf-8"."""
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
            f"{offset}",
            remedy=Remedy("encoding", "cp1252", "name the encoding of the file"),
        ) from None
    except UnicodeError as error:  # of codecs with errors of their own
        raise InputError(
            f"{path.name}: expected {encoding} text ({error})",
            remedy=Remedy("encoding", alternative="save the file as UTF-8"),
        ) from None


def describe_encoding(path: Path, encoding: str) -> tuple[Decision, ...]:
    """Return a note if a byte-order mark decides over the file's encoding."""
    actual = _actual_encoding(path, encoding)
    if actual == encoding:
        return ()
    name = actual.removesuffix("-sig")
    message = f"{path.name} begins with the byte-order mark of {name}."
    return (Decision("corpus", "encoding", name, message),)


def _actual_encoding(path: Path, encoding: str) -> str:
    try:
        name = codecs.lookup(encoding).name
        "".encode(name)  # refuses codecs that do not read text, such as "hex"
    except (LookupError, TypeError):
        raise InputError(
            f"{encoding!r} is no text encoding that Python knows; "
            "expected a name such as utf-8, latin-1 or cp1252"
        ) from None
    if name != "utf-8":
        return encoding
    with open_binary(path) as stream:
        head = stream.read(4)
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
            except UnicodeError as error:  # that of a missing byte-order mark has no place
                return offset - pending + getattr(error, "start", 0)
            if not chunk:
                return offset
            offset += len(chunk)
