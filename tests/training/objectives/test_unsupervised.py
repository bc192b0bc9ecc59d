"""SimCSE: views of the texts, and the loss of sentence-transformers."""

import numpy as np
import torch
from sentence_transformers.sentence_transformer import losses as st

from embedtopics.training.objectives._losses import simcse
from embedtopics.training.objectives._objective import stand_in
from embedtopics.training.objectives._trainable import trainable_of
from tests.factories import refuses
from tests.training.objectives.losses import FIRST, check_equal
from tests.training.tables import examples_of


def test_simcse(encoder):
    objective = simcse(examples_of("texts", (FIRST,)))
    check_equal(objective, encoder, st.MultipleNegativesRankingLoss)
    assert objective.in_batch_negatives and objective.metric is None
    first, second = objective.views(([[1, 2]],), np.random.default_rng(0))
    assert first == second == [[1, 2]]


def test_the_two_views_differ_by_dropout(encoder):
    objective = simcse(examples_of("texts", (FIRST,)))
    trainee = trainable_of(encoder)
    ids = trainee.tokenize_texts(FIRST)
    loss = objective.make_loss(trainee.model, stand_in(16))

    def value():
        views = objective.views((ids,), np.random.default_rng(0))
        columns = [trainee.model(trainee.features(view)) for view in views]
        return float(loss(columns, None).detach())

    trainee.model.eval()
    same = value()
    trainee.model.train()
    assert value() > same + 1e-4


def test_simcse_without_dropout_is_refused(encoder):
    trainee = trainable_of(encoder)
    for part in trainee.model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    with refuses("encoder"):
        simcse(examples_of("texts", (FIRST,))).make_loss(trainee.model, stand_in(16))
