"""Distinct vectors of documents, and centroids of topics, by brute force."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.neighbors.results import NeighborGraph
from embedtopics.topics._vectors import (
    core_centroids,
    cosines,
    find_unique_vectors,
    row_centroids,
    spread_graph,
)
from tests.factories import make_result


@given(st.lists(st.sampled_from([(0.0, 1.0), (1.0, 0.0), (-0.0, 1.0), (0.5, 0.5)]), min_size=1))
def test_distinct_vectors_are_found(rows):
    vectors = np.array(rows, dtype=np.float32)
    unique = find_unique_vectors(vectors)
    assert np.array_equal(vectors[unique.first][unique.of_document], vectors)
    assert len(unique.first) == len(set(rows))
    assert unique.first.tolist() == sorted(rows.index(row) for row in set(rows))
    assert np.array_equal(unique.spread(unique.of(vectors)), vectors)


def test_a_copy_has_the_neighbours_of_its_vector():
    unique = find_unique_vectors(np.array([[1, 0], [1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32))
    graph = NeighborGraph(
        np.array([[2], [2], [1]], dtype=np.int32), np.array([[0.6], [0.8], [0.8]], np.float32)
    )
    spread = spread_graph(graph, unique)
    assert spread.indices.ravel().tolist() == [3, 3, 3, 2]
    assert np.allclose(spread.similarities.ravel(), [0.6, 0.6, 0.8, 0.8])


def test_cosines_of_zeros_and_centroids_of_no_topics():
    found = np.array([[0.0, 0], [2, 1], [0, 0]])
    np.testing.assert_allclose(cosines(found, np.array([[2.0, 0.0]])), [[0], [2 / 5**0.5], [0]])
    result = make_result(40, 0)
    shape = (0, result.embeddings.shape[1])
    assert row_centroids(result).shape == core_centroids(result).shape == shape
