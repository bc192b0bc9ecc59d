"""The corpus: every kind of input, columns named or guessed, rows aligned."""

import re
from datetime import date

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from embedtopics import Corpus
from embedtopics.corpus._corpus import as_corpus, require_text
from embedtopics.errors import InputError
from embedtopics.topics._inspection import guess_columns
from tests.factories import refuses

datasets, pl = pytest.importorskip("datasets"), pytest.importorskip("polars")
TEXTS = ["A first text.", None, "Another  one."]


def note_of(corpus, name):
    return next(note for note in corpus.decisions if note.name == name)


@pytest.mark.parametrize(
    "texts",
    [
        TEXTS,
        tuple(TEXTS),
        np.array(TEXTS, dtype=object),
        pd.Series(TEXTS),
        pd.Series(TEXTS, dtype=object),
        pd.Series(TEXTS, dtype="string"),
        pd.Categorical(TEXTS),
        pd.Index(TEXTS, dtype=object),
        pl.Series(TEXTS),
        pa.array(TEXTS),
        pa.chunked_array([TEXTS]),
        datasets.Dataset.from_dict({"t": TEXTS})["t"],
    ],
    ids=lambda texts: f"{type(texts).__module__}.{type(texts).__name__}",
)
def test_lists_and_columns_of_any_library(texts):
    corpus = as_corpus(texts)
    assert corpus.texts == ("A first text.", "", "Another  one.")
    assert corpus.status.tolist() == [0, 2, 0]
    assert all(type(text) is str for text in corpus.texts)
    assert list(corpus.index) == [0, 1, 2]
    assert corpus.metadata.shape == (3, 0)


COLUMNS = {"text": TEXTS, "n": [3, 2, 1], "when": ["2021-01-02", None, "2021-02-03"]}


@pytest.mark.parametrize(
    "frame",
    [
        COLUMNS,
        pd.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS),
        pa.table(COLUMNS),
        pa.table(COLUMNS).to_batches()[0],
        datasets.Dataset.from_dict(COLUMNS),
    ],
    ids=lambda frame: f"{type(frame).__module__}.{type(frame).__name__}",
)
def test_frames_of_any_library(frame):
    assert as_corpus(frame).texts == ("A first text.", "", "Another  one.")
    corpus = Corpus(frame, text="text", time="when", group="n")
    assert corpus.texts == ("A first text.", "", "Another  one.")
    assert list(corpus.metadata.columns) == ["n", "when"]
    assert corpus.group.tolist() == [3, 2, 1]
    expected = pd.Series(pd.to_datetime(COLUMNS["when"]).astype("datetime64[us]"), name="when")
    pd.testing.assert_series_equal(corpus.time, expected)
    assert note_of(corpus, "dates_missing").value == 1


def test_the_index_of_the_caller_comes_back_and_nothing_is_mutated():
    index = pd.MultiIndex.from_tuples([("x", 2), ("x", 2), ("y", 1)], names=["a", "b"])
    texts, marks = ["t1", "t\ud800", "t3"], ["\udc00", 1, 2]
    columns = {"text": texts, "id": [7, 8, 9], "day": ["2021"] * 3, "m": marks}
    frame = pd.DataFrame(columns, index=index, dtype=object)
    before = frame.copy(deep=True)
    corpus = Corpus(frame, text="text", id="id", time="day", group="m")
    assert corpus.index.equals(index)
    assert corpus.time.index.equals(index) and as_corpus(frame["text"]).index.equals(index)
    assert corpus.group.tolist() == ["\ufffd", 1, 2]
    assert corpus.ids == ("7", "8", "9")
    assert corpus.texts[1] == "t\ufffd"
    assert note_of(corpus, "replaced_characters").value == 2
    pd.testing.assert_frame_equal(frame, before)
    corpus.metadata["m"] = "changed"
    pd.testing.assert_frame_equal(frame, before)


def test_ids_are_strings_as_given():
    assert Corpus(["a", "b"], ids=["007", " 8 "]).ids == ("007", "8")
    frame = pd.DataFrame({"text": ["a", "b"], "id": [1.0, 2.0]})
    assert Corpus(frame, id="id").ids == ("1", "2")
    assert "id" not in Corpus(frame, id="id").metadata
    assert "id" in Corpus(frame).metadata


