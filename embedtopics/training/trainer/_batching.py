"""Batches of texts of similar length, without a text twice, and their encoding."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.training._examples import Examples
from embedtopics.training.objectives._objective import Objective, TokenColumns, stand_in
from embedtopics.training.objectives._trainable import Trainable

BATCHES_IN_A_WINDOW = 16
"""Batches of shuffled examples that are sorted by length together. More would save little padding,
and all negatives of a text would have its length."""


class StepPlan:
    """Every epoch's batches, by seed: shuffled, sorted by length within windows, cut, shuffled."""

    def __init__(
        self,
        lengths: npt.ArrayLike,
        batch_size: int,
        seed: int,
        keys: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self._lengths: Int64Array = np.asarray(lengths, dtype=np.int64)
        self._size = batch_size
        self._seed = seed
        self._keys = keys
        self._partners = _partners(keys or ())
        self.epoch = 0
        self._left_out: dict[int, int] = {}

    @property
    def n_left_out(self) -> int:
        """Number of examples left out, summed over the epochs."""
        return sum(self._left_out.values())

    def __len__(self) -> int:
        return -(-len(self._lengths) // self._size)

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.of_epoch(self.epoch))

    def of_epoch(self, epoch: int) -> list[list[int]]:
        """Return the batches of an epoch, each a list of positions of examples."""
        rng = np.random.default_rng((self._seed, epoch))
        order = rng.permutation(len(self._lengths))
        window = self._size * BATCHES_IN_A_WINDOW
        parts = [order[begin : begin + window] for begin in range(0, len(order), window)]
        sorted_parts = [part[np.argsort(self._lengths[part], kind="stable")] for part in parts]
        order = np.concatenate(sorted_parts) if parts else order
        if self._keys is None:
            cuts = range(self._size, len(order), self._size)
            batches = [batch.tolist() for batch in np.split(order, list(cuts))] if parts else []
        else:
            batches, self._left_out[epoch] = self._without_doubles(order.tolist())
        return [batches[place] for place in rng.permutation(len(batches))]

    def _without_doubles(self, order: list[int]) -> tuple[list[list[int]], int]:
        """Add each example to the first batch that is not full and has none of its texts."""
        assert self._keys is not None
        batches: list[list[int]] = [[] for _ in range(len(self))]
        texts_in: list[set[int]] = [set() for _ in range(len(self))]
        # All batches before this one are full or hold the text, and stay so.
        first_without: dict[int, int] = {}
        first_open, n_left_out = 0, 0
        for example in order:
            texts = self._keys[example]
            begin = first_open
            for text in texts:
                place = max(first_open, first_without.get(text, 0))
                while place < len(batches) and (
                    text in texts_in[place] or len(batches[place]) == self._size
                ):
                    place += 1
                first_without[text] = place
                begin = max(begin, place)
            for place in range(begin, len(batches)):
                if len(batches[place]) < self._size and self._agree(texts, texts_in[place]):
                    batches[place].append(example)
                    texts_in[place].update(texts)
                    break
            else:
                n_left_out += 1
            while first_open < len(batches) and len(batches[first_open]) == self._size:
                first_open += 1
        # No batch is empty: it would have taken an example that was left out.
        return batches, n_left_out

    def _agree(self, texts: Sequence[int], texts_in_batch: set[int]) -> bool:
        if not texts_in_batch.isdisjoint(texts):
            return False
        return all(texts_in_batch.isdisjoint(self._partners.get(text, ())) for text in texts)


def _partners(keys: Sequence[Sequence[int]]) -> dict[int, set[int]]:
    partners: dict[int, set[int]] = {}
    for first, *rest in keys:
        for other in rest[:1]:
            partners.setdefault(first, set()).add(other)
            partners.setdefault(other, set()).add(first)
    return partners


TOKENS_WORTH_A_PASS = 96
"""Tokens below which a group is not cut further: saved padding must outweigh the cost of a pass."""

GROUPS_OF_A_STEP = 1024
"""Seeds reserved for each step, one for each group."""


def groups_of_like_length(lengths: Sequence[int], tokens_at_once: int) -> list[Int64Array]:
    """Group texts by length at the least cost of tokens, padding and passes."""
    order = np.argsort(np.asarray(lengths), kind="stable")
    sizes = np.asarray(lengths, dtype=np.int64)[order]
    # Only where the length changes is it worth cutting.
    ends = [*np.flatnonzero(np.diff(sizes)) + 1, len(sizes)] if len(sizes) else []
    cost = [0.0]
    cut_from = [0]
    starts = [0, *ends]
    for j, end in enumerate(ends, start=1):
        options = [
            cost[i] + (end - starts[i]) * float(sizes[end - 1]) + TOKENS_WORTH_A_PASS
            for i in range(j)
        ]
        best = int(np.argmin(options))
        cost.append(options[best])
        cut_from.append(best)
    groups: list[Int64Array] = []
    place = len(ends)
    while place:
        begin, end = starts[cut_from[place]], starts[place]
        at_once = max(1, int(tokens_at_once // max(1, sizes[end - 1])))
        pieces = [order[i : min(i + at_once, end)] for i in range(int(begin), int(end), at_once)]
        groups.extend(reversed(pieces))
        place = cut_from[place]
    return [np.sort(group) for group in reversed(groups)]


BYTES_AT_ONCE = {"cpu": 3 * 2**30, "cuda": 16 * 2**30}
"""Memory for texts that are encoded together, by device."""

BYTES_A_UNIT = 4 * 40
"""Memory per token, layer and unit during training: about 40 numbers."""


def tokens_held(model: Any, device: str) -> int:
    """Return the number of tokens that memory should hold."""
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    n_layers = getattr(config, "num_hidden_layers", 1)
    width = getattr(config, "hidden_size", model.get_embedding_dimension())
    memory = BYTES_AT_ONCE["cpu" if device == "cpu" else "cuda"]
    return int(max(512, memory // (max(1, n_layers) * max(1, width) * BYTES_A_UNIT)))


class BatchEncoder:
    """Encodes the columns of a batch in groups of like length, with gradients (Gao et al. 2021)."""

    def __init__(self, forward: Callable[[list[list[int]]], Any], tokens_at_once: int) -> None:
        self._forward = forward
        self.tokens_at_once = tokens_at_once

    def learn(
        self,
        columns: Sequence[list[list[int]]],
        loss_of: Callable[[list[torch.Tensor]], torch.Tensor],
        backward: Callable[[torch.Tensor], None],
        seed: int,
    ) -> torch.Tensor:
        """Compute a loss of the vectors of all columns, and add its gradients to the weights."""
        texts = [ids for column in columns for ids in column]
        lengths = [len(ids) for ids in texts]
        groups = groups_of_like_length(lengths, self.tokens_at_once)
        n_tokens = sum(len(group) * max(lengths[i] for i in group) for group in groups)
        keeps_all = n_tokens <= self.tokens_at_once
        with torch.set_grad_enabled(keeps_all):
            parts = [self._seeded([texts[i] for i in g], seed, n) for n, g in enumerate(groups)]
        vectors = _in_order(parts, groups)
        if not keeps_all:
            vectors = vectors.detach().requires_grad_()
        loss = loss_of(list(torch.split(vectors, len(columns[0]))))
        backward(loss)
        if not keeps_all:  # memory does not hold all groups: encode them again
            assert vectors.grad is not None
            for n, group in enumerate(groups):
                again = self._seeded([texts[i] for i in group], seed, n)
                again.backward(vectors.grad[torch.as_tensor(group, device=again.device)])
        return loss.detach()

    def encode(self, texts: Sequence[list[int]]) -> torch.Tensor:
        """Return the vectors of texts, without gradients, shape (n_texts, n_dimensions)."""
        order = np.argsort([len(ids) for ids in texts], kind="stable")
        groups: list[Int64Array] = []
        begin, budget = 0, max(1, min(self.tokens_at_once, 1024))
        for end in range(1, len(order) + 1):
            is_last = end == len(order)
            longest = len(texts[order[min(end, len(order) - 1)]])
            if is_last or (end + 1 - begin) * longest > budget:
                groups.append(order[begin:end])
                begin = end
        with torch.no_grad():
            parts = [self._forward([texts[i] for i in group]) for group in groups]
        return _in_order(parts, groups)

    def _seeded(self, texts: list[list[int]], seed: int, group: int) -> Any:
        torch.manual_seed(seed * GROUPS_OF_A_STEP + group)
        return self._forward(texts)


def _in_order(parts: Sequence[torch.Tensor], groups: Sequence[Int64Array]) -> torch.Tensor:
    vectors = torch.cat(list(parts))
    back = torch.empty(len(vectors), dtype=torch.long, device=vectors.device)
    places = torch.as_tensor(np.concatenate(groups), device=vectors.device)
    back[places] = torch.arange(len(vectors), device=vectors.device)
    return vectors[back]


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
    """Columns to encode, and labels."""

    columns: TokenColumns
    labels: torch.Tensor | None


@dataclass(frozen=True, eq=False)
class TrainingData:
    """A model, its examples and its loss."""

    trainable: Trainable
    objective: Objective
    loss: nn.Module  # the objective's loss, on the trainable's device
    examples: TokenizedExamples

    @property
    def model(self) -> Any:
        """The SentenceTransformer."""
        return self.trainable.model

    def forward(self, ids: list[list[int]]) -> torch.Tensor:
        """Encode texts, padded to the longest."""
        vectors: torch.Tensor = self.model(self.trainable.features(ids))["sentence_embedding"]
        return vectors.float()

    def batch(
        self, examples: TokenizedExamples, places: Sequence[int], rng: np.random.Generator
    ) -> Batch:
        """Return a batch of training or validation examples."""
        part, labels = examples.take(list(places)), None
        views = self.objective.views
        columns = part.columns if views is None else views(part.columns, rng)
        if part.labels is not None:
            labels = torch.as_tensor(part.labels, device=self.model.device)
            labels = labels.float() if labels.is_floating_point() else labels
        return Batch(columns, labels)

    def loss_of(self, batch: Batch, vectors: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the loss of an encoded batch."""
        features: list[dict[str, torch.Tensor]] = [{"sentence_embedding": v} for v in vectors]
        loss: Any = self.loss(features, batch.labels)
        if isinstance(loss, dict):
            loss = torch.stack(list(loss.values())).sum()
        return torch.as_tensor(loss)

    def batch_encoder(self, tokens_at_once: int) -> BatchEncoder:
        """Return an encoder of batches."""
        return BatchEncoder(self.forward, tokens_at_once)

    def measure(
        self,
        encoder: BatchEncoder,
        examples: TokenizedExamples,
        batch_size: int,
        with_metric: bool = True,
    ) -> tuple[float, float]:
        """Return loss and metric (or NaN) on examples, without dropout, in fixed batches."""
        objective, learned = self.objective, self.learned()
        was_training = self.model.training
        learned.eval()
        try:
            with torch.no_grad(), torch.random.fork_rng([]):
                torch.manual_seed(0)
                whole = self.batch(examples, range(len(examples)), np.random.default_rng(0))
                columns = [_encode_distinct(encoder, column) for column in whole.columns]
                total, n_measured = 0.0, 0
                keys = examples.keys if objective.in_batch_negatives else None
                for places in StepPlan(np.zeros(len(examples)), batch_size, 0, keys).of_epoch(0):
                    rows = torch.as_tensor(places)
                    batch = self.batch(examples, places, np.random.default_rng(0))
                    vectors = [column[rows.to(column.device)] for column in columns]
                    total += float(self.loss_of(batch, vectors)) * len(places)
                    n_measured += len(places)
                metric = math.nan
                if with_metric and objective.metric is not None:
                    arrays: list[FloatArray] = [column.cpu().numpy() for column in columns]
                    metric = float(
                        objective.metric(arrays, examples.labels, self.loss, examples.keys)
                    )
        finally:
            learned.train(was_training)
        return total / max(1, n_measured), metric

    def weights(self) -> dict[str, torch.Tensor]:
        """Return all weights of the model and of the loss, by name."""
        weights: dict[str, torch.Tensor] = self.learned().state_dict()
        return weights

    def load_weights(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Load weights that `weights` returned."""
        self.learned().load_state_dict(weights)

    def learned(self) -> nn.Module:
        """Return a module of model and loss, with all learned weights."""
        return nn.ModuleDict({"model": self.model, "loss": self.loss})


def _encode_distinct(encoder: BatchEncoder, column: list[list[int]]) -> torch.Tensor:
    places: dict[tuple[int, ...], int] = {}
    of_text = [places.setdefault(tuple(ids), len(places)) for ids in column]
    vectors = encoder.encode([list(ids) for ids in places])
    return vectors[torch.as_tensor(of_text, device=vectors.device)]


def prepare(trainable: Trainable, objective: Objective, seed: int) -> TrainingData:
    """Tokenize the examples of an objective, and make its loss; the seed draws new weights."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        loss = objective.make_loss(trainable.model, stand_in(trainable.n_dimensions))
        loss = loss.to(next(trainable.model.parameters()).device)
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
