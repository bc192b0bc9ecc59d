"""The common step of every edit: a result with other labels, its topics described again."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from weakref import WeakSet

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags_array

from embedtopics._utils.checks import is_whole
from embedtopics.clustering.results import NOISE, Clustering
from embedtopics.errors import InputError
from embedtopics.protocols import BoolArray, FloatArray, Int32Array
from embedtopics.terms._keywords import unique_labels
from embedtopics.topics._describe import describe_again
from embedtopics.topics._propagation import OWN_SHARE
from embedtopics.topics._storage import as_json
from embedtopics.topics.naming._name_scores import rescored
from embedtopics.topics.results import Edit, Reason, Topic, TopicMark, TopicResult

DOCUMENTS_PER_MARK = 20

_EDITED: WeakSet[TopicResult] = WeakSet()
"""Results that edited ones were made of: a model that saves one of them says that it is not edited.
Another resolution is no edit."""


def has_edits(result: TopicResult) -> bool:
    """Return whether an edited result was made of this one."""
    return result in _EDITED


def checked_topic_id(result: TopicResult, topic: Any, parameter: str = "topic") -> int:
    """Return the id of a topic, which may be given by its name, or raise InputError."""
    if isinstance(topic, str):
        topic = next((known.topic_id for known in result.topics if known.name == topic), topic)
    n_topics = len(result.topics)
    if is_whole(topic) and 0 <= int(topic) < n_topics:
        return int(topic)
    expected = "a name or an id of a topic (there are none here)"
    if n_topics:
        expected = f"a name or an id from 0 to {n_topics - 1}"
    raise InputError(parameter, expected, topic)


def listed_topics(topics: Any) -> list[Any]:
    """Return one topic or several, given by ids or names, as a list that is not checked yet."""
    if isinstance(topics, np.ndarray):
        return list(np.atleast_1d(topics).tolist())
    if isinstance(topics, str) or not isinstance(topics, Iterable):
        return [topics]
    return list(topics)


def checked_topic_ids(result: TopicResult, topics: Any, parameter: str = "topics") -> list[int]:
    """Return the ids of one topic or several, each given by its id or its name."""
    return [checked_topic_id(result, topic, parameter) for topic in listed_topics(topics)]


def spell_topic(result: TopicResult, topic: int) -> str:
    """Return the id and name of a topic for messages."""
    return f"{topic} ({result.topics[topic].name})"


def marks_of(result: TopicResult, topics: Sequence[int]) -> tuple[TopicMark, ...]:
    """Return the keywords and central documents that identify topics in another fit."""
    labels, probabilities = result.clustering.labels, result.clustering.probabilities
    marks = []
    for topic in topics:
        members = np.flatnonzero(labels == topic)
        deepest = members[np.argsort(-probabilities[members], kind="stable")[:DOCUMENTS_PER_MARK]]
        hashes = tuple(
            f"{high:016x}{low:016x}" for high, low in result.distinct.hashes[deepest].tolist()
        )
        keywords = result.topics[topic].keywords
        marks.append(TopicMark(int(topic), result.topics[topic].name, keywords, hashes))
    return tuple(marks)


def edit_of(
    result: TopicResult,
    name: str,
    parameters: Mapping[str, Any],
    message: str,
    marked: Sequence[int] = (),
    new_ids: npt.ArrayLike | None = None,
) -> Edit:
    """Return the record of an edit, with parameters as JSON holds them."""
    if name != "recluster":
        _EDITED.add(result)
    return Edit(
        name,
        as_json(parameters),
        message,
        marks_of(result, marked),
        None if new_ids is None else tuple(np.asarray(new_ids, dtype=np.int64).tolist()),
    )


def keep_labels(labels: npt.NDArray[Any], stays: BoolArray) -> Int32Array:
    """Return the labels that stay, renumbered; the others become noise."""
    number = np.full(len(stays) + 1, NOISE, dtype=np.int32)
    number[:-1][stays] = np.arange(int(stays.sum()), dtype=np.int32)
    return np.asarray(number[labels], dtype=np.int32)


def regrouped(memberships: csr_matrix, group: npt.ArrayLike, n_groups: int) -> csr_matrix:
    """Add up the shares of the topics of each group, shape (n_documents, n_groups)."""
    group_of = np.asarray(group, dtype=np.int64)
    topics = np.flatnonzero(group_of >= 0)
    ones = np.ones(len(topics), dtype=np.float32)
    shape = (len(group_of), n_groups)
    indicator = csr_matrix((ones, (topics, group_of[topics])), shape=shape)
    return csr_matrix(memberships @ indicator, dtype=np.float32)


def own_shares(memberships: csr_matrix, labels: Int32Array) -> FloatArray:
    """Return the share of each document's topic in it, (n_documents,); 0 without a topic."""
    inside, shares = np.flatnonzero(labels != NOISE), np.zeros(len(labels), dtype=np.float32)
    if len(inside):  # for no rows SciPy returns a sparse matrix
        shares[inside] = np.asarray(memberships[inside, labels[inside]]).ravel()
    return shares


