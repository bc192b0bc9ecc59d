"""Tables of documents, in memory and in files: of what kind, which encoding, and how large."""

import codecs
import csv
import gzip
import io
import itertools
import json
import stat
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

import pandas as pd

from embedtopics._utils.checks import require
from embedtopics._utils.display import one_line
from embedtopics.corpus._numbers import integers_with_gaps
from embedtopics.corpus._texts import distinct_names, replace_surrogates
from embedtopics.decisions import Decision
from embedtopics.errors import InputError, Remedy, name_rows


@dataclass(frozen=True, eq=False)
class DocumentTable:
    """A table of documents and its source.

    `lines` holds the line of each row of a text file, `delimiter` what separates its cells.
    """

    frame: pd.DataFrame
    source: str
    notes: tuple[Decision, ...] = ()
    lines: Sequence[int] | None = None
    cells_only: bool = False
    untyped: bool = False
    ids: Sequence[str] | None = None
    delimiter: str = ""


def is_frame(data: object) -> bool:
    """Return whether data has named columns: a frame, a table, a dataset or a mapping."""
    if isinstance(data, Mapping):
        return True
    # The type, because the attribute of a lazy frame would start its computation.
    return hasattr(type(data), "columns") or hasattr(type(data), "column_names")


def is_records(data: object) -> bool:
    """Return whether data is a list of mappings, one for each row."""
    return isinstance(data, Sequence) and bool(len(data)) and isinstance(data[0], Mapping)


def as_table(data: Any) -> DocumentTable:
    """Read a frame of any kind, or a list of mappings."""
    source = type(data).__name__
    if is_records(data):
        return DocumentTable(records_frame(data), source, untyped=True)
    if isinstance(data, Mapping):
        # Objects, because strings of pandas cannot hold lone surrogates.
        columns = {k: [v] if isinstance(v, str) else list(v) for k, v in data.items()}
        return DocumentTable(pd.DataFrame(columns, dtype=object), source, untyped=True)
    if isinstance(data, pd.DataFrame):
        frame = data
    elif is_frame(data) and hasattr(data, "to_pandas"):
        frame = _exact_frame(data)
    else:
        raise InputError(
            "expected a pandas or polars frame, an Arrow table, a datasets.Dataset or a dict of "
            f"lists, got a {source}; give a list of strings as Corpus(texts)"
        )
    refuse_repeated(frame, source)
    return DocumentTable(frame, source)


def _exact_frame(table: Any) -> pd.DataFrame:
    """Convert a table of another library; integers with missing values stay integers."""
    arrow = table.with_format("arrow")[:] if hasattr(table, "with_format") else table
    try:
        frame = arrow.to_pandas(integer_object_nulls=True)
    except TypeError:  # neither Arrow nor polars
        return cast("pd.DataFrame", table.to_pandas())
    for name in frame.columns[~frame.columns.duplicated(keep=False)]:
        if pd.api.types.is_object_dtype(frame[name].dtype):
            frame[name] = integers_with_gaps(frame[name])
    return cast("pd.DataFrame", frame)


def records_frame(records: Iterable[Mapping[Any, object]]) -> pd.DataFrame:
    """Convert mappings to columns of objects, in the order of their keys; None where missing."""
    frame = pd.DataFrame(list(records), dtype=object)
    return frame.where(frame.notna(), None)


def refuse_repeated(frame: pd.DataFrame, source: str) -> None:
    """Refuse repeated column names."""
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise InputError(
            f"{source}: expected distinct column names, got {repeated[0]!r} more than once; "
            "rename one of them"
        )


# UTF-32 first: its mark begins like that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


MOST_UNPACKED = 1 << 30  # bytes of an office file, or of a file in an archive


