"""Commands that only read take a folder of results or its model; `export` and `find` on one."""

import numpy as np
import pandas as pd
import pytest

import embedtopics as et
from embedtopics.topics import documents, save_result
from tests.cli.running import grouped, refused, run
from tests.factories import make_result


@pytest.fixture(scope="module")
def result():
    return grouped(make_result(80, 3, topic_labels=["[bold]=1+1[/bold]"]))


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
    done = run("export", folder, "--out", tmp_path / "f", "--what", "topics", "--what", "terms")
    assert done.exit_code == 0
    assert {p.name for p in (tmp_path / "f").iterdir()} == {
        "topics.csv",
        "terms.csv",
        "manifest.json",
    }


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
    assert ".xlsx" in refused("export", folder, "--out", tmp_path / "d.xls")
    assert "tables among" in refused("export", folder, "--out", tmp_path / "d.csv", "--what", "x")
    assert "terms of the result" in refused("find", folder, "zzzz", "--by", "terms")
    assert "--by must be" in refused("find", folder, "river", "--by", "magic")


COMMANDS = {
    "find": ("river", "--by", "terms"),
    "export": ("--out", "all"),
    "evaluate": (),
    "hierarchy": (),
    "over-time": (),
    "by-group": (),
}


def arguments_of(command, place, tmp_path):
    return (
        command,
        place,
        *(tmp_path / part if part == "all" else part for part in COMMANDS[command]),
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_results_and_their_model_are_opened_as_one(command, result, folder, tmp_path):
    whole = run(*arguments_of(command, folder, tmp_path / "a"))
    alone = run(*arguments_of(command, folder / "model", tmp_path / "a"))
    assert whole.exit_code == alone.exit_code == 0, whole.output + alone.output
    assert whole.output and whole.output == alone.output
    assert et.topics.load_result(folder).labels.tolist() == result.labels.tolist()
