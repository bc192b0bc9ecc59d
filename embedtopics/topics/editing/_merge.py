"""Fewer topics: merged by hand, by similarity or by a hierarchy's level, or removed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
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
from embedtopics.topics.constraints._protocol import cannot_merge
from embedtopics.topics.editing._labels import checked_labels, spell_topic
from embedtopics.topics.results import Topic, TopicResult
from embedtopics.topics.tree.results import TopicHierarchy

Groups = list[tuple[int, ...]]

APART, FORBIDDEN = 1e9, 3.0
"""Distance of topics that must not merge, and one that only means with such a pair reach."""


def merge(
    result: TopicResult,
    topics: Iterable[int] | Iterable[Iterable[int]],
    *,
    label: str | Sequence[str | None] | None = None,
) -> TopicResult:
    """Merge topics.

    The documents of the topics, and their memberships, are added up; terms are weighted anew from
    the counts. Outliers stay outliers (see `reassign`).

    Parameters
    ----------
    result : TopicResult
    topics : iterable of int, or iterable of iterables of int
        Ids of the topics to merge, or several such groups. Groups that share a topic are one.
    label : str, optional
        Label of the merged topic; for several groups, a list with one for each or None. By default
        that of its seeded part or of its largest part named by hand, else made of its keywords.

    Returns
    -------
    TopicResult

    Raises
    ------
    InputError
        If a group has fewer than two different topics or holds two seeded topics, or if all
        topics would become one.
    """
    listed = _listed(topics)
    groups = _disjoint(result, listed)
    labels = _labels(result, groups, listed, label)
    parameters: dict[str, Any] = {"topics": groups}
    if labels:
        parameters["label"] = [labels.get(group[0]) for group in groups]
    message = "merged " + "; ".join(
        " and ".join(spell_topic(result, topic) for topic in group) for group in groups
    )
    if labels:
        message += f" as {', '.join(map(repr, labels.values()))}"
    parts = sorted(_with_others(result, groups))
    return _regroup(result, parts, "merge", parameters, message, labels)


def _with_others(
    result: TopicResult, groups: Sequence[tuple[int, ...]], removed: Sequence[int] = ()
) -> Groups:
    """Return the groups, and one for each topic that is neither in one nor removed."""
    changed = {*removed, *(topic for group in groups for topic in group)}
    return [*groups, *((topic,) for topic in range(result.n_topics) if topic not in changed)]


def _regroup(
    result: TopicResult,
    parts: Groups,
    name: str,
    parameters: dict[str, Any],
    message: str,
    labels: Mapping[int, str] = MappingProxyType({}),
) -> TopicResult:
    """Make one topic of the topics of each part; documents of topics in no part become outliers."""
    group = np.full(result.n_topics + 1, NOISE, dtype=np.int32)  # the last is that of outliers
    for number, part in enumerate(parts):
        group[list(part)] = number
    unchanged = {part[0] for part in parts if len(part) == 1}
    return relabeled(
        result,
        group[result.clustering.labels],
        regrouped(result.memberships, group[:-1], len(parts)),
        [_continued([result.topics[t] for t in part], labels.get(part[0])) for part in parts],
        name=name,
        parameters=parameters,
        message=message,
        marked=[topic for topic in range(result.n_topics) if topic not in unchanged],
        follows=group[:-1],
    )


def _continued(parts: Sequence[Topic], label: str | None = None) -> Topic:
    """Return the topic whose label a merged one keeps; the persistence of a merge is unknown."""
    if len(parts) == 1:
        return parts[0]
    seeded = [part for part in parts if part.is_seeded]
    named = [part for part in parts if part.is_named]
    base = (seeded or named or parts)[0]
    return dataclasses.replace(
        base,
        label=base.label if label is None else label,
        is_named=base.is_named or label is not None,
        persistence=float("nan"),
    )


def _spell_lost(result: TopicResult, groups: Iterable[Sequence[int]]) -> str:
    """Return for a message which given labels merged topics do not keep."""
    lost = []
    for group in groups:
        parts = [result.topics[topic] for topic in group]
        kept = _continued(parts).label
        lost += [p.label for p in parts if (p.is_named or p.is_seeded) and p.label != kept]
    return f"; labels not kept: {', '.join(lost)}" if lost else ""


def _refuse_two_seeded(result: TopicResult, group: Sequence[int]) -> None:
    seeded = [topic for topic in group if result.topics[topic].is_seeded]
    if len(seeded) > 1:
        names = " and ".join(spell_topic(result, topic) for topic in seeded[:2])
        raise InputError("topics", "groups with one seeded topic at most", found=names)


def _refuse_one_topic(parameter: str, n_topics: int) -> None:
    found, remedy = f"all {n_topics} topics made one", "leave one out, or remove topics"
    raise InputError(parameter, "such that two topics are left", found=found, remedy=remedy)


def _listed(topics: Any) -> list[list[Any]]:
    """Return groups as lists, one or several."""
    is_list = hasattr(topics, "__iter__") and not isinstance(topics, (str, bytes))
    items = list(topics) if is_list else []
    is_group = [hasattr(item, "__iter__") and not isinstance(item, (str, bytes)) for item in items]
    if not items or any(is_group) != all(is_group):
        raise InputError("topics", "two ids or more, such as [3, 5], or a list of such", topics)
    return [list(item) for item in items] if is_group[0] else [items]


def _disjoint(result: TopicResult, listed: list[list[Any]]) -> Groups:
    """Return ascending groups of ids that share no topic, or refuse them."""
    found: list[set[int]] = []
    for some in listed:
        ids = {checked_topic_id(result, topic) for topic in some}
        if len(ids) < 2:
            raise InputError("topics", "groups of two different topics or more", some)
        for other in [other for other in found if other & ids]:
            found.remove(other)
            ids |= other
        found.append(ids)
    groups = sorted(tuple(sorted(ids)) for ids in found)
    for group in groups:
        _refuse_two_seeded(result, group)
    if len(groups) == 1 and len(groups[0]) == result.n_topics:
        _refuse_one_topic("topics", result.n_topics)
    return groups


def _labels(
    result: TopicResult, groups: Groups, listed: list[list[Any]], label: Any
) -> dict[int, str]:
    """Return the labels that are given, by the first topic of the group."""
    if label is None:
        return {}
    labels = list(label) if isinstance(label, (list, tuple)) else [label]
    if len(labels) != len(listed) or len(groups) != len(listed):
        expected = f"one for each of the {len(groups)} groups that share no topic"
        raise InputError("label", expected, found=f"{len(labels)}")
    pairs = zip(listed, labels, strict=True)
    given = {min(group): name for group, name in pairs if name is not None}
    merged = {topic for group in groups if group[0] in given for topic in group}
    others = [(t.topic_id, t.label) for t in result.topics if t.topic_id not in merged]
    return checked_labels(dict(sorted(given.items())), others)


def reduce(result: TopicResult, n_topics: int, *, by: str = "terms") -> TopicResult:
    """Merge the nearest topics until a number of them is left.

    Unlike `at_resolution`, this keeps edits by hand and works with every clusterer. Seeded topics
    are never merged with one another; nor are topics that hold texts with a `CannotLink`.

    Parameters
    ----------
    result : TopicResult
    n_topics : int
        Topics that are left, exactly; at least 2.
    by : {"terms", "embeddings"}
        Compare topics by the cosine of their weighted terms, or of their mean embeddings.

    Returns
    -------
    TopicResult

    Raises
    ------
    InputError
        If the number is above that of the topics, below 2, or below what the constraints allow.

    Notes
    -----
    Agglomerative clustering with average linkage (Sokal and Michener 1958): the distance of two
    groups is the mean, over all pairs, of one minus the cosine.
    """
    if not is_count(n_topics) or n_topics > result.n_topics:
        expected = f"from 2 to {result.n_topics}, the topics that there are"
        raise InputError("n_topics", expected, n_topics, "for more, use split or at_resolution")
    if n_topics == 1 and result.n_topics > 1:
        _refuse_one_topic("n_topics", result.n_topics)
    least = sum(topic.is_seeded for topic in result.topics)
    similarities = topic_cosines(result, by)
    groups: Groups = []
    if least <= n_topics < result.n_topics:
        groups = group_nearest(1.0 - similarities, int(n_topics), cannot_merge(result))
        least = result.n_topics - sum(map(len, groups)) + len(groups)
    if least > n_topics:
        expected = f"at least {least}, as the constraints of the fit keep these apart"
        raise InputError("n_topics", expected, n_topics, "merge some of them by hand")
    message = f"reduced {result.n_topics} topics to {n_topics}, by {by}: "
    message += f"{sum(map(len, groups))} became {len(groups)}{_spell_lost(result, groups)}"
    parameters = {"n_topics": int(n_topics), "by": by}
    parts = sorted(_with_others(result, groups))
    return _regroup(result, parts, "reduce", parameters, message)


def group_nearest(
    distances: Float64Array, n_groups: int, apart: npt.NDArray[np.bool_] | None = None
) -> Groups:
    """Group items by average linkage; more groups are left where `apart` (n, n) forbids it."""
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

    Terms are weighted anew, as the words of the removed topics no longer set the others apart.

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
    kept = _with_others(result, (), gone)
    return _regroup(result, kept, "remove", {"topics": gone}, message)


def at_level(
    result: TopicResult,
    hierarchy: TopicHierarchy | None = None,
    n_topics: int | None = None,
    *,
    topics: Sequence[Sequence[int]] | None = None,
) -> TopicResult:
    """Merge the topics of a result as a hierarchy has them at a level.

    Parameters
    ----------
    result : TopicResult
    hierarchy : TopicHierarchy, optional
        Of this result.
    n_topics : int, optional
        Number of topics; more where constraints of the fit keep topics apart, as in `reduce`.
    topics : sequence of sequence of int, optional
        Instead of a hierarchy and level, the topics that become one: what the edit records.

    Returns
    -------
    TopicResult
        Of several given labels in a group that of a seeded topic is kept, else that of the largest.

    Raises
    ------
    InputError
        If the hierarchy is of another result, the level does not exist, or groups share a topic or
        hold two seeded topics.
    """
    groups, n_more = topics or (), 0
    if (hierarchy is None) != (n_topics is None) or (hierarchy is None) == (topics is None):
        raise InputError("expected either a hierarchy and a level, or topics; got both or none")
    if hierarchy is not None and n_topics is not None:
        groups, n_more = _groups_at(result, hierarchy, n_topics)
    merged = [checked_topic_ids(result, group) for group in groups]
    named = [topic for group in merged for topic in group]
    if len(set(named)) < len(named):
        twice = next(topic for topic in named if named.count(topic) > 1)
        raise InputError("topics", "groups that share no topic", found=f"topic {twice} in two")
    merged = [group for group in merged if len(group) > 1]
    for group in merged:
        _refuse_two_seeded(result, group)
    parts = _with_others(result, merged)
    message = (
        f"read at a level of {len(parts)} topics: {sum(map(len, merged))} of {result.n_topics} "
        f"topics became {len(merged)} topic{'' if len(merged) == 1 else 's'}"
    )
    if n_more:
        message += f"; {n_more} more than at this level, as the constraints of the fit ask for"
    message += _spell_lost(result, parts)
    return _regroup(result, parts, "at_level", {"topics": merged}, message)


def _groups_at(result: TopicResult, hierarchy: TopicHierarchy, n_topics: int) -> tuple[Groups, int]:
    """Return the groups of a level, and the number of those added as they must not merge."""
    sizes = [topic.size for topic in result.topics]
    if sizes != [node.size for node in hierarchy.nodes[: hierarchy.n_topics]]:
        expected = f"of the {result.n_topics} topics of this result"
        raise InputError("hierarchy", expected, found=f"one of {hierarchy.n_topics} other topics")
    apart = cannot_merge(result)
    left = list(hierarchy.nodes_at(n_topics))
    n_wanted, groups = len(left), []
    while left:
        node = left.pop()
        group = hierarchy.topics_under(node)
        if apart[np.ix_(group, group)].any():
            left.extend(hierarchy.merges[node - hierarchy.n_topics].tolist())
        else:
            groups.append(group)
    return sorted(groups), len(groups) - n_wanted