def test_take():
    frame = pd.DataFrame(
        {"text": ["a", "b", None, "b"], "year": [2001, 2002, 2003, 2004]}, index=list("wxyz")
    )
    corpus = Corpus(frame, time="year")
    taken = corpus.take([3, 0, 2])
    assert taken.texts == ("b", "a", "")
    assert taken.ids == (corpus.ids[3], corpus.ids[0], corpus.ids[2])
    assert taken.status.tolist() == [0, 0, 2]
    assert list(taken.index) == ["z", "w", "y"]
    assert taken.time.dt.year.tolist() == [2004, 2001, 2003]
    assert taken.hashes.tolist() == corpus.hashes[[3, 0, 2]].tolist()
    assert taken.document_texts() == as_corpus(["a", "b"]).document_texts()
    assert note_of(taken, "rows_taken").value == 3
    assert len(corpus.take([])) == 0
    with refuses("rows"):
        corpus.take([0, 0])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one text", r"got one str; give a list: \[text\]"),
        ("a text of {words}", r"got one str; give a list: \[text\]"),
        (["a", 3], "row 1 holds a int"),
        (["a", None, {"text": "b"}], "row 2 holds a dict"),
        (np.array([["a"], ["b"]]), "row 0 holds a list"),
        ((text for text in ["a"]), r"got a generator; use list\(\.\.\.\)"),
        (None, "got a NoneType"),
        (pl.LazyFrame({"text": ["a"]}), "got a LazyFrame"),
        (pd.DataFrame([["a", "b"]], columns=["t", "t"]), "got 't' more than once"),
        (pd.DataFrame({"n": [1, 2]}), "no column holds strings among 'n'"),
    ],
)
def test_what_is_no_collection_of_texts(texts, message):
    with pytest.raises(InputError, match=message) as caught:
        as_corpus(texts)
    assert "\n" not in str(caught.value)


def test_an_all_empty_corpus_may_exist_but_has_no_text():
    corpus = Corpus({"body": [None, " ", ""]}, text="body")
    with pytest.raises(InputError, match="in column 'body'"):
        require_text(corpus)
    with pytest.raises(InputError, match="of 0 rows"):
        require_text(as_corpus([]))
    require_text(as_corpus([None, "a"]))


def test_the_constructor_takes_what_users_have(tmp_path):
    frame = pd.DataFrame({"body": TEXTS, "source": ["press", "press", "forum"]}, index=[7, 8, 9])
    path = tmp_path / "texts.csv"
    frame.to_csv(path, index=False)
    forms = [
        Corpus(TEXTS, metadata=frame[["source"]], group="source"),
        Corpus(frame, text="body", group="source"),
        Corpus(frame.to_dict("list"), text="body", group="source"),
        Corpus(frame.to_dict("records"), text="body", group="source"),
        Corpus(str(path), text="body", group="source"),
        Corpus(path, "body", group="source"),
    ]
    for corpus in forms:
        assert corpus.texts == ("A first text.", "", "Another  one.")
        assert corpus.group.tolist() == ["press", "press", "forum"]
        assert corpus.ids == forms[0].ids
    assert forms[0].index.tolist() == forms[1].index.tolist() == [7, 8, 9]
    named = Corpus(["a", "b"], ids=["x", "y"], metadata={"day": ["2020-01-01", None]}, time="day")
    assert named.ids == ("x", "y") and named.time.isna().tolist() == [False, True]
    assert Corpus(named).texts is named.texts


@pytest.mark.parametrize(
    ("data", "argument"),
    [
        (["a", "b"], {"ids": ["1", "1"]}),
        (["a", "b"], {"ids": ["1", None]}),
        (["a", "b"], {"ids": ["1"]}),
        (["a", "b"], {"metadata": {"source": ["press"]}}),
        (TEXTS, {"text": "body"}),
        ({"body": TEXTS}, {"ids": [1, 2, 3]}),
        ({"body": TEXTS}, {"metadata": {}}),
    ],
)
def test_arguments_must_fit_the_texts_and_their_form(data, argument):
    with refuses(next(iter(argument))):
        Corpus(data, **argument)


def test_a_corpus_is_looked_at_like_a_sequence_of_texts():
    corpus = Corpus([f"Text <b>{n}</b>" for n in range(20)] + [None])
    assert corpus[3] == "Text <b>3</b>" and corpus[-1] == "" and list(corpus)[:2] == [*corpus[:2]]
    assert corpus[2:4].ids == corpus.ids[2:4] == corpus[[2, 3]].ids
    assert corpus[corpus.status == 0].texts == corpus.texts[:20]
    assert corpus.to_frame()["text"].tolist() == list(corpus.texts)
    shown = corpus._repr_html_()
    assert "<b>3</b>" not in shown and "&lt;b&gt;3&lt;/b&gt;" in shown


def test_numerals_of_a_csv_file_become_numbers_once(tmp_path):
    path = tmp_path / "a.csv"
    big = 2**53 + 1
    path.write_text(f"text,year,big,share,code,mixed\na b,2020,{big},0.5,012,1\nc d,,{big},,3,x\n")
    corpus = Corpus(path)
    metadata = corpus.metadata
    assert metadata["year"].dtype == "Int64" and metadata["year"].tolist()[0] == 2020
    assert metadata["big"].dtype == "int64" and metadata["big"].tolist() == [big, big]
    assert metadata["share"].dtype == "float64" and np.isnan(metadata["share"][1])
    assert metadata["code"].tolist() == ["012", "3"] and metadata["mixed"].tolist() == ["1", "x"]
    assert note_of(corpus, "numeric_columns").value == ["year", "big", "share"]


