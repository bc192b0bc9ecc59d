"""``embedtopics train``: each kind of examples from a file to an encoder that can be used."""

import numpy as np
import pytest

from embedtopics import training
from embedtopics.encoders._registry import resolve_encoder
from tests.cli.running import run
from tests.cli.test_train import QUICK, graded_rows, some_words, write

pytestmark = [pytest.mark.slow, pytest.mark.smoke]


def documents(n=260, seed=5):
    rng = np.random.default_rng(seed)
    return [
        {
            "name": f"d{i}",
            "title": some_words(rng, 4),
            "body": ". ".join(some_words(rng, 6).capitalize() for _ in range(3)) + ".",
            "section": "red" if i % 2 else "blue",
            "before": f"d{i - 1}" if i else "",
        }
        for i in range(n)
    ]


@pytest.fixture()
def train(tiny_bert, tmp_path):
    """Train on rows; return what was printed, and the report."""

    def learn(kind, rows, *options, encoder=True):
        path = write(tmp_path / "examples.jsonl", rows)
        start = ("--encoder", tiny_bert) if encoder else ()
        out = tmp_path / f"out-{len(list(tmp_path.iterdir()))}"
        done = run("train", path, "--kind", kind, *start, "--out", out, *QUICK, *options)
        assert done.exit_code == 0, done.output
        assert resolve_encoder(out).encode(["red light", "river"]).shape[0] == 2
        assert not out.with_name(f"{out.name}.training").exists()
        report = training.TrainingReport.load(out)
        assert f"verdict: {report.diagnosis.verdict}" in done.stdout
        return done, report

    return learn


@pytest.mark.parametrize("objective", ["ranking", "softmax"])
def test_nli_with_numbered_labels(train, objective):
    rng = np.random.default_rng(1)
    rows = []
    for _ in range(110):
        premise = some_words(rng, 6)
        for label in (2, 1, 0):
            hypothesis = " ".join(premise.split()[:3]) if label == 2 else some_words(rng)
            rows.append({"a": premise, "b": hypothesis, "y": label})
    done, report = train(
        "nli", rows, "--columns", "a,b", "--label", "y", "--label-order",
        "contradiction,neutral,entailment", "--objective", objective,
    )  # fmt: skip
    assert report.objective == f"nli: {objective}" and f"nli: {objective}" in done.stdout
    assert report.data["n_train"] == 297
    made = report.data["n_learned_from"]
    assert made == (99 if objective == "ranking" else 297)
    assert ("99 after conversion" in " ".join(done.stdout.split())) == (objective == "ranking")


def test_triplets(train):
    rng = np.random.default_rng(2)
    rows = [{name: some_words(rng) for name in "apno"} for _ in range(240)]
    _, report = train("triplets", rows, "--columns", "a,p,n,o")
    assert report.objective.startswith("triplets")
    assert report.data["n_train"] == 216


def test_texts_alone_with_a_corpus_and_a_test(train, tmp_path):
    scored = [
        {"sentence1": row["one"], "sentence2": row["other"], "score": row["how"]}
        for row in graded_rows(40, seed=8, highest=1)
    ]
    test = write(tmp_path / "test.csv", scored)
    corpus = write(tmp_path / "corpus.csv", documents(60))
    done, report = train(
        "texts", documents(), "--text", "body", "--test", test, "--corpus", corpus,
        "--labels", "section",
    )  # fmt: skip
    assert set(report.before_after["task"]) == {"test", "corpus"}
    assert "10-NN accuracy" in done.stdout
    assert f"embedtopics topics {corpus} --text body --out topics" in done.stdout
