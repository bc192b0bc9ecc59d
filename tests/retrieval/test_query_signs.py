"""Quotation marks, dashes and operators in queries: syntax, or a decision that they are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics import SearchIndex
from embedtopics.retrieval._query import parse_query

TEXTS = ["red wine and bread", "wine of a red grape", "red paint", "夜行列車で行く", "列車の夜"]


@pytest.fixture(scope="module")
def index():
    return SearchIndex.build(
        TEXTS, encoder=None, languages=["en"], stop_words=[], show_progress=False
    )


def found(hits):
    return sorted(TEXTS.index(hit.text) for hit in hits)


def notes(hits, name="ignored"):
    return [decision for decision in hits.decisions if decision.name == name]


@pytest.mark.parametrize(
    "query",
    [
        '"red wine"', "“red wine”", "„red wine“", "”red wine”", "«red wine»", "« red\u00a0wine »",
        "»red wine«", "‹red wine›", "“red wine\"", "＂red wine＂", "「red wine」", "『red wine』",
        "〝red wine〟", "❝red wine❞", "(“red wine”)", "“Red Wine”, grape", 'grape,"red wine"',
    ],
)  # fmt: skip
def test_quotes_of_every_language_ask_for_a_phrase(index, query):
    hits = index.search(query)
    assert found(hits) == [0]
    assert notes(hits, "phrases")[0].value == ["red wine"]
    assert not notes(hits)


def test_brackets_need_no_spaces_around_them(index):
    assert found(index.search("「夜行」「列車」")) == [3]
    assert parse_query("旅「夜行列車」の本").phrases == (("夜行", "行列", "列車"),)


@pytest.mark.parametrize("sign", "-‐‑‒–−﹣－")
@pytest.mark.parametrize("excluded", ["wine", '"red wine"', "“red wine”"])
def test_a_hyphen_short_dash_or_minus_excludes(index, sign, excluded):
    hits = index.search(f"red {sign}{excluded}")
    assert found(hits) == ([2] if excluded == "wine" else [1, 2])
    assert len(notes(hits, "excluded")) == 1
    assert not notes(hits)


@pytest.mark.parametrize(
    ("query", "signs"),
    [
        ("red —wine", ["—"]),
        ("red --wine", ["--"]),
        ("red - wine", ["-"]),
        ("red – wine – grape", ["–"]),
        ('red "wine', ['"']),
        ("red “wine", ['"']),
        ('red ""', ['"']),
        ('red "!?"', ['"']),
        ('the 5" red', ['"']),
        ("‘red wine’", ["‘"]),
        ("'red wine'", ["'"]),
        ("red NOT wine", ["NOT"]),
        ("red AND wine OR grape", ["AND", "OR"]),
        ("red && wine || grape", ["&&", "||"]),
        ("+red !wine", ["+", "!"]),
        ("win* r?d", ["*", "?"]),
        ("wine~2 red^3", ["~2", "^3"]),
        ("title:wine red", ["title:"]),
    ],
)
def test_a_sign_without_effect_is_reported(index, query, signs):
    (note,) = notes(index.search(query))
    assert note.value == signs
    assert "no effect" in note.message
    assert "excludes" in note.message
    assert "quotes" in note.message


@pytest.mark.parametrize(
    "query",
    [
        "red wine", "What about red wine?", "long-term", "2019–2020", "-5 degrees", "12:30",
        "it's the cats' wine", "https://a.example/x?y=1*2&&z", "desk+1@a.example", "x = y",
        "O'Brien", "not or and", "R&D", "C++", "wine, bread", "(red wine)", "NOTHING", "5%",
        "l’eau d’une",
    ],
)  # fmt: skip
def test_ordinary_punctuation_is_no_sign(query):
    assert parse_query(query).ignored == ()


def test_an_exclusion_may_be_an_address():
    texts = ["ask a@b.example", "ask c@b.example"]
    index = SearchIndex.build(texts, encoder=None, languages=["en"], show_progress=False)
    assert [hit.text for hit in index.search("ask -a@b.example")] == [texts[1]]
    assert [hit.text for hit in index.search('ask "c@b.example"')] == [texts[1]]


def test_dense_search_says_that_it_reads_signs_as_text():
    texts = ["red wine", "white wine"]
    index = SearchIndex.build(texts, encoder="random", languages=["en"], show_progress=False)
    (note,) = notes(index.search("“red wine” -white NOT", mode="dense"))
    assert note.value == ['"', "-", "NOT"]
    assert note.message.endswith("dense search reads all signs as text.")
    assert not notes(index.search("red wine", mode="dense"))


def test_the_decision_names_the_query(index):
    hits = index.search(["red", "red NOT wine"])
    assert "query 2" in notes(hits)[0].message


def test_a_phrase_that_is_repeated_is_read_once():
    query = parse_query('"red wine" “red wine” -paint –paint')
    assert query.phrases == (("red", "wine"),)
    assert query.excluded == (("paint",),)


def test_exclusions_and_phrases_look_only_at_documents_that_are_left(index, monkeypatch):
    from embedtopics.retrieval import _search

    read = []
    search = _search.texts_with
    monkeypatch.setattr(
        _search, "texts_with", lambda texts, *rest: read.extend(texts) or search(texts, *rest)
    )
    assert found(index.search('wine "bread" -"red grape"')) == [0]
    assert read == [TEXTS[0]]


@pytest.mark.parametrize(
    "unit",
    [
        '"', "'a ", "“", "” ", "-", "–a ", "a*", "*", "a:", "+a ", "NOT ", '-"', "‘a", "|", "「",
        "a?a", "x~1 ",
    ],
)  # fmt: skip
def test_endless_signs_are_read_in_one_pass(unit):
    # What went back over them would be at it for hours.
    parsed = parse_query(unit * (300_000 // len(unit)))
    assert len(parsed.ignored) <= 3


@given(st.text(alphabet="ab -–—\"'“”„«»「」*?:NOT+|~5\n", max_size=25))
def test_any_query_is_read(query):
    parsed = parse_query(query)
    assert all(parsed.phrases) and all(parsed.excluded)
    assert all(isinstance(sign, str) and sign for sign in parsed.ignored)
