"""The corpus: every kind of input, rows that stay aligned, and input that stays as it was."""

from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from embedtopics.corpus import Corpus
from embedtopics.corpus._corpus import require_text
from embedtopics.errors import InputError
from tests.factories import refuses

TEXTS = ["A first text.", None, "Another  one."]


def note_of(corpus, name):
    return next(note for note in corpus.notes if note.name == name)


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
    corpus = Corpus.of(texts)
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
    assert Corpus.of(frame).texts == ("A first text.", "", "Another  one.")
    corpus = Corpus.from_frame(frame, text="text", time="when", group="n")
    assert corpus.texts == ("A first text.", "", "Another  one.")
    assert list(corpus.metadata.columns) == ["n", "when"]
    assert corpus.group.tolist() == [3, 2, 1]
    expected = pd.Series(pd.to_datetime(COLUMNS["when"]).astype("datetime64[us]"), name="when")
    pd.testing.assert_series_equal(corpus.time, expected)
    assert note_of(corpus, "dates_missing").value == 1


def test_the_index_of_the_caller_comes_back_and_nothing_is_mutated():
    index = pd.MultiIndex.from_tuples([("x", 2), ("x", 2), ("y", 1)], names=["a", "b"])
    frame = pd.DataFrame(
        {
            "text": ["t1", "t\ud800", "t3"],
            "id": [7, 8, 9],
            "day": ["2021"] * 3,
            "m": ["\udc00", 1, 2],
        },
        index=index,
        dtype=object,
    )
    before = frame.copy(deep=True)
    corpus = Corpus.from_frame(frame, text="text", id="id", time="day", group="m")
    assert corpus.index.equals(index)
    assert corpus.time.index.equals(index)
    assert corpus.group.tolist() == ["\ufffd", 1, 2]
    assert corpus.ids == ("7", "8", "9")
    assert corpus.texts[1] == "t\ufffd"
    assert note_of(corpus, "replaced_characters").value == 2
    pd.testing.assert_frame_equal(frame, before)
    corpus.metadata["m"] = "changed"
    pd.testing.assert_frame_equal(frame, before)


def test_a_series_keeps_its_index_and_a_list_may_be_given_one():
    series = pd.Series(["a", "b"], index=["x", "y"])
    assert list(Corpus.of(series).index) == ["x", "y"]
    assert list(Corpus.from_texts(["a", "b"], index=[5, 5]).index) == [5, 5]
    assert list(Corpus.from_texts(series, index=["u", "v"]).index) == ["u", "v"]


def test_a_corpus_is_returned_as_it_is_and_a_path_is_read(tmp_path):
    corpus = Corpus.of(["a"])
    assert Corpus.of(corpus) is corpus
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    assert Corpus.of(tmp_path / "a.txt").texts == ("one", "two")
    assert Corpus.from_file(str(tmp_path / "a.txt")).texts == ("one", "two")


def test_ids_do_not_depend_on_other_rows():
    one = Corpus.of(["a", "b", "a ", None])
    assert one.ids[0] == Corpus.of(["z", "a"]).ids[1]
    assert one.ids[2] == one.ids[0] + "-2"
    assert len(set(one.ids)) == 4


def test_ids_are_strings_as_given():
    assert Corpus.from_texts(["a", "b"], ids=["007", " 8 "]).ids == ("007", "8")
    frame = pd.DataFrame({"text": ["a", "b"], "id": [1.0, 2.0]})
    assert Corpus.from_frame(frame, id="id").ids == ("1", "2")
    assert "id" not in Corpus.from_frame(frame, id="id").metadata
    assert "id" in Corpus.from_frame(frame).metadata


def test_take():
    frame = pd.DataFrame(
        {"text": ["a", "b", None, "b"], "year": [2001, 2002, 2003, 2004]}, index=list("wxyz")
    )
    corpus = Corpus.from_frame(frame, time="year")
    taken = corpus.take([3, 0, 2])
    assert taken.texts == ("b", "a", "")
    assert taken.ids == (corpus.ids[3], corpus.ids[0], corpus.ids[2])
    assert taken.status.tolist() == [0, 0, 2]
    assert list(taken.index) == ["z", "w", "y"]
    assert taken.time.dt.year.tolist() == [2004, 2001, 2003]
    assert taken.hashes.tolist() == corpus.hashes[[3, 0, 2]].tolist()
    assert taken.document_texts() == Corpus.of(["a", "b"]).document_texts()
    assert note_of(taken, "rows_taken").value == 3
    assert len(corpus.take([])) == 0


@pytest.mark.parametrize("rows", [[0, 0], [2], [-1], [True, False], [0.5], [[0, 1]]])
def test_take_refuses(rows):
    with refuses("rows"):
        Corpus(["a", "b"]).take(rows)


def test_hashes_are_computed_when_a_corpus_is_put_together_by_hand():
    made = Corpus.of(["a ", None, "b", "a"])
    fields = {"texts": made.texts, "ids": made.ids, "status": made.status}
    again = Corpus.of_fields(**fields, metadata=made.metadata)
    assert np.array_equal(again.hashes, made.hashes)
    assert again.distinct().of_row.tolist() == made.distinct().of_row.tolist()
    with pytest.raises(InputError):
        Corpus.of_fields(**fields | {"ids": made.ids[:1]}, metadata=made.metadata)


