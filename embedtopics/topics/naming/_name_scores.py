"""Scores of how well a name finds the texts of its topic.

The score of a name is an area under the ROC curve (AUC): the probability that a text of the topic
is nearer to the vector of the name than a text of a sibling, one of the nearest other topics. Its
variance is that of DeLong, DeLong and Clarke-Pearson (1988).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from embedtopics._utils.fitted import FittedTopics, fitted_encoder, result_of
from embedtopics.encoders._registry import encoder_from_settings
from embedtopics.errors import EmbedTopicsError
from embedtopics.evaluation._bootstrap import wilson
from embedtopics.protocols import Encoder, Float64Array, FloatArray, Int64Array
from embedtopics.results import Decision
from embedtopics.topics._vectors import (
    cosines,
    encode_uncached,
    encoder_of_fit,
    matching_encoder,
    row_centroids,
)
from embedtopics.topics.results import Topic, TopicResult

N_TEXTS = 300  # of a topic, and of its siblings together
N_SIBLINGS = 3
MIN_TEXTS = 8
"""Minimum number of texts of a topic, and of its siblings."""

WORSE = ("names_worse", "labels_worse")
"""Decision on names that are worse than keywords, by its present and its former name."""

Encode = Callable[[Sequence[str]], FloatArray]


def with_name_scores(result: FittedTopics, *, encoder: Encoder | str | None = None) -> TopicResult:
    """Score how well the names of topics find their texts among those of sibling topics.

    A fit with an encoder of this package scores its names, and an edit those that it changes if
    the encoder is on this machine. Fits of given embeddings, or by an object of your own, have no
    scores until you call this function.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    encoder : Encoder, str or None
        Encoder of the fit; by default that of the model, or it is loaded again.

    Returns
    -------
    TopicResult
        The result with `name_auc` and `keywords_auc` of its topics, which `table` shows. A
        decision lists the topics whose name is worse than their keywords.

    Raises
    ------
    InputError
        If the encoder cannot be loaded or does not match the fit.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=200))
    >>> scored = et.topics.with_name_scores(model)
    >>> auc, low, high = scored.topics[0].name_auc
    >>> 0 < low < auc < high < 1
    True
    >>> "name_auc" in et.topics.table(scored)
    True
    """
    encoder = fitted_encoder(result) if encoder is None else encoder
    result = result_of(result)
    model = encoder_of_fit(result, encoder)
    width = result.embeddings.shape[1]

    def encode(texts: Sequence[str]) -> FloatArray:
        return encode_uncached(model, texts, width)

    return score_with(result, encode)


def rescored(result: TopicResult, before: TopicResult) -> TopicResult:
    """Score what an edit changed, if `before` has scores and its encoder is on this machine."""
    settings = result.settings.get("encoder_settings") or {}
    kind = settings.get("kind", "checkpoint")
    was_scored = any(topic.name_auc is not None for topic in before.topics)
    if not was_scored or kind not in ("checkpoint", "static"):  # others learn from all texts
        return result

    def encode(texts: Sequence[str]) -> FloatArray:
        model = matching_encoder(encoder_from_settings(settings), result)
        return encode_uncached(model, texts, result.embeddings.shape[1])

    try:
        return score_with(result, encode, only_new=True)
    except EmbedTopicsError:  # an edit needs no encoder
        return result


def score_with(result: TopicResult, encode: Encode, *, only_new: bool = False) -> TopicResult:
    """Score the names, or those without a score, with a function that encodes texts."""
    scored = [
        one
        for one in _topics_with_siblings(result)
        if not only_new or None in (one[0].name_auc, one[0].keywords_auc)
    ]
    names = [name for topic, _, _ in scored for name in (", ".join(topic.keywords[:3]), topic.name)]
    vectors = encode(names) if names else np.empty((0, 0), np.float32)
    topics = list(result.topics)
    for place, (topic, members, others) in enumerate(scored):
        of_names, texts = vectors[2 * place : 2 * place + 2], result.embeddings
        # einsum and not BLAS, whose last bits depend on the number of threads.
        sides = (np.einsum("id,jd->ij", of_names, texts[some]) for some in (members, others))
        wins = (np.sign(a[:, None] - b) / 2 + 0.5 for a, b in zip(*sides, strict=True))
        # Mean wins of each text of the topic, and over each other text, by both names.
        of_keywords, of_label = [(win.mean(axis=1), win.mean(axis=0)) for win in wins]
        topics[topic.topic_id] = dataclasses.replace(
            topic, name_auc=_with_interval(*of_label), keywords_auc=float(of_keywords[0].mean())
        )
    decisions = tuple(one for one in result.decisions if one.name not in WORSE)
    if worse := [topic for topic in topics if topic.is_name_worse]:
        named = ", ".join(f"{topic.topic_id} {topic.name!r}" for topic in worse)
        message = "Names that hardly find the texts of their topic, or worse than its keywords: "
        message += f"{named}."
        ids = [topic.topic_id for topic in worse]
        decisions = (*decisions, Decision("topics", WORSE[0], ids, message))
    return dataclasses.replace(result, topics=tuple(topics), decisions=decisions)


def _topics_with_siblings(result: TopicResult) -> Iterator[tuple[Topic, Int64Array, Int64Array]]:
    """Yield topics with some of their documents, and some documents of their siblings."""
    if result.n_topics < 2:
        return
    means = row_centroids(result)
    near = cosines(means, means)
    np.fill_diagonal(near, -np.inf)
    siblings = np.argsort(-near, axis=1, kind="stable")[:, : min(N_SIBLINGS, result.n_topics - 1)]
    labels = result.clustering.labels
    for topic, others in zip(result.topics, siblings.tolist(), strict=True):
        # Documents are ordered by a hash of their content, so that the first are a fair sample.
        members = np.flatnonzero(labels == topic.topic_id)[:N_TEXTS]
        some = [np.flatnonzero(labels == other)[: N_TEXTS // len(others)] for other in others]
        if topic.keywords and min(len(members), sum(map(len, some))) >= MIN_TEXTS:
            yield topic, members, np.concatenate(some)


def _error(members: Float64Array, others: Float64Array) -> float:
    """Return DeLong's standard error of an AUC."""
    return float(np.sqrt(members.var(ddof=1) / len(members) + others.var(ddof=1) / len(others)))


def _with_interval(members: Float64Array, others: Float64Array) -> tuple[float, float, float]:
    """Return an AUC with Wilson's interval for the number of trials with the same variance."""
    auc, error, n = float(members.mean()), _error(members, others), min(len(members), len(others))
    trials = auc * (1 - auc) / error**2 if error > 1e-9 and 0 < auc < 1 else n
    low, high = wilson(auc * trials, trials)
    return auc, float(low), float(high)
