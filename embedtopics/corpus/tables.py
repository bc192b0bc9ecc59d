"""What every input becomes before it is a corpus: a data frame and an account of its reading."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from embedtopics.errors import InputError
from embedtopics.results import Decision

__all__ = ["MISSING_MARKERS", "Table", "as_table", "is_frame", "name_row", "name_rows", "note"]

MISSING_MARKERS = frozenset(
    ("NA", "N/A", "#N/A", "<NA>", "NaN", "nan", "NaT", "NULL", "null", "None")
)
"""Cells of csv and tsv files that stand for "no value" in the text and time columns."""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows and columns as they were read, and where they came from.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row a document.
    source : str
        Name for messages.
    notes : tuple of Decision
        What was guessed or repaired while reading.
    lines : sequence of int, optional
        Line of the file on which each row begins, from 1.
    cells_only : bool
        The format knows nothing but strings (csv, tsv), so that a missing value is a marker.
    untyped : bool
        Whether the columns hold plain objects, so that their types are still to be found.
    id_column : str, optional
        Column of identifiers that the source itself gives, such as the names of files.
    """

    frame: pd.DataFrame
    source: str
    notes: tuple[Decision, ...] = ()
    lines: Sequence[int] | None = None
    cells_only: bool = False
    untyped: bool = False
    id_column: str | None = None

    def name_row(self, row: int) -> str:
        """Name the row at a position, from 0, as messages do."""
        return name_row(row, self.lines)


def note(name: str, value: object, message: str) -> Decision:
    """Return a decision of this room."""
    return Decision("corpus", name, value, message)


def name_row(row: int, lines: Sequence[int] | None = None) -> str:
    """Name the row at a position, from 0, as messages do: counted from 1, with its line.

    Examples
    --------
    >>> name_row(16)
    'row 17'
    >>> name_row(1, [2, 5])
    'row 2 (line 5)'
    """
    if lines is None or lines[row] == row + 1:
        return f"row {row + 1}"
    return f"row {row + 1} (line {lines[row]})"


def name_rows(rows: Sequence[int], lines: Sequence[int] | None = None) -> str:
    """Name several rows, the first three of them one by one.

    Examples
    --------
    >>> name_rows([0, 4, 5, 8, 9])
    'row 1, row 5, row 6 and 2 more'
    """
    names = [name_row(row, lines) for row in rows[:3]]
    if len(rows) > 3:
        return f"{', '.join(names)} and {len(rows) - 3} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def is_frame(data: object) -> bool:
    """Tell whether something has named columns: a frame, a table, a dataset or a mapping."""
    if isinstance(data, Mapping):
        return True
    # Asked of the type, because asking a lazy frame would set it to work.
    return hasattr(type(data), "columns") or hasattr(type(data), "column_names")


def as_table(data: object) -> Table:
    """Read a frame of any kind.

    Parameters
    ----------
    data : pandas.DataFrame, polars.DataFrame, pyarrow.Table, datasets.Dataset or mapping of lists
        Any other table that knows its columns and has ``to_pandas`` will do.

    Raises
    ------
    InputError
        It is none of these, or its columns cannot be told apart.
    """
    source = type(data).__name__
    _refuse_unread(data)
    untyped = False
    if isinstance(data, pd.DataFrame):
        frame = data
    elif isinstance(data, Mapping):
        frame, untyped = _from_mapping(data), True
    elif is_frame(data) and hasattr(data, "to_pandas"):
        frame = data.to_pandas()
    else:
        raise InputError(
            "expected a pandas or polars frame, an Arrow table, a datasets.Dataset or a dict of "
            f"lists, got a {source}; give a list of strings to Corpus.from_texts"
        )
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise InputError(
            f"{source}: expected distinct column names, got {repeated[0]!r} more than once; "
            "rename one of them"
        )
    return Table(frame, source, untyped=untyped)


def _refuse_unread(data: object) -> None:
    """Refuse what looks like a table and is only the promise, or a bundle, of one."""
    polars, datasets = sys.modules.get("polars"), sys.modules.get("datasets")
    if polars and isinstance(data, polars.LazyFrame):
        raise InputError("expected a polars DataFrame, got a LazyFrame; call .collect() first")
    if datasets and isinstance(data, datasets.DatasetDict):
        splits = ", ".join(repr(split) for split in data)
        raise InputError(
            f"expected one datasets.Dataset, got a DatasetDict; choose a split ({splits})"
        )
    if datasets and isinstance(data, datasets.IterableDataset | datasets.IterableDatasetDict):
        raise InputError(
            f"expected a datasets.Dataset, got a {type(data).__name__}, which is read as a stream; "
            "load it with streaming=False"
        )


def _from_mapping(data: Mapping[Any, Any]) -> pd.DataFrame:
    for name, column in data.items():
        if isinstance(column, str) or not hasattr(column, "__len__"):
            raise InputError(
                f"expected a dict of lists of one length, got a {type(column).__name__} under "
                f"{name!r}; give every column as a list"
            )
    lengths = {name: len(column) for name, column in data.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(
            f"expected a dict of lists of one length, got lengths {lengths}; "
            "give every column the same number of rows"
        )
    # Objects, because half of a surrogate pair cannot be held by pandas' own strings.
    return pd.DataFrame({k: pd.Series(list(v), dtype=object) for k, v in data.items()})
