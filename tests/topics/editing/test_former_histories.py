"""Histories with the former names of edits are read and replayed."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

import embedtopics as et
from embedtopics import topics
from embedtopics._utils.folders import write_manifest
from embedtopics.topics._relabel import marks_of
from embedtopics.topics.results import Edit
from tests.topics.editing.altering import assert_same

SAVED = Path(__file__).parents[1] / "saved" / "format_1"

FORMER = [
    pytest.param(
        Edit("at_resolution", {"n_topics": 4, "min_cluster_size": "auto", "coverage": 0.9}),
        lambda result: topics.recluster(result, 4, coverage=0.9),
        id="at_resolution",
    ),
    pytest.param(
        Edit("reassign", {"strategy": "terms", "threshold": 0.1}),
        lambda result: topics.reduce_outliers(result, "terms", threshold=0.1),
        id="reassign",
    ),
    pytest.param(
        Edit("reduce", {"n_topics": 5, "by": "embeddings"}),
        lambda result: topics.merge(result, n_topics=5, space="embeddings"),
        id="reduce",
    ),
    pytest.param(
        Edit("rename", {"labels": {"1": "Late trains"}}),
        lambda result: topics.rename(result, {1: "Late trains"}),
        id="labels",
    ),
]


@pytest.mark.parametrize(("former", "present"), FORMER)
def test_a_former_edit_is_replayed_as_the_present_one(branched, former, present):
    marked = dataclasses.replace(former, marks=marks_of(branched, [1]))
    replayed = topics.replay(branched, [marked])

    expected = present(branched)
    assert_same(replayed, expected)
    assert replayed.history[-1].name == expected.history[-1].name


@pytest.mark.parametrize(("former", "present"), FORMER)
def test_a_former_edit_is_read_by_its_present_name(tmp_path, branched, former, present):
    folder = shutil.copytree(SAVED, tmp_path / "saved")
    content = json.loads((folder / "result.json").read_text("utf-8"))
    record = {"name": former.name, "parameters": former.parameters, "message": "done long ago"}
    content["history"] = [record | {"marks": [], "new_ids": None}]
    (folder / "result.json").write_text(json.dumps(content), "utf-8")
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    write_manifest(folder, manifest["kind"], manifest["version"])

    (edit,) = et.TopicResult.load(folder).history

    expected = present(branched).history[-1]
    assert (edit.name, set(edit.parameters)) == (expected.name, set(expected.parameters))
    assert edit.message == "done long ago"
