"""Numbers in csv files: which columns they are, and what filters then ask of them."""

from __future__ import annotations

import pandas as pd
import pytest

import embedtopics as et

TEXTS = ["One text.", "Another text.", "A third.", "A fourth."]
COLUMNS = {
    "year": ["1999", "2020", "", "-3"],
    "share": ["0.5", "1", "NA", "2.25"],
    "postcode": ["01000", "75001", "13001", "69001"],
    "mixed": ["1", "2", "three", "4"],
    "long": ["1234567890123456789", "1", "2", "3"],
    "nothing": ["", "", "", ""],
    "wide": ["٣", "1", "2", "3"],
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "articles.csv"
    pd.DataFrame({"text": TEXTS, **COLUMNS}).to_csv(path, index=False)
    return path


def test_filters_ask_of_numbers_and_additions_keep_the_kinds(file, tmp_path):
    index = et.SearchIndex.build(file, encoder="random")
    assert index.columns["year"] == "integer" and index.columns["share"] == "real"
    hits = index.search("text", 10, "dense", "year >= 2000").hits[0]
    assert [hit.text for hit in hits] == ["Another text."]
    more = tmp_path / "more.csv"
    pd.DataFrame(
        {"text": ["A fifth text."], "year": ["2024"], "postcode": ["75002"], "mixed": ["5"]}
    ).to_csv(more, index=False)
    index.add(more)
    assert index.columns["postcode"] == "text" and index.columns["mixed"] == "text"
    found = index.search("text", 10, "dense", "year >= 2000 and postcode startswith '75'")
    assert sorted(hit.metadata["year"] for hit in found.hits[0]) == [2020, 2024]
