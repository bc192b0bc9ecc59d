"""Runs that go wrong: no number, no memory, no disk; what was learned until then is kept."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from embedtopics.errors import name_rows
from embedtopics.training.objectives._losses import graded_cosine, pairs_ranking, selecting_by
from embedtopics.training.trainer._batching import BatchEncoder, StepPlan, TrainingData
from embedtopics.training.trainer._running import train
from embedtopics.training.trainer._trainer import EncoderTrainer
from tests.factories import refuses
from tests.training.trainer.conftest import graded_pairs, partner_pairs
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


@pytest.mark.parametrize(
    ("options", "metric", "loss", "best"),
    [
        # A metric at its top says nothing, whatever noise it has later.
        ({}, [1, 1, 1, 1, 1], [0.9, 0.7, 0.5, 0.6, 0.8], 2),
        ({}, [1, 0.99, 1, 0.99, 1], [0.9, 0.7, 0.5, 0.4, 0.8], 3),
        ({}, [0.5] * 5, [0.9, 0.7, 0.5, 0.6, 0.5], 2),
        ({}, [0.5, 0.7, 0.6, 0.7, 0.7], [0.9, 0.7, 0.1, 0.6, 0.8], 3),
        ({}, [0.7, 0.6, 0.5, 0.6, 0.6], [0.9, 0.7, 0.5, 0.6, 0.8], 0),
        ({}, [1] * 5, [0.5, 0.5, 0.5, 0.6, 0.8], 0),
        ({"metric": "loss"}, [0.5, 0.6, 0.7, 0.8, 0.9], [0.9, 0.4, 0.5, 0.6, 0.8], 1),
        ({"keep": "last", "patience": 1}, [0.7, 0.6, 0.5, 0.4, 0.3], [0.1, 0.2, 0.3, 0.4, 0.5], 4),
        ({"keep": "last"}, [0.7] * 5, [0.1, 0.2, 0.3, 0.4, float("nan")], 3),
    ],
)
def test_the_metric_chooses_then_the_loss(
    data_of, tmp_path, monkeypatch, options, metric, loss, best
):
    options = settings(sample_size=0, **options)
    data, validation = data_of(options)
    objective = replace(data.objective, metric=lambda *_: 0.0, metric_name="by hand")
    data = replace(data, objective=selecting_by(objective, options.metric))
    curve = iter(zip(loss, metric, strict=True))
    monkeypatch.setattr(TrainingData, "measure", lambda *_, **__: next(curve))
    run = train(data, validation, options, tmp_path / "run", ABOUT)
    assert run.best_step == run.curves.validation_steps[best]
    said = [each.name for each in run.decisions]
    assert ("unchanged" in said) == (best == 0)


def test_only_metrics_of_the_objective_select():
    graded, pairs = graded_cosine(graded_pairs()), pairs_ranking(partner_pairs())
    assert selecting_by(graded, "Spearman") is graded and selecting_by(pairs, "MRR@10") is pairs
    assert selecting_by(graded, "loss").keeps_lowest_loss
    with refuses("metric"):
        selecting_by(graded, "MRR@10")


def test_weights_without_a_metric_are_never_better_than_those_with_one(data_of, tmp_path):
    data, validation = data_of(settings())
    # The loss falls all along; the metric is below zero and then none at all.
    figures = iter([-0.9, float("nan"), -0.8, float("nan"), float("nan")])
    objective = replace(data.objective, metric=lambda *_: next(figures), metric_name="made up")
    data = replace(data, objective=objective)
    run = train(data, validation, settings(), tmp_path / "run", ABOUT)
    assert run.curves.validation_loss[-1] < run.curves.validation_loss[2] < 0.8
    assert run.best_step == run.curves.validation_steps[2]
