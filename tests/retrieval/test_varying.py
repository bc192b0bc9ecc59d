from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.errors import InputError
from embedtopics.retrieval.varying import as_relevance, varied


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
    found = varied(relevance, vectors, k, diversity)
    assert found.tolist() == brute_force(relevance, vectors, k, diversity)


def test_a_copy_waits_for_what_is_new():
    vectors = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    assert varied([0.9, 0.9, 0.5], vectors, 3).tolist() == [0, 2, 1]
    assert varied([0.9, 0.9, 0.5], vectors, 2, 0.0).tolist() == [0, 1]
    assert varied([], np.zeros((0, 2)), 3).tolist() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.1], np.ones((2, 2)), 1), "one relevance and one vector a candidate"),
        (([np.nan], np.ones((1, 2)), 1), "finite"),
        (([0.1], np.full((1, 2), np.inf), 1), "finite"),
        (([0.1], np.ones((1, 2)), 0), "k must be an integer from 1 up"),
        (([0.1], np.ones((1, 2)), 1, 1.5), "diversity must be a number from 0 to 1"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        varied(*arguments)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.5, 0.25, 0.0], [1, 0.5, 0]), ([8.0, 2.0], [1, 0.25]), ([3.0, 1.0, -1.0], [1, 0.5, 0]),
        ([-2.0, -11.0, -8.0], [1, 0, 1 / 3]), ([-2.0, -2.0], [0, 0]), ([0.0], [0]), ([], []),
        ([4.0, 4.0], [1, 1]),
    ],
)  # fmt: skip
def test_scores_of_any_kind_become_relevance(scores, expected):
    np.testing.assert_allclose(as_relevance(scores), expected)


def test_a_copy_waits_where_all_scores_are_low():
    vectors = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    assert varied(as_relevance([-1.0, -1.1, -4.0]), vectors, 3, 0.6).tolist() == [0, 2, 1]
