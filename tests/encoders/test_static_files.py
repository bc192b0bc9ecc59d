"""Folders of static encoders: written for and by model2vec, and broken in many ways."""

import json
import shutil

import numpy as np
import pytest
from model2vec import StaticModel
from model2vec.model import quantize_model
from safetensors.numpy import load_file, save_file

from embedtopics import SentenceEncoder
from embedtopics.encoders import StaticEncoder
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.encoders.static._encoder import holds_static_encoder
from embedtopics.errors import CorruptFileError, InputError, ModelLoadError


@pytest.fixture
def folder(tokenizer, table, tmp_path):
    StaticEncoder.from_arrays(table, tokenizer).save(tmp_path / "mine")
    return tmp_path / "mine"


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("max_length", [None, 4])
def test_model2vec_reads_what_is_written(tokenizer, table, texts, tmp_path, normalize, max_length):
    encoder = StaticEncoder.from_arrays(
        table, tokenizer, normalize=normalize, max_seq_length=max_length,
        languages=["en"], made_from={"method": "test"},
    )  # fmt: skip
    encoder.save(tmp_path / "mine")
    theirs = StaticModel.from_pretrained(tmp_path / "mine")
    np.testing.assert_allclose(encoder.encode(texts), theirs.encode(texts), atol=1e-6)
    again = StaticEncoder(tmp_path / "mine")
    np.testing.assert_array_equal(again.encode(texts), encoder.encode(texts))
    assert again.fingerprint == encoder.fingerprint
    assert (again.languages, again.made_from) == (("en",), {"method": "test"})
    assert again.settings == {**encoder.settings, "folder": str(tmp_path / "mine")}


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8"])
@pytest.mark.parametrize("clusters", [None, 9])
@pytest.mark.parametrize("normalize", [True, False])
def test_what_model2vec_writes_is_read(
    tokenizer, table, texts, tmp_path, dtype, clusters, normalize
):
    weights = np.linspace(0.5, 2, len(table)).astype(np.float32)
    theirs = StaticModel(table, tokenizer, weights=weights, normalize=normalize, language=["en"])
    theirs = quantize_model(theirs, vocabulary_quantization=clusters, quantize_to=dtype)
    theirs.save_pretrained(tmp_path)
    ours = StaticEncoder(tmp_path)
    expected = theirs.encode(texts)
    # model2vec rounds its answer to the type of a float16 table.
    tolerance = 2e-3 if dtype == "float16" else 1e-6
    np.testing.assert_allclose(ours.encode(texts), expected, rtol=tolerance, atol=tolerance)
    assert (ours.max_seq_length, ours.normalize) == (512, normalize)


@pytest.mark.filterwarnings("default")
def test_sentence_transformers_reads_what_is_written(tokenizer, table, tmp_path):
    from sentence_transformers import SentenceTransformer

    encoder = StaticEncoder.from_arrays(table, tokenizer, max_seq_length=5)
    encoder.save(tmp_path / "mine")
    texts = ["the cat sat", "a a cat a a dog a"]
    theirs = SentenceTransformer(str(tmp_path / "mine"), device="cpu")
    np.testing.assert_allclose(
        theirs.encode(texts, show_progress_bar=False), encoder.encode(texts), atol=1e-6
    )


def test_saving_replaces_only_its_own(folder, tokenizer, table, tmp_path):
    StaticEncoder.from_arrays(table * 2, tokenizer).save(folder)
    np.testing.assert_array_equal(StaticEncoder(folder).table, table * 2)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("do not lose me")
    with pytest.raises(InputError, match="holds other files"):
        StaticEncoder.from_arrays(table, tokenizer).save(tmp_path / "other")


def test_encoders_are_told_apart_by_their_folders(folder, tiny_bert):
    assert isinstance(resolve_encoder(folder), StaticEncoder)
    assert isinstance(resolve_encoder(str(folder)), StaticEncoder)
    assert isinstance(resolve_encoder(tiny_bert), SentenceEncoder)
    (folder / "config.json").write_text("{}")
    assert not holds_static_encoder(folder)
    assert not holds_static_encoder(folder / "nowhere")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_missing_and_broken_files_are_named(folder, name):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(CorruptFileError, match=name):
        StaticEncoder(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(ModelLoadError, match=name):
        StaticEncoder(folder)
    (folder / name).write_bytes(b"\xff\xfe[]")
    with pytest.raises(ModelLoadError, match=name):
        StaticEncoder(folder)
    (folder / name).unlink()
    with pytest.raises(ModelLoadError, match=f"has no file {name}"):
        StaticEncoder(folder)


def rewrite(folder, **tensors):
    (folder / "manifest.json").unlink()
    kept = load_file(folder / "model.safetensors")
    kept.update(tensors)
    save_file({k: v for k, v in kept.items() if v is not None}, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"embeddings": np.ones((3, 2), np.float32)}, "embeddings must be"),
        ({"embeddings": None, "other": np.ones(2)}, "embeddings"),
        ({"weights": np.ones(2)}, "weights must be"),
        ({"mapping": np.zeros(2, int)}, "mapping must have a row"),
        ({"mapping": "outside"}, "1000 is out of bounds"),
        ({"mapping": "floats"}, "integer"),
        ({"weights": "nan"}, "weights must be finite numbers.* row 0"),
    ],
)
def test_tensors_that_do_not_belong_together(folder, table, tensors, message):
    n = len(table)
    mapping = np.arange(n)
    mapping[3] = 1000
    special = {"outside": mapping, "floats": np.ones(n), "nan": np.full(n, np.nan)}
    tensors = {k: special[v] if isinstance(v, str) else v for k, v in tensors.items()}
    rewrite(folder, **tensors)
    with pytest.raises(ModelLoadError, match=message) as caught:
        StaticEncoder(folder)
    assert "model.safetensors" in str(caught.value)


