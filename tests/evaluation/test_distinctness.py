"""Distinctness of topics: by hand, by brute force, and by SciPy's entropy."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.stats import entropy

from embedtopics.evaluation import diversity, inverted_rbo, word_embedding_coherence
from embedtopics.evaluation._distinctness import (
    pairwise_jaccard,
    topic_significance,
    topic_uniqueness,
)
from tests.evaluation.test_maps import slow_rbo
from tests.factories import refuses

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from gensim.models import KeyedVectors

TOPICS = st.lists(
    st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6), min_size=0, max_size=5
)


@given(TOPICS, st.integers(1, 6), st.sampled_from([0.5, 0.9]))
def test_inverted_rbo_by_brute_force(topics, n, p):
    lists = [topic[:n] for topic in topics if topic]
    pairs = [(a, b) for i, a in enumerate(lists) for b in lists[:i]]
    found = inverted_rbo(topics, n, p)
    if pairs:
        expected = 1 - np.mean([slow_rbo(a, b, p) for a, b in pairs])
        assert found == pytest.approx(expected, abs=1e-9)
        shared = [len(set(a) & set(b)) / len(set(a) | set(b)) for a, b in pairs]
        assert pairwise_jaccard(topics, n) == pytest.approx(np.mean(shared))
    else:
        assert np.isnan(found) and np.isnan(pairwise_jaccard(topics, n))


def test_inverted_rbo_by_hand():
    # Agreements 1, 1/2 and 2/3 at depths 1 to 3: a, then {a}, then {a, c}.
    head = 0.1 / 0.9 * (1 * 0.9 + 1 / 2 * 0.81 + 2 / 3 * 0.729)
    expected = 1 - (head + 2 / 3 * 0.729)
    assert inverted_rbo([["a", "b", "c"], ["a", "c", "d"]]) == pytest.approx(expected)
    assert inverted_rbo([["a", "b"], ["a", "b"]]) == pytest.approx(0.0)
    assert inverted_rbo([["a", "b"], ["c", "d"]]) == pytest.approx(1.0)
    assert inverted_rbo([["a", "a", "b"], ["a", "b"]]) == pytest.approx(0.0)


@given(TOPICS)
def test_uniqueness_and_diversity_by_brute_force(topics):
    every = [word for topic in topics for word in topic]
    expected = [np.mean([1 / every.count(w) for w in t]) if t else np.nan for t in topics]
    np.testing.assert_allclose(topic_uniqueness(topics), expected)
    share = len(set(every)) / len(every) if every else np.nan
    np.testing.assert_allclose(diversity(topics), share)


def test_diversity_by_hand():
    assert diversity([["a", "b"], ["c", "d"]]) == 1.0
    assert diversity([["a", "b"], ["a", "b"]]) == 0.5
    assert diversity([["a", "b", "x"], ["a", "c", "x"]], n_terms=2) == 0.75
    assert np.isnan(diversity([]))


@pytest.mark.parametrize("sparse", [False, True])
def test_significance_is_the_divergence_from_three_distributions(sparse):
    words = np.array([[8.0, 1, 1, 0], [0, 0, 1, 1], [0, 0, 0, 0]])
    shares = np.array([[0.7, 0.1, 0.0], [0.2, 0.8, 0.0], [0.0, 0.5, 0.0]])
    make = csr_matrix if sparse else np.asarray
    found = topic_significance(make(words), make(shares))
    sizes = shares.sum(axis=0)[:2]
    distributions = words[:2] / words[:2].sum(axis=1, keepdims=True)
    vacuous = sizes @ distributions / sizes.sum()
    np.testing.assert_allclose(found.uniform[:2], [entropy(d, [0.25] * 4) for d in distributions])
    np.testing.assert_allclose(found.vacuous[:2], [entropy(d, vacuous) for d in distributions])
    expected = [entropy(column, np.ones(3)) for column in shares.T[:2]]
    np.testing.assert_allclose(found.background[:2], expected)
    assert np.isnan([found.uniform[2], found.vacuous[2], found.background[2]]).all()


def test_significance_without_documents_weighs_topics_by_their_words():
    found = topic_significance([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_equal(found.vacuous, [0.0, np.nan])  # no document has the second topic
    np.testing.assert_equal(found.background, [0.0, np.nan])
    words = np.array([[6.0, 2], [1, 1]])
    found = topic_significance(words)
    assert found.background is None
    expected = [entropy(row / row.sum(), [0.7, 0.3]) for row in words]
    np.testing.assert_allclose(found.vacuous, expected)
    assert topic_significance(np.ones((3, 4))).uniform.tolist() == [0.0, 0.0, 0.0]
    assert topic_significance(np.zeros((0, 4))).uniform.shape == (0,)


def test_equals_mean_similarity_in_gensim():
    rng = np.random.default_rng(0)
    vectors = KeyedVectors(vector_size=5)
    vectors.add_vectors(list("abcdef"), rng.normal(size=(6, 5)).astype(np.float32))
    topics = [list("abc"), list("fde"), ["a", "unknown", "f"]]
    found, n_missing = word_embedding_coherence(topics, vectors)
    pairs = [("ab", "ac", "bc"), ("fd", "fe", "de"), ("af",)]
    expected = [np.mean([vectors.similarity(*pair) for pair in some]) for some in pairs]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert n_missing.tolist() == [0, 0, 1]


def test_few_words_and_vectors_of_zeros():
    vectors = {"a": [1.0, 0.0], "b": [0.0, 0.0], "c": [0.0, 3.0], "d": [-2.0, 0.0]}
    found, n_missing = word_embedding_coherence([["a"], [], ["a", "b"], list("acd")], vectors)
    np.testing.assert_allclose(found, [np.nan, np.nan, np.nan, -1 / 3])
    assert n_missing.tolist() == [0, 0, 1, 0]
    assert word_embedding_coherence([["a", "c", "d"]], vectors, n_terms=2)[0].tolist() == [0.0]


def test_bad_input():
    for measure in (diversity, inverted_rbo, pairwise_jaccard, topic_uniqueness):
        with refuses("topics", row=1):
            measure([["a"], "b"])
        with refuses("n_terms"):
            measure([["a"]], n_terms=0)
    with refuses("p"):
        inverted_rbo([["a"]], p=1.0)
    for words in ([[1.0, -1.0]], [[1.0, np.nan]]):
        with refuses("topic_words"):
            topic_significance(words)
    with refuses("document_topics"):
        topic_significance([[1.0, 1.0]], [[0.5, 0.5]])
    for vectors in ({"a": [1.0, 0.0], "b": [1.0]}, {"a": [np.nan, 1.0]}):
        with refuses("vectors"):
            word_embedding_coherence([["a", "b"]], vectors)
    with refuses("topics", row=0):
        word_embedding_coherence(["a"], {"a": [1.0]})
    with refuses("n_terms"):
        word_embedding_coherence([["a"]], {}, n_terms=0)
