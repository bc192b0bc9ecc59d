"""Several topics made one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.protocols import TermWeighting
from embedtopics.results import NOISE, Topic, TopicResult
from embedtopics.topics.editing.naming_rules import checked_labels, spell_topic
from embedtopics.topics.recorded import describe_weighting
from embedtopics.topics.relabeling import checked_topic_id, regrouped, relabeled

__all__ = [
    "continued", "merge", "merge_groups", "names_given_up", "refuse_one_topic",
    "refuse_two_anchors",
]  # fmt: skip

Groups = list[tuple[int, ...]]


def merge(
    result: TopicResult,
    topics: Iterable[int] | Iterable[Iterable[int]],
    *,
    label: str | Sequence[str | None] | None = None,
    weighting: TermWeighting | None = None,
) -> TopicResult:
    """Merge topics.

    The documents of the topics, and their shares in every document, are added up; terms are
    weighed anew from the counts. Documents in no topic stay so (see `reassign`).

    Parameters
    ----------
    result : TopicResult
    topics : iterable of int, or iterable of iterables of int
        Ids of the topics to be one; or several such groups, each to be one of its own. Groups
        that share a topic are one group.
    label : str, optional
        Name of the merged topic; for several groups a list with one for each, or None. Else the
        merged topic keeps the name of the anchor among its parts, or of the largest part that was
        named by hand, and without such a part is named by its keywords.
    weighting : object with ``fit_transform(topic_counts)``, optional
        By default the one of the result.

    Returns
    -------
    TopicResult

    Raises
    ------
    InputError
        Where a group has less than two different topics, holds two anchors (topics that were asked
        for before the fit), or where all topics would become one.
    """
    listed = _listed(topics)
    groups = _disjoint(result, listed)
    named = _names(result, groups, listed, label)
    parameters: dict[str, Any] = {"topics": groups}
    if named:
        parameters["label"] = [named.get(group[0]) for group in groups]
    said = "; ".join(
        " and ".join(spell_topic(topic, result.topics[topic].label) for topic in group)
        for group in groups
    )
    return merge_groups(
        result,
        groups,
        named,
        name="merge",
        parameters=parameters,
        message=f"merged {said}" + (f" as {', '.join(map(repr, named.values()))}" if named else ""),
        marked=sorted(topic for group in groups for topic in group),
        weighting=weighting,
    )


def merge_groups(
    result: TopicResult,
    groups: Sequence[Sequence[int]],
    labels: dict[int, str],
    *,
    name: str,
    parameters: dict[str, Any],
    message: str,
    marked: Sequence[int] = (),
    weighting: TermWeighting | None = None,
) -> TopicResult:
    """Merge the topics of each group.

    Parameters
    ----------
    result : TopicResult
    groups : sequence of sequence of int
        Topic ids, ascending, no topic in two groups and no two anchors in one.
    labels : dict of int to str
        New names, by the first topic of a group.
    name, parameters, message, marked, weighting
        As in `relabeled`.

    Returns
    -------
    TopicResult
    """
    first = np.arange(result.n_topics, dtype=np.int32)
    for group in groups:
        first[list(group)] = group[0]
    kept, draft = np.unique(first, return_inverse=True)
    draft = draft.astype(np.int32)
    parts: dict[int, Sequence[int]] = {group[0]: group for group in groups}
    origins = [
        continued([result.topics[part] for part in parts.get(topic, [topic])], labels.get(topic))
        for topic in kept.tolist()
    ]
    if weighting is not None:
        parameters = {**parameters, "weighting": describe_weighting(weighting)}
    return relabeled(
        result,
        np.append(draft, np.int32(NOISE))[result.clustering.labels],
        regrouped(result.memberships, draft, len(kept)),
        origins,
        name=name,
        parameters=parameters,
        message=message,
        marked=marked,
        follows=draft,
        weighting=weighting,
    )


def refuse_one_topic(n_topics: int) -> None:
    """Raise the error that says why not all topics can become one."""
    raise InputError(
        f"all {n_topics} topics would become one, of which nothing could be said; leave one out, "
        "take away what does not belong with remove, or read the result at fewer topics with "
        "at_resolution"
    )


def refuse_two_anchors(result: TopicResult, group: Sequence[int]) -> None:
    """Raise the error that says which topics of a group were asked for, where two were."""
    anchors = [topic for topic in group if result.topics[topic].is_anchor]
    if len(anchors) > 1:
        names = " and ".join(spell_topic(t, result.topics[t].label) for t in anchors[:2])
        raise InputError(
            f"{names} were both asked for before the fit and stay apart; merge only one of "
            "them with others, or fit again without the other"
        )


def continued(parts: Sequence[Topic], label: str | None = None) -> Topic:
    """Return the topic of which a merged one keeps the name; its persistence is not known."""
    if len(parts) == 1:
        return parts[0]
    anchors = [part for part in parts if part.is_anchor]
    named = [part for part in parts if part.is_named]
    base = (anchors or named or parts)[0]
    return dataclasses.replace(
        base,
        label=base.label if label is None else label,
        is_named=base.is_named or label is not None,
        persistence=float("nan"),
    )


def names_given_up(groups: Iterable[Sequence[Topic]]) -> list[str]:
    """Return the names, given by hand or before the fit, that merged topics do not keep."""
    return [
        part.label
        for group in groups
        for part in group
        if (part.is_named or part.is_anchor) and part.label != continued(group).label
    ]


def _listed(topics: Any) -> list[list[Any]]:
    """Return groups as lists, one or several."""
    if isinstance(topics, (str, bytes)) or not hasattr(topics, "__iter__"):
        raise InputError(
            f"expected two topics or more, such as [3, 5], or a list of such lists; got {topics!r}"
        )
    items = list(topics)
    if not items:
        raise InputError("expected two topics or more; got none")
    is_group = [hasattr(item, "__iter__") and not isinstance(item, (str, bytes)) for item in items]
    if not any(is_group):
        return [items]
    if not all(is_group):
        raise InputError(
            f"expected topic ids, or a list of groups of them, not both; got {topics!r}"
        )
    return [list(item) for item in items]


def _disjoint(result: TopicResult, listed: list[list[Any]]) -> Groups:
    """Return groups of ids that share no topic, ascending, after making sure that they can be."""
    found: list[set[int]] = []
    for some in listed:
        ids = {checked_topic_id(result, topic) for topic in some}
        if len(ids) < 2:
            raise InputError(f"a topic cannot be merged with itself; got {some!r}; name two")
        for other in [other for other in found if other & ids]:
            found.remove(other)
            ids |= other
        found.append(ids)
    groups = sorted(tuple(sorted(ids)) for ids in found)
    for group in groups:
        refuse_two_anchors(result, group)
    if len(groups) == 1 and len(groups[0]) == result.n_topics:
        refuse_one_topic(result.n_topics)
    return groups


def _names(
    result: TopicResult, groups: Groups, listed: list[list[Any]], label: Any
) -> dict[int, str]:
    """Return the names that are given, by the first topic of the group."""
    if label is None:
        return {}
    several = isinstance(label, (list, tuple))
    labels = list(label) if several else [label]
    if len(labels) != len(listed) or len(groups) != len(listed):
        raise InputError(
            f"label must be one name for each of the groups, which share no topic; got "
            f"{len(labels)} for {len(groups)}"
        )
    given = {
        min(group): name for group, name in zip(listed, labels, strict=True) if name is not None
    }
    merged = {topic for group in groups if group[0] in given for topic in group}
    others = [(t.topic_id, t.label) for t in result.topics if t.topic_id not in merged]
    return checked_labels(dict(sorted(given.items())), others)
