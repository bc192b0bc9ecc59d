"""Keywords by their embeddings, against BERTopic's own code on the same vectors."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

import embedtopics as et
from embedtopics import topics
from embedtopics.errors import InputError
from embedtopics.topics._vectors import recorded_encoder
from embedtopics.topics.naming._keywords import candidates_of
from tests.factories import make_result

DOCUMENTS = {"encoder": "documents"}


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


@pytest.fixture(scope="module")
def result():
    return make_result(200, 5)


def test_ranking_is_that_of_bertopic(result, bertopic):
    encoder = WordEncoder(result.embeddings.shape[1])
    found = topics.keywords(result, "embedding", encoder=encoder, n_terms=8, keep_repeats=True)
    candidates = {
        topic: [term for term, _ in row] for topic, row in enumerate(candidates_of(result, 100))
    }
    typical = [result.documents.of_row[list(t.representatives)] for t in result.topics]
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


def test_each_candidate_is_encoded_once(result):
    encoder = WordEncoder(result.embeddings.shape[1])
    lists = candidates_of(result, 20)
    topics.keywords(result, "embedding", encoder=encoder, candidates=lists)
    assert sorted(encoder.asked) == sorted({term for row in lists for term, _ in row})


@pytest.mark.parametrize("diversity", [0.0, 0.3, 0.7, 1.0])
def test_diverse_terms_are_those_of_mmr(result, bertopic, diversity):
    from bertopic.representation._mmr import mmr

    encoder = WordEncoder(result.embeddings.shape[1])
    lists = candidates_of(result, 25)
    found = topics.keywords(
        result,
        "diverse",
        diversity=diversity,
        encoder=encoder,
        n_terms=7,
        candidates=lists,
        keep_repeats=True,
    )
    for topic, row in enumerate(found):
        words = [term for term, _ in lists[topic]]
        typical = result.documents.of_row[list(result.topics[topic].representatives)]
        mean = result.embeddings[typical].mean(axis=0)[None]
        vectors = encoder.encode(words)
        assert [term for term, _ in row] == mmr(mean, vectors, words, diversity, 7)
        expected = cosine_similarity(vectors, mean).ravel()
        at = [words.index(term) for term, _ in row]
        np.testing.assert_allclose([s for _, s in row], expected[at], atol=1e-6)


def test_without_an_encoder_terms_are_seen_from_the_middle(result):
    found = topics.keywords(result, "embedding", encoder="documents", n_terms=200, n_candidates=40)
    middle = result.embeddings.mean(axis=0, dtype=np.float64)
    for topic, row in enumerate(found):
        typical = result.documents.of_row[list(result.topics[topic].representatives)]
        direction = result.embeddings[typical].mean(axis=0, dtype=np.float64) - middle
        for term, score in row:
            column = result.term_counts.terms.index(term)
            holders = result.term_counts.counts[:, column].toarray().ravel() > 0
            vector = result.embeddings[holders].mean(axis=0, dtype=np.float64) - middle
            cosine = vector @ direction / np.linalg.norm(vector) / np.linalg.norm(direction)
            assert score == pytest.approx(cosine, abs=1e-4)


def test_more_central_documents_can_be_asked_for(result):
    few = topics.keywords(result, "embedding", encoder="documents", n_documents=1)
    many = topics.keywords(result, "embedding", encoder="documents", n_documents=50)
    assert [s for row in few for _, s in row] != [s for row in many for _, s in row]


def test_repeats_are_left_out_unless_asked_for(result):
    lists = [[(term, 1.0) for term in result.term_counts.terms[:40]]] * result.n_topics
    kept = topics.keywords(
        result, "embedding", encoder="documents", n_terms=40, candidates=lists, keep_repeats=True
    )
    assert all(len(row) == 40 for row in kept)
    lists = [[("goal", 1.0), ("goals", 1.0), ("match", 1.0)]]
    with_english = make_result(
        texts=["goal goals match", "goals goal match tax"], n_topics=1,
        settings={"encoder": "synthetic", "languages": ["en"]},
    )  # fmt: skip
    found = topics.keywords(with_english, "diverse", encoder="documents", candidates=lists)
    assert len({term.rstrip("s") for term, _ in found[0]}) == len(found[0]) == 2


def test_encoder_of_the_fit_is_made_again(toy):
    texts, _, _ = toy
    result = et.TopicModel("lsa", random_state=0, languages=["en"]).fit(texts).result_
    found = topics.keywords(result, "embedding", n_terms=3, keep_repeats=True)
    encoder = recorded_encoder(result)
    for topic, row in enumerate(found):
        typical = result.documents.of_row[list(result.topics[topic].representatives)]
        mean = result.embeddings[typical].mean(axis=0, dtype=np.float64)
        made = np.asarray(encoder.encode([term for term, _ in row]), dtype=np.float64)
        cosines = cosine_similarity(made, mean[None]).ravel()
        np.testing.assert_allclose([s for _, s in row], cosines, atol=1e-5)


def test_no_topics_no_lists_and_one_topic_is_not_seen_from_itself(result):
    empty, single = make_result(60, 0), make_result(60, 1)
    for method, options in (("npmi", {}), *((m, DOCUMENTS) for m in ("embedding", "diverse"))):
        assert topics.keywords(empty, method, **options) == []
    found = topics.keywords(single, "embedding", n_terms=3, **DOCUMENTS)
    assert len(found[0]) == 3 and found[0][0][1] > 0.5
    some = topics.keywords(result, "diverse", candidates=[[], *candidates_of(result, 5)[1:]],
                           **DOCUMENTS)  # fmt: skip
    assert some[0] == [] and all(some[1:])


CANDIDATES = [
    [[]],
    "terms",
    [["goal"]] * 5,
    [[("nonsense", 1.0)]] * 5,
    [[("river", float("nan"))]] * 5,
    [[("river", "1")]] * 5,
    [[("river", 1), ("river", 2)]] * 5,
    {0: []},
    [{"river": 1.0}] * 5,
]


@pytest.mark.parametrize(
    ("bad", "parameter"),
    [
        ({"n_documents": 0}, ""),
        ({"encoder": None}, "encoder"),
        ({"encoder": WordEncoder(3)}, "encoder"),
        ({"method": "keybert"}, "method"),
        ({"diversity": 0.5, "method": "embedding"}, "diversity"),
        *(({"diversity": value}, "") for value in (-0.1, 1.1, "much", float("nan"), True)),
        *(({"candidates": lists}, "candidates") for lists in CANDIDATES),
    ],
)
def test_bad_input(result, bad, parameter):
    with pytest.raises(InputError) as caught:
        topics.keywords(result, **{"encoder": "documents", **bad})
    assert parameter in ("", caught.value.parameter)
