"""Workbooks (.xlsx): the first sheet.

openpyxl reads the cells, through its parser of sheets: its own reading by rows adds an empty cell
for every gap, so that a row number of 10**18 never ends, and hides which cells are merged.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import pandas as pd

from embedtopics._utils.checks import require
from embedtopics._utils.display import one_line
from embedtopics.corpus._readers import DocumentTable
from embedtopics.corpus.readers._headers import (
    MOST_ROWS_ABOVE,
    ROWS_BELOW,
    above_header,
    check_width,
    header_position,
    name_columns,
)
from embedtopics.corpus.readers._opening import File, check_package, open_binary, open_package
from embedtopics.errors import InputError
from embedtopics.results import Decision

# The last row and column of a sheet in Excel.
LAST_ROW = 1_048_576
LAST_COLUMN = 16_384

_BYTES_OF_CELL = 8
"""Bytes of a reference: a table has one for each cell, also for those that a sheet leaves out."""

_MERGED = re.compile(
    rb"""<(?:\w+:)?mergeCell\s[^<>]{0,100}?ref=["']([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})["']"""
)
_LONGEST_REFERENCE = 200
"""Bytes of the element of a merged range, which may be cut between two pieces of a file."""


class _Range(NamedTuple):
    """Merged cells: their column and their rows; a value stands in the first row."""

    column: int
    first: int
    last: int


class _Sheet(NamedTuple):
    """The filled cells of rows by column, and what could not be read, by kind and column."""

    title: str
    numbers: list[int]
    rows: list[dict[int, Any]]
    problems: Counter[tuple[str, int]]
    merged: list[_Range]
    others: list[str]


def read_workbook(file: File, encoding: str, limit: int | None) -> DocumentTable:
    """Read the first sheet of a workbook."""
    openpyxl = require("openpyxl", "reading .xlsx files", "files")
    with open_binary(file) as stream:
        sheet = _read_sheet(openpyxl, file, stream, limit)
    if len(sheet.rows) < 2:
        raise InputError(f"{file.name}: expected a header and rows in the sheet {sheet.title!r}")

    # Find the header among the first rows, each as wide as the sheet.
    places = sorted({*itertools.chain(*sheet.rows)})
    check_width(file.name, len(places))
    n_first = MOST_ROWS_ABOVE + ROWS_BELOW
    first = [[row.get(place) for place in places] for row in sheet.rows[:n_first]]
    position = header_position(first)
    names, notes = name_columns(["" if cell is None else str(cell) for cell in first[position]])
    if position > 0:
        notes += above_header(file.name, first[:position], f"row {sheet.numbers[position]}")

    # The cells between filled ones, and merged cells, cost memory too.
    file.unpacked.add(file.name, _BYTES_OF_CELL * len(sheet.rows) * len(places))
    n_merged = _fill_merged(sheet, position + 1)
    rows = sheet.rows[position + 1 :][:limit]

    name_of = dict(zip(places, names, strict=True))
    notes += tuple(_notes(file.name, sheet, name_of, n_merged))
    cells = [[row.get(place) for place in places] for row in rows]
    frame = pd.DataFrame(cells, columns=pd.Index(names, dtype=object), dtype=object)
    return DocumentTable(frame, file.name, notes, cells_only=True, untyped=True)


def _read_sheet(openpyxl: Any, file: File, stream: BinaryIO, limit: int | None) -> _Sheet:
    """Read the rows with a value of the first sheet: all, or enough for a limit."""
    n_rows = None if limit is None else limit + MOST_ROWS_ABOVE + 1
    problems: Counter[tuple[str, int]] = Counter()

    with open_package(file, stream) as archive:
        check_package(file, archive)
        try:
            book = openpyxl.load_workbook(
                archive.fp, read_only=True, data_only=True, keep_links=False
            )
            first, *others = book.worksheets
            with first._get_source() as part:
                merged = list(_merged_ranges(part))
            with first._get_source() as part:
                parser = _parser_of(first, part, problems)
                numbers, rows = _rows(file, parser, n_rows)
        except InputError:
            raise
        except Exception as error:  # a damaged file raises anything
            raise InputError(
                f"{file.name}: is damaged ({one_line(error)}); save it again"
            ) from None

    titles = [sheet.title for sheet in others]
    return _Sheet(first.title, numbers, rows, problems, merged, titles)


