"""Tables and lists as the fields of a corpus: which column holds what, named or guessed."""

import difflib
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd

from embedtopics.corpus._dates import read_dates
from embedtopics.corpus._texts import (
    MISSING_MARKERS,
    ArrowTexts,
    TextRows,
    content_ids,
    held_in_arrow,
    is_missing,
    read_texts,
    replace_surrogates,
)
from embedtopics.decisions import Decision
from embedtopics.errors import InputError, name_rows


@dataclass(frozen=True, eq=False)
class DocumentTable:
    """A table of documents and its source; `lines` holds the line of each row of a text file."""

    frame: pd.DataFrame
    source: str
    notes: tuple[Decision, ...] = ()
    lines: Sequence[int] | None = None
    cells_only: bool = False
    untyped: bool = False
    ids: Sequence[str] | None = None


def is_frame(data: object) -> bool:
    """Return whether data has named columns: a frame, a table, a dataset or a mapping."""
    if isinstance(data, Mapping):
        return True
    # The type, because the attribute of a lazy frame would start its computation.
    return hasattr(type(data), "columns") or hasattr(type(data), "column_names")


def is_records(data: object) -> bool:
    """Return whether data is a list of mappings, one for each row."""
    return isinstance(data, Sequence) and bool(len(data)) and isinstance(data[0], Mapping)


def as_table(data: object) -> DocumentTable:
    """Read a frame of any kind, or a list of mappings."""
    source = type(data).__name__
    untyped = False
    if isinstance(data, pd.DataFrame):
        frame = data
    elif is_records(data) or isinstance(data, Mapping):
        columns = data if isinstance(data, Mapping) else _columns_of(cast(Sequence[Any], data))
        # pandas would read the letters of a string, and fill shorter columns.
        lengths = {k: 1 if isinstance(v, str) else len(v) for k, v in columns.items()}
        if len(set(lengths.values())) > 1 or any(isinstance(v, str) for v in columns.values()):
            raise InputError("data", "a dict of lists of one length", found=f"lengths {lengths}")
        # Objects, because strings of pandas cannot hold lone surrogates.
        frame = pd.DataFrame({k: pd.Series(list(v), dtype=object) for k, v in columns.items()})
        untyped = True
    elif is_frame(data) and hasattr(data, "to_pandas"):
        frame = data.to_pandas()
    else:
        raise InputError(
            "expected a pandas or polars frame, an Arrow table, a datasets.Dataset or a dict of "
            f"lists, got a {source}; give a list of strings as Corpus(texts)"
        )
    refuse_repeated(frame, source)
    return DocumentTable(frame, source, untyped=untyped)


def refuse_repeated(frame: pd.DataFrame, source: str) -> None:
    """Refuse repeated column names."""
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise InputError(
            f"{source}: expected distinct column names, got {repeated[0]!r} more than once; "
            "rename one of them"
        )


def _columns_of(data: Sequence[Any]) -> dict[str, list[Any]]:
    for row, record in enumerate(data):
        if not isinstance(record, Mapping):
            raise InputError("data", "a list of mappings", record, row=row)
    names = dict.fromkeys(name for record in data for name in record)
    return {name: [record.get(name) for record in data] for name in names}


# No leading zeros, which are significant in a postcode or a file number.
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_REAL = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?")
# In order of preference.
_TEXT_NAMES = (
    "text", "texts", "full_text", "fulltext", "body", "content", "contents", "document",
    "abstract", "message", "tweet", "review", "comment", "article", "post", "description", "speech",
    "sentence", "texte", "contenu", "corps", "résumé", "resume", "commentaire", "intervention",
)  # fmt: skip
_ID_NAMES = (
    "id", "_id", "ids", "doc_id", "docid", "document_id", "text_id", "uid", "uuid", "guid", "key",
    "identifier", "identifiant", "arxiv_id", "tweet_id", "article_id", "post_id",
)  # fmt: skip
_TIME_NAMES = (
    "date", "time", "datetime", "timestamp", "created_at", "created", "published_at", "published",
    "publication_date", "pub_date", "posted_at", "year", "month", "année", "annee", "jour",
)  # fmt: skip
_GROUP_NAMES = (
    "group", "source", "category", "section", "label", "class", "party", "newspaper", "outlet",
    "author", "speaker", "country", "lang", "language", "folder", "groupe", "catégorie", "auteur",
    "parti", "primary_cat",
)  # fmt: skip
_SAMPLED_VALUES = 1000
_NUMBER = re.compile(r"[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?%?")


