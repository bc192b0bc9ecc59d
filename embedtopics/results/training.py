"""What a training run measured, what its curves say, and what it did to the encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import Int64Array
from embedtopics.results.inputs import Decision

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "VERDICTS",
    "Change",
    "Curves",
    "Diagnosis",
    "Evidence",
    "LabelCurve",
    "TrainingReport",
]

Float64Array = npt.NDArray[np.float64]

VERDICTS = (
    "just right", "could learn more", "learns nothing", "chaotic", "overlearning", "uncertain",
)  # fmt: skip
"""What can be said of learning curves."""


@dataclass(frozen=True, eq=False)
class Curves:
    """Loss and metric along a training run.

    Parameters
    ----------
    training_steps : int64 ndarray of shape (n_training,)
        Optimiser steps at which the training loss was noted, ascending, from 1.
    training_loss : float64 ndarray of shape (n_training,)
        Mean over the batches since the last note, as they were learned from, dropout included.
    validation_steps : int64 ndarray of shape (n_validations,)
        Steps after which the validation examples were looked at, ascending; 0 is before training.
    validation_loss : float64 ndarray of shape (n_validations,)
        Without dropout, over all validation examples.
    sample_loss : float64 ndarray of shape (n_validations,)
        The same loss, without dropout, over a fixed sample of the training examples: what the
        validation loss can be compared with. NaN where it was not measured.
    metric : float64 ndarray of shape (n_validations,)
        On the validation examples; higher is better. NaN where there is none.
    metric_name : str
        Such as "Spearman correlation"; empty where there is none.
    steps_per_epoch : int
    n_steps_planned : int
        Where the learning rate reaches zero.
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
        """Return all notes as one table.

        Returns
        -------
        pandas.DataFrame
            Columns step, epoch, training_loss, validation_loss, sample_loss and metric, a row for
            each step with a note; NaN where a figure was not noted.
        """
        import pandas as pd

        training = pd.DataFrame({"step": self.training_steps, "training_loss": self.training_loss})
        validation = pd.DataFrame(
            {"step": self.validation_steps, "validation_loss": self.validation_loss,
             "sample_loss": self.sample_loss, "metric": self.metric}
        )  # fmt: skip
        table = training.merge(validation, on="step", how="outer", sort=True)
        table.insert(1, "epoch", table["step"] / max(1, self.steps_per_epoch))
        return table.reset_index(drop=True)


@dataclass(frozen=True)
class Evidence:
    """One thing that was measured on the curves.

    Parameters
    ----------
    name : str
        Short stable key, such as "gap" or "late_slope".
    value, low, high : float
        The figure and its interval over noise drawn anew.
    threshold : float
        What it was compared with; NaN where it was not.
    says : str
        The finding in one sentence, for people.
    """

    name: str
    value: float
    low: float
    high: float
    threshold: float
    says: str


@dataclass(frozen=True)
class Diagnosis:
    """What learning curves say of the run.

    Parameters
    ----------
    verdict : str
        One of `VERDICTS`.
    confidence : float
        Share of the curves drawn anew with their noise that have the verdict; where none has
        half of them and the verdict is "uncertain", the largest share of any.
    shares : mapping of str to float
        That share for every verdict.
    evidence : tuple of Evidence
    advice : tuple of str
        What to do next, the most promising first.
    """

    verdict: str
    confidence: float
    shares: Mapping[str, float]
    evidence: tuple[Evidence, ...]
    advice: tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """One figure of the tuned encoder beside that of the encoder it came from.

    Parameters
    ----------
    task : str
        What was measured on, such as "test" or "stsb".
    metric : str
    before, after : float
    difference : float
        ``after - before``.
    low, high : float
        95 % interval of the difference, the same examples drawn anew for both encoders.
    n : int
        Examples.
    verdict : {"better", "worse", "no difference shown"}
        A difference inside its interval is none. For figures that are neither good nor bad, such
        as the share of neighbours kept, "descriptive".
    n_looks : int
        How often these examples were scored so far, this time included; 0 where that is not
        counted. A part of them, or they with others, has a count of its own.
    note : str
    """

    task: str
    metric: str
    before: float
    after: float
    difference: float
    low: float
    high: float
    n: int
    verdict: str
    n_looks: int = 0
    note: str = ""


@dataclass(frozen=True, eq=False)
class LabelCurve:
    """How the metric grows with the number of labelled examples.

    Parameters
    ----------
    sizes : int64 ndarray of shape (n_fits,)
        Training examples of each fit; subsets of one seed are nested.
    seeds : int64 ndarray of shape (n_fits,)
    metric : float64 ndarray of shape (n_fits,)
    metric_name : str
    ceiling, scale, exponent : float
        Of the power law ``ceiling - scale * size ** -exponent``.
    forecast_sizes : int64 ndarray of shape (n_forecasts,)
    forecast, low, high : float64 ndarray of shape (n_forecasts,)
        The curve at those sizes, with its 95 % interval.
    gains : tuple of str
        Such as "500 more pairs: +1.2 ± 0.6".
    decisions : tuple of Decision
    """

    sizes: Int64Array
    seeds: Int64Array
    metric: Float64Array
    metric_name: str
    ceiling: float
    scale: float
    exponent: float
    forecast_sizes: Int64Array
    forecast: Float64Array
    low: Float64Array
    high: Float64Array
    gains: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()


@dataclass(frozen=True, eq=False)
class TrainingReport:
    """A training run from its data to its effect.

    Parameters
    ----------
    objective : str
        What was learned, such as "nli: ranking".
    base : str
        Name of the encoder that training started from.
    folder : str
        Where the tuned encoder lies.
    settings : mapping
        Of the run.
    data : mapping
        Sizes, sources and overlaps of the training and validation examples.
    curves : Curves
    diagnosis : Diagnosis
    before_after : tuple of Change
        Empty where nothing was compared.
    best_step : int
        Step whose weights were kept.
    n_steps : int
        Steps taken.
    stopped : str
        Why training ended: "finished", "no improvement" or "loss not finite".
    seconds : float
        Of training, without validation; where it was interrupted, since it was gone on with.
    examples_per_second : float
    decisions : tuple of Decision
    versions : mapping of str to str
    """

    objective: str
    base: str
    folder: str
    settings: Mapping[str, Any]
    data: Mapping[str, Any]
    curves: Curves
    diagnosis: Diagnosis
    before_after: tuple[Change, ...]
    best_step: int
    n_steps: int
    stopped: str
    seconds: float
    examples_per_second: float
    decisions: tuple[Decision, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do next, the most promising first."""
        return self.diagnosis.advice
