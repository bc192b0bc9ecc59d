"""Names for topics from a language model that the user names."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from embedtopics._checks import checked_count, is_number
from embedtopics.errors import InputError
from embedtopics.results import Decision, Edit, TopicResult
from embedtopics.topics.naming.answers import name_key
from embedtopics.topics.naming.asking import Answer, Asker, ask_all
from embedtopics.topics.naming.endpoint import open_endpoint
from embedtopics.topics.naming.prompts import PROMPT, Question, naming_questions, questions_apart
from embedtopics.topics.naming.records import open_audit, open_cache
from embedtopics.topics.relabeling import marks_of

__all__ = ["name_topics"]

OURS = frozenset({"model", "messages", "temperature", "max_tokens", "seed", "stream", "n"})


def name_topics(
    result: TopicResult,
    endpoint: str,
    model: str,
    *,
    api_key: str | None = None,
    prompt: str = PROMPT,
    n_terms: int = 10,
    n_documents: int = 4,
    n_characters: int = 500,
    longest: int = 60,
    topics: Any = None,
    cache: bool | str | os.PathLike[str] = True,
    audit: str | os.PathLike[str] | None = "names.jsonl",
    timeout: float = 30.0,
    retries: int = 3,
    concurrency: int = 4,
    temperature: float | None = 0.0,
    seed: int | None = None,
    max_tokens: int | None = 300,
    extra: Mapping[str, Any] | None = None,
    show_progress: bool | None = None,
) -> TopicResult:
    """Let a language model name the topics, from their terms and some of their documents.

    This sends parts of documents to the endpoint; `naming_questions` shows them before. Nothing
    else in the toolkit does, and there is no endpoint by default. Any endpoint with the API of
    OpenAI's chat completions will do, such as a model on the own machine.

    A name is one line of plain text. Where an answer is none, or none comes, the topic keeps its
    automatic name and a decision of the result says why. Topics that got the same name are asked
    about once more, each with the terms of the others; names that are alike even then get a term
    in brackets. What a model answers is no finding: read the names against the terms.

    Parameters
    ----------
    result : TopicResult
    endpoint : str
        Such as ``http://localhost:11434/v1``; ``/chat/completions`` is added.
    model : str
    api_key : str, optional
        By default what is in OPENAI_API_KEY, unless it would travel in the clear to another
        machine; "" sends none. It is kept nowhere.
    prompt : str
        With ``{terms}``, ``{documents}``, or both, where the data are to stand.
    n_terms, n_documents, n_characters
        Keywords and typical documents in a prompt, and the length at which these are cut.
    longest : int
        Characters of a name at most.
    topics : int or sequence of int, optional
        By default those that were neither named by hand nor asked for by name.
    cache : bool, str or path
        Whether, or in which folder, answers are kept, so that the same question is not asked again
        of the same model with the same parameters.
    audit : str, path or None
        File to which a line of JSON is added for every call and every answer from the cache: time,
        endpoint, model, prompt, answer, name, tokens, seconds, error. None keeps no record.
    timeout : float
        Seconds until a call without an answer has failed.
    retries : int
        Further calls where one failed by chance (too many requests, a server's error, no answer
        in time), after the time that the server names, a minute at most, or a growing one.
    concurrency : int
        Calls at a time.
    temperature, seed, max_tokens
        Of the request; None leaves one out.
    extra : mapping, optional
        Further fields of the request, such as ``{"max_completion_tokens": 500}``.
    show_progress : bool or None
        None shows progress where a terminal or a notebook listens.

    Returns
    -------
    TopicResult
        Named, and with an `Edit` "rename" that holds the names: to do it again asks nobody.

    Raises
    ------
    InputError
        Where a parameter is bad; or no topic could be named because the endpoint cannot be
        reached, denies access, or never answers.

    Notes
    -----
    Language models do not always answer alike, even at temperature 0 and with a seed. What keeps
    a name is the result and, on this machine, the cache.
    """
    asker = Asker(
        open_endpoint(endpoint, api_key, _checked_seconds(timeout)),
        _request_parameters(model, temperature, seed, max_tokens, extra),
        open_cache(cache),
        open_audit(audit),
        checked_count(retries, "retries", 0),
        checked_count(concurrency, "concurrency"),
        checked_count(longest, "longest"),
    )
    questions = naming_questions(
        result,
        prompt=prompt,
        n_terms=n_terms,
        n_documents=n_documents,
        n_characters=n_characters,
        topics=topics,
    )
    if not questions:
        return result
    answers = ask_all(asker, questions, show_progress)
    names = {answer.topic_id: answer.name for answer in answers if answer.name is not None}
    if not names and any(answer.is_general for answer in answers):
        reason = next(answer.reason for answer in answers if answer.is_general)
        raise InputError(f"no topic could be named by {model} at {asker.endpoint.url}: {reason}")
    apart = _told_apart(asker, result, names, n_terms, show_progress)
    final, numbered = _distinct(result, {**names, **apart})
    decisions = _decisions(asker, questions, answers, final, numbered)
    return _named(result, final, model, decisions)


def _checked_seconds(timeout: Any) -> float:
    if not is_number(timeout) or not math.isfinite(timeout) or timeout <= 0:
        raise InputError(f"timeout must be a number of seconds above 0; got {timeout!r}")
    return float(timeout)


def _request_parameters(
    model: Any, temperature: Any, seed: Any, max_tokens: Any, extra: Any
) -> dict[str, Any]:
    """Return what a request holds beside its messages."""
    if not isinstance(model, str) or not model.strip():
        raise InputError(f"model must be the name of a model at the endpoint; got {model!r}")
    if temperature is not None:
        if not is_number(temperature) or not 0 <= temperature <= 2:
            raise InputError(
                f"temperature must be a number from 0 to 2, or None; got {temperature!r}"
            )
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise InputError(f"seed must be an integer or None; got {seed!r}")
    if max_tokens is not None:
        max_tokens = checked_count(max_tokens, "max_tokens")
    further = {} if extra is None else extra
    if not isinstance(further, Mapping) or OURS & set(further):
        raise InputError(
            "extra must be a mapping of fields that have no parameter of their own (so not "
            f"{', '.join(sorted(OURS))}); got {further!r}"
        )
    try:
        json.dumps(dict(further), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"extra must hold what JSON can; got {further!r} ({error})") from None
    fields = {"model": model, "temperature": temperature, "seed": seed, "max_tokens": max_tokens}
    return {name: value for name, value in fields.items() if value is not None} | dict(further)


def _told_apart(
    asker: Asker,
    result: TopicResult,
    names: Mapping[int, str],
    n_terms: int,
    show_progress: bool | None,
) -> dict[int, str]:
    """Ask once more about topics of one name, and return what names that gave."""
    labels = {topic.topic_id: topic.label for topic in result.topics} | dict(names)
    groups: dict[str, list[int]] = defaultdict(list)
    for topic, label in labels.items():
        groups[name_key(label)].append(topic)
    questions = [
        question
        for alike in groups.values()
        if len(alike) > 1
        for question in questions_apart(result, alike, labels, set(names), n_terms)
    ]
    answers = ask_all(asker, questions, show_progress) if questions else []
    return {answer.topic_id: answer.name for answer in answers if answer.name is not None}


def _distinct(result: TopicResult, names: Mapping[int, str]) -> tuple[dict[int, str], list[int]]:
    """Put a term, or else a number, behind names that are taken; larger topics keep theirs."""
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
    asker: Asker,
    questions: Sequence[Question],
    answers: Sequence[Answer],
    names: Mapping[int, str],
    numbered: Sequence[int],
) -> list[Decision]:
    """Say what went where, which topics have no new name and why, and which got an ending."""
    model, url = asker.parameters["model"], asker.endpoint.url
    sent = {answer.topic_id for answer in answers if answer.was_sent}
    n_documents = sum(q.n_documents for q in questions if q.topic_id in sent)
    made = [
        Decision(
            "topics",
            "named_by_model",
            model,
            f"{len(names)} topics were named by the language model {model}; parts of "
            f"{n_documents} documents were sent to {url}.",
        )
    ]
    failed = [answer for answer in answers if answer.name is None]
    if failed:
        why = ", ".join(f"{answer.topic_id} ({answer.reason})" for answer in failed)
        ids = [str(answer.topic_id) for answer in failed]
        made.append(
            Decision("topics", "not_named", ids, f"Topics that keep their automatic names: {why}.")
        )
    if numbered:
        ids = [str(topic) for topic in numbered]
        made.append(
            Decision(
                "topics",
                "names_told_apart",
                ids,
                "Topics whose name was that of another, and has a term in brackets: "
                f"{', '.join(ids)}.",
            )
        )
    return made


def _named(
    result: TopicResult, names: Mapping[int, str], model: str, decisions: Sequence[Decision]
) -> TopicResult:
    """Return the result with the names, and an edit that gives them again."""
    topics = tuple(
        dataclasses.replace(topic, label=names[topic.topic_id], is_named=True)
        if topic.topic_id in names
        else topic
        for topic in result.topics
    )
    history = result.history
    if names:
        edit = Edit(
            "rename",
            {"labels": {str(topic): names[topic] for topic in sorted(names)}},
            f"{len(names)} topics were named by {model}",
            marks_of(result, sorted(names)),
            tuple(range(result.n_topics)),
        )
        history = (*history, edit)
    return dataclasses.replace(
        result, topics=topics, decisions=(*result.decisions, *decisions), history=history
    )
