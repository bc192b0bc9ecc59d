"""``embedtopics train``: what it prints first, what it writes, and what it refuses."""

import dataclasses
import json
import logging

import numpy as np
import pandas as pd
import pytest

from embedtopics import training
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.results import Decision
from embedtopics.training._rows import Change, frame_of
from embedtopics.training.results import Diagnosis
from tests.cli.running import refused, run
from tests.encoders.conftest import WORDS
from tests.factories import raising
from tests.training.reports import NO_CHANGES, NO_EVIDENCE, make_report

CONTENT = [word for word in WORDS if word not in ("the", "a", "and", "or", "on", "in")]
QUICK = ("--epochs", 1, "--batch-size", 16, "--learning-rate", 1e-3, "--validations-per-epoch", 6)


def some_words(rng, n=None):
    return " ".join(rng.choice(CONTENT, n or int(rng.integers(3, 8))))


def graded_rows(n, seed=1, highest=5):
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        one, other = some_words(rng), some_words(rng)
        both = set(one.split()), set(other.split())
        score = highest * len(both[0] & both[1]) / len(both[0] | both[1])
        rows.append({"one": one, "other": other, "how": round(score, 3)})
    return rows


def write(path, rows):
    if path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    else:
        pd.DataFrame(rows).to_csv(path, index=False)
    return path


@pytest.fixture()
def pairs_file(tmp_path):
    return write(tmp_path / "pairs.csv", graded_rows(240))


STS = ("--columns", "one,other", "--label", "how", "--scale", "0,5")


