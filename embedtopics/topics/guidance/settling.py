"""From cores to topics that obey a guide: who joins, who moves, and what the topics are called."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from embedtopics.protocols import FloatArray, Int32Array, Int64Array
from embedtopics.results import (
    NOISE,
    Decision,
    DistinctDocuments,
    Guide,
    NeighborGraph,
    Reason,
    Topic,
)
from embedtopics.topics.cores import Cores
from embedtopics.topics.guidance.given_labels import SHOWN
from embedtopics.topics.guidance.guided_cores import owners
from embedtopics.topics.guidance.protocol import note
from embedtopics.topics.memberships import LEAST_RATIO, Joined, clearness, join
from embedtopics.topics.walking import Walk

__all__ = ["named_topics", "outcome", "settle"]


def settle(
    graph: NeighborGraph,
    cores: Cores,
    weights: Int64Array,
    coverage: float | str,
    embeddings: FloatArray,
    guide: Guide | None = None,
) -> Joined:
    """Let documents join topics, and see to it that these are as the guide wants them.

    Parameters
    ----------
    graph : NeighborGraph
    cores : Cores
        Of `cut_cores` or `adopt_cores`, with the same guide.
    weights : int64 ndarray of shape (n_documents,)
    coverage : float or "auto"
    embeddings : float32 ndarray of shape (n_documents, n_dimensions)
    guide : Guide, optional

    Returns
    -------
    Joined
    """
    if guide is None:
        return join(graph, cores.clustering, cores.is_subject, weights, coverage)

    def amend(labels: Int32Array, seeds: Int32Array, walked: Walk) -> Int32Array:
        if guide.is_complete:
            labels = np.maximum(seeds, NOISE).astype(np.int32)
        if guide.is_pure:
            labels = _in_own_class(labels, seeds, walked, weights, embeddings, guide)
        if len(guide.apart):
            labels = _kept_apart(labels, walked, cores.clustering.strengths, guide.apart)
        return labels

    is_held = (guide.groups >= 0) & (guide.is_fixed or guide.is_pure)
    joined = join(
        graph, cores.clustering, cores.is_subject, weights, coverage, is_held=is_held, amend=amend
    )
    if not guide.is_complete:
        return joined
    found = joined.clustering
    reasons = np.where(found.labels == NOISE, Reason.NOT_LABELED, Reason.IN_TOPIC)
    labeled = dataclasses.replace(found, reasons=reasons.astype(np.int8))
    return dataclasses.replace(joined, clustering=labeled)


def named_topics(
    topics: Sequence[Topic], labels: Int32Array, weights: Int64Array, guide: Guide | None
) -> tuple[Topic, ...]:
    """Give the topics known beforehand their names.

    Parameters
    ----------
    topics : sequence of Topic
    labels : int32 ndarray of shape (n_documents,)
    weights : int64 ndarray of shape (n_documents,)
    guide : Guide or None

    Returns
    -------
    tuple of Topic
    """
    named = list(topics)
    if guide is None or not guide.is_fixed:
        return tuple(named)
    for group, topic in enumerate(_homes(labels, weights, guide)[0].tolist()):
        name = guide.names[group]
        if topic == NOISE or not name:
            continue
        named[topic] = dataclasses.replace(
            named[topic], label=name, is_named=guide.is_complete, is_anchor=not guide.is_complete
        )
    return tuple(named)


def outcome(guide: Guide | None, joined: Joined, documents: DistinctDocuments) -> list[Decision]:
    """Say what became of what was asked for."""
    if guide is None or guide.is_complete:
        return []
    found, weights = joined.clustering, documents.weights
    notes = []
    if len(guide.apart):
        assert found.reasons is not None  # join always gives them
        n_out = int(weights[found.reasons == Reason.KEPT_APART].sum())
        if n_out:
            message = f"{n_out:,} texts are in no topic, to be kept apart from others."
            notes.append(note("apart_in_no_topic", n_out, message))
    known = guide.groups >= 0
    if not known.any():
        return notes
    homes, shares = _homes(found.labels, weights, guide)
    if guide.part:
        of_topic = owners(
            found.labels, guide.groups, weights, len(found.persistence), len(guide.names)
        )
        inside = known & (found.labels != NOISE)
        agrees = inside & (np.append(of_topic, NOISE)[found.labels] == guide.groups)
        share = float(weights[agrees].sum() / weights[known].sum())
        message = (
            f"{share:.1%} of the labelled texts are in a topic of their class, "
            f"{float(weights[known & ~inside].sum() / weights[known].sum()):.1%} in none."
        )
        notes.append(note("labels_respected", share, message))
    else:
        sizes = np.bincount(found.labels + 1, weights, minlength=len(found.persistence) + 1)
        said = [
            f"{name}: {share:.0%} in topic {topic}, of {int(sizes[topic + 1]):,} texts"
            if topic != NOISE
            else f"{name}: in none"
            for name, topic, share in zip(guide.names, homes.tolist(), shares, strict=True)
        ]
        shown = "; ".join(said[:SHOWN]) + ("; ..." if len(said) > SHOWN else "")
        notes.append(note("guided_topics", said, f"Where the texts asked for are: {shown}."))
    return notes


def _homes(labels: Int32Array, weights: Int64Array, guide: Guide) -> tuple[Int32Array, list[float]]:
    """Return the topic that holds most texts of each group, or -1, and the share that it holds."""
    n_topics = int(labels.max(initial=NOISE)) + 1
    n_groups = len(guide.names)
    homes = owners(guide.groups, labels, weights, n_groups, n_topics)
    known = guide.groups >= 0
    inside = known & (np.append(homes, NOISE)[guide.groups] == labels)
    n_rows = np.bincount(guide.groups[known], weights[known], minlength=n_groups)
    n_inside = np.bincount(guide.groups[inside], weights[inside], minlength=n_groups)
    return homes, (n_inside / np.maximum(n_rows, 1)).tolist()


def _in_own_class(
    labels: Int32Array,
    seeds: Int32Array,
    walked: Walk,
    weights: Int64Array,
    embeddings: FloatArray,
    guide: Guide,
) -> Int32Array:
    """Move labelled documents to a topic of their class: the one led to, else the nearest."""
    classes = guide.groups
    n_topics = int(seeds.max(initial=NOISE)) + 1
    of_topic = owners(seeds, classes, weights, n_topics, len(guide.names))
    of_label = np.append(of_topic, NOISE)
    wrong = np.flatnonzero((classes >= 0) & (of_label[labels] != classes))
    slots = walked.topics[wrong]
    fits = (slots >= 0) & (of_label[slots] == classes[wrong, None])
    amended = labels.copy()
    amended[wrong] = slots[np.arange(len(wrong)), fits.argmax(axis=1)]
    lost = wrong[~fits.any(axis=1)]
    if len(lost):
        means = np.stack(
            [embeddings[seeds == topic].mean(axis=0, dtype=np.float64) for topic in range(n_topics)]
        )
        near = np.einsum("ij,kj->ik", embeddings[lost].astype(np.float64), means)
        near[of_topic != classes[lost, None]] = -np.inf
        amended[lost] = near.argmax(axis=1)
    return amended


def _kept_apart(
    labels: Int32Array, walked: Walk, strengths: FloatArray, apart: Int64Array
) -> Int32Array:
    """Move documents out of topics that hold one from which they are to be kept apart.

    Those that fewest others of their topic bar are placed first, of these the deepest, and stay.
    Another stays too where nothing placed bars it; else it moves to the clearest topic in which no
    document bars it, placed or not. So the first of a topic always stays, and no topic is emptied.
    """
    others: dict[int, list[int]] = {}
    for one, other in apart.tolist():
        others.setdefault(one, []).append(other)
        others.setdefault(other, []).append(one)
    involved = np.array(sorted(others), dtype=np.int64)
    is_own = walked.topics[involved] == labels[involved, None]
    own = np.where(is_own, walked.shares[involved], 0).sum(axis=1)
    n_bars = np.array(
        [sum(labels[o] == labels[d] != NOISE for o in others[d]) for d in involved.tolist()]
    )
    order = involved[np.lexsort((involved, -own, -strengths[involved], n_bars))]
    amended = labels.copy()
    placed: set[int] = set()
    for document in order.tolist():
        here = amended[document]
        if here != NOISE and any(
            other in placed and amended[other] == here for other in others[document]
        ):
            barred = {int(amended[other]) for other in others[document]}
            amended[document] = _clearest_topic(walked, document, barred)
        placed.add(document)
    return amended


def _clearest_topic(walked: Walk, document: int, barred: set[int]) -> int:
    """Return the topic that a walk clearly leads to, of those that are not barred; -1 if none."""
    topics, shares = walked.topics[document], walked.shares[document]
    allowed = [slot for slot, topic in enumerate(topics.tolist()) if topic not in barred | {NOISE}]
    if not allowed:
        return NOISE
    second = shares[allowed[1]] if len(allowed) > 1 else 0.0
    ratio = clearness(shares[allowed[:1]], np.array([second]), walked.none[[document]])[0]
    return int(topics[allowed[0]]) if ratio >= LEAST_RATIO else NOISE
