"""Masked language modelling for the trainer: batches, loss and measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional

from embedtopics.pretraining._blocks import Blocks, Paired, Segments
from embedtopics.pretraining._head import Detector, TokenHead
from embedtopics.pretraining._masking import RandomMasking, Replacements, shown_tokens
from embedtopics.protocols import Float64Array, FloatArray, Int64Array
from embedtopics.training.trainer._batching import (
    GROUPS_OF_A_STEP,
    BatchEncoder,
    TrainingData,
    groups_of_like_length,
)

GEOMETRY_WEIGHT = 10.0
"""Weight of 1 - cosine with the vectors before training; the cross-entropy is 2 to 4 nats."""

MEASURED_AT_ONCE = 4096
"""Tokens that are measured together; more are no faster without gradients."""

IGNORED = -100

DETECTION_WEIGHT = 50.0
"""Weight of the detection loss, relative to the generator's (Clark et al. 2020, section 2)."""

TOKENS, PAIRS, REPLACED = "masked", "pair", "replaced-token"
"""Kinds of prediction, as in the names of the measures: hidden tokens, whether segments belong
together, and which tokens were replaced."""


class MaskedRows(NamedTuple):
    """Masked texts with their targets."""

    shown: list[list[int]]
    truth: list[list[int]]  # the token where it is predicted, else IGNORED
    begins: list[int]  # of each second segment; none where there are no pairs
    labels: list[int]  # of pairs

    def of(self, group: Int64Array) -> MaskedRows:
        """Return some of the texts."""
        parts: list[Any] = [[part[i] for i in group] if part else [] for part in self]
        return MaskedRows(*parts)

    def sizes(self) -> dict[str, int]:
        """Return the number of predictions of each kind."""
        n_hidden = sum(token != IGNORED for row in self.truth for token in row)
        n_tokens = sum(map(len, self.shown))
        return {TOKENS: n_hidden, PAIRS: len(self.labels), REPLACED: n_tokens}


class MaskedBatch(NamedTuple):
    """Masked texts, and unmasked texts with target vectors."""

    rows: MaskedRows
    kept: list[list[int]]  # as they are, without masks
    wanted: torch.Tensor | None  # (n_kept, n_dimensions), of length one

    @property
    def columns(self) -> MaskedBatch:
        """The batch, as `MaskedEncoder.learn` takes it."""
        return self


class Predicted(NamedTuple):
    """Predictions of a group, each array of shape (n_predictions,)."""

    losses: torch.Tensor
    is_right: torch.Tensor
    texts: torch.Tensor  # the text of each


class Scores(NamedTuple):
    """Scores of the predictions of each block, each of shape (n_blocks,)."""

    loss: Float64Array  # summed over its predictions
    n_right: Float64Array
    n_predicted: Float64Array


