"""Topics for outliers, where one is near enough."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_choice, checked_share
from embedtopics.clustering.results import NOISE
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import nearest
from embedtopics.protocols import Float64Array, Int32Array, Int64Array, TermWeighting
from embedtopics.terms._counts import count_by_topic
from embedtopics.topics._describe import fitted_weighting
from embedtopics.topics._propagation import FAR, NOWHERE, closeness, propagate_labels, rank
from embedtopics.topics._relabel import checked_topic_ids, relabeled, with_own_share
from embedtopics.topics._vectors import row_centroids, unit_term_rows
from embedtopics.topics.constraints._protocol import bars
from embedtopics.topics.results import Reason, TopicResult

LEAST_SHARE = 0.5
"""Propagated share from which a document is assigned: more than of all other topics together."""

NEARER_THAN = 0.25
"""Share of a topic's own documents that are farther from it than one that is assigned to it."""

DOCUMENTS_AT_ONCE = 8192
"""Documents whose cosines with all topics are held at a time."""


class _Nearest(NamedTuple):
    """Best topic of each outlier, how near it is, and how near it must be: each (n_outliers,)."""

    topic: Int32Array
    score: Float64Array
    least: npt.NDArray[np.floating]


def reassign(
    result: TopicResult,
    strategy: str = "graph",
    *,
    threshold: float | None = None,
    topics: int | Iterable[int] | None = None,
    weighting: TermWeighting | None = None,
) -> TopicResult:
    """Assign outliers to the nearest topic, where it is near enough.

    No text goes to a topic that holds one with which it has a `CannotLink`, or under strict labels
    to a topic of another class. Doubtful documents stay outliers, for the reason that they had.

    Parameters
    ----------
    result : TopicResult
    strategy : {"graph", "terms", "embeddings"}
        "graph": label propagation over the document's neighbours. "terms": cosine of the weighted
        counts of the document with the topic's. "embeddings": cosine with the topic's mean.
    threshold : float, optional
        "graph": least propagated share of the topic, by default 0.5; documents farther from their
        neighbours than 99 in 100 are never assigned. "terms" and "embeddings": least cosine; by
        default a document must be nearer to the topic than a quarter of the topic's own documents.
        0 assigns every document that has anything in common with a topic.
    topics : int or iterable of int, optional
        Topics to assign to; a document that is nearer to another stays an outlier.
    weighting : TermWeighting, optional
        By default the one of the result.

    Returns
    -------
    TopicResult
        Assigned documents have a probability of 0.

    Raises
    ------
    InputError
        If there are no topics, or a parameter is bad.
    """
    find = _STRATEGIES[checked_choice(strategy, "strategy", tuple(_STRATEGIES))]
    if not result.topics:
        raise InputError("result", "one with topics", found="none", remedy="use at_resolution")
    wanted = None if topics is None else checked_topic_ids(result, topics)
    least = None if threshold is None else checked_share(threshold, "threshold")
    outside = np.flatnonzero(result.clustering.labels == NOISE)
    found = find(result, outside, weighting)
    is_near = (found.score > 0) & (found.score >= (found.least if least is None else least))
    if wanted is not None:
        is_near &= np.isin(found.topic, wanted)
    near = np.flatnonzero(is_near)
    nearest_first = np.argsort(-found.score[near], kind="stable")
    is_near[near] = ~bars(result, outside[near], found.topic[near], nearest_first)
    labels = result.clustering.labels.copy()
    labels[outside[is_near]] = found.topic[is_near]
    weights = result.documents.weights
    n_assigned, n_outside = int(weights[outside[is_near]].sum()), int(weights[outside].sum())
    return relabeled(
        result,
        labels,
        with_own_share(result.memberships, labels),
        list(result.topics),
        name="reassign",
        parameters={"strategy": strategy, "threshold": least, "topics": wanted},
        message=f"assigned {n_assigned:,} of {n_outside:,} outliers to a topic, by {strategy}",
        marked=wanted or (),
        follows=range(result.n_topics),
        weighting=weighting,
    )


def _by_graph(
    result: TopicResult, outside: Int64Array, weighting: TermWeighting | None
) -> _Nearest:
    labels, reasons = result.clustering.labels, result.clustering.reasons
    if reasons is not None:
        passes_nothing = np.isin(reasons, (Reason.UNINFORMATIVE, Reason.REMOVED))
        labels = np.where(passes_nothing, np.int32(NOWHERE), labels)
    found = propagate_labels(result.graph, labels.astype(np.int32), result.n_topics)
    near = closeness(result.graph.similarities)
    is_far = rank(near, near)[outside] > FAR
    score = np.where(is_far, 0.0, found.shares[outside, 0]).astype(np.float64)
    return _Nearest(found.topics[outside, 0], score, np.full(len(outside), LEAST_SHARE))


def _by_terms(
    result: TopicResult, outside: Int64Array, weighting: TermWeighting | None
) -> _Nearest:
    labels, counts = result.clustering.labels, result.term_counts.counts
    by_topic = count_by_topic(counts, labels, result.n_topics, result.documents.weights)
    best, score = np.zeros(len(outside), dtype=np.int32), np.zeros(len(outside))
    if not by_topic.nnz:
        return _Nearest(best, score, score)
    fitted = fitted_weighting(result, weighting, by_topic)
    of_topics = unit_term_rows(fitted.transform(by_topic))
    of_documents = unit_term_rows(fitted.transform(counts.astype(np.float64)))
    for begin in range(0, len(outside), DOCUMENTS_AT_ONCE):
        part = slice(begin, begin + DOCUMENTS_AT_ONCE)
        cosines = (of_documents[outside[part]] @ of_topics.T).toarray()
        best[part] = cosines.argmax(axis=1)
        score[part] = cosines.max(axis=1)
    own = np.zeros(len(labels))
    for topic in range(result.n_topics):
        members = np.flatnonzero(labels == topic)
        own[members] = of_documents[members] @ of_topics[topic].toarray().ravel()
    return _Nearest(best, score, _usual(own, result)[best])


def _by_embeddings(
    result: TopicResult, outside: Int64Array, weighting: TermWeighting | None
) -> _Nearest:
    labels = result.clustering.labels
    centroids = row_centroids(result).astype(np.float32)
    found, score = nearest(result.embeddings[outside], centroids, 1)
    inside = np.flatnonzero(labels != NOISE)
    own = np.zeros(len(labels))
    own[inside] = np.einsum("id,id->i", result.embeddings[inside], centroids[labels[inside]])
    best = found[:, 0]
    return _Nearest(best, score[:, 0].astype(np.float64), _usual(own, result)[best])


_STRATEGIES = {"graph": _by_graph, "terms": _by_terms, "embeddings": _by_embeddings}


def _usual(own: Float64Array, result: TopicResult) -> Float64Array:
    """Return for each topic the cosine below which a quarter of its documents lie."""
    labels = result.clustering.labels
    return np.array(
        [
            np.quantile(own[labels == topic], NEARER_THAN, method="inverted_cdf")
            for topic in range(result.n_topics)
        ]
    )
