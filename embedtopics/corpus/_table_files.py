"""Export of data frames: csv, tsv, parquet, JSON Lines and workbooks."""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

import numpy as np

from embedtopics._utils.folders import replacing_file, replacing_folder, write_manifest
from embedtopics._utils.progress import progress_bar
from embedtopics.corpus._texts import replace_surrogates
from embedtopics.decisions import Decision, Exported
from embedtopics.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import pandas as pd


KIND = "embedtopics export"
FORMAT = 1
FORMATS = ("csv", "tsv", "parquet", "jsonl")
WORKBOOK = "xlsx"
FLAT = ("csv", "tsv", WORKBOOK)
"""Formats whose cells cannot hold lists."""


def format_of(path: str | Path) -> str:
    """Return the format of a file by its suffix; "" for a folder."""
    path = Path(path)
    suffix = "" if path.is_dir() else path.suffix.lower().removeprefix(".")
    if suffix not in ("", WORKBOOK, *FORMATS):
        ends = ", ".join(f".{name}" for name in (WORKBOOK, *FORMATS))
        raise InputError("path", f"a file that ends in {ends}, or a folder", path.name)
    return suffix


def write_table(
    frame: pd.DataFrame, path: str | Path, *, name: str = "table", safe: bool = True
) -> Exported:
    """Write a frame to a file whose name ends in .csv, .tsv, .parquet, .jsonl or .xlsx."""
    if not format_of(path):
        raise InputError("path", "a file such as table.csv", str(path))
    return write_tables({name: frame}, path, safe=safe)


def write_tables(
    frames: Mapping[str, pd.DataFrame],
    path: str | Path,
    *,
    format: str = "csv",
    safe: bool = True,
    show_progress: bool | None = None,
) -> Exported:
    """Write frames to one workbook, or to a folder with a file for each."""
    path, suffix = Path(path), format_of(path)
    if format not in FORMATS:
        raise InputError("format", f"one of {', '.join(FORMATS)}", format)
    if not suffix:
        notes: list[Decision] = []
        with replacing_folder(path, KIND) as folder:
            for name, frame in frames.items():
                notes += _write(folder / f"{name}.{format}", name, frame, format, safe)
            write_manifest(folder, KIND, FORMAT)
        return Exported(tuple(path / f"{name}.{format}" for name in frames), tuple(notes))
    if suffix != WORKBOOK and len(frames) > 1:
        raise InputError(
            "path", "a folder or an .xlsx file", path.name, found=f"{len(frames)} tables"
        )
    try:
        path.absolute().parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot create the folder of {path}: {error.strerror or error}; name another file"
        ) from error
    with replacing_file(path) as fresh:
        if suffix == WORKBOOK:
            flat = {name: with_labels(frame) for name, frame in frames.items()}
            notes = [
                Decision("export", *note) for note in write_workbook(fresh, flat, show_progress)
            ]
        else:
            ((name, frame),) = frames.items()
            notes = _write(fresh, name, frame, suffix, safe)
    return Exported((path,), tuple(notes))


def _write(path: Path, name: str, frame: pd.DataFrame, format: str, safe: bool) -> list[Decision]:
    """Write one table to a file; return the changes that the format needs."""
    if format == "jsonl":
        labelled = with_labels(frame)
        # pandas would write 15 digits of a number.
        columns = [[_plain(value) for value in labelled[name].tolist()] for name in labelled]
        with path.open("w", encoding="utf-8", errors="replace", newline="\n") as stream:
            for values in zip(*columns, strict=True):
                line = dict(zip(labelled, values, strict=True))
                stream.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
        return []
    if format == "parquet":
        stored, changed = storable(frame)
        stored.to_parquet(path, engine="pyarrow", compression="zstd")
        message = (
            f"{name}: parquet cannot hold some columns, which were written as text: {changed}."
        )
        return [Decision("export", "columns_as_text", changed, message)] if changed else []
    separator = "\t" if format == "tsv" else ","
    n_marked = write_csv(path, with_labels(frame), separator=separator, safe=safe)
    message = (
        f"{name}: an apostrophe precedes cells that a spreadsheet would run as formulas "
        f"(cells: {n_marked:,})."
    )
    return [Decision("export", "formulas", n_marked, message)] if n_marked else []


