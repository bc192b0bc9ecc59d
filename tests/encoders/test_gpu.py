"""A GPU: half precision, too little memory, and results that go elsewhere. No CUDA is needed."""

import logging
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from embedtopics import SearchIndex, SentenceEncoder
from embedtopics.encoders import CachedEncoder
from embedtopics.encoders._registry import encoder_from_settings
from embedtopics.encoders.sentence import _backend as opening
from embedtopics.encoders.sentence import _running as runtime
from embedtopics.encoders.sentence._backend import least_cosine
from embedtopics.encoders.sentence._torch import TorchRuntime
from embedtopics.errors import InputError
from tests.factories import exact_encoder, raising, refuses


@pytest.fixture
def cuda(monkeypatch, cache):
    """A CUDA device as far as torch is asked: what goes there stays on the CPU."""
    moved = []

    def elsewhere(function):
        def call(*arguments, **options):
            if "cuda" in arguments:
                moved.append(type(arguments[0]).__name__)
            arguments = tuple("cpu" if a == "cuda" else a for a in arguments if a is not call)
            options = {k: "cpu" if v == "cuda" else v for k, v in options.items()}
            return function(*arguments, **options)

        return call

    monkeypatch.setattr(opening, "_SAMPLE_TOKENS", 300)
    monkeypatch.setattr(runtime.ctypes, "CDLL", lambda name: name)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch, "empty", elsewhere(torch.empty))
    monkeypatch.setattr(torch.Tensor, "to", elsewhere(torch.Tensor.to))
    monkeypatch.setattr(torch.nn.Module, "to", elsewhere(torch.nn.Module.to))
    return SimpleNamespace(moved=moved, leave=monkeypatch.undo)


def cosines(first, second):
    return np.einsum("ij,ij->i", first, second, dtype=np.float64)


def exact(folder, **options):
    return exact_encoder(folder, device="cpu", backend="torch", **options)


@pytest.mark.parametrize("device", [None, "cuda"])
def test_a_gpu_computes_in_half_precision(tiny_bert, texts, cuda, device):
    encoder = SentenceEncoder(tiny_bert, device=device)
    found, expected = encoder.encode(texts), exact(tiny_bert).encode(texts)
    assert {"Pooled", "Tensor"} <= set(cuda.moved)
    assert found.dtype == np.float32
    assert (cosines(found, expected) > 0.999).all()
    assert np.abs(found - expected).max() > 1e-6  # it was not the same that computed
    assert (encoder.precision, encoder.backend) == ("float16", "torch")
    assert encoder.settings["precision"] == "float16"
    assert encoder.get_params()["device"] == device
    [decision] = encoder.decisions
    assert (decision.name, decision.value) == ("precision", "float16")
    named = SentenceEncoder(tiny_bert, precision="float16")
    assert encoder.fingerprint == named.fingerprint != exact(tiny_bert).fingerprint
    assert encoder.space == exact(tiny_bert).space
    np.testing.assert_array_equal(named.encode(texts), found)


def test_whether_a_checkpoint_bears_half_precision_is_tried_once(tiny_bert, cuda, monkeypatch):
    assert SentenceEncoder(tiny_bert).precision == "float16"
    monkeypatch.setattr(opening, "_open_half", raising(AssertionError("tried twice")))
    again = SentenceEncoder(tiny_bert)
    assert again.precision == "float16" and "_loaded" not in vars(again)
    assert again.encode(["the cat"]).shape == (1, 16)


def test_numbers_too_large_for_half_precision(tiny_bert, tmp_path, texts, cuda, monkeypatch):
    from transformers import AutoModel

    folder = shutil.copytree(tiny_bert, tmp_path / "large")
    model = AutoModel.from_pretrained(folder)
    with torch.no_grad():  # products of these exceed 65,504
        model.encoder.layer[0].intermediate.dense.weight.mul_(1e5)
    model.save_pretrained(folder)
    encoder = SentenceEncoder(folder)
    np.testing.assert_array_equal(encoder.encode(texts), exact(folder).encode(texts))
    assert encoder.precision == "float32" and "16 bits" in encoder.decisions[0].message
    assert encoder.fingerprint == exact(folder).fingerprint
    monkeypatch.setattr(opening, "_open_half", raising(AssertionError("tried twice")))
    assert SentenceEncoder(folder).precision == "float32"


def test_a_cosine_of_what_is_no_number_is_none():
    text = np.ones(1, dtype=np.int32)
    one, none = (lambda *_, value=value: np.full((1, 3), value) for value in (1.0, np.nan))
    for pair in ((one, none), (none, one)):
        assert np.isnan(least_cosine(*pair, [text, text]))
    assert least_cosine(one, one, [text]) == pytest.approx(1)


