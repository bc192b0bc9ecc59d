"""Settings of a training run, with common defaults."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from embedtopics._utils.checks import (
    checked_between,
    checked_choice,
    checked_count,
    optional_count,
    require,
    resolve_seed,
)
from embedtopics.errors import InputError


def setting(default: Any, text: str) -> Any:
    """Return a dataclass field with its help text, from which options are generated."""
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of a training run; ``metadata["help"]`` of each field describes it.

    Parameters
    ----------
    epochs : float
        Passes over the training examples.
    max_steps : int, optional
        Maximum number of optimizer steps, instead of `epochs`.
    batch_size : int
        Examples whose loss is computed together. With in-batch negatives, each example is compared
        with all others of its batch.
    accumulation : int
        Batches whose gradients are summed before a step.
    learning_rate : float
        Peak learning rate of AdamW; it rises linearly over the warm-up and falls linearly to zero.
        The default suits a transformer; the table of a static encoder needs about 1e-2.
    weight_decay : float
        Weight decay of AdamW; biases and layer norms have none.
    warmup : float
        Share of the steps over which the learning rate rises.
    max_gradient : float
        Norm that gradients are clipped to.
    validations_per_epoch : float
        Validations, each with a checkpoint; at least eight a run where it has as many steps, so
        that its learning curves can be read.
    patience : int or None
        Validations without improvement after which training ends; None never ends early.
    keep : {"best", "last"}
        Weights that are kept: those of the best validation, or the last, without an early end.
    metric : str, optional
        What is best: "loss" (the lowest), the objective's own metric (the default), such as
        "Spearman", or "MRR@10" for pairs and triplets. The lower loss breaks ties, and replaces a
        metric that cannot grow.
    tokens_at_once : int, optional
        Tokens, padding included, that are encoded together. It bounds memory and does not change
        the loss: larger batches are encoded in parts. By default about 3 GiB on a CPU and 16 GiB on
        a GPU; halved when memory runs out.
    max_seq_length : int, optional
        Maximum number of tokens of a text; by default that of the encoder.
    precision : {"float32", "bfloat16", "float16"}, optional
        Precision of products, in validation too; weights stay float32. By default "float32" on a
        CPU and "bfloat16" on a GPU that supports it.
    device : {"cpu", "cuda", "mps"}, optional
        By default the first CUDA device, else the CPU.
    sample_size : int
        Training examples whose loss is measured at each validation.
    random_state : int, Generator or None
    show_progress : bool, optional
        None shows progress bars in a terminal or notebook.

    Examples
    --------
    >>> import embedtopics as et
    >>> settings = et.training.TrainingSettings(epochs=1, batch_size=16)
    >>> settings.batch_size, settings.random_state
    (16, 0)
    """

    epochs: float = setting(3.0, "Passes over the training examples.")
    max_steps: int | None = setting(None, "Maximum number of optimizer steps, instead of epochs.")
    batch_size: int = setting(32, "Examples of a batch.")
    accumulation: int = setting(1, "Batches whose gradients are summed before a step.")
    learning_rate: float = setting(2e-5, "Peak learning rate.")
    weight_decay: float = setting(0.01, "Weight decay of AdamW.")
    warmup: float = setting(0.1, "Share of the steps over which the learning rate rises.")
    max_gradient: float = setting(1.0, "Norm that gradients are clipped to.")
    validations_per_epoch: float = setting(4.0, "Validations per epoch; a checkpoint each.")
    patience: int | None = setting(6, "Validations without improvement that end training.")
    keep: str = setting("best", "Weights that are kept: best or last.")
    metric: str | None = setting(None, "Metric that selects: loss, or one of the objective's.")
    tokens_at_once: int | None = setting(None, "Tokens encoded together, to bound memory.")
    max_seq_length: int | None = setting(
        None, "Maximum number of tokens of a text; by default the encoder's."
    )
    precision: str | None = setting(None, "float32, bfloat16 or float16; by default by device.")
    device: str | None = setting(None, "cpu, cuda or mps; by default the first GPU, else the CPU.")
    sample_size: int = setting(256, "Training examples whose loss is measured at validations.")
    random_state: Any = setting(0, "Random seed.")  # noqa: RUF009
    show_progress: bool | None = setting(
        None, "Show progress bars; by default in a terminal or notebook."
    )

    def __post_init__(self) -> None:
        # NumPy's numbers become Python's, which JSON can hold.
        checked: dict[str, Any] = {"random_state": resolve_seed(self.random_state)}
        for name in ("batch_size", "accumulation"):
            checked[name] = checked_count(getattr(self, name), name)
        for name in ("max_steps", "patience", "tokens_at_once", "max_seq_length"):
            checked[name] = optional_count(getattr(self, name), name)
        checked["sample_size"] = checked_count(self.sample_size, "sample_size", 0)
        for name in ("epochs", "learning_rate", "max_gradient", "validations_per_epoch"):
            checked[name] = checked_between(getattr(self, name), name, 0, math.inf)
        for name in ("weight_decay", "warmup"):
            checked[name] = checked_between(getattr(self, name), name, 0, 1, closed=True)
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        checked_choice(self.keep, "keep", ("best", "last"))
        checked_choice(self.precision, "precision", (None, "float32", "bfloat16", "float16"))

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that change the weights, as JSON values."""
        values = asdict(self)
        values.pop("show_progress")
        if self.max_steps is None:
            values.pop("max_steps")
        if self.metric is None:
            values.pop("metric")
        # The keys of saved reports and checkpoints.
        values["max_length"] = values.pop("max_seq_length")
        values["seed"] = values.pop("random_state")
        return values


def settings_of(
    settings: TrainingSettings | Mapping[str, Any] | None, defaults: Mapping[str, Any] | None = None
) -> TrainingSettings:
    """Return settings from a mapping of some of them; `defaults` stand for those left out."""
    if isinstance(settings, TrainingSettings):
        return settings
    if settings is not None and not isinstance(settings, Mapping):
        raise InputError("settings", "a TrainingSettings or a mapping", settings)

    chosen = {**(defaults or {}), **(settings or {})}
    names = [one.name for one in fields(TrainingSettings)]
    unknown = [name for name in chosen if name not in names]
    if unknown:
        raise InputError("settings", f"of the names {', '.join(names)}", unknown[0])
    return TrainingSettings(**chosen)


def require_libraries() -> None:
    """Refuse to begin without the libraries of the trainer."""
    for library in ("torch", "accelerate", "datasets"):
        require(library, "training", "train")
