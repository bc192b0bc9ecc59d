"""How a static student was made of its teacher, and how near it came to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from embedtopics.results.inputs import Decision
from embedtopics.results.training import Change, Curves, Diagnosis

__all__ = ["StudentReport"]


@dataclass(frozen=True, eq=False)
class StudentReport:
    """How a static student was made of its teacher, and how near it came to it.

    Parameters
    ----------
    teacher : str
        Name of the encoder that was learnt from.
    dimensions : int
        Length of the student's vectors.
    explained_variance : float
        Share of the teacher's vectors, as sums of squares, that lies in so many dimensions.
    n_texts, n_general, n_validation : int
        Distinct texts of the corpus and of the general mix that were learned from, and texts of
        both that were held out.
    n_tokens, n_words, n_phrases : int
        Tokens of the vocabulary; among them whole words and phrases that were added.
    words, phrases : tuple of str
        Those, the most frequent first.
    curves : Curves
        The metric is the mean cosine of the student's and the teacher's vectors of held-out texts.
    diagnosis : Diagnosis
        What these curves say.
    agreement : Change
        That metric before (the table that training starts from) and after, on the held-out texts.
    finding : Change
        Share of the held-out texts whose own teacher vector is the nearest of all held-out ones.
    best_step, n_steps : int
        Step whose table was kept, and steps taken.
    stopped : {"finished", "no improvement"}
    seconds : mapping of str to float
        By stage: "words", "teacher", "learning".
    settings : mapping
    data : mapping
        Sources of the texts.
    decisions : tuple of Decision
    versions : mapping of str to str
    """

    teacher: str
    dimensions: int
    explained_variance: float
    n_texts: int
    n_general: int
    n_validation: int
    n_tokens: int
    n_words: int
    n_phrases: int
    words: tuple[str, ...]
    phrases: tuple[str, ...]
    curves: Curves
    diagnosis: Diagnosis
    agreement: Change
    finding: Change
    best_step: int
    n_steps: int
    stopped: str
    seconds: Mapping[str, float]
    settings: Mapping[str, Any]
    data: Mapping[str, Any]
    decisions: tuple[Decision, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def before_after(self) -> tuple[Change, ...]:
        """The table that training starts from beside the student, on the held-out texts."""
        return (self.agreement, self.finding)

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do next, the most promising first."""
        return self.diagnosis.advice
