"""Vectors of words, and texts as weighted averages of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.encoders.bag_of_words import to_unit
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray
from embedtopics.results import TokenStream
from embedtopics.terms.counts import count_words

__all__ = [
    "WordTable", "average_words", "check_smoothing", "common_direction", "hash_table", "look_up",
    "remove_direction", "sif_weights",
]  # fmt: skip

WORDS_AT_ONCE = 4096
"""Words whose parts are held at a time."""

ROWS_TO_HASH = 65_536

NEGLIGIBLE = 1e-6
"""Share of an average's length; what is left of it below that is rounding error."""

Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WordTable:
    """Vectors of words, and of parts of words where there are any.

    Parameters
    ----------
    row_of : mapping of str to int
    rows : float32 ndarray of shape (n_words, n_dimensions)
    frequencies : float64 ndarray of shape (n_words,)
        Share of each word among all words of the texts that it was learnt from.
    parts : float32 ndarray of shape (n_buckets, n_dimensions) or None
        Vectors of character n-grams, by the hash that fastText takes.
    shortest, longest : int
        Characters of an n-gram.
    is_split : bool
        Whether a word's row is one more part of it, so that its vector is the mean of that and of
        its n-grams; else the row is the vector.
    """

    row_of: Mapping[str, int]
    rows: FloatArray
    frequencies: Float64Array
    parts: FloatArray | None = None
    shortest: int = 0
    longest: int = 0
    is_split: bool = False

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return int(self.rows.shape[1])


def look_up(
    table: WordTable, words: Sequence[str]
) -> tuple[Float64Array, Float64Array, npt.NDArray[np.bool_]]:
    """Return vectors of words: as written, else in lower case, else from their parts.

    Parameters
    ----------
    table : WordTable
    words : sequence of str

    Returns
    -------
    vectors : float64 ndarray of shape (n_words, n_dimensions)
        Zeros where neither the word nor any part of it is known.
    frequencies : float64 ndarray of shape (n_words,)
        0 for words that are not known.
    is_known : bool ndarray of shape (n_words,)
        Whether a word has a row.
    """
    row_of = table.row_of
    found = (row_of.get(word, row_of.get(word.lower(), -1)) for word in words)
    rows = np.fromiter(found, dtype=np.int64, count=len(words))
    is_known = rows >= 0
    vectors = np.zeros((len(words), table.dimensions))
    vectors[is_known] = table.rows[rows[is_known]]
    frequencies = np.where(is_known, table.frequencies[rows], 0.0) if len(words) else np.zeros(0)
    if table.parts is not None:
        wanted = np.arange(len(words)) if table.is_split else np.flatnonzero(~is_known)
        for begin in range(0, len(wanted), WORDS_AT_ONCE):
            some = wanted[begin : begin + WORDS_AT_ONCE]
            # The row stands under the word as it was found, and so do its parts.
            written = [
                word if row < 0 or word in row_of else word.lower()
                for word, row in ((words[i], rows[i]) for i in some.tolist())
            ]
            sums, n_parts = _sum_parts(table, written)
            vectors[some] += sums
            vectors[some] /= np.maximum(n_parts + is_known[some], 1)[:, None]
    return vectors, frequencies, is_known


def _sum_parts(table: WordTable, words: Sequence[str]) -> tuple[Float64Array, Float64Array]:
    """Return the sums of the vectors of the words' n-grams, and how many n-grams each has."""
    from gensim.models.fasttext import ft_ngram_hashes

    parts = table.parts
    assert parts is not None
    hashes = [ft_ngram_hashes(w, table.shortest, table.longest, len(parts)) for w in words]
    n_parts = np.array([len(h) for h in hashes], dtype=np.int64)
    sums = np.zeros((len(words), table.dimensions))
    has = np.flatnonzero(n_parts)
    if len(has):
        flat = np.concatenate([np.asarray(hashes[i], dtype=np.int64) for i in has.tolist()])
        starts = np.cumsum(n_parts[has]) - n_parts[has]
        sums[has] = np.add.reduceat(parts[flat].astype(np.float64), starts, axis=0)
    return sums, n_parts.astype(np.float64)