def find_column(table: DocumentTable, name: str, role: str) -> str:
    """Return the name of an existing column."""
    columns = list(table.frame.columns)
    if name in columns:
        return name
    close = difflib.get_close_matches(str(name), map(str, columns), n=1, cutoff=0.5)
    nearest = f"did you mean {close[0]!r}?" if close else "name one of these"
    error = InputError(
        f"{table.source}: expected a {role} column {name!r}, got the columns "
        f"{list_names(columns)}; {nearest}"
    )
    error.parameter = role
    raise error


def list_names(columns: Sequence[Hashable]) -> str:
    shown = ", ".join(repr(column) for column in columns[:30])
    return shown + (f" and {len(columns) - 30} more" if len(columns) > 30 else "")


def guess_text_column(table: DocumentTable) -> tuple[str, Decision]:
    """Choose the text column by its name, else by the average length of its strings."""
    frame = table.frame
    named = _named_as_text(frame)
    every = list(frame.columns)
    # Columns with names of ids and dates are excluded, however long their strings are.
    likely = [name for name in every if str(name).casefold() not in {*_ID_NAMES, *_TIME_NAMES}]
    chosen = named or _longest(frame, likely) or _longest(frame, every)
    if chosen is None:
        raise InputError(
            f"{table.source}: no column holds strings among "
            f"{list_names(list(frame.columns))}; give the texts as strings"
        )
    how = "by its name" if named is not None else "because its strings are the longest"
    message = f"Texts are read from column {chosen!r}, chosen {how}; name another with text."
    return chosen, Decision("corpus", "text_column", str(chosen), message)


def guess_columns(frame: pd.DataFrame) -> dict[str, str | None]:
    """Guess the columns of ids, dates and groups."""
    guesses: dict[str, str | None] = {}
    for role, names, accepts in (
        ("id", _ID_NAMES, _holds_keys),
        ("time", _TIME_NAMES, _holds_dates),
        ("group", _GROUP_NAMES, _holds_groups),
    ):
        left = [name for name in frame.columns if name not in guesses.values()]
        guesses[role] = first_named(left, names, lambda name: accepts(frame[name]))  # noqa: B023
    return guesses


def check_text_column(table: DocumentTable, name: str) -> None:
    """Refuse a column of numerals or dates where texts are expected."""
    cells = _sample(table.frame[name])
    if not all(isinstance(cell, str) for cell in cells):
        return
    present = [str(cell).strip() for cell in cells if cell not in {*MISSING_MARKERS, ""}]
    is_number = table.cells_only and present and all(map(_NUMBER.fullmatch, present))
    if is_number or (cells and _holds_dates(pd.Series(cells, dtype=object))):
        raise InputError(
            f"{table.source}: expected strings in the text column {name!r}, got "
            f"{'numbers' if is_number else 'dates'} in every cell; choose one of texts among "
            f"{list_names(list(table.frame.columns))}"
        )


def read_ids(values: Iterable[object], table: DocumentTable) -> tuple[str, ...]:
    """Read ids as strings, one for each row."""
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


def _sample(column: pd.Series) -> list[object]:
    places = np.flatnonzero(column.notna().to_numpy())[:_SAMPLED_VALUES]
    return list(column.iloc[places].tolist())


def _named_as_text(frame: pd.DataFrame) -> str | None:
    """Return the column with the likeliest name that holds some strings."""

    def may_be_text(name: str) -> bool:
        values = _sample(frame[name])
        return not values or any(isinstance(value, str) for value in values)

    return first_named(list(frame.columns), _TEXT_NAMES, may_be_text)


def _longest(frame: pd.DataFrame, names: list[str]) -> str | None:
    """Return the column with the longest strings on average; ties go to the first."""
    lengths = {}
    for name in names:
        values = _sample(frame[name])
        if values and all(isinstance(value, str) for value in values):
            lengths[name] = np.mean([len(str(value)) for value in values])
    return max(lengths, key=lengths.__getitem__, default=None)


def _holds_keys(column: pd.Series) -> bool:
    keys = set(map(read_id, column.tolist()))
    return len(keys) == len(column) and "" not in keys


