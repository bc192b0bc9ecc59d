"""Scores of how well a label finds the texts of its topic, and the choice of automatic labels.

The score of a label is an area under the ROC curve (AUC): the probability that a text of the topic
is nearer to the vector of the label than a text of a sibling, one of the nearest other topics. Its
variance is that of DeLong, DeLong and Clarke-Pearson (1988). Every second text serves to choose a
label, the others to score it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from embedtopics.decisions import Decision
from embedtopics.evaluation._bootstrap import wilson
from embedtopics.protocols import Encoder, Float64Array, FloatArray
from embedtopics.terms._keywords import document_lifts
from embedtopics.terms._representative import best_terms
from embedtopics.topics._vectors import cosines, encode_uncached, encoder_of_fit, row_centroids
from embedtopics.topics.results import Topic, TopicResult

N_TEXTS = 300  # of a topic, and of its siblings together
N_SIBLINGS = 3
MIN_TEXTS = 8
"""Minimum number of texts of a topic, and of its siblings; half of them score the label."""
N_PHRASES = 6
CERTAIN = 1.645
"""Standard errors by which a label must beat the keywords (95 %, one-sided). With all phrases as
candidates, on four corpora, 2 % of changed labels are worse on the other texts; with 0, 13 %."""

MIN_COVERAGE = 1 / 6
"""Share of the texts of a topic that hold the first term of a label that replaces the keywords. By
multilingual E5, 68 % of such labels are nearest to the name of the class of their topic (ten sets);
66 % with terms that fewer texts hold, and 67 % of first three keywords."""

MIN_LIFT = 2.0
"""Share of the texts of a topic that hold a term of such a label, over that of the other texts."""

Encode = Callable[[Sequence[str]], FloatArray]


def score_labels(result: TopicResult, encoder: Encoder | str | None = None) -> TopicResult:
    """Score how well the labels of topics find their texts among those of sibling topics.

    A fit with an encoder of this package scores its labels, and chooses them by the score. The
    candidates are the first two keywords, and phrases with up to two keywords. A sixth of the texts
    of the topic must hold the first term, and each term must be twice as common as elsewhere. The
    best candidate replaces the first three keywords if
    it beats them by more than chance. Names from a person or a language model, and topics from
    edits, have no score until you call this function.

    Parameters
    ----------
    result : TopicResult
    encoder : Encoder, str or None
        Encoder of the fit; by default it is loaded again.

    Returns
    -------
    TopicResult
        The result with `label_auc` and `keywords_auc` of its topics, which `table` shows. A
        decision lists the topics whose label is worse than their keywords.

    Raises
    ------
    InputError
        If the encoder cannot be loaded or does not match the fit.

    Examples
    --------
    >>> named = rename(result, {0: "Elections"})  # doctest: +SKIP
    >>> score_labels(named).topics[0].label_auc  # doctest: +SKIP
    (0.93, 0.89, 0.96)
    """
    model, width = encoder_of_fit(result, encoder), result.embeddings.shape[1]

    def encode(texts: Sequence[str]) -> FloatArray:
        return encode_uncached(model, texts, width)

    return score_or_choose_labels(result, encode, choose=False)


def score_or_choose_labels(result: TopicResult, encode: Encode, *, choose: bool) -> TopicResult:
    """Score the labels with an encoder of texts; choose automatic labels first if `choose`."""
    topics = list(result.topics)
    used_labels = {topic.label for topic in topics}
    columns = {term: column for column, term in enumerate(result.term_counts.terms)}
    for topic, members, others in _topics_with_siblings(result):
        may_change = choose and not (topic.is_named or topic.is_seeded)
        texts = _candidates(result, topic, columns, may_change)
        vectors = encode(texts)
        best = texts.index(topic.label)
        if may_change:
            free = [i for i, text in enumerate(texts) if i == best or text not in used_labels]
            best = _best(_wins(vectors, members[::2], others[::2]), free, best)
        used_labels.add(texts[best])
        scored = _wins(vectors[[0, best]], members[1::2], others[1::2])
        topics[topic.topic_id] = dataclasses.replace(
            topic,
            label=texts[best],
            label_auc=_with_interval(*scored[1]),
            keywords_auc=float(scored[0][0].mean()),
        )
    decisions = tuple(one for one in result.decisions if one.name != "labels_worse")
    if worse := [topic for topic in topics if topic.is_label_worse]:
        named = ", ".join(f"{topic.topic_id} {topic.label!r}" for topic in worse)
        message = f"Labels that find the texts of a topic worse than its keywords do: {named}."
        ids = [topic.topic_id for topic in worse]
        decisions = (*decisions, Decision("topics", "labels_worse", ids, message))
    return dataclasses.replace(result, topics=tuple(topics), decisions=decisions)


def _topics_with_siblings(result: TopicResult) -> Iterator[tuple[Topic, FloatArray, FloatArray]]:
    """Yield topics with the vectors of some of their texts, and of some texts of their siblings."""
    if result.n_topics < 2:
        return
    means = row_centroids(result)
    near = cosines(means, means)
    np.fill_diagonal(near, -np.inf)
    siblings = np.argsort(-near, axis=1, kind="stable")[:, : min(N_SIBLINGS, result.n_topics - 1)]
    labels, vectors = result.clustering.labels, result.embeddings
    for topic, others in zip(result.topics, siblings.tolist(), strict=True):
        # Documents are ordered by a hash of their content, so that the first are a fair sample.
        members = np.flatnonzero(labels == topic.topic_id)[:N_TEXTS]
        some = [np.flatnonzero(labels == other)[: N_TEXTS // len(others)] for other in others]
        if topic.keywords and min(len(members), sum(map(len, some))) >= MIN_TEXTS:
            yield topic, vectors[members], vectors[np.concatenate(some)]


Wins = tuple[Float64Array, Float64Array]


def _wins(labels: FloatArray, members: FloatArray, others: FloatArray) -> list[Wins]:
    """Return, for each label, the mean wins of each text of the topic, and over each other text."""
    # einsum and not BLAS, whose last bits depend on the number of threads.
    near, far = (np.einsum("id,jd->ij", labels, texts) for texts in (members, others))
    compared = (np.sign(a[:, None] - b[None, :]) / 2 + 0.5 for a, b in zip(near, far, strict=True))
    return [(nearer.mean(axis=1), nearer.mean(axis=0)) for nearer in compared]


def _candidates(
    result: TopicResult, topic: Topic, columns: Mapping[str, int], may_change: bool
) -> list[str]:
    """Return the first three keywords, the label, and other candidates that cover the topic."""
    words, counts = topic.keywords, result.term_counts
    texts = [", ".join(words[:3]), topic.label]
    if may_change:
        best = best_terms(result.topic_terms[topic.topic_id], counts, N_PHRASES, (2, 9))[0][0]
        lists = [list(words[:2])]
        for phrase in [*(w for w in words if " " in w), *(counts.terms[i] for i in best.tolist())]:
            others = [word for word in words if set(word.split()).isdisjoint(phrase.split())]
            lists += [[phrase, *others[:n]] for n in range(3)]
        is_inside = result.clustering.labels == topic.topic_id
        used = sorted({columns[term] for terms in lists for term in terms})
        lifts = document_lifts(counts.counts[:, used], is_inside - 1, 1)[0]
        common = {counts.terms[i] for i, lift in zip(used, lifts, strict=True) if lift < MIN_LIFT}
        of_topic = counts.counts[is_inside].tocsc()
        shares = np.diff(of_topic.indptr) / of_topic.shape[0]
        texts += [
            ", ".join(terms)
            for terms in lists
            if shares[columns[terms[0]]] >= MIN_COVERAGE and common.isdisjoint(terms)
        ]
    return list(dict.fromkeys(texts))


def _best(wins: Sequence[Wins], free: Sequence[int], current: int) -> int:
    """Return the best free label that beats the first by more than chance, or the current one."""
    best, highest = current, -np.inf
    for i in free:
        members, others = (label - first for label, first in zip(wins[i], wins[0], strict=True))
        if members.mean() > CERTAIN * _error(members, others) and members.mean() > highest:
            best, highest = i, members.mean()
    return best


def _error(members: Float64Array, others: Float64Array) -> float:
    """Return DeLong's standard error of an AUC, or of a difference of two."""
    return float(np.sqrt(members.var(ddof=1) / len(members) + others.var(ddof=1) / len(others)))


def _with_interval(members: Float64Array, others: Float64Array) -> tuple[float, float, float]:
    """Return an AUC with Wilson's interval for the number of trials with the same variance."""
    auc, error, n = float(members.mean()), _error(members, others), min(len(members), len(others))
    trials = auc * (1 - auc) / error**2 if error > 1e-9 and 0 < auc < 1 else n
    low, high = wilson(auc * trials, trials)
    return auc, float(low), float(high)
