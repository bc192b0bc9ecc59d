"""Devices and numbers that there are, and what is said of those that there are not."""

from __future__ import annotations

import pytest
import torch

from embedtopics.errors import InputError
from embedtopics.training._settings import TrainingSettings
from embedtopics.training.trainer._trainer import arguments_for, device_and_precision


@pytest.fixture()
def gpu(monkeypatch):
    """Make believe that there are GPUs, of a generation that has bfloat16 or imitates it."""

    def make(there=True, has_bfloat=True):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
        monkeypatch.setattr(
            torch.cuda, "is_bf16_supported",
            lambda including_emulation=True: there and (has_bfloat or including_emulation),
        )  # fmt: skip

    return make


@pytest.mark.parametrize(
    ("there", "has_bfloat", "named", "expected"),
    [
        (False, False, {}, ("cpu", "float32")),
        (True, True, {}, ("cuda", "bfloat16")),
        (True, False, {}, ("cuda", "float32")),
        (True, True, {"device": "cpu"}, ("cpu", "float32")),
        (True, True, {"device": "cuda:0"}, ("cuda:0", "bfloat16")),
        (True, True, {"precision": "float32"}, ("cuda", "float32")),
        (True, False, {"precision": "float16"}, ("cuda", "float16")),
        (False, False, {"precision": "bfloat16"}, ("cpu", "bfloat16")),
    ],
)
def test_the_best_there_is_unless_asked_otherwise(gpu, there, has_bfloat, named, expected):
    gpu(there, has_bfloat)
    assert device_and_precision(TrainingSettings(**named)) == expected


@pytest.mark.parametrize(
    ("there", "has_bfloat", "named", "said"),
    [
        (False, False, {"device": "gpu"}, "gpu"),
        (False, False, {"device": "cuda"}, "here: cpu; got 'cuda'"),
        (False, False, {"device": "meta"}, "got 'meta'"),
        (True, True, {"device": "cuda:1"}, "CUDA_VISIBLE_DEVICES=1"),
        (False, False, {"precision": "float16"}, "float16"),
        (True, True, {"precision": "float16", "device": "cpu"}, "float16"),
        (True, False, {"precision": "bfloat16"}, "bfloat16"),
    ],
)
def test_what_is_not_there_is_named(gpu, there, has_bfloat, named, said):
    gpu(there, has_bfloat)
    with pytest.raises(InputError) as error:
        device_and_precision(TrainingSettings(**named))
    assert said in str(error.value)


def test_one_gpu_is_used_where_there_are_several(monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    arguments = arguments_for(TrainingSettings(), 10, "float32", "cuda", tmp_path)
    assert arguments.n_gpu == 1
