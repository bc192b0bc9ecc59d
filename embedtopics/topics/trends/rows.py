"""What is known of each row beside its text: its date, its group."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._checks import checked_count
from embedtopics.corpus.dates import read_dates
from embedtopics.corpus.hashing import is_missing
from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.results import Decision, TopicResult

__all__ = ["Groups", "dates_of", "groups_of", "values_of"]

OTHER = "(other)"
N_QUANTILES = 4
"""Groups that a column of many numbers is cut into."""

FEW_NUMBERS = 12
"""Distinct numbers that are groups of their own."""


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each row.

    Parameters
    ----------
    by : str
        What they are of.
    names : tuple of str
    of_row : int64 ndarray of shape (n_rows,)
        A place in `names`; -1 where a row has no group.
    decisions : tuple of Decision
    """

    by: str
    names: tuple[str, ...]
    of_row: Int64Array
    decisions: tuple[Decision, ...]


def values_of(result: TopicResult, given: Any, name: str) -> tuple[pd.Series, str]:
    """Return the values of a column, or those given, one a row; and how messages call them.

    Raises
    ------
    InputError
        Where there is no such column, or not a value for each row.
    """
    metadata = result.corpus.metadata
    if isinstance(given, str):
        if given not in metadata.columns:
            there = ", ".join(repr(str(column)) for column in metadata.columns) or "none"
            raise InputError(
                f"{name}: there is no column {given!r} in the corpus; its columns are: {there}; "
                "or give an array with a value for each row"
            )
        return metadata[given], f"column {given!r}"
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise InputError(f"{name} must be the name of a column or a value for each row; "
                         f"got {given!r}")  # fmt: skip
    values = given if isinstance(given, pd.Series) else pd.Series(list(given))
    if len(values) != len(result.corpus):
        raise InputError(
            f"{name} must have a value for each of the {len(result.corpus)} rows of the corpus; "
            f"got {len(values)}"
        )
    return values, str(values.name) if values.name is not None else name


def dates_of(
    result: TopicResult, given: Any
) -> tuple[npt.NDArray[np.datetime64], str, tuple[Decision, ...]]:
    """Return the date of each row, the time zone, and what was decided in reading them.

    Raises
    ------
    InputError
        Where there are none.
    """
    corpus = result.corpus
    if given is None:
        if corpus.time is None:
            raise InputError(
                "there are no dates: name the column of dates with time= when the corpus is read, "
                "or give dates=, a value for each row or the name of a column"
            )
        dates, notes = corpus.time, corpus.notes
        decisions: tuple[Decision, ...] = ()
    else:
        values, what = values_of(result, given, "dates")
        dates, notes = read_dates(values, what)
        decisions = tuple(note for note in notes if note.name != "dates_missing")
    moments = dates.to_numpy(dtype="datetime64[us]")
    dated = ~np.isnat(moments) & (result.documents.of_row >= 0)
    if not dated.any():
        raise InputError(
            f"none of the {len(moments)} rows has both a text and a date; "
            "check the column of dates, or name another one"
        )
    zone = "UTC" if any(note.name == "time_zone" for note in notes) else "as given"
    return moments, zone, decisions


def groups_of(result: TopicResult, given: Any, max_groups: int) -> Groups:
    """Return the group of each row.

    Numbers of more than twelve values are cut at their quartiles; of more than `max_groups`
    groups the smallest are put together. Both are recorded.

    Raises
    ------
    InputError
        Where there are no groups.
    """
    checked_count(max_groups, "max_groups", 2)
    if given is None:
        if result.corpus.group_column is None:
            raise InputError(
                "there are no groups: name their column with group= when the corpus is read, or "
                "say here which: the name of a column, or a value for each row"
            )
        given = result.corpus.group_column
    values, what = values_of(result, given, "group")
    by = given if isinstance(given, str) else what
    has_text = result.documents.of_row >= 0
    codes, names, decisions = _grouped(values, has_text, by)
    sizes = np.bincount(codes[(codes >= 0) & has_text], minlength=len(names))
    if not sizes.any():
        raise InputError(f"none of the rows with text has a group in {by!r}; name another column")
    of_row, names, lumped = _largest(codes, names, sizes, max_groups, by)
    n_missing = int(np.sum((codes < 0) & has_text))
    if n_missing:
        message = f"{n_missing:,} rows without a value in {by!r} are left out."
        lumped = (*lumped, Decision("trends", "rows_without_group", n_missing, message))
    return Groups(by, names, of_row, (*decisions, *lumped))


