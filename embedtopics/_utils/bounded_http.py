"""Calls over HTTP that end: one total time for a call, and a limit of the bytes of its response.

A timeout of a socket bounds the wait for the next byte, so a server that sends a byte now and then
would keep a call going forever. Here each read waits only for the rest of the time of the call,
whether it reads the status, a header or the body. Redirects are not followed. Nothing is unpacked:
requests ask for plain responses. Nothing is logged, because a server may repeat a key.
"""

from __future__ import annotations

import io
import socket
import time
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple, Protocol
from urllib.error import HTTPError
from urllib.request import (
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

MAX_BYTES = 1_000_000
"""Bytes of a response; an answer of 100,000 tokens, reasoning included, has about 500,000."""


class BoundedResponse(NamedTuple):
    """The status of a response, its body, and the time after which to ask again, if it says so."""

    status: int
    body: bytes
    retry_after: str | None


class ResponseTooLong(Exception):
    """A response with more than `MAX_BYTES`."""


def bounded_opener(*, use_proxies: bool) -> OpenerDirector:
    """Create an opener whose calls end; with proxies, those of the environment."""
    handlers: list[Any] = [_TimedHTTPHandler(), _TimedHTTPSHandler(), _NoRedirects()]
    if not use_proxies:
        handlers.append(ProxyHandler({}))
    return build_opener(*handlers)


def post(opener: OpenerDirector, call: Request, timeout: float) -> BoundedResponse:
    """Send a request and read its response, of any status.

    Raises
    ------
    ResponseTooLong
        The response has more than `MAX_BYTES`.
    OSError, http.client.HTTPException
        The server could not be reached, the time was over (`TimeoutError`, which may be the
        `reason` of an `URLError`), or the response is cut or none of HTTP.
    """
    try:
        response = opener.open(call, timeout=timeout)
    except HTTPError as error:  # a response too
        response = error

    with response:
        length = getattr(response, "length", None)
        if length is not None and length > MAX_BYTES:
            raise ResponseTooLong
        body = response.read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            raise ResponseTooLong
        if getattr(response, "length", None):
            raise ConnectionError("the response was cut")
        status = int(response.status or 0)
        return BoundedResponse(status, body, response.headers.get("Retry-After"))


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class _TimedReader(io.RawIOBase):
    """Reads a socket until a time of the monotonic clock."""

    def __init__(self, connection: socket.socket, end: float) -> None:
        self._connection = connection
        self._end = end
        self._raw: Any = connection.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        remaining = self._end - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        self._connection.settimeout(remaining)
        return int(self._raw.readinto(buffer))

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TimedSocket:
    """What a response of HTTP needs of a socket: a file to read from."""

    def __init__(self, connection: socket.socket, end: float) -> None:
        self._connection = connection
        self._end = end

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._connection, self._end))


class _ResponseClass(Protocol):
    def __call__(self, connection: socket.socket, **options: Any) -> HTTPResponse: ...


def _responses_until(end: float) -> _ResponseClass:
    """Create responses that are read until `end`."""

    def create(connection: socket.socket, **options: Any) -> HTTPResponse:
        timed: Any = _TimedSocket(connection, end)
        return HTTPResponse(timed, **options)

    return create


class _TimedHTTPConnection(HTTPConnection):
    def __init__(self, host: str, *, timeout: float) -> None:
        super().__init__(host, timeout=timeout)
        self.response_class: Any = _responses_until(time.monotonic() + timeout)


class _TimedHTTPSConnection(HTTPSConnection):
    def __init__(self, host: str, *, timeout: float) -> None:
        super().__init__(host, timeout=timeout)
        self.response_class: Any = _responses_until(time.monotonic() + timeout)


class _TimedHTTPHandler(HTTPHandler):
    def http_open(self, call: Request) -> HTTPResponse:
        connection: Any = _TimedHTTPConnection
        return self.do_open(connection, call)


class _TimedHTTPSHandler(HTTPSHandler):
    def https_open(self, call: Request) -> HTTPResponse:
        connection: Any = _TimedHTTPSConnection
        return self.do_open(connection, call)
