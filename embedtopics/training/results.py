"""Results of training: learning curves, their diagnosis, and changes of the encoder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.display import Displayed, html_table
from embedtopics.errors import InputError
from embedtopics.protocols import Encoder, Float64Array, Int64Array
from embedtopics.results import Decision

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Curves", "Diagnosis", "ExampleOverlap", "TrainingReport"]

VERDICTS = (
    "just right", "could learn more", "learns nothing", "chaotic", "overlearning", "uncertain",
)  # fmt: skip
"""Verdicts on learning curves."""


@dataclass(frozen=True, eq=False, repr=False)
class Curves(Displayed):
    """Loss and metric along a training run.

    Parameters
    ----------
    training_steps : int64 ndarray of shape (n_training,)
        Optimizer steps at which the training loss was noted, ascending, from 1.
    training_loss : float64 ndarray of shape (n_training,)
        Mean over the batches since the last note, dropout included.
    validation_steps : int64 ndarray of shape (n_validations,)
        Steps after which validation took place, ascending; 0 is before training.
    validation_loss, sample_loss : float64 ndarray of shape (n_validations,)
        Without dropout, over all validation examples, and over a fixed sample of the training
        examples; NaN if it was not measured.
    metric : float64 ndarray of shape (n_validations,)
        On the validation examples; higher is better. NaN if there is none.
    metric_name : str
        Such as "Spearman"; empty where there is none.
    steps_per_epoch, n_steps_planned : int
        The learning rate reaches zero at the last planned step.
    n_validation, n_sample : int
        Validation examples, and training examples in the sample.
    """

    training_steps: Int64Array
    training_loss: Float64Array
    validation_steps: Int64Array
    validation_loss: Float64Array
    sample_loss: Float64Array
    metric: Float64Array
    metric_name: str
    steps_per_epoch: int
    n_steps_planned: int
    n_validation: int
    n_sample: int

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each step with a note; NaN if a figure was not noted."""
        import pandas as pd

        training = pd.DataFrame({"step": self.training_steps, "training_loss": self.training_loss})
        names = ("validation_loss", "sample_loss", "metric")
        measured = {name: getattr(self, name) for name in names}
        validation = pd.DataFrame({"step": self.validation_steps, **measured})
        table = training.merge(validation, on="step", how="outer", sort=True)
        table.insert(1, "epoch", table["step"] / max(1, self.steps_per_epoch))
        return table.reset_index(drop=True)

    def _summary(self) -> str:
        n = len(self.validation_steps)
        lowest = f"{min(self.validation_loss.tolist()):.3g}" if n else "none"
        return f"{self.n_steps_planned:,} steps, {n} validations, lowest loss {lowest}"


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Displayed):
    """The verdict on learning curves.

    Parameters
    ----------
    verdict : str
        One of `VERDICTS`.
    confidence : float
        Share of the curves with resampled noise that have the verdict; the largest share of any
        verdict if the verdict is "uncertain".
    shares : mapping of str to float
        That share for every verdict.
    evidence : DataFrame
        A row for each figure of the curves: name (a stable key, such as "gap" or "late_slope"),
        value, low, high (its interval over resampled noise), threshold (what it was compared with;
        NaN if it was not) and says (the finding in one sentence).
    advice : tuple of str
        What to do next, the most promising first.
    """

    verdict: str
    confidence: float
    shares: Mapping[str, float]
    evidence: pd.DataFrame
    advice: tuple[str, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return the evidence."""
        return self.evidence

    def _summary(self) -> str:
        return f"{self.verdict}, confidence {self.confidence:.0%}, {len(self.evidence)} findings"


@dataclass(frozen=True, eq=False, repr=False)
class TrainingReport(Displayed):
    """A training run from its data to its effect.

    Parameters
    ----------
    objective, base : str
        Objective, such as "nli: ranking", and the encoder that training started from.
    folder : str
        Folder of the trained encoder; see `encoder`.
    settings, versions : mapping
    data : mapping
        Sizes, sources and overlaps of the training and validation examples.
    curves, diagnosis : Curves, Diagnosis
    before_after : DataFrame
        A row for each set of examples and metric: task (name of the examples, such as "test"),
        metric, before, after, difference, low, high (95 % interval of the difference, the same
        examples resampled for both encoders), n (examples), verdict, n_test_evaluations and note.
        The verdict is "better", "worse" or "no difference shown"; it is "descriptive" for figures
        that are neither good nor bad, such as the share of neighbours kept. n_test_evaluations
        counts how often runs into the folder were scored on these examples, including this run; it
        is 0 for a corpus. No rows if nothing was compared.
    best_step, n_steps : int
        Step whose weights were kept, and steps taken.
    stopped : {"finished", "no improvement", "loss not finite"}
    seconds, examples_per_second : float
        Time of training, without validation; of an interrupted run, since it was resumed.
    decisions : tuple of Decision

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     et.training.TrainingReport.load(folder)
    Traceback (most recent call last):
    embedtopics.errors.InputError: folder must be one with the report of a training run; got ...
    """

    objective: str
    base: str
    folder: str
    settings: Mapping[str, Any]
    data: Mapping[str, Any]
    curves: Curves
    diagnosis: Diagnosis
    before_after: pd.DataFrame
    best_step: int
    n_steps: int
    stopped: str
    seconds: float
    examples_per_second: float
    decisions: tuple[Decision, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> TrainingReport:
        """Load the report of a training run.

        Parameters
        ----------
        folder : path
            Folder of the trained encoder.

        Returns
        -------
        TrainingReport
            With the values that were written.

        Raises
        ------
        InputError
            If there is no report.
        CorruptFileError
            If it is damaged, or written by a newer version.
        """
        from embedtopics.training._report import read_report

        return read_report(Path(folder))

    @property
    def encoder(self) -> Encoder:
        """The trained encoder, loaded from its folder."""
        from embedtopics.encoders._registry import resolve_encoder

        # A report may come from anybody: a name on the hub is no folder of a training run.
        if not os.path.isdir(os.path.expanduser(self.folder)):
            expected = "the folder of the trained encoder, which is not there"
            raise InputError("folder", expected, self.folder, "load the encoder by its path")
        return resolve_encoder(self.folder)

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do next, the most promising first."""
        return self.diagnosis.advice

    def to_frame(self) -> pd.DataFrame:
        """Return `before_after`."""
        return self.before_after

    def _summary(self) -> str:
        return (
            f"{'' if self.best_step else 'UNCHANGED WEIGHTS, '}"
            f"{self.objective!r} from {self.base!r}, {self.n_steps:,} steps, "
            f"{self.diagnosis.verdict}, step {self.best_step:,} kept"
        )

    def _repr_html_(self) -> str:
        names = ["task", "metric", "before", "after", "difference", "low", "high", "n", "verdict"]
        return html_table(self.to_frame()[names], repr(self))


@dataclass(frozen=True, eq=False, repr=False)
class ExampleOverlap(Displayed):
    """Overlap of a test set with a training set, without regard to case and white space.

    Parameters
    ----------
    n_train, n_test : int
        Examples.
    n_shared_texts : int
        Distinct texts that occur in both sets.
    repeated, known, touched : int64 ndarray of shape (n,)
        Positions of the test examples that occur in the training set, that have all their texts
        there, and that have at least one text there.
    """

    n_train: int
    n_test: int
    n_shared_texts: int
    repeated: Int64Array
    known: Int64Array
    touched: Int64Array

    @property
    def summary(self) -> str:
        """The figures in one sentence."""
        n = max(1, self.n_test)
        return (
            f"Of {self.n_test:,} test examples, {len(self.repeated):,} "
            f"({len(self.repeated) / n:.1%}) occur in the training set, {len(self.known):,} "
            f"({len(self.known) / n:.1%}) have all their texts there and {len(self.touched):,} "
            f"({len(self.touched) / n:.1%}) at least one."
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each test example: repeated, known and touched."""
        import pandas as pd

        columns = {}
        for name in ("repeated", "known", "touched"):
            marks = np.zeros(self.n_test, dtype=bool)
            marks[getattr(self, name)] = True
            columns[name] = marks
        return pd.DataFrame(columns)

    def _summary(self) -> str:
        return (
            f"{self.n_test:,} test examples, {len(self.repeated):,} repeated, "
            f"{len(self.known):,} known, {len(self.touched):,} touched"
        )
