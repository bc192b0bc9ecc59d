"""``embedtopics evaluate-encoder``: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.cli.running import refused, run
from tests.evaluation.task_data import Words, write_tasks


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_tasks(tmp_path_factory.mktemp("data"))


@pytest.fixture(autouse=True)
def encoders(monkeypatch):
    known = {"first": Words(seed=0), "second": Words(seed=1)}
    monkeypatch.setattr("embedtopics.encoders.resolve_encoder", known.__getitem__)


def test_prints_scores_with_intervals(data, tmp_path):
    out = tmp_path / "scores.csv"
    done = run("evaluate-encoder", "first", "--on", "stsb,sts12_14", "--data", data, "--out", out)
    assert done.exit_code == 0, done.output
    table = pd.read_csv(out)
    assert list(table) == ["encoder", "task", "file", "metric", "value", "low", "high", "n"]
    row = table.iloc[0]
    assert f"{row['value']:.4f}  {row['low']:.4f} to {row['high']:.4f}" in done.stdout
    assert "stsb" in done.stdout and "2013 pooled" in done.stdout and "mean of sets" in done.stdout
    assert "distinct texts in" in done.stdout and "15 of 60 pairs are in STS-B" in done.stdout
    assert max(map(len, done.stdout.splitlines()[:-3])) <= 80


def test_several_encoders_have_paired_differences(data, tmp_path):
    out = tmp_path / "scores.csv"
    done = run("evaluate-encoder", "first", "second", "--on", "sick", "--data", data, "--out", out)
    assert done.exit_code == 0, done.output
    table = pd.read_csv(out)
    first, second = (table[table["encoder"] == name].iloc[0] for name in ("first", "second"))
    assert second["difference"] == pytest.approx(second["value"] - first["value"])
    assert second["difference_low"] < second["difference"] < second["difference_high"]
    assert pd.isna(first["difference"])
    assert f"{second['difference']:+.4f} [{second['difference_low']:+.4f}" in done.stdout


def test_pairs_of_the_user(tmp_path):
    path = tmp_path / "mine.csv"
    rows = "\n".join(f"w{i} x,w{i} {'x' if i % 3 else 'y'},{i % 3}" for i in range(20))
    path.write_text("one,two,how\n" + rows + "\n")
    done = run("evaluate-encoder", "first", "--pairs", path, "--columns", "one,two,how")
    assert done.exit_code == 0, done.output
    assert "mine.csv" in done.stdout and "spearman_cosine" in done.stdout
    assert "expected a column 'sentence1'" in refused("evaluate-encoder", "first", "--pairs", path)


def test_bad_input(data, tmp_path):
    assert "--on" in refused("evaluate-encoder", "first")
    assert "--data" in refused("evaluate-encoder", "first", "--on", "stsb")
    assert "no task 'sts'" in refused("evaluate-encoder", "first", "--on", "sts", "--data", data)
    assert "named twice" in refused(
        "evaluate-encoder", "first", "first", "--on", "stsb", "--data", data
    )
    assert "ends in .csv" in refused(
        "evaluate-encoder", "first", "--on", "stsb", "--data", data, "--out", tmp_path
    )


def test_all_encoders_are_found_before_one_is_measured(data, monkeypatch):
    from embedtopics.errors import ModelLoadError

    first = Words()

    def find(name):
        if name == "first":
            return first
        raise ModelLoadError(f"no encoder named {name!r}")

    monkeypatch.setattr("embedtopics.encoders.resolve_encoder", find)
    told = refused("evaluate-encoder", "first", "nowhere", "--on", "stsb", "--data", data)
    assert "'nowhere'" in told and not first.calls
