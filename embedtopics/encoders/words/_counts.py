"""Encoders of words: their base, and those that count: TF-IDF, LSA and random projections."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from embedtopics._utils.checks import checked_count, optional_count
from embedtopics._utils.display import progress_bar
from embedtopics._utils.machine import one_blas_thread
from embedtopics.encoders._base import check_texts, unit_vectors
from embedtopics.encoders._contract import BaseEncoder, arguments_of
from embedtopics.encoders.results import Encoding
from embedtopics.errors import InputError
from embedtopics.protocols import BoolArray, Float64Array, FloatArray, Segmenter
from embedtopics.results import Decision
from embedtopics.terms._counts import (
    checked_ngram_range,
    checked_stop_words,
    count_terms,
    count_words,
)
from embedtopics.terms._languages import detect_languages, main_languages
from embedtopics.terms._rules import checked_words, choose_rules, needs_languages
from embedtopics.terms._stop_words import stop_words_for
from embedtopics.terms._tokens import PLAIN, tokenize
from embedtopics.terms.results import TokenStream, WordRules

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

TEXTS_A_SLAB = 4096
"""Number of texts processed at a time."""


class WordEncoder(BaseEncoder):
    """Base of the encoders that read words; a subclass defines `_embed` and `_known`.

    One that learns defines `_learn` as well, which sets `fingerprint`; others set it when made.
    """

    _record_kind = ""
    _rules = PLAIN

    @property
    def settings(self) -> dict[str, Any]:
        """Kind and arguments from which this encoder can be made again, before it is fitted."""
        return {"kind": self._record_kind, **self._arguments}

    @property
    def learns(self) -> bool:
        """Whether the encoder learns from the corpus."""
        return type(self)._learn is not WordEncoder._learn

    @property
    def is_fitted(self) -> bool:
        """Whether the encoder can encode without a call of `fit`."""
        return self.fingerprint is not None

    def fit(self, X: Iterable[str], y: Any = None, *, show_progress: bool | None = None) -> Self:
        """Learn from texts, independent of their order.

        Parameters
        ----------
        X : iterable of str
        y : None
            Ignored by encoders that learn; the others refuse it.
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
        texts = check_texts(X)
        if self.learns:
            if not texts:
                raise InputError("texts", "at least one text to learn from", found="none")
            self._learn(sorted(texts), show_progress)
        else:
            self._refuse_examples(texts, y)
        return self

    def encode_with_report(
        self, texts: Sequence[str], *, show_progress: bool | None = None
    ) -> Encoding:
        """Return one vector per text, and how many of its words are known."""
        from scipy.sparse import issparse, vstack

        texts = check_texts(texts)
        self._check_fitted()
        blocks, reports = [], []
        with progress_bar(
            total=len(texts), unit="text", description="Encoding", show=show_progress
        ) as bar:
            # Without texts there is one empty slab, which has the number of columns.
            for begin in range(0, max(1, len(texts)), TEXTS_A_SLAB):
                tokens = self._tokenize(texts[begin : begin + TEXTS_A_SLAB])
                blocks.append(self._embed(tokens))
                reports.append(self._count(tokens))
                bar.update(len(tokens))
        embeddings = vstack(blocks, "csr") if issparse(blocks[0]) else np.concatenate(blocks)
        n_words = np.concatenate([report.n_tokens for report in reports])
        n_unknown = np.concatenate([report.n_unknown for report in reports])
        return Encoding(embeddings, n_words, n_words, n_unknown)

    def count_tokens(self, texts: Sequence[str]) -> Encoding:
        """Return how many words each text has and how many are known, without encoding."""
        self._check_fitted()
        return self._count(self._tokenize(check_texts(texts)))

    def _tokenize(self, texts: list[str]) -> TokenStream:
        return tokenize(texts, rules=self._rules)

    def _count(self, tokens: TokenStream) -> Encoding:
        is_unknown = ~self._known(tokens.words)[tokens.ids]
        unknown_before = np.concatenate([[0], np.cumsum(is_unknown, dtype=np.int64)])
        n_tokens = np.diff(tokens.offsets).astype(np.int32)
        n_unknown = np.diff(unknown_before[tokens.offsets]).astype(np.int32)
        return Encoding(np.empty((len(tokens), 0), np.float32), n_tokens, n_tokens, n_unknown)

    def _learn(self, texts: list[str], show_progress: bool | None) -> None:
        """Learn from sorted texts."""

    def _embed(self, tokens: TokenStream) -> Any:
        """Return vectors, (n_texts, n_dimensions)."""
        raise NotImplementedError

    def _known(self, words: Sequence[str]) -> BoolArray:
        """Return whether words are known, (n_words,)."""
        raise NotImplementedError


