"""Columns of Arrow, with the corpus of a list of the same texts as the oracle."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from embedtopics import Corpus
from embedtopics.errors import InputError


def assert_same(found, expected):
    assert found.texts == expected.texts
    assert found.ids == expected.ids
    assert (found.hashes == expected.hashes).all()
    assert found.status.tolist() == expected.status.tolist()


def test_a_column_in_chunks_gives_the_corpus_of_a_list():
    cells = ["a", None, "e\u0301", "one  two", "\u200b", "NA"]
    chunks = [pa.array([]).cast(pa.string()), pa.array(["before", *cells[:2]]).slice(1), cells[2:]]
    assert_same(Corpus(pa.chunked_array(chunks)), Corpus(cells))


@pytest.mark.parametrize("limit", [None, 9])
def test_parquet_files(tmp_path, limit):
    texts = [None if i % 5 == 0 else "" if i % 7 == 0 else f"Text {i // 2} é" for i in range(40)]
    frame = pd.DataFrame({
        "text": texts, "id": [f"n{i}" for i in range(40)], "n": range(40),
        "kind": pd.Categorical([f"k{i % 3}" for i in range(40)]),
        "date": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(40), "D"),
    }, index=[f"row {i}" for i in range(40)])  # fmt: skip
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=7)
    found = Corpus(tmp_path / "a.parquet", id="id", time="date", group="kind", limit=limit)
    assert_same(found, Corpus(texts[:limit], ids=frame["id"][:limit]))
    others = frame.drop(columns=["text", "id"])[:limit]
    pd.testing.assert_frame_equal(found.metadata, others, check_freq=False)
    assert [note.name for note in found.decisions] == ["text_column"]


def test_bytes_that_are_no_text_are_refused(tmp_path):
    places = pa.py_buffer(np.array([0, 1, 3], np.int32))
    column = pa.Array.from_buffers(pa.string(), 2, [None, places, pa.py_buffer(b"a\xff\xfe")])
    pa.parquet.write_table(pa.table({"text": column}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet: is no Parquet file .*UTF8"):
        Corpus(tmp_path / "a.parquet")
