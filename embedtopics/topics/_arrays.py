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

__all__ = ["read_arrays", "write_arrays"]

LEVEL = 1
"""Of Zstandard; higher ones take twice the time to save a tenth."""


def write_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays of numbers.

    Parameters
    ----------
    path : Path
    arrays : mapping of str to ndarray
        Of any shape, of numbers or truth values.
    """
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
    """Read what `write_arrays` wrote: the same types, shapes and bits.

    Raises
    ------
    ValueError
        Where it is another kind of file.
    """
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
