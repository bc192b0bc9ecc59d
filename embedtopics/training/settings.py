"""How a training run is done: the settings, with the defaults of the field."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypedDict

from embedtopics._checks import checked_count
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
        not change the loss: a batch with more goes in parts. By default 2,048 on a CPU, 32,768 on
        a GPU.
    max_length : int, optional
        Most tokens read of a text; as the encoder says.
    precision : {"float32", "bfloat16", "float16"}, optional
        Numbers that products are computed with, as in mixed precision; weights stay in float32.
        By default "float32" on a CPU, and "bfloat16" on a GPU that has it.
    device : str, optional
        As in torch; the first CUDA device where there is one, else the CPU.
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
        for name in ("batch_size", "accumulation"):
            checked_count(getattr(self, name), name)
        for name in ("patience", "tokens_at_once", "max_length", "lora_rank"):
            if getattr(self, name) is not None:
                checked_count(getattr(self, name), name)
        for name in ("sample_size", "seed"):
            checked_count(getattr(self, name), name, 0)
        for name in ("epochs", "learning_rate", "max_gradient", "validations_per_epoch"):
            _check_between(name, getattr(self, name), 0, math.inf)
        _check_between("weight_decay", self.weight_decay, 0, 1, closed=True)
        _check_between("warmup", self.warmup, 0, 1, closed=True)
        for length in self.matryoshka:
            checked_count(length, "matryoshka")
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
    given = dict(options)
    if "matryoshka" in given:
        given["matryoshka"] = tuple(given["matryoshka"])
    return TrainingSettings(**given)


def _check_between(name: str, value: Any, low: float, high: float, closed: bool = False) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    inside = is_number and (low <= value <= high if closed else low < value < high)
    if not inside:
        span = f"from {low} to {high}" if closed else f"above {low}"
        raise InputError(f"expected {name} to be a finite number {span}; got {value!r}")
