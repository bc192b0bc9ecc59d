"""A local web server for a page and its API, reachable from this machine only."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from embedtopics._utils.folders import parse_json
from embedtopics.errors import EmbedTopicsError, InputError

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
MOST_BYTES = 100_000
"""Limit of a request; the longest note is shorter."""

PATIENCE = 30.0
"""Seconds after which a silent connection is closed."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
FILES = {
    "/": ("html", "text/html"),
    "/page.css": ("css", "text/css"),
    "/page.js": ("js", "text/javascript"),
}

Action = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Takes a JSON object or the lists of a query string and returns the answer."""


class Refused(Exception):
    """A request that is refused, with its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class LocalServer(ThreadingHTTPServer):
    """Serves the files of a page (``page.html``, ``page.css``, ``page.js``) and its actions.

    It answers requests with the token, from the page itself or from no page; `posts`, which change
    something, only from the page. A path that ends in a slash takes one more part, the ``id``.
    """

    daemon_threads = True
    allow_reuse_address = False  # refuse a port that another process uses

    def __init__(
        self,
        package: str,
        port: int,
        gets: Mapping[str, Action],
        posts: Mapping[str, Action],
        page: str = "page",
    ) -> None:
        self.token = secrets.token_urlsafe(24)
        self.package, self.page, self.gets, self.posts = package, page, gets, posts
        try:
            super().__init__((HOST, int(port)), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            remedy = "omit it to use a free port"
            raise InputError("port", f"free ({reason})", port, remedy) from error
        self.port = int(self.server_address[1])
        self.hosts = {f"{name}:{self.port}" for name in (HOST, "localhost")}

    @property
    def url(self) -> str:
        """The address of the page, with its token."""
        return f"http://{HOST}:{self.port}/?token={self.token}"

    def run(self) -> None:
        """Serve until `close` is called from another thread, or an interrupt."""
        self.serve_forever(poll_interval=0.2)

    def close(self) -> None:
        """Stop serving."""
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "embedtopics", ""
    timeout = PATIENCE
    server: LocalServer

    def do_GET(self) -> None:
        """Send a file of the page, or the answer of an action."""
        self._answer(self.server.gets, None)

    def do_POST(self) -> None:
        """Run an action that changes something."""
        self._answer(self.server.posts, self._body)

    def _answer(
        self, actions: Mapping[str, Action], read: Callable[[], Mapping[str, Any]] | None
    ) -> None:
        try:
            asked = urlsplit(self.path)
            self._check_sender(asked.query, read is not None)
            if read is None and asked.path in FILES:
                end, kind = FILES[asked.path]
                page = files(self.server.package) / f"{self.server.page}.{end}"
                content = page.read_text("utf-8").replace("{token}", self.server.token)
                self._send(200, content.encode(), kind)
                return
            above, _, last = asked.path.rpartition("/")
            action = actions.get(asked.path) or actions.get(f"{above}/")
            if action is None or not last:
                raise Refused(404, "there is no such page")
            arguments = dict(read() if read else parse_qs(asked.query, keep_blank_values=True))
            if asked.path not in actions:
                arguments["id"] = unquote(last)
            self._send_json(200, action(arguments))
        except Refused as refused:
            self.close_connection = True  # the rest of the request is not read
            self._send_json(refused.status, {"error": str(refused)})
        except EmbedTopicsError as error:
            self._send_json(400, {"error": str(error)})
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            self.close_connection = True
        except Exception:
            log.exception("a request could not be answered")
            self.close_connection = True
            self._send_json(500, {"error": "the server failed; see its terminal for the reason"})

    def _check_sender(self, query: str, changes: bool) -> None:
        """Refuse other sites, other host names, and requests without the token."""
        if self.headers.get("Host", "").lower() not in self.server.hosts:
            raise Refused(403, "the page has another address")
        origin = self.headers.get("Origin")
        origins = {f"http://{host}" for host in self.server.hosts}
        if (origin is not None or changes) and (origin or "").lower() not in origins:
            raise Refused(403, "the request comes from another page")
        token = self.headers.get("X-Token") or parse_qs(query).get("token", [""])[0]
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            message = "the token is missing or old; open the address that the terminal shows"
            raise Refused(403, message)

    def _body(self) -> Mapping[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > 9 or int(length) > MOST_BYTES:
            raise Refused(413, f"expected a length of at most {MOST_BYTES:,} bytes")
        try:
            return {**parse_json(self.rfile.read(int(length)))}
        except (TypeError, ValueError):
            raise Refused(400, "expected a JSON object") from None

    def _send_json(self, status: int, content: Mapping[str, Any]) -> None:
        self._send(status, json.dumps(content).encode(), "application/json")

    def _send(self, status: int, content: bytes, kind: str) -> None:
        headers = {
            "Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(content)),
            "Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
            "Cross-Origin-Resource-Policy": "same-origin", "X-Frame-Options": "DENY",
        }  # fmt: skip
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: addresses hold the token."""
