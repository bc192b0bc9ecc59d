"""From a list or a table to the parts of a corpus."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from embedtopics.corpus._columns import check_text_column, find_column, guess_text_column, read_ids
from embedtopics.corpus._dates import read_dates
from embedtopics.corpus._hashing import (
    TextRows,
    content_ids,
    is_missing,
    read_texts,
    replace_surrogates,
)
from embedtopics.corpus._tables import MISSING_MARKERS, Table, as_table, is_frame, name_row, note
from embedtopics.corpus.results import Decision
from embedtopics.errors import InputError

# No leading zeros: those of a postcode or a file number mean something.
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_REAL = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?")


@dataclass(frozen=True, eq=False)
class Parts:
    """What a corpus is made of; see `Corpus` for the fields."""

    rows: TextRows
    ids: tuple[str, ...]
    metadata: pd.DataFrame
    source: str
    notes: tuple[Decision, ...]
    text_column: str | None = None
    time_column: str | None = None
    group_column: str | None = None


def read_list(
    texts: Any,
    ids: Iterable[object] | None = None,
    index: Any = None,
    metadata: Any = None,
    time: str | None = None,
    group: str | None = None,
) -> Parts:
    """Read a list of texts; see `Corpus`."""
    source = type(texts).__name__
    values = _as_list(texts)
    about = pd.DataFrame(index=range(len(values)))
    table = Table(about, source) if metadata is None else as_table(metadata)
    _check_length("metadata", len(table.frame), len(values))
    if index is None:
        frame = texts if isinstance(texts, pd.Series) else table.frame
        index = frame.index if isinstance(frame, pd.Series | pd.DataFrame) else range(len(values))
    labels = index if isinstance(index, pd.Index) else pd.Index(index)
    _check_length("index", len(labels), len(values))
    for role, name in (("time", time), ("group", group)):
        if name is not None:
            find_column(table, name, role)
    about, n_repaired = _read_metadata(table, [])
    notes: tuple[Decision, ...] = ()
    if time is not None:
        about[time], notes = read_dates(table.frame[time], f"column {time!r}", None)
    about = about.set_axis(labels)
    rows = read_texts(values, source, name_row)
    if ids is None:
        names = content_ids(rows.hashes)
    else:
        names = read_ids(ids, Table(about, source))
        _check_length("ids", len(names), len(values))
    repairs = _describe_repairs(rows.n_repaired + n_repaired)
    return Parts(rows, names, about, source, (*notes, *repairs), None, time, group)


def _check_length(name: str, length: int, n_texts: int) -> None:
    if length != n_texts:
        raise InputError(name, "one entry a text", found=f"{length} for {n_texts} texts")


def read_table(
    table: Table, text: str | None, id: str | None, time: str | None, group: str | None
) -> Parts:
    """Read the columns of a table; see `Corpus.from_frame`."""
    notes = list(table.notes)
    named = {"text": text, "id": id, "time": time, "group": group}
    for role, name in named.items():
        if name is not None:
            find_column(table, name, role)
    if text is None:
        text, chosen = guess_text_column(table)
        notes.append(chosen)
    for role, name in named.items():
        if role != "text" and name == text:
            raise InputError(
                f"{table.source}: expected different columns for text and {role}, got {name!r} for "
                "both; name another column"
            )
    check_text_column(table, text)
    values, marker_notes = _drop_markers(table, text)
    rows = read_texts(values, f"{table.source}: column {text!r}", table.name_row)
    id_column = id or table.id_column
    if id_column is None:
        ids = content_ids(rows.hashes)
    else:
        ids = read_ids(table.frame[id_column].tolist(), table)
    metadata, n_repaired = _read_metadata(table, [text] if id is None else [text, id])
    if table.cells_only:
        notes.extend(_read_numbers(metadata, {time, group}))
    if time is not None:
        what = f"{table.source}, column {time!r}"
        metadata[time], date_notes = read_dates(table.frame[time], what, table.lines)
        notes.extend(date_notes)
    notes.extend((*marker_notes, *_describe_repairs(rows.n_repaired + n_repaired)))
    return Parts(rows, ids, metadata, table.source, tuple(notes), text, time, group)


def _as_list(texts: Any) -> Sequence[object]:
    """Return the values of a list, an array, or a column of any library."""
    if isinstance(texts, str | bytes):
        raise InputError(
            f"expected a list of texts, got one {type(texts).__name__}; give a list: [text], or "
            "the path of a file as pathlib.Path(...)"
        )
    if isinstance(texts, np.ndarray) and texts.ndim != 1:
        raise InputError(
            f"expected a one-dimensional array of texts, got the shape {texts.shape}; "
            "give one column"
        )
    if not is_frame(texts):
        for method in ("tolist", "to_list", "to_pylist"):  # numpy and pandas, polars, Arrow
            if hasattr(texts, method):
                values: list[object] = getattr(texts, method)()
                return values
        if isinstance(texts, Sequence):
            return texts
    remedy = "Corpus.from_frame" if is_frame(texts) else "list(...)"
    raise InputError(f"expected a list of texts, got a {type(texts).__name__}; use {remedy}")


def _drop_markers(table: Table, text: str) -> tuple[list[object], tuple[Decision, ...]]:
    """Return the texts, with the cells that mean "no value" in a csv or tsv file as None."""
    values: list[object] = table.frame[text].tolist()
    if not table.cells_only:
        return values, ()
    kept = [None if value in MISSING_MARKERS else value for value in values]
    n_markers = sum(value is None for value in kept)
    if not n_markers:
        return values, ()
    message = f'{n_markers} cells of column {text!r} such as "NA" are read as missing texts.'
    return kept, (note("missing_markers", n_markers, message),)


def _read_metadata(table: Table, used: list[str]) -> tuple[pd.DataFrame, int]:
    """Return the other columns, fit to be written, and the number of repaired values."""
    metadata = table.frame.drop(columns=used)
    n_repaired = 0
    for name in metadata.columns:
        column = metadata[name]
        if isinstance(column.dtype, np.dtype) and column.dtype == object:
            given = column.tolist()
            clean = [replace_surrogates(v) if isinstance(v, str) else v for v in given]
            n_changed = sum(a is not b for a, b in zip(given, clean, strict=True))
            n_repaired += n_changed
            if table.cells_only:
                clean = [None if value == "" else value for value in clean]
            if n_changed or table.untyped:
                objects = pd.Series(clean, index=metadata.index, dtype=object)
                # Column by column: a whole frame of objects keeps its strings as objects.
                metadata[name] = objects.infer_objects() if table.untyped else objects
    return metadata, n_repaired


def _read_numbers(metadata: pd.DataFrame, others: set[str | None]) -> tuple[Decision, ...]:
    """Turn columns that hold nothing but numerals into numbers; integers stay integers."""
    read = []
    for name in metadata.columns:
        cells = [None if value in MISSING_MARKERS else value for value in metadata[name].tolist()]
        texts = [cell for cell in cells if isinstance(cell, str)]
        if name in others or not texts or len(texts) < sum(not is_missing(c) for c in cells):
            continue
        values: Any = None
        if all(map(_INTEGER.fullmatch, texts)):
            whole = [None if is_missing(cell) else int(str(cell)) for cell in cells]
            values = pd.array(whole, dtype="Int64" if None in whole else "int64")
        elif all(map(_REAL.fullmatch, texts)):
            values = [float("nan") if is_missing(cell) else float(str(cell)) for cell in cells]
        if values is not None:
            metadata[name] = values
            read.append(str(name))
    if not read:
        return ()
    message = f"Columns that hold nothing but numerals are read as numbers: {', '.join(read)}."
    return (note("numeric_columns", read, message),)


def _describe_repairs(n_repaired: int) -> tuple[Decision, ...]:
    if not n_repaired:
        return ()
    message = f"Half characters (lone surrogates) were replaced by U+FFFD in {n_repaired} values."
    return (note("replaced_characters", n_repaired, message),)
