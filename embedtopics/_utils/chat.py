"""Questions to a chat model over the protocol of OpenAI, and a record of the answers.

Redirects are not followed, because the key would travel with them. The key is sent in the header
of a request and stored nowhere.

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
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from embedtopics._utils.display import excerpt, progress_bar
from embedtopics.errors import InputError, Remedy

KEY_VARIABLE = "OPENAI_API_KEY"
PATH = "/chat/completions"
LOCAL = ("localhost", "127.0.0.1", "::1")

MAX_RETRIES, CONCURRENCY, FIRST_WAIT, LONGEST_WAIT, TIMEOUT = 3, 4, 0.5, 60.0, 120.0
"""Repetitions of a failed call, calls at a time, seconds before a repetition, and of a call."""

MAX_FAILURES = 5
"""Questions in a row without any answer after which the remaining ones are not asked."""

UNSUPPORTED = (400, 415, 422, 501)
"""Statuses with which servers refuse a format of answers that they do not support."""

_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)


class UnusableAnswer(Exception):
    """An answer without what was asked for, or none: then `status` is that of HTTP, or 0."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status


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
    parts = urlsplit(address.strip())
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        # The message does not repeat the address, which may hold a password.
        expected = "an address without user, password, query or fragment"
        remedy = Remedy("api_key", alternative=f"set {KEY_VARIABLE}")
        raise InputError("endpoint", expected, remedy=remedy)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        expected = "the address of a chat API, such as http://localhost:11434/v1"
        raise InputError("endpoint", expected, address)
    # The key of the environment never travels unencrypted to another machine.
    if api_key is None and (parts.scheme == "https" or parts.hostname in LOCAL):
        api_key = os.environ.get(KEY_VARIABLE)
    key = (api_key or "").strip()
    # Errors about a bad header would repeat the key.
    if not all(33 <= ord(c) < 127 for c in key):
        raise InputError("api_key", "visible ASCII characters", remedy="copy the key again")
    base = parts.geturl().rstrip("/")
    return base if base.endswith(PATH) else base + PATH, key


class AnswerRecord:
    """A file with a line of JSON for each question; recorded answers are not asked for again."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        """Read the file, and make sure that it can be written before anything is asked."""
        self.path = Path(os.devnull if path is None else path).expanduser()
        self._entries: dict[str, Mapping[str, Any]] = {}
        self._lock = Lock()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as stream:
            stream.seek(0)
            for line in stream:
                # Lines that cannot be parsed were not written here, or were cut short.
                with suppress(ValueError, KeyError, TypeError, RecursionError):
                    entry = json.loads(line)
                    if isinstance(entry["answer"], str):
                        self._entries[_key_of(entry)] = entry
            # A line that a crash cut short must not swallow the next one.
            if stream.tell() and not line.endswith(b"\n"):
                stream.write(b"\n")

    def find(self, entry: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the recorded entry of the same question, or None."""
        return self._entries.get(_key_of(entry))

    def add(self, entry: Mapping[str, Any]) -> None:
        """Append one line."""
        line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        with self._lock, self.path.open("ab") as stream:
            stream.write(line)


