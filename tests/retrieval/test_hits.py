from embedtopics.results import Hit, SearchHits

NAN = float("nan")


def hit(id, score, **others):
    return Hit(id, score, 0.5, NAN, NAN, "One text. Another.", (0, 9), **others)


def test_hits_become_a_table():
    hits = SearchHits(
        ("a", "b"),
        ((hit(7, 0.9, metadata={"year": 2020, "rank": "low"}), hit("x", 0.8, topic=-1)), ()),
        "dense", 2,
    )  # fmt: skip
    table = hits.to_frame()
    assert len(hits) == 2
    assert table["id"].tolist() == [7, "x"]
    assert table["rank"].tolist() == [1, 2] and table["query"].tolist() == [0, 0]
    assert table["passage"].tolist() == ["One text."] * 2
    assert table.loc[0, ["year", "rank_"]].tolist() == [2020, "low"]
    assert table.loc[1, "topic"] == -1


def test_no_hits_are_a_table_without_rows():
    table = SearchHits(("a",), ((),), "lexical", 5).to_frame()
    assert table.empty and "score" in table.columns
