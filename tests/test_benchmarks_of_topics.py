"""The benchmarks of resolutions, coverage and prediction: what they compare, and their tables."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import jobs, topic_predict, topic_resolutions  # noqa: E402
from benchmarks.corpora import LabelledCorpus, sample_rows  # noqa: E402
from benchmarks.options import Options  # noqa: E402


@pytest.mark.parametrize(
    ("n_topics", "n_classes", "is_near"),
    [(10, 5, True), (11, 5, False), (2, 5, False), (3, 5, True), (2, 4, True), (8, 4, True)],
)
def test_a_factor_of_two_counts_as_near(n_topics, n_classes, is_near):
    assert topic_resolutions._is_near(n_topics, n_classes) is is_near


def test_resolutions_of_a_toy_corpus(monkeypatch):
    rng = np.random.default_rng(0)
    centres = np.eye(3, 16)
    words = ["apple pear plum", "train rail station", "violin cello flute"]
    truth = np.repeat([0, 1, 2], 60)
    texts = [f"{words[t]} number{i}" for i, t in enumerate(truth)]
    vectors = centres[truth] + 0.05 * rng.normal(size=(180, 16))
    corpus = LabelledCorpus("toy", texts, [str(t) for t in truth], vectors)
    found = topic_resolutions._resolutions(corpus)
    assert found["n_classes"] == 3
    assert found["offered"] == sorted(found["offered"], reverse=True)
    assert found["auto_is_near"] == (1.5 <= found["n_topics"]["auto"] <= 6)
    assert found["n_topics"]["fine"] >= found["n_topics"]["auto"] >= found["n_topics"]["coarse"]
    assert found["core_coverage"] <= found["coverage"] <= 1
    nonsense = [f"{a} {b} {c}" for a, b, c in rng.choice(" ".join(words).split(), (18, 3))]
    far = -np.ones((18, 16)) + 0.05 * rng.normal(size=(18, 16))
    monkeypatch.setattr(topic_resolutions, "load_shuffled", lambda name: (nonsense, far))
    shuffled = topic_resolutions._shuffled(corpus)
    assert shuffled["n_shuffled"] == 18
    table = topic_resolutions.render({"corpora": [found | shuffled, found]})
    assert table.count("toy (180 documents)") == 4
    assert "n/a" in table.splitlines()[-1]


def test_prediction_is_scored_on_each_part(monkeypatch, tmp_path):
    corpus = LabelledCorpus("toy", list("abcdef"), ["x", "x", "y", "y", "x", "y"], np.eye(6))
    fitted = sample_rows(6, 4)
    held_out = [row for row in range(6) if row not in fitted]
    order = [*fitted, *held_out]
    truth = np.array([corpus.classes[row] == "y" for row in order]).astype(int)

    def fit(system, inputs, *, random_state, n_held_out):
        assert n_held_out == 2
        texts = (inputs / "texts.jsonl").read_text("utf-8").split()
        assert texts == [f'"{corpus.texts[row]}"' for row in order]
        labels = truth.copy()
        labels[-1] = -1
        stages = {"predict": 0.5}
        return jobs.Outcome(labels, [["w"]], 1.0, 1.5, stages, {}, 100.0)

    monkeypatch.setattr(topic_predict, "fit", fit)
    options = Options(systems=(jobs.System("one", tmp_path),))
    case = topic_predict._case(options, corpus, 2)
    run = case["runs"][0]
    assert run["nmi_fitted"] == 1.0
    assert run["coverage_fitted"] == 1.0
    assert run["coverage_held_out"] == 0.5
    row = topic_predict.render({"cases": [case]}).splitlines()[-1]
    assert row.startswith("| toy | one | 4 | 2 | 4 | 1.000 |")
