"""The header of a table that people made: where it is, and the names of its columns.

Exports of surveys and offices begin with titles, with lines about the export, and with blank lines.
The header is the first row unless a later one is wider, holds a distinct name for each column of
the rows below it, and every row above it is a title: a row that fills at most half of the columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median_low
from typing import Any, TypeAlias

from embedtopics.corpus._texts import distinct_names
from embedtopics.errors import InputError
from embedtopics.results import Decision

Row: TypeAlias = Sequence[Any]

# Rows among which the header is sought, and rows below it that show how wide the table is.
MOST_ROWS_ABOVE = 20
ROWS_BELOW = 100

LONGEST_NAME = 60
"""Characters of the name of a column."""

MOST_COLUMNS = 10_000
"""Columns of a table with cells: more are counts or codes, not documents. This number takes pandas
three seconds of CPU time."""

_NUMERAL = re.compile(r"[-+\d.,:/%\s]*\d[-+\d.,:/%\s]*")

# Names that no title has.
_USUAL_NAMES = frozenset("text texts body content id doc_id date time year".split())


def header_position(rows: Sequence[Row]) -> int:
    """Return the position of the header among the first rows of a table, blank ones left out."""
    if not rows or not _USUAL_NAMES.isdisjoint(_names(rows[0])):
        return 0
    for position in range(1, min(len(rows) - 1, MOST_ROWS_ABOVE + 1)):
        header = rows[position]
        below = rows[position + 1 : position + 1 + ROWS_BELOW]
        if not _may_be_header(header, below):
            continue
        if all(_may_be_above(row, header) for row in rows[:position]):
            return position
    return 0


def _names(row: Row) -> list[str]:
    return [str(cell).strip().casefold() for cell in row if _is_filled(cell)]


def _is_filled(cell: Any) -> bool:
    return cell is not None and bool(str(cell).strip())


def _n_filled(row: Row) -> int:
    return sum(map(_is_filled, row))


def _holds_names(row: Row) -> bool:
    """Return whether each cell that is not blank could be the name of a column."""
    cells = [cell for cell in row if _is_filled(cell)]
    for cell in cells:
        if not isinstance(cell, str) or len(cell) > LONGEST_NAME:
            return False
        # Prose that was split at its commas has a space after each.
        if _NUMERAL.fullmatch(cell) or cell[0].isspace():
            return False
    return len(set(_names(row))) == len(cells)


def _may_be_header(row: Row, below: Sequence[Row]) -> bool:
    """Return whether a row names the columns of the rows below it."""
    n_names = _n_filled(row)
    if n_names < 2 or not _holds_names(row):
        return False
    if n_names < median_low(_n_filled(other) for other in below):
        return False

    # A category of the data recurs in its column; the name of a column does not.
    for place, name in enumerate(row):
        if _is_filled(name) and any(place < len(other) and other[place] == name for other in below):
            return False
    return True


def _may_be_above(row: Row, header: Row) -> bool:
    """Return whether a row is a title, or says something of the export, and is no header."""
    n_filled = _n_filled(row)
    n_names = _n_filled(header)
    if n_filled == 0:
        return True

    is_comment = str(row[0]).startswith("#")
    if is_comment and not _holds_names(row):
        return True
    if n_filled >= n_names:
        return False

    # The first column of a header is without a name if it holds the labels of the rows.
    if not _is_filled(row[0]):
        return n_filled == 1 and n_names > 2
    return 2 * n_filled <= n_names or not _holds_names(row)


def above_header(source: str, rows: Sequence[Row], place: str) -> tuple[Decision, ...]:
    """Return a decision about the rows above the header."""
    titles = [" ".join(str(cell).strip() for cell in row if _is_filled(cell)) for row in rows]
    shown = "; ".join(repr(title[:60]) for title in titles[:3] if title)
    message = f"The header of {source} is in {place}. What stands above it was left out: {shown}."
    return (Decision("corpus", "above_header", titles, message),)


def check_width(source: str, n_columns: int) -> None:
    """Refuse a table of more columns than a corpus can have."""
    if n_columns > MOST_COLUMNS:
        raise InputError(
            "path",
            f"a table with at most {MOST_COLUMNS:,} columns",
            found=f"{n_columns:,} in {source}",
            remedy="keep the columns of texts and metadata",
        )


def name_columns(header: Sequence[str]) -> tuple[list[str], tuple[Decision, ...]]:
    """Name columns without a name, and make repeated names distinct."""
    cells = [cell.strip() for cell in header]
    names = distinct_names([cell or f"column {n}" for n, cell in enumerate(cells, 1)])
    changed = [name for name, cell in zip(names, cells, strict=True) if name != cell]
    if not changed:
        return names, ()
    message = f"Columns without a distinct name were named {', '.join(map(repr, changed))}."
    return names, (Decision("corpus", "named_columns", changed, message),)
