"""Data frames as files for other programs: csv, tsv, parquet, lines of JSON, or a workbook."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.folders import replacing_file, replacing_folder, write_manifest
from embedtopics._utils.spreadsheets import plain_value, write_csv, write_workbook
from embedtopics.corpus.results import Decision, Exported
from embedtopics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


KIND = "embedtopics export"
FORMAT = 1
FORMATS = ("csv", "tsv", "parquet", "jsonl")
WORKBOOK = "xlsx"
FLAT = ("csv", "tsv", WORKBOOK)
"""Formats whose cells hold no lists."""


def format_of(path: str | Path) -> str:
    """Return the format that the name of a file asks for; "" for a folder."""
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
            f"cannot make the folder of {path}: {error.strerror or error}; name another file"
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
    """Write one table to a file; return what was changed."""
    if format == "jsonl":
        write_json_lines(path, with_labels(frame))
        return []
    if format == "parquet":
        kept, changed = storable(frame)
        kept.to_parquet(path, engine="pyarrow", compression="zstd")
        message = f"{name}: columns that parquet cannot hold were written as text: {changed}."
        return [Decision("export", "columns_as_text", changed, message)] if changed else []
    separator = "\t" if format == "tsv" else ","
    n_marked = write_csv(path, with_labels(frame), separator=separator, safe=safe)
    message = (
        f"{name}: an apostrophe stands in front of what a spreadsheet would run as a formula "
        f"(cells: {n_marked:,})."
    )
    return [Decision("export", "formulas", n_marked, message)] if n_marked else []


def with_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with its row labels as columns, unless they only count the rows."""
    import pandas as pd

    index = frame.index
    names = {str(name) for name in frame.columns}
    made = frame.reset_index(drop=True)
    if index.name is not None or not index.equals(pd.RangeIndex(len(index))):
        for place in range(index.nlevels):
            label = index.get_level_values(place)
            name = "index" if label.name is None else str(label.name)
            name = name if name not in names else f"{name} (row label {place + 1})"
            names.add(name)
            made.insert(place, name, label.array, allow_duplicates=True)
    made.columns = pd.Index(unique_names(made.columns))
    return made


def write_json_lines(path: Path, frame: pd.DataFrame) -> None:
    """Write a frame, a row a line; numbers keep all digits, of which pandas would keep 15."""
    columns = [[_plain(value) for value in frame[name].tolist()] for name in frame.columns]
    names = list(frame.columns)
    with path.open("w", encoding="utf-8", errors="replace", newline="\n") as stream:
        for values in zip(*columns, strict=True):
            line = dict(zip(names, values, strict=True))
            stream.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")


def _plain(value: Any) -> Any:
    """Return a value as JSON holds it."""
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


# Frames made fit for parquet: any column, any index, any name can be written.


def storable(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return a frame that parquet can hold, and the names of the columns that became text.

    Column names are strings, each once. What parquet can hold comes back as it was.
    """
    import pandas as pd

    kept = frame.copy(deep=False)
    names = unique_names(frame.columns)
    kept.columns = pd.Index(names)
    changed = []
    for place, name in enumerate(names):
        column = frame.iloc[:, place]
        if not _can_be_written(column):
            kept.isetitem(place, _as_text(column).array)
            changed.append(name)
    index = frame.index
    levels = [index.get_level_values(level).to_series() for level in range(index.nlevels)]
    if not all(_can_be_written(level) for level in levels):
        texts = [level if _can_be_written(level) else _as_text(level) for level in levels]
        kept.index = (
            pd.Index(texts[0], name=index.name) if index.nlevels == 1
            else pd.MultiIndex.from_arrays(texts, names=index.names)
        )  # fmt: skip
    return kept, changed


def unique_names(names: Any) -> list[str]:
    """Return names as strings that can be written, each once."""
    found: list[str] = []
    taken = {_writable(str(name)) for name in names}
    for name in names:
        plain = _writable(str(name))
        unique, number = plain, 2
        while unique in found or (unique != plain and unique in taken):
            unique, number = f"{plain}_{number}", number + 1
        found.append(unique)
    return found


def _can_be_written(column: pd.Series) -> bool:
    """Find out by writing it; nothing else knows all that the writer refuses."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufM":
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
