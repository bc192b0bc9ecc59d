"""What runs a model: exported, rounded to 8 bits, kept on disk, and made again when damaged."""

import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from embedtopics import SentenceEncoder
from embedtopics.encoders import CachedEncoder
from embedtopics.encoders._base import MODELS as FORMAT
from embedtopics.encoders._registry import resolve_exact
from embedtopics.encoders.sentence import _backend as opening
from embedtopics.encoders.sentence import _graph as graphs
from embedtopics.encoders.sentence import _running as runtime
from embedtopics.encoders.sentence._backend import layer_rounder, measure_extremes
from embedtopics.encoders.sentence._graph import WORDS, UnsupportedModelError, _Builder
from embedtopics.encoders.sentence._running import OnnxRuntime
from embedtopics.errors import InputError, MissingExtraError, ModelLoadError
from tests.factories import FULL_DISK, exact_encoder, python, raising


def folders(cache):
    return sorted((cache / FORMAT).glob("*"))


TABLE = np.array([[0, 0], [1, 100], [-1, 50], [0.5, -20]], dtype=np.float32)


def one_layer(weight, bias, round_layer=None):
    """A graph that looks up the row of each token and multiplies it with a matrix."""
    builder = _Builder(round_layer)
    rows = builder.reshape(builder.add("Gather", WORDS, "input_ids"), -1, 2)
    return builder.finish(builder.linear(rows, weight, bias), TABLE)


@pytest.mark.parametrize("bias", [np.zeros(2, np.float32), np.array([3, -5], np.float32)])
def test_extremes_and_rounding_by_hand(bias):
    weight = np.array([[2.0, -1.0], [0.01, 0.02]], dtype=np.float32)
    graph = one_layer(weight, bias)
    texts = [np.array([1, 2], dtype=np.int32), np.array([3], dtype=np.int32)]
    [(low, high)] = extremes = measure_extremes(graph, texts)
    np.testing.assert_array_equal(low, [-1, -20])
    np.testing.assert_array_equal(high, [1, 100])
    rounded = one_layer(weight, bias, layer_rounder(extremes, 7))  # exact on any processor
    ids = np.array([[0, 1, 2, 3]])
    vectors = OnnxRuntime(rounded)(ids, ids, ids)
    expected = TABLE @ weight + bias
    np.testing.assert_allclose(OnnxRuntime(graph)(ids, ids, ids), expected, rtol=1e-6)
    # Rounding alone: half a step of the input times the weights, and half of one of the weights.
    np.testing.assert_allclose(vectors, expected, atol=0.04)
    assert np.abs(vectors - expected).max() > 0  # it is not the float model
    # Without the factors the second channel's range would cost the first 2 / 120 of its values.
    assert abs(vectors[3, 1] - expected[3, 1]) < 0.02


@pytest.mark.parametrize("bits", [7, 8])
def test_weights_stay_within_their_bits(bits):
    weight = np.random.default_rng(0).normal(size=(2, 5)).astype(np.float32)
    extremes = measure_extremes(one_layer(weight, np.zeros(5, np.float32)), [np.array([1, 2, 3])])
    layer = layer_rounder(extremes, bits)(0, weight)
    assert layer.weight.dtype == np.int8
    assert np.abs(layer.weight).max() == 2 ** (bits - 1) - 1


def reasons(encoder):
    return " ".join(decision.message for decision in encoder.decisions)


def test_int8_is_near_and_does_not_depend_on_the_batch(tiny_bert, texts, monkeypatch):
    # Random weights bear rounding less well than trained ones.
    monkeypatch.setattr(opening, "LEAST_INT8_COSINE", 0.5)
    exact, rounded = (SentenceEncoder(tiny_bert, precision=p) for p in ("float32", "int8"))
    assert exact.fingerprint != rounded.fingerprint
    assert rounded.settings["precision"] == "int8"
    together = rounded.encode(texts)
    cosines = np.einsum("ij,ij->i", together, exact.encode(texts))
    assert (cosines > 0.9).all()
    assert (cosines < 1 - 1e-6).any()
    alone = np.vstack([rounded.encode([text]) for text in texts])
    assert (np.einsum("ij,ij->i", together, alone) > 0.99999).all()


def test_a_cpu_computes_in_8_bits_where_nothing_else_is_said(tiny_bert, texts, cache):
    encoder, named = SentenceEncoder(tiny_bert), SentenceEncoder(tiny_bert, precision="int8")
    exact = exact_encoder(tiny_bert)
    assert not cache.exists()  # made, and nothing was tried
    assert encoder.settings["precision"] == "int8" and encoder.get_params()["precision"] == "auto"
    assert "int8" in reasons(encoder) and reasons(named) == ""
    assert encoder.fingerprint == named.fingerprint != exact.fingerprint
    assert encoder.space == named.space == exact.space == exact.fingerprint
    np.testing.assert_array_equal(encoder.encode(texts), named.encode(texts))
    for more in ({"backend": "torch"}, {"trust_remote_code": True}):
        on_torch = SentenceEncoder(tiny_bert, **more)
        assert on_torch.precision == "float32" and "torch" in reasons(on_torch)
    assert opening.known_precision(encoder.recipe, "mps", None, cache).name == "float32"


