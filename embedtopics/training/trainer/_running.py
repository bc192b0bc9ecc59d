"""A training run from its first validation to its best weights."""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from embedtopics._utils.display import progress_bar
from embedtopics.errors import InputError, name_rows
from embedtopics.results import Decision
from embedtopics.training._curves import diverged_at, read_curves
from embedtopics.training._settings import TrainingSettings
from embedtopics.training.results import Curves, Diagnosis
from embedtopics.training.trainer._batching import (
    StepPlan,
    TokenizedExamples,
    TrainingData,
    tokens_held,
)
from embedtopics.training.trainer._checkpoints import (
    EXIT_CODE,
    claim_folder,
    latest_checkpoint,
    noticed_termination,
    read_best,
    read_state,
    write_best,
    write_checkpoint,
)
from embedtopics.training.trainer._trainer import (
    EncoderTrainer,
    LossNotFiniteError,
    arguments_for,
    device_and_precision,
    quiet_and_private,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


_log = logging.getLogger(__name__)

NOTES_OF_THE_LOSS = 200
"""Points of the training loss curve; each is the mean over the steps since the last."""

LEAST_VALIDATIONS, FEWEST_VALIDATIONS = 8, 3
"""Fewest validations of a run, so that its curves can be read; at least three if more would read
more texts than training does."""


@dataclass(frozen=True, eq=False)
class Run:
    """Measurements of a run; the model of its data has the best weights."""

    curves: Curves
    diagnosis: Diagnosis
    best_step: int
    n_steps: int
    stopped: str
    seconds: float  # without validation and checkpoints
    examples_per_second: float
    decisions: tuple[Decision, ...]


@dataclass
class _RunNotes:
    """Curves and state of a run, also written into checkpoints."""

    training_steps: list[int] = field(default_factory=list)
    training_loss: list[float] = field(default_factory=list)
    validation_steps: list[int] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    sample_loss: list[float] = field(default_factory=list)
    metric: list[float] = field(default_factory=list)
    pending: list[float] = field(default_factory=list)
    best_step: int = 0
    best_figures: tuple[float, ...] = (-math.inf, -math.inf)
    n_without_gain: int = 0
    tokens_at_once: int = 0


def selecting_figures(
    metrics: list[float], loss: float, n_examples: int, by_loss: bool
) -> tuple[float, float]:
    """Return the figures that the best validation has the largest of, in order of importance.

    The metric decides, then the loss. A metric that is NaN before training, or that cannot
    grow because no example is wrong, decides nothing; one that becomes NaN is a collapse.
    """
    by_loss = by_loss or not metrics[0] < 1.0 - 0.5 / n_examples
    metric = 0.0 if by_loss else metrics[-1]
    first, second = (x if math.isfinite(x) else -math.inf for x in (metric, -loss))
    return first, second


def train(
    data: TrainingData,
    validation: TokenizedExamples,
    settings: TrainingSettings,
    folder: Path,
    identity: Mapping[str, Any],
    resume: bool | None = True,
) -> Run:
    """Train a model, and load the weights of the best validation."""
    # If `resume` is None, no checkpoints are written: a temporary folder cannot be resumed.
    claim_folder(folder, identity, bool(resume))
    with quiet_and_private(), noticed_termination() as request:
        run = _Training(data, validation, settings, folder, request)
        run.writes_checkpoints = resume is not None
        return run.run()


class _Training:
    """The state of a run."""

    def __init__(
        self,
        data: TrainingData,
        validation: TokenizedExamples,
        settings: TrainingSettings,
        folder: Path,
        request: threading.Event,
    ) -> None:
        self.data, self.settings, self.folder, self.request = data, settings, folder, request
        self.validation = validation
        self.device, self.precision = device_and_precision(settings)
        data.model.to(self.device)
        data.loss.to(self.device)
        keys = data.examples.keys if data.objective.in_batch_negatives else None
        self.plan = StepPlan(
            data.examples.lengths, settings.batch_size, settings.random_state, keys
        )
        self.steps_per_epoch = -(-len(self.plan) // settings.accumulation)
        self.n_steps = settings.max_steps or max(1, round(settings.epochs * self.steps_per_epoch))
        at_once = settings.tokens_at_once or tokens_held(data.model, self.device)
        self.notes = _RunNotes(tokens_at_once=at_once)
        self.encoder = data.batch_encoder(at_once)
        every = self.steps_per_epoch / settings.validations_per_epoch
        size = min(settings.sample_size, len(data.examples))
        n_read = self.n_steps * settings.batch_size * settings.accumulation
        affordable = max(FEWEST_VALIDATIONS, n_read // (len(validation) + size))
        least = min(LEAST_VALIDATIONS, affordable)
        n = min(self.n_steps, max(least, round(self.n_steps / every)))
        self.validated_at = {round(self.n_steps * (i + 1) / n) for i in range(n)}
        self.noted_every = max(1, self.n_steps // NOTES_OF_THE_LOSS)
        rng = np.random.default_rng((settings.random_state, 7))
        self.sample = data.examples.take(
            np.sort(rng.choice(len(data.examples), size, replace=False))
        )
        self.decisions: list[Decision] = []
        self.best_weights: dict[str, torch.Tensor] = {}
        self.best_written = -1
        self.writes_checkpoints = True
        self.stopped = "finished"
        self.learned_for = 0.0
        self.begun_at = self.steps_here = 0
        self.clock = 0.0
        self.bar: Any = None

    def run(self) -> Run:
        begun, damaged = latest_checkpoint(self.folder, self.n_steps)
        if begun is not None:
            self.go_on_from(begun)
        if damaged:
            text = f"Checkpoints in {self.folder} are damaged and were not used: "
            each = "; ".join(f"{name} ({reason})" for name, reason in damaged.items())
            self.decide("damaged_checkpoint", [*damaged], f"{text}{each}.")
        # The process may have ended after the last step, before all was written.
        if self.begun_at < self.n_steps and self.stopped == "finished":
            self.learn(begun)
        if self.request.is_set():
            raise SystemExit(EXIT_CODE)
        self.data.load_weights(self.best_weights)
        return self.report()

    def learn(self, begun: Path | None) -> None:
        """Take the remaining steps."""
        arguments = arguments_for(
            self.settings, self.n_steps, self.precision, self.device, self.folder
        )
        trainer = EncoderTrainer(self, arguments)
        show = self.settings.show_progress
        with progress_bar(
            total=self.n_steps, unit="step", description="Training", show=show
        ) as self.bar:
            self.bar.update(self.begun_at)
            try:
                trainer.train(resume_from_checkpoint=None if begun is None else str(begun))
            except LossNotFiniteError as error:
                self.note_not_finite(error)

    def before_steps(self) -> None:
        """Validate the model that training starts from, in the precision of the run."""
        if not self.begun_at:
            self.validate(0)
        self.clock = time.perf_counter()

    def after_step(self, trainer: EncoderTrainer, loss: float) -> bool:
        """Record a step, validate and write a checkpoint when due; return whether to continue."""
        self.learned_for += time.perf_counter() - self.clock
        self.steps_here += 1
        step, notes = trainer.state.global_step, self.notes
        notes.pending.append(loss)
        if step % self.noted_every == 0 or step == self.n_steps:
            notes.training_steps.append(step)
            notes.training_loss.append(float(np.mean(notes.pending)))
            notes.pending.clear()
        goes_on = True
        if step in self.validated_at:
            self.validate(step)
            patience = self.settings.patience
            if patience is not None and notes.n_without_gain >= patience and step < self.n_steps:
                goes_on, self.stopped = False, "no improvement"
        if self.writes_checkpoints and (step in self.validated_at or self.request.is_set()):
            self.write_checkpoint(trainer, step)
        self.show(loss)
        self.clock = time.perf_counter()
        return goes_on and not self.request.is_set()

    def validate(self, step: int) -> None:
        """Measure the model on held-out examples, and keep its weights if they are best."""
        notes, size = self.notes, self.settings.batch_size
        loss, metric = self.data.measure(self.encoder, self.validation, size)
        sample = math.nan
        if len(self.sample):
            sample, _ = self.data.measure(self.encoder, self.sample, size, with_metric=False)
        notes.validation_steps.append(step)
        notes.validation_loss.append(loss)
        notes.sample_loss.append(sample)
        notes.metric.append(metric)
        if step == 0 and not math.isfinite(loss):
            expected = "one with a finite validation loss before training"
            raise InputError("encoder", expected, found=str(loss))
        by_loss = self.data.objective.keeps_lowest_loss
        figures = selecting_figures(notes.metric, loss, len(self.validation), by_loss)
        is_last = self.settings.keep == "last" and math.isfinite(loss)
        if is_last or figures > notes.best_figures:
            notes.best_figures, notes.best_step, notes.n_without_gain = figures, step, 0
            self.best_weights = {
                name: tensor.detach().clone() for name, tensor in self.data.weights().items()
            }
        else:
            notes.n_without_gain += 1

    def write_checkpoint(self, trainer: EncoderTrainer, step: int) -> None:
        """Write a checkpoint; a full disk costs the checkpoint, not the run."""
        state = {
            "notes": asdict(self.notes),
            "step": step,
            "stopped": self.stopped,
            "best_step": self.notes.best_step,
            "decisions": [asdict(decision) for decision in self.decisions],
            **trainer.position(),
        }
        try:
            if self.best_written != self.notes.best_step:
                write_best(self.folder, self.notes.best_step, self.best_weights)
                self.best_written = self.notes.best_step
            # The state of the trainer, without its logs.
            trainer_state = asdict(trainer.state) | {"stateful_callbacks": {}, "log_history": []}
            weights, moments = self.data.weights(), trainer.moments()
            own_state = json.dumps(trainer_state, default=str)
            write_checkpoint(self.folder, step, weights, moments, state, own_state)
        except OSError as error:
            text = f"The checkpoint of step {step} could not be written ({error}); training went on"
            self.decide("checkpoint", step, f"{text}, and earlier checkpoints are whole.")

    def go_on_from(self, place: Path) -> None:
        """Load the notes of a checkpoint, and the best weights so far."""
        state = read_state(place)
        self.notes = _RunNotes(**state.notes.model_dump())
        self.encoder.tokens_at_once = self.notes.tokens_at_once
        self.best_weights = read_best(self.folder, self.notes.best_step)
        self.best_written = self.notes.best_step
        self.begun_at = state.step
        self.stopped = state.stopped
        self.decisions = [record.decision() for record in state.decisions]
        # Draw past epochs again to count the examples they left out.
        for epoch in range(-(-self.begun_at // self.steps_per_epoch)):
            self.plan.of_epoch(epoch)
        text = f"Training resumed from the checkpoint of step {self.begun_at} of {self.n_steps}."
        self.decide("resumed", self.begun_at, text)

    def with_less_memory(self, tokens: int) -> None:
        """Record that memory ran out."""
        self.notes.tokens_at_once = tokens
        text = f"Memory ran out: from now on at most {tokens:,} tokens are encoded at once; "
        self.decide("out_of_memory", tokens, f"{text}batches and their loss stay the same.")

    def note_not_finite(self, error: LossNotFiniteError) -> None:
        """Record the step at which the loss was not finite."""
        rows = self.data.objective.examples.rows[error.places].tolist()
        self.stopped = "loss not finite"
        text = (
            f"The {error.what} of step {error.step} was not finite, where training stopped; the "
            f"weights of step {self.notes.best_step} were kept. Its batch holds {name_rows(rows)}. "
            "Try a smaller learning rate."
        )
        self.decide("loss_not_finite", error.step, text)

    def decide(self, name: str, value: Any, message: str) -> None:
        """Record a decision, and log it."""
        self.decisions.append(Decision("training", name, value, message))
        _log.warning(message)

    def show(self, loss: float) -> None:
        """Advance the progress bar."""
        shown = {"loss": f"{loss:.4f}"}
        if not math.isnan(self.notes.metric[-1]):
            shown["metric"] = f"{self.notes.metric[-1]:.4f}"
        self.bar.set_postfix(shown, refresh=False)
        self.bar.update(1)

    def report(self) -> Run:
        """Return the measurements."""
        notes = self.notes
        if self.plan.n_left_out:
            text = f"Examples were left out of an epoch {self.plan.n_left_out:,} times, because "
            self.decide("left_out", self.plan.n_left_out, f"{text}all batches held their texts.")
        if not notes.best_step:
            text = "The weights are unchanged: no validation was better than that before training."
            self.decide("unchanged", True, text)
        arrays: dict[str, Any] = {
            name: np.array(values, dtype=np.int64 if name.endswith("steps") else np.float64)
            for name, values in vars(notes).items()
            if isinstance(values, list) and name != "pending"
        }
        curves = Curves(
            **arrays,
            metric_name=self.data.objective.metric_name,
            steps_per_epoch=self.steps_per_epoch,
            n_steps_planned=self.n_steps,
            n_validation=len(self.validation),
            n_sample=len(self.sample),
        )
        share = self.steps_here / self.steps_per_epoch
        ended = [each.value for each in self.decisions if each.name == "loss_not_finite"]
        return Run(
            curves=curves,
            diagnosis=diverged_at(ended[0]) if ended else read_curves(curves),
            best_step=notes.best_step,
            n_steps=self.begun_at + self.steps_here,
            stopped=self.stopped,
            seconds=self.learned_for,
            examples_per_second=share * len(self.data.examples) / max(self.learned_for, 1e-9),
            decisions=tuple(self.decisions),
        )
