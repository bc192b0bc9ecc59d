"""The rows of a table that pass a filter: an expression, a mapping of columns to values, or a mask.

Expressions and mappings are answered by SQLite, from a table in memory with the columns that the
filter names, so that a filter means the same for a table as for a search index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.corpus._alignment import as_series
from embedtopics.corpus.filters._expressions import Filter, parse_filter
from embedtopics.corpus.filters._mappings import read_mapping
from embedtopics.corpus.filters._values import TypedColumn, compared_form, read_column
from embedtopics.errors import InputError
from embedtopics.protocols import BoolArray

if TYPE_CHECKING:
    import pandas as pd


def passing_rows(
    where: Any, frame: pd.DataFrame, rows: Any = None, parameter: str = "where"
) -> BoolArray:
    """Return a mask of the rows of a table that pass a filter, (n_rows,).

    Parameters
    ----------
    where : str, mapping, or array_like or Series of bool, optional
        A filter such as ``year >= 2020 and source == 'Le Monde'``, a mapping of columns to the
        values that pass, such as ``{"year": [2019, 2020]}``, or a value for each row. A Series is
        aligned by its index. None and the empty filter let every row pass.
    frame : DataFrame
        The columns, in the order of the rows.
    rows : Corpus, Series, frame or sequence, optional
        The rows whose index a Series has; by default `frame`.
    parameter : str
        Name of the argument that holds the filter, for errors.

    Raises
    ------
    InputError
        If the filter cannot be read, names no column, compares a column with a value of another
        kind, or is no mask of the rows.
    """
    if where is None:
        return np.ones(len(frame), dtype=bool)
    if isinstance(where, str | Mapping):
        return _rows_of_filter(where, frame, parameter)
    return _rows_of_mask(where, frame if rows is None else rows, parameter)


def read_filter(
    where: str | Mapping[Any, Any],
    columns: Mapping[str, str],
    column_sql: Callable[[str], str] = str,
    parameter: str = "where",
) -> Filter | None:
    """Read an expression or a mapping; None if every row passes."""
    if isinstance(where, Mapping):
        return read_mapping(where, columns, column_sql, parameter)
    if not where.strip():
        return None
    return parse_filter(where, columns, column_sql, parameter)


def _rows_of_filter(
    where: str | Mapping[Any, Any], frame: pd.DataFrame, parameter: str
) -> BoolArray:
    columns = _FrameColumns(frame)
    condition = read_filter(where, columns, columns.sql, parameter)
    if condition is None:
        return np.ones(len(frame), dtype=bool)
    return columns.answer(*condition.sql)


def _rows_of_mask(where: Any, rows: Any, parameter: str) -> BoolArray:
    expected = f"a filter, a mapping, or True or False for each of the {len(rows):,} rows"
    mask = as_series(where, rows, parameter, expected)
    if mask.dtype != bool:
        # A Series of objects, or of a type with missing values, may hold nothing but booleans.
        is_boolean = mask.map(lambda value: isinstance(value, bool | np.bool_)).astype(bool)
        if not is_boolean.all():
            raise InputError(
                parameter, expected, found=f"values such as {mask[~is_boolean].iloc[0]!r}"
            )
    return mask.to_numpy(dtype=bool)


class _FrameColumns(Mapping[str, str]):
    """Kind of each column of a table, which is read when a filter names it."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame
        self._positions = {
            name: position for position, name in enumerate(frame.columns) if isinstance(name, str)
        }
        self._read: dict[str, TypedColumn] = {}

    def __getitem__(self, name: str) -> str:
        position = self._positions[name]
        if name not in self._read:
            self._read[name] = read_column(name, self._frame.iloc[:, position])
        return self._read[name].kind

    def __contains__(self, name: object) -> bool:
        return name in self._positions

    def __iter__(self) -> Iterator[str]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)

    def sql(self, name: str) -> str:
        """Return the name of a column in SQL, which holds nothing that the caller wrote."""
        return f"c{self._positions[name]}"

    def answer(self, condition: str, parameters: list[str | int | float]) -> BoolArray:
        """Return the rows that meet a condition of SQL on the columns that were read."""
        import sqlite3
        from contextlib import closing

        names = [self.sql(name) for name in self._read]
        values = [_compared_values(column) for column in self._read.values()]
        with closing(sqlite3.connect(":memory:")) as database:
            database.execute(f"CREATE TABLE rows ({', '.join(names)})")
            markers = ", ".join("?" * len(names))
            database.executemany(f"INSERT INTO rows VALUES ({markers})", zip(*values, strict=True))
            answers = database.execute(f"SELECT {condition} FROM rows ORDER BY rowid", parameters)
            return np.fromiter((bool(answer) for (answer,) in answers), bool, len(self._frame))


def _compared_values(column: TypedColumn) -> list[Any]:
    """Return the values of a column as filters compare them."""
    if column.kind not in ("text", "list"):
        return column.values
    return [None if value is None else compared_form(value) for value in column.values]
