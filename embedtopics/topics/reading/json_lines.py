"""A table as lines of JSON, every number as it is."""

from __future__ import annotations

import json
import math
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.topics.reading.columns import plain_value

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["write_json_lines"]


def write_json_lines(path: Path, table: pd.DataFrame) -> None:
    """Write a table, a row a line.

    Parameters
    ----------
    path : Path
    table : DataFrame
        With a different name for each column; its index is left out. Missing values and numbers
        that JSON does not know (infinite ones) become null, dates ISO 8601, and what JSON cannot
        hold its text.
    """
    columns = [[_plain(value) for value in table[name].tolist()] for name in table.columns]
    names = list(table.columns)
    with path.open("w", encoding="utf-8", errors="replace", newline="\n") as stream:
        for values in zip(*columns, strict=True):
            line = dict(zip(names, values, strict=True))
            stream.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")


def _plain(value: Any) -> Any:
    """Return a value as JSON holds it."""
    import pandas as pd

    value = plain_value(value)
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return None
    if isinstance(value, date):
        return value.isoformat()
    return str(value)
