"""Heads, against scikit-learn, a likelihood that is maximized by brute force, and by hand."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from embedtopics.classification._heads import (
    LinearHead,
    cross_fit,
    fit_head,
    log_loss,
    probabilities,
)
from embedtopics.evaluation._labels import stratified_folds


@pytest.fixture(scope="module")
def drawn():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 4)) * 2 + 1
    latent = X @ [1.0, -0.5, 0.3, 0.0] + rng.logistic(size=300)
    return X.astype(np.float32), np.digitize(latent, [-1.0, 0.5, 2.0])


@pytest.mark.parametrize("n_classes", [2, 4])
def test_softmax_is_that_of_scikit_learn(drawn, n_classes):
    X, codes = drawn
    codes = np.minimum(codes, n_classes - 1)
    X64 = X.astype(np.float64)
    scaled = (X64 - X64.mean(0)) / np.sqrt(X64.var(0).sum())
    model = LogisticRegression(C=2.0, max_iter=1000, tol=1e-8).fit(scaled, codes)
    found = probabilities("softmax", fit_head("softmax", X, codes, 2.0).scores(X))
    assert np.allclose(found, model.predict_proba(scaled), atol=2e-3)


def test_cumulative_logits_maximize_the_penalized_likelihood(drawn):
    X, codes = drawn
    X64 = X.astype(np.float64)
    scaled = (X64 - X64.mean(0)) / np.sqrt(X64.var(0).sum())
    weights = np.linspace(0.5, 2.0, len(X))

    def loss(parameters):
        ends = np.concatenate([[-1e9], np.sort(parameters[4:]), [1e9]])
        z = scaled @ parameters[:4]
        chance = expit(ends[codes + 1] - z) - expit(ends[codes] - z)
        return -weights @ np.log(chance + 1e-300) + parameters[:4] @ parameters[:4] / 6.0

    best = minimize(loss, [0, 0, 0, 0, -1, 0, 1], method="BFGS").x
    head = fit_head("ordinal", X, codes, 3.0, weights)
    z = scaled @ best[:4]
    wanted = z[:, None] - np.sort(best[4:])
    assert np.allclose(head.scores(X), wanted, atol=1e-2)
    found = probabilities("ordinal", head.scores(X))
    assert np.allclose(found.sum(axis=1), 1) and (found >= 0).all() and found.shape == (300, 4)


@pytest.mark.filterwarnings("ignore")
def test_cumulative_logits_are_those_of_statsmodels(drawn):
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    X, codes = drawn
    scaled = (X - X.mean(0)).astype(np.float64) / np.sqrt(X.var(0, dtype=np.float64).sum())
    scores = fit_head("ordinal", X, codes, 1e6).scores(X)
    fitted = OrderedModel(codes, scaled, distr="logit").fit(method="bfgs", disp=False, gtol=1e-8)
    thresholds = fitted.model.transform_threshold_params(fitted.params)[1:-1]
    wanted = (scaled @ fitted.params[:4])[:, None] - thresholds
    assert np.allclose(scores, wanted, atol=1e-2)


def test_several_labels_are_logistic_regressions_of_their_own(drawn):
    X, codes = drawn
    both = np.stack([codes > 1, codes % 2], axis=1).astype(np.int64)
    found = probabilities("multilabel", fit_head("multilabel", X, both, 1.0).scores(X))
    for column, labels in zip(found.T, both.T, strict=True):
        alone = probabilities("softmax", fit_head("softmax", X, labels, 1.0).scores(X))
        assert np.allclose(column, alone[:, 1])


def test_log_loss_by_hand():
    head = LinearHead("softmax", np.eye(2), np.zeros(2))
    scores = head.scores(np.array([[0.0, np.log(3.0)], [np.log(4.0), 0.0]]))
    wanted = -(np.log(0.75) + 3 * np.log(0.2)) / 4
    assert np.isclose(log_loss("softmax", scores, np.array([1, 1]), np.array([1.0, 3.0])), wanted)
    ordinal = log_loss("ordinal", np.array([[2.0, -1.0]]), np.array([1]))
    assert np.isclose(ordinal, -np.log(expit(2.0) - expit(-1.0)))


@pytest.mark.parametrize("kind", ["softmax", "ordinal"])
def test_scores_of_left_out_texts_come_from_the_other_folds(drawn, kind):
    X, codes = drawn
    folds = stratified_folds(codes, 3)
    strength, scores = cross_fit(kind, X, codes, folds, strengths=(1.0,))
    assert strength == 1.0
    for fold in range(3):
        head = fit_head(kind, X[folds != fold], codes[folds != fold], 1.0)
        assert np.allclose(scores[folds == fold], head.scores(X[folds == fold]), atol=2e-2)
