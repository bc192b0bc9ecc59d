"""A result read at a level of its hierarchy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.protocols import TermWeighting
from embedtopics.results import NOISE, TopicHierarchy, TopicResult
from embedtopics.topics.editing.merging import continued, names_given_up, refuse_two_anchors
from embedtopics.topics.guidance.keeping import stay_apart
from embedtopics.topics.recorded import describe_weighting
from embedtopics.topics.relabeling import checked_topic_ids, regrouped, relabeled

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
        How many topics there shall be. There are more where the level would join topics that were
        asked for before the fit (anchors), topics with texts to be kept apart or, under strict
        labels, topics of different classes: groups that hold such are those of finer levels.
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
        those asked for before the fit first, and the edit says which gave way.

    Raises
    ------
    InputError
        If the hierarchy is of another result, the level does not exist, a topic is in two groups,
        or one of `topics` holds two anchors.
    """
    groups: Sequence[Sequence[int]]
    n_more = 0
    if topics is None:
        if hierarchy is None:
            raise InputError("expected a hierarchy and a level, or groups of topic ids; got none")
        _check_same_topics(result, hierarchy)
        groups, n_more = _allowed(result, hierarchy, n_topics, distance)
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
    for group in joined:
        refuse_two_anchors(result, group)
    merged = [topic for group in joined for topic in group]
    alone = sorted(set(range(result.n_topics)) - set(merged))
    parts = [*joined, *([topic] for topic in alone)]
    group_of = np.full(result.n_topics + 1, NOISE, dtype=np.int32)  # the last is that of noise
    for number, group in enumerate(parts):
        group_of[group] = number
    into = "topic" if len(joined) == 1 else "topics"
    of_groups = [[result.topics[topic] for topic in group] for group in parts]
    origins = [continued(group) for group in of_groups]
    lost = names_given_up(of_groups)
    parameters: dict[str, Any] = {"topics": joined}
    if weighting is not None:
        parameters["weighting"] = describe_weighting(weighting)
    return relabeled(
        result,
        group_of[result.clustering.labels],
        regrouped(result.memberships, group_of[:-1], len(parts)),
        origins,
        name="at_level",
        parameters=parameters,
        message=f"read at a level of {len(parts)} topics: {len(merged)} of {result.n_topics} "
        f"topics became {len(joined)} {into}"
        + (f"; {n_more} more than at this level, to stay apart as was asked for" if n_more else "")
        + (f"; names that gave way: {', '.join(lost)}" if lost else ""),
        marked=sorted(merged),
        follows=group_of[:-1],
        weighting=weighting,
    )


def _allowed(
    result: TopicResult, hierarchy: TopicHierarchy, n_topics: int | None, distance: float | None
) -> tuple[list[tuple[int, ...]], int]:
    """Return the groups of a level without such as must not be one, and how many more they are."""
    apart = stay_apart(result)
    left = list(hierarchy.nodes_at(n_topics, distance=distance))
    n_wanted, groups = len(left), []
    while left:
        node = left.pop()
        group = hierarchy.topics_under(node)
        if apart[np.ix_(group, group)].any():
            left.extend(hierarchy.merges[node - hierarchy.n_topics].tolist())
        else:
            groups.append(group)
    return sorted(groups), len(groups) - n_wanted


def _check_same_topics(result: TopicResult, hierarchy: TopicHierarchy) -> None:
    """Refuse a hierarchy of other topics: its ids would mean something else here."""
    sizes = [topic.size for topic in result.topics]
    theirs = [node.size for node in hierarchy.nodes[: hierarchy.n_topics]]
    if sizes != theirs:
        raise InputError(
            f"the hierarchy is of other topics ({hierarchy.n_topics}) than the result's "
            f"({result.n_topics}); make it of this result with topics.hierarchy"
        )
