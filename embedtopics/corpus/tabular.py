"""Reading csv and tsv files row by row, strictly.

A csv file may use ``,``, ``;``, ``|`` or a tab; the one that splits its first rows as it splits
its header is taken. Quotes follow the common rule: a field that holds a delimiter, a quote or a
line end stands in double quotes, and a quote inside it is doubled.

Tab-separated files are written both with that rule and without any quoting, and do not say
which. They are read with quoting if the whole file can be read so (every quote that opens a field
closes it, every row has the header's number of fields), and otherwise with every quote taken as
an ordinary character. The same holds for files of one column.
"""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import pandas as pd

from embedtopics.corpus.opening import describe_encoding, open_text
from embedtopics.corpus.tables import Table, name_row, note
from embedtopics.errors import InputError
from embedtopics.results import Decision

__all__ = ["read_csv", "read_tsv", "sniff_delimiter"]

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
    r"""Return the delimiter of the beginning of a csv file, or None for a single column.

    The delimiter must split the header; of those that do, the one by which most rows have as
    many fields as the header wins, and then the one with the most fields.

    Examples
    --------
    >>> sniff_delimiter("id;text\n1;yes, indeed\n")
    ';'
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
