"""Commands that only read take a folder of results or its model; `export` and `find` on one."""

import numpy as np
import pandas as pd
import pytest

import embedtopics as et
from embedtopics.topics import documents
from tests.cli.running import TEXTS, grouped, refused, rows, run
from tests.factories import make_result


@pytest.fixture(scope="module")
def result():
    return grouped(make_result(80, 3, topic_labels=["[bold]=1+1[/bold]"]))


@pytest.fixture(scope="module")
def folder(result, tmp_path_factory):
    path = tmp_path_factory.mktemp("results")
    result.save(path / "model")
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
    files = {"topics.csv", "terms.csv", "manifest.json"}
    assert {path.name for path in (tmp_path / "f").iterdir()} == files


def test_find_prints_the_topics(result, folder):
    term = result.topics[1].keywords[0]
    done = run("find", folder, term, "--space", "terms")
    assert done.exit_code == 0
    assert done.output.splitlines()[1].split()[0] == "1" and "by terms" in done.output


def test_find_shows_the_names_that_were_given(result, folder, tmp_path):
    term = result.topics[1].keywords[0]
    assert f"{result.topics[1].name}:" not in run("find", folder, term, "--space", "terms").output
    et.topics.rename(result, {1: "[red]A name"}).save(tmp_path / "model")
    done = run("find", tmp_path, term, "--space", "terms")
    assert f"[red]A name: {term}" in done.output


def test_errors_are_one_line(folder, tmp_path):
    assert ".xlsx" in refused("export", folder, "--out", tmp_path / "d.xls")
    assert "tables among" in refused("export", folder, "--out", tmp_path / "d.csv", "--what", "x")
    assert "terms of the result" in refused("find", folder, "zzzz", "--space", "terms")
    assert "--space must be" in refused("find", folder, "river", "--space", "magic")


COMMANDS = ("find", "export", "evaluate", "hierarchy", "over-time", "by-group")


@pytest.mark.parametrize("command", COMMANDS)
def test_results_and_their_model_are_opened_as_one(command, result, folder, tmp_path):
    options = {"find": ("river", "--space", "terms"), "export": ("--out", tmp_path / "all")}
    whole = run(command, folder, *options.get(command, ()))
    alone = run(command, folder / "model", *options.get(command, ()))
    assert whole.exit_code == alone.exit_code == 0, whole.output + alone.output
    assert whole.output and whole.output == alone.output
    assert et.TopicResult.load(folder).labels.tolist() == result.labels.tolist()


def test_embed_writes_the_vectors_of_the_rows(tiny_bert, tmp_path):
    rows().to_csv(tmp_path / "a.csv", index=False)
    asked = ("embed", tmp_path / "a.csv", "--text", "body", "--id", "id", "--precision", "float32")
    for name, blank, cached in (("v.npy", "NaN", 0), ("v.parquet", "null", 8)):
        done = run(*asked, "--encoder", tiny_bert, "--out", tmp_path / name, columns=500)
        assert done.exit_code == 0, done.output
        assert f"without text are {blank} (rows: 1)." in done.output
        assert "9 rows of 16 numbers (float32), from 8 distinct texts" in done.output
        assert f"({cached} vectors were cached)" in done.output
    expected = et.SentenceEncoder(tiny_bert, precision="float32").encode(TEXTS)
    table, array = pd.read_parquet(tmp_path / "v.parquet"), np.load(tmp_path / "v.npy")
    assert table["id"].tolist() == rows()["id"].tolist() and array.dtype == np.float32
    assert table["vector"][8] is None and np.isnan(array[8]).all()
    np.testing.assert_allclose(np.stack(table["vector"][:8]), expected, atol=1e-6)
    np.testing.assert_allclose(array[:8], expected, atol=1e-6)
    done = run("embed", tmp_path / "a.csv", "--encoder", "lsa", "--out", tmp_path / "v.npy")
    assert "lsa was fitted to these texts" in done.output
    assert ".npy or .parquet" in refused(*asked, "--out", tmp_path / "v.csv")
    assert "--encoder" in refused(*asked, "--out", tmp_path / "v.npy", "--encoder", "tfidf")
