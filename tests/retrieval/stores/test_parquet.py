"""Parquet files of passages, read back with pyarrow and pandas."""

from __future__ import annotations

import json
import math
import tracemalloc
from datetime import date, datetime

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from embedtopics.errors import InputError
from embedtopics.retrieval.stores import export_parquet

COLUMNS = {"year": "integer", "text": "text", "day": "date", "share": "real", "open": "boolean"}


def document(name, n, metadata=None, seed=0, d=3):
    rng = np.random.default_rng(seed)
    text = f"{name} é\U0001f600 " * 4
    starts = np.arange(n)
    spans = np.column_stack([starts, starts + 4]).astype(np.int32)
    return name, text, metadata or {}, spans, rng.normal(size=(n, d)).astype(np.float32)


def test_what_is_written_is_read_back(tmp_path):
    documents = [
        document("a", 3, {"year": 2020, "text": "x", "day": date(2020, 1, 31)}, 1),
        document("none", 0, {"year": 3}),
        document("b", 2, {"share": 0.5, "open": True, "day": datetime(2021, 1, 1, 8, 30)}, 2),
        document("c", 1, {"year": None, "share": float("nan")}, 3),
    ]
    path = tmp_path / "passages.parquet"
    told = export_parquet(
        iter(documents), path, columns=COLUMNS, fingerprint="f" * 64, settings={"name": "é"},
        rows_per_group=2,
    )  # fmt: skip
    assert told.paths == (path,)
    assert {one.name: one.value for one in told.notes} == {
        "renamed_columns": ["text_"], "documents_without_passages": 1,
    }  # fmt: skip
    file = pq.ParquetFile(path)
    assert file.metadata.num_row_groups == 3 and file.metadata.num_rows == 6
    assert json.loads(file.schema_arrow.metadata[b"embedtopics"]) == {
        "format": 1, "fingerprint": "f" * 64, "n_dimensions": 3, "settings": {"name": "é"},
        "columns": {"year": "integer", "text_": "text", "day": "date", "share": "real",
                    "open": "boolean"},
    }  # fmt: skip
    types = {field.name: str(field.type) for field in file.schema_arrow}
    assert types == {
        "id": "string", "passage": "int32", "start": "int64", "stop": "int64", "text": "string",
        "vector": "fixed_size_list<element: float>[3]", "year": "int64", "text_": "string",
        "day": "timestamp[us]", "share": "double", "open": "bool",
    }  # fmt: skip
    table = file.read()
    expected = [
        (name, number, int(start), int(stop), text[start:stop], row)
        for name, text, _, spans, vectors in documents
        for number, ((start, stop), row) in enumerate(zip(spans, vectors, strict=True))
    ]
    for column, values in zip(table.column_names[:5], zip(*expected, strict=True), strict=False):
        assert table[column].to_pylist() == list(values)
    vectors = np.stack([row for *_, row in expected])
    np.testing.assert_array_equal(np.array(table["vector"].to_pylist(), np.float32), vectors)
    assert table["year"].to_pylist() == [2020] * 3 + [None] * 3
    assert table["text_"].to_pylist() == ["x"] * 3 + [None] * 3
    assert table["day"].to_pylist() == [datetime(2020, 1, 31)] * 3 + [
        datetime(2021, 1, 1, 8, 30)] * 2 + [None]  # fmt: skip
    assert table["share"].to_pylist() == [None] * 3 + [0.5] * 2 + [None]
    assert table["open"].to_pylist() == [None] * 3 + [True] * 2 + [None]
    assert len(pd.read_parquet(path)) == 6


def test_infinite_numbers_are_kept(tmp_path):
    documents = [document(str(x), 1, {"share": x}) for x in (math.inf, -math.inf)]
    export_parquet(documents, tmp_path / "a.parquet", columns=COLUMNS)
    assert pq.read_table(tmp_path / "a.parquet")["share"].to_pylist() == [math.inf, -math.inf]


def test_ids_have_one_type(tmp_path):
    path = tmp_path / "a.parquet"
    export_parquet([document(np.int64(7), 1), document(8, 1)], path)
    assert pq.read_table(path)["id"].to_pylist() == [7, 8]
    with pytest.raises(InputError, match="document 'b': expected an id that is integer"):
        export_parquet([document(7, 1), document("b", 1)], path)
    assert pq.read_table(path)["id"].to_pylist() == [7, 8]  # as it was
    export_parquet([document(7, 1), document("b", 1)], path, id_type="text")
    assert pq.read_table(path)["id"].to_pylist() == ["7", "b"]


def test_documents_are_taken_one_at_a_time(tmp_path):
    def many():
        for number in range(400):
            yield document(number, 5, seed=number, d=500)

    tracemalloc.start()
    export_parquet(many(), tmp_path / "a.parquet", rows_per_group=50)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000 < (tmp_path / "a.parquet").stat().st_size


def test_what_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "a.parquet"
    export_parquet([document("a", 1)], path)
    before = path.read_bytes()

    def broken():
        yield document("b", 12)
        raise RuntimeError("the disk of the collection")

    with pytest.raises(RuntimeError, match="of the collection"):
        export_parquet(broken(), path, rows_per_group=4)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["a.parquet"]


SPANS, VECTOR = np.array([[0, 1]]), np.ones((1, 2))


@pytest.mark.parametrize(
    ("documents", "named", "message"),
    [
        ([], {}, "expected passages"),
        ([document("a", 0)], {}, "expected passages"),
        ([("a", "x", {}, [[0, 2]], VECTOR)], {}, "'a': a span ends at 2, behind its 1"),
        ([("a", "x", {}, [[1, 0]], VECTOR)], {}, "'a': expected spans"),
        ([("a", "x", {}, [[-1, 0]], VECTOR)], {}, "'a': expected spans"),
        ([("a", "x", {}, [[0.0, 1.0]], VECTOR)], {}, "'a': expected spans"),
        ([("a", "x", {}, SPANS, np.ones((2, 2)))], {}, r"'a': expected vectors of shape \(1, 2\)"),
        ([("a", "x", {}, SPANS, VECTOR), ("b", "x", {}, SPANS, np.ones((1, 3)))], {},
         r"'b': expected vectors of shape \(1, 2\); got \(1, 3\)"),
        ([("a", "x", {}, [], VECTOR)], {}, r"'a': expected no vectors.* got shape \(1, 2\)"),
        ([("a", "x", {}, SPANS, VECTOR * np.nan)], {}, "'a': expected finite"),
        ([("a", "\ud800", {}, SPANS, VECTOR)], {}, "column 'text' cannot be written"),
        ([("a", "x", {"y": 1}, SPANS, VECTOR)], {}, "'y' was not declared"),
        ([("a", "x", {"y": "1"}, SPANS, VECTOR)], {"columns": {"y": "integer"}}, "got '1'"),
        ([("a", "x", {}, SPANS, VECTOR)], {"columns": {"y": "int"}}, "one of the kinds"),
        ([("a", "x", {}, SPANS, VECTOR)], {"id_type": "int"}, "id_type must be"),
        ([("a", "x", {}, SPANS, VECTOR)], {"rows_per_group": 0}, "rows_per_group"),
        ([("a", "x", {}, SPANS, VECTOR)], {"settings": {"a": object()}}, "JSON"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_refused(tmp_path, documents, named, message):
    with pytest.raises(InputError, match=message):
        export_parquet(documents, tmp_path / "a.parquet", **named)
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match="its folder does not exist"):
        export_parquet([document("a", 1)], tmp_path / "absent" / "a.parquet")
