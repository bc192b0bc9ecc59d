"""A model to be trained has the encoder's vectors, before and after a folder."""

import json

import numpy as np
import pytest
import torch

from embedtopics import SentenceEncoder
from embedtopics.encoders import CachedEncoder, StaticEncoder
from embedtopics.training import TrainingSettings
from embedtopics.training.objectives._trainable import save_trainable, trainable_of
from tests.encoders.test_families import checkpoint  # noqa: F401
from tests.factories import exact_encoder, refuses

TEXTS = [
    "the cat sat on the mat",
    "a dog ran in the park",
    "red and blue " * 9,
    "stone",
    "light or sound zebra 日本語 😀",
    "the river " * 3,
]


def vectors_of(trainee, texts=TEXTS):
    """What the engine gets: ids through `features` and the model, in eval mode."""
    with torch.no_grad():
        made = trainee.model.eval()(trainee.features(trainee.tokenize_texts(texts)))
    return made["sentence_embedding"].numpy()


def check_same(encoder, tmp_path):
    """Encoder, model, the ids through the model, and both readings of the folder agree."""
    from sentence_transformers import SentenceTransformer

    expected = encoder.encode(TEXTS)
    trainee = trainable_of(encoder)
    assert trainee.n_dimensions == expected.shape[1]
    np.testing.assert_allclose(trainee.model.encode(TEXTS), expected, atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(vectors_of(trainee), expected, atol=1e-5, rtol=1e-5)
    save_trainable(trainee, tmp_path / "saved")
    read = SentenceTransformer(str(tmp_path / "saved"), device="cpu", local_files_only=True)
    np.testing.assert_allclose(read.encode(TEXTS), expected, atol=1e-5, rtol=1e-5)
    again = exact_encoder(tmp_path / "saved", backend="torch")
    np.testing.assert_allclose(again.encode(TEXTS), expected, atol=1e-5, rtol=1e-5)
    assert (again.max_seq_length, again.recipe.prompt) == (
        encoder.max_seq_length,
        encoder.recipe.prompt,
    )
    return trainee


@pytest.mark.parametrize("family", ["tiny_bert", "tiny_roberta"])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"pooling": "cls", "normalize": False},
        {"pooling": ["mean", "max"], "max_seq_length": 7},
        {"pooling": "weightedmean", "truncate_dim": 5},
        {"pooling": ["lasttoken", "mean_sqrt_len_tokens"], "truncate_dim": 20, "normalize": False},
        {"prompt": "the stone "},
    ],
)
def test_vectors_are_the_encoders(family, how, request, tmp_path):
    folder = request.getfixturevalue(family)
    check_same(exact_encoder(folder, backend="torch", **how), tmp_path)


@pytest.mark.parametrize("max_length", [1, 2])
def test_a_max_length_that_leaves_nothing_to_the_text_is_refused(max_length, tiny_bert):
    settings = TrainingSettings(max_seq_length=max_length)
    with refuses("max_seq_length"):
        trainable_of(exact_encoder(tiny_bert), settings)


