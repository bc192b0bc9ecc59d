from __future__ import annotations

import warnings

import numpy as np
import pytest

from embedtopics.neighbors._graph import build_graph, unit_rows
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.reduction import _fuzzy as fuzzy_module
from embedtopics.reduction._fuzzy import _bandwidths, fuzzy_graph


def graph_of(n=300, d=10, seed=0, k=15):
    return build_graph(unit_rows(np.random.default_rng(seed).normal(size=(n, d))), k)


@pytest.mark.slow
@pytest.mark.parametrize("n", [40, 300])
def test_equals_umap_learn(n):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # umap-learn warns of a missing optional package
        from umap.umap_ import fuzzy_simplicial_set

    graph = graph_of(n)
    itself = np.arange(n, dtype=np.int32)[:, None]
    expected, _, _ = fuzzy_simplicial_set(
        np.zeros((n, 1), np.float32),
        n_neighbors=16,
        random_state=None,
        metric="precomputed",
        knn_indices=np.hstack([itself, graph.indices]),
        knn_dists=np.hstack([np.zeros((n, 1), np.float32), 1 - graph.similarities]),
    )
    np.testing.assert_allclose(fuzzy_graph(graph).toarray(), expected.toarray(), atol=2e-4)


def test_two_points_by_hand():
    # Each is the other's only neighbour: the nearest neighbour is certain in both directions.
    graph = NeighborGraph(np.array([[1], [0]], np.int32), np.array([[0.5], [0.5]], np.float32))
    np.testing.assert_array_equal(fuzzy_graph(graph).toarray(), [[0, 1], [1, 0]])


def test_symmetric_and_in_range():
    fuzzy = fuzzy_graph(graph_of(150))
    assert abs(fuzzy - fuzzy.T).max() == 0
    assert 0 < fuzzy.data.min() and fuzzy.data.max() <= 1


def test_identical_points_are_certain():
    fuzzy = fuzzy_graph(build_graph(unit_rows(np.ones((20, 4))), 5))
    assert (fuzzy.data == 1).all()


def usual(distances):
    return distances.sum(axis=1).mean() / (distances.shape[1] + 1)


def test_parts_of_the_documents_are_weighed_as_all_at_once(monkeypatch):
    similarities = np.sort(np.random.default_rng(0).random((50, 6)).astype(np.float32))[:, ::-1]
    indices = np.argsort(np.random.default_rng(1).random((50, 50)), axis=1)[:, :6]
    graph = NeighborGraph(indices.astype(np.int32), np.ascontiguousarray(similarities))
    whole = fuzzy_graph(graph)
    monkeypatch.setattr(fuzzy_module, "ROWS_AT_ONCE", 7)
    np.testing.assert_array_equal(fuzzy_graph(graph).toarray(), whole.toarray())


def test_bandwidths_equal_a_root_finder():
    from scipy.optimize import brentq

    rng = np.random.default_rng(0)
    # Scales from tiny to large within one row, where steps could go astray.
    distances = np.sort(10 ** rng.uniform(-7, 0.3, size=(100, 15)), axis=1)
    rho = distances[:, 0]
    for sigma, row in zip(_bandwidths(distances, rho, usual(distances)), distances, strict=True):
        beyond = row - row[0]

        def excess(log_sigma, beyond=beyond):
            return np.exp(-beyond / np.exp(log_sigma)).sum() - np.log2(16)

        assert sigma == pytest.approx(
            max(np.exp(brentq(excess, -30, 10, xtol=1e-13)), 1e-3 * row.sum() / 16), rel=1e-9
        )


def test_least_bandwidth_where_all_are_equally_near():
    distances = np.array([[0.2] * 8 + [0.4] * 7, [0.0] * 15])
    own_mean = distances[0].sum() / 16
    expected = [1e-3 * own_mean, 1e-3 * own_mean / 2]
    np.testing.assert_allclose(
        _bandwidths(distances, np.array([0.2, 0.0]), usual(distances)), expected
    )


def test_what_is_like_no_other_is_tied_to_none():
    graph = NeighborGraph(
        np.array([[1, 3], [0, 3], [0, 1], [0, 1]], np.int32),
        np.array([[0.9, 0.5], [0.9, 0.4], [0.0, -0.1], [0.5, 0.4]], np.float32),
    )
    fuzzy = fuzzy_graph(graph).toarray()
    assert not fuzzy[2].any() and not fuzzy[:, 2].any()
    near = np.array([[1, 2], [0, 2], [0, 1]], np.int32)
    expected = fuzzy_graph(NeighborGraph(near, graph.similarities[[0, 1, 3]])).toarray()
    np.testing.assert_allclose(fuzzy[np.ix_([0, 1, 3], [0, 1, 3])], expected, rtol=1e-6)
