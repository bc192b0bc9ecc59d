"""``embedtopics compare``: what it prints, what it writes, and what it refuses."""

import numpy as np
import pandas as pd
import pytest

from embedtopics.encoders._registry import resolve_encoder
from embedtopics.errors import InputError
from tests.cli.running import refused, run
from tests.comparison.conftest import Hashed, WordCounts
from tests.factories import FULL_DISK, raising


@pytest.fixture
def page(monkeypatch):
    """Stand in for the page; return the results that it was given."""
    written = []

    def write_page(result, path):
        written.append(result)
        path.write_text("<p>a page</p>")

    monkeypatch.setattr("embedtopics.report._report.write_report", write_page)
    return written


@pytest.fixture
def articles(toy, tmp_path, monkeypatch):
    """A file of texts, some that a terminal or a spreadsheet would obey, and two encoders."""
    texts, _, themes = toy
    texts = list(texts)
    texts[0] = "=1+1 [red]apple plum cherry juice\x1b[31m orchard harvest"
    path = tmp_path / "articles.csv"
    pd.DataFrame({"body": texts, "theme": [f"t{t}" for t in themes]}).to_csv(path, index=False)
    known = {"words": WordCounts(2), "hashed": Hashed()}

    def resolve(spec, *, cached, all_words):
        assert cached and all_words
        if isinstance(spec, str) and spec not in known:
            raise InputError(f"no encoder {spec}")
        return resolve_encoder(known[spec] if isinstance(spec, str) else spec)

    monkeypatch.setattr("embedtopics.comparison._vectors.resolve_encoder", resolve)
    return path


TWO = ("--encoders", "words,hashed", "--text", "body")


def test_prints_scores_overlaps_and_moves(articles, page):
    done = run("compare-encoders", articles, *TWO, "--labels", "theme")
    assert done.exit_code == 0, done.output
    assert "135 texts, grouped by label" in done.stdout
    assert "k-NN accuracy" in done.stdout and "trustworthiness" in done.stdout
    assert "words and hashed share 0." in " ".join(done.stdout.split())
    assert "neighbours change most from words to hashed" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout and not page


def test_writes_a_folder(articles, page, tmp_path):
    out = tmp_path / "o"
    done = run("compare-encoders", articles, *TWO, "--out", out)
    assert done.exit_code == 0, done.output
    assert {p.name for p in out.iterdir()} == {
        "comparison.html", "scores.csv", "differences.csv", "overlaps.csv", "moved.csv",
        "manifest.json",
    }  # fmt: skip
    (result,) = page
    scores = pd.read_csv(out / "scores.csv")
    np.testing.assert_allclose(scores["value"], result.scores["value"])
    assert pd.read_csv(out / "overlaps.csv")["n"].tolist() == [len(result.corpus)]
    moved = pd.read_csv(out / "moved.csv")
    assert len(moved) == len(result.moved) and moved["gained"].notna().any()
    # A folder of ours may be replaced.
    assert run("compare-encoders", articles, *TWO, "--out", out).exit_code == 0
    assert (out / "comparison.html").read_text() == "<p>a page</p>"


def test_places_are_asked_for_before_the_work(articles, tmp_path, monkeypatch):
    monkeypatch.setattr("embedtopics.corpus._corpus.read_file", None)
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "thesis.docx").write_text("mine")
    assert "holds other files" in refused(
        "compare-encoders", articles, *TWO, "--out", tmp_path / "o"
    )


def test_a_full_disk_is_one_line(articles, tmp_path, monkeypatch):
    monkeypatch.setattr("embedtopics.report._report.write_report", raising(FULL_DISK))
    line = refused("compare-encoders", articles, *TWO, "--out", tmp_path / "o")
    assert "No space left on device" in line
    assert [p.name for p in tmp_path.iterdir()] == ["articles.csv"]


def test_bad_input(articles, tmp_path):
    assert "nowhere.csv" in refused("compare-encoders", tmp_path / "nowhere.csv")
    assert "no encoder nothing" in refused(
        "compare-encoders", articles, "--text", "body", "--encoders", "words,nothing"
    )
    assert "at least two" in refused(
        "compare-encoders", articles, "--text", "body", "--encoders", "words"
    )
    assert "'them'" in refused("compare-encoders", articles, *TWO, "--labels", "them")
