"""Which column holds what: the columns that were asked for, and guesses where none was."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np
import pandas as pd

from embedtopics.corpus._dates import parse_dates
from embedtopics.corpus._hashing import is_missing
from embedtopics.corpus._tables import MISSING_MARKERS, Table, name_rows, note
from embedtopics.corpus.results import Decision
from embedtopics.errors import InputError

# In order of preference: a file with "abstract" and "description" holds abstracts.
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
_NOT_TEXT = {
    "integer", "floating", "mixed-integer-float", "complex", "decimal", "boolean",
    "datetime", "datetime64", "date", "timedelta", "timedelta64", "time", "period",
}  # fmt: skip


def find_column(table: Table, name: str, role: str) -> str:
    """Return the name of an existing column."""
    columns = list(table.frame.columns)
    if name in columns:
        return name
    by_lower = {str(column).casefold(): str(column) for column in columns}
    close = difflib.get_close_matches(str(name).casefold(), list(by_lower), n=1)
    nearest = f"; did you mean {by_lower[close[0]]!r}?" if close else ""
    raise InputError(
        f"{table.source}: expected a {role} column {name!r}, got the columns "
        f"{_list_names(columns)}{nearest or '; name one of these'}"
    )


def _list_names(columns: Sequence[Hashable]) -> str:
    shown = ", ".join(repr(column) for column in columns[:30])
    return shown + (f" and {len(columns) - 30} more" if len(columns) > 30 else "")


def guess_text_column(table: Table) -> tuple[str, Decision]:
    """Choose the column that holds the texts: by its name, else the longest strings on average."""
    frame = table.frame
    named = _named_as_text(frame)
    every = list(frame.columns)
    chosen = named or _longest(frame, _without_other_roles(every)) or _longest(frame, every)
    if chosen is None:
        raise InputError(
            f"{table.source}: expected a column of texts, got none that holds strings among "
            f"{_list_names(list(frame.columns))}; give the texts as strings"
        )
    how = "by its name" if named is not None else "because its strings are the longest"
    message = f"Texts are read from column {chosen!r}, chosen {how}; name another with text."
    return chosen, note("text_column", str(chosen), message)


def guess_columns(frame: pd.DataFrame) -> dict[str, str | None]:
    """Guess what the columns of a frame are, to propose them to the user."""
    by_name = _named_as_text(frame)
    left = [name for name in frame.columns if name != by_name]
    identifier = _first_named(left, _ID_NAMES, lambda name: _is_key(frame[name]))
    left = [name for name in left if name != identifier]
    time = _first_named(left, _TIME_NAMES, lambda name: _holds_dates(frame[name]))
    if time is None:
        others = (name for name in left if _may_hold_dates(frame[name]))
        time = next((name for name in others if _holds_dates(frame[name])), None)
    left = [name for name in left if name != time]
    group = _first_named(left, _GROUP_NAMES, lambda name: _holds_groups(frame[name]))
    left = [name for name in left if name != group]
    text = by_name if by_name is not None else _longest(frame, _without_other_roles(left))
    return {"text": text, "id": identifier, "time": time, "group": group}


def check_text_column(table: Table, name: str) -> None:
    """Refuse a column of numbers, dates or booleans where texts are expected."""
    column = table.frame[name]
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind in _NOT_TEXT and column.isna().all():
        return
    dtype = str(column.infer_objects().dtype) if kind in _NOT_TEXT else ""
    if dtype == "object":  # dates and decimals have no type of their own
        dtype = f"{kind} values"
    if table.cells_only and not dtype and _holds_only_numbers(column.tolist()):
        dtype = "numbers in every cell"
    if not dtype and _holds_dates(pd.Series(_sample(column), dtype=object)):
        dtype = "dates in every cell"
    if dtype:
        raise InputError(
            f"{table.source}: expected strings in the text column {name!r}, got {dtype}; "
            f"choose the column of texts among {_list_names(list(table.frame.columns))}"
        )


def read_ids(values: Iterable[object], table: Table) -> tuple[str, ...]:
    """Read identifiers as strings, one a row."""
    ids = [read_id(value) for value in values]
    missing = [row for row, value in enumerate(ids) if not value]
    if missing:
        found = f"none in {name_rows(missing, table.lines)} of {table.source}"
        raise InputError("ids", "given in every row", found=found, row=missing[0])
    first_row: dict[str, int] = {}
    for row, value in enumerate(ids):
        if first_row.setdefault(value, row) != row:
            both = name_rows([first_row[value], row], table.lines)
            found = f"{value!r} in {both} of {table.source}"
            raise InputError("ids", "different in every row", found=found, row=row)
    return tuple(ids)


def read_id(value: object) -> str:
    """Return an identifier as a corpus keeps it; "" where there is none."""
    if is_missing(value):
        return ""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    # "?" rather than U+FFFD: identifiers end up in addresses and file names.
    return str(value).strip().encode("utf-8", "replace").decode("utf-8")


def _first_named(
    names: list[str], wanted: tuple[str, ...], accept: Callable[[str], bool] = lambda name: True
) -> str | None:
    """Return the first of the wanted names that exists, in any case, and is accepted."""
    by_lower = {str(name).strip().casefold(): name for name in reversed(names)}
    found = (by_lower[name] for name in wanted if name in by_lower)
    return next(filter(accept, found), None)


def _sample(column: pd.Series) -> list[object]:
    present = column[column.notna()]
    return list(present.head(_SAMPLED_VALUES).tolist())


def _named_as_text(frame: pd.DataFrame) -> str | None:
    """Return the column with the likeliest name, unless all that it holds is something else."""

    def may_be_text(name: str) -> bool:
        values = _sample(frame[name])
        return not values or any(isinstance(value, str) for value in values)

    return _first_named(list(frame.columns), _TEXT_NAMES, may_be_text)


def _without_other_roles(names: list[str]) -> list[str]:
    """Leave out the columns that are called like identifiers and dates, however long these are."""
    return [name for name in names if str(name).casefold() not in {*_ID_NAMES, *_TIME_NAMES}]


def _is_text(column: pd.Series) -> bool:
    return all(isinstance(value, str) for value in _sample(column))


def _longest(frame: pd.DataFrame, names: list[str]) -> str | None:
    """Return the column, of these, whose strings are the longest on average; ties to the first."""
    samples = {name: _sample(frame[name]) for name in names if _is_text(frame[name])}
    lengths = {n: np.mean([len(str(v)) for v in values]) for n, values in samples.items() if values}
    return max(lengths, key=lengths.__getitem__, default=None)


def _holds_only_numbers(values: list[object]) -> bool:
    cells = (str(value).strip() for value in values if not is_missing(value))
    present = (cell for cell in cells if cell and cell not in MISSING_MARKERS)
    first = next(present, None)
    if first is None or not _NUMBER.fullmatch(first):
        return False
    return all(_NUMBER.fullmatch(cell) for cell in present)


def _is_key(column: pd.Series) -> bool:
    values = column.tolist()
    keys = {read_id(value) for value in values}
    return len(keys) == len(values) and "" not in keys


def _may_hold_dates(column: pd.Series) -> bool:
    if pd.api.types.is_datetime64_any_dtype(column):
        return True
    name = str(column.name).strip().casefold()
    return name.startswith("date") or name.endswith(("_at", "date", "_time"))


def _holds_dates(column: pd.Series) -> bool:
    try:
        return bool(parse_dates(column).notna().any())
    except InputError:
        return False


def _holds_groups(column: pd.Series) -> bool:
    values = _sample(column)
    try:
        return 2 <= len(set(values)) <= max(2, len(values) // 2)
    except TypeError:  # lists and dicts are no names of groups
        return False
