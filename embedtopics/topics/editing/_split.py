"""One topic made several."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from embedtopics.clustering._resolution import subtree
from embedtopics.clustering._spanning_tree import spanning_tree
from embedtopics.clustering.results import NOISE, Clustering
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import unit_rows
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import FloatArray, Int32Array, Int64Array, TermWeighting
from embedtopics.terms._subject import uninformative_topics
from embedtopics.topics._clusters import NotEnoughTopics, Resolution, choose_cut
from embedtopics.topics._propagation import MIN_MARGIN, OWN_SHARE, margin, propagate_labels
from embedtopics.topics._relabel import checked_topic_id, relabeled, with_own_share
from embedtopics.topics.editing._labels import spell_topic
from embedtopics.topics.results import Reason, Topic, TopicResult

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MOSTLY = 0.51
"""Least share that a document has of its own part, where it has that much of the topic."""


def split(
    result: TopicResult,
    topic: int,
    n_topics: int | str = "auto",
    *,
    min_cluster_size: int | str = "auto",
    keep_all: bool = True,
    weighting: TermWeighting | None = None,
) -> TopicResult:
    """Split a topic into parts.

    The density hierarchy of the topic's documents is cut finer. Documents outside the new clusters
    are assigned by label propagation, and those that it does not reach by their embeddings. Other
    topics stay as they are, and the memberships in the topic are divided among its parts.

    Parameters
    ----------
    result : TopicResult
    topic : int
        Its id.
    n_topics : "auto", "fine", "coarse" or int
        Parts; an integer from 2 up is met exactly. A name chooses the smallest cluster from the
        size of the topic, and makes parts only of clusters whose words differ from the topic's.
    min_cluster_size : "auto" or int
        Smallest cluster of texts that becomes a part, instead of `n_topics`.
    keep_all : bool
        Assign documents between the parts to the nearest one; else they become outliers.
    weighting : TermWeighting, optional
        By default the one of the result.

    Returns
    -------
    TopicResult
        A seeded topic lives on as its largest part; of any other topic a given label is dropped.

    Raises
    ------
    InputError
        If there is no such topic, or it has no such parts.
    """
    topic = checked_topic_id(result, topic)
    if n_topics == 1 and not isinstance(n_topics, bool):
        raise InputError("n_topics", "2 or more, or a name", n_topics)
    members = np.flatnonzero(result.clustering.labels == topic)
    cut = _cut(result, members, topic, Resolution(n_topics, min_cluster_size))
    parts, is_between = _assign(result, members, cut)
    if not keep_all:
        parts = np.where(is_between, np.int32(NOISE), parts)
    n_parts = len(cut.persistence)
    labels, memberships = _divide(result, topic, members, parts, n_parts)
    probabilities = result.clustering.probabilities.copy()
    probabilities[members] = cut.probabilities
    old = result.topics[topic]
    sizes = np.bincount(parts[parts >= 0], result.documents.weights[members][parts >= 0], n_parts)
    largest = int(sizes.argmax())
    origins: list[Topic | None] = [*result.topics[:topic], *result.topics[topic + 1 :]]
    origins += [None] * n_parts
    if old.is_seeded:
        origins[result.n_topics - 1 + largest] = dataclasses.replace(old, persistence=float("nan"))
    follows = np.arange(result.n_topics) - (np.arange(result.n_topics) > topic)
    follows[topic] = result.n_topics - 1 + largest
    drops_label = old.is_named and not old.is_seeded
    return relabeled(
        result,
        labels,
        memberships,
        origins,
        name="split",
        parameters={
            "topic": topic,
            "n_topics": n_topics,
            "min_cluster_size": min_cluster_size,
            "keep_all": keep_all,
        },
        message=f"split {spell_topic(result, topic)} into {n_parts} topics"
        + (", and dropped its label" if drops_label else ""),
        marked=[topic],
        follows=follows,
        reason=Reason.BETWEEN,
        probabilities=probabilities,
        weighting=weighting,
    )


def _cut(
    result: TopicResult, members: Int64Array, topic: int, resolution: Resolution
) -> Clustering:
    """Return the clusters that become parts, over the topic's documents."""
    weights = result.documents.weights[members]
    counts = dataclasses.replace(result.term_counts, counts=result.term_counts.counts[members])

    def without(labels: Int32Array, n_found: int) -> npt.NDArray[np.bool_]:
        # Of a number that the user insists on, no part is refused for its words.
        if isinstance(resolution.n_topics, str):
            return uninformative_topics(counts, labels, n_found)
        return np.zeros(n_found, dtype=bool)

    cut, n_found = None, 1
    if len(members) > 1:
        if result.tree is not None:
            tree = subtree(result.tree, members)
        else:
            tree = spanning_tree(result.coordinates[members], weights=weights)
        try:
            cut = choose_cut(tree, weights, resolution, without)
            n_found = cut.n_informative
        except NotEnoughTopics as error:
            n_found = error.best.n_informative
    if cut is None or n_found < 2:
        most = (
            f"at most {n_found}" if n_found > 1 else "another number, or min_cluster_size smaller"
        )
        raise InputError(
            "n_topics",
            f"{most} for topic {spell_topic(result, topic)}, whose "
            f"{int(weights.sum()):,} texts form no more groups",
            resolution.n_topics,
        )
    number = np.full(len(cut.is_informative) + 1, NOISE, dtype=np.int32)
    number[:-1][cut.is_informative] = np.arange(n_found, dtype=np.int32)
    labels = number[cut.clustering.labels]
    probabilities = np.where(labels == NOISE, 0.0, cut.clustering.probabilities).astype(np.float32)
    # Its density was compared within the topic, so that its persistence would mislead.
    return Clustering(labels, probabilities, np.full(n_found, np.nan))


