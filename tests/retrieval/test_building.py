"""Building an index and adding to it: what is kept, what is refused, and what is noted."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from embedtopics import Corpus, SearchIndex
from embedtopics.retrieval import _build
from tests.factories import refuses
from tests.retrieval.oracle import Tiny, build

TEXTS = ["Cats purr.", "", "  \n", "\u200b", "Dogs bark."]
FRAME = pd.DataFrame({"body": ["Cats purr.", "Dogs bark."], "id": ["1", "2"], "n": [1, 2]})


def index_of(texts, **others):
    corpus = Corpus(texts, ids=list("abcde"))
    return SearchIndex.build(corpus, **{"encoder": "random", "languages": ["en"], **others})


@pytest.mark.parametrize("passages", [True, False])
@pytest.mark.parametrize("mode", ["dense", "hybrid", "lexical"])
def test_no_query_finds_a_row_without_text(mode, passages):
    index = index_of(TEXTS, passages=passages)
    assert len(index) == 5
    found = index.search("cats and dogs", k=5, mode=mode)
    assert {hit.id for hit in found} == {"a", "e"}
    assert [note.value for note in index.decisions if note.name == "without text"] == [3]
    # Nor does it count among the passages in which a word is rare.
    (hit,) = index.search("purrs", 1, mode="lexical")
    assert hit.bm25 == pytest.approx(np.log(1 + 1.5 / 1.5) / 2.5)


def test_nor_is_it_similar_to_another_whatever_vector_it_was_given():
    index = index_of(TEXTS, embeddings=np.ones((5, 4), dtype=np.float32), encoder=None)
    assert {hit.id for hit in index.similar("a", k=5)} == {"e"}
    assert index.duplicates().groups == (("a", "e"),)
    with refuses("id"):
        index.similar("c")


def test_a_recall_that_is_missed_is_reported(monkeypatch):
    monkeypatch.setattr("embedtopics.retrieval.dense._build.CANDIDATES", (10,))
    vectors = np.random.default_rng(0).normal(size=(400, 256))
    texts = [f"text {i}" for i in range(400)]
    options = {"encoder": None, "embeddings": vectors, "languages": []}
    coded = SearchIndex.build(texts, kind="ivf", **options)
    notes = {note.name: note for note in coded.decisions}
    assert notes["recall missed"].value == coded.measured[0]["measured"]["recall"] < 0.95
    assert "less than 95%" in notes["recall missed"].message
    exact = SearchIndex.build(texts, kind="flat", **options)
    assert "recall missed" not in {note.name for note in exact.decisions}


# What cannot be stored is refused before anything is encoded.


def corpus(**columns):
    return Corpus(FRAME.assign(**columns), text="body", id="id")


@pytest.fixture
def index():
    made = SearchIndex.build(corpus(), encoder=None, embeddings=np.eye(2), languages=["en"])
    yield made
    assert len(made) == 2


@pytest.fixture
def no_encoding(index, monkeypatch):
    monkeypatch.setattr(_build, "prepare", None)


@pytest.mark.parametrize(
    ("columns", "parameter"),
    [
        ({}, "id"), ({"id": ["3", "4"], "n": ["a", "b"]}, "column 'n' of the metadata"),
        ({"id": ["3", "4"], "when": pd.to_timedelta([1, 2], "D")}, "column 'when' of the metadata"),
    ],
)  # fmt: skip
def test_adding(index, no_encoding, columns, parameter):
    with refuses(parameter, row=0):
        index.add(corpus(**columns), embeddings=np.eye(2))


def test_building(no_encoding, tmp_path):
    with refuses("column 'when' of the metadata", row=0):
        years = corpus(when=pd.period_range("2020", periods=2, freq="Y"))
        SearchIndex.build(years, tmp_path / "a", encoder="random")
    for name in ("languages", "stop_words"):
        for wrong in ([3], "en"):
            with refuses(name):
                SearchIndex.build(corpus(), tmp_path / "a", encoder="random", **{name: wrong})
    assert list(tmp_path.iterdir()) == []


def test_the_checkpoint_of_an_index_may_compute_in_other_numbers(tmp_path):
    texts = ["A red fox runs.", "The blue whale swims far.", "Green frogs.", "  "]
    build(texts, tmp_path / "index")

    class OtherNumbers(Tiny):
        fingerprint = "in other numbers"

    class SameSpace(OtherNumbers):
        space = Tiny.fingerprint

    with refuses("encoder"):
        SearchIndex.load(tmp_path / "index", encoder=OtherNumbers())
    near, far = SameSpace(), SameSpace()
    far.encode_with_report = lambda texts, **_: replace(
        made := Tiny().encode_with_report(texts), embeddings=made.embeddings[:, ::-1]
    )
    found = SearchIndex.load(tmp_path / "index", encoder=near).search("frogs", 1, mode="dense")
    assert found[0].text == "Green frogs."
    with refuses("encoder"):
        SearchIndex.load(tmp_path / "index", encoder=far)


def test_numerals_of_a_csv_file_are_numbers_and_keep_the_kind_of_their_column(tmp_path):
    columns = {"year": ["1999", "2020", ""], "share": ["0.5", "1", "NA"], "code": ["01", "75", "3"]}
    texts = ["One text.", "Another text.", "A third."]
    pd.DataFrame({"text": texts, **columns}).to_csv(tmp_path / "a.csv", index=False)
    index = SearchIndex.build(tmp_path / "a.csv", encoder="random")
    assert index.columns == {"year": "integer", "share": "real", "code": "text"}
    assert [
        hit.text for hit in index.search("text", 10, mode="dense", where="year >= 2000")
    ] == texts[1:2]
    more = pd.DataFrame({"text": ["A fourth text."], "year": ["2024"], "code": ["752"]})
    more.to_csv(tmp_path / "b.csv", index=False)
    index.add(tmp_path / "b.csv")
    assert index.columns["code"] == "text"
    found = index.search("text", 10, mode="dense", where="year >= 2000 and code startswith '75'")
    assert sorted(hit.metadata["year"] for hit in found) == [2020, 2024]


@pytest.mark.parametrize("stems", [True, False])
def test_texts_too_short_for_a_language_are_compared_by_english_stems(stems):
    texts = ["red apple", "two apples", "a pear"]

    index = SearchIndex.build(texts, encoder=None, stems=stems, show_progress=False)

    assert len(index.search("apples")) == (2 if stems else 1)
    assert ("language" in {note.name for note in index.decisions}) == stems


def test_texts_of_a_recognized_language_have_its_stems_alone():
    texts = ["Die Äpfel lagen lange im Garten hinter dem Haus.", "Ein Apfel", "apples"]

    index = SearchIndex.build(texts, encoder=None, show_progress=False)

    assert {hit.text for hit in index.search("Äpfel")} == set(texts[:2])
    assert "language" not in {note.name for note in index.decisions}
