"""Keywords by vectors, compared with BERTopic's, and results that have them."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

import embedtopics as et
from embedtopics import topics
from embedtopics.terms._representative import best_terms
from embedtopics.terms._stop_words import repeats, stems_of
from embedtopics.topics._vectors import encoder_of_fit
from embedtopics.topics.naming import _names as module
from embedtopics.topics.naming._names import choose_keywords
from tests.factories import each, make_result, refuses


@pytest.fixture(scope="module")
def result():
    return make_result(200, 5)


def lists_of(result):
    return [list(zip(t.keywords, t.weights, strict=True)) for t in result.topics]


def candidates_of(result, n):
    best = best_terms(result.topic_terms, result.term_counts, n)
    return [[result.term_counts.terms[i] for i in ids] for ids, _ in best]


def test_with_keywords_changes_only_the_words(result):
    lists = choose_keywords(result, "diverse", encoder="documents", n_terms=4)
    changed = topics.with_keywords(result, lists)
    for topic, row in zip(changed.topics, lists, strict=True):
        assert topic.keywords == tuple(term for term, _ in row)
        assert topic.weights == tuple(score for _, score in row)
        assert topic.name.startswith(", ".join(topic.keywords[:3]))
    assert changed.clustering is result.clustering and changed.topic_terms is result.topic_terms
    assert [t.size for t in changed.topics] == [t.size for t in result.topics]
    edit = changed.history[-1]
    assert edit.name == "with_keywords" and edit.new_ids == tuple(range(5))
    assert len(edit.marks) == 5


def test_names_stay_distinct_and_some_topics_may_be_left_out(result):
    lists = [row[::-1] for row in lists_of(result)]
    taken = ", ".join(term for term, _ in lists[2][:3])
    named = topics.rename(result, {4: taken})
    labels = [topic.name for topic in topics.with_keywords(named, lists).topics]
    assert labels[4] == taken and len(set(labels)) == len(labels)
    some = topics.with_keywords(named, {1: lists[1], 3: []})
    assert some.topics[1].keywords == tuple(term for term, _ in lists[1])
    assert [a == b for a, b in zip(some.topics, named.topics, strict=True)] == [
        True, False, True, True, True,
    ]  # fmt: skip
    again = topics.replay(named, some.history[1:])
    assert again.topics == some.topics


@pytest.mark.parametrize("method", ["diverse", "embedding"])
def test_a_method_gives_the_keywords_that_it_chooses(result, method):
    chosen = choose_keywords(result, method, n_terms=4, diversity=0.5, encoder="documents")

    changed = topics.with_keywords(result, method, n_terms=4, diversity=0.5, encoder="documents")

    assert lists_of(changed) == chosen
    assert topics.replay(result, changed).topics == changed.topics


def test_terms_without_weights_have_the_weights_of_the_topic(result):
    terms = list(result.topics[1].keywords[:2])

    changed = topics.with_keywords(result, {result.topics[1].name: terms})

    assert changed.topics[1].keywords == tuple(terms)
    assert changed.topics[1].weights == result.topics[1].weights[:2]


@pytest.mark.parametrize(
    "lists", [[], [[("nowhere", 1.0)]] * 5, {0: ["nowhere"]}, {0: "tax"}, {0: [3]}, 7]
)
def test_bad_keywords(result, lists):
    with refuses("keywords"):
        topics.with_keywords(result, lists)


class WordEncoder:
    """A vector of its own for every text, and a count of the texts that were asked for."""

    name = "words"

    def __init__(self, width):
        self.width, self.asked = width, []

    def encode(self, texts):
        self.asked += list(texts)
        return np.array(
            [np.random.default_rng([ord(c) for c in t]).normal(size=self.width) for t in texts]
        )

    def embed(self, texts):
        return self.encode(texts) if isinstance(texts, list) else self.encode([texts])


class BertopicStub:
    """What KeyBERTInspired asks of a model."""

    def __init__(self, encoder):
        self.encoder = encoder

    def _extract_embeddings(self, documents, method, verbose):
        return self.encoder.embed(documents)


@pytest.fixture(scope="module")
def bertopic():
    """Its way of choosing terms; importing it warns of what it could have, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("bertopic.representation")


