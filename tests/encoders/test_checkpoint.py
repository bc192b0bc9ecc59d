import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from embedtopics import SentenceEncoder
from embedtopics.encoders.sentence._checkpoint import UnitLength, read_checkpoint
from embedtopics.errors import ModelLoadError
from tests.encoders.conftest import PACKAGE


def edit_json(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.fixture
def folder(tiny_bert, tmp_path):
    return shutil.copytree(tiny_bert, tmp_path / "copy")


def test_a_plain_folder_is_pooled_by_mean_and_normalised(folder):
    checkpoint = read_checkpoint(folder)
    assert (checkpoint.pooling, checkpoint.steps) == (("mean",), (UnitLength(),))
    assert (checkpoint.max_length, checkpoint.position_limit) == (32, 32)
    assert checkpoint.weights == (folder / "model.safetensors",)
    edit_json(folder / "tokenizer_config.json", model_max_length=20)
    assert read_checkpoint(folder).max_length == 20


@pytest.mark.parametrize("legacy", [True, False])
@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("normalize", [True, False])
def test_a_sentence_transformers_folder_says_how(make_sentence_folder, pooling, normalize, legacy):
    checkpoint = read_checkpoint(make_sentence_folder(pooling, normalize, legacy=legacy))
    assert checkpoint.pooling == (pooling,)
    assert checkpoint.steps == (UnitLength(),) * normalize
    assert checkpoint.max_length == 12
    # A declared length stays within the positions.
    assert read_checkpoint(make_sentence_folder(max_length=4096)).max_length == 32


@pytest.mark.parametrize(
    "name", ["config.json", "model.safetensors", "tokenizer.json", "1_Pooling/config.json"]
)
def test_a_missing_file_is_named(make_sentence_folder, name):
    folder = make_sentence_folder()
    (folder / name).unlink()
    with pytest.raises(ModelLoadError, match=rf"checkpoint file {(folder / name).name} in .*bert"):
        read_checkpoint(folder)


def test_shards_are_found_and_a_missing_one_is_named(folder):
    (folder / "model.safetensors").rename(folder / "model-2.safetensors")
    index = {"weight_map": {"b": "model-2.safetensors", "a": "model-1.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelLoadError, match=r"model-1\.safetensors"):
        read_checkpoint(folder)
    shutil.copy(folder / "model-2.safetensors", folder / "model-1.safetensors")
    names = [path.name for path in read_checkpoint(folder).weights]
    assert names == ["model-1.safetensors", "model-2.safetensors"]


def modules(*kinds, **changes):
    """Return the content of modules.json, and change the last entry."""
    listed = [{"path": f"{place}_{kind}", "type": f"{PACKAGE}.{kind}"}
              for place, kind in enumerate(kinds)]  # fmt: skip
    listed[-1].update(changes)
    return json.dumps(listed)


@pytest.mark.parametrize("legacy", [True, False])
def test_poolings_are_joined_in_the_order_of_their_vectors_or_refused(make_sentence_folder, legacy):
    folder = make_sentence_folder(legacy=True)
    edit_json(folder / "1_Pooling" / "config.json", pooling_mode_cls_token=True)
    assert read_checkpoint(folder).pooling == ("cls", "mean")
    folder = make_sentence_folder("mean_of_means", legacy=legacy)
    if legacy:
        edit_json(folder / "1_Pooling" / "config.json", pooling_mode_mean_of_means=True)
    with pytest.raises(ModelLoadError, match="got mean_of_means"):
        read_checkpoint(folder)


@pytest.mark.parametrize("cut", [4, 1000, -1])
def test_weights_that_broke_off_are_found_before_they_are_loaded(folder, cut):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:cut])
    with pytest.raises(ModelLoadError, match=r"whole safetensors weights in .*model\.safetensors"):
        read_checkpoint(folder)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.safetensors.index.json", "{}", "weight_map: field required"),
        ("tokenizer_config.json", '{"model_max_length": "512"}', "model_max_length.*integer"),
        ("tokenizer_config.json", '{"model_max_length": -1}', "at least 3 tokens.*-1"),
        ("sentence_bert_config.json", '{"max_seq_length": 0}', "at least 3 tokens.*length 0"),
        ("config_sentence_transformers.json",
         '{"prompts": {"a": "b"}, "default_prompt_name": "c"}', "KeyError 'c'"),
        ("modules.json", modules("Transformer", "Pooling", "LSTM"), "Pooling, LSTM"),
        ("modules.json", modules("Pooling", "Transformer"), "got Pooling, Transformer"),
        ("modules.json", modules("Transformer", "P", type="own.Pooling"), r"own\.Pooling"),
        ("modules.json", modules("Transformer", "Pooling", path="../x"), "not below the"),
        ("config.json", '{"model_type": ', r"broken file \(.*config\.json: "),
        ("config.json", {"is_encoder_decoder": True}, "encoder-decoder of type 'bert'"),
        ("sentence_bert_config.json", '{"transformer_task": "generation"}', "'generation'"),
    ],
)  # fmt: skip
def test_json_of_another_form_is_named(make_sentence_folder, name, content, message):
    folder = make_sentence_folder(max_length=None)
    if "index" in name:
        (folder / "model.safetensors").unlink()
    if isinstance(content, dict):
        content = json.dumps({**json.loads((folder / name).read_text()), **content})
    (folder / name).write_text(content)
    with pytest.raises(ModelLoadError, match=message) as caught:
        read_checkpoint(folder)
    assert folder.name in str(caught.value)


