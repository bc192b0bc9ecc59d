from __future__ import annotations

import numpy as np
import pytest

from embedtopics.retrieval.explaining import explain, query_decisions
from embedtopics.retrieval.lexical.searcher import LexicalSearcher
from embedtopics.retrieval.lexical.segment import build_lexical, open_lexical
from embedtopics.retrieval.lexical.settings import lexical_settings


@pytest.fixture
def make_searcher(tmp_path):
    def make(texts, alive=None):
        build_lexical(tmp_path, texts, lexical_settings(["en"]))
        return LexicalSearcher.of([open_lexical(tmp_path)], alive)

    return make


def test_the_words_parts_add_up_to_the_score(make_searcher):
    texts = ["hospitals shut", "the hospital closed and closed", "a rural hospital"]
    searcher = make_searcher(texts)
    query = "closing the hospital hospitals hospital in rural towns"
    found = searcher.search(query, 5)
    assert len(found.rows) == 3
    for score, segment, row in zip(*found, strict=True):
        why = explain(searcher, query, int(segment), int(row), 0.25)
        assert sum(why.parts.values()) == pytest.approx(score, abs=1e-9)
        assert why.bm25 == pytest.approx(score, abs=1e-9)
        assert why.parts["hospital"] == pytest.approx(2 * why.parts["hospitals"])
        assert list(why.parts.values()) == sorted(why.parts.values(), reverse=True)
        assert ("rural" in why.parts) == (row == 2) == ("rural" not in why.absent)
        assert why.unknown == ("towns",) and why.stop_words == ("in", "the")
        assert why.similarity == 0.25
    # By hand: "rural" is in 1 of 3 passages of 2, 3 and 2 words.
    norm = 1.5 * (0.25 + 0.75 * 2 / (7 / 3))
    expected = np.log(1 + 2.5 / 1.5) / (norm + 1)
    assert explain(searcher, query, 0, 2).parts["rural"] == pytest.approx(expected)


def test_what_a_query_lacks_is_said(make_searcher):
    searcher = make_searcher(["horses run", "a zebra"], [np.array([True, False])])

    def said(query):
        return [(d.stage, d.name, d.value) for d in query_decisions(searcher, query)]

    assert said("the horse") == []
    assert said("  ") == said("?! 🐎") == [("retrieval", "empty query", [])]
    assert said("the of") == [("retrieval", "only stop words", ["of", "the"])]
    assert said("horse zebras") == [("retrieval", "words not held", ["zebras"])]
    assert "the other words" in query_decisions(searcher, "horse zebras")[0].message
    assert "any word" in query_decisions(searcher, "zebra")[0].message
