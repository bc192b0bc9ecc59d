"""Whole runs of a tiny encoder: against a plain loop, interrupted, and gone wrong."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from embedtopics.errors import InputError
from embedtopics.training.engine import running
from embedtopics.training.engine.batching import BatchPlan
from embedtopics.training.engine.checkpoints import latest_checkpoint
from embedtopics.training.engine.running import train
from embedtopics.training.settings import TrainingSettings

ABOUT = {"examples": "these"}


def settings(**changes):
    base = {"epochs": 2, "batch_size": 8, "learning_rate": 1e-3, "validations_per_epoch": 2,
            "seed": 1, "device": "cpu", "show_progress": False, "patience": None}  # fmt: skip
    return TrainingSettings(**base | changes)


def weights_of(lesson):
    return {name: tensor.clone() for name, tensor in lesson.weights().items()}


def same(first, second):
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )


def by_a_plain_loop(lesson, options):
    """Learn as the textbook says: pad each column, AdamW, a triangle of learning rates."""
    model = lesson.model.train()
    decayed = [p for n, p in model.named_parameters() if "LayerNorm" not in n and "bias" not in n]
    others = [p for n, p in model.named_parameters() if "LayerNorm" in n or "bias" in n]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": options.weight_decay},
         {"params": others, "weight_decay": 0.0}], lr=options.learning_rate,
    )  # fmt: skip
    plan = BatchPlan(lesson.examples.lengths, options.batch_size, options.seed)
    n_steps = options.epochs * len(plan) // options.accumulation
    n_warm = -(-options.warmup * n_steps // 1)
    batches = [batch for epoch in range(options.epochs) for batch in plan.of_epoch(epoch)]
    losses = []
    for step in range(int(n_steps)):
        share = step / n_warm if step < n_warm else (n_steps - step) / (n_steps - n_warm)
        for group in optimizer.param_groups:
            group["lr"] = options.learning_rate * share
        optimizer.zero_grad()
        total = 0.0
        for places in batches[step * options.accumulation : (step + 1) * options.accumulation]:
            batch = lesson.batch(places, np.random.default_rng(0))
            u, v = (model(lesson.trainee.features(c))["sentence_embedding"] for c in batch.encoded)
            loss = ((torch.cosine_similarity(u, v) - batch.labels) ** 2).mean()
            (loss / options.accumulation).backward()
            total += float(loss.detach()) / options.accumulation
        torch.nn.utils.clip_grad_norm_(model.parameters(), options.max_gradient)
        optimizer.step()
        losses.append(total)
    return losses


@pytest.mark.parametrize("accumulation", [1, 2])
def test_a_run_is_the_plain_loop(lesson_of, tmp_path, accumulation):
    options = settings(accumulation=accumulation)
    lesson, validation = lesson_of(options, dropout=0.0)
    oracle, _ = lesson_of(options, dropout=0.0)
    losses = by_a_plain_loop(oracle, options)
    ends = []
    original = running._Trained.validate

    def noting(self, step):
        original(self, step)
        ends.append(weights_of(self.lesson))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running._Trained, "validate", noting)
        run = train(lesson, validation, options, tmp_path / "run", ABOUT)
    np.testing.assert_allclose(run.curves.training_loss, losses, rtol=2e-4)
    for name, expected in oracle.weights().items():
        # The gradient of a key's bias is zero but for rounding, which Adam divides by itself.
        if not name.endswith("key.bias"):
            torch.testing.assert_close(ends[-1][name], expected, rtol=1e-3, atol=1e-4)


def test_training_learns_and_keeps_the_best(lesson_of, tmp_path):
    options = settings(epochs=6)
    lesson, validation = lesson_of(options)
    before = weights_of(lesson)
    run = train(lesson, validation, options, tmp_path / "run", ABOUT)
    curves = run.curves
    best = int(np.argmin(curves.validation_loss))
    assert curves.validation_steps[0] == 0 and curves.validation_steps[-1] == run.n_steps == 36
    assert run.best_step == curves.validation_steps[best]
    assert curves.sample_loss[-1] < 0.7 * curves.sample_loss[0]
    assert run.stopped == "finished" and run.examples_per_second > 0
    assert run.best_step > 0 and not same(before, weights_of(lesson))


def test_a_seed_gives_the_same_weights_and_leaves_random_states_alone(lesson_of, tmp_path):
    found = []
    for place in ("one", "two"):
        torch.manual_seed(len(place))
        lesson, validation = lesson_of(settings())
        states = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
        train(lesson, validation, settings(), tmp_path / place, ABOUT)
        assert random.getstate() == states[0]
        np.testing.assert_array_equal(np.random.get_state()[1], states[1])  # noqa: NPY002
        assert torch.equal(torch.get_rng_state(), states[2])
        found.append(weights_of(lesson))
    assert same(*found)
    lesson, validation = lesson_of(settings(seed=2))
    train(lesson, validation, settings(seed=2), tmp_path / "three", ABOUT)
    assert not same(found[0], weights_of(lesson))


RUN_AND_DIE = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {root!r})
import tests.training.engine.test_running as here
from embedtopics.training.engine import running
from tests.training.engine.conftest import *
original = running._Trained.after_step
def after_step(self, teacher, loss):
    on = original(self, teacher, loss)
    if teacher.state.global_step == {step}:
        os.kill(os.getpid(), {signal})
    return on
running._Trained.after_step = after_step
running.LEAST_VALIDATIONS = 1
make = lesson_of.__wrapped__(Path({tiny!r}))
lesson, validation = make(here.settings(), kind={kind!r})
here.train(lesson, validation, here.settings(), Path({folder!r}), here.ABOUT)
print("finished")
"""


