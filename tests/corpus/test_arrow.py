"""Columns of Arrow, with the corpus of a list of the same texts as the oracle."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.corpus import Corpus
from embedtopics.errors import InputError

CELLS = st.one_of(
    st.none(),
    st.text(max_size=12),
    st.sampled_from(["", " ", "\u200b", "a", "a ", "e\u0301", "é", "\x00", "one  two", "😀", "NA"]),
)
COLUMNS = st.lists(CELLS, min_size=1, max_size=30)
KINDS = [pa.string(), pa.large_string()]


def in_chunks(cells, kind, step):
    """Return a column of slices of longer arrays, an empty one among them."""
    arrays = [
        pa.array([None, "before", *cells[i : i + step]], kind).slice(2)
        for i in range(0, len(cells), step)
    ]
    return pa.chunked_array([arrays[0][:0], *arrays], kind)


def assert_same(found, expected):
    assert found.texts == expected.texts
    assert found.ids == expected.ids
    assert (found.hashes == expected.hashes).all()
    assert found.status.tolist() == expected.status.tolist()


@given(COLUMNS, st.sampled_from(KINDS), st.integers(1, 9))
def test_a_column_of_arrow_gives_the_corpus_of_a_list(cells, kind, step):
    assert_same(Corpus(in_chunks(cells, kind, step)), Corpus(cells))


def test_what_lies_behind_a_missing_text_is_not_read():
    buffers = [pa.py_buffer(b"\x05"), pa.py_buffer(np.array([0, 1, 7, 8], np.int32))]
    column = pa.Array.from_buffers(pa.string(), 3, [*buffers, pa.py_buffer(b"ahidden!")])
    assert Corpus(column).texts == ("a", "", "!")
    assert Corpus(column).status.tolist() == [0, 2, 0]


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
    assert [note.name for note in found.notes] == ["text_column"]


def test_bytes_that_are_no_text_are_refused(tmp_path):
    places = pa.py_buffer(np.array([0, 1, 3], np.int32))
    column = pa.Array.from_buffers(pa.string(), 2, [None, places, pa.py_buffer(b"a\xff\xfe")])
    pa.parquet.write_table(pa.table({"text": column}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet: is no Parquet file .*UTF8"):
        Corpus.from_file(tmp_path / "a.parquet")
