"""What is trained is held against scikit-learn's optimum."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from embedtopics.probing.probes._fit import (
    Features,
    Linear,
    Perceptron,
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


def trained(features, target, penalties, plan=None, architecture=None, n_tasks=1):
    n = len(target)
    train, dev = np.arange(n * 2 // 3), np.arange(n * 2 // 3, n)
    targets = np.repeat(target[:, None], n_tasks, axis=1)
    inputs = features.standardised(train)
    # Of the summed loss, where these are of the mean loss.
    plan = replace(plan or TrainingPlan(), penalties=tuple(one * len(train) for one in penalties))
    found = fit(inputs, targets, target.max() + 1, train, dev, architecture or Linear(), plan)
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
    with refuses("states", row=31):
        features.standardised(np.arange(50))


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
    said = log_probabilities(inputs, dev, Linear(), found.parameters[0])
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


def test_one_of_many_probes_says_what_it_said_beside_the_others():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(20, 7, generator=generator)
    for architecture in (Linear(), Perceptron(5)):
        weights = [
            torch.randn(one.shape, generator=generator)
            for one in architecture.start(7, 3, 4, generator)
        ]
        together = architecture.forward(weights, x, 3)
        for probe in range(3):
            alone = architecture.forward(architecture.only(weights, probe, 3), x, 1)
            np.testing.assert_allclose(alone[:, 0], together[:, probe], atol=1e-5)
        best = [torch.zeros_like(one) for one in weights]
        architecture.keep(best, weights, torch.tensor([False, True, False]))
        kept = architecture.forward(best, x, 3)
        np.testing.assert_allclose(kept[:, 1], together[:, 1], atol=1e-5)
        assert (kept[:, [0, 2]] == 0).all()


def test_a_hidden_layer_learns_what_a_linear_probe_cannot():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(1000, 4)).astype(np.float16)
    target = (vectors[:, 0] * vectors[:, 1] > 0).astype(np.int64)
    features = Features(vectors, np.arange(1000))
    right = []
    for architecture in (Linear(), Perceptron()):
        inputs, _, dev, found = trained(
            features, target, [1e-3], TrainingPlan(n_evaluations=4), architecture
        )
        said = log_probabilities(inputs, dev, architecture, found.parameters[0])
        right.append((said.argmax(axis=1) == target[dev]).mean())
    assert right[0] < 0.6 and right[1] > 0.85


def test_of_several_looks_the_best_is_kept():
    features, target = problem(n=90, width=40, signal=0.2)
    plan = TrainingPlan(n_epochs=50, n_evaluations=10)
    inputs, _, dev, found = trained(features, target, [0.0], plan, Perceptron(20))
    said = log_probabilities(inputs, dev, Perceptron(20), found.parameters[0])
    losses = -said[np.arange(len(dev)), target[dev]].mean()
    np.testing.assert_allclose(found.losses, [[losses]], rtol=1e-5)
    last = trained(features, target, [0.0], TrainingPlan(n_epochs=50), Perceptron(20))[3]
    assert found.losses[0, 0] < last.losses[0, 0]


def test_a_fit_depends_on_the_seed_alone_and_leaves_torch_as_it_was():
    features, target = problem(n=300)
    before = torch.get_rng_state(), torch.get_num_threads()

    def weights(seed):
        train, dev = np.arange(200), np.arange(200, 300)
        found = fit(
            features.standardised(train), target[:, None], 4, train, dev, Perceptron(8),
            TrainingPlan(least_steps=20), seed=seed,
        )  # fmt: skip
        return found.parameters[0][0].numpy()

    results = []
    for n_threads in (1, 2):
        torch.set_num_threads(n_threads)
        try:
            results.append(
                run_side_by_side(weights, [0, 1, 0], description="fits", show_progress=False)
            )
        finally:
            torch.set_num_threads(before[1])
    for first, second in zip(*results, strict=True):
        np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(results[0][0], results[0][2])
    assert not np.array_equal(results[0][0], results[0][1])
    assert torch.equal(torch.get_rng_state(), before[0]) and torch.get_num_threads() == before[1]
