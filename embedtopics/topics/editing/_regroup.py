"""Other topics of the same documents: removed, assigned to outliers, or split."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, hstack

from embedtopics._utils.checks import checked_between, checked_choice
from embedtopics._utils.display import spell_count
from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics.clustering._partition import Partitioner
from embedtopics.clustering._resolution import subtree
from embedtopics.clustering._spanning_tree import spanning_tree
from embedtopics.clustering.results import NOISE
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import nearest, unit_rows
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import Float64Array, FloatArray, Int32Array, Int64Array
from embedtopics.terms._counts import count_by_topic
from embedtopics.topics._clusters import ClusterTree, Resolution
from embedtopics.topics._describe import fitted_weighting
from embedtopics.topics._propagation import (
    FAR,
    NOWHERE,
    OWN_SHARE,
    closeness,
    propagate_labels,
    rank,
)
from embedtopics.topics._relabel import (
    checked_topic_id,
    checked_topic_ids,
    keep_labels,
    regrouped,
    relabeled,
    spell_topic,
    with_own_share,
)
from embedtopics.topics._support import uninformative_topics
from embedtopics.topics._vectors import row_centroids, unit_term_rows
from embedtopics.topics.results import Reason, Topic, TopicResult

Groups = list[tuple[int, ...]]
"""Topics of each group."""


def with_others(
    result: TopicResult, groups: Sequence[tuple[int, ...]], removed: Sequence[int] = ()
) -> Groups:
    """Return the groups, and one group for each other topic that is not removed."""
    changed = {*removed, *(topic for group in groups for topic in group)}
    return [*groups, *((topic,) for topic in range(result.n_topics) if topic not in changed)]


def regroup(
    result: TopicResult, parts: Groups, name: str, parameters: dict[str, Any], message: str
) -> TopicResult:
    """Merge the topics of each part; documents of topics in no part become outliers."""
    group = np.full(result.n_topics + 1, NOISE, dtype=np.int32)  # the last for outliers
    for number, part in enumerate(parts):
        group[list(part)] = number
    unchanged = {part[0] for part in parts if len(part) == 1}
    return relabeled(
        result,
        group[result.clustering.labels],
        regrouped(result.memberships, group[:-1], len(parts)),
        [continued([result.topics[t] for t in part]) for part in parts],
        name=name,
        parameters=parameters,
        message=message,
        marked=[topic for topic in range(result.n_topics) if topic not in unchanged],
        follows=group[:-1],
    )


def continued(parts: Sequence[Topic]) -> Topic:
    """Return the topic that a merged one continues, with unknown persistence."""
    if len(parts) == 1:
        return parts[0]
    seeded = [part for part in parts if part.is_seeded]
    named = [part for part in parts if part.is_named]
    return dataclasses.replace((seeded or named or parts)[0], persistence=float("nan"))


def remove(result: FittedTopics, topics: int | str | Iterable[int | str]) -> TopicResult:
    """Remove topics: their documents become outliers, with `Reason.REMOVED`.

    Terms are weighted again, because the words of removed topics no longer distinguish the others.
    The names of the others stay.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    topics : int, str, or iterable of these
        Topics by id or name.

    Returns
    -------
    TopicResult

    Raises
    ------
    InputError
        If there is no such topic.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=200))
    >>> fewer = et.topics.remove(model, 3)
    >>> fewer.n_topics, model.result_.n_topics
    (3, 4)
    """
    result = result_of(result)
    gone = sorted(set(checked_topic_ids(result, topics)))
    n_texts = sum(result.topics[topic].size for topic in gone)
    names = ", ".join(spell_topic(result, topic) for topic in gone)
    message = f"removed {names}: {spell_count(n_texts, 'text is', 'texts are')} in no topic"
    parts = with_others(result, (), gone)
    return regroup(result, parts, "remove", {"topics": gone}, message)


LEAST_SHARE = 0.5
"""Smallest propagated share of an assigned document: more than all other topics together."""

NEARER_THAN = 0.25
"""Share of a topic's documents that are farther from it than an assigned one."""

DOCUMENTS_AT_ONCE = 8192
"""Documents per block of cosines with all topics."""


class _Nearest(NamedTuple):
    """Best topic of each outlier, its score, and the smallest score required, (n_outliers,)."""

    topic: Int32Array
    score: Float64Array
    least: Float64Array | float