@dataclass(frozen=True, eq=False)
class MaskedData(TrainingData):
    """A model with its blocks and masks."""

    loss: TokenHead | Detector
    examples: Blocks  # type: ignore[assignment]
    masking: RandomMasking
    replacements: Replacements
    seed: int
    geometry: FloatArray | None = None  # (n_blocks, n_dimensions), vectors before training
    segments: Segments | None = None
    autocast: Callable[[], AbstractContextManager[Any]] = field(kw_only=True)

    @property
    def body(self) -> Any:
        """The transformer."""
        return self.model[0].model

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of prediction that are measured, the main one first."""
        if isinstance(self.loss, Detector):
            return (REPLACED,)
        return (TOKENS,) if self.segments is None else (TOKENS, PAIRS)

    def batch(  # type: ignore[override]
        self, examples: Any, places: Sequence[int], rng: np.random.Generator
    ) -> MaskedBatch:
        """Mask some blocks, and look up their target vectors."""
        blocks = examples.take(places)
        rows = self._masked(blocks, examples, [rng] * len(blocks), True)
        if self.geometry is None:
            return MaskedBatch(rows, [], None)
        unmasked = [tokens.ids.tolist() for tokens in blocks.tokens]
        return MaskedBatch(rows, unmasked, torch.from_numpy(self.geometry[np.asarray(places)]))

    def _masked(
        self,
        blocks: Blocks,
        pool: Blocks,
        rngs: Sequence[np.random.Generator],
        is_learning: bool,
    ) -> MaskedRows:
        pairs = Paired(blocks.tokens, [], [])
        if self.segments is not None:
            pairs = self.segments.draw(blocks, pool, rngs)
        # The generator changes as it learns; measurements replace by frequency.
        replaces_all = not is_learning and isinstance(self.loss, Detector)
        shown, truth = [], []
        for tokens, rng in zip(pairs.tokens, rngs, strict=True):
            seen, is_predicted = shown_tokens(
                tokens, self.masking, self.replacements, rng, replaces_all
            )
            shown.append(seen.tolist())
            truth.append(np.where(is_predicted, tokens.ids, IGNORED).tolist())
        return MaskedRows(shown, truth, pairs.begins, pairs.labels)

    def loss_of(self, batch: Any, vectors: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the loss that `MaskedEncoder.learn` has computed."""
        return vectors[0]

    def predictions(self, rows: MaskedRows, is_learning: bool) -> dict[str, Predicted]:
        """Predict hidden tokens; the generator runs only in training."""
        features = self.trainable.features(rows.shown)
        inputs = {name: features[name] for name in ("input_ids", "attention_mask")}
        width = inputs["input_ids"].shape[1]
        padded = torch.tensor([row + [IGNORED] * (width - len(row)) for row in rows.truth])
        padded = padded.to(inputs["input_ids"].device)
        is_hidden = padded != IGNORED
        truth, texts = padded[is_hidden], is_hidden.nonzero()[:, 0]
        predicted = {}
        if isinstance(self.loss, Detector):
            now = inputs["input_ids"].clone()
            if is_learning:
                scores = self.loss.generate(inputs, is_hidden)
                predicted[TOKENS] = _chosen(scores, truth, texts)
                now[is_hidden] = torch.multinomial(scores.detach().softmax(dim=1), 1)[:, 0]
            is_text = inputs["attention_mask"].bool()
            was_replaced = (is_hidden & (now != padded))[is_text].float()
            score = self.loss(self.body(**{**inputs, "input_ids": now}).last_hidden_state[is_text])
            losses = functional.binary_cross_entropy_with_logits(
                score, was_replaced, reduction="none"
            )
            right = (score > 0) == was_replaced.bool()
            return predicted | {REPLACED: Predicted(losses, right, is_text.nonzero()[:, 0])}
        if rows.begins and getattr(self.body.config, "type_vocab_size", 0) > 1:
            begins = torch.tensor(rows.begins, device=padded.device)[:, None]
            is_second = torch.arange(width, device=padded.device) >= begins
            inputs["token_type_ids"] = is_second.long() * inputs["attention_mask"]
        states = self.body(**inputs).last_hidden_state
        predicted[TOKENS] = _chosen(self.loss(states[is_hidden]), truth, texts)
        if self.loss.pair is not None:
            labels = torch.tensor(rows.labels, device=padded.device)
            each = torch.arange(len(labels), device=padded.device)
            predicted[PAIRS] = _chosen(self.loss.pair(states[:, 0]), labels, each)
        return predicted

    def batch_encoder(self, tokens_at_once: int) -> BatchEncoder:
        """Return an encoder of batches."""
        return MaskedEncoder(self, tokens_at_once)

    def scores(self, encoder: BatchEncoder, blocks: Blocks) -> dict[str, Scores]:
        """Predict under fixed masks without dropout."""
        rngs = [np.random.default_rng((self.seed, 11, n)) for n in blocks.numbers.tolist()]
        rows = self._masked(blocks, blocks, rngs, False)
        sums = {kind: np.zeros((3, len(blocks))) for kind in self.kinds}
        at_once = min(encoder.tokens_at_once, MEASURED_AT_ONCE)
        learned = self.learned()
        was_training = self.model.training
        learned.eval()
        try:
            with torch.no_grad(), self.autocast():
                for group in groups_of_like_length([len(row) for row in rows.shown], at_once):
                    predicted = self.predictions(rows.of(group), is_learning=False)
                    for kind in sums:
                        part = predicted[kind]
                        figures = part.losses, part.is_right, torch.ones_like(part.losses)
                        columns = group[part.texts.cpu().numpy()]
                        for place, values in enumerate(figures):
                            np.add.at(sums[kind][place], columns, values.double().cpu().numpy())
        finally:
            learned.train(was_training)
        return {kind: Scores(*parts) for kind, parts in sums.items()}

    def measure(
        self, encoder: BatchEncoder, examples: Any, batch_size: int, with_metric: bool = True
    ) -> tuple[float, float]:
        """Return the sum of the mean losses in nats, and the accuracy of the main kind."""
        scores = self.scores(encoder, examples)
        ns = {kind: max(1.0, float(one.n_predicted.sum())) for kind, one in scores.items()}
        main = self.kinds[0]
        accuracy = float(scores[main].n_right.sum()) / ns[main] if with_metric else math.nan
        return sum(float(scores[kind].loss.sum()) / n for kind, n in ns.items()), accuracy

    def weights(self) -> dict[str, torch.Tensor]:
        """Return all weights by name, tied weights once."""
        learned = self.learned()
        every = dict(learned.named_parameters(remove_duplicate=False))
        tied = every.keys() - dict(learned.named_parameters()).keys()
        return {name: one for name, one in learned.state_dict().items() if name not in tied}

    def load_weights(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Load weights that `weights` returned."""
        self.learned().load_state_dict(weights, strict=False)


class MaskedEncoder(BatchEncoder):
    """Learns from a batch in groups, because its texts do not depend on each other."""

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
        """Compute the loss of a `MaskedBatch`, and add its gradients."""
        batch: MaskedBatch = columns
        rows, sizes = batch.rows, batch.rows.sizes()
        self._data.loss.train()  # the trainer does so for the encoder only
        losses = []
        n_groups = 0
        for group in groups_of_like_length([len(row) for row in rows.shown], self.tokens_at_once):
            torch.manual_seed(seed * GROUPS_OF_A_STEP + n_groups)
            n_groups += 1
            predicted = self._data.predictions(rows.of(group), is_learning=True)
            parts = [
                part.losses.sum() * (DETECTION_WEIGHT if kind == REPLACED else 1.0)
                / max(1, sizes[kind])
                for kind, part in predicted.items()
            ]  # fmt: skip
            loss = loss_of([torch.stack(parts).sum()])
            backward(loss)
            losses.append(loss.detach())
        for group in groups_of_like_length([len(row) for row in batch.kept], self.tokens_at_once):
            torch.manual_seed(seed * GROUPS_OF_A_STEP + n_groups)
            n_groups += 1
            vectors = self._data.forward([batch.kept[i] for i in group])
            assert batch.wanted is not None
            targets = batch.wanted[torch.from_numpy(group)].to(vectors.device)
            apart = (1.0 - functional.cosine_similarity(vectors, targets, dim=1)).sum()
            loss = loss_of([GEOMETRY_WEIGHT * apart / len(batch.kept)])
            backward(loss)
            losses.append(loss.detach())
        return torch.stack(losses).sum()


def _chosen(scores: torch.Tensor, truth: torch.Tensor, texts: torch.Tensor) -> Predicted:
    losses = functional.cross_entropy(scores, truth, reduction="none")
    return Predicted(losses, scores.argmax(dim=1) == truth, texts)
