"""Masked language modelling in the form that the trainer takes: batches, loss, measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional

from embedtopics.pretraining._blocks import Blocks
from embedtopics.pretraining._head import TokenHead
from embedtopics.pretraining._masking import Replacements, shown_tokens
from embedtopics.protocols import Float64Array, FloatArray
from embedtopics.training.trainer._batching import (
    GROUPS_OF_A_STEP,
    BatchEncoder,
    TrainingData,
    groups_of_like_length,
)

GEOMETRY_WEIGHT = 10.0
"""Of 1 - cosine with the untouched encoder's vectors, beside a cross-entropy of 2 to 4 nats."""

MEASURED_AT_ONCE = 4096
"""Tokens that are measured together: without gradients, more are no faster."""

IGNORED = -100


class MaskedBatch(NamedTuple):
    """Texts with what is predicted of them, and texts whose vectors are to stay."""

    shown: list[list[int]]
    truth: list[list[int]]  # the token where it is predicted, else IGNORED
    kept: list[list[int]]  # as they are, without masks
    wanted: torch.Tensor | None  # (n_kept, n_dimensions), of length one

    @property
    def encoded(self) -> MaskedBatch:
        """All of it: what `MaskedEncoder.learn` takes."""
        return self


@dataclass(frozen=True, eq=False)
class Geometry:
    """Texts with the vectors that the untouched encoder gives them, of length one."""

    own: FloatArray  # (n_blocks, n_dimensions), of the blocks that are learned from
    general: Blocks | None
    general_vectors: FloatArray | None


class Scores(NamedTuple):
    """How well the tokens of each block are predicted; all (n_blocks,)."""

    loss: Float64Array  # summed over its predictions
    n_right: Float64Array
    n_predicted: Float64Array


