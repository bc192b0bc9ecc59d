"""Commands over time, by group and on the tree, on a folder as ``embedtopics topics`` writes it."""

import numpy as np
import pandas as pd
import pytest

from embedtopics import topics
from embedtopics.cli._questions import BLOCKS, sparkline
from tests.cli.running import grouped, refused, run
from tests.factories import make_result


@pytest.fixture(scope="module")
def result():
    return grouped(make_result(400, 4, topic_labels=["=SUM(A1) [red]\x1b[31m"]))


@pytest.fixture(scope="module")
def folder(result, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    result.save(folder / "model")
    return folder


def test_over_time_prints_and_writes(result, folder, tmp_path):
    out, figure = tmp_path / "t.csv", tmp_path / "t.html"
    done = run("over-time", folder, "--every", "month", "--out", out, "--figure", figure)
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.output and "every month" in done.output
    trends = topics.over_time(result, "month")
    frame = pd.read_csv(out)
    assert frame["count"].tolist() == trends.counts.ravel().tolist()
    assert (
        set(frame["topic_name"].str[:2]) & {"'="}
        and not frame["topic_name"].str.startswith("=").any()
    )
    assert frame["verdict"].notna().sum() == 4 * trends.n_periods
    assert "<html>" in figure.read_text()
    assert sparkline(trends.counts[0], trends.totals, BLOCKS, trends.min_rows) in done.output
    for verdict in topics.changes(trends)["verdict"]:
        assert verdict in done.output


def test_by_group_prints_and_writes(result, folder, tmp_path):
    out, figure = tmp_path / "g.csv", tmp_path / "g.html"
    done = run("by-group", folder, "--out", out, "--figure", figure)
    assert done.exit_code == 0, done.output
    groups = topics.by_group(result, "source")
    assert pd.read_csv(out)["count"].tolist() == groups.counts.ravel().tolist()
    assert f"{groups.shares[1, 0]:.1%}" in done.output and "times" in done.output
    assert figure.exists()


def test_keyness_and_concordance_print_and_write(result, folder, tmp_path):
    out = tmp_path / "terms.csv"
    done = run("keyness", folder, "--topic", 1, "--n-terms", 4, "--out", out)
    assert done.exit_code == 0, done.output
    expected = topics.keyness(result, 1)
    assert pd.read_csv(out)["term"].tolist() == expected["term"].tolist()
    more = expected[expected["low"] > 0]
    assert len(more) and all(f"{effect:+.2f}" in done.stdout for effect in more["effect"][:4])
    source = result.corpus.metadata["source"][0]
    assert run("keyness", folder, "--where", f"source == '{source}'").exit_code == 0
    assert "name one of them" in refused("keyness", folder)
    assert "--where must be" in refused("keyness", folder, "--where", source)
    term = more["term"].iloc[0]
    done = run("concordance", folder, term, "--topic", 1, "--n-occurrences", 3, "--out", out)
    assert done.exit_code == 0, done.output
    lines = topics.concordance(result, term, topics=1, n_occurrences=3)
    assert len(done.stdout.splitlines()) == len(pd.read_csv(out)) == len(lines)
    assert all(f"  {word}  " in done.stdout for word in lines["keyword"])


def test_effects_print_and_write(result, folder, tmp_path):
    out, figure = tmp_path / "e.csv", tmp_path / "e.html"
    done = run("effects", folder, "~ source", "--out", out, "--figure", figure)
    assert done.exit_code == 0, done.output
    expected = topics.effects(result, "~ source").marginal_effects().sort_values("p", kind="stable")
    np.testing.assert_allclose(pd.read_csv(out)["effect"], expected["effect"])
    assert all(f"{100 * effect:+.1f}" in done.stdout for effect in expected["effect"])
    assert "points: change of the share" in done.stdout and figure.exists()


def test_bad_input_is_one_line(folder, tmp_path):
    said = refused("over-time", folder, "--every=hour")
    assert "--every must be " in said and "hour" in said
    assert ".csv" in refused("over-time", folder, "--out", tmp_path / "t.txt")
    assert ".html" in refused("by-group", folder, "--figure", tmp_path)
    assert "no such folder" in refused("by-group", folder, "--out", tmp_path / "a" / "t.csv")
    assert "'party'" in refused("by-group", folder, "--by", "party")


def test_results_without_dates_say_what_to_do(tmp_path):
    make_result(dated=False).save(tmp_path / "model")
    assert "the corpus has no dates" in refused("over-time", tmp_path)
    make_result().save(tmp_path / "model")
    assert "--by must be" in refused("by-group", tmp_path)


def test_sparkline_takes_periods_together_and_leaves_gaps():
    counts, totals = np.array([0] * 30 + [5] * 30), np.array([5] * 30 + [5] * 30)
    line = sparkline(counts, totals, BLOCKS)
    assert len(line) == 18 and line[:8] == "▁" * 8 and line[-8:] == "█" * 8
    assert sparkline(np.array([0, 0]), np.array([0, 3]), BLOCKS) == " ▁"
    assert sparkline(np.array([2, 1, 0]), np.array([2, 50, 50]), BLOCKS, 20) == " █▁"
    assert sparkline(np.array([1, 2]), np.array([2, 2]), "_#") == "_#"


def test_prints_every_merge_of_a_few_topics(result, folder):
    done = run("hierarchy", folder)
    assert done.exit_code == 0, done.output
    expected = topics.hierarchy(result).to_text().replace("\x1b", " ")
    assert [line.rstrip() for line in done.stdout.splitlines()] == expected.splitlines()
    assert run("hierarchy", folder / "model").stdout == done.stdout


def test_a_large_tree_branches_at_few_levels(tmp_path):
    many = make_result(800, 40)
    many.save(tmp_path / "many")
    lines = run("hierarchy", tmp_path / "many").stdout.splitlines()
    tree = topics.hierarchy(many)
    assert lines == tree.to_text([3, 12]).splitlines()


def test_the_tree_is_written_as_figure_and_table(result, folder, tmp_path):
    page, table = tmp_path / "tree.html", tmp_path / "tree.csv"
    done = run("hierarchy", folder, "--figure", page, "--out", table)
    assert done.exit_code == 0 and f"written to {table}" in done.stdout
    assert "plotly" in page.read_text()[:10_000].lower()
    frame = pd.read_csv(table)
    tree = topics.hierarchy(result)
    pd.testing.assert_frame_equal(
        frame.drop(columns=["name", "terms"]),
        tree.to_frame([]).drop(columns=["name", "terms"]),
        check_dtype=False,
    )
    assert frame["name"][0].startswith("'=SUM")
    assert frame["terms"][5] == ", ".join(tree.terms[5])
    assert {path.name for path in tmp_path.iterdir()} == {"tree.html", "tree.csv"}
