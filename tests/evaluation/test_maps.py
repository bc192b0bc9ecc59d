import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.manifold import trustworthiness

from embedtopics.evaluation import _maps as module
from embedtopics.evaluation._maps import (
    chance_overlap,
    jaccard_overlap,
    rank_biased_overlap,
    trustworthiness_and_continuity,
)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(180, 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    positions = vectors[:, :2] + 0.1 * rng.normal(size=(180, 2))
    return vectors.astype(np.float32), positions.astype(np.float32)


@pytest.mark.parametrize("k", [1, 7, 15])
def test_both_are_those_of_scikit_learn(data, k):
    vectors, positions = data
    trust, continuity = trustworthiness_and_continuity(vectors, positions, k)
    expected = trustworthiness(vectors.astype(float), positions, n_neighbors=k, metric="cosine")
    assert trust.mean() == pytest.approx(expected, abs=1e-9)
    # Continuity exchanges the spaces; of unit vectors the Euclidean order is that of the cosine.
    expected = trustworthiness(positions.astype(float), vectors.astype(float), n_neighbors=k)
    assert continuity.mean() == pytest.approx(expected, abs=1e-9)


def test_neither_blocks_nor_sparsity_show(data, monkeypatch):
    vectors, positions = data
    whole = trustworthiness_and_continuity(vectors, positions, 10)
    sparse = trustworthiness_and_continuity(csr_matrix(vectors), positions, 10)
    np.testing.assert_allclose(sparse, whole, atol=1e-9)
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 7)
    rows = np.array([3, 50, 51, 99, 120, 121, 122, 140, 179])
    some = trustworthiness_and_continuity(vectors, positions, 10, rows=rows)
    np.testing.assert_allclose(some, np.array(whole)[:, rows], atol=1e-12)


def test_documents_equally_far_share_their_rank():
    # One document has a neighbour; the other six have nothing in common with it.
    vectors = np.eye(7, dtype=np.float32)
    vectors[1] = vectors[0]
    line = np.array([[0.0], [10], [1], [20], [30], [40], [50]])
    trust, _ = trustworthiness_and_continuity(vectors, line, 1, rows=[0])
    # On the map the nearest of 0 is 2, one of five at ranks 2 to 6: rank 4, 3 too many.
    assert trust[0] == pytest.approx(1 - 2 / (1 * (14 - 3 - 1)) * 3)


def slow_rbo(first, second, p):
    """Equation 32 of Webber et al., term by term, for lists of any lengths."""
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
    nobody = np.empty((0, 5), dtype=int)
    assert len(jaccard_overlap(nobody, nobody)) == len(rank_biased_overlap(nobody, nobody)) == 0
    # The nearest count most.
    near = rank_biased_overlap([[1, 2, 3, 4]], [[1, 2, 8, 9]])
    far = rank_biased_overlap([[1, 2, 3, 4]], [[8, 9, 3, 4]])
    assert near[0] > far[0]
    assert jaccard_overlap([[1, 2, 3, 4]], [[1, 2, 8, 9]])[0] == pytest.approx(1 / 3)


def test_blocks_do_not_show(monkeypatch):
    rng = np.random.default_rng(0)
    first, second = (np.argsort(rng.random((50, 12)), axis=1)[:, :6] for _ in range(2))
    whole = jaccard_overlap(first, second), rank_biased_overlap(first, second)
    monkeypatch.setattr(module, "OVERLAP_ROWS_AT_ONCE", 7)
    np.testing.assert_array_equal(jaccard_overlap(first, second), whole[0])
    np.testing.assert_array_equal(rank_biased_overlap(first, second), whole[1])


def test_chance_is_what_random_neighbours_give():
    rng = np.random.default_rng(0)
    n, k = 40, 6
    first, second = (np.argsort(rng.random((40_000, n - 1)), axis=1)[:, :k] for _ in range(2))
    jaccard, rank_biased = chance_overlap(n, k)
    assert jaccard == pytest.approx(jaccard_overlap(first, second).mean(), abs=0.001)
    assert rank_biased == pytest.approx(rank_biased_overlap(first, second).mean(), abs=0.002)
