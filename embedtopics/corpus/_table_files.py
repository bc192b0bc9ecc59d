"""Export of data frames: csv, tsv, parquet, JSON Lines and workbooks."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any, Literal, TextIO

import numpy as np
import pandas as pd

from embedtopics._utils.checks import require
from embedtopics._utils.folders import replacing_file, replacing_folder, write_manifest
from embedtopics.corpus._texts import distinct_names, replace_surrogates
from embedtopics.decisions import Decision, Exported
from embedtopics.errors import InputError

KIND, FORMAT = "embedtopics export", 1
SUFFIXES = ("xlsx", "csv", "tsv", "parquet", "jsonl")


def format_of(path: str | Path) -> str:
    """Return the format of a file by its suffix; "" for a folder."""
    path = Path(path)
    suffix = "" if path.is_dir() else path.suffix.lower().removeprefix(".")
    if suffix not in ("", *SUFFIXES):
        ends = ", ".join(f".{name}" for name in SUFFIXES)
        raise InputError("path", f"a file that ends in {ends}, or a folder", path.name)
    return suffix


def write_table(frame: pd.DataFrame, path: str | Path, *, name: str = "table") -> Exported:
    """Write a frame to a file whose name ends in .csv, .tsv, .parquet, .jsonl or .xlsx."""
    if not format_of(path):
        raise InputError("path", "a file such as table.csv", str(path))
    return write_tables({name: frame}, path)


def write_tables(frames: Mapping[str, pd.DataFrame], path: str | Path) -> Exported:
    """Write frames to one workbook, or to a folder with a csv file for each."""
    path, suffix = Path(path), format_of(path)
    if not suffix:
        notes: list[Decision] = []
        with replacing_folder(path, KIND) as folder:
            for name, frame in frames.items():
                notes += _write(folder / f"{name}.csv", name, frame)
            write_manifest(folder, KIND, FORMAT)
        return Exported(tuple(path / f"{name}.csv" for name in frames), tuple(notes))
    if suffix != "xlsx" and len(frames) > 1:
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
        if suffix == "xlsx":
            notes = write_workbook(fresh, frames)
        else:
            ((name, frame),) = frames.items()
            notes = _write(fresh, name, frame)
    return Exported((path,), tuple(notes))


def _write(path: Path, name: str, frame: pd.DataFrame) -> list[Decision]:
    """Write one table in the format of its suffix; return the changes that the format needs."""
    suffix = path.suffix.lower()
    if suffix == ".jsonl":
        with_labels(frame).to_json(
            path, orient="records", lines=True, force_ascii=False, date_format="iso",
            date_unit="us", double_precision=15, default_handler=str,
        )  # fmt: skip
        return []
    if suffix == ".parquet":
        stored, changed = storable(frame)
        stored.to_parquet(path, engine="pyarrow", compression="zstd")
        message = f"{name}: columns that parquet cannot hold were written as text: {changed}."
        return [Decision("export", "columns_as_text", changed, message)] if changed else []
    n_marked = write_csv(path, with_labels(frame), separator="\t" if suffix == ".tsv" else ",")
    message = (
        f"{name}: an apostrophe precedes cells that a spreadsheet would run as formulas "
        f"(cells: {n_marked:,})."
    )
    return [Decision("export", "formulas", n_marked, message)] if n_marked else []


def with_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with its row labels as columns, unless they are 0, 1, 2 ..."""
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


