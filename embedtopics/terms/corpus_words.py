"""Words that a corpus uses in all topics alike, found by a statistic instead of a list."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.results import TokenStream
from embedtopics.terms.counts import count_by_topic, count_words

__all__ = ["function_words"]

_CONFIDENCE = 1.645
"""Standard errors from the estimate to its upper bound (95%, one-sided)."""


def function_words(
    tokens: TokenStream,
    labels: npt.ArrayLike,
    *,
    min_share: float = 0.1,
    max_information: float = 0.015,
) -> tuple[str, ...]:
    """Find frequent words whose presence says almost nothing about the topic.

    Stop-word lists know a language; this knows the corpus: *like, just, know* in a forum,
    *said* in the news, and the articles of a language without a list. With X the presence of a
    word in a document, T the document's topic (one of K), N documents, and all sums over the
    four kinds of cells of the table X by T,

        I = sum p(x, t) log(p(x, t) / (p(x) p(t)))           mutual information, in nats
        b = (K - 1) / 2N                                      its bias (Miller and Madow 1955)
        s = sqrt(v / N + (K - 1) / 2N²)                       its standard error
        U = (max(0, I - b) + 1.645 s) / (H(X) log K),

    where v is the variance of log(p(x, t) / (p(x) p(t))) over the documents; the second part of
    s is what remains of it under independence, where 2NI follows a chi-square distribution with
    K - 1 degrees of freedom. U bounds from above the share of the word's entropy H that the
    topic explains (H at least that of a word at `min_share`, so that words in nearly all
    documents are measured alike); log K makes up for that finer topics explain more. A word is a
    function word if at least `min_share` of the documents hold it and U < `max_information`.
    Because the bound is compared and not the estimate, few documents can only keep words.

    The defaults were set on English news and forum posts with 4 to 100 topics. In the forum
    *like, just, know* and *time* have U from 0.002 to 0.009, *people* 0.04, and words that name
    topics, such as *windows* or *god*, 0.05 to 0.09.

    Parameters
    ----------
    tokens : TokenStream
    labels : array_like of int, shape (n_documents,)
        Topic of each document; negative labels (noise) are left out.
    min_share : float
        Least share of the documents in topics that hold the word.
    max_information : float
        Bound on U.

    Returns
    -------
    tuple of str
        Sorted; empty with fewer than two topics.

    Raises
    ------
    InputError
        If there is not one label a document, or `min_share` is not between 0 and 0.5.
    """
    topic = np.asarray(labels)
    if topic.shape != (len(tokens),):
        raise InputError(
            f"labels must have one entry for each of the {len(tokens)} documents; "
            f"got shape {topic.shape}"
        )
    if not 0 < min_share <= 0.5:
        raise InputError(f"min_share must be above 0 and at most 0.5; got {min_share!r}")
    members = np.flatnonzero(topic >= 0)
    numbered = np.unique(topic[members], return_inverse=True)[1]
    sizes = np.bincount(numbered)
    if len(sizes) < 2:
        return ()
    presence = count_words(tokens)[members]
    presence.data[:] = 1
    holders = np.bincount(presence.indices, minlength=presence.shape[1])
    candidates = np.flatnonzero(holders >= max(1.0, min_share * len(members)))
    held = count_by_topic(presence[:, candidates], numbered).toarray()
    bound = _information_bound(held, sizes, _entropy(np.array([min_share])).max())
    return tuple(tokens.words[i] for i in candidates[bound < max_information].tolist())


def _information_bound(
    held: npt.NDArray[np.float64], sizes: npt.NDArray[Any], least_entropy: float
) -> npt.NDArray[np.float64]:
    """Return U for each word; `held` (n_topics, n_words) counts the documents that hold it."""
    n_topics, n_documents = len(sizes), int(sizes.sum())
    share_of_topic = (sizes / n_documents)[:, None]
    mean = np.zeros(held.shape[1])
    mean_square = np.zeros(held.shape[1])
    for cell in (held / n_documents, share_of_topic - held / n_documents):
        # An empty cell adds nothing: p log p tends to 0.
        expected = share_of_topic * cell.sum(axis=0)
        ratio = np.log(np.divide(cell, expected, out=np.ones_like(cell), where=cell > 0))
        mean += (cell * ratio).sum(axis=0)
        mean_square += (cell * ratio**2).sum(axis=0)
    freedom = n_topics - 1
    variance = np.maximum(mean_square - mean**2, 0.0)
    error = np.sqrt(variance / n_documents + freedom / (2 * n_documents**2))
    information = np.maximum(mean - freedom / (2 * n_documents), 0.0) + _CONFIDENCE * error
    entropy = np.maximum(_entropy(held.sum(axis=0) / n_documents), least_entropy)
    bound: npt.NDArray[np.float64] = information / (entropy * np.log(n_topics))
    return bound


def _entropy(share: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the entropy, in nats, of an event with this probability."""
    from scipy.special import entr

    entropy: npt.NDArray[np.float64] = entr(share) + entr(1 - share)
    return entropy