def die(tiny, folder, step, number, kind="graded"):
    code = RUN_AND_DIE.format(
        root=str(Path(__file__).parents[3]), tiny=str(tiny), folder=str(folder), step=step,
        signal=int(number), kind=kind,
    )  # fmt: skip
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.parametrize("kind", ["graded", "pairs"])
def test_a_killed_run_ends_with_the_weights_of_one_that_was_not(
    lesson_of, tiny_bert, tmp_path, kind
):
    lesson, validation = lesson_of(settings(), kind=kind)
    whole = train(lesson, validation, settings(), tmp_path / "whole", ABOUT)
    killed = die(tiny_bert, tmp_path / "killed", 8, signal.SIGKILL, kind)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again, validation = lesson_of(settings(), kind=kind)
    run = train(again, validation, settings(), tmp_path / "killed", ABOUT)
    assert run.decisions[0].name == "resumed"
    assert same(weights_of(lesson), weights_of(again))
    np.testing.assert_array_equal(run.curves.training_loss, whole.curves.training_loss)
    np.testing.assert_array_equal(run.curves.metric, whole.curves.metric)
    assert run.best_step == whole.best_step and run.n_steps == whole.n_steps


@pytest.mark.slow
def test_a_run_that_is_asked_to_end_writes_a_checkpoint_and_exits_143(
    lesson_of, tiny_bert, tmp_path
):
    lesson, validation = lesson_of(settings())
    train(lesson, validation, settings(), tmp_path / "whole", ABOUT)
    ended = die(tiny_bert, tmp_path / "ended", 4, signal.SIGTERM)
    assert ended.returncode == 143 and "finished" not in ended.stdout
    # Asked during step 4, which is none of validation: the step after it writes the checkpoint.
    assert latest_checkpoint(tmp_path / "ended").name == "step-00000005"
    again, validation = lesson_of(settings())
    train(again, validation, settings(), tmp_path / "ended", ABOUT)
    assert same(weights_of(lesson), weights_of(again))


def test_a_damaged_checkpoint_is_passed_over(lesson_of, tmp_path):
    lesson, validation = lesson_of(settings())
    train(lesson, validation, settings(), tmp_path / "run", ABOUT)
    newest = latest_checkpoint(tmp_path / "run")
    (newest / "weights.safetensors").write_bytes(b"half of it")
    older = latest_checkpoint(tmp_path / "run")
    assert older is not None and older.name < newest.name
    again, validation = lesson_of(settings())
    train(again, validation, settings(), tmp_path / "run", ABOUT)
    assert same(weights_of(lesson), weights_of(again))


def test_checkpoints_of_another_run_are_not_gone_on_from(lesson_of, tmp_path):
    lesson, validation = lesson_of(settings())
    train(lesson, validation, settings(), tmp_path / "run", ABOUT)
    with pytest.raises(InputError, match=r"another examples.*resume=False"):
        train(lesson, validation, settings(), tmp_path / "run", {"examples": "others"})
    fresh, validation = lesson_of(settings())
    train(fresh, validation, settings(), tmp_path / "run", {"examples": "others"}, resume=False)
    assert same(weights_of(lesson), weights_of(fresh))


