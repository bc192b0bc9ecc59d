from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from embedtopics._utils import machine as _memory
from embedtopics._utils.machine import peak_memory


def test_the_peak_is_that_of_this_process_and_stays():
    # In a process of its own: what this one has held before may be more.
    code = (
        "from embedtopics._utils.machine import peak_memory; before = peak_memory();"
        "held = b'x' * 200_000_000; grown = peak_memory(); del held;"
        "print(before, grown, peak_memory())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, grown, after = map(float, done.stdout.split())
    # The kernel counts by thread and adds up now and then: the last pages may be missing.
    assert 1.9e8 < grown - before < 2.2e8
    assert after > 0.99 * grown


def test_the_caller_of_a_process_does_not_count():
    if not _memory.STATUS.exists():
        pytest.skip("only Linux tells the mark of the address space")
    code = (
        "import subprocess, sys; held = b'x' * 400_000_000;"
        "print(subprocess.run([sys.executable, '-c', 'from embedtopics._utils.machine import '"
        "'peak_memory;"
        "print(peak_memory())'], capture_output=True, text=True, check=True).stdout)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 1e6 < float(done.stdout) < 2e8


def test_other_systems_ask_for_the_resource_usage(monkeypatch, tmp_path):
    pytest.importorskip("resource")
    monkeypatch.setattr(_memory, "STATUS", tmp_path / "nothing")
    assert 2e7 < peak_memory() < 1e12
    monkeypatch.setitem(sys.modules, "resource", None)
    assert np.isnan(peak_memory())