def _grouped(
    values: pd.Series, has_text: npt.NDArray[np.bool_], by: str
) -> tuple[Int64Array, tuple[str, ...], tuple[Decision, ...]]:
    """Return codes and names: numbers from the smallest up, else the largest group first."""
    is_number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if is_number:
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        distinct = np.unique(numbers[np.isfinite(numbers) & has_text])
        if len(distinct) > FEW_NUMBERS:
            return _quantiles(numbers, has_text, by)
        codes = np.searchsorted(distinct, numbers)
        codes = np.where(np.isin(numbers, distinct), codes, -1)
        return codes.astype(np.int64), tuple(f"{value:.15g}" for value in distinct), ()
    texts = _names(values)
    found = pd.Series(texts, dtype=object)
    sizes = found[has_text].dropna().value_counts()
    names = sorted(sizes.index, key=lambda name: (-sizes[name], name))
    place = {name: code for code, name in enumerate(names)}
    coded = np.array([place.get(name, -1) for name in texts], dtype=np.int64)
    return coded, tuple(names), ()


def _names(values: pd.Series) -> list[str | None]:
    """Return each value as text; None where there is nothing to see."""

    def spell(value: Any) -> str | None:
        return None if is_missing(value) else _name(value)

    # Each different string once; other values can be equal and not read alike, such as 1 and True.
    if pd.api.types.infer_dtype(values, skipna=True) != "string":
        return [spell(value) for value in values.tolist()]
    codes, distinct = pd.factorize(values)
    spelled = np.array([*map(spell, distinct), None], dtype=object)
    return list(spelled[codes])


def _name(value: Any) -> str | None:
    """Return a value as text; None where there is nothing to see."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    return str(value).strip() or None


def _quantiles(
    numbers: npt.NDArray[np.float64], has_text: npt.NDArray[np.bool_], by: str
) -> tuple[Int64Array, tuple[str, ...], tuple[Decision, ...]]:
    known = np.isfinite(numbers) & has_text
    shares = np.linspace(0, 1, N_QUANTILES + 1)
    inner = np.unique(np.quantile(numbers[known], shares[1:-1], method="inverted_cdf"))
    # A value on an edge belongs below it.
    codes = np.where(np.isfinite(numbers), np.searchsorted(inner, numbers, side="left"), -1)
    used = np.unique(codes[known])
    members = [numbers[known & (codes == code)] for code in used]
    names = _spell_ranges([(float(own.min()), float(own.max())) for own in members])
    compact = np.where(np.isin(codes, used), np.searchsorted(used, codes), -1)
    message = f"The numbers in {by!r} are grouped into {len(names)} parts of about as many rows."
    return compact, names, (Decision("trends", "numbers_grouped", list(names), message),)


def _spell_ranges(ranges: list[tuple[float, float]]) -> tuple[str, ...]:
    """Return ranges as text, in as few digits as keep their ends apart."""
    ends = {end for pair in ranges for end in pair}
    digits = next(
        (n for n in range(6, 17) if len({f"{end:.{n}g}" for end in ends}) == len(ends)), 17
    )
    return tuple(f"{low:.{digits}g} to {high:.{digits}g}" for low, high in ranges)


def _largest(
    codes: Int64Array, names: tuple[str, ...], sizes: Int64Array, max_groups: int, by: str
) -> tuple[Int64Array, tuple[str, ...], tuple[Decision, ...]]:
    """Keep the largest groups, and put the rest together."""
    if len(names) <= max_groups:
        return codes, names, ()
    order = np.argsort(-sizes, kind="stable")
    kept = np.sort(order[: max_groups - 1])
    new = np.full(len(names) + 1, len(kept), dtype=np.int64)
    new[kept] = np.arange(len(kept))
    new[-1] = -1
    n_rest = len(names) - len(kept)
    other = OTHER
    while other in {names[code] for code in kept}:  # what the data call so is a group of its own
        other = f"({other})"
    message = (
        f"{by!r} has {len(names):,} groups; the {n_rest:,} smallest are put together as {other!r}."
    )
    decision = Decision("trends", "groups_put_together", n_rest, message)
    return new[codes], (*(names[code] for code in kept), other), (decision,)
