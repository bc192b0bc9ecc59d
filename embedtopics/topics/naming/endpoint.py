"""One call of a chat endpoint, and what can go wrong with it.

Only ``http`` and ``https`` are spoken, no redirect is followed (the key would travel with it), and
what comes back is read up to a length and a time. The key is in the header of a request and
nowhere else: it is taken out of all that a server says.
"""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from embedtopics.errors import InputError

__all__ = ["KEY_VARIABLE", "Endpoint", "Failure", "open_endpoint", "post"]

KEY_VARIABLE = "OPENAI_API_KEY"
PATH = "/chat/completions"
LOCAL = ("localhost", "127.0.0.1", "::1")

MOST_BYTES = 1_000_000
"""Of an answer; a name takes a thousandth of it."""

LEAST_SECRET = 12
"""Characters of a key that is crossed out where a server repeats it; shorter ones are placeholders,
such as "EMPTY" or "ollama", which may well be words of a name."""

MOST_SHOWN = 200
"""Characters of what a server says that an error repeats."""

TRY_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
NO_USE = frozenset({301, 302, 303, 307, 308, 401, 403, 404, 405, 410})
"""Statuses after which every other call would end alike."""


class Failure(Exception):
    """A call without an answer.

    Parameters
    ----------
    reason : str
        Without the key.
    is_general : bool
        Whether every other call would fail alike.
    try_again : bool
        Whether the same call may succeed a little later.
    wait : float or None
        Seconds that the server asked to wait.
    """

    def __init__(
        self,
        reason: str,
        *,
        is_general: bool = False,
        try_again: bool = False,
        wait: float | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason, self.is_general = reason, is_general
        self.try_again, self.wait = try_again, wait


@dataclass(frozen=True)
class Endpoint:
    """Where a language model is asked.

    Parameters
    ----------
    url : str
        Of chat completions; it holds no credentials.
    key : str or None
        Sent as a bearer token, never shown.
    timeout : float
        Seconds without an answer, and seconds that an answer may take.
    """

    url: str
    key: str | None = field(default=None, repr=False)
    timeout: float = 30.0

    def without_key(self, text: str) -> str:
        """Return a text in which the key is crossed out."""
        is_secret = self.key is not None and len(self.key) >= LEAST_SECRET
        return text.replace(self.key, "***") if self.key and is_secret else text


def open_endpoint(address: Any, api_key: str | None, timeout: float) -> Endpoint:
    """Check an address and a key; nothing is sent.

    Parameters
    ----------
    address : str
        Such as ``http://localhost:11434/v1``; ``/chat/completions`` is added.
    api_key : str or None
        "" for none; None takes that of the environment, unless it would travel in the clear to
        another machine.
    timeout : float

    Raises
    ------
    InputError
        Where the address is none of http or https, or has credentials or a query in it; or the
        key is no visible ASCII.
    """
    expected = "endpoint must be the address of a chat API, such as http://localhost:11434/v1"
    if not isinstance(address, str):
        raise InputError(f"{expected}; got {type(address).__name__}")
    try:
        parts = urlsplit(address.strip())
        port = parts.port
    except ValueError:
        raise InputError(f"{expected}; its host or port cannot be read") from None
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        # Not repeated in the message: it may hold a password.
        raise InputError(
            f"{expected}; it must hold no user, password, query or fragment: give the key as "
            f"api_key= or in {KEY_VARIABLE}"
        )
    is_plain = address.isascii() and address.isprintable() and " " not in address.strip()
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
        raise InputError(f"{expected}; got {address!r}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    base = f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
    url = base if base.endswith(PATH) else base + PATH
    key = api_key
    if key is None and (parts.scheme == "https" or parts.hostname in LOCAL):
        key = os.environ.get(KEY_VARIABLE)
    return Endpoint(url, _checked_key(key), timeout)


def _checked_key(key: Any) -> str | None:
    """Return a key that a header can hold; its errors do not repeat it."""
    if key is None:
        return None
    if not isinstance(key, str):
        raise InputError(f"api_key must be a string; got a {type(key).__name__}")
    key = key.strip()
    if not all(33 <= ord(c) < 127 for c in key):
        raise InputError("api_key must be visible ASCII characters; got others; copy it again")
    return key or None


def post(endpoint: Endpoint, body: Mapping[str, Any]) -> dict[str, Any]:
    """Send a request, and return what the answer's JSON holds.

    Raises
    ------
    Failure
        Where no such answer came.
    """
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if endpoint.key:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    request = urllib.request.Request(endpoint.url, data, headers, method="POST")
    late = f"no answer within {endpoint.timeout:g} s"
    try:
        with _opener(endpoint).open(request, timeout=endpoint.timeout) as response:
            received = _read(response, endpoint.timeout)
    except urllib.error.HTTPError as error:
        with error:
            raise _of_status(endpoint, error) from None
    except TimeoutError:
        raise Failure(late, try_again=True) from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise Failure(late, try_again=True) from None
        said = _one_line(endpoint.without_key(str(error.reason)))
        raise Failure(
            f"it could not be reached ({said})", is_general=True, try_again=True
        ) from None
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        said = _one_line(endpoint.without_key(str(error))) or type(error).__name__
        raise Failure(f"the connection broke ({said})", try_again=True) from None
    try:
        answer = json.loads(received.decode("utf-8"))
    except (ValueError, RecursionError):
        raise Failure("the answer is no JSON") from None
    if not isinstance(answer, dict):
        raise Failure("the answer is no JSON object")
    return answer


def _opener(endpoint: Endpoint) -> urllib.request.OpenerDirector:
    """Return what speaks http and https and follows no redirect.

    To other machines through the proxies of the environment; what is for this one, the key among
    it, leaves it through none.
    """
    opener = urllib.request.OpenerDirector()
    is_here = urlsplit(endpoint.url).hostname in LOCAL
    for handler in (
        urllib.request.ProxyHandler({} if is_here else None),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def _read(response: Any, timeout: float) -> bytes:
    """Read an answer, however slowly it drips, up to a length and a time."""
    deadline = time.monotonic() + timeout
    received = bytearray()
    while chunk := response.read1(65_536):
        received += chunk
        if len(received) > MOST_BYTES:
            raise Failure(f"the answer is longer than {MOST_BYTES:,} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError
    return bytes(received)


def _of_status(endpoint: Endpoint, error: urllib.error.HTTPError) -> Failure:
    """Say what a status other than success means."""
    try:
        said = _message_in(_read(error, endpoint.timeout))
    except (OSError, http.client.HTTPException, Failure):
        said = ""
    said = _one_line(endpoint.without_key(said))
    code = error.code
    if 300 <= code < 400:
        return Failure(
            f"it answers with a redirect ({code}), which is not followed; name the final address",
            is_general=True,
        )
    if code == 400 and "content_filter" in said:
        return Failure("the model's content filter refused")
    about = f"status {code}" + (f": {said}" if said else "")
    if code in (401, 403):
        # What a server says then often repeats a part of the key.
        about = f"status {code}: no access; check api_key= or {KEY_VARIABLE}"
    return Failure(
        about,
        is_general=code in NO_USE,
        try_again=code in TRY_AGAIN,
        wait=_seconds_in(error.headers.get("Retry-After")),
    )


def _message_in(received: bytes) -> str:
    """Return what a server says about an error."""
    text = received.decode("utf-8", "replace")
    try:
        content = json.loads(text)
        about = content.get("error", content)
        if isinstance(about, dict):
            return " ".join(str(about[k]) for k in ("code", "message") if about.get(k))
        return str(about)
    except (ValueError, AttributeError, RecursionError):
        return text


def _seconds_in(value: str | None) -> float | None:
    """Read a Retry-After header: seconds, or a date."""
    if not value:
        return None
    try:
        return max(0.0, float(value)) if float(value) < 1e9 else None
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())


def _one_line(text: str) -> str:
    """Return a text on one line, without control characters, cut."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= MOST_SHOWN else line[: MOST_SHOWN - 1] + "…"
