"""What is trained is held against scikit-learn's optimum."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from embedtopics.probing.probes._fit import (
    Features,
    TrainingPlan,
    fit,
    log_probabilities,
    run_side_by_side,
)
from tests.factories import refuses


def problem(n=900, width=12, n_classes=4, seed=0, signal=0.7):
    rng = np.random.default_rng(seed)
    target = rng.integers(0, n_classes, n)
    vectors = rng.normal(size=(n_classes, width))[target] * signal + rng.normal(size=(n, width))
    vectors = (vectors * rng.uniform(0.1, 30, width) + rng.normal(size=width) * 20).astype("f2")
    return Features(vectors, np.arange(n)), target


def trained(features, target, penalties, plan=None, n_tasks=1):
    n = len(target)
    train, dev = np.arange(n * 2 // 3), np.arange(n * 2 // 3, n)
    targets = np.repeat(target[:, None], n_tasks, axis=1)
    inputs = features.standardised(train)
    # Of the summed loss, where these are of the mean loss.
    plan = replace(plan or TrainingPlan(), penalties=tuple(one * len(train) for one in penalties))
    found = fit(inputs, targets, target.max() + 1, train, dev, plan)
    return inputs, train, dev, found


def test_features_are_standardised_by_what_is_learnt_from():
    features, _ = problem()
    train = np.arange(500)
    found = features.standardised(train).take(np.arange(900)).numpy()
    raw = np.asarray(features.vectors, dtype=np.float64)
    expected = (raw - raw[:500].mean(axis=0)) / raw[:500].std(axis=0)
    np.testing.assert_allclose(found, expected, atol=2e-4)


def test_a_feature_that_does_not_vary_is_nothing_and_one_that_is_not_finite_is_refused():
    vectors = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float16)
    vectors[:, 1] = 7
    features = Features(vectors, np.arange(50))
    assert (features.standardised(np.arange(50)).take(np.arange(50))[:, 1] == 0).all()
    vectors[31, 2] = np.inf
    for units in (np.arange(50), np.arange(20)):  # units to predict must be finite too
        with refuses("states", row=31):
            features.standardised(units)


@pytest.mark.parametrize("penalty", [0.1, 0.003])
def test_trained_long_it_ends_at_the_convex_optimum(penalty):
    features, target = problem()
    plan = TrainingPlan(n_epochs=150)
    inputs, train, dev, found = trained(features, target, [penalty], plan)
    x = inputs.take(np.arange(len(target))).numpy().astype(np.float64)
    oracle = LogisticRegression(C=1 / (penalty * len(train)), tol=1e-8, max_iter=1000)
    oracle.fit(x[train], target[train])

    def objective(weights, offset):
        logits = x[train] @ weights + offset
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        right = logits[np.arange(len(train)), target[train]]
        return -right.mean() + penalty / 2 * np.sum(np.square(weights))

    weights, offset = (one.numpy() for one in found.parameters[0])
    least = objective(oracle.coef_.T, oracle.intercept_)
    assert least <= objective(weights, offset) <= least + 1e-5
    np.testing.assert_allclose(weights, oracle.coef_.T, atol=0.01)
    said = log_probabilities(inputs, dev, found.parameters[0])
    np.testing.assert_allclose(np.exp(said), oracle.predict_proba(x[dev]), atol=5e-3)
    losses = -said[np.arange(len(dev)), target[dev]].mean()
    np.testing.assert_allclose(found.losses, [[losses]], rtol=1e-5)


def test_the_penalty_of_each_task_is_that_of_the_least_loss_on_dev():
    features, target = problem(n=240, width=40, signal=0.2)
    penalties = [0.003, 0.1, 3.0]
    inputs, train, dev, found = trained(features, target, penalties, n_tasks=2)
    x = inputs.take(np.arange(len(target))).numpy()
    losses = []
    for penalty in penalties:
        oracle = LogisticRegression(C=1 / (penalty * len(train)), max_iter=5000)
        said = np.log(oracle.fit(x[train], target[train]).predict_proba(x[dev]))
        losses.append(-said[np.arange(len(dev)), target[dev]].mean())
    assert int(np.argmin(losses)) == 1 and found.penalties == pytest.approx((0.1, 0.1))
    np.testing.assert_allclose(found.losses[0, 1:], losses[1:], rtol=5e-3)
    alone = trained(features, target, [0.1])[3]
    for one, other in zip(found.parameters[1], alone.parameters[0], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_fit_depends_on_the_seed_alone_and_leaves_torch_as_it_was():
    features, target = problem(n=300)
    before = torch.get_rng_state(), torch.get_num_threads()

    def weights(seed):
        train, dev = np.arange(200), np.arange(200, 300)
        found = fit(
            features.standardised(train), target[:, None], 4, train, dev,
            TrainingPlan(least_steps=20), seed=seed,
        )  # fmt: skip
        return found.parameters[0][0].numpy()

    results = []
    for n_threads in (1, 2):
        torch.set_num_threads(n_threads)
        try:
            results.append(run_side_by_side(weights, [0, 1, 0], "fits", False))
        finally:
            torch.set_num_threads(before[1])
    for first, second in zip(*results, strict=True):
        np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(results[0][0], results[0][2])
    assert not np.array_equal(results[0][0], results[0][1])
    assert torch.equal(torch.get_rng_state(), before[0]) and torch.get_num_threads() == before[1]
