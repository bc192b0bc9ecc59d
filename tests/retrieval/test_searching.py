"""Searches: filters, long documents, encoders of all kinds, and what is refused."""

import itertools

import numpy as np
import pandas as pd
import pytest

from embedtopics import Corpus, SearchIndex
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.encoders.words._counts import RandomProjectionEncoder
from embedtopics.errors import InputError
from embedtopics.retrieval import _search
from embedtopics.retrieval.storage._collection import Collection
from tests.factories import raising, refuses
from tests.retrieval.oracle import Passages, Tiny, build

WORDS = [f"w{i}" for i in range(30)]


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(11)
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, 15))) for _ in range(120)]
    texts[5], texts[6], texts[7] = None, "   ", texts[8]
    return pd.DataFrame({
        "id": range(1000, 1120), "text": texts, "n": rng.integers(0, 50, 120),
        "source": rng.choice(["A", "B", None], 120),
    })  # fmt: skip


@pytest.fixture(scope="module")
def index(frame):
    return build(Corpus(frame, text="text", id="id"))


def texts_of(frame):
    return dict(zip(frame.id.astype(str), frame.text.fillna(""), strict=True))


def test_many_passages_of_one_document_do_not_hide_the_others(monkeypatch):
    monkeypatch.setattr(_search, "DEPTH", 1)
    index = build([" ".join(["cat"] * 400), "cat dog", "cat owl hen", "fox"])
    for mode, n in (("dense", 4), ("lexical", 3), ("hybrid", 4)):
        (hits,) = index.search("cat", 4, mode=mode).hits
        assert len(hits) == n and hits[0].text.startswith("cat cat")


def test_documents_without_text_may_be_added_alone():
    index = build(["cat", "dog"])
    assert index.add([None, " "], show_progress=False) == 2
    index.add(Corpus(["owl"], ids=["o"]), show_progress=False)
    index.compact()
    assert len(index) == 5 and index.search("owl", 1)[0].id == "o"
    for data in ([], [None, ""]):
        with pytest.raises(InputError, match="has no text"):
            build(data)


def test_ids_of_any_kind_are_texts(index):
    assert index.similar(1001, 1).hits[0][0].id == index.similar("1001", 1).hits[0][0].id
    other = build(Corpus(["cat", "dog", "owl"], ids=[17, 18.0, "x"]))
    assert other.remove([17, np.int64(18)]) == 2
    assert [hit.id for hit in other.search("owl").hits[0]] == ["x"]
    with refuses("ids"):
        other.remove([17, "x"])
    assert len(other) == 1
    for bad in (17, "17", None):
        with refuses("ids"):
            other.remove(bad)


def test_embeddings_take_the_place_of_encoding():
    vectors = np.array([[3, 0], [0, 1], [1, 1]], dtype=np.float64)
    index = build(["cat cat cat cat cat", "dog", "owl"], embeddings=vectors, encoder=Own())
    (hits,) = index.search("q", 9, mode="dense", vectors=[[0, 5]]).hits
    assert [hit.text for hit in hits] == ["dog", "owl", "cat cat cat cat cat"]
    assert [hit.score for hit in hits] == pytest.approx([1, 0.5**0.5, 0])
    assert hits[2].span == (0, 19) and vectors[0, 0] == 3
    index.add(["hen"], embeddings=[[0, 2]], show_progress=False)
    assert [h.text for h in index.search("", 2, vectors=[[0, 1]]).hits[0]] == ["dog", "hen"]
    for bad in ([[1, 2, 3]], [[1, 2]] * 2, [[1, np.nan]]):
        with pytest.raises(InputError, match=r"^embeddings must be"):
            index.add(["fox"], embeddings=bad, show_progress=False)
    with refuses("embeddings"):
        build(["a", "b"], embeddings=[[1.0, 2.0]], encoder=Own())


class Own:
    """An encoder that says nothing of itself."""

    def encode(self, texts):
        return np.array([[len(text), 1.0] for text in texts])


