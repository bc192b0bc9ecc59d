"""One topic made several."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.clustering import spanning_tree, subtree
from embedtopics.errors import InputError
from embedtopics.neighbors import unit_rows
from embedtopics.protocols import FloatArray, Int32Array, Int64Array, TermWeighting
from embedtopics.results import (
    NOISE,
    Clustering,
    NeighborGraph,
    Reason,
    SpanningTree,
    Topic,
    TopicResult,
)
from embedtopics.terms import without_subject
from embedtopics.topics.editing.naming_rules import spell_topic
from embedtopics.topics.memberships import LEAST_RATIO, OWN_SHARE, clearness
from embedtopics.topics.recorded import describe_weighting
from embedtopics.topics.relabeling import checked_topic_id, relabeled, with_own_share
from embedtopics.topics.resolutions import NotEnoughTopics, Resolution, choose_cores
from embedtopics.topics.walking import walk

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["split"]

MOSTLY = 0.51
"""Share of a document, where the topic has that much, that is at least its own part's."""


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

    The part of the density hierarchy that the topic's documents see is cut finer. Documents of
    the topic outside the new cores are led to a part by walking along the neighbours that the
    topic holds, those that no walk leads anywhere by their vectors. The other topics, and their
    shares in all documents, stay as they are; the shares of the topic are dealt out among its
    parts.

    Parameters
    ----------
    result : TopicResult
    topic : int
        Its id.
    n_topics : "auto", "fine", "coarse" or int
        Parts. An integer from 2 up is met exactly. A name chooses the smallest core of a part
        from the size of the topic, as a fit does from the size of a collection, and makes parts
        only of cores whose words differ from those of the topic.
    min_cluster_size : "auto" or int
        Fewest texts in the core of a part, in place of `n_topics`.
    keep_all : bool
        Whether documents that lie between the parts join the nearest all the same; else they are
        in no topic.
    weighting : object with ``fit_transform(topic_counts)``, optional
        By default the one of the result.

    Returns
    -------
    TopicResult
        An anchor (a topic that was asked for before the fit) lives on as its largest part; a name
        given by hand to any other topic is given up, as the parts are named by their keywords.

    Raises
    ------
    InputError
        Where there is no such topic, or it does not come apart.
    """
    topic = checked_topic_id(result, topic)
    if n_topics == 1 and not isinstance(n_topics, bool):
        raise InputError("n_topics must be two parts or more, or a name; got 1")
    members = np.flatnonzero(result.clustering.labels == topic)
    cut = _cores(result, members, topic, Resolution(n_topics, min_cluster_size))
    parts, unclear = _lead(result, members, cut)
    if not keep_all:
        parts = np.where(unclear, np.int32(NOISE), parts)
    n_parts = len(cut.persistence)
    labels, memberships = _spread(result, topic, members, parts, n_parts)
    strengths = result.clustering.strengths.copy()
    strengths[members] = cut.strengths
    old = result.topics[topic]
    sizes = np.bincount(parts[parts >= 0], result.documents.weights[members][parts >= 0], n_parts)
    largest = int(sizes.argmax())
    origins: list[Topic | None] = [*result.topics[:topic], *result.topics[topic + 1 :]]
    origins += [_heir(old) if part == largest else None for part in range(n_parts)]
    follows = np.arange(result.n_topics) - (np.arange(result.n_topics) > topic)
    follows[topic] = result.n_topics - 1 + largest
    given_up = old.is_named and not old.is_anchor
    parameters: dict[str, Any] = {
        "topic": topic, "n_topics": n_topics, "min_cluster_size": min_cluster_size,
        "keep_all": keep_all,
    }  # fmt: skip
    if weighting is not None:
        parameters["weighting"] = describe_weighting(weighting)
    return relabeled(
        result,
        labels,
        memberships,
        origins,
        name="split",
        parameters=parameters,
        message=f"split {spell_topic(topic, old.label)} into {n_parts} topics"
        + (", and gave up its name" if given_up else ""),
        marked=[topic],
        follows=follows,
        reason=Reason.BETWEEN,
        strengths=strengths,
        weighting=weighting,
    )


def _heir(topic: Topic) -> Topic | None:
    """Return of what the largest part keeps the name; its persistence is not known."""
    return dataclasses.replace(topic, persistence=float("nan")) if topic.is_anchor else None


def _cores(
    result: TopicResult, members: Int64Array, topic: int, resolution: Resolution
) -> Clustering:
    """Return the cores of the parts, in the numbering of the topic's documents."""
    weights = result.documents.weights[members]
    counts = dataclasses.replace(result.term_counts, counts=result.term_counts.counts[members])
    by_number = not isinstance(resolution.n_topics, str)

    def without(labels: Int32Array, n_found: int) -> npt.NDArray[np.bool_]:
        # Of a number that the user insists on, no part is refused for its words.
        none = np.zeros(n_found, dtype=bool)
        return none if by_number else without_subject(counts, labels, n_found)

    cores, found = None, 1
    if len(members) > 1:
        try:
            cores = choose_cores(_tree(result, members), weights, resolution, without)
            found = cores.n_subjects
        except NotEnoughTopics as error:
            found = error.best.n_subjects
    if cores is None or found < 2:
        name = spell_topic(topic, result.topics[topic].label)
        remedy = "fewer" if found > 1 else "a number of parts, or a smaller min_cluster_size"
        raise InputError(
            f"topic {name} does not come apart{f' into more than {found}' if found > 1 else ''}: "
            f"its {int(weights.sum()):,} texts have no more groups that set themselves apart; "
            f"ask for {remedy}, or leave it whole"
        )
    number = np.full(len(cores.is_subject) + 1, NOISE, dtype=np.int32)
    number[:-1][cores.is_subject] = np.arange(found, dtype=np.int32)
    labels = number[cores.clustering.labels]
    strengths = np.where(labels == NOISE, 0.0, cores.clustering.strengths).astype(np.float32)
    # Its density was compared within the topic, so that its persistence would mislead.
    return Clustering(labels, strengths, np.full(found, np.nan))