@pytest.mark.slow
@pytest.mark.smoke
def test_ranking_is_that_of_bertopic(result, bertopic, monkeypatch):
    monkeypatch.setattr(module, "repeats", lambda *_: False)
    encoder = WordEncoder(result.embeddings.shape[1])
    found = choose_keywords(result, "embedding", encoder=encoder, n_terms=8)
    candidates = dict(enumerate(candidates_of(result, 100)))
    typical = [result.distinct.of_row[list(t.representatives)] for t in result.topics]
    ends = np.cumsum([0, *map(len, typical)])
    theirs = bertopic.KeyBERTInspired(top_n_words=8)
    similarity, vocabulary = theirs._extract_embeddings(
        BertopicStub(encoder),
        candidates,
        [],
        [list(range(a, b)) for a, b in pairwise(ends)],
        result.embeddings[np.concatenate(typical)],
    )
    expected = theirs._extract_top_words(vocabulary, candidates, similarity)
    for topic, row in enumerate(found):
        assert [term for term, _ in row] == [term for term, _ in expected[topic]]
        np.testing.assert_allclose([s for _, s in row], [s for _, s in expected[topic]], atol=1e-6)


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.parametrize("diversity", [0.0, 0.3, 0.7, 1.0])
def test_diverse_terms_are_those_of_mmr(result, bertopic, diversity, monkeypatch):
    from bertopic.representation._mmr import mmr

    monkeypatch.setattr(module, "repeats", lambda *_: False)
    encoder = WordEncoder(result.embeddings.shape[1])
    found = choose_keywords(result, "diverse", diversity=diversity, encoder=encoder, n_terms=7)
    for topic, (words, row) in enumerate(zip(candidates_of(result, 30), found, strict=True)):
        typical = result.distinct.of_row[list(result.topics[topic].representatives)]
        mean = result.embeddings[typical].mean(axis=0)[None]
        vectors = encoder.encode(words)
        assert [term for term, _ in row] == mmr(mean, vectors, words, diversity, 7)
        expected = cosine_similarity(vectors, mean).ravel()
        at = [words.index(term) for term, _ in row]
        np.testing.assert_allclose([s for _, s in row], expected[at], atol=1e-6)


def test_without_an_encoder_terms_are_seen_from_the_middle(result):
    found = choose_keywords(result, "embedding", encoder="documents", n_terms=200)
    middle = result.embeddings.mean(axis=0, dtype=np.float64)
    for topic, row in enumerate(found):
        typical = result.distinct.of_row[list(result.topics[topic].representatives)]
        direction = result.embeddings[typical].mean(axis=0, dtype=np.float64) - middle
        for term, score in row:
            column = result.term_counts.terms.index(term)
            holders = result.term_counts.counts[:, column].toarray().ravel() > 0
            vector = result.embeddings[holders].mean(axis=0, dtype=np.float64) - middle
            cosine = vector @ direction / np.linalg.norm(vector) / np.linalg.norm(direction)
            assert score == pytest.approx(cosine, abs=1e-4)


def test_repeats_are_left_out():
    result = make_result(
        texts=["goal goals match", "goals goal match tax"], n_topics=1,
        settings={"encoder": "synthetic", "languages": ["en"]},
    )  # fmt: skip
    (row,) = choose_keywords(result, "diverse", encoder="documents")
    stems = [stems_of(term, ["en"]) for term, _ in row]
    assert len(row) > 1
    assert not any(repeats(a, b) for i, a in enumerate(stems) for b in stems[:i])


def test_encoder_of_the_fit_is_loaded_again(toy):
    lsa = et.TopicModel("lsa", random_state=0, languages=["en"]).fit(toy[0]).result_
    found = choose_keywords(lsa, "embedding", n_terms=3)
    encoder = encoder_of_fit(lsa)
    for topic, row in enumerate(found):
        typical = lsa.distinct.of_row[list(lsa.topics[topic].representatives)]
        mean = lsa.embeddings[typical].mean(axis=0, dtype=np.float64)
        vectors = np.asarray(encoder.encode([term for term, _ in row]), dtype=np.float64)
        cosines = cosine_similarity(vectors, mean[None]).ravel()
        np.testing.assert_allclose([s for _, s in row], cosines, atol=1e-5)


def test_no_topics_and_one_topic_that_has_no_contrast():
    assert choose_keywords(make_result(60, 0), "diverse", encoder="documents") == []
    (row,) = choose_keywords(make_result(60, 1), "embedding", n_terms=3, encoder="documents")
    assert len(row) == 3 and row[0][1] > 0.5


WRONG = each(
    encoder=[None, WordEncoder(3)], keywords=["keybert"], n_terms=[0, 2.5], diversity=[1.1]
)


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_bad_input(result, name, value):
    with refuses(name):
        topics.with_keywords(result, **{"encoder": "documents", name: value})