def test_positions_are_counted_as_each_family_does(tiny_roberta, tmp_path):
    assert read_checkpoint(tiny_roberta).max_length == 32
    folder = shutil.copytree(tiny_roberta, tmp_path / "roberta")
    edit_json(folder / "config.json", model_type="mpnet", pad_token_id=0)
    assert read_checkpoint(folder).position_limit == 32
    edit_json(folder / "config.json", model_type="roberta")
    assert read_checkpoint(folder).position_limit == 33
    edit_json(folder / "config.json", pad_token_id=None)
    with pytest.raises(ModelLoadError, match="TypeError"):
        read_checkpoint(folder)


def test_what_makes_tokens_is_read(folder, tiny_roberta, tmp_path):
    (folder / "vocab.txt").write_text("the same again")
    before = read_checkpoint(folder)
    assert [path.name for path in before.tokenizer_files] == ["tokenizer.json"]
    edit_json(folder / "tokenizer_config.json", model_max_length=30, name_or_path="elsewhere")
    assert read_checkpoint(folder).tokenizer_configuration == before.tokenizer_configuration
    edit_json(folder / "tokenizer_config.json", do_lower_case=False)
    assert read_checkpoint(folder).tokenizer_configuration != before.tokenizer_configuration
    pairs = shutil.copytree(tiny_roberta, tmp_path / "pairs")
    (pairs / "tokenizer.json").rename(pairs / "vocab.json")
    (pairs / "merges.txt").write_text("t h")
    names = [path.name for path in read_checkpoint(pairs).tokenizer_files]
    assert names == ["vocab.json", "merges.txt"]


def changed_copy(folder, tmp_path, **entries):
    """Copy a checkpoint, and change entries of its config.json."""
    copy = Path(shutil.copytree(folder, tmp_path / "changed", symlinks=True))
    config = json.loads((copy / "config.json").read_text("utf-8"))
    (copy / "config.json").write_text(json.dumps({**config, **entries}), "utf-8")
    return copy


@pytest.mark.parametrize("backend", [None, "torch"])
@pytest.mark.parametrize(
    "entries",
    [
        {"num_hidden_layers": 0},
        {"num_hidden_layers": -3},
        {"num_hidden_layers": 2.0},
        {"num_hidden_layers": "2"},
        {"num_hidden_layers": 10**9},
        {"num_attention_heads": 3},
        {"num_attention_heads": True},
        {"num_attention_heads": -2},
        {"hidden_size": 0},
        {"hidden_size": 16.5},
        {"vocab_size": -1},
        {"vocab_size": 10**12},
        {"max_position_embeddings": 10**12},
        {"max_position_embeddings": 33},
        {"layer_norm_eps": 0},
        {"layer_norm_eps": float("nan")},
        {"layer_norm_eps": "1e-12"},
        {"model_type": 1},
        {"attn_implementation": "somebody/kernel"},
    ],
    ids=str,
)
def test_numbers_that_no_transformer_has_are_refused(tiny_bert, tmp_path, entries, backend):
    folder = changed_copy(tiny_bert, tmp_path, **entries)
    with pytest.raises(ModelLoadError):
        SentenceEncoder(folder, precision="float32", backend=backend).encode(["the cat"])


