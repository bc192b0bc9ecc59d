"""A hub of one process: the few routes that an upload and a download need, on this machine."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

__all__ = ["online_hub"]


class Hub:
    """Repositories by name; each is private or not, and has files by path."""

    def __init__(self):
        self.repositories = {}
        self.requests = []
        self.refuse = None
        self.endpoint = ""

    def add(self, name, files=(), private=True):
        self.repositories[name] = {"private": private, "files": dict(files), "n_commits": 1}

    def sha(self, name):
        found = self.repositories[name]
        return hashlib.sha1(f"{name}{found['n_commits']}".encode()).hexdigest()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self, content=b"", status=200, headers=(), head=False):
        if not isinstance(content, bytes):
            content = json.dumps(content).encode()
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if not head:
            self.wfile.write(content)

    def missing(self, code="RepoNotFound"):
        self.answer(b"", 404, {"X-Error-Code": code})

    def parts(self):
        path = unquote(urlsplit(self.path).path)
        self.server.hub.requests.append((self.command, path, self.headers.get("Authorization")))
        return path.strip("/").split("/")

    def do_GET(self, head=False):
        match self.parts():
            case ["api", "models", user, name, *rest]:
                self.describe(f"{user}/{name}", rest)
            case [user, name, "resolve", _, *path]:
                repository = self.server.hub.repositories.get(f"{user}/{name}")
                content = repository and repository["files"].get("/".join(path))
                if content is None:
                    return self.missing("EntryNotFound")
                etag = hashlib.sha1(content).hexdigest()
                headers = {
                    "ETag": f'"{etag}"',
                    "X-Repo-Commit": self.server.hub.sha(f"{user}/{name}"),
                }
                self.answer(content, headers=headers, head=head)
            case _:
                self.missing()

    def do_HEAD(self):
        self.do_GET(head=True)

    def describe(self, name, rest):
        if name not in self.server.hub.repositories:
            return self.missing()
        found = self.server.hub.repositories[name]
        sizes = {path: len(content) for path, content in found["files"].items()}
        if rest[:1] == ["tree"]:
            return self.answer([
                {"type": "file", "path": path, "size": size, "oid": "0" * 40}
                for path, size in sizes.items()
            ])  # fmt: skip
        if rest[:1] == ["revision"] and rest[1] not in ("main", self.server.hub.sha(name)):
            return self.missing("RevisionNotFound")
        self.answer({
            "id": name, "sha": self.server.hub.sha(name), "private": found["private"],
            "siblings": [{"rfilename": path, "size": size} for path, size in sizes.items()],
        })  # fmt: skip

    def do_POST(self):
        parts = self.parts()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.server.hub.refuse is not None:
            return self.answer({"error": self.server.hub.refuse}, 403)
        match parts:
            case ["api", "repos", "create"]:
                self.create(json.loads(body))
            case ["api", "validate-yaml"]:
                self.answer({"errors": [], "warnings": []})
            case ["api", "models", _, _, "preupload", _]:
                files = json.loads(body)["files"]
                self.answer({"files": [
                    {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
                    for file in files
                ]})  # fmt: skip
            case ["api", "models", user, name, "commit", _]:
                self.commit(f"{user}/{name}", body)
            case _:
                self.missing()

    def create(self, asked):
        name = f"{asked.get('organization') or 'someone'}/{asked['name']}"
        there = name in self.server.hub.repositories
        if not there:
            private = asked.get("visibility") == "private" or asked.get("private") is True
            self.server.hub.add(name, private=private)
        self.answer({"url": f"{self.server.hub.endpoint}/{name}", "id": "1"}, 409 if there else 200)

    def commit(self, name, body):
        found = self.server.hub.repositories[name]
        for line in body.decode().splitlines():
            action = json.loads(line)
            value = action["value"]
            if action["key"] == "file":
                found["files"][value["path"]] = base64.b64decode(value["content"])
            elif action["key"] == "deletedFile":
                del found["files"][value["path"]]
            else:
                found["message"] = value["summary"]
        found["n_commits"] += 1
        sha = self.server.hub.sha(name)
        url = f"{self.server.hub.endpoint}/{name}/commit/{sha}"
        self.answer({"commitUrl": url, "commitOid": sha, "success": True})


@contextmanager
def online_hub(monkeypatch):
    """Yield a hub that listens on this machine alone, for a client that is not offline."""
    from huggingface_hub import close_session

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_IMPLICIT_TOKEN", True)
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.hub = hub
    server.daemon_threads = True
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        close_session()
