"""Strings in Arrow columns, which are decoded where they are read and may lie in a mapped file."""

from __future__ import annotations

import mmap
import operator
import shutil
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics.corpus._hashing import normalize_text
from embedtopics.protocols import BoolArray, Int64Array

_BLOCK = 8192
"""Strings that are decoded, or written, at a time."""

MOST_IN_MEMORY = 1 << 26
"""Bytes of a table above which it goes to a mapped file."""

_FREE_ON_DISK = 1 << 34
"""Bytes that must be free where temporary files lie."""

_Part: TypeAlias = tuple[npt.NDArray[Any], memoryview]
"""Where the strings of an Arrow array begin and end, (n_strings + 1,), and their bytes."""


class ArrowTexts(Sequence[str]):
    """A sequence of strings that stay in the buffers of Arrow, equal to a tuple of the same.

    Taking rows copies no string. Those without a value read as "", and `is_missing` (n_strings,)
    of a whole column says which they are.
    """

    is_missing: BoolArray | None = None

    def __init__(self, column: Any) -> None:
        chunks = [one for one in getattr(column, "chunks", [column]) if len(one)]
        self._parts = [_part(chunk) for chunk in chunks]
        self._starts: list[int] = np.cumsum([0, *map(len, chunks)]).tolist()
        self._rows: Int64Array | None = None
        self._is_normal: BoolArray | None = None
        if column.null_count:
            self.is_missing = np.concatenate([_is_null(chunk) for chunk in chunks])

    @classmethod
    def of(cls, strings: Iterable[str]) -> ArrowTexts:
        """Put strings into Arrow."""
        return cls(_column_of(strings))

    def __len__(self) -> int:
        return self._starts[-1] if self._rows is None else len(self._rows)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> ArrowTexts: ...
    def __getitem__(self, place: int | slice) -> str | ArrowTexts:
        if isinstance(place, slice):
            return self.take(np.arange(*place.indices(len(self))))
        number = range(len(self))[operator.index(place)]
        row = number if self._rows is None else int(self._rows[number])
        part = bisect_right(self._starts, row) - 1
        (offsets, data), row = self._parts[part], row - self._starts[part]
        text = str(data[offsets[row] : offsets[row + 1]], "utf-8")
        is_ready = self._is_normal is None or self._is_normal[number]
        return text if is_ready else normalize_text(text)

    def __iter__(self) -> Iterator[str]:
        if self._rows is not None:
            yield from map(self.__getitem__, range(len(self)))
            return
        for offsets, data in self._parts:
            for begin in range(0, len(offsets) - 1, _BLOCK):
                bounds = offsets[begin : begin + _BLOCK + 1].tolist()
                for start, stop in pairwise(bounds):
                    yield str(data[start:stop], "utf-8")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArrowTexts | tuple | list):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ArrowTexts({len(self):,} strings)"

    def __reduce__(self) -> tuple[Any, ...]:
        return ArrowTexts, (_column_of(self),)

    def take(self, rows: npt.ArrayLike, is_normal: BoolArray | None = None) -> ArrowTexts:
        """Return the strings of some rows, (n_taken,), normalised unless they are `is_normal`."""
        made = ArrowTexts.__new__(ArrowTexts)
        made._parts, made._starts = self._parts, self._starts
        chosen = np.asarray(rows, dtype=np.int64)
        made._rows = chosen if self._rows is None else self._rows[chosen]
        made._is_normal = is_normal if self._is_normal is None else self._is_normal[chosen]
        return made

    def _above(self, lower: ArrowTexts) -> ArrowTexts:
        n_upper, whole = self._starts[-1], self.take(())
        whole._parts = self._parts + lower._parts
        whole._starts = self._starts + [n_upper + start for start in lower._starts[1:]]
        whole._rows = np.concatenate([self._numbers(), lower._numbers() + n_upper])
        return whole

    def _numbers(self) -> Int64Array:
        return np.arange(len(self)) if self._rows is None else self._rows


def _part(chunk: Any) -> _Part:
    import pyarrow as pa

    kind = np.int64 if pa.types.is_large_string(chunk.type) else np.int32
    _, places, data = chunk.buffers()
    offsets = np.frombuffer(places, kind)[chunk.offset : chunk.offset + len(chunk) + 1]
    if chunk.null_count and np.diff(offsets)[_is_null(chunk)].any():  # as hardly anybody writes it
        return _part(chunk.fill_null(""))
    return offsets, memoryview(b"" if data is None else data)


def _is_null(chunk: Any) -> BoolArray:
    return np.asarray(chunk.is_null().to_numpy(zero_copy_only=False))


def _column_of(strings: Iterable[str]) -> Any:
    import pyarrow as pa

    blocks = [pa.array(block, pa.large_string()) for block in blocks_of(strings)]
    return pa.chunked_array(blocks, pa.large_string())


def blocks_of(strings: Iterable[str]) -> Iterator[list[str]]:
    """Yield strings as lists of a bounded length."""
    rest = iter(strings)
    while block := list(islice(rest, _BLOCK)):
        yield block


def held_in_arrow(values: Any) -> ArrowTexts | None:
    """Return a column as it lies in the buffers of Arrow, or None where it does not, or no text."""
    import pyarrow as pa

    if isinstance(values, pd.Series):
        if not isinstance(values.array, pd.arrays.ArrowExtensionArray | pd.arrays.ArrowStringArray):
            return None
        values = values.array.__arrow_array__()
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        return None
    is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    return ArrowTexts(values) if is_text else None


def as_column(strings: Sequence[str]) -> Any:
    """Return strings as a frame takes them; those in Arrow never as a list of all."""
    return _column_of(strings).to_pandas().array if isinstance(strings, ArrowTexts) else [*strings]


def rows_of(strings: Sequence[str], rows: npt.NDArray[np.integer[Any]]) -> Sequence[str]:
    """Return the strings of some rows, (n_taken,), held as they are."""
    if isinstance(strings, ArrowTexts):
        return strings.take(rows)
    return tuple(strings[row] for row in rows.tolist())


def below(upper: Sequence[str], lower: Sequence[str]) -> Sequence[str]:
    """Return strings below others, in Arrow where some of them are."""
    if not isinstance(upper, ArrowTexts) and not isinstance(lower, ArrowTexts):
        return (*upper, *lower)
    both = [one if isinstance(one, ArrowTexts) else ArrowTexts.of(one) for one in (upper, lower)]
    return both[0]._above(both[1])


def mapped_table(batches: Iterable[Any], schema: Any) -> Any:
    """Return a table of record batches; a large one goes to a mapped file without a name.

    What is mapped need not stay in memory, and is gone with the process.
    """
    import pyarrow as pa

    held: list[Any] = []
    rest, before = iter(batches), pa.total_allocated_bytes()
    for batch in rest:
        batch.validate(full=True)  # else what it says of its own places is believed
        held.append(batch)
        # What lies in a mapped file already is allocated nowhere.
        if pa.total_allocated_bytes() - before > MOST_IN_MEMORY and _has_space():
            break
    else:
        return pa.Table.from_batches(held, schema=schema)
    with tempfile.TemporaryFile() as file:
        with pa.ipc.new_stream(file, schema) as writer:
            while held:
                writer.write_batch(held.pop(0))
            for batch in rest:
                batch.validate(full=True)
                writer.write_batch(batch)
        file.flush()
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return pa.ipc.open_stream(pa.py_buffer(mapped)).read_all()


def _has_space() -> bool:
    return shutil.disk_usage(tempfile.gettempdir()).free > _FREE_ON_DISK
