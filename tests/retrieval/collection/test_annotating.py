"""Metadata that come later are there for filters, and whole."""

from __future__ import annotations

import sqlite3

import numpy as np
import pandas as pd
import pytest

from embedtopics.retrieval.storage._checks import check
from embedtopics.retrieval.storage._collection import Collection
from tests.factories import refuses
from tests.retrieval.collection.fake import add


def nothing(folder, documents, spans, sources):
    pass


@pytest.fixture
def collection(tmp_path):
    made = Collection.create(tmp_path / "c", {"encoder": "x"})
    with made.writing() as writer:
        frame = pd.DataFrame({"year": [2001, 2002, None]})
        add(writer, ["a", "b", "c"], ["A", "B", "C"], frame, nothing)
    return made


def test_annotations_are_read_filtered_and_replaced(collection):
    numbers = collection.numbers(["c", "a"])
    frame = pd.DataFrame({"topic": [3, -1], "name": ["x", None]})
    before = collection.version()
    with collection.writing() as writer:
        writer.annotate([numbers["c"], numbers["a"]], frame, {"topics": {"n": 2}})
    assert collection.version() == before + 1
    assert [document.metadata for document in collection.documents([1, 2, 3])] == [
        {"year": 2001, "topic": -1, "name": None},
        {"year": 2002, "topic": None, "name": None},
        {"year": None, "topic": 3, "name": "x"},
    ]
    assert collection.candidates(f"{collection.column_sql('topic')} = ?", [3]).tolist() == [3]
    assert collection.settings() == {"encoder": "x", "topics": {"n": 2}}
    assert check(collection.folder) == []
    with collection.writing() as writer:
        writer.annotate([2], pd.DataFrame({"topic": [7], "name": ["y"]}), {"topics": {"n": 1}})
    assert [document.metadata["topic"] for document in collection.documents([1, 2, 3])] == [
        None, 7, None,
    ]  # fmt: skip
    assert collection.settings()["topics"] == {"n": 1} and check(collection.folder) == []


def test_what_does_not_fit_changes_nothing(collection):
    before = collection.version(), collection.columns(), collection.documents([1, 2, 3])
    with collection.writing() as writer, refuses("column 'year' of the metadata", row=0):
        writer.annotate([1], pd.DataFrame({"year": ["old"]}), {"topics": {}})
    assert (collection.version(), collection.columns(), collection.documents([1, 2, 3])) == before
    assert "topics" not in collection.settings() and check(collection.folder) == []


def test_damage_stays_to_be_seen(collection):
    connection = sqlite3.connect(collection.folder / "catalog.sqlite")
    connection.execute("UPDATE documents SET text = 'X' WHERE number = 2")
    connection.commit()
    connection.close()
    for frame in (pd.DataFrame({"topic": [1, 2]}), pd.DataFrame(index=[0, 1])):
        with collection.writing() as writer:
            writer.annotate([np.int64(2), 3], frame, {})
    assert [document.metadata["topic"] for document in collection.documents([1, 2, 3])] == [
        None, 1, 2,
    ]  # fmt: skip
    (problem,) = check(collection.folder)
    assert problem.what == "the document 'b' differs from its checksum"


def test_later_documents_may_follow(collection):
    with collection.writing() as writer:
        writer.annotate([1], pd.DataFrame({"x": [np.float64(0.5)]}), {})
        add(writer, ["d"], ["D"], make=nothing)
    assert collection.documents([4])[0].metadata == {"year": None, "x": None}
    assert check(collection.folder) == []
