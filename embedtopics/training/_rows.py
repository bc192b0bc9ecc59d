"""Rows of the tables of a training report: where they are made, checked and written.

A report holds its changes and its evidence as DataFrames. They are made of rows, and a saved report
has a record for each row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pandas as pd

Row = TypeVar("Row")


@dataclass(frozen=True)
class Evidence:
    """One figure of learning curves, with its interval over resampled noise."""

    name: str  # stable key, such as "gap" or "late_slope"
    value: float
    low: float
    high: float
    threshold: float  # what it was compared with; NaN if it was not
    says: str  # the finding in one sentence


@dataclass(frozen=True)
class Change:
    """A figure of an encoder before and after training; see `TrainingReport.before_after`."""

    task: str
    metric: str
    before: float
    after: float
    difference: float
    low: float
    high: float
    n: int
    verdict: str
    n_test_evaluations: int = 0
    note: str = ""


TABLES: dict[str, type[Any]] = {"before_after": Change, "evidence": Evidence}
"""The class of the rows of each table, by the field of the report or the diagnosis."""

_DTYPES = {"float": "float64", "int": "int64"}


def frame_of(rows: Iterable[Any], kind: type[Any]) -> pd.DataFrame:
    """Return rows of a kind as a table; without rows, it has the columns all the same."""
    import pandas as pd

    names = [field.name for field in fields(kind)]
    values = [[getattr(row, name) for name in names] for row in rows]
    dtypes = {field.name: _DTYPES.get(str(field.type), "object") for field in fields(kind)}
    return pd.DataFrame(values, columns=names, dtype=object).astype(dtypes)


def rows_of(frame: pd.DataFrame, kind: type[Row]) -> tuple[Row, ...]:
    """Return the rows of a table that `frame_of` made."""
    return tuple(kind(*row) for row in frame.itertuples(index=False, name=None))
