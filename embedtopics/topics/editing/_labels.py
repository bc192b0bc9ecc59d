"""Edits of names and terms, files of names, and the history of edits, which can be replayed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from embedtopics._utils.checks import checked_choice, optional_count
from embedtopics._utils.display import excerpt
from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics.clustering.results import NOISE
from embedtopics.corpus._texts import replace_surrogates
from embedtopics.errors import InputError, Remedy
from embedtopics.protocols import TermWeighting
from embedtopics.results import Decision
from embedtopics.terms._counts import checked_ngram_range, checked_stop_words
from embedtopics.terms._tokens import usual_letters
from embedtopics.topics._describe import (
    count_again,
    custom_weighting,
    describe_weighting,
    languages_of,
    recorded_weighting,
    term_settings_of,
)
from embedtopics.topics._fit_log import FitLog, note_terms
from embedtopics.topics._former_edits import current_edit
from embedtopics.topics._propagation import find_documents
from embedtopics.topics._relabel import checked_topic_id, relabeled, with_names
from embedtopics.topics._resolution import recluster
from embedtopics.topics.editing._merge import merge
from embedtopics.topics.editing._regroup import reduce_outliers, remove, split
from embedtopics.topics.naming._names import with_keywords
from embedtopics.topics.results import Edit, Topic, TopicMark, TopicResult


def rename(result: FittedTopics, names: Mapping[Any, str] | Callable[[Topic], str]) -> TopicResult:
    """Name topics; a name stays in later edits as long as its topic exists.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    names : mapping of int or str to str, or function
        Names by topic id or earlier name. A function takes a `Topic`, such as its `keywords`, and
        returns its name.

    Returns
    -------
    TopicResult
        Shares everything except the names with `result`.

    Raises
    ------
    InputError
        If there is no such topic, a name is empty, or two topics would share a name.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=200))
    >>> named = et.topics.rename(model, {0: "Floods and storms"})
    >>> named.topics[0].name
    'Floods and storms'
    >>> shouted = et.topics.rename(named, lambda topic: topic.name.upper())
    >>> shouted.topics[0].name
    'FLOODS AND STORMS'
    """
    result = result_of(result)
    if callable(names):
        names = {topic.topic_id: names(topic) for topic in result.topics}
    if not isinstance(names, Mapping):
        expected = "a mapping of topics (ids or names) to new names, or a function"
        raise InputError("names", expected, names)

    new: dict[int, Any] = {}
    for topic, name in names.items():
        topic_id = checked_topic_id(result, topic)
        if topic_id in new:
            raise InputError("names", "one name for each topic", found=f"two for {topic!r}")
        new[topic_id] = name

    owner = {topic.name: topic.topic_id for topic in result.topics if topic.topic_id not in new}
    distinct = {}
    for topic, given in sorted(new.items()):
        name = " ".join(replace_surrogates(given).split()) if isinstance(given, str) else ""
        if not any(map(str.isprintable, name.replace(" ", ""))):
            raise InputError("names", f"texts that are not empty, for topic {topic}", given)
        if name in owner:
            twice = f"{name!r} for {owner[name]} and {topic}"
            remedy = "merge the topics, or choose another name"
            raise InputError("names", "different names", remedy=remedy, found=twice)
        owner[name] = topic
        distinct[topic] = name

    listed = ", ".join(f"{topic} {name!r}" for topic, name in distinct.items())
    return with_names(result, distinct, f"renamed {listed}" if distinct else "renamed no topics")


WORD_NOTES = ("stop_words", "function_words", "no_stop_words")
"""Decisions that an update of the terms replaces."""


def update_terms(
    result: FittedTopics,
    *,
    stop_words: str | Sequence[str] | None = None,
    extra_stop_words: str | Sequence[str] | None = None,
    ngram_range: tuple[int, int] | None = None,
    min_df: int | float | None = None,
    weighting: TermWeighting | None = None,
    n_keywords: int | None = None,
) -> TopicResult:
    """Choose the terms of the topics again, without fitting or tokenizing.

    Parameters that are None keep their values. Labels made of keywords follow the keywords.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    stop_words : "auto" or sequence of str, optional
        Replaces the list in use and the extra words. "auto", alone or with other words, takes the
        lists of the result's languages and the words that occur equally in all topics.
    extra_stop_words : str or sequence of str, optional
        Single words to leave out in addition.
    ngram_range : (int, int), optional
        Shortest and longest term in words.
    min_df : int or float, optional
        Smallest number of documents with a term; a float is a share of documents.
    weighting : TermWeighting, optional
        Such as `embedtopics.topics.ClassTfidf` with ``bm25=True``.
    n_keywords : int, optional
        Keywords of each topic.

    Returns
    -------
    TopicResult

    Raises
    ------
    InputError
        If a parameter is invalid, or no term would be left.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=200))
    >>> shorter = et.topics.update_terms(model, ngram_range=(1, 1), n_keywords=3)
    >>> [len(topic.keywords) for topic in shorter.topics]
    [3, 3, 3, 3]
    >>> any(" " in word for topic in shorter.topics for word in topic.keywords)
    False
    """
    result = result_of(result)
    extra = None
    if extra_stop_words is not None:
        words = [extra_stop_words] if isinstance(extra_stop_words, str) else extra_stop_words
        if not isinstance(words, Iterable) or not all(isinstance(word, str) for word in words):
            raise InputError("extra_stop_words", "a word or a list of words", extra_stop_words)
        if several := [word for word in words if len(word.split()) != 1]:
            raise InputError("extra_stop_words", "single words", several[0])
        extra = list(dict.fromkeys(usual_letters(word.strip().lower()) for word in words))

    if weighting is not None and not hasattr(weighting, "fit"):
        expected = "an object with fit and transform, such as ClassTfidf()"
        raise InputError("weighting", expected, weighting)

    changes = {
        "stop_words": None if stop_words is None else checked_stop_words(stop_words),
        "extra_stop_words": extra,
        "ngram_range": None if ngram_range is None else checked_ngram_range(ngram_range),
        "min_df": min_df,
        "n_keywords": optional_count(n_keywords, "n_keywords"),
    }
    parameters: dict[str, Any] = {k: value for k, value in changes.items() if value is not None}
    settings: dict[str, Any] = {**result.settings, **parameters}

    if stop_words is None:
        before = list(result.settings.get("extra_stop_words") or ())
        added = [w for w in settings.get("extra_stop_words") or () if w not in before]
        settings["extra_stop_words"] = [*before, *added]
    elif extra_stop_words is None:
        settings["extra_stop_words"] = []

    new = term_settings_of(dataclasses.replace(result, settings=settings))
    counts = count_again(result, new)
    if not counts.terms and result.term_counts.terms:
        raise InputError("these parameters leave no term; leave out fewer words, or lower min_df")

    log = FitLog()
    note_terms(log, counts.stop_words, counts, languages_of(result))
    others = [note for note in result.decisions if note.name not in WORD_NOTES]
    message = _terms_message(result, parameters, weighting)

    custom = result.weighting
    if weighting is not None:
        custom = custom_weighting(weighting)
        parameters["weighting"] = settings["weighting"] = describe_weighting(weighting)

    return relabeled(
        result,
        result.clustering.labels,
        result.memberships,
        result.topics,
        name="update_terms",
        parameters=parameters,
        message=message,
        follows=range(result.n_topics),
        renames=True,
        weighting=custom,
        settings=settings,
        term_counts=counts,
        decisions=(*others, *log.decisions),
    )


def _terms_message(
    result: TopicResult, parameters: dict[str, Any], weighting: TermWeighting | None
) -> str:
    """Return the changed parameters, and the words to leave out that no text holds."""
    parts = [f"{name} {excerpt(str(value), 100)}" for name, value in parameters.items()]
    extra = parameters.get("extra_stop_words", [])
    if weighting is not None:
        parts.append(f"weighted by {type(weighting).__name__}")
    vocabulary = {word.lower() for word in result.tokens.words}
    if unknown := [word for word in extra if word not in vocabulary]:
        parts.append(f"no text holds {', '.join(unknown)}")
    return f"updated the terms: {'; '.join(parts) or 'same parameters'}"


LEAST_SHARE = 0.5
"""A topic matches a mark if it holds more than this share of the mark's documents."""

