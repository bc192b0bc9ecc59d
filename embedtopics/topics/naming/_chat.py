"""Questions to a chat endpoint: several at a time, tried again, recorded, and not asked twice.

No redirect is followed (the key would travel with it), and an answer is read up to a length and a
time. The key is in the header of a request and nowhere else. The client is httpx and not OpenAI's,
which would hide the single attempts that the record lists.
"""

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

from embedtopics._utils.display import excerpt
from embedtopics._utils.progress import progress_bar
from embedtopics.errors import InputError, MissingExtraError, Remedy
from embedtopics.topics.naming._questions import Question, Unusable

KEY_VARIABLE = "OPENAI_API_KEY"
PATH = "/chat/completions"
LOCAL = ("localhost", "127.0.0.1", "::1")

MOST_BYTES = 1_000_000
"""Of an answer; a name takes a thousandth of it."""

LEAST_SECRET = 12
"""Characters of a key that is crossed out where a server repeats it; shorter ones are placeholders,
such as "EMPTY" or "ollama", which may well be words of a name."""

TRY_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
HOPELESS = frozenset({301, 302, 303, 307, 308, 401, 403, 404, 405, 410})
"""Statuses that every other call would get as well."""

RETRIES, CONCURRENCY = 3, 4
FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0
"""Seconds before a call is tried again, doubled each time, where the server names none."""

UNANSWERED_IN_A_ROW = 5
"""Questions without any answer after which the others are not asked."""


class CallFailed(Unusable):
    """A call without an answer; a general failure is that of every other call, too."""

    def __init__(
        self, reason: str, *, is_general: bool = False, try_again: bool = False, wait: Any = None
    ) -> None:
        super().__init__(reason)
        self.is_general, self.try_again, self.wait = is_general, try_again, wait


@dataclass(frozen=True)
class Endpoint:
    """Address of chat completions (without credentials), and the key, which is never shown."""

    url: str
    key: str | None = field(default=None, repr=False)

    @property
    def is_local(self) -> bool:
        return urlsplit(self.url).hostname in LOCAL

    def without_key(self, text: str) -> str:
        """Return a text in which the key is crossed out."""
        key = self.key or ""
        return text.replace(key, "***") if len(key) >= LEAST_SECRET else text


def open_endpoint(address: Any, api_key: Any = None) -> Endpoint:
    """Check an address and a key; nothing is sent."""
    expected = "the address of a chat API, such as http://localhost:11434/v1"
    try:
        parts = urlsplit(address.strip())
        port = parts.port
    except (ValueError, AttributeError):
        raise InputError("endpoint", expected, found="one that cannot be read") from None
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        # Not repeated in the message: it may hold a password.
        raise InputError(
            "endpoint", f"{expected}, without user, password, query or fragment",
            remedy=Remedy("api_key", alternative=f"set {KEY_VARIABLE}"),
        )  # fmt: skip
    is_plain = address.isascii() and address.isprintable() and " " not in address.strip()
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
        raise InputError("endpoint", expected, address)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    base = f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
    if api_key is None and (parts.scheme == "https" or parts.hostname in LOCAL):
        api_key = os.environ.get(KEY_VARIABLE)
    key = api_key.strip() if isinstance(api_key, str) else api_key
    if key is not None and not (isinstance(key, str) and all(33 <= ord(c) < 127 for c in key)):
        raise InputError("api_key", "visible ASCII characters", remedy="copy it again")
    return Endpoint(base if base.endswith(PATH) else base + PATH, key or None)


class Record:
    """A file with a line of JSON for every call; what was answered there is not asked again."""

    def __init__(self, path: Any) -> None:
        """Make sure that the file can be written before anything is asked."""
        self.path: Path | None = None
        self.answers: dict[str, str] = {}
        self._lock = Lock()
        if path is None:
            return
        if not isinstance(path, (str, os.PathLike)):
            raise InputError("record", "a file, or None for no record", path)
        self.path = Path(path).expanduser()
        try:
            with self.path.open("ab+") as stream:
                stream.seek(0)
                for line in stream:
                    self._learn(line)
                # A line that was broken off by a crash must not swallow the next.
                if stream.tell() and not line.endswith(b"\n"):
                    stream.write(b"\n")
        except OSError as error:
            raise InputError(
                f"cannot write the record {self.path}: {error.strerror or error}",
                remedy=Remedy("record", alternative="change its permissions"),
            ) from error

    def _learn(self, line: bytes) -> None:
        try:
            entry = json.loads(line)
            if isinstance(entry["answer"], str) and entry["name"] is not None:
                asked = entry["endpoint"], entry["request"], entry["prompt"]
                self.answers[json.dumps(asked, sort_keys=True)] = entry["answer"]
        except (ValueError, KeyError, TypeError, RecursionError):
            pass  # not a line that was written here

    def add(self, entry: Mapping[str, Any]) -> None:
        """Append a line in one piece."""
        if self.path is None:
            return
        line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        try:
            with self._lock, self.path.open("ab", buffering=0) as stream:
                self._learn(line)
                if stream.write(line) < len(line):
                    raise OSError("the disk is full")
        except OSError as error:
            raise InputError(
                f"could not write the record {self.path}: {error.strerror or error}",
                remedy=Remedy("record", alternative="free some space"),
            ) from error