def _key_of(entry: Mapping[str, Any]) -> str:
    """Return what makes two questions the same."""
    fields = [entry["endpoint"], entry["request"], entry["prompt"], entry.get("text")]
    return json.dumps(fields, sort_keys=True)


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


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
        self.request = {field: one for field, one in request.items() if one is not None}
        self.timeout = float(self.request.pop("timeout", TIMEOUT))
        self.parse, self.value, self.format = parse, value, format
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        # A call to this machine, and its key, never go through a proxy of the environment.
        proxies = [ProxyHandler({})] if urlsplit(self.url).hostname in LOCAL else []
        self._opener = build_opener(_NoRedirects, *proxies)

    def ask_all(
        self, questions: Sequence[Question], record: AnswerRecord, what: str, show: bool | None
    ) -> list[ChatAnswer]:
        """Ask questions, a few at a time, and return the answers in their order.

        `stopped` gives the reason if the endpoint answered no question, or none any more.
        """
        self.stopped, self._n_failures = "", 0
        executor = ThreadPoolExecutor(CONCURRENCY)
        bar = progress_bar(total=len(questions), unit="answer", description=what, show=show)
        answers = []
        try:
            with bar:
                for answer in executor.map(lambda one: self._ask(one, record), questions):
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
        if recorded := record.find(entry):
            value, reason = recorded.get(self.value), recorded.get("error") or ""
            return ChatAnswer(value, recorded["answer"], reason, was_sent=False)
        if self.stopped:
            reason = f"not asked: {self.stopped}"
            return ChatAnswer(None, None, reason, is_call_error=True, was_sent=False)
        start = time.perf_counter()
        try:
            answer = self._send_in_format(question)
            self._n_failures = 0
            entry["answer"] = ""  # of a model that refused, for example
            entry["answer"] = content_of(answer)
            entry["tokens"] = (answer.get("usage") or {}).get("total_tokens")
            entry[self.value] = self.parse(entry["answer"])
            return ChatAnswer(entry[self.value], entry["answer"])
        except UnusableAnswer as error:
            entry["error"] = str(error)
            is_call = error.status is not None
            self._n_failures += is_call
            if self._n_failures >= MAX_FAILURES:
                self.stopped = self.stopped or str(error)
            return ChatAnswer(None, entry["answer"], str(error), is_call)
        finally:
            entry["seconds"] = round(time.perf_counter() - start, 3)
            record.add(entry)

    def _send_in_format(self, question: Question) -> Any:
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

    def _send(self, body: Mapping[str, Any]) -> Any:
        """Send a question, again after a failure that may pass; return the JSON of the answer."""
        call = Request(self.url, json.dumps(body).encode(), self._headers)
        for attempt in range(MAX_RETRIES + 1):
            wait: Any = FIRST_WAIT * 2**attempt
            try:
                with self._opener.open(call, timeout=self.timeout) as response:
                    return json.loads(response.read())
            except HTTPError as error:
                failure = UnusableAnswer(_describe(error), error.code)
                wait = error.headers.get("Retry-After", wait)
                if error.code != 429 and error.code < 500:
                    break
            except TimeoutError:
                failure = UnusableAnswer(f"no answer within {self.timeout:g} s", 0)
            except (OSError, HTTPException) as error:
                reason = "".join(filter(str.isprintable, excerpt(str(error), 200)))
                failure = UnusableAnswer(f"it could not be reached ({reason})", 0)
            except (ValueError, RecursionError):
                raise UnusableAnswer("the answer is not JSON") from None
            if attempt < MAX_RETRIES:
                with suppress(ValueError):  # a date
                    time.sleep(min(float(wait), LONGEST_WAIT))
        raise failure


def _describe(error: HTTPError) -> str:
    """Return the reason of a refused call."""
    if error.code in (401, 403):  # the server's message often repeats a part of the key
        return f"status {error.code}: no access; check api_key= or {KEY_VARIABLE}"
    if 300 <= error.code < 400:
        return f"status {error.code}: redirects are not followed; give the final address"
    message = error.read(1000).decode("utf-8", "replace")
    return "".join(filter(str.isprintable, excerpt(f"status {error.code}: {message}", 200)))


def content_of(answer: Any) -> str:
    """Return the text of an answer."""
    try:
        choice = answer["choices"][0]
        content, refusal = choice["message"].get("content"), choice["message"].get("refusal")
    except (AttributeError, IndexError, KeyError, TypeError):
        raise UnusableAnswer("the answer holds no choice with a message") from None
    if refusal or choice.get("finish_reason") == "content_filter":
        raise UnusableAnswer("the model or its content filter refused")
    if choice.get("finish_reason") == "length":
        raise UnusableAnswer("the answer was cut at max_tokens")
    if not isinstance(content, str) or not content.strip():
        raise UnusableAnswer("the answer is empty")
    return content


def without_reasoning(content: str) -> str:
    """Return an answer without the reasoning that some models write before it."""
    return _THOUGHT.sub("", content).strip()


def mark_of(data: str) -> str:
    """Return a mark that no text in the data can predict."""
    return blake2b(data.encode("utf-8", "replace"), digest_size=6).hexdigest()


def fenced(kind: str, mark: str, lines: str) -> str:
    """Return quoted data between its marks."""
    return f"<<{kind} {mark}\n{lines}\n{kind} {mark}>>"
