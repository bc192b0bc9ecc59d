"""Queries: what is one, what threads do at once, and texts of stop words alone."""

import copy
import math
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pandas as pd
import pytest

from embedtopics import SearchIndex
from embedtopics.errors import InputError
from embedtopics.terms import _stop_words
from tests.factories import refuses

TEXTS = ["rain over the harbor", "snow on the hills", "harbor lights"]


def indexed(texts=TEXTS, **options):
    options = {"languages": ["en"], **options}
    return SearchIndex.build(texts, encoder=None, show_progress=False, **options)


@pytest.fixture(scope="module")
def index():
    return indexed()


@pytest.mark.parametrize(
    "queries",
    [3, 2.5, math.nan, True, b"harbor", {"q": "harbor"}, {"harbor"}, None, np.array("harbor")],
)
def test_one_value_that_is_no_text_is_refused(index, queries):
    with refuses("queries"):
        index.search(queries)


@pytest.mark.parametrize(
    ("queries", "row"),
    [
        (["harbor", 4], 1),
        ([["harbor"]], 0),
        (["harbor", "snow", None], 2),
        ([b"harbor"], 0),
        (pd.Series(["harbor", float("nan")]), 1),
        ([{"q": "harbor"}], 0),
    ],
)
def test_a_list_with_a_value_that_is_no_text_names_its_row(index, queries, row):
    with refuses("queries", row=row):
        index.search(queries)


@pytest.mark.parametrize("form", [list, tuple, np.array, pd.Series, iter])
def test_queries_may_be_any_sequence(index, form):
    hits = index.search(form(["snow", "lights"]))
    assert hits.queries == ("snow", "lights")
    assert [[hit.text for hit in row] for row in hits.hits] == [[TEXTS[1]], [TEXTS[2]]]


def test_the_query_of_facets_and_the_passage_of_similar_are_texts():
    vectors = np.eye(3)
    index = indexed(pd.DataFrame({"text": TEXTS, "year": [1, 2, 3]}), text="text")
    with refuses("query"):
        index.facets(7, by="year")
    with refuses("passage"):
        SearchIndex.build(TEXTS, encoder=None, embeddings=vectors).similar(passage=7)


@pytest.mark.parametrize("send", [pickle.dumps, copy.deepcopy])
def test_pickling_an_index_names_the_way_to_send_it(index, send):
    with pytest.raises(InputError, match=r"index\.folder .* SearchIndex\.load"):
        send(index)


def test_another_thread_may_clear_the_cache_of_queries(index):
    class Cleared(dict):
        """A cache that another thread clears after it was asked for a query."""

        def __contains__(self, query):
            return True

    searcher = index._reader.newest().lexical
    object.__setattr__(searcher, "_cache", Cleared())
    assert [hit.text for hit in index.search("snow")] == [TEXTS[1]]


def test_threads_do_not_share_the_word_in_a_stemmer(monkeypatch):
    class Stemmer:
        """As those of Snowball, it holds the word that it works on."""

        has_second = Event()

        def stemWord(self, word):
            self.word = word
            if word == "first":
                started.set()
                self.has_second.wait(0.3)
            else:
                self.has_second.set()
            return self.word

    started = Event()
    monkeypatch.setattr("snowballstemmer.stemmer", lambda _: Stemmer())
    _stop_words._stemmer.cache_clear()
    stem = _stop_words._stemmer("en")
    try:
        with ThreadPoolExecutor(2) as threads:
            first = threads.submit(stem, "first")
            started.wait(5)
            second = threads.submit(stem, "second")
            assert (first.result(), second.result()) == ("first", "second")
    finally:
        _stop_words._stemmer.cache_clear()


def test_passages_of_stop_words_alone_are_ranked_by_their_counts():
    texts = ["of the", "the end of the", "in"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hits = indexed(texts, stop_words=["of the end in"]).search("the")

    # BM25 by hand: no passage has a length, k1 = 1.5 and b = 0.75.
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    scores = [idf * n / (1.5 * 0.25 + n) for n in (2, 1)]
    assert [hit.text for hit in hits] == [texts[1], texts[0]]
    assert [hit.bm25 for hit in hits] == pytest.approx(scores)


def test_a_passage_of_stop_words_beside_others_is_found():
    texts = ["of the", "plums", "pears"]
    hits = indexed(texts, stop_words=["of the"]).search("the")
    assert [hit.text for hit in hits] == ["of the"]
    assert all(math.isfinite(hit.relevance) for hit in hits)


def test_an_endless_word_has_no_suggestion():
    word = "harbor" * 2_000
    hits = indexed([*TEXTS, word + "s"]).search("x" + word)
    assert not len(hits)
    assert not hits.suggestions


def test_suggestions_are_those_of_all_words_in_reach():
    hits = indexed().search("harbr lihgts snwo")
    assert hits.suggestions == {"harbr": "harbor", "lihgts": "lights", "snwo": "snow"}


def test_a_query_is_read_once(monkeypatch):
    from embedtopics.retrieval import _bm25

    calls = []
    read = _bm25.query_words
    monkeypatch.setattr(_bm25, "query_words", lambda *given: calls.append(given) or read(*given))
    index = indexed()
    index.search("harbor lights")
    assert len(calls) == 1
