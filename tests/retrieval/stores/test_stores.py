"""Stores held against one another: Qdrant's local store beside vectors compared one by one."""

from __future__ import annotations

import gc
import http.server
import math
import sys
import threading
import warnings
from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from qdrant_client.local.payload_filters import check_filter

from embedtopics.errors import InputError, MissingExtraError
from embedtopics.retrieval.filters import parse_filter, passes
from embedtopics.retrieval.stores import MemoryStore, QdrantStore, VectorStore
from embedtopics.retrieval.stores import qdrant as module
from embedtopics.retrieval.stores.checking import checked_payload
from embedtopics.retrieval.stores.qdrant_filters import qdrant_filter
from tests.retrieval.drawn_filters import COLUMNS, filters, rows


@pytest.fixture(params=[MemoryStore, lambda *given, **named: QdrantStore("docs", *given, **named)],
                ids=["memory", "qdrant"])  # fmt: skip
def make(request):
    made = []

    def of(*given, **named):
        made.append(request.param(*given, **named))
        return made[-1]

    yield of
    for store in made:
        store.close()


def found(store, query, k=10, where=None):
    (one,) = store.search([query], k, where)
    return list(one[0])


def test_nearest_are_those_of_brute_force(make, monkeypatch):
    monkeypatch.setattr(module, "QUERIES_AT_ONCE", 4)
    rng = np.random.default_rng(0)
    vectors, queries = rng.normal(size=(100, 8)), rng.normal(size=(9, 8))
    for similarity in ("cosine", "dot"):
        store = make(8, similarity=similarity)
        store.upsert(range(100), vectors)
        assert store.count() == 100 and isinstance(store, VectorStore)
        scaled = vectors, queries
        if similarity == "cosine":
            scaled = tuple(m / np.linalg.norm(m, axis=1, keepdims=True) for m in scaled)
        near = scaled[1] @ scaled[0].T
        answers = store.search(queries, 5)
        assert len(answers) == 9
        for row, (ids, similarities) in zip(near, answers, strict=True):
            expected = np.argsort(-row)[:5]
            assert list(ids) == expected.tolist()
            np.testing.assert_allclose(similarities, row[expected], atol=1e-5)
            assert similarities.dtype == np.float32


def test_ids_keep_their_types_and_are_replaced_and_removed(make):
    store = make(2)
    ids = [1, "1", 1.5, "é \U0001f600", -(2**62), np.int64(7), "text:1"]
    angles = np.linspace(0, 1, 7)
    store.upsert(ids, np.column_stack([np.cos(angles), np.sin(angles)]))
    again = found(store, [1, 0])
    assert again == [1, "1", 1.5, "é \U0001f600", -(2**62), 7, "text:1"]
    assert [type(one) for one in again] == [int, str, float, str, int, int, str]
    store.upsert(["1"], [[0, 1]])
    assert found(store, [1, 0])[-1] == "1" and store.count() == 7
    store.remove([1, "absent"])
    assert found(store, [1, 0], 2) == [1.5, "é \U0001f600"] and store.count() == 6
    assert store.search(np.empty((0, 2)), 3) == []
    store.remove([one for one in ids if one != 1])
    assert found(store, [1, 0]) == [] and store.count() == 0


