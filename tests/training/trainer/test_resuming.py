"""Runs that were interrupted anywhere, and what lies on the disk: the end is the same."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from embedtopics.training.trainer import _running as running
from embedtopics.training.trainer._batching import BatchEncoder
from embedtopics.training.trainer._checkpoints import latest_checkpoint
from embedtopics.training.trainer._running import train
from tests.factories import full_disk, refuses
from tests.training.trainer.test_running import ABOUT, same, settings, trained, weights_of


class Killed(BaseException):
    """Stands for a process that ends at once."""


def kill(method, when, data, validation, options, folder):
    """Train until a method of the run was called at a step, and no further."""
    original = getattr(running._Training, method)

    def dying(self, *arguments):
        found = original(self, *arguments)
        if self.begun_at + self.steps_here == when:
            raise Killed
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running._Training, method, dying)
        with pytest.raises(Killed):
            train(data, validation, options, folder, ABOUT)


def assert_same_run(run, whole):
    assert run.n_steps == whole.n_steps and run.best_step == whole.best_step
    assert run.stopped == whole.stopped
    for name in ("training_steps", "training_loss", "validation_steps", "validation_loss"):
        np.testing.assert_array_equal(getattr(run.curves, name), getattr(whole.curves, name))


@pytest.mark.parametrize(
    "when", [4, *(pytest.param(step, marks=pytest.mark.slow) for step in (1, 5, 6, 9))]
)
def test_batches_that_do_not_fill_a_step_are_gone_on_with(data_of, tmp_path, when):
    # Six batches an epoch, in steps of four and two.
    options = settings(accumulation=4, epochs=5, validations_per_epoch=2)
    data, whole = trained(data_of, tmp_path / "whole", options)
    dying, validation = data_of(options)
    kill("after_step", when, dying, validation, options, tmp_path / "killed")
    again, run = trained(data_of, tmp_path / "killed", options)
    assert same(weights_of(data), weights_of(again))
    assert_same_run(run, whole)
    assert run.decisions[0].name == "resumed"


def test_weights_that_are_newer_than_the_checkpoint_are_not_taken_for_its_best(
    data_of, tmp_path, monkeypatch
):
    data, validation = data_of(settings())
    written = {}
    original = running.write_checkpoint

    def dying(folder, step, *rest):
        if step == 6:
            raise Killed
        written[step] = {n: t.clone() for n, t in data.weights().items()}
        return original(folder, step, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(running, "write_checkpoint", dying)
        with pytest.raises(Killed):
            train(data, validation, settings(), tmp_path / "run", ABOUT)
    taken = []
    go_on = running._Training.go_on_from

    def looking(self, place):
        go_on(self, place)
        taken.append((self.notes.best_step, self.best_weights))
        raise Killed

    monkeypatch.setattr(running._Training, "go_on_from", looking)
    again, validation = data_of(settings())
    with pytest.raises(Killed):
        train(again, validation, settings(), tmp_path / "run", ABOUT)
    assert taken[0][0] == 3 and same(taken[0][1], written[3])


@pytest.mark.parametrize(
    ("damaged", "left"), [("best", None), ("step-00000012/weights", "step-00000009")]
)
def test_damaged_weights_are_passed_over(data_of, tmp_path, damaged, left):
    data, whole = trained(data_of, tmp_path / "run")
    for path in (tmp_path / "run").rglob("*.safetensors"):
        if damaged in path.as_posix():
            path.write_bytes(path.read_bytes()[:-50])
    newest, passed_over = latest_checkpoint(tmp_path / "run")
    assert (newest and newest.name) == left
    assert [*passed_over] == ["step-00000012", "step-00000009"][: 1 if left else 2]
    again, run = trained(data_of, tmp_path / "run")
    assert same(weights_of(data), weights_of(again))
    assert_same_run(run, whole)
    (told,) = (d for d in run.decisions if d.name == "damaged_checkpoint")
    assert "damaged" in told.message


def test_what_was_decided_before_the_interruption_is_told_after_it(data_of, tmp_path):
    options = settings(tokens_at_once=4096)
    data, validation = data_of(options)
    original = BatchEncoder._seeded

    def failing(self, texts, seed, group):
        if self.tokens_at_once > 2048:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return original(self, texts, seed, group)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BatchEncoder, "_seeded", failing)
        kill("after_step", 7, data, validation, options, tmp_path / "run")
    _, run = trained(data_of, tmp_path / "run", options)
    assert [d.name for d in run.decisions] == ["out_of_memory", "resumed"]
    assert run.decisions[0].value == 2048


def test_examples_left_out_before_the_interruption_are_counted(data_of, tmp_path):
    def shared(data):
        # One text in every second example: a batch holds one of them.
        for place in range(0, len(data.examples.keys), 2):
            keys = data.examples.keys[place]
            data.examples.keys[place] = (10_000, *keys[1:])
        return data

    found = []
    for name in ("whole", "killed"):
        data, validation = data_of(settings(), kind="pairs")
        if name == "killed":
            kill("after_step", 7, shared(data), validation, settings(), tmp_path / name)
            data, validation = data_of(settings(), kind="pairs")
        run = train(shared(data), validation, settings(), tmp_path / name, ABOUT)
        found.append([d.value for d in run.decisions if d.name == "left_out"])
    # Twenty of the forty examples, one in each of five batches: fifteen an epoch, and a few more
    # whose batches hold a text that is elsewhere paired with the shared one.
    (whole,), (killed,) = found
    assert whole == killed >= 30


def test_a_disk_that_is_really_full_costs_the_checkpoint_and_not_the_run(data_of, tmp_path):
    data, _ = trained(data_of, tmp_path / "whole")
    again, validation = data_of(settings())
    with full_disk():
        run = train(again, validation, settings(), tmp_path / "run", ABOUT)
    assert {d.name for d in run.decisions} == {"checkpoint"} and len(run.decisions) == 4
    assert "File too large" in run.decisions[0].message
    assert same(weights_of(data), weights_of(again))
    assert not list((tmp_path / "run").glob("[!r]*"))  # nothing but run.json


@pytest.mark.parametrize("content", ['{"exam', "[1]", "null", '"text"'])
def test_a_file_that_names_the_run_and_is_damaged_is_said_to_be(data_of, tmp_path, content):
    data, validation = data_of(settings())
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text(content)
    with refuses("out"):
        train(data, validation, settings(), tmp_path / "run", ABOUT)
    train(data, validation, settings(), tmp_path / "run", ABOUT, resume=False)
    assert json.loads((tmp_path / "run" / "run.json").read_text("utf-8")) == ABOUT


RUN_AND_DIE = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {root!r})
import tests.training.trainer.test_running as here
from embedtopics.training.trainer import _running as running
from tests.training.trainer.conftest import *
original = running._Training.after_step
def after_step(self, teacher, loss):
    on = original(self, teacher, loss)
    if teacher.state.global_step == {step}:
        os.kill(os.getpid(), {signal})
    return on
running._Training.after_step = after_step
running.LEAST_VALIDATIONS = 1
make = data_of.__wrapped__(Path({tiny!r}))
data, validation = make(here.settings())
here.train(data, validation, here.settings(), Path({folder!r}), here.ABOUT)
print("finished")
"""


