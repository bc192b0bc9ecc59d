"""Components averaged over the neighbour graph."""

import numpy as np
from scipy.sparse import csr_matrix

from embedtopics.neighbors._graph import build_graph
from embedtopics.reduction._components import leading, principal_start, smooth
from embedtopics.reduction._fuzzy import fuzzy_graph


def rows_of(n=120, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(n, 20)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_a_step_is_the_mean_of_a_document_and_its_neighbours():
    weights = csr_matrix(np.array([[0, 0.5, 0], [0.5, 0, 1], [0, 1, 0]], dtype=np.float32))
    components = np.array([[2.0, 0.0], [0.0, 4.0], [0.0, 1.0]], dtype=np.float32)
    # Row 0: (1 * (2, 0) + 0.5 * (0, 4)) / 1.5, and so on; then rows of length 1.
    means = np.array([[2 / 1.5, 2 / 1.5], [1 / 2.5, 5 / 2.5], [0.0, 5 / 2.0]])
    expected = means / np.linalg.norm(means, axis=1, keepdims=True)
    np.testing.assert_allclose(smooth(weights, components, 1), expected, rtol=1e-6)


def test_steps_equal_the_power_of_the_dense_matrix():
    vectors = rows_of()
    fuzzy, start = fuzzy_graph(build_graph(vectors, 7)), principal_start(vectors, 6)
    dense = fuzzy.toarray().astype(np.float64) + np.eye(len(vectors))
    dense /= dense.sum(axis=1, keepdims=True)
    expected = np.linalg.matrix_power(dense, 6) @ start
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(smooth(fuzzy, start), expected, atol=1e-5)


def test_a_document_without_neighbours_stays_where_it_is():
    components = np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32)
    alone = csr_matrix((2, 2), dtype=np.float32)
    np.testing.assert_allclose(smooth(alone, components), [[0.6, 0.8], [0.0, 0.0]], rtol=1e-6)


def test_the_last_bits_of_vectors_hardly_move_documents():
    vectors = rows_of(400)
    noise = np.random.default_rng(1).normal(size=vectors.shape)
    moved = (vectors + 1e-6 * noise).astype(np.float32)
    first, second = (
        smooth(fuzzy_graph(build_graph(one, 10)), principal_start(one, 8))
        for one in (vectors, moved)
    )
    assert np.abs(first - second).max() < 1e-3


def test_density_is_judged_in_the_first_components():
    coordinates = smooth(csr_matrix((5, 5), dtype=np.float32), rows_of(5))
    part = leading(coordinates)
    assert part.shape == (5, 8) and part.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(part, axis=1), 1, rtol=1e-6)
    cosines = (part * coordinates[:, :8]).sum(axis=1) / np.linalg.norm(coordinates[:, :8], axis=1)
    np.testing.assert_allclose(cosines, 1, rtol=1e-6)
