"""Texts as averages of pretrained word vectors, read from a file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count
from embedtopics.encoders.bag_of_words import (
    content_order,
    count_known,
    encode_words,
    not_fitted,
)
from embedtopics.encoders.tokenizing import check_texts
from embedtopics.encoders.word_averages import (
    average_words,
    check_smoothing,
    common_direction,
    hash_table,
    look_up,
    remove_direction,
    sif_weights,
)
from embedtopics.encoders.word_vector_files import read_word_vectors
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray
from embedtopics.results import Encoding, TokenStream
from embedtopics.terms import tokenize

__all__ = ["WordVectorEncoder"]

SOURCES = ("file", "corpus")


class WordVectorEncoder:
    """Turns texts into averages of pretrained word vectors.

    Words are those of `embedtopics.terms.tokenize`. A word is looked up as it is written, then in
    lower case; in a fastText model (.bin), one that is in it in neither way is read by its
    character n-grams. Words are weighted, and texts scaled, as in `FastTextEncoder`.

    Parameters
    ----------
    path : path
        fastText's ``.bin``, or text with a header line (``.vec``, ``.vec.gz``).
    frequencies : {"file", "corpus"}
        Where the words' frequencies come from: the counts in a .bin, or the order of a text file
        by Zipf's law; or the texts, by ``fit(texts)``.
    smoothing : float
        a of the weights a / (a + p).
    remove_common : bool
        Whether the direction that the texts of ``fit(texts)`` have most in common is removed.
    max_words : int, optional
        Read only the first words of a text file.

    Raises
    ------
    InputError
        If a parameter is out of range.
    ModelLoadError
        If the file cannot be read; the message names the line.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        frequencies: str = "file",
        smoothing: float = 1e-3,
        remove_common: bool = False,
        max_words: int | None = None,
    ) -> None:
        if frequencies not in SOURCES:
            raise InputError(f"expected frequencies to be one of {SOURCES}, got {frequencies!r}")
        check_smoothing(smoothing)
        if max_words is not None:
            checked_count(max_words, "max_words")
        self._path = os.fspath(path)
        self._from_corpus = frequencies == "corpus"
        self._smoothing = float(smoothing)
        self._remove_common = bool(remove_common)
        self._max_words = max_words
        self._table = read_word_vectors(path, max_words=max_words)
        self._shares: dict[str, float] | None = None
        self._common: npt.NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        return f"WordVectorEncoder({self._path!r})"

    @property
    def name(self) -> str:
        """Path of the file."""
        return self._path

    @property
    def is_fitted(self) -> bool:
        """Whether all is known that texts are needed for."""
        return (self._shares is not None or not self._from_corpus) and (
            self._common is not None or not self._remove_common
        )

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return self._table.dimensions

    @property
    def languages(self) -> None:
        """A file does not tell."""
        return None

    @property
    def settings(self) -> dict[str, Any]:
        """Its kind, and the arguments that make this encoder again, unfitted."""
        return {
            "kind": "word vectors",
            "path": self._path,
            "frequencies": "corpus" if self._from_corpus else "file",
            "smoothing": self._smoothing,
            "remove_common": self._remove_common,
            "max_words": self._max_words,
        }

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

    def fit(self, texts: Sequence[str]) -> WordVectorEncoder:
        """Learn how frequent words are in the texts, and what the texts have in common, if wanted.

        Parameters
        ----------
        texts : sequence of str

        Returns
        -------
        WordVectorEncoder
            Itself.

        Raises
        ------
        InputError
            If there are no texts, or a row is no string.
        """
        tokens = tokenize(content_order(texts), lowercase=False)
        if self._from_corpus:
            counts = np.bincount(tokens.ids, minlength=len(tokens.words))
            shares = counts / max(1, len(tokens.ids))
            self._shares = dict(zip(tokens.words, shares.tolist(), strict=True))
        if self._remove_common:
            self._common = common_direction(self._average(tokens)[0])
        return self

    def encode(self, texts: Sequence[str], *, show_progress: bool | None = None) -> FloatArray:
        """Return one vector a text; see `FastTextEncoder.encode`."""
        return self.encode_with_report(texts, show_progress=show_progress).embeddings

    def encode_with_report(
        self, texts: Sequence[str], *, show_progress: bool | None = None
    ) -> Encoding:
        """Return one vector a text, and how many of its words are in the file.

        See `FastTextEncoder.encode_with_report`.
        """
        self._check_fitted()

        def embed(tokens: TokenStream) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
            averages, is_known = self._average(tokens)
            return remove_direction(averages, self._common), is_known

        return encode_words(texts, embed, lowercase=False, show_progress=show_progress)

    def count_tokens(self, texts: Sequence[str]) -> Encoding:
        """Return how many words each text has, and how many are known, without encoding it."""
        tokens = tokenize(check_texts(texts), lowercase=False)
        return count_known(tokens, look_up(self._table, tokens.words)[2])

    def _check_fitted(self) -> None:
        if not self.is_fitted:
            raise not_fitted(self)

    def _average(
        self, tokens: TokenStream
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        vectors, frequencies, is_known = look_up(self._table, tokens.words)
        if self._shares is not None:
            shares = self._shares
            frequencies = np.array([shares.get(word, 0.0) for word in tokens.words])
        return average_words(tokens, vectors, sif_weights(frequencies, self._smoothing)), is_known
