"""How a training run is done: the settings, with the defaults of the field."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypedDict

from embedtopics._checks import checked_count, is_number, optional_count
from embedtopics.errors import InputError

__all__ = ["Options", "TrainingSettings", "settings_from"]

PRECISIONS = ("float32", "bfloat16", "float16")


class Options(TypedDict, total=False):
    """Keywords of the functions that train; `TrainingSettings` says what they mean."""

    epochs: float
    batch_size: int
    accumulation: int
    learning_rate: float
    weight_decay: float
    warmup: float
    max_gradient: float
    validations_per_epoch: float
    patience: int | None
    tokens_at_once: int | None
    max_length: int | None
    precision: str | None
    device: str | None
    matryoshka: tuple[int, ...]
    lora_rank: int | None
    sample_size: int
    seed: int
    show_progress: bool | None


@dataclass(frozen=True)
class TrainingSettings:
    """How a training run is done.

    Parameters
    ----------
    epochs : float
        How often each example is learned from.
    batch_size : int
        Examples whose loss is computed together; with in-batch negatives, each is compared with
        the others of its batch.
    accumulation : int
        Batches whose gradients are added up before a step.
    learning_rate : float
        At its highest: it rises over the warm-up and falls to zero in a straight line.
        AdamW moves no weight by much more than this in a step: the default is one for
        transformers, small for low-rank additions, and far too small for a static encoder's table.
    weight_decay : float
        Of AdamW; not of biases and layer norms.
    warmup : float
        Share of the steps over which the learning rate rises.
    max_gradient : float
        Norm that gradients are cut to.
    validations_per_epoch : float
        How often the validation examples are looked at, and a checkpoint is written; at least
        eight times a run, where it has as many steps, so that its curves can be read.
    patience : int or None
        Validations without a better figure after which training ends; None never ends early.
    tokens_at_once : int, optional
        Tokens that go through the encoder together, padding included. It bounds memory and does
        not change the loss: a batch with more goes in parts. By default as many as some 3 GiB hold
        on a CPU, and 16 GiB on a GPU, by the size of the model; halved where memory runs out.
    max_length : int, optional
        Most tokens read of a text; as the encoder says.
    precision : {"float32", "bfloat16", "float16"}, optional
        Numbers that products are computed with, as in mixed precision, in validation too; weights
        stay in float32. By default "float32" on a CPU, and "bfloat16" on a GPU that has it;
        "float16" is for GPUs, and steps whose gradients are too large for it are left out.
    device : {"cpu", "cuda", "mps"}, optional
        The first CUDA device where there is one, else the CPU.
    matryoshka : tuple of int
        Shorter lengths at which the vectors shall be good as well (Kusupati et al. 2022).
    lora_rank : int, optional
        Learn low-rank additions to the weights alone (Hu et al. 2021), which are added to them at
        the end; needs peft. They begin at zero and need a higher learning rate than the weights
        themselves: some 4e-4 in the paper.
    sample_size : int
        Training examples whose loss is measured beside that of the validation examples.
    seed : int
    show_progress : bool, optional
    """

    epochs: float = 3.0
    batch_size: int = 32
    accumulation: int = 1
    learning_rate: float = 2e-5
    weight_decay: float = 0.01
    warmup: float = 0.1
    max_gradient: float = 1.0
    validations_per_epoch: float = 4.0
    patience: int | None = 6
    tokens_at_once: int | None = None
    max_length: int | None = None
    precision: str | None = None
    device: str | None = None
    matryoshka: tuple[int, ...] = ()
    lora_rank: int | None = None
    sample_size: int = 256
    seed: int = 42
    show_progress: bool | None = None

    def __post_init__(self) -> None:
        # NumPy's numbers become Python's, which JSON can hold.
        checked: dict[str, Any] = {}
        for name in ("batch_size", "accumulation"):
            checked[name] = checked_count(getattr(self, name), name)
        for name in ("patience", "tokens_at_once", "max_length", "lora_rank"):
            checked[name] = optional_count(getattr(self, name), name)
        for name in ("sample_size", "seed"):
            checked[name] = checked_count(getattr(self, name), name, 0)
        for name in ("epochs", "learning_rate", "max_gradient", "validations_per_epoch"):
            checked[name] = _checked_between(name, getattr(self, name), 0, math.inf)
        for name in ("weight_decay", "warmup"):
            checked[name] = _checked_between(name, getattr(self, name), 0, 1, closed=True)
        checked["matryoshka"] = _checked_lengths(self.matryoshka)
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.precision not in (None, *PRECISIONS):
            raise InputError(
                f"expected precision to be one of {', '.join(PRECISIONS)}; got {self.precision!r}"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that change the weights, in what JSON can hold."""
        values = asdict(self)
        values.pop("show_progress")
        values["matryoshka"] = list(self.matryoshka)
        return values


def settings_from(options: Mapping[str, Any]) -> TrainingSettings:
    """Make settings of keywords.

    Raises
    ------
    InputError
        If a keyword is not known, or a value out of range.
    """
    unknown = sorted(set(options) - set(TrainingSettings.__dataclass_fields__))
    if unknown:
        raise InputError(
            f"expected settings among {', '.join(TrainingSettings.__dataclass_fields__)}; got "
            f"{', '.join(unknown)}"
        )
    return TrainingSettings(**options)


def _checked_between(name: str, value: Any, low: float, high: float, closed: bool = False) -> float:
    inside = is_number(value) and (low <= value <= high if closed else low < value < high)
    if not inside:
        span = f"from {low} to {high}" if closed else f"above {low}"
        raise InputError(f"expected {name} to be a finite number {span}; got {value!r}")
    return float(value)


def _checked_lengths(value: Any) -> tuple[int, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise InputError(
            f"expected matryoshka to be lengths, such as (128, 64); got {value!r}; put a single "
            "length in parentheses, with a comma"
        )
    return tuple(checked_count(length, "matryoshka") for length in value)
