import copy
import json
import pickle
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from embedtopics.encoders.sentence import _backend as opening
from embedtopics.encoders.sentence import _encoder as transformer
from embedtopics.errors import InputError, ModelLoadError
from tests.factories import exact_encoder


@pytest.mark.parametrize("tokens_per_batch", [1, 20, 10_000])
def test_a_vector_does_not_depend_on_its_batch(tiny_bert, tokens_per_batch, texts, monkeypatch):
    encoder = exact_encoder(tiny_bert)
    encoder._loaded.run.tokens_per_batch = tokens_per_batch
    together = encoder.encode(texts)
    alone = np.vstack([encoder.encode([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    np.testing.assert_array_equal(together[0], together[7])  # equal texts
    with monkeypatch.context() as patch:  # so many characters are tokenized at a time
        patch.setattr("embedtopics.encoders._base._SLAB_CHARACTERS", 8)
        np.testing.assert_array_equal(encoder.encode(texts), together)
    order = np.random.default_rng(3).permutation(len(texts))
    shuffled = encoder.encode([texts[row] for row in order])
    np.testing.assert_array_equal(shuffled, together[order])
    assert encoder.encode([]).shape == (0, 16)


def test_the_report_counts_tokens(tiny_encoder):
    # The vocabulary lacks the letter z, and so the whole word; ten tokens are read.
    texts = ["the cat", "", "cat " * 40, "cat " * 9 + "zebra zebra"]
    report = tiny_encoder.encode_with_report(texts)
    assert report.n_tokens.tolist() == [2, 0, 40, 11]
    assert report.n_seen.tolist() == [2, 0, 10, 10]
    assert report.n_unknown.tolist() == [0, 0, 0, 1]
    assert report.truncated_share == 0.5
    np.testing.assert_array_equal(report.embeddings, tiny_encoder.encode(texts))
    counted = tiny_encoder.count_tokens(texts)
    assert counted.embeddings.shape == (4, 0)
    for name in ("n_tokens", "n_seen", "n_unknown"):
        np.testing.assert_array_equal(getattr(counted, name), getattr(report, name))


def test_odd_texts(tiny_encoder):
    vectors = tiny_encoder.encode(["", " ", "\0", "\ud800", "\u202b", "x" * 100_000])
    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-5)


def test_the_fingerprint_is_stable_and_tells_encoders_apart(tiny_bert, tmp_path):
    copy = shutil.copytree(tiny_bert, tmp_path / "copy")
    settings = [{}, {"pooling": "cls"}, {"normalize": False}, {"max_seq_length": 8}]
    prints = [exact_encoder(tiny_bert, **choice).fingerprint for choice in settings]
    assert len(set(prints)) == 4
    assert exact_encoder(copy).fingerprint == prints[0]


def test_nothing_is_printed_and_nothing_left_switched(tiny_bert, capfd):
    import torch
    from transformers.utils import logging

    def state():
        verbosity, has_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
        return verbosity, has_bars, torch.get_num_threads(), torch.random.get_rng_state().tolist()

    before = state()
    exact_encoder(tiny_bert).encode(["cat " * 5000])
    assert state() == before and capfd.readouterr() == ("", "")


def test_missing_weights_are_not_made_up_and_a_pooler_is_not_missed(
    tiny_bert, tiny_encoder, tmp_path, texts
):
    from safetensors.numpy import load_file, save_file

    folder = shutil.copytree(tiny_bert, tmp_path / "holes")
    tensors = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in tensors.items() if "pooler" not in name}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    found = exact_encoder(folder, max_seq_length=12).encode(texts)
    np.testing.assert_allclose(found, tiny_encoder.encode(texts), atol=1e-6)
    del kept[lost := "encoder.layer.1.output.dense.weight"]
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelLoadError, match=f"none for {lost}"):
        exact_encoder(folder).encode(["the cat"])


@pytest.mark.parametrize("workers", [1, 3])
def test_an_interrupt_comes_through_and_leaves_the_encoder_usable(
    tiny_encoder, texts, monkeypatch, workers
):
    # The interrupt of a real process is tested with the command line.
    expected = tiny_encoder.encode(texts)
    run, calls = tiny_encoder._loaded.run, []

    class Interrupted:
        n_workers, tokens_per_batch = workers, 1

        def __call__(self, *arrays):
            calls.append(arrays)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return run(*arrays)

    opened = replace(tiny_encoder._loaded, run=Interrupted())
    monkeypatch.setitem(vars(tiny_encoder), "_loaded", opened)
    with pytest.raises(KeyboardInterrupt):
        tiny_encoder.encode(texts)
    monkeypatch.undo()
    np.testing.assert_array_equal(tiny_encoder.encode(texts), expected)


def test_a_tokenizer_that_is_set_otherwise_is_another_encoder(tiny_bert, tmp_path):
    folder = shutil.copytree(tiny_bert, tmp_path / "cased")
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "do_lower_case": False}))
    uncased, cased = exact_encoder(tiny_bert), exact_encoder(folder)
    assert uncased.fingerprint != cased.fingerprint
    # The first has been made ready, and must not be taken for the second.
    small, large = uncased.encode(["the cat", "THE CAT"])
    np.testing.assert_array_equal(small, large)
    small, large = cased.encode(["the cat", "THE CAT"])
    assert np.abs(small - large).max() > 0.01