def with_own_share(memberships: csr_matrix, labels: Int32Array) -> csr_matrix:
    """Raise the share of each document's topic to 0.6 if it is below a half."""
    lacks = (labels != NOISE) & (own_shares(memberships, labels) < 0.5)
    if not lacks.any():
        return memberships
    changed = np.flatnonzero(lacks)
    added = csr_matrix(
        (np.full(len(changed), OWN_SHARE), (changed, labels[changed])), shape=memberships.shape
    )
    scaled = diags_array(np.where(lacks, 1.0 - OWN_SHARE, 1.0)) @ memberships
    return csr_matrix(scaled + added, dtype=np.float32)


def relabeled(
    result: TopicResult,
    labels: npt.ArrayLike,
    memberships: csr_matrix,
    origins: Sequence[Topic | None],
    *,
    name: str,
    parameters: Mapping[str, Any],
    message: str,
    marked: Sequence[int] = (),
    follows: npt.ArrayLike | None = None,
    probabilities: FloatArray | None = None,
    renames: bool = False,
    **changes: Any,
) -> TopicResult:
    """Return a result with other labels, and what follows from them.

    Topics keep names given by users, and all names if their documents stay the same, unless
    `renames`.
    """
    drafts = np.asarray(labels, dtype=np.int32)
    inside = drafts != NOISE
    weights = result.distinct.weights[inside]
    sizes = np.bincount(drafts[inside], weights, minlength=len(origins))

    # Topics are numbered from the largest down, by rows.
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 0]
    number = np.full(len(origins) + 1, NOISE, dtype=np.int32)  # the last for noise
    number[order] = np.arange(len(order), dtype=np.int32)
    from_old = [origins[draft] for draft in order.tolist()]

    edited = dataclasses.replace(result, **changes)
    clustering = _clustering(result.clustering, number[drafts], from_old, probabilities)
    same_topic = same_topics(result.clustering.labels, clustering.labels, len(order))
    keeps_name = same_topic != NOISE
    if renames:
        keeps_name[:] = False
    unchanged = _unchanged_representatives(result, clustering, same_topic)
    topics, topic_terms = describe_again(edited, clustering, unchanged)

    new_ids = None if follows is None else number[np.asarray(follows, dtype=np.int64)]
    is_same = np.array_equal(clustering.labels, result.clustering.labels)
    if len(order) < len(origins):
        memberships = regrouped(memberships, number[:-1], len(order))
    else:
        memberships = csr_matrix(memberships, dtype=np.float32, copy=True)
        memberships.indices = number[memberships.indices].astype(memberships.indices.dtype)
        memberships.has_sorted_indices = False
        memberships.sort_indices()

    after = dataclasses.replace(
        edited,
        clustering=clustering,
        memberships=memberships,
        topics=carry_names(topics, from_old, keeps_name),
        topic_terms=topic_terms,
        history=(*result.history, edit_of(result, name, parameters, message, marked, new_ids)),
        stability=result.stability if is_same else None,
    )
    return rescored(after, result)


