"""The page on which people label: one process, on this machine alone, of the standard library."""

from __future__ import annotations

import json
import logging
import secrets
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlsplit

from embedtopics._utils.checks import is_count
from embedtopics._utils.folders import parse_json
from embedtopics.annotation._project import AnnotationProject, checked_annotator
from embedtopics.annotation.results import TextToLabel
from embedtopics.errors import EmbedTopicsError, InputError

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
MOST_BYTES = 100_000
"""Of a request: the longest note is shorter."""

PATIENCE = 30.0
"""Seconds after which a connection that says nothing is closed."""

EVERY = 5
"""Answers after which quality and shares are estimated again."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
FILES = {
    "/": ("page.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
}


class _Refused(Exception):
    """A request that is not answered, with the status of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class AnnotationServer:
    """Serves the page of a study until it is closed.

    Parameters
    ----------
    study : AnnotationProject
        Its model learns in the background from now on.
    annotator : str
        Who labels.
    port : int
        0 for one that is free.
    """

    def __init__(self, study: AnnotationProject, annotator: str, port: int) -> None:
        self.study, self.annotator = study, checked_annotator(annotator)
        if not is_count(port, 0) or port > 65_535:
            raise InputError("port", "an integer from 0 to 65535", port)
        self.token = secrets.token_urlsafe(24)
        self._estimates: dict[str, Any] = {}
        self._estimated = -1
        self._estimating = threading.Lock()
        try:
            self._http = _Server((HOST, int(port)), _Handler)
        except OSError as error:
            reason = error.strerror or error
            remedy = "leave it out for a port that is free"
            raise InputError("port", f"free ({reason})", port, remedy) from error
        self._http.page = self
        self.port = int(self._http.server_address[1])
        self.hosts = {f"{name}:{self.port}" for name in (HOST, "localhost")}
        study.learn_in_background()

    @property
    def url(self) -> str:
        """The address of the page, with its token."""
        return f"http://{HOST}:{self.port}/?token={self.token}"

    def run(self) -> None:
        """Serve until `close` is called from another thread, or an interrupt."""
        self._http.serve_forever(poll_interval=0.2)

    def close(self) -> None:
        """Stop serving; the study stays open."""
        self._http.shutdown()
        self._http.server_close()

    # What the page asks

    def state(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """Return the codebook, progress, and the latest estimates."""
        study = self.study
        labels = [
            {"name": one.name, "key": one.key, "definition": one.definition,
             "examples": list(one.examples)}
            for one in study.codebook
        ]  # fmt: skip
        return {
            "annotator": self.annotator, "kind": study.kind, "labels": labels,
            "teach": study.design.teach, **self._status(),
        }  # fmt: skip

    def _status(self) -> dict[str, Any]:
        progress = self.study.progress()
        sample = progress["sample"]
        if sample >= 10 and sample // EVERY != self._estimated:
            self._estimated = sample // EVERY
            threading.Thread(target=self._estimate, daemon=True).start()
        return {"progress": progress, "estimates": self._estimates}

    def _estimate(self) -> None:
        """Estimate quality and shares; one thread at a time, the next label does not wait."""
        with self._estimating:
            try:
                shares = {one.name: one for one in self.study.prevalence().shares}
                quality = self.study.quality()
                stopping = self.study.stopping()
            except EmbedTopicsError as error:
                log.info("nothing was estimated: %s", error)
                return
            accuracy = quality[quality["metric"] == "accuracy"].iloc[0]
            self._estimates = {
                "accuracy": [round(float(accuracy[name]), 4) for name in ("value", "low", "high")],
                "n": int(accuracy["n"]),
                "classes": [
                    {
                        "name": one.name, "share": _plain(shares[one.name].share),
                        "low": _plain(shares[one.name].low), "high": _plain(shares[one.name].high),
                        "width_after": _plain(one.width_after), "further": one.further,
                        "recall_bound": _plain(one.recall.bound), "n_found": one.recall.n_found,
                    }
                    for one in stopping.classes
                ],
            }  # fmt: skip

    def next(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the next text for a tab."""
        tab = _name(asked, "tab")
        if asked.get("fresh"):
            self.study.release(tab)
        return {"next": _shown(self.study.next(by=self.annotator, holder=tab))}

    def label(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Record a label; the answer says that it is on disk."""
        labels = asked.get("labels")
        if not isinstance(labels, list) or not all(isinstance(one, str) for one in labels):
            raise InputError("labels", "a list of labels", labels)
        self.study.label(
            _name(asked, "key"), labels, by=self.annotator, unsure=asked.get("unsure") is True,
            note=_text(asked, "note"), stream=_stream(asked),
        )  # fmt: skip
        return self._status()

    def skip(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Put a text aside."""
        self.study.skip(_name(asked, "key"), by=self.annotator, note=_text(asked, "note"))
        return self._status()

    def undo(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Take back the last answer; return its text."""
        text = self.study.undo(by=self.annotator, holder=_name(asked, "tab"))
        return {"next": _shown(text), **self._status()}


def _plain(value: float) -> float | None:
    """Return a number as JSON holds it."""
    return None if value != value else round(float(value), 5)


def _shown(text: TextToLabel | None) -> dict[str, str] | None:
    return None if text is None else vars(text)


def _name(asked: Mapping[str, Any], field: str) -> str:
    value = asked.get(field)
    if not isinstance(value, str) or not 0 < len(value) <= 100:
        raise InputError(field, "text of 1 to 100 characters", value)
    return value


def _text(asked: Mapping[str, Any], field: str) -> str:
    value = asked.get(field, "")
    if not isinstance(value, str):
        raise InputError(field, "text", value)
    return value


def _stream(asked: Mapping[str, Any]) -> str | None:
    value = asked.get("stream")
    if value not in ("teach", "count", None):
        return None  # decided by who gave it out
    return value


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = False  # a port that another process has is refused
    page: AnnotationServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "embedtopics", ""
    timeout = PATIENCE
    server: _Server

    def do_GET(self) -> None:
        """Answer with a file of the page, or with the state."""
        self._answer({"/api/state": self.server.page.state}, None)

    def do_POST(self) -> None:
        """Take in what a person did."""
        page = self.server.page
        actions = {
            "/api/next": page.next, "/api/label": page.label, "/api/skip": page.skip,
            "/api/undo": page.undo,
        }  # fmt: skip
        self._answer(actions, self._body)

    def _answer(
        self, actions: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]],
        read: Callable[[], Mapping[str, Any]] | None,
    ) -> None:  # fmt: skip
        try:
            asked = urlsplit(self.path)
            self._check_sender(asked.query, read is not None)
            if read is None and asked.path in FILES:
                name, kind = FILES[asked.path]
                content = (files("embedtopics.annotation") / name).read_text("utf-8")
                if name == "page.html":
                    content = content.replace("{token}", self.server.page.token)
                self._send(200, content.encode(), kind)
                return
            if asked.path not in actions:
                raise _Refused(404, "there is no such page")
            self._send_json(200, actions[asked.path](read() if read else {}))
        except _Refused as refused:
            self.close_connection = True  # what is left of the request is not read
            self._send_json(refused.status, {"error": str(refused)})
        except EmbedTopicsError as error:
            self._send_json(400, {"error": str(error)})
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            self.close_connection = True
        except Exception:
            log.exception("a request could not be answered")
            self.close_connection = True
            self._send_json(500, {"error": "the server failed; its terminal says why"})

    def _check_sender(self, query: str, changes: bool) -> None:
        """Refuse other sites, other names of this machine, and whoever has no token."""
        page = self.server.page
        if self.headers.get("Host", "").lower() not in page.hosts:
            raise _Refused(403, "the page has another address")
        origin = self.headers.get("Origin")
        own = {f"http://{host}" for host in page.hosts}
        if (origin is not None or changes) and (origin or "").lower() not in own:
            raise _Refused(403, "the request comes from another page")
        given = self.headers.get("X-Token") or parse_qs(query).get("token", [""])[0]
        if not secrets.compare_digest(given.encode(), page.token.encode()):
            raise _Refused(403, "the token in the address is missing or old; open the address "
                                "that the terminal shows")  # fmt: skip

    def _body(self) -> Mapping[str, Any]:
        if self.headers.get_content_type() != "application/json":
            raise _Refused(415, "expected application/json")
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or len(length) > 9:
            raise _Refused(411, "expected the length of the content")
        if int(length) > MOST_BYTES:
            raise _Refused(413, f"expected at most {MOST_BYTES:,} bytes")
        try:
            read = parse_json(self.rfile.read(int(length)))
        except ValueError:
            raise _Refused(400, "expected JSON") from None
        if not isinstance(read, dict):
            raise _Refused(400, "expected a JSON object")
        return read

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
        """Keep the terminal clear; addresses hold the token."""


def serve(
    study: AnnotationProject, *, annotator: str = "annotator", port: int = 0
) -> AnnotationServer:
    """Return a server of the page of a study; its `run` serves until an interrupt.

    It listens on this machine alone, and answers only requests of its own page that know the
    token in its address.

    Parameters
    ----------
    study : AnnotationProject
    annotator : str
    port : int
        0 for one that is free.

    Returns
    -------
    AnnotationServer
        With `url`, `run()` and `close()`.

    Raises
    ------
    InputError
        Where the port is not free.
    """
    return AnnotationServer(study, annotator, port)
