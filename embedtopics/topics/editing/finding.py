"""Topics of one result, found again in another."""

from __future__ import annotations

import numpy as np

from embedtopics.protocols import Int64Array
from embedtopics.results import NOISE, TopicMark, TopicResult
from embedtopics.topics.assign import find_documents

__all__ = ["find_topic"]

MOST = 0.5
"""Share of a mark's documents that are here, above which a topic that holds them is the one."""

ENOUGH_KEYWORDS = 0.25
"""Least share that two topics' keywords have in common (Jaccard) for them to be alike; two lists
of ten share four."""


def find_topic(result: TopicResult, mark: TopicMark) -> int | None:
    """Find the topic that a mark of another result describes.

    Parameters
    ----------
    result : TopicResult
    mark : TopicMark

    Returns
    -------
    int or None
        The topic with more than half of those documents of the mark that are here, else the one
        with the most alike keywords, if at least a quarter of them all are shared, the larger of
        two. None where there is none.
    """
    here = _documents(result, mark)
    labels = result.clustering.labels[here]
    inside = labels[labels != NOISE]
    if len(inside):
        held = np.bincount(inside, minlength=result.n_topics)
        if held.max() > MOST * len(here):
            return int(held.argmax())
    wanted = set(mark.keywords)
    best, most = None, 0.0
    for topic in result.topics:
        own = set(topic.keywords)
        shared = len(wanted & own) / max(1, len(wanted | own))
        if shared >= ENOUGH_KEYWORDS and shared > most:
            best, most = topic.topic_id, shared
    return best


def _documents(result: TopicResult, mark: TopicMark) -> Int64Array:
    """Return those documents of a mark that a result holds."""
    if not mark.documents or not len(result.documents):
        return np.empty(0, dtype=np.int64)
    halves = [(int(text[:16], 16), int(text[16:], 16)) for text in mark.documents]
    found = find_documents(result.documents.hashes, np.array(halves, dtype=np.uint64))
    return found[found >= 0]
