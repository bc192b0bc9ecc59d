"""Columns as the fields of a corpus: which holds what, and its ids."""

import difflib
import operator
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from embedtopics.corpus._alignment import align_values
from embedtopics.corpus._dates import read_dates
from embedtopics.corpus._entities import describe_entities
from embedtopics.corpus._numbers import (
    describe_inexact_columns,
    infer_type,
    read_numbers,
    with_columns,
)
from embedtopics.corpus._readers import DocumentTable, as_table, is_frame
from embedtopics.corpus._texts import (
    MISSING_MARKERS,
    content_ids,
    is_missing,
    read_texts,
    replace_surrogates,
)
from embedtopics.errors import InputError, name_rows
from embedtopics.results import Decision

# In order of preference.
_TEXT_NAMES = (
    "text", "texts", "full_text", "fulltext", "body", "content", "contents", "document",
    "abstract", "message", "tweet", "review", "comment", "article", "post", "description", "speech",
    "sentence", "texte", "contenu", "corps", "résumé", "resume", "commentaire", "intervention",
)  # fmt: skip
ID_NAMES = (
    "id", "_id", "ids", "doc_id", "docid", "document_id", "text_id", "uid", "uuid", "guid", "key",
    "identifier", "identifiant", "arxiv_id", "tweet_id", "article_id", "post_id",
)  # fmt: skip
TIME_NAMES = (
    "date", "time", "datetime", "timestamp", "created_at", "created", "published_at", "published",
    "publication_date", "pub_date", "posted_at", "year", "month", "année", "annee", "jour",
)  # fmt: skip
_SAMPLED_VALUES = 1000
_NO_WORDS = re.compile(r"[-+\d.,:/%eETZ\s]+")
"""Numbers, dates and times, if there is a digit."""

_DIGIT = re.compile(r"\d")


def find_column(table: DocumentTable, name: str, role: str) -> str:
    """Return the name of an existing column."""
    columns = list(table.frame.columns)
    if name in columns:
        return name
    close = difflib.get_close_matches(str(name), map(str, columns), n=1, cutoff=0.5)
    nearest = f"did you mean {close[0]!r}?" if close else ""
    raise InputError(role, f"a column of {table.source}: {list_names(columns)}", name, nearest)


def list_names(columns: Sequence[Hashable]) -> str:
    shown = ", ".join(map(repr, columns[:30]))
    return shown + (f" and {len(columns) - 30} more" if len(columns) > 30 else "")


def guess_text_column(table: DocumentTable) -> tuple[str, Decision]:
    """Choose the text column by its name, else by the average length of its strings."""
    frame = table.frame
    named = _named_as_text(frame)
    every = list(frame.columns)
    # Columns with names of ids and dates are excluded, however long their strings are.
    likely = [name for name in every if str(name).casefold() not in {*ID_NAMES, *TIME_NAMES}]
    chosen = named or _longest(frame, likely) or _longest(frame, every)
    if chosen is None:
        raise InputError(
            f"{table.source}: no column holds strings among "
            f"{list_names(every)}; give the texts as strings"
        )
    how = "by its name" if named is not None else "because its strings are the longest"
    message = f"Texts are read from column {chosen!r}, chosen {how}; name another with text."
    return chosen, Decision("corpus", "text_column", str(chosen), message)


def check_text_column(table: DocumentTable, name: str) -> None:
    """Refuse a column of numerals or dates where texts are expected."""
    cells = [cell for cell in sampled(table.frame[name]) if cell not in {*MISSING_MARKERS, ""}]
    if cells and all(map(_has_no_words, cells)):
        raise InputError(
            "text",
            f"a column of texts among {list_names(list(table.frame.columns))}",
            found=f"numbers or dates in every cell of column {name!r} of {table.source}",
        )


def _has_no_words(cell: object) -> bool:
    """Return whether a cell is a number, a date or a time."""
    if not isinstance(cell, str):
        return False
    return bool(_NO_WORDS.fullmatch(cell)) and bool(_DIGIT.search(cell))


def read_ids(values: Iterable[object], table: DocumentTable) -> tuple[str, ...]:
    """Read ids as strings, one for each row."""
    values = list(values)
    ids = [read_id(value) for value in values]
    missing = [row for row, value in enumerate(ids) if not value]
    if missing:
        names = f"none in {name_rows(missing, table.lines)} of {table.source}"
        raise InputError("ids", "given in every row", found=names)

    first_row: dict[str, int] = {}
    for row, value in enumerate(ids):
        if first_row.setdefault(value, row) != row:
            both = name_rows([first_row[value], row], table.lines)
            names = f"{value!r} in {both} of {table.source}"
            if str(values[row]) != str(values[first_row[value]]):
                names += f" (from {values[first_row[value]]!r} and {values[row]!r})"
            raise InputError("ids", "different in every row", found=names)

    return tuple(ids)


