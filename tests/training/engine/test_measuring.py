"""Losses of validation examples, against computing each by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from embedtopics.training._examples import Examples
from embedtopics.training._settings import TrainingSettings
from embedtopics.training.objectives._losses import pairs_ranking
from embedtopics.training.objectives._trainable import trainable_of
from embedtopics.training.trainer._batching import BatchEncoder, BatchPlan, prepare, tokenized
from embedtopics.training.trainer._running import measure
from tests.training.engine.conftest import CONTENT


def test_examples_without_room_in_a_batch_are_left_out_of_the_mean(tiny_bert):
    # Every text belongs to one of two classes: a batch has room for one of each.
    texts = [f"{a} {b}" for a in CONTENT[:5] for b in CONTENT[5:10]][:24]
    classes = [CONTENT[10 + place % 2] for place in range(24)]
    examples = Examples("pairs", (tuple(texts), tuple(classes)), None, np.arange(24))
    trainee = trainable_of(tiny_bert, TrainingSettings())
    lesson = prepare(trainee, pairs_ranking(examples, both_ways=False), 0)
    held_out = tokenized(trainee, examples)
    encoder = BatchEncoder(lesson.forward, 4096)
    loss, _ = measure(lesson, encoder, held_out, 8, with_metric=False)

    trainee.model.eval()
    with torch.no_grad():

        def encoded(some):
            return torch.nn.functional.normalize(
                lesson.forward(trainee.tokenize_texts(some)), dim=1
            )

        cosines = 20 * encoded(texts) @ encoded(CONTENT[10:12]).T
    own = [place % 2 for place in range(24)]
    losses = torch.nn.functional.cross_entropy(cosines, torch.tensor(own), reduction="none")
    # Three batches of a text of either class: which ones, the fixed seed of the plan says.
    assert float(losses.min()) <= loss <= float(losses.max())
    chosen = [place for batch in BatchPlan(np.zeros(24), 8, 0, held_out.keys) for place in batch]
    assert len(chosen) == 6
    assert loss == pytest.approx(float(losses[chosen].mean()), rel=1e-5)