FRAME = {
    "Key": ["k1", "k2", "k3", "k4"],
    "title": ["a title that is long, very long"] * 4,
    "Abstract": ["short"] * 4,
    "created_at": ["2021-05-01", "2021-05-02", None, "2021-05-04"],
    "source": ["x", "y", "x", "y"],
    "price": [1.5, 2.5, 3.5, 4.5],
}


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (FRAME, "Abstract"),
        ({"id": ["a-very-long-identifier"], "x": ["brief"], "y": ["longer"], "n": [10**12]}, "y"),
        ({"id": ["only this"]}, "id"),
        ({"text": [1, 2], "other": ["a", "b"]}, "other"),
        ({"text": [None, None], "other": ["a", "b"]}, "text"),
    ],
)
def test_the_text_is_guessed_by_its_name_and_otherwise_by_its_length(columns, text):
    assert Corpus(columns).text_column == text


@pytest.mark.parametrize(
    ("columns", "guessed"),
    [
        (FRAME, {"id": "Key", "time": "created_at", "group": "source"}),
        ({"id": ["n/1", "n/2"] * 2, "label": ["a", "b"] * 2}, {"group": "label"}),  # ids repeat
        ({"id": ["n/1", "n/2", "n/3"], "label": ["a", "b", "a"]}, {"id": "id", "group": "label"}),
        ({"date": ["01/02/2021", "02/03/2021"]}, {}),  # which is the day?
        ({"category": [["x"], ["y"], ["x"]]}, {}),  # no names
        ({}, {}),
    ],
)
def test_guesses_are_only_what_could_be_read(columns, guessed):
    nothing = dict.fromkeys(("id", "time", "group"))
    assert guess_columns(pd.DataFrame(columns)) == nothing | guessed


@pytest.mark.parametrize("role", ["text", "id", "time", "group"])
def test_unknown_columns(role):
    names = ", ".join(map(repr, FRAME))
    message = f"{role} must be a column of dict: {names}; got 'abstrct'; did you mean 'Abstract'?"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        Corpus(FRAME, **{role: "abstrct"})


@pytest.mark.parametrize("values", [[1, 2], [1.5, None], [True, False], [date(2021, 5, 17), None]])
def test_a_text_column_of_numbers_or_dates(values):
    frame = pd.DataFrame({"n": values, "body": ["a", "b"]})
    with pytest.raises(InputError, match=r"column 'n' must hold strings; row 0 holds"):
        Corpus(frame, text="n")
    with pytest.raises(InputError, match="numbers or dates in every cell of column 'n'"):
        Corpus(frame.assign(n=["2020-01-01", "2020-02-03"]), text="n")


def test_ids_must_be_there_and_different():
    with pytest.raises(InputError, match="got 'b' in rows 1 and 3"):
        Corpus({"text": ["t"] * 4, "key": ["a", "b", "c", "b"]}, id="key")
    with pytest.raises(InputError, match="got none in rows 0, 1, 2 and 1 more"):
        Corpus({"text": ["t"] * 5, "key": [None, "", " ", float("nan"), "b"]}, id="key")


def test_messages_name_rows_by_position_and_lines_of_a_file(tmp_path):
    path = tmp_path / "articles.csv"
    path.write_text('id,text\na,"two\nlines"\nb,one\n,one\nb,one\n')
    missing = "ids must be given in every row; got none in"
    with pytest.raises(InputError, match=f"^{missing} row 2 of DataFrame$"):
        Corpus(pd.read_csv(path), id="id")
    with pytest.raises(InputError, match=rf"^{missing} line 5 of articles\.csv$"):
        Corpus(path, id="id")
    path.write_text('id,text\na,"two\nlines"\nb,one\nb,one\n')
    with pytest.raises(InputError, match="different in every row; got 'b' in lines 4 and 5 of art"):
        Corpus(path, id="id")


def test_a_path_is_read_as_a_string_and_as_a_path(tmp_path):
    path = tmp_path / "articles.csv"
    path.write_text("id,body,year\na,A text.,2020\nb,Another one.,2021\n")

    for data in (path, str(path)):
        corpus = Corpus(data, "body", id="id", time="year")
        assert corpus.texts == ("A text.", "Another one.") and corpus.ids == ("a", "b")
        assert corpus.source == "articles.csv"


def test_roles_are_named(tmp_path):
    with pytest.raises(TypeError, match="positional"):
        Corpus({"text": ["One."], "key": ["a"]}, "text", "key")
