from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.errors import InputError
from embedtopics.evaluation import chance_overlap, jaccard_overlap, rank_biased_overlap
from embedtopics.evaluation import neighbor_overlap as module


def slow_rbo(first, second, p):
    """Equation 32, term by term."""
    short, long = sorted([first, second], key=len)
    s, length = len(short), len(long)
    if s == 0:
        return 0.0

    def shared(depth):
        return len(set(short[:depth]) & set(long[:depth]))

    head = sum(shared(d) / d * p**d for d in range(1, length + 1))
    head += sum(shared(s) * (d - s) / (s * d) * p**d for d in range(s + 1, length + 1))
    tail = ((shared(length) - shared(s)) / length + shared(s) / s) * p**length
    return (1 - p) / p * head + tail


def padded(lists, k):
    return np.array([[*row, *[-1] * (k - len(row))] for row in lists])


rankings = st.lists(st.integers(0, 9), unique=True, max_size=7)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(rankings, rankings), min_size=1, max_size=6), st.floats(0.05, 0.99))
def test_equals_the_definition(pairs, p):
    first, second = (padded(lists, 7) for lists in zip(*pairs, strict=True))
    expected = [slow_rbo(a, b, p) for a, b in pairs]
    np.testing.assert_allclose(rank_biased_overlap(first, second, p), expected, atol=1e-6)
    expected = [len({*a} & {*b}) / max(1, len({*a} | {*b})) for a, b in pairs]
    np.testing.assert_allclose(jaccard_overlap(first, second), expected, atol=1e-6)


def test_a_calculation_by_hand():
    # X = 0, 2, 2 at depths 1, 2, 3: .1/.9 (0 + 2/2 * .81 + 2/3 * .729) + 2/3 * .729
    found = rank_biased_overlap([[1, 2, 3]], [[2, 1, 4]])
    assert found[0] == pytest.approx(0.1 / 0.9 * (0.81 + 0.486) + 0.486)


def test_the_nearest_count_most():
    near = rank_biased_overlap([[1, 2, 3, 4]], [[1, 2, 8, 9]])
    far = rank_biased_overlap([[1, 2, 3, 4]], [[8, 9, 3, 4]])
    assert near[0] > far[0]
    assert jaccard_overlap([[1, 2, 3, 4]], [[1, 2, 8, 9]])[0] == pytest.approx(1 / 3)


def test_blocks_do_not_show(monkeypatch):
    rng = np.random.default_rng(0)
    first, second = (np.argsort(rng.random((50, 12)), axis=1)[:, :6] for _ in range(2))
    whole = jaccard_overlap(first, second), rank_biased_overlap(first, second)
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 7)
    np.testing.assert_array_equal(jaccard_overlap(first, second), whole[0])
    np.testing.assert_array_equal(rank_biased_overlap(first, second), whole[1])


def test_chance_is_what_random_neighbours_give():
    rng = np.random.default_rng(0)
    n, k = 40, 6
    first, second = (np.argsort(rng.random((40_000, n - 1)), axis=1)[:, :k] for _ in range(2))
    jaccard, rank_biased = chance_overlap(n, k)
    assert jaccard == pytest.approx(jaccard_overlap(first, second).mean(), abs=0.001)
    assert rank_biased == pytest.approx(rank_biased_overlap(first, second).mean(), abs=0.002)


def test_no_documents():
    nobody = np.empty((0, 5), dtype=int)
    assert len(jaccard_overlap(nobody, nobody)) == len(rank_biased_overlap(nobody, nobody)) == 0


def test_bad_input():
    with pytest.raises(InputError, match="p must be between"):
        rank_biased_overlap([[1]], [[1]], p=1.0)
    with pytest.raises(InputError, match="same documents"):
        jaccard_overlap([[1]], [[1], [2]])
    with pytest.raises(InputError, match="k must be from 1 to 4"):
        chance_overlap(5, 5)
