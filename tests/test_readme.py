"""Every block of the README runs as it stands there."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from embedtopics._demo import demo_path

REPOSITORY = Path(__file__).parents[1]
README = (REPOSITORY / "README.md").read_text("utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.S)
SHELL = re.findall(r"```(\w*)\n(.*?)```", README, re.S)


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with the README's articles.csv in it."""
    demo = pd.read_csv(demo_path(), keep_default_na=False).rename(columns={"text": "body"})
    demo.to_csv(tmp_path / "articles.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.smoke
def test_python_blocks_run(desk):
    assert len(PYTHON) == 8
    names: dict[str, object] = {}
    for block in PYTHON:
        exec(compile(block, "README.md", "exec"), names)
    assert (desk / "report.html").stat().st_size > 100_000
    assert (desk / "my-model" / "manifest.json").is_file()
    assert (desk / "my-static-encoder" / "model.safetensors").is_file()
    assert (desk / "comparison.html").stat().st_size > 100_000


def commands():
    for language, block in SHELL:
        if language:
            continue
        for line in block.splitlines():
            command = line.split("#")[0].strip()
            if command.startswith("embedtopics "):
                yield command


def run(command):
    return subprocess.run(
        [sys.executable, "-m", "embedtopics", *shlex.split(command)[1:]],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """The results that the README's commands work on."""
    folder = tmp_path_factory.mktemp("results")
    demo = pd.read_csv(demo_path(), keep_default_na=False)
    demo.to_csv(folder / "articles.csv", index=False)
    command = "embedtopics topics {0}/articles.csv --encoder lsa --replicates 3 --out {0}/results"
    done = run(f"{command.format(folder)} --text text --time date --group source")
    assert done.returncode == 0, done.stderr
    return folder / "results"


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.parametrize("command", list(commands()))
def test_commands_run(desk, results, command):
    if " results" in command:
        shutil.copytree(results, desk / "results")
    done = run(command)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_all_commands_are_found():
    assert len(list(commands())) == 16


def test_make_targets_exist():
    for target in re.findall(r"^make ([a-z-]+)", README, re.M):
        subprocess.run(
            ["make", "--dry-run", target], cwd=REPOSITORY, check=True, capture_output=True
        )


def test_links_lead_somewhere():
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        if not link.startswith("http"):
            assert (REPOSITORY / link).exists(), link
