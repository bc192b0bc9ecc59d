"""A result read at a level of its hierarchy."""

from __future__ import annotations

from collections.abc import Sequence

from embedtopics.errors import InputError
from embedtopics.protocols import TermWeighting
from embedtopics.results import TopicHierarchy, TopicResult
from embedtopics.topics.editing.merging import merge_groups
from embedtopics.topics.editing.naming_rules import spell_topic
from embedtopics.topics.relabeling import checked_topic_ids

__all__ = ["at_level"]


def at_level(
    result: TopicResult,
    hierarchy: TopicHierarchy | None = None,
    n_topics: int | None = None,
    *,
    distance: float | None = None,
    topics: Sequence[Sequence[int]] | None = None,
    weighting: TermWeighting | None = None,
) -> TopicResult:
    """Merge the topics of a result as a hierarchy has them at a level.

    Unlike `at_resolution`, which cuts the documents anew, this keeps every document where it is
    and only joins topics, by the likeness that the hierarchy was made with.

    Parameters
    ----------
    result : TopicResult
    hierarchy : TopicHierarchy, optional
        Of this result.
    n_topics : int, optional
        How many topics there shall be.
    distance : float, optional
        In its place, the distance up to which topics merge.
    topics : sequence of sequence of int, optional
        In place of all these, the ids of the topics that become one; topics in no group stay as
        they are. This is what the edit records.
    weighting : object with ``fit_transform(topic_counts)``, optional
        By default the one of the result.

    Returns
    -------
    TopicResult
        Merged topics are described anew from the counts of the result; shares are added up. A
        name that the user gave stays; of several in one group that of the largest topic does,
        that of one asked for before the fit first, and the edit says which gave way.

    Raises
    ------
    InputError
        If the hierarchy is of another result, the level does not exist, a topic is in two
        groups, or two topics that were asked for before the fit are in one.
    """
    groups: Sequence[Sequence[int]]
    if topics is None:
        if hierarchy is None:
            raise InputError("expected a hierarchy and a level, or groups of topic ids; got none")
        _check_same_topics(result, hierarchy)
        groups = hierarchy.cut(n_topics, distance=distance)
    elif hierarchy is not None or n_topics is not None or distance is not None:
        raise InputError("expected either groups of topic ids or a hierarchy and a level, got both")
    else:
        groups = topics
    joined = [list(checked_topic_ids(result, group)) for group in groups]
    named = [topic for group in joined for topic in group]
    if len(set(named)) < len(named):
        twice = next(topic for topic in named if named.count(topic) > 1)
        raise InputError(f"expected every topic in one group at most; topic {twice} is in two")
    joined = [group for group in joined if len(group) > 1]
    _check_anchors(result, joined, hierarchy)
    merged = sorted(topic for group in joined for topic in group)
    into = "topic" if len(joined) == 1 else "topics"
    lost = [name for group in joined for name in _names_that_give_way(result, group)]
    return merge_groups(
        result,
        joined,
        {},
        name="at_level",
        parameters={"topics": joined},
        message=f"read at a level of {result.n_topics - len(merged) + len(joined)} topics: "
        f"{len(merged)} of {result.n_topics} topics became {len(joined)} {into}"
        + (f"; names that gave way: {', '.join(lost)}" if lost else ""),
        marked=merged,
        weighting=weighting,
    )


def _names_that_give_way(result: TopicResult, group: Sequence[int]) -> list[str]:
    """Return the names that the user gave, before or after the fit, and that a merge loses."""
    parts = [result.topics[topic] for topic in group]
    anchors = [part.label for part in parts if part.is_anchor]
    named = [part.label for part in parts if part.is_named and not part.is_anchor]
    return [*anchors, *named][1:]


def _check_anchors(
    result: TopicResult, groups: Sequence[Sequence[int]], hierarchy: TopicHierarchy | None
) -> None:
    """Refuse to join topics that were both asked for before the fit, as every edit does."""
    for group in groups:
        anchors = [topic for topic in group if result.topics[topic].is_anchor]
        if len(anchors) > 1:
            names = " and ".join(spell_topic(t, result.topics[t].label) for t in anchors[:2])
            remedy = (
                "leave one of them out of the group"
                if hierarchy is None
                else f"take {_least_level(result, hierarchy)} topics or more, or a smaller distance"
            )
            raise InputError(f"{names} were both asked for before the fit and stay apart; {remedy}")


def _least_level(result: TopicResult, hierarchy: TopicHierarchy) -> int:
    """Return the fewest groups at which no two topics that were asked for are in one."""
    has_anchor = [topic.is_anchor for topic in result.topics]
    for merge, (left, right) in enumerate(hierarchy.merges.tolist()):
        if has_anchor[left] and has_anchor[right]:
            return hierarchy.n_topics - merge
        has_anchor.append(has_anchor[left] or has_anchor[right])
    return 1


def _check_same_topics(result: TopicResult, hierarchy: TopicHierarchy) -> None:
    """Refuse a hierarchy of other topics: its ids would mean something else here."""
    sizes = [topic.size for topic in result.topics]
    theirs = [node.size for node in hierarchy.nodes[: hierarchy.n_topics]]
    if sizes != theirs:
        raise InputError(
            f"the hierarchy is of other topics ({hierarchy.n_topics}) than the result's "
            f"({result.n_topics}); make it of this result with topics.hierarchy"
        )
