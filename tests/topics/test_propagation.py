"""Labels that spread over the graph, and distinct vectors, by brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.neighbors.results import NeighborGraph
from embedtopics.topics import _propagation as walking
from embedtopics.topics._propagation import NOWHERE, SLOTS, STEPS, propagate_labels
from embedtopics.topics._vectors import (
    core_centroids,
    cosines,
    find_unique_vectors,
    row_centroids,
    spread_graph,
)
from tests.factories import make_result, with_threads


@pytest.fixture(autouse=True, params=["all shares", "slots"])
def kept_on_the_way(request, monkeypatch):
    """Both ways of walking have to pass all tests."""
    if request.param == "slots":
        monkeypatch.setattr(walking, "MOST_CELLS", 0)
    return request.param


def random_graph(n_documents, k, seed=0, low=-0.2):
    """Neighbours at random, with similarities that descend along each row."""
    rng = np.random.default_rng(seed)
    steps = np.argsort(rng.random((n_documents, n_documents - 1)), axis=1)[:, :k] + 1
    indices = (np.arange(n_documents)[:, None] + steps) % n_documents
    similarities = -np.sort(-rng.uniform(low, 1.0, (n_documents, k)), axis=1)
    return NeighborGraph(indices.astype(np.int32), similarities.astype(np.float32))


def long_graph(n_documents, k, seed=0):
    """As `random_graph`, for many documents: neighbours may repeat."""
    rng = np.random.default_rng(seed)
    indices = (
        np.arange(n_documents)[:, None] + rng.integers(1, 60, (n_documents, k))
    ) % n_documents
    similarities = -np.sort(-rng.uniform(0.0, 1.0, (n_documents, k)), axis=1)
    return NeighborGraph(indices.astype(np.int32), similarities.astype(np.float32))


def random_labels(n_documents, n_topics, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(-12, n_topics, n_documents)
    return np.where(labels < -9, NOWHERE, np.maximum(labels, -1)).astype(np.int32)


def by_matrices(graph, labels, n_topics):
    """Return the shares of all topics as the harmonic solution, cut after 30 steps."""
    n_documents = len(labels)
    chances = np.zeros((n_documents, n_documents))
    weights = np.maximum(graph.similarities.astype(np.float64), 0.0)
    for row, (others, of_row) in enumerate(zip(graph.indices, weights, strict=True)):
        if of_row.sum() > 0:
            np.add.at(chances[row], others, of_row / of_row.sum())
    shares = np.zeros((n_documents, n_topics))
    shares[labels >= 0, labels[labels >= 0]] = 1.0
    passing = labels == -1
    for _ in range(STEPS - 1):
        shares[passing] = (chances @ shares)[passing]
    return chances @ shares


def spread(propagated, n_topics):
    """Return the shares as a dense array."""
    dense = np.zeros((len(propagated.topics), n_topics))
    rows, slots = np.nonzero(propagated.topics >= 0)
    dense[rows, propagated.topics[rows, slots]] = propagated.shares[rows, slots]
    return dense


@pytest.mark.parametrize(("n_topics", "k"), [(1, 1), (2, 3), (7, 10), (16, 15), (16, 2)])
def test_equals_the_harmonic_solution(n_topics, k):
    graph = random_graph(250, k, seed=k)
    labels = random_labels(250, n_topics, seed=n_topics)
    propagated = propagate_labels(graph, labels, n_topics)
    expected = by_matrices(graph, labels, n_topics)
    np.testing.assert_allclose(spread(propagated, n_topics), expected, atol=1e-5)
    np.testing.assert_allclose(propagated.none, 1.0 - expected.sum(axis=1), atol=1e-5)


def test_shares_descend_and_unused_slots_are_marked():
    propagated = propagate_labels(random_graph(250, 15), random_labels(250, 12), 12)
    assert propagated.topics.shape == propagated.shares.shape == (250, SLOTS)
    assert (np.diff(propagated.shares, axis=1) <= 0).all()
    np.testing.assert_array_equal(propagated.topics >= 0, propagated.shares > 0)
    for topics in propagated.topics:
        found = topics[topics >= 0]
        assert len(set(found.tolist())) == len(found)


def test_a_hand_calculation():
    # 0 -- 1 -- 2 -- 3: topics at both ends; 4 leads to 1 and to where walks end without a topic.
    indices = np.array([[1, 2], [0, 2], [1, 3], [2, 1], [1, 5], [4, 3]], dtype=np.int32)
    similarities = np.array([[1, 0], [1, 1], [1, 1], [1, 0], [0.75, 0.25], [1, 1]], np.float32)
    labels = np.array([0, -1, -1, 1, -1, NOWHERE], dtype=np.int32)
    found = spread(propagate_labels(NeighborGraph(indices, similarities), labels, 2), 2)
    # Of a line with two inner places, each leads to its own end twice as often as to the other.
    third = 1 / 3
    expected = [
        [2 * third, third],  # the first step is always made, from a labelled document too
        [2 * third, third],
        [third, 2 * third],
        [third, 2 * third],
        [0.75 * 2 * third, 0.75 * third],
        [0.5 * 0.75 * 2 * third, 0.5 * 0.75 * third + 0.5],
    ]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_equal_shares_are_in_the_order_of_topics():
    indices = np.array([[3, 2, 1], [0, 2, 3], [0, 1, 3], [0, 1, 2]], dtype=np.int32)
    graph = NeighborGraph(indices, np.full((4, 3), 0.5, np.float32))
    propagated = propagate_labels(graph, np.array([-1, 2, 0, 1], dtype=np.int32), 3)
    assert propagated.topics[0, :4].tolist() == [0, 1, 2, -1]


def test_more_topics_than_slots_keep_the_largest_and_the_sum():
    n_topics = SLOTS + 9
    indices = (np.arange(n_topics + 1)[:, None] + np.arange(1, n_topics + 1)) % (n_topics + 1)
    graph = NeighborGraph(
        indices.astype(np.int32),
        np.tile(np.linspace(1.0, 0.5, n_topics), (n_topics + 1, 1)).astype(np.float32),
    )
    labels = np.append(np.arange(n_topics), -1).astype(np.int32)  # the last is in none
    propagated = propagate_labels(graph, labels, n_topics)
    # Its neighbours are the topics 0, 1, 2, ..., each a little farther away.
    expected = np.linspace(1.0, 0.5, n_topics)
    expected = expected[:SLOTS] / expected[:SLOTS].sum()
    assert propagated.topics[-1].tolist() == list(range(SLOTS))
    np.testing.assert_allclose(propagated.shares[-1], expected, atol=1e-6)
    np.testing.assert_allclose(propagated.none, 0.0, atol=1e-6)


def test_without_neighbors_or_topics_every_walk_is_lost():
    labels = np.array([0, -1, 1], dtype=np.int32)
    alone = NeighborGraph(np.empty((3, 0), np.int32), np.empty((3, 0), np.float32))
    assert (propagate_labels(alone, labels, 2).none == 1).all()
    assert (propagate_labels(random_graph(3, 2), np.full(3, -1, np.int32), 0).none == 1).all()


def test_shares_too_small_for_a_float_are_none():
    # All neighbours of document 0 but the last, where walks end, lead to the topic, each with
    # less than a float holds.
    indices = np.tile(np.arange(16, dtype=np.int32), (18, 1))
    indices[0] += 2
    similarities = np.full((18, 16), 0.5, dtype=np.float32)
    similarities[0, :-1] = 2e-45
    similarities[0, -1] = 1.0
    labels = np.full(18, -1, dtype=np.int32)
    labels[[1, 17]] = 0, NOWHERE
    propagated = propagate_labels(NeighborGraph(indices, similarities), labels, 1)
    assert (propagated.topics[0] == -1).all() and propagated.none[0] == 1
    assert (propagated.topics[1:17, 0] == 0).all() and (propagated.topics[:, 1:] == -1).all()


def test_same_bits_for_any_number_of_threads():
    graph = long_graph(9_000, 12)
    labels = random_labels(9_000, 40)
    found = list(with_threads(lambda: propagate_labels(graph, labels, 40)))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].topics, other.topics)
        np.testing.assert_array_equal(found[0].shares, other.shares)


def test_all_shares_are_exact_where_slots_are_too_few(kept_on_the_way):
    graph = random_graph(300, 15, seed=5, low=0.1)
    labels = random_labels(300, 60, seed=5)
    expected = by_matrices(graph, labels, 60)
    kept = np.sort(expected, axis=1)[:, -SLOTS:]
    kept *= (expected.sum(axis=1) / kept.sum(axis=1).clip(1e-30))[:, None]
    error = np.abs(propagate_labels(graph, labels, 60).shares - kept[:, ::-1]).max()
    assert error < 1e-5 if kept_on_the_way == "all shares" else 1e-4 < error < 0.2


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
