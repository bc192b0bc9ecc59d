"""A plan is run from Python: what comes back, what the folder holds, and former names of keys."""

import json
import os

import pytest

import embedtopics as et
from tests.factories import refuses

PLAN = """
date = 2026-01-05
corpus = "articles.csv"
text = "text"
time = "date"
group = "source"
question = "effects(date, source)"
[choices]
encoders = ["tfidf"]
n_topics = [4, 6]
random_states = [0]
[[hypotheses]]
name = "More strikes"
topic = "strike"
quantity = "date"
"""


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """A plan that was run once, and its folder."""
    folder = tmp_path_factory.mktemp("plan")
    et.Corpus("embedtopics:demo", limit=150).to_frame().to_csv(folder / "articles.csv", index=False)
    plan = folder / "plan.toml"
    plan.write_text(PLAN)
    os.utime(plan, (1767600000, 1767600000))  # 2026-01-05
    return et.topics.run_plan(plan, folder / "run"), plan


def test_a_plan_returns_its_main_study_and_its_hypotheses(planned):
    result, _ = planned
    (row,) = result.to_frame().to_dict("records")

    assert result.result.n_topics == 4
    assert result.specifications.choices["n_topics"].tolist() == [4, 6]
    estimates = result.specifications.estimates.query("topic == @row['topic']")
    estimates = estimates[estimates["quantity"] == row["quantity"]]
    assert row["share"] == (estimates["low"] > 0).mean() and row["n"] == 2
    assert row["name"] == "More strikes" and row["finding"] in result.summary()
    assert result.departures == () and result.folder.name == "run"
    n_supported = int(row["supported"])
    expected = (
        f"PlanResult(2 specifications, {n_supported} of 1 hypothesis supported, 0 departures)"
    )
    assert repr(result) == expected


def test_the_folder_holds_the_main_study_and_the_record(planned):
    result, plan = planned
    loaded = et.TopicResult.load(result.folder / "model")
    record = json.loads((result.folder / "study.json").read_text("utf-8"))

    assert (loaded.labels == result.result.labels).all()
    assert record["plan_sha256"] == result.record["plan_sha256"]
    assert (result.folder / "plan.toml").read_bytes() == plan.read_bytes()


def test_keys_of_former_plans_are_read(planned, tmp_path):
    result, plan = planned
    record = json.loads((result.folder / "study.json").read_text("utf-8"))
    record["plan"]["choices"]["seeds"] = record["plan"]["choices"].pop("random_states")
    former = tmp_path / "former"
    former.mkdir()
    (former / "study.json").write_text(json.dumps(record), "utf-8")
    with_seeds = plan.with_name("with_seeds.toml")
    with_seeds.write_text(PLAN.replace("random_states", "seeds"))

    again = et.topics.run_plan(with_seeds, former)

    assert again.departures == () and again.folder == former / "run-2"


def test_other_files_are_not_written_over(planned, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")

    with refuses("out"):
        et.topics.run_plan(planned[1], tmp_path)
