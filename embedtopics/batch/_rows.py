"""Read the rows of a shard; collect bad rows with the reason."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.display import one_line
from embedtopics.batch._manifest import Shard, read_shard
from embedtopics.corpus._classes import spell_class
from embedtopics.corpus._texts import is_missing
from embedtopics.corpus.readers._delimited import sniff_delimiter
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int64Array

if TYPE_CHECKING:
    import pandas as pd

LONGEST_CONTENT = 1000
"""Characters of a bad row that the errors table shows."""

_STRAY = re.compile("[\udc80-\udcff]")
"""Surrogates that replace bytes that are not UTF-8."""


@dataclass(frozen=True)
class Columns:
    """Columns of the input: texts, and optionally ids, dates, groups and vectors."""

    text: str = "text"
    id: str | None = None
    time: str | None = None
    group: str | None = None
    vectors: str | None = None

    def wanted(self) -> list[str]:
        """Return the distinct names of the columns to read."""
        return list(dict.fromkeys(name for name in vars(self).values() if name is not None))


@dataclass(frozen=True, eq=False)
class ShardRows:
    """Rows of a shard, aligned; `numbers` (n_rows,) are their positions in the file.

    `vectors` is float32 (n_rows, n_dimensions). `bad` holds positions, reasons and contents.
    """

    numbers: Int64Array
    texts: list[str | None]
    ids: list[str | None]
    times: pd.Series | None
    groups: list[str] | None
    vectors: FloatArray | None
    bad: list[tuple[int, str, str]]

    def first(self, n: int) -> ShardRows:
        """Return the first rows."""
        columns: Any = [None if one is None else one[:n] for one in vars(self).values()]
        return ShardRows(*columns)


class _BadRow(Exception):
    """The reason why a row cannot be processed."""


def rows_of(shard: Shard, columns: Columns) -> ShardRows:
    """Read the rows of a shard."""
    import pandas as pd

    records: list[dict[str, Any]] = []
    numbers: list[int] = []
    bad, width = list[tuple[int, str, str]](), 0
    for number, row in enumerate(_records(shard, columns), shard.row):
        if row is None:
            continue
        try:
            checked = _checked(row, columns, width)
        except _BadRow as error:
            content = row.get(columns.text) if isinstance(row, dict) else row
            shown = str(content)[:LONGEST_CONTENT].encode("utf-8", "backslashreplace").decode()
            bad.append((number, str(error), shown))
            continue
        if columns.vectors:
            width = len(checked["vectors"])
        records.append(checked)
        numbers.append(number)
    names = ("text", "id", "group", "time", "vectors")
    texts, ids, groups, times, vectors = ([row[name] for row in records] for name in names)
    return ShardRows(
        np.array(numbers, dtype=np.int64),
        texts,
        ids,
        pd.Series(times, dtype="datetime64[us]") if columns.time else None,
        groups if columns.group else None,
        np.array(vectors, np.float32).reshape(len(records), width) if columns.vectors else None,
        bad,
    )


def _checked(row: Any, columns: Columns, width: int) -> dict[str, Any]:
    """Return the columns of a row, checked."""
    if isinstance(row, _BadRow):
        raise row
    if not isinstance(row, dict):
        raise _BadRow(f"expected an object with columns, got a {type(row).__name__}")
    if columns.text not in row:
        raise _BadRow(f"no column {columns.text!r}")

    text = row[columns.text]
    text = None if is_missing(text) else text
    if text is not None and not isinstance(text, str):
        raise _BadRow(f"the text must be a string, not a {type(text).__name__}")
    if text is not None and not text.isascii() and _STRAY.search(text):
        raise _BadRow("the text is not UTF-8")

    return {
        "text": text,
        "id": _as_text(row.get(columns.id)),
        "group": spell_class(row.get(columns.group)) or "",
        "time": _moment(row.get(columns.time)),
        "vectors": _vector(row.get(columns.vectors), width) if columns.vectors else None,
    }


def _as_text(value: Any) -> str | None:
    """Return a value in the spelling of `by_group`."""
    if is_missing(value):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() or None


def _moment(value: Any) -> Any:
    """Return an ISO 8601 date; other formats need the whole column to be unambiguous."""
    import pandas as pd

    if is_missing(value) or value == "":
        return pd.NaT
    try:
        moment = pd.Timestamp(pd.to_datetime(str(value), format="ISO8601"))
    except (ValueError, TypeError, OverflowError):
        raise _BadRow(f"{value!r} is not an ISO 8601 date") from None
    return moment.tz_localize(None)  # with the clock of its zone, as in a corpus


def _vector(value: Any, width: int) -> FloatArray:
    try:
        vector = np.asarray(value, dtype=np.float32)
    except (TypeError, ValueError):
        vector = np.empty(0, dtype=np.float32)
    if vector.ndim != 1 or not 0 < np.abs(vector).max(initial=0) < np.inf:
        raise _BadRow("the vector must be a list of finite numbers that are not all 0")
    if width and len(vector) != width:
        raise _BadRow(f"the vector has {len(vector)} dimensions, earlier ones have {width}")
    return vector


def _records(shard: Shard, columns: Columns) -> Iterator[Any]:
    """Yield each row as a dict, a _BadRow, or None for a blank line."""
    data = read_shard(shard)
    if shard.path.endswith(".parquet"):
        yield from _of_parquet(shard, columns)
    elif shard.path.endswith((".csv", ".tsv")):
        yield from _of_csv(shard, columns, data)
    else:
        for line in data.split(b"\n"):
            try:
                yield json.loads(line) if line.strip() else None
            except (ValueError, RecursionError) as error:  # includes bytes that are not UTF-8
                yield _BadRow(f"invalid JSON ({one_line(error)})")


def _of_csv(shard: Shard, columns: Columns, data: bytes) -> Iterator[Any]:
    with open(shard.path, "rb") as stream:
        head = stream.readline().decode("utf-8-sig", "surrogateescape")
    sign = "\t" if shard.path.endswith(".tsv") else sniff_delimiter(head) or ","
    names = next(csv.reader([head], delimiter=sign), [])
    _need(columns, names)
    text = io.StringIO(data.decode("utf-8", "surrogateescape"), newline="")
    for fields in csv.reader(text, delimiter=sign):
        if not fields:
            yield None
        elif len(fields) != len(names):
            yield _BadRow(f"{len(fields)} fields instead of {len(names)}")
        else:
            yield dict(zip(names, fields, strict=True))


def _of_parquet(shard: Shard, columns: Columns) -> Iterator[Any]:
    import pyarrow.parquet as pq

    with open(shard.path, "rb") as stream, pq.ParquetFile(stream) as file:
        names = columns.wanted()
        _need(columns, file.schema_arrow.names)
        table = file.read_row_group(shard.number, columns=names, use_threads=False)
    for batch in table.to_batches(max_chunksize=1024):
        # Vectors are arrays: Python floats take ten times the memory.
        values_by_name = [
            column.to_numpy(zero_copy_only=False) if name == columns.vectors else column.to_pylist()
            for name, column in zip(names, map(batch.column, names), strict=True)
        ]
        for values in zip(*values_by_name, strict=True):
            yield dict(zip(names, values, strict=True))


def _need(columns: Columns, names: list[str]) -> None:
    for name in columns.wanted():
        if name not in names:
            raise InputError(f"no column {name!r} among {', '.join(names)[:200]}")
