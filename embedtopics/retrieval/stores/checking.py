"""Ids, vectors and metadata on their way into a store."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.corpus.hashing import is_missing
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray
from embedtopics.results import Decision
from embedtopics.retrieval.filters.checking import Unfit, period_of

__all__ = [
    "checked_ids", "checked_payload", "checked_vectors", "free_names", "id_kind", "plain_id",
    "renamed",
]  # fmt: skip


def plain_id(value: Any) -> Hashable:
    """Return an id of Python, or refuse it."""
    plain: Hashable = value.item() if isinstance(value, np.generic) else value
    is_known = isinstance(plain, (str, int, float)) and not isinstance(plain, bool)
    if not is_known or plain != plain or plain == "":
        raise InputError(f"expected ids that are texts or numbers; got {value!r}")
    if isinstance(plain, str) and _is_broken(plain):
        raise InputError(f"an id may hold no half characters; got {plain!r}")
    return plain


def id_kind(value: Hashable) -> str:
    """Tell whether an id is a "text", an "integer" or a "real"."""
    return "text" if isinstance(value, str) else "integer" if isinstance(value, int) else "real"


def checked_ids(ids: Sequence[Hashable], *, distinct: bool = True) -> list[Hashable]:
    """Return ids of Python, each there once."""
    if isinstance(ids, (str, bytes)):
        raise InputError(f"expected a list of ids; got the text {ids!r}; write [{ids!r}]")
    checked = [plain_id(value) for value in ids]
    seen: set[tuple[str, Hashable]] = set()
    for value in checked if distinct else ():
        key = (id_kind(value), value)
        if key in seen:
            raise InputError(f"the id {value!r} is given twice; keep one of the two")
        seen.add(key)
    return checked


def checked_vectors(vectors: npt.ArrayLike, n_dimensions: int, n: int | None = None) -> FloatArray:
    """Return vectors as float32, of shape (n, n_dimensions) and finite, or refuse them."""
    array = np.asarray(vectors)
    wanted = "n" if n is None else str(n)
    if array.ndim != 2 or array.shape[1] != n_dimensions or (n is not None and len(array) != n):
        raise InputError(
            f"expected vectors of shape ({wanted}, {n_dimensions}); got {array.shape}; encode with "
            "the encoder that the store was made for"
        )
    if array.dtype.kind not in "fiu":
        raise InputError(f"expected vectors of numbers; got {array.dtype}")
    with np.errstate(over="ignore"):
        made = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(made).all():
        row = int(np.flatnonzero(~np.isfinite(made).all(axis=1))[0])
        raise InputError(f"expected finite vectors; row {row} is not")
    return made


def checked_payload(
    payload: Mapping[str, Any],
    columns: Mapping[str, str],
    name: Hashable,
    *,
    finite: bool = True,
) -> dict[str, str | int | float | bool]:
    """Return the values of a document's metadata as JSON has them; missing ones are left out.

    Dates become texts in ISO 8601, in UTC and without a zone.

    Parameters
    ----------
    payload : mapping
    columns : mapping of str to str
        The kind of each.
    name : hashable
        Id of the document, for messages.
    finite : bool
        Whether infinite numbers, which JSON does not know, are refused.

    Raises
    ------
    InputError
        For a column that was not declared, or a value of another type.
    """
    made: dict[str, str | int | float | bool] = {}
    for column, given in payload.items():
        if column not in columns:
            raise InputError(
                f"document {name!r}: column {column!r} was not declared; the columns are "
                f"{', '.join(map(repr, columns)) or 'none'}; name it with its kind in columns"
            )
        value = given.item() if isinstance(given, np.generic) and not _is_date(given) else given
        if is_missing(value):
            continue
        fitting = _fitting(value, columns[column], finite)
        if fitting is None:
            raise InputError(
                f"document {name!r}: expected {columns[column]} in column {column!r}; got {given!r}"
            )
        made[column] = fitting
    return made


def free_names(columns: Iterable[str], taken: Collection[str]) -> dict[str, str]:
    """Return what columns of metadata are called beside others: those names get underscores."""
    known, made = list(columns), dict[str, str]()
    for column in known:
        name = column
        while name in taken or (name != column and (name in known or name in made.values())):
            name = f"{name}_"
        made[column] = name
    return made


def renamed(names: Mapping[str, str]) -> tuple[Decision, ...]:
    """Say which columns got another name."""
    new = [name for column, name in names.items() if name != column]
    message = f"Columns of metadata were renamed to {', '.join(new)}."
    return (Decision("retrieval", "renamed_columns", new, message),) if new else ()


def _is_date(value: Any) -> bool:
    return isinstance(value, np.datetime64)


def _is_broken(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def _fitting(value: Any, kind: str, finite: bool) -> str | int | float | bool | None:
    """Return a value of a kind; None where it is of another."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "text":
        return value if isinstance(value, str) and not _is_broken(value) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if kind == "integer":
        fits = is_number and value == value // 1 and -(2**63) <= value < 2**63
        return int(value) if fits else None
    if kind == "real":
        return float(value) if is_number and (not finite or math.isfinite(value)) else None
    return _iso(value)


def _iso(value: Any) -> str | None:
    """Return a date or time in ISO 8601; None for what is neither."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, str):
        try:
            return period_of(value).start.isoformat()
        except Unfit:
            return None
    if isinstance(value, datetime):  # pandas timestamps are datetimes, with nanoseconds
        moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return moment.isoformat(timespec="microseconds").removesuffix(".000000")
    return f"{value.isoformat()}T00:00:00" if isinstance(value, date) else None
