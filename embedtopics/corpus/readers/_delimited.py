"""Files with a row on each line: csv, tsv, and one text on each line.

The delimiter of a csv file is the one that splits the first rows like the header, or the one that
its first line names (``sep=;``). Tab-separated files and those of one column exist without any
quoting: if quoting does not work for the whole file, their quotes are ordinary characters.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from array import array
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import pandas as pd

from embedtopics.corpus._readers import DocumentTable
from embedtopics.corpus.readers._headers import (
    above_header,
    check_width,
    header_position,
    name_columns,
)
from embedtopics.corpus.readers._opening import File, open_text
from embedtopics.errors import InputError
from embedtopics.results import Decision

_DELIMITERS = ",;\t|"
_NO_DELIMITER = "\x1f"  # no document holds it
_SNIFFED_CHARACTERS = 1 << 16

# The line by which spreadsheets are given the delimiter.
_SEPARATOR_LINE = re.compile(r'"?sep=([^"\w ])"?\r?\n', re.IGNORECASE)

LEAST_FITTING = 0.5
"""Share of the rows below a title and a header that must be as wide as the header."""


class Layout(NamedTuple):
    """How a file is laid out.

    `delimiter` is None for a single column, `n_above` the number of rows above the header, and
    `is_named` whether the first of these rows names the delimiter.
    """

    delimiter: str | None
    n_above: int = 0
    is_named: bool = False


def read_csv(file: File, encoding: str, limit: int | None) -> DocumentTable:
    """Read a csv file with a header line; detect its delimiter."""
    return _read_delimited(file, encoding, limit, _DELIMITERS)


def read_tsv(file: File, encoding: str, limit: int | None) -> DocumentTable:
    """Read a tab-separated file with a header line."""
    return _read_delimited(file, encoding, limit, "\t")


def read_lines(file: File, encoding: str, limit: int | None) -> DocumentTable:
    """Read each line as one document; a blank line is a row without text."""
    with open_text(file, encoding) as handle:
        texts = [line.removesuffix("\n") for line in itertools.islice(handle, limit)]
    if not texts:
        raise InputError(f"{file.name} is empty; write one document on each line")
    frame = pd.DataFrame({"text": texts}, dtype=object)
    return DocumentTable(frame, file.name, untyped=True)


def sniff_delimiter(head: str) -> str | None:
    """Return the delimiter of the beginning of a csv file, or None for a single column."""
    return _layout_of(head, _DELIMITERS).delimiter


def _layout_of(head: str, delimiters: str) -> Layout:
    """Return the layout of the beginning of a file, with one of some delimiters."""
    csv.field_size_limit(2**31 - 1)  # a text may be longer than the 131,072 characters of csv
    if named := _SEPARATOR_LINE.match(head):
        delimiter = named[1]
        rows = _read_loosely(head, delimiter)
        return Layout(delimiter, 1 + header_position(rows[1:]), is_named=True)

    best: tuple[float, int] = (0.0, 1)
    layout = Layout(None)
    for delimiter in delimiters:
        rows = _read_loosely(head, delimiter)
        position = header_position(rows)
        width, fitting = _fit(rows[position:])
        if position > 0 and fitting < LEAST_FITTING:
            position = 0
            width, fitting = _fit(rows)
        if width > 1 and (fitting, width) > best:
            best = fitting, width
            layout = Layout(delimiter, position)

    return layout


def _fit(rows: Sequence[list[str]]) -> tuple[int, float]:
    """Return the width of the first row, and the share of the others that are as wide."""
    if not rows:
        return 1, 1.0
    width = len(rows[0])
    body = rows[1:]
    if not body:
        return width, 1.0
    return width, sum(len(row) == width for row in body) / len(body)


def _read_loosely(head: str, delimiter: str) -> list[list[str]]:
    """Return the rows of the beginning of a file, blank ones left out."""
    rows: list[list[str]] = []
    with suppress(csv.Error):  # the strict reader reports the fault
        rows.extend(csv.reader(io.StringIO(head, newline=""), delimiter=delimiter))
    if len(head) == _SNIFFED_CHARACTERS and len(rows) > 1:
        rows.pop()  # it is cut off
    return [row for row in rows if row]


def _read_delimited(file: File, encoding: str, limit: int | None, delimiters: str) -> DocumentTable:
    with open_text(file, encoding, newline="") as handle:
        layout = _layout_of(handle.read(_SNIFFED_CHARACTERS), delimiters)
    if layout.delimiter is None and delimiters == "\t":
        layout = layout._replace(delimiter="\t")

    notes: tuple[Decision, ...] = ()
    try:
        rows = _read_rows(file, layout, encoding, limit, quoted=True)
    except InputError as with_quotes:
        if layout.delimiter not in ("\t", None):
            raise
        try:
            rows = _read_rows(file, layout, encoding, limit, quoted=False)
        except InputError as without_quotes:
            # The reading that came further is the right one.
            raise max(with_quotes, without_quotes, key=lambda error: error.row or 0) from None
        message = (
            f"Quotes in {file.name} are ordinary characters: they do not enclose whole fields."
        )
        notes = (Decision("corpus", "quoting", "none", message),)

    if not rows.cells:
        raise InputError(f"{file.name}: expected rows below the header, got only the header line")
    header, header_notes = name_columns(rows.header)
    frame = pd.DataFrame(rows.cells, columns=pd.Index(header, dtype=object), dtype=object)
    notes += header_notes + rows.notes
    return DocumentTable(
        frame,
        file.name,
        notes,
        rows.lines,
        cells_only=True,
        untyped=True,
        delimiter=layout.delimiter or "",
    )


class _DelimitedRows(NamedTuple):
    """The header, the rows, the line on which each begins, and what was left out above."""

    header: list[str]
    cells: list[tuple[str, ...]]
    lines: Sequence[int]
    notes: tuple[Decision, ...]


def _read_rows(
    file: File, layout: Layout, encoding: str, limit: int | None, *, quoted: bool
) -> _DelimitedRows:
    """Read a file in which each row has as many fields as the header."""
    header: list[str] = []
    above: list[list[str]] = []
    rows: list[tuple[str, ...]] = []
    lines = array("q")
    line = 1
    header_line = 1

    def broken(place: str, expected: str) -> InputError:
        error = InputError(f"{file.name}, {place}: expected {expected}")
        error.row = len(rows)
        return error

    with open_text(file, encoding, newline="") as handle:
        reader = csv.reader(
            handle,
            delimiter=layout.delimiter or _NO_DELIMITER,
            quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
            strict=True,
        )
        try:
            for fields in reader:
                if fields and len(above) < layout.n_above:
                    above.append(fields)
                elif fields and not header:
                    check_width(file.name, len(fields))
                    header = fields
                    header_line = line
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
        raise InputError(f"{file.name}: expected a header line and rows, got an empty file")

    if layout.is_named:
        above = above[1:]
    notes = above_header(file.name, above, f"line {header_line}") if above else ()
    return _DelimitedRows(header, rows, lines, notes)