LEAST_JACCARD = 0.25
"""Smallest Jaccard similarity of matching keywords; two lists of ten share four."""

EDITS: Mapping[str, Callable[..., TopicResult]] = {
    function.__name__: function
    for function in (
        recluster, merge, reduce_outliers, remove, rename, split, update_terms,
        with_keywords,
    )
}  # fmt: skip
"""Functions that may be replayed. Anybody may have written a history: functions that send texts or
write files are not among them."""

IDS = {
    "merge": "topics",
    "remove": "topics",
    "rename": "names",
    "split": "topic",
    "with_keywords": "keywords",
}
"""The parameter of an edit that holds topic ids."""


def replay(
    result: FittedTopics, history: FittedTopics | Iterable[Edit], *, missing: str = "raise"
) -> TopicResult:
    """Apply recorded edits, in order, to another result: a fit of more texts or another encoder.

    A topic matches the topic of an edit if it holds most of its central documents, otherwise by the
    most similar keywords. On the edited fit the outcome is bit-identical.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    history : TopicResult or iterable of Edit
        An edited result, or edits, such as ``edited.history[:-1]`` without the last one.
    missing : {"raise", "skip"}
        Whether an edit that cannot be applied raises an error or is recorded in the decisions.

    Returns
    -------
    TopicResult
        Its decisions list skipped edits, under "replay".

    Raises
    ------
    InputError
        If an edit cannot be applied; the message names it.

    Examples
    --------
    >>> import embedtopics as et
    >>> corpus = et.Corpus("embedtopics:demo", limit=200)
    >>> fit = et.TopicModel("tfidf", n_topics=4).fit(corpus).result_
    >>> edited = et.topics.remove(et.topics.rename(fit, {1: "Bees"}), 0)
    >>> again = et.topics.replay(fit, edited)
    >>> again.topics[0].name, again.n_topics
    ('Bees', 3)
    >>> undone = et.topics.replay(fit, edited.history[:1])
    >>> undone.n_topics
    4
    """
    result = result_of(result)
    checked_choice(missing, "missing", ("raise", "skip"))

    weighting = None
    recorded: Any = history
    if isinstance(history, TopicResult) or hasattr(history, "result_"):
        edited = result_of(history, "history")
        weighting, recorded = edited.weighting, edited.history
    edits = list(recorded) if isinstance(recorded, Iterable) else [recorded]

    for edit in edits:
        if not isinstance(edit, Edit):
            raise InputError("history", "an edited result, or edits of its history", edit)
    edits = [current_edit(edit) for edit in edits]

    for step, edit in enumerate(edits, start=1):
        name = f"{edit.name} ({edit.message})" if edit.message else edit.name
        skipped = "it is a remark"
        try:
            if edit.name != "note":
                result = _applied(result, edit, weighting)
                continue
        except InputError as error:
            if missing == "raise":
                remedy = Remedy("missing", "skip", "leave the edit out of the history")
                raise InputError(
                    f"cannot apply edit {step}, {name}, here: {error}; {remedy}"
                ) from error
            skipped = str(error)

        message = f"Edit {step}, {name}, was not applied: {skipped}."
        decision = Decision("topics", "replay", step, message)
        result = dataclasses.replace(result, decisions=(*result.decisions, decision))
    return result


