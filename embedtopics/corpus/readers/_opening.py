"""Open files of a folder, an archive or a package, and unpack them within one limit.

A packed file may hold a thousand times its size, and its headers may state any size. So the bytes
are counted while they are unpacked. All files of one reading (a file, a folder or an archive) share
the limit, because their texts are held in memory together.
"""

from __future__ import annotations

import bz2
import codecs
import copy
import gzip
import io
import lzma
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from embedtopics._utils.display import one_line
from embedtopics.errors import InputError, Remedy

# Bytes of all files of one reading once they are unpacked. Packed texts take between a third and
# a tenth of their size, so large collections may unpack to twenty times their size.
MOST_UNPACKED = 1 << 30
MOST_PER_PACKED_BYTE = 20

# Markup of one packed file, which becomes a tree. An empty element takes thirty times its bytes,
# and five million tags take half a minute.
MOST_MARKUP = 1 << 27
MOST_TAGS = 5_000_000

_BYTES_OF_LINE = 8
"""Bytes that a line counts for beside its own: a blank line costs a reference and time too."""

_PIECE = 4096
"""Packed bytes that are read at once; of LZMA, zipfile unpacks all that these bytes hold."""

_DAMAGE = (
    OSError, EOFError, RuntimeError, NotImplementedError, ValueError, MemoryError,
    zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
"""What the libraries raise while they unpack damaged, encrypted or unknown data."""


class Unpacked:
    """The bytes that one reading has unpacked so far.

    Parameters
    ----------
    source : str
        Name of the file, folder or archive.
    n_packed : int
        Bytes of its files on disk.
    """

    def __init__(self, source: str, n_packed: int) -> None:
        self.source = source
        self.most = max(MOST_UNPACKED, MOST_PER_PACKED_BYTE * n_packed)
        self._n_of_file: dict[str, int] = {}
        self._n_bytes = 0

    @property
    def is_too_much(self) -> bool:
        """Whether the limit was passed, so that no other file can be read."""
        return self._n_bytes > self.most

    def begin(self, name: str) -> None:
        """Forget the bytes of a file that is read again."""
        self._n_bytes -= self._n_of_file.pop(name, 0)

    def add(self, name: str, n: int) -> None:
        """Count bytes of a file, and raise InputError above the limit."""
        self._n_of_file[name] = self._n_of_file.get(name, 0) + n
        self._n_bytes += n
        if self.is_too_much:
            place = self.source if name == self.source else f"{name} in {self.source}"
            raise InputError(
                "path",
                f"files that unpack to at most {self.most:,} bytes together",
                found=f"more from {place}",
                remedy="remove what is no text, or unpack the files first",
            )


@dataclass(frozen=True)
class File:
    """A file on disk or in an archive.

    Parameters
    ----------
    name : str
        Its name, without folders.
    unpacked : Unpacked
        What its reading has unpacked so far.
    open : callable
        Opens its bytes.
    is_packed : bool
        Whether its size on disk is not known to be that of its bytes.
    """

    name: str
    unpacked: Unpacked
    open: Callable[[], BinaryIO]
    is_packed: bool = False

    @property
    def suffix(self) -> str:
        """The end of its name, such as ".csv"."""
        return Path(self.name).suffix

    @classmethod
    def on_disk(cls, path: Path, unpacked: Unpacked | None = None) -> File:
        """Return a file of the file system, which shares the limit of other files."""
        if unpacked is None:
            unpacked = Unpacked(path.name, path.stat().st_size)
        return cls(path.name, unpacked, lambda: path.open("rb"), suffix_is_gz(path.name))

    @classmethod
    def in_archive(
        cls, archive: zipfile.ZipFile, info: zipfile.ZipInfo, unpacked: Unpacked
    ) -> File:
        """Return a file of an archive; nothing is written to disk."""
        name = Path(info.filename).name
        return cls(name, unpacked, lambda: open_member(archive, info, name, unpacked), True)


def suffix_of(name: str) -> str:
    """Return the suffix of a name, in small letters and without that of gzip."""
    return Path(name.lower().removesuffix(".gz")).suffix


def suffix_is_gz(name: str) -> bool:
    """Return whether a name ends like that of a gzip file."""
    return name.lower().endswith(".gz")


def check_path(path: Path) -> None:
    """Raise InputError for a path that cannot be read; a pipe would be waited for."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        is_missing = isinstance(error, FileNotFoundError)
        reason = "no such file or folder" if is_missing else f"cannot be reached ({error})"
        raise InputError(f"{path}: {reason}; check the path") from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError(f"{path} is a pipe or a device; write its content to a file")


class _Counted(io.RawIOBase):
    """Bytes of a packed stream, counted as they are unpacked."""

    def __init__(
        self, stream: Any, name: str, unpacked: Unpacked, damaged: str, *, piece: int = 1 << 16
    ) -> None:
        self._stream = stream
        self._piece = piece  # bytes that are asked for at once
        self._name = name
        self._unpacked = unpacked
        self._damaged = damaged  # the message of an error, with the fields name and reason

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._stream.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(min(len(buffer), self._piece))
        except InputError:
            raise
        except _DAMAGE as error:
            reason = one_line(error) or type(error).__name__
            raise InputError(self._damaged.format(name=self._name, reason=reason)) from None
        n_lines = data.count(b"\n")
        self._unpacked.add(self._name, len(data) + _BYTES_OF_LINE * n_lines)
        buffer[: len(data)] = data
        return len(data)


class _Bzip2Member:
    """A member of an archive that is packed by bzip2.

    zipfile would unpack all that 4,096 packed bytes hold, which may be gigabytes.
    """

    def __init__(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
        packed = copy.copy(info)
        packed.compress_type = zipfile.ZIP_STORED
        packed.file_size = info.compress_size
        del packed.CRC  # it is that of the unpacked bytes
        self._packed = archive.open(packed)
        self._unpacker = bz2.BZ2Decompressor()
        self._stated_crc = info.CRC
        self._crc = 0

    def read(self, n: int) -> bytes:
        while not self._unpacker.eof:
            packed = self._packed.read(_PIECE) if self._unpacker.needs_input else b""
            if self._unpacker.needs_input and not packed:
                raise EOFError("it is cut off")
            data = self._unpacker.decompress(packed, n)
            if data:
                self._crc = zlib.crc32(data, self._crc)
                return data
        if self._crc != self._stated_crc:
            raise zipfile.BadZipFile("its checksum is wrong")
        return b""

    def close(self) -> None:
        self._packed.close()


def open_member(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, unpacked: Unpacked
) -> BinaryIO:
    """Open a file of an archive; its bytes are counted under a name."""
    damaged = "{name}: cannot be unpacked ({reason})"

    # zipfile would stop at the size that the header states, and not notice that more follows.
    unbounded = copy.copy(info)
    unbounded.file_size = 1 << 62

    stream: Any
    try:
        if info.compress_type == zipfile.ZIP_BZIP2:
            stream = _Bzip2Member(archive, info)
        else:
            stream = archive.open(unbounded)
    except _DAMAGE as error:
        raise InputError(damaged.format(name=name, reason=one_line(error))) from None

    piece = _PIECE if info.compress_type == zipfile.ZIP_LZMA else 1 << 16
    counted = _Counted(stream, name, unpacked, damaged, piece=piece)
    return cast(BinaryIO, io.BufferedReader(counted, piece))


@contextmanager
def open_binary(file: File) -> Iterator[BinaryIO]:
    """Open a file for reading bytes; decompress a .gz file."""
    file.unpacked.begin(file.name)

    try:
        with file.open() as stream:
            if suffix_is_gz(file.name):
                damaged = (
                    "{name}: expected a gzip file, got damaged or incomplete data ({reason}); "
                    "fetch or compress the file again"
                )
                with gzip.open(stream) as content:
                    counted = _Counted(content, file.name, file.unpacked, damaged)
                    yield cast(BinaryIO, io.BufferedReader(counted))
            else:
                yield stream
    except OSError as error:
        raise InputError(f"{file.name}: cannot be read ({error.strerror or error})") from None


def seekable(stream: BinaryIO) -> BinaryIO:
    """Return a stream in which a reader can jump, in memory if it is packed."""
    return stream if stream.seekable() else io.BytesIO(stream.read())


def read_markup(name: str, stream: BinaryIO, *, is_packed: bool) -> bytes:
    """Return the bytes of a file, or of a part of it, that becomes a tree in memory."""
    if not is_packed:
        return stream.read()
    content = stream.read(MOST_MARKUP + 1)
    if len(content) > MOST_MARKUP or content.count(b"<") > MOST_TAGS:
        raise InputError(
            "path",
            f"a file with at most {MOST_MARKUP:,} bytes and {MOST_TAGS:,} tags of packed markup",
            found=f"more from {name}",
            remedy="divide it, or unpack it first",
        )
    return content


@contextmanager
def open_package(file: File, stream: BinaryIO) -> Iterator[zipfile.ZipFile]:
    """Open the archive that a .docx or .xlsx file is."""
    try:
        archive = zipfile.ZipFile(seekable(stream))
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        raise InputError(
            f"{file.name}: is damaged, encrypted or in the format of old Office; save a new copy "
            f"without a password as {file.suffix}"
        ) from None
    with archive:
        yield archive


def check_package(file: File, archive: zipfile.ZipFile) -> None:
    """Refuse a package that unpacks too far, states wrong sizes, or declares entities.

    It is unpacked once, piece by piece, because libraries trust the sizes that its headers state.
    """
    for info in archive.infolist():
        is_xml = info.filename.lower().endswith((".xml", ".rels"))
        n_bytes = 0
        end = b""
        with open_member(archive, info, file.name, file.unpacked) as part:
            while piece := part.read(1 << 16):
                n_bytes += len(piece)
                text = end + piece
                if b"\0" in text:  # UTF-16 has one beside each letter
                    text = text.replace(b"\0", b"")
                if is_xml and b"<!DOCTYPE" in text:
                    raise InputError(
                        f"{file.name}: declares entities of its own, which no office program does; "
                        "save it again"
                    )
                end = piece[-32:]

        if n_bytes != info.file_size:
            raise InputError(f"{file.name}: is damaged (a part has another size); save it again")


# UTF-32 first: its mark begins like that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@contextmanager
def open_text(file: File, encoding: str, newline: str | None = None) -> Iterator[io.TextIOBase]:
    """Open a file for reading text; a byte-order mark overrides the encoding "utf-8"."""
    actual = _actual_encoding(file, encoding)

    try:
        with open_binary(file) as stream:
            yield cast(io.TextIOBase, io.TextIOWrapper(stream, encoding=actual, newline=newline))
    except UnicodeError as error:
        problem = str(error)
        if isinstance(error, UnicodeDecodeError):
            problem = f"got the byte 0x{error.object[error.start]:02x}"
        raise InputError(
            f"{file.name}: expected {encoding} text, {problem}",
            remedy=Remedy("encoding", "cp1252", "name the encoding of the file"),
        ) from None


def _actual_encoding(file: File, encoding: str) -> str:
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
    with open_binary(file) as stream:
        head = stream.read(4)
    return next((marked for mark, marked in _MARKS if head.startswith(mark)), encoding)
