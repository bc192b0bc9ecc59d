"""``embedtopics annotate``: a page until Ctrl-C, and what is refused before one is served."""

import json
import signal
import subprocess
import sys
import urllib.request

import pandas as pd
import pytest

from embedtopics.annotation._journal import read_journal
from tests.cli.running import refused, rows, run
from tests.factories import PATIENCE


@pytest.fixture
def file(tmp_path):
    rows().to_csv(tmp_path / "articles.csv", index=False)
    return tmp_path / "articles.csv"


def test_labels_given_on_the_page_are_in_the_folder(file):
    codebook = [{"name": "health", "definition": "Hospitals."}, {"name": "other", "key": "o"}]
    (file.parent / "book.json").write_text(json.dumps(codebook), "utf-8")
    command = [sys.executable, "-u", "-m", "embedtopics", "annotate", file, "--text", "body",
               "--id", "id", "--codebook", file.parent / "book.json", "--encoder", "lsa",
               "--annotator", "Ada"]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    url = next(line.strip() for line in process.stdout if line.startswith("http://127.0.0.1:"))
    base, token = url.split("/?token=")

    def ask(action, **content):
        headers = {"X-Token": token, "Origin": base, "Content-Type": "application/json"}
        request = urllib.request.Request(
            f"{base}/api/{action}", json.dumps(content).encode(), headers
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read())

    text = ask("next", tab="a")["next"]
    ask("label", key=text["key"], labels=["health"])
    process.send_signal(signal.SIGINT)
    rest = process.stdout.read()
    process.stdout.close()
    assert process.wait(timeout=PATIENCE) == 0 and "1 texts are labelled" in rest
    *_, answer = read_journal(file.parent / "articles.study")
    assert (answer.id, answer.labels, answer.by) == (text["id"], ("health",), "Ada")
    assert pd.read_csv(file)["id"].tolist() == rows()["id"].tolist()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "--codebook must be given"),
        (("--codebook", "a,b,a"), "--codebook"),
        (("--codebook", __file__), "--codebook must be a file of JSON"),
        (("--codebook", "a,b", "--kind", "pairs"), "--kind"),
        (("--codebook", "a,b", "--pairs"), "must be two texts in each row"),
        (("--codebook", "a,b", "--port", "99999"), "--port"),
    ],
)
def test_what_is_refused(file, options, said):
    line = refused("annotate", file, "--text", "body", "--encoder", "lsa", *options)
    assert said in line


def test_a_missing_extra_is_named_before_texts_are_read(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    line = refused("annotate", file.parent / "no.csv", "--codebook", "a,b")
    assert 'A local page needs uvicorn: pip install "embedtopics[page]"' in line


def test_a_colleagues_labels_and_the_page_of_the_study(file):
    from embedtopics import AnnotationProject

    with AnnotationProject(file, ["a", "b"], file.parent / "other", encoder="lsa") as study:
        for _ in range(3):
            study.label(study.next(by="bea").key, "a", by="bea")
    out = file.parent / "study.html"
    columns = ("--corpus", file, "--text", "body")
    done = run("report", file.parent / "other", *columns, "--out", out)
    assert done.exit_code == 0, done.output
    assert "bea" in out.read_text("utf-8")
    assert "--corpus must be" in refused("report", file.parent / "other")
    assert "--out" in refused("report", file.parent / "other", *columns, "--out", "study.pdf")
