"""A training run from its first validation to the weights that are kept."""

from __future__ import annotations

import json
import logging
import math
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from embedtopics._progress import progress_bar
from embedtopics.corpus.tables import name_rows
from embedtopics.errors import InputError
from embedtopics.results import Curves, Decision
from embedtopics.training.engine.batching import BatchPlan
from embedtopics.training.engine.checkpoints import (
    claim_folder,
    latest_checkpoint,
    read_best,
    read_state,
    write_best,
    write_checkpoint,
)
from embedtopics.training.engine.encoding import BatchEncoder
from embedtopics.training.engine.lesson import Lesson, TokenizedExamples
from embedtopics.training.engine.machine import device_and_precision, tokens_at_once
from embedtopics.training.engine.measuring import Measured, measure
from embedtopics.training.engine.signals import EXIT_CODE, Request, noticed_termination
from embedtopics.training.engine.trainer import (
    LossNotFiniteError,
    Teacher,
    arguments_for,
    quiet_and_private,
)
from embedtopics.training.settings import TrainingSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Run", "train"]

_log = logging.getLogger(__name__)

NOTES_OF_THE_LOSS = 200
"""Notes of the training loss over a run; each is the mean over the steps since the last."""

LEAST_VALIDATIONS = 8
"""Validations of a run, where it has as many steps: from fewer, curves cannot be read."""


@dataclass(frozen=True, eq=False)
class Run:
    """What a run measured; the lesson's model has the weights that are kept.

    Parameters
    ----------
    curves : Curves
    best_step, n_steps : int
    stopped : str
    seconds : float
        Spent learning, without validation and checkpoints; of this process alone.
    examples_per_second : float
    decisions : tuple of Decision
    """

    curves: Curves
    best_step: int
    n_steps: int
    stopped: str
    seconds: float
    examples_per_second: float
    decisions: tuple[Decision, ...]


@dataclass
class _Notes:
    """What is written down on the way, and into checkpoints."""

    training_steps: list[int] = field(default_factory=list)
    training_loss: list[float] = field(default_factory=list)
    validation_steps: list[int] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    sample_loss: list[float] = field(default_factory=list)
    metric: list[float] = field(default_factory=list)
    pending: list[float] = field(default_factory=list)
    best_step: int = 0
    best_figure: float = -math.inf
    n_without_gain: int = 0
    tokens_at_once: int = 0


def train(
    lesson: Lesson,
    validation: TokenizedExamples,
    settings: TrainingSettings,
    folder: Path,
    about: Mapping[str, Any],
    resume: bool = True,
) -> Run:
    """Train a lesson's model, and leave it with the best weights that validation saw.

    Parameters
    ----------
    lesson : Lesson
    validation : TokenizedExamples
    settings : TrainingSettings
    folder : Path
        For checkpoints.
    about : mapping
        What the weights depend on, in what JSON can hold: a checkpoint of a run with other
        values is not continued.
    resume : bool
        Whether to go on from a checkpoint of the same run.

    Returns
    -------
    Run

    Raises
    ------
    InputError
        If the folder cannot be used, or holds the checkpoints of another run.
    SystemExit
        With code 143, after a checkpoint, when the process was asked to end.
    """
    claim_folder(folder, about, resume)
    with quiet_and_private(), noticed_termination() as request:
        return _Trained(lesson, validation, settings, folder, request).run()


