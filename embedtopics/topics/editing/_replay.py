"""The edits of a result: as a table, and done again on another result."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from embedtopics._utils.checks import checked_choice
from embedtopics.clustering.results import NOISE
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.protocols import TermWeighting
from embedtopics.topics._assign import find_documents
from embedtopics.topics._describe import recorded_weighting
from embedtopics.topics.results import Edit, TopicMark, TopicResult

MOST = 0.5
"""Share of a mark's documents above which the topic that holds them is the one."""

ENOUGH_KEYWORDS = 0.25
"""Least Jaccard similarity of two topics' keywords to be matched; two lists of ten share four."""

EDITS = {
    "at_level": "topics", "at_resolution": None, "make_labels": None, "merge": "topics",
    "reassign": None, "reduce": None, "remove": "topics", "rename": "labels", "split": "topic",
    "update_terms": None, "with_keywords": None,
}  # fmt: skip
"""Functions of `embedtopics.topics` that may be replayed, and the parameter that holds topic ids.

A history may come from anybody's file: what sends texts away or writes files is not among them.
"""

OLD_PARAMETERS = {"n_words": "n_terms", "road": "method"}
"""Names in histories that version 0.1.0 recorded."""

WITHOUT_EFFECT = {
    ("reassign", "topics"): None, ("split", "min_cluster_size"): "auto", ("split", "keep_all"): True
}  # fmt: skip
"""Parameters that it recorded and that are gone, with the value that most had."""


def replay(
    result: TopicResult,
    history: TopicResult | Iterable[Edit],
    *,
    missing: str = "raise",
) -> TopicResult:
    """Apply recorded edits, in order, to another result: a fit of more texts or another encoder.

    A topic that an edit names is the one that now holds most of its most central documents, else
    the one with the most similar keywords. On the fit that was edited the outcome is bit-identical.

    Parameters
    ----------
    result : TopicResult
    history : TopicResult or iterable of Edit
        A result that was edited, or edits, such as ``edited.history[:-1]`` to leave out the last.
    missing : {"raise", "skip"}
        What to do with an edit that cannot be applied here: raise, or record that in the decisions.

    Returns
    -------
    TopicResult
        Its decisions name the edits that were skipped, under "replay".

    Raises
    ------
    InputError
        If an edit cannot be applied; the message names it.
    """
    checked_choice(missing, "missing", ("raise", "skip"))
    edits: Any = history.history if isinstance(history, TopicResult) else history
    edits = list(edits) if isinstance(edits, Iterable) else [edits]
    if not all(isinstance(edit, Edit) for edit in edits):
        raise InputError("history", "a result or a list of its edits", history)
    for step, edit in enumerate(edits, start=1):
        spelled = f"{edit.name} ({edit.message})" if edit.message else edit.name
        try:
            result = _applied(result, edit, getattr(history, "weighting", None))
            continue
        except _NothingToDo as reason:
            skipped = str(reason)
        except InputError as error:
            if missing == "raise":
                raise InputError(
                    f"edit {step}, {spelled}, cannot be applied here: {error}; leave it out of the "
                    'history, or give missing="skip"'
                ) from error
            skipped = str(error)
        message = f"Edit {step}, {spelled}, was not applied: {skipped}."
        decision = Decision("topics", "replay", step, message)
        result = dataclasses.replace(result, decisions=(*result.decisions, decision))
    return result


class _NothingToDo(Exception):
    """Raised where an edit would change nothing."""


def _applied(result: TopicResult, edit: Edit, own: TermWeighting | None) -> TopicResult:
    if edit.name == "note":
        raise _NothingToDo("it is a remark")
    if edit.name not in EDITS:
        raise InputError(f"there is no edit {edit.name!r}")
    function = getattr(importlib.import_module("embedtopics.topics"), edit.name)
    ids: dict[int, int] = {}
    for mark in edit.marks:
        if (found := find_topic(result, mark)) is None:
            raise InputError(
                f"no topic here matches {mark.topic_id} ({mark.label}) by documents or keywords"
            )
        ids[mark.topic_id] = found
    signature = inspect.signature(function)
    parameters = {}
    for name, value in edit.parameters.items():
        if WITHOUT_EFFECT.get((edit.name, name), ...) == value:
            continue
        known = name if name in signature.parameters else OLD_PARAMETERS.get(name, name)
        parameters[known] = _with_ids(value, ids) if name == EDITS[edit.name] else value
    if edit.name == "merge":
        groups = [sorted(set(group)) for group in parameters["topics"]]
        kept = [place for place, group in enumerate(groups) if len(group) > 1]
        if not kept:
            raise _NothingToDo("the topics are one here already")
        parameters["topics"] = [groups[place] for place in kept]
        if "label" in parameters:
            labels = [parameters["label"][place] for place in kept]
            parameters["label"] = labels if any(label is not None for label in labels) else None
    if (recorded := parameters.get("weighting")) is not None:
        is_own = isinstance(recorded, str) and own is not None
        parameters["weighting"] = own if is_own else recorded_weighting(recorded)
    try:
        signature.bind(result, **parameters)
    except TypeError as error:
        raise InputError(f"its parameters are not those of this version ({error})") from error
    edited: TopicResult = function(result, **parameters)
    return edited


def find_topic(result: TopicResult, mark: TopicMark) -> int | None:
    """Find the topic that a mark of another result describes."""
    if mark.documents and len(result.documents):
        halves = [(int(text[:16], 16), int(text[16:], 16)) for text in mark.documents]
        here = find_documents(result.documents.hashes, np.array(halves, dtype=np.uint64))
        here = here[here >= 0]
        labels = result.clustering.labels[here]
        held = np.bincount(labels[labels != NOISE], minlength=max(result.n_topics, 1))
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


def _with_ids(value: Any, ids: Mapping[int, int]) -> Any:
    """Return a parameter with the ids that its topics have here."""
    if isinstance(value, Mapping):
        moved = {_with_ids(key, ids): item for key, item in value.items()}
        if len(moved) < len(value):
            raise InputError("two of the topics that it names are one here")
        return moved
    if isinstance(value, (list, tuple)):
        return [_with_ids(item, ids) for item in value]
    if value is None:
        return None
    if int(value) not in ids:
        raise InputError(f"it does not record by what topic {value} can be matched")
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