def reduce_outliers(
    result: FittedTopics, strategy: str = "graph", *, threshold: float | None = None
) -> TopicResult:
    """Assign outliers to the nearest topic if it is near enough.

    Other documents stay outliers and keep their reason.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    strategy : {"graph", "terms", "embeddings"}
        "graph": label propagation from the document's neighbors. "terms": cosine of the weighted
        term counts of document and topic. "embeddings": cosine with the topic's mean.
    threshold : float, optional
        "graph": smallest propagated share, by default 0.5; the 1 % of documents farthest from
        their neighbors are never assigned. "terms" and "embeddings": smallest cosine; by default a
        document must be nearer to the topic than a quarter of the topic's documents. 0 assigns
        every document with any similarity to a topic.

    Returns
    -------
    TopicResult
        Assigned documents have a probability of 0.

    Raises
    ------
    InputError
        If there are no topics, or a parameter is invalid.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=200))
    >>> fuller = et.topics.reduce_outliers(model, "embeddings", threshold=0)
    >>> fuller.coverage >= model.result_.coverage
    True
    >>> fuller.history[-1].name
    'reduce_outliers'
    """
    result = result_of(result)
    find = _STRATEGIES[checked_choice(strategy, "strategy", tuple(_STRATEGIES))]
    if not result.topics:
        raise InputError("result", "one with topics", found="none", remedy="use recluster")
    checked_between(threshold or 0.0, "threshold", 0, 1, closed=True)
    outside = np.flatnonzero(result.clustering.labels == NOISE)
    best = find(result, outside)
    is_near = (best.score > 0) & (best.score >= (best.least if threshold is None else threshold))
    labels = result.clustering.labels.copy()
    labels[outside[is_near]] = best.topic[is_near]
    weights = result.distinct.weights
    n_assigned, n_outside = int(weights[outside[is_near]].sum()), int(weights[outside].sum())
    return relabeled(
        result,
        labels,
        with_own_share(result.memberships, labels),
        list(result.topics),
        name="reduce_outliers",
        parameters={"strategy": strategy, "threshold": threshold},
        message=f"assigned {n_assigned:,} of {n_outside:,} outliers to a topic, by {strategy}",
        follows=range(result.n_topics),
    )


def _by_graph(result: TopicResult, outside: Int64Array) -> _Nearest:
    labels, reasons = result.clustering.labels, result.clustering.reasons
    if reasons is not None:
        passes_nothing = np.isin(reasons, (Reason.UNINFORMATIVE, Reason.REMOVED))
        labels = np.where(passes_nothing, np.int32(NOWHERE), labels)
    propagated = propagate_labels(result.graph, labels.astype(np.int32), result.n_topics)
    near = closeness(result.graph.similarities)
    is_far = rank(near, near)[outside] > FAR
    score = np.where(is_far, 0.0, propagated.shares[outside, 0]).astype(np.float64)
    return _Nearest(propagated.topics[outside, 0], score, LEAST_SHARE)


def _by_terms(result: TopicResult, outside: Int64Array) -> _Nearest:
    labels, counts = result.clustering.labels, result.term_counts.counts
    by_topic = count_by_topic(counts, labels, result.n_topics, result.distinct.weights)
    best, score = np.zeros(len(outside), dtype=np.int32), np.zeros(len(outside))
    if not by_topic.nnz:
        return _Nearest(best, score, 0.0)
    fitted = fitted_weighting(result, by_topic)
    of_topics = unit_term_rows(fitted.transform(by_topic))
    of_documents = unit_term_rows(fitted.transform(counts.astype(np.float64)))
    for begin in range(0, len(outside), DOCUMENTS_AT_ONCE):
        part = slice(begin, begin + DOCUMENTS_AT_ONCE)
        cosines = (of_documents[outside[part]] @ of_topics.T).toarray()
        best[part] = cosines.argmax(axis=1)
        score[part] = cosines.max(axis=1)
    to_own = np.zeros(len(labels))
    for topic in range(result.n_topics):
        members = np.flatnonzero(labels == topic)
        to_own[members] = of_documents[members] @ of_topics[topic].toarray().ravel()
    return _Nearest(best, score, _usual(to_own, result)[best])


