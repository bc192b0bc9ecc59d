"""The command evaluate, from a results folder to scored answers."""

import math

import pandas as pd
import pytest

from embedtopics.annotation._bodies import LabelBody, NextBody
from embedtopics.cli._display import write_results_folder
from embedtopics.topics import evaluate
from tests.cli import running
from tests.factories import make_result


def run(*arguments):
    return running.run("evaluate", *arguments, columns=140)


def refused(*arguments):
    return running.refused("evaluate", *arguments)


@pytest.fixture(scope="module")
def result():
    return make_result(topic_labels=["=HYPERLINK()"])


@pytest.fixture(scope="module")
def folder(result, tmp_path_factory):
    path = tmp_path_factory.mktemp("evaluate") / "results"
    write_results_folder(result, path, title="x")
    return path


def test_card_and_table(result, folder, tmp_path):
    done = run(folder, "--out", tmp_path / "card.csv")
    assert done.exit_code == 0, done.output
    expected = evaluate(result)
    written = pd.read_csv(tmp_path / "card.csv")
    pd.testing.assert_frame_equal(written, expected)
    for measure, value in zip(expected["measure"], expected["value"], strict=True):
        assert measure in done.stdout
        if not math.isnan(value) and 0 < value < 1:
            assert f"{value:.3f}" in done.stdout
    assert run(folder / "model").exit_code == 0  # a saved model does as well


def test_labels_add_agreement(folder):
    done = run(folder, "--labels", "date")
    assert done.exit_code == 0 and "ari_covered" in done.stdout and "label_coverage" in done.stdout


def test_sheets_are_written_filled_in_and_scored(folder, tmp_path):
    made = run(folder, "--sheets", tmp_path / "sheets")
    assert made.exit_code == 0 and "word_intrusion.csv: " in made.stdout
    for task in ("word_intrusion", "document_intrusion"):
        sheet = pd.read_csv(tmp_path / "sheets" / f"{task}.csv", dtype=str)
        key = pd.read_csv(tmp_path / "sheets" / "keys" / f"{task}.csv", dtype=str)
        answers = tmp_path / "sheets" / f"{task}-ann.csv"
        sheet.assign(answer=key["intruder"]).to_csv(answers, index=False)
        done = run(folder, "--answers", answers)
        assert done.exit_code == 0, done.output
        assert "1.00 [" in done.stdout and "1 coder" in done.stdout
        both = run(folder, "--answers", answers, "--answers", answers)
        assert "2 coders" in both.stdout and "alpha of the coders: 1.00" in both.stdout
    assert "may hold answers" in refused(folder, "--sheets", tmp_path / "sheets")


def test_bad_input(folder, tmp_path):
    assert "'party'" in refused(folder, "--labels", "party")
    assert "nowhere" in refused(tmp_path / "nowhere")
    assert ".csv" in refused(folder, "--out", tmp_path / "card.xlsx")
    assert "no such folder" in refused(folder, "--out", tmp_path / "no" / "card.csv")
    assert "none.csv" in refused(folder, "--answers", tmp_path / "none.csv")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    assert "column task" in refused(folder, "--answers", tmp_path / "other.csv")
    run(folder, "--sheets", tmp_path / "s")
    assert "one number" in refused(folder, "--answers", tmp_path / "s" / "word_intrusion.csv")


def test_questions_are_asked_on_a_page_and_reported(folder, result, tmp_path, monkeypatch):
    answers = tmp_path / "answers"

    def answer(server):  # one person answers ten questions on the page
        for _ in range(10):
            key = server.next(NextBody(tab="t"))["next"]["key"]
            server.label(LabelBody(key=key, labels=("1",)))
        server.close()

    monkeypatch.setattr("embedtopics.cli._display.run_server", answer)
    done = run(folder, "--ask", answers, "--annotator", "ana")
    assert done.exit_code == 0 and "SheetScore('word_intrusion'" in done.output
    for form, suffix in (("md", ".md"), ("latex", ".tex"), ("docx", ".docx"), ("html", ".html")):
        out = tmp_path / f"study{suffix}"
        options = ["--format", form, "--out", out, "--answers", answers]
        done = running.run("report", folder, *options)
        assert done.exit_code == 0, done.output
        assert out.stat().st_size > 4000
    assert "@software{embedtopics" in (tmp_path / "study.bib").read_text("utf-8")
    assert "| word intrusion |" in (tmp_path / "study.md").read_text("utf-8")
    running.refused("report", folder, "--format", "md", "--out", tmp_path / "study.pdf")
    running.refused("report", folder, "--out", tmp_path / "s.html", "--answers", tmp_path / "none")
