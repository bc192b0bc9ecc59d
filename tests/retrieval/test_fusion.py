"""Orders made of several scores: fused, and diversified."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.retrieval._fusion import FEEDBACK_WEIGHT, fuse_scores, move_query, weighted_mean
from embedtopics.terms._representative import diversify, scaled_relevance


class Toy:
    """Candidates with random vectors and BM25 scores, and the mean of their collection."""

    def __init__(self, seed, n=12, d=6):
        rng = np.random.default_rng(seed)
        vectors = rng.normal(size=(40, d)) + 0.7
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        self.mean, self.vectors = vectors.mean(axis=0), vectors[:n]
        self.query = vectors[0] + rng.normal(size=d)
        self.query /= np.linalg.norm(self.query)
        self.bm25 = np.where(rng.random(n) < 0.5, rng.gamma(2, 3, size=n), 0)

    def fuse(self, **options):
        return fuse_scores(self.query, self.vectors, self.bm25, self.mean, **options)


def test_weighted_means_by_hand():
    found = weighted_mean(np.array([0.5, 0.3, 0.1]), np.array([0.0, 8.0, 4.0]), 0.1, 0.6)
    np.testing.assert_allclose(found, [0.6, 0.3 + 0.4, 0.2])


def test_a_query_moves_towards_the_mean():
    found = move_query(np.array([1.0, 0.0]), np.array([[0.0, 1.0], [0.0, 1.0]]), 1.0)
    np.testing.assert_allclose(found, [np.sqrt(0.5)] * 2)
    query = np.array([0.6, 0.8])
    assert move_query(query, np.zeros((0, 2)), 1.0).tolist() == [0.6, 0.8]
    assert move_query(query, -query[None], 1.0).tolist() == [0.6, 0.8]


@given(st.integers(0, 2**32 - 1), st.floats(0, 1), st.integers(0, 5))
def test_the_whole_recipe(seed, weight, n):
    toy = Toy(seed)
    order, scores, similarities = toy.fuse(weight=weight, feedback=n)

    def score(query):
        cosines, low = toy.vectors @ query, float(toy.mean @ query)
        farthest = np.abs(cosines - low).max()
        most = toy.bm25.max() or 1.0
        return weight * (cosines - low) / farthest + (1 - weight) * toy.bm25 / most

    query = toy.query
    best = np.argsort(-score(query), kind="stable")[:n]
    if n:
        query = query + FEEDBACK_WEIGHT * toy.vectors[best].mean(axis=0)
        query = query / np.linalg.norm(query)
    np.testing.assert_allclose(scores, score(query), atol=1e-9)
    assert (np.diff(scores[order]) <= 0).all() and sorted(order) == list(range(len(scores)))
    np.testing.assert_allclose(similarities, toy.vectors @ toy.query)


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 1), st.floats(-0.5, 0.9))
def test_stretched_and_moved_cosines_give_the_same_order(seed, stretch, move):
    toy = Toy(seed)
    cosines, bm25 = toy.vectors @ toy.query, toy.bm25
    one = weighted_mean(cosines, bm25, cosines.mean(), 0.6)
    other = weighted_mean(stretch * cosines + move, bm25, (stretch * cosines + move).mean(), 0.6)
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_the_order_of_equal_candidates_is_that_of_their_places():
    toy = Toy(1, n=2)
    vectors = np.tile(toy.vectors[0], (2, 1))
    same = fuse_scores(toy.query, vectors, np.ones(2), toy.mean)
    assert same.order.tolist() == [0, 1] and same.scores[0] == same.scores[1]


def test_candidates_below_the_background_keep_their_order():
    # A filter may leave none that is nearer than the mean of the collection.
    found = weighted_mean(np.array([-0.3, -0.1, -0.5]), np.zeros(3), 0.0, 0.6)
    np.testing.assert_allclose(found, [-0.36, -0.12, -0.6])
    # Nor does the nearest, hardly above it, make the others so far that words count for nothing.
    found = weighted_mean(np.array([1e-6, -0.2, -0.5]), np.array([0.0, 3.0, 0.0]), 0.0, 0.6)
    np.testing.assert_allclose(found, [0.6 * 2e-6, 0.4 - 0.24, -0.6])


def brute_force(relevance, vectors, k, diversity):
    cosines = vectors.astype(np.float64) @ vectors.astype(np.float64).T
    chosen = [int(np.argmax(relevance))]
    while len(chosen) < min(k, len(relevance)):
        left = [i for i in range(len(relevance)) if i not in chosen]
        gains = [
            (1 - diversity) * relevance[i] - diversity * max(cosines[i, j] for j in chosen)
            for i in left
        ]
        chosen.append(left[int(np.argmax(gains))])
    return chosen


@given(st.integers(1, 12), st.integers(1, 15), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_the_choice_is_that_of_the_formula(n, k, diversity, seed):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n, 4))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    relevance = rng.uniform(-1, 1, size=n)
    found = diversify(relevance, vectors, k, diversity)
    assert found.tolist() == brute_force(relevance, vectors, k, diversity)


def test_a_copy_waits_for_what_is_new():
    vectors = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    relevance = np.array([0.9, 0.9, 0.5])
    assert diversify(relevance, vectors, 3, 0.3).tolist() == [0, 2, 1]
    assert diversify(relevance, vectors, 2, 0.0).tolist() == [0, 1]
    assert diversify(np.zeros(0), np.zeros((0, 2)), 3, 0.3).tolist() == []


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.5, 0.25, 0.0], [1, 0.5, 0]), ([8.0, 2.0], [1, 0.25]), ([3.0, 1.0, -1.0], [1, 0.5, 0]),
        ([-2.0, -11.0, -8.0], [1, 0, 1 / 3]), ([-2.0, -2.0], [0, 0]), ([0.0], [0]), ([], []),
        ([4.0, 4.0], [1, 1]),
    ],
)  # fmt: skip
def test_scores_of_any_kind_become_relevance(scores, expected):
    np.testing.assert_allclose(scaled_relevance(np.array(scores)), expected)