def test_an_encoder_that_cannot_have_made_the_embeddings(tmp_path):
    texts, vectors = ["cat", "dog"], np.eye(2)
    with refuses("embeddings"):
        SearchIndex.build(texts, encoder=Tiny(), embeddings=vectors, show_progress=False)
    with refuses("encoder"):
        SearchIndex.build(texts, encoder="lsa", embeddings=vectors, show_progress=False)
    index = SearchIndex.build(
        texts, tmp_path / "i", encoder=None, embeddings=vectors, show_progress=False
    )
    with pytest.raises(InputError, match=r"vectors, but no encoder; give vectors="):
        index.search("cat")
    assert index.search("dog", 1, vectors=[[0, 1]])[0].text == "dog"
    assert index.search("dog", 1, mode="lexical")[0].text == "dog"
    assert "no encoder" in repr(index)
    loaded = SearchIndex.load(tmp_path / "i", encoder=Own())
    assert len(loaded.search("cat").hits[0]) == 2
    wrong = SearchIndex.load(tmp_path / "i", encoder=Tiny())
    with refuses("the encoder's vectors"):
        wrong.search("cat")


TOPICAL = [
    "the cat purrs and the cat sleeps", "a dog barks at the cat", "dogs bark and run",
    "the train leaves the station", "a train is late at the station", "stations and rails",
]  # fmt: skip


@pytest.mark.parametrize("name", ["lsa", "fasttext"])
def test_encoders_that_learnt_from_texts(tmp_path, name):
    encoder = resolve_encoder(name).fitted_to(TOPICAL)
    index = SearchIndex.build(TOPICAL, tmp_path / "i", encoder=encoder, show_progress=False)
    index.add(["a cat at the station"], show_progress=False)
    expected = index.search("cat", 9)
    assert len(expected.hits[0]) == 7
    vectors = encoder.encode(["cat", "a cat at the station"]).astype(float)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    (hit,) = [hit for hit in expected.hits[0] if hit.text == "a cat at the station"]
    assert hit.similarity == pytest.approx(vectors[0] @ vectors[1], abs=1e-6)
    loaded = SearchIndex.load(tmp_path / "i")
    assert [hit.id for hit in loaded.search("cat", 9).hits[0]] == [
        hit.id for hit in expected.hits[0]
    ]
    assert loaded.search("cat", mode="lexical").hits[0]
    again = SearchIndex.load(tmp_path / "i", encoder=encoder).search("cat", 9)
    assert [hit.id for hit in again.hits[0]] == [hit.id for hit in expected.hits[0]]
    other = resolve_encoder(name).fitted_to(TOPICAL[:3] * 2 + ["other words"])
    for wrong in (other, name):  # another one, and one that was not fitted
        with refuses("encoder"):
            SearchIndex.load(tmp_path / "i", encoder=wrong)


def test_encoders_by_name_by_object_and_sparse_ones(tmp_path):
    built = SearchIndex.build(TOPICAL, tmp_path / "i", encoder="random", show_progress=False)
    first = built.search("cat")
    assert repr(SearchIndex.load(tmp_path / "i").search("cat")) == repr(first)
    with refuses("encoder"):
        SearchIndex.load(tmp_path / "i", encoder=RandomProjectionEncoder(256, random_state=1))
    SearchIndex.build(TOPICAL, tmp_path / "o", encoder=Own(), show_progress=False).search("cat")
    with pytest.raises(
        InputError, match=r"\(Own\) cannot be loaded by name; load the index with encoder="
    ):
        SearchIndex.load(tmp_path / "o").search("cat")
    assert SearchIndex.load(tmp_path / "o", encoder=Own()).search("cat").hits[0]
    with refuses("encoder"):
        SearchIndex.build(TOPICAL, encoder="tfidf", show_progress=False)
    with pytest.raises(InputError, match="encoder"):
        SearchIndex.build(TOPICAL, encoder=5, show_progress=False)


class Counting(Tiny):
    """Stands for an encoder with a cache on disk."""

    @property
    def uncached(self):
        return Tiny()

    def encode_with_report(self, texts, **others):
        assert "secret" not in texts
        return super().encode_with_report(texts, **others)


def test_queries_are_not_written_to_the_cache_of_texts():
    index = build(["secrets of cats", "dog"], encoder=Counting())
    assert len(index.search("secret", mode="dense").hits[0]) == 2


@pytest.fixture(scope="module")
def pets():
    return SearchIndex.build(
        ["the cat purrs", "a dog"], encoder=Tiny(), languages=["en"], show_progress=False
    )


def names(found):
    return [(decision.name, decision.value) for decision in found.decisions]


