"""Questions to a chat model over the protocol of OpenAI.

Redirects are not followed, because the key would travel with them. The key is sent in the header
of a request and stored nowhere: it is removed from whatever a server sends back.

A corpus may hold texts whose authors know that a model will read them (prompt injection). So
prompts quote texts between marks that hold a hash of the data, which no text can predict. They are
JSON, so that no text can end its line. Invisible characters, and the markers by which chat formats
separate speakers, are removed.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from http.client import HTTPException
from typing import Annotated, Any, NamedTuple
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request

from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from embedtopics._utils.answer_record import AnswerRecord
from embedtopics._utils.bounded_http import (
    MAX_BYTES,
    BoundedResponse,
    ResponseTooLong,
    bounded_opener,
    post,
)
from embedtopics._utils.checks import is_number
from embedtopics._utils.display import excerpt, progress_bar
from embedtopics._utils.folders import parse_json
from embedtopics._utils.records import ForeignRecord
from embedtopics._utils.redaction import redact_all, redactor
from embedtopics.errors import InputError, Remedy

KEY_VARIABLE = "OPENAI_API_KEY"
PATH = "/chat/completions"
LOCAL = ("localhost", "127.0.0.1", "::1")

# Repetitions of a failed call, calls at a time, seconds before a repetition, and of a whole call.
MAX_RETRIES = 3
CONCURRENCY = 4
FIRST_WAIT = 0.5
LONGEST_WAIT = 60.0
TIMEOUT = 120.0
LONGEST_TIMEOUT = 86_400.0

MAX_FAILURES = 5
"""Questions in a row without any answer after which the remaining ones are not asked."""

UNSUPPORTED = (400, 415, 422, 501)
"""Statuses with which servers refuse a format of answers that they do not support."""

NO_CONNECTION = 0
"""Status of an answer that did not come, or was none of the protocol."""

LONGEST_REASON = 200
"""Characters of the reason why there is no answer."""

_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)


class UnusableAnswer(Exception):
    """An answer without what was asked for, or none: then `status` is that of HTTP, or 0."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status


