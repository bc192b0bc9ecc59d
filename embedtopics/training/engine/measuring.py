"""Loss and metric on examples that are not learned from, without dropout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from embedtopics.protocols import FloatArray
from embedtopics.training.engine.encoding import BatchEncoder
from embedtopics.training.engine.lesson import Lesson, TokenizedExamples

__all__ = ["Measured", "measure"]


@dataclass(frozen=True)
class Measured:
    """What was found.

    Parameters
    ----------
    loss : float
        Mean over the examples; with in-batch negatives, over those that a batch had room for.
    metric : float
        NaN without.
    """

    loss: float
    metric: float


def measure(
    lesson: Lesson, encoder: BatchEncoder, examples: TokenizedExamples, batch_size: int,
    with_metric: bool = True,
) -> Measured:  # fmt: skip
    """Measure a model on examples, in batches that are always the same.

    Parameters
    ----------
    lesson : Lesson
    encoder : BatchEncoder
    examples : TokenizedExamples
    batch_size : int
        Of the losses, as in training: with in-batch negatives a larger batch has a larger loss.
    with_metric : bool

    Returns
    -------
    Measured
    """
    objective = lesson.objective
    was_training = lesson.model.training
    lesson.model.eval()
    lesson.loss.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng([]):
            torch.manual_seed(0)
            whole = lesson.cut(examples, range(len(examples)), np.random.default_rng(0))
            columns = [_encode_distinct(encoder, column) for column in whole.encoded]
            total, n_measured = 0.0, 0
            for places in _batches(lesson, examples, batch_size):
                chosen = torch.as_tensor(places)
                batch = lesson.cut(examples, places, np.random.default_rng(0))
                vectors = [column[chosen.to(column.device)] for column in columns]
                total += float(lesson.loss_of(batch, vectors)) * len(places)
                n_measured += len(places)
            metric = float("nan")
            if with_metric and objective.metric is not None:
                arrays: list[FloatArray] = [column.cpu().numpy() for column in columns]
                metric = float(
                    objective.metric(arrays, examples.labels, lesson.loss, examples.keys)
                )
    finally:
        lesson.model.train(was_training)
        lesson.loss.train(was_training)
    return Measured(total / max(1, n_measured), metric)


def _encode_distinct(encoder: BatchEncoder, column: list[list[int]]) -> torch.Tensor:
    """Encode each distinct text once."""
    places: dict[tuple[int, ...], int] = {}
    of_text = [places.setdefault(tuple(ids), len(places)) for ids in column]
    vectors = encoder.encode([list(ids) for ids in places])
    return vectors[torch.as_tensor(of_text, device=vectors.device)]


def _batches(lesson: Lesson, examples: TokenizedExamples, batch_size: int) -> Any:
    from embedtopics.training.engine.batching import BatchPlan

    keys = examples.keys if lesson.objective.in_batch_negatives else None
    return BatchPlan(np.zeros(len(examples)), batch_size, 0, keys).of_epoch(0)
