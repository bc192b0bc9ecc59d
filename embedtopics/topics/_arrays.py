"""Arrays in one compressed file that any Arrow library reads.

One row an array: its name, its type, its shape, and its bytes, the last axis the fastest. Counts
and word ids are small numbers in wide integers, which Zstandard packs to a third within a tenth of
a second; zlib would take longer than everything else in a save.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.table_files import storable, unique_names
from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus.results import Decision

LEVEL = 1
"""Of Zstandard; higher ones take twice the time to save a tenth."""


def write_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays of numbers."""
    import pyarrow as pa

    options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", LEVEL))
    schema = _schema()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema, options=options) as file:
        # A batch for each, so that no more than one is held twice.
        for name, array in arrays.items():
            plain = np.ascontiguousarray(array)
            if plain.dtype.kind not in "biuf":
                raise TypeError(f"{name} is an array of {plain.dtype}, not of numbers")
            ordered = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
            content = [
                pa.array([name]),
                pa.array([ordered.dtype.str]),
                pa.array([list(array.shape)], type=schema.field("shape").type),
                _bytes_of(ordered),
            ]
            file.write_batch(pa.record_batch(content, schema=schema))


def read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read what `write_arrays` wrote: the same types, shapes and bits."""
    import pyarrow as pa

    arrays: dict[str, npt.NDArray[Any]] = {}
    with pa.memory_map(str(path)) as source:
        file = pa.ipc.open_file(source)
        if file.schema != _schema():
            raise ValueError("its columns are not those of a file of arrays")
        for number in range(file.num_record_batches):
            batch = file.get_batch(number)
            batch.validate(full=True)  # else what it says of its own places is believed
            name, dtype, shape, content = batch.columns
            kind = np.dtype(dtype[0].as_py())
            if kind.kind not in "biuf":
                raise ValueError(f"it holds an array of {kind}, not of numbers")
            flat = np.frombuffer(content[0].as_buffer(), dtype=kind)
            # A copy, because compiled functions take no arrays that cannot be written to.
            array = flat.reshape(shape[0].as_py()).astype(kind.newbyteorder("="), copy=True)
            arrays[name[0].as_py()] = array
    return arrays


def _schema() -> Any:
    import pyarrow as pa

    return pa.schema([
        ("name", pa.string()), ("dtype", pa.string()), ("shape", pa.list_(pa.int64())),
        ("bytes", pa.large_binary()),
    ])  # fmt: skip


def _bytes_of(array: npt.NDArray[Any]) -> Any:
    """Return the bytes of an array as the one value of an Arrow column, without a copy."""
    import pyarrow as pa

    offsets = np.array([0, array.nbytes], dtype=np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(array)]
    return pa.Array.from_buffers(pa.large_binary(), 1, buffers)


# The rows of a corpus as a parquet file.

TEXT, ID, STATUS = "__text__", "__id__", "__status__"


def write_rows(corpus: Corpus, path: Path) -> None:
    """Write the rows; columns that parquet cannot hold are written as their text."""
    frame, _ = storable(corpus.metadata)
    frame.insert(0, TEXT, list(corpus.texts))
    frame.insert(1, ID, list(corpus.ids))
    frame.insert(2, STATUS, corpus.status)
    # A dictionary would have to hash all texts, to find that hardly any repeats.
    columns = [name for name in frame.columns if name not in (TEXT, ID)]
    frame.to_parquet(path, engine="pyarrow", compression="zstd", use_dictionary=columns)


def saved_name(corpus: Corpus, column: Any) -> str | None:
    """Return the name under which a column of the metadata is saved."""
    if column is None:
        return None
    names = list(corpus.metadata.columns)
    return unique_names(names)[names.index(column)] if column in names else str(column)


def read_rows(path: Path, about: dict[str, Any]) -> Corpus:
    from pyarrow import parquet

    table = parquet.read_table(path)
    # Straight to strings: a Series of them is several times as slow to go through.
    texts, ids = (tuple(table.column(name).to_pylist()) for name in (TEXT, ID))
    frame = table.drop_columns([TEXT, ID]).to_pandas()
    return Corpus.of_fields(
        texts=texts,
        ids=ids,
        status=frame.pop(STATUS).to_numpy(dtype=np.int8),
        metadata=frame,
        text_column=about["text_column"],
        time_column=about["time_column"],
        group_column=about["group_column"],
        source=about["source"],
        notes=tuple(Decision(**note) for note in about["notes"]),
    )