def read_id(value: object) -> str:
    """Return an id as a string, "" if it is missing."""
    if is_missing(value):
        return ""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    # "?" rather than U+FFFD, because ids become part of URLs and file names.
    return str(value).strip().encode("utf-8", "replace").decode("utf-8")


def first_named(
    names: list[str], candidates: Iterable[str], accept: Callable[[str], bool]
) -> str | None:
    """Return the first candidate that is a column, in any case, and is accepted."""
    by_lower = {str(name).strip().casefold(): name for name in reversed(names)}
    matches = (by_lower[name] for name in candidates if name in by_lower)
    return next(filter(accept, matches), None)


def sampled(column: pd.Series) -> list[object]:
    return list(column[column.notna()].iloc[:_SAMPLED_VALUES])


def _named_as_text(frame: pd.DataFrame) -> str | None:
    """Return the column with the likeliest name that holds some strings."""

    def may_be_text(name: str) -> bool:
        values = sampled(frame[name])
        return not values or any(isinstance(value, str) for value in values)

    return first_named(list(frame.columns), _TEXT_NAMES, may_be_text)


def _longest(frame: pd.DataFrame, names: list[str]) -> str | None:
    """Return the column with the longest strings on average; ties go to the first."""
    lengths = {}
    for name in names:
        values = sampled(frame[name])
        if values and all(isinstance(value, str) for value in values):
            lengths[name] = np.mean([len(str(value)) for value in values])
    return max(lengths, key=lengths.__getitem__, default=None)


def read_list(
    texts: Any,
    ids: Iterable[object] | None = None,
    metadata: Any = None,
    time: str | None = None,
    group: str | None = None,
) -> dict[str, Any]:
    """Return the fields of a corpus from a list of texts; see `Corpus`."""
    values = _as_list(texts)
    if metadata is None:
        table = as_table(pd.DataFrame(index=range(len(values))))
    else:
        table = as_table(metadata)

    # Texts with an index name the rows; otherwise the index of the metadata does.
    frame = table.frame
    if isinstance(texts, pd.Series) and isinstance(metadata, pd.DataFrame):
        frame = align_values(frame, texts, "metadata", "one entry for each text")
    elif len(frame) != len(values):
        found = f"{len(frame)} for {len(values)} texts"
        raise InputError("metadata", "one entry for each text", found=found)
    if isinstance(texts, pd.Series):
        frame = frame.set_axis(texts.index)
    table = replace(table, frame=frame, source=type(texts).__name__)

    if ids is not None:
        with_index = [
            given for given in (texts, metadata) if isinstance(given, pd.Series | pd.DataFrame)
        ]
        rows = with_index[0] if with_index else values
        ids = align_values(ids, rows, "ids", "one entry for each text")
    return _fields(table, values, table.source, ids, [], {"time": time, "group": group})


FIELD_SEPARATOR = "\n\n"


def _join_columns(table: DocumentTable, names: Sequence[str]) -> DocumentTable:
    """Join the texts of several columns, row by row, into the last of these columns.

    The other columns keep their cells, as text.
    """
    if not names or len(set(names)) < len(names):
        raise InputError("text", "a column or several different ones", names)
    columns = [find_column(table, name, "text") for name in names]

    # Each cell as text, None if it is missing.
    cells = table.frame[columns].astype(object)
    is_absent = cells.isna()
    if table.cells_only:
        is_absent |= cells.isin([*MISSING_MARKERS])
    texts = cells.map(str).astype(object).where(~is_absent, None)

    joined = [_join_cells(row) for row in texts.itertuples(index=False)]
    texts[columns[-1]] = pd.Series(joined, index=texts.index, dtype=object)

    frame = table.frame.copy()
    for column in columns:
        frame[column] = texts[column]
    return replace(table, frame=frame)


def _join_cells(cells: Iterable[str | None]) -> str | None:
    """Join the cells of a row without the blank ones; None if all are missing."""
    present = [cell for cell in cells if cell is not None]
    if not present:
        return None
    return FIELD_SEPARATOR.join(cell for cell in present if cell.strip())


