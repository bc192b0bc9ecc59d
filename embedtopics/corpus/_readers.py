"""Tables of documents: frames of any library, and lists of records."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, cast

import pandas as pd

from embedtopics.corpus._alignment import align_values
from embedtopics.corpus._numbers import integers_with_gaps
from embedtopics.errors import InputError
from embedtopics.results import Decision


@dataclass(frozen=True, eq=False)
class DocumentTable:
    """A table of documents and its source.

    `lines` holds the line of each row of a text file, `delimiter` what separates its cells.
    """

    frame: pd.DataFrame
    source: str
    notes: tuple[Decision, ...] = ()
    lines: Sequence[int] | None = None
    cells_only: bool = False
    untyped: bool = False
    ids: Sequence[str] | None = None
    delimiter: str = ""


def is_frame(data: object) -> bool:
    """Return whether data has named columns: a frame, a table, a dataset or a mapping."""
    if isinstance(data, Mapping):
        return True
    # The type, because the attribute of a lazy frame would start its computation.
    return hasattr(type(data), "columns") or hasattr(type(data), "column_names")


def is_records(data: object) -> bool:
    """Return whether data is a list of mappings, one for each row."""
    return isinstance(data, Sequence) and bool(len(data)) and isinstance(data[0], Mapping)


def as_table(data: Any) -> DocumentTable:
    """Read a frame of any kind, or a list of mappings."""
    source = type(data).__name__
    if is_records(data):
        for row, record in enumerate(data):
            if not isinstance(record, Mapping):
                remedy = "give mappings alone, or texts alone"
                raise InputError("data", "a list of mappings", record, remedy, row=row)
        return DocumentTable(records_frame(data), source, untyped=True)

    if isinstance(data, Mapping):
        return DocumentTable(_frame_of_columns(data), source, untyped=True)

    if isinstance(data, pd.DataFrame):
        frame = data
    elif is_frame(data) and hasattr(data, "to_pandas"):
        frame = exact_frame(data)
    else:
        raise InputError(
            "expected a pandas or polars frame, an Arrow table, a datasets.Dataset or a dict of "
            f"lists, got a {source}; give a list of strings as Corpus(texts)"
        )

    refuse_repeated(frame, source)
    return DocumentTable(frame, source)


def _frame_of_columns(data: Mapping[Any, Any]) -> pd.DataFrame:
    """Convert a mapping of columns to a frame of objects; Series are aligned by their index.

    A single value is a column of one row. Objects, because strings of pandas cannot hold lone
    surrogates.
    """
    indexed = [column for column in data.values() if isinstance(column, pd.Series)]
    columns: dict[Any, list[Any]] = {}
    for name, column in data.items():
        if isinstance(column, Mapping | Set):
            remedy = "give list(column.values()), or a frame"
            raise InputError(f"column {name!r}", "a list with a value for each row", column, remedy)
        is_single = isinstance(column, str | bytes) or not isinstance(column, Iterable)
        if is_single or getattr(column, "ndim", 1) == 0:
            columns[name] = [column]
        elif isinstance(column, pd.Series):
            columns[name] = align_values(column, indexed[0], f"column {name!r}").tolist()
        else:
            columns[name] = list(column)

    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        first, *others = lengths
        other = next(name for name in others if lengths[name] != lengths[first])
        found = f"{lengths[first]:,} values of {first!r} and {lengths[other]:,} of {other!r}"
        raise InputError("data", "columns of one length", found=found)
    return pd.DataFrame(columns, dtype=object)


def exact_frame(table: Any) -> pd.DataFrame:
    """Convert a table of another library; integers with missing values stay integers."""
    arrow = table.with_format("arrow")[:] if hasattr(table, "with_format") else table
    try:
        frame = arrow.to_pandas(integer_object_nulls=True)
    except TypeError:  # neither Arrow nor polars
        return cast("pd.DataFrame", table.to_pandas())
    for name in frame.columns[~frame.columns.duplicated(keep=False)]:
        if pd.api.types.is_object_dtype(frame[name].dtype):
            frame[name] = integers_with_gaps(frame[name])
    return cast("pd.DataFrame", frame)


def records_frame(records: Iterable[Mapping[Any, object]]) -> pd.DataFrame:
    """Convert mappings to columns of objects, in the order of their keys; None where missing."""
    frame = pd.DataFrame(list(records), dtype=object)
    return frame.where(frame.notna(), None)


def refuse_repeated(frame: pd.DataFrame, source: str) -> None:
    """Refuse repeated column names."""
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise InputError(
            f"{source}: expected distinct column names, got {repeated[0]!r} more than once; "
            "rename one of them"
        )