def test_trains_on_graded_pairs_and_reads_the_report_again(tiny_bert, pairs_file, tmp_path):
    test = write(tmp_path / "test.csv", graded_rows(40, seed=2))
    out, figure = tmp_path / "tuned", tmp_path / "curves.html"
    done = run(
        "train", pairs_file, "--kind", "graded", *STS, "--encoder", tiny_bert, "--out", out, *QUICK,
        "--test", test, "--report", figure,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    report = training.TrainingReport.load(out)
    assert report.settings["epochs"] == 1 and report.settings["batch_size"] == 16
    assert set(report.before_after["task"]) == {"test"}
    printed = " ".join(done.stdout.split())
    for change in report.before_after.itertuples():
        figures = f"{change.before:.3f} {change.after:.3f} {change.difference:+.3f}"
        assert f"{figures} [{change.low:+.3f}, {change.high:+.3f}] " in printed
    assert "216 examples of" in done.stdout and "24 examples of" in done.stdout
    assert f"verdict: {report.diagnosis.verdict} (confidence" in done.stdout
    for said in (*report.diagnosis.evidence["says"], *report.advice):
        assert said in done.stdout
    assert f"--encoder {out}" in done.stdout
    page = figure.read_text("utf-8")
    assert 'id="place-figure-0"' in page and 'id="place-figure-1"' in page
    assert f"Verdict: {report.diagnosis.verdict}." in page
    # What was decided is told once, and not twice.
    messages = [decision.message for decision in report.decisions]
    assert len(messages) == len(set(messages))
    for message in messages:
        assert done.stderr.count(f"note: {message}") == 1
        assert message not in done.stdout
    assert resolve_encoder(out).encode(["red light"]).shape == (1, 16)

    moved = out.rename(tmp_path / "moved")
    again = run("report", moved, "--out", tmp_path / "again.html")
    assert again.exit_code == 0, again.output
    same = done.stdout.split("\nencoder written to")[0]
    assert again.stdout.split("\nencoder written to")[0] == same
    assert f"encoder written to {moved}" in again.stdout and again.stderr == done.stderr
    assert (tmp_path / "again.html").stat().st_size > 10_000
    # A finished encoder is replaced only where that is asked for.
    again = (
        "train",
        pairs_file,
        "--kind",
        "graded",
        *STS,
        "--encoder",
        tiny_bert,
        *QUICK,
        "--out",
        moved,
    )
    assert "--overwrite" in refused(*again)
    assert training.TrainingReport.load(moved).settings == report.settings


@pytest.fixture()
def fit_gives(monkeypatch):
    """Let training return a report, or do what a function does."""

    def give(report=None, does=None):
        def fit(*given, **options):
            if does is not None:
                does()
            return report

        monkeypatch.setattr("embedtopics.training.fit", fit)

    return give


DATA = {"n_train": 90, "n_validation": 10, "train": "pairs.csv", "validation": "pairs.csv"}


def good_report(**changes):
    made = make_report(stopped="finished", before_after=NO_CHANGES, data=DATA, **changes)
    if "diagnosis" in changes:
        return made
    return dataclasses.replace(made, diagnosis=Diagnosis("just right", 0.9, {}, NO_EVIDENCE, ()))


def first_line(done):
    return done.stdout.splitlines()[0]


def test_a_bad_run_says_so_first(fit_gives, pairs_file, tmp_path):
    command = ("train", pairs_file, "--kind", "graded", *STS, "--out", tmp_path / "out")
    fit_gives(good_report())
    assert "WARNING" not in run(*command).output
    for verdict in ("learns nothing", "chaotic", "overlearning"):
        fit_gives(good_report(diagnosis=Diagnosis(verdict, 0.8, {}, NO_EVIDENCE, ())))
        line = first_line(run(*command))
        assert line.startswith("WARNING:") and verdict in line
    fit_gives(good_report(diagnosis=Diagnosis("uncertain", 0.4, {}, NO_EVIDENCE, ())))
    assert first_line(run(*command)) == "WARNING: the learning curves are inconclusive"
    fit_gives(good_report(diagnosis=Diagnosis("could learn more", 0.8, {}, NO_EVIDENCE, ())))
    assert "WARNING" not in run(*command).output
    fit_gives(good_report(best_step=0))
    assert "the encoder is unchanged" in first_line(run(*command))
    worse = Change("stsb", "Spearman", 0.82, 0.75, -0.07, -0.09, -0.05, 1379, "worse", 1)
    fit_gives(dataclasses.replace(good_report(), before_after=frame_of([worse], Change)))
    warning = "WARNING: worse than before on stsb: Spearman 0.820 to 0.750"
    assert first_line(run(*command)) == warning


def test_a_loss_that_is_not_finite_fails(fit_gives, pairs_file, tmp_path):
    fit_gives(dataclasses.replace(good_report(), stopped="loss not finite"))
    figure = tmp_path / "curves.html"
    done = run(
        "train", pairs_file, "--kind", "graded", *STS, "--out", tmp_path / "out", "--report", figure
    )
    assert done.exit_code == 1
    assert first_line(done).startswith("WARNING: training failed: the loss was not finite")
    assert figure.exists() and "next:" not in done.stdout


def test_the_end_that_was_asked_for_passes_through(fit_gives, pairs_file, tmp_path):
    fit_gives(does=raising(SystemExit(143)))
    done = run("train", pairs_file, "--kind", "graded", *STS, "--out", tmp_path / "out")
    assert done.exit_code == 143 and done.stdout == ""
    assert f"{tmp_path / 'out'}.training" in done.stderr


def test_warnings_of_the_engine_are_not_told_twice(fit_gives, pairs_file, tmp_path, caplog):
    logger = logging.getLogger("embedtopics.training.trainer._running")
    told = Decision("training", "out_of_memory", 512, "Memory ran out.")
    fit_gives(good_report(decisions=(told, told)), lambda: logger.warning(told.message))
    done = run("train", pairs_file, "--kind", "graded", *STS, "--out", tmp_path / "out")
    assert done.stderr.count("Memory ran out.") == 1 and not caplog.records
    logger.warning("afterwards")
    assert [record.message for record in caplog.records] == ["afterwards"]


def test_options_reach_the_run(monkeypatch, pairs_file, tmp_path):
    seen = {}

    def fit(encoder, examples, objective, **options):
        seen.update(options, encoder=encoder, train=examples, objective=objective)
        return good_report()

    monkeypatch.setattr("embedtopics.training.fit", fit)
    done = run(
        "train", pairs_file, "--kind", "graded", *STS, "--out", tmp_path / "out",
        "--precision", "bfloat16",
        "--random-state", 7, "--fresh", "--max-seq-length", 32, "--objective", "cosine",
        "--validation", pairs_file, "--keep", "last", "--metric", "loss",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert seen["encoder"] == "all-MiniLM-L6-v2"
    train, validation = seen.pop("train"), seen.pop("validation")
    assert train.kind == "graded" and train.labels.max() <= 1 < 5 * train.labels.max()
    assert train.fingerprint == validation.fingerprint
    assert seen == {
        "encoder": "all-MiniLM-L6-v2", "out": tmp_path / "out", "resume": False,
        "overwrite": False, "objective": "cosine", "kind": "graded", "labels": None,
        "test": None, "corpus": None,
        "settings": training.TrainingSettings(
            max_seq_length=32, precision="bfloat16", random_state=7, keep="last", metric="loss"
        ),
    }  # fmt: skip


def test_bad_input_is_one_line(tiny_bert, pairs_file, tmp_path):
    out = tmp_path / "out"
    sts = ("train", pairs_file, "--kind", "graded", "--out", out, "--encoder", tiny_bert)
    assert "'one', 'other', 'how'" in refused(*sts, "--columns", "nothing,other")
    guessed = refused(*sts)
    assert "--columns" in guessed and "'one'" in guessed
    assert "--columns" in refused(*sts, "--columns", "one")
    assert "--scale must be" in refused(*sts, *STS[:4])
    for bad in ("5", "5,0", "a,b", "0,1,2", "nan,5"):
        assert "--scale" in refused(*sts, *STS[:4], "--scale", bad)
    assert "--objective" in refused(*sts, *STS, "--objective", "guess")
    assert "--learning-rate" in refused(*sts, *STS, "--learning-rate", 0)
    assert "--corpus" in refused(*sts, *STS, "--labels", "kind")
    assert "ends in .html" in refused(*sts, *STS, "--report", tmp_path / "curves.pdf")
    three = write(tmp_path / "three.csv", graded_rows(3, seed=9))
    few = refused(*sts, *STS, "--validation", three)
    assert "--validation" in few and "got 3" in few
    same = refused(*sts, *STS, "--validation", pairs_file)
    assert "240 of 240" in same
    assert "three.csv" in refused("train", three, "--kind", "graded", *STS, "--out", out)
    assert not out.exists()
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    assert "holds other files" in refused(*sts, *STS)
    assert (out / "thesis.txt").read_text() == "years of work"
    assert "no" in refused("report", tmp_path / "nowhere")


def test_labels_that_are_not_known(tmp_path):
    rows = [{"a": f"one {i}", "b": f"two {i}", "y": str(i % 3)} for i in range(30)]
    path = write(tmp_path / "pairs.jsonl", rows)
    nli = ("train", path, "--kind", "nli", "--columns", "a,b", "--out", tmp_path / "o")
    assert "--label-order" in refused(*nli, "--label", "y")
    assert "--label-order" in refused(*nli, "--label", "y", "--label-order", "a,b")
    assert "--label" in refused(*nli)
    rows[4]["y"] = "maybe"
    write(path, rows)
    assert "'maybe' (1)" in refused(*nli, "--label", "y")
    rows[4]["y"] = None
    write(path, rows)
    missing = refused(*nli, "--label", "y", "--label-order", "entailment,neutral,contradiction")
    assert "line 5" in missing and "--drop-invalid" in missing
