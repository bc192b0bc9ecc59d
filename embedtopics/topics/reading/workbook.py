"""Tables as the sheets of one Excel workbook, which runs nothing that it holds."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._progress import progress_bar
from embedtopics._spreadsheets import FORMULA_STARTS
from embedtopics.corpus.hashing import replace_surrogates
from embedtopics.errors import InputError, MissingExtraError
from embedtopics.results import Decision
from embedtopics.topics.reading.columns import plain_value

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["write_workbook"]

MOST_ROWS = 1_048_576
MOST_COLUMNS = 16_384
MOST_CHARACTERS = 32_767
"""Limits of a sheet and of a cell, in UTF-16 units, as Microsoft states them."""

MOST_DIGITS = 10**15
"""Excel keeps 15 digits of a number."""

FIRST_DATE, AFTER_LAST_DATE = datetime(1900, 3, 1), datetime(9999, 12, 31)
"""Excel counts a day in February 1900 that there was not, and no days before."""

_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_LINE_END = re.compile("\r\n?")
_READ_AS_OTHER = (*FORMULA_STARTS, "#")
"""What a text begins with that could be read as a formula or as the name of an error."""

_MESSAGES = {
    "control_characters": "Control characters were removed",
    "line_ends": "Carriage returns became plain line ends",
    "long_texts": f"Texts were cut at the {MOST_CHARACTERS:,} characters that a cell holds",
    "time_zones": "Times with a time zone are given in UTC",
    "dates_as_text": "Dates before March 1900 or after 9999 were written as text",
    "numbers_as_text": "Integers of more than 15 digits and infinite numbers were written as text",
    "values_as_text": "Values that a cell cannot hold were written as text",
}


def write_workbook(
    path: Path, tables: Mapping[str, pd.DataFrame], show_progress: bool | None
) -> tuple[Decision, ...]:
    """Write tables as sheets.

    Parameters
    ----------
    path : Path
        Ends in ".xlsx".
    tables : mapping of str to DataFrame
        By the names of their sheets; the index is left out.
    show_progress : bool or None

    Returns
    -------
    tuple of Decision
        What was changed, which a sheet "notes" also tells.

    Raises
    ------
    InputError
        If a table is too long or too wide for a sheet.
    MissingExtraError
        If openpyxl is not installed.
    """
    try:
        from openpyxl import Workbook
    except ImportError as error:
        raise MissingExtraError(
            "openpyxl is needed to write Excel files and is not installed; install it with "
            'pip install "embedtopics[excel]", or export to a .csv file'
        ) from error
    for name, table in tables.items():
        if len(table) + 1 > MOST_ROWS or table.shape[1] > MOST_COLUMNS:
            raise InputError(
                f"the table {name} has {len(table):,} rows and {table.shape[1]:,} columns, but a "
                f"sheet holds {MOST_ROWS - 1:,} and {MOST_COLUMNS:,}; export to a .csv or "
                ".parquet file"
            )
    book = Workbook(write_only=True)
    changed: Counter[str] = Counter()
    total = sum(map(len, tables.values()))
    with progress_bar(total=total, unit="row", description="writing", show=show_progress) as bar:
        for name, table in tables.items():
            _write_sheet(book, name, table, changed, bar)
    notes = tuple(
        Decision("export", name, changed[name], f"{message} (cells: {changed[name]:,}).")
        for name, message in _MESSAGES.items() if changed[name]
    )  # fmt: skip
    if notes:
        sheet = book.create_sheet("notes")
        for line in [("name", "count", "note"), *((n.name, n.value, n.message) for n in notes)]:
            sheet.append(line)
    book.save(path)
    return notes


def _write_sheet(
    book: Any, name: str, table: pd.DataFrame, changed: Counter[str], bar: Any
) -> None:
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Font
    from openpyxl.utils import get_column_letter

    sheet = book.create_sheet(name)
    sheet.freeze_panes = "A2"
    columns = [_values(table.iloc[:, place], changed) for place in range(table.shape[1])]
    for place, values in enumerate(columns, start=1):
        widest = max((len(v) if isinstance(v, str) else 10 for v in values[:100]), default=10)
        sheet.column_dimensions[get_column_letter(place)].width = min(max(widest, 10), 60) + 2

    def cell(value: Any, *, bold: bool = False) -> Any:
        is_text = isinstance(value, str) and value.startswith(_READ_AS_OTHER)
        if not is_text and not bold:
            return value
        made = WriteOnlyCell(sheet, value)
        if is_text:
            # Stored as a text, and marked so that it stays one when somebody edits the cell.
            made.data_type = "s"
            made.quotePrefix = True
        if bold:
            made.font = Font(bold=True)
        return made

    sheet.append([cell(_text(str(column), changed), bold=True) for column in table.columns])
    for line in zip(*columns, strict=True):
        sheet.append([cell(value) for value in line])
        bar.update(1)


def _values(column: pd.Series, changed: Counter[str]) -> list[Any]:
    """Return the values of a column as cells hold them."""
    kind = column.dtype.kind if isinstance(column.dtype, np.dtype) else "O"
    if kind == "b" or (kind in "iu" and column.between(1 - MOST_DIGITS, MOST_DIGITS - 1).all()):
        return list(column.tolist())
    return [_value(value, changed) for value in column.tolist()]


def _value(value: Any, changed: Counter[str]) -> Any:
    """Return one value as a cell holds it; None for a missing one."""
    import pandas as pd

    value = plain_value(value)
    if isinstance(value, str):
        return _text(value, changed)
    if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return None
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        fits = math.isfinite(value) and (isinstance(value, float) or abs(value) < MOST_DIGITS)
        changed["numbers_as_text"] += not fits
        return value if fits else str(value)
    if isinstance(value, datetime):  # a pandas.Timestamp is one, too
        return _moment(pd.Timestamp(value), changed)
    if isinstance(value, date):
        return _moment(pd.Timestamp(value.isoformat()), changed)
    changed["values_as_text"] += 1
    return _text(str(value), changed)


def _moment(moment: pd.Timestamp, changed: Counter[str]) -> Any:
    """Return a moment without time zone, or its text where Excel has no such day."""
    if moment.tzinfo is not None:
        changed["time_zones"] += 1
        moment = moment.tz_convert("UTC").tz_localize(None)
    plain = moment.to_pydatetime(warn=False)
    if FIRST_DATE <= plain < AFTER_LAST_DATE:
        return plain
    changed["dates_as_text"] += 1
    return moment.isoformat()


def _text(text: str, changed: Counter[str]) -> str:
    """Return a text as a cell holds it."""
    made = _NOT_IN_XML.sub("", replace_surrogates(text))
    changed["control_characters"] += made != text
    if "\r" in made:
        made = _LINE_END.sub("\n", made)
        changed["line_ends"] += 1
    if len(made) > MOST_CHARACTERS // 2:
        units = made.encode("utf-16-le")
        if len(units) > 2 * MOST_CHARACTERS:
            # A character of two units at the cut is left out as a whole.
            made = units[: 2 * MOST_CHARACTERS].decode("utf-16-le", "ignore")
            changed["long_texts"] += 1
    return made