def _by_embeddings(result: TopicResult, outside: Int64Array) -> _Nearest:
    labels = result.clustering.labels
    centroids = row_centroids(result).astype(np.float32)
    topics, score = nearest(result.embeddings[outside], centroids, 1)
    inside = np.flatnonzero(labels != NOISE)
    to_own = np.zeros(len(labels))
    to_own[inside] = np.einsum("id,id->i", result.embeddings[inside], centroids[labels[inside]])
    best = topics[:, 0]
    return _Nearest(best, score[:, 0].astype(np.float64), _usual(to_own, result)[best])


_STRATEGIES = {"graph": _by_graph, "terms": _by_terms, "embeddings": _by_embeddings}


def _usual(to_own: Float64Array, result: TopicResult) -> Float64Array:
    """Return the lower quartile of the cosines of each topic's documents."""
    members = [to_own[result.clustering.labels == topic] for topic in range(result.n_topics)]
    return np.array([np.quantile(some, NEARER_THAN, method="inverted_cdf") for some in members])


MOSTLY = 0.51
"""Smallest share of a document in its own part, if its share of the topic is as large."""


def split(result: FittedTopics, topic: int | str, n_topics: int | str = "auto") -> TopicResult:
    """Split a topic into parts.

    The density hierarchy of the topic's documents is cut finer. Label propagation or else the
    embeddings assign documents outside the new clusters, and memberships in the topic are divided
    among its parts.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    topic : int or str
        Topic by id or name.
    n_topics : "auto", "fine", "coarse" or int
        Number of parts; an integer from 2 up is met exactly. With a name, the size of the topic
        determines the smallest cluster, and only clusters with distinctive words become parts.

    Returns
    -------
    TopicResult
        The largest part continues a seeded topic. The name of any other topic is dropped.

    Raises
    ------
    InputError
        If there is no such topic, or it has no such parts.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=200))
    >>> finer = et.topics.split(model, 0, 2)
    >>> finer.n_topics
    5
    """
    result = result_of(result)
    topic = checked_topic_id(result, topic)
    if n_topics == 1 and not isinstance(n_topics, bool):
        raise InputError("n_topics", "2 or more, or a name", n_topics)

    members = np.flatnonzero(result.clustering.labels == topic)
    clusters, depths = _cut(result, members, topic, Resolution(n_topics))
    n_parts = int(clusters.max()) + 1
    propagated = propagate_labels(_restricted(result.graph, members), clusters, n_parts)
    parts = np.where(clusters == NOISE, propagated.topics[:, 0], clusters).astype(np.int32)

    if len(lost := np.flatnonzero(parts == NOISE)):
        vectors = result.embeddings[members]
        sums = np.stack([vectors[clusters == part].sum(axis=0) for part in range(n_parts)])
        cosines = np.einsum("id,jd->ij", vectors[lost], unit_rows(sums, keep_zeros=True))
        parts[lost] = cosines.argmax(axis=1)

    labels, memberships = _divide(result, topic, members, parts, n_parts)
    probabilities = result.clustering.probabilities.copy()
    probabilities[members] = depths

    old = result.topics[topic]
    largest = int(np.bincount(parts, result.distinct.weights[members], n_parts).argmax())
    origins: list[Topic | None] = [*result.topics[:topic], *result.topics[topic + 1 :]]
    origins += [None] * n_parts
    if old.is_seeded:
        origins[result.n_topics - 1 + largest] = dataclasses.replace(old, persistence=float("nan"))
    follows = np.arange(result.n_topics) - (np.arange(result.n_topics) > topic)
    follows[topic] = result.n_topics - 1 + largest

    message = f"split {spell_topic(result, topic)} into {n_parts} topics"
    if old.is_named and not old.is_seeded:
        message += ", and dropped its name"

    return relabeled(
        result,
        labels,
        memberships,
        origins,
        name="split",
        parameters={"topic": topic, "n_topics": n_topics},
        message=message,
        marked=[topic],
        follows=follows,
        probabilities=probabilities,
    )


