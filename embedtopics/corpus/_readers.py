"""Reading files: which reader a file's name calls for, and the formats that are not tabular."""

from __future__ import annotations

import csv
import io
import itertools
import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import pandas as pd

from embedtopics.corpus._hashing import replace_surrogates
from embedtopics.corpus._tables import (
    Table,
    check_path,
    describe_encoding,
    name_row,
    note,
    open_binary,
    open_text,
)
from embedtopics.corpus.results import Decision
from embedtopics.errors import InputError

# Reading csv and tsv files row by row, strictly.
#
# A csv file may use ``,``, ``;``, ``|`` or a tab; the one that splits its first rows as it splits
# its header is taken. Quotes follow the common rule: a field that holds a delimiter, a quote or a
# line end stands in double quotes, and a quote inside it is doubled.
#
# Tab-separated files are written both with that rule and without any quoting, and do not say
# which. They are read with quoting if the whole file can be read so (every quote that opens a field
# closes it, every row has the header's number of fields), and otherwise with every quote taken as
# an ordinary character. The same holds for files of one column.

_DELIMITERS = ",;\t|"
_DELIMITER_NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a vertical bar"}
# A control character that no document holds: the file is read as a single column.
_NO_DELIMITER = "\x1f"
_SNIFFED_CHARACTERS = 1 << 16
_LARGEST_FIELD = 2**31 - 1
_field_limit = Lock()


class _BrokenRow(Exception):
    """A row that does not fit; `row` tells how far the reading came."""

    def __init__(self, row: int, message: str) -> None:
        super().__init__(message)
        self.row = row


@dataclass(frozen=True, eq=False)
class _Rows:
    header: list[str]
    rows: list[tuple[str, ...]]
    lines: Sequence[int]


def read_csv(path: Path, encoding: str, limit: int | None) -> Table:
    """Read a csv file with a header line; its delimiter is found from its first rows."""
    with open_text(path, encoding, newline="") as handle:
        delimiter = sniff_delimiter(handle.read(_SNIFFED_CHARACTERS))
    if delimiter is None:
        message = f"{path.name} has one column."
    else:
        message = f"The columns of {path.name} are separated by {_DELIMITER_NAMES[delimiter]}."
    notes = (note("delimiter", delimiter or "", message),)
    return _read(path, delimiter or _NO_DELIMITER, encoding, limit, notes)


def read_tsv(path: Path, encoding: str, limit: int | None) -> Table:
    """Read a tab-separated file with a header line."""
    return _read(path, "\t", encoding, limit, ())


def sniff_delimiter(head: str) -> str | None:
    """Return the delimiter of the beginning of a csv file, or None for a single column.

    The delimiter must split the header; of those that do, the one by which most rows have as
    many fields as the header wins, and then the one with the most fields.
    """
    best: tuple[float, int] = (0.0, 1)
    found = None
    for delimiter in _DELIMITERS:
        rows = [row for row in _read_loosely(head, delimiter) if row]
        width = len(rows[0]) if rows else 1
        body = rows[1:]
        fitting = sum(len(row) == width for row in body) / len(body) if body else 1.0
        if width > 1 and (fitting, width) > best:
            best, found = (fitting, width), delimiter
    return found


def _read_loosely(head: str, delimiter: str) -> list[list[str]]:
    rows: list[list[str]] = []
    try:
        rows.extend(csv.reader(io.StringIO(head, newline=""), delimiter=delimiter))
    except csv.Error:
        pass  # the strict reading will say what is wrong, and where
    cut_off = len(head) == _SNIFFED_CHARACTERS and len(rows) > 1
    return rows[:-1] if cut_off else rows


def _read(
    path: Path, delimiter: str, encoding: str, limit: int | None, notes: tuple[Decision, ...]
) -> Table:
    if delimiter in ("\t", _NO_DELIMITER):
        found, quoting_notes = _read_either_way(path, delimiter, encoding, limit)
    else:
        quoting_notes = ()
        try:
            found = _read_rows(path, delimiter, encoding, limit, quoted=True)
        except _BrokenRow as broken:
            raise InputError(str(broken)) from None
    if not found.rows:
        raise InputError(f"{path.name}: expected rows below the header, got only the header line")
    header, header_notes = _name_columns(found.header)
    frame = pd.DataFrame(found.rows, columns=pd.Index(header, dtype=object), dtype=object)
    notes = describe_encoding(path, encoding) + notes + quoting_notes + header_notes
    return Table(frame, path.name, notes, found.lines, cells_only=True, untyped=True)


def _read_either_way(
    path: Path, delimiter: str, encoding: str, limit: int | None
) -> tuple[_Rows, tuple[Decision, ...]]:
    try:
        return _read_rows(path, delimiter, encoding, limit, quoted=True), ()
    except _BrokenRow as broken:
        with_quotes = broken
    try:
        found = _read_rows(path, delimiter, encoding, limit, quoted=False)
    except _BrokenRow as without_quotes:
        # The reading that came further is the one that the file's author had in mind.
        further = max(with_quotes, without_quotes, key=lambda broken: broken.row)
        raise InputError(str(further)) from None
    message = f"Quotes in {path.name} are ordinary characters: they do not enclose whole fields."
    return found, (note("quoting", "none", message),)


