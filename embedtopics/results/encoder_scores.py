"""What an encoder scores on tasks with known answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from embedtopics.results.inputs import Decision

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["EncoderScores", "Estimate", "TaskScore"]


@dataclass(frozen=True, eq=False)
class Estimate:
    """A figure with its bootstrap interval.

    Parameters
    ----------
    value : float
    low, high : float
        Percentile interval; NaN where nothing was drawn anew.
    n : int
        Examples that were looked at.
    drawn : float64 ndarray of shape (n_resamples,)
        The figure on examples drawn with replacement; NaN where it is not defined there. From one
        seed, the same examples are drawn for every encoder, so that the interval of a difference
        is that of the differences of these.
    """

    value: float
    low: float
    high: float
    n: int
    drawn: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TaskScore:
    """One figure of one encoder on one set of examples.

    Parameters
    ----------
    task : str
        Such as "stsb".
    file : str
        File or set within the task, or "mean of sets".
    metric : str
        Such as "spearman_cosine".
    estimate : Estimate
    """

    task: str
    file: str
    metric: str
    estimate: Estimate


@dataclass(frozen=True, eq=False)
class EncoderScores:
    """What an encoder scores on tasks with known answers, and what that cost.

    Parameters
    ----------
    name : str
        Of the encoder.
    scores : tuple of TaskScore
        In the order of the tasks.
    n_texts : int
        Distinct texts that were encoded, each once.
    seconds : float
        To encode them.
    fingerprints : mapping of (str, str) to str
        SHA-256 of the examples of each task and file, whatever their order.
    decisions : tuple of Decision
        What was left out or chosen on the way.
    settings : mapping
        Split, similarity, seed and number of resamples.
    """

    name: str
    scores: tuple[TaskScore, ...]
    n_texts: int
    seconds: float
    fingerprints: Mapping[tuple[str, str], str] = field(default_factory=dict)
    decisions: tuple[Decision, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def texts_per_second(self) -> float:
        """Distinct texts encoded in a second; NaN where the clock did not move."""
        return self.n_texts / self.seconds if self.seconds > 0 else float("nan")

    def to_frame(self) -> pd.DataFrame:
        """Return the scores as a table.

        Returns
        -------
        pandas.DataFrame
            Columns task, file, metric, value, low, high (a 95 % interval) and n.
        """
        import pandas as pd

        rows = [
            (s.task, s.file, s.metric, s.estimate.value, s.estimate.low, s.estimate.high,
             s.estimate.n)
            for s in self.scores
        ]  # fmt: skip
        return pd.DataFrame(
            rows, columns=["task", "file", "metric", "value", "low", "high", "n"]
        ).astype({"value": float, "low": float, "high": float, "n": int})
