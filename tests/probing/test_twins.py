import gc
import json
from pathlib import Path

import numpy as np
import pytest

from embedtopics import InputError, probing
from embedtopics.encoders import SentenceEncoder


@pytest.mark.parametrize("name", ["tiny_bert", "tiny_roberta"])
def test_a_twin_has_the_shape_and_tokens_but_other_weights(name, request):
    import torch

    checkpoint = request.getfixturevalue(name)
    before = torch.random.get_rng_state()
    one, same, other = (probing.random_twin(checkpoint, seed) for seed in (3, 3, 4))
    assert torch.equal(before, torch.random.get_rng_state())
    assert one.name == f"{checkpoint} (random weights, seed 3)"
    original = SentenceEncoder(checkpoint)
    assert one.max_length == original.max_length
    assert one.tokenizer_json == original.tokenizer_json
    texts = ["the cat sat", "unknowable"]
    states = [
        probing.hidden_states(texts, e, dtype="float32") for e in (original, one, same, other)
    ]
    assert len({s.fingerprint for s in states}) == 3
    assert states[1].fingerprint == states[2].fingerprint
    assert states[1].encoder == one.name
    for layers in zip(*(s.vectors for s in states), strict=True):
        np.testing.assert_array_equal(layers[1], layers[2])
        assert not np.allclose(layers[0], layers[1]) and not np.allclose(layers[1], layers[3])
    np.testing.assert_array_equal(states[0].n_pieces, states[1].n_pieces)


def test_weights_are_drawn_as_the_architecture_draws_them(tiny_bert, tmp_path):
    from safetensors.numpy import load_file

    twin = probing.random_twin(tiny_bert)
    folder = twin.recipe.checkpoint.folder
    weights = load_file(folder / "model.safetensors")
    drawn = weights["encoder.layer.0.intermediate.dense.weight"]
    config = json.loads((Path(tiny_bert) / "config.json").read_text())
    assert drawn.std() == pytest.approx(config["initializer_range"], rel=0.1)
    assert (weights["encoder.layer.1.attention.output.LayerNorm.weight"] == 1).all()
    del twin
    gc.collect()
    assert not folder.exists()


def test_bad_input(tiny_bert):
    with pytest.raises(InputError, match="seed must be an integer from 0"):
        probing.random_twin(tiny_bert, seed=-1)
    with pytest.raises(InputError, match="a seed below"):
        probing.random_twin(tiny_bert, seed=2**64)
    with pytest.raises(InputError, match="a transformer, whose layers"):
        probing.random_twin("tfidf")
