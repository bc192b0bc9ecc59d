"""`export` and `find`, on a folder as `topics` writes it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import embedtopics as et
from embedtopics.topics import documents, save_result
from tests.cli.running import refused, run
from tests.factories import make_result


@pytest.fixture(scope="module")
def result():
    made = make_result(80, 3, topic_labels=["[bold]=1+1[/bold]"])
    return made


@pytest.fixture(scope="module")
def folder(result, tmp_path_factory):
    path = tmp_path_factory.mktemp("results")
    save_result(result, path / "model")
    return path


def test_export_writes_what_it_says(result, folder, tmp_path):
    done = run("export", folder, "--out", tmp_path / "d.csv")
    assert done.exit_code == 0 and str(tmp_path / "d.csv") in done.output.replace("\n", "")
    np.testing.assert_array_equal(pd.read_csv(tmp_path / "d.csv")["topic"], result.labels)
    assert run("export", folder, "--out", tmp_path / "r.xlsx").exit_code == 0
    sheets = pd.read_excel(tmp_path / "r.xlsx", sheet_name=None)
    assert sheets["documents"]["id"].tolist() == documents(result)["id"].tolist()
    done = run("export", folder, "--out", tmp_path / "f", "--what", "topics", "--what", "terms",
               "--format", "jsonl")  # fmt: skip
    assert done.exit_code == 0
    assert {p.name for p in (tmp_path / "f").iterdir()} == {
        "topics.jsonl", "terms.jsonl", "manifest.json",
    }  # fmt: skip


def test_find_prints_the_topics(result, folder):
    term = result.topics[1].keywords[0]
    done = run("find", folder, term, "--by", "terms")
    assert done.exit_code == 0
    assert done.output.splitlines()[1].split()[0] == "1" and "by terms" in done.output


def test_find_shows_the_names_that_were_given(result, folder, tmp_path):
    term = result.topics[1].keywords[0]
    assert f"{result.topics[1].label}:" not in run("find", folder, term, "--by", "terms").output
    save_result(et.topics.rename(result, {1: "[red]A name"}), tmp_path / "model")
    done = run("find", tmp_path, term, "--by", "terms")
    assert f"[red]A name: {term}" in done.output


def test_errors_are_one_line(folder, tmp_path):
    assert "nowhere" in refused("export", tmp_path / "nowhere", "--out", tmp_path / "d.csv")
    assert ".xlsx" in refused("export", folder, "--out", tmp_path / "d.xls")
    assert "tables among" in refused("export", folder, "--out", tmp_path / "d.csv", "--what", "x")
    assert "terms of the result" in refused("find", folder, "zzzz", "--by", "terms")
    assert "--by must be" in refused("find", folder, "river", "--by", "magic")
