"""Each command, each kind of bad input, through a process of its own or Typer's runner."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest

from embedtopics import TopicResult
from embedtopics.cli import _display
from embedtopics.cli._display import write_results_folder
from embedtopics.errors import InputError
from tests.cli.running import refused, run
from tests.factories import FULL_DISK, PATIENCE, contents, make_result, raising

THEMES = ["apple pear plum orchard", "station rail ticket platform", "bishop rook pawn queen"]


@pytest.fixture
def articles(tmp_path):
    path = tmp_path / "articles.csv"
    path.write_text("body,n\nfirst text here,1\nsecond text there,2\n")
    return path


def test_help_names_the_commands_and_there_is_a_version():
    done = run("--help")
    assert done.exit_code == 0
    for command in ("demo", "inspect", "topics"):
        assert command in done.output
        assert run(command, "--help").exit_code == 0
    assert run("--version").output == "embedtopics 0.1.0\n"


@pytest.mark.parametrize(
    ("name", "content", "options", "said"),
    [
        ("nowhere.csv", None, (), "nowhere.csv"),
        ("empty", "a folder", (), "empty"),
        ("a.csv", b"body,n\nfirst,1\n", ("--text", "bdy"), "a column of a.csv: 'body', 'n'"),
        ("a.csv", b"body,n\nfirst,1\n", ("--text", "n"), "'n'"),
        ("a.csv", b'body,n\n" ",1\n"",2\n', ("--text", "body"), "has no text in column 'body'"),
        ("a.csv", b"text,n\none,1\ntwo,2,3\n", (), "line 3"),
        ("a.csv", b"text\none\n", ("--encoder", "no-such/model"), "no-such/model"),
        (
            "a.csv",
            b"text\ncaf\xe9\n",
            ("--encoder", "tfidf"),
            "expected utf-8 text, got the byte 0xe9",
        ),
    ],
)
def test_files_and_columns_that_cannot_be_read(tmp_path, name, content, options, said):
    path = tmp_path / name
    if content == "a folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    for command in (("inspect", path), ("topics", path, "--out", tmp_path / "o")):
        assert said in refused(*command, *options)


@pytest.mark.parametrize("encoder", ["tfidf", "lsa", "random"])
def test_baselines_by_name(encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(_display, "HOUR", 0.0)  # every encoder takes longer
    path = tmp_path / "notes.csv"
    texts = [f"{theme} {chr(97 + i)}{chr(97 + i)}" for theme in THEMES for i in range(20)]
    path.write_text("\n".join(["text", *texts]))
    seen = run("inspect", path, "--encoder", encoder)
    assert seen.exit_code == 0 and "5 tokens" in seen.stdout and "--distill" in seen.stdout
    command = ("topics", path, "--encoder", encoder, "--words", "social", "--out", tmp_path / "out")
    made = run(*command, *(("--sample", 30) if encoder == "tfidf" else ("--n-replicates", 0)))
    assert made.exit_code == 0 and (tmp_path / "out" / "report.html").exists(), made.output
    if encoder == "tfidf":
        assert "assignments.parquet" in made.stdout
        rows = pd.read_parquet(tmp_path / "out" / "assignments.parquet")
        assert len(rows) == 60 and rows["in_sample"].sum() == 30
        # They would not follow an edit of the topics.
        assert "assignments.parquet" in refused(*command)


def test_folder_with_other_files_is_refused_before_the_work(articles, tmp_path):
    out = tmp_path / "o"
    out.mkdir()
    (out / "thesis.docx").write_text("mine")
    assert "holds other files" in refused("topics", articles, "--text", "body", "--out", out)
    assert [p.name for p in out.iterdir()] == ["thesis.docx"]


def test_permission_is_asked_before_the_work(articles, tmp_path, monkeypatch):
    denied = raising(PermissionError(13, "Permission denied"))
    monkeypatch.setattr("embedtopics._utils.folders.tempfile.mkdtemp", denied)
    assert "Permission denied" in refused(
        "topics", articles, "--text", "body", "--out", tmp_path / "o"
    )


@pytest.fixture(scope="module")
def demo_results(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "results"
    done = subprocess.run(
        [sys.executable, "-m", "embedtopics", "demo", "--out", str(out)],
        capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "80"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return out, done


@pytest.mark.slow
def test_demo_prints_the_topics_and_writes_the_folder(demo_results):
    out, done = demo_results
    assert {p.name for p in out.iterdir()} == {
        "documents.parquet", "labels.csv", "manifest.json", "model",
        "report.html", "terms.parquet", "topics.csv",
    }  # fmt: skip
    table = done.stdout.split("written to")[0]
    assert max(map(len, table.splitlines())) <= 80
    assert "written to" in done.stdout
    assert f"next: open {out / 'report.html'}" in done.stdout


def in_themes(metadata, labels):
    """Count the texts of each theme (rows) in each topic (columns)."""
    counts = pd.crosstab(metadata["theme"].tolist(), list(labels))
    return counts[~counts.index.isin(["off_topic"])]


@pytest.mark.slow
def test_the_demo_has_one_topic_for_each_of_its_13_themes(demo_results):
    rows = pd.read_parquet(demo_results[0] / "documents.parquet")
    counts = in_themes(rows, rows["topic"])
    assert set(counts.columns) == {-1, *range(13)} and len(counts) == 13
    assert set(counts.drop(columns=-1).idxmax()) == set(counts.index)
    assert (counts.drop(columns=-1).max(axis=1) / counts.sum(axis=1)).min() > 0.8


@pytest.mark.slow
def test_the_demo_reads_other_languages(monkeypatch):
    seen = []
    monkeypatch.setattr("embedtopics.cli._topics._find_topics", lambda *args: seen.append(args))
    for options in [(), ("--language", "all"), ("--language", "fr")]:
        assert run("demo", *options).exit_code == 0
    assert [(len(corpus), args[-1]) for corpus, *args in seen] == [
        (670, None), (929, "auto"), (258, "auto"),
    ]  # fmt: skip
    french, model, *_ = seen[-1]
    counts = in_themes(french.metadata, model.set_params(encoder="auto").fit(french).labels_)
    # Smaller topics split the themes further.
    assert sorted(counts[list(range(5))].idxmax()) == counts.index.tolist()
    assert run("demo", "--language", "de").exit_code == 2


@pytest.mark.slow
@pytest.mark.smoke
def test_interrupt_while_encoding_leaves_nothing(tmp_path):
    long = tmp_path / "long.csv"
    words = "the quick brown fox jumps over a lazy dog near some river bank in spring "
    pd.DataFrame({"text": [f"{i} " + words * 12 for i in range(3000)]}).to_csv(long, index=False)
    process = subprocess.Popen(
        [sys.executable, "-m", "embedtopics", "topics", str(long), "--out", str(tmp_path / "o")],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    for line in process.stderr:
        if "memory" in line:  # the estimate is out; encoding begins
            break
    time.sleep(3)
    for _ in range(3):  # Python ignores an interrupt inside of a destructor
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            _, rest = process.communicate(timeout=PATIENCE)
            break
    assert process.returncode == 130
    assert "Traceback" not in rest.replace("Exception ignored in", "")
    assert [p.name for p in tmp_path.iterdir()] == ["long.csv"]


def test_a_full_disk_leaves_the_old_results_whole(tmp_path, monkeypatch):
    result = make_result(60, 2)
    write_results_folder(result, tmp_path / "o", title="one")
    before = contents(tmp_path)
    monkeypatch.setattr("embedtopics.report._report.write_report", raising(FULL_DISK))
    with pytest.raises(InputError, match="No space left on device; any previous content is intact"):
        write_results_folder(result, tmp_path / "o", title="two")
    assert contents(tmp_path) == before


def test_unexpected_errors_are_not_hidden(monkeypatch, articles):
    monkeypatch.setattr("embedtopics.corpus._corpus.read_file", raising(RuntimeError("a bug")))
    assert isinstance(run("inspect", articles).exception, RuntimeError)


def test_errors_are_one_line_whatever_they_hold(monkeypatch, articles):
    error = InputError("first\nsecond")
    monkeypatch.setattr("embedtopics.corpus._corpus.read_file", raising(error))
    assert refused("inspect", articles) == "error: first second"


def test_inspect_names_the_options_of_the_next_command(tmp_path):
    path = tmp_path / "textes.csv"
    text = "Le gouvernement a présenté hier son projet de loi sur la santé publique du pays"
    path.write_text("\n".join(["id,body,title", *(f"a{n},{text} {n},t{n}" for n in range(30))]))
    seen = run("inspect", path, "--text", "title,body")
    assert seen.stdout.startswith("columns found: --text title,body --id id\n")
    assert "--text title,body --id id --encoder multilingual-e5-small --out" in seen.stdout
    done = run("topics", path, "--n-topics", "many", "--encoder", "tfidf", "--out", tmp_path / "o")
    assert done.exit_code == 2 and "error: --n-topics must be" in done.stderr


def test_long_texts_are_fitted_as_passages(tmp_path):
    path = tmp_path / "speeches.csv"
    rows = [f"{(THEMES[n % 3] + '. ') * 200}number {n}." for n in range(8)]
    path.write_text("\n".join(["text", *rows]))
    assert "speeches.csv --passages --text text" in run("inspect", path).stdout
    command = ("topics", path, "--passages", "--encoder", "tfidf", "--n-replicates", 0)
    assert run(*command, "--out", tmp_path / "out").exit_code == 0
    rows = pd.read_parquet(tmp_path / "out" / "documents.parquet")
    assert len(rows) > 16 and rows["passage_of"].nunique() == 8


def test_seed_words_and_stop_words(tmp_path):
    path = tmp_path / "a.csv"
    rng = np.random.default_rng(0)
    lines = [" ".join([*rng.choice(THEMES[n % 3].split(), 3), f"word{n}"]) for n in range(120)]
    path.write_text("\n".join(["text", *lines]))
    options = ("--seed-words", "fruit: apple, pear", "--stop-words", "rail, rook")
    command = ("topics", path, "--encoder", "tfidf", "--n-replicates", 0, *options)
    assert run(*command, "--out", tmp_path / "out").exit_code == 0
    result = TopicResult.load(tmp_path / "out")
    assert result.settings["constraints"]["seeds"] == {"fruit": ["apple", "pear"]}
    assert "fruit: 100%" in next(d for d in result.decisions if d.name == "guided_topics").message
    keywords = {word for topic in result.topics for word in topic.keywords}
    assert {"station", "bishop"} <= keywords and not keywords & {"rail", "rook", "the"}


def test_commands_read_folders_and_say_what_they_left_out(tmp_path):
    pytest.importorskip("lxml")
    desk = tmp_path / "desk"
    desk.mkdir()
    for n in range(30):
        page = f"<title>Page {n}</title><p>{THEMES[n % 3]} {chr(97 + n % 26)}</p>"
        (desk / f"{n}.html").write_text(page)
    (desk / "bad.xml").write_text("<TEI>")
    (desk / "photo.png").write_bytes(b"")
    seen = run("inspect", desk, "--encoder", "tfidf")
    assert "columns found: --text text" in seen.stdout and "1 missing" in seen.stdout
    assert "bad.xml" in seen.stdout and "photo.png" in seen.stdout
    made = run("topics", desk, "--encoder", "tfidf", "--n-replicates", 0, "--out", tmp_path / "out")
    assert made.exit_code == 0 and "bad.xml" in made.stderr, made.output
    rows = pd.read_parquet(tmp_path / "out" / "documents.parquet")
    assert len(rows) == 31 and rows["id"][0] == "0.html" and rows["title"][0] == "Page 0"
