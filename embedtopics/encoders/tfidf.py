"""TF-IDF, with or without latent semantic analysis: the baseline that counts words."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count
from embedtopics.corpus import detect_languages, main_languages
from embedtopics.encoders.bag_of_words import (
    content_order,
    count_known,
    encode_words,
    not_fitted,
    to_unit,
    to_unit_sparse,
)
from embedtopics.encoders.tokenizing import check_texts
from embedtopics.errors import InputError
from embedtopics.results import Encoding, TokenStream
from embedtopics.terms import count_terms, stop_words_for, tokenize

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["TfidfEncoder"]

NEGLIGIBLE = 1e-9
"""Length, of 1, below which what is left of a text after the projection is rounding error; and
share of the largest singular value below which a component is."""


@dataclass(frozen=True, eq=False)
class _Learned:
    """What a fit learns: terms, their weights, and axes of shape (n_terms, n_components)."""

    column_of: dict[str, int]
    words: frozenset[str]
    idf: npt.NDArray[np.float64]
    axes: npt.NDArray[np.float64] | None
    fingerprint: str


class TfidfEncoder:
    """Turns texts into weighted counts of their words and, if wanted, projects these.

    The weight of a term in a text is its count, or ``1 + ln(count)``, times
    ``ln((1 + n) / (1 + df)) + 1``, with `df` of the `n` texts of the fit that hold the term;
    vectors have length 1. That is what scikit-learn's ``TfidfVectorizer`` computes, but the words
    are those of the topics: see `embedtopics.terms.tokenize` and `count_terms`, which make no
    terms of numbers and single letters. With `n_components`, vectors are projected on the first
    right singular vectors of the matrix of the fit (Deerwester et al. 1990, "Indexing by latent
    semantic analysis"), without centring, and scaled to length 1 again.

    What is learnt depends neither on the order of the texts nor on the number of threads.

    Parameters
    ----------
    n_components : int, optional
        Dimensions of the projection; fewer where texts or terms are fewer. None makes none: there
        is one column for each term, and the rows are sparse.
    stop_words : "auto" or sequence of str
        Words that are no terms; "auto" takes the lists of the languages of the texts.
    ngram_range : (int, int)
        Shortest and longest term in words.
    min_df, max_df : int, float or None
        Texts that must hold a term, and may at most; a float is a share. ``min_df=None`` chooses
        by their number, as `embedtopics.terms.count_terms` does.
    max_features : int, optional
        Keep only the terms that most texts hold.
    sublinear_tf : bool
        Whether a term's count is replaced by one plus its logarithm.
    random_state : int
        Seed of the singular value decomposition, a randomized one (Halko, Martinsson and Tropp
        2011, algorithms 4.4 and 5.1).

    Raises
    ------
    InputError
        If a parameter is out of range.

    Examples
    --------
    >>> encoder = TfidfEncoder(stop_words=[]).fit(["cold water", "cold coffee", "hot coffee"])
    >>> encoder.encode(["cold coffee"]).toarray().round(3).tolist()
    [[0.707..., 0.707..., 0.0, 0.0]]
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        stop_words: str | Iterable[str] = "auto",
        ngram_range: Sequence[int] = (1, 1),
        min_df: int | float | None = None,
        max_df: int | float = 1.0,
        max_features: int | None = None,
        sublinear_tf: bool = True,
        random_state: int = 0,
    ) -> None:
        for name, count in (("n_components", n_components), ("max_features", max_features)):
            if count is not None:
                checked_count(count, name)
        checked_count(random_state, "random_state", 0)
        if isinstance(stop_words, str) and stop_words != "auto":
            raise InputError(f'expected stop_words to be "auto" or a list, got {stop_words!r}')
        if len(tuple(ngram_range)) != 2:
            raise InputError(f"expected ngram_range to be two integers, got {ngram_range!r}")
        self._n_components = n_components
        self._stop_words = stop_words if isinstance(stop_words, str) else sorted(set(stop_words))
        self._ngram_range = (int(ngram_range[0]), int(ngram_range[1]))
        self._min_df, self._max_df = min_df, max_df
        self._max_features = max_features
        self._sublinear_tf = bool(sublinear_tf)
        self._random_state = int(random_state)
        self._learned: _Learned | None = None

    def __repr__(self) -> str:
        return f"TfidfEncoder(n_components={self._n_components})"

    @property
    def name(self) -> str:
        """The name by which `resolve_encoder` makes such an encoder."""
        return "tfidf" if self._n_components is None else "lsa"

    @property
    def is_fitted(self) -> bool:
        """Whether terms and weights are learnt."""
        return self._learned is not None

    @property
    def dimensions(self) -> int:
        """Length of a vector, once it has learnt from texts."""
        learned = self._fitted()
        return len(learned.idf) if learned.axes is None else int(learned.axes.shape[1])

    @property
    def languages(self) -> None:
        """It learns from the texts, in whatever language they are."""
        return None

    @property
    def settings(self) -> dict[str, Any]:
        """Its kind, and the arguments that make this encoder again, unfitted."""
        return {
            "kind": "tfidf",
            "n_components": self._n_components,
            "stop_words": self._stop_words,
            "ngram_range": list(self._ngram_range),
            "min_df": self._min_df,
            "max_df": self._max_df,
            "max_features": self._max_features,
            "sublinear_tf": self._sublinear_tf,
            "random_state": self._random_state,
        }

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all that a vector depends on: terms, weights, axes and settings."""
        return self._fitted().fingerprint

    def fit(self, texts: Sequence[str]) -> TfidfEncoder:
        """Learn terms, weights and axes.

        Parameters
        ----------
        texts : sequence of str

        Returns
        -------
        TfidfEncoder
            Itself.

        Raises
        ------
        InputError
            If there are no texts, a row is no string, or no term is left.
        """
        texts = content_order(texts)
        stop_words = self._stop_words
        if isinstance(stop_words, str):
            stop_words = list(stop_words_for(main_languages(detect_languages(texts))))
        counted = count_terms(
            tokenize(texts),
            ngram_range=self._ngram_range, min_df=self._min_df, max_df=self._max_df,
            stop_words=stop_words, max_terms=self._max_features,
        )  # fmt: skip
        if not counted.terms:
            raise InputError(
                f"expected texts that share terms, found none in {len(texts):,} texts after stop "
                "words, min_df and max_df; give more texts, or set min_df=1"
            )
        held = np.bincount(counted.counts.indices, minlength=len(counted.terms))
        idf = np.log((1 + len(texts)) / (1 + held)) + 1
        axes = self._axes(self._weigh(counted.counts, idf))
        self._learned = _Learned(
            column_of={term: column for column, term in enumerate(counted.terms)},
            # A stop word is left out on purpose, and not for want of knowledge.
            words=frozenset(stop_words).union(*(term.split(" ") for term in counted.terms)),
            idf=idf,
            axes=axes,
            fingerprint=_hash((sorted(self.settings.items()), counted.terms), idf, axes),
        )
        return self

    def encode(self, texts: Sequence[str], *, show_progress: bool | None = None) -> Any:
        """Return one vector a text.

        Parameters
        ----------
        texts : sequence of str
        show_progress : bool, optional
            None shows a bar where stderr is a terminal or a notebook listens.

        Returns
        -------
        float32 ndarray of shape (n_texts, n_components) or csr_matrix of shape (n_texts, n_terms)
            Rows of length 1; zeros for a text without any term that is known.

        Raises
        ------
        InputError
            If a row is no string.
        NotFittedError
            If it has not learnt from any texts.
        """
        return self.encode_with_report(texts, show_progress=show_progress).embeddings

    def encode_with_report(
        self, texts: Sequence[str], *, show_progress: bool | None = None
    ) -> Encoding:
        """Return one vector a text, and how many of its words are known.

        Parameters and errors are those of `encode`.

        Returns
        -------
        Encoding
            Tokens are words, all of them read. Unknown are words of no term, stop words aside.
        """
        learned = self._fitted()

        def embed(tokens: TokenStream) -> tuple[Any, npt.NDArray[np.bool_]]:
            weighed = self._weigh(self._count(tokens, learned), learned.idf)
            vectors: Any = weighed.astype(np.float32)
            if learned.axes is not None:
                vectors = to_unit(np.asarray(weighed @ learned.axes), NEGLIGIBLE)
            return vectors, _are_in(tokens.words, learned.words)

        return encode_words(texts, embed, show_progress=show_progress)

    def count_tokens(self, texts: Sequence[str]) -> Encoding:
        """Return how many words each text has, and how many are known, without encoding it."""
        tokens = tokenize(check_texts(texts))
        return count_known(tokens, _are_in(tokens.words, self._fitted().words))

    def _fitted(self) -> _Learned:
        if self._learned is None:
            raise not_fitted(self)
        return self._learned

    def _count(self, tokens: TokenStream, learned: _Learned) -> csr_matrix:
        """Count the terms that are known, shape (n_texts, n_terms)."""
        from scipy.sparse import csr_matrix

        counted = count_terms(tokens, ngram_range=self._ngram_range, min_df=1)
        columns = np.array([learned.column_of.get(term, -1) for term in counted.terms], np.int64)
        known = np.flatnonzero(columns >= 0)
        counts = counted.counts[:, known]
        # Both are in alphabetical order, so that columns stay sorted.
        return csr_matrix(
            (counts.data, columns[known][counts.indices], counts.indptr),
            shape=(len(tokens), len(learned.idf)),
        )

    def _weigh(self, counts: csr_matrix, idf: npt.NDArray[np.float64]) -> csr_matrix:
        weighed = counts.astype(np.float64)
        if self._sublinear_tf:
            weighed.data = 1.0 + np.log(weighed.data)
        weighed.data *= idf[weighed.indices]
        return to_unit_sparse(weighed)

    def _axes(self, weighed: csr_matrix) -> npt.NDArray[np.float64] | None:
        """Return the first right singular vectors, the largest entry of each positive."""
        if self._n_components is None:
            return None
        from sklearn.utils.extmath import randomized_svd
        from threadpoolctl import threadpool_limits

        # On one thread: the order in which BLAS sums depends on how many it has.
        with threadpool_limits(limits=1, user_api="blas"):
            _, strengths, axes = randomized_svd(
                weighed, min(self._n_components, *weighed.shape), random_state=self._random_state
            )
        axes = axes[strengths > NEGLIGIBLE * strengths[0]].T
        largest = np.abs(axes).argmax(axis=0)
        return np.ascontiguousarray(axes * np.sign(axes[largest, np.arange(axes.shape[1])]))


def _are_in(words: Sequence[str], known: frozenset[str]) -> npt.NDArray[np.bool_]:
    return np.fromiter((word in known for word in words), dtype=np.bool_, count=len(words))


def _hash(words: object, *arrays: npt.NDArray[np.float64] | None) -> str:
    found = hashlib.sha256(repr(words).encode("utf-8", "surrogatepass"))
    for array in arrays:
        found.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
    return found.hexdigest()
