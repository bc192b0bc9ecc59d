"""Whatever was added, removed and compacted in whatever order, a search finds what is there."""

import gc
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from embedtopics import Corpus, SearchIndex
from embedtopics.encoders import FastTextEncoder, TfidfEncoder
from embedtopics.errors import CorruptFileError
from embedtopics.retrieval.storage._checks import check
from tests.retrieval.oracle import Passages, Tiny, assert_found, build, plain_fusion

IDS = st.sampled_from("abcdefgh")
TEXTS = st.lists(st.sampled_from("cat dog owl hen fox".split()), max_size=9).map(" ".join)
DOCUMENTS = st.dictionaries(IDS, st.tuples(TEXTS, st.sampled_from([None, 1, 2, 3])), max_size=5)
MODES = st.sampled_from(["dense", "lexical", "hybrid"])


def corpus(documents):
    frame = pd.DataFrame({
        "id": list(documents), "text": [text for text, _ in documents.values()],
        "year": pd.array([year for _, year in documents.values()], dtype="Int64"),
    })  # fmt: skip
    return Corpus(frame, text="text", id="id")


class IndexMachine(RuleBasedStateMachine):
    @initialize(documents=DOCUMENTS)
    def make(self, documents):
        self.above = Path(tempfile.mkdtemp())
        self.model = {"z": ("a zebra", 9), **documents}
        self.index = build(corpus(self.model), self.above / "i")

    def teardown(self):
        if hasattr(self, "index"):
            assert check(self.index.folder) == []
            shutil.rmtree(self.above)

    @rule(documents=DOCUMENTS)
    def add(self, documents):
        fresh = {id: one for id, one in documents.items() if id not in self.model}
        assert self.index.add(corpus(fresh), show_progress=False) == len(fresh)
        self.model |= fresh

    @rule(documents=DOCUMENTS)
    def update(self, documents):
        self.index.add(corpus(documents), update=True, show_progress=False)
        for id, one in documents.items():
            self.model.pop(id, None)
            self.model[id] = one

    @rule(ids=st.lists(IDS, max_size=3))
    def remove(self, ids):
        known = set(ids) & set(self.model)
        assert self.index.remove(known) == len(known)
        for id in known:
            del self.model[id]

    @rule()
    def compact(self):
        self.index.compact()
        assert len(self.index.measured) == bool(self.model)
        assert not self.index.compact()

    @rule(verify=st.booleans())
    def load(self, verify):
        self.index = SearchIndex.load(self.above / "i", encoder=Tiny(), verify=verify)

    @rule()
    def save(self):
        self.index.save(self.above / "j")
        shutil.rmtree(self.above / "i")
        (self.above / "j").rename(self.above / "i")
        self.index = SearchIndex.load(self.above / "i", encoder=Tiny())

    @rule(
        query=TEXTS, mode=MODES, k=st.integers(1, 9), years=st.none() | st.sets(st.integers(1, 3))
    )
    def search(self, query, mode, k, years):
        where = None if years is None else f"year in ({', '.join(map(str, sorted(years)))})"
        allowed = {id for id, (_, year) in self.model.items() if years is None or year in years}
        if years == set():
            where, allowed = "year > 3 and year < 3", set()
        texts = {id: text for id, (text, _) in self.model.items()}
        with plain_fusion():
            (hits,) = self.index.search(query, k, mode=mode, where=where).hits
        assert_found(hits, Passages(texts), query, mode, k, allowed)
        assert {document.id: document.text for document in self.index} == texts
        assert len(self.index) == len(texts)
        for hit in hits:
            assert hit.text == texts[hit.id]
            assert hit.metadata["year"] == self.model[hit.id][1]

    @rule(id=IDS, k=st.integers(1, 9))
    def similar(self, id, k):
        texts = {id: text for id, (text, _) in self.model.items()}
        if not texts.get(id, "").strip():
            return
        (hits,) = self.index.similar(id, k).hits
        passages = Passages(texts)
        own = passages.vectors[[one == id for one in passages.ids]]
        best = {}
        for other, score in zip(passages.ids, (passages.vectors @ own.T).max(axis=1), strict=True):
            best[other] = max(score, best.get(other, -2))
        del best[id]
        assert [hit.score for hit in hits] == pytest.approx(
            sorted(best.values(), reverse=True)[:k], abs=1e-5
        )
        assert all(hit.score == pytest.approx(best[hit.id], abs=1e-5) for hit in hits)


TestMachine = IndexMachine.TestCase
TestMachine.settings = settings(
    max_examples=8, stateful_step_count=10, deadline=None, derandomize=True,
    suppress_health_check=list(HealthCheck), database=None,
)  # fmt: skip


@pytest.mark.slow
class TestLongMachine(IndexMachine.TestCase):
    settings = settings(
        max_examples=150, stateful_step_count=25, deadline=None,
        suppress_health_check=list(HealthCheck), database=None,
    )  # fmt: skip


def plain(found):
    return [[(hit.id, hit.span, hit.text) for hit in hits] for hits in found.hits]


def numbers(found):
    return np.array([(h.score, h.similarity, h.bm25) for hits in found.hits for h in hits])


@pytest.fixture(scope="module")
def documents():
    rng = np.random.default_rng(3)
    words = [f"w{i}" for i in range(40)]
    return {
        f"d{i}": (" ".join(rng.choice(words, rng.integers(0, 12))), int(i % 5)) for i in range(150)
    }


