"""Export of data frames: csv, tsv, parquet, JSON Lines and workbooks."""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, Literal, TextIO

import numpy as np
import pandas as pd

from embedtopics._utils.checks import require
from embedtopics._utils.folders import replacing_file, replacing_folder, write_manifest
from embedtopics.corpus._texts import distinct_names, replace_surrogates
from embedtopics.errors import InputError
from embedtopics.results import Decision, Exported

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
    notes: list[Decision] = []
    if not suffix:
        with replacing_folder(path, KIND) as folder:
            for name, frame in frames.items():
                notes += _write(folder / f"{name}.csv", name, frame)
            write_manifest(folder, KIND, FORMAT)
        return Exported(tuple(path / f"{name}.csv" for name in frames), tuple(notes))
    if suffix != "xlsx" and len(frames) > 1:
        raise InputError(
            "path", "a folder or an .xlsx file", path.name, found=f"{len(frames)} tables"
        )
    path.absolute().parent.mkdir(parents=True, exist_ok=True)
    with replacing_file(path) as fresh:
        if suffix == "xlsx":
            notes = _write_workbook(fresh, frames)
        else:
            ((name, frame),) = frames.items()
            notes = _write(fresh, name, frame)
    return Exported((path,), tuple(notes))


def _write(path: Path, name: str, frame: pd.DataFrame) -> list[Decision]:
    """Write one table in the format of its suffix; return the changes that the format needs."""
    suffix = path.suffix.lower()
    if suffix == ".jsonl":
        _with_labels(frame).to_json(
            path, orient="records", lines=True, force_ascii=False, date_format="iso",
            date_unit="us", double_precision=15, default_handler=str,
        )  # fmt: skip
        return []
    if suffix == ".parquet":
        stored, changed = storable(frame)
        stored.to_parquet(path, engine="pyarrow", compression="zstd")
        message = f"{name}: columns that parquet cannot hold were written as text: {changed}."
        return [Decision("export", "columns_as_text", changed, message)] if changed else []
    n_marked = write_csv(path, _with_labels(frame), separator="\t" if suffix == ".tsv" else ",")
    message = (
        f"{name}: an apostrophe precedes cells that a spreadsheet would run as formulas "
        f"(cells: {n_marked:,})."
    )
    return [Decision("export", "formulas", n_marked, message)] if n_marked else []


def _with_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with its row labels as columns, unless they are 0, 1, 2 ..."""
    labelled = frame.set_axis(unique_names(frame.columns), axis=1)
    if frame.index.name is None and frame.index.equals(pd.RangeIndex(len(frame))):
        return labelled.reset_index(drop=True)
    names = ["index" if name is None else str(name) for name in frame.index.names]
    return labelled.reset_index(names=distinct_names(names, labelled.columns))


def storable(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return a frame that parquet can hold, and the columns converted to text."""
    stored, changed = _columns_as_text(frame)
    index = frame.index
    labels, changed_levels = _columns_as_text(index.to_frame(index=False))
    if changed_levels:
        levels = [labels[name] for name in labels]
        stored.index = levels[0] if index.nlevels == 1 else pd.MultiIndex.from_arrays(levels)
        stored.index.names = index.names
    return stored, changed


def _columns_as_text(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Convert the columns that parquet cannot hold, and return their names."""
    stored = frame.set_axis(unique_names(frame.columns), axis=1)
    changed = []
    for place, name in enumerate(stored.columns):
        column = frame.iloc[:, place]
        if not _can_be_written(column):
            texts = [None if _is_missing_scalar(v) else _writable(str(v)) for v in column]
            stored.isetitem(place, pd.array(texts, dtype="string"))
            changed.append(name)
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


def _is_missing_scalar(value: Any) -> bool:
    return pd.api.types.is_scalar(value) and bool(pd.isna(value))


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

_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_READ_AS_OTHER = (*FORMULA_STARTS, "#")
"""Characters that begin a formula or the name of an error."""


def _write_workbook(path: Path, frames: Mapping[str, pd.DataFrame]) -> list[Decision]:
    """Write tables as sheets without formulas; return the changes."""
    openpyxl = require("openpyxl", "writing Excel files", "files")
    book = openpyxl.Workbook(write_only=True)
    n_changed = 0
    for name, frame in frames.items():
        if len(frame) >= MOST_ROWS:
            raise InputError(
                f"the table {name} has {len(frame):,} rows, but a sheet holds {MOST_ROWS - 1:,}; "
                "write a .csv or .parquet file"
            )
        sheet = book.create_sheet(name)
        sheet.freeze_panes = "A2"
        table = _with_labels(frame)
        for row in itertools.chain([(*table.columns,)], table.itertuples(index=False, name=None)):
            cells = [_cell_value(value) for value in row]
            n_changed += sum(map(_is_shortened, row))
            for place, cell in enumerate(cells):
                if isinstance(cell, str) and cell.startswith(_READ_AS_OTHER):
                    cells[place] = openpyxl.cell.WriteOnlyCell(sheet, cell)
                    cells[place].data_type = "s"
                    cells[place].quotePrefix = True  # it stays a text when somebody edits it
            sheet.append(cells)
    book.save(path)
    message = (
        f"Texts lost control characters, or what follows {MOST_CHARACTERS:,} characters "
        f"(cells: {n_changed:,})."
    )
    return [Decision("export", "texts_shortened", n_changed, message)] if n_changed else []


def _is_shortened(value: Any) -> bool:
    is_text = isinstance(value, str)
    return is_text and bool(_NOT_IN_XML.search(value) or len(value) > MOST_CHARACTERS)


def _cell_value(value: Any) -> Any:
    """Return a value that a cell can hold exactly, else its text; None for a missing one."""
    if isinstance(value, np.number | np.bool_):
        value = value.item()
    if _is_missing_scalar(value):
        return None
    if isinstance(value, date):  # datetimes and timestamps are dates
        moment = pd.Timestamp(value)
        is_in_range = moment.tzinfo is None and FIRST_YEAR <= moment.year < AFTER_LAST_YEAR
        return moment.to_pydatetime(warn=False) if is_in_range else moment.isoformat()
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, int) and abs(value) < MOST_DIGITS:
        return value
    text = str(value).replace("\r\n", "\n").replace("\r", "\n")  # as XML readers do
    text = _NOT_IN_XML.sub("", replace_surrogates(text))
    # The limit must not split a character of two units.
    return text.encode("utf-16-le")[: 2 * MOST_CHARACTERS].decode("utf-16-le", "ignore")
