from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.manifold import trustworthiness

from embedtopics.errors import InputError
from embedtopics.evaluation import map_quality as module
from embedtopics.evaluation import trustworthiness_and_continuity


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(180, 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    positions = vectors[:, :2] + 0.1 * rng.normal(size=(180, 2))
    return vectors.astype(np.float32), positions.astype(np.float32)


@pytest.mark.parametrize("k", [1, 7, 15])
def test_trustworthiness_is_that_of_scikit_learn(data, k):
    vectors, positions = data
    trust, _ = trustworthiness_and_continuity(vectors, positions, k)
    expected = trustworthiness(vectors.astype(float), positions, n_neighbors=k, metric="cosine")
    assert trust.mean() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("k", [1, 7, 15])
def test_continuity_exchanges_the_spaces(data, k):
    vectors, positions = data
    _, continuity = trustworthiness_and_continuity(vectors, positions, k)
    # Of unit vectors the Euclidean order is that of the cosine.
    expected = trustworthiness(positions.astype(float), vectors.astype(float), n_neighbors=k)
    assert continuity.mean() == pytest.approx(expected, abs=1e-9)


def test_some_rows_are_the_same_as_among_all(data, monkeypatch):
    vectors, positions = data
    whole = trustworthiness_and_continuity(vectors, positions, 10)
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 7)
    rows = np.array([3, 50, 51, 99, 120, 121, 122, 140, 179])
    some = trustworthiness_and_continuity(vectors, positions, 10, rows=rows)
    np.testing.assert_allclose(some[0], whole[0][rows], atol=1e-12)
    np.testing.assert_allclose(some[1], whole[1][rows], atol=1e-12)


def test_sparse_vectors_are_the_same_as_dense_ones(data):
    vectors, positions = data
    dense = trustworthiness_and_continuity(vectors, positions, 10)
    sparse = trustworthiness_and_continuity(csr_matrix(vectors), positions, 10)
    np.testing.assert_allclose(sparse, dense, atol=1e-9)


def test_a_map_that_keeps_all_is_without_fault():
    angles = np.linspace(0, 3, 60) ** 1.1
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    kept = trustworthiness_and_continuity(circle.astype(np.float32), circle, 5)
    np.testing.assert_allclose(kept, 1.0)


def test_documents_equally_far_share_their_rank():
    # One document has a neighbour; the other six have nothing in common with it.
    vectors = np.eye(7, dtype=np.float32)
    vectors[1] = vectors[0]
    line = np.array([[0.0], [10], [1], [20], [30], [40], [50]])
    trust, _ = trustworthiness_and_continuity(vectors, line, 1, rows=[0])
    # On the map the nearest of 0 is 2, one of five at ranks 2 to 6: rank 4, 3 too many.
    assert trust[0] == pytest.approx(1 - 2 / (1 * (14 - 3 - 1)) * 3)


def test_bad_input(data):
    vectors, positions = data
    with pytest.raises(InputError, match="below half"):
        trustworthiness_and_continuity(vectors, positions, 90)
    with pytest.raises(InputError, match="one row for each of the 180"):
        trustworthiness_and_continuity(vectors, positions[:-1], 5)
