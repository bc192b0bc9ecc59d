import dataclasses
import gc
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from embedtopics import CorruptFileError, InputError, probing
from embedtopics.probing import _extract as extracting
from embedtopics.probing import _storage as storing
from tests.factories import FULL_DISK, contents, raising, refuses

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
    probing.hidden_states(TEXTS, tiny_bert, out=tmp_path / "finished")
    return tmp_path / "finished"


def test_a_store_is_what_is_in_memory(tiny_bert, finished):
    kept, made = probing.open_states(finished), probing.hidden_states(TEXTS, tiny_bert)
    assert kept.folder == str(finished)
    for field in dataclasses.fields(made):
        one, other = getattr(kept, field.name), getattr(made, field.name)
        if field.name == "vectors":
            assert all(isinstance(layer, np.memmap) for layer in one)
            np.testing.assert_array_equal(one, other)
        elif isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
        elif field.name != "folder":
            assert one == other
    assert {d.name: d.value for d in kept.decisions} == {"missing_words": 3, "long_texts": 3}


@pytest.fixture
def broken_off(tiny_bert, monkeypatch):
    """Interrupt an extraction at a write, as if the process were killed."""

    def begin(out, number):
        calls, kept = iter(range(1000)), os.fsync

        def fsync(descriptor):
            if next(calls) == number:
                raise KeyboardInterrupt
            kept(descriptor)

        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(storing.os, "fsync", fsync)
            probing.hidden_states(TEXTS, tiny_bert, out=out)
        return out

    return begin


@pytest.mark.parametrize("number", [0, 4, 10, 17])
def test_an_interrupted_extraction_resumes_to_the_same_bytes(
    number, tiny_bert, finished, tmp_path, monkeypatch, broken_off
):
    out = broken_off(tmp_path / "broken", number)
    assert not out.exists()
    with refuses("folder"):
        probing.open_states(out)
    n_run = []
    kept = extracting.pool_block
    monkeypatch.setattr(
        extracting, "pool_block", lambda *a, **b: n_run.append(b["first_row"]) or kept(*a, **b)
    )
    states = probing.hidden_states(TEXTS, tiny_bert, out=out)
    assert contents(out) == contents(finished)
    assert bool(n_run[0]) == (number >= 3)  # three layers make a block
    assert states.folder == str(out)
    assert not list(tmp_path.glob(".*"))


def test_a_finished_store_is_opened_and_nothing_is_run(tiny_bert, finished, monkeypatch):
    monkeypatch.setattr(extracting, "load_layers", None)
    again = probing.hidden_states(TEXTS, tiny_bert, layers=[0, 1, -1], out=finished)
    assert again.layers == (0, 1, 2)


@pytest.mark.parametrize("unfinished", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        {"texts": TEXTS[:-1]},
        {"texts": [t.split() for t in TEXTS]},
        {"pooling": "max"},
        {"words": False},
        {"layers": -1},
        {"max_length": 16},
        {"dtype": "float32"},
        {"random_state": 0, "texts": TEXTS[1:]},
    ],
)
def test_a_store_of_other_states_is_refused(
    change, unfinished, tiny_bert, tmp_path, finished, broken_off
):
    out = broken_off(tmp_path / "broken", 4) if unfinished else finished
    make = probing.random_states if "random_state" in change else probing.hidden_states
    with refuses("out"):
        make(**{"texts": TEXTS, "encoder": tiny_bert, "out": out, **change})


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
                probing.open_states(folder)


def test_a_damaged_unfinished_store_is_not_resumed(tiny_bert, tmp_path, broken_off):
    broken_off(tmp_path / "s", 7)
    path = tmp_path / ".s.unfinished" / "layer-01.f16"
    os.truncate(path, 10)
    with pytest.raises(CorruptFileError, match=r"layer-01.f16 is damaged: it has 10 bytes"):
        probing.hidden_states(TEXTS, tiny_bert, out=tmp_path / "s")


