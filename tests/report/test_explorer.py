import base64
import json
import re
import sys
import zlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_matrix

from embedtopics import Corpus, report
from embedtopics.errors import MissingExtraError
from embedtopics.report import _explorer
from embedtopics.report._explorer import explorer_html
from embedtopics.report._page_data import indexed_terms
from tests.factories import make_result, refuses
from tests.report.test_page import NASTY


@pytest.fixture(scope="module")
def result():
    return make_result(texts=[NASTY], topic_labels=[NASTY])


@pytest.fixture(scope="module")
def page(result):
    return explorer_html(result)


def column(page, name, dtype=None):
    """Return what a script element of the page holds: bytes, or an array."""
    pattern = rf'<script type="application/octet-stream" id="packed-{name}"([^>]*)>([^<]*)</script>'
    how, body = re.search(pattern, page).groups()
    content = base64.b64decode(body)
    content = zlib.decompress(content) if "deflated" in how else content
    return content if dtype is None else np.frombuffer(content, dtype)


def about(page):
    """Return what the page knows as JSON."""
    return json.loads(re.search(r'id="about">(.*?)</script>', page).group(1))


def test_posting_lists_hold_the_counts(page, result):
    _, _, counts = indexed_terms(result.term_counts, result.tokens, result.distinct.weights)
    starts, steps = column(page, "starts", "<u4"), column(page, "steps", "<u4")
    lists = np.split(np.arange(len(steps)), starts[1:-1])
    documents = np.concatenate([np.cumsum(steps[one].astype(int)) - 1 for one in lists])
    rows = result.distinct.of_row[column(page, "rows", "<u4")]
    numbers = rows[np.sort(np.unique(rows, return_index=True)[1])]  # in the order of the page
    back = csc_matrix(
        (column(page, "occurrences", "<u2"), numbers[documents], starts), counts.shape
    )
    assert (back != counts).nnz == 0 and back.nnz == counts.nnz


def test_every_word_that_is_no_stop_word_can_be_searched(result):
    terms, lengths, counts = indexed_terms(
        result.term_counts, result.tokens, result.distinct.weights
    )
    held = dict(zip(terms, counts.T.toarray(), strict=True))
    for term, expected in zip(terms, lengths, strict=True):
        assert expected in (0, len(term.split())), term
    for document, row in enumerate(result.distinct.first_rows[:40].tolist()):
        for word in set(result.corpus.texts[row].split()):
            assert held[word][document] == result.corpus.texts[row].split().count(word)


def test_rows_texts_and_topics_come_back(page, result):
    held, corpus = about(page), result.corpus
    labels = column(page, "labels", "<u2").astype(int) - 1
    back = column(page, "repeats", "<u4")
    first = np.flatnonzero(back == 0)
    rows = column(page, "rows", "<u4")
    texts = column(page, "texts-0").decode().split("\0")
    assert held["rows"] == len(rows) == int((result.distinct.of_row >= 0).sum())
    assert held["withoutText"] == 1
    assert texts[1:] == [corpus.texts[rows[place]] for place in first][1:]
    document = np.cumsum(back == 0) - 1
    document[back > 0] = document[np.flatnonzero(back) - back[back > 0]]
    np.testing.assert_array_equal(labels[document], result.labels[rows])
    places = column(page, "places-0", "<u2").reshape(-1, 2).astype(float)
    shown = result.map[result.distinct.of_row[rows[first]]]
    for axis in (0, 1):
        assert np.corrcoef(places[:, axis], shown[:, axis])[0, 1] > 0.999_999
    times = column(page, "times", "<i4").astype("datetime64[m]")
    np.testing.assert_array_equal(times, corpus.time.iloc[rows].to_numpy("datetime64[m]"))


