"""Other names for topics."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from embedtopics.errors import InputError
from embedtopics.results import TopicResult
from embedtopics.topics.editing.naming_rules import checked_labels
from embedtopics.topics.relabeling import checked_topic_id, edit_of

__all__ = ["rename"]


def rename(result: TopicResult, labels: Mapping[int, str] | Sequence[str]) -> TopicResult:
    """Give topics names.

    A given name stays through all later edits, for as long as its topic does.

    Parameters
    ----------
    result : TopicResult
    labels : mapping of int to str, or sequence of str
        Names by topic id; or one for every topic, in the order of the ids. White space is made
        single spaces.

    Returns
    -------
    TopicResult
        Everything but the names, the stability among it, is shared with `result`.

    Raises
    ------
    InputError
        Where there is no such topic, a name is empty or no string, or two topics would share one.

    Examples
    --------
    >>> named = rename(result, {3: "Elections", 5: "Sport"})  # doctest: +SKIP
    """
    given = _by_id(result, labels)
    others = [(t.topic_id, t.label) for t in result.topics if t.topic_id not in given]
    names = checked_labels(given, others)
    topics = tuple(
        dataclasses.replace(topic, label=names[topic.topic_id], is_named=True)
        if topic.topic_id in names
        else topic
        for topic in result.topics
    )
    said = ", ".join(f"{topic} {name!r}" for topic, name in names.items())
    edit = edit_of(
        result,
        "rename",
        {"labels": names},
        f"called {said}" if names else "gave no names",
        tuple(names),
        range(result.n_topics),
    )
    return dataclasses.replace(result, topics=topics, history=(*result.history, edit))


def _by_id(result: TopicResult, labels: Any) -> dict[int, Any]:
    """Return labels by topic id, ascending."""
    if isinstance(labels, Mapping):
        given = {checked_topic_id(result, topic): label for topic, label in labels.items()}
        return dict(sorted(given.items()))
    if isinstance(labels, (str, bytes)) or not hasattr(labels, "__len__"):
        raise InputError(
            "labels must be a mapping from topic ids to names, such as {3: 'Elections'}, or a "
            f"list with one for every topic; got {labels!r}"
        )
    if len(labels) != result.n_topics:
        raise InputError(
            f"a list of labels must have one for each of the {result.n_topics} topics; got "
            f"{len(labels)}; to name only some, give a mapping such as {{3: 'Elections'}}"
        )
    return dict(enumerate(labels))
