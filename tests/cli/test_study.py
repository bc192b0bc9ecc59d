"""The command ``study``: a plan is run, its hypotheses are tested, and departures are marked."""

import hashlib
import json
import os

import pandas as pd
import pytest

from embedtopics._utils.folders import demo_path
from tests.cli.running import refused, run

PLAN = """
title = "Heat pumps"
date = 2026-01-05
corpus = "articles.csv"
text = "text"
time = "date"
group = "source"
question = "effects(date, source)"
[choices]
encoders = ["tfidf"]
n_topics = [6, 9]
[exclude]
shorter_than = 8
source = "newsletter"
[[hypotheses]]
name = "On the rise"
topic = "heat pump boiler"
quantity = "date"
[[hypotheses]]
name = "On the fall"
topic = "heat pump boiler"
quantity = "date"
conclusion = "below 0"
"""


@pytest.fixture
def plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    demo = pd.read_csv(demo_path(), keep_default_na=False).query("language == 'en'")
    demo[["id", "text", "date", "source"]][:300].to_csv("articles.csv", index=False)
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    os.utime(path, (1767600000, 1767600000))  # 2026-01-05
    return path


def test_a_plan_is_run_and_every_departure_is_marked(plan, tmp_path):
    done = run("run-plan", plan, "--out", "study")
    assert done.exit_code == 0, done.output
    record = json.loads((tmp_path / "study" / "study.json").read_text())
    assert record["plan_sha256"] == hashlib.sha256(PLAN.encode()).hexdigest()
    assert record["departures"] == [] and "departure" not in done.stdout
    texts = pd.read_csv("articles.csv")[:300]
    of_source = (texts["source"] == "newsletter").to_numpy()
    short = (texts["text"].str.split().str.len() < 8).to_numpy()
    assert record["excluded"] == {"shorter_than": short.sum(), "source": (of_source & ~short).sum()}
    rows = pd.read_csv("study/specifications.csv")
    shown = rows[(rows["topic"] == record["hypotheses"][0]["shown"][0])]
    shown = shown[shown["quantity"] == record["hypotheses"][0]["shown"][1]]
    assert [one["share"] for one in record["hypotheses"]] == [
        (shown["low"] > 0).mean(), (shown["high"] < 0).mean(),
    ]  # fmt: skip
    assert "not supported" in record["hypotheses"][1]["said"]
    assert run("verify", "study").exit_code == 0
    before = (tmp_path / "study" / "study.json").read_bytes()

    plan.write_text(PLAN.replace("[6, 9]", "[6, 400]"))
    done = run("run-plan", plan, "--out", "study")
    again = json.loads((tmp_path / "study" / "run-2" / "study.json").read_text())
    changed, unmet = again["departures"]
    assert changed == "choices.n_topics is [6, 400], planned [6, 9]"
    assert unmet.startswith("tfidf has ") and unmet.endswith(" topics, not 400")
    assert "departure from the plan: choices.n_topics" in " ".join(done.stdout.split())
    assert (
        pd.read_csv("study/run-2/summary.csv")["departures"]
        .eq("; ".join(again["departures"]))
        .all()
    )
    assert (tmp_path / "study" / "study.json").read_bytes() == before


def test_a_plan_changed_after_its_date_is_named(plan):
    os.utime(plan)
    run("run-plan", plan, "--out", "late")
    (note,) = json.loads((plan.parent / "late" / "study.json").read_text())["departures"]
    assert note.startswith("plan.toml was changed on 20") and note.endswith("date 2026-01-05")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("question =", "questoin =", "no question"),
        ("title =", "titel =", "titel"),
        ("n_topics =", "topics =", "topics"),
        ("date = 2026", 'date = "2026', "can be read"),
        ("date = 2026-01-05", 'date = "2026-01-05"', "a date without quotation marks"),
        ("shorter_than", "longer_than", "longer_than"),
        ('quantity = "date"', 'quantity = "mood"', "mood"),
        ('quantity = "date"', 'quantity = "date"\nsign = "+"', "sign"),
        ('"below 0"', '"rises"', "rises"),
        ("articles.csv", "nothing.csv", "nothing.csv"),
        ('encoders = ["tfidf"]', "encoders = []", "at least one choice"),
    ],
)
def test_a_wrong_plan_is_refused_in_one_sentence(plan, old, new, message):
    plan.write_text(PLAN.replace(old, new))
    assert message in refused("run-plan", plan, "--out", "wrong")
    assert not (plan.parent / "wrong").exists()


def test_other_files_are_not_written_over(plan, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    assert "holds other files" in refused("run-plan", plan, "--out", "mine")
