"""Encoders and search indexes go to a hub, privately, and answer the same when they come back."""

import shutil

import numpy as np
import pytest

import embedtopics as et
from embedtopics.encoders import StaticEncoder
from tests.factories import exact_encoder, refuses
from tests.stub_hub import online_hub


@pytest.fixture
def hub(monkeypatch):
    with online_hub(monkeypatch) as hub:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.endpoint)
        yield hub


def fetched(hub, name, folder):
    """Write what a repository holds to a folder."""
    for path, content in hub.repositories[name]["files"].items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def test_a_sentence_encoder(hub, tiny_bert, texts, tmp_path):
    folder = shutil.copytree(tiny_bert, tmp_path / "mine")
    (folder / "evil.py").write_text("1/0")
    (folder / "pytorch_model.bin").write_bytes(b"pickled")
    encoder = exact_encoder(folder)
    url = encoder.push_to_hub("someone/encoder", token="hf_secret")
    assert url.startswith(f"{hub.endpoint}/someone/encoder/commit/")
    assert hub.repositories["someone/encoder"]["private"]
    assert {token for _, path, token in hub.requests if "commit" in path} == {"Bearer hf_secret"}
    loaded = exact_encoder(fetched(hub, "someone/encoder", tmp_path / "fetched"))
    assert loaded.fingerprint == encoder.fingerprint
    assert not list((tmp_path / "fetched").glob("*.py")) and loaded.dimensions == encoder.dimensions
    assert not (tmp_path / "fetched" / "pytorch_model.bin").exists()
    np.testing.assert_array_equal(loaded.encode(texts), encoder.encode(texts))


def test_a_static_encoder(hub, table, tokenizer, texts, tmp_path):
    encoder = StaticEncoder.from_arrays(table, tokenizer)
    encoder.push_to_hub("someone/static", private=False)
    assert not hub.repositories["someone/static"]["private"]
    loaded = StaticEncoder(fetched(hub, "someone/static", tmp_path / "fetched"))
    np.testing.assert_array_equal(loaded.encode(texts), encoder.encode(texts))


def test_what_is_not_sent(hub, tiny_bert, table, tokenizer, monkeypatch):
    with refuses("dimensions"):  # a folder does not hold them
        exact_encoder(tiny_bert, dimensions=2).push_to_hub("someone/encoder")
    with refuses("encoder"):
        et.encoders.TfidfEncoder().push_to_hub("someone/encoder")
    static = StaticEncoder.from_arrays(table, tokenizer)
    with pytest.raises(et.InputError, match="could not upload to a space: Repo id must"):
        static.push_to_hub("a space")
    hub.add("someone/public", private=False)
    with pytest.raises(et.InputError, match="is public, so nothing was uploaded"):
        static.push_to_hub("someone/public")
    assert list(hub.repositories) == ["someone/public"]
    assert hub.repositories["someone/public"]["files"] == {}
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(et.InputError, match="HF_HUB_OFFLINE"):
        static.push_to_hub("someone/static")