def _applied(result: TopicResult, edit: Edit, custom: TermWeighting | None) -> TopicResult:
    if edit.name not in EDITS:
        raise InputError(f"there is no edit {edit.name!r}")
    ids: dict[int, int] = {}  # of each topic that the edit names
    for mark in edit.marks:
        topic = find_topic(result, mark)
        if topic is None:
            mark_name = f"{mark.topic_id} ({mark.name})"
            raise InputError(f"no topic here matches {mark_name} by documents or keywords")
        ids[mark.topic_id] = topic
    parameters = {
        name: _with_ids(value, ids) if name == IDS.get(edit.name) else value
        for name, value in edit.parameters.items()
    }
    if edit.name == "merge" and parameters.get("topics") is not None:
        groups = [sorted(set(group)) for group in parameters["topics"]]
        parameters["topics"] = [group for group in groups if len(group) > 1]
        if not parameters["topics"]:
            raise InputError("the topics are one here already")
    if (weighting := parameters.get("weighting")) is not None:
        is_custom = isinstance(weighting, str) and custom is not None
        parameters["weighting"] = custom if is_custom else recorded_weighting(weighting)
    return EDITS[edit.name](result, **parameters)


def find_topic(result: TopicResult, mark: TopicMark) -> int | None:
    """Find the topic that a mark of another result describes."""
    if mark.documents and len(result.distinct):
        halves = [(int(text[:16], 16), int(text[16:], 16)) for text in mark.documents]
        documents = find_documents(result.distinct.hashes, np.array(halves, dtype=np.uint64))
        documents = documents[documents >= 0]
        labels = result.clustering.labels[documents]
        counts = np.bincount(labels[labels != NOISE], minlength=max(result.n_topics, 1))
        if counts.max() > LEAST_SHARE * len(documents):
            return int(counts.argmax())
    keywords = set(mark.keywords)
    best, highest = None, 0.0
    for topic in result.topics:
        others = set(topic.keywords)
        jaccard = len(keywords & others) / max(1, len(keywords | others))
        if jaccard >= LEAST_JACCARD and jaccard > highest:
            best, highest = topic.topic_id, jaccard
    return best


def _with_ids(value: Any, ids: Mapping[int, int]) -> Any:
    """Return a parameter with the ids of its topics here."""
    if isinstance(value, Mapping):
        renumbered = {_with_ids(key, ids): item for key, item in value.items()}
        if len(renumbered) < len(value):
            raise InputError("two of its topics are one here")
        return renumbered
    if isinstance(value, (list, tuple)):
        return [_with_ids(item, ids) for item in value]
    if value is None:
        return None
    if int(value) not in ids:
        raise InputError(f"it has no record that identifies topic {value}")
    return ids[int(value)]


def history(result: FittedTopics) -> pd.DataFrame:
    """Tabulate the edits of a result.

    To undo edits, apply fewer to the fit: ``replay(fit, result.history[:n])``.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel

    Returns
    -------
    DataFrame
        Columns step (from 1), edit (the function in `embedtopics.topics`) and message, in order.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=200))
    >>> named = et.topics.rename(model, {0: "Floods"})
    >>> print(et.topics.history(named).to_string(index=False))
     step   edit            message
        1 rename renamed 0 'Floods'
    """
    result = result_of(result)
    rows = [(step, edit.name, edit.message) for step, edit in enumerate(result.history, start=1)]
    return pd.DataFrame(rows, columns=["step", "edit", "message"])