def read_table(
    table: DocumentTable,
    text: Any = None,
    id: str | None = None,
    time: str | None = None,
    group: str | None = None,
) -> dict[str, Any]:
    """Return the fields of a corpus from the columns of a table; see `Corpus`."""
    notes = list(table.notes)

    # Find the column of the texts: the last of several, the named one, or the likeliest.
    text_columns: list[str] | None = None
    if isinstance(text, list | tuple):
        text_columns = list(text)
        table = _join_columns(table, text_columns)
        text = text_columns[-1]
    if text is None:
        text, decision = guess_text_column(table)
        notes.append(decision)
    find_column(table, text, "text")
    check_text_column(table, text)

    # A file of plain cells has no missing values: markers such as "NA" stand for them.
    values: Sequence[object] = table.frame[text].tolist()
    if table.cells_only:
        cells = [value if is_missing(value) else str(value) for value in values]
        values = [None if cell in MISSING_MARKERS else cell for cell in cells]
        n_markers = sum(cell in MISSING_MARKERS for cell in cells)
        if n_markers:
            message = f'{n_markers} cells of column {text!r} such as "NA" are read as missing.'
            notes.append(Decision("corpus", "missing_markers", n_markers, message))

    # Columns with texts and ids are no metadata.
    used = [text]
    ids: Iterable[object] | None = table.ids
    if id is not None:
        used.append(id)
        ids = table.frame[find_column(table, id, "id")].tolist()

    fields = _fields(
        table,
        values,
        what=f"{table.source}: column {text!r}",
        ids=ids,
        used=used,
        roles={"time": time, "group": group},
        notes=notes,
    )
    return {**fields, "text_column": text_columns or text}


def _as_list(texts: Any) -> Sequence[object]:
    """Return the values of a list, an array or a column of any library."""
    if isinstance(texts, str | bytes):
        raise InputError(
            f"expected a list of texts, got one {type(texts).__name__}; give a list: [text], or "
            "the path of a file as pathlib.Path(...)"
        )
    if not is_frame(texts):
        for method in ("tolist", "to_list", "to_pylist"):  # numpy and pandas, polars, Arrow
            if hasattr(texts, method):
                values: list[object] = getattr(texts, method)()
                return values
        if isinstance(texts, Sequence):
            return texts
    remedy = "Corpus(frame)" if is_frame(texts) else "list(...)"
    raise InputError(f"expected a list of texts, got a {type(texts).__name__}; use {remedy}")


def _fields(
    table: DocumentTable,
    values: Iterable[object],
    what: str,
    ids: Iterable[object] | None,
    used: list[str],
    roles: dict[str, str | None],
    notes: Iterable[Decision] = (),
) -> dict[str, Any]:
    """Return the fields of a corpus from its texts and the table of its metadata."""
    notes = list(notes)
    for role, name in roles.items():
        if name is not None:
            find_column(table, name, role)

    rows = read_texts(values, what, table.lines)
    metadata, n_repaired = _read_metadata(table, used)

    names: Iterable[str] = content_ids(rows.hashes)
    if ids is not None:
        values_of_ids = list(ids)
        names = read_ids(values_of_ids, table)
        n_repaired += sum(_has_surrogate(value) for value in values_of_ids)

    if table.cells_only:
        metadata, decisions = read_numbers(metadata, {*roles.values()}, table.delimiter)
        notes += decisions
    notes += describe_inexact_columns(metadata)
    notes += describe_entities(rows.texts, metadata)

    if (time := roles["time"]) is not None:
        column = f"column {time!r} of {table.source}"
        metadata[time], of_dates = read_dates(table.frame[time], column, table.lines)
        notes += of_dates

    n_repaired += rows.n_repaired
    if n_repaired:
        message = (
            f"Lone surrogates were replaced in {n_repaired} values, by U+FFFD, in ids by a "
            "question mark."
        )
        notes.append(Decision("corpus", "replaced_characters", n_repaired, message))

    return {
        "texts": rows.texts,
        "ids": tuple(names),
        "status": rows.status,
        "metadata": metadata,
        "text_column": None,
        "time_column": time,
        "group_column": roles["group"],
        "source": replace_surrogates(table.source),
        "decisions": tuple(notes),
        "hashes": rows.hashes,
    }


def _has_surrogate(value: object) -> bool:
    """Return whether an id holds a lone surrogate."""
    return isinstance(value, str) and replace_surrogates(value) != value


def _read_metadata(table: DocumentTable, used: list[str]) -> tuple[pd.DataFrame, int]:
    """Return the other columns without lone surrogates, and the number of repaired values."""
    metadata = table.frame.drop(columns=used)
    clean_columns: dict[Any, pd.Series] = {}
    n_repaired = 0
    for name, dtype in metadata.dtypes.items():
        if not pd.api.types.is_object_dtype(dtype):
            continue
        cells = metadata[name].tolist()
        clean = [replace_surrogates(v) if isinstance(v, str) else v for v in cells]
        n_changed = sum(map(operator.is_not, cells, clean))
        n_repaired += n_changed

        if table.cells_only:
            clean = [None if value == "" else value for value in clean]
        if n_changed or table.untyped:
            objects = pd.Series(clean, index=metadata.index, dtype=object)
            # Column by column: pandas would keep strings of a frame of objects as objects.
            clean_columns[name] = infer_type(objects) if table.untyped else objects

    return with_columns(metadata, clean_columns), n_repaired
