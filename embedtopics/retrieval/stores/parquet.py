"""Passages with their vectors and metadata in one Parquet file, which any tool can read."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count
from embedtopics._files import replacing_file
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray
from embedtopics.results import Decision, Exported
from embedtopics.retrieval.filters.checking import check_columns
from embedtopics.retrieval.stores.checking import (
    checked_payload,
    checked_vectors,
    free_names,
    id_kind,
    plain_id,
    renamed,
)

__all__ = ["PARQUET_FORMAT", "Exportable", "export_parquet"]

PARQUET_FORMAT = 1

Exportable: TypeAlias = tuple[
    Hashable, str, Mapping[str, Any], npt.NDArray[np.integer[Any]], npt.NDArray[np.floating[Any]]
]
"""Id, text, metadata, spans (n_passages, 2) and vectors (n_passages, n_dimensions)."""

_OWN = ("id", "passage", "start", "stop", "text", "vector")
_LARGEST_GROUP = 1 << 20


def export_parquet(
    documents: Iterable[Exportable],
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    fingerprint: str = "",
    settings: Mapping[str, Any] | None = None,
    id_type: str | None = None,
    rows_per_group: int = 10_000,
) -> Exported:
    """Write one row for each passage, so that other tools can search or study the vectors.

    Documents are taken one at a time, and written in groups of rows: memory holds one group. The
    file takes the place of one that is there when it is whole.

    Parameters
    ----------
    documents : iterable of (id, text, metadata, spans, vectors)
        Spans are characters of the text, int of shape (n_passages, 2); vectors float of shape
        (n_passages, n_dimensions).
    path : str or Path
    columns : mapping of str to {"text", "integer", "real", "boolean", "date"}, optional
        Metadata to write.
    fingerprint : str
        Of the encoder that made the vectors.
    settings : mapping, optional
        What else a reader should know; as JSON in the metadata of the file.
    id_type : {"text", "integer", "real"}, optional
        That of the first document by default; with "text", ids of any type are written as texts.
    rows_per_group : int

    Returns
    -------
    Exported
        Its notes tell of documents without a passage, and of columns that were renamed.

    Raises
    ------
    InputError
        Without any passage, where a document does not fit those before, or the file cannot be
        written.

    Notes
    -----
    Columns: id; passage, its number in the document from 0; start and stop; text, that of the
    passage; vector, a list of float32 of fixed size; then the metadata, dates as timestamps in
    microseconds, a column with one of these names with an underscore behind. The key
    "embedtopics" of the file's metadata holds JSON: format, fingerprint, n_dimensions, columns
    and settings.
    """
    import pyarrow.parquet as pq

    kinds = dict(columns or {})
    check_columns(kinds)
    if checked_count(rows_per_group, "rows_per_group") > _LARGEST_GROUP:
        raise InputError(f"rows_per_group must be at most {_LARGEST_GROUP:,}")
    if id_type not in (None, "text", "integer", "real"):
        raise InputError(f"id_type must be text, integer or real; got {id_type!r}")
    rows = _Rows(kinds, id_type)
    flat = rows.of(documents)
    first = next(flat, None)
    if first is None:
        raise InputError("expected passages to write; none of the documents has any")
    schema = _schema(rows, fingerprint, settings or {})
    with replacing_file(path) as fresh, pq.ParquetWriter(fresh, schema) as writer:
        group = [first]
        for row in flat:
            if len(group) == rows_per_group:
                writer.write_table(_table(group, schema))
                group = []
            group.append(row)
        writer.write_table(_table(group, schema))
    return Exported((Path(path),), rows.notes())


class _Rows:
    """Cut documents into rows, and keep what holds for all of them."""

    def __init__(self, kinds: Mapping[str, str], id_type: str | None) -> None:
        self.kinds = kinds
        self.names = free_names(kinds, _OWN)
        self.id_type = id_type
        self.takes_any_id = id_type == "text"
        self.n_dimensions = 0
        self.n_empty = 0

    def of(self, documents: Iterable[Exportable]) -> Iterator[tuple[Any, ...]]:
        """Yield id, passage, start, stop, text, vector and metadata of each passage."""
        for given, text, metadata, spans, vectors in documents:
            name = self._id(given)
            kept = checked_payload(metadata, self.kinds, name, finite=False)
            kept = _with_dates(kept, self.kinds)
            places, rows = self._passages(name, text, spans, vectors)
            self.n_empty += not len(places)
            values = tuple(kept.get(column) for column in self.kinds)
            for number, ((start, stop), row) in enumerate(zip(places, rows, strict=True)):
                yield (name, number, start, stop, text[start:stop], row, *values)

    def _id(self, given: Hashable) -> Hashable:
        name = plain_id(given)
        if self.takes_any_id:
            return str(name)
        self.id_type = self.id_type or id_kind(name)
        if id_kind(name) != self.id_type:
            raise InputError(
                f"document {name!r}: expected an id that is {self.id_type}, as those before; write "
                'all as texts with id_type="text"'
            )
        return name

    def _passages(
        self, name: Hashable, text: str, spans: Any, vectors: Any
    ) -> tuple[list[list[int]], FloatArray]:
        places, array = np.asarray(spans), np.asarray(vectors)
        if not places.size:
            if array.size:
                raise InputError(
                    f"document {name!r}: expected no vectors, as it has no spans; got shape "
                    f"{array.shape}"
                )
            return [], np.empty((0, max(1, self.n_dimensions)), dtype=np.float32)
        is_pairs = places.ndim == 2 and places.shape[1] == 2 and places.dtype.kind in "iu"
        if not is_pairs or (places[:, 0] < 0).any() or (places[:, 0] > places[:, 1]).any():
            raise InputError(
                f"document {name!r}: expected spans as pairs of a first character and the one "
                f"behind the last; got shape {places.shape} of {places.dtype}"
            )
        if int(places.max()) > len(text):
            raise InputError(
                f"document {name!r}: a span ends at {int(places.max())}, behind its "
                f"{len(text)} characters"
            )
        self.n_dimensions = self.n_dimensions or (array.shape[1] if array.ndim == 2 else 1)
        try:
            rows = checked_vectors(array, self.n_dimensions, len(places))
        except InputError as error:
            raise InputError(f"document {name!r}: {error}") from None
        return places.tolist(), rows

    def notes(self) -> tuple[Decision, ...]:
        """Say what was renamed or has no row."""
        made = list(renamed(self.names))
        if self.n_empty:
            message = f"{self.n_empty} documents without a passage have no row."
            made.append(Decision("retrieval", "documents_without_passages", self.n_empty, message))
        return tuple(made)


def _schema(rows: _Rows, fingerprint: str, settings: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    types = {
        "text": pa.string(), "integer": pa.int64(), "real": pa.float64(), "boolean": pa.bool_(),
        "date": pa.timestamp("us"),
    }  # fmt: skip
    about = {
        "format": PARQUET_FORMAT, "fingerprint": fingerprint, "n_dimensions": rows.n_dimensions,
        "columns": dict(zip(rows.names.values(), rows.kinds.values(), strict=True)),
        "settings": dict(settings),
    }  # fmt: skip
    try:
        written = json.dumps(about, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"expected settings that JSON can hold; {error}") from None
    own = {
        "id": types[str(rows.id_type)], "passage": pa.int32(), "start": pa.int64(),
        "stop": pa.int64(), "text": pa.string(),
        "vector": pa.list_(pa.float32(), rows.n_dimensions),
    }  # fmt: skip
    fields = [pa.field(name, kind, nullable=False) for name, kind in own.items()]
    for name, kind in zip(rows.names.values(), rows.kinds.values(), strict=True):
        fields.append(pa.field(name, types[kind]))
    return pa.schema(fields, metadata={"embedtopics": written})


def _table(group: list[tuple[Any, ...]], schema: Any) -> Any:
    import pyarrow as pa

    arrays = []
    for field, values in zip(schema, zip(*group, strict=True), strict=True):
        if field.name == "vector":
            flat = pa.array(np.concatenate(values), type=pa.float32())
            arrays.append(pa.FixedSizeListArray.from_arrays(flat, field.type.list_size))
        else:
            try:
                arrays.append(pa.array(values, type=field.type))
            except (pa.ArrowException, UnicodeError, OverflowError) as error:
                reason = str(error).splitlines()[0]
                raise InputError(
                    f"column {field.name!r} cannot be written as {field.type} ({reason}); correct "
                    "the documents"
                ) from None
    return pa.Table.from_arrays(arrays, schema=schema)


def _with_dates(payload: dict[str, Any], kinds: Mapping[str, str]) -> dict[str, Any]:
    return {
        column: datetime.fromisoformat(value) if kinds[column] == "date" else value
        for column, value in payload.items()
    }
