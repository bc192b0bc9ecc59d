"""What a trainer works on: model, loss, token ids and labels; and on which device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from embedtopics.encoders.sentence._loading import check_device
from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.training._examples import Examples
from embedtopics.training._settings import TrainingSettings
from embedtopics.training.objectives._objective import Objective, TokenColumns, given
from embedtopics.training.objectives._trainable import Trainable
from embedtopics.training.trainer._batching import bytes_a_token


@dataclass(frozen=True, eq=False)
class TokenizedExamples:
    """Examples as token ids."""

    columns: TokenColumns
    labels: npt.NDArray[Any] | None
    lengths: Int64Array  # (n_examples,), tokens of the longest text of each
    keys: list[tuple[int, ...]]  # number of the text in each column, equal for equal token ids

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, places: Any) -> TokenizedExamples:
        """Return some of the examples."""
        return TokenizedExamples(
            columns=tuple([column[place] for place in places] for column in self.columns),
            labels=None if self.labels is None else self.labels[places],
            lengths=self.lengths[places],
            keys=[self.keys[place] for place in places],
        )


@dataclass(frozen=True, eq=False)
class Batch:
    """Columns to encode, columns that the loss reads as they are, and labels."""

    encoded: TokenColumns
    plain: TokenColumns
    labels: torch.Tensor | None


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What is trained, on what, by which loss."""

    trainable: Trainable
    objective: Objective
    loss: nn.Module  # the objective's loss, on the trainable's device
    examples: TokenizedExamples

    @property
    def model(self) -> Any:
        """The SentenceTransformer."""
        return self.trainable.model

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        found: torch.device = next(self.model.parameters()).device
        return found

    def forward(self, ids: list[list[int]]) -> torch.Tensor:
        """Encode texts, padded to the longest."""
        features = self.trainable.features(ids)
        vectors: torch.Tensor = self.model(features)["sentence_embedding"]
        return vectors.float()

    def batch(
        self, examples: TokenizedExamples, places: Sequence[int], rng: np.random.Generator
    ) -> Batch:
        """Return some examples, of those to learn from or of those for validation."""
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
        features += [self.trainable.features(column) for column in batch.plain]
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


def prepare(trainable: Trainable, objective: Objective, seed: int) -> TrainingData:
    """Tokenize the examples of an objective, and make its loss; new weights come from the seed."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        stand_in = given(trainable.n_dimensions)
        loss = objective.make_loss(trainable.model, stand_in).to(
            next(trainable.model.parameters()).device
        )
    return TrainingData(trainable, objective, loss, tokenized(trainable, objective.examples))


def tokenized(trainable: Trainable, examples: Examples) -> TokenizedExamples:
    """Tokenize examples; each distinct text once."""
    numbers: dict[str, int] = {}
    for column in examples.columns:
        for text in column:
            numbers.setdefault(text, len(numbers))
    ids = trainable.tokenize_texts(list(numbers))
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


# Where a run is done, with which numbers, and how much of it at once.

BYTES_AT_ONCE = {"cpu": 3 * 2**30, "cuda": 16 * 2**30}
"""Memory for what is encoded at once, by device."""


def device_and_precision(settings: TrainingSettings) -> tuple[str, str]:
    """Return where to train and with which numbers, as asked for or as is best."""
    device = settings.device or ("cuda" if torch.cuda.is_available() else "cpu")
    check_device(device)
    kind, number = torch.device(device).type, torch.device(device).index
    has_cuda, has_mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    found = ["cpu", *["cuda"] * has_cuda, *["mps"] * has_mps]
    if kind not in found:
        raise InputError("device", f"one that torch can train on here: {', '.join(found)}", device)
    if number:
        # The trainer always takes the first.
        remedy = f"choose another with the environment variable CUDA_VISIBLE_DEVICES={number}"
        raise InputError("device", f"{kind!r}, the first that torch sees", device, remedy)
    # Older GPUs imitate bfloat16, which is slower than float32.
    has_bfloat = kind == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    if settings.precision is None:
        return device, "bfloat16" if has_bfloat else "float32"
    missing = {("float16", "cpu"), *([] if has_bfloat else [("bfloat16", "cuda")])}
    if (settings.precision, kind) in missing:
        wanted = '"float32" or "bfloat16" on a CPU, "float32" or "float16" on this GPU'
        raise InputError("precision", wanted, settings.precision)
    return device, settings.precision


def tokens_at_once(data: TrainingData, settings: TrainingSettings, device: str) -> int:
    """Return how many tokens are encoded together, as asked for or as memory should hold."""
    if settings.tokens_at_once is not None:
        return settings.tokens_at_once
    config = getattr(getattr(data.model[0], "auto_model", None), "config", None)
    n_layers = getattr(config, "num_hidden_layers", 1)
    width = getattr(config, "hidden_size", data.model.get_embedding_dimension())
    memory = BYTES_AT_ONCE["cpu" if device == "cpu" else "cuda"]
    return max(512, memory // bytes_a_token(n_layers, width))
