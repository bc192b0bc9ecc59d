"""Parquet files, read in batches.

A file of a few kilobytes can hold a billion rows, because equal values are stored once. So columns
of strings keep their dictionaries until the length of their strings has been counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embedtopics.corpus._readers import DocumentTable, exact_frame, refuse_repeated
from embedtopics.corpus.readers._headers import check_width
from embedtopics.corpus.readers._opening import File, open_binary, seekable
from embedtopics.errors import InputError

ROWS_OF_BATCH = 4096

_BYTES_OF_CELL = 8
"""Bytes of any value in memory: a number, or a reference."""


def read_parquet(file: File, encoding: str, limit: int | None) -> DocumentTable:
    """Read a Parquet file, whose encoding is fixed."""
    import pyarrow as pa

    with open_binary(file) as stream:
        try:
            frame = exact_frame(_read_table(file, seekable(stream), limit))
        except pa.ArrowException as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"{file.name}: is no Parquet file ({reason}); write it again"
            ) from None
    refuse_repeated(frame, file.name)
    if not len(frame):
        raise InputError(f"{file.name}: expected rows, got an empty file (no rows)")
    return DocumentTable(frame, file.name)


def _read_table(file: File, source: Any, limit: int | None) -> Any:
    """Read the first rows, or all of them, as a table of Arrow."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.read_schema(source)
    check_width(file.name, len(schema))
    strings = [field.name for field in schema if _is_text(field.type)]
    source.seek(0)
    opened = pq.ParquetFile(source, read_dictionary=strings)

    batches = []
    n_rows = 0
    for batch in _batches(opened, limit):
        file.unpacked.add(file.name, _n_bytes(batch))
        columns = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(batch.columns, schema, strict=True)
        ]
        table = pa.Table.from_arrays(columns, schema=schema)
        table.validate(full=True)  # offsets of a damaged file could point anywhere
        batches.append(table)
        n_rows += len(table)
        if limit is not None and n_rows >= limit:
            break

    if not batches:
        return schema.empty_table()
    return pa.concat_tables(batches).slice(0, limit)


def _batches(opened: Any, limit: int | None) -> Iterator[Any]:
    n_rows = ROWS_OF_BATCH if limit is None else min(limit, ROWS_OF_BATCH)
    yield from opened.iter_batches(batch_size=n_rows)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return any(
        is_kind(kind)
        for is_kind in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary)
    )


def _n_bytes(batch: Any) -> int:
    """Return the bytes of a batch once each cell has its own string."""
    import pyarrow as pa
    import pyarrow.compute as pc

    n_bytes: int = _BYTES_OF_CELL * batch.num_rows * batch.num_columns
    for column in batch.columns:
        if pa.types.is_dictionary(column.type) and _is_text(column.type.value_type):
            lengths = pc.take(pc.binary_length(column.dictionary), column.indices)
            n_bytes += int(pc.sum(lengths).as_py() or 0)
        else:
            n_bytes += int(column.nbytes)
    return n_bytes
