"""Documents with the very same vector share a place, and nothing else is moved."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.neighbors.results import NeighborGraph
from embedtopics.topics._unique_vectors import find_unique_vectors, spread_graph


@given(st.lists(st.sampled_from([(0.0, 1.0), (1.0, 0.0), (-0.0, 1.0), (0.5, 0.5)]), min_size=1))
def test_places_are_the_distinct_vectors(rows):
    vectors = np.array(rows, dtype=np.float32)
    places = find_unique_vectors(vectors)
    assert np.array_equal(vectors[places.first][places.of_document], vectors)
    assert len(places.first) == len({row for row in rows})
    assert all(
        first == next(i for i, row in enumerate(rows) if row == rows[first])
        for first in places.first.tolist()
    )
    assert np.array_equal(places.spread(places.of(vectors)), vectors)


def test_vectors_of_one_sum_are_not_taken_for_one():
    places = find_unique_vectors(np.array([[1, 0], [0, 1], [1, 0]], dtype=np.float32))
    assert places.first.tolist() == [0, 1]
    assert places.of_document.tolist() == [0, 1, 0]


def test_a_copy_has_the_neighbours_of_its_place():
    places = find_unique_vectors(np.array([[1, 0], [1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32))
    graph = NeighborGraph(
        np.array([[2], [2], [1]], dtype=np.int32), np.array([[0.6], [0.8], [0.8]], np.float32)
    )
    spread = spread_graph(graph, places)
    assert spread.indices.ravel().tolist() == [3, 3, 3, 2]
    assert np.allclose(spread.similarities.ravel(), [0.6, 0.6, 0.8, 0.8])
