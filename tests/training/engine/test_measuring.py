"""What is measured during a run, against the same by hand."""

from __future__ import annotations

import numpy as np
import pytest

from embedtopics.training import Examples
from embedtopics.training.engine.batching import BatchPlan
from embedtopics.training.engine.encoding import BatchEncoder
from embedtopics.training.engine.lesson import tokenized
from embedtopics.training.engine.measuring import measure
from embedtopics.training.settings import TrainingSettings


def test_examples_for_which_no_batch_had_room_do_not_lower_the_loss(lesson_of):
    lesson, _ = lesson_of(TrainingSettings(), kind="pairs")
    words = ["red", "blue", "stone", "river", "light", "sound"]
    rows = [("cat", word) for word in words] + [(f"{word} dog", f"{word} park") for word in words]
    columns = tuple(zip(*rows, strict=True))
    examples = tokenized(lesson.trainee, Examples("pairs", columns, None, np.arange(12)))
    encoder = BatchEncoder(lesson.forward, 1024)
    plan = BatchPlan(np.zeros(12), 4, 0, examples.keys)
    losses, sizes = [], []
    for batch in plan.of_epoch(0):
        sides = [encoder.encode([column[place] for place in batch]) for column in examples.columns]
        near = (sides[0] @ sides[1].T).numpy() * 20  # the vectors are of length 1
        losses.append(np.mean(np.log(np.exp(near).sum(axis=1)) - np.diag(near)))
        sizes.append(len(batch))
    assert plan.n_left_out == 3  # one of the six with the same anchor in each of three batches
    found = measure(lesson, encoder, examples, 4)
    assert found.loss == pytest.approx(np.average(losses, weights=sizes), abs=1e-4)
    assert 0 < found.metric < 1
