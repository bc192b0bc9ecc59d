"""Selections of rows: those of topics, of a condition on columns, or of a mask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics.clustering.results import NOISE
from embedtopics.errors import InputError
from embedtopics.protocols import BoolArray, Int64Array
from embedtopics.topics._relabel import checked_topic_id
from embedtopics.topics.results import TopicResult


def string_column(values: Sequence[str], index: pd.Index | None = None) -> pd.Series:
    """Return strings as a column of pandas' string type, also if empty."""
    return pd.Series(list(values), index=index, dtype=pd.Series([""]).dtype)


def rows_of_topics(result: TopicResult, topics: Any) -> BoolArray:
    """Return a mask of the rows with text in one of the topics, (n_rows,)."""
    ids = [t if t == NOISE else checked_topic_id(result, t) for t in np.atleast_1d(topics)]
    return np.isin(result.labels, ids) & (result.documents.of_row >= 0)


def rows_where(result: TopicResult, where: Any, parameter: str = "where") -> BoolArray:
    """Return a mask of the rows with text that meet a condition, (n_rows,)."""
    is_selected = result.documents.of_row >= 0
    if where is None:
        return is_selected
    if not isinstance(where, Mapping):
        return is_selected & _checked_mask(result, where, parameter)
    metadata: Any = result.corpus.metadata
    for column, values in where.items():
        if column not in metadata:
            there = f"the columns are {', '.join(map(repr, metadata.columns)) or 'none'}"
            raise InputError(parameter, "a mapping from columns of the input", column, there)
        is_selected &= _rows_with(metadata[column], values, parameter)
    return is_selected


def _rows_with(column: pd.Series, values: Any, parameter: str) -> BoolArray:
    """Return a mask of the rows with one of the values; each value must occur."""
    is_selected = np.zeros(len(column), dtype=bool)
    for value in values if isinstance(values, (list, tuple, set, frozenset)) else [values]:
        is_equal = (column == value).fillna(False).to_numpy(dtype=bool)
        if not is_equal.any():
            frequent = column.value_counts().index[:12].tolist()
            remedy = f"frequent values are {', '.join(map(repr, frequent)) or 'none'}"
            raise InputError(parameter, f"values of column {column.name!r}", value, remedy)
        is_selected |= is_equal
    return is_selected


def _checked_mask(result: TopicResult, where: Any, parameter: str) -> BoolArray:
    """Check a mask over rows, and align it to the index, (n_rows,)."""
    index = result.corpus.index
    if isinstance(where, pd.Series):
        where = where if where.index.equals(index) else where.reindex(index)
        where = where.to_numpy(dtype=bool) if where.notna().all() else [None]
    mask = np.asarray(where)
    if mask.dtype != np.bool_ or mask.shape != (len(index),):
        expected = f"a mask with True or False for each of the {len(index):,} rows"
        raise InputError(parameter, expected, found=f"shape {mask.shape} of {mask.dtype}")
    return mask


def document_weights(result: TopicResult, rows: BoolArray) -> tuple[Int64Array, Int64Array]:
    """Return the number of selected rows of each document, and the first such row or -1."""
    row_numbers = np.flatnonzero(rows)
    of_row, n_documents = result.documents.of_row[row_numbers], len(result.documents)
    first_rows = np.full(n_documents, -1, dtype=np.int64)
    first_rows[of_row[::-1]] = row_numbers[::-1]
    return np.bincount(of_row, minlength=n_documents).astype(np.int64), first_rows


def random_keys(
    hashes: npt.NDArray[np.uint64], seed: int, places: Any = 0
) -> npt.NDArray[np.uint64]:
    """Return a pseudorandom number for each document, which depends on its text only."""
    with np.errstate(over="ignore"):
        mixed = _mixed(hashes[:, 0] ^ _mixed(np.full(len(hashes), seed, dtype=np.uint64)))
        mixed = _mixed(mixed ^ hashes[:, 1])
        return _mixed(mixed ^ np.asarray(places, dtype=np.uint64))


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Mix the bits of numbers: SplitMix64 (Steele, Lea and Flood 2014)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