def _tree(result: TopicResult, members: Int64Array) -> SpanningTree:
    """Return the hierarchy of the topic's documents, of the fit's or of their coordinates."""
    if result.tree is not None:
        return subtree(result.tree, members)
    return spanning_tree(result.coordinates[members], weights=result.documents.weights[members])


def _lead(
    result: TopicResult, members: Int64Array, cut: Clustering
) -> tuple[Int32Array, npt.NDArray[np.bool_]]:
    """Return the part of each of the topic's documents, and whether it is unclear."""
    n_parts = len(cut.persistence)
    walked = walk(_restricted(result.graph, members), cut.labels, n_parts)
    ratios = clearness(walked.shares[:, 0], walked.shares[:, 1], walked.none)
    outside = cut.labels == NOISE
    parts = np.where(outside, walked.topics[:, 0], cut.labels).astype(np.int32)
    lost = np.flatnonzero(parts == NOISE)
    if len(lost):
        vectors = result.embeddings[members]
        middles = np.stack([vectors[cut.labels == part].sum(axis=0) for part in range(n_parts)])
        cosines = np.einsum("id,jd->ij", vectors[lost], unit_rows(middles, keep_zeros=True))
        parts[lost] = cosines.argmax(axis=1)
    return parts, outside & (ratios < LEAST_RATIO)


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


def _spread(
    result: TopicResult, topic: int, members: Int64Array, parts: Int32Array, n_parts: int
) -> tuple[Int32Array, csr_matrix]:
    """Return all labels and memberships, the parts numbered after the topics that stay.

    Every document's share of the topic is dealt out among its parts as the walks from it end in
    them; a document's own part gets at least six tenths of it, and is the largest.
    """
    from scipy.sparse import csr_matrix, hstack

    before = result.memberships.tocsc()
    labels = result.clustering.labels - (result.clustering.labels > topic)
    own = np.full(len(labels), NOISE, dtype=np.int32)
    own[members] = parts
    first = result.n_topics - 1
    labels[members] = np.where(parts == NOISE, NOISE, first + parts)
    column = before[:, [topic]].tocoo()
    # Whoever has no share of the topic has nothing to deal out, and need not be walked through.
    concerned = np.union1d(column.row, members)
    rows, shares = column.row, column.data
    dealt = _dealt(_restricted(result.graph, concerned), own[concerned], n_parts)
    dealt = dealt[np.searchsorted(concerned, rows)]
    inside = np.flatnonzero(own[rows] != NOISE)
    at = inside, own[rows[inside]]
    least = np.maximum(
        OWN_SHARE + (1 - OWN_SHARE) * dealt[at], np.minimum(1.0, MOSTLY / shares[inside])
    )
    rest = np.divide(1 - least, 1 - dealt[at], out=np.zeros_like(least), where=dealt[at] < 1)
    dealt[inside] *= rest[:, None]
    dealt[at] = least
    of_parts = csr_matrix(
        (
            (shares[:, None] * dealt).ravel(),
            (np.repeat(rows, n_parts), np.tile(np.arange(n_parts), len(rows))),
        ),
        shape=(len(labels), n_parts),
    )
    of_parts.eliminate_zeros()
    kept = np.delete(np.arange(result.n_topics), topic)
    together = csr_matrix(hstack([before[:, kept], of_parts], format="csr"), dtype=np.float32)
    return labels.astype(np.int32), with_own_share(together, labels)


def _dealt(graph: NeighborGraph, own: Int32Array, n_parts: int) -> FloatArray:
    """Return in what proportions walks from each document end in the parts.

    By size where none does.
    """
    walked = walk(graph, own, n_parts)
    dealt = np.zeros((len(own), n_parts), dtype=np.float64)
    rows, slots = np.nonzero(walked.topics >= 0)
    dealt[rows, walked.topics[rows, slots]] = walked.shares[rows, slots]
    total = dealt.sum(axis=1, keepdims=True)
    sizes = np.bincount(own[own != NOISE], minlength=n_parts)
    by_size = np.broadcast_to(sizes / sizes.sum(), dealt.shape)
    return np.where(total > 0, dealt / np.where(total > 0, total, 1.0), by_size)
