"""Values for the rows of a corpus, in the order of the rows.

A Series or a frame of pandas names its rows by its index, so that its order says nothing: it is
aligned by its index with rows that came from pandas as well. Lists and arrays go by position, and
so does a Series that belongs to a list of texts, whose rows have no names. One case is ambiguous:
an index that holds 0, 1, 2 ... in another order may name the positions of the list, or the rows of
a table that was shuffled before the texts were taken from it. It is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from embedtopics.corpus._numbers import infer_type
from embedtopics.errors import InputError

VALUE_OF_ROW = "a value for each row"

_PANDAS_SOURCES = ("DataFrame", "Series")
"""Sources of a corpus whose default index, 0, 1, 2 ..., is an index of the caller, too."""


def align_values(values: Any, rows: Any, parameter: str, expected: str = VALUE_OF_ROW) -> Any:
    """Return values in the order of the rows: a Series or a frame as such, others as they are.

    Parameters
    ----------
    values : Series, frame or iterable
        One value for each row. An iterable without a length becomes a list.
    rows : Corpus, Series, frame or sequence
        The rows. A sequence other than those of pandas has no index.
    parameter : str
        Name of the argument that holds the values, for errors.
    expected : str
        What the argument must be, for the error about another number of values.

    Raises
    ------
    InputError
        If there are more or fewer values than rows, or the index of a Series or frame names other
        rows, a row twice, or the positions of a list in another order.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(parameter, expected, values)
    if not hasattr(values, "__len__"):
        values = list(values)
    is_indexed = isinstance(values, pd.Series | pd.DataFrame)
    index, is_named = _labels_of(rows)

    if len(values) != len(index):
        remedy = ""
        if is_indexed and is_named and index.is_unique and index.isin(values.index).all():
            remedy = "select the rows of the texts by its index, with .loc"
        found = f"{len(values):,} for {len(index):,} rows"
        raise InputError(parameter, expected, remedy=remedy, found=found)
    if not is_indexed or values.index.equals(index):
        return values
    return _by_index(values, index, parameter, is_named=is_named)


def as_series(values: Any, rows: Any, parameter: str, expected: str = VALUE_OF_ROW) -> pd.Series:
    """Return values in the order of the rows as a Series; see `align_values`."""
    if isinstance(values, pd.Series):
        return pd.Series(align_values(values, rows, parameter, expected))
    if getattr(values, "ndim", 1) != 1:
        raise InputError(parameter, expected, found=f"an array of shape {values.shape}")
    cells: Iterable[Any] = align_values(values, rows, parameter, expected)
    if isinstance(cells, np.ndarray | pd.api.extensions.ExtensionArray | pd.Index):
        return pd.Series(cells)  # of the same type
    return infer_type(pd.Series(list(cells), dtype=object))


def align_frame(values: Any, rows: Any, parameter: str) -> Any:
    """Return a frame, such as one of vectors, in the order of the rows; others as they are."""
    is_frame = isinstance(values, pd.DataFrame)
    return align_values(values, rows, parameter) if is_frame else values


def _labels_of(rows: Any) -> tuple[pd.Index, bool]:
    """Return the index of rows, and whether their caller gave it."""
    index = getattr(rows, "index", None)
    if not isinstance(index, pd.Index):
        return pd.RangeIndex(len(rows)), False
    if isinstance(rows, pd.Series | pd.DataFrame):
        return index, True
    is_default = index.equals(pd.RangeIndex(len(index)))
    return index, not is_default or rows.source in _PANDAS_SOURCES


def _by_index(
    values: pd.Series | pd.DataFrame, index: pd.Index, parameter: str, *, is_named: bool
) -> pd.Series | pd.DataFrame:
    """Order the values of another index by the index of the rows, or refuse them."""
    is_unique = index.is_unique and values.index.is_unique
    positions = np.full(len(index), -1)
    if is_unique:
        positions = values.index.get_indexer(index)
    names_same_rows = bool((positions >= 0).all())

    if not is_named and not names_same_rows:
        return values
    if is_named and names_same_rows:
        return values.iloc[positions]

    if not is_named:
        found = "the numbers of the rows in another order, and texts without an index"
        remedy = f"pass {parameter}.to_numpy() to go by position, or {parameter}.sort_index()"
    elif is_unique:
        found = f"no value for the row {index[int(np.argmax(positions < 0))]!r}"
        remedy = f"pass {parameter}.to_numpy() to go by position"
    else:
        found = "labels that several rows have"
        remedy = f"pass {parameter}.to_numpy() to go by position"
    raise InputError(
        parameter, "indexed by the rows of the texts, each once", remedy=remedy, found=found
    )
