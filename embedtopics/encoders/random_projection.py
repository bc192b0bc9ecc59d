"""The floor of all comparisons: words counted, and thrown together by chance."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count
from embedtopics.encoders.bag_of_words import count_known, encode_words, to_unit
from embedtopics.encoders.tokenizing import check_texts
from embedtopics.protocols import FloatArray
from embedtopics.results import Encoding, TokenStream
from embedtopics.terms import tokenize
from embedtopics.terms.counts import count_words

__all__ = ["RandomProjectionEncoder"]


class RandomProjectionEncoder:
    """Turns texts into random projections of their word counts.

    An encoder that is no better than this one has learnt nothing. Every word has a vector of
    random signs, made from a hash of the word and the seed; a text is the sum of its words'
    vectors, scaled to length 1. So cosines are, on average, those of the word counts, with a
    standard deviation below ``sqrt(2 / dimensions)`` (Achlioptas 2003, "Database-friendly random
    projections: Johnson-Lindenstrauss with binary coins"). Nothing is learnt, and a word has the
    same vector in every process and on every machine.

    Parameters
    ----------
    dimensions : int
    random_state : int
        Another number throws other signs.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Examples
    --------
    >>> encoder = RandomProjectionEncoder(dimensions=64)
    >>> one, other = encoder.encode(["the cat sat on the mat", "On the mat sat the cat!"])
    >>> bool((one == other).all())
    True
    """

    def __init__(self, dimensions: int = 256, *, random_state: int = 0) -> None:
        checked_count(dimensions, "dimensions")
        checked_count(random_state, "random_state", 0)
        self._dimensions = int(dimensions)
        self._random_state = int(random_state)

    def __repr__(self) -> str:
        return f"RandomProjectionEncoder({self._dimensions}, random_state={self._random_state})"

    @property
    def name(self) -> str:
        """The name by which `resolve_encoder` makes such an encoder."""
        return "random"

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return self._dimensions

    @property
    def languages(self) -> None:
        """No language is better than another."""
        return None

    @property
    def settings(self) -> dict[str, Any]:
        """Its kind, and the arguments that make this encoder again."""
        return {
            "kind": "random", "dimensions": self._dimensions, "random_state": self._random_state,
        }  # fmt: skip

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over all that a vector depends on."""
        return hashlib.sha256(repr(sorted(self.settings.items())).encode()).hexdigest()

    def encode(self, texts: Sequence[str], *, show_progress: bool | None = None) -> FloatArray:
        """Return one vector a text.

        Parameters
        ----------
        texts : sequence of str
        show_progress : bool, optional
            None shows a bar where stderr is a terminal or a notebook listens.

        Returns
        -------
        float32 ndarray of shape (n_texts, n_dimensions)
            Rows of length 1; zeros for a text without any word.

        Raises
        ------
        InputError
            If a row is no string.
        """
        return self.encode_with_report(texts, show_progress=show_progress).embeddings

    def encode_with_report(
        self, texts: Sequence[str], *, show_progress: bool | None = None
    ) -> Encoding:
        """Return one vector a text, and how many words it has; all of them are known."""
        return encode_words(texts, self._embed, show_progress=show_progress)

    def count_tokens(self, texts: Sequence[str]) -> Encoding:
        """Return how many words each text has, without encoding it."""
        tokens = tokenize(check_texts(texts))
        return count_known(tokens, np.ones(len(tokens.words), dtype=np.bool_))

    def _embed(self, tokens: TokenStream) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        # Sums of whole numbers: exact, so that their order does not matter.
        sums = np.asarray(count_words(tokens).astype(np.float64) @ self._signs(tokens.words))
        return to_unit(sums), np.ones(len(tokens.words), dtype=np.bool_)

    def _signs(self, words: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return the vector of each word, shape (n_words, n_dimensions), of 1 and -1."""
        n_bytes = -(-self._dimensions // 8)
        salt = f"{self._random_state}:".encode()
        thrown = b"".join(
            hashlib.shake_128(salt + word.encode("utf-8", "surrogatepass")).digest(n_bytes)
            for word in words
        )
        bits = np.frombuffer(thrown, dtype=np.uint8).reshape(len(words), n_bytes)
        signs = np.unpackbits(bits, axis=1)[:, : self._dimensions].astype(np.float64)
        signs *= 2.0
        signs -= 1.0
        return signs
