"""A local web server for a page and its API, reachable from this machine only.

Starlette reads requests and writes responses, and uvicorn serves them; both come with the extra
`page`. A request must name this machine as its host, come from the page itself or from no page, and
know the token. Bodies are JSON of a known form, see `Post`.
"""

from __future__ import annotations

import json
import logging
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import parse_qs, unquote

from embedtopics._utils.checks import is_whole, require
from embedtopics._utils.records import Record, parse_record
from embedtopics.errors import EmbedTopicsError, InputError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
MAX_BYTES = 100_000
"""Bytes of the body of a request; the longest note is shorter."""

BACKLOG = 1024
"""Connections that wait to be accepted."""

# Seconds after which a silent connection is closed, and in which requests may end after `close`.
PATIENCE = 30
LAST_PATIENCE = 5

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
FILES = {
    "/": ("html", "text/html"),
    "/page.css": ("css", "text/css"),
    "/page.js": ("js", "text/javascript"),
}

Action = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Takes the lists of a query string and returns the answer, a JSON object."""


class Post(NamedTuple):
    """An action that changes something: it takes a body of a form, and returns the answer."""

    form: type[Record]
    run: Callable[[Any], dict[str, Any]]


class Refused(Exception):
    """A request that is refused, with its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def require_server() -> Any:
    """Return uvicorn, or name the extra that is missing, before hours of work go into a page."""
    require("starlette.applications", "A local page", "page")
    return require("uvicorn", "A local page", "page")


class LocalServer:
    """Serves the files of a page (``page.html``, ``page.css``, ``page.js``) and its actions.

    It answers requests with the token, from the page itself or from no page; `posts`, which change
    something, only from the page. A path that ends in a slash takes one more part, the ``id``.

    Raises
    ------
    InputError
        The port is in use.
    MissingExtraError
        The extra `page` is not installed.
    """

    def __init__(
        self,
        package: str,
        port: int,
        gets: Mapping[str, Action],
        posts: Mapping[str, Post],
        page: str = "page",
    ) -> None:
        uvicorn = require_server()
        self.token = secrets.token_urlsafe(24)
        self.package = package
        self.page = page
        self.gets = gets
        self.posts = posts

        self._socket = _listening(port)
        self.port = int(self._socket.getsockname()[1])
        self.hosts = {f"{name}:{self.port}" for name in (HOST, "localhost")}

        # Nothing is logged: addresses hold the token.
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._application(),
                http="h11",
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_config=None,
                log_level="critical",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=PATIENCE,
                timeout_graceful_shutdown=LAST_PATIENCE,
            )
        )
        self._is_running = threading.Lock()

    @property
    def url(self) -> str:
        """The address of the page, with its token."""
        return f"http://{HOST}:{self.port}/?token={self.token}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def run(self) -> None:
        """Serve until `close` is called from another thread, or an interrupt.

        The server has a thread of its own, because the one of a notebook has an event loop already.
        """
        with self._is_running:
            if self._server.should_exit:
                return
            sockets = {"sockets": [self._socket]}
            thread = threading.Thread(target=self._server.run, kwargs=sockets, name="page")
            thread.start()
            try:
                while thread.is_alive():
                    thread.join(timeout=1)
            finally:
                self._server.should_exit = True
                thread.join()

    def close(self) -> None:
        """Stop serving, after the requests that are being answered."""
        self._server.should_exit = True
        with self._is_running:
            self._socket.close()

    def _application(self) -> ASGIApp:
        """Create the application: every path, after the check of the sender."""
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.middleware import Middleware
        from starlette.routing import Route

        async def refuse(_: Request, error: Exception) -> Response:
            status = error.status_code if isinstance(error, HTTPException) else 500
            return _json(status, {"error": "there is no such page"})

        route = Route("/{path:path}", self._answer, methods=["GET", "POST"])
        check: Any = Middleware(_SenderCheck, server=self)
        return Starlette(
            routes=[route], middleware=[check], exception_handlers={HTTPException: refuse}
        )

    async def _answer(self, request: Request) -> Response:
        """Send a file of the page, or the answer of an action."""
        from starlette.requests import ClientDisconnect

        try:
            path = request.scope["raw_path"].decode("latin-1")  # "%2F" belongs to an id
            if request.method == "POST":
                return _json(200, await self._post(path, request))
            if path in FILES:
                return self._file(path)
            return _json(200, await self._get(path, request))
        except Refused as refused:
            return _json(refused.status, {"error": str(refused)})
        except EmbedTopicsError as error:
            return _json(400, {"error": str(error)})
        except ClientDisconnect:
            return _json(400, {"error": "the connection was closed"})
        except Exception:
            log.exception("a request could not be answered")
            return _json(500, {"error": "the server failed; see its terminal for the reason"})

    def _file(self, path: str) -> Response:
        """Return a file of the page."""
        from starlette.responses import Response

        end, kind = FILES[path]
        page = files(self.package) / f"{self.page}.{end}"
        content = page.read_text("utf-8").replace("{token}", self.token)
        return Response(content, headers={**HEADERS, "Content-Type": f"{kind}; charset=utf-8"})

    async def _get(self, path: str, request: Request) -> dict[str, Any]:
        """Run an action that changes nothing, in a thread."""
        from starlette.concurrency import run_in_threadpool

        arguments: dict[str, Any] = dict(_query_of(request.scope))
        above, _, last = path.rpartition("/")
        action = self.gets.get(path)
        if action is None:
            action = self.gets.get(f"{above}/")
            arguments["id"] = unquote(last)
        if action is None or not last:
            raise Refused(404, "there is no such page")
        return await run_in_threadpool(action, arguments)

    async def _post(self, path: str, request: Request) -> dict[str, Any]:
        """Run an action that changes something, in a thread."""
        from starlette.concurrency import run_in_threadpool

        post = self.posts.get(path)
        if post is None:
            raise Refused(404, "there is no such page")
        body = await _body_of(request)
        try:
            form = parse_record(post.form, body)
        except ValueError as error:
            message = f"the request must be a JSON object of the form of this action; got {error}"
            raise Refused(400, message) from None
        return await run_in_threadpool(post.run, form)

    def refusal(self, scope: Scope) -> str:
        """Return why a request is refused: another host, page or token; "" if it is not."""
        headers = {name.decode("latin-1").lower(): value for name, value in scope["headers"]}
        if headers.get("host", b"").decode("latin-1").lower() not in self.hosts:
            return "the page has another address"

        origin = headers.get("origin")
        origins = {f"http://{host}".encode() for host in self.hosts}
        changes = scope["method"] not in ("GET", "HEAD")
        if (origin is not None or changes) and (origin or b"").lower() not in origins:
            return "the request comes from another page"

        token = headers.get("x-token", b"").decode("latin-1")
        token = token or _query_of(scope).get("token", [""])[0]
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return "the token is missing or old; open the address that the terminal shows"
        return ""


