"""Forged files of a run, whose checksums fit, are refused by the name of the field."""

import json
import math
import re
import shutil

import pytest
import torch

from embedtopics._utils.folders import write_manifest
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.training.trainer._checkpoints import (
    claim_folder,
    latest_checkpoint,
    read_state,
    write_best,
    write_checkpoint,
)
from tests.training.trainer.test_resuming import kill
from tests.training.trainer.test_running import settings, trained

RUN = {
    "encoder": "5f0c",
    "objective": {"masking": "SpanMasking", "share": 0.15, "kind": "mlm"},
    "training examples": "77aa",
    "settings": {"epochs": 3.0, "batch_size": 32, "max_length": None, "seed": 0},
    "keep_geometry": True,
}

STATE = """{"notes": {"training_steps": [2, 4], "training_loss": [0.1, 0.30000000000000004],
"validation_steps": [0, 4], "validation_loss": [2.5, NaN], "sample_loss": [NaN, Infinity],
"metric": [NaN, NaN], "pending": [5e-324], "best_step": 0, "best_figures": [0.0, -Infinity],
"n_without_gain": 1, "tokens_at_once": 4096}, "step": 4, "stopped": "finished", "best_step": 0,
"decisions": [{"stage": "training", "name": "checkpoint", "value": 2, "message": "Full."}],
"learning_rates": [1e-05, 0.0], "schedule": {"base_lrs": [2e-05, 2e-05], "last_epoch": 4,
"_step_count": 5, "_last_lr": [1e-05, 0.0]}}"""

TRAINER = {"global_step": 4, "max_steps": 8, "num_train_epochs": 2, "epoch": 0.5,
           "log_history": [], "stateful_callbacks": {}}  # fmt: skip


def seal(place):
    write_manifest(place, "training checkpoint", 1)


@pytest.fixture()
def folder(tmp_path):
    """Return the checkpoints of steps 2 and 4."""
    weights = {"w": torch.ones(2)}
    older = json.loads(STATE)
    older["step"] = 2
    older["notes"] |= {"training_steps": [2], "training_loss": [0.1], "validation_steps": [0]}
    older["notes"] |= {"validation_loss": [2.5], "sample_loss": [1.0], "metric": [math.nan]}
    write_best(tmp_path, 0, weights)
    write_checkpoint(tmp_path, 2, weights, weights, older, json.dumps(TRAINER | {"global_step": 2}))
    place = write_checkpoint(tmp_path, 4, weights, weights, {}, json.dumps(TRAINER))
    write_best(tmp_path, 0, weights)  # the state above has no best weights, so they were deleted
    (place / "state.json").write_text(STATE, "utf-8")
    seal(place)
    return tmp_path


def test_a_state_is_read_with_all_its_bits(folder):
    place, damaged = latest_checkpoint(folder, 8)
    assert place.name == "step-00000004" and damaged == {}
    state = read_state(place)
    assert state.notes.training_loss == [0.1, 0.30000000000000004]
    assert state.notes.pending == [5e-324]
    assert state.notes.best_figures == (0.0, -math.inf)
    assert math.isnan(state.notes.validation_loss[1]) and state.notes.sample_loss[1] == math.inf
    assert state.schedule.model_dump(by_alias=True) == json.loads(STATE)["schedule"]
    assert state.decisions[0].decision().value == 2


def change(field, **changes):
    """Return a change of an object of the state."""
    return lambda state: state[field].update(changes)


@pytest.mark.parametrize(
    ("field", "forge"),
    [
        ("step", lambda s: s.update(step="4")),
        ("step", lambda s: s.update(step=4.0)),
        ("step", lambda s: s.update(step=10**40)),
        ("step", lambda s: s.update(step=3)),
        ("step", lambda s: s.pop("step")),
        ("stopped", lambda s: s.update(stopped="early")),
        ("best_step", lambda s: s.update(best_step=-1)),
        ("best_step", lambda s: s.update(best_step=4)),
        ("unknown", lambda s: s.update(unknown=1)),
        ("decisions.0.message", lambda s: s["decisions"][0].update(message=None)),
        ("decisions.0.extra", lambda s: s["decisions"][0].update(extra=0)),
        ("decisions", lambda s: s.update(decisions={})),
        ("learning_rates.1", lambda s: s.update(learning_rates=[0.1, math.nan])),
        ("learning_rates.0", lambda s: s.update(learning_rates=[-0.1, 0.1])),
        ("learning_rates", lambda s: s.update(learning_rates=[])),
        ("learning_rates", lambda s: s.update(learning_rates=[0.1])),
        ("schedule", lambda s: s.update(schedule=None)),
        ("schedule._step_count", lambda s: s["schedule"].pop("_step_count")),
        ("schedule.lr_lambdas", change("schedule", lr_lambdas=[{}])),
        ("schedule.base_lrs.0", change("schedule", base_lrs=[math.inf, 0.1])),
        ("notes", lambda s: s.update(notes=[])),
        ("notes.metric", lambda s: s["notes"].pop("metric")),
        ("notes.pending.0", change("notes", pending=[True])),
        ("notes.training_loss.1", change("notes", training_loss=[0.1, "0.3"])),
        ("notes.validation_steps", change("notes", validation_steps=[])),
        ("notes.validation_steps.0", change("notes", validation_steps=[None, 4])),
        ("notes.best_figures", change("notes", best_figures=[0.0, 0.0, 0.0])),
        ("notes.tokens_at_once", change("notes", tokens_at_once=0)),
        ("notes: .*sample_loss", change("notes", sample_loss=[1.0])),
        ("notes: .*training_steps", change("notes", training_steps=[4, 4])),
        ("notes: .*best_step", change("notes", best_step=2)),
        ("step must be the last", change("notes", training_steps=[2, 400])),
    ],
)
def test_a_forged_state_is_passed_over_for_the_older_one(folder, field, forge):
    place = folder / "step-00000004"
    state = json.loads(STATE)
    forge(state)
    (place / "state.json").write_text(json.dumps(state), "utf-8")
    seal(place)

    newest, damaged = latest_checkpoint(folder, 8)
    assert newest.name == "step-00000002"
    assert [*damaged] == ["step-00000004"]
    assert re.search(rf"state\.json is damaged: {field}\b", damaged["step-00000004"])


