"""The edits of one result, done again on another."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from embedtopics.errors import InputError
from embedtopics.protocols import TermWeighting
from embedtopics.results import Decision, Edit, TopicResult
from embedtopics.topics.editing.finding import find_topic
from embedtopics.topics.recorded import recorded_weighting

__all__ = ["EDITS", "TOPIC_PARAMETERS", "replay"]

EDITS = frozenset({
    "at_level", "at_resolution", "make_labels", "merge", "reassign", "reduce", "remove", "rename",
    "split", "update_terms", "with_keywords",
})  # fmt: skip
"""Functions of `embedtopics.topics` that record an edit of their name: all that may be done again.

A history may come from a file of anyone: what sends texts away or writes files is not called.
"""

TOPIC_PARAMETERS = {"topic", "topics", "labels"}
"""Names of parameters that hold topic ids: one, a list, lists in a list, or keys of a mapping."""


class _Missing(InputError):
    """Raised where a topic that an edit names is not found."""


class _NothingToDo(Exception):
    """Raised where what an edit would do is so already."""


def replay(
    result: TopicResult,
    history: TopicResult | Iterable[Edit],
    *,
    missing: str = "raise",
    weighting: TermWeighting | None = None,
) -> TopicResult:
    """Do edits again, in order, on another result: a fit of more texts, or of another encoder.

    A topic that an edit names is the one that now holds most of the documents that lay deepest in
    it, told by their content; or, where these texts are not here or are no longer together, the
    one whose keywords are the most alike. On the fit on which the edits were done first, the
    outcome is the same to the bit.

    Parameters
    ----------
    result : TopicResult
    history : TopicResult or iterable of Edit
        A result that was edited, or edits, such as ``edited.history[:-1]`` to leave out the last.
    missing : {"raise", "skip"}
        What to do with an edit whose topics are not found, or that cannot be done here: stop, or
        leave it out and say so among the decisions.
    weighting : object with ``fit_transform(topic_counts)``, optional
        Needed where the terms of either result were weighed by an object of the user's own, which
        a history cannot hold.

    Returns
    -------
    TopicResult
        Remarks, which cannot be done again, and edits that were left out are named in its
        decisions, under "replay".

    Raises
    ------
    InputError
        Which names the edit, and the topic that is not found.
    """
    if missing not in ("raise", "skip"):
        raise InputError(f'missing must be "raise" or "skip"; got {missing!r}')
    for step, edit in enumerate(_edits(history), start=1):
        if edit.name == "note":
            result = _noted(result, step, edit, "it is a remark")
            continue
        try:
            result = _done(result, edit, weighting)
        except _NothingToDo as done:
            result = _noted(result, step, edit, str(done))
        except InputError as error:
            if missing == "raise":
                raise InputError(
                    f"edit {step}, {_spell(edit)}, cannot be done again here: {error}; leave it "
                    'out of the history, or give missing="skip"'
                ) from error
            result = _noted(result, step, edit, str(error))
    return result


def _edits(history: Any) -> tuple[Edit, ...]:
    edits = history.history if isinstance(history, TopicResult) else history
    if isinstance(edits, Edit):
        edits = [edits]
    if isinstance(edits, (str, bytes)) or not hasattr(edits, "__iter__"):
        raise InputError(f"history must be a result or a list of its edits; got {history!r}")
    edits = tuple(edits)
    for edit in edits:
        if not isinstance(edit, Edit):
            raise InputError(f"history must hold edits; got {edit!r}")
    return edits


def _done(result: TopicResult, edit: Edit, weighting: TermWeighting | None) -> TopicResult:
    """Do one edit."""
    function = _function_of(edit.name)
    ids: dict[int, int] = {}
    for mark in edit.marks:
        found = find_topic(result, mark)
        if found is None:
            raise _Missing(
                f"no topic here is like {mark.topic_id} ({mark.label}) by its documents or keywords"
            )
        ids[mark.topic_id] = found
    parameters = {
        name: _with_ids(value, ids) if name in TOPIC_PARAMETERS else value
        for name, value in edit.parameters.items()
    }
    if edit.name == "merge":
        parameters = _still_to_merge(parameters)
    signature = inspect.signature(function)
    recorded = parameters.get("weighting", result.settings.get("weighting"))
    if isinstance(recorded, str) and "weighting" in signature.parameters:
        # One of the user's own; without it, the error says that it is to be given.
        parameters["weighting"] = recorded_weighting(recorded) if weighting is None else weighting
    elif isinstance(parameters.get("weighting"), Mapping):
        parameters["weighting"] = recorded_weighting(dict(parameters["weighting"]))
    try:
        signature.bind(result, **parameters)
    except TypeError as error:
        raise InputError(f"its parameters are not those of this version ({error})") from error
    return function(result, **parameters)


def _function_of(name: str) -> Callable[..., TopicResult]:
    """Return the function that does an edit of a name."""
    if name not in EDITS:
        raise InputError(f"there is no edit {name!r}")
    function: Callable[..., TopicResult] = getattr(
        importlib.import_module("embedtopics.topics"), name
    )
    return function


def _with_ids(value: Any, ids: Mapping[int, int]) -> Any:
    """Return a parameter with the ids that its topics have here."""
    if isinstance(value, Mapping):
        moved = {_found(key, ids): item for key, item in value.items()}
        if len(moved) < len(value):
            raise InputError("two of the topics that it names are one here")
        return moved
    if isinstance(value, (list, tuple)):
        return [_with_ids(item, ids) for item in value]
    return value if value is None else _found(value, ids)


def _found(topic: Any, ids: Mapping[int, int]) -> int:
    if int(topic) not in ids:
        raise InputError(f"it does not say by what topic {topic} can be known again")
    return ids[int(topic)]


def _still_to_merge(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return of the groups to be merged those that are not one topic already."""
    groups = [sorted(set(group)) for group in parameters["topics"]]
    labels = parameters.get("label") or [None] * len(groups)
    kept = [place for place, group in enumerate(groups) if len(group) > 1]
    if not kept:
        raise _NothingToDo("the topics are one here already")
    named = [labels[place] for place in kept]
    some = {} if all(label is None for label in named) else {"label": named}
    without = {name: value for name, value in parameters.items() if name != "label"}
    return {**without, "topics": [groups[place] for place in kept], **some}


def _noted(result: TopicResult, step: int, edit: Edit, why: str) -> TopicResult:
    """Say in the decisions that an edit was left out, and why."""
    message = f"Edit {step}, {_spell(edit)}, was not done again: {why}."
    decision = Decision("topics", "replay", step, message)
    return dataclasses.replace(result, decisions=(*result.decisions, decision))


def _spell(edit: Edit) -> str:
    return f"{edit.name} ({edit.message})" if edit.message else edit.name
