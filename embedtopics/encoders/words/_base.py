"""Base of the encoders that read words: texts in slabs, word vectors, weighted averages."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError

from embedtopics._utils.checks import is_number
from embedtopics._utils.progress import progress_bar
from embedtopics.corpus.results import Encoding
from embedtopics.encoders._base import check_texts
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.errors import InputError
from embedtopics.protocols import BoolArray, Float64Array, FloatArray
from embedtopics.terms._counts import count_words
from embedtopics.terms._tokens import PLAIN, tokenize
from embedtopics.terms.results import TokenStream

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


TEXTS_A_SLAB = 4096
"""Number of texts processed at a time."""


class WordEncoder(BaseEncoder):
    """Base of the encoders that read words; a subclass defines `_embed` and `_known`."""

    _kind = ""
    _lowercase = True
    _rules = PLAIN
    _settings: dict[str, Any]

    @property
    def name(self) -> str:
        """Name under which the encoder can be chosen."""
        return self._kind

    @property
    def settings(self) -> dict[str, Any]:
        """Kind and arguments from which this encoder can be made again, before it is fitted."""
        return {"kind": self._kind, **self._settings}

    def encode_with_report(
        self, texts: Sequence[str], *, show_progress: bool | None = None
    ) -> Encoding:
        """Return one vector per text, and how many of its words are known."""
        from scipy.sparse import issparse, vstack

        texts = check_texts(texts)
        self._check_fitted()
        blocks, counted = [], []
        with progress_bar(
            total=len(texts), unit="text", description="Encoding", show=show_progress
        ) as bar:
            # Without texts there is one empty slab, which has the number of columns.
            for begin in range(0, max(1, len(texts)), TEXTS_A_SLAB):
                slab = texts[begin : begin + TEXTS_A_SLAB]
                tokens = tokenize(slab, lowercase=self._lowercase, rules=self._rules)
                vectors, is_known = self._embed(tokens)
                blocks.append(vectors)
                counted.append(count_known(tokens, is_known))
                bar.update(len(slab))
        if len(blocks) == 1:
            embeddings = blocks[0]
        else:
            embeddings = vstack(blocks, "csr") if issparse(blocks[0]) else np.concatenate(blocks)
        n_words = np.concatenate([report.n_tokens for report in counted])
        n_unknown = np.concatenate([report.n_unknown for report in counted])
        return Encoding(embeddings, n_words, n_words, n_unknown)

    def count_tokens(self, texts: Sequence[str]) -> Encoding:
        """Return how many words each text has and how many are known, without encoding."""
        self._check_fitted()
        tokens = tokenize(check_texts(texts), lowercase=self._lowercase, rules=self._rules)
        return count_known(tokens, self._known(tokens.words))

    def _embed(self, tokens: TokenStream) -> tuple[Any, BoolArray]:
        raise NotImplementedError

    def _known(self, words: Sequence[str]) -> BoolArray:
        raise NotImplementedError

    def _check_fitted(self) -> None:
        if not self.is_fitted:
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit(texts) first"
            )


def count_known(tokens: TokenStream, is_known: BoolArray) -> Encoding:
    """Count the words and unknown words of each text; `is_known` has shape (n_words,)."""
    unknown_before = np.concatenate([[0], np.cumsum(~is_known[tokens.ids], dtype=np.int64)])
    n_tokens = np.diff(tokens.offsets).astype(np.int32)
    n_unknown = np.diff(unknown_before[tokens.offsets]).astype(np.int32)
    return Encoding(np.empty((len(tokens), 0), np.float32), n_tokens, n_tokens, n_unknown)


class LearningEncoder(WordEncoder):
    """Base of the word encoders that require `fit`; a subclass defines `_learn`."""

    _learned: Any = None

    @property
    def is_fitted(self) -> bool:
        """Whether the encoder has been fitted."""
        return self._learned is not None

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything that a vector depends on: the fitted state and the settings."""
        return str(self._fitted().fingerprint)

    def fit(self, X: Iterable[str], y: Any = None, *, show_progress: bool | None = None) -> Self:
        """Learn from texts, independent of their order.

        Parameters
        ----------
        X : iterable of str
        y : None
            Ignored.
        show_progress : bool, optional
            None shows a progress bar in terminals and notebooks.

        Returns
        -------
        Self

        Raises
        ------
        InputError
            If there are no texts, a row is not a string, or the texts have too few words.
        """
        self._learned = self._learn(content_order(X), show_progress)
        return self

    def _learn(self, texts: list[str], show_progress: bool | None) -> Any:
        """Return the fitted state, from sorted texts."""
        raise NotImplementedError

    def _fitted(self) -> Any:
        self._check_fitted()
        return self._learned


def to_unit(vectors: Float64Array, least: Float64Array | float = 0.0) -> FloatArray:
    """Scale rows to length 1; rows of at most length `least`, (n_texts,), become zero."""
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    holds = norms > least
    unit = vectors / np.where(holds, norms, 1.0)[:, None]
    unit[~holds] = 0.0
    return unit.astype(np.float32)