@pytest.mark.parametrize("content", ["[" * 100_000, "", "null", "[]", '{"step": 1e', "\xff"])
def test_a_state_that_is_no_object_is_passed_over(folder, content):
    place = folder / "step-00000004"
    (place / "state.json").write_bytes(content.encode("latin-1"))
    seal(place)
    newest, damaged = latest_checkpoint(folder)
    assert newest.name == "step-00000002"
    assert "state.json is damaged" in damaged["step-00000004"]


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("global_step", {"global_step": 5}),
        ("global_step", {"global_step": None}),
        ("max_steps", {"max_steps": "8"}),
        ("log_history", {"log_history": "none"}),
        ("stateful_callbacks", {"stateful_callbacks": {"EarlyStoppingCallback": {}}}),
    ],
)
def test_a_forged_state_of_the_trainer_is_passed_over(folder, field, changes):
    place = folder / "step-00000004"
    (place / "trainer_state.json").write_text(json.dumps(TRAINER | changes), "utf-8")
    seal(place)
    newest, damaged = latest_checkpoint(folder)
    assert newest.name == "step-00000002"
    assert f"trainer_state.json is damaged: {field}" in damaged["step-00000004"]


def test_a_checkpoint_without_a_state_is_passed_over(folder):
    place = folder / "step-00000004"
    (place / "state.json").unlink()
    seal(place)
    newest, damaged = latest_checkpoint(folder)
    assert newest.name == "step-00000002" and "state.json" in damaged["step-00000004"]


def test_a_step_that_the_run_does_not_have_is_passed_over(folder):
    newest, damaged = latest_checkpoint(folder, 3)
    assert newest.name == "step-00000002" and "step: it is 4 of 3" in damaged["step-00000004"]


def test_a_checkpoint_in_the_folder_of_another_step_is_passed_over(folder):
    shutil.copytree(folder / "step-00000004", folder / "step-00000006")
    newest, damaged = latest_checkpoint(folder)
    assert newest.name == "step-00000004" and "step: it is 4" in damaged["step-00000006"]


def test_rates_of_other_groups_of_weights_are_not_gone_on_with(data_of, tmp_path):
    data, validation = data_of(settings())
    kill("after_step", 6, data, validation, settings(), tmp_path / "run")
    for place in (tmp_path / "run").glob("step-*"):
        state = json.loads((place / "state.json").read_text("utf-8"))
        state["learning_rates"].append(1.0)
        state["schedule"]["base_lrs"].append(1.0)
        state["schedule"]["_last_lr"].append(1.0)
        (place / "state.json").write_text(json.dumps(state), "utf-8")
        seal(place)
    with pytest.raises(CorruptFileError, match="learning_rates: 3 rates for 2 groups"):
        trained(data_of, tmp_path / "run")


def test_the_same_run_goes_on_and_another_is_named(tmp_path):
    claim_folder(tmp_path / "run", RUN, resume=True)
    claim_folder(tmp_path / "run", RUN, resume=True)
    other = {**RUN, "settings": {**RUN["settings"], "seed": 1}}
    with pytest.raises(InputError, match="another settings"):
        claim_folder(tmp_path / "run", other, resume=True)


@pytest.mark.parametrize(
    ("field", "forge"),
    [
        ("encoder", lambda run: run.update(encoder=5)),
        ("training examples", lambda run: run.pop("training examples")),
        ("validation examples", lambda run: run.update({"validation examples": ["77aa"]})),
        ("settings", lambda run: run.update(settings="usual")),
        ("objective", lambda run: run.update(objective=7)),
        ("keep_geometry", lambda run: run.update(keep_geometry=1)),
        ("command", lambda run: run.update(command="rm")),
        ("training_examples", lambda run: run.update(training_examples="77aa")),
    ],
)
def test_a_forged_field_of_the_run_is_named(tmp_path, field, forge):
    claim_folder(tmp_path / "run", RUN, resume=True)
    run = json.loads(json.dumps(RUN))
    forge(run)
    (tmp_path / "run" / "run.json").write_text(json.dumps(run), "utf-8")
    with pytest.raises(InputError, match=rf"damaged run\.json .*\({field}\b") as caught:
        claim_folder(tmp_path / "run", RUN, resume=True)
    assert caught.value.parameter == "out"


@pytest.mark.parametrize("content", ["[" * 100_000, '{"settings": ' * 3_000, "NaN", ""])
def test_a_file_of_the_run_that_is_no_object_is_damaged(tmp_path, content):
    claim_folder(tmp_path / "run", RUN, resume=True)
    (tmp_path / "run" / "run.json").write_text(content, "utf-8")
    with pytest.raises(InputError, match=r"damaged run\.json"):
        claim_folder(tmp_path / "run", RUN, resume=True)