def test_a_modernbert_without_kinds_of_layers_is_refused(tmp_path, tokenizer):
    import torch
    from transformers import ModernBertConfig, ModernBertModel

    n_tokens = tokenizer.get_vocab_size()
    ids = {"pad_token_id": 0, "cls_token_id": 2, "sep_token_id": 3}
    ids |= {"bos_token_id": 2, "eos_token_id": 3}
    config = ModernBertConfig(
        vocab_size=n_tokens, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=2, max_position_embeddings=32, **ids,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        ModernBertModel(config).save_pretrained(tmp_path / "sound")
    tokenizer.save(str(tmp_path / "sound" / "tokenizer.json"))
    sound = SentenceEncoder(tmp_path / "sound", precision="float32")
    assert np.isfinite(sound.encode(["the cat"])).all()
    folder = changed_copy(tmp_path / "sound", tmp_path, layer_types=[])
    with pytest.raises(ModelLoadError, match="layer"):
        SentenceEncoder(folder, precision="float32").encode(["the cat"])


@pytest.mark.parametrize("backend", [None, "torch"])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "name", ["embeddings.LayerNorm.bias", "encoder.layer.1.output.dense.weight"]
)
def test_one_weight_that_is_no_number_is_refused(tiny_bert, tmp_path, backend, number, name):
    folder = changed_copy(tiny_bert, tmp_path)
    weights = load_file(folder / "model.safetensors")
    weights[name].flat[-1] = number
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelLoadError, match=name.replace(".", r"\.")):
        SentenceEncoder(folder, precision="float32", backend=backend).encode(["the cat"])


def test_a_dense_layer_that_is_no_number_is_refused(make_sentence_folder):
    folder = make_sentence_folder(modules=["Transformer", "Pooling", "Dense"])
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense" / "config.json").write_text("{}")
    weight = np.eye(16, dtype=np.float32)
    weight[3, 5] = np.inf
    save_file({"linear.weight": weight}, folder / "2_Dense" / "model.safetensors")
    with pytest.raises(ModelLoadError, match=r"linear\.weight"):
        SentenceEncoder(folder)


@pytest.mark.parametrize(
    "place", ["../x.safetensors", "/x.safetensors", "a/../../x.safetensors", "..\\x.safetensors"]
)
def test_shards_outside_of_a_checkpoint_are_refused(tiny_bert, tmp_path, place):
    folder = changed_copy(tiny_bert, tmp_path)
    names = list(load_file(folder / "model.safetensors"))
    (folder / "model.safetensors").rename(tmp_path / "x.safetensors")
    index = {"weight_map": dict.fromkeys(names, place)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelLoadError, match="not below the checkpoint"):
        SentenceEncoder(folder)


@pytest.mark.parametrize(
    "name",
    ["model.safetensors", "tokenizer.json", "config.json", "1_Pooling/config.json", "1_Pooling"],
)
def test_links_out_of_a_checkpoint_are_refused(make_sentence_folder, tmp_path, name):
    folder = make_sentence_folder()
    (folder / name).rename(tmp_path / "outside")
    (folder / name).symlink_to(tmp_path / "outside")
    with pytest.raises(ModelLoadError, match=r"in its folder|inside the checkpoint"):
        SentenceEncoder(folder)


def test_links_of_a_snapshot_to_the_blobs_of_the_hub_are_followed(make_sentence_folder, tmp_path):
    source = make_sentence_folder()
    cache = tmp_path / "models--somebody--model"
    snapshot = cache / "snapshots" / "0123abcd"
    (cache / "blobs").mkdir(parents=True)
    for number, file in enumerate(path for path in source.rglob("*") if path.is_file()):
        link = snapshot / file.relative_to(source)
        link.parent.mkdir(parents=True, exist_ok=True)
        blob = Path(shutil.copyfile(file, cache / "blobs" / str(number)))
        link.symlink_to(os.path.relpath(blob, link.parent))
    vectors = SentenceEncoder(snapshot, precision="float32").encode(["the cat sat"])
    expected = SentenceEncoder(source, precision="float32").encode(["the cat sat"])
    np.testing.assert_array_equal(vectors, expected)

    (snapshot / "config.json").unlink()
    (snapshot / "config.json").symlink_to(source / "config.json")
    with pytest.raises(ModelLoadError, match="in its folder"):
        SentenceEncoder(snapshot)
