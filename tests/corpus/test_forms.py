"""Tables of other forms: mappings, lists of mappings, and columns whose names are numbers."""

import numpy as np
import pandas as pd
import pytest

from embedtopics import Corpus
from embedtopics.errors import InputError
from embedtopics.evaluation._files import read_qrels
from embedtopics.training import read_examples
from tests.factories import refuses


def test_single_values_are_a_table_of_one_row():
    corpus = Corpus({"text": "one text", "year": 2021, "score": np.array(0.5)})

    assert corpus.texts == ("one text",)
    assert corpus.metadata.iloc[0].tolist() == [2021, 0.5]


@pytest.mark.parametrize(
    ("data", "parameter", "message"),
    [
        ({"text": ["a b", "c d"], "year": 2021}, "data", "2 values of 'text' and 1 of 'year'"),
        ({"text": ["a b"], "year": []}, "data", "1 values of 'text' and 0 of 'year'"),
        ({"text": {0: "a b", 1: "c d"}}, "column 'text'", "a list with a value for each row"),
        ({"text": {"a b", "c d"}}, "column 'text'", "a list with a value for each row"),
    ],
)
def test_columns_that_are_no_lists_of_one_length_are_refused(data, parameter, message):
    with refuses(parameter) as caught:
        Corpus(data)

    assert message in str(caught.value)


@pytest.mark.parametrize("other", ["a text", None, 5, ["text"]])
def test_a_list_of_mappings_and_something_else_is_refused_with_its_row(other):
    with refuses("data", row=2):
        Corpus([{"text": "a b"}, {"text": "c d"}, other])


def test_a_text_before_mappings_is_refused():
    with pytest.raises(InputError, match="row 1"):
        Corpus(["a text", {"text": "c d"}])


@pytest.mark.parametrize("metadata", [5, [5], "year"])
def test_metadata_of_no_form_is_refused(metadata):
    with pytest.raises(InputError):
        Corpus(["a text"], metadata=metadata)


def test_metadata_of_another_length_is_refused():
    with refuses("metadata"):
        Corpus(["a text", "another"], metadata={"year": 2021})


@pytest.mark.parametrize("ids", [5, "ab", ["a"]])
def test_ids_of_no_form_are_refused(ids):
    with refuses("ids"):
        Corpus(["a text", "another"], ids=ids)


def test_series_of_a_mapping_are_aligned():
    columns = {
        "text": pd.Series(["a b", "c d"], index=["x", "y"]),
        "year": pd.Series([2022, 2021], index=["y", "x"]),
    }

    assert Corpus(columns).metadata["year"].tolist() == [2021, 2022]


def test_columns_whose_names_are_numbers_are_joined():
    frame = pd.DataFrame({0: ["a title", "b title"], 1: ["a body", None], 2: [2021, 2022]})

    corpus = Corpus(frame, text=[0, 1], time=2)

    assert corpus.texts == ("a title\n\na body", "b title")
    assert corpus.time.dt.year.tolist() == [2021, 2022]
    assert corpus.text_column == [0, 1]


def test_lone_surrogates_in_ids_are_reported():
    corpus = Corpus({"text": ["a b", "c d"], "key": ["x\ud800", "y"]}, text="text", id="key")

    assert corpus.ids == ("x?", "y")
    assert [(note.name, note.value) for note in corpus.decisions] == [("replaced_characters", 1)]


def test_ids_that_differ_by_lone_surrogates_alone_are_refused_as_they_are_written():
    with refuses("ids") as caught:
        Corpus(["a text", "another"], ids=["x\ud800", "x?"])

    assert r"'x\ud800' and 'x?'" in str(caught.value)


def test_a_bad_cell_of_a_text_file_is_named_by_its_line(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text('sentence1,sentence2,score\n"two\nlines",b,1\nc,d,low\n')

    with refuses("label") as caught:
        read_examples(path, "graded")

    assert "'low' in pairs.csv, column 'score', line 4" in str(caught.value)


def test_a_bad_cell_of_another_file_is_named_by_its_row(tmp_path):
    path = tmp_path / "pairs.parquet"
    frame = pd.DataFrame({"sentence1": ["a", "b"], "sentence2": ["c", "d"], "score": ["1", "low"]})
    frame.to_parquet(path)

    with refuses("label") as caught:
        read_examples(path, "graded")

    assert "row 1" in str(caught.value)


def test_a_bad_line_of_judgements_is_named(tmp_path):
    path = tmp_path / "qrels.tsv"
    path.write_text("q1\td1\t1\n\nq1\td2\thigh\n")

    with refuses("qrels.tsv", line=3):
        read_qrels(path)