class Answer(NamedTuple):
    """The name that a question got, or why there is none; general reasons lie with the endpoint."""

    topic_id: int
    name: str | None
    reason: str = ""
    is_general: bool = False
    was_sent: bool = True


@dataclass
class Chat:
    """Questions of one run to one model; `request` holds the fields beside the messages."""

    endpoint: Endpoint
    request: Mapping[str, Any]
    record: Record
    timeout: float
    name_in: Callable[[str], str]
    _given_up: str | None = field(default=None, init=False)
    _unanswered: int = field(default=0, init=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def ask_all(self, questions: Sequence[Question], show_progress: bool | None) -> list[Answer]:
        """Ask questions and return the answers in their order."""
        try:
            import httpx
        except ImportError as error:
            raise MissingExtraError(
                "names from a language model need httpx, which is not installed; run pip install "
                "'embedtopics[llm]'"
            ) from error
        executor = ThreadPoolExecutor(CONCURRENCY)
        answers = []
        # To other machines through the proxies of the environment; what is for this one, the key
        # included, leaves it through none.
        client = httpx.Client(timeout=self.timeout, trust_env=not self.endpoint.is_local)
        try:
            with client, progress_bar(
                total=len(questions), unit="topic", description="naming", show=show_progress
            ) as bar:  # fmt: skip
                for answer in executor.map(lambda one: self._ask(client, one), questions):
                    answers.append(answer)
                    bar.update(1)
        except BaseException:  # an interrupt too: no further call is begun
            self._given_up = self._given_up or "interrupted"
            raise
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
        return answers

    def _ask(self, client: Any, question: Question) -> Answer:
        """Ask one question: of the record, or of the endpoint, as often as it takes."""
        topic = question.topic_id
        asked = self.endpoint.url, self.request, question.messages
        kept = self.record.answers.get(json.dumps(asked, sort_keys=True))
        if kept is not None:
            with suppress(Unusable):  # somebody may have edited the record
                name = self.name_in(kept)
                self._write(question, answer=kept, name=name, from_cache=True)
                return Answer(topic, name, was_sent=False)
        for attempt in range(RETRIES + 1):
            if self._given_up is not None:
                reason = f"not asked: {self._given_up}"
                return Answer(topic, None, reason, is_general=True, was_sent=attempt > 0)
            try:
                name = self._call(client, question)
            except CallFailed as failure:
                if failure.try_again and attempt < RETRIES:
                    wait = FIRST_WAIT * 2**attempt if failure.wait is None else failure.wait
                    time.sleep(min(wait, LONGEST_WAIT))
                    continue
                with self._lock:
                    self._unanswered += failure.try_again
                    if failure.is_general or self._unanswered >= UNANSWERED_IN_A_ROW:
                        self._given_up = self._given_up or str(failure)
                return Answer(topic, None, str(failure), failure.is_general or failure.try_again)
            except Unusable as failure:
                return Answer(topic, None, str(failure))
            self._unanswered = 0
            return Answer(topic, name)
        raise AssertionError("the last attempt returns")

    def _call(self, client: Any, question: Question) -> str:
        """Call once, record it, and return the name in the answer."""
        begin = time.perf_counter()
        entry: dict[str, Any] = {}
        try:
            body = {**self.request, "messages": list(question.messages)}
            answer = self._post(client, body)
            usage = answer.get("usage")
            entry["tokens"] = usage.get("total_tokens") if isinstance(usage, dict) else None
            content = self.endpoint.without_key(content_of(answer))
            entry["answer"] = content
            name = entry["name"] = self.name_in(content)
            return name
        except Unusable as failure:
            entry["error"] = str(failure)
            raise
        finally:
            entry["seconds"] = round(time.perf_counter() - begin, 3)
            self._write(question, **entry)

    def _write(self, question: Question, **entry: Any) -> None:
        """Add a line to the record; what did not happen is null."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        absent = dict.fromkeys(("answer", "name", "tokens", "error"))
        self.record.add(
            {"time": now, "endpoint": self.endpoint.url, "model": self.request["model"],
             "topic": question.topic_id, "request": dict(self.request),
             "prompt": list(question.messages), **absent, "seconds": 0.0, "from_cache": False,
             **entry}
        )  # fmt: skip

    def _post(self, client: Any, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request, and return the JSON object of the answer."""
        import httpx

        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if self.endpoint.key:
            headers["Authorization"] = f"Bearer {self.endpoint.key}"
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        try:
            post = client.stream("POST", self.endpoint.url, content=data, headers=headers)
            with post as response:
                received = self._read(response)
                if response.status_code != httpx.codes.OK:
                    raise self._refused(response, received)
        except (httpx.TimeoutException, TimeoutError):
            raise CallFailed(f"no answer within {self.timeout:g} s", try_again=True) from None
        except (httpx.HTTPError, OSError) as error:
            is_closed = isinstance(error, (httpx.ConnectError, httpx.ProxyError))
            what = "it could not be reached" if is_closed else "the connection broke"
            said = excerpt(self.endpoint.without_key(str(error)), 200) or type(error).__name__
            raise CallFailed(f"{what} ({said})", is_general=is_closed, try_again=True) from None
        try:
            answer = json.loads(received.decode("utf-8"))
        except (ValueError, RecursionError):
            raise Unusable("the answer is no JSON") from None
        if not isinstance(answer, dict):
            raise Unusable("the answer is no JSON object")
        return answer

    def _read(self, response: Any) -> bytes:
        """Read an answer, however slowly it comes, up to a length and a time."""
        deadline = time.monotonic() + self.timeout
        received = bytearray()
        for chunk in response.iter_raw():
            received += chunk
            if len(received) > MOST_BYTES:
                raise Unusable(f"the answer is longer than {MOST_BYTES:,} bytes")
            if time.monotonic() > deadline:
                raise TimeoutError
        return bytes(received)

    def _refused(self, response: Any, received: bytes) -> Unusable:
        code = response.status_code
        if 300 <= code < 400:
            about = f"it answers with a redirect ({code}), which is not followed"
            return CallFailed(f"{about}; name the final address", is_general=True)
        if code in (401, 403):
            # What a server returns then often repeats a part of the key.
            about = f"status {code}: no access; check api_key= or {KEY_VARIABLE}"
            return CallFailed(about, is_general=True)
        message = self.endpoint.without_key(_message(received))
        said = "".join(c if c.isprintable() else " " for c in message)
        if code == 400 and "content_filter" in said:
            return Unusable("the model's content filter refused")
        return CallFailed(
            f"status {code}" + (f": {excerpt(said, 200)}" if said else ""),
            is_general=code in HOPELESS,
            try_again=code in TRY_AGAIN,
            wait=_seconds(response.headers.get("Retry-After")),
        )


def _message(received: bytes) -> str:
    text = received.decode("utf-8", "replace")
    try:
        content = json.loads(text)
        about = content.get("error", content)
        if isinstance(about, dict):
            return " ".join(str(about[k]) for k in ("code", "message") if about.get(k))
        return str(about)
    except (ValueError, AttributeError, RecursionError):
        return text


def _seconds(value: str | None) -> float | None:
    """Read a Retry-After header; a date, which no such endpoint sends, counts as none."""
    with suppress(ValueError):
        return max(0.0, float(value or ""))
    return None


def content_of(answer: dict[str, Any]) -> str:
    """Return the text of an answer."""
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(message, dict):
        raise Unusable("the answer holds no choice with a message")
    assert isinstance(first, dict)
    content = message.get("content")
    if isinstance(content, list):  # some servers answer in parts
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(text for text in texts if isinstance(text, str))
    reason = first.get("finish_reason")
    if reason == "content_filter":
        raise Unusable("the model's content filter refused")
    if message.get("refusal"):
        raise Unusable("the model refused")
    if reason == "length":
        raise Unusable("the answer was cut at max_tokens")
    if not isinstance(content, str) or not content.strip():
        raise Unusable("the answer is empty")
    return content
