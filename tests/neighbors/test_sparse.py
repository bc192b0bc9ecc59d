from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random_array

from embedtopics.neighbors._graph import build_sparse_graph
from tests.factories import with_threads


def sparse_rows(n, d=60, density=0.1, seed=0):
    rows = random_array((n, d), density=density, rng=np.random.default_rng(seed)).toarray()
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return csr_matrix((rows / np.where(lengths > 0, lengths, 1)).astype(np.float32))


def brute_force(rows, k):
    """Compare all pairs in float32, summed column by column, ties by index."""
    dense = rows.toarray()
    similarities = np.zeros((len(dense),) * 2, dtype=np.float32)
    for column in dense.T:
        similarities += np.outer(column, column)
    np.fill_diagonal(similarities, -np.inf)
    order = np.argsort(-similarities, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(similarities, order, axis=1)


@pytest.mark.parametrize("n", [5, 127, 128, 129, 700])
def test_equals_all_pairs_to_the_last_bit(n):
    rows = sparse_rows(n)
    found = build_sparse_graph(rows, 4)
    order, similarities = brute_force(rows, 4)
    np.testing.assert_array_equal(found.indices, order)
    np.testing.assert_array_equal(found.similarities, np.clip(similarities, -1, 1))
    assert (found.method, found.recall) == ("exact", 1.0)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 40), st.integers(1, 6), st.integers(0, 1000))
def test_ties_are_in_the_order_of_the_documents(n, k, seed):
    entries = np.random.default_rng(seed).integers(0, 2, (n, 4)).astype(np.float32)
    rows = csr_matrix(entries)  # many equal similarities, and rows of zeros
    found = build_sparse_graph(rows, k)
    order, _ = brute_force(rows, min(k, n - 1))
    np.testing.assert_array_equal(found.indices, order)


def test_a_row_of_zeros_has_nothing_in_common_with_any():
    rows = sparse_rows(50).tolil()
    rows[7] = 0
    found = build_sparse_graph(csr_matrix(rows), 3)
    np.testing.assert_array_equal(found.indices[7], [0, 1, 2])
    np.testing.assert_array_equal(found.similarities[7], 0)


def test_the_order_of_entries_does_not_matter_and_the_input_stays():
    rows = sparse_rows(80)
    turned = rows.copy()
    for row in range(80):
        part = slice(turned.indptr[row], turned.indptr[row + 1])
        turned.indices[part] = turned.indices[part][::-1].copy()
        turned.data[part] = turned.data[part][::-1].copy()
    turned.has_sorted_indices = False
    before = turned.indices.copy()
    expected, found = build_sparse_graph(rows, 5), build_sparse_graph(turned, 5)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.similarities, expected.similarities)
    np.testing.assert_array_equal(turned.indices, before)


def test_the_same_for_any_number_of_threads():
    rows = sparse_rows(1000)
    found = list(with_threads(lambda: build_sparse_graph(rows, 8)))
    for graph in found[1:]:
        np.testing.assert_array_equal(graph.similarities, found[0].similarities)


def test_few_documents_have_few_neighbours():
    assert build_sparse_graph(sparse_rows(3), 15).indices.shape == (3, 2)
    assert build_sparse_graph(sparse_rows(1), 15).indices.shape == (1, 0)
