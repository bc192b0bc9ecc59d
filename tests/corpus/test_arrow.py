"""Texts that stay in Arrow, with the corpus of a list of the same texts as the oracle."""

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.corpus import Corpus
from embedtopics.corpus._corpus import join_corpora
from embedtopics.corpus._texts import ArrowTexts
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
    assert found.texts == expected.texts and expected.texts == found.texts
    assert found.ids == expected.ids
    assert (found.hashes == expected.hashes).all()
    assert found.status.tolist() == expected.status.tolist()
    assert list(found.document_texts()) == expected.document_texts()
    for name, array in vars(expected.distinct()).items():
        assert np.array_equal(getattr(found.distinct(), name), array)


@given(COLUMNS, st.sampled_from(KINDS), st.integers(1, 9), st.data())
def test_a_column_of_arrow_gives_the_corpus_of_a_list(cells, kind, step, data):
    expected, found = Corpus(cells), Corpus(in_chunks(cells, kind, step))
    assert isinstance(found.texts, ArrowTexts)
    assert_same(found, expected)
    rows = data.draw(st.permutations(range(len(cells))))[: data.draw(st.integers(0, len(cells)))]
    part, of_list = found.take(rows), expected.take(rows)
    assert isinstance(part.texts, ArrowTexts)
    assert_same(part, of_list)
    assert_same(pickle.loads(pickle.dumps(part)), of_list)
    assert_same(part[1:], of_list[1:])
    for first, second in ((found, part), (part, expected), (expected, part)):
        both = Corpus(list(first.texts)), Corpus(list(second.texts))
        joined = join_corpora(first, second)
        assert joined.texts == (*both[0].texts, *both[1].texts)
        assert len(set(joined.ids)) == len(joined)


@given(COLUMNS, st.data())
def test_texts_are_read_like_a_tuple(cells, data):
    texts = tuple(cell or "" for cell in cells)
    found = ArrowTexts(in_chunks(cells, pa.string(), 4))
    assert (tuple(found), len(found)) == (texts, len(texts))
    span = slice(*(data.draw(st.none() | st.integers(-9, 9)) for _ in range(2)),
                 data.draw(st.sampled_from([None, 1, 2, -1, -3])))  # fmt: skip
    assert tuple(found[span]) == texts[span]
    assert tuple(found[span][1:]) == texts[span][1:]
    place = data.draw(st.integers(-len(texts), len(texts) - 1))
    assert found[place] == found[np.int64(place)] == texts[place]
    assert found != (*texts, "more") and found != (*texts[:-1], texts[-1] + "x") and found != "a"
    for outside in (len(texts), -len(texts) - 1):
        with pytest.raises(IndexError):
            found[outside]


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
    assert isinstance(found.texts, ArrowTexts) and isinstance(found.ids, ArrowTexts)
    others = frame.drop(columns=["text", "id"])[:limit]
    pd.testing.assert_frame_equal(found.metadata, others, check_freq=False)
    assert [note.name for note in found.notes] == ["text_column"]


def test_bytes_that_are_no_text_are_refused(tmp_path):
    places = pa.py_buffer(np.array([0, 1, 3], np.int32))
    column = pa.Array.from_buffers(pa.string(), 2, [None, places, pa.py_buffer(b"a\xff\xfe")])
    pa.parquet.write_table(pa.table({"text": column}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet: is no Parquet file .*UTF8"):
        Corpus.from_file(tmp_path / "a.parquet")
