"""A collection in other engines: all of it, under names that do not hide one another."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from embedtopics.corpus import Corpus
from embedtopics.errors import InputError
from embedtopics.retrieval import SearchIndex, maintaining
from embedtopics.retrieval.stores import STORE_COLUMNS, MemoryStore, QdrantStore, export_to_store

FRAME = pd.DataFrame({
    "body": ["Cats purr.", "Dogs bark.", "Birds sing."], "id": ["1", "2", "é#0"],
    "start": [7, 8, 9], "start_": ["a", "b", "c"], "share": [0.5, 1.5, None],
    "gap": [None, None, None],
})  # fmt: skip
VECTORS = np.eye(3, 4, dtype=np.float32)


@pytest.fixture
def index():
    corpus = Corpus.from_frame(FRAME, text="body", id="id")
    made = SearchIndex.build(corpus, encoder=None, embeddings=VECTORS, languages=["en"])
    yield made
    assert made.remove(["2"]) == 1  # still whole


@pytest.mark.parametrize("kind", [MemoryStore, lambda *g, **n: QdrantStore("docs", *g, **n)],
                         ids=["memory", "qdrant"])  # fmt: skip
def test_a_store_gets_all_of_it(index, kind):
    known = {"start_": "text", "start__": "integer", "share": "real"}
    # "start" goes to the first name with underscores that no other column has.
    store = kind(4, columns={**known, **STORE_COLUMNS})
    assert index.export(store) == store.count() == 3
    assert index.decisions[-1].name == "renamed_columns"
    assert index.decisions[-1].value == ["start__"]
    for vector, row in zip(VECTORS, FRAME.to_dict("records"), strict=True):
        where = f"""start__ == {row["start"]} and start == 0 and text == '{row["body"]}' and
            start_ == '{row["start_"]}' and document_id == '{row["id"]}'"""
        (found,) = store.search([vector], 3, where)
        assert found[0] == (row["id"] + "#0",)
    store.close()


def test_a_store_without_the_column_is_refused(index):
    with pytest.raises(InputError, match="'start__' was not declared"):
        index.export(MemoryStore(4, columns={"start_": "text", "share": "real", **STORE_COLUMNS}))
    spans, vectors = np.array([[0, 1]]), np.ones((1, 4))
    with pytest.raises(InputError, match="document 'a': column 'y' was not named"):
        export_to_store([("a", "x", {"y": 1}, spans, vectors)], MemoryStore(4))


def test_a_file_of_all_segments_without_what_was_removed(index, tmp_path, monkeypatch):
    monkeypatch.setattr(maintaining, "PASSAGES_AT_ONCE", 2)
    more = FRAME.assign(id=["4", "5", "6"], share=[np.inf, -np.inf, 0.0])
    index.add(Corpus.from_frame(more, text="body", id="id"), embeddings=VECTORS)
    index.remove(["1", "5"])
    path = tmp_path / "a.parquet"
    assert index.export(path) == 4
    table = pq.read_table(path)
    assert table["id"].to_pylist() == ["2", "é#0", "4", "6"]
    assert table["text"].to_pylist() == ["Dogs bark.", "Birds sing.", "Cats purr.", "Birds sing."]
    assert table["start__"].to_pylist() == [8, 9, 7, 9]
    assert table["share"].to_pylist() == [1.5, None, np.inf, 0.0]
    np.testing.assert_allclose(np.array(table["vector"].to_pylist()), VECTORS[[1, 2, 0, 2]])
    columns = json.loads(table.schema.metadata[b"embedtopics"])["columns"]
    assert columns == {"start__": "integer", "start_": "text", "share": "real"}
    assert [d.value for d in index.decisions if d.name == "renamed_columns"] == [["start__"]]
    index.add(Corpus.from_frame(FRAME.assign(id=["2", "7", "8"]), text="body", id="id"),
              embeddings=VECTORS, update=True)  # fmt: skip
