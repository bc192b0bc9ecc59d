"""What a search shows: hits as sequences and tables, and snippets of their passages."""

import html
import io
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from embedtopics.retrieval._bm25 import LexicalSettings, lexical_settings
from embedtopics.retrieval._snippets import make_snippet
from embedtopics.retrieval.results import Hit, SearchHits
from embedtopics.terms._spans import word_spans

PLAIN = LexicalSettings()
ENGLISH = lexical_settings(["en"])


def shown_with(found, before, after):
    """Return a snippet as text, with its marks."""
    return html.unescape(found.html().replace("<mark>", before).replace("</mark>", after))


def marked(text, query, settings=PLAIN, **others):
    found = make_snippet(text, query, settings, **others)
    return [text[begin:end] for begin, end in found.marks]


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("An ÉTÉ, an e\u0301te\u0301, an &eacute;t&eacute;.", "été",
         ["ÉTÉ", "e\u0301te\u0301", "&eacute;t&eacute;"]),
        ("L'eau et l\u2019EAU", "eau", ["eau", "EAU"]),
        ("The 🏥hospital🏥 closed", "Hospital", ["hospital"]),
        ("מחיר הדירות עלה", "הדירות", ["הדירות"]),
        ("日本語の文章", "日本語", ["日本語"]),
        ("co\u00adoperate", "cooperate", ["co\u00adoperate"]),
        ("a <b class='rate'>rate</b>", "rate class", ["rate"]),
        ("unrelated", "rate", []),
        ("text", "", []),
        ("", "rate", []),
    ],
)  # fmt: skip
def test_words_are_marked_where_they_were_written(text, query, expected):
    assert marked(text, query) == expected


def test_stop_words_that_were_looked_for_are_marked():
    settings = lexical_settings(["en"])
    text = "They met at the old mill by the lane."
    assert shown_with(make_snippet(text, "the mill", settings), "[", "]") == text.replace(
        "the", "[the]"
    ).replace("mill", "[mill]")
    found = make_snippet(text, "the mill lane", settings, weights={"mill": 2.0, "lane": 1.0})
    assert shown_with(found, "[", "]") == "They met at the old [mill] by the [lane]."
    assert shown_with(make_snippet(text, "the mill lane", settings), "[", "]") == (
        "They met at the old mill by the [lane]."
    )


def test_inflections_are_marked_and_stop_words_are_not():
    text = "The hospitals of the county were closed: a closing hospital."
    assert marked(text, "closings of the hospital", ENGLISH) == ["hospitals", "closed", "closing",
                                                                "hospital"]  # fmt: skip


def brute_force(text, query_words, weights, n):
    """Return the most that a stretch of n words shows: different words by weight, then all."""
    words = [word for word, _, _ in word_spans(text)]
    n = min(n, len(words))
    return max(
        (
            sum(weights.get(w, 1.0) for w in sorted(set(words[i : i + n]) & query_words)),
            sum(w in query_words for w in words[i : i + n]),
        )
        for i in range(len(words) - n + 1)
    )


@given(
    st.lists(st.sampled_from("abcxyz"), min_size=1, max_size=40).map(" ".join),
    st.sets(st.sampled_from("abc")),
    st.dictionaries(st.sampled_from("abc"), st.sampled_from([0.25, 1.0, 3.0])),
    st.integers(1, 9),
)
def test_no_stretch_shows_more(text, query, weights, n):
    found = make_snippet(text, " ".join(sorted(query)), PLAIN, weights=weights, n_words=n)
    shown = text[slice(*found.span)]
    assert len(shown.split()) == min(n, len(text.split()))
    if query & set(text.split()):
        assert brute_force(shown, query, weights, n) == brute_force(text, query, weights, n)
    else:
        assert text.startswith(shown)
    assert found.cut == (found.span[0] > 0, found.span[1] < len(text))


