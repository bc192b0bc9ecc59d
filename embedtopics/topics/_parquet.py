"""Frames made fit for parquet: any column, any index, any name can be written.

What parquet cannot hold is written as its text; what it can hold comes back as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["storable", "unique_names", "unstorable_columns"]


def storable(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame that parquet can hold, with string column names, each once.

    Parameters
    ----------
    frame : DataFrame
        Not changed.

    Returns
    -------
    DataFrame
        Columns and index levels that cannot be written are given as text; missing values stay
        missing.
    """
    import pandas as pd

    columns = [
        column if _can_be_written(column) else _as_text(column)
        for column in (frame.iloc[:, position] for position in range(frame.shape[1]))
    ]
    kept = pd.concat(columns, axis=1) if columns else frame.copy(deep=False)
    kept.columns = pd.Index(unique_names(frame.columns))
    kept.index = _storable_index(frame.index)
    return kept


def unstorable_columns(frame: pd.DataFrame) -> list[str]:
    """Return the names of the columns that `storable` turns to text."""
    names = unique_names(frame.columns)
    return [
        name for position, name in enumerate(names)
        if not _can_be_written(frame.iloc[:, position])
    ]  # fmt: skip


def unique_names(names: Any) -> list[str]:
    """Return names as strings that can be written, each once.

    Examples
    --------
    >>> unique_names(["a", 1, "1", "a"])
    ['a', '1', '1_2', 'a_2']
    """
    found: list[str] = []
    taken = {_writable(str(name)) for name in names}
    for name in names:
        plain = _writable(str(name))
        unique, number = plain, 2
        while unique in found or (unique != plain and unique in taken):
            unique, number = f"{plain}_{number}", number + 1
        found.append(unique)
    return found


def _can_be_written(column: pd.Series) -> bool:
    """Tell by writing it; nothing else knows all that the writer refuses."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufM":
        return True
    try:
        table = pa.Table.from_pandas(
            column.to_frame("column").reset_index(drop=True), preserve_index=False
        )
        pq.write_table(table, pa.BufferOutputStream())
    except (pa.ArrowException, UnicodeError, OverflowError, TypeError, ValueError):
        return False
    return True


def _as_text(column: pd.Series) -> pd.Series:
    import pandas as pd

    text = [
        None if pd.api.types.is_scalar(value) and pd.isna(value) else _writable(str(value))
        for value in column
    ]
    return pd.Series(text, index=column.index, name=column.name, dtype="string")


def _writable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _storable_index(index: pd.Index) -> pd.Index:
    import pandas as pd

    levels = [index.get_level_values(level) for level in range(index.nlevels)]
    if all(_can_be_written(level.to_series()) for level in levels):
        return index
    texts = [
        level if _can_be_written(level.to_series()) else pd.Index(_as_text(level.to_series()))
        for level in levels
    ]
    if index.nlevels == 1:
        return texts[0].rename(index.name)
    return pd.MultiIndex.from_arrays(texts, names=index.names)
