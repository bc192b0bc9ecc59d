import base64
import json
import re
import sys
import zlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csc_matrix

from embedtopics import report
from embedtopics.corpus import Corpus
from embedtopics.errors import MissingExtraError
from embedtopics.report import _explorer
from embedtopics.report._explorer import explorer_html
from embedtopics.report._page_data import code_texts, indexed_terms, postings, varints
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


def read_varints(content):
    """Read LEB128 by its definition."""
    values, value, shift = [], 0, 0
    for byte in content:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(value)
            value, shift = 0, 0
    return values


def decoded(content, words):
    """Read a coded text by the description of the code."""
    out, at = "", 0
    while at < len(content):
        byte = content[at]
        at += 1
        if byte >= 0x80:
            if byte < 0xC0:
                rank = byte - 0x80
            elif byte < 0xF8:
                rank, at = 64 + (byte - 0xC0) * 255 + content[at] - 1, at + 1
            else:
                rest = (content[at] - 1) * 255 + content[at + 1] - 1
                rank, at = 64 + 56 * 255 + (byte - 0xF8) * 255**2 + rest, at + 2
            out += words[rank]
        elif byte == 1:
            length, shift, part = 0, 0, 128
            while part > 127:
                part, at = content[at], at + 1
                length |= (part & 127) << shift
                shift += 7
            out, at = out + content[at : at + length].decode(), at + length
        else:
            out += chr(byte)
    return out


@given(st.lists(st.integers(0, 2**35 - 1)))
def test_integers_come_back_from_seven_bits_a_byte(values):
    assert read_varints(varints(np.array(values, dtype=np.int64))) == values


words_and_more = st.text() | st.lists(
    st.sampled_from(
        ["the", "The", "café", "ไทย", "🙂", " ", "  ", "x", "é", "_", "\0", "\x01", "’"]
    )
).map("".join)


@given(st.lists(words_and_more, max_size=8))
def test_any_text_comes_back_from_its_code(texts):
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    coded = code_texts(texts * 4)
    back = [decoded(one, coded.words) for one in coded.texts[: len(texts)]]
    assert back == [text.replace("\0", "\ufffd") for text in texts]
    assert not any(b"\0" in one for one in coded.texts)


def test_words_with_codes_of_every_length_come_back():
    text = "".join(f" w{i}" for i in range(64 + 56 * 255 + 300))
    coded = code_texts([text] * 4)
    assert decoded(coded.texts[0], coded.words) == text
    assert len(coded.texts[0]) == 64 + 2 * 56 * 255 + 3 * 300


@given(st.integers(0, 40), st.integers(0, 6), st.integers(0, 2**32 - 1))
def test_posting_lists_hold_the_counts(n_documents, n_terms, seed):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.7, (n_documents, n_terms))
    content, n_bytes = postings(csc_matrix(counts))
    ends = np.concatenate([[0], np.cumsum(n_bytes, dtype=np.int64)])
    assert ends[-1] == len(content)
    found = np.zeros_like(counts)
    for term in range(n_terms):
        entries, document = iter(read_varints(content[ends[term] : ends[term + 1]])), -1
        for entry in entries:
            document += entry >> 1
            found[document, term] = next(entries) + 2 if entry & 1 else 1
    np.testing.assert_array_equal(found, counts)


def test_every_word_that_is_no_stop_word_can_be_searched(result):
    terms, lengths, counts = indexed_terms(
        result.term_counts, result.tokens, result.documents.weights
    )
    held = dict(zip(terms, counts.T.toarray(), strict=True))
    for term, expected in zip(terms, lengths, strict=True):
        assert expected in (0, len(term.split())), term
    for document, row in enumerate(result.documents.first_rows[:40].tolist()):
        for word in set(result.corpus.texts[row].split()):
            assert held[word][document] == result.corpus.texts[row].split().count(word)