def _read_rows(
    path: Path, delimiter: str, encoding: str, limit: int | None, *, quoted: bool
) -> _Rows:
    header: list[str] = []
    rows: list[tuple[str, ...]] = []
    lines = array("q")
    line = 1
    with open_text(path, encoding, newline="") as handle, _fields_of_any_size():
        reader = csv.reader(
            handle,
            delimiter=delimiter,
            quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
            strict=True,
        )
        try:
            for fields in reader:
                if fields and not header:
                    header = fields
                elif fields:
                    lines.append(line)
                    if len(fields) != len(header):
                        raise _wrong_width(path, lines, len(fields), len(header))
                    # Tuples of strings, unlike lists, cost the garbage collector nothing.
                    rows.append(tuple(fields))
                    if len(rows) == limit:
                        break
                line = reader.line_num + 1
        except csv.Error as error:
            raise _broken_quotes(path, lines, line, error, bool(header)) from None
    if not header:
        raise InputError(f"{path.name}: expected a header line and rows, got an empty file")
    return _Rows(header, rows, lines)


def _wrong_width(path: Path, lines: Sequence[int], width: int, expected: int) -> _BrokenRow:
    row = len(lines) - 1
    return _BrokenRow(
        row,
        f"{path.name}, {name_row(row, lines)}: expected {expected} fields as in the header, got "
        f"{width}; put fields that hold the delimiter or a line end in double quotes",
    )


def _broken_quotes(
    path: Path, lines: Sequence[int], line: int, error: csv.Error, in_body: bool
) -> _BrokenRow:
    row = len(lines)
    where = name_row(row, [*lines, line]) if in_body else f"header (line {line})"
    reason = "a quote that is never closed" if "end of data" in str(error) else str(error)
    return _BrokenRow(
        row,
        f"{path.name}, {where}: expected a closed quote around each quoted field, got {reason}; "
        'write a quote inside a quoted field twice ("")',
    )


def _name_columns(header: list[str]) -> tuple[list[str], tuple[Decision, ...]]:
    """Give a name to columns without one, and tell apart those that share one."""
    names: list[str] = []
    changed = []
    for position, given in enumerate(header, start=1):
        name = given.strip() or f"column {position}"
        while name in names:
            name = f"{name} ({position})"
        if name != given.strip():
            changed.append(name)
        names.append(name)
    if not changed:
        return names, ()
    message = f"Columns without a name of their own were named {', '.join(map(repr, changed))}."
    return names, (note("named_columns", changed, message),)


@contextmanager
def _fields_of_any_size() -> Iterator[None]:
    """Lift the csv module's limit on the size of a field; it is global, hence put back."""
    with _field_limit:
        before = csv.field_size_limit(_LARGEST_FIELD)
        try:
            yield
        finally:
            csv.field_size_limit(before)


def read_file(path: Path, encoding: str = "utf-8", limit: int | None = None) -> Table:
    """Read a file of documents, or a folder of text files."""
    if limit is not None and limit < 1:
        raise InputError(f"limit must be None or at least 1, got {limit}")
    check_path(path)
    if path.is_dir():
        return _read_folder(path, encoding, limit)
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix not in _READERS:
        raise InputError(
            f"{path.name}: expected a file that ends in {', '.join(SUFFIXES)} (or one of these "
            f"and .gz) or a folder of .txt files, got {suffix or 'no suffix'!r}; convert or "
            "rename the file"
        )
    return _READERS[suffix](path, encoding, limit)


def _read_folder(folder: Path, encoding: str, limit: int | None) -> Table:
    """Read each .txt file below a folder as one document, in the order of their names."""
    names = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.name.lower().endswith((".txt", ".txt.gz")) and path.is_file()
    )
    # Names with a leading dot are what systems leave behind, not documents.
    visible = [n for n in names if not any(part.startswith(".") for part in n.split("/"))]
    if not visible:
        raise InputError(
            f"{folder}: expected a file, or a folder that holds .txt files, got a folder without "
            "any; give the path of a file"
        )
    notes: list[Decision] = []
    if len(visible) < len(names):
        n_hidden = len(names) - len(visible)
        notes.append(note("hidden_files", n_hidden, f"{n_hidden} hidden files were left out."))
    texts = []
    for name in visible[:limit]:
        with open_text(folder / name, encoding) as handle:
            texts.append(handle.read())
        notes.extend(describe_encoding(folder / name, encoding))
    visible = visible[:limit]
    columns = {"text": texts, "file": visible}
    if any("/" in name for name in visible):
        columns["folder"] = [name.rpartition("/")[0] for name in visible]
    frame = pd.DataFrame(columns, dtype=object)
    return Table(frame, folder.name or str(folder), tuple(notes), untyped=True, id_column="file")