class _SenderCheck:
    """Refuses requests of other sites, for other hosts, and without the token."""

    def __init__(self, app: ASGIApp, server: LocalServer) -> None:
        self.app = app
        self.server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refusal = self.server.refusal(scope)
        if refusal:
            # The rest of the request is not read.
            refused = _json(403, {"error": refusal}, {"Connection": "close"})
            await refused(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def _listening(port: Any) -> socket.socket:
    """Return a socket of this machine that listens, on a free port for 0."""
    if not is_whole(port) or not 0 <= port < 2**16:
        raise InputError("port", "an integer from 0 to 65535", port)
    try:
        return socket.create_server((HOST, int(port)), backlog=BACKLOG)
    except OSError as error:
        reason = error.strerror or error
        remedy = "omit it to use a free port"
        raise InputError("port", f"free ({reason})", port, remedy) from error


def _query_of(scope: Scope) -> dict[str, list[str]]:
    """Return the values of a query string by their names."""
    return parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)


async def _body_of(request: Request) -> bytes:
    """Return the body of a request, up to a limit that is counted while it is read."""
    length = request.headers.get("Content-Length", "0")
    body = bytearray()
    if not length.isdecimal() or len(length) > 9 or int(length) > MAX_BYTES:
        raise Refused(413, f"expected a body of at most {MAX_BYTES:,} bytes")
    async for part in request.stream():
        body += part
        if len(body) > MAX_BYTES:
            raise Refused(413, f"expected a body of at most {MAX_BYTES:,} bytes")
    return bytes(body)


def _json(
    status: int, content: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Response:
    """Return a response of JSON."""
    from starlette.responses import Response

    return Response(
        json.dumps(content),
        status,
        {**HEADERS, **(headers or {}), "Content-Type": "application/json; charset=utf-8"},
    )