def _or_none(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Read a field that the answer can do without; None if it has another type."""
    try:
        return validate(value)
    except ValidationError:
        return None


OptionalText = Annotated[str | None, WrapValidator(_or_none)]
OptionalCount = Annotated[Annotated[int, Field(ge=0, lt=2**53)] | None, WrapValidator(_or_none)]


class ChatMessage(ForeignRecord):
    """The message of a choice."""

    content: OptionalText = None
    refusal: OptionalText = None


class ChatChoice(ForeignRecord):
    """One of the answers of a model."""

    message: ChatMessage
    finish_reason: OptionalText = None


class ChatUsage(ForeignRecord):
    """The tokens that an answer took."""

    total_tokens: OptionalCount = None


class ChatCompletion(ForeignRecord):
    """The body of a response; only the first choice is read."""

    choices: Annotated[list[Any], Field(min_length=1)]
    usage: Annotated[ChatUsage | None, WrapValidator(_or_none)] = None


class Question(NamedTuple):
    """Messages to a model; `fields` say in the record what they are about, and "prompt" how."""

    messages: tuple[dict[str, str], ...]
    fields: Mapping[str, Any]


class ChatAnswer(NamedTuple):
    """What was read from an answer, or the reason why there is nothing."""

    value: str | None
    content: str | None = None
    reason: str = ""
    is_call_error: bool = False
    was_sent: bool = True


def check_endpoint(address: str, api_key: str | None) -> tuple[str, str]:
    """Return the address of chat completions and the key, "" for none; nothing is sent."""
    expected = "the address of a chat API, such as http://localhost:11434/v1"
    if not isinstance(address, str):
        raise InputError("endpoint", expected, address)
    try:
        parts = urlsplit(address.strip())
        has_port = parts.port != 0  # invalid ones raise a ValueError, as invalid names do
        (parts.hostname or "").encode("idna")
    except ValueError:
        raise InputError("endpoint", expected, address) from None

    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        # The message does not repeat the address, which may hold a password.
        expected = "an address without user, password, query or fragment"
        remedy = Remedy("api_key", alternative=f"set {KEY_VARIABLE}")
        raise InputError("endpoint", expected, remedy=remedy)
    base = parts.geturl().rstrip("/")
    if parts.scheme not in ("http", "https") or not parts.hostname or not has_port:
        raise InputError("endpoint", expected, address)
    if not _is_visible_ascii(base):
        raise InputError("endpoint", "an address in visible ASCII characters", address)

    # The key of the environment never travels unencrypted to another machine.
    if api_key is None and (parts.scheme == "https" or parts.hostname in LOCAL):
        api_key = os.environ.get(KEY_VARIABLE)
    # Errors about a bad header would repeat the key.
    if api_key is not None and not isinstance(api_key, str):
        raise InputError("api_key", "text or None")
    key = (api_key or "").strip()
    if not _is_visible_ascii(key):
        raise InputError("api_key", "visible ASCII characters", remedy="copy the key again")
    return base if base.endswith(PATH) else base + PATH, key


def _is_visible_ascii(text: str) -> bool:
    return all(33 <= ord(character) < 127 for character in text)


def request_fields(
    model: str, defaults: Mapping[str, Any], request: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the fields of a request: defaults, those of the caller, and the timeout in seconds.

    A value of None leaves a field out.
    """
    if not isinstance(model, str) or not model:
        raise InputError("model", "the name of a model", model)
    if request is not None and not isinstance(request, Mapping):
        raise InputError("request", "a mapping of the fields of a request", request)
    merged = {"model": model, "timeout": TIMEOUT, **defaults, **(request or {})}
    fields = {name: value for name, value in merged.items() if value is not None}

    timeout = fields.get("timeout", TIMEOUT)
    if not is_number(timeout) or not 0 < timeout <= LONGEST_TIMEOUT:
        expected = f"a mapping whose timeout is a number of seconds, up to {LONGEST_TIMEOUT:.0f}"
        raise InputError("request", expected, timeout)
    try:
        # As they are sent and recorded: a tuple is a list, and the names are strings.
        return {**json.loads(json.dumps(fields, allow_nan=False)), "timeout": float(timeout)}
    except (TypeError, ValueError, RecursionError) as error:
        problem = excerpt(str(error), 100)
        raise InputError("request", "a mapping whose values are JSON", found=problem) from None


class Chat:
    """A model at an endpoint; `request` holds all fields of a request but the messages.

    `value` is the field of the record for what `parse` reads from an answer. `format` is the value
    of ``response_format``; a server that refuses it is asked without.
    """

    def __init__(
        self,
        endpoint: str,
        api_key: str | None,
        request: Mapping[str, Any],
        parse: Callable[[str], str],
        value: str,
        format: Mapping[str, Any] | None = None,
    ) -> None:
        self.url, key = check_endpoint(endpoint, api_key)
        self.request = dict(request)
        self.timeout = float(self.request.pop("timeout", TIMEOUT))
        self.parse = parse
        self.value = value
        self.format = format
        self._redact = redactor(key)
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        # A call to this machine, and its key, never go through a proxy of the environment.
        is_local = urlsplit(self.url).hostname in LOCAL
        self._opener = bounded_opener(use_proxies=not is_local)

    def ask_all(
        self,
        questions: Sequence[Question],
        record: AnswerRecord,
        what: str,
        show: bool | None,
        *,
        retry_unusable: bool = False,
    ) -> list[ChatAnswer]:
        """Ask questions, a few at a time, and return the answers in their order.

        Recorded answers are not asked for again; with `retry_unusable`, only those of use.
        `stopped` gives the reason if the endpoint answered no question, or none any more.
        """
        self.stopped = ""
        self._n_failures = 0
        self._retries_unusable = retry_unusable

        executor = ThreadPoolExecutor(CONCURRENCY)
        bar = progress_bar(total=len(questions), unit="answer", description=what, show=show)
        answers = []

        try:
            with bar:
                for answer in executor.map(lambda question: self._ask(question, record), questions):
                    answers.append(answer)
                    bar.update(1)
        finally:  # after an interrupt too, no further call begins
            executor.shutdown(wait=False, cancel_futures=True)

        if answers and all(answer.is_call_error for answer in answers):
            self.stopped = self.stopped or answers[0].reason
        return answers

    def _ask(self, question: Question, record: AnswerRecord) -> ChatAnswer:
        """Answer one question from the record, or ask the endpoint."""
        entry: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "endpoint": self.url,
            "model": self.request["model"],
            "request": self.request,
            **question.fields,
            **dict.fromkeys(("answer", self.value, "tokens", "error")),
        }
        entry = redact_all(entry, self._redact)

        recorded = record.find(entry)
        if recorded is not None and (recorded.value is not None or not self._retries_unusable):
            reason = recorded.error or ""
            return ChatAnswer(recorded.value, recorded.answer, reason, was_sent=False)

        if self.stopped:
            reason = f"not asked: {self.stopped}"
            return ChatAnswer(None, None, reason, is_call_error=True, was_sent=False)

        start = time.perf_counter()
        try:
            return self._ask_endpoint(question, entry)
        finally:
            entry["seconds"] = round(time.perf_counter() - start, 3)
            record.add(entry)

    def _ask_endpoint(self, question: Question, entry: dict[str, Any]) -> ChatAnswer:
        """Ask the endpoint, and write what it answers into the entry of the record."""
        try:
            completion = self._send_in_format(question)
            self._n_failures = 0

            entry["answer"] = ""  # of a model that refused, for example
            if completion.usage is not None:
                entry["tokens"] = completion.usage.total_tokens

            content = content_of(completion)
            entry["answer"] = self._redact(content)
            value = self.parse(content)
            if self._redact(value) != value:
                raise UnusableAnswer("the answer repeats the API key")
            entry[self.value] = value
            return ChatAnswer(value, entry["answer"])
        except UnusableAnswer as error:
            reason = self._shown(str(error))
            entry["error"] = reason

            is_call_error = error.status is not None
            if is_call_error:
                entry["answer"] = None
                self._n_failures += 1
            if self._n_failures >= MAX_FAILURES:
                self.stopped = self.stopped or reason

            return ChatAnswer(None, entry["answer"], reason, is_call_error)

    def _send_in_format(self, question: Question) -> ChatCompletion:
        """Send a question, without the format of answers if the server refuses it."""
        body = {**self.request, "messages": question.messages}
        if form := self.format:
            try:
                return self._send({"response_format": form, **body})
            except UnusableAnswer as error:
                # llama-cpp-python has an error of its own, 500, that names the field.
                if error.status not in UNSUPPORTED and "response_format" not in str(error):
                    raise
            self.format = None
        return self._send(body)

    def _send(self, body: Mapping[str, Any]) -> ChatCompletion:
        """Send a question, again after a failure that may pass."""
        call = Request(self.url, json.dumps(body).encode(), self._headers)
        for attempt in range(MAX_RETRIES + 1):
            wait: Any = FIRST_WAIT * 2**attempt
            try:
                response = post(self._opener, call, self.timeout)
                if 200 <= response.status < 300:
                    return _completion_of(response.body)

                failure = UnusableAnswer(self._describe(response), response.status)
                if response.status != 429 and response.status < 500:
                    break
                wait = response.retry_after or wait
            except ResponseTooLong:
                reason = f"the answer is longer than {MAX_BYTES:,} bytes"
                raise UnusableAnswer(reason, NO_CONNECTION) from None
            except (OSError, HTTPException) as error:
                failure = UnusableAnswer(self._describe_failure(error), NO_CONNECTION)

            if attempt < MAX_RETRIES:
                _sleep(wait)
        raise failure

    def _describe(self, response: BoundedResponse) -> str:
        """Return the reason of a refused call."""
        status = response.status
        if status in (401, 403):
            return f"status {status}: no access; check api_key= or {KEY_VARIABLE}"
        if 300 <= status < 400:
            return f"status {status}: redirects are not followed; give the final address"
        message = response.body.decode("utf-8", "replace")
        with suppress(ValueError):  # characters that JSON escapes would hide the key
            message = json.dumps(parse_json(message), ensure_ascii=False)
        return self._shown(f"status {status}: {message}")

    def _describe_failure(self, error: Exception) -> str:
        """Return the reason of a call without any response."""
        cause = error.reason if isinstance(error, URLError) else error
        if isinstance(cause, TimeoutError):
            return f"no answer within {self.timeout:g} s"
        return f"it could not be reached ({self._shown(str(error))})"

    def _shown(self, message: str) -> str:
        """Return a message of a server on one line, without the key and control characters.

        The key is removed once more from what is left, and before the message is cut.
        """
        visible = "".join(filter(str.isprintable, " ".join(self._redact(message).split())))
        return excerpt(self._redact(visible), LONGEST_REASON)


