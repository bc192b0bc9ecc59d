from __future__ import annotations

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.errors import InputError
from embedtopics.neighbors import build_graph, nearest, unit_rows
from embedtopics.neighbors import graph as graph_module


def brute_force(embeddings, k):
    similarities = embeddings.astype(np.float64) @ embeddings.T.astype(np.float64)
    np.fill_diagonal(similarities, -np.inf)
    order = np.argsort(-similarities, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(similarities, order, axis=1)


def blobs(n, d=24, n_centers=12, seed=0):
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_centers, d))
    return unit_rows(centers[rng.integers(n_centers, size=n)] + 0.4 * rng.normal(size=(n, d)))


def test_equals_all_pairs():
    embeddings = blobs(700)
    found = build_graph(embeddings, 15)
    order, similarities = brute_force(embeddings, 15)
    np.testing.assert_array_equal(found.indices, order)
    np.testing.assert_allclose(found.similarities, similarities, atol=1e-6)
    assert (found.method, found.recall) == ("exact", 1.0)


def test_approximate_graph_says_its_recall(monkeypatch):
    monkeypatch.setattr(graph_module, "EXACT_LIMIT", 1000)
    embeddings = blobs(4000)
    found = build_graph(embeddings, 15)
    order, _ = brute_force(embeddings, 15)
    hits = np.mean([np.isin(a, b).mean() for a, b in zip(order, found.indices, strict=True)])
    assert found.method == "ivf"
    assert found.recall == pytest.approx(hits, abs=0.03)
    assert found.recall >= 0.97
    assert not (found.indices == np.arange(4000)[:, None]).any()


@pytest.mark.parametrize("limit", [10_000, 500], ids=["exact", "ivf"])
def test_same_bits_for_any_number_of_threads(monkeypatch, limit):
    monkeypatch.setattr(graph_module, "EXACT_LIMIT", limit)
    embeddings = blobs(1500)
    before = faiss.omp_get_max_threads()
    try:
        graphs = []
        for threads in (1, 2, 4):
            faiss.omp_set_num_threads(threads)
            graphs.append(build_graph(embeddings, 15))
    finally:
        faiss.omp_set_num_threads(before)
    for other in graphs[1:]:
        np.testing.assert_array_equal(graphs[0].indices, other.indices)
        np.testing.assert_array_equal(graphs[0].similarities, other.similarities)


def test_ties_go_to_the_smaller_number():
    embeddings = unit_rows(np.repeat(np.eye(3, 4), 30, axis=0))
    found = build_graph(embeddings, 5)
    np.testing.assert_array_equal(found.indices[0], [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(found.indices[40], [30, 31, 32, 33, 34])
    assert (found.similarities == 1.0).all()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_fewer_documents_than_neighbors(n):
    found = build_graph(unit_rows(np.random.default_rng(0).normal(size=(n, 8))), 15)
    assert found.indices.shape == (n, n - 1) == found.similarities.shape


def test_nearest_does_not_depend_on_the_batch():
    embeddings, queries = blobs(900), blobs(50, seed=3)
    indices, similarities = nearest(queries, embeddings, 15)
    for row in (0, 17, 49):
        alone = nearest(queries[row : row + 1], embeddings, 15)
        np.testing.assert_array_equal(alone[0][0], indices[row])
        np.testing.assert_array_equal(alone[1][0], similarities[row])
    order = np.argsort(-(queries @ embeddings.T), axis=1)[:, :15]
    np.testing.assert_array_equal(indices, order)


@settings(max_examples=40, deadline=None)
@given(st.integers(3, 40), st.integers(1, 12), st.integers(0, 10_000))
def test_order_of_rows_does_not_matter(n, k, seed):
    rng = np.random.default_rng(seed)
    embeddings = unit_rows(rng.normal(size=(n, 6)))
    order = rng.permutation(n)
    found, moved = build_graph(embeddings, k), build_graph(embeddings[order], k)
    np.testing.assert_array_equal(order[moved.indices], found.indices[order])
    np.testing.assert_array_equal(moved.similarities, found.similarities[order])


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32])
def test_any_numeric_array_is_taken_and_left_alone(dtype):
    given_array = np.asfortranarray((np.arange(12).reshape(4, 3) + 1).astype(dtype))
    given_array.setflags(write=False)
    before = given_array.copy()
    unit = unit_rows(given_array)
    np.testing.assert_array_equal(given_array, before)
    expected = before.astype(float) / np.linalg.norm(before.astype(float), axis=1)[:, None]
    np.testing.assert_allclose(unit, expected, atol=1e-6)
    assert unit.dtype == np.float32 and unit.flags.c_contiguous


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_extreme_lengths_are_scaled_rightly(scale):
    np.testing.assert_allclose(unit_rows(np.array([[3.0, 4.0]]) * scale), [[0.6, 0.8]], rtol=1e-6)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([[1.0, np.nan], [1, 1]], "row 1 holds NaN"),
        ([[1.0, 1], [np.inf, 1]], "row 2 holds NaN or an infinite"),
        ([[1.0, 1], [0, 0]], "row 2 is zero"),
        ([1.0, 2.0], r"got shape \(2,\)"),
        ([["a", "b"]], "2-d array of numbers"),
    ],
)
def test_bad_vectors_are_named(bad, message):
    with pytest.raises(InputError, match=message):
        unit_rows(bad)