@pytest.mark.parametrize("texts", [TEXTS, [["", "\u200b"], [""]]])
def test_an_extraction_killed_at_the_checksums_resumes_without_computing(
    texts, tiny_bert, tmp_path, monkeypatch
):
    probing.hidden_states(texts, tiny_bert, out=tmp_path / "whole")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(storing, "write_manifest", raising(KeyboardInterrupt))
        probing.hidden_states(texts, tiny_bert, out=tmp_path / "s")
    monkeypatch.setattr(extracting, "pool_block", None)
    probing.hidden_states(texts, tiny_bert, out=tmp_path / "s")
    assert contents(tmp_path / "s") == contents(tmp_path / "whole")


def test_a_second_writer_is_refused(tiny_bert, finished, tmp_path, monkeypatch):
    out, kept, said = tmp_path / "s", extracting.pool_block, []

    def meanwhile(*a, **b):
        if not said:
            with pytest.raises(InputError, match="another process is writing") as refused:
                probing.hidden_states(TEXTS, tiny_bert, out=out)
            said.append(refused)
        return kept(*a, **b)

    (tmp_path / ".s.lock").touch()  # of one that was killed
    monkeypatch.setattr(extracting, "pool_block", meanwhile)
    probing.hidden_states(TEXTS, tiny_bert, out=out)
    assert said and contents(out) == contents(finished)
    assert not list(tmp_path.glob(".*"))


def test_a_full_disk_is_reported_and_the_extraction_resumes(
    tiny_bert, finished, tmp_path, monkeypatch
):
    with monkeypatch.context() as patched:
        patched.setattr(storing.os, "fsync", raising(FULL_DISK))
        with pytest.raises(InputError, match="No space left on device; free some space"):
            probing.hidden_states(TEXTS, tiny_bert, out=tmp_path / "s")
    probing.hidden_states(TEXTS, tiny_bert, out=tmp_path / "s")
    assert contents(tmp_path / "s") == contents(finished)


def test_other_files_in_place_of_an_unfinished_store_are_kept(
    tiny_bert, tmp_path, monkeypatch, broken_off
):
    out = broken_off(tmp_path / "s", 4)
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    monkeypatch.setattr(extracting, "load_layers", None)  # refused before the work
    with pytest.raises(InputError, match="holds other files"):
        probing.hidden_states(TEXTS, tiny_bert, out=out)


def test_other_folders_are_refused(tiny_bert, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds other files"):
        probing.hidden_states(["a"], tiny_bert, out=tmp_path)
    with pytest.raises(CorruptFileError, match="not saved by embedtopics"):
        probing.open_states(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        probing.open_states(tmp_path / "none")
    (tmp_path / "manifest.json").write_text(
        json.dumps({"kind": "hidden states", "version": 99, "files": {}})
    )
    with pytest.raises(CorruptFileError, match="format 99"):
        probing.open_states(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_temporary_store_is_removed_with_the_result(tiny_bert, monkeypatch, tmp_path):
    monkeypatch.setattr(extracting.tempfile, "tempdir", str(tmp_path))
    states = probing.hidden_states(["the cat"], tiny_bert)
    files = [Path(layer.filename) for layer in states.vectors]
    assert all(file.is_file() for file in files) and states.folder == ""
    del states
    gc.collect()
    assert not list(tmp_path.iterdir())
    with refuses("layers"):
        probing.hidden_states(["the cat"], tiny_bert, layers=9)
    assert not list(tmp_path.iterdir())


def test_numbers_too_large_for_float16_are_clipped_and_counted(tiny_bert, tmp_path, monkeypatch):
    kept = extracting.pool_block
    monkeypatch.setattr(extracting, "pool_block", lambda *a, **b: kept(*a, **b) * 1e5)
    states = probing.hidden_states(["the cat"], tiny_bert)
    exact = probing.hidden_states(["the cat"], tiny_bert, dtype="float32")
    n_large = int((np.abs(np.array(exact.vectors)) > 65_504).sum())
    assert {d.name: d.value for d in states.decisions} == {"clipped": n_large}
    assert np.abs(np.array(states.vectors)).max() == 65_504
    assert n_large and not exact.decisions