class Limited(torch.nn.Module):
    """Doubles ids, and has no memory for more than some tokens; or on a GPU for itself."""

    def __init__(self, most, holds=True):
        super().__init__()
        self.most, self.holds, self.where, self.sizes = most, holds, "cpu", []
        self.dtypes = []

    def to(self, device):
        if device == "cuda" and not self.holds:
            raise torch.OutOfMemoryError("of the model")
        self.where = device
        return self

    def float(self):
        self.dtypes.append("float32")
        return self

    def forward(self, ids, mask, pooled):
        if self.where == "cuda" and ids.numel() > self.most:
            raise torch.OutOfMemoryError("of the texts")
        self.sizes.append((self.where, len(ids)))
        return (2 * ids * mask * pooled).half()


@pytest.mark.parametrize(
    ("most", "sizes"),
    [
        (100, [("cuda", 7)]),
        (12, [("cuda", 3), ("cuda", 2), ("cuda", 2)]),  # 28 tokens are too many, and 16
        (4, [("cuda", 1)] * 7),
        (3, [("cpu", 1), ("cpu", 2), ("cpu", 4)]),  # from the first text that did not fit alone
    ],
)
def test_too_little_memory_halves_the_batches_and_then_leaves_the_gpu(cuda, caplog, most, sizes):
    ids = np.arange(28, dtype=np.int64).reshape(7, 4)
    module, ones = Limited(most), np.ones_like(ids)
    run = TorchRuntime(module, "cuda")
    with caplog.at_level(logging.WARNING, "embedtopics"):
        np.testing.assert_array_equal(run(ids, ones, ones), 2 * ids)
        assert module.sizes == sizes
        np.testing.assert_array_equal(run(ids[:1], ones[:1], ones[:1]), 2 * ids[:1])
    if most == 3:
        assert "the memory of cuda is too small" in run.note
        assert caplog.text.count("is too small") == 1
        assert (run.device, run.tokens_per_batch, module.dtypes) == ("cpu", 512, ["float32"])
    else:
        assert (run.note, caplog.text, run.device) == ("", "", "cuda")


def test_a_model_that_a_gpu_does_not_hold_runs_on_the_cpu(cuda):
    ids = np.ones((2, 3), dtype=np.int64)
    run = TorchRuntime(Limited(0, holds=False), "cuda")
    np.testing.assert_array_equal(run(ids, ids, ids), 2 * ids)
    assert run.device == "cpu" and "memory of cuda" in run.note


def test_no_memory_on_the_cpu_is_an_error():
    ids = np.ones((2, 3), dtype=np.int64)
    run = TorchRuntime(Limited(0), "cpu")
    run._module.where = "cuda"
    with pytest.raises(torch.OutOfMemoryError):
        run(ids, ids, ids)


def test_the_cpu_that_goes_on_is_a_decision(tiny_bert, texts, cuda, monkeypatch):
    encoder = SentenceEncoder(tiny_bert, precision="float16")
    assert encoder.decisions == []  # nothing is open, and need not be for that
    forward = type(encoder._loaded.run._module).forward

    def limited(self, ids, *masks):
        if encoder._loaded.run.device == "cuda":
            raise torch.OutOfMemoryError("of the texts")
        return forward(self, ids, *masks)

    monkeypatch.setattr(type(encoder._loaded.run._module), "forward", limited)
    found = encoder.encode(texts)
    assert (cosines(found, exact(tiny_bert).encode(texts)) > 0.999).all()
    [decision] = encoder.decisions
    assert (decision.stage, decision.name, decision.value) == ("encoder", "backend", "torch")
    assert "memory of cuda" in decision.message


def test_what_a_gpu_has_made_is_read_elsewhere(tiny_bert, tmp_path, cuda):
    made = CachedEncoder(SentenceEncoder(tiny_bert))
    corpus = ["the cat sat on the mat", "a dog ran in the park", "the river", "a blue stone"]
    SearchIndex.build(corpus, tmp_path / "index", encoder=made)
    settings = made.settings
    cuda.leave()
    read = encoder_from_settings(settings)
    assert (settings["precision"], read.precision) == ("float16", "float32")
    index = SearchIndex.load(tmp_path / "index")
    assert [index.search(text, mode="dense")[0].text for text in corpus] == corpus
    with pytest.raises(InputError, match="for a GPU"):
        SentenceEncoder(tiny_bert, precision="float16").encode(["the cat"])


def test_cuda_that_is_not_there(tiny_bert, monkeypatch):
    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    with refuses("device"):
        SentenceEncoder(tiny_bert, device="cuda")
    exact = exact_encoder(tiny_bert, device="auto")
    assert exact.get_params()["device"] == "auto"
    np.testing.assert_array_equal(
        exact.encode(["the cat"]), exact_encoder(tiny_bert).encode(["the cat"])
    )


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_the_default_model_on_a_gpu(cache):
    encoder = SentenceEncoder()
    texts = opening.bundled_texts()
    found, expected = encoder.encode(texts), exact_encoder(device="cpu").encode(texts)
    assert (encoder.precision, encoder._loaded.run.device) == ("float16", "cuda")
    assert (cosines(found, expected) > 0.999).all()
    alone = np.vstack([encoder.encode([text]) for text in texts[:50]])
    assert (cosines(found[:50], alone) > 0.999).all()
