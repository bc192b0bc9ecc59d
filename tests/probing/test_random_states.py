import json
from pathlib import Path

import numpy as np
import pytest

from embedtopics import SentenceEncoder, probing
from embedtopics.probing._extract import random_model


@pytest.mark.parametrize("name", ["tiny_bert", "tiny_roberta"])
def test_a_random_model_has_the_architecture_and_tokens_but_other_weights(name, request):
    import torch

    checkpoint = request.getfixturevalue(name)
    texts, before = ["the cat sat", "unknowable"], torch.random.get_rng_state()
    one, same, other = (
        probing.hidden_states(
            checkpoint, texts, random_weights=True, random_state=seed, dtype="float32"
        )
        for seed in (3, 3, 4)
    )
    assert torch.equal(before, torch.random.get_rng_state())
    assert one.encoder == f"{checkpoint} (random weights, random_state 3)"
    trained = probing.hidden_states(checkpoint, texts, dtype="float32")
    assert len({s.fingerprint for s in (trained, one, other)}) == 3
    assert one.fingerprint == same.fingerprint
    every = (trained, one, same, other)
    for layers in zip(*(s.vectors for s in every), strict=True):
        np.testing.assert_array_equal(layers[1], layers[2])
        assert not np.allclose(layers[0], layers[1]) and not np.allclose(layers[1], layers[3])
    np.testing.assert_array_equal(trained.n_pieces, one.n_pieces)


def test_weights_are_initialized_as_the_architecture_does(tiny_bert):
    from safetensors.numpy import load_file

    with random_model(tiny_bert, 0) as model:
        folder, original = model.recipe.checkpoint.folder, SentenceEncoder(tiny_bert)
        assert model.max_seq_length == original.max_seq_length
        assert model.tokenizer_json == original.tokenizer_json
        weights = load_file(folder / "model.safetensors")
    drawn = weights["encoder.layer.0.intermediate.dense.weight"]
    config = json.loads((Path(tiny_bert) / "config.json").read_text())
    assert drawn.std() == pytest.approx(config["initializer_range"], rel=0.1)
    assert (weights["encoder.layer.1.attention.output.LayerNorm.weight"] == 1).all()
    assert not folder.exists()