@dataclass(frozen=True, eq=False)
class MaskedData(TrainingData):
    """What is trained, on which blocks, with which masks."""

    loss: TokenHead
    examples: Blocks  # type: ignore[assignment]
    masking: Any
    replacements: Replacements
    seed: int
    geometry: Geometry | None = None
    autocast: Callable[[], AbstractContextManager[Any]] = field(kw_only=True)

    @property
    def body(self) -> Any:
        """The transformer."""
        return self.model[0].model

    def batch(  # type: ignore[override]
        self, examples: Any, places: Sequence[int], rng: np.random.Generator
    ) -> MaskedBatch:
        """Mask some blocks anew, and choose the texts whose vectors are to stay."""
        chosen = examples.take(places)
        shown, truth = self._masked(chosen, [rng] * len(chosen))
        geometry = self.geometry
        if geometry is None:
            return MaskedBatch(shown, truth, [], None)
        n_own = len(chosen) if geometry.general is None else -(-len(chosen) // 2)
        kept = [one.ids.tolist() for one in chosen.tokens[:n_own]]
        wanted = [geometry.own[np.asarray(places)[:n_own]]]
        if geometry.general is not None and geometry.general_vectors is not None:
            drawn = rng.integers(len(geometry.general), size=len(chosen) - n_own)
            kept += [one.ids.tolist() for one in geometry.general.take(drawn).tokens]
            wanted.append(geometry.general_vectors[drawn])
        return MaskedBatch(shown, truth, kept, torch.from_numpy(np.concatenate(wanted)))

    def _masked(
        self, blocks: Blocks, rngs: Sequence[np.random.Generator]
    ) -> tuple[list[list[int]], list[list[int]]]:
        shown, truth = [], []
        for tokens, rng in zip(blocks.tokens, rngs, strict=True):
            seen, is_predicted = shown_tokens(tokens, self.masking, self.replacements, rng)
            shown.append(seen.tolist())
            truth.append(np.where(is_predicted, tokens.ids, IGNORED).tolist())
        return shown, truth

    def loss_of(self, batch: Any, vectors: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return a part of the loss, which `MaskedEncoder.learn` has computed."""
        return vectors[0]

    def predictions(
        self, shown: list[list[int]], truth: list[list[int]]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return scores (n, n_vocabulary), true tokens (n,), and the text of each (n,)."""
        features = self.trainable.features(shown)
        states = self.body(
            input_ids=features["input_ids"], attention_mask=features["attention_mask"]
        ).last_hidden_state
        width = states.shape[1]
        padded = torch.tensor([row + [IGNORED] * (width - len(row)) for row in truth])
        is_predicted = padded != IGNORED
        scores = self.loss(states[is_predicted.to(states.device)])
        return scores, padded[is_predicted].to(states.device), is_predicted.nonzero()[:, 0]

    def batch_encoder(self, tokens_at_once: int) -> BatchEncoder:
        """Return what learns from batches."""
        return MaskedEncoder(self, tokens_at_once)

    def scores(self, encoder: BatchEncoder, blocks: Blocks) -> Scores:
        """Predict under fixed masks, those of a block's number, without dropout."""
        rngs = [np.random.default_rng((self.seed, 11, n)) for n in blocks.numbers.tolist()]
        shown, truth = self._masked(blocks, rngs)
        found = np.zeros((3, len(blocks)))
        at_once = min(encoder.tokens_at_once, MEASURED_AT_ONCE)
        learned = self.learned()
        was_training = self.model.training
        learned.eval()
        try:
            with torch.no_grad(), self.autocast():
                for group in groups_of_like_length([len(row) for row in shown], at_once):
                    parts = [shown[i] for i in group], [truth[i] for i in group]
                    scores, tokens, rows = self.predictions(*parts)
                    losses = functional.cross_entropy(scores, tokens, reduction="none")
                    rights = scores.argmax(dim=1) == tokens
                    for place, values in enumerate((losses, rights, torch.ones_like(losses))):
                        columns = group[rows.numpy()]
                        np.add.at(found[place], columns, values.double().cpu().numpy())
        finally:
            learned.train(was_training)
        return Scores(*found)

    def measure(
        self, encoder: BatchEncoder, examples: Any, batch_size: int, with_metric: bool = True
    ) -> tuple[float, float]:
        """Return the mean loss of a prediction in nats, and the share of right ones."""
        found = self.scores(encoder, examples)
        n = max(1.0, float(found.n_predicted.sum()))
        accuracy = float(found.n_right.sum()) / n if with_metric else math.nan
        return float(found.loss.sum()) / n, accuracy

    def weights(self) -> dict[str, torch.Tensor]:
        """Return all weights by name; those that are tied, once."""
        learned = self.learned()
        every = dict(learned.named_parameters(remove_duplicate=False))
        tied = every.keys() - dict(learned.named_parameters()).keys()
        return {name: one for name, one in learned.state_dict().items() if name not in tied}

    def load_weights(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Set all weights to those that `weights` returned."""
        self.learned().load_state_dict(weights, strict=False)


class MaskedEncoder(BatchEncoder):
    """Learns from a batch group by group: no text of it has a say in the loss of another."""

    def __init__(self, data: MaskedData, tokens_at_once: int) -> None:
        super().__init__(data.forward, tokens_at_once)
        self._data = data

    def learn(
        self,
        columns: Any,
        loss_of: Callable[[list[torch.Tensor]], torch.Tensor],
        backward: Callable[[torch.Tensor], None],
        seed: int,
    ) -> torch.Tensor:
        """Compute the loss of a `MaskedBatch`, and add its gradients to the weights."""
        batch: MaskedBatch = columns
        n = max(1, sum(token != IGNORED for row in batch.truth for token in row))
        losses = []
        n_groups = 0
        for group in groups_of_like_length([len(row) for row in batch.shown], self.tokens_at_once):
            torch.manual_seed(seed * GROUPS_OF_A_STEP + n_groups)
            n_groups += 1
            parts = [batch.shown[i] for i in group], [batch.truth[i] for i in group]
            scores, tokens, _ = self._data.predictions(*parts)
            loss = loss_of([functional.cross_entropy(scores, tokens, reduction="sum") / n])
            backward(loss)
            losses.append(loss.detach())
        for group in groups_of_like_length([len(row) for row in batch.kept], self.tokens_at_once):
            torch.manual_seed(seed * GROUPS_OF_A_STEP + n_groups)
            n_groups += 1
            made = self._data.forward([batch.kept[i] for i in group])
            assert batch.wanted is not None
            wanted = batch.wanted[torch.from_numpy(group)].to(made.device)
            apart = (1.0 - functional.cosine_similarity(made, wanted, dim=1)).sum()
            loss = loss_of([GEOMETRY_WEIGHT * apart / len(batch.kept)])
            backward(loss)
            losses.append(loss.detach())
        return torch.stack(losses).sum()