def test_payloads_of_all_types_are_found(make):
    store = make(1, columns=COLUMNS)
    payloads = [
        {"place": "a", "n": np.int64(3), "share of votes": 1, "open": np.bool_(True),
         "day": date(2020, 1, 31)},
        {"place": None, "n": float("nan"), "day": pd.NaT},
        {"n": 3.0, "day": pd.Timestamp("2020-01-31T12:00+01:00"), "open": False},
        {"day": datetime(2020, 2, 1), "share of votes": np.float32(0.5)},
        {"day": np.datetime64("2020-01-30"), "place": ""},
    ]  # fmt: skip
    store.upsert([0, 1, 2, 3, 4], [[1.0]] * 5, payloads)
    expected = {
        "n == 3": {0, 2}, "n != 3": {1, 3, 4}, "open == true": {0},
        "not open == true": {1, 2, 3, 4},
        "day == '2020-01-31'": {0, 2}, "day == '2020-01-31T11:00'": {2}, "day is null": {1},
        "day > '2020-01-31'": {3}, "day < '2020-01-31'": {4}, "day <= '9999'": {0, 2, 3, 4},
        "day > '9999'": set(), '"share of votes" == 1': {0}, '"share of votes" in (1, 0.5)': {0, 3},
        "place == ''": {4}, "place startswith ''": {0, 4}, "place is null": {1, 2, 3},
        "place contains 'a' or open == false": {0, 2},
    }  # fmt: skip
    for text, ids in expected.items():
        assert set(found(store, [1.0], where=text)) == ids, text
    assert set(found(store, [1.0], where={"n": [3, None]})) == {0, 1, 2, 3, 4}


@settings(max_examples=80, deadline=None)
@given(rows, filters)
def test_qdrant_answers_filters_as_they_are_meant(records, drawn):
    text, _ = drawn
    where = parse_filter(text, COLUMNS)
    expected = [passes(where, record) for record in records]
    payloads = [checked_payload(record, COLUMNS, n) for n, record in enumerate(records)]
    try:
        asked = qdrant_filter(where)
    except InputError as error:
        assert "Qdrant cannot be asked for texts" in str(error) or "2**53" in str(error)
        assert any(word in text for word in ("place <", "place >", "ENDSWITH", "900", "922"))
    else:
        found = [check_filter(asked, {"metadata": one}, 0, {}) for one in payloads]
        assert found == expected
    memory = MemoryStore(1, columns=COLUMNS)
    memory.upsert(range(len(records)), [[1.0]] * len(records), records)
    (answer,) = memory.search([[1.0]], len(records), where)
    assert list(answer[0]) == [number for number, passed in enumerate(expected) if passed]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.upsert([1], [[1.0]]), r"shape \(1, 2\); got \(1, 1\); encode with"),
        (lambda s: s.upsert([1, 2], [[1.0, 2.0]]), r"shape \(2, 2\); got \(1, 2\)"),
        (lambda s: s.upsert([1], [[1.0, math.nan]]), "row 0 is not"),
        (lambda s: s.upsert([1], [["a", "b"]]), "vectors of numbers"),
        (lambda s: s.upsert([1, 1], np.eye(2)), "1 is given twice"),
        (lambda s: s.upsert([None], [[1, 2]]), "texts or numbers; got None"),
        (lambda s: s.upsert([True], [[1, 2]]), "texts or numbers; got True"),
        (lambda s: s.upsert("ab", np.eye(2)), "list of ids"),
        (lambda s: s.upsert(["\ud800"], [[1, 2]]), "half characters"),
        (lambda s: s.upsert([1], [[1, 2]], []), "metadata of 1 documents; got 0"),
        (lambda s: s.upsert([1], [[1, 2]], [{"n": "3"}]), "integer in column 'n'; got '3'"),
        (lambda s: s.upsert([1], [[1, 2]], [{"n": 2.5}]), "integer in column 'n'; got 2.5"),
        (lambda s: s.upsert([1], [[1, 2]], [{"n": 2**63}]), "integer in column 'n'"),
        (lambda s: s.upsert([1], [[1, 2]], [{"n": math.inf}]), "integer in column 'n'"),
        (lambda s: s.upsert([1], [[1, 2]], [{"day": "31.1.20"}]), "date in column 'day'"),
        (lambda s: s.upsert([1], [[1, 2]], [{"open": 1}]), "boolean in column 'open'"),
        (lambda s: s.upsert([1], [[1, 2]], [{"place": "\ud800"}]), "text in column 'place'"),
        (lambda s: s.upsert([1], [[1, 2]], [{"m": 1}]), "column 'm' was not declared"),
        (lambda s: s.search([[1.0]], 1), r"shape \(n, 2\); got \(1, 1\)"),
        (lambda s: s.search([[1, 2]], 0), "k must be"),
        (lambda s: s.search([[1, 2]], 1, "m == 1"), "no column 'm'"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_and_changes_nothing(make, call, message):
    store = make(2, columns=COLUMNS)
    store.upsert([0], [[1, 0]])
    with pytest.raises(InputError, match=message):
        call(store)
    assert found(store, [1, 0]) == [0]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("place < 'm'", "for texts with <"),
        ("place endswith 'm'", "for texts with endswith"),
        ("n >= 9007199254740993", "float64 and would round 9007199254740993"),
    ],
)
def test_what_qdrant_cannot_answer_is_refused(where, message):
    with QdrantStore("docs", 1, columns=COLUMNS) as store:
        with pytest.raises(InputError, match=message):
            store.search([[1.0]], 1, where)


