"""How a static student learns from its teacher: the settings, without any heavy import."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from embedtopics._utils.checks import (
    checked_between,
    checked_count,
    checked_level,
    optional_count,
    resolve_seed,
)


def setting(default: Any, text: str) -> Any:
    """Return a dataclass field with its help text, from which options are generated."""
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class StudentSettings:
    """Settings of a static student; ``metadata["help"]`` of a field describes it."""

    dimensions: int = setting(256, "Dimensions: principal components of the teacher's vectors.")
    max_words: int = setting(20_000, "Maximum number of words with a separate vector.")
    max_phrases: int = setting(20_000, "Maximum number of phrases with a separate vector.")
    min_count: int = setting(5, "Minimum occurrences of such a word.")
    min_phrase_count: int = setting(10, "Minimum occurrences of such a phrase.")
    min_npmi: float = setting(0.3, "Minimum NPMI of the words of a phrase.")
    # a of the weights a / (a + p(token)) that training starts from (Arora, Liang and Ma 2017)
    sif_coefficient: float = setting(3e-4, "Coefficient of the SIF weights at the start.")
    epochs: float = setting(5.0, "Passes over the texts.")
    min_steps: int = setting(500, "Minimum number of steps; small corpora are repeated.")
    batch_size: int = setting(1024, "Texts of a batch; fewer for fewer than 16 batches.")
    learning_rate: float = setting(0.05, "Peak learning rate, relative to the table's values.")
    contrast: float = setting(0.05, "Weight of the contrastive loss, added to the cosine loss.")
    temperature: float = setting(0.05, "Temperature of the contrastive loss.")
    validation_share: float = setting(0.05, "Share of the texts for validation, at most 5,000.")
    validations_per_epoch: float = setting(4.0, "Validations per epoch.")
    patience: int | None = setting(6, "Validations without improvement that end training.")
    max_length: int | None = setting(None, "Maximum number of tokens of a text; all if left out.")
    random_state: Any = setting(42, "Seed of held-out texts and batches.")  # noqa: RUF009

    def __post_init__(self) -> None:
        object.__setattr__(self, "random_state", resolve_seed(self.random_state))
        for name in ("dimensions", "min_count", "min_phrase_count", "batch_size"):
            checked_count(getattr(self, name), name)
        for name in ("max_words", "max_phrases", "min_steps"):
            checked_count(getattr(self, name), name, 0)
        for name in ("patience", "max_length"):
            optional_count(getattr(self, name), name)
        for name in ("sif_coefficient", "epochs", "learning_rate", "temperature"):
            checked_between(getattr(self, name), name, 0, math.inf)
        checked_between(self.validations_per_epoch, "validations_per_epoch", 0, math.inf)
        checked_between(self.min_npmi, "min_npmi", -1, 1)
        if self.contrast != 0:
            checked_between(self.contrast, "contrast", 0, math.inf)
        checked_level(self.validation_share, "validation_share")

    def to_dict(self) -> dict[str, Any]:
        """Return the settings in what JSON can hold."""
        values = asdict(self)
        return {**values, "seed": values.pop("random_state")}  # the key of saved reports
