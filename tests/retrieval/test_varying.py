from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.retrieval._search import diversify, scaled_relevance


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


def test_a_copy_waits_where_all_scores_are_low():
    vectors = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    assert diversify(scaled_relevance(np.array([-1.0, -1.1, -4.0])), vectors, 3, 0.6).tolist() == [
        0,
        2,
        1,
    ]
