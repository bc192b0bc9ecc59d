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
from embedtopics.topics.naming._chat import AnswerRecord, Chat, TopicAnswer, open_endpoint
from embedtopics.topics.naming._questions import Question, name_key, naming_questions, parse_name
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

    The function sends parts of documents to the endpoint, which is any server with the API of
    OpenAI's chat completions, such as llama.cpp, vLLM or Ollama. `naming_questions` shows these
    parts beforehand. A topic without a usable answer keeps its automatic name, and a decision
    gives the reason. Where several topics get one name, the smaller topics get a term in brackets.
    Check the names against the terms; `score_labels` measures how well they find the texts.

    Parameters
    ----------
    result : TopicResult
    endpoint : str
        Address such as ``http://localhost:11434/v1``; ``/chat/completions`` is added.
    model : str
        Name of the model at the endpoint.
    questions : sequence of Question, optional
        Questions of `naming_questions`, which takes the topics, the prompt and the length of the
        excerpts.
    api_key : str, optional
        By default OPENAI_API_KEY of the environment, unless it would travel unencrypted to another
        machine; "" sends none. The key is stored nowhere.
    request : mapping, optional
        Further fields of every request; by default ``{"temperature": 0.0, "max_tokens": 300}``. A
        value of None leaves a field out. ``"timeout"`` (30 seconds) is not sent.
    record : str, path or None
        File that gets a line of JSON for every question. A question that has an answer there, from
        the same model and request, is not asked again. None keeps no record.
    show_progress : bool, optional
        Whether to show a bar; by default in a terminal or a notebook.

    Returns
    -------
    TopicResult
        The named result, with an `Edit` "rename" that holds the names, so that a replay asks no
        model.

    Raises
    ------
    InputError
        If a parameter is invalid, or if no topic gets a name because the endpoint cannot be
        reached, denies access, or never answers.
    MissingExtraError
        If the extra "llm" is not installed.

    Notes
    -----
    The client repeats a failed call up to three times, after the time that the server asks for or
    after an increasing one.
    """
    address = open_endpoint(endpoint, api_key)
    fields = _request_fields(model, request)
    timeout = fields.pop("timeout", DEFAULTS["timeout"])
    if not is_number(timeout) or not math.isfinite(timeout) or timeout <= 0:
        raise InputError("request", "a mapping whose timeout is above 0 seconds", timeout)
    chat = Chat(address, fields, AnswerRecord(record), float(timeout), parse_name)
    questions = naming_questions(result) if questions is None else list(questions)
    if not questions:
        return result
    answers = chat.ask_all(questions, show_progress)
    names = {answer.topic_id: answer.name for answer in answers if answer.name is not None}
    if not names and any(answer.is_general for answer in answers):
        reason = next(answer.reason for answer in answers if answer.is_general)
        raise InputError(f"no topic could be named by {model} at {address.url}: {reason}")
    labels, with_term = _distinct(result, names)
    decisions = _decisions(chat, questions, answers, labels, with_term)
    topics = list(result.topics)
    for topic, label in labels.items():
        topics[topic] = dataclasses.replace(
            topics[topic], label=label, is_named=True, label_auc=None
        )
    history = result.history
    if labels:
        parameters = {"labels": {str(topic): label for topic, label in labels.items()}}
        message = f"{spell_count(len(labels), 'topic was', 'topics were')} named by {model}"
        ids = range(result.n_topics)
        history = (*history, edit_of(result, "rename", parameters, message, list(labels), ids))
    return dataclasses.replace(
        result, topics=tuple(topics), decisions=(*result.decisions, *decisions), history=history
    )


def _request_fields(model: str, request: Any) -> dict[str, Any]:
    """Return the fields of a request without its messages, and the timeout."""
    if not isinstance(model, str) or not model.strip():
        raise InputError("model", "the name of a model at the endpoint", model)
    options = {} if request is None else request
    if not isinstance(options, Mapping) or RESERVED & set(options):
        raise InputError("request", f"a mapping without {', '.join(sorted(RESERVED))}", options)
    try:
        json.dumps(dict(options), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError("request", "a mapping that JSON can hold", options, str(error)) from None
    fields = {"model": model, **DEFAULTS, **options}
    return {name: value for name, value in fields.items() if value is not None}


def _distinct(result: TopicResult, names: Mapping[int, str]) -> tuple[dict[int, str], list[int]]:
    """Append a term, or else a number, to repeated names; the largest topic keeps its name."""
    used = {name_key(t.label) for t in result.topics if t.topic_id not in names}
    labels, changed = {}, []
    for topic in sorted(names):
        label = names[topic]
        if name_key(label) in used:
            changed.append(topic)
            endings = [*result.topics[topic].keywords, *map(str, range(2, len(names) + 3))]
            candidates = (f"{names[topic]} ({ending})" for ending in endings)
            label = next(text for text in candidates if name_key(text) not in used)
        used.add(name_key(label))
        labels[topic] = label
    return labels, changed


def _decisions(
    chat: Chat,
    questions: Sequence[Question],
    answers: Sequence[TopicAnswer],
    labels: Mapping[int, str],
    with_term: Sequence[int],
) -> list[Decision]:
    """Return which documents were sent, why topics have no name, and which names got a term."""
    model = chat.request["model"]
    sent = {answer.topic_id for answer in answers if answer.was_sent}
    n_documents = sum(q.n_documents for q in questions if q.topic_id in sent)
    message = (
        f"{spell_count(len(labels), 'topic was', 'topics were')} named by the language model "
        f"{model}; parts of {spell_count(n_documents, 'document', 'documents')} were sent to "
        f"{chat.endpoint.url}."
    )
    decisions = [Decision("topics", "named_by_model", model, message)]
    failed = {str(answer.topic_id): answer.reason for answer in answers if answer.name is None}
    if failed:
        reasons = ", ".join(f"{topic} ({reason})" for topic, reason in failed.items())
        message = f"Topics that keep their automatic names: {reasons}."
        decisions.append(Decision("topics", "not_named", list(failed), message))
    if with_term:
        ids = [str(topic) for topic in with_term]
        message = (
            f"Topics with a term in brackets, because another has the same name: {', '.join(ids)}."
        )
        decisions.append(Decision("topics", "names_told_apart", ids, message))
    return decisions
