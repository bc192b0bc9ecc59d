"""The records of a training run on disk: what its JSON files may hold, and no more."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, model_validator

from embedtopics._utils.records import DecisionRecord, ForeignRecord, Record

Count = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""A learning rate."""


class RunRecord(Record):
    """Content of ``run.json``: a run with other values is another run."""

    encoder: str
    objective: str | dict[str, JsonValue]
    training_examples: str = Field(alias="training examples")
    validation_examples: str | None = Field(default=None, alias="validation examples")
    settings: dict[str, JsonValue]
    keep_geometry: bool | None = None

    def values(self) -> dict[str, Any]:
        """Return the values that the file has, by their names in it."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class NotesRecord(Record):
    """The curves of a run so far; a loss may be NaN or infinite."""

    training_steps: list[Count]
    training_loss: list[float]
    validation_steps: Annotated[list[Count], Field(min_length=1)]
    validation_loss: list[float]
    sample_loss: list[float]
    metric: list[float]
    pending: list[float]
    best_step: Count
    best_figures: tuple[float, float]
    n_without_gain: Count
    tokens_at_once: Annotated[int, Field(ge=1)]

    @model_validator(mode="after")
    def _check_curves(self) -> Self:
        """Refuse curves whose figures do not belong to their steps."""
        _check_curve(self, "training_steps", ("training_loss",))
        _check_curve(self, "validation_steps", ("validation_loss", "sample_loss", "metric"))
        if self.best_step not in self.validation_steps:
            raise ValueError(f"best_step must be a step of validation; got {self.best_step}")
        return self


def _check_curve(notes: NotesRecord, steps: str, figures: tuple[str, ...]) -> None:
    """Refuse steps that do not rise, and figures that are not one for each step."""
    noted = getattr(notes, steps)
    if any(later <= earlier for earlier, later in pairwise(noted)):
        raise ValueError(f"{steps} must rise")
    for name in figures:
        n = len(getattr(notes, name))
        if n != len(noted):
            raise ValueError(f"{name} must have a figure for each of {len(noted)} steps; got {n}")


class ScheduleRecord(Record):
    """The state of a schedule of learning rates, by the names of torch."""

    base_lrs: list[Rate]
    last_epoch: Count
    step_count: Count = Field(alias="_step_count")
    last_lr: list[Rate] = Field(alias="_last_lr")


class StateRecord(Record):
    """Content of ``state.json``: where a run is after a step."""

    notes: NotesRecord
    step: Annotated[int, Field(ge=1)]
    stopped: Literal["finished", "no improvement"]
    best_step: Count
    decisions: list[DecisionRecord]
    learning_rates: Annotated[list[Rate], Field(min_length=1)]
    schedule: ScheduleRecord

    @model_validator(mode="after")
    def _check_steps(self) -> Self:
        """Refuse notes of steps that were not taken, and rates without a group of weights."""
        if self.best_step != self.notes.best_step:
            raise ValueError(f"best_step must be that of the notes; got {self.best_step}")
        last = max([*self.notes.training_steps, *self.notes.validation_steps])
        if last > self.step:
            raise ValueError(
                f"step must be the last with a note, {last}, or later; got {self.step}"
            )
        for name in ("base_lrs", "last_lr"):
            if len(getattr(self.schedule, name)) != len(self.learning_rates):
                raise ValueError("learning_rates must be as many as those of the schedule")
        return self


class TrainerStateRecord(ForeignRecord):
    """What the trainer reads in ``trainer_state.json``; its other entries have no effect."""

    global_step: Count
    max_steps: Count
    num_train_epochs: Count
    train_batch_size: Count | None = None
    epoch: float | None = None
    num_input_tokens_seen: Count = 0
    total_flos: float = 0.0
    log_history: Annotated[list[Any], Field(max_length=0)]
    stateful_callbacks: Annotated[dict[str, Any], Field(max_length=0)]