def die(tiny, folder, step, number):
    code = RUN_AND_DIE.format(
        root=str(Path(__file__).parents[3]), tiny=str(tiny), folder=str(folder), step=step,
        signal=int(number),
    )  # fmt: skip
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.mark.slow
def test_a_run_that_is_asked_to_end_writes_a_checkpoint_and_exits_143(data_of, tiny_bert, tmp_path):
    data, _ = trained(data_of, tmp_path / "whole")
    ended = die(tiny_bert, tmp_path / "ended", 4, signal.SIGTERM)
    assert ended.returncode == 143 and "finished" not in ended.stdout
    # Asked during step 4, which is none of validation: the step after it writes the checkpoint.
    assert latest_checkpoint(tmp_path / "ended")[0].name == "step-00000005"
    again, _ = trained(data_of, tmp_path / "ended")
    assert same(weights_of(data), weights_of(again))


def test_checkpoints_of_another_run_are_not_gone_on_from(data_of, tmp_path):
    data, _ = trained(data_of, tmp_path / "run")
    _, validation = data_of(settings())
    other = {**ABOUT, "training examples": "others"}
    with refuses("out"):
        train(data, validation, settings(), tmp_path / "run", other)
    fresh, validation = data_of(settings())
    train(fresh, validation, settings(), tmp_path / "run", other, resume=False)
    assert same(weights_of(data), weights_of(fresh))
