import json
import shutil

import pytest

from embedtopics.encoders.checkpoint import read_checkpoint
from embedtopics.encoders.head import Scale
from embedtopics.errors import ModelLoadError


def edit_json(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.fixture
def folder(tiny_bert, tmp_path):
    return shutil.copytree(tiny_bert, tmp_path / "copy")


def test_a_plain_folder_is_pooled_by_mean_and_normalised(folder):
    checkpoint = read_checkpoint(folder)
    assert (checkpoint.head.pooling, checkpoint.head.steps) == (("mean",), (Scale(),))
    assert (checkpoint.max_length, checkpoint.position_limit) == (32, 32)
    assert checkpoint.weights == (folder / "model.safetensors",)


def test_the_tokenizer_may_set_the_length(folder):
    edit_json(folder / "tokenizer_config.json", model_max_length=20)
    assert read_checkpoint(folder).max_length == 20


def test_positions_after_the_padding_id_are_not_counted(tiny_roberta):
    assert read_checkpoint(tiny_roberta).max_length == 32


@pytest.mark.parametrize("legacy", [True, False])
@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("normalize", [True, False])
def test_a_sentence_transformers_folder_says_how(make_sentence_folder, pooling, normalize, legacy):
    checkpoint = read_checkpoint(make_sentence_folder(pooling, normalize, legacy=legacy))
    assert checkpoint.head.pooling == (pooling,)
    assert checkpoint.head.steps == (Scale(),) * normalize
    assert checkpoint.max_length == 12


def test_a_declared_length_stays_within_the_positions(make_sentence_folder):
    assert read_checkpoint(make_sentence_folder(max_length=4096)).max_length == 32


def test_the_default_prompt_is_read(make_sentence_folder):
    folder = make_sentence_folder()
    settings = {"prompts": {"passage": "passage: "}, "default_prompt_name": "passage"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    checkpoint = read_checkpoint(folder)
    assert checkpoint.prompt == "passage: "
    assert checkpoint.prompts == {"passage": "passage: "}
    assert checkpoint.head.pools_prompt
    edit_json(folder / "1_Pooling" / "config.json", include_prompt=False)
    assert not read_checkpoint(folder).head.pools_prompt


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(ModelLoadError, match=rf"checkpoint file {name} in .*copy"):
        read_checkpoint(folder)


def test_a_missing_pooling_file_is_named(make_sentence_folder):
    folder = make_sentence_folder()
    (folder / "1_Pooling" / "config.json").unlink()
    with pytest.raises(ModelLoadError, match=r"config\.json in .*1_Pooling"):
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


def test_pickled_weights_are_refused(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelLoadError, match="never loaded: save the checkpoint again"):
        read_checkpoint(folder)


@pytest.mark.parametrize("content", ['{"model_type": ', "[1, 2]", "\x00"])
def test_broken_json_is_named(folder, content):
    (folder / "config.json").write_text(content)
    with pytest.raises(ModelLoadError, match=r"broken file \(.*config\.json: "):
        read_checkpoint(folder)


@pytest.mark.parametrize(
    ("modules", "expected"),
    [
        (["Transformer", "Pooling", "LSTM"], "got sentence_transformers.models.LSTM"),
        (["Pooling", "Transformer"], "got Pooling, Transformer"),
        (["Transformer", "Pooling", "WeightedLayerPooling"], "Pooling, WeightedLayerPooling"),
        (["Transformer"], "got Transformer"),
    ],
)
def test_other_modules_are_refused_by_name(make_sentence_folder, modules, expected):
    with pytest.raises(ModelLoadError, match=expected):
        read_checkpoint(make_sentence_folder(modules=modules))


def test_modules_from_elsewhere_are_refused(make_sentence_folder):
    folder = make_sentence_folder()
    modules = json.loads((folder / "modules.json").read_text())
    modules[1]["type"] = "custom_code.Pooling"
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ModelLoadError, match=r"got custom_code\.Pooling"):
        read_checkpoint(folder)


@pytest.mark.parametrize("legacy", [True, False])
def test_other_poolings_are_refused_by_name(make_sentence_folder, legacy):
    folder = make_sentence_folder("mean_of_means", legacy=legacy)
    if legacy:
        edit_json(folder / "1_Pooling" / "config.json", pooling_mode_mean_of_means=True)
    with pytest.raises(ModelLoadError, match="got mean_of_means"):
        read_checkpoint(folder)


def test_joined_poolings_are_read_in_the_order_of_their_vectors(make_sentence_folder):
    folder = make_sentence_folder()
    edit_json(folder / "1_Pooling" / "config.json", pooling_mode_cls_token=True)
    assert read_checkpoint(folder).head.pooling == ("cls", "mean")


@pytest.mark.parametrize("cut", [4, 1000, -1])
def test_weights_that_broke_off_are_found_before_they_are_loaded(folder, cut):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:cut])
    with pytest.raises(ModelLoadError, match=r"whole safetensors weights in .*model\.safetensors"):
        read_checkpoint(folder)


def test_a_module_outside_of_the_checkpoint_is_refused(make_sentence_folder):
    folder = make_sentence_folder()
    modules = json.loads((folder / "modules.json").read_text())
    modules[1]["path"] = "../elsewhere"
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ModelLoadError, match="inside the checkpoint"):
        read_checkpoint(folder)


def test_an_encoder_decoder_is_refused(folder):
    edit_json(folder / "config.json", is_encoder_decoder=True)
    with pytest.raises(ModelLoadError, match="encoder-decoder of type 'bert'"):
        read_checkpoint(folder)


def test_another_task_is_refused(make_sentence_folder):
    folder = make_sentence_folder()
    edit_json(folder / "sentence_bert_config.json", transformer_task="text-generation")
    with pytest.raises(ModelLoadError, match="text-generation"):
        read_checkpoint(folder)