class Member:
    """A file in an archive, as much like a path as readers need; nothing is written to disk."""

    def __init__(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
        self.name, self.suffix = Path(info.filename).name, Path(info.filename).suffix
        self._archive, self._info = archive, info

    def open(self, mode: str) -> BinaryIO:
        """Unpack it in memory."""
        _refuse_bomb(self.name, [self._info])
        try:
            return io.BytesIO(self._archive.read(self._info))
        # RuntimeError: it is encrypted, or its compression is unknown.
        except (zipfile.BadZipFile, RuntimeError, zlib.error, EOFError, OSError) as error:
            raise InputError(f"{self.name}: cannot be unpacked ({one_line(error)})") from None


def _refuse_bomb(name: str, files: Iterable[zipfile.ZipInfo]) -> None:
    """Refuse packed files that unpack to more than the memory should hold."""
    if sum(file.file_size for file in files) > MOST_UNPACKED:
        raise InputError(f"{name}: unpacks to more than {MOST_UNPACKED:,} bytes; unpack it first")


File: TypeAlias = Path | Member


def suffix_of(name: str) -> str:
    """Return the suffix of a name, in small letters and without that of gzip."""
    return Path(name.lower().removesuffix(".gz")).suffix


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


def check_package(path: File, data: BinaryIO) -> None:
    """Refuse a .docx or .xlsx file that is no archive, or that unpacks too far."""
    try:
        with zipfile.ZipFile(data) as archive:
            _refuse_bomb(path.name, archive.infolist())
    except zipfile.BadZipFile:
        raise InputError(
            f"{path.name}: is damaged, encrypted or in the format of old Office; save a new copy "
            f"without a password as {path.suffix}"
        ) from None
    data.seek(0)


@contextmanager
def open_binary(path: File) -> Iterator[BinaryIO]:
    """Open a file for reading bytes; decompress a .gz file."""
    try:
        with path.open("rb") as file:
            if path.suffix.lower() == ".gz":
                with gzip.open(file) as stream:
                    yield cast(BinaryIO, stream)
            else:
                yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(
            f"{path.name}: expected a gzip file, got damaged or incomplete data ({error}); "
            "fetch or compress the file again"
        ) from None
    except OSError as error:
        raise InputError(f"{path.name}: cannot be read ({error.strerror or error})") from None


@contextmanager
def open_text(path: File, encoding: str, newline: str | None = None) -> Iterator[io.TextIOBase]:
    """Open a file for reading text; a byte-order mark overrides the encoding "utf-8"."""
    actual = _actual_encoding(path, encoding)
    try:
        with open_binary(path) as stream:
            yield cast(io.TextIOBase, io.TextIOWrapper(stream, encoding=actual, newline=newline))
    except UnicodeError as error:
        problem = str(error)
        if isinstance(error, UnicodeDecodeError):
            problem = f"got the byte 0x{error.object[error.start]:02x}"
        raise InputError(
            f"{path.name}: expected {encoding} text, {problem}",
            remedy=Remedy("encoding", "cp1252", "name the encoding of the file"),
        ) from None


def _actual_encoding(path: File, encoding: str) -> str:
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
        head = stream.read(4)
    return next((marked for mark, marked in _MARKS if head.startswith(mark)), encoding)


# The delimiter of a csv file is the one that splits the first rows like the header. Tab-separated
# files and those of one column exist without any quoting: if quoting does not work for the whole
# file, their quotes are ordinary characters.

_DELIMITERS, _NO_DELIMITER = ",;\t|", "\x1f"  # no document holds the last
_SNIFFED_CHARACTERS = 1 << 16


def _read_csv(path: File, encoding: str, limit: int | None) -> DocumentTable:
    """Read a csv file with a header line; detect its delimiter."""
    with open_text(path, encoding, newline="") as handle:
        delimiter = sniff_delimiter(handle.read(_SNIFFED_CHARACTERS))
    return _read_delimited(path, encoding, limit, delimiter or _NO_DELIMITER)


def sniff_delimiter(head: str) -> str | None:
    """Return the delimiter of the beginning of a csv file, or None for a single column."""
    csv.field_size_limit(2**31 - 1)  # a text may be longer than the 131,072 characters of csv
    best: tuple[float, int] = (0.0, 1)
    best_delimiter = None
    for delimiter in _DELIMITERS:
        rows = [row for row in _read_loosely(head, delimiter) if row]
        width = len(rows[0]) if rows else 1
        body = rows[1:]
        fitting = sum(len(row) == width for row in body) / len(body) if body else 1.0
        if width > 1 and (fitting, width) > best:
            best, best_delimiter = (fitting, width), delimiter
    return best_delimiter


def _read_loosely(head: str, delimiter: str) -> list[list[str]]:
    rows: list[list[str]] = []
    with suppress(csv.Error):  # the strict reader reports the fault
        rows.extend(csv.reader(io.StringIO(head, newline=""), delimiter=delimiter))
    cut_off = len(head) == _SNIFFED_CHARACTERS and len(rows) > 1
    return rows[:-1] if cut_off else rows


def _read_delimited(
    path: File, encoding: str, limit: int | None, delimiter: str = "\t"
) -> DocumentTable:
    notes: tuple[Decision, ...] = ()
    try:
        header, rows, lines = _read_rows(path, delimiter, encoding, limit, quoted=True)
    except InputError as with_quotes:
        if delimiter not in ("\t", _NO_DELIMITER):
            raise
        try:
            header, rows, lines = _read_rows(path, delimiter, encoding, limit, quoted=False)
        except InputError as without_quotes:
            # The reading that came further is the right one.
            raise max(with_quotes, without_quotes, key=lambda error: error.row or 0) from None
        message = (
            f"Quotes in {path.name} are ordinary characters: they do not enclose whole fields."
        )
        notes = (Decision("corpus", "quoting", "none", message),)
    if not rows:
        raise InputError(f"{path.name}: expected rows below the header, got only the header line")
    header, header_notes = _name_columns(header)
    frame = pd.DataFrame(rows, columns=pd.Index(header, dtype=object), dtype=object)
    notes += header_notes
    return DocumentTable(
        frame, path.name, notes, lines, cells_only=True, untyped=True, delimiter=delimiter
    )


def _read_rows(
    path: File, delimiter: str, encoding: str, limit: int | None, *, quoted: bool
) -> tuple[list[str], list[tuple[str, ...]], Sequence[int]]:
    """Return the header, the rows, and the line on which each begins."""
    header: list[str] = []
    rows: list[tuple[str, ...]] = []
    lines = array("q")
    line = 1

    def broken(place: str, expected: str) -> InputError:
        error = InputError(f"{path.name}, {place}: expected {expected}")
        error.row = len(rows)
        return error

    quoting: Any = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    with open_text(path, encoding, newline="") as handle:
        reader = csv.reader(handle, delimiter=delimiter, quoting=quoting, strict=True)
        try:
            for fields in reader:
                if fields and not header:
                    header = fields
                elif fields:
                    lines.append(line)
                    if len(fields) != len(header):
                        raise broken(
                            f"line {line}",
                            f"{len(header)} fields as in the header, got {len(fields)}; put fields "
                            "that hold the delimiter or a line end in double quotes",
                        )
                    # The garbage collector does not track tuples of strings.
                    rows.append(tuple(fields))
                    if len(rows) == limit:
                        break
                line = reader.line_num + 1
        except csv.Error as error:
            never_closed = "a quote that is never closed"
            raise broken(
                f"line {line}" if header else f"header (line {line})",
                "a closed quote around each quoted field, got "
                f"{never_closed if 'end of data' in str(error) else error}; write a quote inside a "
                'quoted field twice ("")',
            ) from None
    if not header:
        raise InputError(f"{path.name}: expected a header line and rows, got an empty file")
    return header, rows, lines


def _name_columns(header: list[str]) -> tuple[list[str], tuple[Decision, ...]]:
    """Name columns without a name, and make repeated names distinct."""
    cells = [cell.strip() for cell in header]
    names = distinct_names([cell or f"column {n}" for n, cell in enumerate(cells, 1)])
    changed = [name for name, cell in zip(names, cells, strict=True) if name != cell]
    if not changed:
        return names, ()
    message = f"Columns without a distinct name were named {', '.join(map(repr, changed))}."
    return names, (Decision("corpus", "named_columns", changed, message),)


def read_lines(path: File, encoding: str, limit: int | None) -> DocumentTable:
    """Read each line as one document; a blank line is a row without text."""
    with open_text(path, encoding) as handle:
        texts = [line.removesuffix("\n") for line in itertools.islice(handle, limit)]
    if not texts:
        raise InputError(f"{path.name} is empty; write one document on each line")
    frame = pd.DataFrame({"text": texts}, dtype=object)
    return DocumentTable(frame, path.name, untyped=True)


def _read_json_lines(path: File, encoding: str, limit: int | None) -> DocumentTable:
    """Read one JSON object from each line; skip blank lines."""
    lines = array("q")

    def parsed(handle: Iterable[str]) -> Iterator[object]:
        for number, line in enumerate(handle, start=1):
            if line.strip():
                lines.append(number)
                yield _parse_json(line, f"{path.name}, line {number}")

    with open_text(path, encoding) as handle:
        frame = _frame_of_records(itertools.islice(parsed(handle), limit), path, lines)
    return DocumentTable(frame, path.name, lines=lines, untyped=True)


def _read_json(path: File, encoding: str, limit: int | None) -> DocumentTable:
    """Read a JSON array of objects, or JSON Lines under this suffix."""
    with open_text(path, encoding) as handle:
        content = handle.read()
    if not content.lstrip().startswith("["):
        return _read_json_lines(path, encoding, limit)
    records = _parse_json(content, path.name)
    frame = _frame_of_records(records[:limit], path)
    return DocumentTable(frame, path.name, untyped=True)


def _parse_json(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (RecursionError, ValueError) as error:
        raise InputError(
            f"{place}: expected valid JSON, got a fault ({error}); write one complete JSON object "
            "a line, or one array of objects"
        ) from None


def _frame_of_records(
    records: Iterable[object], path: File, lines: Sequence[int] | None = None
) -> pd.DataFrame:
    """Convert objects to columns, in the order of their keys; a string is a text."""
    rows: list[dict[str, object]] = []
    for record in records:
        row = {"text": record} if isinstance(record, str) else record
        if not isinstance(row, dict):
            raise InputError(
                f"{path.name}, {name_rows([len(rows)], lines)}: expected a JSON object with named "
                f"fields, got a {type(record).__name__}; write documents as objects such as "
                '{"text": "..."}'
            )
        rows.append({replace_surrogates(key): value for key, value in row.items()})
    if not rows:
        raise InputError(f"{path.name}: expected JSON objects, got an empty file")
    return records_frame(rows)


def _read_parquet(path: File, encoding: str, limit: int | None) -> DocumentTable:
    """Read a Parquet file, whose encoding is fixed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_binary(path) as stream:
        try:
            is_packed = path.suffix.lower() == ".gz"
            table = pq.ParquetFile(io.BytesIO(stream.read()) if is_packed else stream).read()
            table.validate(full=True)  # offsets of a damaged file could point anywhere
            frame = _exact_frame(table.slice(0, limit))
        except pa.ArrowException as error:
            raise InputError(
                f"{path.name}: is no Parquet file ({str(error).splitlines()[0]}); write it again"
            ) from None
    refuse_repeated(frame, path.name)
    if not len(frame):
        raise InputError(f"{path.name}: expected rows, got an empty file (no rows)")
    return DocumentTable(frame, path.name)


def _read_workbook(path: File, encoding: str, limit: int | None) -> DocumentTable:
    """Read the first sheet of a workbook."""
    openpyxl = require("openpyxl", "reading .xlsx files", "files")
    rows: list[dict[int, Any]] = []
    with open_binary(path) as stream:
        check_package(path, stream)
        try:
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True, keep_links=False)
            first, *others = book.worksheets
            first.reset_dimensions()  # a file may name any
            for values in first.iter_rows(values_only=True):
                if cells := {n: cell for n, cell in enumerate(values) if cell not in (None, "")}:
                    rows.append(cells)
                if limit is not None and len(rows) > limit:
                    break
        except Exception as error:  # a damaged file raises anything
            raise InputError(
                f"{path.name}: is damaged ({one_line(error)}); save it again"
            ) from None
    places = sorted({*itertools.chain(*rows)})
    if len(rows) < 2:
        raise InputError(f"{path.name}: expected a header and rows in the sheet {first.title!r}")
    names, notes = _name_columns([str(rows[0].get(place, "")) for place in places])
    if others:
        sheets = [sheet.title for sheet in others]
        message = f"Of {path.name}, only the first sheet is read; others are {', '.join(sheets)}."
        notes += (Decision("corpus", "other_sheets", sheets, message),)
    cells_of = [[row.get(place) for place in places] for row in rows[1:]]
    frame = pd.DataFrame(cells_of, columns=pd.Index(names, dtype=object), dtype=object)
    return DocumentTable(frame, path.name, notes, cells_only=True, untyped=True)


TABLES: dict[str, Callable[[File, str, int | None], DocumentTable]] = {
    ".csv": _read_csv,
    ".tsv": _read_delimited,
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".json": _read_json,
    ".parquet": _read_parquet,
    ".xlsx": _read_workbook,
    ".txt": read_lines,
}
"""Readers of files that hold a document in each row or line."""
