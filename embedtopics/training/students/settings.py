"""How a static student is made: the settings, with defaults that were chosen by measurement."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, TypedDict

from embedtopics._checks import checked_count, checked_level, is_number
from embedtopics.errors import InputError

__all__ = ["StudentOptions", "StudentSettings", "student_settings"]


class StudentOptions(TypedDict, total=False):
    """Keywords of `fit_static_student`; `StudentSettings` says what they mean."""

    dimensions: int
    max_words: int
    max_phrases: int
    min_count: int
    min_phrase_count: int
    min_npmi: float
    sif_coefficient: float
    epochs: float
    min_steps: int
    batch_size: int
    learning_rate: float
    contrast: float
    temperature: float
    validation_share: float
    validations_per_epoch: float
    patience: int | None
    max_length: int | None
    seed: int


@dataclass(frozen=True)
class StudentSettings:
    """How a static student is made.

    Parameters
    ----------
    dimensions : int
        Length of the student's vectors, at most that of the teacher's: the teacher's vectors are
        turned to their principal axes and cut.
    max_words, max_phrases : int
        Most whole words and phrases that get a vector of their own.
    min_count, min_phrase_count : int
        Fewest occurrences of a word, and of a phrase, that is added.
    min_npmi : float
        Least normalised pointwise mutual information of a phrase, from -1 to 1.
    sif_coefficient : float
        The a of the weights a / (a + p(token)) that training starts from (Arora, Liang and Ma
        2017).
    epochs : float
        How often each text is learned from, at most.
    min_steps : int
        Fewest steps that are planned, whatever the epochs: small corpora are repeated.
    batch_size : int
        Texts of a step, and so the vectors among which a text has to find its own; less where
        there are fewer than sixteen such batches.
    learning_rate : float
        Of Adam at its highest, as a share of the root mean square of the table's numbers.
    contrast : float
        Weight of the contrastive loss beside the cosine; 0 leaves it out.
    temperature : float
        Of the contrastive loss: smaller looks at the nearest wrong vectors alone.
    validation_share : float
        Of the distinct texts, at most 5,000 of them; never learned from, nor counted.
    validations_per_epoch : float
    patience : int or None
        Validations without a better cosine after which training ends; None never ends early.
    max_length : int, optional
        Most tokens that the student reads of a text; all by default.
    seed : int
        Of the held-out texts and of the order of the batches.
    """

    dimensions: int = 256
    max_words: int = 20_000
    max_phrases: int = 20_000
    min_count: int = 5
    min_phrase_count: int = 10
    min_npmi: float = 0.3
    sif_coefficient: float = 3e-4
    epochs: float = 5.0
    min_steps: int = 500
    batch_size: int = 1024
    learning_rate: float = 0.05
    contrast: float = 0.05
    temperature: float = 0.05
    validation_share: float = 0.05
    validations_per_epoch: float = 4.0
    patience: int | None = 6
    max_length: int | None = None
    seed: int = 42

    def __post_init__(self) -> None:
        for name in ("dimensions", "min_count", "min_phrase_count", "batch_size"):
            checked_count(getattr(self, name), name)
        for name in ("max_words", "max_phrases", "min_steps", "seed"):
            checked_count(getattr(self, name), name, 0)
        for name in ("patience", "max_length"):
            if getattr(self, name) is not None:
                checked_count(getattr(self, name), name)
        for name in (
            "sif_coefficient", "epochs", "learning_rate", "temperature", "validations_per_epoch",
        ):  # fmt: skip
            _check_between(name, getattr(self, name), 0, float("inf"))
        _check_between("min_npmi", self.min_npmi, -1, 1)
        if self.contrast != 0:
            _check_between("contrast", self.contrast, 0, float("inf"))
        checked_level(self.validation_share, "validation_share")

    def to_dict(self) -> dict[str, Any]:
        """Return the settings in what JSON can hold."""
        return asdict(self)


def student_settings(options: StudentOptions) -> StudentSettings:
    """Make settings of keywords.

    Raises
    ------
    InputError
        If a keyword is not known, or a value out of range.
    """
    known = StudentSettings.__dataclass_fields__
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise InputError(f"expected settings among {', '.join(known)}; got {', '.join(unknown)}")
    return StudentSettings(**options)


def _check_between(name: str, value: Any, low: float, high: float) -> None:
    if not is_number(value) or not low < float(value) < high:
        raise InputError(
            f"expected {name} to be a finite number above {low} and below {high}; got {value!r}"
        )
