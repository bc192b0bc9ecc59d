"""Tables that a spreadsheet opens, as csv or as a workbook: whole cells, and no formulas."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

import numpy as np

from embedtopics._utils.progress import progress_bar
from embedtopics.corpus._hashing import replace_surrogates
from embedtopics.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import pandas as pd


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a cell begins with that a spreadsheet may run; the last four are full-width signs."""


def spreadsheet_safe(value: Any) -> Any:
    """Keep a spreadsheet from running a text as a formula, by a leading apostrophe."""
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return "'" + value
    return value


def write_csv(
    target: Path | TextIO,
    table: pd.DataFrame,
    *,
    separator: str = ",",
    safe: bool = True,
    encoding: str = "utf-8",
) -> int:
    """Write a table without its index; return how many cells were marked as text."""
    table, n_marked = _marked(table) if safe else (table, 0)
    # Only quotes keep a lone carriage return from ending the line.
    quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC if _has_returns(table) else csv.QUOTE_MINIMAL
    table.to_csv(
        target, sep=separator, index=False, quoting=quoting, lineterminator="\n",
        encoding=encoding, errors="replace",
    )  # fmt: skip
    return n_marked


def _marked(table: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return a table of which a spreadsheet runs no cell, and how many cells had to be marked."""
    import pandas as pd

    made, n_marked = table.copy(deep=False), 0
    for name, cells in _texts(table):
        safe = [spreadsheet_safe(cell) for cell in cells]
        n_changed = sum(a is not b for a, b in zip(cells, safe, strict=True))
        if n_changed:
            made[name] = pd.Series(safe, index=made.index, dtype=object)
            n_marked += n_changed
    made.columns = made.columns.map(spreadsheet_safe)
    return made, n_marked


def _has_returns(table: pd.DataFrame) -> bool:
    return any("\r" in str(name) for name in table.columns) or any(
        isinstance(cell, str) and "\r" in cell for _, cells in _texts(table) for cell in cells
    )


def _texts(table: pd.DataFrame) -> list[tuple[Any, list[Any]]]:
    """Return the cells of the columns that can hold texts, by their names."""
    from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype

    plain = (is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype)
    return [
        (name, table[name].astype(object).tolist())
        for name in table.columns
        if not any(test(table[name]) for test in plain)
    ]


# Workbooks of Excel.

MOST_ROWS = 1_048_576
MOST_COLUMNS = 16_384
MOST_CHARACTERS = 32_767
"""Limits of a sheet and of a cell, in UTF-16 units, as Microsoft states them."""

MOST_DIGITS = 10**15
"""Excel keeps 15 digits of a number."""

FIRST_DATE, AFTER_LAST_DATE = datetime(1900, 3, 1), datetime(9999, 12, 31)
"""Excel counts a day in February 1900 that there was not, and no days before."""

NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
READ_AS_OTHER = (*FORMULA_STARTS, "#")
"""What a text begins with that could be read as a formula or as the name of an error."""

CHANGES = {
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
) -> list[tuple[str, int, str]]:
    """Write tables as sheets; return name, count and description of what had to be changed."""
    try:
        from openpyxl import Workbook
    except ImportError as error:
        raise MissingExtraError(
            "openpyxl is needed to write Excel files and is not installed; install it with "
            'pip install "embedtopics[excel]", or write a .csv file'
        ) from error
    for name, table in tables.items():
        if len(table) + 1 > MOST_ROWS or table.shape[1] > MOST_COLUMNS:
            raise InputError(
                f"the table {name} has {len(table):,} rows and {table.shape[1]:,} columns, but a "
                f"sheet holds {MOST_ROWS - 1:,} and {MOST_COLUMNS:,}; write a .csv or .parquet file"
            )
    book = Workbook(write_only=True)
    changed: Counter[str] = Counter()
    total = sum(len(table) + 1 for table in tables.values())
    with progress_bar(total=total, unit="row", description="writing", show=show_progress) as bar:
        for name, table in tables.items():
            sheet = book.create_sheet(name)
            for line in _lines(sheet, table, changed):
                sheet.append(line)
                bar.update(1)
    notes = [
        (name, changed[name], f"{message} (cells: {changed[name]:,}).")
        for name, message in CHANGES.items() if changed[name]
    ]  # fmt: skip
    if notes:
        sheet = book.create_sheet("notes")
        for note in [("name", "count", "note"), *notes]:
            sheet.append(note)
    book.save(path)
    return notes


def _lines(sheet: Any, table: pd.DataFrame, changed: Counter[str]) -> Iterator[list[Any]]:
    """Set up a sheet, and yield its rows of cells, column names first."""
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Font
    from openpyxl.utils import get_column_letter

    sheet.freeze_panes = "A2"
    columns = [_values(table.iloc[:, place], changed) for place in range(table.shape[1])]
    for place, values in enumerate(columns, start=1):
        widest = max((len(v) if isinstance(v, str) else 10 for v in values[:100]), default=10)
        sheet.column_dimensions[get_column_letter(place)].width = min(max(widest, 10), 60) + 2

    def cell(value: Any, *, bold: bool = False) -> Any:
        is_text = isinstance(value, str) and value.startswith(READ_AS_OTHER)
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

    yield [cell(_text(str(column), changed), bold=True) for column in table.columns]
    for line in zip(*columns, strict=True):
        yield [cell(value) for value in line]


def plain_value(value: Any) -> Any:
    """Return a value of NumPy's as one of Python's or pandas'; others as they are.

    Of a moment in nanoseconds and of an extended float NumPy itself makes an integer and nothing.
    """
    import pandas as pd

    if isinstance(value, np.datetime64):
        return pd.Timestamp(value)
    if isinstance(value, np.timedelta64):
        return pd.Timedelta(value)
    if isinstance(value, np.longdouble):
        return float(value)
    return value.item() if isinstance(value, np.generic) else value


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
    if isinstance(value, date):  # a datetime and a pandas.Timestamp are dates, too
        whole = value if isinstance(value, datetime) else value.isoformat()
        return _moment(pd.Timestamp(whole), changed)
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
    made = NOT_IN_XML.sub("", replace_surrogates(text))
    changed["control_characters"] += made != text
    if "\r" in made:
        made = re.sub("\r\n?", "\n", made)
        changed["line_ends"] += 1
    if len(made) > MOST_CHARACTERS // 2:
        units = made.encode("utf-16-le")
        if len(units) > 2 * MOST_CHARACTERS:
            # A character of two units at the cut is left out as a whole.
            made = units[: 2 * MOST_CHARACTERS].decode("utf-16-le", "ignore")
            changed["long_texts"] += 1
    return made
