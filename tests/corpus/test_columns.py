"""Which column is what: named, or guessed."""

from datetime import date

import pandas as pd
import pytest

from embedtopics.corpus import Corpus
from embedtopics.corpus._columns import guess_columns
from embedtopics.errors import InputError

FRAME = {
    "Key": ["k1", "k2", "k3", "k4"],
    "title": ["a title that is long, very long"] * 4,
    "Abstract": ["short"] * 4,
    "created_at": ["2021-05-01", "2021-05-02", None, "2021-05-04"],
    "source": ["x", "y", "x", "y"],
    "price": [1.5, 2.5, 3.5, 4.5],
}


def test_text_is_guessed_by_name_first():
    corpus = Corpus.from_frame(FRAME)
    assert corpus.text_column == "Abstract"
    (chosen,) = [note for note in corpus.notes if note.name == "text_column"]
    assert chosen.value == "Abstract"
    assert "by its name" in chosen.message


def test_text_is_guessed_by_length_otherwise():
    frame = {"id": ["a-very-long-identifier"], "x": ["brief"], "y": ["rather long"], "n": [10**12]}
    assert Corpus.from_frame(frame).text_column == "y"
    assert Corpus.from_frame({"id": ["only this"]}).text_column == "id"


def test_a_name_does_not_make_numbers_a_text():
    assert Corpus.from_frame({"text": [1, 2], "other": ["a", "b"]}).text_column == "other"


def test_an_empty_column_with_the_right_name_is_still_the_text():
    assert Corpus.from_frame({"text": [None, None], "other": ["a", "b"]}).text_column == "text"


def test_a_named_column_is_not_noted():
    assert Corpus.from_frame(FRAME, text="title").notes == ()


def test_guess_columns():
    expected = {"text": "Abstract", "id": "Key", "time": "created_at", "group": "source"}
    assert guess_columns(pd.DataFrame(FRAME)) == expected


def test_guesses_are_only_what_could_be_read():
    frame = pd.DataFrame(
        {
            "id": ["a", "a", "b"],  # repeated
            "date": ["01/02/2021", "02/03/2021", "03/04/2021"],  # ambiguous
            "posted": pd.to_datetime(["2021-01-01"] * 3),
            "category": [["x"], ["y"], ["x"]],  # no names
        }
    )
    expected = {"text": None, "id": None, "time": "posted", "group": None}
    assert guess_columns(frame) == expected
    assert guess_columns(pd.DataFrame()) == dict.fromkeys(expected)


def test_guesses_for_the_columns_beside_the_text():
    frame = pd.DataFrame({"id": ["n/1", "n/2", "n/3"], "label": ["tech", "sport", "tech"]})
    assert guess_columns(frame) == {"text": None, "id": "id", "time": None, "group": "label"}


@pytest.mark.parametrize("role", ["text", "id", "time", "group"])
def test_unknown_columns(role):
    with pytest.raises(InputError) as caught:
        Corpus.from_frame(FRAME, **{role: "abstrct"})
    message = str(caught.value)
    assert f"expected a {role} column 'abstrct'" in message
    assert all(repr(name) in message for name in FRAME)
    assert message.endswith("did you mean 'Abstract'?")


def test_long_lists_of_columns_are_cut():
    frame = {f"c{n}": ["a"] for n in range(100)}
    with pytest.raises(InputError, match="'c29' and 70 more; name one of these"):
        Corpus.from_frame(frame, text="zzz")


@pytest.mark.parametrize("role", ["id", "time", "group"])
def test_a_column_has_one_role(role):
    with pytest.raises(InputError, match=f"text and {role}, got 'title' for both"):
        Corpus.from_frame(FRAME, text="title", **{role: "title"})


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 2], "int64"),
        ([1.5, 2], "float64"),
        ([1.5, None], "float64"),
        ([True, False], "bool"),
        (pd.to_datetime(["2021-01-01", "2022-01-01"]), "datetime64"),
        (pd.array([1, None], dtype="Int64"), "Int64"),
        ([date(2021, 5, 17), None], "date values"),
    ],
)
def test_a_text_column_of_numbers(values, dtype):
    with pytest.raises(InputError, match=rf"strings in the text column 'n', got {dtype}"):
        Corpus.from_frame(pd.DataFrame({"n": values, "body": ["a", "b"]}), text="n")


def test_a_text_column_without_any_value():
    corpus = Corpus.from_frame(pd.DataFrame({"n": [float("nan")] * 2}), text="n")
    assert corpus.status.tolist() == [2, 2]


def test_ids_must_be_there_and_different():
    with pytest.raises(InputError, match="got 'b' in row 2 and row 4"):
        Corpus.from_frame({"text": ["t"] * 4, "key": ["a", "b", "c", "b"]}, id="key")
    with pytest.raises(InputError, match="got none in row 1, row 2, row 3 and 1 more"):
        Corpus.from_frame({"text": ["t"] * 5, "key": [None, "", " ", float("nan"), "b"]}, id="key")


def test_a_text_column_of_dates_is_refused():
    frame = pd.DataFrame({"date": ["2020-01-01", "2020-02-03"], "body": ["one", "two"]})
    with pytest.raises(InputError, match="dates in every cell"):
        Corpus(frame, text="date")
