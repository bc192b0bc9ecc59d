"""Mixes of layers, against what was put into the layers, and equations by hand."""

import dataclasses

import numpy as np
import pytest
import torch

from embedtopics import probing
from embedtopics.probing.probes import _scores
from embedtopics.probing.probes._fit import Features, MixModel, TrainingPlan, fit_mix
from tests.probing.made import rows_of
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


def test_a_mix_is_a_gain_times_the_weighted_mean_of_its_layers():
    generator = torch.Generator().manual_seed(0)
    x, shares, matrix, offset = (
        torch.randn(shape, generator=generator) for shape in ((3, 5, 4), (3,), (4, 2), (2,))
    )
    model = MixModel(shares, torch.tensor(1.5), matrix, offset)
    raw = np.exp(shares.numpy())
    mixed = np.tensordot(raw / raw.sum(), x.numpy(), 1) * 1.5
    expected = mixed @ matrix.numpy() + offset.numpy()
    np.testing.assert_allclose(model.logits(x).numpy(), expected, atol=1e-5)


def test_a_mix_of_a_layer_and_itself_is_the_probe_of_it():
    states, tags = tagged_states(n_texts=150, signals=(0.8, 0.8))
    once = dataclasses.replace(states, vectors=(states.vectors[0],) * 2)
    scores = probing.probe(once, tags, mix=True)
    [mixed] = rows_of(scores, what="scalar mix", metric="accuracy")
    assert mixed.value == pytest.approx(rows_of(scores, what="probe")[0].value, abs=0.01)


def test_a_mix_is_trained_to_where_its_slopes_end():
    rng = np.random.default_rng(0)
    target = rng.integers(0, 3, 200)
    vectors = rng.normal(size=(2, 200, 5)).astype(np.float32)
    vectors += rng.normal(size=(2, 3, 5))[:, target].astype(np.float32)
    rows, units = np.arange(200), np.arange(200)
    features = [Features(one, rows).standardised(units) for one in vectors]
    model = fit_mix(features, target, 3, units, 0.05, 0, TrainingPlan(least_steps=2500))
    logits = model.logits(torch.stack([one.take(units) for one in features]))
    loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(target))
    loss = loss + 0.025 * (model.gain * model.matrix).square().sum()
    for slope in torch.autograd.grad(loss, [model.shares, model.gain, model.matrix]):
        assert slope.abs().max() < 2e-3
