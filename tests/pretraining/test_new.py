"""An encoder from nothing."""

import numpy as np
import pytest

from embedtopics.pretraining import new_encoder, pretrain, train_tokenizer
from tests.factories import contents, each, exact_encoder, refuses
from tests.pretraining.conftest import TEXTS, sentences


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXTS, vocab_size=200)


def test_the_weights_are_those_of_the_seed(tokenizer, tmp_path):
    from transformers import AutoModelForMaskedLM

    sizes = {"n_layers": 2, "dimensions": 128}
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        new_encoder(tokenizer, out=tmp_path / name, random_state=seed, **sizes)
    assert contents(tmp_path / "a") == contents(tmp_path / "b") != contents(tmp_path / "c")
    model = AutoModelForMaskedLM.from_pretrained(tmp_path / "a")
    assert model.config.num_attention_heads == 2 and model.config.num_hidden_layers == 2
    assert model.get_input_embeddings().weight.shape == (len(tokenizer), 128)
    encoder = exact_encoder(tmp_path / "a", backend="torch")
    assert encoder.max_seq_length == 128
    np.testing.assert_allclose(np.linalg.norm(encoder.encode(TEXTS[:2]), axis=1), 1, rtol=1e-5)


def test_it_learns_what_follows_what(tmp_path):
    texts = sentences(150)
    own = train_tokenizer(texts, vocab_size=120)
    empty = new_encoder(own, out=tmp_path / "empty", n_layers=1, dimensions=32)
    learned = pretrain(
        empty, texts, settings={"epochs": 6, "batch_size": 16, "learning_rate": 8e-3}
    )
    loss = learned.held_out.loc["loss"]
    assert loss["after"] < loss["before"] - 1.0


@pytest.mark.parametrize(("name", "value"), each(n_layers=[0], dimensions=[100, 0]))
def test_bad_parameters_write_nothing(tokenizer, tmp_path, name, value):
    with refuses(name):
        new_encoder(tokenizer, **{name: value}, out=tmp_path / "a")
    assert not contents(tmp_path)
