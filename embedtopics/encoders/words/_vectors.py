"""Texts as averages of pretrained word vectors from a file."""

from __future__ import annotations

import gzip
import hashlib
import mmap
import os
import struct
import zlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from embedtopics._utils.checks import optional_count
from embedtopics.encoders._contract import arguments_of
from embedtopics.encoders.words._base import (
    WordEncoder,
    WordTable,
    average_words,
    check_smoothing,
    common_direction,
    content_order,
    hash_table,
    look_up,
    remove_direction,
)
from embedtopics.errors import InputError, ModelLoadError
from embedtopics.protocols import BoolArray, Float64Array, FloatArray, Int64Array
from embedtopics.terms._tokens import tokenize
from embedtopics.terms.results import TokenStream

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
    """Read pretrained word vectors."""
    path = Path(path)
    if not path.is_file():
        raise ModelLoadError(f"expected a file of word vectors at {path}, which does not exist")
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
    n_read = n_words if max_words is None else min(n_words, max_words)
    rows: list[FloatArray] = []
    row_of: dict[str, int] = {}
    ranks = []
    for number in range(2, n_read + 2):
        line = file.readline()
        if not line.strip():
            _refuse(path, f"expected {n_words:,} words, as line 1 declares, found {number - 2:,}")
        fields = line.rstrip().rsplit(b" ", n_dimensions)
        if len(fields) != n_dimensions + 1:
            expected = f"expected a word and {n_dimensions} numbers, as line 1 declares"
            _refuse(path, f"line {number}: {expected}, found {len(line.split()) - 1} numbers")
        try:
            vector = np.array(fields[1:], dtype=np.float32)
        except ValueError as error:
            _refuse(path, f"line {number}: expected {n_dimensions} numbers, found {error}", error)
        if not np.isfinite(vector).all():
            _refuse(path, f"line {number}: expected finite numbers, found NaN or infinity")
        # Published files contain words that were cut within a character.
        word = fields[0].decode("utf-8", "backslashreplace")
        if word not in row_of:
            row_of[word] = len(rows)
            rows.append(vector)
            ranks.append(number - 1)
    if n_read == n_words and file.read(1024).strip():
        _refuse(path, f"expected {n_words:,} words, as line 1 declares, found more")
    frequencies = 1.0 / (np.array(ranks) * np.sum(1.0 / np.arange(1, n_words + 1)))
    return WordTable(row_of, np.array(rows), frequencies)


def _text_header(path: Path, line: bytes) -> tuple[int, int]:
    try:
        n_words, n_dimensions = map(int, line.split())
    except ValueError as error:
        shown = line[:60].decode("utf-8", "replace").strip()
        what = f"line 1: expected the numbers of words and dimensions, found {shown!r}"
        _refuse(path, what, error)
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
    # Without subwords, the header has a number of buckets, but they have no rows.
    n_buckets = n_buckets if longest > 0 else 0
    if (n_rows, n_columns) != (n_words + n_buckets, n_dimensions):
        expected = f"expected {n_words + n_buckets:,} vectors of {n_dimensions} numbers"
        _refuse(path, f"{expected}, as the header declares, found {n_rows:,} of {n_columns}")
    missing = position + 4 * n_rows * n_columns - len(data)
    if missing > 0:
        actual = f"a file that ends {missing:,} bytes early"
        _refuse(path, f"expected {n_rows:,} vectors, found {actual}")
    rows: Any = np.memmap(path, "<f4", "r", position, (n_rows, n_columns))
    parts = rows[n_words:] if n_buckets else None
    shares = counts / max(1, counts.sum())
    return WordTable(row_of, rows[:n_words], shares, parts, shortest, longest, bool(n_buckets))


def _dictionary(
    path: Path, data: mmap.mmap, position: int, n_words: int
) -> tuple[dict[str, int], Int64Array, int]:
    """Return the row of each word, the counts, and the end position of the dictionary."""
    row_of: dict[str, int] = {}
    counts = []  # not an array: a damaged number of words may be too large
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


SOURCES = ("file", "corpus")


