"""``embedtopics pretrain``: what it prints, writes and refuses."""

import pandas as pd
import pytest

from embedtopics import training
from embedtopics.training._compare import compare_before_after
from tests.cli.running import refused, run
from tests.pretraining.conftest import sentences

QUICK = ("--epochs", 1, "--batch-size", 16, "--learning-rate", 1e-3, "--precision", "float32")


@pytest.fixture
def articles(tmp_path):
    texts = sentences(120)
    kinds = [text.split()[0] < "m" for text in texts]
    pd.DataFrame({"body": texts, "kind": kinds}).to_csv(tmp_path / "articles.csv", index=False)
    return tmp_path / "articles.csv"


def test_reads_texts_and_says_what_came_of_it(tiny_bert, articles, tmp_path):
    out = tmp_path / "my-encoder"
    done = run(
        "pretrain", articles, "--text", "body", "--masking", "whole-word", "--encoder", tiny_bert,
        "--out", out, *QUICK, "--corpus", articles, "--labels", "kind",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    report = training.TrainingReport.load(out)
    assert report.objective == "masked language model: WholeWordMasking"
    assert set(report.before_after["task"]) == {"held-out texts", "corpus"}
    printed = " ".join(done.stdout.split())
    loss = next(report.before_after.itertuples())
    assert f"{loss.before:.3f} {loss.after:.3f} {loss.difference:+.3f}" in printed
    assert f"verdict: {report.diagnosis.verdict}" in printed
    assert "no head that predicts tokens" in " ".join(done.stderr.split())
    line = refused("pretrain", articles, "--text", "body", "--encoder", tiny_bert, "--out", out)
    assert "finished encoder" in line


def test_words_are_added_before(tiny_bert, articles, tmp_path):
    table = pd.read_csv(articles)
    table["body"] += " oxen"
    table.to_csv(articles, index=False)
    done = run(
        "pretrain", articles, "--text", "body", "--add-words", 1, "--encoder", tiny_bert,
        "--out", tmp_path / "out", *QUICK, "--corpus", articles, "--labels", "kind",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    told = " ".join(done.stderr.split())
    assert "1 words added" in told and "(oxen, ...)" in told
    assert "oxen" in (tmp_path / "out" / "tokenizer.json").read_text()
    # Each step is judged beside the encoder without the new words.
    alone = compare_before_after(
        str(tiny_bert), tmp_path / "out-words", corpus=table["body"].tolist(),
        labels=list(table["kind"]),
    )  # fmt: skip
    first, _, both = done.stdout.partition("before and after:")[2].partition("before and after:")
    assert both and all(f"{change.after:.3f}" in first for change in alone)
    named = compare_before_after(
        str(tiny_bert), tmp_path / "out", corpus=table["body"].tolist(), labels=list(table["kind"])
    )
    reported = training.TrainingReport.load(tmp_path / "out").before_after
    assert {c.metric: c.before for c in reported.itertuples() if c.task == "corpus"} == {
        c.metric: c.before for c in named
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--masking", "selective"), "terms"),
        (("--terms", "title"), "terms"),
        (("--masking", "selective", "--terms", "colour"), "colour"),
        (("--objective", "nsp"), "objective"),
        (("--masking", "every"), "masking"),
        (("--text", "title"), "title"),
    ],
)
def test_bad_options_are_refused_in_a_line(tiny_bert, articles, tmp_path, options, said):
    out = tmp_path / "my-encoder"
    line = refused("pretrain", articles, "--encoder", tiny_bert, "--out", out, *options)
    assert said in line and not out.exists()
