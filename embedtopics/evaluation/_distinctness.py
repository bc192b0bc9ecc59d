"""Diversity of the words of topics, and their distance from insignificant topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, checked_level
from embedtopics.errors import InputError
from embedtopics.evaluation._coherence import refuse_strings
from embedtopics.evaluation._maps import PERSISTENCE, extrapolated_overlap
from embedtopics.evaluation.results import Significance
from embedtopics.protocols import Float64Array, Int64Array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def diversity(topics: Sequence[Sequence[str]], n_terms: int = 10) -> float:
    """Return the share of distinct words among the first words of all topics.

    Values near 1 mean different words; values near 1 / n_topics mean equal words (Dieng et al.
    2020).

    Parameters
    ----------
    topics : sequence of sequence of str
        Words of each topic, best first.
    n_terms : int
        Words of each topic that are compared.

    Returns
    -------
    float
        In [0, 1]; NaN without any word.

    Raises
    ------
    InputError
        If `n_terms` is below 1, or a topic is a single string.

    Examples
    --------
    >>> diversity([["tax", "cut"], ["tax", "rise"]])
    0.75
    """
    _check(topics, n_terms)
    words = [word for topic in topics for word in topic[:n_terms]]
    return len(set(words)) / len(words) if words else float("nan")


def topic_uniqueness(topics: Sequence[Sequence[str]], n_terms: int = 10) -> Float64Array:
    """Return the mean of 1 / c(w) over the words of each topic, (n_topics,); NaN without words.

    c(w) counts the topics with w among their first words (Nan et al. 2019, "Topic modeling with
    Wasserstein autoencoders", TU).
    """
    ranks = _ranks(topics, n_terms)
    holds = ranks < n_terms
    shared = holds.sum(axis=0)
    n_words = holds.sum(axis=1)
    worth = np.where(holds, 1.0 / np.maximum(shared, 1), 0.0).sum(axis=1)
    uniqueness = np.full(len(ranks), np.nan)
    np.divide(worth, n_words, out=uniqueness, where=n_words > 0)
    return uniqueness


def inverted_rbo(
    topics: Sequence[Sequence[str]], n_terms: int = 10, p: float = PERSISTENCE
) -> float:
    """Return 1 minus the mean rank-biased overlap of all pairs of topics.

    The first words have the largest weight (Webber, Moffat and Zobel 2010, extrapolated, equation
    32; Bianchi et al. 2021 for topics).

    Parameters
    ----------
    topics : sequence of sequence of str
        Words of each topic, best first; a repeated word has its first rank.
    n_terms : int
        Words of each topic that are compared.
    p : float
        Between 0 and 1; larger values give deeper ranks more weight.

    Returns
    -------
    float
        From 0 (equal topics) to 1 (no common words); NaN for fewer than two topics with words.

    Raises
    ------
    InputError
        If `n_terms` is below 1, `p` is not between 0 and 1, or a topic is a single string.

    Examples
    --------
    >>> round(inverted_rbo([["tax", "cut"], ["tax", "rise"]]), 3)
    0.45
    """
    checked_level(p, "p")
    ranks = _with_words(topics, n_terms)
    if len(ranks) < 2:
        return float("nan")
    first, second = np.triu_indices(len(ranks), k=1)
    met = np.empty((len(first), n_terms))
    for depth in range(n_terms):
        down_to = (ranks <= depth).astype(np.float64)
        met[:, depth] = (down_to @ down_to.T)[first, second]
    n_words = (ranks < n_terms).sum(axis=1)
    shorter = np.minimum(n_words[first], n_words[second])
    longer = np.maximum(n_words[first], n_words[second])
    return float(1.0 - extrapolated_overlap(met, shorter, longer, p).mean())


def pairwise_jaccard(topics: Sequence[Sequence[str]], n_terms: int = 10) -> float:
    """Return the mean Jaccard overlap of the words of two topics, over all pairs of topics."""
    ranks = _with_words(topics, n_terms)
    if len(ranks) < 2:
        return float("nan")
    holds = (ranks < n_terms).astype(np.float64)
    first, second = np.triu_indices(len(ranks), k=1)
    shared = (holds @ holds.T)[first, second]
    sizes = holds.sum(axis=1)
    return float((shared / (sizes[first] + sizes[second] - shared)).mean())


def topic_significance(
    topic_words: npt.ArrayLike | csr_matrix,
    document_topics: npt.ArrayLike | csr_matrix | None = None,
) -> Significance:
    """Measure the Kullback-Leibler divergence of topics from insignificant ones.

    AlSumait et al. 2009, "Topic significance ranking of LDA generative models", section 3:
    W-Uniform, W-Vacuous, D-BGround.
    """
    words = _nonnegative(topic_words, "topic_words")
    sizes = np.asarray(words.sum(axis=1)).ravel()
    background = None
    if document_topics is not None:
        shares = _nonnegative(document_topics, "document_topics")
        if shares.shape[1] != words.shape[0]:
            raise InputError(
                "document_topics",
                f"a column for each of the {words.shape[0]} topics",
                found=f"{shares.shape[1]}",
            )
        sizes = np.asarray(shares.sum(axis=0)).ravel()
        n_documents = max(shares.shape[0], 1)
        background = _divergences(shares.T.tocsr(), np.full(n_documents, 1.0 / n_documents))
    n_words = max(words.shape[1], 1)
    totals = np.asarray(words.sum(axis=1)).ravel()
    weight = np.where(totals > 0, sizes / np.where(totals > 0, totals, 1.0), 0.0)
    mean = np.asarray(weight @ words).ravel()
    vacuous = mean / (mean.sum() or 1.0)
    return Significance(
        uniform=_divergences(words, np.full(n_words, 1.0 / n_words)),
        vacuous=np.where(sizes > 0, _divergences(words, vacuous), np.nan),
        background=background,
    )


def _nonnegative(values: Any, name: str) -> Any:
    from scipy.sparse import csr_matrix

    matrix = csr_matrix(values, dtype=np.float64)
    if matrix.ndim != 2 or not np.isfinite(matrix.data).all() or (matrix.data < 0).any():
        raise InputError(name, "finite numbers from 0 up, a row each")
    return matrix


def _divergences(rows: Any, other: Float64Array) -> Float64Array:
    """Return the divergence of each row, scaled to sum 1, from a distribution; NaN for empty."""
    totals = np.asarray(rows.sum(axis=1)).ravel()
    of_entry = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    used = rows.data > 0
    share = rows.data[used] / totals[of_entry[used]]
    with np.errstate(divide="ignore"):  # infinitely far from what lacks one of its words
        terms = share * np.log(share / other[rows.indices[used]])
    sums = np.bincount(of_entry[used], terms, minlength=rows.shape[0])
    return np.where(totals > 0, np.maximum(sums, 0.0), np.nan)


def _check(topics: Sequence[Sequence[str]], n_terms: int) -> None:
    checked_count(n_terms, "n_terms")
    refuse_strings(topics)


def _ranks(topics: Sequence[Sequence[str]], n: int) -> Int64Array:
    """Return the rank of each word in each topic, shape (n_topics, n_words); `n` for none."""
    _check(topics, n)
    lists = [list(dict.fromkeys(topic))[:n] for topic in topics]
    number = {word: i for i, word in enumerate(dict.fromkeys(w for words in lists for w in words))}
    ranks = np.full((len(lists), len(number)), n, dtype=np.int64)
    for topic, words in enumerate(lists):
        ranks[topic, [number[word] for word in words]] = np.arange(len(words))
    return ranks


def _with_words(topics: Sequence[Sequence[str]], n: int) -> Int64Array:
    ranks = _ranks(topics, n)
    return ranks[(ranks < n).any(axis=1)]


class WordVectors(Protocol):
    """Vectors by word: a mapping, gensim's ``KeyedVectors``, or the like."""

    def __contains__(self, word: Any, /) -> bool:
        """Return whether a word has a vector."""
        ...

    def __getitem__(self, word: Any, /) -> Any:
        """Return the vector of a word."""
        ...


def word_embedding_coherence(
    topics: Sequence[Sequence[str]], vectors: WordVectors, n_terms: int = 10
) -> tuple[Float64Array, Int64Array]:
    """Measure the coherence of each topic by the mean cosine of its words' vectors.

    Word vectors from other texts know relations that a small collection cannot show (Fang et al.
    2016, "Using word embedding to evaluate the coherence of topics from Twitter data"; Ding et al.
    2018); word vectors from the result itself measure how compact its topics are.

    Parameters
    ----------
    topics : sequence of sequence of str
        Words of each topic, best first.
    vectors : mapping of str to array_like
        Vectors of one length, or gensim's ``KeyedVectors``.
    n_terms : int
        Words of each topic that count.

    Returns
    -------
    coherence : float64 ndarray of shape (n_topics,)
        Mean over all pairs, from -1 to 1; NaN if fewer than two words have a vector.
    n_missing : int64 ndarray of shape (n_topics,)
        Number of words of each topic without a vector, or with a zero vector; they are left out.

    Raises
    ------
    InputError
        If `n_terms` is below 1, a topic is a single string, or a vector is not finite or of
        another length than the first.

    Examples
    --------
    >>> vectors = {"tax": [1.0, 0.0], "cut": [1.0, 0.0], "goal": [0.0, 2.0]}
    >>> coherence, n_missing = word_embedding_coherence([["tax", "cut", "goal", "x"]], vectors)
    >>> coherence.round(3).tolist(), n_missing.tolist()
    ([0.333], [1])
    """
    _check(topics, n_terms)
    unit: dict[str, Float64Array] = {}
    width = None
    for word in dict.fromkeys(word for topic in topics for word in topic[:n_terms]):
        if word not in vectors:
            continue
        vector = np.asarray(vectors[word], dtype=np.float64)
        width = vector.shape if width is None else width
        if vector.ndim != 1 or vector.shape != width or not np.isfinite(vector).all():
            raise InputError(
                "vectors", f"finite and all of shape {width}", found=f"{vector.shape} for {word!r}"
            )
        length = np.sqrt(np.einsum("i,i->", vector, vector))
        if length > 0:
            unit[word] = vector / length
    coherence, n_missing = [], []
    for topic in topics:
        units = [unit[word] for word in topic[:n_terms] if word in unit]
        coherence.append(_mean_cosine(units))
        n_missing.append(len(topic[:n_terms]) - len(units))
    return np.array(coherence, dtype=np.float64), np.array(n_missing, dtype=np.int64)


def _mean_cosine(unit: list[Float64Array]) -> float:
    if len(unit) < 2:
        return float("nan")
    rows = np.array(unit)
    # Not `@`: BLAS may round differently with another number of threads.
    cosines = np.einsum("id,jd->ij", rows, rows)
    return float(cosines[np.triu_indices(len(unit), k=1)].mean())