def test_a_checkpoint_that_does_not_bear_8_bits_stays_in_float32(
    tiny_bert, texts, cache, monkeypatch
):
    monkeypatch.setattr(opening, "LEAST_INT8_COSINE", 1.1)
    encoder, exact = SentenceEncoder(tiny_bert), exact_encoder(tiny_bert)
    assert (encoder.precision, encoder.fingerprint) == ("float32", exact.fingerprint)
    assert "change its vectors too much" in reasons(encoder)
    np.testing.assert_array_equal(encoder.encode(texts), exact.encode(texts))
    monkeypatch.setattr(opening, "measure_extremes", raising(AssertionError("tried twice")))
    again = SentenceEncoder(tiny_bert)
    assert again.precision == "float32" and "_loaded" not in vars(again)
    with pytest.raises(ModelLoadError, match="change its vectors too much"):
        SentenceEncoder(tiny_bert, precision="int8").encode(["the cat"])


def test_what_training_starts_from_keeps_all_digits(tiny_bert, tmp_path):
    for given in (tiny_bert, SentenceEncoder(tiny_bert), exact_encoder(tiny_bert)):
        assert resolve_exact(given).settings["precision"] == "float32"
    cached = CachedEncoder(SentenceEncoder(tiny_bert, max_seq_length=9), folder=tmp_path)
    found = resolve_exact(cached)
    assert (found.uncached.precision, found.max_seq_length, found.folder) == (
        "float32",
        9,
        tmp_path,
    )
    named = SentenceEncoder(tiny_bert, precision="int8")
    assert resolve_exact(named) is named


def test_a_model_is_made_ready_once(tiny_bert, texts, cache, monkeypatch):
    first = exact_encoder(tiny_bert).encode(texts)
    assert [f.name.rpartition("-")[2] for f in folders(cache)] == ["float32"]
    monkeypatch.setattr(opening, "build_graph", raising(AssertionError("built twice")))
    again = exact_encoder(tiny_bert)
    np.testing.assert_array_equal(again.encode(texts), first)
    # Another pooling is another model; another length, prompt or scaling is not.
    exact_encoder(tiny_bert, normalize=False, max_seq_length=9, prompt="the ").encode(texts)
    with pytest.raises(AssertionError):
        exact_encoder(tiny_bert, pooling="max").encode(texts)


@pytest.mark.parametrize("file", ["model.onnx", "tokens.f32", "tokenizer.json", "about.json"])
@pytest.mark.parametrize("damage", ["cut", "flip", "gone"])
def test_a_damaged_model_is_named_and_made_again(tiny_bert, texts, cache, caplog, file, damage):
    first = exact_encoder(tiny_bert).encode(texts)
    path = folders(cache)[0] / file
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(data if damage == "flip" else data[: len(data) // 2])
    with caplog.at_level(logging.WARNING, "embedtopics"):
        np.testing.assert_array_equal(exact_encoder(tiny_bert).encode(texts), first)
    assert str(folders(cache)[0]) in caplog.text


def test_a_cache_that_cannot_be_written_costs_a_warning(tiny_bert, texts, cache, caplog):
    cache.write_text("a file in the way")
    with caplog.at_level(logging.WARNING, "embedtopics"):
        encoder = exact_encoder(tiny_bert)
        assert encoder.encode(texts).shape == (8, 16)
        encoder.encode(texts)
    assert caplog.text.count("cannot be stored") == 1


def test_what_has_no_graph_runs_on_torch_and_says_so(tiny_bert, texts, cache, monkeypatch):
    expected = exact_encoder(tiny_bert).encode(texts)
    shutil.rmtree(cache)

    monkeypatch.setattr(opening, "build_graph", raising(UnsupportedModelError("no such operation")))
    encoder = exact_encoder(tiny_bert)
    np.testing.assert_allclose(encoder.encode(texts), expected, atol=1e-5)
    assert encoder.backend == "torch"
    assert "no such operation" in reasons(encoder)
    with pytest.raises(ModelLoadError, match="no such operation"):
        exact_encoder(tiny_bert, backend="onnx").encode(texts)


def test_options_of_a_configuration_without_a_graph_run_on_torch(tiny_bert, tmp_path):
    folder = shutil.copytree(tiny_bert, tmp_path / "odd")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "hidden_act": "silu"}))
    encoder = exact_encoder(folder)
    assert encoder.encode(["the cat"]).shape == (1, 16)
    assert encoder.backend == "torch" and "activation is 'silu'" in reasons(encoder)


def test_weights_of_two_gigabytes_run_on_torch(tiny_bert, monkeypatch, cache):
    monkeypatch.setattr(graphs, "MOST_BYTES", 10)
    encoder = exact_encoder(tiny_bert)
    assert encoder.encode(["the cat"]).shape == (1, 16)
    assert encoder.backend == "torch" and "a file holds 2" in reasons(encoder)


