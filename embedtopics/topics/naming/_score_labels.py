"""How well the label of a topic finds its texts, and automatic labels that are chosen by it.

The vector of a label is compared with those of texts: the area under the ROC curve (AUC) is how
often a text of the topic is nearer to it than a text of one of the nearest other topics, with the
variance of DeLong, DeLong and Clarke-Pearson (1988). Every other text serves to choose a label, the
rest to score it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from embedtopics.decisions import Decision
from embedtopics.evaluation._shares import wilson
from embedtopics.protocols import Encoder, Float64Array, FloatArray
from embedtopics.terms._representative import best_terms
from embedtopics.terms._stop_words import stems_of
from embedtopics.terms._tokens import words_of
from embedtopics.topics._describe import languages_of
from embedtopics.topics._vectors import (
    cosines,
    encode_uncached,
    encoder_of_fit,
    row_centroids,
)
from embedtopics.topics.results import Topic, TopicResult

N_TEXTS = 300
"""Texts of a topic, and of its siblings together, that are compared with its labels."""
N_SIBLINGS = 3
FEWEST_TEXTS = 8
"""Of a topic, and of its siblings; fewer tell nothing of half of them."""
N_PHRASES = 6
CERTAIN = 1.645
"""Standard errors by which a label must beat the keywords (95 %, one-sided). On four corpora (BBC
News, AG News, M10, MasakhaNEWS in English) three in five labels change, and 2 % of these topics
then have one that is worse on the other texts; with 0, nearly all change, and 13 % are worse."""

_CLAUSE = re.compile(r"\s*([^\W\d](?:[^\W\d]|[ '\u2019-]){1,59})(?:[.:;!?\n]|$)")
"""The first clause of a text, of letters: what may stand in a label whoever wrote the text."""
WORDS_OF_CLAUSE = range(2, 9)

Encode = Callable[[Sequence[str]], FloatArray]


def score_labels(result: TopicResult, encoder: Encoder | str | None = None) -> TopicResult:
    """Measure how well the labels of topics find their texts among those of sibling topics.

    A fit whose texts an encoder of this package encodes does it, and chooses labels by it: of the
    first two to five keywords, phrases among the terms, and first clauses of representative texts
    that hold two keywords, the best that beats the first three keywords by more than chance. Names
    that were given since, by hand or by a language model, and topics that edits made, have no score
    before this is called.

    Parameters
    ----------
    result : TopicResult
    encoder : Encoder, str or None
        By default that of the fit, made again.

    Returns
    -------
    TopicResult
        With `label_auc` and `keywords_auc` of its topics, which `table` shows. A decision lists
        the topics whose label is worse than their keywords.

    Raises
    ------
    InputError
        Where the encoder cannot be made again or does not match.

    Examples
    --------
    >>> named = rename(result, {0: "Elections"})  # doctest: +SKIP
    >>> score_labels(named).topics[0].label_auc  # doctest: +SKIP
    (0.93, 0.89, 0.96)
    """
    asked = encoder_of_fit(result, encoder)
    width = result.embeddings.shape[1]
    return scored_labels(result, lambda texts: encode_uncached(asked, texts, width), choose=False)


def scored_labels(result: TopicResult, encode: Encode, *, choose: bool) -> TopicResult:
    """Score labels, and choose the automatic ones where wanted, with an encoder of texts."""
    topics = list(result.topics)
    taken = {topic.label for topic in topics}
    for topic, own, others in _compared(result):
        may_change = choose and not (topic.is_named or topic.is_seeded)
        texts = _candidates(result, topic, may_change)
        vectors = encode(texts)
        chosen = texts.index(topic.label)
        if may_change:
            free = [i for i, text in enumerate(texts) if i == chosen or text not in taken]
            chosen = _best(_wins(vectors, own[::2], others[::2]), free, chosen)
        taken.add(texts[chosen])
        scored = _wins(vectors[[0, chosen]], own[1::2], others[1::2])
        topics[topic.topic_id] = dataclasses.replace(
            topic,
            label=texts[chosen],
            label_auc=_with_interval(*scored[1]),
            keywords_auc=float(scored[0][0].mean()),
        )
    decisions = tuple(one for one in result.decisions if one.name != "labels_worse")
    if worse := [topic for topic in topics if topic.is_label_worse]:
        named = ", ".join(f"{topic.topic_id} {topic.label!r}" for topic in worse)
        message = f"Labels that find the texts of their topic worse than its keywords do: {named}."
        ids = [topic.topic_id for topic in worse]
        decisions = (*decisions, Decision("topics", "labels_worse", ids, message))
    return dataclasses.replace(result, topics=tuple(topics), decisions=decisions)


def _compared(result: TopicResult) -> Iterator[tuple[Topic, FloatArray, FloatArray]]:
    """Yield topics with the vectors of some texts of theirs, and of their siblings."""
    if result.n_topics < 2:
        return
    means = row_centroids(result)
    near = cosines(means, means)
    np.fill_diagonal(near, -np.inf)
    siblings = np.argsort(-near, axis=1, kind="stable")[:, : min(N_SIBLINGS, result.n_topics - 1)]
    labels, vectors = result.clustering.labels, result.embeddings
    for topic, others in zip(result.topics, siblings.tolist(), strict=True):
        # Documents are ordered by a hash of their content, so that the first are a fair sample.
        own = np.flatnonzero(labels == topic.topic_id)[:N_TEXTS]
        some = [np.flatnonzero(labels == other)[: N_TEXTS // len(others)] for other in others]
        if topic.keywords and min(len(own), sum(map(len, some))) >= FEWEST_TEXTS:
            yield topic, vectors[own], vectors[np.concatenate(some)]


Wins = tuple[Float64Array, Float64Array]


def _wins(labels: FloatArray, own: FloatArray, others: FloatArray) -> list[Wins]:
    """Return for each label how often each own text is nearer than others, and over each other."""
    # einsum and not BLAS, whose last bits depend on the number of threads.
    near, far = (np.einsum("id,jd->ij", labels, texts) for texts in (own, others))
    compared = (np.sign(a[:, None] - b[None, :]) / 2 + 0.5 for a, b in zip(near, far, strict=True))
    return [(nearer.mean(axis=1), nearer.mean(axis=0)) for nearer in compared]


def _candidates(result: TopicResult, topic: Topic, may_change: bool) -> list[str]:
    """Return the first three keywords, the label, and what else it could be."""
    words, counts = topic.keywords, result.term_counts
    texts = [", ".join(words[:3]), topic.label]
    if may_change:
        texts += [", ".join(words[:n]) for n in (2, 4, 5)]
        best = best_terms(result.topic_terms[topic.topic_id], counts, N_PHRASES, (2, 9))[0][0]
        for phrase in [*(w for w in words if " " in w), *(counts.terms[i] for i in best.tolist())]:
            others = [word for word in words if set(word.split()).isdisjoint(phrase.split())]
            texts += [phrase, ", ".join([phrase, *others[:1]])]
        texts += filter(None, (_clause(result, topic, row) for row in topic.representatives))
    return list(dict.fromkeys(texts))


def _clause(result: TopicResult, topic: Topic, row: int) -> str | None:
    """Return the first clause of a text where it is short, and holds two keywords."""
    found = _CLAUSE.match(result.corpus.texts[row])
    clause = found[1].strip() if found else ""
    words = words_of(clause, result.tokens.rules)
    if len(words) not in WORDS_OF_CLAUSE:
        return None
    languages = languages_of(result)
    known = {stem for term in topic.keywords for stem in stems_of(term, languages)[0]}
    return clause if len(known & set(stems_of(" ".join(words), languages)[0])) > 1 else None


def _best(wins: Sequence[Wins], free: Sequence[int], kept: int) -> int:
    """Return the best of the free labels that are better than the first by more than chance."""
    best, highest = kept, -np.inf
    for i in free:
        own, others = (mine - first for mine, first in zip(wins[i], wins[0], strict=True))
        if own.mean() > CERTAIN * _error(own, others) and own.mean() > highest:
            best, highest = i, own.mean()
    return best


def _error(own: Float64Array, others: Float64Array) -> float:
    """Return DeLong's standard error of an AUC, or of a difference of two."""
    return float(np.sqrt(own.var(ddof=1) / len(own) + others.var(ddof=1) / len(others)))


def _with_interval(own: Float64Array, others: Float64Array) -> tuple[float, float, float]:
    """Return an AUC with Wilson's interval, for as many trials as have its variance."""
    auc, error, n = float(own.mean()), _error(own, others), min(len(own), len(others))
    trials = auc * (1 - auc) / error**2 if error > 1e-9 and 0 < auc < 1 else n
    low, high = wilson(auc * trials, trials)
    return auc, float(low), float(high)