def with_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with its row labels as columns, unless they are 0, 1, 2 ..."""
    import pandas as pd

    index = frame.index
    names = {str(name) for name in frame.columns}
    labelled = frame.reset_index(drop=True)
    if index.name is not None or not index.equals(pd.RangeIndex(len(index))):
        for place in range(index.nlevels):
            label = index.get_level_values(place)
            name = "index" if label.name is None else str(label.name)
            name = name if name not in names else f"{name} (row label {place + 1})"
            names.add(name)
            labelled.insert(place, name, label.array, allow_duplicates=True)
    labelled.columns = pd.Index(unique_names(labelled.columns))
    return labelled


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold."""
    import pandas as pd

    value = plain_value(value)
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return None
    return value.isoformat() if isinstance(value, date) else str(value)


def storable(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return a frame that parquet can hold, and the columns converted to text."""
    import pandas as pd

    stored = frame.copy(deep=False)
    names = unique_names(frame.columns)
    stored.columns = pd.Index(names)
    changed = []
    for place, name in enumerate(names):
        column = frame.iloc[:, place]
        if not _can_be_written(column):
            stored.isetitem(place, _as_text(column).array)
            changed.append(name)
    index = frame.index
    levels = [index.get_level_values(level).to_series() for level in range(index.nlevels)]
    if not all(_can_be_written(level) for level in levels):
        texts = [level if _can_be_written(level) else _as_text(level) for level in levels]
        stored.index = (
            pd.Index(texts[0], name=index.name) if index.nlevels == 1
            else pd.MultiIndex.from_arrays(texts, names=index.names)
        )  # fmt: skip
    return stored, changed


def unique_names(names: Any) -> list[str]:
    """Return names as distinct strings of valid UTF-8."""
    found: list[str] = []
    plain_names = {_writable(str(name)) for name in names}
    for name in names:
        plain = _writable(str(name))
        unique, number = plain, 2
        while unique in found or (unique != plain and unique in plain_names):
            unique, number = f"{plain}_{number}", number + 1
        found.append(unique)
    return found


def _can_be_written(column: pd.Series) -> bool:
    """Return whether pyarrow can write a column, by writing it."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufM":
        return True
    if isinstance(column.array, pd.arrays.ArrowStringArray):
        return True
    try:
        table = pa.Table.from_pandas(
            column.to_frame("column").reset_index(drop=True), preserve_index=False
        )
        pq.write_table(table, pa.BufferOutputStream())
    except (pa.ArrowException, UnicodeError, OverflowError, TypeError, ValueError):
        return False
    return True


def _as_text(column: pd.Series) -> pd.Series:
    import pandas as pd

    text = [
        None if pd.api.types.is_scalar(value) and pd.isna(value) else _writable(str(value))
        for value in column
    ]
    return pd.Series(text, index=column.index, name=column.name, dtype="string")


def _writable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Characters that begin a formula in a spreadsheet; the last four are full-width signs."""


def spreadsheet_safe(value: Any) -> Any:
    """Prefix an apostrophe to a text that a spreadsheet would run as a formula."""
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
    """Write a table without its index; return the number of cells marked as text."""
    table, n_marked = _marked(table) if safe else (table, 0)
    # A lone carriage return ends a line unless it is quoted.
    cells = (cell for _, column in _texts(table) for cell in column if isinstance(cell, str))
    has_returns = any("\r" in text for text in chain(map(str, table.columns), cells))
    quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC if has_returns else csv.QUOTE_MINIMAL
    table.to_csv(
        target, sep=separator, index=False, quoting=quoting, lineterminator="\n",
        encoding=encoding, errors="replace",
    )  # fmt: skip
    return n_marked


def _marked(table: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return a table without formulas, and the number of marked cells."""
    import pandas as pd

    marked, n_marked = table.copy(deep=False), 0
    for name, cells in _texts(table):
        safe = [spreadsheet_safe(cell) for cell in cells]
        n_changed = sum(a is not b for a, b in zip(cells, safe, strict=True))
        if n_changed:
            marked[name] = pd.Series(safe, index=marked.index, dtype=object)
            n_marked += n_changed
    marked.columns = marked.columns.map(spreadsheet_safe)
    return marked, n_marked


def _texts(table: pd.DataFrame) -> Iterator[tuple[Any, list[Any]]]:
    """Yield name and cells of each column that can hold texts."""
    from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype

    plain = (is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype)
    for name in table.columns:
        if not any(test(table[name]) for test in plain):
            yield name, table[name].astype(object).tolist()


MOST_ROWS = 1_048_576
MOST_COLUMNS = 16_384
MOST_CHARACTERS = 32_767
"""Limits of a sheet and of a cell, in UTF-16 units, as Microsoft states them."""

MOST_DIGITS = 10**15
"""Excel keeps 15 digits of a number."""

FIRST_DATE, AFTER_LAST_DATE = datetime(1900, 3, 1), datetime(9999, 12, 31)
"""Excel counts February 29, 1900, which did not exist, and no earlier days."""

NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
READ_AS_OTHER = (*FORMULA_STARTS, "#")
"""Characters that begin a formula or the name of an error."""

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
    """Write tables as sheets; return name, count and description of each change."""
    try:
        from openpyxl import Workbook
    except ImportError as error:
        raise MissingExtraError(
            "writing Excel files needs openpyxl; install it with "
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
    """Format a sheet, and yield its rows of cells, column names first."""
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
        write_cell = WriteOnlyCell(sheet, value)
        if is_text:
            # The quote prefix keeps the cell a text when somebody edits it.
            write_cell.data_type = "s"
            write_cell.quotePrefix = True
        if bold:
            write_cell.font = Font(bold=True)
        return write_cell

    yield [cell(_text(str(column), changed), bold=True) for column in table.columns]
    for line in zip(*columns, strict=True):
        yield [cell(value) for value in line]


def plain_value(value: Any) -> Any:
    """Convert a value of NumPy to one of Python or pandas."""
    import pandas as pd

    if isinstance(value, np.datetime64):
        return pd.Timestamp(value)
    if isinstance(value, np.timedelta64):
        return pd.Timedelta(value)
    if isinstance(value, np.longdouble):
        return float(value)
    return value.item() if isinstance(value, np.generic) else value


def _values(column: pd.Series, changed: Counter[str]) -> list[Any]:
    """Return the values of a column for cells."""
    kind = column.dtype.kind if isinstance(column.dtype, np.dtype) else "O"
    if kind == "b" or (kind in "iu" and column.between(1 - MOST_DIGITS, MOST_DIGITS - 1).all()):
        return list(column.tolist())
    return [_value(value, changed) for value in column.tolist()]


def _value(value: Any, changed: Counter[str]) -> Any:
    """Return one value for a cell; None for a missing one."""
    import pandas as pd

    value = plain_value(value)
    if isinstance(value, str):
        return _text(value, changed)
    if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return None
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        fits = math.isfinite(value) if isinstance(value, float) else abs(value) < MOST_DIGITS
        changed["numbers_as_text"] += not fits
        return value if fits else str(value)
    if isinstance(value, date):  # a datetime and a pandas.Timestamp are dates, too
        whole = value if isinstance(value, datetime) else value.isoformat()
        return _moment(pd.Timestamp(whole), changed)
    changed["values_as_text"] += 1
    return _text(str(value), changed)


def _moment(moment: pd.Timestamp, changed: Counter[str]) -> Any:
    """Return a moment without time zone, or its text if Excel has no such day."""
    if moment.tzinfo is not None:
        changed["time_zones"] += 1
        moment = moment.tz_convert("UTC").tz_localize(None)
    plain = moment.to_pydatetime(warn=False)
    if FIRST_DATE <= plain < AFTER_LAST_DATE:
        return plain
    changed["dates_as_text"] += 1
    return moment.isoformat()


def _text(text: str, changed: Counter[str]) -> str:
    """Return a text for a cell."""
    cleaned = NOT_IN_XML.sub("", replace_surrogates(text))
    changed["control_characters"] += cleaned != text
    if "\r" in cleaned:
        cleaned = re.sub("\r\n?", "\n", cleaned)
        changed["line_ends"] += 1
    if len(cleaned) > MOST_CHARACTERS // 2:
        units = cleaned.encode("utf-16-le")
        if len(units) > 2 * MOST_CHARACTERS:
            # Do not split a character of two units.
            cleaned = units[: 2 * MOST_CHARACTERS].decode("utf-16-le", "ignore")
            changed["long_texts"] += 1
    return cleaned
