"""The same loss twice: as the engine computes it, and as sentence-transformers does by itself."""

import copy

import numpy as np
import torch

from embedtopics.training.objectives._objective import stand_in
from embedtopics.training.objectives._trainable import trainable_of

FIRST = ["the cat sat on the mat", "a dog ran in the park", "red stone", "the river and light"]
SECOND = ["a cat sat", "the dog ran on and on", "blue stone or sound", "river light"]
THIRD = ["a blue dog", "the mat", "the cat ran", "red sound in the river"]


def ours(objective, encoder):
    """Loss, and gradients by the name of the weight: of the model, and of the loss itself."""
    trainee = trainable_of(encoder)
    return (*ours_with(objective, trainee), trainee)


def ours_with(objective, trainee):
    model = trainee.model.eval()  # no dropout
    ids = tuple(trainee.tokenize_texts(column) for column in objective.examples.columns)
    if objective.views is not None:
        ids = objective.views(ids, np.random.default_rng(5))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        loss = objective.make_loss(model, stand_in(trainee.n_dimensions)).eval()
    features = [
        {"sentence_embedding": model(trainee.features(column))["sentence_embedding"]}
        for column in ids
    ]
    value = loss(features, labels_of(objective))
    value.backward()
    return value.detach(), gradients(model), of_head(loss), ids


def theirs(make_loss, objective, encoder, ids=None):
    trainee = trainable_of(encoder)
    model = trainee.model.eval()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        loss = make_loss(model).eval()
    if ids is None:
        prompt = trainee.encoder.recipe.prompt or None
        features = [
            model.preprocess(list(column), prompt=prompt) for column in objective.examples.columns
        ]
    else:
        features = [trainee.features(column) for column in ids]
    value = loss(copy.copy(features), labels_of(objective))
    value.backward()
    return value.detach(), gradients(model), of_head(loss)


def labels_of(objective):
    labels = objective.examples.labels
    return None if labels is None else torch.from_numpy(labels)


def gradients(module):
    return {n: w.grad.clone() for n, w in module.named_parameters() if w.grad is not None}


def of_head(loss):
    """Gradients of what a loss has beside the model; a decoder learns with it."""
    return {n: g for n, g in gradients(loss).items() if n.startswith("classifier.")}


def check_equal(objective, encoder, make_loss):
    value, of_model, of_loss, ids, _ = ours(objective, encoder)
    same_ids = ids if objective.views is not None else None
    expected, their_model, their_loss = theirs(make_loss, objective, encoder, same_ids)
    assert value > 1e-3
    torch.testing.assert_close(value, expected, atol=1e-6, rtol=1e-6)
    assert set(of_model) == set(their_model) and set(of_loss) == set(their_loss)
    largest = max(float(gradient.abs().max()) for gradient in their_model.values())
    assert largest > 1e-3
    for name, gradient in {**their_model, **their_loss}.items():
        found = of_loss.get(name, of_model.get(name))
        torch.testing.assert_close(found, gradient, atol=1e-6 * max(1, largest), rtol=1e-5)