def with_names(result: TopicResult, names: Mapping[int, str], message: str) -> TopicResult:
    """Return a result with other names, as those of people, and the edit in its history."""
    topics, ids = list(result.topics), range(result.n_topics)
    for topic, name in names.items():
        changes: dict[str, Any] = {"name": name, "is_named": True, "name_auc": None}
        topics[topic] = dataclasses.replace(topics[topic], **changes)
    edit = edit_of(result, "rename", {"names": names}, message, tuple(names), ids)
    renamed = dataclasses.replace(result, topics=tuple(topics), history=(*result.history, edit))
    return rescored(renamed, result)


def _clustering(
    before: Clustering,
    labels: Int32Array,
    origins: Sequence[Topic | None],
    probabilities: FloatArray | None,
) -> Clustering:
    """Return a clustering with other labels, and the reasons of documents outside."""
    depths = before.probabilities if probabilities is None else probabilities
    persistence = [np.nan if old is None else old.persistence for old in origins]
    was_outside = before.labels == NOISE
    reasons = before.reasons
    if reasons is None:
        reasons = np.where(was_outside, Reason.ISOLATED, Reason.IN_TOPIC)
    reasons = np.where(was_outside, reasons, Reason.REMOVED)
    return Clustering(
        labels,
        np.where(labels == NOISE, 0.0, depths).astype(np.float32),
        np.array(persistence, dtype=np.float64),
        np.where(labels == NOISE, reasons, Reason.IN_TOPIC).astype(np.int8),
    )


def same_topics(before: Int32Array, after: Int32Array, n_topics: int) -> Int32Array:
    """Return the old topic that has exactly the documents of each new one, or -1, (n_topics,).

    `before` and `after` (n_documents,) are the topics of the documents, -1 for none.
    """
    n_documents = np.bincount(after[after != NOISE], minlength=n_topics)
    n_before = np.bincount(before[before != NOISE], minlength=1)
    same = np.full(n_topics, NOISE, dtype=np.int32)

    in_both = (before != NOISE) & (after != NOISE)
    pairs, n_shared = np.unique(
        np.stack([before[in_both], after[in_both]]), axis=1, return_counts=True
    )
    is_whole_topic = (n_shared == n_before[pairs[0]]) & (n_shared == n_documents[pairs[1]])
    same[pairs[1, is_whole_topic]] = pairs[0, is_whole_topic]
    return same


def _unchanged_representatives(
    result: TopicResult, after: Clustering, same_topic: Int32Array
) -> dict[int, tuple[int, ...]]:
    """Return the representatives of topics whose documents and probabilities are as before."""
    old = np.append(same_topic, NOISE)[after.labels]
    differs = result.clustering.probabilities != after.probabilities
    is_same = same_topic != NOISE
    is_same[after.labels[differs & (old != NOISE)]] = False
    return {
        topic: result.topics[same_topic[topic]].representatives
        for topic in np.flatnonzero(is_same).tolist()
    }


def carry_names(
    topics: Sequence[Topic], origins: Sequence[Topic | None], keeps_name: BoolArray
) -> tuple[Topic, ...]:
    """Return topics with the names and scores of the topics that they continue.

    Names of people and of constraints stay; automatic ones do where `keeps_name` (n_topics,).
    """
    stays = [
        old is not None and (old.is_named or old.is_seeded or bool(keeps))
        for old, keeps in zip(origins, keeps_name, strict=True)
    ]

    reserved = [old.name for old, stay in zip(origins, stays, strict=True) if old and stay]
    changed = [topic for topic, stay in zip(topics, stays, strict=True) if not stay]
    new_names = iter(
        unique_labels((topic.keywords or [topic.name] for topic in changed), reserved=reserved)
    )

    named = []
    for topic, old, stay in zip(topics, origins, stays, strict=True):
        if old is None:
            named.append(dataclasses.replace(topic, name=next(new_names)))
            continue
        changes: dict[str, Any] = {"is_named": old.is_named, "is_seeded": old.is_seeded}
        changes["name"] = old.name if stay else next(new_names)
        if old.representatives == topic.representatives:
            if changes["name"] == old.name:
                changes["name_auc"] = old.name_auc
            if old.keywords[:3] == topic.keywords[:3]:
                changes["keywords_auc"] = old.keywords_auc
        named.append(dataclasses.replace(topic, **changes))

    return tuple(named)
