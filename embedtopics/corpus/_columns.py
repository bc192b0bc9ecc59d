"""Columns as the fields of a corpus: which holds what, and its ids, numbers and dates.

Dates have one format for a whole column, because one value (03/04/2021) may be ambiguous. A value
in another format is an error: a misread date would silently move a document in time.
"""

import difflib
import operator
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, Literal, NoReturn

import numpy as np
import pandas as pd

from embedtopics.corpus._alignment import align_values
from embedtopics.corpus._numbers import infer_type
from embedtopics.corpus._readers import DocumentTable, as_table, is_frame
from embedtopics.corpus._texts import (
    MISSING_MARKERS,
    content_ids,
    is_missing,
    read_texts,
    replace_surrogates,
)
from embedtopics.decisions import Decision
from embedtopics.errors import InputError, name_rows

# No leading zeros, which are significant in a postcode or a file number.
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_REAL = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?")
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
_NO_WORDS = re.compile(r"[-+\d.,:/%eETZ\s]*\d[-+\d.,:/%eETZ\s]*")
"""Numbers, dates and times."""


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
    if cells and all(isinstance(cell, str) and _NO_WORDS.fullmatch(cell) for cell in cells):
        raise InputError(
            "text",
            f"a column of texts among {list_names(list(table.frame.columns))}",
            found=f"numbers or dates in every cell of column {name!r} of {table.source}",
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
        rows = texts if isinstance(texts, pd.Series) else frame
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
    names = content_ids(rows.hashes) if ids is None else read_ids(ids, table)
    metadata, n_repaired = _read_metadata(table, used)
    if table.cells_only:
        notes += _read_numbers(metadata, {*roles.values()})
    if (time := roles["time"]) is not None:
        column = f"column {time!r} of {table.source}"
        metadata[time], decisions = read_dates(table.frame[time], column, table.lines)
        notes += decisions
    n_repaired += rows.n_repaired
    if n_repaired:
        message = f"Lone surrogates were replaced by U+FFFD in {n_repaired} values."
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
        "notes": tuple(notes),
        "hashes": rows.hashes,
    }


def _read_metadata(table: DocumentTable, used: list[str]) -> tuple[pd.DataFrame, int]:
    """Return the other columns without lone surrogates, and the number of repaired values."""
    metadata = table.frame.drop(columns=used)
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
            metadata[name] = infer_type(objects) if table.untyped else objects
    return metadata, n_repaired


def _read_numbers(metadata: pd.DataFrame, others: set[str | None]) -> tuple[Decision, ...]:
    """Convert columns that hold only numerals to numbers."""
    read = []
    for name in metadata.columns:
        column = metadata[name]
        present = column[column.notna() & ~column.isin(MISSING_MARKERS)]
        if name in others or not len(present) or not all(isinstance(cell, str) for cell in present):
            continue
        if present.str.fullmatch(_INTEGER).all():
            numbers: pd.Series = present.map(int).astype("Int64").reindex(column.index)
            metadata[name] = numbers if numbers.hasnans else numbers.astype("int64")
        elif present.str.fullmatch(_REAL).all():
            metadata[name] = present.map(float).reindex(column.index)
        else:
            continue
        read.append(str(name))
    if not read:
        return ()
    message = f"Columns of numerals are read as numbers: {', '.join(read)}."
    return (Decision("corpus", "numeric_columns", read, message),)


_CLOCK = r":\d{2}(?::\d{2}(?:\.\d{1,9})?)?"
_ZONE = r"(?:Z|[+-]\d{2}(?::?\d{2})?)"
_ISO = "ISO 8601 (like 2021-05-17 or 2021)"
_SLASHED = "day and month before the year (like 17/05/2021)"
_NAMED = "the month by its English name (like 17 May 2021)"
_COMPACT = "YYYYMMDD (like 20210517)"
_SECONDS, _MILLISECONDS = "Unix time in seconds", "Unix time in milliseconds"
_FORMATS = {
    name: re.compile(pattern, re.ASCII)
    for name, pattern in {
        _ISO: rf"\d{{4}}(-\d{{2}}(-\d{{2}}([T ]\d{{2}}{_CLOCK} ?{_ZONE}?)?)?)?",
        _SLASHED: rf"(\d{{1,2}})([/.-])(\d{{1,2}})\2(\d{{4}})(?:[T ](\d{{1,2}})({_CLOCK}))?",
        # Time may come between day and year, as at Twitter; an offset, such as +1400, is no year.
        _NAMED: r"(?i)(?=.*\b\d\d?\b)(?=.*(?<!\+)\b(?:1[4-9]|20)\d\d\b)"
        r".*\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b.*",
        _COMPACT: r"\d{8}",
        _SECONDS: r"\d{9,11}",
        _MILLISECONDS: r"\d{12,14}",
    }.items()
}
_REMEDY = "write every date as YYYY-MM-DD, or convert the column with pandas.to_datetime first"

Refuse = Callable[..., NoReturn]


