"""Letters in other forms, and addresses, in the texts and queries of an index."""

import shutil
from pathlib import Path

import pytest

from embedtopics import SearchIndex

EARLIER = Path(__file__).parents[1] / "data" / "saved" / "index-words"


def indexed(texts, **options):
    return SearchIndex.build(texts, encoder=None, show_progress=False, **options)


FORMS = [
    ("istanbul", "İSTANBUL", "en"),
    ("İstanbul", "Istanbul", "en"),
    ("IŞIK", "ışık", "tr"),
    ("ışık", "IŞIK", "tr"),
    ("diyarbakir", "DİYARBAKIR", "tr"),
    ("flow", "ﬂow", "en"),
    ("ﬁre", "fire", "en"),
    ("ＮＡＴＯ", "NATO", "en"),
    ("nato", "ＮＡＴＯ", "en"),
    ("2024", "２０２４", "en"),
    ("カタカナ", "ｶﾀｶﾅ", "ja"),
    ("ガス", "ｶﾞｽ", "ja"),
    ("bold", "𝗯𝗼𝗹𝗱", "en"),
    ("STRASSE", "Straße", "de"),
    ("straße", "STRASSE", "de"),
    ("ΟΔΟΣ", "οδός".replace("ό", "ο"), "el"),
    ("м'ята", "мʼята", "uk"),
    ("café", "cafe\u0301", "fr"),
    ("مرحبا", "ﻣﺮﺣﺒﺎ", "ar"),
    ("long\u2011term", "long-term", "en"),
]


@pytest.mark.parametrize(("query", "text", "language"), FORMS)
@pytest.mark.parametrize("stems", [True, False])
def test_a_query_finds_a_word_in_another_form_of_its_letters(query, text, language, stems):
    texts = [f"{text} 1", "2"]
    index = indexed(texts, languages=[language], stop_words=[], stems=stems)
    hits = index.search(query)
    assert [hit.text for hit in hits] == [texts[0]]
    assert hits[0].snippet.marks[0] == (0, len(text)) or "-" in text


@pytest.mark.parametrize(("query", "text"), [('"İzmir limanı"', "İzmir limanı"), ("-oﬃce", "x")])
def test_phrases_and_exclusions_read_letters_as_texts_do(query, text):
    texts = ["the office", "limanı izmir", "İzmir limanı", "x"]
    hits = indexed(texts, stop_words=[], languages=["tr"]).search(f"limanı x {query}")
    assert text in [hit.text for hit in hits]
    assert not {"the office", "limanı izmir"} & {hit.text for hit in hits if query[0] == '"'}


def test_superscripts_are_no_digits():
    texts = ["x² + 1", "x2 y2"]
    index = indexed(texts, languages=["en"], stop_words=[])
    assert [hit.text for hit in index.search("x2")] == [texts[1]]
    assert [hit.text for hit in index.search("x²")] == [texts[0]]


ADDRESSES = [
    "ask Desk@Paper.example.",
    "old issues: https://www.paper.example/archive?year=1999",
    "the paper is an example of an archive at a desk",
    "see http://paper.example/archive/",
]


@pytest.mark.parametrize(
    ("query", "positions"),
    [
        ("desk@paper.example", [0]),
        ("DESK@paper.example", [0]),
        ("https://paper.example/archive?year=1999", [1]),
        ("www.paper.example/archive?year=1999", [1]),
        ("https://paper.example/archive", [3]),
        ("http://www.paper.example/archive/", [3]),
        ('"desk@paper.example"', [0]),
        ("1999", [1]),
        ("archive paper -https://paper.example/archive", [0, 1, 2]),
    ],
)
def test_an_address_is_found_before_texts_with_its_parts(query, positions):
    index = indexed(ADDRESSES, languages=["en"], stop_words=[])
    hits = [hit.text for hit in index.search(query)]
    assert set(hits[: len(positions)]) == {ADDRESSES[position] for position in positions}
    if query[0] == '"' or "-" in query or query.isdigit():
        assert len(hits) == len(positions)


def test_an_address_is_marked_where_it_stands():
    index = indexed(ADDRESSES, languages=["en"], stop_words=[])
    assert (
        "<mark>Desk@Paper.example</mark>." in index.search("desk@paper.example")[0].snippet.html()
    )
    assert "<mark>archive</mark>?year" in index.search("archive 1999")[0].snippet.html()


@pytest.mark.parametrize(("words", "n"), [("social", 1), ("social-drop", 0), ("social-split", 1)])
def test_the_option_for_words_decides_about_addresses(words, n):
    index = indexed(["ask a@b.example", "c"], words=words, languages=["en"])
    assert len(index.search("a@b.example")) == n


@pytest.fixture
def earlier(tmp_path):
    """An index of words that an earlier version wrote, of "İzmir oﬃce" and "see www.a.example"."""
    return SearchIndex.load(shutil.copytree(EARLIER, tmp_path / "index"))


def test_an_index_of_an_earlier_version_reads_letters_as_it_was_built(earlier):
    assert [hit.text for hit in earlier.search("İzmir")] == ["İzmir oﬃce"]
    assert [hit.text for hit in earlier.search("oﬃce")] == ["İzmir oﬃce"]
    assert not len(earlier.search("izmir"))


def test_an_index_of_an_earlier_version_says_that_it_holds_no_addresses(earlier):
    (note,) = earlier.search("www.a.example").decisions
    assert note.name == "empty query"
    assert note.message.endswith("the index was built without addresses as words.")


def test_documents_are_added_to_an_index_of_an_earlier_version_by_its_rules(earlier):
    earlier.add(["İzmir limanı, www.b.example"], show_progress=False)
    assert len(earlier.search("İzmir")) == 2
    assert not len(earlier.search("www.b.example"))
    assert earlier.compact()
    assert len(earlier.search("İzmir")) == 2


def test_letters_of_an_index_are_those_of_its_settings_after_loading(tmp_path):
    indexed(["İzmir oﬃce"], out=tmp_path / "index", languages=["en"])
    index = SearchIndex.load(tmp_path / "index")
    assert index.settings["lexical"]["words"] == {"addresses": True, "version": 2}
    assert len(index.search("izmir office")) == 1
