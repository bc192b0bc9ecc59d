"""Ranking documents compared with brute force, and measures of rankings by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.metrics import ndcg_score

from embedtopics.evaluation import _retrieval as module
from embedtopics.evaluation._retrieval import measure_rankings, rank_documents


def brute_force(queries, documents, k, order):
    """Rank by float64 cosines; of equal ones by the order given."""
    ranked = []
    for query in queries.astype(np.float64):
        lengths = np.sqrt((query @ query) * (documents.astype(np.float64) ** 2).sum(axis=1))
        near = np.round(documents @ query / np.where(lengths > 0, lengths, np.inf), 12)
        ranked.append(np.lexsort((order, -near))[:k])
    return np.array(ranked)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12), st.booleans())
def test_ranks_are_those_of_brute_force_ties_included(seed, k, is_sparse):
    rng = np.random.default_rng(seed)
    queries, documents = rng.integers(-1, 2, (5, 3)), rng.integers(-1, 2, (9, 3))
    order = rng.permutation(9)
    expected = brute_force(queries, documents, k, order)
    form = csr_matrix if is_sparse else np.asarray
    ranked, near = rank_documents(
        form(queries.astype(np.float32)), form(documents.astype(np.float32)), k, tie_order=order
    )
    np.testing.assert_array_equal(ranked, expected)
    assert (np.diff(near, axis=1) <= 0).all()


def test_ranks_do_not_depend_on_blocks_or_on_equal_documents(monkeypatch):
    rng = np.random.default_rng(0)
    queries = rng.normal(size=(40, 33)).astype(np.float32)
    documents = rng.normal(size=(150, 33)).astype(np.float32)
    documents = np.concatenate([documents, documents, documents[:7]])
    whole = rank_documents(queries, documents, 20)
    monkeypatch.setattr(module, "SIMILARITIES_AT_ONCE", 1000)
    parts = rank_documents(queries, documents, 20)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)
    # A document and its copy follow one another, the first one before the other.
    places, _ = whole
    np.testing.assert_array_equal(places[:, 0] + 150, places[:, 1])
    shuffled = rng.permutation(len(documents))
    again, _ = rank_documents(queries, documents[shuffled], 20, tie_order=shuffled)
    np.testing.assert_array_equal(shuffled[again], places)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 8))
def test_graded_ndcg_is_that_of_scikit_learn(seed, k):
    rng = np.random.default_rng(seed)
    grades = rng.integers(0, 4, (4, 8)).astype(float)
    grades[:, 0] = 1
    scores = rng.permutation(np.arange(8.0))
    measures = measure_rankings(grades[:, np.argsort(-scores)], list(grades), [k])
    for row in range(4):
        expected = ndcg_score(grades[[row]], scores[None], k=k)
        assert measures[f"ndcg@{k}"][row] == pytest.approx(expected)


def test_measures_by_hand():
    judged = [np.array([2.0, 1.0, -1.0]), np.zeros(1)]
    found = measure_rankings(np.array([[-1.0, 2.0, 0.0], [0.0, 0.0, 0.0]]), judged, [2])
    assert found["precision@2"][0] == 0.5 and found["recall@2"][0] == 0.5
    assert found["mrr@2"][0] == found["mrr"][0] == 0.5
    # Precision 1/2 at rank 2, of two relevant documents.
    assert found["map@2"][0] == found["map"][0] == 0.25
    assert found["ndcg@2"][0] == pytest.approx(2 / np.log2(3) / (2 + 1 / np.log2(3)))
    assert all(values[1] == 0 for values in found.values())
