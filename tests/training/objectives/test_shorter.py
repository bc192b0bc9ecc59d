"""Shorter vectors and low-rank additions."""

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import losses as st

from embedtopics.encoders import StaticEncoder
from embedtopics.training.objectives._losses import (
    lengths_of,
    nli_softmax,
    triplet,
    with_matryoshka,
)
from embedtopics.training.objectives._trainable import (
    merge_adapters,
    save_trainable,
    trainable_of,
    with_lora,
)
from tests.factories import exact_encoder, refuses
from tests.training.objectives.losses import FIRST, SECOND, THIRD, check_equal
from tests.training.tables import examples_of


def test_matryoshka(encoder):
    objective = triplet(examples_of("triplets", (FIRST, SECOND, THIRD)), margin=0.9)
    made, metric = with_matryoshka(objective, (16, 8, 4)), st.TripletDistanceMetric.COSINE

    def in_lengths(model):
        return st.MatryoshkaLoss(model, st.TripletLoss(model, metric, 0.9), [16, 8, 4])

    check_equal(made, encoder, in_lengths)
    assert made.name.endswith(", matryoshka") and not made.in_batch_negatives
    assert [note.name for note in made.examples.decisions][-1] == "matryoshka"


def test_lengths_that_cannot_be():
    assert lengths_of((4, 8, 16), 16) == (16, 8, 4)
    with refuses("matryoshka"):
        lengths_of((32,), 16)
    names = ("entailment", "neutral")
    softmax = nli_softmax(examples_of("nli", (FIRST, SECOND), [0, 1, 0, 1], names))
    with refuses("objective"):
        with_matryoshka(softmax, (16, 4))


def test_lengths_are_kept_with_the_model(encoder, tmp_path):
    save_trainable(trainable_of(encoder), tmp_path / "model", matryoshka=(16, 8))
    config = json.loads((tmp_path / "model" / "config_sentence_transformers.json").read_text())
    assert config["embedtopics"] == {"matryoshka_dims": [16, 8]}
    read = SentenceTransformer(str(tmp_path / "model"), device="cpu", local_files_only=True)
    np.testing.assert_allclose(read.encode(FIRST), encoder.encode(FIRST), atol=1e-5)
    static = StaticEncoder.from_arrays(np.eye(72), encoder.tokenizer_json, made_from={"a": 1})
    save_trainable(trainable_of(static), tmp_path / "static", matryoshka=(16,))
    again = StaticEncoder(tmp_path / "static")
    assert again.made_from == {"a": 1, "matryoshka_dims": [16]}
    np.testing.assert_allclose(again.encode(FIRST), static.encode(FIRST), atol=1e-6)


@pytest.mark.parametrize("family", ["tiny_bert", "tiny_roberta"])
def test_low_rank_additions(family, request, tmp_path):
    encoder = exact_encoder(request.getfixturevalue(family))
    expected = encoder.encode(FIRST)
    trainee = with_lora(trainable_of(encoder), 2, random_state=3)
    assert trainee.has_adapters and trainee.decisions[-1].value == 2
    np.testing.assert_allclose(trainee.model.encode(FIRST), expected, atol=1e-5)
    learned = {name for name, w in trainee.model.named_parameters() if w.requires_grad}
    assert len(learned) == 2 * 2 * 6  # A and B of six linear layers in each of two layers
    assert all("lora_" in name and "pooler" not in name for name in learned)
    again = with_lora(trainable_of(encoder), 2, random_state=3)
    for (name, one), two in zip(
        trainee.model.named_parameters(), again.model.parameters(), strict=True
    ):
        assert torch.equal(one, two), name
    with torch.no_grad():
        for name, weight in trainee.model.named_parameters():
            if "lora_B" in name:
                weight.add_(torch.linspace(-1, 1, weight.numel()).reshape(weight.shape))
    changed = trainee.model.encode(FIRST)
    assert np.abs(changed - expected).max() > 0.05
    save_trainable(trainee, tmp_path / "saved")
    assert trainee.has_adapters  # training may go on
    keys = set(load_file(tmp_path / "saved" / "model.safetensors"))
    assert not any("lora" in key or "base_layer" in key for key in keys)
    np.testing.assert_allclose(exact_encoder(tmp_path / "saved").encode(FIRST), changed, atol=1e-5)
    merge_adapters(trainee.model)
    assert not trainee.has_adapters
    np.testing.assert_allclose(trainee.model.encode(FIRST), changed, atol=1e-5)


def test_low_rank_additions_that_cannot_be(encoder, monkeypatch):
    static = StaticEncoder.from_arrays(np.eye(72), encoder.tokenizer_json)
    with refuses("lora_rank"):
        with_lora(trainable_of(static), 2)
    with refuses("lora_rank"):
        with_lora(trainable_of(encoder), 0)
    with refuses("encoder"):
        with_lora(with_lora(trainable_of(encoder), 1), 1)
    monkeypatch.setitem(__import__("sys").modules, "peft", None)
    with pytest.raises(ImportError, match=r"peft.*embedtopics\[train\]"):
        with_lora(trainable_of(encoder), 1)