def read_dates(
    values: Iterable[Any], name: str, lines: Sequence[int] | None = None
) -> tuple[pd.Series, tuple[Decision, ...]]:
    """Read dates of one format as datetime64[us] without time zone, and report the decisions.

    `Corpus` lists the formats. Years and months alone stand for their first day; integers from
    10**8 up are Unix time in seconds, from 10**11 up in milliseconds. Times with a zone are
    converted to UTC. None, NaN, "" and "NA" are missing.
    """
    series = values if isinstance(values, pd.Series) else pd.Series(list(values), dtype=object)
    decisions: list[Decision] = []
    if isinstance(series.dtype, np.dtype) and series.dtype.kind == "M":
        dates = series.astype("datetime64[us]")
    else:
        texts = pd.Series([_as_string(value) for value in series.tolist()], dtype=object)
        distinct = texts.dropna().drop_duplicates()  # the index is that of their first rows

        def refuse(row: int, expected: str, earlier: int | None = None) -> NoReturn:
            """Raise the error for a value that contradicts an earlier one."""
            if earlier is not None:
                expected += f", as in {name_rows([earlier], lines)} ({distinct[earlier]!r})"
            raise InputError(
                f"{name}, {name_rows([row], lines)}: expected {expected}, got "
                f"{series.iloc[row]!r}; {_REMEDY}"
            )

        moments = dict.fromkeys([None], np.datetime64("NaT", "us"))
        if len(distinct):
            parsed, decisions = _parse(distinct, texts, name, refuse)
            moments |= dict(zip(distinct, parsed, strict=True))
        read = np.array([moments[text] for text in texts], dtype="datetime64[us]")
        dates = pd.Series(read, index=series.index, name=series.name)
    n_missing = int(dates.isna().sum())
    if n_missing:
        message = f"{n_missing} of {len(dates)} rows have no date in {name}."
        decisions.append(Decision("corpus", "dates_missing", n_missing, message))
    return dates, tuple(decisions)


def _as_string(value: object) -> str | None:
    """Return a value as text, None where missing."""
    if is_missing(value):
        return None
    if isinstance(value, date):  # datetimes and pandas timestamps are dates
        return value.isoformat()
    if isinstance(value, np.datetime64):
        return str(value.astype("datetime64[us]"))
    if isinstance(value, float | np.floating) and value.is_integer():
        value = int(value)
    text = str(value).strip()
    return None if not text or text in MISSING_MARKERS else text


def _parse(
    distinct: pd.Series, texts: pd.Series, name: str, refuse: Refuse
) -> tuple[np.ndarray, list[Decision]]:
    """Parse distinct values, all in the format of the first, as datetime64[us]."""
    first = distinct.index.tolist()[0]
    formats = (form for form, pattern in _FORMATS.items() if pattern.fullmatch(distinct[first]))
    description = next(formats, None)
    if description is None:
        refuse(first, f"{_ISO}, {_SLASHED}, {_NAMED} or Unix time")
    others = distinct[~distinct.str.fullmatch(_FORMATS[description])]
    if len(others):
        refuse(int(others.index[0]), description, first)
    has_time = description in (_ISO, _NAMED)
    decisions = _describe_times(distinct, texts, name, refuse) if has_time else []
    if description in (_SECONDS, _MILLISECONDS):
        unit: Literal["s", "ms"] = "s" if description == _SECONDS else "ms"
        moments = pd.to_datetime(distinct.map(int), unit=unit, errors="coerce", utc=True)
    else:
        if description == _SLASHED:
            description, distinct = _iso_of_slashed(distinct, refuse)
        format = {_COMPACT: "%Y%m%d", _NAMED: "mixed"}.get(description, "ISO8601")
        moments = pd.to_datetime(distinct, format=format, errors="coerce", utc=True)
    impossible = moments.isna() | (moments.dt.year < 1)
    if impossible.any():
        refuse(int(impossible[impossible].index[0]), f"a day that exists, as {description}")
    message = f"Dates in {name} are {description}."
    decisions.insert(0, Decision("corpus", "dates", description, message))
    return moments.dt.tz_localize(None).to_numpy().astype("datetime64[us]"), decisions


def _iso_of_slashed(distinct: pd.Series, refuse: Refuse) -> tuple[str, pd.Series]:
    """Rewrite dates as ISO 8601; the number above 12 in the whole column is the day."""
    parts = distinct.str.extract(_FORMATS[_SLASHED]).fillna("")
    first, second = (parts[place].astype(int) > 12 for place in (0, 2))
    _refuse_both(first, second, "one order of day and month", refuse)
    if not (first.any() or second.any()):
        expected = "some value above 12 in the column to tell days from months"
        refuse(distinct.index.tolist()[0], expected)
    day, month = (0, 2) if first.any() else (2, 0)
    days = parts[3] + "-" + parts[month].str.zfill(2) + "-" + parts[day].str.zfill(2)
    times = ("T" + parts[4].str.zfill(2) + parts[5]).where(parts[4] != "", "")
    return "day/month/year" if day == 0 else "month/day/year", days + times


def _refuse_both(first: pd.Series, second: pd.Series, expected: str, refuse: Refuse) -> None:
    """Refuse a column that has both kinds of values."""
    if first.any() and second.any():
        earlier, later = sorted(int(mask[mask].index[0]) for mask in (first, second))
        refuse(later, expected, earlier)


def _describe_times(
    distinct: pd.Series, texts: pd.Series, name: str, refuse: Refuse
) -> list[Decision]:
    """Report dates without a day, and zones at the end or before the year; refuse zones in part."""
    decisions = []
    has_zone = distinct.str.contains(rf":\d{{2}}.*(?:(?<=[\d ]){_ZONE}| GMT| UTC)(?: \d{{4}})?$")
    is_local = distinct.str.contains(":") & ~has_zone  # a day alone needs no zone
    _refuse_both(has_zone, is_local, "a time zone in every row or in none", refuse)
    if has_zone.any():
        message = f"Times in {name} were converted to UTC."
        decisions.append(Decision("corpus", "time_zone", "UTC", message))
    n_rounded = int((texts.str.len() < len("2021-05-17")).sum())
    if n_rounded:
        message = f"{n_rounded} dates in {name} name no day; each stands for its first day."
        decisions.append(Decision("corpus", "dates_without_day", n_rounded, message))
    return decisions
