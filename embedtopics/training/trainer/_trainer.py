"""The trainer of sentence-transformers with our batches, encoding, checkpoints and guards.

Left to it: gradient accumulation, mixed precision, the schedule of the learning rate, AdamW and
its groups, the clipping of gradients. Ours: texts that were tokenized once, batches by seed and
epoch, groups of like length, dropout by seed and step, checkpoints without pickle, what happens
when the loss is not finite or memory runs out, and validation.
"""

from __future__ import annotations

import math
import os
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from torch.utils.data import DataLoader
from transformers.trainer_callback import PrinterCallback, ProgressCallback, TrainerCallback

from embedtopics.encoders.sentence._torch import check_device
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.training._settings import TrainingSettings
from embedtopics.training.trainer._checkpoints import read_state, read_tensors

if TYPE_CHECKING:
    from embedtopics.training.trainer._running import _Training

LEAST_TOKENS = 64
"""Fewest tokens that are encoded together when memory runs out."""

_SCHEDULE = ("base_lrs", "last_epoch", "_step_count", "_last_lr")
_ENVIRONMENT = ("ACCELERATE_MIXED_PRECISION", "ACCELERATE_USE_CPU")


class LossNotFiniteError(RuntimeError):
    """The "loss" or "gradient" of a batch is not finite; `places` are its examples."""

    def __init__(self, step: int, places: list[int], what: str = "loss") -> None:
        super().__init__(f"{what} not finite at step {step}")
        self.step = step
        self.places = places
        self.what = what


def device_and_precision(settings: TrainingSettings) -> tuple[str, str]:
    """Return the device and precision of a run."""
    device = settings.device or ("cuda" if torch.cuda.is_available() else "cpu")
    check_device(device)
    kind, number = torch.device(device).type, torch.device(device).index
    has_cuda, has_mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    devices = ["cpu", *["cuda"] * has_cuda, *["mps"] * has_mps]
    if kind not in devices:
        raise InputError(
            "device", f"one that torch can train on here: {', '.join(devices)}", device
        )
    if number:
        # The trainer always takes the first.
        remedy = f"choose another with the environment variable CUDA_VISIBLE_DEVICES={number}"
        raise InputError("device", f"{kind!r}, the first that torch sees", device, remedy)
    # Older GPUs emulate bfloat16, which is slower than float32.
    has_bfloat = kind == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    if settings.precision is None:
        return device, "bfloat16" if has_bfloat else "float32"
    missing = {("float16", "cpu"), *([] if has_bfloat else [("bfloat16", "cuda")])}
    if (settings.precision, kind) in missing:
        expected = '"float32" or "bfloat16" on a CPU, "float32" or "float16" on this GPU'
        raise InputError("precision", expected, settings.precision)
    return device, settings.precision


def arguments_for(
    settings: TrainingSettings, n_steps: int, precision: str, device: str, folder: Path
) -> SentenceTransformerTrainingArguments:
    """Return the arguments of the trainer."""
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(folder),
        max_steps=n_steps,
        per_device_train_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.accumulation,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        warmup_steps=math.ceil(settings.warmup * n_steps),
        max_grad_norm=settings.max_gradient,
        lr_scheduler_type="linear",
        optim="adamw_torch_fused",
        bf16=precision == "bfloat16",
        fp16=precision == "float16",
        use_cpu=device == "cpu",
        seed=settings.random_state % 2**31,
        eval_strategy="no",
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        push_to_hub=False,
    )
    # With more GPUs the trainer would wrap the model, and our batches would bypass mixed precision.
    arguments._n_gpu = min(1, arguments.n_gpu)
    return arguments


