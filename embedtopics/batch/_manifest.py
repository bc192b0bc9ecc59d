"""Split files into shards: row groups of parquet, blocks of whole lines of jsonl and csv.

The manifest holds the digest of each shard. The worker that reads the shard computes it again, so
that a changed file is detected.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from embedtopics._utils.display import one_line
from embedtopics.errors import InputError


@dataclass(frozen=True)
class Shard:
    """A part of a file: a row group of parquet, or the bytes of whole lines.

    `row` is the number of its first row in the file; `digest` is the SHA-256 of its `n_bytes` bytes
    from `offset`; `number` counts the shards of the file.
    """

    path: str
    file_bytes: int
    number: int
    offset: int
    n_bytes: int
    row: int
    n_rows: int
    digest: str


@dataclass(frozen=True)
class Manifest:
    """The shards of some files, in the order of the files."""

    shards: tuple[Shard, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows of all files, including blank lines."""
        return sum(shard.n_rows for shard in self.shards)


SHARD_BYTES = 16 * 2**20
"""Size of a block of lines: about 20,000 abstracts, at most a minute of encoding."""

SUFFIXES = (".parquet", ".jsonl", ".ndjson", ".csv", ".tsv")


def make_manifest(files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Manifest:
    """List the shards of files; this reads every byte once, for the digests.

    Parameters
    ----------
    files : path or sequence of paths
        Uncompressed parquet, jsonl (ndjson), csv and tsv files in UTF-8; or patterns such as
        ``"data/*.parquet"``. Each row group of parquet is one shard.

    Returns
    -------
    Manifest
        The shards, in the order of `files`, with the digest of each.

    Raises
    ------
    InputError
        If no file matches, or a file cannot be read.
    """
    listed = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    shards: list[Shard] = []
    for path in dict.fromkeys(path for one in listed for path in _matching_files(os.fspath(one))):
        try:
            shards += _row_groups(path) if path.endswith(".parquet") else _blocks(path)
        except (OSError, ValueError) as error:  # includes pyarrow's
            unreadable = f"{path} ({one_line(error)})"
            raise InputError("files", "readable files", found=unreadable) from None
    return Manifest(tuple(shards))


def _matching_files(pattern: str) -> list[str]:
    """Return the files that match a path or a pattern, sorted by name."""
    # The name of a file may look like a pattern.
    matches = [pattern] if Path(pattern).exists() else glob.glob(pattern, recursive=True)
    paths = sorted(str(Path(path).resolve()) for path in matches)
    if not paths:
        raise InputError("files", "existing files", pattern)
    for path in paths:
        if not path.endswith(SUFFIXES):
            expected = f"files that end in {', '.join(SUFFIXES)}"
            raise InputError("files", expected, path, "unpack or convert it")
        if not Path(path).is_file():
            raise InputError("files", "regular files", path)
    return paths


def read_shard(shard: Shard) -> bytes:
    """Return the bytes of a shard; refuse a file that has changed."""
    with open(shard.path, "rb") as stream:
        stream.seek(shard.offset)
        data = stream.read(shard.n_bytes)
    if hashlib.sha256(data).hexdigest() != shard.digest:
        raise InputError("the file has changed since its manifest was made; start another run")
    return data


def _row_groups(path: str) -> Iterator[Shard]:
    import pyarrow.parquet as pq

    with open(path, "rb") as stream, pq.ParquetFile(stream) as file:
        size, row = stream.seek(0, os.SEEK_END), 0
        for number in range(file.metadata.num_row_groups):
            group = file.metadata.row_group(number)
            ends = []
            for chunk in map(group.column, range(group.num_columns)):
                first = chunk.data_page_offset
                first = min(first, chunk.dictionary_page_offset or first)
                ends += [first, first + chunk.total_compressed_size]
            begin, end = min(ends), max(ends)
            stream.seek(begin)
            digest = hashlib.sha256(stream.read(end - begin)).hexdigest()
            yield Shard(path, size, number, begin, end - begin, row, group.num_rows, digest)
            row += group.num_rows


def _blocks(path: str) -> Iterator[Shard]:
    """Yield blocks of whole rows, each of less than twice the size unless a row is longer."""
    is_quoted = path.endswith((".csv", ".tsv"))
    with open(path, "rb") as stream:
        size = os.path.getsize(path)
        offset = len(stream.readline()) if is_quoted else 0  # the header is not a row
        row, number, buffer = 0, 0, b""
        while True:
            more = stream.read(SHARD_BYTES)
            buffer += more
            data = np.frombuffer(buffer, np.uint8)
            ends = np.flatnonzero(data == ord("\n"))
            if is_quoted:  # a line end inside quotes does not end a row
                quotes = np.flatnonzero(data == ord('"'))
                ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
            if more and not len(ends):
                continue
            cut = int(ends[-1]) + 1 if more else len(buffer)
            if cut:
                n_rows = len(ends) + (not more and not buffer.endswith(b"\n"))
                digest = hashlib.sha256(buffer[:cut]).hexdigest()
                yield Shard(path, size, number, offset, cut, row, n_rows, digest)
                offset, row, number, buffer = offset + cut, row + n_rows, number + 1, buffer[cut:]
            if not more:
                return
