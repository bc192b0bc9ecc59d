"""A tiny encoder, and graded pairs that it can learn."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from embedtopics.training._examples import Examples
from embedtopics.training._settings import TrainingSettings
from embedtopics.training.objectives._losses import graded_cosine, pairs_ranking
from embedtopics.training.objectives._trainable import trainable_of
from embedtopics.training.trainer._batching import prepare, tokenized
from tests.encoders.conftest import WORDS, tiny_bert  # noqa: F401

CONTENT = [word for word in WORDS if word not in ("the", "a", "and", "or", "on", "in")]


def graded_pairs(n: int = 48, seed: int = 3) -> Examples:
    """Pairs of short texts; the score is the share of words in common."""
    rng = np.random.default_rng(seed)
    first, second, scores = [], [], []
    for _ in range(n):
        a, b = (rng.choice(CONTENT, int(rng.integers(2, 9))).tolist() for _ in range(2))
        first.append(" ".join(a))
        second.append(" ".join(b))
        scores.append(len(set(a) & set(b)) / len(set(a) | set(b)))
    return Examples("graded", (tuple(first), tuple(second)), np.array(scores), np.arange(n))


def partner_pairs(n: int = 40) -> Examples:
    """Pairs of texts that belong together; some texts occur in several."""
    words = list(itertools.islice(itertools.permutations(CONTENT, 3), 0, n * 7, 7))
    first = tuple(" ".join(three[:2]) for three in words)
    second = tuple(" ".join(three[1:]) for three in words)
    return Examples("pairs", (first, second), None, np.arange(n))


@pytest.fixture(autouse=True)
def as_few_validations_as_asked_for(monkeypatch):
    """Runs of a dozen steps are validated where the tests say."""
    monkeypatch.setattr("embedtopics.training.trainer._running.LEAST_VALIDATIONS", 1)


@pytest.fixture()
def data_of(tiny_bert):  # noqa: F811
    """Make a data for settings; without dropout where that is asked for."""

    def make(settings: TrainingSettings, *, dropout: float = 0.1, kind: str = "graded"):
        import torch

        trainee = trainable_of(tiny_bert, settings)
        for module in trainee.model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = dropout
            if hasattr(module, "dropout_prob"):
                module.dropout_prob = dropout
        for layer in trainee.model[0].auto_model.encoder.layer:
            layer.attention.self.dropout.p = dropout
        if kind == "graded":
            # By its loss: it falls from the first step on.
            objective = replace(graded_cosine(graded_pairs()), metric=None, metric_name="")
        else:
            objective = pairs_ranking(partner_pairs(), both_ways=False)
        data = prepare(trainee, objective, settings.random_state)
        # Validated on what it learns from, so that later weights are better and are kept: kept
        # weights of step 0 would be the same in any two runs.
        return data, tokenized(trainee, objective.examples)

    return make