class _Trained:
    """The state of a run: what a step, a validation and a checkpoint share."""

    def __init__(
        self, lesson: Lesson, validation: TokenizedExamples, settings: TrainingSettings,
        folder: Path, request: Request,
    ) -> None:  # fmt: skip
        self.lesson, self.settings, self.folder, self.request = lesson, settings, folder, request
        self.validation = validation
        self.device, self.precision = device_and_precision(settings)
        lesson.model.to(self.device)
        lesson.loss.to(self.device)
        keys = lesson.examples.keys if lesson.objective.in_batch_negatives else None
        self.plan = BatchPlan(lesson.examples.lengths, settings.batch_size, settings.seed, keys)
        self.steps_per_epoch = -(-len(self.plan) // settings.accumulation)
        self.n_steps = max(1, round(settings.epochs * self.steps_per_epoch))
        self.notes = _Notes(tokens_at_once=tokens_at_once(lesson, settings, self.device))
        self.encoder = BatchEncoder(lesson.forward, self.notes.tokens_at_once)
        every = self.steps_per_epoch / settings.validations_per_epoch
        n = min(self.n_steps, max(LEAST_VALIDATIONS, round(self.n_steps / every)))
        self.validated_at = {round(self.n_steps * (i + 1) / n) for i in range(n)}
        self.noted_every = max(1, self.n_steps // NOTES_OF_THE_LOSS)
        rng = np.random.default_rng((settings.seed, 7))
        size = min(settings.sample_size, len(lesson.examples))
        self.sample = _taken(
            lesson.examples, np.sort(rng.choice(len(lesson.examples), size, replace=False))
        )
        self.decisions: list[Decision] = []
        self.best_weights: dict[str, torch.Tensor] = {}
        self.best_written = -1
        self.stopped = "finished"
        self.learned_for = 0.0
        self.begun_at = self.steps_here = 0
        self.clock = 0.0
        self.bar: Any = None

    def run(self) -> Run:
        begun, damaged = latest_checkpoint(self.folder)
        if begun is not None:
            self.go_on_from(begun)
        if damaged:
            self.decide(
                "damaged_checkpoint", damaged,
                f"Of the checkpoints in {self.folder}, {', '.join(damaged)} is damaged, and what "
                "was learned after the one before is learned anew.",
            )  # fmt: skip
        # The process may have ended after the last step, before all was written.
        if self.begun_at < self.n_steps and self.stopped == "finished":
            self.learn(begun)
        if self.request.came:
            raise SystemExit(EXIT_CODE)
        self.lesson.load_weights(self.best_weights)
        return self.report()

    def learn(self, begun: Path | None) -> None:
        """Take the steps that are left."""
        arguments = arguments_for(
            self.settings, self.n_steps, self.precision, self.device, self.folder
        )
        teacher = Teacher(
            self.lesson, self.plan, self.encoder, arguments, self.settings.seed,
            self.before_steps, self.after_step, self.with_less_memory,
        )  # fmt: skip
        with progress_bar(
            total=self.n_steps, unit="step", description="Training",
            show=self.settings.show_progress,
        ) as self.bar:  # fmt: skip
            self.bar.update(self.begun_at)
            try:
                teacher.train(resume_from_checkpoint=None if begun is None else str(begun))
            except LossNotFiniteError as error:
                self.note_not_finite(error)

    def before_steps(self) -> None:
        """Validate what training starts from, with the numbers that it is done with."""
        if not self.begun_at:
            self.validate(0)
        self.clock = time.perf_counter()

    def after_step(self, teacher: Teacher, loss: float) -> bool:
        """Note a step; validate and write a checkpoint where it is time; tell whether to go on."""
        self.learned_for += time.perf_counter() - self.clock
        self.steps_here += 1
        step, notes = teacher.state.global_step, self.notes
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
        if step in self.validated_at or self.request.came:
            self.write_checkpoint(teacher, step)
        self.show(loss)
        self.clock = time.perf_counter()
        return goes_on and not self.request.came

    def validate(self, step: int) -> None:
        """Measure the model on held-out examples, and keep its weights if they are best."""
        notes, size = self.notes, self.settings.batch_size
        found = measure(self.lesson, self.encoder, self.validation, size)
        sample = math.nan
        if len(self.sample):
            sample = measure(self.lesson, self.encoder, self.sample, size, with_metric=False).loss
        notes.validation_steps.append(step)
        notes.validation_loss.append(found.loss)
        notes.sample_loss.append(sample)
        notes.metric.append(found.metric)
        if step == 0 and not math.isfinite(found.loss):
            raise InputError(
                "expected an encoder with a finite loss on the validation examples, got "
                f"{found.loss} before anything was learned; choose another encoder or precision"
            )
        figure = self.figure(found)
        if figure > notes.best_figure:
            notes.best_figure, notes.best_step, notes.n_without_gain = figure, step, 0
            self.best_weights = {
                name: tensor.detach().clone() for name, tensor in self.lesson.weights().items()
            }
        else:
            notes.n_without_gain += 1

    def figure(self, found: Measured) -> float:
        """Return what makes weights the best: the metric, or else the loss, as a gain.

        One of them for the whole run: where the metric is no number later on, vectors collapsed.
        """
        has_metric = not math.isnan(self.notes.metric[0])
        figure = found.metric if has_metric else -found.loss
        return figure if math.isfinite(figure) else -math.inf

    def write_checkpoint(self, teacher: Teacher, step: int) -> None:
        """Write a checkpoint; a disk that is full costs the checkpoint, not the run."""
        state = {
            "notes": asdict(self.notes),
            "step": step,
            "stopped": self.stopped,
            "best_step": self.notes.best_step,
            "decisions": [asdict(decision) for decision in self.decisions],
            **teacher.position(),
        }  # fmt: skip
        try:
            if self.best_written != self.notes.best_step:
                write_best(self.folder, self.notes.best_step, self.best_weights)
                self.best_written = self.notes.best_step
            write_checkpoint(
                self.folder, step, self.lesson.weights(), teacher.moments(), state,
                _trainer_state(teacher),
            )  # fmt: skip
        except OSError as error:
            self.decide(
                "checkpoint", step,
                f"The checkpoint of step {step} could not be written ({error}); training went on, "
                "and an earlier checkpoint, if there is one, is whole.",
            )  # fmt: skip

    def go_on_from(self, place: Path) -> None:
        """Take up the notes of a checkpoint, and the weights that were best until then."""
        state = read_state(place)
        self.notes = _Notes(**state["notes"])
        self.encoder.tokens_at_once = self.notes.tokens_at_once
        self.best_weights = read_best(self.folder, self.notes.best_step)
        self.best_written = self.notes.best_step
        self.begun_at = int(state["step"])
        self.stopped = state["stopped"]
        self.decisions = [Decision(**decision) for decision in state["decisions"]]
        # Drawn again for what they leave out.
        for epoch in range(-(-self.begun_at // self.steps_per_epoch)):
            self.plan.of_epoch(epoch)
        self.decide(
            "resumed", self.begun_at,
            f"Training went on from the checkpoint of step {self.begun_at} of {self.n_steps}.",
        )  # fmt: skip

    def with_less_memory(self, tokens: int) -> None:
        """Note that memory ran out."""
        self.notes.tokens_at_once = tokens
        self.decide(
            "out_of_memory", tokens,
            f"Memory ran out: from now on at most {tokens:,} tokens are encoded at once. The "
            "batches and their loss stay the same; a step takes longer.",
        )  # fmt: skip

    def note_not_finite(self, error: LossNotFiniteError) -> None:
        """Note where the loss stopped being a number."""
        rows = self.lesson.objective.examples.rows[error.places].tolist()
        self.stopped = "loss not finite"
        self.decide(
            "loss_not_finite", error.step,
            f"The {error.what} of step {error.step} was not a finite number, and training stopped "
            f"there; the weights of step {self.notes.best_step} were kept. Its batch holds "
            f"{name_rows(rows)}. Try a smaller learning rate.",
        )  # fmt: skip

    def decide(self, name: str, value: Any, message: str) -> None:
        """Note something that the user did not ask for, and log it."""
        self.decisions.append(Decision("training", name, value, message))
        _log.warning(message)

    def show(self, loss: float) -> None:
        """Move the bar on."""
        metric = self.notes.metric[-1]
        found = {"loss": f"{loss:.4f}"} | (
            {} if math.isnan(metric) else {"metric": f"{metric:.4f}"}
        )
        self.bar.set_postfix(found, refresh=False)
        self.bar.update(1)

    def report(self) -> Run:
        """Return what was measured."""
        notes = self.notes
        if self.plan.n_left_out:
            self.decide(
                "left_out", self.plan.n_left_out,
                f"{self.plan.n_left_out:,} times an example was left out of an epoch, because all "
                "of its batches held one of its texts already.",
            )  # fmt: skip
        curves = Curves(
            training_steps=np.array(notes.training_steps, dtype=np.int64),
            training_loss=np.array(notes.training_loss, dtype=np.float64),
            validation_steps=np.array(notes.validation_steps, dtype=np.int64),
            validation_loss=np.array(notes.validation_loss, dtype=np.float64),
            sample_loss=np.array(notes.sample_loss, dtype=np.float64),
            metric=np.array(notes.metric, dtype=np.float64),
            metric_name=self.lesson.objective.metric_name,
            steps_per_epoch=self.steps_per_epoch,
            n_steps_planned=self.n_steps,
            n_validation=len(self.validation),
            n_sample=len(self.sample),
        )
        n_steps = self.begun_at + self.steps_here
        share = self.steps_here / self.steps_per_epoch
        rate = share * len(self.lesson.examples) / max(self.learned_for, 1e-9)
        return Run(
            curves, notes.best_step, n_steps, self.stopped, self.learned_for, rate,
            tuple(self.decisions),
        )  # fmt: skip


def _trainer_state(teacher: Teacher) -> str:
    """Return what the trainer needs to know of itself; its logs lie in the notes."""
    state = asdict(teacher.state) | {"stateful_callbacks": {}, "log_history": []}
    return json.dumps(state, default=str)


def _taken(examples: TokenizedExamples, places: Any) -> TokenizedExamples:
    return TokenizedExamples(
        columns=tuple([column[place] for place in places] for column in examples.columns),
        labels=None if examples.labels is None else examples.labels[places],
        lengths=examples.lengths[places],
        keys=[examples.keys[place] for place in places],
    )
