"""Where a run is done, with which numbers, and how much of it at once."""

from __future__ import annotations

import torch

from embedtopics.encoders.loading import check_device
from embedtopics.errors import InputError
from embedtopics.training.engine.encoding import bytes_a_token
from embedtopics.training.engine.lesson import Lesson
from embedtopics.training.settings import TrainingSettings

__all__ = ["device_and_precision", "tokens_at_once"]

BYTES_AT_ONCE = {"cpu": 3 * 2**30, "cuda": 16 * 2**30}
"""Memory for what is encoded at once, by device."""


def device_and_precision(settings: TrainingSettings) -> tuple[str, str]:
    """Return where to train and with which numbers, as asked for or as is best.

    Raises
    ------
    InputError
        If the device is not there, or has no such numbers.
    """
    device = settings.device or ("cuda" if torch.cuda.is_available() else "cpu")
    check_device(device)
    kind, number = torch.device(device).type, torch.device(device).index
    is_there = {
        "cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(),
    }  # fmt: skip
    if not is_there.get(kind, False):
        found = ", ".join(name for name, there in is_there.items() if there)
        raise InputError(
            f"expected a device that torch can train on here, among {found}; got {device!r}; leave "
            "device out, or install torch for that device"
        )
    if number:
        # The trainer always takes the first.
        raise InputError(
            f'expected device="{kind}", the first that torch sees, got {device!r}; choose another '
            f'with the environment variable CUDA_VISIBLE_DEVICES={number}, and device="{kind}"'
        )
    # Older GPUs imitate bfloat16, which is slower than float32.
    has_bfloat = kind == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    if settings.precision is None:
        return device, "bfloat16" if has_bfloat else "float32"
    if settings.precision == "float16" and kind == "cpu":
        raise InputError(
            'expected precision "float32" or "bfloat16" on a CPU, got "float16", which is for GPUs'
        )
    if settings.precision == "bfloat16" and kind == "cuda" and not has_bfloat:
        raise InputError(
            'expected precision "float32" or "float16", got "bfloat16", which this GPU does not '
            "have"
        )
    return device, settings.precision


def tokens_at_once(lesson: Lesson, settings: TrainingSettings, device: str) -> int:
    """Return how many tokens are encoded together, as asked for or as memory should hold."""
    if settings.tokens_at_once is not None:
        return settings.tokens_at_once
    config = getattr(getattr(lesson.model[0], "auto_model", None), "config", None)
    n_layers = getattr(config, "num_hidden_layers", 1)
    width = getattr(config, "hidden_size", lesson.model.get_embedding_dimension())
    memory = BYTES_AT_ONCE["cpu" if device == "cpu" else "cuda"]
    return max(512, memory // bytes_a_token(n_layers, width))