def test_what_needs_torch_names_the_extra(tiny_bert, cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    for encoder in (exact_encoder(tiny_bert, backend="torch"), exact_encoder(tiny_bert)):
        if encoder.get_params()["backend"] is None:
            monkeypatch.setattr(opening, "build_graph", raising(UnsupportedModelError("no graph")))
        with pytest.raises(
            MissingExtraError, match=r"family 'bert' needs transformers: pip install"
        ):
            encoder.encode(["the cat"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"precision": "int4"}, "one of 'auto', 'float32', 'int8'"),
        ({"precision": "float16", "device": "cpu"}, "for a GPU"),
        ({"precision": "int8", "backend": "torch"}, "need ONNX Runtime"),
        ({"backend": "onnx", "device": "cuda"}, "need ONNX Runtime"),
        ({"pooling": ("mean", "sum")}, "pooling"),
        ({"max_seq_length": 2}, "max_seq_length"),
        ({"max_seq_length": 33}, "at most 32"),
        ({"device": "cuda:99"}, "got 'cuda:99'"),
    ],
)
def test_settings_out_of_range_or_that_do_not_go_together(tiny_bert, settings, message):
    with pytest.raises(InputError, match=message):
        exact_encoder(tiny_bert, **settings)


def test_a_prepared_encoder_loads_neither_torch_nor_transformers(tiny_bert, cache):
    code = (
        "import sys; from embedtopics import SentenceEncoder;"
        f"SentenceEncoder({str(tiny_bert)!r}).encode(['the cat', 'a dog']);"
        "print('torch' in sys.modules, 'transformers' in sys.modules, 'pandas' in sys.modules)"
    )
    SentenceEncoder(tiny_bert).encode(["the cat"])
    assert python(code).split() == ["False", "False", "False"]


@pytest.mark.parametrize(
    ("machine", "system", "flags", "bits"),
    [
        ("x86_64", "linux", "ssse3 avx2", 7), ("x86_64", "linux", "ssse3 avx512_vnni", 8),
        ("x86_64", "linux", "ssse3 avx_vnni", 8), ("aarch64", "linux", "asimd", 8),
        ("x86_64", "darwin", None, 7), ("arm64", "darwin", None, 8), ("AMD64", "win32", None, 7),
        ("ARM64", "win32", None, 8),
    ],
)  # fmt: skip
def test_weights_of_a_cpu_without_exact_products_have_7_bits(
    monkeypatch, machine, system, flags, bits
):
    monkeypatch.setattr(opening.sys, "platform", system)
    monkeypatch.setattr(opening.platform, "machine", lambda: machine)
    monkeypatch.setattr(Path, "read_text", lambda *_: flags)
    assert opening.weight_bits() == bits


def test_a_prepared_model_does_not_depend_on_who_came_first(tiny_bert, texts, cache, monkeypatch):
    monkeypatch.setattr(opening, "LEAST_INT8_COSINE", 0.5)
    found = []
    for order in ((5, 32), (32, 5)):
        made = {
            length: SentenceEncoder(tiny_bert, precision="int8", max_seq_length=length).encode(
                texts
            )
            for length in order
        }
        found.append([made[5], made[32]])
        shutil.rmtree(cache)
    np.testing.assert_array_equal(found[0], found[1])


def test_a_full_disk_costs_a_warning_and_leaves_nothing(
    tiny_bert, texts, cache, caplog, monkeypatch
):
    expected = exact_encoder(tiny_bert).encode(texts)
    shutil.rmtree(cache)

    monkeypatch.setattr(os, "fsync", raising(FULL_DISK))
    with caplog.at_level(logging.WARNING, "embedtopics"):
        np.testing.assert_array_equal(exact_encoder(tiny_bert).encode(texts), expected)
    assert "No space left" in caplog.text
    assert folders(cache) == []


@pytest.mark.slow
def test_two_processes_that_make_a_model_at_the_same_time(tiny_bert, cache):
    code = (
        "import hashlib; from embedtopics import SentenceEncoder;"
        f"v = SentenceEncoder({str(tiny_bert)!r}).encode(['the cat', 'a dog']);"
        "print(hashlib.sha256(v.tobytes()).hexdigest())"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = {process.communicate()[0] for process in both}
    assert len(outputs) == 1
    assert [process.returncode for process in both] == [0, 0]
    assert len(list((cache / FORMAT).iterdir())) == 1


@pytest.mark.parametrize(("system", "driver"), [("posix", "libcuda.so.1"), ("nt", "nvcuda.dll")])
def test_torch_is_not_asked_for_a_gpu_that_has_no_driver(monkeypatch, system, driver):
    asked = []

    def missing(name):
        asked.append(name)
        raise OSError(name)

    monkeypatch.setattr(runtime, "os", SimpleNamespace(name=system))
    monkeypatch.setattr("ctypes.CDLL", missing)
    monkeypatch.setitem(sys.modules, "torch", None)  # which makes importing it an error
    assert not runtime.has_gpu()
    assert asked == [driver]
