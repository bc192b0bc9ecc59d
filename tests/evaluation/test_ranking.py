"""Ranking documents and measuring rankings, beside brute force and sentence-transformers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.metrics import ndcg_score

from embedtopics.evaluation import _ranking as module
from embedtopics.evaluation._ranking import rank_documents, score_rankings, scores_by_query
from tests.factories import refuses

FEW = {"n_resamples": 0}


def brute_force(queries, documents, k, order):
    """Rank by float64 cosines; of equal ones by the order given."""
    made = []
    for query in queries.astype(np.float64):
        lengths = np.sqrt((query @ query) * (documents.astype(np.float64) ** 2).sum(axis=1))
        near = np.round(documents @ query / np.where(lengths > 0, lengths, np.inf), 12)
        made.append(np.lexsort((order, -near))[:k])
    return np.array(made)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12), st.booleans())
def test_ranks_are_those_of_brute_force_ties_included(seed, k, is_sparse):
    rng = np.random.default_rng(seed)
    queries, documents = rng.integers(-1, 2, (5, 3)), rng.integers(-1, 2, (9, 3))
    order = rng.permutation(9)
    expected = brute_force(queries, documents, k, order)
    form = csr_matrix if is_sparse else np.asarray
    found, near = rank_documents(
        form(queries.astype(np.float32)), form(documents.astype(np.float32)), k, tie_order=order
    )
    np.testing.assert_array_equal(found, expected)
    assert (np.diff(near, axis=1) <= 0).all()


def test_ranks_do_not_depend_on_blocks_or_on_equal_documents(monkeypatch):
    rng = np.random.default_rng(0)
    queries = rng.normal(size=(40, 33)).astype(np.float32)
    documents = rng.normal(size=(150, 33)).astype(np.float32)
    documents = np.concatenate([documents, documents, documents[:7]])
    whole = rank_documents(queries, documents, 20)
    monkeypatch.setattr(module, "ENTRIES_AT_ONCE", 1000)
    parts = rank_documents(queries, documents, 20)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)
    # A document and its twin follow one another, the one that stands first before the other.
    places, _ = whole
    np.testing.assert_array_equal(places[:, 0] + 150, places[:, 1])
    shuffled = rng.permutation(len(documents))
    again, _ = rank_documents(queries, documents[shuffled], 20, tie_order=shuffled)
    np.testing.assert_array_equal(shuffled[again], places)


def test_dot_products_rank_long_vectors_first():
    found, near = rank_documents([[1.0, 0.0]], [[1.0, 0], [9, 9], [0, 1]], 9, similarity="dot")
    assert found.tolist() == [[1, 0, 2]] and near.tolist() == [[9.0, 1.0, 0.0]]


class Given:
    """A model for evaluators: the text "first 3" has row 3 of the vectors named "first"."""

    similarity_fn_name = "cosine"

    def __init__(self, **vectors):
        self.vectors = vectors

    def encode(self, texts, *, convert_to_tensor=False, **_):
        import torch

        pairs = [text.split() for text in texts]
        made = np.stack([self.vectors[name][int(row)] for name, row in pairs])
        return torch.from_numpy(made) if convert_to_tensor else made

    encode_query = encode_document = encode

    def similarity(self, queries, documents):
        from sentence_transformers.util import cos_sim

        return cos_sim(queries, documents)

    @property
    def model_card_data(self):
        return self

    def set_evaluation_metrics(self, *_):
        """Evaluators note their figures in a model card."""


def test_measures_are_those_of_sentence_transformers():
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

    rng = np.random.default_rng(1)
    queries = rng.normal(size=(30, 8)).astype(np.float32)
    documents = rng.normal(size=(120, 8)).astype(np.float32)
    documents[100:] = documents[:20]  # ties
    is_relevant = rng.random((30, 120)) < 0.06
    is_relevant[np.arange(30), rng.integers(0, 120, 30)] = True
    names = {"q": [f"q {row}" for row in range(30)], "d": [f"d {row:03}" for row in range(120)]}
    ks = [1, 3, 10, 50]
    expected = InformationRetrievalEvaluator(
        {name: name for name in names["q"]},
        {name: name for name in names["d"]},
        {q: {names["d"][d] for d in np.flatnonzero(is_relevant[row])}
         for row, q in enumerate(names["q"])},
        mrr_at_k=ks, ndcg_at_k=ks, accuracy_at_k=ks, precision_recall_at_k=ks, map_at_k=ks,
        write_csv=False, corpus_chunk_size=50,
    )(Given(q=queries, d=documents))  # fmt: skip
    ranked, _ = rank_documents(queries, documents, 50)
    found = score_rankings(ranked, csr_matrix(is_relevant.astype(float)), ks, **FEW)
    assert len(found) == 24
    for name, one in found.items():
        theirs = expected["cosine_" + name.replace("success", "accuracy")]
        assert one.value == pytest.approx(theirs, abs=1e-6), name
        assert one.n == 30


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 8))
def test_graded_ndcg_is_that_of_scikit_learn(seed, k):
    rng = np.random.default_rng(seed)
    grades = rng.integers(0, 4, (4, 8))
    grades[:, 0] = 1
    scores = rng.permutation(np.arange(8.0))
    ranked = np.tile(np.argsort(-scores), (4, 1))
    found = scores_by_query(ranked, csr_matrix(grades), [k])
    for row in range(4):
        expected = ndcg_score(grades[[row]], scores[None], k=k)
        assert found[f"ndcg@{k}"][row] == pytest.approx(expected)


def test_measures_by_hand():
    relevance = csr_matrix([[0, 2, 0, 1, -1], [0, 0, 0, 0, 0]])
    found = scores_by_query([[4, 1, -1], [0, 1, 2]], relevance, [2])
    assert found["precision@2"][0] == 0.5 and found["recall@2"][0] == 0.5
    assert found["mrr@2"][0] == 0.5 and found["success@2"][0] == 1
    assert found["map@2"][0] == 0.25  # precision 1/2 at rank 2, of two relevant documents
    best = 2 + 1 / np.log2(3)
    assert found["ndcg@2"][0] == pytest.approx(2 / np.log2(3) / best)
    assert all(np.isnan(values[1]) for values in found.values())
    assert score_rankings([[4, 1, -1], [0, 1, 2]], relevance, [2], **FEW)["map@2"].n == 1


def test_intervals_are_over_queries():
    relevance = csr_matrix(np.eye(50))
    ranked = np.array([[row] if row < 30 else [0] for row in range(50)])
    found = score_rankings(ranked, relevance, [1])["recall@1"]
    assert found.value == 0.6 and 0.4 < found.low < 0.53 < 0.67 < found.high < 0.8


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda: rank_documents([[1.0]], [[1.0, 2.0]], 1), "documents"),
        (lambda: rank_documents([[1.0]], np.zeros((0, 1)), 1), "documents"),
        (lambda: rank_documents([[1.0]], [[1.0]], 0), "k"),
        (lambda: rank_documents([[1.0]], [[1.0]], 1, similarity="manhattan"), "similarity"),
        (lambda: rank_documents([[1.0]], [[1.0]], 1, tie_order=[1, 2]), "tie_order"),
        (lambda: scores_by_query([[0, 0]], csr_matrix([[1, 1]])), "ranked"),
        (lambda: scores_by_query([[2]], csr_matrix([[1, 1]])), "ranked"),
        (lambda: scores_by_query([[0.5]], csr_matrix([[1, 1]])), "ranked"),
        (lambda: scores_by_query([[0]], csr_matrix([[1, 1]]), [0]), "ks"),
        (lambda: score_rankings([[0]], csr_matrix((1, 2))), ""),
    ],
)
def test_bad_input(call, parameter):
    with refuses(parameter):
        call()
