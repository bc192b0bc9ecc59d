"""How little the topics repeat each other, and how far they are from saying nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.evaluation.cooccurrence import refuse_strings
from embedtopics.evaluation.neighbor_overlap import PERSISTENCE, extrapolated_overlap

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = [
    "Significance",
    "diversity",
    "inverted_rbo",
    "pairwise_jaccard",
    "topic_significance",
    "topic_uniqueness",
]

Float64Array = npt.NDArray[np.float64]


def diversity(topics: Sequence[Sequence[str]], n: int = 10) -> float:
    """Return the share of distinct words among the first `n` words of all topics.

    Near 1, the topics speak of different things; near 1 / n_topics, they repeat each other
    (Dieng et al. 2020).

    Parameters
    ----------
    topics : sequence of sequence of str
        Words of each topic, best first.
    n : int
        Words of each topic that count.

    Returns
    -------
    float
        In [0, 1]; NaN without any word.

    Raises
    ------
    InputError
        If `n` is below 1, or a topic is a single string.

    Examples
    --------
    >>> diversity([["tax", "cut"], ["tax", "rise"]])
    0.75
    """
    _check(topics, n)
    words = [word for topic in topics for word in topic[:n]]
    return len(set(words)) / len(words) if words else float("nan")


def topic_uniqueness(topics: Sequence[Sequence[str]], n: int = 10) -> Float64Array:
    """Return how far the words of each topic are its own.

    With c(w) the topics whose first `n` words hold the word w, the mean of 1 / c(w) over the
    words of a topic (Nan et al. 2019, "Topic modeling with Wasserstein autoencoders", TU).

    Parameters
    ----------
    topics : sequence of sequence of str
        Words of each topic, best first.
    n : int
        Words of each topic that count.

    Returns
    -------
    float64 ndarray of shape (n_topics,)
        From 1 / n_topics to 1, all words its own; NaN for a topic without words.

    Raises
    ------
    InputError
        If `n` is below 1, or a topic is a single string.

    Examples
    --------
    >>> topic_uniqueness([["tax", "cut"], ["tax", "rise"]]).tolist()
    [0.75, 0.75]
    """
    ranks = _ranks(topics, n)
    holds = ranks < n
    shared = holds.sum(axis=0)
    n_words = holds.sum(axis=1)
    worth = np.where(holds, 1.0 / np.maximum(shared, 1), 0.0).sum(axis=1)
    uniqueness = np.full(len(ranks), np.nan)
    np.divide(worth, n_words, out=uniqueness, where=n_words > 0)
    return uniqueness


def inverted_rbo(topics: Sequence[Sequence[str]], n: int = 10, p: float = PERSISTENCE) -> float:
    """Return how unlike the word lists of the topics are, the first words counting most.

    1 less the mean rank-biased overlap of all pairs of topics (Webber, Moffat and Zobel 2010,
    extrapolated, equation 32; Bianchi et al. 2021 for topics).

    Parameters
    ----------
    topics : sequence of sequence of str
        Words of each topic, best first; a word named again counts at its first place.
    n : int
        Words of each topic that count.
    p : float
        Between 0 and 1; nearer to 1, deeper ranks count more.

    Returns
    -------
    float
        From 0, all topics alike, to 1, no word in common; NaN with fewer than two topics that
        have words.

    Raises
    ------
    InputError
        If `n` is below 1, `p` is not between 0 and 1, or a topic is a single string.

    Examples
    --------
    >>> round(inverted_rbo([["tax", "cut"], ["tax", "rise"]]), 3)
    0.45
    """
    if not 0 < p < 1:
        raise InputError(f"p must be between 0 and 1; got {p!r}")
    ranks = _with_words(_ranks(topics, n), n)
    if len(ranks) < 2:
        return float("nan")
    first, second = np.triu_indices(len(ranks), k=1)
    met = np.empty((len(first), n))
    for depth in range(n):
        down_to = (ranks <= depth).astype(np.float64)
        met[:, depth] = (down_to @ down_to.T)[first, second]
    n_words = (ranks < n).sum(axis=1)
    shorter = np.minimum(n_words[first], n_words[second])
    longer = np.maximum(n_words[first], n_words[second])
    return float(1.0 - extrapolated_overlap(met, shorter, longer, p).mean())


def pairwise_jaccard(topics: Sequence[Sequence[str]], n: int = 10) -> float:
    """Return how alike the word lists of the topics are, whatever the order of the words.

    The mean over all pairs of topics of the words in both, as a share of the words in either.

    Parameters
    ----------
    topics : sequence of sequence of str
    n : int
        Words of each topic that count.

    Returns
    -------
    float
        From 0, no word in common, to 1; NaN with fewer than two topics that have words.

    Raises
    ------
    InputError
        If `n` is below 1, or a topic is a single string.

    Examples
    --------
    >>> round(pairwise_jaccard([["tax", "cut"], ["tax", "rise"]]), 3)
    0.333
    """
    ranks = _with_words(_ranks(topics, n), n)
    if len(ranks) < 2:
        return float("nan")
    holds = (ranks < n).astype(np.float64)
    first, second = np.triu_indices(len(ranks), k=1)
    shared = (holds @ holds.T)[first, second]
    sizes = holds.sum(axis=1)
    return float((shared / (sizes[first] + sizes[second] - shared)).mean())


@dataclass(frozen=True, eq=False)
class Significance:
    """How far each topic is from three that say nothing, in nats.

    Parameters
    ----------
    uniform : float64 ndarray of shape (n_topics,)
        From one that uses all words alike.
    vacuous : float64 ndarray of shape (n_topics,)
        From one that uses words as the whole collection does.
    background : float64 ndarray of shape (n_topics,), optional
        From one that is in all documents alike; None where it is not known what is in them.
    """

    uniform: Float64Array
    vacuous: Float64Array
    background: Float64Array | None = None


def topic_significance(
    topic_words: npt.ArrayLike | csr_matrix,
    document_topics: npt.ArrayLike | csr_matrix | None = None,
) -> Significance:
    """Measure how far topics are from insignificant ones.

    The Kullback-Leibler divergence of a topic's words from the uniform distribution over words and
    from the vacuous one, the mean of all topics by their size; and of its documents from the
    uniform distribution over documents (AlSumait et al. 2009, "Topic significance ranking of LDA
    generative models", section 3: W-Uniform, W-Vacuous, D-BGround). A topic near one of them is a
    mixture of everything.

    Parameters
    ----------
    topic_words : array_like or sparse matrix of shape (n_topics, n_words)
        Counts or probabilities of words in each topic, none negative; rows are scaled to sum 1.
    document_topics : array_like or sparse matrix of shape (n_documents, n_topics), optional
        Share of each topic in each document; their sums are the sizes of the topics. Without it
        the sums of `topic_words` are.

    Returns
    -------
    Significance
        NaN for a topic without words, or without documents.

    Raises
    ------
    InputError
        Where a number is negative or not finite, or the shapes do not match.
    """
    words = _nonnegative(topic_words, "topic_words")
    sizes = np.asarray(words.sum(axis=1)).ravel()
    background = None
    if document_topics is not None:
        shares = _nonnegative(document_topics, "document_topics")
        if shares.shape[1] != words.shape[0]:
            raise InputError(
                f"document_topics must have a column for each of the {words.shape[0]} topics; "
                f"got {shares.shape[1]}"
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
        raise InputError(f"{name} must hold finite numbers from 0 up, a row each; got others")
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


def _check(topics: Sequence[Sequence[str]], n: int) -> None:
    if n < 1:
        raise InputError(f"n must be at least 1 word; got {n}")
    refuse_strings(topics)


def _ranks(topics: Sequence[Sequence[str]], n: int) -> npt.NDArray[np.int64]:
    """Return the place of each word in each topic, shape (n_topics, n_words); `n` for none."""
    _check(topics, n)
    lists = [list(dict.fromkeys(topic))[:n] for topic in topics]
    number = {word: i for i, word in enumerate(dict.fromkeys(w for words in lists for w in words))}
    ranks = np.full((len(lists), len(number)), n, dtype=np.int64)
    for topic, words in enumerate(lists):
        ranks[topic, [number[word] for word in words]] = np.arange(len(words))
    return ranks


def _with_words(ranks: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.int64]:
    return ranks[(ranks < n).any(axis=1)]
