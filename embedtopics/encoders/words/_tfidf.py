"""TF-IDF, latent semantic analysis and random projections: baselines that count words."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, optional_count
from embedtopics.corpus._languages import detect_languages, main_languages
from embedtopics.encoders._contract import arguments_of
from embedtopics.encoders.words._base import LearningEncoder, WordEncoder, to_unit, to_unit_sparse
from embedtopics.errors import InputError, Remedy
from embedtopics.protocols import FloatArray, Segmenter
from embedtopics.terms._counts import (
    checked_ngram_range,
    checked_stop_words,
    count_terms,
    count_words,
)
from embedtopics.terms._rules import checked_words, choose_rules, needs_languages
from embedtopics.terms._stop_words import stop_words_for
from embedtopics.terms._tokens import tokenize
from embedtopics.terms.results import TokenStream, WordRules

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


NEGLIGIBLE = 1e-9
"""Length of a projected text, and share of the largest singular value, below which the rest is
rounding error."""


@dataclass(frozen=True, eq=False)
class _TfidfState:
    """Fitted state: terms, their weights, and axes of shape (n_terms, n_components)."""

    column_of: dict[str, int]
    words: frozenset[str]
    idf: npt.NDArray[np.float64]
    axes: npt.NDArray[np.float64] | None
    fingerprint: str


class TfidfEncoder(LearningEncoder):
    """Turn texts into TF-IDF vectors, optionally projected by latent semantic analysis.

    The weight of a term in a text is its count, or ``1 + ln(count)``, times
    ``ln((1 + n) / (1 + df)) + 1``, where `df` of the `n` texts of the fit contain the term. Vectors
    have length 1. scikit-learn's ``TfidfVectorizer`` computes the same, but terms are those of
    topics: `embedtopics.terms.tokenize` and `count_terms` leave out numbers and single letters.
    With `n_components`, vectors are projected on the first right singular vectors of the matrix of
    the fit (Deerwester et al. 1990, "Indexing by latent semantic analysis"), without centring, and
    scaled to length 1 again.

    The fit depends neither on the order of the texts nor on the number of threads.

    Parameters
    ----------
    n_components : int, optional
        Number of dimensions of the projection, at most the number of texts or terms. None returns
        sparse vectors with one column for each term.
    stop_words : "auto" or sequence of str
        Words that are left out. "auto", alone or in the sequence, adds the lists of the languages
        of the texts.
    ngram_range : (int, int)
        Minimum and maximum number of words of a term.
    min_df, max_df : int, float or None
        Minimum and maximum number of texts that contain a term; a float is a share. None chooses
        the minimum by the number of texts, as in `embedtopics.terms.count_terms`.
    max_features : int, optional
        Maximum number of terms; terms in most texts are kept.
    sublinear_tf : bool
        Whether counts are replaced by one plus their logarithm.
    words : str, list of str, or function
        Word rules, as in `TopicModel`, or their record in `settings`.
    random_state : int
        Seed of the randomized singular value decomposition (Halko, Martinsson and Tropp 2011,
        algorithms 4.4 and 5.1).

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

    _kind = "tfidf"

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
        words: str | Sequence[str] | Mapping[str, Any] | Segmenter = "auto",
        random_state: int = 0,
    ) -> None:
        self._arguments = arguments_of(locals())
        self._words = checked_words(words)
        optional_count(n_components, "n_components")
        optional_count(max_features, "max_features")
        checked_count(random_state, "random_state", 0)
        stop_words = checked_stop_words(stop_words)
        self._settings: dict[str, Any] = {
            **self._arguments,
            "stop_words": stop_words if isinstance(stop_words, str) else sorted(set(stop_words)),
            "ngram_range": checked_ngram_range(ngram_range),
            "sublinear_tf": bool(sublinear_tf),
            "random_state": int(random_state),
        }
        del self._settings["words"]
        self._settings |= _recorded(words)

    def __repr__(self) -> str:
        return f"TfidfEncoder(n_components={self._settings['n_components']})"

    @property
    def name(self) -> str:
        """Name under which the encoder can be chosen: "tfidf", or "lsa" with a projection."""
        return "tfidf" if self._settings["n_components"] is None else "lsa"

    @property
    def dimensions(self) -> int:
        """Length of a vector, once fitted."""
        learned = self._fitted()
        return len(learned.idf) if learned.axes is None else int(learned.axes.shape[1])

    def _learn(self, texts: list[str], show_progress: bool | None) -> _TfidfState:
        settings = {name: value for name, value in self._settings.items() if name != "words"}
        choice = settings["stop_words"]
        stop_words = [] if isinstance(choice, str) else [word for word in choice if word != "auto"]
        languages: tuple[str, ...] = ()
        if "auto" in choice or needs_languages(self._words, texts):
            languages = main_languages(detect_languages(texts))
        rules, _ = choose_rules(self._words, languages)
        if "auto" in choice:
            stop_words += stop_words_for(languages, rules=rules)
        counted = count_terms(
            tokenize(texts, rules=rules),
            ngram_range=settings["ngram_range"], min_df=settings["min_df"],
            max_df=settings["max_df"], stop_words=stop_words, max_terms=settings["max_features"],
        )  # fmt: skip
        if not counted.terms:
            actual = f"none in {len(texts):,} texts after stop words, min_df and max_df"
            remedy = Remedy("min_df", 1, "give more texts")
            raise InputError("texts", "texts that share terms", found=actual, remedy=remedy)
        n_holders = np.bincount(counted.counts.indices, minlength=len(counted.terms))
        idf = np.log((1 + len(texts)) / (1 + n_holders)) + 1
        axes = self._axes(self._weigh(counted.counts, idf))
        self._rules, self._settings = rules, settings | _recorded(rules)
        return _TfidfState(
            column_of={term: column for column, term in enumerate(counted.terms)},
            # Stop words are left out on purpose and do not count as unknown.
            words=frozenset(stop_words).union(*(term.split(" ") for term in counted.terms)),
            idf=idf,
            axes=axes,
            fingerprint=_hash((sorted(self.settings.items()), counted.terms), idf, axes),
        )

    def _embed(self, tokens: TokenStream) -> tuple[Any, npt.NDArray[np.bool_]]:
        learned = self._fitted()
        weighed = self._weigh(self._count(tokens, learned), learned.idf)
        vectors: Any = weighed.astype(np.float32)
        if learned.axes is not None:
            vectors = to_unit(np.asarray(weighed @ learned.axes), NEGLIGIBLE)
        return vectors, self._known(tokens.words)

    def _known(self, words: Sequence[str]) -> npt.NDArray[np.bool_]:
        vocabulary = self._fitted().words
        return np.fromiter((word in vocabulary for word in words), dtype=np.bool_, count=len(words))

    def _count(self, tokens: TokenStream, learned: _TfidfState) -> csr_matrix:
        """Count the known terms, shape (n_texts, n_terms)."""
        from scipy.sparse import csr_matrix

        counted = count_terms(tokens, ngram_range=self._settings["ngram_range"], min_df=1)
        columns = np.array([learned.column_of.get(term, -1) for term in counted.terms], np.int64)
        positions = np.flatnonzero(columns >= 0)
        counts = counted.counts[:, positions]
        # Both are sorted alphabetically, so that columns stay sorted.
        return csr_matrix(
            (counts.data, columns[positions][counts.indices], counts.indptr),
            shape=(len(tokens), len(learned.idf)),
        )

    def _weigh(self, counts: csr_matrix, idf: npt.NDArray[np.float64]) -> csr_matrix:
        weighed = counts.astype(np.float64)
        if self._settings["sublinear_tf"]:
            weighed.data = 1.0 + np.log(weighed.data)
        weighed.data *= idf[weighed.indices]
        return to_unit_sparse(weighed)

    def _axes(self, weighed: csr_matrix) -> npt.NDArray[np.float64] | None:
        """Return the first right singular vectors, with the largest entry of each positive."""
        n_components = self._settings["n_components"]
        if n_components is None:
            return None
        from sklearn.utils.extmath import randomized_svd
        from threadpoolctl import threadpool_limits

        # On one thread: the order in which BLAS sums depends on how many it has.
        with threadpool_limits(limits=1, user_api="blas"):
            _, strengths, axes = randomized_svd(
                weighed,
                min(n_components, *weighed.shape),
                random_state=self._settings["random_state"],
            )
        axes = axes[strengths > NEGLIGIBLE * strengths[0]].T
        largest = np.abs(axes).argmax(axis=0)
        return np.ascontiguousarray(axes * np.sign(axes[largest, np.arange(axes.shape[1])]))


