"""Files of pretrained word vectors: fastText's .bin, and text as word2vec writes it (.vec)."""

from __future__ import annotations

import gzip
import mmap
import os
import struct
import zlib
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from embedtopics.encoders.word_averages import WordTable
from embedtopics.errors import ModelLoadError
from embedtopics.protocols import FloatArray

__all__ = ["read_word_vectors"]

MAGIC, VERSION = 793712314, 12
HEADER = struct.Struct("<2i12id")
"""Magic number, version, then dimensions, window, epochs, least count, negatives, n-grams of words,
loss, model, buckets, shortest and longest n-gram, update rate, and the sampling threshold."""
DICTIONARY = struct.Struct("<3i2q")
"""Entries, words, labels, tokens, and size of the pruned index (-1: not pruned)."""
ENTRY = struct.Struct("<qb")
"""After a word's zero byte: its count, and whether it is a word (0) or a label."""
MATRIX = struct.Struct("<?2q")
"""Whether vectors are quantised, number of rows, number of columns."""

REMEDY = "download or write the file again"


def read_word_vectors(path: str | os.PathLike[str], *, max_words: int | None = None) -> WordTable:
    """Read pretrained word vectors.

    Parameters
    ----------
    path : path
        A fastText model (.bin) or text with a header line, then one word and its numbers a line
        (.vec, .vec.gz). Vectors of a .bin stay on disk until they are asked for.
    max_words : int, optional
        Read only so many words of a text file, the first ones: the most frequent.

    Returns
    -------
    WordTable
        Frequencies are those of the counts in a .bin; in a text file, where words stand from the
        most frequent down, that of rank r is taken to be 1/r over the sum of all (Zipf's law).

    Raises
    ------
    ModelLoadError
        If the file is missing, or not such a file, or damaged; the message names file and line.
    """
    path = Path(path)
    if not path.is_file():
        raise ModelLoadError(f"expected a file of word vectors, found none at {path}")
    try:
        if path.suffix == ".bin":
            return _read_binary(path)
        opened: Any = gzip.open(path) if path.suffix == ".gz" else path.open("rb")
        with opened as file:
            return _read_text(path, file, max_words)
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, ModelLoadError):
            raise
        raise ModelLoadError(f"{path} cannot be read ({error}); {REMEDY}") from error


def _refuse(path: Path, what: str, cause: BaseException | None = None) -> NoReturn:
    raise ModelLoadError(f"{path}: {what}; {REMEDY}") from cause


def _read_text(path: Path, file: Any, max_words: int | None) -> WordTable:
    n_words, n_dimensions = _text_header(path, file.readline())
    wanted = n_words if max_words is None else min(n_words, max_words)
    rows: list[FloatArray] = []
    row_of: dict[str, int] = {}
    ranks = []
    for number in range(2, wanted + 2):
        line = file.readline()
        if not line.strip():
            _refuse(path, f"expected {n_words:,} words, as line 1 says, found {number - 2:,}")
        fields = line.rstrip().rsplit(b" ", n_dimensions)
        if len(fields) != n_dimensions + 1:
            _refuse(
                path,
                f"line {number}: expected a word and {n_dimensions} numbers, as line 1 says, "
                f"found {len(line.split()) - 1} numbers",
            )
        try:
            vector = np.array(fields[1:], dtype=np.float32)
        except ValueError as error:
            _refuse(path, f"line {number}: expected {n_dimensions} numbers, found {error}", error)
        if not np.isfinite(vector).all():
            _refuse(path, f"line {number}: expected finite numbers, found NaN or infinity")
        # Words that were cut within a character are in published files; no text has them.
        word = fields[0].decode("utf-8", "backslashreplace")
        if word not in row_of:
            row_of[word] = len(rows)
            rows.append(vector)
            ranks.append(number - 1)
    if wanted == n_words and file.read(1024).strip():
        _refuse(path, f"expected {n_words:,} words, as line 1 says, found more")
    frequencies = 1.0 / (np.array(ranks) * np.sum(1.0 / np.arange(1, n_words + 1)))
    return WordTable(row_of, np.array(rows), frequencies)