def hash_of(*parts: object) -> str:
    """Return SHA-256 of arrays and of anything else by its representation."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(repr(part).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


NEGLIGIBLE = 1e-9
"""Length of a projected text, and share of the largest singular value, below which the rest is
rounding error."""


class TfidfEncoder(WordEncoder):
    """Turn texts into TF-IDF vectors, optionally projected by latent semantic analysis.

    The weight of a term in a text is ``1 + ln(count)`` times ``ln((1 + n) / (1 + df)) + 1``, where
    `df` of the `n` texts of the fit contain the term. Vectors have length 1. scikit-learn's
    ``TfidfVectorizer`` computes the same, but terms are those of topics: `embedtopics.terms`
    leaves out stop words, numbers, single letters and, in large collections, very rare terms. With
    `all_words` nothing is left out. Classifiers and comparisons read all words if "tfidf" or "lsa"
    is named: "who" and "where" tell questions apart, "not" opinions. With
    `n_components`, vectors are projected on the first right singular vectors of the matrix of the
    fit (Deerwester et al. 1990, "Indexing by latent semantic analysis"), without centring, and
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
    words : str, list of str, or function
        Word rules, as in `TopicModel`, or their record in `settings`.
    all_words : bool
        Whether all words are terms. `stop_words` then leaves out only the words that it lists.
    random_state : int
        Seed of the randomized singular value decomposition (Halko, Martinsson and Tropp 2011,
        algorithms 4.4 and 5.1).

    Examples
    --------
    >>> encoder = TfidfEncoder(stop_words=[]).fit(["cold water", "cold coffee", "hot coffee"])
    >>> encoder.encode(["cold coffee"]).toarray().round(3).tolist()
    [[0.707..., 0.707..., 0.0, 0.0]]
    """

    _record_kind = "tfidf"

    def __init__(
        self,
        n_components: int | None = None,
        *,
        stop_words: str | Iterable[str] = "auto",
        ngram_range: Sequence[int] = (1, 1),
        words: str | Sequence[str] | Mapping[str, Any] | Segmenter = "auto",
        all_words: bool = False,
        random_state: int = 0,
    ) -> None:
        self._arguments = arguments_of(locals())
        self._all_words = bool(all_words)
        self._n_components = optional_count(n_components, "n_components")
        self._words = checked_words(words)
        self._recorded = WordRules(function=words).to_json() if callable(words) else words
        self._stop_words = checked_stop_words(stop_words)
        shortest, longest = checked_ngram_range(ngram_range)
        self._ngram_range = shortest, longest
        self.name = "tfidf" if n_components is None else "lsa"

    @property
    def settings(self) -> dict[str, Any]:
        """Kind and arguments from which this encoder can be made again, before it is fitted."""
        is_list = isinstance(self._stop_words, list)
        settings = super().settings
        if not self._all_words:  # the record of an encoder that was made before this option
            del settings["all_words"]
        return {
            **settings,
            "stop_words": sorted(set(self._stop_words)) if is_list else self._stop_words,
            "ngram_range": list(self._ngram_range),
            "words": self._recorded,
        }

    @property
    def decisions(self) -> list[Decision]:
        """What the encoder leaves out of the texts."""
        if self._all_words:
            return []
        message = (
            f"The encoder {self.name} leaves out stop words, numbers and single letters; with "
            "all_words=True it reads them."
        )
        return [Decision("encoder", "left_out", "stop words", message)]

    @property
    def dimensions(self) -> int:
        """Length of a vector, once fitted."""
        self._check_fitted()
        return len(self._column_of) if self._axes is None else self._axes.shape[1]

    def _learn(self, texts: list[str], show_progress: bool | None) -> None:
        from sklearn.feature_extraction.text import TfidfTransformer

        with_lists = "auto" in self._stop_words and not self._all_words
        stop_words = [] if isinstance(self._stop_words, str) else list(self._stop_words)
        languages: tuple[str, ...] = ()
        if with_lists or needs_languages(self._words, texts):
            languages = main_languages(detect_languages(texts))

        rules, _ = choose_rules(self._words, languages)
        if with_lists:
            stop_words += stop_words_for(languages, rules=rules)

        tokens = tokenize(texts, rules=rules)
        min_df = 1 if self._all_words else None
        counted = count_terms(
            tokens,
            ngram_range=self._ngram_range,
            min_df=min_df,
            stop_words=stop_words,
            every_word=self._all_words,
        )
        if not counted.terms:
            actual = f"none in {len(texts):,} texts after stop words"
            raise InputError("texts", "texts that share terms", found=actual)

        self._rules = rules
        self._recorded = rules.to_json()
        self._column_of = {term: column for column, term in enumerate(counted.terms)}
        # Stop words are left out on purpose and do not count as unknown.
        self._vocabulary = set(stop_words).union(*(term.split(" ") for term in counted.terms))
        self._weights = TfidfTransformer(sublinear_tf=True)
        self._axes = self._axes_of(self._weights.fit_transform(counted.counts.astype(np.float64)))
        self.fingerprint = self._digest()

    def _digest(self) -> str:
        terms = tuple(self._column_of)
        return hash_of(sorted(self.settings.items()), terms, self._weights.idf_, self._axes)

    def state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what was learned, as words and arrays, for `restore`."""
        known = {word for term in self._column_of for word in term.split(" ")}
        arrays = {"weights": self._weights.idf_}
        if self._axes is not None:
            arrays["axes"] = self._axes
        left_out = sorted(self._vocabulary - known)
        return {"words": list(self._column_of), "left_out": left_out}, arrays

    def restore(
        self, words: list[str], left_out: list[str], n_ngrams: int, arrays: Mapping[str, Any]
    ) -> None:
        """Take over what `state` returned; ValueError if its parts do not fit together."""
        from sklearn.feature_extraction.text import TfidfTransformer

        weights = np.asarray(arrays["weights"], dtype=np.float64)
        axes = arrays.get("axes")
        if words != sorted(set(words)) or weights.shape != (len(words),):
            raise ValueError("its terms do not fit their weights")
        if (axes is None) != (self._n_components is None):
            raise ValueError("its axes do not fit its settings")
        if axes is not None and (axes.ndim != 2 or len(axes) != len(words)):
            raise ValueError("its axes do not fit its terms")

        self._rules, _ = choose_rules(self._words, ())
        self._column_of = {term: column for column, term in enumerate(words)}
        self._vocabulary = set(left_out).union(*(term.split(" ") for term in words))
        self._weights = TfidfTransformer(sublinear_tf=True)
        self._weights.idf_ = weights
        self._axes = None if axes is None else np.asarray(axes, dtype=np.float64)
        self.fingerprint = self._digest()

    def _axes_of(self, weighted: csr_matrix) -> Float64Array | None:
        """Return the first right singular vectors, (n_terms, n_components)."""
        if self._n_components is None:
            return None
        from sklearn.decomposition import TruncatedSVD

        n_components = min(self._n_components, *weighted.shape)
        svd = TruncatedSVD(n_components, random_state=self._arguments["random_state"])
        with one_blas_thread():
            svd.fit(weighted)
        is_real = svd.singular_values_ > NEGLIGIBLE * svd.singular_values_[0]
        return np.ascontiguousarray(svd.components_[is_real].T)

    def _embed(self, tokens: TokenStream) -> Any:
        from scipy.sparse import csr_matrix

        counted = count_terms(
            tokens, ngram_range=self._ngram_range, min_df=1, every_word=self._all_words
        )
        columns = np.array([self._column_of.get(term, -1) for term in counted.terms], np.int64)
        positions = np.flatnonzero(columns >= 0)
        counts = counted.counts[:, positions]
        # Both are sorted alphabetically, so that columns stay sorted.
        weighted = csr_matrix(
            (counts.data.astype(np.float64), columns[positions][counts.indices], counts.indptr),
            shape=(len(tokens), len(self._column_of)),
        )
        if len(tokens):  # scikit-learn refuses a matrix without rows
            weighted = self._weights.transform(weighted, copy=False)
        if self._axes is None:
            return weighted.astype(np.float32)
        projected = np.asarray(weighted @ self._axes)
        projected[np.linalg.norm(projected, axis=1) <= NEGLIGIBLE] = 0.0
        return unit_vectors(projected)

    def _known(self, words: Sequence[str]) -> BoolArray:
        return np.fromiter((word in self._vocabulary for word in words), bool, count=len(words))


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

    Examples
    --------
    >>> encoder = RandomProjectionEncoder(dimensions=64)
    >>> one, other = encoder.encode(["the cat sat on the mat", "On the mat sat the cat!"])
    >>> bool((one == other).all())
    True
    """

    _record_kind = name = "random"

    def __init__(self, dimensions: int = 256, *, random_state: int = 0) -> None:
        self._arguments = arguments_of(locals())
        self.dimensions = checked_count(dimensions, "dimensions")
        self.fingerprint = hash_of(sorted(self.settings.items()))

    def _embed(self, tokens: TokenStream) -> FloatArray:
        salt = f"{self._arguments['random_state']}:".encode()
        n_bytes = -(-self.dimensions // 8)
        hashes = b"".join(
            hashlib.shake_128(salt + word.encode("utf-8", "surrogatepass")).digest(n_bytes)
            for word in tokens.words
        )
        bits = np.frombuffer(hashes, dtype=np.uint8).reshape(len(tokens.words), n_bytes)
        signs = 2.0 * np.unpackbits(bits, axis=1)[:, : self.dimensions] - 1.0
        # Sums of integers are exact, so that their order does not matter.
        vectors: FloatArray = unit_vectors(count_words(tokens).astype(np.float64) @ signs)
        return vectors

    def _known(self, words: Sequence[str]) -> BoolArray:
        return np.ones(len(words), dtype=np.bool_)
