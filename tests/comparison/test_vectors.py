import math

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from embedtopics.comparison import _vectors as module
from embedtopics.comparison._vectors import make_vectors, neighbor_graph, open_encoders
from embedtopics.corpus._corpus import as_corpus
from embedtopics.corpus.results import LanguageShares
from embedtopics.encoders import CachedEncoder
from embedtopics.encoders.results import Encoding
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import build_graph
from tests.comparison.conftest import Hashed, WordCounts
from tests.factories import refuses


def made(spec, corpus, name="it", languages=("en",)):
    decisions = []
    shares = LanguageShares({code: 1 / len(languages) for code in languages}, len(corpus))
    opened = open_encoders({name: spec, "other": "tfidf"})
    return make_vectors(decisions, name, opened[name], corpus, shares, False), decisions


@pytest.fixture
def corpus():
    return as_corpus([f"word{i} word{i % 5} word{i % 3}" for i in range(30)])


def test_encoders_are_named():
    assert list(open_encoders(["tfidf", "lsa", Hashed()])) == ["tfidf", "lsa", "hashed"]
    for bad in ([Hashed(), Hashed()], ["tfidf"], "tfidf", ["tfidf", np.ones((3, 2))]):
        with refuses("encoders"):
            open_encoders(bad)


def test_sparse_vectors_stay_sparse_and_get_unit_length(corpus):
    encoder = WordCounts()
    found, _ = made(encoder, corpus)
    assert isinstance(found.rows, csr_matrix) and found.rows.dtype == np.float32
    lengths = np.asarray(found.rows.multiply(found.rows).sum(axis=1)).ravel()
    np.testing.assert_allclose(lengths, 1, atol=1e-6)
    assert encoder.words is None  # a copy has learned
    parts = found.rows.data, found.rows.indices, found.rows.indptr
    assert found.megabytes == sum(part.nbytes for part in parts) / 1e6


def test_seconds_are_those_of_learning_and_encoding(corpus, monkeypatch):
    clock = iter([10.0, 17.5])
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(clock))
    found, _ = made(Hashed(), corpus)
    assert found.seconds == 7.5
    assert math.isnan(made(np.ones((30, 2)), corpus)[0].seconds)


class Reporting(Hashed):
    name, fingerprint, n_encoded = "reporting", "abc", 0

    def encode(self, texts):
        self.n_encoded += len(texts)
        return super().encode(texts).astype(np.float32)

    def encode_with_report(self, texts, *, show_progress=None):
        n = np.full(len(texts), 10, dtype=np.int32)
        return Encoding(self.encode(texts), n, np.where(np.arange(len(n)) % 2, n, 5), n * 0)


def test_an_encoder_that_keeps_its_vectors_is_timed_on_a_sample(corpus, tmp_path, monkeypatch):
    encoder = Reporting()
    kept = CachedEncoder(encoder, folder=tmp_path)
    kept.encode(corpus.document_texts())
    encoder.n_encoded = 0
    monkeypatch.setattr(module, "TIMED_TEXTS", 10)
    clock = iter([0.0, 0.001, 5.0, 7.0])  # vectors from disk in a millisecond; 10 texts in 2 s
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(clock))
    found, decisions = made(kept, corpus)
    assert encoder.n_encoded == 14
    assert found.seconds == pytest.approx(2.0 * 30 / 10)
    assert [d.value for d in decisions if d.name == "estimated_seconds"] == [found.seconds]
    assert found.settings["encoder_fingerprint"] == "abc"


def test_truncation_and_another_language_are_noted(corpus):
    _, decisions = made(Reporting(), corpus)
    assert [d.value for d in decisions if d.name == "truncated"] == [0.5]

    class English(Hashed):
        name, languages = "english", ("en",)

    for languages, told in ((("en",), []), (("fr",), [0.0]), (("en", "fr"), [0.5])):
        _, decisions = made(English(), corpus, languages=languages)
        assert [d.value for d in decisions if d.name == "language"] == told


def test_rows_become_documents():
    corpus = as_corpus(["b", None, "a", "b", "c"])
    given = np.array([[2.0, 0], [9, 9], [0, 3], [1, 1], [0, -4]])
    order = corpus.distinct().first_rows.tolist()
    unit = {0: [2**-0.5] * 2, 2: [0, 1], 4: [0, -1]}  # of both rows of "b" the smaller
    expected = [unit[row] for row in order]
    for spec in (given, given.astype(np.float16)):
        found, decisions = made(spec, corpus)
        np.testing.assert_allclose(found.rows, expected, atol=1e-6)
        assert [d.value for d in decisions if d.name == "conflicting_embeddings"] == [1]


def test_zero_vectors_are_told_and_have_no_neighbours(corpus):
    given = np.random.default_rng(0).normal(size=(30, 6))
    given[[3, 20]] = 0
    found, decisions = made(given, corpus)
    zero = np.flatnonzero(np.isin(corpus.distinct().first_rows, [3, 20]))
    np.testing.assert_array_equal(np.flatnonzero(~found.has_vector), zero)
    assert [d.value for d in decisions if d.name == "no_vector"] == [2]
    graph = neighbor_graph(decisions, found, 4, 0)
    assert (graph.similarities[zero] == 0).all()
    for document in zero:
        others = np.delete(np.arange(30), document)
        np.testing.assert_array_equal(graph.indices[document], others[:4])
    known = np.flatnonzero(found.has_vector)
    alone = build_graph(found.rows[known], 4)
    np.testing.assert_array_equal(graph.indices[known], known[alone.indices])
    np.testing.assert_allclose(graph.similarities[known], alone.similarities, atol=1e-6)


def test_bad_vectors_are_refused_by_row(corpus):
    given = np.ones((30, 3))
    given[11, 1] = np.nan
    with pytest.raises(InputError, match=r"(?s)'it'.*11"):
        made(given, corpus)

    class Short(Hashed):
        def encode(self, texts):
            return super().encode(texts)[:-1]

    for spec in (given[1:], None, np.ones(30), Short()):
        with refuses("it"):
            made(spec, corpus)
    given = np.zeros((30, 3))
    given[:5] = 1
    found, decisions = made(given, corpus)
    with refuses("it"):
        neighbor_graph(decisions, found, 4, 0)


def test_an_approximate_search_is_told(corpus, monkeypatch):
    from embedtopics.neighbors import _graph as graph_module

    monkeypatch.setattr(graph_module, "EXACT_LIMIT", 10)
    vectors = np.random.default_rng(0).normal(size=(2000, 8))
    many = as_corpus([f"text {i}" for i in range(2000)])
    found, decisions = made(vectors, many)
    graph = neighbor_graph(decisions, found, 5, 0)
    assert graph.method == "ivf"
    assert [d.value for d in decisions if d.name == "recall"] == [graph.recall]
