"""Rows of a corpus appended to those of another: texts, ids, columns, dates and row labels."""

import numpy as np
import pandas as pd
import pytest

from embedtopics import Corpus
from embedtopics.corpus._corpus import as_corpus
from embedtopics.errors import InputError
from embedtopics.topics.growing._extend import join_corpora

FIRST = {"text": ["one", "two", None], "when": ["2024-01-01", "2024-01-02", None], "n": [1, 2, 3]}


@pytest.fixture
def dated():
    return Corpus(pd.DataFrame(FIRST), text="text", time="when")


def test_a_joint_corpus_is_that_of_all_texts():
    parts = ["one ", None, "two", ""], ["two", "three", "one", "  "]
    joint = join_corpora(*(as_corpus(part) for part in parts))
    whole = as_corpus(parts[0] + parts[1])
    assert joint.texts == whole.texts and joint.ids == whole.ids
    np.testing.assert_array_equal(joint.status, whole.status)
    np.testing.assert_array_equal(joint.hashes, whole.hashes)
    np.testing.assert_array_equal(joint.distinct().of_row, whole.distinct().of_row)
    assert joint.document_texts() == whole.document_texts()
    assert joint.index.equals(whole.index)


def test_columns_are_aligned_by_name_and_what_is_lacking_is_missing(dated):
    other = pd.DataFrame({"body": ["three"], "date": ["2025-05-01"], "n": [4], "more": ["x"]})
    before = dated.metadata.copy(deep=True)
    joint = join_corpora(dated, Corpus(other, text="body", time="date"))
    pd.testing.assert_frame_equal(dated.metadata, before)  # what was joined stays as it is
    assert list(joint.metadata.columns) == ["when", "n", "more"]
    assert joint.time_column == "when" and joint.text_column == "text"
    assert joint.time.tolist()[3] == pd.Timestamp("2025-05-01") and joint.time.isna()[2]
    assert joint.metadata["n"].tolist() == [1, 2, 3, 4]
    assert joint.metadata["n"].dtype == np.int64
    assert joint.metadata["more"].isna().tolist() == [True, True, True, False]
    noted = {note.name: note.value for note in joint.decisions}
    assert noted["time_renamed"] == "date" and noted["columns_missing"] == ["more"]
    assert noted["rows_added"] == 1


@pytest.mark.parametrize(
    ("column", "missing"),
    [
        ([1, 2], np.float64), ([True, False], object), ([1.5, 2.5], np.float64),
        (pd.to_datetime(["2024-01-01", "2024-01-02"]), "datetime64[us]"),
        (pd.Categorical(["a", "b"]), "category"), (["a", "b"], "str"),
        (pd.array([1, 2], dtype="Int64"), "Int64"),
    ],
)  # fmt: skip
def test_a_column_stays_of_its_kind_where_others_lack_it(column, missing):
    one = Corpus(pd.DataFrame({"text": ["a", "b"], "c": column}), text="text")
    for pair, place in (((one, as_corpus(["z"])), 2), ((as_corpus(["z"]), one), 0)):
        made = join_corpora(*pair).metadata["c"]
        assert made.dtype == missing
        assert made.isna().tolist() == [row == place for row in range(3)]


def test_a_column_of_strings_that_are_dates_is_read_as_dates(dated):
    other = Corpus(pd.DataFrame({"text": ["x"], "when": ["2025-01-01"]}), text="text")
    assert join_corpora(dated, other).time.tolist()[-1] == pd.Timestamp("2025-01-01")
    other = Corpus(pd.DataFrame({"text": ["x"], "when": ["soon"]}), text="text")
    with pytest.raises(InputError, match="added rows, column 'when'"):
        join_corpora(dated, other)


def test_dates_that_would_get_a_name_that_is_taken_are_refused(dated):
    frame = pd.DataFrame({"text": ["x"], "date": ["2025-01-01"], "when": ["never"]})
    with pytest.raises(InputError, match="rename one of them"):
        join_corpora(dated, Corpus(frame, text="text", time="date"))


def test_ids_that_are_taken_are_made_unique():
    one = Corpus(["a", "b"], ids=["x", "y"])
    two = Corpus(["c", "d", "e"], ids=["x", "x-2", "z"])
    joint = join_corpora(one, two)
    assert joint.ids == ("x", "y", "x-3", "x-2", "z")
    assert {note.name: note.value for note in joint.decisions}["ids_renamed"] == 1


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (None, None, [0, 1, 2, 3]),
        (["a", "b"], ["c", "d"], ["a", "b", "c", "d"]),
        (["a", "b"], None, ["a", "b", 0, 1]),
        (["a", "b"], ["b", "c"], ["a", "b", "b", "c"]),
    ],
)
def test_row_labels(first, second, expected):
    parts = [Corpus(pd.Series([name, name * 2], i)) for name, i in (("p", first), ("q", second))]
    assert join_corpora(*parts).index.tolist() == expected