def test_the_stretch_is_thirty_words_with_what_matters_in_its_middle():
    text = " ".join(f"w{i}" for i in range(200)) + "."
    found = make_snippet(text, "w100 w103", PLAIN)
    words = str(found).split()
    assert words[0] == words[-1] == "…" and len(words) == 32
    assert words[1:-1] == [f"w{i}" for i in range(87, 117)]
    assert str(make_snippet(text, "w0", PLAIN)).startswith("w0 w1")
    assert str(make_snippet(text, "w199", PLAIN)).endswith("w199.")


def test_weights_are_of_words_as_the_query_has_them():
    text = "closed " + "x " * 40 + "the hospitals" + " x" * 40
    weights = {"closing": 1.0, "hospital": 2.0}
    assert "hospitals" in str(
        make_snippet(text, "closing hospital", ENGLISH, weights=weights, n_words=5)
    )
    weights = {"closing": 1.5, "closes": 1.0, "hospital": 2.0}  # words of one stem count together
    assert "closed" in str(
        make_snippet(text, "closing closes hospital", ENGLISH, weights=weights, n_words=5)
    )


def test_the_passage_bounds_the_snippet():
    text = "rate before. (The passage has a rate.) rate behind"
    span = (13, 38)
    found = make_snippet(text, "rate", PLAIN, span=span)
    assert shown_with(found, "[", "]") == "(The passage has a [rate].)"
    assert found.cut == (False, False)


class Reader(HTMLParser):
    """Reads back the text and the marked parts of a page."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.text, self.tags, self.marked, self._in = "", [], [], False

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, attrs))
        self._in = True

    def handle_endtag(self, tag):
        self._in = False

    def handle_data(self, data):
        self.text += data
        if self._in:
            self.marked.append(data)


HOSTILE = st.lists(
    st.sampled_from(
        ["<script>", "rate", "RATE</mark>", "&lt;", "&", '"', "'", "[bold]", "[/]", "\\", "\\[x]",
         "\x1b[31m", "\u202e", "\ud800", "é", "\n", "🏥", "<mark>", "\0", "日本", "\u0301"]
    ),
    max_size=12,
).map(" ".join)  # fmt: skip


@given(HOSTILE)
def test_text_of_a_corpus_is_never_markup(text):
    found = make_snippet(text, "rate 日本", PLAIN)
    plain = str(found)
    assert not set(plain) & {"\x1b", "\0", "\n", "\u202e", "\ud800"}
    plain.encode()
    page = Reader()
    page.feed(found.html())
    page.close()
    assert page.text == plain
    assert {tag for tag, _ in page.tags} <= {"mark"} and not any(a for _, a in page.tags)
    expected = [text[b:e] for b, e in found.marks]
    assert page.marked == expected
    assert {m.lower() for m in expected} <= {"rate", "日本"}
    shown = found.rich()
    assert shown.plain == plain
    assert [plain[s.start : s.end] for s in shown.spans] == expected
    screen = io.StringIO()
    Console(file=screen, width=10_000, force_terminal=False).print(shown)
    assert screen.getvalue().rstrip("\n") == plain


def test_an_endless_word_is_cut_between_letters():
    text = "rate " + "e\u0301" * 5000
    found = make_snippet(text, "rate", PLAIN, n_words=5)
    shown = text[slice(*found.span)]
    assert shown == "rate" and found.cut == (False, True)
    far = "x" * 5000 + " rate " + "y" * 5000
    assert marked(far, "rate") == ["rate"]
    assert len(str(make_snippet(far, "rate", PLAIN))) < 700


def test_a_word_is_not_marked_for_its_beginning_where_reading_stops():
    text = "y " * 9997 + "rate rates"  # read as far as "rate r"
    assert text[:20_000].endswith("rate r")
    assert marked(text, "rate r") == ["rate"]
    cut = "y " * 9998 + "rates are rates"
    assert cut[:20_000].endswith("rate") and marked(cut, "rate") == []
    assert marked("y " * 9998 + "rate", "rate") == ["rate"]


# Hits.

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
