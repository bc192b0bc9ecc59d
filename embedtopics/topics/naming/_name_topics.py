"""Names for topics from a language model that the user chooses."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from embedtopics._utils.checks import is_number
from embedtopics._utils.display import spell_count
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.topics._relabel import edit_of
from embedtopics.topics.naming._chat import Answer, Chat, Record, open_endpoint
from embedtopics.topics.naming._questions import Question, name_in, name_key, naming_questions
from embedtopics.topics.results import TopicResult

DEFAULTS = {"temperature": 0.0, "max_tokens": 300, "timeout": 30.0}
RESERVED = frozenset({"model", "messages", "stream", "n"})


def name_topics(
    result: TopicResult,
    endpoint: str,
    model: str,
    *,
    questions: Sequence[Question] | None = None,
    api_key: str | None = None,
    request: Mapping[str, Any] | None = None,
    record: str | os.PathLike[str] | None = "names.jsonl",
    show_progress: bool | None = None,
) -> TopicResult:
    """Name the topics by a language model, from their terms and some of their documents.

    This sends parts of documents to the endpoint, any with the API of OpenAI's chat completions;
    `naming_questions` shows them before. Without a usable answer a topic keeps its automatic name,
    and a decision says why; of topics of the same name the smaller ones get a term in brackets.
    Read the names against the terms; `score_labels` measures how well they find the texts.

    Parameters
    ----------
    result : TopicResult
    endpoint : str
        Such as ``http://localhost:11434/v1``; ``/chat/completions`` is added.
    model : str
    questions : sequence of Question, optional
        From `naming_questions`, which chooses topics, prompt, and how much of the texts is sent.
    api_key : str, optional
        By default OPENAI_API_KEY of the environment, unless it would travel unencrypted to another
        machine; "" sends none. It is stored nowhere.
    request : mapping, optional
        Further fields of every request; by default ``{"temperature": 0.0, "max_tokens": 300}``, of
        which None leaves one out. ``"timeout"`` (30 seconds) is not sent.
    record : str, path or None
        File to which a line of JSON is added for every call; a question with an answer there, of
        the same model and request, is not asked again. None keeps no record.
    show_progress : bool, optional
        By default in a terminal or a notebook.

    Returns
    -------
    TopicResult
        Named, and with an `Edit` "rename" that holds the names: replaying it asks nobody.

    Raises
    ------
    InputError
        Where a parameter is bad; or no topic could be named because the endpoint cannot be
        reached, denies access, or never answers.
    MissingExtraError
        Where httpx is not installed.

    Notes
    -----
    A call that fails by chance is tried again three times, after the time that the server names, a
    minute at most, or an increasing one.
    """
    address = open_endpoint(endpoint, api_key)
    fields = _request_fields(model, request)
    timeout = fields.pop("timeout", DEFAULTS["timeout"])
    if not is_number(timeout) or not math.isfinite(timeout) or timeout <= 0:
        raise InputError("request", "with a timeout above 0, in seconds", timeout)
    chat = Chat(address, fields, Record(record), float(timeout), name_in)
    questions = naming_questions(result) if questions is None else list(questions)
    if not questions:
        return result
    answers = chat.ask_all(questions, show_progress)
    names = {answer.topic_id: answer.name for answer in answers if answer.name is not None}
    if not names and any(answer.is_general for answer in answers):
        reason = next(answer.reason for answer in answers if answer.is_general)
        raise InputError(f"no topic could be named by {model} at {address.url}: {reason}")
    final, numbered = _distinct(result, names)
    decisions = _decisions(chat, questions, answers, final, numbered)
    topics = list(result.topics)
    for topic, name in final.items():
        topics[topic] = dataclasses.replace(
            topics[topic], label=name, is_named=True, label_auc=None
        )
    history = result.history
    if final:
        parameters = {"labels": {str(topic): name for topic, name in final.items()}}
        message = f"{spell_count(len(final), 'topic was', 'topics were')} named by {model}"
        ids = range(result.n_topics)
        history = (*history, edit_of(result, "rename", parameters, message, list(final), ids))
    return dataclasses.replace(
        result, topics=tuple(topics), decisions=(*result.decisions, *decisions), history=history
    )


def _request_fields(model: Any, request: Any) -> dict[str, Any]:
    """Return the fields of a request beside its messages, and the timeout."""
    if not isinstance(model, str) or not model.strip():
        raise InputError("model", "the name of a model at the endpoint", model)
    given = {} if request is None else request
    if not isinstance(given, Mapping) or RESERVED & set(given):
        raise InputError("request", f"a mapping without {', '.join(sorted(RESERVED))}", given)
    try:
        json.dumps(dict(given), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError("request", "values that JSON can hold", given, str(error)) from None
    whole = {"model": model, **DEFAULTS, **given}
    return {name: value for name, value in whole.items() if value is not None}


def _distinct(result: TopicResult, names: Mapping[int, str]) -> tuple[dict[int, str], list[int]]:
    """Append a term, or else a number, to names that are taken; larger topics keep theirs."""
    taken = {name_key(t.label) for t in result.topics if t.topic_id not in names}
    final, changed = {}, []
    for topic in sorted(names):
        name = names[topic]
        if name_key(name) in taken:
            changed.append(topic)
            endings = [*result.topics[topic].keywords, *map(str, range(2, len(names) + 3))]
            tries = (f"{names[topic]} ({ending})" for ending in endings)
            name = next(made for made in tries if name_key(made) not in taken)
        taken.add(name_key(name))
        final[topic] = name
    return final, changed


def _decisions(
    chat: Chat,
    questions: Sequence[Question],
    answers: Sequence[Answer],
    names: Mapping[int, str],
    numbered: Sequence[int],
) -> list[Decision]:
    """Return what was sent where, which topics have no new name and why, and which got a term."""
    model = chat.request["model"]
    sent = {answer.topic_id for answer in answers if answer.was_sent}
    n_documents = sum(q.n_documents for q in questions if q.topic_id in sent)
    message = (
        f"{spell_count(len(names), 'topic was', 'topics were')} named by the language model "
        f"{model}; parts of {spell_count(n_documents, 'document', 'documents')} were sent to "
        f"{chat.endpoint.url}."
    )
    made = [Decision("topics", "named_by_model", model, message)]
    failed = {str(answer.topic_id): answer.reason for answer in answers if answer.name is None}
    if failed:
        why = ", ".join(f"{topic} ({reason})" for topic, reason in failed.items())
        message = f"Topics that keep their automatic names: {why}."
        made.append(Decision("topics", "not_named", list(failed), message))
    if numbered:
        ids = [str(topic) for topic in numbered]
        message = f"Topics with a term in brackets, as another has their name: {', '.join(ids)}."
        made.append(Decision("topics", "names_told_apart", ids, message))
    return made