def _cut(
    result: TopicResult, members: Int64Array, topic: int, resolution: Resolution
) -> tuple[Int32Array, FloatArray]:
    """Return the cluster of each of the topic's documents, and its depth."""
    weights, n_topics = result.distinct.weights[members], resolution.n_topics
    partitioner = Partitioner(result.coordinates[members], weights)
    if not isinstance(n_topics, str):
        # A requested number is met, whatever the words or density of the parts.
        labels = partitioner.into(n_topics).astype(np.int32)
        probabilities, n_found = result.clustering.probabilities[members], partitioner.n_most
    elif len(members) == 1:
        labels, probabilities, n_found = np.zeros(1, np.int32), np.ones(1, np.float32), 1
    else:
        counts = dataclasses.replace(result.term_counts, counts=result.term_counts.counts[members])
        tree = result.tree and subtree(result.tree, members)
        tree = tree or spanning_tree(result.coordinates[members])
        test = partial(uninformative_topics, counts)
        cut = ClusterTree(tree, partitioner, weights, test).cut(resolution)
        labels, n_found = keep_labels(cut.clustering.labels, cut.is_informative), cut.n_informative
        probabilities = cut.clustering.probabilities
    if n_found < (2 if isinstance(n_topics, str) else n_topics):
        most = f"at most {n_found}" if n_found > 1 else "another"
        name, n_texts = spell_topic(result, topic), int(weights.sum())
        expected = f"{most} for topic {name}, whose {n_texts:,} texts form no more groups"
        raise InputError("n_topics", expected, n_topics)
    return labels, np.where(labels == NOISE, 0.0, probabilities).astype(np.float32)


def _restricted(graph: NeighborGraph, members: Int64Array) -> NeighborGraph:
    """Return the graph of some documents; other neighbors have no weight."""
    number = np.full(len(graph), -1, dtype=np.int32)
    number[members] = np.arange(len(members), dtype=np.int32)
    indices = number[graph.indices[members]]
    inside = indices >= 0
    return NeighborGraph(
        np.where(inside, indices, np.int32(0)),
        np.where(inside, graph.similarities[members], np.float32(0.0)),
        graph.method,
        graph.recall,
    )


def _divide(
    result: TopicResult, topic: int, members: Int64Array, parts: Int32Array, n_parts: int
) -> tuple[Int32Array, csr_matrix]:
    """Return all labels and memberships, with the parts numbered after the other topics."""
    before = result.memberships.tocsc()
    labels = result.clustering.labels - (result.clustering.labels > topic)
    part_of = np.full(len(labels), NOISE, dtype=np.int32)
    part_of[members] = parts
    labels[members] = result.n_topics - 1 + parts
    column = before[:, [topic]].tocoo()
    # Only documents with a share of the topic have something to divide.
    concerned = np.union1d(column.row, members)
    rows, shares = column.row, column.data
    own_parts = part_of[concerned]
    propagated = propagate_labels(_restricted(result.graph, concerned), own_parts, n_parts)
    spread = np.zeros((len(concerned), n_parts), dtype=np.float64)
    reached, slots = np.nonzero(propagated.topics >= 0)
    spread[reached, propagated.topics[reached, slots]] = propagated.shares[reached, slots]
    total = spread.sum(axis=1, keepdims=True)
    sizes = np.bincount(own_parts[own_parts != NOISE], minlength=n_parts)
    # Documents that propagation does not reach have shares by the sizes of the parts.
    divided = np.where(total > 0, spread / np.where(total > 0, total, 1.0), sizes / sizes.sum())
    divided = divided[np.searchsorted(concerned, rows)]
    inside = np.flatnonzero(part_of[rows] != NOISE)
    own_part = inside, part_of[rows[inside]]
    least = np.maximum(
        OWN_SHARE + (1 - OWN_SHARE) * divided[own_part], np.minimum(1.0, MOSTLY / shares[inside])
    )
    rest = np.divide(
        1 - least, 1 - divided[own_part], out=np.zeros_like(least), where=divided[own_part] < 1
    )
    divided[inside] *= rest[:, None]
    divided[own_part] = least
    places = np.repeat(rows, n_parts), np.tile(np.arange(n_parts), len(rows))
    entries = (shares[:, None] * divided).ravel()
    of_parts = csr_matrix((entries, places), shape=(len(labels), n_parts))
    of_parts.eliminate_zeros()
    others = np.delete(np.arange(result.n_topics), topic)
    memberships = csr_matrix(hstack([before[:, others], of_parts], format="csr"), dtype=np.float32)
    return labels.astype(np.int32), with_own_share(memberships, labels)
