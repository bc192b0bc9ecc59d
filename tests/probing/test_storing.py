import dataclasses
import gc
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from embedtopics import probing
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.probing import _extract as extracting
from embedtopics.probing._extract import open_store
from tests.factories import contents, raising, refuses

TEXTS = [
    "the cat sat on the mat",
    "",
    "unknowable dogs ran: red, blue... and light",
    "a \u200b b",
    "the river " * 30,
    "naïve cats sat in the rivers",
] * 3


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(extracting, "_BLOCK_BYTES", 4 * 3 * 16 * 20)


@pytest.fixture
def finished(tiny_bert, tmp_path):
    probing.hidden_states(tiny_bert, TEXTS, out=tmp_path / "finished")
    return tmp_path / "finished"


def test_a_store_is_what_is_in_memory(tiny_bert, finished, monkeypatch):
    states = probing.hidden_states(tiny_bert, TEXTS)
    monkeypatch.setattr(extracting, "load_layers", None)  # a finished store is opened
    stored = probing.hidden_states(tiny_bert, TEXTS, layers=[0, 1, -1], out=finished)
    for field in dataclasses.fields(states):
        one, other = getattr(stored, field.name), getattr(states, field.name)
        if field.name == "vectors":
            assert all(isinstance(layer, np.memmap) for layer in one)
            np.testing.assert_array_equal(one, other)
        elif isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
        else:
            assert one == other
    assert {d.name: d.value for d in stored.decisions} == {"missing_words": 3, "long_texts": 3}


@pytest.mark.parametrize(
    "change",
    [{"texts": TEXTS[:-1]}, {"texts": [t.split() for t in TEXTS]}, {"words": False}, {"layers": -1},
     {"dtype": "float32"}, {"random_weights": True}],
)  # fmt: skip
def test_a_store_of_other_states_is_refused(change, tiny_bert, finished):
    with refuses("out"):
        probing.hidden_states(**{"texts": TEXTS, "encoder": tiny_bert, "out": finished, **change})


def test_damaged_files_are_named(finished, tmp_path):
    for name in contents(finished):
        if name == "manifest.json":
            continue
        for damage in ("cut", "flipped", "gone"):
            folder = shutil.copytree(finished, tmp_path / f"{name}-{damage}")
            path = folder / name
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.unlink()
            if damage != "gone":
                path.write_bytes(data[:-1] if damage == "cut" else data)
            with pytest.raises(CorruptFileError, match=name):
                open_store(folder)


def test_an_interrupted_extraction_leaves_nothing(tiny_bert, finished, tmp_path, monkeypatch):
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(extracting, "write_store", raising(KeyboardInterrupt))
        probing.hidden_states(tiny_bert, TEXTS, out=tmp_path / "s")
    assert list(tmp_path.iterdir()) == [finished]
    probing.hidden_states(tiny_bert, TEXTS, out=tmp_path / "s")
    assert contents(tmp_path / "s") == contents(finished)


def test_other_folders_are_refused(tiny_bert, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds other files"):
        probing.hidden_states(tiny_bert, ["a"], out=tmp_path)
    manifest = {"kind": "hidden states", "version": 99, "files": {}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CorruptFileError, match="format 99"):
        open_store(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_temporary_store_is_removed_with_the_result(tiny_bert, monkeypatch, tmp_path):
    monkeypatch.setattr(extracting.tempfile, "tempdir", str(tmp_path))
    states = probing.hidden_states(tiny_bert, ["the cat"])
    files = [Path(layer.filename) for layer in states.vectors]
    assert all(file.is_file() for file in files)
    del states
    gc.collect()
    assert not list(tmp_path.iterdir())
    with refuses("layers"):
        probing.hidden_states(tiny_bert, ["the cat"], layers=9)
    assert not list(tmp_path.iterdir())


def test_numbers_too_large_for_float16_are_clipped_and_counted(tiny_bert, monkeypatch):
    pool = extracting.pool_block
    monkeypatch.setattr(extracting, "pool_block", lambda *a, **b: pool(*a, **b) * 1e5)
    states = probing.hidden_states(tiny_bert, ["the cat"])
    exact = probing.hidden_states(tiny_bert, ["the cat"], dtype="float32")
    n_large = int((np.abs(np.array(exact.vectors)) > 65_504).sum())
    assert {d.name: d.value for d in states.decisions} == {"clipped": n_large}
    assert np.abs(np.array(states.vectors)).max() == 65_504
    assert n_large and not exact.decisions
