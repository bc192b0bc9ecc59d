import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

from embedtopics import SentenceEncoder
from embedtopics.cli._app import app
from embedtopics.encoders import CachedEncoder
from embedtopics.encoders._base import MODELS as FORMAT
from embedtopics.encoders._base import UNFINISHED
from embedtopics.encoders._cache import cache_entries, clear_cache
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.encoders.sentence._backend import number_format


@pytest.fixture(scope="module")
def prepared(tiny_bert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared") / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EMBEDTOPICS_CACHE", str(folder))
        resolve_encoder(tiny_bert, cached=True).encode(["the cat", "a dog", "the cat"])
    return folder


@pytest.fixture
def filled(prepared, cache):
    shutil.copytree(prepared, cache)
    (cache / "vectors-99").mkdir()
    (cache / "vectors-99" / "of a later version").write_text("not ours to touch")
    return cache


def test_what_is_kept_is_counted(filled):
    entries = cache_entries()
    assert [(e.kind, e.variant, e.n_texts) for e in entries] == [
        ("model", number_format("int8"), 0), ("vectors", "float32", 2),
    ]  # fmt: skip
    assert all(entry.encoder.endswith("tiny-bert") for entry in entries)
    model, vectors = entries
    assert model.n_bytes == sum(path.stat().st_size for path in model.path.iterdir())
    assert vectors.n_bytes == vectors.path.stat().st_size


def test_clearing_frees_what_is_ours_and_nothing_else(filled):
    half = filled / FORMAT / f"{UNFINISHED}abc"  # of a process that was killed
    half.mkdir()
    (half / "model.onnx").write_bytes(b"x" * 1000)
    total = sum(entry.n_bytes for entry in cache_entries())
    assert clear_cache() == total + 1000 > 1000
    assert cache_entries() == [] and not half.exists()
    assert (filled / "vectors-99" / "of a later version").exists()


def test_names_are_cached_and_objects_are_as_they_are(filled, tiny_bert, tiny_encoder):
    assert isinstance(resolve_encoder(tiny_bert, cached=True), CachedEncoder)
    assert isinstance(resolve_encoder(tiny_bert), SentenceEncoder)
    assert resolve_encoder(tiny_encoder, cached=True) is tiny_encoder
    assert not isinstance(resolve_encoder("tfidf", cached=True), CachedEncoder)


def test_a_second_run_loads_no_model(filled, tiny_bert):
    encoder = resolve_encoder(tiny_bert, cached=True)
    report = encoder.encode_with_report(["a dog", "the cat"])
    assert report.n_cached == 2
    assert "_loaded" not in vars(encoder.uncached)
    assert report.n_tokens.tolist() == [2, 2]
    np.testing.assert_array_equal(
        report.embeddings, SentenceEncoder(tiny_bert).encode(["a dog", "the cat"])
    )


def test_the_commands(filled):
    run = CliRunner().invoke
    shown = run(app, ["cache", "info"])
    assert shown.exit_code == 0
    assert str(filled) in shown.output.replace("\n", "")
    assert "vectors" in shown.output and "model" in shown.output
    refused = run(app, ["cache", "clear"], input="n\n")
    assert refused.exit_code == 1
    assert len(cache_entries()) == 2
    assert "freed" in run(app, ["cache", "clear"], input="y\n").output
    assert cache_entries() == []
    assert run(app, ["cache", "clear", "--yes"]).exit_code == 0
    assert run(app, ["cache", "info"]).output.strip().endswith("0.0 MB")
