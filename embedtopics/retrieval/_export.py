"""Export of passages with vectors and metadata to one Parquet file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from embedtopics._utils.folders import replacing_file
from embedtopics.corpus._texts import distinct_names
from embedtopics.retrieval._reader import IndexVersion
from embedtopics.retrieval.storage._collection import Collection

DOCUMENTS_AT_ONCE = 10_000
_PASSAGE_COLUMNS = ("id", "passage", "start", "stop", "text", "vector")


def export_parquet(collection: Collection, version: IndexVersion, path: Path) -> int:
    """Write a row for each passage; return their number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {name: kind for name, kind in collection.columns().items() if kind != "missing"}
    names = dict(zip(kinds, distinct_names([*kinds], _PASSAGE_COLUMNS), strict=True))
    schema = _schema(version.n_dimensions, kinds, names)
    n = 0
    with replacing_file(path) as fresh, pq.ParquetWriter(fresh, schema) as writer:
        for columns in _batches(collection, version, kinds):
            arrays = [pa.array(v, field.type) for field, v in zip(schema, columns, strict=True)]
            table = pa.Table.from_arrays(arrays, schema=schema)
            writer.write_table(table, row_group_size=DOCUMENTS_AT_ONCE)
            n += len(table)
    return n


def _schema(width: int, kinds: Mapping[str, str], names: Mapping[str, str]) -> Any:
    import pyarrow as pa

    types = {
        "text": pa.string(), "integer": pa.int64(), "real": pa.float64(), "boolean": pa.bool_(),
        "date": pa.timestamp("us"), "list": pa.list_(pa.string()),
    }  # fmt: skip
    passage_types = (
        pa.string(), pa.int32(), pa.int64(), pa.int64(), pa.string(),
        pa.list_(pa.float32(), width),
    )  # fmt: skip
    fields = [
        pa.field(name, kind, nullable=False)
        for name, kind in zip(_PASSAGE_COLUMNS, passage_types, strict=True)
    ]
    fields += [pa.field(names[column], types[kind]) for column, kind in kinds.items()]
    return pa.schema(fields)


def _batches(
    collection: Collection, version: IndexVersion, kinds: Mapping[str, str]
) -> Iterator[list[tuple[Any, ...]]]:
    for view, dense in zip(version.segments, version.dense, strict=True):
        rows = np.flatnonzero(view.alive)
        starts = np.flatnonzero(np.diff(view.documents[rows], prepend=-1))
        edges = np.append(starts, len(rows))
        for begin in range(0, len(starts), DOCUMENTS_AT_ONCE):
            bounds = edges[begin : begin + DOCUMENTS_AT_ONCE + 1]
            documents = collection.documents(view.documents[rows[bounds[:-1]]].tolist())
            passages: list[tuple[Any, ...]] = []
            for document, (first, last) in zip(documents, pairwise(bounds.tolist()), strict=True):
                if document is None:  # removed in the meantime
                    continue
                document_rows = rows[first:last]
                spans = view.spans[document_rows].tolist()
                vectors = dense.vectors[document_rows]
                metadata = [document.metadata.get(column) for column in kinds]
                for number, ((start, stop), vector) in enumerate(zip(spans, vectors, strict=True)):
                    text = document.text[start:stop]
                    passages.append(
                        (str(document.id), number, start, stop, text, vector, *metadata)
                    )
            if passages:
                yield list(zip(*passages, strict=True))
