"""Each family of transformers: made trainable, made smaller, given low-rank additions, saved."""

import numpy as np
import pytest
import torch

from embedtopics.encoders import SentenceEncoder
from embedtopics.errors import InputError
from embedtopics.training.objectives._losses import DECODERS, tsdae
from embedtopics.training.objectives._trainable import (
    THINNED,
    fewer_layers,
    save_trainable,
    trainable_of,
    with_lora,
)
from tests.encoders.test_families import TEXTS, checkpoint  # noqa: F401
from tests.training.objectives.losses import examples_of, ours_with


def test_vectors_of_a_family(checkpoint, tmp_path):  # noqa: F811
    encoder = SentenceEncoder(checkpoint, runtime="torch")
    trainee = trainable_of(encoder)
    expected = encoder.encode(TEXTS)
    np.testing.assert_allclose(trainee.model.encode(TEXTS), expected, atol=1e-5)
    with torch.no_grad():
        made = trainee.model(trainee.features(trainee.tokenize_texts(TEXTS)))["sentence_embedding"]
    np.testing.assert_allclose(made.numpy(), expected, atol=1e-5)
    save_trainable(trainee, tmp_path / "saved")
    again = SentenceEncoder(tmp_path / "saved", runtime="torch")
    np.testing.assert_allclose(again.encode(TEXTS), expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.smoke
def test_what_a_family_can_learn_by(checkpoint, tmp_path):  # noqa: F811
    encoder = SentenceEncoder(checkpoint, runtime="torch")
    trainee, expected = trainable_of(encoder), encoder.encode(TEXTS)
    family = encoder.recipe.checkpoint.family
    small = refused(lambda: fewer_layers(encoder, [0, 2]))
    assert (small is None) == (family not in THINNED)
    if small is not None:
        save_trainable(small, tmp_path / "small")
        read = SentenceEncoder(tmp_path / "small", runtime="torch").encode(TEXTS)
        np.testing.assert_allclose(read, small.model.encode(TEXTS), atol=1e-5)
        assert np.abs(read - expected).max() > 0.01
    objective = refused(lambda: tsdae(examples_of("texts", (TEXTS[:1] + TEXTS[3:],)), trainee))
    assert (objective is None) == (family not in DECODERS)
    if objective is not None:
        value, gradients, _, _ = ours_with(objective, trainee)
        assert torch.isfinite(value) and gradients
    learned = with_lora(trainable_of(encoder), 2)
    np.testing.assert_allclose(learned.model.encode(TEXTS), expected, atol=1e-5)
    with torch.no_grad():
        for name, weight in learned.model.named_parameters():
            if "lora_B" in name:
                weight.fill_(0.5)
    save_trainable(learned, tmp_path / "lora")
    read = SentenceEncoder(tmp_path / "lora", runtime="torch").encode(TEXTS)
    np.testing.assert_allclose(read, learned.model.encode(TEXTS), atol=1e-5)
    assert np.abs(read - expected).max() > 0.01


def refused(make):
    try:
        return make()
    except InputError:
        return None
