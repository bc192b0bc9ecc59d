"""``embedtopics hierarchy``: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from embedtopics import topics
from embedtopics.topics import save_result
from tests.cli import running
from tests.factories import make_result


def run(*arguments):
    return running.run("hierarchy", *arguments)


def refused(*arguments):
    return running.refused("hierarchy", *arguments)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder of results, and the result."""
    result = make_result(topic_labels=["=SUM(1) [red]\x1b[31m"])
    folder = tmp_path_factory.mktemp("saved")
    save_result(result, folder / "model")
    return folder, result


def test_prints_every_merge_of_a_few_topics(saved):
    folder, result = saved
    done = run(folder)
    assert done.exit_code == 0, done.output
    expected = topics.tree_text(topics.hierarchy(result)).replace("\x1b", " ")
    assert [line.rstrip() for line in done.stdout.splitlines()] == expected.splitlines()
    assert run(folder / "model").stdout == done.stdout


def test_prints_levels(saved, tmp_path):
    folder, result = saved
    done = run(folder, "--levels", "4, 2", "--by", "embeddings", "--linkage", "average")
    tree = topics.hierarchy(result, by="embeddings", linkage="average")
    expected = topics.tree_text(tree, levels=[2, 4]).replace("\x1b", " ")
    assert done.stdout.splitlines() == expected.splitlines()
    many = make_result(800, 40)
    save_result(many, tmp_path / "many")
    lines = run(tmp_path / "many").stdout.splitlines()
    tree = topics.hierarchy(many)
    assert lines == topics.tree_text(tree, levels=[3, 12]).splitlines()


def test_writes_figure_and_table(saved, tmp_path):
    folder, result = saved
    page, table = tmp_path / "tree.html", tmp_path / "tree.csv"
    done = run(folder, "--levels", "3", "--figure", page, "--out", table)
    assert done.exit_code == 0 and f"written to {table}" in done.stdout
    assert "plotly" in page.read_text()[:10_000].lower()
    frame = pd.read_csv(table)
    tree = topics.hierarchy(result)
    pd.testing.assert_frame_equal(
        frame.drop(columns=["label", "terms"]),
        tree.to_frame([3]).drop(columns=["label", "terms"]),
        check_dtype=False,
    )
    assert frame["label"][0].startswith("'=SUM")
    assert frame["terms"][8] == ", ".join(tree.nodes[8].terms)
    assert {path.name for path in tmp_path.iterdir()} == {"tree.html", "tree.csv"}


def test_no_topics_and_one(saved, tmp_path):
    for number in (0, 1):
        save_result(replace(make_result(40, number), tree=None), tmp_path / str(number))
    assert run(tmp_path / "0").stdout.strip() == "no topics"
    assert run(tmp_path / "1").stdout.startswith("[0] ")


def test_bad_input(saved, tmp_path):
    folder, _ = saved
    assert "nowhere" in refused(tmp_path / "nowhere")
    assert "--levels 5,20" in refused(folder, "--levels", "five")
    assert "--levels 5,20" in refused(folder, "--levels", ",")
    assert "from 1 to 6" in refused(folder, "--levels", "9")
    assert "--by must be" in refused(folder, "--by", "words")
    assert "--linkage must be" in refused(folder, "--linkage", "median")
    (tmp_path / "notes.txt").write_text("mine")
    assert ".csv" in refused(folder, "--out", tmp_path / "notes.txt")
    assert "no such folder" in refused(folder, "--out", tmp_path / "no" / "t.csv")
    assert ".html" in refused(folder, "--figure", tmp_path / "notes.txt")