def storable(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return a frame that parquet can hold, and the columns converted to text."""
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
    if not all(map(_can_be_written, levels)):
        texts = [level if _can_be_written(level) else _as_text(level) for level in levels]
        stored.index = (
            pd.Index(texts[0], name=index.name) if index.nlevels == 1
            else pd.MultiIndex.from_arrays(texts, names=index.names)
        )  # fmt: skip
    return stored, changed


def unique_names(names: Any) -> list[str]:
    """Return names as distinct strings of valid UTF-8."""
    return distinct_names([_writable(str(name)) for name in names])


def _can_be_written(column: pd.Series) -> bool:
    """Return whether pyarrow can write a column, by writing it."""
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


def write_csv(target: Path | TextIO, table: pd.DataFrame, *, separator: str = ",") -> int:
    """Write a table without its index; return the number of cells marked as text."""
    safe, n_marked = table.copy(deep=False), 0
    has_returns = "\r" in "".join(map(str, table.columns))
    for name in table.select_dtypes(exclude=["number", "bool", "datetime", "datetimetz"]):
        cells = table[name].astype(object).tolist()
        marked = [spreadsheet_safe(cell) for cell in cells]
        n_changed = sum(a is not b for a, b in zip(cells, marked, strict=True))
        if n_changed:
            safe[name] = pd.Series(marked, index=table.index, dtype=object)
            n_marked += n_changed
        has_returns |= any(isinstance(cell, str) and "\r" in cell for cell in cells)
    safe.columns = safe.columns.map(spreadsheet_safe)
    # A lone carriage return ends a line unless it is quoted.
    quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC if has_returns else csv.QUOTE_MINIMAL
    safe.to_csv(
        target, sep=separator, index=False, quoting=quoting, lineterminator="\n", errors="replace"
    )
    return n_marked


MOST_ROWS, MOST_CHARACTERS, MOST_DIGITS = 1_048_576, 32_767, 10**15
FIRST_YEAR, AFTER_LAST_YEAR = 1901, 9999
"""Limits of Excel, with characters in UTF-16 units; it counts February 29, 1900, in error."""

NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
READ_AS_OTHER = (*FORMULA_STARTS, "#")
"""Characters that begin a formula or the name of an error."""

CHANGES = {
    "control_characters": "Control characters were removed",
    "long_texts": f"Texts were cut at the {MOST_CHARACTERS:,} characters that a cell holds",
    "values_as_text": "Values that a cell cannot hold exactly were written as text",
}


def write_workbook(path: Path, frames: Mapping[str, pd.DataFrame]) -> list[Decision]:
    """Write tables as sheets; return the changes."""
    Workbook = require("openpyxl", "writing Excel files", "files").Workbook
    tables = {name: with_labels(frame) for name, frame in frames.items()}
    for name, table in tables.items():
        if len(table) >= MOST_ROWS:
            raise InputError(
                f"the table {name} has {len(table):,} rows, but a sheet holds {MOST_ROWS - 1:,}; "
                "write a .csv or .parquet file"
            )
    book = Workbook(write_only=True)
    changed: Counter[str] = Counter()
    for name, table in tables.items():
        sheet = book.create_sheet(name)
        sheet.freeze_panes = "A2"
        for row in (table.columns, *zip(*(table[one].tolist() for one in table), strict=True)):
            sheet.append(_cells(sheet, row, changed))
    book.save(path)
    return [
        Decision("export", name, changed[name], f"{message} (cells: {changed[name]:,}).")
        for name, message in CHANGES.items()
        if changed[name]
    ]


def _cells(sheet: Any, row: Any, changed: Counter[str]) -> Iterator[Any]:
    """Yield the cells of a row; none is a formula."""
    from openpyxl.cell import WriteOnlyCell

    for value in row:
        plain = _cell_value(value, changed)
        if isinstance(plain, str) and plain.startswith(READ_AS_OTHER):
            cell = WriteOnlyCell(sheet, plain)
            cell.data_type = "s"
            cell.quotePrefix = True  # the cell stays a text when somebody edits it
            yield cell
        else:
            yield plain


def _cell_value(value: Any, changed: Counter[str]) -> Any:
    """Return a value that a cell can hold; None for a missing one."""
    if isinstance(value, np.number | np.bool_):
        value = value.item()
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return None
    if isinstance(value, date):  # datetimes and timestamps are dates
        moment = pd.Timestamp(value)
        if moment.tzinfo is None and FIRST_YEAR <= moment.year < AFTER_LAST_YEAR:
            return moment.to_pydatetime(warn=False)
        value = moment.isoformat()
        changed["values_as_text"] += 1
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, int) and abs(value) < MOST_DIGITS:
        return value
    changed["values_as_text"] += not isinstance(value, str)
    text = str(value).replace("\r\n", "\n").replace("\r", "\n")  # as XML readers do
    cleaned = NOT_IN_XML.sub("", replace_surrogates(text))
    changed["control_characters"] += cleaned != text
    # Do not split a character of two units.
    units = cleaned.encode("utf-16-le")[: 2 * MOST_CHARACTERS]
    shortened = units.decode("utf-16-le", "ignore")
    changed["long_texts"] += shortened != cleaned
    return shortened
