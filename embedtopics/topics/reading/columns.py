"""Columns of the tables, of the same type whether they have entries or not, and their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["plain_value", "string_column"]


def string_column(values: Sequence[str], index: pd.Index | None = None) -> pd.Series:
    """Return strings as a column of the type that pandas gives to strings, even if there are none.

    Parameters
    ----------
    values : sequence of str
    index : pandas.Index, optional
    """
    import pandas as pd

    return pd.Series(list(values), index=index, dtype=pd.Series([""]).dtype)


def plain_value(value: Any) -> Any:
    """Return a value of NumPy's as one of Python's or pandas'; others as they are.

    Of a moment in nanoseconds and of an extended float NumPy itself makes an integer and nothing.

    Examples
    --------
    >>> plain_value(np.float32(0.5)), plain_value(np.datetime64("2020-01-01", "ns"))
    (0.5, Timestamp('2020-01-01 00:00:00'))
    """
    import pandas as pd

    if isinstance(value, np.datetime64):
        return pd.Timestamp(value)
    if isinstance(value, np.timedelta64):
        return pd.Timedelta(value)
    if isinstance(value, np.longdouble):
        return float(value)
    return value.item() if isinstance(value, np.generic) else value
