"""The search for neighbours of new documents, beside the comparison with all."""

import numpy as np
import pytest

from embedtopics.neighbors._graph import build_graph, nearest, unit_rows
from embedtopics.neighbors._queries import QuerySearch

K = 15


@pytest.fixture(scope="module")
def vectors():
    """Unit vectors around 60 centres, some of them far from all."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(60, 48))
    return unit_rows(centres[rng.integers(60, size=6_000)] + 0.7 * rng.normal(size=(6_000, 48)))


@pytest.fixture(scope="module")
def split(vectors):
    return vectors[:5_000], vectors[5_000:]


@pytest.fixture(scope="module")
def search(split):
    return QuerySearch(split[0], build_graph(split[0], K))


def test_nearly_all_of_the_nearest_are_found_with_the_similarities_of_all_pairs(search, split):
    fitted, queries = split
    indices, similarities = search.search(queries, K)
    true, closest = nearest(queries, fitted, K)
    is_found = (indices[:, :, None] == true[:, None, :]).any(axis=2)
    assert is_found.mean() > 0.93
    assert (np.diff(similarities, axis=1) <= 0).all()
    for row in range(0, len(queries), 100):
        shared, at, there = np.intersect1d(indices[row], true[row], return_indices=True)
        np.testing.assert_array_equal(similarities[row, at], closest[row, there])
        assert len(shared) == is_found[row].sum()


@pytest.mark.parametrize("rows", [slice(7, 8), slice(0, 400), slice(300, 1_000)])
def test_a_query_gets_the_same_whoever_is_asked_with_it(search, split, rows):
    whole = search.search(split[1], K)
    part = search.search(split[1][rows], K)
    np.testing.assert_array_equal(part[0], whole[0][rows])
    np.testing.assert_array_equal(part[1], whole[1][rows])


def test_documents_outside_the_rows_are_not_found(vectors):
    rows = np.arange(0, 5_000, 2)
    graph = build_graph(vectors[rows], K)
    # As an extended graph is: those before have one another as neighbours, the others whatever.
    indices, similarities = np.zeros((5_000, K), np.int32), np.zeros((5_000, K), np.float32)
    indices[rows], similarities[rows] = rows[graph.indices], graph.similarities
    known = type(graph)(indices, similarities)
    found, _ = QuerySearch(vectors[:5_000], known, rows).search(vectors[5_000:], K)
    assert (found % 2 == 0).all()
    true = rows[nearest(vectors[5_000:], vectors[rows], K)[0]]
    assert (found[:, :, None] == true[:, None, :]).any(axis=2).mean() > 0.93


def test_more_neighbours_than_a_rough_search_returns_are_those_of_all_pairs(search, split):
    fitted, queries = split
    indices, similarities = search.search(queries[:3], 2_000)
    true, closest = nearest(queries[:3], fitted, 2_000)
    np.testing.assert_array_equal(indices, true)
    np.testing.assert_array_equal(similarities, closest)


def test_no_queries_find_nothing(search):
    indices, similarities = search.search(np.zeros((0, 48), np.float32), K)
    assert indices.shape == similarities.shape == (0, K)