def _text_header(path: Path, line: bytes) -> tuple[int, int]:
    try:
        n_words, n_dimensions = map(int, line.split())
    except ValueError as error:
        shown = line[:60].decode("utf-8", "replace").strip()
        _refuse(
            path, f"line 1: expected the numbers of words and dimensions, found {shown!r}", error
        )
    if n_words < 1 or n_dimensions < 1:
        _refuse(path, f"line 1: expected numbers above 0, found {n_words} and {n_dimensions}")
    return n_words, n_dimensions


def _read_binary(path: Path) -> WordTable:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size < HEADER.size + DICTIONARY.size:
            _refuse(path, "expected a fastText model, found a file too short for its header")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _parse_binary(path, data)


def _parse_binary(path: Path, data: mmap.mmap) -> WordTable:
    magic, version, n_dimensions, *_, n_buckets, shortest, longest, _, _ = HEADER.unpack_from(data)
    if (magic, version) != (MAGIC, VERSION):
        _refuse(path, f"expected a fastText model of version {VERSION}, found another kind of file")
    position = HEADER.size
    n_words, _, n_labels, _, pruned = DICTIONARY.unpack_from(data, position)
    if n_labels or pruned >= 0:
        _refuse(path, "expected word vectors, found a classifier or a compressed model")
    if n_words < 1 or n_dimensions < 1 or n_buckets < 0:
        _refuse(path, "expected a fastText model, found a damaged header")
    row_of, counts, position = _dictionary(path, data, position + DICTIONARY.size, n_words)
    if position + MATRIX.size > len(data):
        _refuse(path, "expected vectors after the words, found the end of the file")
    is_quantised, n_rows, n_columns = MATRIX.unpack_from(data, position)
    position += MATRIX.size
    if is_quantised:
        _refuse(path, "expected numbers of full precision, found a compressed model")
    # Without subwords, buckets are named in the header and have no rows.
    n_buckets = n_buckets if longest > 0 else 0
    if (n_rows, n_columns) != (n_words + n_buckets, n_dimensions):
        _refuse(
            path,
            f"expected {n_words + n_buckets:,} vectors of {n_dimensions} numbers, as the header "
            f"says, found {n_rows:,} of {n_columns}",
        )
    missing = position + 4 * n_rows * n_columns - len(data)
    if missing > 0:
        _refuse(
            path, f"expected {n_rows:,} vectors, found a file that ends {missing:,} bytes early"
        )
    rows: Any = np.memmap(path, "<f4", "r", position, (n_rows, n_columns))
    return WordTable(
        row_of=row_of,
        rows=rows[:n_words],
        frequencies=counts / max(1, counts.sum()),
        parts=rows[n_words:] if n_buckets else None,
        shortest=shortest,
        longest=longest,
        is_split=bool(n_buckets),
    )


def _dictionary(
    path: Path, data: mmap.mmap, position: int, n_words: int
) -> tuple[dict[str, int], npt.NDArray[np.int64], int]:
    """Return the row of each word, the words' counts, and where the dictionary ends."""
    row_of: dict[str, int] = {}
    counts = []  # and no array: a damaged number of words may be too large for one
    for row in range(n_words):
        end = data.find(b"\0", position)
        if end < 0 or end + 1 + ENTRY.size > len(data):
            _refuse(path, f"expected {n_words:,} words, found {row:,} and the end of the file")
        word = data[position:end].decode("utf-8", "backslashreplace")
        count, kind = ENTRY.unpack_from(data, end + 1)
        if kind != 0 or count < 0:
            _refuse(path, f"word {row + 1:,}: expected a word and its count, found neither")
        row_of.setdefault(word, row)
        counts.append(count)
        position = end + 1 + ENTRY.size
    return row_of, np.array(counts, dtype=np.int64), position
