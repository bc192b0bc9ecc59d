"""Filters as mappings, and accents in two spellings."""

import datetime
import unicodedata

import numpy as np
import pandas as pd
import pytest

from embedtopics import SearchIndex
from tests.factories import refuses

ROWS = pd.DataFrame({
    "id": ["a", "b", "c", "d", "e"],
    "text": ["ship"] * 5,
    "year": [2018, 2019, 2020, 2021, None],
    "share": [0.5, 1.0, 2.5, 1e-7, None],
    "port": ["O'Brien", 'x" or year > 0', None, "Genoa, and", "\\n"],
    "open": [True, False, None, True, False],
    "day": [
        "2020-01-31", "2020-01-31T08:00:00", "2020-02-01", "2021-03-04", None,
    ],
    "empty": [None] * 5,
})  # fmt: skip


@pytest.fixture(scope="module")
def index():
    frame = ROWS.assign(day=pd.to_datetime(ROWS["day"], format="ISO8601"))
    tags = [["law", "sea"], ["sea"], [], ["tax"], None]
    frame = frame.assign(tags=pd.Series(tags, dtype=object)).astype({"open": object})
    return SearchIndex.build(
        frame, text="text", id="id", encoder=None, languages=["en"], show_progress=False
    )


def found(index, where):
    return "".join(sorted(hit.id for hit in index.search("ship", where=where)))


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ({"year": 2019}, "b"),
        ({"year": [2019, 2021]}, "bd"),
        ({"year": (2019.0,)}, "b"),
        ({"year": {2018, 2020}}, "ac"),
        ({"year": range(2019, 2022)}, "bcd"),
        ({"year": np.int64(2020)}, "c"),
        ({"year": np.array([2018, 2021])}, "ad"),
        ({"year": pd.Series([2018, None])}, "ae"),
        ({"year": None}, "e"),
        ({"year": float("nan")}, "e"),
        ({"year": [pd.NA, 2018]}, "ae"),
        ({"share": 1}, "b"),
        ({"share": np.float32(2.5)}, "c"),
        ({"share": 1e-7}, "d"),
        ({"port": "O'Brien"}, "a"),
        ({"port": 'x" or year > 0'}, "b"),
        ({"port": ["Genoa, and", "\\n"]}, "de"),
        ({"port": np.str_("O'Brien")}, "a"),
        ({"port": ""}, ""),
        ({"open": True}, "ad"),
        ({"open": np.bool_(False)}, "be"),
        ({"open": [False, None]}, "bce"),
        ({"tags": "sea"}, "ab"),
        ({"tags": ["tax", "law"]}, "ad"),
        ({"day": datetime.date(2020, 1, 31)}, "ab"),
        ({"day": datetime.datetime(2020, 1, 31)}, "a"),
        ({"day": datetime.datetime(2020, 1, 31, 8)}, "b"),
        ({"day": pd.Timestamp("2020-01-31T08:00+01:00")}, "b"),
        ({"day": np.datetime64("2020-01")}, "ab"),
        ({"day": np.datetime64("2020-01-31T08:00:00", "ns")}, "b"),
        ({"day": pd.to_datetime(["2020-02-01", None])}, "ce"),
        ({"day": "2020-01"}, "ab"),
        ({"day": [2021, datetime.date(2020, 2, 1)]}, "cd"),
        ({"day": datetime.datetime.max}, ""),
        ({"id": ["a", "e", "nobody"]}, "ae"),
        ({"empty": 3}, ""),
        ({"empty": None}, "abcde"),
        ({"year": [2019, 2020, 2021], "open": [True, None]}, "cd"),
        ({}, "abcde"),
    ],
)
def test_a_document_passes_if_each_column_holds_one_of_the_values(index, where, ids):
    assert found(index, where) == ids


@pytest.mark.parametrize(
    "where",
    [
        {"yaer": 2019},
        {7: 2019},
        {"year": "2019"},
        {"year": True},
        {"year": []},
        {"year": [[2019]]},
        {"year": {">": 2019}},
        {"year": 2**63},
        {"year": 1 + 2j},
        {"year": datetime.date(2019, 1, 1)},
        {"year": range(10_001)},
        {"share": b"1"},
        {"port": 5},
        {"port": np.array([["Genoa"]])},
        {"open": 1},
        {"day": "soon"},
        {"day": 3.5},
        {"empty": {}},
        ["year"],
        7,
        b"year == 2019",
        pd.Series({"year": 2019}),
    ],
)
def test_a_value_that_no_column_can_hold_is_refused(index, where):
    with refuses("where"):
        index.search("ship", where=where)


