import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import silhouette_samples

from embedtopics.evaluation import _labels as module
from embedtopics.evaluation._labels import (
    neighbor_votes,
    probe_classes,
    silhouettes,
    stratified_folds,
)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 4, 240)
    vectors = rng.normal(size=(4, 10))[classes] + 0.8 * rng.normal(size=(240, 10))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32), classes


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_votes_are_those_of_a_slow_count(seed):
    rng = np.random.default_rng(seed)
    indices = np.array([rng.permutation(np.delete(np.arange(9), i))[:5] for i in range(9)])
    similarities = np.sort(rng.integers(-1, 4, (9, 5)) / 4, axis=1)[:, ::-1]
    classes = rng.integers(-1, 3, 9)
    expected = []
    for near, weights in zip(indices, similarities, strict=True):
        votes = dict.fromkeys(range(3), 0.0)
        for j, weight in zip(near, weights, strict=True):
            if classes[j] >= 0 and weight > 0:
                votes[int(classes[j])] += weight
        best = max(votes, key=lambda c: (votes[c], -c))
        expected.append(best if votes[best] > 0 else -1)
    assert neighbor_votes(indices, similarities, classes).tolist() == expected


def test_votes_do_not_depend_on_blocks():
    rng = np.random.default_rng(0)
    nearest, classes = rng.integers(0, 5000, (5000, 1)), rng.integers(0, 5, 5000)
    found = neighbor_votes(nearest, np.ones((5000, 1)), classes)  # more than one block
    np.testing.assert_array_equal(found, classes[nearest[:, 0]])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=2, max_size=60), st.integers(2, 6), st.integers(0, 99))
def test_folds_share_classes_evenly(classes, n_folds, seed):
    folds = stratified_folds(classes, n_folds, seed)
    assert set(folds) <= set(range(n_folds))
    sizes = np.bincount(folds, minlength=n_folds)
    assert sizes.max() - sizes.min() <= 1
    for name in set(classes):
        members = np.bincount(folds[np.array(classes) == name], minlength=n_folds)
        assert members.max() - members.min() <= 1


@pytest.mark.parametrize("make", [np.asarray, csr_matrix])
def test_a_probe_never_sees_what_it_predicts(data, make):
    vectors, classes = data
    classes = np.where(np.arange(240) % 9 == 0, -1, classes)
    predicted, converged = probe_classes(make(vectors), classes, seed=3)
    rows = np.flatnonzero(classes >= 0)
    folds = stratified_folds(classes[rows], 5, 3)
    for fold in range(5):
        learnt, asked = rows[folds != fold], rows[folds == fold]
        scale = np.sqrt(vectors[learnt].astype(float).var(axis=0).sum())
        model = LogisticRegression(C=module.INVERSE_PENALTY, max_iter=1000, tol=1e-6)
        model.fit(vectors[learnt] / scale, classes[learnt])
        expected = model.predict(vectors[asked] / scale)
        assert (predicted[asked] == expected).all()
    assert (predicted[classes < 0] == -1).all() and converged


def test_a_probe_does_not_depend_on_scale_turn_or_origin(data, monkeypatch):
    vectors, classes = data
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(10, 10)))[0]
    moved = (5 * vectors @ turn + 3).astype(np.float32)
    found = probe_classes(vectors, classes)[0]
    assert (found == probe_classes(moved, classes)[0]).mean() > 0.99
    assert (found == classes).mean() > 0.7
    shuffled = np.random.default_rng(5).permutation(classes)  # no better than chance
    assert (probe_classes(vectors, shuffled)[0] == shuffled).mean() < 0.4
    monkeypatch.setattr(module, "MOST_STEPS", 2)
    assert probe_classes(*data)[1] is False


@pytest.mark.parametrize("make", [np.asarray, csr_matrix])
def test_silhouettes_are_those_of_scikit_learn(data, make):
    vectors, classes = data[0].copy(), data[1].copy()
    vectors[[4, 77]] = 0
    classes[classes == 3] = 7  # a number that no document has may lie between
    classes[9] = 5  # alone
    expected = silhouette_samples(vectors.astype(float), classes, metric="cosine")
    np.testing.assert_allclose(silhouettes(make(vectors), classes), expected, atol=1e-6)


def test_silhouettes_leave_documents_without_class_out_and_hide_blocks(data, monkeypatch):
    vectors, classes = data
    kept = np.arange(240) % 3 > 0
    found = silhouettes(vectors, np.where(kept, classes, -1))
    assert np.isnan(found[~kept]).all()
    np.testing.assert_allclose(found[kept], silhouettes(vectors[kept], classes[kept]), atol=1e-12)
    whole = silhouettes(*data)
    monkeypatch.setattr(module, "ENTRIES_AT_ONCE", 10)
    np.testing.assert_allclose(silhouettes(*data), whole, atol=1e-12)


@pytest.mark.parametrize("make", [np.asarray, csr_matrix])
def test_a_probe_of_fewer_documents_than_folds_asks_each_of_them(make):
    vectors = np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1], [1, 1]], dtype=np.float32)
    predicted, converged = probe_classes(make(vectors), [0, 0, 1, 1, -1])
    assert predicted.tolist() == [0, 0, 1, 1, -1] and converged
