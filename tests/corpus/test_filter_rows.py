"""Filters over the rows of a table answer as they do in a search index."""

import datetime
import unicodedata

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from embedtopics import SearchIndex
from embedtopics.corpus.filters._rows import passing_rows
from embedtopics.errors import InputError
from tests.factories import refuses
from tests.retrieval.drawn_filters import COLUMNS, filters, rows

FRAME = pd.DataFrame(
    {
        "year": [2018, 2019, 2020, 2021, None],
        "source": ["press", "blog", "press", None, "O'Brien"],
        "day": pd.to_datetime(["2020-01-31", "2020-01-31T08:00", "2020-02-01", "2021-03-04", None],
                              format="ISO8601"),
        "open": pd.Series([True, False, None, True, False], dtype=object),
        "kind": pd.Categorical(["a", "b", "a", "b", None]),
        "tags": pd.Series([["law", "sea"], ["sea"], [], ["tax"], None], dtype=object),
        "home port": ["Ulm", "", "Besançon", unicodedata.normalize("NFD", "Besançon"), None],
        "n": pd.array([1, 2, None, 4, 5], dtype="Int64"),
        "mixed": pd.Series([1, "two", 3, None, 5], dtype=object),
        7: range(5),
    }
).set_axis([*"abcde"])  # fmt: skip


def passing(where, frame=FRAME):
    mask = passing_rows(where, frame)
    assert mask.dtype == np.bool_
    assert mask.shape == (len(frame),)
    return "".join(frame.index[mask])


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        (None, "abcde"),
        ("", "abcde"),
        ({}, "abcde"),
        ("year >= 2020", "cd"),
        ("year >= 2020 and source == 'press'", "c"),
        ("not year >= 2020", "abe"),
        ("year is null", "e"),
        ("day == '2020-01'", "ab"),
        ("day > 2020", "d"),
        ("open == true", "ad"),
        ("kind == 'a'", "ac"),
        ("'sea' in tags", "ab"),
        ('"home port" startswith "Besanç"', "cd"),
        ("n between 2 and 4", "bd"),
        ("source contains 'O''B'", "e"),
        ({"year": [2019, 2021]}, "bd"),
        ({"source": "press"}, "ac"),
        ({"source": ["press", None]}, "acd"),
        ({"source": "press", "year": 2020}, "c"),
        ({"day": datetime.date(2020, 1, 31)}, "ab"),
        ({"n": 4}, "d"),
        ({"home port": unicodedata.normalize("NFD", "Besançon")}, "cd"),
    ],
)
def test_the_rows_that_pass(where, ids):
    assert passing(where) == ids


@settings(max_examples=60, deadline=None)
@given(rows, filters)
def test_answers_are_those_of_pandas(records, drawn):
    text, mask = drawn
    columns = {name: pd.Series([r[name] for r in records], dtype=object) for name in COLUMNS}
    frame = pd.DataFrame(columns).where(lambda f: f.notna(), None)
    dated = frame.assign(day=pd.to_datetime(frame["day"], format="ISO8601").astype(object))
    try:
        answers = passing_rows(text, dated).tolist()
    except InputError as error:
        # A column without values has the kind of none, and integers beyond 2**53 no fractions.
        assert "metadata" in str(error)
        return
    assert answers == [bool(one) for one in mask(frame)]


@pytest.mark.parametrize(
    "where",
    ["year >= 2020 and source == 'press'", {"source": ["press", None]}, "day <= '2020-01'",
     "open != true", "'sea' in tags", '"home port" == "Besançon"'],
)  # fmt: skip
def test_a_table_and_an_index_give_the_same_rows(where):
    frame = FRAME.drop(columns=["mixed", 7]).assign(text="ship", id=FRAME.index)
    frame = frame.astype({"n": object, "kind": object})
    index = SearchIndex.build(
        frame, text="text", id="id", encoder=None, languages=["en"], show_progress=False
    )
    hits = index.search("ship", where=where)
    assert "".join(sorted(hit.id for hit in hits)) == passing(where)


def test_masks_go_by_position_and_series_by_their_index():
    mask = [True, False, True, False, False]
    assert passing(mask) == "ac"
    assert passing(np.array(mask)) == "ac"
    assert passing(pd.Series(mask, dtype=object, index=FRAME.index)) == "ac"
    assert passing(pd.Series(mask, index=FRAME.index)[::-1]) == "ac"
    assert passing(pd.array(mask, dtype="boolean")) == "ac"
    assert (
        passing(pd.Series(mask, dtype="boolean", index=FRAME.index).iloc[[2, 0, 4, 1, 3]]) == "ac"
    )
    assert passing(value for value in mask) == "ac"


@pytest.mark.parametrize(
    "where",
    ["yaer == 2019", "year ==", "year == 'x'", {"yaer": 2019}, {"year": "2019"}, {7: 1},
     [True], [1, 0, 1, 0, 0], ["a"] * 5, [True, None, True, False, False], 7, b"year == 2019",
     pd.Series([True] * 5, index=[*"abcdf"]), np.ones((5, 2), dtype=bool)],
)  # fmt: skip
def test_what_is_no_filter_is_refused_by_the_name_of_the_argument(where):
    with refuses("target"):
        passing_rows(where, FRAME, parameter="target")


def test_only_the_columns_of_the_filter_are_read():
    with refuses("column 'mixed' of the metadata"):
        passing("mixed == 1")
    assert passing("year == 2018") == "a"


def test_an_error_shows_the_place_and_similar_columns():
    with refuses("where") as caught:
        passing("yeer >= 2020")
    assert str(caught.value) == (
        "where must be a filter that can be read; got >>>yeer<<< >= 2020; at character 1: there "
        "is no column 'yeer'; did you mean 'year'?"
    )
