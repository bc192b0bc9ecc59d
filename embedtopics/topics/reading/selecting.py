"""Which rows a question is about: those of a topic, of a group, of a period, or of a mask."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from embedtopics._checks import is_whole
from embedtopics.errors import InputError
from embedtopics.results import NOISE, TopicResult
from embedtopics.topics.relabeling import checked_topic_id

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "BoolArray", "Period", "drawn", "rows_of_group", "rows_of_mask", "rows_of_period",
    "rows_of_topics", "selected_rows",
]  # fmt: skip

BoolArray: TypeAlias = npt.NDArray[np.bool_]
Period: TypeAlias = Any
"""A period such as "2021", 2021 or "2021-05", or its two ends, either of which may be None."""

_READABLE = re.compile(
    r"\d{4}(-\d{2}(-\d{2}([T ]\d{2}:\d{2}(:\d{2})?)?)?)?|\d{4}-?Q[1-4]", re.IGNORECASE
)
"""Periods as they are written without doubt; pandas would read "may" as one of this year."""

VALUES_NAMED = 12
"""Values of a column that an error lists."""


def rows_of_topics(result: TopicResult, topics: Any) -> BoolArray:
    """Return which rows are in a topic or in one of several, shape (n_rows,).

    Parameters
    ----------
    result : TopicResult
    topics : int or sequence of int
        Topic ids; -1 stands for the rows with text that are in none.

    Raises
    ------
    InputError
        If there is no such topic, or none is given.
    """
    single = isinstance(topics, (int, np.integer))
    if not single and (isinstance(topics, (str, bytes)) or not hasattr(topics, "__iter__")):
        raise InputError(f"expected a topic id or several; got {topics!r}")
    wanted = [topics] if single else list(topics)
    if not wanted:
        raise InputError("expected a topic id or several; got none")
    ids = [
        NOISE if isinstance(t, (int, np.integer)) and t == NOISE else checked_topic_id(result, t)
        for t in wanted
    ]
    return np.isin(result.labels, ids) & (result.documents.of_row >= 0)


def rows_of_group(result: TopicResult, group: Any) -> BoolArray:
    """Return which rows are in a group, shape (n_rows,).

    Parameters
    ----------
    result : TopicResult
    group : mapping of str to a value or a list of values, or a value
        ``{"source": "Le Monde"}`` asks for the rows with this value in the column; of several
        columns all must hold. A value alone is one of the corpus's group column.

    Raises
    ------
    InputError
        If there is no such column, or no row has the value; it lists those that exist.
    """
    metadata = result.corpus.metadata
    if not isinstance(group, Mapping):
        if result.corpus.group_column is None:
            raise InputError(
                f"the texts have no group column, in which to look for {group!r}; name the column, "
                f'as in {{"source": {group!r}}}'
            )
        group = {result.corpus.group_column: group}
    if not group:
        raise InputError("expected a column and a value for a group; got an empty mapping")
    chosen = np.ones(len(result.corpus), dtype=bool)
    for column, values in group.items():
        if column not in metadata:
            there = ", ".join(map(repr, metadata.columns)) or "none"
            raise InputError(f"expected a column of the input; got {column!r}; there are: {there}")
        wanted = list(values) if isinstance(values, (list, tuple, set, frozenset)) else [values]
        chosen &= _rows_with(metadata[column], wanted)
    return chosen


def _rows_with(column: pd.Series, wanted: Sequence[Any]) -> BoolArray:
    """Return the rows that have one of the values, each of which some row must have."""
    chosen = np.zeros(len(column), dtype=bool)
    for value in wanted:
        found = (column == value).fillna(False).to_numpy(dtype=bool)
        if not found.any():
            counted = column.value_counts()
            named = ", ".join(map(repr, counted.index[:VALUES_NAMED].tolist()))
            more = (
                f" and {len(counted) - VALUES_NAMED:,} more" if len(counted) > VALUES_NAMED else ""
            )
            raise InputError(
                f"no row has {value!r} in column {column.name!r}; there are: "
                f"{named or 'no values'}{more}"
            )
        chosen |= found
    return chosen


def rows_of_period(result: TopicResult, period: Period) -> BoolArray:
    """Return which rows have a date in a period, both ends included, shape (n_rows,).

    Parameters
    ----------
    result : TopicResult
    period : str, int, pandas.Period, date, or a pair of these
        "2021", "2021-05", "2021Q2", "2021-05-17"; a pair runs from the beginning of its first to
        the end of its second, and None leaves an end open.

    Raises
    ------
    InputError
        If the corpus has no dates, or the period cannot be read or ends before it begins.
    """
    times = result.corpus.time
    if times is None:
        raise InputError("the texts have no dates; name their column with time= when reading them")
    if isinstance(period, (tuple, list)):
        if len(period) != 2:
            raise InputError(f"expected a period or its two ends; got {period!r}")
        first = None if period[0] is None else _ends(period[0])[0]
        last = None if period[1] is None else _ends(period[1])[1]
    else:
        first, last = _ends(period)
    if first is not None and last is not None and last < first:
        raise InputError(f"expected a period that ends after its beginning; got {period!r}")
    chosen = times.notna().to_numpy()
    if first is not None:
        chosen = chosen & (times >= first).to_numpy(dtype=bool)
    if last is not None:
        chosen = chosen & (times <= last).to_numpy(dtype=bool)
    return np.asarray(chosen)


def _ends(when: Any) -> tuple[pd.Timestamp, pd.Timestamp]:
    """Return the first and the last moment of a period, a day or a moment."""
    import pandas as pd

    if isinstance(when, datetime) and not pd.isna(when):  # a pandas.Timestamp is one, too
        moment = pd.Timestamp(when)
        moment = moment if moment.tzinfo is None else moment.tz_convert("UTC").tz_localize(None)
        return moment, moment
    whole = is_whole(when)
    try:
        span: Any = when if isinstance(when, pd.Period) else None
        if isinstance(when, date) and not pd.isna(when):
            span = pd.Period(when, freq="D")
        elif (isinstance(when, str) or whole) and _READABLE.fullmatch(str(when).strip()):
            span = pd.Period(str(when).strip())
        if span is not None and not pd.isna(span):
            return span.start_time, span.end_time
    except (ValueError, TypeError, OverflowError):
        pass
    raise InputError(
        f'expected a period such as "2021", "2021-05", "2021Q2" or a date; got {when!r}'
    )


def rows_of_mask(result: TopicResult, where: Any) -> BoolArray:
    """Return a mask over rows, after making sure that it is one, shape (n_rows,).

    Parameters
    ----------
    result : TopicResult
    where : array_like of bool, or Series of bool
        One entry a row, in the order of the input; a Series is aligned by its index, which must
        be that of the input.

    Raises
    ------
    InputError
        If it is not boolean, has missing values, another length, or another index.
    """
    import pandas as pd

    index = result.corpus.index
    if isinstance(where, pd.Series):
        if not where.index.equals(index):
            if not (index.is_unique and where.index.is_unique and len(where) == len(index)
                    and where.index.isin(index).all()):  # fmt: skip
                raise InputError(
                    "expected a mask with the index of the input, "
                    f"{len(index):,} rows; got a Series of {len(where):,} rows with another index; "
                    "make it from the same frame, or give a plain array"
                )
            where = where.reindex(index)
        if where.isna().any():
            raise InputError(
                "expected a mask of true and false; got one with missing values; fill them first"
            )
        where = where.to_numpy()
    mask = np.asarray(where)
    if mask.dtype == object and all(isinstance(v, (bool, np.bool_)) for v in mask.ravel()):
        mask = mask.astype(bool)
    if mask.dtype != np.bool_ or mask.shape != (len(index),):
        raise InputError(
            f"expected a mask of true and false for each of the {len(index):,} rows; got shape "
            f"{mask.shape} of {mask.dtype}"
        )
    return mask


def selected_rows(
    result: TopicResult, *, period: Period = None, group: Any = None, where: Any = None
) -> BoolArray:
    """Return the rows with text that meet all conditions given, shape (n_rows,)."""
    chosen = result.documents.of_row >= 0
    if period is not None:
        chosen &= rows_of_period(result, period)
    if group is not None:
        chosen &= rows_of_group(result, group)
    if where is not None:
        chosen &= rows_of_mask(result, where)
    return chosen


def drawn(hashes: npt.NDArray[np.uint64], seed: int, places: Any = 0) -> npt.NDArray[np.uint64]:
    """Return a number for each document that is as good as random, and depends on its text alone.

    The smallest numbers are a sample that does not change with the order of the rows, nor, for the
    documents that stay, when others are added.

    Parameters
    ----------
    hashes : uint64 ndarray of shape (n_documents, 2)
        Content hashes.
    seed : int
        From 0 up.
    places : int or int ndarray of shape (n_documents,)
        To draw several times from one document.

    Returns
    -------
    uint64 ndarray of shape (n_documents,)

    Notes
    -----
    Each part goes through the finaliser of SplitMix64 (Steele, Lea and Flood, 2014, "Fast
    splittable pseudorandom number generators", figure 16).

    Raises
    ------
    InputError
        If the seed is no integer from 0 to 2**63 - 1.
    """
    if not is_whole(seed) or not 0 <= seed < 2**63:
        raise InputError(f"expected a seed that is an integer from 0 up; got {seed!r}")
    with np.errstate(over="ignore"):
        mixed = _mixed(hashes[:, 0] ^ _mixed(np.full(len(hashes), seed, dtype=np.uint64)))
        mixed = _mixed(mixed ^ hashes[:, 1])
        return _mixed(mixed ^ np.asarray(places, dtype=np.uint64))


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