def _parser_of(sheet: Any, part: Any, problems: Counter[tuple[str, int]]) -> Any:
    """Return a parser of a sheet that counts the cells whose value is not in the file."""
    from openpyxl.worksheet._reader import FORMULA_TAG, WorkSheetParser

    class Parser(WorkSheetParser):  # type: ignore[misc]
        def parse_cell(self, element: Any) -> dict[str, Any]:
            cell: dict[str, Any] = super().parse_cell(element)
            if cell["data_type"] == "e":
                problems["errors", cell["column"]] += 1
                cell["value"] = None
            elif cell["value"] is None and element.find(FORMULA_TAG) is not None:
                problems["formulas", cell["column"]] += 1
            return cell

    book = sheet.parent
    return Parser(
        part,
        sheet._shared_strings,
        data_only=True,
        epoch=book.epoch,
        date_formats=book._date_formats,
        timedelta_formats=book._timedelta_formats,
    )


def _rows(file: File, parser: Any, n_rows: int | None) -> tuple[list[int], list[dict[int, Any]]]:
    """Return the numbers of the rows that hold a value, and their filled cells by column."""
    numbers: list[int] = []
    rows: list[dict[int, Any]] = []
    for number, cells in parser.parse():
        filled = {
            cell["column"]: cell["value"] for cell in cells if cell["value"] not in (None, "")
        }

        if number > LAST_ROW or max(filled, default=0) > LAST_COLUMN:
            raise InputError(
                "path",
                f"a sheet with at most {LAST_ROW:,} rows and {LAST_COLUMN:,} columns",
                found=f"a cell in row {number:,} of {file.name}",
                remedy="save it again",
            )

        if filled:
            numbers.append(number)
            rows.append(filled)
        if len(rows) == n_rows:
            break
    return numbers, rows


def _merged_ranges(part: Any) -> Iterator[_Range]:
    """Yield merged cells of several rows; they stand at the end of a sheet, after its rows."""
    from openpyxl.utils import column_index_from_string

    end = b""
    while piece := part.read(1 << 20):
        text = end + piece
        last_end = 0
        for match in _MERGED.finditer(text):
            last_end = match.end()
            column = column_index_from_string(match[1].decode())
            merged = _Range(column, int(match[2]), int(match[4]))
            if merged.first < merged.last:
                yield merged
        end = text[max(last_end, len(text) - _LONGEST_REFERENCE) :]


def _fill_merged(sheet: _Sheet, start: int) -> Counter[int]:
    """Give the value of merged cells to each of their rows from a position on.

    Return the number of cells that were filled, by column.
    """
    position_of = {number: position for position, number in enumerate(sheet.numbers)}
    n_filled: Counter[int] = Counter()
    for column, first, last in sheet.merged:
        top = position_of.get(first, -1)
        if top < start or column not in sheet.rows[top]:
            continue
        value = sheet.rows[top][column]
        for position in range(top + 1, len(sheet.rows)):
            row = sheet.rows[position]
            # A cell that is filled already ends the range, so that no cell is visited twice.
            if sheet.numbers[position] > last or column in row:
                break
            row[column] = value
            n_filled[column] += 1

    return n_filled


def _notes(
    source: str, sheet: _Sheet, name_of: dict[int, str], n_merged: Counter[int]
) -> Iterator[Decision]:
    """Yield what was decided on a sheet, or could not be read."""
    if sheet.others:
        titles = ", ".join(sheet.others)
        message = f"Of {source}, only the first sheet is read; others are {titles}."
        yield Decision("corpus", "other_sheets", sheet.others, message)
    if n_merged:
        columns = ", ".join(name_of[column] for column in sorted(n_merged))
        message = (
            f"Merged cells of {source} count for each of their rows (cells that were filled: "
            f"{n_merged.total():,}, in {columns})."
        )
        yield Decision("corpus", "merged_cells", n_merged.total(), message)

    reasons = {
        "formulas": "have no stored value; open and save it in a spreadsheet program",
        "errors": "have an error as value",
    }
    for kind, reason in reasons.items():
        n_of_column = {
            column: n for (of_kind, column), n in sheet.problems.items() if of_kind == kind
        }
        if n_of_column:
            n_cells = sum(n_of_column.values())
            names = [name_of.get(column, f"column {column}") for column in sorted(n_of_column)]
            message = (
                f"Cells of {source} are missing because their formulas {reason} (cells: "
                f"{n_cells:,}, in {', '.join(names)})."
            )
            yield Decision("corpus", kind, n_cells, message)