def test_configurations_and_tokenizers_that_make_no_sense(folder, tokenizer):
    (folder / "manifest.json").unlink()
    config = (folder / "config.json").read_text()
    wrong = (
        {"max_length": 0},
        {"max_length": "many"},
        {"max_length": True},
        {"normalize": "false"},
        {"embedtopics": {"languages": 1}},
        {"embedtopics": {"made_from": [1]}},
        {"embedtopics": {"made_from": {"method": "static student", "n_texts": "12"}}},
        {"embedtopics": {"made_from": {"method": "static student", "agreement": [1]}}},
    )
    for entries in wrong:
        (folder / "config.json").write_text(json.dumps(entries))
        with pytest.raises(ModelLoadError, match=r"config\.json: "):
            StaticEncoder(folder)
    (folder / "config.json").write_text(config)
    content = json.loads(tokenizer.to_str())
    content["model"]["vocab"]["stone"] = 9_999
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ModelLoadError, match="consecutive"):
        StaticEncoder(folder)


def _char_map(content):
    return {"normalizer": {"type": "Sequence", "normalizers": [
        {"type": "Precompiled", "precompiled_charsmap": content}
    ]}}  # fmt: skip


NO_TOKENIZERS = {
    "declares 4,294,967,295": _char_map("/////w=="),  # as many places, 8 GB, would be taken
    "has 1 bytes": _char_map("AA=="),
    "out of bounds": _char_map("BAAAAP////8A"),
    "no entry found": {"post_processor": {
        "type": "TemplateProcessing", "pair": [], "special_tokens": {},
        "single": [{"SpecialToken": {"id": "Z", "type_id": 0}}],
    }},
}  # fmt: skip


@pytest.mark.parametrize("said", NO_TOKENIZERS)
def test_a_tokenizer_that_makes_the_library_panic_is_refused(folder, tokenizer, said):
    (folder / "manifest.json").unlink()
    content = {**json.loads(tokenizer.to_str()), **NO_TOKENIZERS[said]}
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ModelLoadError, match=f"tokenizer.json: .*{said}"):
        StaticEncoder(folder)


def test_no_folder_and_pickled_weights(folder, tmp_path):
    with pytest.raises(ModelLoadError, match=r"has no file config\.json"):
        StaticEncoder(tmp_path / "nowhere")
    shutil.move(folder / "model.safetensors", folder / "pytorch_model.bin")
    with pytest.raises(ModelLoadError, match=r"has no file model\.safetensors"):
        StaticEncoder(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("is_ours", [True, False])
def test_links_out_of_a_static_encoder_are_refused(folder, tmp_path, name, is_ours):
    if not is_ours:
        (folder / "manifest.json").unlink()
    (folder / name).rename(tmp_path / "outside")
    (folder / name).symlink_to(tmp_path / "outside")
    with pytest.raises((ModelLoadError, CorruptFileError), match="link"):
        StaticEncoder(folder)


def test_the_measure_and_the_cut_of_a_folder_are_kept(tokenizer, table, texts, tmp_path):
    StaticEncoder.from_arrays(table, tokenizer, normalize=False).save(tmp_path / "whole")
    whole = StaticEncoder(tmp_path / "whole").encode(texts)
    folder = tmp_path / "cut"
    folder.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        shutil.copyfile(tmp_path / "whole" / name, folder / name)
    about = {"similarity_fn_name": "dot", "truncate_dim": 3}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(about))

    encoder = StaticEncoder(folder)

    vectors = encoder.encode(texts)
    assert encoder.dimensions == 3
    np.testing.assert_allclose(vectors, whole[:, :3], atol=1e-6)
    np.testing.assert_allclose(encoder.similarity(vectors, vectors), vectors @ vectors.T, atol=1e-6)
    assert [decision.name for decision in encoder.decisions] == ["similarity"]
    encoder.save(tmp_path / "again")
    again = StaticEncoder(tmp_path / "again")
    assert again.similarity_fn_name == "dot"
    np.testing.assert_array_equal(again.encode(texts), vectors)


@pytest.mark.parametrize("entries", [{"similarity_fn_name": "jaccard"}, {"truncate_dim": -1}])
def test_a_measure_or_a_cut_that_is_none_is_refused(folder, entries):
    (folder / "config_sentence_transformers.json").write_text(json.dumps(entries))
    with pytest.raises(ModelLoadError):
        StaticEncoder(folder)
