"""Mixes of layers, against what was put into the layers, and equations by hand."""

import numpy as np
import pytest
import torch

from embedtopics import probing
from embedtopics.probing.probes import _scores
from embedtopics.probing.probes._fit import Features, MixModel, TrainingPlan, fit_mixes
from embedtopics.probing.probes._scores import expected_layer
from tests.probing.probes.problems import tagged_states

STATES, TAGGED = tagged_states(n_texts=150, signals=(0.0, 0.8, 0.8))


@pytest.fixture(scope="module")
def scores():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_scores, "N_SEEDS", 2)
        return probing.probe(STATES, TAGGED, mix=True)


def test_a_mix_leaves_out_the_layer_without_signal(scores):
    mix = scores.mix
    assert mix.layers == (0, 1, 2) and mix.weights.shape == (2, 3) and mix.gain.shape == (2,)
    np.testing.assert_allclose(mix.weights.sum(axis=1), 1, atol=1e-6)
    assert (mix.weights[:, 0] < 0.15).all() and (mix.weights[:, 1:] > 0.3).all()
    assert 0 < np.ptp(mix.weights, axis=0).max() < 0.2  # two seeds, one problem


def test_the_mix_of_the_first_layer_alone_is_the_probe_of_it(scores):
    first, *_, last = scores.of(what="cumulative mix", metric="accuracy")
    alone, *_ = scores.of(what="probe", metric="accuracy")
    assert first.value == pytest.approx(alone.value, abs=0.01)
    assert last.value == scores.of(what="scalar mix", metric="accuracy")[0].value


def test_equations_3_and_4_by_hand():
    scores = np.array([[0.5, 0.8, 0.7, 0.9], [0.6, 0.6, 0.6, 0.6], [0.6, 0.5, 0.5, 0.4]])
    expected = expected_layer((0, 1, 2, 5), scores)
    assert expected[0] == pytest.approx((0.3 * 1 - 0.1 * 2 + 0.2 * 5) / 0.4)
    assert np.isnan(expected[1:]).all()


def test_a_mix_is_a_gain_times_the_weighted_mean_of_its_layers():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, 5, 4, generator=generator)
    model = MixModel(
        torch.randn(3, 3, generator=generator), torch.tensor([[2.0], [0.5], [1.5]]),
        torch.randn(3, 4, 2, generator=generator), torch.randn(3, 1, 2, generator=generator),
    )  # fmt: skip
    found = model.logits(x).numpy()
    for mix in range(3):
        raw = np.exp(model.shares[mix, : mix + 1].numpy())
        mixed = np.tensordot(raw / raw.sum(), x[: mix + 1].numpy(), 1) * model.gain[mix].item()
        expected = mixed @ model.matrix[mix].numpy() + model.offset[mix].numpy()
        np.testing.assert_allclose(found[mix], expected, atol=1e-5)


def test_a_mix_is_trained_to_where_its_slopes_end():
    rng = np.random.default_rng(0)
    target = rng.integers(0, 3, 200)
    vectors = rng.normal(size=(2, 200, 5)).astype(np.float32)
    vectors += rng.normal(size=(2, 3, 5))[:, target].astype(np.float32)
    rows, units = np.arange(200), np.arange(200)
    features = [Features(one, rows).standardised(units) for one in vectors]
    model = fit_mixes(features, target, 3, units, [0.05, 0.05], 0, TrainingPlan(least_steps=2500))
    logits = model.logits(torch.stack([one.take(units) for one in features]))
    losses = [torch.nn.functional.cross_entropy(one, torch.from_numpy(target)) for one in logits]
    loss = sum(losses) + 0.025 * (model.gain[:, :, None] * model.matrix).square().sum()
    for slope in torch.autograd.grad(loss, [model.shares, model.gain, model.matrix]):
        assert slope.abs().max() < 2e-3


def test_where_no_layer_adds_anything_there_is_no_expected_layer(few_steps, monkeypatch):
    monkeypatch.setattr(_scores, "N_SEEDS", 1)
    states, tags = tagged_states(n_texts=40, signals=(4.0, 4.0))
    scores = probing.probe(states, tags, mix=True)
    assert scores.of(what="cumulative mix", metric="accuracy")[0].value == 1
    assert np.isnan(scores.expected_layer) and np.isnan(scores.expected_layer_interval).all()
    assert any(one.name == "no_expected_layer" for one in scores.decisions)