class WordVectorEncoder(WordEncoder):
    """Turn texts into averages of pretrained word vectors.

    Words are those of `embedtopics.terms.tokenize`. A word is looked up as it is written, then in
    lower case. A fastText model (.bin) composes the vectors of other words from their character
    n-grams. Words are weighted, and texts scaled, as in `FastTextEncoder`.

    Parameters
    ----------
    path : path
        fastText's ``.bin``, or text with a header line (``.vec``, ``.vec.gz``).
    frequencies : {"file", "corpus"}
        Source of the word frequencies. "file" takes the counts of a .bin file, or derives them from
        the order of a text file by Zipf's law. "corpus" counts the texts of ``fit(texts)``.
    smoothing : float
        a of the weights a / (a + p).
    remove_common : bool
        Whether to remove the first singular vector of the texts of ``fit(texts)``.
    max_words : int, optional
        Read only the first words of a text file.

    Raises
    ------
    InputError
        If a parameter is out of range.
    ModelLoadError
        If the file cannot be read; the message names the line.
    """

    _kind = "word vectors"
    _lowercase = False

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        frequencies: str = "file",
        smoothing: float = 1e-3,
        remove_common: bool = False,
        max_words: int | None = None,
    ) -> None:
        self._arguments = arguments_of(locals())
        if frequencies not in SOURCES:
            raise InputError("frequencies", f"one of {SOURCES}", frequencies)
        check_smoothing(smoothing)
        optional_count(max_words, "max_words")
        self._path = os.fspath(path)
        self._from_corpus = frequencies == "corpus"
        self._smoothing = float(smoothing)
        self._remove_common = bool(remove_common)
        self._settings: dict[str, Any] = {
            "path": self._path, "frequencies": frequencies, "smoothing": self._smoothing,
            "remove_common": self._remove_common, "max_words": max_words,
        }  # fmt: skip
        self._table = read_word_vectors(path, max_words=max_words)
        self._shares: dict[str, float] | None = None
        self._common: Float64Array | None = None

    def __repr__(self) -> str:
        return f"WordVectorEncoder({self._path!r})"

    @property
    def name(self) -> str:
        """Path of the file."""
        return self._path

    @property
    def is_fitted(self) -> bool:
        """Whether the encoder can encode: it needs no fit, or was fitted."""
        return (self._shares is not None or not self._from_corpus) and (
            self._common is not None or not self._remove_common
        )

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return self._table.dimensions

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all that a vector depends on: vectors and settings, but not the path."""
        self._check_fitted()
        shares = None if self._shares is None else sorted(self._shares.items())
        settings = (self._smoothing, self._remove_common, shares, self._hash_of_file)
        common = None if self._common is None else self._common.tobytes()
        return hashlib.sha256(repr((settings, common)).encode("utf-8", "surrogatepass")).hexdigest()

    @cached_property
    def _hash_of_file(self) -> str:
        return hash_table(self._table, (), None)

    def fit(self, X: Iterable[str], y: Any = None) -> WordVectorEncoder:
        """Count the words of the texts, and learn the direction to remove, as the parameters ask.

        Parameters
        ----------
        X : iterable of str
        y : None
            Ignored.

        Returns
        -------
        Self

        Raises
        ------
        InputError
            If there are no texts, or a row is no string.
        """
        tokens = tokenize(content_order(X), lowercase=False)
        if self._from_corpus:
            counts = np.bincount(tokens.ids, minlength=len(tokens.words))
            shares = counts / max(1, len(tokens.ids))
            self._shares = dict(zip(tokens.words, shares.tolist(), strict=True))
        if self._remove_common:
            averages, _ = average_words(tokens, self._table, self._smoothing, self._shares)
            self._common = common_direction(averages)
        return self

    def _embed(self, tokens: TokenStream) -> tuple[FloatArray, BoolArray]:
        averages, is_known = average_words(tokens, self._table, self._smoothing, self._shares)
        return remove_direction(averages, self._common), is_known

    def _known(self, words: Sequence[str]) -> BoolArray:
        return look_up(self._table, words)[2]
