"""Both middles of topics, by brute force over rows and over documents."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from embedtopics.topics._similarity import (
    core_centroid,
    core_centroids,
    cosines,
    label_sums,
    row_centroids,
)
from tests.factories import make_result


def unit(vector):
    return vector / np.linalg.norm(vector)


def test_rows_weigh_alike_and_repeated_texts_as_often_as_they_stand():
    result = make_result(200, 4)
    assert (result.documents.weights > 1).any()
    of_row = result.documents.of_row
    vectors = result.embeddings.astype(np.float64)
    for topic, found in enumerate(row_centroids(result)):
        rows = np.flatnonzero(result.labels == topic)
        np.testing.assert_allclose(found, unit(vectors[of_row[rows]].mean(axis=0)), atol=1e-12)


def test_cores_weigh_by_strength_and_all_alike_where_none_has_any():
    result = make_result(200, 4)
    probabilities = result.clustering.probabilities.copy()
    labels = result.clustering.labels
    probabilities[labels == 2] = 0.0
    result = replace(result, clustering=replace(result.clustering, probabilities=probabilities))
    vectors = result.embeddings.astype(np.float64)
    found = core_centroids(result)
    for topic in range(4):
        members = labels == topic
        weights = (
            probabilities[members].astype(np.float64) if topic != 2 else np.ones(members.sum())
        )
        expected = unit(np.average(vectors[members], axis=0, weights=weights))
        np.testing.assert_allclose(found[topic], expected, atol=1e-12)
        np.testing.assert_array_equal(found[topic], core_centroid(result, topic))
    assert not np.allclose(found, row_centroids(result))


def test_labels_without_documents_and_those_below_zero_add_nothing():
    vectors = np.array([[1, 0], [0, 1], [1, 1]], dtype=np.float32)
    found = label_sums(vectors, np.array([1, -1, 1]), 3)
    np.testing.assert_array_equal(found, [[0, 0], [2, 1], [0, 0]])
    np.testing.assert_array_equal(label_sums(vectors[:0], np.empty(0, int), 2), np.zeros((2, 2)))
    np.testing.assert_allclose(cosines(found, np.array([[2.0, 0.0]])), [[0], [2 / 5**0.5], [0]])


def test_results_without_topics_have_no_middles():
    result = make_result(40, 0)
    shape = (0, result.embeddings.shape[1])
    assert row_centroids(result).shape == core_centroids(result).shape == shape
