"""What a setting may be, and what is said of one that it may not be."""

import json

import numpy as np
import pytest

from embedtopics.errors import InputError
from embedtopics.training import TrainingSettings
from embedtopics.training.settings import Options, settings_from


def test_keywords_and_settings_name_the_same_things():
    assert set(Options.__annotations__) == set(TrainingSettings.__dataclass_fields__)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("batch_size", 0, "batch_size must be an integer from 1 up; got 0"),
        ("batch_size", 2.5, "got 2.5"),
        ("accumulation", True, "got True"),
        ("patience", 0, "patience"),
        ("tokens_at_once", -1, "tokens_at_once"),
        ("max_length", "long", "max_length"),
        ("lora_rank", 0, "lora_rank"),
        ("sample_size", -1, "sample_size must be an integer from 0 up"),
        ("seed", -1, "seed"),
        ("epochs", 0, "epochs to be a finite number above 0; got 0"),
        ("epochs", float("nan"), "got nan"),
        ("learning_rate", float("inf"), "got inf"),
        ("learning_rate", "2e-5", "got '2e-5'"),
        ("max_gradient", -1.0, "max_gradient"),
        ("validations_per_epoch", 0.0, "validations_per_epoch"),
        ("weight_decay", 1.5, "weight_decay to be a finite number from 0 to 1; got 1.5"),
        ("warmup", -0.1, "warmup"),
        ("matryoshka", (64, 0), "matryoshka"),
        ("matryoshka", 64, "expected matryoshka to be lengths, such as (128, 64); got 64"),
        ("matryoshka", "64", "got '64'"),
        ("precision", "int8", "expected precision to be one of float32, bfloat16, float16"),
    ],
)
def test_a_value_out_of_range_is_named(name, value, said):
    with pytest.raises(InputError) as error:
        settings_from({name: value})
    assert said in str(error.value)


def test_an_unknown_setting_is_named_beside_those_that_exist():
    with pytest.raises(InputError, match=r"batch_size, .*got batchsize, lr"):
        settings_from({"lr": 1e-3, "batchsize": 8})


def test_bounds_that_are_allowed_are_kept():
    made = settings_from({"weight_decay": 0, "warmup": 1, "sample_size": 0, "patience": None})
    assert (made.weight_decay, made.warmup, made.sample_size, made.patience) == (0, 1, 0, None)


def test_numpy_numbers_are_numbers():
    made = settings_from(
        {"batch_size": np.int64(8), "seed": np.int32(1), "learning_rate": np.float32(0.5),
         "epochs": np.int64(2), "matryoshka": np.array([16, 8]), "patience": np.int16(3)}
    )  # fmt: skip
    assert (made.batch_size, made.seed, made.learning_rate, made.epochs) == (8, 1, 0.5, 2)
    written = json.loads(json.dumps(made.to_dict()))
    assert written["matryoshka"] == [16, 8] and written["patience"] == 3
    assert made == settings_from(written)


def test_what_changes_no_weight_is_not_written_and_the_rest_is_json():
    made = settings_from({"matryoshka": [64, 128], "show_progress": False})
    written = made.to_dict()
    assert written["matryoshka"] == [64, 128] and "show_progress" not in written
    assert settings_from(json.loads(json.dumps(written))).to_dict() == written