def to_unit_sparse(matrix: csr_matrix) -> csr_matrix:
    """Scale the rows of a sparse float64 matrix to length 1, in place; empty rows stay."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    squares = np.bincount(rows, matrix.data**2, minlength=matrix.shape[0])
    matrix.data /= np.sqrt(squares)[rows]
    return matrix


def content_order(texts: Iterable[str]) -> list[str]:
    """Return sorted texts, so that a fit does not depend on their order."""
    texts = check_texts(texts)
    if not texts:
        raise InputError("texts", "at least one text to learn from", found="none")
    return sorted(texts)


WORDS_AT_ONCE = 4096
"""Number of words whose n-grams are processed at a time."""

ROWS_TO_HASH = 65_536

NEGLIGIBLE = 1e-6
"""Share of the length of an average below which the rest is rounding error."""


@dataclass(frozen=True, eq=False)
class WordTable:
    """Vectors of words, and of character n-grams if there are any.

    Shapes: `rows` (n_words, n_dimensions), `frequencies` (n_words,), `parts` (n_buckets, same).
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


def look_up(table: WordTable, words: Sequence[str]) -> tuple[Float64Array, Float64Array, BoolArray]:
    """Return vectors of words (as written, lower-cased or from n-grams), shares, and if known."""
    row_of = table.row_of
    numbers = (row_of.get(word, row_of.get(word.lower(), -1)) for word in words)
    rows = np.fromiter(numbers, dtype=np.int64, count=len(words))
    is_known = rows >= 0
    vectors = np.zeros((len(words), table.dimensions))
    vectors[is_known] = table.rows[rows[is_known]]
    frequencies = np.where(is_known, table.frequencies[rows], 0.0) if len(words) else np.zeros(0)
    if table.parts is not None:
        split = np.arange(len(words)) if table.is_split else np.flatnonzero(~is_known)
        for begin in range(0, len(split), WORDS_AT_ONCE):
            some = split[begin : begin + WORDS_AT_ONCE]
            # The row belongs to the spelling that was found, and so do its n-grams.
            written = [
                word if row < 0 or word in row_of else word.lower()
                for word, row in ((words[i], rows[i]) for i in some.tolist())
            ]
            sums, n_parts = _sum_parts(table, written)
            vectors[some] += sums
            vectors[some] /= np.maximum(n_parts + is_known[some], 1)[:, None]
    return vectors, frequencies, is_known


def _sum_parts(table: WordTable, words: Sequence[str]) -> tuple[Float64Array, Float64Array]:
    """Return the sums of the vectors of the words' n-grams, and the numbers of n-grams."""
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


def average_words(
    tokens: TokenStream, table: WordTable, smoothing: float, shares: Mapping[str, float] | None
) -> tuple[Float64Array, BoolArray]:
    """Return the weighted mean of word vectors of each text, and whether words are known.

    Weights are a / (a + p) (Arora et al. 2017, algorithm 1), p from `shares`, else the table.
    """
    vectors, frequencies, is_known = look_up(table, tokens.words)
    if shares is not None:
        frequencies = np.array([shares.get(word, 0.0) for word in tokens.words])
    weights = 1.0 / (1.0 + frequencies / smoothing)
    counts = count_words(tokens).astype(np.float64)
    counts.data *= weights[counts.indices]
    n_words = np.maximum(np.diff(tokens.offsets), 1)
    return np.asarray(counts @ vectors) / n_words[:, None], is_known


def common_direction(averages: Float64Array) -> Float64Array:
    """Return the first singular vector of the averages of texts, (n_dimensions,)."""
    from threadpoolctl import threadpool_limits

    # On one thread: the order in which BLAS sums depends on how many it has.
    with threadpool_limits(limits=1, user_api="blas"):
        direction: Float64Array = np.linalg.eigh(averages.T @ averages)[1][:, -1]
    return direction


def remove_direction(averages: Float64Array, direction: Float64Array | None) -> FloatArray:
    """Remove a direction from averages, (n_texts, n_dimensions), and scale to length 1."""
    if direction is None:
        return to_unit(averages)
    lengths = np.sqrt(np.einsum("ij,ij->i", averages, averages))
    # einsum instead of a matrix product: BLAS sums a row in an order that depends on the others.
    along = np.einsum("ij,j->i", averages, direction)
    return to_unit(averages - along[:, None] * direction, NEGLIGIBLE * lengths)


def hash_table(table: WordTable, settings: object, common: Float64Array | None) -> str:
    """Return SHA-256 of everything that a vector depends on."""
    digest = hashlib.sha256(repr(settings).encode())
    digest.update(repr((table.shortest, table.longest, table.is_split)).encode())
    digest.update("\0".join(table.row_of).encode("utf-8", "surrogatepass"))
    arrays: list[npt.NDArray[Any] | None] = [table.rows, table.frequencies, table.parts, common]
    for array in arrays:
        digest.update(b"none" if array is None else repr(array.shape).encode())
        if array is not None:
            for begin in range(0, len(array), ROWS_TO_HASH):
                digest.update(np.ascontiguousarray(array[begin : begin + ROWS_TO_HASH]).tobytes())
    return digest.hexdigest()


def check_smoothing(smoothing: float) -> None:
    """Make sure that the smoothing of word weights is a finite number above 0."""
    if not is_number(smoothing) or not 0 < smoothing < np.inf:
        raise InputError("smoothing", "a finite number above 0", smoothing)
