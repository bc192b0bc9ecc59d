"""Runs that go wrong: no number, no memory, no disk; what was learned until then is kept."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from embedtopics.errors import name_rows
from embedtopics.training.trainer._batching import BatchEncoder, StepPlan
from embedtopics.training.trainer._running import train
from embedtopics.training.trainer._trainer import EncoderTrainer
from tests.factories import refuses
from tests.training.trainer.test_running import ABOUT, settings, trained, weights_of


def without_number(loss, _):
    return loss * float("nan")


def without_gradient(loss, vectors):
    """Return the loss as it was: what is added is zero, and its gradient zero times infinity."""
    return loss + torch.sqrt(vectors[0] * 0).sum()


@pytest.mark.parametrize(
    ("broken", "step", "said"),
    [
        (without_number, 8, "The loss of step 8"),
        (without_gradient, 4, "The gradient of step 4 was not"),
    ],
)
def test_what_is_no_number_stops_the_run_and_keeps_the_best(
    data_of, tmp_path, monkeypatch, broken, step, said
):
    data, validation = data_of(settings())
    original = type(data).loss_of
    calls = []

    def breaking(self, batch, vectors):
        loss = original(self, batch, vectors)
        if torch.is_grad_enabled():
            calls.append(batch)
            if len(calls) == step:
                return broken(loss, vectors)
        return loss

    monkeypatch.setattr(type(data), "loss_of", breaking)
    run = train(data, validation, settings(), tmp_path / "run", ABOUT)
    assert run.stopped == "loss not finite" and run.n_steps == step - 1
    (decision,) = run.decisions
    assert decision.value == step and said in decision.message
    if step == 8:
        batch = StepPlan(data.examples.lengths, 8, 1).of_epoch(1)[1]
        assert f"Its batch holds {name_rows(batch)}. " in decision.message
    assert run.best_step in (0, 3, 6) and np.isfinite(run.curves.validation_loss).all()
    assert all(torch.isfinite(tensor).all() for tensor in weights_of(data).values())


def memory_for_six_groups(patch):
    original, calls = BatchEncoder._seeded, []

    def failing(self, texts, seed, group):
        calls.append(len(texts))
        if self.tokens_at_once > 1024 and len(calls) > 6:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return original(self, texts, seed, group)

    patch.setattr(BatchEncoder, "_seeded", failing)


def memory_for_two_batches(patch):
    """The third batch does not fit, and then the first does not either."""
    original, halved = EncoderTrainer._learn, []

    def failing(self, part):
        if self._encoder.tokens_at_once > 1024 and (part == 2 or halved):
            halved.append(part)
            raise torch.OutOfMemoryError("CUDA out of memory")
        return original(self, part)

    patch.setattr(EncoderTrainer, "_learn", failing)


@pytest.mark.parametrize(
    ("memory", "accumulation"),
    [
        (memory_for_six_groups, 1),
        pytest.param(memory_for_six_groups, 3, marks=pytest.mark.slow),
        pytest.param(memory_for_two_batches, 3, marks=pytest.mark.slow),
    ],
)
def test_less_is_encoded_at_once_where_memory_runs_out(data_of, tmp_path, memory, accumulation):
    options = settings(accumulation=accumulation, tokens_at_once=4096)
    data, whole = trained(data_of, tmp_path / "whole", options, dropout=0.0)
    with pytest.MonkeyPatch.context() as patch:
        memory(patch)
        short, run = trained(data_of, tmp_path / "short", options, dropout=0.0)
    assert [d.value for d in run.decisions if d.name == "out_of_memory"] == [2048, 1024]
    np.testing.assert_allclose(run.curves.training_loss, whole.curves.training_loss, rtol=1e-4)
    for name, expected in data.weights().items():
        if not name.endswith("key.bias"):
            torch.testing.assert_close(short.weights()[name], expected, rtol=1e-3, atol=1e-4)


def test_an_unwritable_folder_is_refused_before_training(data_of, tmp_path):
    data, validation = data_of(settings())
    (tmp_path / "file").write_text("in the way")
    with refuses("out"):
        train(data, validation, settings(), tmp_path / "file" / "run", ABOUT)


def test_an_encoder_without_a_finite_loss_is_refused(data_of, tmp_path):
    data, validation = data_of(settings())
    with torch.no_grad():
        next(data.model.parameters()).fill_(float("nan"))
    with refuses("encoder"):
        train(data, validation, settings(), tmp_path / "run", ABOUT)


def test_weights_without_a_metric_are_never_better_than_those_with_one(data_of, tmp_path):
    data, validation = data_of(settings())
    # The loss falls all along; the metric is below zero and then none at all.
    figures = iter([-0.9, float("nan"), -0.8, float("nan"), float("nan")])
    objective = replace(data.objective, metric=lambda *_: next(figures), metric_name="made up")
    data = replace(data, objective=objective)
    run = train(data, validation, settings(), tmp_path / "run", ABOUT)
    assert run.curves.validation_loss[-1] < run.curves.validation_loss[2] < 0.8
    assert run.best_step == run.curves.validation_steps[2]
