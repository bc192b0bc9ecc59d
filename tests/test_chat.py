"""Questions to a language model: its key, the limits of its answers, and their record."""

import base64
import html
import json
import os
import socket
import threading
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from embedtopics._utils import bounded_http, chat
from embedtopics._utils.answer_record import AnswerRecord
from embedtopics._utils.chat import Chat, Question, request_fields
from embedtopics._utils.redaction import REDACTED, redactor
from embedtopics.annotation import LanguageModelCoder
from embedtopics.errors import InputError
from embedtopics.topics import name_topics
from tests.chat_server import said, serving
from tests.factories import make_result, refuses

KEY = 'sk-p/9"Zq+7_aZ&0!'
QUESTION = Question(({"role": "user", "content": "?"},), {"prompt": "p", "text": "t"})


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """No key of the environment, no waiting, a folder of its own."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(chat, "FIRST_WAIT", 0.0)
    monkeypatch.setattr(chat, "MAX_RETRIES", 0)
    monkeypatch.chdir(tmp_path)


def ask(url, *, timeout=60, key=KEY, record="record.jsonl", parse=str):
    """Ask one question; return the answer and the text of the record."""
    fields = request_fields("m", {}, {"timeout": timeout})
    asked = Chat(url, key, fields, parse, "label")
    (answer,) = asked.ask_all([QUESTION], AnswerRecord(record), "asking", False)
    return answer, Path(record).read_text("utf-8")


def coder_at(url, **options):
    return LanguageModelCoder(["plum", "pear"], endpoint=url, model="m", **options)


# The key.


SPELLINGS = {
    "plain": KEY,
    "small letters": KEY.lower(),
    "in an address": quote(KEY, safe=""),
    "each character in an address": "".join(f"%{ord(c):02X}" for c in KEY),
    "twice in an address": quote(quote(KEY, safe=""), safe=""),
    "in JSON": json.dumps(KEY)[1:-1],
    "in escaped JSON": json.dumps(json.dumps(KEY))[3:-3],
    "each character in JSON": "".join(f"\\u00{ord(c):02x}" for c in KEY),
    "a slash of JSON": KEY.replace("/", "\\/"),
    "in HTML": html.escape(KEY),
    "each character in HTML": "".join(f"&#{ord(c)};" for c in KEY),
    "on two lines": KEY[:7] + "\n  " + KEY[7:],
    "base64": base64.b64encode(KEY.encode()).decode(),
    "a header in base64": base64.b64encode(f"Bearer {KEY}".encode()).decode(),
    "a user in base64": base64.urlsafe_b64encode(f"me:{KEY}".encode()).decode(),
    "a word in base64": base64.b64encode(f"a {KEY} b".encode()).decode(),
    "hexadecimal": KEY.encode().hex(),
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_a_key_is_removed_in_every_spelling(spelling):
    redacted = redactor(KEY)(f"before {spelling} after")
    assert redacted.startswith("before ") and redacted.endswith(" after")
    assert REDACTED in redacted
    middle = len(spelling) // 2
    assert spelling[middle - 4 : middle + 4] not in redacted


def test_texts_without_the_key_stay_as_they_are():
    text = "sk-p/9 is the beginning of a key; EMPTY, x, plum"
    for key in (KEY, "", "x", "EMPTY", "plum"):  # short ones are placeholders
        assert redactor(key)(text) == text


@pytest.mark.parametrize("status", [200, 302, 400, 401, 404, 422, 429, 500, 503])
@pytest.mark.parametrize("spelling", ["plain", "in JSON", "on two lines", "a header in base64"])
def test_a_key_that_is_repeated_reaches_neither_record_nor_reason(status, spelling):
    echo = SPELLINGS[spelling]
    body = {"error": {"message": "x" * 180 + echo}} if status != 200 else said(f"plum {echo}")
    with serving(lambda *_: (status, {"Retry-After": KEY, "Location": KEY}, body)) as server:
        answer, recorded = ask(server.url)
    shown = recorded + answer.reason + str(answer.content)
    # The key must not be there as a whole, nor a part of it that was cut.
    middle = len(echo) // 2
    assert KEY not in shown and KEY not in json.loads(recorded).values()
    assert echo[middle - 4 : middle + 4] not in shown


def test_a_key_behind_invisible_characters_is_removed():
    hidden = "\u200b".join(KEY)
    with serving(lambda *_: (500, {}, f"bad key {hidden}".encode())) as server:
        answer, recorded = ask(server.url)
    assert KEY not in answer.reason + recorded and REDACTED in answer.reason


def test_a_key_in_a_status_line_is_removed():
    with raw_server(f"HTTP/1.1 {KEY} what\r\n\r\n".encode()) as url:
        answer, recorded = ask(url)
    assert answer.is_call_error and KEY not in answer.reason + recorded


def test_a_name_with_the_key_is_no_name(tmp_path):
    result = make_result(60, 2)

    plain_key = "sk-own-key-77"
    with serving(lambda b, n: said(f"Names {plain_key}" if n == 0 else "Plums")) as server:
        named = name_topics(result, server.url, "m", api_key=plain_key)
    named.save(tmp_path / "saved")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 2
    assert not [path for path in files if plain_key.encode() in path.read_bytes()]
    assert [decision.name for decision in named.decisions][-1] == "not_named"


def test_a_label_beside_the_key_is_read():
    content = json.dumps({"label": "plum", "request": KEY})
    with serving(lambda *_: said(content)) as server:
        coding = coder_at(server.url, api_key=KEY).code(["plum pie"])
    assert coding.labels.tolist() == ["plum"]
    written = Path("codes.jsonl").read_text("utf-8") + coding.table.to_string()
    assert KEY not in written and json.dumps(KEY)[1:-1] not in written


# Limits.


@contextmanager
def raw_server(*parts, drip=b""):
    """Answer each connection with bytes, then with `drip` again and again, without an end."""
    stop = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def work():
        while not stop.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    def answer(connection):
        with connection:
            try:
                request = b""
                while not request.endswith(b"}"):  # the end of its JSON
                    request += connection.recv(65536)
                for part in parts:
                    connection.sendall(part)
                while drip and not stop.wait(0.02):
                    connection.sendall(drip)
            except OSError:
                pass

    threading.Thread(target=work, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        stop.set()
        listener.close()


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("start", "drip"),
    [
        (b"", b"H"),  # a status line
        (OK, b"X-Slow: 1\r\n"),
        (OK + b"X-Slow: ", b"a"),
        (OK + b"Content-Length: 900000\r\n\r\n", b" "),
        (CHUNKED, b"1\r\n \r\n"),
        (CHUNKED, b"0"),  # the length of a chunk
        (CHUNKED + b"0\r\n", b"X-Trailer: 1\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
)
def test_a_call_ends_however_slowly_its_answer_comes(start, drip):
    with raw_server(start, drip=drip) as url:
        answer, recorded = ask(url, timeout=0.3)
    assert answer.is_call_error
    # Some ends come earlier, by the limits of headers.
    assert "no answer within 0.3 s" in answer.reason or "could not be reached" in answer.reason
    assert json.loads(recorded)["answer"] is None


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_long_answer_is_not_read(is_chunked):
    body = json.dumps(said("x" * (bounded_http.MAX_BYTES + 10))).encode()
    head = OK + f"Content-Length: {len(body)}\r\n\r\n".encode()
    if is_chunked:
        head = CHUNKED
        body = b"".join(b"8000\r\n" + b"x" * 0x8000 + b"\r\n" for _ in range(40))
    with raw_server(head, body) as url:
        answer, recorded = ask(url)
    assert answer.reason == "the answer is longer than 1,000,000 bytes"
    assert len(recorded) < 1000


def test_a_packed_answer_is_not_unpacked():
    import gzip

    body = gzip.compress(json.dumps(said("plum" + " " * 50_000_000)).encode())
    with serving(lambda *_: (200, {"Content-Encoding": "gzip"}, body)) as server:
        answer, recorded = ask(server.url)
    assert answer.reason == "the answer is not JSON" and len(recorded) < 1000


def test_a_cut_answer_is_asked_for_again(monkeypatch):
    monkeypatch.setattr(chat, "MAX_RETRIES", 1)
    body = json.dumps(said("plum")).encode()
    with raw_server(OK + f"Content-Length: {len(body) + 1}\r\n\r\n".encode(), body) as url:
        answer, _ = ask(url)
    assert "the response was cut" in answer.reason


@pytest.mark.parametrize("wait", ["nan", "inf", "-5", "soon", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_any_wait_that_a_server_asks_for_is_bounded(monkeypatch, wait):
    monkeypatch.setattr(chat, "MAX_RETRIES", 1)
    monkeypatch.setattr(chat, "LONGEST_WAIT", 0.01)
    busy = (503, {"Retry-After": wait}, b"")
    with serving(lambda body, n: busy if n == 0 else said("plum")) as server:
        assert ask(server.url)[0].value == "plum"


# What an answer may lack.


def changed(**changes):
    answer = said("plum")
    choice = answer["choices"][0]
    for name, value in changes.items():
        holder = {"usage": answer, "choices": answer, "content": choice["message"]}.get(
            name, choice
        )
        holder["message" if name == "message" else name] = value
    return answer


@pytest.mark.parametrize(
    "answer",
    [
        changed(usage=[1]),
        changed(usage="many"),
        changed(usage={"total_tokens": "42"}),
        changed(usage={"total_tokens": -1}),
        changed(usage={"total_tokens": 10**400}),
        changed(usage=None),
        changed(finish_reason=5),
        changed(finish_reason=["length"]),
        changed(choices=[said("plum")["choices"][0], 7]),
        changed(message={"content": "plum", "refusal": False}),
        changed(message={"content": "plum", "refusal": {}, "role": 3}),
        said("plum") | {"id": None, "model": {}, "object": 4},
    ],
)
def test_fields_of_another_form_cost_no_label(answer):
    with serving(lambda *_: answer) as server:
        coding = coder_at(server.url).code(["plum pie"])
    assert coding.labels.tolist() == ["plum"]


@pytest.mark.parametrize(
    "answer",
    [
        b"plum",
        b"[" * 100_000,
        {},
        {"choices": "plum"},
        {"choices": {"0": said("plum")["choices"][0]}},
        {"choices": []},
        changed(choices=[None]),
        changed(message="plum"),
        changed(message=None),
    ],
)
def test_a_response_that_is_no_answer_is_asked_for_again_by_the_next_call(answer):
    with serving(lambda *_: answer) as server:
        with pytest.raises(InputError, match="0 of 2 texts are coded"):
            coder_at(server.url).code(["plum pie", "pear cake"])
        server.answer = lambda *_: said("pear")
        assert coder_at(server.url).code(["plum pie", "pear cake"]).labels.tolist() == ["pear"] * 2


def test_an_answer_with_half_a_character_can_be_stored(tmp_path):
    content = json.dumps(said("plum \ud83d")).encode("ascii")
    with serving(lambda *_: content) as server:
        coding = coder_at(server.url).code(["plum pie"])
    assert coding.table["answer"].tolist() == ["plum ?"]
    coding.to_frame().to_parquet(tmp_path / "codes.parquet")


def test_an_answer_without_label_is_asked_for_again_on_request():
    with serving(lambda body, n: said("an apple" if n == 0 else "pear")) as server:
        coder = coder_at(server.url)
        assert coder.code(["pear cake"]).labels.tolist() == [None]
        assert coder.code(["pear cake"]).labels.tolist() == [None]
        assert server.n_calls == 1
        assert coder.code(["pear cake"], retry_unlabelled=True).labels.tolist() == ["pear"]
        assert coder.code(["pear cake"], retry_unlabelled=True).labels.tolist() == ["pear"]
        assert server.n_calls == 2


def test_an_answer_that_a_crash_left_without_label_is_asked_for_again():
    with serving(lambda *_: said("plum")) as server:
        coder_at(server.url).code(["plum pie"])
        *_, entry = map(json.loads, Path("codes.jsonl").read_text("utf-8").splitlines())
        del entry["checksum"]  # as former versions wrote it
        Path("codes.jsonl").write_text(json.dumps(entry | {"label": None}) + "\n", "utf-8")
        assert coder_at(server.url).code(["plum pie"]).labels.tolist() == ["plum"]
        assert server.n_calls == 2


# Arguments.


@pytest.mark.parametrize(
    "address",
    [
        "http://[::1/v1", "http://[::1]:port/v1", "http://localhost:99999/v1",
        "http://localhost:0/v1", "http://a..b/v1", f"http://{'a' * 64}.org/v1", "http://lo cal/v1",
        "http://localhost/v 1", "http://localhost/v\x001", "http://localhost/é", "http:///v1",
        "localhost:8080/v1", "ftp://localhost/v1", "", 8080, None, b"http://localhost/v1",
    ],
)  # fmt: skip
def test_addresses_that_are_none_are_refused(address):
    with refuses("endpoint"):
        coder_at(address)


@pytest.mark.parametrize(
    ("parameter", "options"),
    [
        ("request", {"request": 5}),
        ("request", {"request": {"timeout": "long"}}),
        ("request", {"request": {"timeout": 0}}),
        ("request", {"request": {"timeout": float("nan")}}),
        ("request", {"request": {"timeout": float("inf")}}),
        ("request", {"request": {"timeout": True}}),
        ("request", {"request": {"temperature": float("nan")}}),
        ("request", {"request": {"stop": {"a", "b"}}}),
        ("api_key", {"api_key": 5}),
        ("api_key", {"api_key": "two words"}),
    ],
)
def test_requests_that_cannot_be_sent_are_refused(parameter, options):
    with refuses(parameter):
        coder_at("http://localhost/v1", **options)
    with refuses("model"):
        LanguageModelCoder(["a", "b"], endpoint="http://localhost/v1", model="")


# The record.


@pytest.mark.parametrize("content", [b"a list\n", b"[]", b"{}\n", b"\x00" * 20, b'{\n "a": 1\n}\n'])
def test_a_foreign_file_is_refused_and_left_as_it_is(content):
    Path("codes.jsonl").write_bytes(content)
    with refuses("journal"):
        coder_at("http://localhost:9/v1").code(["plum pie"])
    assert Path("codes.jsonl").read_bytes() == content


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes")
def test_a_pipe_a_device_and_a_folder_are_refused():
    os.mkfifo("pipe")
    Path("folder").mkdir()
    for path in ("pipe", os.devnull, "folder"):
        with refuses("journal"):
            coder_at("http://localhost:9/v1", journal=path).code(["plum pie"])
        with refuses("journal"):
            name_topics(make_result(60, 1), "http://localhost:9/v1", "m", journal=path)


def test_a_changed_answer_is_asked_for_again():
    with serving(lambda *_: said("plum")) as server:
        coder_at(server.url).code(["plum pie"])
        content = Path("codes.jsonl").read_text("utf-8")
        Path("codes.jsonl").write_text(content.replace('"label": "plum"', '"label": "pear"'))
        assert coder_at(server.url).code(["plum pie"]).labels.tolist() == ["plum"]
        assert server.n_calls == 2


def test_a_record_without_checksums_is_read():
    with serving(lambda *_: said("plum")) as server:
        coder_at(server.url).code(["plum pie"])
        lines = map(json.loads, Path("codes.jsonl").read_text("utf-8").splitlines())
        plain = [{name: v for name, v in line.items() if name != "checksum"} for line in lines]
        Path("codes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in plain))
        assert coder_at(server.url).code(["plum pie"]).labels.tolist() == ["plum"]
        assert server.n_calls == 1
