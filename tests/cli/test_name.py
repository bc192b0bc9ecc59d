"""``embedtopics name``, against an endpoint on this machine."""

import dataclasses
import json
from pathlib import Path

import pandas as pd
import pytest

from embedtopics import topics
from embedtopics.cli._display import write_results_folder
from tests.chat_server import said, serving
from tests.cli import running
from tests.factories import contents, make_result


def run(*arguments):
    return running.run("name", *arguments)


def refused(*arguments):
    """Return the one line of an error; what was to be sent may stand before it."""
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    return line


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("OPENAI_API_KEY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("EMBEDTOPICS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    results = tmp_path / "results"
    write_results_folder(make_result(120, 3), results, title="Topics of a test")
    return results


def counted(body, number):
    return said(f"Name <{number}" if number == 1 else f"Name {number}")


def test_names_are_in_every_file(folder):
    with serving(counted) as server:
        done = run(folder, "--endpoint", server.url, "--model", "m", "--yes", "--documents", 2)
    assert done.exit_code == 0, done.output
    assert "3 prompts with excerpts of 6 documents" in done.stderr and server.url in done.stderr
    labels = [t.label for t in topics.load_result(folder / "model").topics]
    assert sum(label.startswith("Name ") for label in labels) == 2
    assert pd.read_csv(folder / "topics.csv")["label"].tolist()[:3] == labels
    assert labels[0] in (folder / "report.html").read_text("utf-8")
    for label in labels:
        assert label in done.stdout
    assert "(automatic)" in done.stdout and "keep their automatic names" in done.stderr
    assert len(Path("names.jsonl").read_text().splitlines()) == 3


def test_dry_run_prints_and_sends_nothing(folder):
    before = contents(folder)
    with serving(counted) as server:
        done = run(folder, "--endpoint", server.url, "--model", "m", "--dry-run")
    assert done.exit_code == 0 and server.paths == []
    assert "nothing was sent" in done.stderr and "tokens" in done.stderr
    result = topics.load_result(folder / "model")
    for question in topics.naming_questions(result):
        assert f"--- topic {question.topic_id}" in done.stdout
        for line in question.messages[1]["content"].splitlines():
            assert line in done.stdout
    assert contents(folder) == before
    assert not Path("names.jsonl").exists()


def test_dry_run_shows_no_control_characters(tmp_path):
    results = tmp_path / "results"
    result = make_result(60, 1, texts=["bell \x1b[31m rings \x9b1m"])
    shown = dataclasses.replace(result.topics[0], representatives=(0,), label="bell\x1b")
    result = dataclasses.replace(result, topics=(shown,))
    write_results_folder(result, results, title="t")
    done = run(results, "--endpoint", "http://localhost:1", "--model", "m", "--dry-run",
               "--documents", 1)  # fmt: skip
    assert done.exit_code == 0 and "rings" in done.stdout
    assert not set(done.stdout) & set("\x1b\x9b")


def test_nothing_is_sent_without_leave(folder):
    with serving(counted) as server:
        line = refused(folder, "--endpoint", server.url, "--model", "m")
        assert "--yes" in line and server.paths == []


def test_bad_input_is_one_line(folder, tmp_path):
    here = ("--endpoint", "http://127.0.0.1:9/v1", "--model", "m", "--yes")
    assert "expected a folder that" in refused(tmp_path / "nowhere", *here)
    assert "no topic 9" in refused(folder, *here, "--topic", 9)
    assert "endpoint must be" in refused(folder, "--endpoint", "file:///x", "--model", "m", "--yes")
    assert "could not be reached" in refused(folder, *here, "--topic", 0)
    labels = [t.label for t in topics.load_result(folder / "model").topics]
    assert labels == [t.label for t in make_result(120, 3).topics]


def test_the_record_is_not_kept_where_it_would_be_lost(folder, monkeypatch):
    with serving(counted) as server:
        here = ("--endpoint", server.url, "--model", "m", "--yes")
        line = refused(folder, *here, "--record", folder / "names.jsonl")
        assert "this command replaces" in line and "--record" in line
        monkeypatch.chdir(folder)
        assert "this command replaces" in refused(".", *here)
        assert server.n_calls == 0 and not (folder / "names.jsonl").exists()


def test_key_is_read_from_the_environment_and_written_nowhere(folder, monkeypatch):
    key = "sk-cli-0987654321"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with serving(lambda *_: (401, {}, {"error": key})) as server:
        line = refused(folder, "--endpoint", server.url, "--model", "m", "--yes")
        assert server.headers[0]["Authorization"] == f"Bearer {key}"
    assert "401" in line and key not in line
    record = Path("names.jsonl").read_text()
    assert key not in record and json.loads(record.splitlines()[0])["error"]
