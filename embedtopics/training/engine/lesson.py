"""What is learned, ready for the machine: model, loss, token ids and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from embedtopics.protocols import Int64Array
from embedtopics.training.examples import Examples
from embedtopics.training.objectives.objective import Objective, TokenColumns, given
from embedtopics.training.objectives.trainee import Trainee

__all__ = ["Batch", "Lesson", "TokenizedExamples", "prepare", "tokenized"]


@dataclass(frozen=True, eq=False)
class TokenizedExamples:
    """Examples as token ids.

    Parameters
    ----------
    columns : tuple of list of list of int
    labels : ndarray or None
    lengths : int64 ndarray of shape (n_examples,)
        Tokens of the longest text of each.
    keys : list of tuple of int
        Number of the text in each column, equal for equal token ids.
    """

    columns: TokenColumns
    labels: npt.NDArray[Any] | None
    lengths: Int64Array
    keys: list[tuple[int, ...]]

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True, eq=False)
class Batch:
    """Texts to encode, columns that the loss reads as they are, and labels."""

    encoded: TokenColumns
    plain: TokenColumns
    labels: torch.Tensor | None


@dataclass(frozen=True, eq=False)
class Lesson:
    """What the engine trains.

    Parameters
    ----------
    trainee : Trainee
    objective : Objective
    loss : torch.nn.Module
        The objective's loss, on the trainee's device.
    examples : TokenizedExamples
    """

    trainee: Trainee
    objective: Objective
    loss: nn.Module
    examples: TokenizedExamples

    @property
    def model(self) -> Any:
        """The SentenceTransformer."""
        return self.trainee.model

    @property
    def n_examples(self) -> int:
        """How many examples there are to learn from."""
        return len(self.examples)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        found: torch.device = next(self.model.parameters()).device
        return found

    def forward(self, ids: list[list[int]]) -> torch.Tensor:
        """Encode texts, padded to the longest."""
        features = self.trainee.features(ids)
        vectors: torch.Tensor = self.model(features)["sentence_embedding"]
        return vectors.float()

    def batch(self, places: Sequence[int], rng: np.random.Generator) -> Batch:
        """Return the examples at some places."""
        return self.cut(self.examples, places, rng)

    def cut(
        self, examples: TokenizedExamples, places: Sequence[int], rng: np.random.Generator
    ) -> Batch:
        """Return some of other examples, such as those for validation."""
        columns: TokenColumns = tuple(
            [column[place] for place in places] for column in examples.columns
        )
        if self.objective.views is not None:
            columns = self.objective.views(columns, rng)
        n = len(columns) if self.objective.n_encoded is None else self.objective.n_encoded
        labels = None
        if examples.labels is not None:
            labels = torch.as_tensor(examples.labels[list(places)], device=self.device)
            labels = labels.float() if labels.is_floating_point() else labels
        return Batch(columns[:n], columns[n:], labels)

    def loss_of(self, batch: Batch, vectors: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the loss of a batch whose columns were encoded."""
        features: list[dict[str, torch.Tensor]] = [{"sentence_embedding": v} for v in vectors]
        features += [self.trainee.features(column) for column in batch.plain]
        loss: Any = self.loss(features, batch.labels)
        if isinstance(loss, dict):
            loss = torch.stack(list(loss.values())).sum()
        total: torch.Tensor = loss
        return total

    def weights(self) -> dict[str, torch.Tensor]:
        """Return all weights of the model and of the loss, by name."""
        return self.learned().state_dict()

    def load_weights(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Set all weights to those that `weights` returned."""
        self.learned().load_state_dict(weights)

    def learned(self) -> nn.Module:
        """Return model and loss as one module, whose weights are those that are learned."""
        return nn.ModuleDict({"model": self.model, "loss": self.loss})


def prepare(trainee: Trainee, objective: Objective, seed: int) -> Lesson:
    """Tokenise the examples of an objective, and make its loss; new weights come from the seed."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        stand_in = given(trainee.n_dimensions)
        loss = objective.make_loss(trainee.model, stand_in).to(
            next(trainee.model.parameters()).device
        )
    return Lesson(trainee, objective, loss, tokenized(trainee, objective.examples))


def tokenized(trainee: Trainee, examples: Examples) -> TokenizedExamples:
    """Tokenise examples; each distinct text once."""
    numbers: dict[str, int] = {}
    for column in examples.columns:
        for text in column:
            numbers.setdefault(text, len(numbers))
    ids = trainee.tokenise(list(numbers))
    same: dict[tuple[int, ...], int] = {}
    key_of = [same.setdefault(tuple(one), len(same)) for one in ids]
    columns: TokenColumns = tuple(
        [ids[numbers[text]] for text in column] for column in examples.columns
    )
    lengths = np.max([[len(one) for one in column] for column in columns], axis=0)
    keys = [
        tuple(key_of[numbers[text]] for text in row) for row in zip(*examples.columns, strict=True)
    ]
    return TokenizedExamples(columns, examples.labels, lengths.astype(np.int64), keys)
