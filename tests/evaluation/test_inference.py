"""A linear model on pairs of vectors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from embedtopics.errors import InputError
from embedtopics.evaluation import inference_accuracy, inference_features


@pytest.fixture(scope="module")
def pairs():
    """Pairs whose class is told by how far apart they are in the first dimension."""
    rng = np.random.default_rng(0)
    first = rng.normal(size=(600, 6)).astype(np.float32)
    labels = rng.integers(0, 3, 600)
    second = first + rng.normal(size=first.shape).astype(np.float32) * 0.2
    second[:, 0] += labels * rng.choice([-1, 1], 600)
    return first, second, labels


def split(pairs, n=400):
    first, second, labels = pairs
    return (first[:n], second[:n]), labels[:n], (first[n:], second[n:]), labels[n:]


def test_features_are_both_vectors_and_how_far_they_are_apart():
    assert inference_features([[1, 2]], [[3, -1]]).tolist() == [[1, 2, 3, -1, 2, 3]]
    sparse = inference_features(csr_matrix([[1.0, 2]]), csr_matrix([[3.0, -1]]))
    assert sparse.toarray().tolist() == [[1, 2, 3, -1, 2, 3]]


def test_accuracy_is_that_of_scikit_learn(pairs):
    train, known, test, truth = split(pairs)
    found, converged = inference_accuracy(train, known, test, truth)
    features = inference_features(*train)
    factor = 1 / np.sqrt(features.var(axis=0).sum())
    model = LogisticRegression(C=3.0, max_iter=5000, tol=1e-8).fit(features * factor, known)
    right = model.predict(inference_features(*test) * factor) == truth
    assert converged and found.n == 200
    assert found.value == pytest.approx(right.mean(), abs=0.006)  # one pair on the border
    assert found.low < found.value < found.high and found.value > 0.6


def test_sparse_vectors_are_as_dense_ones(pairs):
    train, known, test, truth = split(pairs)
    dense, _ = inference_accuracy(train, known, test, truth, n_resamples=0)
    sparse, _ = inference_accuracy(
        [csr_matrix(v) for v in train], known, [csr_matrix(v) for v in test], truth, n_resamples=0
    )
    assert sparse.value == pytest.approx(dense.value, abs=0.011)


def test_the_order_of_the_training_pairs_changes_nothing(pairs):
    train, known, test, truth = split(pairs)
    order = np.random.default_rng(1).permutation(400)
    found, _ = inference_accuracy(train, known, test, truth)
    again, _ = inference_accuracy([v[order] for v in train], known[order], test, truth)
    np.testing.assert_array_equal(found.drawn, again.drawn)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t, k, a, b: (t, k[1:], a, b), r"of 400 training.*\(399,\)"),
        (lambda t, k, a, b: (t, k * 0, a, b), "two classes"),
        (lambda t, k, a, b: ((t[0], t[1][1:]), k, a, b), "the hypothesis of each pair"),
        (lambda t, k, a, b: (t, k, (a[0][:0], a[1][:0]), b[:0]), "0 test pairs"),
    ],
)
def test_bad_input(pairs, change, message):
    with pytest.raises(InputError, match=message):
        inference_accuracy(*change(*split(pairs)))