def _read_lines(path: Path, encoding: str, limit: int | None) -> Table:
    """Read each line as one document; blank lines stay as rows without text."""
    with open_text(path, encoding) as handle:
        texts = [line.removesuffix("\n") for line in itertools.islice(handle, limit)]
    if not texts:
        raise InputError(f"{path.name}: expected one document a line, got an empty file")
    frame = pd.DataFrame({"text": texts}, dtype=object)
    return Table(frame, path.name, describe_encoding(path, encoding), untyped=True)


def _read_json_lines(path: Path, encoding: str, limit: int | None) -> Table:
    """Read one JSON object a line; blank lines are skipped."""
    lines = array("q")
    with open_text(path, encoding) as handle:
        records = itertools.islice(_parse_lines(handle, path, lines), limit)
        frame = _frame_of_records(records, path, lambda row: name_row(row, lines))
    return Table(frame, path.name, describe_encoding(path, encoding), lines, untyped=True)


def _parse_lines(handle: Iterable[str], path: Path, lines: array[int]) -> Iterator[object]:
    """Yield the value on each line that is not blank, and add its number to `lines`."""
    for number, line in enumerate(handle, start=1):
        if line.strip():
            lines.append(number)
            yield _parse_json(line, path, name_row(len(lines) - 1, lines))


def _read_json(path: Path, encoding: str, limit: int | None) -> Table:
    """Read a JSON array of objects; anything else must be JSON Lines under another name."""
    with open_text(path, encoding) as handle:
        content = handle.read()
    if not content.lstrip().startswith("["):
        return _read_json_lines(path, encoding, limit)
    records = _parse_json(content, path, "")
    frame = _frame_of_records(records[:limit], path, name_row)
    return Table(frame, path.name, describe_encoding(path, encoding), untyped=True)


def _parse_json(text: str, path: Path, where: str) -> Any:
    place = f"{path.name}, {where}" if where else path.name
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = "" if where else f"line {error.lineno}, "
        raise InputError(
            f"{place}: expected valid JSON, got a fault at {line}column {error.colno} "
            f"({error.msg}); write one complete JSON object a line"
            + (", or one array of objects" if not where else "")
        ) from None
    except (RecursionError, ValueError) as error:
        raise InputError(
            f"{place}: expected a plain JSON object, got one that Python cannot hold ({error})"
        ) from None


def _frame_of_records(
    records: Iterable[object], path: Path, name: Callable[[int], str]
) -> pd.DataFrame:
    """Turn objects into columns in the order in which their keys appear; strings into texts."""
    columns: dict[str, list[object]] = {}
    n_rows = 0
    for record in records:
        if isinstance(record, str):
            record = {"text": record}
        if not isinstance(record, dict):
            raise InputError(
                f"{path.name}, {name(n_rows)}: expected a JSON object with named fields, got a "
                f"{type(record).__name__}; write documents as objects such as "
                '{"text": "..."}'
            )
        record = {replace_surrogates(key): value for key, value in record.items()}
        for key in record:
            if key not in columns:
                columns[key] = [None] * n_rows
        for key, column in columns.items():
            column.append(record.get(key))
        n_rows += 1
    if n_rows == 0:
        raise InputError(f"{path.name}: expected JSON objects, got an empty file")
    return pd.DataFrame(columns, dtype=object, index=pd.RangeIndex(n_rows))


def _read_parquet(path: Path, encoding: str, limit: int | None) -> Table:
    """Read a Parquet file; its text has an encoding of its own."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_binary(path) as stream:
        data = io.BytesIO(stream.read()) if path.suffix.lower() == ".gz" else stream
        try:
            file = pq.ParquetFile(data)
            table = file.read() if limit is None else _first_rows(file, limit)
            frame = table.to_pandas()
        except pa.ArrowException as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"{path.name}: expected a Parquet file, got data that cannot be read as one "
                f"({reason}); write the file again"
            ) from None
    if not len(frame):
        raise InputError(f"{path.name}: expected rows, got an empty file (no rows)")
    return Table(frame, path.name)


def _first_rows(file: Any, limit: int) -> Any:
    """Return the first rows of a Parquet file, without reading the others."""
    import pyarrow as pa

    batches: list[Any] = []
    for batch in file.iter_batches(batch_size=min(limit, 65536)):
        batches.append(batch)
        if sum(map(len, batches)) >= limit:
            break
    return pa.Table.from_batches(batches, schema=file.schema_arrow).slice(0, limit)


_READERS: dict[str, Callable[[Path, str, int | None], Table]] = {
    ".csv": read_csv,
    ".tsv": read_tsv,
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".json": _read_json,
    ".parquet": _read_parquet,
    ".txt": _read_lines,
}
SUFFIXES = tuple(_READERS)
"""What the name of a file that can be read ends in."""


# Where the demo corpus lies: inside an installed package, or in the repository.


def demo_path() -> Path:
    """Return the path of the demo corpus, a CSV file."""
    package = Path(__file__).parents[1]
    for path in (package / "data" / "demo.csv", package.parent / "data" / "demo.csv"):
        if path.is_file():
            return path
    raise InputError("the demo corpus is missing from this installation; install the package again")
