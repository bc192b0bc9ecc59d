"""Folders that sentence-transformers saved, against sentence-transformers itself."""

import json

import numpy as np
import pytest

from embedtopics.errors import ModelLoadError
from tests.factories import exact_encoder

TEXTS = ["", "the cat", "dog " * 30, "red and blue", "light or sound and the river"]

pytestmark = [pytest.mark.slow, pytest.mark.smoke, pytest.mark.filterwarnings("default")]


@pytest.fixture
def save(tiny_bert, tmp_path):
    """Save modules after a tiny transformer; return its folder and the oracle."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Transformer

    def make(*after, **settings):
        body = Transformer(str(tiny_bert), max_seq_length=12)
        oracle = SentenceTransformer(modules=[body, *after], device="cpu", **settings)
        with torch.no_grad():
            oracle.save(str(tmp_path / "saved"))
        return tmp_path / "saved", oracle

    return make


def pooling(*modes, **settings):
    from sentence_transformers.models import Pooling

    return Pooling(16, pooling_mode=modes, **settings)


def assert_same(encoder, oracle, **how):
    expected = oracle.encode(TEXTS, show_progress_bar=False, **how)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)


@pytest.mark.parametrize(
    "modes",
    [("mean_sqrt_len_tokens",), ("weightedmean",), ("lasttoken",), ("max", "mean"),
     ("mean", "cls", "max")],
)  # fmt: skip
def test_every_pooling_and_several_joined(save, modes):
    folder, oracle = save(pooling(*modes))
    encoder = exact_encoder(folder)
    assert encoder.dimensions == 16 * len(modes)
    assert_same(encoder, oracle)


@pytest.mark.parametrize("activation", ["Tanh", "Identity", "ReLU"])
def test_a_dense_layer_like_that_of_labse(save, activation):
    import torch
    from sentence_transformers.models import Dense, Normalize

    dense = Dense(16, 6, activation_function=getattr(torch.nn, activation)())
    folder, oracle = save(pooling("cls"), dense, Normalize())
    encoder = exact_encoder(folder)
    assert encoder.dimensions == 6
    assert_same(encoder, oracle)


def test_a_dense_layer_with_code_of_its_own_or_damage_is_refused(save):
    from sentence_transformers.models import Dense

    folder, _ = save(pooling("mean"), Dense(16, 6))
    file = folder / "2_Dense" / "config.json"
    content = file.read_text()
    file.write_text(json.dumps({**json.loads(content), "activation_function": "my_package.Evil"}))
    with pytest.raises(ModelLoadError, match=r"got my_package\.Evil"):
        exact_encoder(folder)
    file.write_text(content)
    weights = folder / "2_Dense" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:60])
    with pytest.raises(ModelLoadError, match="2_Dense"):
        exact_encoder(folder)


@pytest.mark.parametrize("mode", ["mean", "max", "weightedmean", "lasttoken", "cls"])
def test_a_prompt_that_is_read_and_not_pooled(save, mode):
    prompts = {"query": "the cat and "}
    folder, oracle = save(
        pooling(mode, include_prompt=False), prompts=prompts, default_prompt_name="query"
    )
    texts = TEXTS[1:]  # of the empty text no token would be left
    expected = oracle.encode(texts, show_progress_bar=False)
    np.testing.assert_allclose(exact_encoder(folder).encode(texts), expected, atol=1e-5)


def test_vectors_are_cut_before_they_are_scaled(save):
    from sentence_transformers.models import Normalize

    folder, oracle = save(pooling("mean"), Normalize())
    encoder = exact_encoder(folder, truncate_dim=5)
    assert encoder.dimensions == 5
    assert_same(encoder, oracle, truncate_dim=5, normalize_embeddings=True)
    assert encoder.fingerprint != exact_encoder(folder).fingerprint


@pytest.mark.parametrize("family", ["t5", "umt5"])
def test_the_encoder_of_an_encoder_decoder_like_sentence_t5(tiny_bert, tmp_path, family):
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Dense, Normalize, Transformer
    from transformers import AutoConfig, AutoModelForTextEncoding, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    config = AutoConfig.for_model(
        family, vocab_size=len(tokenizer), d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2,
        pad_token_id=0, decoder_start_token_id=0,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        AutoModelForTextEncoding.from_config(config).save_pretrained(tmp_path / "body")
        dense = Dense(16, 8, bias=False, activation_function=torch.nn.Identity())
    tokenizer.save_pretrained(tmp_path / "body")
    body = Transformer(str(tmp_path / "body"), max_seq_length=12)
    oracle = SentenceTransformer(modules=[body, pooling("mean"), dense, Normalize()], device="cpu")
    oracle.save(str(tmp_path / "saved"))
    encoder = exact_encoder(tmp_path / "saved")
    assert encoder.backend == "torch"
    assert_same(encoder, oracle)
