"""Compiled loops: once for a machine, announced by one line, and also where nothing can be kept."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from embedtopics._utils.compiling import compiled

ROOT = Path(__file__).parents[1]
LOOPS = """
from embedtopics._utils.compiling import compiled

@compiled("int64(int64)")
def double(value):
    return value + value

@compiled("int64(int64)", "float32(float32)")
def triple(value):
    return value + value + value
"""
CALL = """
from loops import double, triple
print(double(4), triple(5), sum(triple.stats.cache_hits.values()),
      sum(double.stats.cache_misses.values()) + sum(triple.stats.cache_misses.values()))
"""


def run(folder: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(folder), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def nowhere_to_write(folder: Path) -> dict[str, str]:
    """Return an environment in which not even the superuser can write what Numba would keep."""
    file = folder / "a_file"
    file.write_text("a file where a folder is wanted")
    return {"NUMBA_CACHE_DIR": str(file / "numba"), "XDG_CACHE_HOME": str(file / "cache")}


def test_compiles_once_and_says_so_once(tmp_path):
    (tmp_path / "loops.py").write_text(LOOPS)
    first, second = (run(tmp_path, CALL, NUMBA_CACHE_DIR=str(tmp_path / "kept")) for _ in range(2))
    assert first.stdout.split() == ["8", "15", "0", "3"], first.stderr
    assert first.stderr == "Compiling once for this machine (up to 20 s) ...\n"
    assert second.stdout.split() == ["8", "15", "2", "0"], "the second run compiles nothing"
    assert second.stderr == ""


def test_compiles_where_nothing_can_be_kept(tmp_path):
    (tmp_path / "loops.py").write_text(LOOPS)
    (tmp_path / "__pycache__").write_text("a file where a folder is wanted")
    done = run(tmp_path, CALL, **nowhere_to_write(tmp_path))
    assert done.stdout.startswith("8 15"), done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("No folder for compiled code is writable")


def test_what_cannot_be_compiled_is_an_error_as_before():
    with pytest.raises(numba.TypingError):
        compiled("int64(int64)")(lambda value: {}[value])


LAY_OUT = """
import hashlib, numpy as np
from embedtopics.neighbors._graph import build_graph, unit_rows
from embedtopics.reduction import _kernels
from embedtopics.reduction._fuzzy import fuzzy_graph
from embedtopics.reduction._layout import layout
from embedtopics.reduction._components import principal_start
embeddings = unit_rows(np.random.default_rng(0).normal(size=(600, 12)))
positions = layout(
    fuzzy_graph(build_graph(embeddings)), principal_start(embeddings, 5), n_epochs=60
)
stats = [_kernels.move_chunks(5, parallel).stats for parallel in (False, True)]
print(hashlib.sha256(positions.tobytes()).hexdigest(),
      sum(sum(one.cache_misses.values()) for one in stats))
"""


@pytest.mark.slow
def test_the_layouts_code_is_kept_and_gives_the_same_bits(tmp_path):
    first, second = (run(tmp_path, LAY_OUT, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    digest, n_compiled = first.stdout.split()
    assert int(n_compiled) == 2 and first.stderr.count("Compiling once") == 1
    assert second.stdout.split() == [digest, "0"]
    assert second.stderr == ""