def _assign(
    result: TopicResult, members: Int64Array, cut: Clustering
) -> tuple[Int32Array, npt.NDArray[np.bool_]]:
    """Return the part of each of the topic's documents, and whether it lies between parts."""
    n_parts = len(cut.persistence)
    found = propagate_labels(_restricted(result.graph, members), cut.labels, n_parts)
    margins = margin(found.shares[:, 0], found.shares[:, 1], found.none)
    outside = cut.labels == NOISE
    parts = np.where(outside, found.topics[:, 0], cut.labels).astype(np.int32)
    lost = np.flatnonzero(parts == NOISE)
    if len(lost):
        vectors = result.embeddings[members]
        sums = np.stack([vectors[cut.labels == part].sum(axis=0) for part in range(n_parts)])
        cosines = np.einsum("id,jd->ij", vectors[lost], unit_rows(sums, keep_zeros=True))
        parts[lost] = cosines.argmax(axis=1)
    return parts, outside & (margins < MIN_MARGIN)


def _restricted(graph: NeighborGraph, members: Int64Array) -> NeighborGraph:
    """Return the graph of some documents; a neighbour that is not among them has no weight."""
    place = np.full(len(graph), -1, dtype=np.int32)
    place[members] = np.arange(len(members), dtype=np.int32)
    indices = place[graph.indices[members]]
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
    """Return all labels and memberships, the parts numbered after the topics that stay."""
    from scipy.sparse import csr_matrix, hstack

    before = result.memberships.tocsc()
    labels = result.clustering.labels - (result.clustering.labels > topic)
    own = np.full(len(labels), NOISE, dtype=np.int32)
    own[members] = parts
    labels[members] = np.where(parts == NOISE, NOISE, result.n_topics - 1 + parts)
    column = before[:, [topic]].tocoo()
    # Documents with no share of the topic have nothing to divide.
    concerned = np.union1d(column.row, members)
    rows, shares = column.row, column.data
    divided = _proportions(_restricted(result.graph, concerned), own[concerned], n_parts)
    divided = divided[np.searchsorted(concerned, rows)]
    inside = np.flatnonzero(own[rows] != NOISE)
    at = inside, own[rows[inside]]
    least = np.maximum(
        OWN_SHARE + (1 - OWN_SHARE) * divided[at], np.minimum(1.0, MOSTLY / shares[inside])
    )
    rest = np.divide(1 - least, 1 - divided[at], out=np.zeros_like(least), where=divided[at] < 1)
    divided[inside] *= rest[:, None]
    divided[at] = least
    places = np.repeat(rows, n_parts), np.tile(np.arange(n_parts), len(rows))
    of_parts = csr_matrix(
        ((shares[:, None] * divided).ravel(), places), shape=(len(labels), n_parts)
    )
    of_parts.eliminate_zeros()
    kept = np.delete(np.arange(result.n_topics), topic)
    together = csr_matrix(hstack([before[:, kept], of_parts], format="csr"), dtype=np.float32)
    return labels.astype(np.int32), with_own_share(together, labels)


def _proportions(graph: NeighborGraph, own: Int32Array, n_parts: int) -> FloatArray:
    """Return each document's shares of the parts; by their size where nothing is propagated."""
    found = propagate_labels(graph, own, n_parts)
    shares = np.zeros((len(own), n_parts), dtype=np.float64)
    rows, slots = np.nonzero(found.topics >= 0)
    shares[rows, found.topics[rows, slots]] = found.shares[rows, slots]
    total = shares.sum(axis=1, keepdims=True)
    sizes = np.bincount(own[own != NOISE], minlength=n_parts)
    by_size = np.broadcast_to(sizes / sizes.sum(), shares.shape)
    return np.where(total > 0, shares / np.where(total > 0, total, 1.0), by_size)