class EncoderTrainer(SentenceTransformerTrainer):
    """A trainer whose batches are positions of examples in the training data."""

    def __init__(self, run: _Training, args: SentenceTransformerTrainingArguments) -> None:
        self._run, self._data, self._plan, self._encoder = run, run.data, run.plan, run.encoder
        self._seed = run.settings.random_state
        self._window: list[list[int]] = []
        self._losses: list[float] = []
        super().__init__(
            model=run.data.model,
            args=args,
            loss=run.data.learned(),  # holds the weights for the optimizer; it is never called
            data_collator=_collate,  # type: ignore[arg-type]
            processing_class=None,
        )
        if run.data.objective.optimizers is not None:
            optimizers = run.data.objective.optimizers(run.data, args, run.steps_per_epoch)
            self.optimizer: Any = optimizers[0] if optimizers else None
            self.lr_scheduler: Any = optimizers[1] if optimizers else None
        for printing in (PrinterCallback, ProgressCallback):
            self.remove_callback(printing)
        self.add_callback(_Steps(self))

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Do nothing: `model_card` writes the card, and this callback would use the network."""

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return batches of positions."""
        return DataLoader(
            range(len(self._data.examples)),  # type: ignore[arg-type]
            batch_sampler=self._plan,
            collate_fn=self.data_collator,
        )

    def check_gradients(self) -> None:
        """Refuse gradients that are not finite."""
        if getattr(self.accelerator, "scaler", None) is not None:
            return  # the scaler skips such a step
        gradients = (part.grad for part in self._data.learned().parameters())
        norms = [torch.linalg.vector_norm(one) for one in gradients if one is not None]
        if norms and not bool(torch.isfinite(torch.stack(norms)).all()):
            places = [place for batch in self._window for place in batch]
            raise LossNotFiniteError(self.state.global_step + 1, places, "gradient")

    def training_step(
        self, model: Any, inputs: dict[str, Any], num_items_in_batch: Any = None
    ) -> torch.Tensor:
        """Learn from one batch, in smaller parts if memory runs out."""
        model.train()
        self._window.append(inputs["places"].tolist())
        to_learn = [len(self._window) - 1]
        while True:
            try:
                return [self._learn(part) for part in to_learn][-1]
            except (RuntimeError, MemoryError) as error:
                if not _is_out_of_memory(error) or self._encoder.tokens_at_once <= LEAST_TOKENS:
                    raise
            self._encoder.tokens_at_once = max(LEAST_TOKENS, self._encoder.tokens_at_once // 2)
            self._run.with_less_memory(self._encoder.tokens_at_once)
            # Gradients of the failed batch may already have been added.
            self._data.learned().zero_grad()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            self._losses = []
            to_learn = list(range(len(self._window)))

    def _learn(self, part: int) -> torch.Tensor:
        places = self._window[part]
        step = self.state.global_step
        batch = self._data.batch(
            self._data.examples, places, np.random.default_rng((self._seed, step, part))
        )
        scale = self.current_gradient_accumulation_steps

        def loss_of(vectors: list[torch.Tensor]) -> torch.Tensor:
            loss: torch.Tensor = self._data.loss_of(batch, vectors)
            if not bool(torch.isfinite(loss)):
                raise LossNotFiniteError(step + 1, places)
            return loss / scale

        # Dropout depends on the seed and the step alone.
        seed = (self._seed * 1_000_003 + step * 64 + part) % 2**50
        devices = [self.args.device] if self.args.device.type == "cuda" else []
        with torch.random.fork_rng(devices), self.compute_loss_context_manager():
            loss = self._encoder.learn(batch.columns, loss_of, self.accelerator.backward, seed)
        self._losses.append(float(loss))
        return loss

    def position(self) -> dict[str, Any]:
        """Return the position in the learning rate schedule, as JSON values."""
        assert self.optimizer is not None and self.lr_scheduler is not None
        schedule = self.lr_scheduler.state_dict()
        return {
            "learning_rates": [group["lr"] for group in self.optimizer.param_groups],
            "schedule": {k: schedule[k] for k in _SCHEDULE},
        }

    def moments(self) -> dict[str, torch.Tensor]:
        """Return the state of the optimizer as named tensors."""
        assert self.optimizer is not None
        states = self.optimizer.state_dict()["state"]
        tensors = {
            f"{place}/{name}": torch.as_tensor(value)
            for place, state in states.items()
            for name, value in state.items()
        }
        scaler = getattr(self.accelerator, "scaler", None)
        if scaler is not None:
            tensors |= {
                f"scaler/{k}": torch.tensor(float(v)) for k, v in scaler.state_dict().items()
            }
        return tensors

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        self._data.load_weights(read_tensors(Path(resume_from_checkpoint), "weights"))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is None:
            return
        place = Path(checkpoint)
        states: dict[int, dict[str, torch.Tensor]] = {}
        scaler: dict[str, Any] = {}
        for name, value in read_tensors(place, "optimizer").items():
            number, key = name.split("/", 1)
            if number == "scaler":
                scaler[key] = float(value)
            else:
                states.setdefault(int(number), {})[key] = value
        optimizer, schedule_of_rates = self.optimizer, self.lr_scheduler
        assert optimizer is not None and schedule_of_rates is not None
        groups = optimizer.state_dict()["param_groups"]
        position = read_state(place)
        rates = position.learning_rates
        if len(rates) != len(groups):
            found = f"learning_rates: {len(rates)} rates for {len(groups)} groups of weights"
            raise CorruptFileError(f"{place} is damaged: {found}; start again with resume=False")
        for group, rate in zip(groups, rates, strict=True):
            group["lr"] = rate
        optimizer.load_state_dict({"state": states, "param_groups": groups})
        schedule = {
            **schedule_of_rates.state_dict(),
            **position.schedule.model_dump(by_alias=True),
        }
        schedule_of_rates.load_state_dict(schedule)
        if scaler and getattr(self.accelerator, "scaler", None) is not None:
            current = self.accelerator.scaler.state_dict()
            self.accelerator.scaler.load_state_dict(
                {key: type(current[key])(value) for key, value in scaler.items()}
            )

    def _load_rng_state(self, checkpoint: str | None) -> None:
        """Do nothing: a run does not depend on random states."""

    def _load_scaler(self, checkpoint: str | None) -> None:
        """Do nothing: see `_load_optimizer_and_scheduler`."""


def _collate(places: list[int]) -> dict[str, torch.Tensor]:
    return {"places": torch.as_tensor(places)}


class _Steps(TrainerCallback):
    """Calls the trainer at the beginning and end of epochs and steps."""

    def __init__(self, trainer: EncoderTrainer) -> None:
        self._trainer = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._trainer._run.before_steps()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        plan = self._trainer._plan
        # The last step of an epoch may have fewer batches than the others.
        steps = -(-len(plan) // args.gradient_accumulation_steps)
        plan.epoch = state.global_step // max(1, steps)

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._trainer._window, self._trainer._losses = [], []
        self._trainer._data.loss.zero_grad()  # the trainer resets the model only

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._trainer.check_gradients()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # The mean loss of the batches of a step.
        if not self._trainer._run.after_step(self._trainer, sum(self._trainer._losses)):
            control.should_training_stop = True


def _is_out_of_memory(error: BaseException) -> bool:
    phrases = ("out of memory", "can't allocate memory", "not enough memory")
    is_known = any(words in str(error).lower() for words in phrases)
    return is_known or isinstance(error, (torch.OutOfMemoryError, MemoryError))


@contextmanager
def quiet_and_private() -> Iterator[None]:
    """Restore global random states, warnings and environment after the run."""
    hub_logging: Any = import_module("transformers.utils.logging")  # it carries no types

    python, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    devices = list(range(torch.cuda.device_count()))
    verbosity = hub_logging.get_verbosity()
    # Variables of another launcher would override the precision.
    environment = {name: os.environ.get(name) for name in _ENVIRONMENT}
    for name in _ENVIRONMENT:
        os.environ.pop(name, None)
    hub_logging.set_verbosity_error()
    try:
        with torch.random.fork_rng(devices), warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="(torch|accelerate|transformers)")
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy_state)  # noqa: NPY002
        hub_logging.set_verbosity(verbosity)
        for name, value in environment.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