def test_a_folder_keeps_what_was_written_and_is_opened_knowingly(tmp_path):
    folder = tmp_path / "store"
    with QdrantStore("docs", 2, path=folder, columns=COLUMNS) as store:
        store.upsert(["a", 2], np.eye(2), [{"n": 1}, {"day": date(2020, 1, 31)}])
        with warnings.catch_warnings():
            # The client leaves its file of locks open when it finds it locked.
            warnings.simplefilter("ignore", ResourceWarning)
            with pytest.raises(InputError, match=r"already accessed by another instance"):
                QdrantStore("docs", 2, path=folder, trusted=True)
            gc.collect()
    with pytest.raises(InputError, match=r"can run code; .* trusted=True"):
        QdrantStore("docs", 2, path=folder)
    with QdrantStore("docs", 2, path=folder, columns=COLUMNS, trusted=True) as store:
        assert found(store, [1, 0]) == ["a", 2]
        assert found(store, [1, 0], where="day == '2020'") == [2]
        (point,) = store._client.scroll("docs", limit=1, with_payload=True)[0]
        assert set(point.payload) == {"id", "id_type", "metadata"}
        assert point.payload["metadata"] in ({"n": 1}, {"day": "2020-01-31T00:00:00"})
    for named in ({"n_dimensions": 3}, {"n_dimensions": 2, "similarity": "dot"}):
        with pytest.raises(InputError, match="holds vectors of 2 dimensions compared by Cosine"):
            QdrantStore("docs", path=folder, trusted=True, **named)
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(InputError, match="is a file"):
        QdrantStore("docs", 2, path=file)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"similarity": "l2"}, "cosine or dot; got 'l2'"),
        ({"n_dimensions": 0}, "n_dimensions must be"),
        ({"path": "a", "url": "http://b"}, "got both"),
        ({"name": ".."}, "a collection's name"),
        ({"columns": {'a"b': "text"}}, "double quote"),
        ({"columns": {"a": "int"}}, "one of the kinds"),
    ],
)
def test_stores_that_cannot_be_made(named, message):
    with pytest.raises(InputError, match=message):
        QdrantStore(**{"name": "docs", "n_dimensions": 2} | named)


def test_a_server_that_is_not_there_is_named():
    with pytest.raises(InputError, match=r"http://127.0.0.1:9 cannot be reached .*; start it"):
        QdrantStore("docs", 2, url="http://127.0.0.1:9", timeout=2)


def test_a_server_that_refuses_is_named():
    class Refusing(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = b'{"status": {"error": "Must provide\\nan API key"}, "time": 0}'
            self.send_response(401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *given):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        with pytest.raises(InputError, match=r"status 401 \(Must provide an API key\); check"):
            QdrantStore("docs", 2, url=url)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_without_the_client_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    with pytest.raises(MissingExtraError, match=r'pip install "embedtopics\[qdrant\]"'):
        QdrantStore("docs", 2)