def _recorded(words: Any) -> dict[str, Any]:
    """Return the setting `words`; it is left out for "characters"."""
    rules = WordRules(function=words) if callable(words) else words
    words = rules.to_json() if isinstance(rules, WordRules) else rules
    return {} if words in ({}, "characters") else {"words": words}


def _hash(words: object, *arrays: npt.NDArray[np.float64] | None) -> str:
    digest = hashlib.sha256(repr(words).encode("utf-8", "surrogatepass"))
    for array in arrays:
        digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


class RandomProjectionEncoder(WordEncoder):
    """Turn texts into random projections of their word counts.

    This is a baseline, which other encoders should beat. Every word has a vector of random signs,
    derived from a hash of the word and the seed. The vector of a text is the sum of its words'
    vectors, scaled to length 1. Cosines equal those of word counts on average, with a
    standard deviation below ``sqrt(2 / dimensions)`` (Achlioptas 2003, "Database-friendly random
    projections: Johnson-Lindenstrauss with binary coins"). A word has the same vector in every
    process and on every machine.

    Parameters
    ----------
    dimensions : int
    random_state : int
        Seed of the signs.

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

    _kind = "random"

    def __init__(self, dimensions: int = 256, *, random_state: int = 0) -> None:
        self._arguments = arguments_of(locals())
        self._dimensions = checked_count(dimensions, "dimensions")
        self._random_state = checked_count(random_state, "random_state", 0)
        self._settings = {"dimensions": self._dimensions, "random_state": self._random_state}

    def __repr__(self) -> str:
        return f"RandomProjectionEncoder({self._dimensions}, random_state={self._random_state})"

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return self._dimensions

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything that a vector depends on."""
        return hashlib.sha256(repr(sorted(self.settings.items())).encode()).hexdigest()

    def _embed(self, tokens: TokenStream) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        # Sums of integers are exact, so that their order does not matter.
        sums = np.asarray(count_words(tokens).astype(np.float64) @ self._signs(tokens.words))
        return to_unit(sums), self._known(tokens.words)

    def _known(self, words: Sequence[str]) -> npt.NDArray[np.bool_]:
        return np.ones(len(words), dtype=np.bool_)

    def _signs(self, words: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return vectors of 1 and -1 for words, shape (n_words, n_dimensions)."""
        n_bytes = -(-self._dimensions // 8)
        salt = f"{self._random_state}:".encode()
        drawn = b"".join(
            hashlib.shake_128(salt + word.encode("utf-8", "surrogatepass")).digest(n_bytes)
            for word in words
        )
        bits = np.frombuffer(drawn, dtype=np.uint8).reshape(len(words), n_bytes)
        signs = np.unpackbits(bits, axis=1)[:, : self._dimensions].astype(np.float64)
        signs *= 2.0
        signs -= 1.0
        return signs
