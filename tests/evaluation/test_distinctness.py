"""Distinctness of topics: by hand, by brute force, and by SciPy's entropy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.stats import entropy

from embedtopics.errors import InputError
from embedtopics.evaluation import (
    diversity,
    inverted_rbo,
    pairwise_jaccard,
    topic_significance,
    topic_uniqueness,
)

TOPICS = st.lists(
    st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6), min_size=0, max_size=5
)


def extrapolated(one, other, p):
    """Equation 32 as it is printed, for lists of any lengths."""
    short, long = sorted((one, other), key=len)
    s, longest = len(short), len(long)

    def met(d):
        return len(set(short[:d]) & set(long[:d]))

    total = sum(met(d) / d * p**d for d in range(1, longest + 1))
    total += sum(met(s) * (d - s) / (s * d) * p**d for d in range(s + 1, longest + 1))
    return (1 - p) / p * total + ((met(longest) - met(s)) / longest + met(s) / s) * p**longest


@given(TOPICS, st.integers(1, 6), st.sampled_from([0.5, 0.9]))
def test_inverted_rbo_by_brute_force(topics, n, p):
    lists = [topic[:n] for topic in topics if topic]
    pairs = [(a, b) for i, a in enumerate(lists) for b in lists[:i]]
    found = inverted_rbo(topics, n, p)
    if pairs:
        expected = 1 - np.mean([extrapolated(a, b, p) for a, b in pairs])
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


def test_diversity():
    assert diversity([["a", "b"], ["c", "d"]]) == 1.0
    assert diversity([["a", "b"], ["a", "b"]]) == 0.5
    assert diversity([["a", "b", "x"], ["a", "c", "x"]], n=2) == 0.75
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


def test_significance_of_a_topic_that_no_document_has():
    found = topic_significance([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_equal(found.vacuous, [0.0, np.nan])
    np.testing.assert_equal(found.background, [0.0, np.nan])


def test_significance_without_documents_weighs_topics_by_their_words():
    words = np.array([[6.0, 2], [1, 1]])
    found = topic_significance(words)
    assert found.background is None
    expected = [entropy(row / row.sum(), [0.7, 0.3]) for row in words]
    np.testing.assert_allclose(found.vacuous, expected)
    assert topic_significance(np.ones((3, 4))).uniform.tolist() == [0.0, 0.0, 0.0]
    assert topic_significance(np.zeros((0, 4))).uniform.shape == (0,)


def test_bad_input():
    for measure in (diversity, inverted_rbo, pairwise_jaccard, topic_uniqueness):
        with pytest.raises(InputError, match="topic 1"):
            measure([["a"], "b"])
        with pytest.raises(InputError, match="n must be"):
            measure([["a"]], n=0)
    with pytest.raises(InputError, match="p must be between 0 and 1"):
        inverted_rbo([["a"]], p=1.0)
    with pytest.raises(InputError, match="finite numbers from 0 up"):
        topic_significance([[1.0, -1.0]])
    with pytest.raises(InputError, match="finite numbers"):
        topic_significance([[1.0, np.nan]])
    with pytest.raises(InputError, match="column for each of the 1 topics; got 2"):
        topic_significance([[1.0, 1.0]], [[0.5, 0.5]])
