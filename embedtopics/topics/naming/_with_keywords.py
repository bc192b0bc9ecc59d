"""Results with keywords that were found by another method, or by hand."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from embedtopics._utils.checks import is_number
from embedtopics.corpus.results import Decision
from embedtopics.errors import InputError
from embedtopics.terms._keywords import unique_labels
from embedtopics.topics._relabel import checked_topic_id, marks_of
from embedtopics.topics.results import Edit, TopicResult

Keywords: TypeAlias = list[list[tuple[str, float]]]
"""For each topic its terms, best first, with their scores."""


def with_keywords(
    result: TopicResult, keywords: Any, *, method: str = "given", topics: Any = None
) -> TopicResult:
    """Return the result with other keywords, and automatic names made of them.

    Clusters, weights of all terms, and stability stay as they are; so do the names of topics that
    were named by hand or asked for before the fit, or keep their keywords. An edit that describes
    topics anew, such as a merge, chooses their keywords by class-TF-IDF again.

    Parameters
    ----------
    result : TopicResult
    keywords : sequence of sequence of (str, float)
        For each topic its keywords, best first, with their scores, as `keywords` returns them. A
        topic whose list is empty keeps the keywords that it has, which is recorded.
    method : str
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
    if not isinstance(method, str) or not method.strip():
        raise InputError("method", "a few words on how the keywords were found", method)
    ids = list(range(result.n_topics))
    if topics is not None:
        if isinstance(topics, (str, bytes)) or not isinstance(topics, Sequence):
            raise InputError("topics", "a list of topic ids", topics)
        ids = [checked_topic_id(result, topic) for topic in topics]
        if len(set(ids)) < len(ids):
            raise InputError("topics", "topic ids, each once", ids)
    by_topic = dict(zip(ids, checked_keywords(result, keywords, "keywords", ids), strict=True))
    changed = {topic: row for topic, row in by_topic.items() if row}
    described = list(result.topics)
    for number, row in changed.items():
        described[number] = dataclasses.replace(
            described[number],
            keywords=tuple(term for term, _ in row),
            weights=tuple(score for _, score in row),
        )
    renamed = [t for t in described if t.topic_id in changed and not (t.is_named or t.is_seeded)]
    ids_renamed = {topic.topic_id for topic in renamed}
    kept = [topic.label for topic in described if topic.topic_id not in ids_renamed]
    # A name that stays is taken first, so that no name made of keywords can equal it.
    made = unique_labels([*([label] for label in kept), *(topic.keywords for topic in renamed)])
    for topic, label in zip(renamed, made[len(kept) :], strict=True):
        described[topic.topic_id] = dataclasses.replace(topic, label=label)
    edit = Edit(
        "with_keywords",
        {
            "topics": list(by_topic),
            "keywords": [[list(item) for item in row] for row in by_topic.values()],
            "method": method,
        },
        f"{len(changed)} topics have keywords by another method: {method}",
        marks_of(result, sorted(by_topic)),
        tuple(range(result.n_topics)),
    )
    decisions = result.decisions
    without = [str(topic) for topic in sorted(by_topic) if not by_topic[topic]]
    if without:
        named = f"Topics that keep the keywords they had, as {method} found none: "
        message = f"{named}{', '.join(without)}."
        decisions = (*decisions, Decision("terms", "keywords_kept", without, message))
    return dataclasses.replace(
        result, topics=tuple(described), decisions=decisions, history=(*result.history, edit)
    )


def checked_keywords(
    result: TopicResult, given: Any, parameter: str, topics: Sequence[int]
) -> Keywords:
    """Return lists of terms after making sure that they belong to a result."""
    if not _is_list(given) or len(given) != len(topics):
        raise InputError(
            parameter, f"a list of (term, score) for each of the {len(topics)} topics", given
        )
    known = set(result.term_counts.terms)
    checked = []
    for topic, items in zip(topics, given, strict=True):
        where = f"of topic {topic}"
        if not _is_list(items):
            raise InputError(parameter, f"a list of (term, score) {where}", items)
        found: dict[str, float] = {}
        for item in items:
            if not _is_list(item) or len(item) != 2 or not isinstance(item[0], str):
                raise InputError(parameter, f"pairs (term, score) {where}", item)
            term, score = item
            if not is_number(score) or not math.isfinite(score):
                raise InputError(parameter, f"finite scores {where}", score)
            if term not in known:
                remedy = "write terms as in result.term_counts.terms"
                raise InputError(parameter, f"terms of the result {where}", term, remedy)
            if term in found:
                raise InputError(parameter, f"terms {where}, each once", term)
            found[term] = float(score)
        checked.append(list(found.items()))
    return checked


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))
