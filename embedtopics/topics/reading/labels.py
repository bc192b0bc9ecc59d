"""Names of topics made anew of their keywords: longer, shorter, with their numbers."""

from __future__ import annotations

import dataclasses

from embedtopics._checks import checked_count, optional_count
from embedtopics.errors import InputError
from embedtopics.results import Edit, Topic, TopicResult

__all__ = ["make_labels"]


def make_labels(
    result: TopicResult,
    n_words: int = 3,
    *,
    separator: str = ", ",
    prefix: str = "",
    word_length: int | None = None,
) -> TopicResult:
    """Name the topics anew by their keywords.

    Topics that the user named or asked for before the fit keep their names. The others do not
    count as named: an edit that changes the topics names them anew.

    Parameters
    ----------
    result : TopicResult
        Not changed.
    n_words : int
        Keywords in a name; more where two topics would have the same one, and a number where that
        does not help.
    separator : str
        Between the keywords.
    prefix : str
        In front of them; "{topic}" in it stands for the topic's id, as in "{topic}: ".
    word_length : int, optional
        Characters at which each keyword is cut.

    Returns
    -------
    TopicResult
        With one more line in its history.

    Raises
    ------
    InputError
        If an argument is bad.
    """
    checked_count(n_words, "n_words")
    optional_count(word_length, "word_length")
    for value, name in ((separator, "separator"), (prefix, "prefix")):
        if not isinstance(value, str):
            raise InputError(f"{name} must be a string; got {value!r}")
    kept = {topic.label for topic in result.topics if _keeps(topic)}
    taken, topics = set(kept), []
    for topic in result.topics:
        if not _keeps(topic):
            start = prefix.replace("{topic}", str(topic.topic_id))
            words = [word[:word_length] for word in topic.keywords]
            label = _free_label(start, words, n_words, separator, taken)
            taken.add(label)
            topic = dataclasses.replace(topic, label=label)
        topics.append(topic)
    parameters = {
        "n_words": int(n_words), "separator": separator, "prefix": prefix,
        "word_length": None if word_length is None else int(word_length),
    }  # fmt: skip
    n_made = sum(not _keeps(topic) for topic in topics)
    what = "topic was" if n_made == 1 else "topics were"
    message = f"{n_made:,} {what} named anew by {n_words} of the keywords."
    edit = Edit("make_labels", parameters, message, (), tuple(range(result.n_topics)))
    return dataclasses.replace(result, topics=tuple(topics), history=(*result.history, edit))


def _keeps(topic: Topic) -> bool:
    """Tell whether a topic keeps its name."""
    return topic.is_named or topic.is_anchor


def _free_label(start: str, words: list[str], n_words: int, separator: str, taken: set[str]) -> str:
    """Return the shortest name that no topic has yet."""
    if not words:
        words = ["no terms"]
    names = [
        start + separator.join(words[:size])
        for size in range(min(n_words, len(words)), len(words) + 1)
    ]
    free = next((name for name in names if name not in taken), None)
    number = 2
    while free is None:
        numbered = f"{names[0]} ({number})"
        free, number = (numbered if numbered not in taken else None), number + 1
    return free
