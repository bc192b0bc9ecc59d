"""What was asked for before the fit, kept by the edits after it; or, where they break it, told."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import Int32Array, Int64Array
from embedtopics.results import NOISE, Decision, Guide, TopicResult
from embedtopics.topics.guidance.guided_cores import owners
from embedtopics.topics.guidance.protocol import note

__all__ = ["bars", "departures", "stay_apart"]


def stay_apart(result: TopicResult) -> npt.NDArray[np.bool_]:
    """Tell which topics no automatic step may make one.

    Anchors; topics of which each holds a document of a pair to be kept apart; and, under strict
    labels, topics of different classes.

    Returns
    -------
    bool ndarray of shape (n_topics, n_topics)
        Symmetric, False on the diagonal.
    """
    anchors = np.array([topic.is_anchor for topic in result.topics], dtype=bool)
    apart: npt.NDArray[np.bool_] = anchors[:, None] & anchors
    guide, labels = result.guide, result.clustering.labels
    if guide is not None:
        one, other = labels[guide.apart].T
        both = (one != NOISE) & (other != NOISE)
        apart[one[both], other[both]] = apart[other[both], one[both]] = True
        if guide.is_pure:
            classes = _classes(guide, labels, result.documents.weights)
            known = classes != NOISE
            apart |= known[:, None] & known & (classes[:, None] != classes)
    np.fill_diagonal(apart, False)
    return apart


def bars(
    result: TopicResult, documents: Int64Array, topics: Int32Array, order: Int64Array
) -> npt.NDArray[np.bool_]:
    """Tell which documents in no topic may not join the topic that each is led to.

    Parameters
    ----------
    result : TopicResult
    documents : int64 ndarray of shape (n,)
    topics : int32 ndarray of shape (n,)
    order : int64 ndarray of shape (n,)
        Places in `documents`; of two that bar each other the one that comes first joins.

    Returns
    -------
    bool ndarray of shape (n,)
    """
    barred = np.zeros(len(documents), dtype=bool)
    guide = result.guide
    if guide is None:
        return barred
    labels = result.clustering.labels.copy()
    if guide.is_pure:
        classes = _classes(guide, labels, result.documents.weights)
        own = guide.groups[documents]
        barred |= (own >= 0) & (classes[topics] != own)
    involved = np.isin(documents, guide.apart)
    others: dict[int, list[int]] = {}
    if involved.any():
        for one, other in guide.apart.tolist():
            others.setdefault(one, []).append(other)
            others.setdefault(other, []).append(one)
    for place in order[involved[order] & ~barred[order]].tolist():
        topic = topics[place]
        if any(labels[other] == topic for other in others[int(documents[place])]):
            barred[place] = True
        else:
            labels[documents[place]] = topic
    return barred


def departures(
    guide: Guide | None, before: Int32Array, after: Int32Array, weights: Int64Array, edit: str
) -> list[Decision]:
    """Say where an edit made topics that are not as they were asked for.

    Parameters
    ----------
    guide : Guide or None
    before, after : int32 ndarray of shape (n_documents,)
        Topics of the documents.
    weights : int64 ndarray of shape (n_documents,)
    edit : str
        Its name.
    """
    if guide is None:
        return []
    said = []
    joined = _pairs_together(guide, after) & ~_pairs_together(guide, before)
    if n_pairs := int(joined.sum()):
        message = f"Since {edit}, {n_pairs:,} pairs of texts to be kept apart share a topic."
        said.append(note("pairs_joined", n_pairs, message))
    if guide.is_pure or guide.is_complete:
        wrong = _in_another_class(guide, after, weights)
        wrong &= ~_in_another_class(guide, before, weights)
        if n_wrong := int(weights[wrong].sum()):
            message = f"Since {edit}, {n_wrong:,} labelled texts are in a topic of another class."
            said.append(note("labels_mixed", n_wrong, message))
    if guide.is_complete:
        unknown = (guide.groups < 0) & (after != NOISE) & (before == NOISE)
        if n_unknown := int(weights[unknown].sum()):
            message = f"Since {edit}, {n_unknown:,} texts that were not labelled are in topics."
            said.append(note("not_labeled_joined", n_unknown, message))
    return said


def _classes(guide: Guide, labels: Int32Array, weights: Int64Array) -> Int32Array:
    """Return the class of each topic; -1 for one without a labelled document."""
    n_topics = int(labels.max(initial=NOISE)) + 1
    return owners(labels, guide.groups, weights, n_topics, len(guide.names))


def _pairs_together(guide: Guide, labels: Int32Array) -> npt.NDArray[np.bool_]:
    one, other = labels[guide.apart].T
    return np.asarray((one == other) & (one != NOISE))


def _in_another_class(
    guide: Guide, labels: Int32Array, weights: Int64Array
) -> npt.NDArray[np.bool_]:
    classes = np.append(_classes(guide, labels, weights), NOISE)
    return np.asarray((guide.groups >= 0) & (labels != NOISE) & (classes[labels] != guide.groups))
