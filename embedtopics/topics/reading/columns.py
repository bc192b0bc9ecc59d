"""Columns of the tables, of the same type whether they have entries or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["string_column"]


def string_column(values: Sequence[str], index: pd.Index | None = None) -> pd.Series:
    """Return strings as a column of the type that pandas gives to strings, even if there are none.

    Parameters
    ----------
    values : sequence of str
    index : pandas.Index, optional
    """
    import pandas as pd

    return pd.Series(list(values), index=index, dtype=pd.Series([""]).dtype)
