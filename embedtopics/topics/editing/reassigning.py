"""Topics for documents in none, where one is near enough."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import is_number
from embedtopics.errors import InputError
from embedtopics.neighbors import nearest
from embedtopics.protocols import Int32Array, Int64Array, TermWeighting
from embedtopics.results import NOISE, Reason, TopicResult
from embedtopics.terms import ClassTfidf, count_by_topic
from embedtopics.topics.guidance.keeping import bars
from embedtopics.topics.likeness import row_centroids, unit_term_rows
from embedtopics.topics.memberships import FAR, closeness, rank
from embedtopics.topics.recorded import describe_weighting, weighting_of
from embedtopics.topics.relabeling import checked_topic_ids, relabeled, with_own_share
from embedtopics.topics.walking import NOWHERE, walk

__all__ = ["reassign"]

Float64Array = npt.NDArray[np.float64]

LEAST_SHARE = 0.5
"""Share of a document's walks from which it joins: more than in all else together."""

NEARER_THAN = 0.25
"""Share of a topic's own documents that are farther from it than one that may join."""

ENDS = (Reason.NO_SUBJECT, Reason.REMOVED)
"""Why documents are in no topic that lead no others to one."""


@dataclass(frozen=True, eq=False)
class _Nearness:
    """The best topic of each document in none, how near it is, and how near it must be."""

    best: Int32Array
    score: Float64Array
    least: Float64Array


def reassign(
    result: TopicResult,
    strategy: str = "graph",
    *,
    threshold: float | None = None,
    topics: int | Iterable[int] | None = None,
    weighting: TermWeighting | None = None,
) -> TopicResult:
    """Let documents in no topic join the topic that is nearest, where it is near enough.

    No text joins one from which it is to be kept apart, or under strict labels a topic of another
    class. The doubtful are left where they are, with the reason that they had: a topic that takes
    in everything says nothing. The strategies ask different questions: "graph" whether a document's
    neighbours are of one topic, "terms" whether it uses the topic's words, "embeddings" whether
    its vector is near the topic's mean.

    Parameters
    ----------
    result : TopicResult
    strategy : {"graph", "terms", "embeddings"}
        "graph" walks from the document along its neighbours to the first in a topic (see
        `embedtopics.topics.walking.walk`); documents without a subject, or of a topic that was
        removed, end a walk in none. "terms" takes the cosine of the document's counts, weighted as
        the topics' are, with the topic's term weights. "embeddings" takes the cosine with the
        topic's mean vector.
    threshold : float, optional
        "graph": share of the walks that must end in the topic, by default 0.5, more than
        everywhere else together; documents that are farther from their neighbours than 99 in 100
        never join. "terms" and "embeddings": least cosine; by default a document must be nearer to
        the topic than a quarter of the topic's own documents are. 0 lets join whatever has
        anything in common with a topic.
    topics : int or iterable of int, optional
        Topics that may be joined; a document that is nearer to another stays in none.
    weighting : object with ``fit_transform(topic_counts)``, optional
        By default the one of the result; "terms" asks for ``fit`` and ``transform``.

    Returns
    -------
    TopicResult
        Who joins lies outside the topic's core, with a strength of 0.

    Raises
    ------
    InputError
        Where there are no topics, or a parameter is bad.
    """
    if strategy not in _STRATEGIES:
        raise InputError(f'strategy must be "graph", "terms" or "embeddings"; got {strategy!r}')
    if not result.topics:
        raise InputError("there is no topic to join; read the result finer with at_resolution")
    wanted = None if topics is None else checked_topic_ids(result, topics)
    least = _checked_threshold(threshold)
    outside = np.flatnonzero(result.clustering.labels == NOISE)
    found = _STRATEGIES[strategy](result, outside, weighting)
    joins = (found.score > 0) & (found.score >= (found.least if least is None else least))
    if wanted is not None:
        joins &= np.isin(found.best, wanted)
    near = np.flatnonzero(joins)
    nearest_first = np.argsort(-found.score[near], kind="stable")
    joins[near] = ~bars(result, outside[near], found.best[near], nearest_first)
    labels = result.clustering.labels.copy()
    labels[outside[joins]] = found.best[joins]
    weights = result.documents.weights
    n_joined, n_outside = int(weights[outside[joins]].sum()), int(weights[outside].sum())
    parameters: dict[str, Any] = {"strategy": strategy, "threshold": least, "topics": wanted}
    if weighting is not None:
        parameters["weighting"] = describe_weighting(weighting)
    return relabeled(
        result,
        labels,
        with_own_share(result.memberships, labels),
        list(result.topics),
        name="reassign",
        parameters=parameters,
        message=f"let {n_joined:,} of {n_outside:,} texts in no topic join one, by {strategy}",
        marked=wanted or (),
        follows=range(result.n_topics),
        weighting=weighting,
    )