def test_a_sentence_folder_with_a_prompt_that_is_not_pooled(make_sentence_folder, tmp_path):
    folder = make_sentence_folder(pooling="mean", legacy=False, max_length=20)
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    pooling["include_prompt"] = False
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    prompts = {"prompts": {"query": "red stone: "}, "default_prompt_name": "query"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    encoder = exact_encoder(folder, backend="torch")
    trainee = check_same(encoder, tmp_path)
    assert trainee.n_unpooled == 4  # [CLS] red stone and the colon, an unknown token
    pooled = exact_encoder(folder, prompt="", backend="torch")
    assert np.abs(pooled.encode(TEXTS) - encoder.encode(TEXTS)).max() > 0.01


@pytest.mark.parametrize("activation", ["Tanh", "Identity"])
def test_dense_layers_are_kept(activation, make_sentence_folder, tmp_path):
    from safetensors.numpy import save_file

    folder = make_sentence_folder(modules=["Transformer", "Pooling", "Dense", "Normalize"])
    dense = folder / "2_Dense"
    dense.mkdir()
    config = {
        "in_features": 16,
        "out_features": 6,
        "bias": True,
        "activation_function": f"torch.nn.modules.activation.{activation}",
    }
    if activation == "Identity":
        config["activation_function"] = "torch.nn.modules.linear.Identity"
    (dense / "config.json").write_text(json.dumps(config))
    rng = np.random.default_rng(3)
    tensors = {"linear.weight": rng.normal(size=(6, 16)), "linear.bias": rng.normal(size=6)}
    save_file({k: v.astype(np.float32) for k, v in tensors.items()}, dense / "model.safetensors")
    check_same(exact_encoder(folder, backend="torch"), tmp_path)


def test_ids_are_those_of_sentence_transformers(tiny_bert):
    trainee = trainable_of(exact_encoder(tiny_bert, max_seq_length=9, prompt="the "))
    features = trainee.model.preprocess(TEXTS, prompt="the ")
    expected = [
        ids[mask == 1].tolist()
        for ids, mask in zip(features["input_ids"], features["attention_mask"], strict=True)
    ]
    assert trainee.tokenize_texts(TEXTS) == expected
    made = trainee.features(trainee.tokenize_texts(TEXTS))
    assert (made["input_ids"] == features["input_ids"]).all()
    assert (made["attention_mask"] == features["attention_mask"]).all()


def test_a_shorter_training_length_is_said_and_not_saved(tiny_bert, tmp_path):
    encoder = exact_encoder(tiny_bert)
    trainee = trainable_of(encoder, TrainingSettings(max_seq_length=5))
    assert max(map(len, trainee.tokenize_texts(TEXTS))) == 5
    assert [decision.name for decision in trainee.decisions] == ["max_length"]
    save_trainable(trainee, tmp_path / "saved")
    assert exact_encoder(tmp_path / "saved").max_seq_length == encoder.max_seq_length
    with refuses("max_seq_length"):
        trainable_of(encoder, TrainingSettings(max_seq_length=33))


def test_what_training_does_otherwise_is_said(tiny_bert):
    encoder = SentenceEncoder(tiny_bert, precision="int8", long_texts="chunk")
    names = [decision.name for decision in trainable_of(encoder).decisions]
    assert names == ["precision", "long_texts"]


def test_all_weights_but_those_of_the_recipe_are_learned_with_dropout(tiny_bert):
    trainee = trainable_of(exact_encoder(tiny_bert, truncate_dim=5, normalize=False))
    model = trainee.model.train()
    fixed = {name for name, weight in model.named_parameters() if not weight.requires_grad}
    assert fixed == {"2.linear.weight"}
    assert {weight.dtype.__str__() for weight in model.parameters()} == {"torch.float32"}
    ids = trainee.tokenize_texts(TEXTS)
    first, second = (model(trainee.features(ids))["sentence_embedding"] for _ in range(2))
    assert not first.allclose(second, atol=1e-3)
    first.sum().backward()
    learned = [w for n, w in model.named_parameters() if w.requires_grad and "pooler" not in n]
    assert all(weight.grad is not None for weight in learned)


def test_a_checkpoint_without_a_pooler_is_saved_the_same_each_time(tiny_bert, tmp_path):
    from transformers import BertModel

    BertModel.from_pretrained(tiny_bert, add_pooling_layer=False).save_pretrained(tmp_path / "bare")
    for file in tiny_bert.glob("*token*"):
        (tmp_path / "bare" / file.name).write_bytes(file.read_bytes())
    state = torch.random.get_rng_state()
    for name in ("one", "two"):
        save_trainable(trainable_of(tmp_path / "bare"), tmp_path / name)
    assert torch.equal(state, torch.random.get_rng_state())
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two


def test_a_folder_holds_data_alone_and_no_path(tiny_bert, tmp_path):
    save_trainable(trainable_of(tiny_bert), tmp_path / "saved")
    files = [path for path in (tmp_path / "saved").rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".json", ".safetensors"}
    for path in files:
        assert str(tiny_bert.parent).encode() not in path.read_bytes(), path
    save_trainable(trainable_of(tiny_bert), tmp_path / "saved")  # again, over the first
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with refuses(""):
        save_trainable(trainable_of(tiny_bert), tmp_path / "other")


@pytest.fixture
def static(tiny_bert):
    rng = np.random.default_rng(0)
    tokenizer = exact_encoder(tiny_bert).tokenizer_json
    n_tokens = len(json.loads(tokenizer)["model"]["vocab"])
    return StaticEncoder.from_arrays(rng.normal(size=(n_tokens, 8)), tokenizer, max_seq_length=11)


def test_static_encoders(static, tmp_path):
    texts = [*TEXTS, "", "日本語", "sat ran"]
    expected = static.encode(texts)
    trainee = trainable_of(static)
    assert trainee.is_static and not expected[-2].any()
    np.testing.assert_allclose(vectors_of(trainee, texts), expected, atol=1e-5)
    # The encoder also limits the characters that it reads, which sentence-transformers does not.
    short = [text for text in texts if len(text) <= 11]
    np.testing.assert_allclose(trainee.model.encode(short), static.encode(short), atol=1e-5)
    with torch.no_grad():
        trainee.model[0].embedding.weight.mul_(torch.tensor([1.0, -2.0] * 4))
    save_trainable(trainee, tmp_path / "saved")
    again = StaticEncoder(tmp_path / "saved")
    np.testing.assert_allclose(again.encode(texts), vectors_of(trainee, texts), atol=1e-5)
    assert np.abs(again.encode(texts) - expected).max() > 0.1
    assert again.max_seq_length == 11


def test_cached_encoders_and_names_are_unwrapped(tiny_bert, tmp_path):
    encoder = exact_encoder(tiny_bert)
    cached = CachedEncoder(CachedEncoder(encoder, folder=tmp_path), folder=tmp_path)
    assert trainable_of(cached).encoder is encoder
    assert trainable_of(str(tiny_bert)).fingerprint == encoder.fingerprint


@pytest.mark.slow
@pytest.mark.smoke
def test_the_default_model(tmp_path):
    trainee = check_same(exact_encoder(), tmp_path)
    assert trainee.model[0].model.config.hidden_dropout_prob == 0.1


def test_vectors_of_a_family(checkpoint, tmp_path):  # noqa: F811
    check_same(exact_encoder(checkpoint, backend="torch"), tmp_path)
