"""How well the words of a topic go together in documents.

All measures read the same counts of windows or documents, and have the values of gensim's
``CoherenceModel`` on the same texts, so that they compare with published ones; the notes of `npmi`
say what habits that includes. One habit is left to gensim: it reads the first twenty words of a
topic only, unless told otherwise in ``topn``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from embedtopics.evaluation.cooccurrence import TopicCounts, count_together
from embedtopics.results import TokenStream

__all__ = ["c_uci", "c_v", "npmi", "u_mass"]

EPSILON = 1e-12

Float64Array = npt.NDArray[np.float64]


def npmi(
    topics: Sequence[Sequence[str]], tokens: TokenStream, *, window: int | None = 10
) -> Float64Array:
    """Measure the coherence of each topic by normalised pointwise mutual information.

    For two words, with probabilities over windows and e = 1e-12,

        NPMI(a, b) = log((p(a, b) + e) / (p(a) p(b))) / -log(p(a, b) + e),

    from -1 (never together) over 0 (independent) to 1 (only together); a topic's value is the
    mean over its pairs (Bouma 2009; Aletras and Stevenson 2013; Röder et al. 2015, C_NPMI).

    Parameters
    ----------
    topics : sequence of sequence of str
        The words of each topic, as the tokens write them; usually the best ten.
    tokens : TokenStream
        The reference documents, most often those that the topics came from.
    window : int or None
        Words in the sliding window, one step a word; a shorter document is one window.
        None takes whole documents.

    Returns
    -------
    float64 ndarray of shape (n_topics,)
        NaN for a topic of which the documents know fewer than two words.

    Raises
    ------
    InputError
        If `window` is below 1, or a topic is a single string.

    Notes
    -----
    The values are those of gensim's ``CoherenceModel(coherence="c_npmi")`` on the same texts,
    so that they compare with published ones. That includes three habits of gensim: words that
    no document holds are left out; a pair that is in all windows counts as -1; and when one of
    two copies of a word leaves the sliding window, both are forgotten, until a new copy enters.

    Examples
    --------
    >>> from embedtopics.results import TokenStream
    >>> stream = TokenStream(
    ...     ids=np.array([0, 1, 0, 1, 2], dtype=np.int32),
    ...     offsets=np.array([0, 2, 4, 5]),
    ...     words=("goal", "match", "tax"),
    ... )
    >>> npmi([["goal", "match"], ["goal", "tax"]], stream, window=None).round(6).tolist()
    [1.0, -0.945566]
    """
    return np.array(
        [_mean_below(_npmi(counts), counts) for counts in count_together(topics, tokens, window)],
        dtype=np.float64,
    )


def c_uci(
    topics: Sequence[Sequence[str]], tokens: TokenStream, *, window: int | None = 10
) -> Float64Array:
    """Measure the coherence of each topic by pointwise mutual information.

    The mean over all pairs of log((p(a, b) + 1e-12) / (p(a) p(b))) (Newman et al. 2010, C_UCI of
    Röder et al. 2015). It has no upper bound, and one pair that never meets weighs more than
    all others; `npmi` is the same on a scale from -1 to 1.

    Parameters
    ----------
    topics : sequence of sequence of str
    tokens : TokenStream
    window : int or None
        As for `npmi`.

    Returns
    -------
    float64 ndarray of shape (n_topics,)
        As gensim's ``CoherenceModel(coherence="c_uci")``; NaN for a topic of which the documents
        know fewer than two words.

    Raises
    ------
    InputError
        If `window` is below 1, or a topic is a single string.
    """
    return np.array(
        [_mean_below(_pmi(counts), counts) for counts in count_together(topics, tokens, window)],
        dtype=np.float64,
    )


def c_v(
    topics: Sequence[Sequence[str]], tokens: TokenStream, *, window: int | None = 110
) -> Float64Array:
    """Measure the coherence of each topic by how alike its words' company within it is.

    Each word is a vector of its NPMI with all words of the topic, itself included; the value is
    the mean cosine of these vectors with their sum (Röder, Both and Hinneburg 2015, "Exploring the
    space of topic coherence measures", C_V).

    Parameters
    ----------
    topics : sequence of sequence of str
    tokens : TokenStream
    window : int or None
        As for `npmi`; the paper's choice is 110.

    Returns
    -------
    float64 ndarray of shape (n_topics,)
        Mostly between 0 and 1. NaN for a topic of which the documents know no word.

    Raises
    ------
    InputError
        If `window` is below 1, or a topic is a single string.

    Notes
    -----
    The values are those of gensim's ``CoherenceModel(coherence="c_v")`` on the same texts. A topic
    of one known word has a value of 1 there, and here: a vector is like itself. Words that never
    meet are alike in that, too, so that topics of rare unrelated words can score high; read it
    beside `npmi`.
    """
    return np.array(
        [_mean_cosine(_npmi(counts), counts) for counts in count_together(topics, tokens, window)],
        dtype=np.float64,
    )


def u_mass(topics: Sequence[Sequence[str]], tokens: TokenStream) -> Float64Array:
    """Measure the coherence of each topic by how surely its words bring its better words along.

    With probabilities over documents, the mean over all pairs of log((p(a, b) + 1e-12) / p(b)),
    where b stands before a in the topic (Mimno et al. 2011, "Optimizing semantic coherence in
    topic models"; U_Mass of Röder et al. 2015).

    Parameters
    ----------
    topics : sequence of sequence of str
        Best first: the order matters.
    tokens : TokenStream
        The paper means the documents that the topics came from.

    Returns
    -------
    float64 ndarray of shape (n_topics,)
        0 at best. As gensim's ``CoherenceModel(coherence="u_mass")``; the paper adds one document
        to the joint count in place of 1e-12. NaN for a topic of which the documents know fewer
        than two words.

    Raises
    ------
    InputError
        If a topic is a single string.
    """
    return np.array(
        [
            _mean_below(_conditional(counts), counts)
            for counts in count_together(topics, tokens, None)
        ],
        dtype=np.float64,
    )


def _pmi(counts: TopicCounts) -> Float64Array:
    """Return the pointwise mutual information of all pairs of distinct words."""
    expected = counts.single[:, None] * counts.single[None, :]
    return np.asarray(np.log((counts.together + EPSILON) / expected))


def _npmi(counts: TopicCounts) -> Float64Array:
    return _pmi(counts) / -np.log(counts.together + EPSILON)


def _conditional(counts: TopicCounts) -> Float64Array:
    return np.asarray(np.log((counts.together + EPSILON) / counts.single[None, :]))


def _mean_below(values: Float64Array, counts: TopicCounts) -> float:
    """Return the mean over all pairs, of each word of a topic with those before it."""
    rows, columns = np.tril_indices(len(counts.order), k=-1)
    if len(rows) == 0:
        return float("nan")
    return float(np.mean(values[counts.order[rows], counts.order[columns]]))


def _mean_cosine(values: Float64Array, counts: TopicCounts) -> float:
    """Return the mean cosine of the words' vectors with the sum of these."""
    if len(counts.order) == 0:
        return float("nan")
    times = np.bincount(counts.order).astype(np.float64)
    vectors = values * times  # what a word named twice is worth to the others counts twice
    total = times @ vectors
    lengths = np.sqrt((vectors * vectors).sum(axis=1) * (total * total).sum())
    cosines = (vectors * total).sum(axis=1) / lengths
    return float((cosines * times).sum() / times.sum())
