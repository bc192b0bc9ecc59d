"""``embedtopics search`` and ``search-eval``: what they print and write, and what they refuse."""

import json
import re
import signal
import subprocess
import sys
import urllib.request

import numpy as np
import pandas as pd
import pytest
from rich.cells import cell_len
from rich.console import Console

import embedtopics as et
from tests.cli.running import EVIL, build, refused, rows, run
from tests.factories import PATIENCE, raising

QUERY = "closure of rural hospitals"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build(tmp_path_factory.mktemp("search"))[0]


def headlines(output):
    """Return (rank, id, score) of each hit that was printed."""
    found = re.findall(r"^(\d+)\.  (\S+)  (-?\d+\.\d{3})", output, re.M)
    return [(int(rank), id, score) for rank, id, score in found]


@pytest.mark.parametrize("mode", ["dense", "lexical", "hybrid"])
@pytest.mark.parametrize("options", [{}, {"where": "source == 'press' and words >= 30"}])
def test_prints_and_writes_what_the_function_finds(index, tmp_path, mode, options):
    out = tmp_path / "hits.csv"
    given = [part for name, value in options.items() for part in (f"--{name}", value)]
    done = run("search", index, QUERY, "--k", 4, "--mode", mode, "--out", out, *given)
    assert done.exit_code == 0, done.output
    expected = et.SearchIndex.load(index).search(QUERY, 4, mode=mode, **options)
    hits = expected.hits[0]
    assert hits and headlines(done.stdout) == [
        (rank, hit.id, f"{hit.score:.3f}") for rank, hit in enumerate(hits, 1)
    ]
    read = pd.read_csv(out)
    assert read["id"].tolist() == [hit.id for hit in hits]
    assert read["passage"].tolist() == [hit.passage for hit in hits]
    for name in ("score", "similarity", "bm25"):
        values = [getattr(hit, name) for hit in hits]
        np.testing.assert_allclose(read[name], values, rtol=1e-12)
    for hit in hits:
        assert hit.text in done.stdout
        for word, part in hit.terms.items():
            assert f"{word} {part:.1f}" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_several_words_are_one_query(index):
    once = run("search", index, QUERY, "-k", 3)
    again = run("search", index, *QUERY.split(), "-k", 3)
    assert once.stdout == again.stdout and len(headlines(once.stdout)) == 3


def test_what_finds_nothing_is_told(index):
    done = run("search", index, "zyzzyva", "--mode", "lexical")
    assert done.exit_code == 0 and "no document was found" in done.stdout
    assert "No document holds 'zyzzyva' of the query" in done.stdout
    done = run("search", index, "", "--mode", "hybrid")
    assert done.exit_code == 0 and "The query has no words" in done.stdout


def test_long_snippets_keep_to_the_terminal(tmp_path):
    frame = rows()
    frame.loc[0, "body"] = "The harbour " + "and its unusually long description " * 30 + "ends."
    frame.loc[1, "body"] = "港口" * 400
    out, _ = build(tmp_path, frame)
    for query in ("harbour", "港口"):
        done = run("search", out, query, "--mode", "lexical")
        lines = done.stdout.splitlines()
        assert len(lines) > 1 and lines == [line.rstrip() for line in lines]
        assert all(cell_len(line) <= 80 for line in lines), lines
        assert all(line.startswith("   ") for line in lines if not line[0].isdigit())


def test_text_of_the_corpus_is_shown_and_never_obeyed(tmp_path):
    frame = rows()
    frame.loc[0, ["id", "body", "source"]] = [f"id {EVIL}", EVIL, EVIL]
    frame = frame.rename(columns={"source": "source [red]\x1b[2J"})
    out, _ = build(tmp_path, frame)
    done = run("search", out, "river", "--mode", "lexical")
    assert done.exit_code == 0 and done.stdout.startswith("1.  id")
    assert "[bold]red[/bold]" in done.stdout and "[link=http://x]here[/link]" in done.stdout
    told = run("index", "info", out)
    asked = run("search", out, f"nothing {EVIL}", "--where", f"'{EVIL}' == 1")
    assert asked.exit_code == 2 and "there is no column" in asked.stderr
    gone = run("index", "remove", out, f"unknown {EVIL}")
    assert gone.exit_code == 2 and "unknown" in gone.stderr
    for output in (done.output, told.output, asked.output, gone.output):
        assert not [c for c in output if not c.isprintable() and c != "\n"], output


def test_the_table_is_written_before_anything_is_printed(index, tmp_path, monkeypatch):
    queries, qrels = judged(tmp_path)
    monkeypatch.setattr(Console, "print", raising(BrokenPipeError))
    run("search", index, QUERY, "--out", tmp_path / "hits.csv")
    assert len(pd.read_csv(tmp_path / "hits.csv")) == 8
    run("index", "evaluate", index, queries, qrels, "--out", tmp_path / "figures.csv")
    assert set(pd.read_csv(tmp_path / "figures.csv")["mode"]) == {"dense", "lexical", "hybrid"}