def test_queries_of_all_kinds(pets):
    assert pets.search([]).hits == () and pets.search((), vectors=np.empty((0, 24))).hits == ()
    for mode in ("dense", "lexical", "hybrid"):
        assert pets.search(["", " \n", "🙂"], mode=mode).hits == ((), (), ())
    (hit,) = pets.search("the", mode="lexical").hits[0]  # there is nothing else to look for
    assert hit.text == "the cat purrs" and pets.search("of", mode="lexical").hits == ((),)
    assert len(pets.search("the", mode="hybrid").hits[0]) == 2
    long = pets.search("cats and dogs " * 8000, 5)
    assert len(long.hits[0]) == 2
    assert pets.search("cat \ud800 \0", 1)[0].text == "the cat purrs"
    assert len(pets.search(pd.Series(["cat", "dog"]))) == 2


def test_decisions_say_which_query_they_are_about(pets):
    assert names(pets.search("of", mode="lexical")) == [("only stop words", ["of"])]
    found = pets.search(["cat", "", "of", "cat owl", "owl", ""])
    assert names(found) == [
        ("no direction", ""), ("empty query", []), ("only stop words", ["of"]),
        ("words not held", ["owl"]), ("words not held", ["owl"]),
    ]  # fmt: skip
    messages = [decision.message for decision in found.decisions]
    for message, number in zip(messages, [2, 2, 3, 4, 5], strict=True):
        assert f"query {number}" in message.lower() and "the query" not in message.lower()
    assert names(pets.search("🙂", mode="dense")) == [("no direction", "🙂")]
    assert pets.search("cat").decisions == ()


@pytest.mark.parametrize(
    "wanted",
    [
        {"mode": "sparse"}, {"k": 0}, {"k": True}, {"k": 2.5}, {"diversity": -0.1},
        {"diversity": "a"}, {"diversity": float("nan")},
        {"weight": 1.5}, {"where": "m > 1"}, {"reranker": 5},
        {"vectors": [1.0] * 24}, {"vectors": [[1.0] * 24] * 2}, {"vectors": [[1.0] * 5]},
        {"vectors": [[np.inf] * 24]},
    ],
)  # fmt: skip
def test_bad_options(index, wanted):
    with pytest.raises(InputError, match=f"^{next(iter(wanted))} must be"):
        index.search("w1", **wanted)


def test_diversity_counts_whatever_the_scale_of_scores(index):
    """Logits of a cross-encoder may all be below zero, and so may cosines."""

    def logits(pairs):
        return np.array([-9.0 - 0.01 * len(text) for _, text in pairs])

    best = index.search("w1 w2", 8, reranker=logits).hits[0]
    varied = index.search("w1 w2", 8, diversity=0.9, reranker=logits).hits[0]
    assert best[0].id == varied[0].id and best != varied
    away = -np.ones((1, 2))
    other = build(["a", "b", "c"], embeddings=[[1, 1], [1, 1.01], [1, 0]], encoder=Own())
    found = other.search("", 2, mode="dense", vectors=away, diversity=0.95)
    assert [hit.text for hit in found.hits[0]] == ["c", "b"] or found.hits[0][1].text == "a"
    plain = other.search("", 3, mode="dense", vectors=away).hits[0]
    assert all(hit.score < 0 for hit in plain) and plain[0].text == "c"


def test_a_cross_encoder_sees_the_best_passages(index, monkeypatch):
    monkeypatch.setattr(_search, "CANDIDATES", 15)
    seen = []

    def predict(pairs):
        seen.extend(pairs)
        return [float(len(text)) for _, text in pairs]

    found = index.search("w1 w2", 3, reranker=predict)
    best = index.search("w1 w2", 15).hits[0]
    assert {(query, text) for query, text in seen} == {("w1 w2", hit.passage) for hit in best}
    expected = sorted((len(hit.passage) for hit in best), reverse=True)[:3]
    assert [hit.reranked for hit in found.hits[0]] == expected
    assert [len(hit.passage) for hit in found.hits[0]] == expected


def test_a_search_gives_up_where_all_that_it_finds_goes(index, monkeypatch):
    monkeypatch.setattr(_search, "make_hits", raising(_search.DocumentRemoved))
    stamps = itertools.count()
    monkeypatch.setattr(Collection, "stamp", lambda _: str(next(stamps)))
    with pytest.raises(InputError, match="keeps removing"):
        index.search("w1")