def _completion_of(body: bytes) -> ChatCompletion:
    """Read a response; what is none of the protocol is no answer, and can be asked for again."""
    try:
        content = parse_json(body)
    except ValueError:
        raise UnusableAnswer("the answer is not JSON", NO_CONNECTION) from None
    try:
        completion = ChatCompletion.model_validate(content)
        ChatChoice.model_validate(completion.choices[0])
        return completion
    except ValidationError:
        reason = "the answer holds no choice with a message"
        raise UnusableAnswer(reason, NO_CONNECTION) from None


def content_of(completion: ChatCompletion) -> str:
    """Return the text of an answer."""
    choice = ChatChoice.model_validate(completion.choices[0])
    if choice.message.refusal or choice.finish_reason == "content_filter":
        raise UnusableAnswer("the model or its content filter refused")
    if choice.finish_reason == "length":
        raise UnusableAnswer("the answer was cut at max_tokens")
    if not choice.message.content or not choice.message.content.strip():
        raise UnusableAnswer("the answer is empty")
    # JSON may hold half characters, which no file can.
    return choice.message.content.encode("utf-8", "replace").decode()


def _sleep(seconds: Any) -> None:
    """Wait as long as a server asks for, within bounds; it may give a date instead."""
    with suppress(ValueError, OverflowError):
        time.sleep(min(float(seconds), LONGEST_WAIT))


def without_reasoning(content: str) -> str:
    """Return an answer without the reasoning that some models write before it."""
    return _THOUGHT.sub("", content).strip()


def mark_of(data: str) -> str:
    """Return a mark that no text in the data can predict."""
    return blake2b(data.encode("utf-8", "replace"), digest_size=6).hexdigest()


def fenced(kind: str, mark: str, lines: str) -> str:
    """Return quoted data between its marks."""
    return f"<<{kind} {mark}\n{lines}\n{kind} {mark}>>"
