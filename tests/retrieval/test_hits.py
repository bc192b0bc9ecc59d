from embedtopics.retrieval.results import DuplicateGroups, Hit, SearchHits

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
    assert len(hits) == 2 and [len(found) for found in hits] == [2, 0]
    assert hits[0][1].id == "x" and repr(hits) == "SearchHits(2 hits, queries 2, dense)"
    assert table["excerpt"].tolist() == ["One text."] * 2
    assert table["id"].tolist() == [7, "x"]
    assert table["rank"].tolist() == [1, 2] and table["query"].tolist() == [0, 0]
    assert table["passage"].tolist() == ["One text."] * 2
    assert table.loc[0, ["year", "rank_"]].tolist() == [2020, "low"]
    assert table.loc[1, "topic"] == -1


def test_no_hits_are_a_table_without_rows():
    table = SearchHits(("a",), ((),), "lexical", 5).to_frame()
    assert table.empty and "score" in table.columns


def test_hits_of_one_query_are_a_sequence():
    found = (hit("<b>", 0.9), hit(2, 0.8))
    hits = SearchHits(("wo<rd",), (found,), "dense", 5, "n > 1", is_single=True)
    assert list(hits) == list(found) and hits[0].id == "<b>" and hits[-1:] == found[1:]
    assert len(hits) == 2 and hits.hits == (found,)
    assert repr(hits) == "SearchHits(2 hits, query 'wo<rd', dense, where n > 1)"
    assert repr(hits[0]) == "Hit('<b>', 0.900, 'One text.')"
    page = hits._repr_html_()
    assert "&lt;b&gt;" in page and "<b>&" not in page and "wo&lt;rd" in page
    assert str(hits[0].snippet) == "One text."


def test_groups_of_duplicates_show_themselves():
    found = DuplicateGroups((("a", "<b>"), ("c", "d")), (), 0.95, 9)
    assert repr(found) == "DuplicateGroups(2 groups of 4 among 9 documents, cosine from 0.95)"
    assert "&lt;b&gt;" in found._repr_html_() and len(found) == 2
