"""A save that is killed at any point leaves what was there, or what was to be there."""

import dataclasses
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from embedtopics.topics import load_result, save_result
from embedtopics.topics._storage import read_arrays, write_arrays
from tests.factories import make_result

# A child process for each point; the hook sees every file that is opened, renamed or deleted.
KILLED_EVERYWHERE = """
import dataclasses, json, os, signal, sys
from pathlib import Path
from embedtopics.topics import load_result, save_result

folder = Path(sys.argv[1])
old = load_result(folder)
new = dataclasses.replace(old, settings={**old.settings, "version": "new"})
WATCHED = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chmod", "os.unlink")

def save_until(point):
    seen = 0
    def hook(event, arguments):
        nonlocal seen
        if event in WATCHED and "saved" in str(arguments):
            seen += 1
            if seen == point:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)
    save_result(new, folder)

found = []
point = 0
while True:
    point += 1
    save_result(old, folder)
    child = os.fork()
    if child == 0:
        save_until(point)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    found.append(load_result(folder).settings.get("version", "old"))
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0
        break
    assert os.WTERMSIG(status) == signal.SIGKILL
print(json.dumps(found))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system with fork")
def test_killed_at_any_point(tmp_path):
    folder = save_result(make_result(n_documents=40, n_topics=2), tmp_path / "saved")
    done = subprocess.run(
        [sys.executable, "-c", KILLED_EVERYWHERE, str(folder)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert len(found) > 15 and found[0] == "old" and found[-1] == "new"
    # The change happens once: no point leaves the old one after it.
    assert found == sorted(found, reverse=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system with fork")
def test_the_old_one_comes_back_where_both_were_out_of_place(tmp_path):
    folder = save_result(make_result(n_documents=40, n_topics=2), tmp_path / "saved")
    # As it is when a process dies between the two renames.
    folder.rename(tmp_path / ".saved.abc123.old")
    (tmp_path / ".saved.abc123.new").mkdir()
    assert load_result(folder).n_topics == 2
    assert folder.is_dir() and not (tmp_path / ".saved.abc123.old").exists()
    # What another program calls so is left alone.
    other = tmp_path / ".other.xyz.old"
    other.mkdir()
    with pytest.raises(ValueError, match="does not exist"):
        load_result(tmp_path / "other")
    assert other.is_dir()


HEAVY = ("torch", "transformers", "onnxruntime", "sentence_transformers", "faiss", "numba")


def test_loading_needs_no_encoder(tmp_path):
    folder = save_result(make_result(n_documents=40, n_topics=2), tmp_path / "saved")
    code = (
        "import sys; from embedtopics.topics import load_result, table, documents;"
        f"r = load_result({str(folder)!r}); table(r); documents(r);"
        f"print(r.n_topics, *[name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2"]


def every_array(result):
    for name in ("embeddings", "coordinates", "map"):
        yield name, getattr(result, name)
    for part in ("documents", "graph", "clustering", "tokens", "term_counts"):
        value = getattr(result, part)
        for field in dataclasses.fields(value):
            if isinstance(getattr(value, field.name), np.ndarray):
                yield f"{part}.{field.name}", getattr(value, field.name)
    matrices = (result.memberships, result.topic_terms, result.term_counts.counts)
    for name, matrix in zip(("memberships", "topic_terms", "counts"), matrices, strict=True):
        for kind in ("data", "indices", "indptr"):
            yield f"{name}.{kind}", getattr(matrix, kind)


@pytest.mark.parametrize("wide", [np.int32, np.int64])
def test_every_array_comes_back_bit_for_bit(tmp_path, wide):
    result = make_result()
    counts = result.term_counts.counts.copy()
    counts.indices, counts.indptr = counts.indices.astype(wide), counts.indptr.astype(wide)
    unsorted = result.memberships[:, ::-1].tocsr()
    result = dataclasses.replace(
        result,
        memberships=unsorted,
        term_counts=dataclasses.replace(result.term_counts, counts=counts),
    )
    loaded = load_result(save_result(result, tmp_path / "saved"))
    pairs = list(zip(every_array(result), every_array(loaded), strict=True))
    assert len(pairs) == 25
    for (name, one), (_, two) in pairs:
        assert one.dtype == two.dtype and one.shape == two.shape, name
        assert one.tobytes() == two.tobytes(), name
        assert two.flags.writeable, name


def test_what_settings_may_hold(tmp_path):
    settings = {
        "nested": {"a": [1, {"b": None}], "c": 2.5}, "pair": (1, 2), "array": np.arange(3),
        "number": np.float32(0.5), "text": np.str_("x"), 3: True, "unknown": float("nan"),
    }  # fmt: skip
    loaded = load_result(save_result(make_result(40, 2, settings=settings), tmp_path / "saved"))
    assert loaded.settings == {
        "nested": {"a": [1, {"b": None}], "c": 2.5}, "pair": [1, 2], "array": [0, 1, 2],
        "number": 0.5, "text": "x", "3": True, "unknown": None,
    }  # fmt: skip


def test_arrays_of_any_shape_and_kind(tmp_path):
    arrays = {
        "empty": np.empty((0, 3), dtype=np.int16), "scalar": np.array(2.5),
        "truth": np.array([[True], [False]]), "turned": np.arange(6, dtype="u8").reshape(2, 3).T,
        "big": np.array([1, 2], dtype=">i4"), "nan": np.array([np.nan, -0.0, np.inf], np.float16),
    }  # fmt: skip
    write_arrays(tmp_path / "a", arrays)
    read = read_arrays(tmp_path / "a")
    assert list(read) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
        assert read[name].dtype == array.dtype.newbyteorder("=")
    assert np.signbit(read["nan"][1])
    with pytest.raises(TypeError, match="an array of object"):
        write_arrays(tmp_path / "b", {"objects": np.array([None])})
