"""A local server: bodies of a known form, limits, many requests at once, closed connections."""

import asyncio
import http.client
import json
import logging
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra page")

from embedtopics import AnnotationProject
from embedtopics._utils.local_server import MAX_BYTES, LocalServer, Post
from embedtopics._utils.records import Record
from embedtopics.annotation import serve
from embedtopics.errors import InputError, MissingExtraError
from tests.factories import refuses
from tests.report.driving import fetch, served


class Sum(Record):
    """The body of a test."""

    values: tuple[int, ...]


@pytest.fixture
def server():
    """Adds numbers, repeats a query, and fails."""

    def fail(_):
        raise RuntimeError("a defect of ours")

    def refuse(_):
        raise InputError("values", "fewer", 9)

    gets = {"/echo": lambda query: {"query": query}, "/one/": lambda query: {"id": query["id"]}}
    posts = {
        "/sum": Post(Sum, lambda body: {"sum": sum(body.values)}),
        "/fail": Post(Sum, fail),
        "/refuse": Post(Sum, refuse),
    }
    with served(LocalServer("embedtopics.annotation", 0, gets, posts)) as started:
        yield started


def test_requests_are_answered(server):
    assert json.loads(fetch(server, "/sum", {"values": [1, 2, 39]})[2]) == {"sum": 42}
    assert json.loads(fetch(server, "/echo?a=1&a=%C3%A9&b=")[2]) == {
        "query": {"a": ["1", "é"], "b": [""]}
    }
    assert json.loads(fetch(server, "/one/a%2Fb%20c")[2]) == {"id": "a/b c"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", "JSON"), (b"{", "JSON"), (b"null", "object"), (b"[1]", "object"), (b"5", "object"),
        (b"\xff", ""), (b"{}", "values"), (b'{"values": 5}', "values"),
        (b'{"values": "12"}', "values"), (b'{"values": {"0": 1}}', "values"),
        (b'{"values": [1, "2"]}', "values.1"), (b'{"values": [1.5]}', "values.0"),
        (b'{"values": [true]}', "values.0"), (b'{"values": [NaN]}', "values.0"),
        (b'{"values": [null]}', "values.0"), (b'{"values": [], "more": 1}', "more"),
        (b'{"values": [' + b"[" * 5000 + b"]" * 5000 + b"]}", ""),
        (b'{"values": [1' + b"0" * 5000 + b"]}", "number"),
    ],
)  # fmt: skip
def test_a_malformed_body_is_refused_with_one_sentence(server, body, field, caplog):
    status, _, content = fetch(server, "/sum", body)
    error = json.loads(content)["error"]
    assert status == 400 and field in error and "\n" not in error
    assert not caplog.records


def test_errors_of_a_request_and_defects_are_told_apart(server, caplog):
    status, _, content = fetch(server, "/refuse", {"values": []})
    assert status == 400 and json.loads(content)["error"] == "values must be fewer; got 9"
    with caplog.at_level(logging.CRITICAL, "embedtopics._utils.local_server"):
        status, _, content = fetch(server, "/fail", {"values": []})
    assert status == 500 and "a defect" not in content.decode()


def raw(server, content, *, is_last=False):
    """Send bytes, and return all that comes back."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(content)
        if is_last:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        with suppress(ConnectionResetError):  # of a request that was not read to its end
            while part := connection.recv(65536):
                answer += part
        return answer


def head(server, method="POST", path="/sum", **more):
    """Return the head of a request of the page."""
    fields = {"Host": f"127.0.0.1:{server.port}", "Origin": f"http://127.0.0.1:{server.port}"}
    fields |= {"X-Token": server.token, **more}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@pytest.mark.parametrize("length", ["1e3", "-1", "5, 6", "x"])
def test_a_length_that_is_none_is_refused(server, length):
    answer = raw(server, head(server, **{"Content-Length": length}), is_last=True)
    assert answer.startswith(b"HTTP/1.1 400")


def test_bodies_are_counted_while_they_come(server):
    part = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
    content = head(server, **{"Transfer-Encoding": "chunked", "Connection": "close"}) + 5 * part
    answer = raw(server, content + b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413") and 5 * 0x8000 > MAX_BYTES
    assert fetch(server, "/sum", b" " * (MAX_BYTES + 1))[0] == 413


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(server, method):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"Origin": f"http://127.0.0.1:{server.port}", "X-Token": server.token}
    connection.request(method, "/sum", headers=headers)
    response = connection.getresponse()
    assert response.status == 405 and b"error" in response.read()
    connection.close()


def test_closed_connections_leave_no_trace(server, caplog, capfd):
    for content in (b"", b"POST /sum", head(server, **{"Content-Length": "50"}) + b"{", b"\0" * 99):
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
            connection.sendall(content)
    assert json.loads(fetch(server, "/sum", {"values": [1]})[2]) == {"sum": 1}
    assert not caplog.records and capfd.readouterr().err == ""


def test_many_requests_at_once_are_all_answered(tmp_path):
    texts = [f"a text {i}" for i in range(300)]
    vectors = np.random.default_rng(0).normal(size=(300, 4))
    with AnnotationProject(texts, ["a", "b"], tmp_path / "study", encoder=vectors) as study:
        with served(serve(study)) as server:
            barrier = threading.Barrier(200)

            def ask(number):
                barrier.wait()
                if number % 2:
                    return fetch(server, "/api/state")[0]
                return fetch(server, "/api/label", {"key": study.keys[number], "labels": ["a"]})[0]

            with ThreadPoolExecutor(200) as threads:
                statuses = list(threads.map(ask, range(200)))
    assert statuses == [200] * 200
    with AnnotationProject.load(tmp_path / "study", texts, encoder=vectors) as study:
        assert study.progress()["labelled"] == 100


@pytest.mark.parametrize("port", [-1, 2**16, "80", 1.5, None, True])
def test_ports_that_are_none_are_refused(port):
    with refuses("port"):
        LocalServer("embedtopics.annotation", port, {}, {})


def test_a_server_can_be_closed_before_it_runs():
    server = LocalServer("embedtopics.annotation", 0, {}, {})
    server.close()
    server.run()  # returns at once
    with LocalServer("embedtopics.annotation", server.port, {}, {}):  # the port is free again
        pass


def test_a_server_runs_where_an_event_loop_runs_as_in_a_notebook():
    other = LocalServer("embedtopics.annotation", 0, {"/ask": lambda _: {"answer": 42}}, {})

    async def cell():
        closing = threading.Thread(target=ask_and_close)
        closing.start()
        other.run()
        closing.join()

    def ask_and_close():
        answers.append(json.loads(fetch(other, "/ask")[2]))
        other.close()

    answers = []
    asyncio.run(cell())
    assert answers == [{"answer": 42}]


def test_the_extra_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtraError, match=r"embedtopics\[page\]"):
        LocalServer("embedtopics.annotation", 0, {}, {})


def test_the_libraries_are_imported_when_a_page_is_served():
    code = "import sys, embedtopics.annotation._server, embedtopics.retrieval._serve\n"
    code += "print(*{'starlette', 'uvicorn'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
