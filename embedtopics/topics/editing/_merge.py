"""Fewer topics: merged by id or by similarity, or removed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import is_count
from embedtopics._utils.display import spell_count
from embedtopics.clustering.results import NOISE
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array
from embedtopics.topics._relabel import checked_topic_id, checked_topic_ids, regrouped, relabeled
from embedtopics.topics._vectors import topic_cosines
from embedtopics.topics.editing._labels import spell_topic
from embedtopics.topics.results import Topic, TopicResult

Groups = list[tuple[int, ...]]

APART, FORBIDDEN = 1e9, 3.0
"""Distance of topics that must not merge, and a bound that only means with such a pair exceed."""


def merge(result: TopicResult, topics: Iterable[int] | Iterable[Iterable[int]]) -> TopicResult:
    """Merge topics.

    Documents and memberships of the topics are added up, and terms are weighted again. Outliers
    stay outliers (see `reassign`). A merged topic keeps the label of its seeded part, or of its
    largest named part.

    Parameters
    ----------
    result : TopicResult
    topics : iterable of int, or iterable of iterables of int
        Ids of the topics to merge, or several such groups. Groups that share a topic are one.

    Returns
    -------
    TopicResult

    Raises
    ------
    InputError
        If a group has fewer than two topics or two seeded topics, or if all topics would become
        one.
    """
    groups = _disjoint(result, _listed(topics))
    message = "merged " + "; ".join(
        " and ".join(spell_topic(result, topic) for topic in group) for group in groups
    )
    parts = sorted(_with_others(result, groups))
    return _regroup(result, parts, "merge", {"topics": groups}, message)


def _with_others(
    result: TopicResult, groups: Sequence[tuple[int, ...]], removed: Sequence[int] = ()
) -> Groups:
    """Return the groups, and one group for each other topic that is not removed."""
    changed = {*removed, *(topic for group in groups for topic in group)}
    return [*groups, *((topic,) for topic in range(result.n_topics) if topic not in changed)]


def _regroup(
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
        [_continued([result.topics[t] for t in part]) for part in parts],
        name=name,
        parameters=parameters,
        message=message,
        marked=[topic for topic in range(result.n_topics) if topic not in unchanged],
        follows=group[:-1],
    )


def _continued(parts: Sequence[Topic]) -> Topic:
    """Return the topic that a merged one continues, with unknown persistence."""
    if len(parts) == 1:
        return parts[0]
    seeded = [part for part in parts if part.is_seeded]
    named = [part for part in parts if part.is_named]
    return dataclasses.replace((seeded or named or parts)[0], persistence=float("nan"))


def _spell_lost(result: TopicResult, groups: Iterable[Sequence[int]]) -> str:
    """Return the labels that merged topics lose, for a message."""
    lost = []
    for group in groups:
        parts = [result.topics[topic] for topic in group]
        label = _continued(parts).label
        lost += [p.label for p in parts if (p.is_named or p.is_seeded) and p.label != label]
    return f"; lost labels: {', '.join(lost)}" if lost else ""


def _refuse_two_seeded(result: TopicResult, group: Sequence[int]) -> None:
    seeded = [topic for topic in group if result.topics[topic].is_seeded]
    if len(seeded) > 1:
        names = " and ".join(spell_topic(result, topic) for topic in seeded[:2])
        raise InputError("topics", "groups with at most one seeded topic", found=names)


def _refuse_one_topic(parameter: str, n_topics: int) -> None:
    merged, remedy = f"one topic of all {n_topics}", "leave one out, or remove topics"
    raise InputError(parameter, "so that two topics are left", found=merged, remedy=remedy)


def _listed(topics: Any) -> list[list[Any]]:
    """Return one group or several as lists."""
    items = list(topics)
    return [list(item) for item in items] if hasattr(items[0], "__iter__") else [items]


def _disjoint(result: TopicResult, listed: list[list[Any]]) -> Groups:
    """Return ascending groups of ids; groups that share a topic become one."""
    disjoint: list[set[int]] = []
    for group in listed:
        ids = {checked_topic_id(result, topic) for topic in group}
        if len(ids) < 2:
            raise InputError("topics", "groups of two different topics or more", group)
        for other in [other for other in disjoint if other & ids]:
            disjoint.remove(other)
            ids |= other
        disjoint.append(ids)
    groups = sorted(tuple(sorted(ids)) for ids in disjoint)
    for ids_of_group in groups:
        _refuse_two_seeded(result, ids_of_group)
    if len(groups) == 1 and len(groups[0]) == result.n_topics:
        _refuse_one_topic("topics", result.n_topics)
    return groups


def reduce(result: TopicResult, n_topics: int, *, by: str = "terms") -> TopicResult:
    """Merge the nearest topics until `n_topics` are left.

    Unlike `at_resolution`, this keeps earlier edits and works with every clusterer. It never merges
    seeded topics.

    Parameters
    ----------
    result : TopicResult
    n_topics : int
        Exact number of topics left; at least 2.
    by : {"terms", "embeddings"}
        Compare topics by the cosine of their weighted terms, or of their mean embeddings.

    Returns
    -------
    TopicResult

    Raises
    ------
    InputError
        If the number is below 2, above the number of topics, or excluded by the constraints.

    Notes
    -----
    Agglomerative clustering with average linkage (Sokal and Michener 1958): the distance of two
    groups is the mean, over all pairs, of one minus the cosine.
    """
    if not is_count(n_topics) or n_topics > result.n_topics:
        expected = f"from 2 to {result.n_topics}, the number of topics"
        raise InputError("n_topics", expected, n_topics, "for more, use split or at_resolution")
    if n_topics == 1 and result.n_topics > 1:
        _refuse_one_topic("n_topics", result.n_topics)
    least = sum(topic.is_seeded for topic in result.topics)
    similarities = topic_cosines(result, by)
    groups: Groups = []
    if least <= n_topics < result.n_topics:
        groups = group_nearest(1.0 - similarities, int(n_topics), _cannot_merge(result))
        least = result.n_topics - sum(map(len, groups)) + len(groups)
    if least > n_topics:
        expected = f"at least {least}, which the constraints of the fit keep apart"
        raise InputError("n_topics", expected, n_topics, "merge some of them with merge")
    message = f"reduced {result.n_topics} topics to {n_topics}, by {by}: "
    message += f"{sum(map(len, groups))} became {len(groups)}{_spell_lost(result, groups)}"
    parameters = {"n_topics": int(n_topics), "by": by}
    parts = sorted(_with_others(result, groups))
    return _regroup(result, parts, "reduce", parameters, message)


def _cannot_merge(result: TopicResult) -> npt.NDArray[np.bool_]:
    """Return the pairs of topics that must not merge: seeded ones, (n_topics, n_topics)."""
    seeded = np.array([topic.is_seeded for topic in result.topics], dtype=bool)
    apart: npt.NDArray[np.bool_] = seeded[:, None] & seeded
    np.fill_diagonal(apart, False)
    return apart


def group_nearest(
    distances: Float64Array, n_groups: int, apart: npt.NDArray[np.bool_] | None = None
) -> Groups:
    """Group items by average linkage; `apart` (n, n) forbids pairs and may leave more groups."""
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    between = np.array(distances, dtype=np.float64)
    if apart is not None:
        between[apart] = APART
    np.fill_diagonal(between, 0.0)
    members = {item: [item] for item in range(len(between))}
    if len(members) > n_groups:
        steps = linkage(squareform(between, checks=False), "average")
        n_merged = min(len(members) - n_groups, int((steps[:, 2] < FORBIDDEN).sum()))
        for node, pair in enumerate(steps[:n_merged, :2].astype(int).tolist(), len(members)):
            members[node] = members.pop(pair[0]) + members.pop(pair[1])
    return sorted(tuple(sorted(items)) for items in members.values() if len(items) > 1)


def remove(result: TopicResult, topics: int | Iterable[int]) -> TopicResult:
    """Remove topics: their documents become outliers, with `Reason.REMOVED`.

    Terms are weighted again, because the words of removed topics no longer distinguish the others.

    Parameters
    ----------
    result : TopicResult
    topics : int or iterable of int
        Topic ids.

    Returns
    -------
    TopicResult

    Raises
    ------
    InputError
        If there is no such topic.
    """
    gone = checked_topic_ids(result, topics)
    n_texts = sum(result.topics[topic].size for topic in gone)
    names = ", ".join(spell_topic(result, topic) for topic in gone)
    message = f"removed {names}: {spell_count(n_texts, 'text is', 'texts are')} in no topic"
    parts = _with_others(result, (), gone)
    return _regroup(result, parts, "remove", {"topics": gone}, message)
