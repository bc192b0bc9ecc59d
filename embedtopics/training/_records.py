"""The parts of a saved training report, with their types: what a file may hold, and no more."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, ConfigDict, Field, InstanceOf, ValidationError

from embedtopics._utils.records import DecisionRecord, Record, problem_of
from embedtopics.results import Decision
from embedtopics.training._rows import TABLES, Change, Evidence, frame_of
from embedtopics.training.results import Curves, Diagnosis, TrainingReport


def _of_kind(kind: str) -> Any:
    """Return a check for an array of one axis whose numbers are of a kind: "i" or "f"."""

    def check(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if values.ndim != 1 or values.dtype.kind != kind:
            name = "integers" if kind == "i" else "floating-point numbers"
            raise ValueError(f"it must be a list of {name}")
        return values

    return AfterValidator(check)


Count = Annotated[int, Field(ge=0, lt=2**63)]
Steps = Annotated[np.ndarray, _of_kind("i")]
Numbers = Annotated[np.ndarray, _of_kind("f")]


class _PartRecord(Record):
    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True
    )


class ChangeRecord(_PartRecord):
    """The fields of a `Change`."""

    task: str
    metric: str
    before: float
    after: float
    difference: float
    low: float
    high: float
    n: Count
    verdict: str
    n_test_evaluations: Count = 0
    note: str = ""


class EvidenceRecord(_PartRecord):
    """The fields of an `Evidence`."""

    name: str
    value: float
    low: float
    high: float
    threshold: float
    says: str


class CurvesRecord(_PartRecord):
    """The fields of `Curves`."""

    training_steps: Steps
    training_loss: Numbers
    validation_steps: Steps
    validation_loss: Numbers
    sample_loss: Numbers
    metric: Numbers
    metric_name: str
    steps_per_epoch: int
    n_steps_planned: int
    n_validation: int
    n_sample: int


class DiagnosisRecord(_PartRecord):
    """The fields of a `Diagnosis`, whose table is a tuple of rows in a file."""

    verdict: str
    confidence: float
    shares: dict[str, float]
    evidence: tuple[InstanceOf[Evidence], ...]
    advice: tuple[str, ...]


class ReportRecord(_PartRecord):
    """The fields of a `TrainingReport`, whose table is a tuple of rows in a file."""

    objective: str
    base: str
    folder: str
    settings: dict[str, Any]
    data: dict[Any, Any]
    curves: InstanceOf[Curves]
    diagnosis: InstanceOf[Diagnosis]
    before_after: tuple[InstanceOf[Change], ...]
    best_step: int
    n_steps: int
    stopped: str
    seconds: float
    examples_per_second: float
    decisions: tuple[InstanceOf[Decision], ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)


PARTS: dict[str, tuple[type[Record], type[Any]]] = {
    "Change": (ChangeRecord, Change),
    "Curves": (CurvesRecord, Curves),
    "Decision": (DecisionRecord, Decision),
    "Diagnosis": (DiagnosisRecord, Diagnosis),
    "Evidence": (EvidenceRecord, Evidence),
    "TrainingReport": (ReportRecord, TrainingReport),
}
"""Record and class of each part, by the name in the file."""


def make_part(name: Any, fields: Any) -> Any:
    """Make a part of a report of fields whose types are checked; a ValueError names the field."""
    if not isinstance(name, str) or name not in PARTS:
        raise ValueError("it holds a record of another kind")
    record, make = PARTS[name]
    try:
        record.model_validate(fields)
    except ValidationError as error:
        raise ValueError(f"{name}.{problem_of(error)}") from None
    for table in TABLES.keys() & fields.keys():
        if make in (Diagnosis, TrainingReport):
            fields[table] = frame_of(fields[table], TABLES[table])
    return make(**fields)