def test_no_pickle_is_written(lesson_of, tmp_path):
    lesson, validation = lesson_of(settings())
    train(lesson, validation, settings(), tmp_path / "run", ABOUT)
    suffixes = {path.suffix for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert suffixes == {".safetensors", ".json"}


def test_early_stopping_counts_validations_without_a_gain(lesson_of, tmp_path):
    # A step so small that nothing changes: no validation is better than that before training.
    options = settings(learning_rate=1e-12, patience=3, epochs=4)
    lesson, validation = lesson_of(options)
    before = weights_of(lesson)
    run = train(lesson, validation, options, tmp_path / "run", ABOUT)
    assert run.stopped == "no improvement"
    assert len(run.curves.validation_steps) == 4 and run.n_steps == 9 and run.best_step == 0
    assert same(before, weights_of(lesson))


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_best(lesson_of, tmp_path):
    lesson, validation = lesson_of(settings())
    original = type(lesson).loss_of
    calls = []

    def breaking(self, batch, vectors):
        loss = original(self, batch, vectors)
        if torch.is_grad_enabled():
            calls.append(batch)
            if len(calls) == 8:
                return loss * float("nan")
        return loss

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(lesson), "loss_of", breaking)
        run = train(lesson, validation, settings(), tmp_path / "run", ABOUT)
    assert run.stopped == "loss not finite" and run.n_steps == 7
    (decision,) = run.decisions
    assert decision.value == 8 and "step 8" in decision.message and "rows" in decision.message
    batch = BatchPlan(lesson.examples.lengths, 8, 1).of_epoch(1)[1]
    assert f"rows {', '.join(map(str, batch))}." in decision.message
    assert run.best_step in (0, 3, 6)
    assert all(torch.isfinite(tensor).all() for tensor in weights_of(lesson).values())


@pytest.mark.parametrize("accumulation", [1, 3])
def test_less_is_encoded_at_once_where_memory_runs_out(lesson_of, tmp_path, accumulation):
    options = settings(accumulation=accumulation, tokens_at_once=4096)
    lesson, validation = lesson_of(options, dropout=0.0)
    whole = train(lesson, validation, options, tmp_path / "whole", ABOUT)
    short, validation = lesson_of(options, dropout=0.0)
    original = running.BatchEncoder._seeded
    calls = []

    def failing(self, texts, seed, group):
        calls.append(len(texts))
        if self.tokens_at_once > 1024 and len(calls) > 6:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return original(self, texts, seed, group)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running.BatchEncoder, "_seeded", failing)
        run = train(short, validation, options, tmp_path / "short", ABOUT)
    assert [d.value for d in run.decisions if d.name == "out_of_memory"] == [2048, 1024]
    np.testing.assert_allclose(run.curves.training_loss, whole.curves.training_loss, rtol=1e-4)
    for name, expected in lesson.weights().items():
        if not name.endswith("key.bias"):
            torch.testing.assert_close(short.weights()[name], expected, rtol=1e-3, atol=1e-4)


def test_other_errors_are_not_taken_for_a_lack_of_memory(lesson_of, tmp_path):
    lesson, validation = lesson_of(settings())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            running.BatchEncoder, "learn", lambda *_: (_ for _ in ()).throw(RuntimeError("shapes"))
        )
        with pytest.raises(RuntimeError, match="shapes"):
            train(lesson, validation, settings(), tmp_path / "run", ABOUT)


def test_a_full_disk_costs_the_checkpoint_and_not_the_run(lesson_of, tmp_path):
    lesson, validation = lesson_of(settings())
    train(lesson, validation, settings(), tmp_path / "whole", ABOUT)
    again, validation = lesson_of(settings())
    with pytest.MonkeyPatch.context() as patch:

        def full(*_args, **_named):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patch.setattr("safetensors.torch.save_file", full)
        run = train(again, validation, settings(), tmp_path / "run", ABOUT)
    assert {d.name for d in run.decisions} == {"checkpoint"} and len(run.decisions) == 4
    assert "No space left" in run.decisions[0].message
    assert latest_checkpoint(tmp_path / "run") is None
    assert same(weights_of(lesson), weights_of(again))


def test_a_run_is_validated_often_enough_to_be_read(lesson_of, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "LEAST_VALIDATIONS", 8)
    lesson, validation = lesson_of(settings())
    run = train(lesson, validation, settings(), tmp_path / "run", ABOUT)
    assert run.curves.validation_steps.tolist() == [0, 2, 3, 4, 6, 8, 9, 10, 12]
    short, validation = lesson_of(settings(epochs=0.5))
    run = train(short, validation, settings(epochs=0.5), tmp_path / "short", ABOUT)
    assert run.curves.validation_steps.tolist() == [0, 1, 2, 3]


def test_without_a_sample_its_loss_is_not_known(lesson_of, tmp_path):
    lesson, validation = lesson_of(settings())
    options = settings(sample_size=0)
    run = train(lesson, validation, options, tmp_path / "run", ABOUT)
    assert np.isnan(run.curves.sample_loss).all() and run.curves.n_sample == 0
    assert np.isfinite(run.curves.validation_loss).all()


def test_an_unwritable_folder_is_refused_before_training(lesson_of, tmp_path):
    lesson, validation = lesson_of(settings())
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="choose another folder"):
        train(lesson, validation, settings(), tmp_path / "file" / "run", ABOUT)
