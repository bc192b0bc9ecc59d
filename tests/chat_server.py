"""A chat endpoint on this machine that answers as a test tells it."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def said(content, **changes):
    """Return the JSON of an ordinary answer."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content},
              "finish_reason": "stop"}  # fmt: skip
    message = changes.pop("message", {})
    choice["message"].update(message)
    choice.update(changes)
    return {"choices": [choice], "usage": {"total_tokens": 42}}


class Server:
    """What was asked, and what is answered.

    `answer` gets the request's body and its number, from 0; it returns a dict for JSON, bytes, a
    tuple (status, headers, body), or waits.
    """

    def __init__(self, answer):
        self.answer, self.bodies, self.headers, self.paths = answer, [], [], []
        self.lock = threading.Lock()
        self.released = threading.Event()

    @property
    def n_calls(self):
        return len(self.bodies)


@contextmanager
def serving(answer):
    """Run a server for a while; its `url` is the endpoint."""
    server = Server(answer)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with server.lock:
                number = len(server.bodies)
                server.bodies.append(body)
                server.headers.append({key.title(): v for key, v in self.headers.items()})
                server.paths.append(self.path)
            made = server.answer(body, number)
            status, headers, content = made if isinstance(made, tuple) else (200, {}, made)
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            try:
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                pass  # the client has given up

        def do_GET(self):
            with server.lock:
                server.paths.append("GET " + self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    server.url = f"http://127.0.0.1:{httpd.server_port}/v1"
    try:
        yield server
    finally:
        server.released.set()
        httpd.shutdown()
        thread.join()
        httpd.server_close()