def test_a_corpus_is_short_to_print():
    corpus = Corpus.of(["text " * 1000, "", None])
    assert repr(corpus) == "Corpus(3 rows from list: 1 with text, 1 empty, 1 missing)"


def test_right_to_left_nul_and_emoji_stay_in_the_texts():
    texts = ["مرحبا \u202bبالعالم\u202c", "a\x00b", "👩\u200d🔬"]
    corpus = Corpus.of(texts)
    assert list(corpus.texts) == texts
    assert set(corpus.document_texts()) == {texts[0], "a b", texts[2]}


def test_one_very_long_text():
    text = "word " * 400_000
    corpus = Corpus.of([text])
    assert len(corpus.document_texts()[0]) == len(text) - 1


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one text", r"got one str; give a list: \[text\]"),
        (b"bytes", "got one bytes"),
        (["a", 3], "row 2 holds a int"),
        (["a", None, {"text": "b"}], "row 3 holds a dict"),
        ([b"a"], "row 1 holds a bytes"),
        (np.array([1.0, 2.0]), "row 1 holds a float"),
        (np.array([["a"], ["b"]]), r"shape \(2, 1\)"),
        ({"a", "b"}, "got a set"),
        ((text for text in ["a"]), r"got a generator; use list\(\.\.\.\)"),
        (12, "got a int"),
        (None, "got a NoneType"),
        (pl.LazyFrame({"text": ["a"]}), r"call \.collect\(\)"),
        (datasets.DatasetDict(train=datasets.Dataset.from_dict({"text": ["a"]})), "'train'"),
        ({"text": ["a"], "n": [1, 2]}, r"\{'text': 1, 'n': 2\}"),
        ({"text": "a"}, "got a str under 'text'"),
        (pd.DataFrame([["a", "b"]], columns=["t", "t"]), "got 't' more than once"),
        (pd.DataFrame({"n": [1, 2]}), "none that holds strings among 'n'"),
    ],
)
def test_what_is_no_collection_of_texts(texts, message):
    with pytest.raises(InputError, match=message) as caught:
        Corpus.of(texts)
    assert "\n" not in str(caught.value)


def test_streamed_datasets_are_refused():
    stream = datasets.Dataset.from_dict({"text": ["a"]}).to_iterable_dataset()
    with pytest.raises(InputError, match="streaming=False"):
        Corpus.of(stream)


def test_frames_and_lists_are_not_confused():
    with pytest.raises(InputError, match=r"Corpus\.from_frame"):
        Corpus.from_texts(pd.DataFrame({"text": ["a"]}))
    with pytest.raises(InputError, match=r"Corpus\.from_texts"):
        Corpus.from_frame(["a"])


@pytest.mark.parametrize(
    "arguments",
    [
        {"ids": ["1", "1"]},
        {"ids": ["1", None]},
        {"ids": ["1"]},
        {"index": [1]},
        {"metadata": {"source": ["press"]}},
    ],
)
def test_ids_index_and_metadata_must_fit(arguments):
    with refuses(next(iter(arguments))):
        Corpus(["a", "b"], **arguments)


def test_an_all_empty_corpus_may_exist_but_has_no_text():
    corpus = Corpus.from_frame({"body": [None, " ", ""]}, text="body")
    with pytest.raises(InputError, match="in column 'body'"):
        require_text(corpus)
    with pytest.raises(InputError, match="of 0 rows"):
        require_text(Corpus.of([]))
    require_text(Corpus.of([None, "a"]))


def test_every_message_of_a_file_names_the_file(tmp_path):
    path = Path(tmp_path / "rows.jsonl")
    path.write_text('{"text": "a"}\n\n{"text": 5}\n')
    with pytest.raises(
        InputError, match=r"rows.jsonl: column 'text' .* row 2 \(line 3\) holds a i"
    ):
        Corpus.of(path)


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
    ("arguments", "parameter"),
    [
        ({"data": TEXTS, "text": "body"}, "text"),
        ({"data": {"body": TEXTS}, "ids": [1, 2, 3]}, "ids"),
        ({"data": {"body": TEXTS}, "metadata": {}}, "metadata"),
    ],
)
def test_the_constructor_refuses_arguments_of_another_form(arguments, parameter):
    with refuses(parameter):
        Corpus(**arguments)


def test_a_corpus_is_looked_at_like_a_sequence_of_texts():
    corpus = Corpus([f"Text <b>{n}</b>" for n in range(20)] + [None])
    assert corpus[3] == "Text <b>3</b>" and corpus[-1] == "" and list(corpus)[:2] == [*corpus[:2]]
    assert corpus[2:4].ids == corpus.ids[2:4] == corpus[[2, 3]].ids
    assert corpus[corpus.status == 0].texts == corpus.texts[:20]
    assert corpus.head(3).texts == corpus.texts[:3] and len(corpus.head(99)) == 21
    drawn = corpus.sample(5, random_state=1)
    assert drawn.texts == corpus.sample(5, random_state=1).texts != corpus.sample(5, 2).texts
    assert len(set(drawn.texts) - {""}) == 5
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
