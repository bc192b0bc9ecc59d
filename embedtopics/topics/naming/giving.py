"""Results with keywords of another road, and several roads side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from embedtopics._checks import checked_count
from embedtopics.errors import InputError
from embedtopics.results import Decision, Edit, TopicResult
from embedtopics.terms import make_labels
from embedtopics.topics.naming.candidates import checked_keywords
from embedtopics.topics.relabeling import checked_topic_id, marks_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["aspects", "with_keywords"]


def with_keywords(
    result: TopicResult, keywords: Any, *, road: str = "given", topics: Any = None
) -> TopicResult:
    """Return the result with other keywords, and automatic names made of them.

    Clusters, weights of all terms, and stability stay as they are; so do the names of topics that
    were named by hand or asked for before the fit, or keep their keywords. An edit that describes
    topics anew, such as a merge, chooses their keywords by class-TF-IDF again.

    Parameters
    ----------
    result : TopicResult
    keywords : sequence of sequence of (str, float)
        For each topic its keywords, best first, with their scores, as the functions
        ``keywords_by_...`` return them. A topic whose list is empty keeps the keywords that it
        has, which is recorded.
    road : str
        How they were found, for the record.
    topics : sequence of int, optional
        Where the lists are for some topics only: which, in the order of the lists.

    Returns
    -------
    TopicResult

    Raises
    ------
    InputError
        Where lists are missing, or hold what is no term of the result; or a topic is named twice.
    """
    if not isinstance(road, str) or not road.strip():
        raise InputError(f"road must say in a few words how keywords were found; got {road!r}")
    ids = range(result.n_topics) if topics is None else _checked_ids(result, topics)
    by_topic = dict(zip(ids, checked_keywords(result, keywords, "keywords", ids), strict=True))
    changed = {topic: row for topic, row in by_topic.items() if row}
    described = list(result.topics)
    for number, row in changed.items():
        described[number] = dataclasses.replace(
            described[number],
            keywords=tuple(term for term, _ in row),
            weights=tuple(score for _, score in row),
        )
    renamed = [t for t in described if t.topic_id in changed and not (t.is_named or t.is_anchor)]
    ids_renamed = {topic.topic_id for topic in renamed}
    kept = [topic.label for topic in described if topic.topic_id not in ids_renamed]
    # A name that stays is taken first, so that no name made of keywords can equal it.
    made = make_labels([*([label] for label in kept), *(topic.keywords for topic in renamed)])
    for topic, label in zip(renamed, made[len(kept) :], strict=True):
        described[topic.topic_id] = dataclasses.replace(topic, label=label)
    edit = Edit(
        "with_keywords",
        {
            "topics": list(by_topic),
            "keywords": [[list(item) for item in row] for row in by_topic.values()],
            "road": road,
        },
        f"{len(changed)} topics have keywords by another road: {road}",
        marks_of(result, sorted(by_topic)),
        tuple(range(result.n_topics)),
    )
    decisions = result.decisions
    without = [topic for topic in sorted(by_topic) if not by_topic[topic]]
    if without:
        decisions = (*decisions, _kept(without, road))
    return dataclasses.replace(
        result, topics=tuple(described), decisions=decisions, history=(*result.history, edit)
    )


def _checked_ids(result: TopicResult, topics: Any) -> list[int]:
    """Return topic ids in the order in which they came, each once."""
    if isinstance(topics, (str, bytes)) or not isinstance(topics, Sequence):
        raise InputError(f"topics must be a list of topic ids; got {topics!r}")
    ids = [checked_topic_id(result, topic) for topic in topics]
    if len(set(ids)) < len(ids):
        raise InputError(f"topics must name each topic once; got {ids}")
    return ids


def _kept(topics: list[int], road: str) -> Decision:
    """Say which topics a road has found nothing for."""
    named = ", ".join(map(str, topics))
    return Decision(
        "terms",
        "keywords_kept",
        [str(topic) for topic in topics],
        f"Topics that keep the keywords they had, as {road} found none: {named}.",
    )


def aspects(result: TopicResult, roads: Mapping[str, Any], *, n: int = 10) -> pd.DataFrame:
    """Tabulate the keywords of several roads side by side.

    Parameters
    ----------
    result : TopicResult
    roads : mapping of str to lists
        For each road, by the name of its column, lists as `with_keywords` takes them.
    n : int
        Keywords shown.

    Returns
    -------
    DataFrame
        A topic a row; columns topic, label, keywords (those of the result), and one for each
        road; lists of str.

    Raises
    ------
    InputError
        Where a name is taken or lists do not belong to the result.
    """
    import pandas as pd

    n = checked_count(n, "n")
    if not isinstance(roads, Mapping):
        raise InputError(
            'expected lists of keywords by a name, such as {"KeyBERT": lists}; '
            f"got {type(roads).__name__}"
        )
    columns: dict[str, list[Any]] = {
        "topic": [topic.topic_id for topic in result.topics],
        "label": [topic.label for topic in result.topics],
        "keywords": [list(topic.keywords[:n]) for topic in result.topics],
    }
    for name, lists in roads.items():
        if not isinstance(name, str) or name in columns:
            raise InputError(f"a road must have a name of its own; got {name!r}")
        found = checked_keywords(result, lists, name, range(result.n_topics))
        columns[name] = [[term for term, _ in row[:n]] for row in found]
    return pd.DataFrame(columns)