def test_merges_are_part_of_an_encoder(tiny_roberta, tmp_path):
    folders = []
    for name, merges in (("one", "t h\n"), ("two", "t h\nth e\n")):
        folder = shutil.copytree(tiny_roberta, tmp_path / name)
        tokenizer = json.loads((folder / "tokenizer.json").read_text())
        (folder / "tokenizer.json").unlink()
        (folder / "vocab.json").write_text(json.dumps(tokenizer["model"]["vocab"]))
        (folder / "merges.txt").write_text("#version: 0.2\n" + merges)
        folders.append(exact_encoder(folder))
    assert folders[0].fingerprint != folders[1].fingerprint
    assert [x.count_tokens(["the"]).n_tokens[0] for x in folders] == [2, 1]


def test_settings_make_the_same_encoder_again(tiny_bert):
    encoder = exact_encoder(tiny_bert, pooling=["cls", "max"], prompt="the ", truncate_dim=9)
    again = exact_encoder(**json.loads(json.dumps(encoder.settings)))
    assert again.settings == encoder.settings
    assert again.fingerprint == encoder.fingerprint


def test_a_relative_folder_stays_the_one_that_was_meant(tiny_bert, monkeypatch, tmp_path):
    monkeypatch.chdir(tiny_bert.parent)
    encoder, expected = exact_encoder(tiny_bert.name), exact_encoder(tiny_bert)
    monkeypatch.chdir(tmp_path)
    assert encoder.fingerprint == expected.fingerprint
    np.testing.assert_array_equal(encoder.encode(["the cat"]), expected.encode(["the cat"]))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_an_open_encoder_can_be_copied(tiny_bert, copied, texts):
    encoder = exact_encoder(tiny_bert, max_seq_length=12)
    expected = encoder.encode(texts)
    np.testing.assert_array_equal(copied(encoder).encode(texts), expected)
    np.testing.assert_array_equal(encoder.encode(texts), expected)


def test_threads_that_ask_at_once_share_one_model(tiny_bert, texts, monkeypatch):
    expected = exact_encoder(tiny_bert).encode(texts)
    # As from Python 3.12 on, where nothing keeps threads from computing it at the same time.
    opened, encoder = [], exact_encoder(tiny_bert)

    def slow(*arguments):
        opened.append(arguments)
        time.sleep(0.05)
        return opening.open_model(*arguments)

    monkeypatch.setattr(transformer, "open_model", slow)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: encoder.encode(texts), range(4)):
            np.testing.assert_array_equal(found, expected)
    assert len(opened) == 1


@pytest.mark.parametrize("long_texts", ["truncate", "chunk"])
def test_a_prompt_that_leaves_nothing_to_the_text(tiny_bert, long_texts):
    encoder = exact_encoder(tiny_bert, prompt="the cat " * 5, max_seq_length=12,
                              long_texts=long_texts)  # fmt: skip
    with pytest.raises(InputError, match="give a shorter one or a larger max_seq_length"):
        encoder.encode(["a dog"])
    one = exact_encoder(tiny_bert, prompt="the cat " * 5, max_seq_length=13).encode_with_report
    assert one(["dog sat"]).n_seen.tolist() == [1]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_weights_that_were_kept_in_half_precision(tiny_bert, tmp_path, texts, dtype):
    import torch
    from transformers import AutoModel

    folder = shutil.copytree(tiny_bert, tmp_path / dtype)
    AutoModel.from_pretrained(tiny_bert, dtype=getattr(torch, dtype)).save_pretrained(folder)
    found, exact = (exact_encoder(f).encode(texts) for f in (folder, tiny_bert))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact, atol=0.05)
    np.testing.assert_allclose(
        found, exact_encoder(folder, backend="torch").encode(texts), atol=1e-5
    )


def test_a_folder_holds_the_dimensions(tiny_bert, tmp_path, texts):
    encoder = exact_encoder(tiny_bert, truncate_dim=5)

    encoder.save(tmp_path / "saved")

    saved = exact_encoder(tmp_path / "saved").encode(texts)
    assert saved.shape == (len(texts), 5)
    np.testing.assert_allclose(saved, encoder.encode(texts), atol=1e-6)
