"""Tables as text files that a spreadsheet opens: whole cells, and nothing that it runs."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FORMULA_STARTS", "spreadsheet_safe", "write_csv"]

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a cell begins with that a spreadsheet may run; the last four are full-width signs."""


def spreadsheet_safe(value: Any) -> Any:
    """Keep a spreadsheet from running a text as a formula, by a leading apostrophe.

    Examples
    --------
    >>> spreadsheet_safe("=1+1")
    "'=1+1"
    """
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return "'" + value
    return value


def write_csv(
    target: Path | TextIO,
    table: pd.DataFrame,
    *,
    separator: str = ",",
    safe: bool = True,
    encoding: str = "utf-8",
) -> int:
    """Write a table without its index.

    Parameters
    ----------
    target : Path or text stream
        Lone surrogates become question marks in a file.
    table : DataFrame
        With a different name for each column.
    separator : str
    safe : bool
        Whether cells and column names that a spreadsheet would run get an apostrophe in front.
    encoding : str
        Of a file.

    Returns
    -------
    int
        Cells with an apostrophe that they did not have.
    """
    table, n_marked = _marked(table) if safe else (table, 0)
    # Only quotes keep a lone carriage return from ending the line.
    quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC if _has_returns(table) else csv.QUOTE_MINIMAL
    table.to_csv(
        target, sep=separator, index=False, quoting=quoting, lineterminator="\n",
        encoding=encoding, errors="replace",
    )  # fmt: skip
    return n_marked


def _marked(table: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return a table of which a spreadsheet runs no cell, and how many cells had to be marked."""
    import pandas as pd

    made, n_marked = table.copy(deep=False), 0
    for name, cells in _texts(table):
        safe = [spreadsheet_safe(cell) for cell in cells]
        n_changed = sum(a is not b for a, b in zip(cells, safe, strict=True))
        if n_changed:
            made[name] = pd.Series(safe, index=made.index, dtype=object)
            n_marked += n_changed
    made.columns = made.columns.map(spreadsheet_safe)
    return made, n_marked


def _has_returns(table: pd.DataFrame) -> bool:
    return any("\r" in str(name) for name in table.columns) or any(
        isinstance(cell, str) and "\r" in cell for _, cells in _texts(table) for cell in cells
    )


def _texts(table: pd.DataFrame) -> list[tuple[Any, list[Any]]]:
    """Return the cells of the columns that can hold texts, by their names."""
    from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype

    plain = (is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype)
    return [
        (name, table[name].astype(object).tolist())
        for name in table.columns
        if not any(test(table[name]) for test in plain)
    ]