def test_groups_ids_addresses_and_missing_times_come_back():
    base = make_result(n_documents=30, n_topics=2)
    n = len(base.corpus)
    frame = pd.DataFrame({
        "text": list(base.corpus.texts), "key": [f"k{i}" for i in range(n)],
        "when": [None if i % 5 == 0 else f"2020-01-{1 + i % 28:02}" for i in range(n)],
        "who": [None if i % 7 == 0 else "ab"[i % 2] for i in range(n)],
        "link": [f"https://example.org/{i}" if i % 2 else None for i in range(n)],
    })  # fmt: skip
    corpus = Corpus(frame, text="text", id="key", time="when", group="who")
    page = explorer_html(replace(base, corpus=corpus))
    held, rows = about(page), np.flatnonzero(base.distinct.of_row >= 0)
    assert held["columns"] == {"time": "when", "group": "who", "url": "link"}
    assert column(page, "ids-0").decode().split("\0") == [f"k{i}" for i in rows]
    names = [None, *held["groups"]]
    expected = [None if i % 7 == 0 else "ab"[i % 2] for i in rows]
    assert [names[i] for i in column(page, "groups", "<u4")] == expected
    minutes = column(page, "times", "<i4")
    assert [(m == -(2**31)) for m in minutes] == [i % 5 == 0 for i in rows]
    links = column(page, "urls-0").decode().split("\0")
    assert links == [f"https://example.org/{i}" if i % 2 else "" for i in rows]


def test_very_long_texts_are_cut_and_the_page_says_so(monkeypatch):
    monkeypatch.setattr("embedtopics.report._page_data._CHARACTERS", 3000)
    page = explorer_html(make_result(n_documents=30, n_topics=2, texts=["long " * 2000]))
    limit = about(page)["cutAt"]
    texts = column(page, "texts-0").decode().split("\0")
    assert max(map(len, texts)) == limit
    assert sum(map(len, texts)) <= 3000


def test_the_page_names_themes_over_topics():
    result = make_result(400, 9)
    page = explorer_html(result)
    themes = about(page)["themes"]
    assert [theme["label"] for theme in themes] == [theme.label for theme in result._themes]
    assert sorted(t for theme in themes for t in theme["topics"]) == list(range(1, 10))
    places = [page.index(f'id="topic-{t}"') for theme in result._themes for t in theme.topics]
    assert places == sorted(places) and page.count('class="theme"') == len(themes)
    assert about(explorer_html(make_result(60, 3)))["themes"] == []


def test_passages_know_their_text():
    made = make_result(40, 2)
    of_row = np.arange(len(made.corpus)) // 3
    made.corpus.metadata["passage_of"] = [f"d{99 - n}" for n in of_row]
    numbers = column(explorer_html(made), "wholes", np.uint32)
    rows = of_row[made.distinct.of_row >= 0]
    assert len({*zip(rows, numbers, strict=True)}) == len({*rows}) == len({*numbers})


def test_write_report_writes_one_file(tmp_path, result, page):
    path = tmp_path / "study.html"
    assert report.write_report(result, path) == path
    assert path.read_text(encoding="utf-8") == page


def test_a_notebook_reads_the_selection_and_sets_it(result):
    pytest.importorskip("anywidget", reason="needs the extra notebook")
    view, corpus = report.explore(result), result.corpus
    assert view.page == explorer_html(result) and view.selected.empty
    has_text = np.flatnonzero(result.distinct.of_row >= 0)
    view.select([corpus.ids[row] for row in has_text[[9, 2, 2]]])
    rows = np.frombuffer(view.rows, "<u4").tolist()
    assert rows == has_text[[2, 9]].tolist()
    view.set_state({"rows": memoryview(np.array(rows[::-1], "<u4"))})  # as the page answers
    frame = view.selected
    assert frame.index.tolist() == corpus.index[rows[::-1]].tolist()
    assert frame["text"].tolist() == [corpus.texts[row] for row in rows[::-1]]
    assert frame["topic"].tolist() == result.labels[rows[::-1]].tolist()
    names = {-1: "(no topic)", **{topic.topic_id: topic.name for topic in result.topics}}
    assert frame["topic_name"].tolist() == [names[label] for label in frame["topic"]]
    without_text = int(np.flatnonzero(result.distinct.of_row < 0)[0])
    for id in ("nobody", corpus.ids[without_text]):
        with refuses("ids", row=1):
            view.select([corpus.ids[rows[0]], id])
    view.select([])
    assert view.selected.empty


def test_without_the_extra_a_notebook_shows_the_page_and_says_what_is_missing(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    _explorer._widget.cache_clear()
    view = report.explore(result)
    shown = view._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!doctype html&gt;') and shown.count("<") == 2
    for name in ("selected", "select"):
        with pytest.raises(MissingExtraError, match=r"embedtopics\[notebook\]"):
            getattr(view, name)