def test_an_error_says_what_the_column_is_and_what_to_give(index):
    with refuses("where") as caught:
        index.search("ship", where={"yeer": 2019})
    assert str(caught.value) == (
        "where must be a mapping of columns to values; got {'yeer': 2019}; there is no column "
        "'yeer'; did you mean 'year'?"
    )
    with refuses("where") as caught:
        index.facets("ship", by="year", where={"open": "yes"})
    assert str(caught.value).endswith("holds true or false; got 'yes'; give True or False")


@pytest.mark.parametrize(
    "where",
    [
        {"year": [2019, 2021], "port": None},
        {"port": ["O'Brien", "\\n", None]},
        {"open": True},
        {"day": [datetime.date(2020, 1, 31), None]},
        {"share": 1e-7},
        {"tags": ["law"]},
    ],
)
def test_the_hits_show_a_mapping_as_an_expression_with_the_same_answer(index, where):
    hits = index.search("ship", where=where)
    assert found(index, hits.where) == found(index, where)


def test_names_of_columns_that_are_no_plain_words_are_shown_in_quotes():
    rows = [{"text": "ship", "home port": "Ulm", "not": 3}]
    index = SearchIndex.build(rows, text="text", encoder=None, show_progress=False)
    where = {"home port": "Ulm", "not": 3}
    hits = index.search("ship", where=where)
    assert hits.where == '"home port" == \'Ulm\' and "not" == 3'
    assert len(index.search("ship", where=hits.where)) == 1


COMPOSED = "Besançon"
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)


@pytest.fixture(scope="module")
def accents():
    rows = [
        {"id": "é", "text": "ship", "town": COMPOSED, "tags": [COMPOSED, "x"], "côte": 1},
        {"id": "b", "text": "ship", "town": DECOMPOSED, "tags": [DECOMPOSED], "côte": 2},
        {"id": "c", "text": "ship", "town": "Besancon", "tags": [], "côte": 3},
        {"id": "d", "text": "ship", "town": f"{DECOMPOSED} ville", "tags": None, "côte": 4},
    ]
    return SearchIndex.build(
        rows, text="text", id="id", encoder=None, languages=["fr"], show_progress=False
    )


@pytest.mark.parametrize("spelling", ["NFC", "NFD"])
@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("town == 'Besançon'", "bé"),
        ("town != 'Besançon'", "cd"),
        ("town in ('Besançon', 'Paris')", "bé"),
        ("town startswith 'Besanç'", "bdé"),
        ("town endswith 'ançon'", "bé"),
        ("town contains 'çon v'", "d"),
        ("town contains 'nc'", "c"),
        ("town > 'Besançon'", "d"),
        ("'Besançon' in tags", "bé"),
        ("tags contains 'ç'", "bé"),
        ("id == 'é'", "é"),
        ("côte >= 3", "cd"),
        ({"town": ["Besançon"]}, "bé"),
        ({"tags": "Besançon"}, "bé"),
        ({"côte": 4}, "d"),
    ],
)
def test_a_filter_finds_a_text_in_either_spelling_of_an_accent(accents, where, ids, spelling):
    def spell(value):
        if isinstance(value, str):
            return unicodedata.normalize(spelling, value)
        return [spell(element) for element in value] if isinstance(value, list) else value

    if isinstance(where, dict):
        where = {spell(name): spell(value) for name, value in where.items()}
    assert found(accents, spell(where)) == ids


def test_facets_count_both_spellings_of_an_accent_as_one_value(accents):
    table = accents.facets(by=["town", "tags", unicodedata.normalize("NFD", "côte")])
    counts = table.set_index(["column", "value"])["count"]
    assert counts["town", COMPOSED] == 2
    assert counts["tags", COMPOSED] == 2
    assert counts["côte", 4] == 1


def test_metadata_come_back_as_they_were_given(accents):
    towns = {document.id: document.metadata["town"] for document in accents}
    assert towns["b"] == DECOMPOSED
    assert towns["é"] == COMPOSED


def test_documents_are_added_to_a_column_in_either_spelling_of_its_name(tmp_path):
    rows = [{"text": "ship", "côte": 1}]
    index = SearchIndex.build(
        rows, tmp_path / "index", text="text", encoder=None, languages=["fr"], show_progress=False
    )
    index.add([{"text": "boat", unicodedata.normalize("NFD", "côte"): 2}], text="text")
    assert index.columns == {"côte": "integer"}
    assert [hit.text for hit in index.search("ship boat", where="côte == 2")] == ["boat"]


def test_two_columns_of_one_name_are_refused():
    rows = [{"text": "ship", "côte": 1, unicodedata.normalize("NFD", "côte"): 2}]
    with refuses("metadata"):
        SearchIndex.build(rows, text="text", encoder=None, show_progress=False)
