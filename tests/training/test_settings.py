"""What a setting may be, and what is answered to one that it may not be."""

import json

import numpy as np
import pytest

from embedtopics.training import TrainingSettings
from tests.factories import refuses

OUT_OF_RANGE = {
    "batch_size": (0, 2.5),
    "accumulation": (True,),
    "learning_rate": (float("inf"), "2e-5"),
    "epochs": (0, float("nan")),
    "max_seq_length": ("long",),
    **dict.fromkeys(("max_steps", "patience"), (0,)),
    **dict.fromkeys(("tokens_at_once", "sample_size", "random_state"), (-1,)),
    **dict.fromkeys(("max_gradient", "warmup"), (-0.1,)),
    "validations_per_epoch": (0.0,),
    "weight_decay": (1.5,),
    "precision": ("int8",),
    "keep": ("first",),
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, own in OUT_OF_RANGE.items() for value in own]
)
def test_a_value_out_of_range_is_named(name, value):
    with refuses(name):
        TrainingSettings(**{name: value})


def test_numpy_numbers_are_numbers_and_what_changes_weights_is_json():
    made = TrainingSettings(
        batch_size=np.int64(8), random_state=np.int32(1), learning_rate=np.float32(0.5),
        epochs=np.int64(2), patience=np.int16(3),
        show_progress=False,
    )  # fmt: skip
    assert (made.batch_size, made.random_state, made.learning_rate, made.epochs) == (8, 1, 0.5, 2)
    written = json.loads(json.dumps(made.to_dict()))
    assert written["patience"] == 3 and written["seed"] == 1
    assert not {"show_progress", "random_state", "max_steps"} & set(written)
    assert TrainingSettings(max_steps=5).to_dict()["max_steps"] == 5