QUERIES = ["w1 w2 w3", "w7", "w39 w0 unknown", "", "w4 " * 30]


@pytest.mark.parametrize("mode", ["dense", "lexical", "hybrid"])
def test_an_index_of_parts_equals_one_that_was_built_at_once(documents, mode):
    whole = build(corpus(documents))
    items = list(documents.items())
    parts = build(corpus(dict(items[:50])))
    parts.add(corpus({"x": ("w1 w2 w3", 1), **dict(items[50:60])}), show_progress=False)
    parts.add(corpus(dict(items[60:])), show_progress=False)
    parts.remove(["x"])
    for wanted in ({}, {"where": "year >= 3"}, {"diversity": 0.5}):
        expected = whole.search(QUERIES, 12, mode=mode, **wanted)
        assert [len(hits) for hits in expected.hits][1] > 3
        for _ in range(2):
            found = parts.search(QUERIES, 12, mode=mode, **wanted)
            assert plain(found) == plain(expected)
            np.testing.assert_allclose(numbers(found), numbers(expected), rtol=1e-12, atol=1e-12)
            assert found.decisions == expected.decisions
            parts.compact()
    assert len(parts.measured) == 1


def test_codes_survive_parts_and_compaction():
    rng = np.random.default_rng(0)
    n = 1500
    vectors = rng.normal(size=(n, 16)).astype(np.float32)
    texts = [f"number {i}" for i in range(n)]
    ids = [str(i) for i in range(n)]
    made = Corpus(texts, ids=ids)
    index = SearchIndex.build(
        made.take(range(1200)), embeddings=vectors[:1200], kind="ivf", encoder=None,
        languages=["en"], show_progress=False,
    )  # fmt: skip
    index.add(made.take(range(1200, n)), embeddings=vectors[1200:], show_progress=False)
    index.remove(ids[::3])
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit[:5] @ unit.T
    cosines[:, ::3] = -2
    for _ in range(2):
        found = index.search([""] * 5, 10, mode="dense", vectors=vectors[:5])
        for near, hits in zip(cosines, found.hits, strict=True):
            expected = np.argsort(-near)[:10]
            assert len({str(i) for i in expected} & {hit.id for hit in hits}) >= 8
            for hit in hits:
                assert hit.score == pytest.approx(near[int(hit.id)], abs=2e-3)
        index.compact()
    assert index.measured[0]["kind"] in ("ivf", "flat") and len(index.measured) == 1


def test_a_temporary_index_goes_with_its_object(documents):
    index = build(corpus(documents))
    above = index.folder.parent
    assert above.is_dir() and above.name.startswith("embedtopics-index-")
    del index
    gc.collect()
    assert not above.exists()


def test_an_index_that_took_the_place_of_another_is_seen(tmp_path):
    first = {"a": ("cat cat", 1), "b": ("dog", 1), "c": ("owl", 2)}
    second = {"x": ("owl", 1), "y": ("cat fox", 1), "z": ("dog", 2)}
    index = build(corpus(first), tmp_path / "i")
    assert [h.id for h in index.search("cat", 1)] == ["a"]
    build(corpus(second), tmp_path / "i", overwrite=True)
    # The same version, the same names of segments, the same passages.
    assert [h.id for h in index.search("cat", 1)] == ["y"]
    assert [h.id for h in index.similar("y", 1, "year == 2")] == ["z"]


@pytest.mark.parametrize("encoder", [TfidfEncoder(4), FastTextEncoder(8, epochs=2)])
def test_an_index_holds_the_words_that_its_encoder_learned(tmp_path, encoder):
    texts = [f"{words} number {i}" for i in range(20) for words in ("cat dog cats", "car bus cars")]
    options = {"languages": ["en"], "show_progress": False}
    index = SearchIndex.build(texts, tmp_path / "index", encoder=encoder, **options)
    expected = index.search(["cat", "bus", "unheard"], 5, mode="dense")

    again = SearchIndex.load(tmp_path / "index")
    found = again.search(["cat", "bus", "unheard"], 5, mode="dense")

    assert plain(found) == plain(expected)
    again.add(["a cat on a bus"], show_progress=False)
    again.save(tmp_path / "copy")
    copied = SearchIndex.load(tmp_path / "copy", verify=True)
    copied.compact()
    again.compact()
    assert plain(copied.search(["cat"], 5, mode="dense")) == plain(
        again.search(["cat"], 5, mode="dense")
    )
    index = SearchIndex.build(texts, tmp_path / "copy", encoder=encoder, overwrite=True, **options)
    assert plain(index.search(["cat"], 5, mode="dense"))[0] == plain(expected)[0]


def test_an_index_with_a_changed_encoder_of_words_is_damaged(tmp_path):
    texts = [f"{words} number {i}" for i in range(20) for words in ("cat dog cats", "car bus cars")]
    SearchIndex.build(texts, tmp_path / "index", encoder="lsa", languages=["en"],
                      show_progress=False)  # fmt: skip
    file = tmp_path / "index" / "encoder" / "encoder.json"
    file.write_text(file.read_text().replace("dog", "dig"))

    with pytest.raises(CorruptFileError):
        SearchIndex.load(tmp_path / "index").search("cat", 3, mode="dense")