def test_rows_texts_and_topics_come_back(page, result):
    held, corpus = about(page), result.corpus
    labels = column(page, "labels-0", "<u2").astype(int) - 1
    back = column(page, "repeats", "<u4")
    first = np.flatnonzero(back == 0)
    rows = column(page, "rows", "<u4")
    words = column(page, "words").decode().split("\0")
    texts = [decoded(t, words) for t in column(page, "texts-0").split(b"\0")]
    assert held["rows"] == len(rows) == int((result.documents.of_row >= 0).sum())
    assert held["withoutText"] == 1
    assert texts[1:] == [corpus.texts[rows[place]] for place in first][1:]
    document = np.cumsum(back == 0) - 1
    document[back > 0] = document[np.flatnonzero(back) - back[back > 0]]
    np.testing.assert_array_equal(labels[document], result.labels[rows])
    places = column(page, "places-0", "<u2").reshape(-1, 2).astype(float)
    shown = result.map[result.documents.of_row[rows[first]]]
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
    held, rows = about(page), np.flatnonzero(base.documents.of_row >= 0)
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
    words = column(page, "words").decode().split("\0")
    texts = [decoded(t, words) for t in column(page, "texts-0").split(b"\0")]
    assert max(map(len, texts)) == limit
    assert sum(map(len, texts)) <= 3000


def test_the_page_names_themes_over_topics():
    result = make_result(400, 9)
    page = explorer_html(result)
    themes = about(page)["themes"]
    assert [theme["label"] for theme in themes] == [theme.label for theme in result.themes]
    assert sorted(t for theme in themes for t in theme["topics"]) == list(range(1, 10))
    places = [page.index(f'id="topic-{t}"') for theme in result.themes for t in theme.topics]
    assert places == sorted(places) and page.count('class="theme"') == len(themes)
    assert about(explorer_html(make_result(60, 3)))["themes"] == []


def test_passages_know_their_text():
    made = make_result(40, 2)
    of_row = np.arange(len(made.corpus)) // 3
    made.corpus.metadata["passage_of"] = [f"d{99 - n}" for n in of_row]
    numbers = column(explorer_html(made), "wholes", np.uint32)
    rows = of_row[made.documents.of_row >= 0]
    assert len({*zip(rows, numbers, strict=True)}) == len({*rows}) == len({*numbers})


def test_write_report_writes_one_file_and_a_notebook_shows_it_in_a_frame(tmp_path, result, page):
    path = tmp_path / "study.html"
    assert report.write_report(result, path) == path
    assert path.read_text(encoding="utf-8") == page
    shown = report.explorer(result)._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!doctype html&gt;') and shown.count("<") == 2


def test_a_notebook_reads_the_selection_and_sets_it(result):
    pytest.importorskip("anywidget", reason="needs the extra notebook")
    view, corpus = report.explore(result), result.corpus
    assert view.page == explorer_html(result) and view.selected.empty
    has_text = np.flatnonzero(result.documents.of_row >= 0)
    view.select([corpus.ids[row] for row in has_text[[9, 2, 2]]])
    rows = np.frombuffer(view.rows, "<u4").tolist()
    assert rows == has_text[[2, 9]].tolist()
    view.set_state({"rows": memoryview(np.array(rows[::-1], "<u4"))})  # as the page answers
    frame = view.selected
    assert frame.index.tolist() == corpus.index[rows[::-1]].tolist()
    assert frame["text"].tolist() == [corpus.texts[row] for row in rows[::-1]]
    assert frame["topic"].tolist() == result.labels[rows[::-1]].tolist()
    names = {-1: "(no topic)", **{topic.topic_id: topic.label for topic in result.topics}}
    assert frame["label"].tolist() == [names[label] for label in frame["topic"]]
    without_text = int(np.flatnonzero(result.documents.of_row < 0)[0])
    for id in ("nobody", corpus.ids[without_text]):
        with refuses("ids", row=1):
            view.select([corpus.ids[rows[0]], id])
    view.select([])
    assert view.selected.empty


def test_without_the_extra_a_notebook_shows_the_page_and_says_what_is_missing(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    _explorer._widget.cache_clear()
    view = report.explore(result)
    assert view._repr_html_() == report.explorer(result)._repr_html_()
    with pytest.raises(MissingExtraError, match=r"embedtopics\[notebook\]"):
        _ = view.selected
    with pytest.raises(MissingExtraError, match=r"embedtopics\[notebook\]"):
        view.select([])
