"""Questions to a chat model by the ``openai`` client, and a record of the answers.

Redirects are not followed, because the key would travel with them. The key is sent in the header
of a request and stored nowhere.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from embedtopics._utils.checks import require
from embedtopics._utils.display import excerpt
from embedtopics._utils.progress import progress_bar
from embedtopics.errors import InputError, Remedy

KEY_VARIABLE = "OPENAI_API_KEY"
PATH = "/chat/completions"
LOCAL = ("localhost", "127.0.0.1", "::1")

MIN_SECRET = 12
"""Characters from which a key is masked in what a server sends back. Shorter keys are placeholders
such as "EMPTY" or "ollama", which may be words of a name."""

MAX_RETRIES, CONCURRENCY = 3, 4
MAX_FAILURES = 5
"""Questions in a row without any answer after which the remaining ones are not asked."""

GENERAL = frozenset({401, 403, 404, 405, 410})
"""Statuses that every other question would get as well; so would redirects."""


class UnusableAnswer(Exception):
    """An answer without a usable name; the message gives the reason."""


@dataclass(frozen=True)
class Question:
    """The messages about one topic."""

    topic_id: int
    messages: tuple[dict[str, str], ...]
    n_documents: int


class CallError(UnusableAnswer):
    """A call without an answer; a general error would be that of every other call, too."""

    def __init__(self, reason: str, *, is_general: bool = False) -> None:
        super().__init__(reason)
        self.is_general = is_general


@dataclass(frozen=True)
class Endpoint:
    """The address of chat completions, and the key, which its repr leaves out."""

    url: str
    key: str | None = field(default=None, repr=False)

    @property
    def is_local(self) -> bool:
        """Whether the address is on this machine."""
        return urlsplit(self.url).hostname in LOCAL

    def without_key(self, text: str) -> str:
        """Mask the key in a text of the server."""
        key = self.key or ""
        return text.replace(key, "***") if len(key) >= MIN_SECRET else text


def open_endpoint(address: str, api_key: str | None = None) -> Endpoint:
    """Check an address and a key; nothing is sent."""
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
    return Endpoint(base if base.endswith(PATH) else base + PATH, key or None)


class AnswerRecord:
    """A file with a line of JSON for each question; usable answers are not asked for again."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        """Read the file, and make sure that it can be written before anything is asked."""
        self.path = None if path is None else Path(path).expanduser()
        self._answers: dict[str, str] = {}
        self._lock = Lock()
        if self.path is None:
            return
        with self.path.open("ab+") as stream:
            stream.seek(0)
            for line in stream:
                self._read(line)
            # A line that a crash cut short must not swallow the next one.
            if stream.tell() and not line.endswith(b"\n"):
                stream.write(b"\n")

    def find(self, endpoint: str, request: Any, prompt: Any) -> str | None:
        """Return the recorded answer to a question, or None."""
        return self._answers.get(json.dumps([endpoint, request, prompt], sort_keys=True))

    def add(self, entry: Mapping[str, Any]) -> None:
        """Append one line."""
        if self.path is None:
            return
        line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        with self._lock, self.path.open("ab") as stream:
            self._read(line)
            stream.write(line)

    def _read(self, line: bytes) -> None:
        # Lines that cannot be parsed were not written here, or were cut short.
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            entry = json.loads(line)
            if isinstance(entry["answer"], str) and entry["name"] is not None:
                key = [entry["endpoint"], entry["request"], entry["prompt"]]
                self._answers[json.dumps(key, sort_keys=True)] = entry["answer"]


class TopicAnswer(NamedTuple):
    """The name that a question got, or the reason why it got none."""

    topic_id: int
    name: str | None
    reason: str = ""
    is_general: bool = False
    was_sent: bool = True


@dataclass
class Chat:
    """The questions of one run to one model; `request` holds all fields but the messages."""

    endpoint: Endpoint
    request: Mapping[str, Any]
    record: AnswerRecord
    timeout: float
    parse_name: Callable[[str], str]
    _stopped: str = field(default="", init=False)
    _n_failures: int = field(default=0, init=False)

    def ask_all(
        self, questions: Sequence[Question], show_progress: bool | None
    ) -> list[TopicAnswer]:
        """Ask questions, a few at a time, and return the answers in their order."""
        executor = ThreadPoolExecutor(CONCURRENCY)
        answers = []
        try:
            with self._client() as client, progress_bar(
                total=len(questions), unit="topic", description="naming", show=show_progress
            ) as bar:  # fmt: skip
                for answer in executor.map(lambda question: self._ask(client, question), questions):
                    answers.append(answer)
                    bar.update(1)
        finally:  # after an interrupt too, no further call begins
            self._stopped = self._stopped or "interrupted"
            executor.shutdown(wait=False, cancel_futures=True)
        return answers

    def _client(self) -> Any:
        openai = require("openai", "naming by a language model", "llm")
        # A call to this machine, and its key, never go through a proxy of the environment.
        http = openai.DefaultHttpxClient(
            trust_env=not self.endpoint.is_local, follow_redirects=False, timeout=self.timeout
        )
        return openai.OpenAI(
            api_key=self.endpoint.key or "none",
            base_url=self.endpoint.url.removesuffix(PATH),
            timeout=self.timeout,
            max_retries=MAX_RETRIES,
            http_client=http,
        )

    def _ask(self, client: Any, question: Question) -> TopicAnswer:
        """Answer one question from the record, or ask the endpoint."""
        topic = question.topic_id
        recorded = self.record.find(self.endpoint.url, self.request, question.messages)
        if recorded is not None:
            with suppress(UnusableAnswer):  # somebody may have edited the record
                name = self.parse_name(recorded)
                self._write(question, answer=recorded, name=name, from_cache=True)
                return TopicAnswer(topic, name, was_sent=False)
        if self._stopped:
            reason = f"not asked: {self._stopped}"
            return TopicAnswer(topic, None, reason, is_general=True, was_sent=False)
        start = time.perf_counter()
        entry: dict[str, Any] = {}
        try:
            answer = self._send(client, question)
            entry["answer"] = self.endpoint.without_key(content_of(answer))
            entry["tokens"] = (answer.get("usage") or {}).get("total_tokens")
            entry["name"] = self.parse_name(entry["answer"])
            self._n_failures = 0
            return TopicAnswer(topic, entry["name"])
        except UnusableAnswer as error:
            entry["error"] = str(error)
            is_call = isinstance(error, CallError)
            self._n_failures += is_call
            is_general = isinstance(error, CallError) and error.is_general
            if is_general or self._n_failures >= MAX_FAILURES:
                self._stopped = self._stopped or str(error)
            return TopicAnswer(topic, None, str(error), is_call)
        finally:
            self._write(question, seconds=round(time.perf_counter() - start, 3), **entry)

    def _write(self, question: Question, **entry: Any) -> None:
        """Add a line to the record; fields without a value are null."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        fields = {
            "time": now,
            "endpoint": self.endpoint.url,
            "model": self.request["model"],
            "topic": question.topic_id,
            "request": dict(self.request),
            "prompt": list(question.messages),
            **dict.fromkeys(("answer", "name", "tokens", "error")),
            "seconds": 0.0,
            "from_cache": False,
        }
        self.record.add(fields | entry)

    def _send(self, client: Any, question: Question) -> Any:
        """Send a question and return the JSON of the answer."""
        import openai

        # The client would send an organization and a project of the environment to any endpoint.
        omitted = ["OpenAI-Organization", "OpenAI-Project"]
        omitted += [] if self.endpoint.key else ["Authorization"]
        headers: dict[str, Any] = dict.fromkeys(omitted, openai.Omit())
        try:
            # Raw, because a server may answer anything. Fields that the client does not know pass.
            response = client.chat.completions.with_raw_response.create(
                model=self.request["model"],
                messages=list(question.messages),
                extra_body=dict(self.request),
                extra_headers=headers,
            )
            answer = json.loads(response.content)
        except openai.APITimeoutError:
            raise CallError(f"no answer within {self.timeout:g} s") from None
        except openai.APIConnectionError as error:
            detail = self._excerpt(str(error.__cause__ or error))
            raise CallError(f"it could not be reached ({detail})", is_general=True) from None
        except openai.APIStatusError as error:
            code = error.status_code
            if error.code == "content_filter":
                raise UnusableAnswer("the model's content filter refused") from None
            reason = self._excerpt(error.message)
            if 300 <= code < 400:
                reason = f"status {code}: redirects are not followed; give the final address"
            elif code in (401, 403):  # the server's message often repeats a part of the key
                reason = f"status {code}: no access; check api_key= or {KEY_VARIABLE}"
            raise CallError(reason, is_general=code < 400 or code in GENERAL) from None
        except (ValueError, RecursionError):
            raise UnusableAnswer("the answer is not JSON") from None
        return answer

    def _excerpt(self, text: str) -> str:
        """Return the beginning of a server's message, without the key and control characters."""
        text = self.endpoint.without_key(text)
        return excerpt("".join(c if c.isprintable() else " " for c in text), 200)


def content_of(answer: Any) -> str:
    """Return the text of an answer."""
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        content = message.get("content")
        if isinstance(content, list):  # some servers answer in parts
            content = "".join(part.get("text") or "" for part in content)
    except (AttributeError, IndexError, KeyError, TypeError):
        raise UnusableAnswer("the answer holds no choice with a message") from None
    if choice.get("finish_reason") == "content_filter":
        raise UnusableAnswer("the model's content filter refused")
    if message.get("refusal"):
        raise UnusableAnswer("the model refused")
    if choice.get("finish_reason") == "length":
        raise UnusableAnswer("the answer was cut at max_tokens")
    if not isinstance(content, str) or not content.strip():
        raise UnusableAnswer("the answer is empty")
    return content
