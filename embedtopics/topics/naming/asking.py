"""Questions to a language model, several at a time: cached, tried again, written down."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from embedtopics._progress import progress_bar
from embedtopics.topics.naming.answers import content_of, name_in, tokens_of
from embedtopics.topics.naming.endpoint import Endpoint, Failure, post
from embedtopics.topics.naming.prompts import Question
from embedtopics.topics.naming.records import AnswerCache, Audit

__all__ = ["Answer", "Asker", "ask_all"]

MOST_SECONDS_TO_WAIT = 60.0
FIRST_WAIT = 0.5
"""Seconds before a call is tried again, doubled each time, where the server names none."""

UNANSWERED_IN_A_ROW = 5
"""Questions that nothing came back for, after which the others are not asked."""


@dataclass(frozen=True)
class Answer:
    """What became of a question.

    Parameters
    ----------
    topic_id : int
    name : str or None
    reason : str
        Why there is no name.
    is_general : bool
        Whether the reason lies with the endpoint, not with the answer.
    was_sent : bool
        Whether anything went to the endpoint; not so for what was cached or given up.
    """

    topic_id: int
    name: str | None
    reason: str = ""
    is_general: bool = False
    was_sent: bool = True


@dataclass
class _Line:
    """Whether it is of use to go on calling; shared by the threads of one run."""

    given_up: str | None = None
    unanswered: int = 0
    lock: Lock = field(default_factory=Lock)

    def note(self, failure: Failure | None) -> None:
        """Take note of how a question ended."""
        with self.lock:
            if failure is None:
                self.unanswered = 0
                return
            self.unanswered += failure.try_again
            if failure.is_general or self.unanswered >= UNANSWERED_IN_A_ROW:
                self.given_up = self.given_up or failure.reason


@dataclass(frozen=True)
class Asker:
    """How questions are asked.

    Parameters
    ----------
    endpoint : Endpoint
    parameters : mapping
        Of the request, beside the messages: the model, the temperature and so on.
    cache : AnswerCache
    audit : Audit
    retries : int
        Further calls where one had no answer.
    concurrency : int
        Calls at a time.
    longest : int
        Characters of a name at most.
    """

    endpoint: Endpoint
    parameters: Mapping[str, Any]
    cache: AnswerCache
    audit: Audit
    retries: int
    concurrency: int
    longest: int
    line: _Line = field(default_factory=_Line, repr=False)


def ask_all(
    asker: Asker, questions: Sequence[Question], show_progress: bool | None
) -> list[Answer]:
    """Ask questions and return the answers in their order.

    Raises
    ------
    InputError
        Where the record cannot be written.
    """
    executor = ThreadPoolExecutor(asker.concurrency)
    answers = []
    try:
        with progress_bar(
            total=len(questions), unit="topic", description="naming", show=show_progress
        ) as bar:
            for answer in executor.map(lambda question: _ask(asker, question), questions):
                answers.append(answer)
                bar.update(1)
    except BaseException:  # an interrupt too: no further call is begun
        asker.line.given_up = asker.line.given_up or "interrupted"
        raise
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
    return answers


def _ask(asker: Asker, question: Question) -> Answer:
    """Ask one question: from the cache, or of the endpoint, as often as it takes."""
    request = {**asker.parameters, "messages": list(question.messages)}
    # The address is part of what was asked: two servers may call other models by one name.
    key = {"endpoint": asker.endpoint.url, **request}
    kept = asker.cache.find(key)
    if kept is not None:
        try:
            name = name_in(kept, asker.longest)
        except Failure:
            pass  # it was kept when longer names were allowed, or by hand
        else:
            _record(asker, question, answer=kept, name=name, from_cache=True)
            return Answer(question.topic_id, name, was_sent=False)
    sent = False
    for attempt in range(asker.retries + 1):
        if asker.line.given_up is not None:
            reason = f"not asked: {asker.line.given_up}"
            return Answer(question.topic_id, None, reason, is_general=True, was_sent=sent)
        sent = True
        try:
            content, name = _call(asker, question, request)
        except Failure as failure:
            if failure.try_again and attempt < asker.retries:
                wait = FIRST_WAIT * 2**attempt if failure.wait is None else failure.wait
                time.sleep(min(wait, MOST_SECONDS_TO_WAIT))
                continue
            asker.line.note(failure)
            is_general = failure.is_general or failure.try_again
            return Answer(question.topic_id, None, failure.reason, is_general)
        asker.line.note(None)
        asker.cache.keep(key, content)
        return Answer(question.topic_id, name)
    raise AssertionError("the last attempt returns")


def _call(asker: Asker, question: Question, request: Mapping[str, Any]) -> tuple[str, str]:
    """Call once, write down what happened, and return the answer and the name in it."""
    begin = time.perf_counter()
    entry: dict[str, Any] = {}
    try:
        answer = post(asker.endpoint, request)
        entry["tokens"] = tokens_of(answer)
        content = asker.endpoint.without_key(content_of(answer))
        entry["answer"] = content
        name = name_in(content, asker.longest)
        entry["name"] = name
        return content, name
    except Failure as failure:
        entry["error"] = failure.reason
        raise
    finally:
        entry["seconds"] = round(time.perf_counter() - begin, 3)
        _record(asker, question, **entry)


def _record(asker: Asker, question: Question, **entry: Any) -> None:
    """Add a line to the record; what did not happen is null."""
    asker.audit.add(
        {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "endpoint": asker.endpoint.url,
            "model": asker.parameters.get("model"),
            "topic": question.topic_id,
            "prompt": list(question.messages),
            "answer": None,
            "name": None,
            "tokens": None,
            "seconds": 0.0,
            "from_cache": False,
            "error": None,
            **entry,
        }
    )
