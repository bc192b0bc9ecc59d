"""The edits of a result: as a table, and repeated on another result."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from embedtopics._utils.checks import checked_choice
from embedtopics.clustering.results import NOISE
from embedtopics.decisions import Decision
from embedtopics.errors import InputError, Remedy
from embedtopics.protocols import TermWeighting
from embedtopics.topics._assign import find_documents
from embedtopics.topics._describe import recorded_weighting
from embedtopics.topics._resolution import at_resolution
from embedtopics.topics.editing._labels import rename, update_terms
from embedtopics.topics.editing._regroup import merge, reassign, reduce, remove, split
from embedtopics.topics.naming._names import with_keywords
from embedtopics.topics.results import Edit, TopicMark, TopicResult

LEAST_SHARE = 0.5
"""A topic matches a mark if it holds more than this share of the mark's documents."""

LEAST_JACCARD = 0.25
"""Smallest Jaccard similarity of matching keywords; two lists of ten share four."""

EDITS: Mapping[str, Callable[..., TopicResult]] = {
    function.__name__: function
    for function in (
        at_resolution, merge, reassign, reduce, remove, rename, split, update_terms,
        with_keywords,
    )
}  # fmt: skip
"""Functions that may be replayed. Anybody may have written a history: functions that send texts or
write files are not among them."""

IDS = {
    "merge": "topics",
    "remove": "topics",
    "rename": "labels",
    "split": "topic",
    "with_keywords": "keywords",
}
"""The parameter of an edit that holds topic ids."""


def replay(
    result: TopicResult, history: TopicResult | Iterable[Edit], *, missing: str = "raise"
) -> TopicResult:
    """Apply recorded edits, in order, to another result: a fit of more texts or another encoder.

    A topic matches the topic of an edit if it holds most of its central documents, otherwise by the
    most similar keywords. On the edited fit the outcome is bit-identical.

    Parameters
    ----------
    result : TopicResult
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
    """
    checked_choice(missing, "missing", ("raise", "skip"))
    weighting = history.weighting if isinstance(history, TopicResult) else None
    edits = list(history.history if isinstance(history, TopicResult) else history)
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
    function, ids = EDITS[edit.name], _matching_ids(result, edit)
    parameters = {
        name: _with_ids(value, ids) if name == IDS.get(edit.name) else value
        for name, value in edit.parameters.items()
    }
    if edit.name == "merge":
        groups = [sorted(set(group)) for group in parameters["topics"]]
        parameters["topics"] = [group for group in groups if len(group) > 1]
        if not parameters["topics"]:
            raise InputError("the topics are one here already")
    if (weighting := parameters.get("weighting")) is not None:
        is_custom = isinstance(weighting, str) and custom is not None
        parameters["weighting"] = custom if is_custom else recorded_weighting(weighting)
    return function(result, **parameters)


def _matching_ids(result: TopicResult, edit: Edit) -> dict[int, int]:
    """Return the id here of each topic that an edit names."""
    ids: dict[int, int] = {}
    for mark in edit.marks:
        topic = find_topic(result, mark)
        if topic is None:
            mark_name = f"{mark.topic_id} ({mark.label})"
            raise InputError(f"no topic here matches {mark_name} by documents or keywords")
        ids[mark.topic_id] = topic
    return ids


def find_topic(result: TopicResult, mark: TopicMark) -> int | None:
    """Find the topic that a mark of another result describes."""
    if mark.documents and len(result.documents):
        halves = [(int(text[:16], 16), int(text[16:], 16)) for text in mark.documents]
        documents = find_documents(result.documents.hashes, np.array(halves, dtype=np.uint64))
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


def history(result: TopicResult) -> pd.DataFrame:
    """Tabulate the edits of a result.

    To undo edits, apply fewer to the fit: ``replay(fit, result.history[:n])``.

    Parameters
    ----------
    result : TopicResult

    Returns
    -------
    DataFrame
        Columns step (from 1), edit (the function in `embedtopics.topics`) and message, in order.
    """
    rows = [(step, edit.name, edit.message) for step, edit in enumerate(result.history, start=1)]
    return pd.DataFrame(rows, columns=["step", "edit", "message"])
