"""``embedtopics evaluate-encoders``: what it prints, what it writes, and what it refuses."""

import pandas as pd
import pytest

from embedtopics.encoders._foreign import as_encoder
from tests.cli.running import refused, run
from tests.evaluation.task_data import Words, write_pairs, write_retrieval

GRADED = ("--scale", "0,9", "--examples")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    return write_pairs(tmp_path_factory.mktemp("pairs") / "scored.csv")


@pytest.fixture(autouse=True)
def encoders(monkeypatch):
    known = {"first": Words(seed=0), "second": Words(seed=1)}
    monkeypatch.setattr(
        "embedtopics.comparison._evaluate.resolve_encoder",
        lambda name, **_: as_encoder(known[name]),
    )


def test_prints_scores_with_intervals(pairs, tmp_path):
    out = tmp_path / "scores.csv"
    folder = write_retrieval(tmp_path / "tiny")
    done = run("evaluate-encoders", "first", *GRADED, pairs, "--retrieval", folder, "--out", out)
    assert done.exit_code == 0, done.output
    table = pd.read_csv(out)
    assert list(table) == ["encoder", "task", "metric", "value", "low", "high", "n"]
    row = table.iloc[0]
    assert f"{row['value']:.4f}  {row['low']:.4f} to {row['high']:.4f}" in done.stdout
    assert "scored.csv" in done.stdout and "ndcg@10" in done.stdout and "tiny" in done.stdout
    assert "distinct texts in" in done.stdout
    assert max(map(len, done.stdout.splitlines()[:-3])) <= 80


def test_several_encoders_have_paired_differences(pairs, tmp_path):
    out = tmp_path / "scores.csv"
    done = run("evaluate-encoders", "first", "second", *GRADED, pairs, "--out", out)
    assert done.exit_code == 0, done.output
    table = pd.read_csv(out)
    first, second = (table[table["encoder"] == name].iloc[0] for name in ("first", "second"))
    assert second["difference"] == pytest.approx(second["value"] - first["value"])
    assert second["difference_low"] < second["difference"] < second["difference_high"]
    assert pd.isna(first["difference"])
    assert f"{second['difference']:+.4f} [{second['difference_low']:+.4f}" in done.stdout


def test_bad_input(pairs, tmp_path):
    examples = ("--examples", pairs)
    assert "--examples" in refused("evaluate-encoders", "first")
    assert "'one'" in refused("evaluate-encoders", "first", *examples, "--columns", "one,two")
    assert "--scale" in refused("evaluate-encoders", "first", *examples)
    assert "named twice" in refused("evaluate-encoders", "first", "first", *examples)
    assert "--labels" in refused("evaluate-encoders", "first", *examples, "--labels", "theme")
    assert "ends in .csv" in refused("evaluate-encoders", "first", *examples, "--out", tmp_path)