def sif_weights(frequencies: npt.ArrayLike, smoothing: float) -> Float64Array:
    """Return how much each word counts: a / (a + p), little where it is frequent.

    Parameters
    ----------
    frequencies : array_like of shape (n_words,)
        p, the share of a word among all words.
    smoothing : float
        a

    Returns
    -------
    float64 ndarray of shape (n_words,)

    References
    ----------
    Arora, Liang and Ma (2017), "A simple but tough-to-beat baseline for sentence embeddings",
    algorithm 1.

    Examples
    --------
    >>> sif_weights([0.0, 0.001, 0.009], 0.001).round(3).tolist()
    [1.0, 0.5, 0.1]
    """
    shares = np.asarray(frequencies, dtype=np.float64)
    weights: Float64Array = 1.0 / (1.0 + shares / smoothing)
    return weights


def average_words(
    tokens: TokenStream, vectors: Float64Array, weights: Float64Array
) -> Float64Array:
    """Return, for each text, the weighted vectors of its words over the number of words.

    Parameters
    ----------
    tokens : TokenStream
    vectors : float64 ndarray of shape (n_words, n_dimensions)
    weights : float64 ndarray of shape (n_words,)

    Returns
    -------
    float64 ndarray of shape (n_texts, n_dimensions)
        Zeros for a text without words. What a text gets does not depend on the other texts.
    """
    counts = count_words(tokens).astype(np.float64)
    counts.data *= weights[counts.indices]
    n_words = np.maximum(np.diff(tokens.offsets), 1)
    averages: Float64Array = np.asarray(counts @ vectors) / n_words[:, None]
    return averages


def common_direction(averages: Float64Array) -> Float64Array:
    """Return the direction that texts have most in common.

    Parameters
    ----------
    averages : float64 ndarray of shape (n_texts, n_dimensions)

    Returns
    -------
    float64 ndarray of shape (n_dimensions,)
        First right singular vector, of length 1.
    """
    from threadpoolctl import threadpool_limits

    # On one thread: the order in which BLAS sums depends on how many it has.
    with threadpool_limits(limits=1, user_api="blas"):
        direction: Float64Array = np.linalg.eigh(averages.T @ averages)[1][:, -1]
    return direction


def remove_direction(averages: Float64Array, direction: Float64Array | None) -> FloatArray:
    """Take a direction out of averages, if there is one, and scale these to length 1.

    Parameters
    ----------
    averages : float64 ndarray of shape (n_texts, n_dimensions)
    direction : float64 ndarray of shape (n_dimensions,) or None

    Returns
    -------
    float32 ndarray of shape (n_texts, n_dimensions)
        Zeros where an average is zero, or has that direction and no other.
    """
    if direction is None:
        return to_unit(averages)
    lengths = np.sqrt(np.einsum("ij,ij->i", averages, averages))
    # einsum and not a product of matrices: BLAS sums a row in an order that depends on the others.
    along = np.einsum("ij,j->i", averages, direction)
    return to_unit(averages - along[:, None] * direction, NEGLIGIBLE * lengths)


def hash_table(table: WordTable, settings: object, common: Float64Array | None) -> str:
    """Return SHA-256 over all that a text's vector depends on."""
    found = hashlib.sha256(repr(settings).encode())
    found.update(repr((table.shortest, table.longest, table.is_split)).encode())
    found.update("\0".join(table.row_of).encode("utf-8", "surrogatepass"))
    arrays: list[npt.NDArray[Any] | None] = [table.rows, table.frequencies, table.parts, common]
    for array in arrays:
        found.update(b"none" if array is None else repr(array.shape).encode())
        if array is not None:
            for begin in range(0, len(array), ROWS_TO_HASH):
                found.update(np.ascontiguousarray(array[begin : begin + ROWS_TO_HASH]).tobytes())
    return found.hexdigest()


def check_smoothing(smoothing: float) -> None:
    """Make sure that the smoothing of word weights is a number above zero.

    Raises
    ------
    InputError
    """
    is_number = isinstance(smoothing, (int, float, np.integer, np.floating))
    if not is_number or isinstance(smoothing, bool) or not 0 < smoothing < np.inf:
        raise InputError(f"expected smoothing to be a finite number above 0, got {smoothing!r}")