def judged(folder):
    """Three queries, of which the last has no judgements; the documents of the others."""
    queries, qrels = folder / "queries.csv", folder / "qrels.tsv"
    texts = ["closure of hospitals", "late trains", "bees"]
    pd.DataFrame({"id": ["q1", "q2", "q3"], "text": texts}).to_csv(queries, index=False)
    lines = ["query-id\tcorpus-id\tscore", "q1\td3\t2", "q1\td2\t1", "q2\td8\t1", "q2\td1\t0"]
    qrels.write_text("\n".join(lines) + "\n")
    return queries, qrels


def test_evaluates_as_the_functions_do(index, tmp_path):
    queries, qrels = judged(tmp_path)
    out = tmp_path / "figures.csv"
    done = run("index", "evaluate", index, queries, qrels, "--k", 5, "--out", out)
    assert done.exit_code == 0, done.output
    assert max(map(len, done.stdout.splitlines()[:6])) <= 80
    loaded = et.SearchIndex.load(index)
    read = pd.read_csv(out)
    scores = {}
    for mode in ("dense", "lexical", "hybrid"):
        hits = loaded.search(["closure of hospitals", "late trains"], 5, mode=mode)
        options = {"query_ids": ["q1", "q2"], "random_state": 0}
        scores[mode] = et.evaluation.evaluate_run(hits, qrels, [5], **options)
        rows_of = read[read["mode"] == mode].drop(columns="mode").reset_index(drop=True)
        pd.testing.assert_frame_equal(rows_of, scores[mode].to_frame())
        ndcg = scores[mode].scores["ndcg@5"]
        assert f"{ndcg.value:.3f} [{ndcg.low:.3f}, {ndcg.high:.3f}]" in done.stdout
    change = et.evaluation.compare_runs(scores["dense"], scores["hybrid"], random_state=0)
    (gain,) = change.to_frame().query("measure == 'ndcg@5'").itertuples()
    assert (
        f"hybrid - dense: ndcg@5 {gain.difference:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}], "
        f"better for {gain.better} queries, worse for {gain.worse}" in done.stdout
    )


def test_one_mode_is_evaluated_alone(index, tmp_path):
    done = run("index", "evaluate", index, *judged(tmp_path), "--mode", "lexical")
    assert done.exit_code == 0 and "hybrid" not in done.stdout, done.output


def test_bad_input(index, tmp_path):
    assert "nothing.index" in refused("search", tmp_path / "nothing.index", "x")
    assert "catalog.sqlite" in refused("search", tmp_path, "x")
    line = refused("search", index, "x", "--where", "source == 'press' and yaer > 3")
    assert "character 23" in line and ">>>yaer<<<" in line
    assert "mode must be" in refused("search", index, "x", "--mode", "magic")
    line = refused("search", index, "x", "--encoder", "all-MiniLM-L6-v2")
    assert "the encoder of the index" in line
    line = refused("search", index, "x", "--out", tmp_path / "thesis.docx")
    assert "--out must be a file whose name ends in .csv" in line
    queries, qrels = judged(tmp_path)
    refused("index", "evaluate", index, tmp_path / "no.csv", qrels)
    refused("index", "evaluate", index, queries, tmp_path / "no.tsv")
    assert "mode must be" in refused("index", "evaluate", index, queries, qrels, "--mode", "x")
    qrels.write_text("other 0 d1 1\n")
    assert "the ids of queries differ" in refused("index", "evaluate", index, queries, qrels)


def test_fields_suggestions_and_words_alone(tmp_path):
    table = pd.DataFrame({
        "title": ["Heart news", "Owls"], "body": ["A heart attack.", "Owls and a heart."],
    })  # fmt: skip
    table.to_csv(tmp_path / "a.csv", index=False)
    done = run("index", "build", tmp_path / "a.csv", "--out", tmp_path / "i", "--text",
               "title,body", "--encoder", "none")  # fmt: skip
    assert done.exit_code == 0 and "lexical only" in done.stdout
    done = run("index", "add", tmp_path / "i", tmp_path / "a.csv", "--update")
    assert done.exit_code == 0, done.output
    done = run("search", tmp_path / "i", '"heart attack" hart')
    assert len(headlines(done.stdout)) == 1
    assert "Did you mean 'heart'?" in done.output
    assert "--mode" in refused("search", tmp_path / "i", "heart", "--mode", "dense")


def test_serve_answers_until_it_is_interrupted(tmp_path):
    et.SearchIndex.build(["cat dog", "owl"], tmp_path / "i", encoder=None, show_progress=False)
    command = [sys.executable, "-u", "-m", "embedtopics", "serve", tmp_path / "i"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    url = next(line.strip() for line in process.stdout if line.startswith("http://127.0.0.1:"))
    with urllib.request.urlopen(url.replace("/?", "/search?q=owl&"), timeout=PATIENCE) as answer:
        assert json.loads(answer.read())["hits"][0]["snippet"] == [["owl", True]]
    process.send_signal(signal.SIGINT)
    process.stdout.close()
    assert process.wait(timeout=PATIENCE) == 0
