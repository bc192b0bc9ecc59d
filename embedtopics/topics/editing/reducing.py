"""Fewer topics: the nearest are merged until so many are left."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import is_count
from embedtopics.errors import InputError
from embedtopics.protocols import TermWeighting
from embedtopics.results import TopicResult
from embedtopics.topics.editing.merging import merge_groups, names_given_up, refuse_one_topic
from embedtopics.topics.guidance.keeping import stay_apart
from embedtopics.topics.likeness import cosines, row_centroids, term_cosines

__all__ = ["group_nearest", "reduce"]

Float64Array = npt.NDArray[np.float64]


def reduce(
    result: TopicResult,
    n_topics: int,
    *,
    by: str = "terms",
    weighting: TermWeighting | None = None,
) -> TopicResult:
    """Merge the nearest topics until so many are left.

    Unlike `at_resolution`, which cuts the density hierarchy elsewhere, this keeps what was edited
    by hand, works with every clusterer, and joins what reads alike. Anchors (topics that were
    asked for before the fit) are merged with others, never with one another; nor are topics that
    hold texts to be kept apart or, under strict labels, topics of different classes.

    Parameters
    ----------
    result : TopicResult
    n_topics : int
        Topics that are left, exactly; at least 2.
    by : {"terms", "embeddings"}
        Whether topics are near that say the same words (cosines of their weighted terms), or
        whose documents have near vectors (cosines of their mean embeddings).
    weighting : object with ``fit_transform(topic_counts)``, optional
        By default the one of the result.

    Returns
    -------
    TopicResult

    Raises
    ------
    InputError
        Where the number is larger than there are topics, below 2, or below the number of anchors;
        or where what was asked for before the fit keeps more topics apart.

    Notes
    -----
    Agglomerative clustering of the topics with average linkage: the distance of two groups is the
    mean, over all pairs, of one less the cosine (Sokal and Michener 1958, "A statistical method
    for evaluating systematic relationships").
    """
    wanted = _checked(result, n_topics)
    if by not in ("terms", "embeddings"):
        raise InputError(f'by must be "terms" or "embeddings"; got {by!r}')
    groups: list[tuple[int, ...]] = []
    if wanted < result.n_topics:
        if by == "terms":
            alike = term_cosines(result.topic_terms)
        else:
            middles = row_centroids(result)
            alike = cosines(middles, middles)
        groups = group_nearest(1.0 - alike, wanted, stay_apart(result))
    n_merged = sum(map(len, groups))
    n_left = result.n_topics - n_merged + len(groups)
    if n_left > wanted:
        raise InputError(
            f"n_topics must be at least {n_left}: these would hold texts that were to be in "
            f"different topics before the fit; got {n_topics}; merge some of them by hand"
        )
    lost = names_given_up([[result.topics[topic] for topic in group] for group in groups])
    return merge_groups(
        result,
        groups,
        {},
        name="reduce",
        parameters={"n_topics": wanted, "by": by},
        message=(
            f"reduced {result.n_topics} topics to {wanted}, by {by}: {n_merged} became "
            f"{len(groups)}"
        )
        + (f"; names that gave way: {', '.join(lost)}" if lost else ""),
        weighting=weighting,
    )


def group_nearest(
    distances: Float64Array, n_groups: int, apart: npt.NDArray[np.bool_] | None = None
) -> list[tuple[int, ...]]:
    """Group items by average linkage until so many groups are left.

    Parameters
    ----------
    distances : float64 ndarray of shape (n_items, n_items)
        Symmetric; of equal distances the first pair is merged first.
    n_groups : int
        From 1 to `n_items`.
    apart : bool ndarray of shape (n_items, n_items), optional
        Pairs of items that do not come into one group, symmetric.

    Returns
    -------
    list of tuple of int
        The groups of two or more, items ascending. More groups are left where none of them may be
        merged.
    """
    between = np.array(distances, dtype=np.float64)
    n_items = len(between)
    if apart is not None:
        # Infinite distances stay so under averages, and hold for every group with such an item.
        between[apart] = np.inf
    np.fill_diagonal(between, np.inf)
    members = {item: [item] for item in range(n_items)}
    nearest = between.argmin(axis=1)
    least = between[np.arange(n_items), nearest]
    while len(members) > n_groups:
        one = int(least.argmin())
        if not np.isfinite(least[one]):
            break
        other = int(nearest[one])
        one, other = sorted((one, other))
        n_one, n_other = len(members[one]), len(members[other])
        joined = (n_one * between[one] + n_other * between[other]) / (n_one + n_other)
        joined[[one, other]] = np.inf
        between[one], between[:, one] = joined, joined
        between[other], between[:, other] = np.inf, np.inf
        members[one] += members.pop(other)
        least[other] = np.inf
        # Averages are no nearer than the nearer part was, but may be as near as a row's nearest.
        stale = np.flatnonzero(np.isin(nearest, (one, other)) | (joined <= least))
        stale = np.union1d(stale[np.isfinite(least[stale]) | (stale == one)], [one])
        nearest[stale] = between[stale].argmin(axis=1)
        least[stale] = between[stale, nearest[stale]]
    return sorted(tuple(sorted(items)) for items in members.values() if len(items) > 1)


def _checked(result: TopicResult, n_topics: Any) -> int:
    """Return the number of topics after making sure that it can be met."""
    if not is_count(n_topics):
        raise InputError(f"n_topics must be a whole number from 2 up; got {n_topics!r}")
    if n_topics > result.n_topics:
        raise InputError(
            f"n_topics must be at most {result.n_topics}, the topics that there are; got "
            f"{n_topics}; for more, split some, or read the result finer with at_resolution"
        )
    if n_topics == 1 and result.n_topics > 1:
        refuse_one_topic(result.n_topics)
    n_anchors = sum(topic.is_anchor for topic in result.topics)
    if n_topics < n_anchors:
        raise InputError(
            f"n_topics must be at least {n_anchors}, the topics that were asked for before the "
            f"fit and stay apart; got {n_topics}"
        )
    return int(n_topics)
