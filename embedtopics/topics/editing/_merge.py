"""Topics merged: those that are listed, or the nearest until a number of them is left."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_choice, is_count, is_whole
from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics.errors import InputError
from embedtopics.protocols import BoolArray, Float64Array
from embedtopics.topics._relabel import checked_topic_ids, listed_topics, spell_topic
from embedtopics.topics._vectors import topic_cosines
from embedtopics.topics.editing._regroup import Groups, continued, regroup, with_others
from embedtopics.topics.results import TopicResult

SPACES = ("terms", "embeddings")

MOST_TIMES_MEAN = 2.0
"""Largest size of a group of the nearest topics, in mean sizes. With it, merged topics are at most
twice as large as the largest ones of any other division into as many. On eight corpora, merged from
8 to 200 topics to 3, 6, 12 and 20, the largest was .65 to 1.52 times that of `recluster`; without a
limit up to 2.0 times, and by average linkage up to 4.6 times. Mean agreement with the classes of
five of them (AMI) was .49, by average linkage .38."""


def merge(
    result: FittedTopics,
    topics: Iterable[int | str] | Iterable[Iterable[int | str]] | None = None,
    *,
    n_topics: int | None = None,
    space: str = "terms",
) -> TopicResult:
    """Merge topics: those that you list, or the nearest ones until `n_topics` are left.

    Documents and memberships of the topics are added up, and terms are weighted again. Outliers
    stay outliers (see `reduce_outliers`). A merged topic keeps the name of its seeded part, or of
    its largest named part; the other topics keep their names. Unlike `recluster`, this keeps
    earlier edits and works with every clusterer.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    topics : iterable of int or str, or iterable of such iterables, optional
        Ids or names of the topics to merge, or several such groups. Groups that share a topic are
        one.
    n_topics : int, optional
        Exact number of topics left, from 2 up, instead of `topics`. Seeded topics are never merged
        with each other.
    space : {"terms", "embeddings"}
        Where the nearest topics are compared: by the cosine of their weighted terms, or of their
        mean embeddings.

    Returns
    -------
    TopicResult

    Raises
    ------
    InputError
        If there are both `topics` and `n_topics` or none of them; if a group has fewer than two
        topics or two seeded topics; if all topics would become one; or if the number is above the
        number of topics, or excluded by the constraints.

    Notes
    -----
    The nearest topics are found by agglomerative clustering by Ward's criterion (Ward 1963), in
    which each topic is one vector of length one. A merged topic then holds at most twice the mean
    number of texts of the topics that are left, unless seeded topics leave no other choice.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo"))
    >>> named = et.topics.rename(model, {0: "Heating", 1: "Sport"})
    >>> merged = et.topics.merge(named, ["Heating", "Sport"])
    >>> merged.history[-1].message
    'merged 0 (Heating) and 1 (Sport)'
    >>> et.topics.merge(model, n_topics=5).n_topics
    5
    """
    result = result_of(result)
    if (topics is None) == (n_topics is None):
        expected = "topics to merge, or left out where n_topics says how many are left"
        raise InputError("topics", expected, topics)
    checked_choice(space, "space", SPACES)

    if n_topics is not None:
        return _merge_nearest(result, n_topics, space)
    return _merge_listed(result, topics)


def _merge_listed(result: TopicResult, topics: Any) -> TopicResult:
    """Merge the topics of one group, or of several."""
    disjoint: list[set[int]] = []  # groups that share a topic become one
    for group in _listed_groups(topics):
        ids = set(checked_topic_ids(result, group))
        if len(ids) < 2:
            remedy = ""
            if is_whole(topics):
                remedy = f"to merge the nearest until {topics} are left, n_topics={topics}"
            raise InputError("topics", "groups of at least two different topics", group, remedy)
        for other in [other for other in disjoint if other & ids]:
            disjoint.remove(other)
            ids |= other
        disjoint.append(ids)

    groups = sorted(tuple(sorted(ids)) for ids in disjoint)
    for ids_of_group in groups:
        seeded = [topic for topic in ids_of_group if result.topics[topic].is_seeded]
        if len(seeded) > 1:
            names = " and ".join(spell_topic(result, topic) for topic in seeded[:2])
            raise InputError("topics", "groups with at most one seeded topic", found=names)
    if len(groups) == 1 and len(groups[0]) == result.n_topics:
        _refuse_one_topic("topics", result.n_topics)

    message = "merged " + "; ".join(
        " and ".join(spell_topic(result, topic) for topic in group) for group in groups
    )
    parts = sorted(with_others(result, groups))
    return regroup(result, parts, "merge", {"topics": groups}, message)


def _listed_groups(topics: Any) -> list[list[Any]]:
    """Return groups of topics that are not checked yet, from one group or several."""
    items = listed_topics(topics)
    n_groups = sum(isinstance(item, Iterable) and not isinstance(item, str) for item in items)
    if n_groups == 0:
        return [items]
    if n_groups < len(items):
        raise InputError("topics", "either topics to merge or groups of topics", topics)
    return [listed_topics(group) for group in items]


def _refuse_one_topic(parameter: str, n_topics: int) -> None:
    merged, remedy = f"one topic of all {n_topics}", "leave one out, or remove topics"
    raise InputError(parameter, "so that two topics are left", found=merged, remedy=remedy)


def _merge_nearest(result: TopicResult, n_topics: int, space: str) -> TopicResult:
    """Merge the nearest topics until `n_topics` are left."""
    n_before = len(result.topics)
    if not is_count(n_topics) or n_topics > n_before:
        expected = f"a whole number from 2 to {n_before}, the number of topics"
        raise InputError("n_topics", expected, n_topics, "for more, use split or recluster")
    if n_topics == 1 and result.n_topics > 1:
        _refuse_one_topic("n_topics", result.n_topics)

    is_seeded = np.array([topic.is_seeded for topic in result.topics], dtype=np.bool_)
    least = int(is_seeded.sum())
    groups: Groups = []
    distances = 1.0 - topic_cosines(result, space)
    if least <= n_topics < result.n_topics:
        sizes = [topic.size for topic in result.topics]
        groups = group_nearest(distances, int(n_topics), np.outer(is_seeded, is_seeded), sizes)
        least = result.n_topics - sum(map(len, groups)) + len(groups)

    if least > n_topics:
        expected = f"at least {least}, which the constraints of the fit keep apart"
        raise InputError("n_topics", expected, n_topics, "list those to merge as topics")

    message = f"merged {result.n_topics} topics to {n_topics}, by {space}: "
    message += f"{sum(map(len, groups))} became {len(groups)}"
    lost = []
    for merged in ([result.topics[topic] for topic in group] for group in groups):
        name = continued(merged).name
        lost += [p.name for p in merged if (p.is_named or p.is_seeded) and p.name != name]
    message += f"; lost names: {', '.join(lost)}" if lost else ""

    parameters = {"n_topics": int(n_topics), "space": space}
    parts = sorted(with_others(result, groups))
    return regroup(result, parts, "merge", parameters, message)


def group_nearest(
    distances: Float64Array, n_groups: int, apart: BoolArray, sizes: npt.ArrayLike
) -> Groups:
    """Group items by Ward's linkage, with a limit on the size of a group.

    `distances` (n_items, n_items) are squared. `apart`, of the same shape, forbids pairs, and may
    leave more groups. `sizes` (n_items,) add up to the size of a group.
    """
    n_items = len(distances)
    members = [[item] for item in range(n_items)]
    n_members = np.ones(n_items)
    size = np.array(sizes, dtype=np.float64)
    largest = MOST_TIMES_MEAN * size.sum() / n_groups

    # The increase in the sum of squares by each merge; infinite for an item that is gone.
    increase = distances / 2
    np.fill_diagonal(increase, np.inf)
    apart = apart.copy()

    for _ in range(n_items - n_groups):
        may_merge = np.isfinite(increase) & ~apart
        if not may_merge.any():
            break
        # Unless items are apart, the two smallest of more than n_groups groups stay below.
        fits = may_merge & (size[:, None] + size <= largest)
        allowed = fits if fits.any() else may_merge
        first, second = sorted(divmod(int(np.where(allowed, increase, np.inf).argmin()), n_items))

        # The recurrence of Lance and Williams (1967) for Ward's criterion.
        n_both = n_members[first] + n_members[second]
        merged = (n_members + n_members[first]) * increase[first]
        merged += (n_members + n_members[second]) * increase[second]
        merged -= n_members * increase[first, second]
        merged /= n_members + n_both

        increase[first] = increase[:, first] = merged
        increase[first, first] = np.inf
        increase[second] = increase[:, second] = np.inf
        apart[first] |= apart[second]
        apart[:, first] |= apart[:, second]
        n_members[first] = n_both
        size[first] += size[second]
        members[first] += members[second]
        members[second] = []

    return sorted(tuple(sorted(group)) for group in members if len(group) > 1)
