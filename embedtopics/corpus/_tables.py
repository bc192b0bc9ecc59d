"""What every input becomes before it is a corpus: a data frame and an account of its reading."""

from __future__ import annotations

import codecs
import difflib
import gzip
import io
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import pandas as pd

from embedtopics.corpus.results import Decision
from embedtopics.errors import InputError

MISSING_MARKERS = frozenset(
    ("NA", "N/A", "#N/A", "<NA>", "NaN", "nan", "NaT", "NULL", "null", "None")
)
"""Cells of csv and tsv files that stand for "no value" in the text and time columns."""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows and columns as they were read, and where they came from."""

    frame: pd.DataFrame
    source: str
    notes: tuple[Decision, ...] = ()
    lines: Sequence[int] | None = None
    cells_only: bool = False
    untyped: bool = False
    id_column: str | None = None

    def name_row(self, row: int) -> str:
        """Name the row at a position, from 0, as messages do."""
        return name_row(row, self.lines)


def note(name: str, value: object, message: str) -> Decision:
    """Return a decision of the corpus."""
    return Decision("corpus", name, value, message)


def name_row(row: int, lines: Sequence[int] | None = None) -> str:
    """Name the row at a position, from 0, as messages do: counted from 1, with its line."""
    if lines is None or lines[row] == row + 1:
        return f"row {row + 1}"
    return f"row {row + 1} (line {lines[row]})"


def name_rows(rows: Sequence[int], lines: Sequence[int] | None = None) -> str:
    """Name several rows, the first three of them one by one."""
    names = [name_row(row, lines) for row in rows[:3]]
    if len(rows) > 3:
        return f"{', '.join(names)} and {len(rows) - 3} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def is_frame(data: object) -> bool:
    """Return whether something has named columns: a frame, a table, a dataset or a mapping."""
    if isinstance(data, Mapping):
        return True
    # Asked of the type, because asking a lazy frame would set it to work.
    return hasattr(type(data), "columns") or hasattr(type(data), "column_names")


def is_records(data: object) -> bool:
    """Return whether something is a list of mappings, a row each."""
    return isinstance(data, Sequence) and bool(len(data)) and isinstance(data[0], Mapping)


def as_table(data: object) -> Table:
    """Read a frame of any kind, or a list of mappings."""
    source = type(data).__name__
    _refuse_unread(data)
    untyped = False
    if isinstance(data, pd.DataFrame):
        frame = data
    elif is_records(data):
        frame, untyped = _from_records(cast(Sequence[Any], data)), True
    elif isinstance(data, Mapping):
        frame, untyped = _from_mapping(data), True
    elif is_frame(data) and hasattr(data, "to_pandas"):
        frame = data.to_pandas()
    else:
        raise InputError(
            "expected a pandas or polars frame, an Arrow table, a datasets.Dataset or a dict of "
            f"lists, got a {source}; give a list of strings to Corpus.from_texts"
        )
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise InputError(
            f"{source}: expected distinct column names, got {repeated[0]!r} more than once; "
            "rename one of them"
        )
    return Table(frame, source, untyped=untyped)


def _refuse_unread(data: object) -> None:
    """Refuse what looks like a table and is only the promise, or a bundle, of one."""
    polars, datasets = sys.modules.get("polars"), sys.modules.get("datasets")
    if polars and isinstance(data, polars.LazyFrame):
        raise InputError("expected a polars DataFrame, got a LazyFrame; call .collect() first")
    if datasets and isinstance(data, datasets.DatasetDict):
        splits = ", ".join(repr(split) for split in data)
        raise InputError(
            f"expected one datasets.Dataset, got a DatasetDict; choose a split ({splits})"
        )
    if datasets and isinstance(data, datasets.IterableDataset | datasets.IterableDatasetDict):
        raise InputError(
            f"expected a datasets.Dataset, got a {type(data).__name__}, which is read as a stream; "
            "load it with streaming=False"
        )


def _from_records(data: Sequence[Any]) -> pd.DataFrame:
    for row, record in enumerate(data):
        if not isinstance(record, Mapping):
            raise InputError("data", "a list of mappings", record, row=row)
    names = list(dict.fromkeys(name for record in data for name in record))
    columns = {name: [record.get(name) for record in data] for name in names}
    return pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in columns.items()})


def _from_mapping(data: Mapping[Any, Any]) -> pd.DataFrame:
    for name, column in data.items():
        if isinstance(column, str) or not hasattr(column, "__len__"):
            raise InputError(
                f"expected a dict of lists of one length, got a {type(column).__name__} under "
                f"{name!r}; give every column as a list"
            )
    lengths = {name: len(column) for name, column in data.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(
            f"expected a dict of lists of one length, got lengths {lengths}; "
            "give every column the same number of rows"
        )
    # Objects, because half of a surrogate pair cannot be held by pandas' own strings.
    return pd.DataFrame({k: pd.Series(list(v), dtype=object) for k, v in data.items()})


# Opening files of text so that whatever is wrong with them is said in one line.

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
    """Open a file for reading bytes, decompressed where its name ends in .gz."""
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
            f"{offset}; name the file's encoding, often --encoding cp1252 "
            '(encoding="cp1252")'
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
