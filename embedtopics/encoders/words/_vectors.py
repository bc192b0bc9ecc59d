"""Texts as averages of pretrained word vectors from a file."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embedtopics._utils.checks import require
from embedtopics._utils.display import one_line
from embedtopics.encoders._base import unit_vectors
from embedtopics.encoders._contract import arguments_of
from embedtopics.encoders.words._base import WordEncoder, hash_of
from embedtopics.errors import ModelLoadError
from embedtopics.protocols import BoolArray, Float64Array, FloatArray, Int64Array
from embedtopics.terms._counts import count_words
from embedtopics.terms.results import TokenStream

MAGIC, VERSION = 793712314, 12
HEADER = struct.Struct("<2i12id2i")
"""Of a fastText model: magic number, version, dimensions, window, epochs, least count, negatives,
n-grams of words, loss, model, buckets, shortest and longest n-gram, update rate, sampling
threshold; then the numbers of entries and of words."""

SMOOTHING = 1e-3
"""Coefficient a of the weights a / (a + p) of words, as in the paper."""


@dataclass(frozen=True, eq=False)
class WordTable:
    """gensim's vectors of words, and the relative frequencies of the words, (n_words,)."""

    vectors: Any
    frequencies: Float64Array

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return int(self.vectors.vector_size)

    def rows(self, words: Sequence[str]) -> Int64Array:
        """Return the row of each word, as written or in lower case; -1 if there is none."""
        row_of = self.vectors.key_to_index
        rows = (row_of.get(word, row_of.get(word.lower(), -1)) for word in words)
        return np.fromiter(rows, dtype=np.int64, count=len(words))

    def average(self, tokens: TokenStream) -> FloatArray:
        """Return the weighted means of word vectors, scaled to length 1, (n_texts, n_dimensions).

        Weights are a / (a + p) (Arora et al. 2017, algorithm 1), and 1 for unknown words, whose
        vectors are composed from their n-grams if there are any.
        """
        rows = self.rows(tokens.words)
        is_known = rows >= 0
        vectors = np.zeros((len(rows), self.dimensions))
        vectors[is_known] = self.vectors.vectors[rows[is_known]]
        if hasattr(self.vectors, "vectors_ngrams") and len(self.vectors.vectors_ngrams):
            for position in np.flatnonzero(~is_known).tolist():
                vectors[position] = self.vectors.get_vector(tokens.words[position])
        weights = np.ones(len(rows))
        weights[is_known] = 1.0 / (1.0 + self.frequencies[rows[is_known]] / SMOOTHING)
        counts = count_words(tokens).astype(np.float64)
        counts.data *= weights[counts.indices]
        averages: FloatArray = unit_vectors(counts @ vectors)
        return averages

    def fingerprint(self, settings: object) -> str:
        """Return SHA-256 of everything that a vector depends on."""
        parts = getattr(self.vectors, "vectors_ngrams", None)
        words = self.vectors.index_to_key
        return hash_of(settings, words, self.vectors.vectors, self.frequencies, parts)


def read_word_vectors(path: Path) -> WordTable:
    """Read pretrained word vectors with gensim: fastText's .bin, or text with a header line."""
    require("gensim", "reading word vectors", "fasttext")
    from gensim.models import KeyedVectors
    from gensim.models.fasttext import load_facebook_vectors

    if not path.is_file():
        raise ModelLoadError(f"expected a file of word vectors at {path}, which does not exist")
    try:
        if path.suffix == ".bin":
            _check_header(path)
            vectors = load_facebook_vectors(path)
            counts = vectors.expandos["count"].astype(np.float64)
            frequencies = counts / max(1.0, counts.sum())
        else:
            # Published files contain words that were cut within a character.
            vectors = KeyedVectors.load_word2vec_format(path, unicode_errors="backslashreplace")
            # Zipf's law: files are ordered by frequency.
            frequencies = 1.0 / np.arange(1, len(vectors) + 1)
            frequencies /= frequencies.sum()
        if not np.isfinite(vectors.vectors).all():
            raise ValueError("expected finite numbers, got NaN or infinity")
    except Exception as error:  # gensim raises whatever a damaged number leads to
        message = f"{path} cannot be read ({one_line(error)}); download or write the file again"
        raise ModelLoadError(message) from error
    return WordTable(vectors, frequencies)


def _check_header(path: Path) -> None:
    """Refuse other files and files that end early, which gensim would read without end."""
    with path.open("rb") as file:
        head = file.read(HEADER.size)
    if len(head) < HEADER.size:
        raise ValueError("the file is too short for a fastText model")
    magic, version, dimensions, *_, n_buckets, _, longest, _, _, n_entries, n_words = HEADER.unpack(
        head
    )
    if (magic, version) != (MAGIC, VERSION):
        raise ValueError(f"it is no fastText model of version {VERSION}")
    if n_entries != n_words:
        raise ValueError("it is a classifier, not a file of word vectors")
    n_rows = n_words + (n_buckets if longest > 0 else 0)
    if n_words < 1 or dimensions < 1 or path.stat().st_size < 4 * n_rows * dimensions:
        raise ValueError(f"the file is too short for {n_rows:,} vectors of {dimensions} numbers")


class WordVectorEncoder(WordEncoder):
    """Turn texts into averages of pretrained word vectors.

    Words are those of `embedtopics.terms.tokenize`. A word is looked up as it is written, then in
    lower case. A fastText model (.bin) composes the vectors of other words from their character
    n-grams. Words are weighted, and texts scaled, as in `FastTextEncoder`; the frequencies are the
    counts of a .bin file, or follow from the order of a text file by Zipf's law.

    Parameters
    ----------
    path : path
        fastText's ``.bin``, or text with a header line (``.vec``, ``.vec.gz``).

    Raises
    ------
    ModelLoadError
        If the file cannot be read.
    """

    _kind = "word vectors"
    _lowercase = False

    def __init__(self, path: str | os.PathLike[str]) -> None:
        path = os.fspath(path)
        self._arguments = arguments_of(locals())
        self._table = read_word_vectors(Path(path))
        self._fingerprint = self._table.fingerprint(self._kind)

    def __repr__(self) -> str:
        return f"WordVectorEncoder({self.name!r})"

    @property
    def name(self) -> str:
        """Path of the file."""
        return str(self._arguments["path"])

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return self._table.dimensions

    def _embed(self, tokens: TokenStream) -> FloatArray:
        return self._table.average(tokens)

    def _known(self, words: Sequence[str]) -> BoolArray:
        return self._table.rows(words) >= 0