def test_export_equals_what_the_index_holds(index, frame, tmp_path):
    import pyarrow.parquet as pq

    texts = {id: text for id, text in texts_of(frame).items() if text.strip()}
    passages = Passages(texts)
    n = len(passages.ids) + 2
    assert index.export(tmp_path / "x.parquet") == n
    table = pq.read_table(tmp_path / "x.parquet").to_pandas()
    held = table[table.text != ""]
    assert len(table) == n and held.id.tolist() == passages.ids
    assert held.text.tolist() == passages.texts
    assert list(zip(held.start, held.stop, strict=True)) == passages.spans
    np.testing.assert_allclose(np.stack(held.vector.tolist()), passages.vectors, atol=1e-6)
    by_id = dict(zip(frame.id.astype(str), frame.n, strict=True))
    assert [by_id[id] for id in table.id] == table.n.tolist()


def test_export_renames_columns_that_would_be_its_own(tmp_path):
    frame = pd.DataFrame({"id": ["a"], "text": ["cat"], "start": [1]})
    index = build(frame, text="text", id="id")
    assert index.export(tmp_path / "x.parquet") == 1
    assert "start_2" in pd.read_parquet(tmp_path / "x.parquet")
    index.remove(["a"])
    assert index.export(tmp_path / "x.parquet") == 0


def test_documents_are_looked_up(index, frame):
    assert index.ids == tuple(frame.id.astype(str))
    assert [document.id for document in index] == list(index.ids)
    assert 1000 in index and "1000" in index and "x" not in index and None not in index
    assert index.get(1000).text == frame.text[0] and index.get("x") is None
    assert index.get("1000").metadata["n"] == frame.n[0]
    for name in ("id", "'id'"):
        hits = index.search("w1 w2", 50, where=f"{name} in ('1001', '1003') and n >= 0").hits[0]
        assert {hit.id for hit in hits} == {"1001", "1003"}
    named = build(frame.rename(columns={"id": "number"}), text="text", id="number")
    assert [hit.id for hit in named.search("w1", 9, where="number == '1004'").hits[0]] == ["1004"]


def test_additions_reuse_the_columns_of_the_build(frame):
    records = frame.rename(columns={"text": "body"})[["id", "body", "n"]]
    index = build(records[:60], text="body", id="id")
    changed = records[:40].assign(body="a new text")
    index.add(changed.to_dict("records"), update=True, show_progress=False)
    assert len(index) == 60 and index.get(1000).text == "a new text"
    with refuses("id"):
        index.add(records.drop(columns="id")[60:], show_progress=False)
    with refuses("text"):
        index.add(pd.DataFrame({"id": [1], "n": ["a long text in another column"]}))
    with refuses("id"):
        index.add(Corpus(["a"]), id="id")
    made = build(records[["id", "body"]], text="body")
    with refuses("id"):  # ids are made of the texts, and would replace nothing that changed
        made.add(changed, update=True, show_progress=False)


class Concepts:
    """Gives a word and its translation one direction, as encoders of several languages do."""

    name = "concepts"

    def encode(self, texts):
        known = [("hospital", "hôpital"), ("wolf", "loup"), ("train", "wagon")]
        held = [[any(w in t for w in words) for words in known] for t in texts]
        return np.array(held, dtype=np.float32) + 0.01


def test_a_search_across_languages_and_within_one():
    texts = ["The hospitals closed.", "A wolf was seen.", "Les loups sont revenus.", "Le wagon."]
    frame = pd.DataFrame({"text": texts, "language": ["en", "en", "fr", "fr"]})
    index = SearchIndex.build(
        frame, text="text", encoder=Concepts(), languages=["en", "fr"], show_progress=False
    )
    dense = index.search("un loup", k=2, mode="dense")
    assert {hit.text for hit in dense} == {texts[1], texts[2]}
    for mode in ("dense", "hybrid"):
        (hit, *_) = index.search("un loup", mode=mode, where="language == 'en'")
        assert hit.text == texts[1] and hit.metadata["language"] == "en"
    # Each language's inflections and stop words are those of its own.
    for query, found in (("un loup", texts[2]), ("the wolves", None), ("a hospital", texts[0])):
        assert [hit.text for hit in index.search(query, mode="lexical")] == [found] * bool(found)
    assert not len(index.search("loup", mode="lexical", where="language == 'en'"))
