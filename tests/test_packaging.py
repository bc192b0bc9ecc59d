"""The wheel holds what an installed copy needs, and nothing that it must not."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    code = f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    with zipfile.ZipFile(folder / done.stdout.split()[-1]) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


def test_holds_code_data_and_licence(wheel):
    names = {p.relative_to(wheel).as_posix() for p in wheel.rglob("*") if p.is_file()}
    package = {
        p.relative_to(REPOSITORY).as_posix()
        for p in (REPOSITORY / "embedtopics").rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    }
    assert package <= names
    assert "embedtopics/data/demo.csv" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith(("tests", "benchmarks", "data/")) for name in names)


def test_the_demo_corpus_travels_inside(wheel, tmp_path):
    code = "from embedtopics.corpus._readers import demo_path; print(demo_path())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(wheel)},
    )  # fmt: skip
    found = Path(done.stdout.strip())
    assert found == wheel / "embedtopics" / "data" / "demo.csv"
    assert found.read_bytes() == (REPOSITORY / "data" / "demo.csv").read_bytes()
