"""Topics taken away; their documents stay, in none."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from embedtopics.protocols import TermWeighting
from embedtopics.results import NOISE, Reason, TopicResult
from embedtopics.topics.editing.naming_rules import spell_topic
from embedtopics.topics.recorded import describe_weighting
from embedtopics.topics.relabeling import checked_topic_ids, regrouped, relabeled

__all__ = ["remove"]


def remove(
    result: TopicResult,
    topics: int | Iterable[int],
    *,
    weighting: TermWeighting | None = None,
) -> TopicResult:
    """Remove topics: their documents are in none, with `Reason.REMOVED`.

    Shares that documents have in a removed topic become shares of none. Terms are weighed anew,
    for what the removed topics said no longer tells the others apart from them.

    Parameters
    ----------
    result : TopicResult
    topics : int or iterable of int
        Topic ids.
    weighting : object with ``fit_transform(topic_counts)``, optional
        By default the one of the result.

    Returns
    -------
    TopicResult

    Raises
    ------
    InputError
        Where there is no such topic.
    """
    gone = checked_topic_ids(result, topics)
    group = np.arange(result.n_topics, dtype=np.int32)
    kept = np.setdiff1d(group, gone)
    group[list(gone)] = NOISE
    group[kept] = np.arange(len(kept))
    n_texts = sum(result.topics[topic].size for topic in gone)
    said = ", ".join(spell_topic(topic, result.topics[topic].label) for topic in gone)
    parameters = {"topics": gone}
    if weighting is not None:
        parameters["weighting"] = describe_weighting(weighting)  # type: ignore[assignment]
    return relabeled(
        result,
        np.append(group, NOISE)[result.clustering.labels],
        regrouped(result.memberships, group, len(kept)),
        [result.topics[topic] for topic in kept],
        name="remove",
        parameters=parameters,
        message=f"removed {said}: {n_texts:,} texts are in no topic",
        marked=gone,
        follows=group,
        reason=Reason.REMOVED,
        weighting=weighting,
    )