def _holds_dates(column: pd.Series) -> bool:
    try:
        return bool(read_dates(column, "dates")[0].notna().any())
    except InputError:
        return False


def _holds_groups(column: pd.Series) -> bool:
    values = _sample(column)
    try:
        return 2 <= len(set(values)) <= max(2, len(values) // 2)
    except TypeError:  # lists and dicts cannot name groups
        return False


def read_list(
    texts: Any,
    ids: Iterable[object] | None = None,
    index: Any = None,
    metadata: Any = None,
    time: str | None = None,
    group: str | None = None,
) -> dict[str, Any]:
    """Return the fields of a corpus from a list of texts; see `Corpus`."""
    source = type(texts).__name__
    values = _as_list(texts)
    about = pd.DataFrame(index=range(len(values)))
    table = DocumentTable(about, source) if metadata is None else as_table(metadata)
    _check_length("metadata", table.frame, len(values))
    if index is None:
        index = texts.index if isinstance(texts, pd.Series) else table.frame.index
    labels = index if isinstance(index, pd.Index) else pd.Index(index)
    _check_length("index", labels, len(values))
    for role, name in (("time", time), ("group", group)):
        if name is not None:
            find_column(table, name, role)
    about, n_repaired = _read_metadata(table, [])
    notes: tuple[Decision, ...] = ()
    if time is not None:
        about[time], notes = read_dates(table.frame[time], f"column {time!r}", None)
    about = about.set_axis(labels)
    rows = read_texts(values, source)
    names: Iterable[str] = content_ids(rows.hashes)
    if ids is not None:
        names = read_ids(ids, DocumentTable(about, source))
        _check_length("ids", names, len(values))
    roles = (None, time, group)
    return _fields(rows, n_repaired, names, about, source, notes, roles)


def _check_length(name: str, values: Any, n_texts: int) -> None:
    if len(values) != n_texts:
        raise InputError(
            name, "one entry for each text", found=f"{len(values)} for {n_texts} texts"
        )


FIELD_SEPARATOR = "\n\n"


def _join_columns(table: DocumentTable, names: Sequence[str]) -> DocumentTable:
    """Put the texts of several columns into the last; the others keep theirs."""
    if not names or len({*names}) < len(names):
        raise InputError("text", "a column or several different ones", names)
    frame = table.frame[[find_column(table, name, "text") for name in names]].astype(object)
    absent = [*MISSING_MARKERS] if table.cells_only else []
    frame = frame.map(str).astype(object).where(frame.notna() & ~frame.isin(absent), None)
    present = ([t for t in row if t is not None] for row in frame.itertuples(index=False))
    joined = [
        FIELD_SEPARATOR.join(filter(str.strip, texts)) if texts else None for texts in present
    ]
    frame[names[-1]] = pd.Series(joined, frame.index, object)
    return replace(table, frame=table.frame.assign(**{str(name): frame[name] for name in frame}))


def read_table(
    table: DocumentTable, text: Any, id: str | None, time: str | None, group: str | None
) -> dict[str, Any]:
    """Return the fields of a corpus from the columns of a table; see `Corpus`."""
    notes = list(table.notes)
    text_columns: list[str] | None = None
    if isinstance(text, list | tuple):
        text_columns = list(text)
        table, text = _join_columns(table, text_columns), text_columns[-1]
    named = {"text": text, "id": id, "time": time, "group": group}
    for role, name in named.items():
        if name is not None:
            find_column(table, name, role)
    if text is None:
        text, decision = guess_text_column(table)
        notes.append(decision)
    check_text_column(table, text)
    column = held_in_arrow(table.frame[text])
    values: Sequence[object] = table.frame[text].tolist() if column is None else column
    n_markers = 0
    if table.cells_only:
        values = [value if is_missing(value) else str(value) for value in values]
        n_markers = sum(value in MISSING_MARKERS for value in values)
        values = [None if value in MISSING_MARKERS else value for value in values]
    rows = read_texts(values, f"{table.source}: column {text!r}", table.lines)
    ids: Iterable[str] = table.ids or content_ids(rows.hashes)
    if id is not None:
        ids = read_ids(table.frame[id].tolist(), table)
    metadata, n_repaired = _read_metadata(table, [text] if id is None else [text, id])
    if table.cells_only:
        notes.extend(_read_numbers(metadata, {time, group, *(text_columns or ())}))
    if time is not None:
        what = f"{table.source}, column {time!r}"
        metadata[time], date_notes = read_dates(table.frame[time], what, table.lines)
        notes.extend(date_notes)
    if n_markers:
        message = f'{n_markers} cells of column {text!r} such as "NA" are read as missing texts.'
        notes.append(Decision("corpus", "missing_markers", n_markers, message))
    columns = (text_columns or text, time, group)
    return _fields(rows, n_repaired, ids, metadata, table.source, notes, columns)


def _as_list(texts: Any) -> Sequence[object]:
    """Return the values of a list, an array or a column of any library."""
    if isinstance(texts, str | bytes):
        raise InputError(
            f"expected a list of texts, got one {type(texts).__name__}; give a list: [text], or "
            "the path of a file as pathlib.Path(...)"
        )
    if (column := held_in_arrow(texts)) is not None:
        return column
    if not is_frame(texts):
        for method in ("tolist", "to_list", "to_pylist"):  # numpy and pandas, polars, Arrow
            if hasattr(texts, method):
                values: list[object] = getattr(texts, method)()
                return values
        if isinstance(texts, Sequence):
            return texts
    remedy = "Corpus(frame)" if is_frame(texts) else "list(...)"
    raise InputError(f"expected a list of texts, got a {type(texts).__name__}; use {remedy}")


def _read_metadata(table: DocumentTable, used: list[str]) -> tuple[pd.DataFrame, int]:
    """Return the other columns without lone surrogates, and the number of repaired values."""
    metadata = table.frame.drop(columns=used)
    n_repaired = 0
    for name in metadata.columns:
        column = metadata[name]
        if isinstance(column.dtype, np.dtype) and column.dtype == object:
            cells = column.tolist()
            clean = [replace_surrogates(v) if isinstance(v, str) else v for v in cells]
            n_changed = sum(a is not b for a, b in zip(cells, clean, strict=True))
            n_repaired += n_changed
            if table.cells_only:
                clean = [None if value == "" else value for value in clean]
            if n_changed or table.untyped:
                objects = pd.Series(clean, index=metadata.index, dtype=object)
                # Column by column: pandas would keep strings of a frame of objects as objects.
                metadata[name] = _inferred(objects) if table.untyped else objects
    return metadata, n_repaired


def _inferred(objects: pd.Series) -> pd.Series:
    """Infer the type of a column; integers with missing values stay integers."""
    present = [value for value in objects.tolist() if value is not None]
    if len(present) < len(objects) and present and all(type(value) is int for value in present):
        with suppress(OverflowError):  # beyond 64 bits they stay objects
            return objects.astype("Int64")
        return objects
    return objects.infer_objects()


def _read_numbers(metadata: pd.DataFrame, others: set[str | None]) -> tuple[Decision, ...]:
    """Convert columns that hold only numerals to numbers."""
    read = []
    for name in metadata.columns:
        cells = metadata[name].tolist()
        cells = [None if isinstance(c, str) and c in MISSING_MARKERS else c for c in cells]
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
    message = f"Columns of numerals are read as numbers: {', '.join(read)}."
    return (Decision("corpus", "numeric_columns", read, message),)


def _fields(
    rows: TextRows,
    n_repaired: int,
    ids: Iterable[str],
    metadata: pd.DataFrame,
    source: str,
    notes: Iterable[Decision],
    roles: tuple[str | list[str] | None, str | None, str | None],
) -> dict[str, Any]:
    """Return the fields of a corpus; `roles` are the columns of texts, dates and groups."""
    n = rows.n_repaired + n_repaired
    if n:
        message = f"Lone surrogates were replaced by U+FFFD in {n} values."
        notes = (*notes, Decision("corpus", "replaced_characters", n, message))
    columns = ("text_column", "time_column", "group_column")
    return {
        "texts": rows.texts,
        "ids": ArrowTexts.of(ids) if isinstance(rows.texts, ArrowTexts) else tuple(ids),
        "status": rows.status,
        "metadata": metadata,
        "source": replace_surrogates(source),
        "notes": tuple(notes),
        # Values of cached properties, computed for the ids already.
        "hashes": rows.hashes,
        "_is_normal": rows.is_normal,
        **dict(zip(columns, roles, strict=True)),
    }
