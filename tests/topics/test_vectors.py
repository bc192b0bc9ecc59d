"""Distinct vectors of documents, and centroids of topics, by brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.neighbors.results import NeighborGraph
from embedtopics.topics._vectors import (
    core_centroid,
    core_centroids,
    cosines,
    find_unique_vectors,
    row_centroids,
    spread_graph,
)
from tests.factories import make_result


def unit(vector):
    return vector / np.linalg.norm(vector)


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


def test_centroids_weigh_rows_the_same_or_documents_by_probability():
    result = make_result(200, 4)
    assert (result.documents.weights > 1).any()
    probabilities = result.clustering.probabilities.copy()
    labels = result.clustering.labels
    probabilities[labels == 2] = 0.0  # a topic without any weighs its documents the same
    result = replace(result, clustering=replace(result.clustering, probabilities=probabilities))
    of_row = result.documents.of_row
    vectors = result.embeddings.astype(np.float64)
    of_rows, of_cores = row_centroids(result), core_centroids(result)
    for topic in range(4):
        rows = np.flatnonzero(result.labels == topic)
        mean = vectors[of_row[rows]].mean(axis=0)
        np.testing.assert_allclose(of_rows[topic], unit(mean), atol=1e-12)
        members = labels == topic
        weights = probabilities[members].astype(np.float64) if topic != 2 else None
        mean = np.average(vectors[members], axis=0, weights=weights)
        np.testing.assert_allclose(of_cores[topic], unit(mean), atol=1e-12)
        np.testing.assert_array_equal(of_cores[topic], core_centroid(result, topic))
    assert not np.allclose(of_cores, of_rows)


def test_cosines_of_zeros_and_centroids_of_no_topics():
    found = np.array([[0.0, 0], [2, 1], [0, 0]])
    np.testing.assert_allclose(cosines(found, np.array([[2.0, 0.0]])), [[0], [2 / 5**0.5], [0]])
    result = make_result(40, 0)
    shape = (0, result.embeddings.shape[1])
    assert row_centroids(result).shape == core_centroids(result).shape == shape
