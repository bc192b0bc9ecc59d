"""Questions to a chat model by the ``openai`` client, and a record of the answers.

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
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
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

MAX_RETRIES, CONCURRENCY = 3, 4
MAX_FAILURES = 5
"""Questions in a row without any answer after which the remaining ones are not asked."""

UNSUPPORTED = frozenset({400, 415, 422, 501})
"""Statuses with which servers refuse a format of answers that they do not support."""

_JOINERS = "\u200c\u200d"
_SIGN = re.compile(r"(<(?=\S)|\|(?=>)|\[(?=/?[A-Z_]+\]))")
"""Starts and ends of the markers by which chat formats separate speakers: ``<|user|>``, ``</s>``,
``<<SYS>>``, ``<start_of_turn>``, ``[INST]``."""

_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)


class UnusableAnswer(Exception):
    """An answer that does not hold what was asked for; the message gives the reason."""


@dataclass(frozen=True)
class Question:
    """Messages to a model; `fields` say in the record what they are about, and "prompt" how."""

    messages: tuple[dict[str, str], ...]
    fields: Mapping[str, Any]


class CallError(UnusableAnswer):
    """A call without an answer; `status` is that of HTTP, 0 if there was no response."""

    def __init__(self, reason: str, status: int = 0) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class Endpoint:
    """The address of chat completions, and the key, which its repr leaves out."""

    url: str
    key: str | None = field(default=None, repr=False)

    @property
    def is_local(self) -> bool:
        """Whether the address is on this machine."""
        return urlsplit(self.url).hostname in LOCAL


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


class RecordedAnswer(NamedTuple):
    """An answer, and the reason if it was unusable."""

    content: str
    error: str | None


class AnswerRecord:
    """A file with a line of JSON for each question; recorded answers are not asked for again."""

    def __init__(self, path: str | os.PathLike[str] | None, *, retry_unusable: bool = True) -> None:
        """Read the file, and make sure that it can be written before anything is asked."""
        self.path = None if path is None else Path(path).expanduser()
        self.retry_unusable = retry_unusable
        self._answers: dict[str, RecordedAnswer] = {}
        self._lock = Lock()
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as stream:
            stream.seek(0)
            for line in stream:
                self._read(line)
            # A line that a crash cut short must not swallow the next one.
            if stream.tell() and not line.endswith(b"\n"):
                stream.write(b"\n")

    def find(self, entry: Mapping[str, Any]) -> RecordedAnswer | None:
        """Return the recorded answer to the question of an entry, or None."""
        return self._answers.get(_key_of(entry))

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
            answer, error = entry["answer"], entry["error"]
            if isinstance(answer, str) and not (error and self.retry_unusable):
                self._answers[_key_of(entry)] = RecordedAnswer(answer, error)


def _key_of(entry: Mapping[str, Any]) -> str:
    """Return what makes two questions the same."""
    fields = [entry["endpoint"], entry["request"], entry["prompt"], entry.get("text")]
    return json.dumps(fields, sort_keys=True)


class ChatAnswer(NamedTuple):
    """What was read from an answer, or the reason why there is nothing."""

    value: str | None
    content: str | None = None
    reason: str = ""
    is_call_error: bool = False
    was_sent: bool = True


@dataclass
class Chat:
    """The questions of one run to one model; `request` holds all fields but the messages.

    `value` is the field of the record for what `parse` reads from an answer. `formats` are values
    of ``response_format``, best first; a server that refuses one gets the next.
    """

    endpoint: Endpoint
    request: Mapping[str, Any]
    record: AnswerRecord
    timeout: float
    parse: Callable[[str], str]
    value: str
    formats: Sequence[Mapping[str, Any] | None] = (None,)
    stopped: str = field(default="", init=False)
    _n_failures: int = field(default=0, init=False)
    _format: int = field(default=0, init=False)

    def ask_all(
        self, questions: Sequence[Question], unit: str, description: str, show: bool | None
    ) -> list[ChatAnswer]:
        """Ask questions, a few at a time, and return the answers in their order."""
        executor = ThreadPoolExecutor(CONCURRENCY)
        answers = []
        try:
            with self._client() as client, progress_bar(
                total=len(questions), unit=unit, description=description, show=show
            ) as bar:  # fmt: skip
                for answer in executor.map(lambda question: self._ask(client, question), questions):
                    answers.append(answer)
                    bar.update(1)
        except BaseException:  # after an interrupt too, no further call begins
            self.stopped = self.stopped or "interrupted"
            raise
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
        if all(answer.is_call_error for answer in answers):
            self.stopped = self.stopped or next((answer.reason for answer in answers), "")
        return answers

    def _client(self) -> Any:
        openai = require("openai", "a language model", "llm")
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

    def _ask(self, client: Any, question: Question) -> ChatAnswer:
        """Answer one question from the record, or ask the endpoint."""
        entry: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "endpoint": self.endpoint.url,
            "model": self.request["model"],
            "request": dict(self.request),
            **question.fields,
            **dict.fromkeys(("answer", self.value, "tokens", "error")),
        }
        recorded = self.record.find(entry)
        if recorded is not None:
            try:
                return ChatAnswer(self.parse(recorded.content), recorded.content, was_sent=False)
            except UnusableAnswer as error:  # somebody may have edited the record
                if not self.record.retry_unusable:
                    reason = recorded.error or str(error)
                    return ChatAnswer(None, recorded.content, reason, was_sent=False)
        if self.stopped:
            reason = f"not asked: {self.stopped}"
            return ChatAnswer(None, None, reason, is_call_error=True, was_sent=False)
        start = time.perf_counter()
        try:
            answer = self._send_in_format(client, question)
            self._n_failures = 0
            entry["answer"] = ""  # of a model that refused, for example
            entry["answer"] = content_of(answer)
            entry["tokens"] = (answer.get("usage") or {}).get("total_tokens")
            entry[self.value] = self.parse(entry["answer"])
            return ChatAnswer(entry[self.value], entry["answer"])
        except UnusableAnswer as error:
            entry["error"] = str(error)
            is_call = isinstance(error, CallError)
            self._n_failures += is_call
            if self._n_failures >= MAX_FAILURES:
                self.stopped = self.stopped or str(error)
            return ChatAnswer(None, entry["answer"], str(error), is_call)
        finally:
            entry["seconds"] = round(time.perf_counter() - start, 3)
            self.record.add(entry)

    def _send_in_format(self, client: Any, question: Question) -> Any:
        """Send a question in the best format that the server supports."""
        for place in range(self._format, len(self.formats)):
            try:
                answer = self._send(client, question, self.formats[place])
                self._format = place
                break
            except CallError as error:
                # llama-cpp-python has an error of its own, 500, that names the field.
                is_refusal = error.status in UNSUPPORTED or "response_format" in str(error)
                if not is_refusal or place + 1 == len(self.formats):
                    raise
        return answer

    def _send(self, client: Any, question: Question, format: Mapping[str, Any] | None) -> Any:
        """Send a question and return the JSON of the answer."""
        import openai

        form = {} if format is None else {"response_format": format}

        # The client would send an organization and a project of the environment to any endpoint.
        omitted = ["OpenAI-Organization", "OpenAI-Project"]
        omitted += [] if self.endpoint.key else ["Authorization"]
        headers: dict[str, Any] = dict.fromkeys(omitted, openai.Omit())
        try:
            # Raw, because a server may answer anything. Fields that the client does not know pass.
            response = client.chat.completions.with_raw_response.create(
                model=self.request["model"],
                messages=list(question.messages),
                extra_body={**self.request, **form},
                extra_headers=headers,
            )
            return json.loads(response.content)
        except openai.APITimeoutError:
            raise CallError(f"no answer within {self.timeout:g} s") from None
        except openai.APIConnectionError as error:
            detail = _excerpt(str(error.__cause__ or error))
            raise CallError(f"it could not be reached ({detail})") from None
        except openai.APIStatusError as error:
            code = error.status_code
            if error.code == "content_filter":
                raise UnusableAnswer("the model's content filter refused") from None
            reason = _excerpt(error.message)
            if 300 <= code < 400:
                reason = f"status {code}: redirects are not followed; give the final address"
            elif code in (401, 403):  # the server's message often repeats a part of the key
                reason = f"status {code}: no access; check api_key= or {KEY_VARIABLE}"
            raise CallError(reason, code) from None
        except (ValueError, RecursionError):
            raise UnusableAnswer("the answer is not JSON") from None


def _excerpt(text: str) -> str:
    """Return the beginning of a server's message, without control characters."""
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


def without_reasoning(content: str) -> str:
    """Return an answer without the reasoning that some models write before it."""
    return _THOUGHT.sub("", content).strip()


def mark_of(data: str) -> str:
    """Return a mark that no text in the data can predict."""
    return blake2b(data.encode("utf-8", "replace"), digest_size=6).hexdigest()


def fenced(kind: str, mark: str, lines: str) -> str:
    """Return quoted data between its marks."""
    return f"<<{kind} {mark}\n{lines}\n{kind} {mark}>>"


def harmless(text: str) -> str:
    """Remove invisible characters, and break the markers of chat formats."""
    return _SIGN.sub(r"\1 ", "".join(c for c in text if not is_hidden(c)))


def is_hidden(character: str) -> bool:
    """Return whether a character is a control character."""
    return character not in _JOINERS and unicodedata.category(character)[0] == "C"