def _by_graph(
    result: TopicResult, outside: Int64Array, weighting: TermWeighting | None
) -> _Nearness:
    labels, reasons = result.clustering.labels, result.clustering.reasons
    if reasons is not None:
        labels = np.where(np.isin(reasons, ENDS), np.int32(NOWHERE), labels)
    walked = walk(result.graph, labels.astype(np.int32), result.n_topics)
    near = closeness(result.graph.similarities)
    is_far = rank(near, near)[outside] > FAR
    score = np.where(is_far, 0.0, walked.shares[outside, 0]).astype(np.float64)
    return _Nearness(walked.topics[outside, 0], score, np.full(len(outside), LEAST_SHARE))


def _by_terms(
    result: TopicResult, outside: Int64Array, weighting: TermWeighting | None
) -> _Nearness:
    labels, counts = result.clustering.labels, result.term_counts
    weighs: Any = weighting_of(result, weighting)
    if not callable(getattr(weighs, "fit", None)) or not callable(
        getattr(weighs, "transform", None)
    ):
        raise InputError(
            'strategy="terms" weighs documents as topics are weighed, for which a weighting needs '
            f"the methods fit and transform; got {weighs!r}; take another strategy"
        )
    by_topic = count_by_topic(counts.counts, labels, result.n_topics, result.documents.weights)
    if not by_topic.nnz:
        nothing = np.zeros(len(outside))
        return _Nearness(nothing.astype(np.int32), nothing, nothing)
    if isinstance(weighs, ClassTfidf):
        weighs = weighs.fit(by_topic, terms=counts.terms)
    else:
        weighs = weighs.fit(by_topic)
    of_topics = unit_term_rows(weighs.transform(by_topic))
    of_documents = unit_term_rows(weighs.transform(counts.counts.astype(np.float64)))
    best = np.zeros(len(outside), dtype=np.int32)
    score = np.zeros(len(outside))
    for begin in range(0, len(outside), DOCUMENTS_AT_ONCE):
        part = slice(begin, begin + DOCUMENTS_AT_ONCE)
        cosines = (of_documents[outside[part]] @ of_topics.T).toarray()
        best[part] = cosines.argmax(axis=1)
        score[part] = cosines.max(axis=1)
    own = np.zeros(len(labels))
    for topic in range(result.n_topics):
        members = np.flatnonzero(labels == topic)
        own[members] = of_documents[members] @ of_topics[topic].toarray().ravel()
    return _Nearness(best, score, _usual(own, labels, result)[best])


def _by_embeddings(
    result: TopicResult, outside: Int64Array, weighting: TermWeighting | None
) -> _Nearness:
    labels = result.clustering.labels
    middles = row_centroids(result).astype(np.float32)
    best, score = nearest(result.embeddings[outside], middles, 1)
    inside = np.flatnonzero(labels != NOISE)
    own = np.zeros(len(labels))
    own[inside] = np.einsum("id,id->i", result.embeddings[inside], middles[labels[inside]])
    best = best[:, 0]
    return _Nearness(best, score[:, 0].astype(np.float64), _usual(own, labels, result)[best])


_STRATEGIES = {"graph": _by_graph, "terms": _by_terms, "embeddings": _by_embeddings}

DOCUMENTS_AT_ONCE = 8192
"""Documents whose cosines with all topics are held at a time."""


def _usual(own: Float64Array, labels: Int32Array, result: TopicResult) -> Float64Array:
    """Return for each topic the cosine than which a quarter of its documents have less."""
    return np.array(
        [
            np.quantile(own[labels == topic], NEARER_THAN, method="inverted_cdf")
            for topic in range(result.n_topics)
        ]
    )


def _checked_threshold(threshold: Any) -> float | None:
    if threshold is None:
        return None
    if not is_number(threshold) or not 0.0 <= float(threshold) <= 1.0:
        raise InputError(f"threshold must be a number from 0 to 1, or None; got {threshold!r}")
    return float(threshold)
