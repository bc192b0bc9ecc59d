"""The benchmarks of training: their tables, and that no test sentence is learned from."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "benchmarks" / "systems"))

from benchmarks import (  # noqa: E402
    domain_adaptation,
    encoder_training,
    inference_training,
    learning_curves,
    training_sets,
)


def test_the_table_of_training_by_hand():
    def run(system, precision, pace, spearman):
        test = {"spearman": spearman, "difference": spearman - 0.8203, "low": 0.01, "high": 0.02}
        return {"system": system, "recipe": "plain", "precision": precision, "metric": [0.1, 0.85],
                "examples_per_second": pace, "test": test}  # fmt: skip

    result = {
        "base": "base", "before": {"spearman": 0.8203}, "n_pairs": 5_738,
        "recipes": {"plain": {"objective": "cosine", "settings": {
            "epochs": 2, "batch_size": 32, "learning_rate": 2e-5}}},
        "runs": [
            run("sentence-transformers", "float32", 20.0, 0.85),
            run("embedtopics", "float32", 40.0, 0.8512),
            run("embedtopics", "bfloat16", 60.0, 0.8512),
        ],
    }  # fmt: skip
    lines = encoder_training.render(result).splitlines()
    assert lines[2] == (
        "| sentence-transformers, plain, float32 "
        "| 85.00 | 85.00 | +2.97 [1.00, 2.00] | 20.0 | 1.00 |"
    )
    assert lines[3].endswith("| 85.12 | +3.09 [1.00, 2.00] | 40.0 | 2.00 |")
    # Where the trainer did not run with these numbers, the ratio is to what it did run with.
    assert lines[4].endswith("| 60.0 | 3.00 |")
    assert (
        "before training: 82.03. 5,738 pairs; plain: cosine, 2 epochs, batch 32, 2e-05" in lines[-1]
    )


def test_the_table_of_inference_by_hand():
    def scored(value, difference):
        one = {"spearman": value, "difference": difference}
        return dict.fromkeys(training_sets.TESTS, one)

    result = {
        "counts": {"sentence encoder": {"lingnli": 20_000}},
        "settings": inference_training.SETTINGS,
        "scores": {
            "sentence encoder": [scored(0.82, 0.0), scored(0.80, -0.02), scored(0.83, 0.01)],
            "fastText, averaged": [scored(0.5, 0.0)],
        },
    }  # fmt: skip
    lines = inference_training.render(result).splitlines()
    assert lines[2].startswith("| sentence encoder, before | 82.00 | 82.00 |")
    assert lines[3].startswith("| sentence encoder, after softmax | 80.00 (-2.00) |")
    assert lines[4].startswith("| sentence encoder, after ranking | 83.00 (+1.00) |")
    assert lines[5].startswith("| fastText, averaged | 50.00 |")


def test_the_table_of_a_field_by_hand():
    change = {"task": "corpus", "metric": "k-NN accuracy", "before": 0.35, "after": 0.41,
              "difference": 0.06, "low": 0.05, "high": 0.07, "verdict": "better"}  # fmt: skip
    result = {
        "n_pairs": 20_000, "n_test": 10_000, "settings": domain_adaptation.SETTINGS,
        "training": {"seconds": 600.0}, "changes": [change],
    }  # fmt: skip
    assert domain_adaptation.render(result).splitlines()[2] == (
        "| corpus, k-NN accuracy | 0.3500 | 0.4100 | +0.0600 [0.0500, 0.0700] | better |"
    )


def test_the_tables_of_curves_by_hand():
    result = {
        "confusion": {"first": {"chaotic": {"chaotic": 190, "uncertain": 10}}},
        "provoked": {"chaotic": {"verdict": "chaotic", "confidence": 0.93,
                                 "settings": {"n": 1000, "learning_rate": 5e-3}}},
    }  # fmt: skip
    lines = learning_curves.render(result).splitlines()
    assert lines[2] == "| first | chaotic | 95.0 | 200 | uncertain 10 |"
    assert lines[-1] == "| chaotic | chaotic | 93 % | n 1000, learning_rate 0.005 |"


@pytest.mark.slow
@pytest.mark.benchmark_data
def test_no_sentence_of_a_test_is_learned_from(data_folder):
    pairs, counts = training_sets.inference_pairs(None)
    held = {
        " ".join(text.lower().split())
        for content in training_sets.test_pairs().values()
        for column in content["columns"]
        for text in column
    }
    learned = {" ".join(text.lower().split()) for column in pairs["columns"] for text in column}
    assert not held & learned
    assert sum(counts.values()) == len(pairs["labels"]) > 60_000
    assert {len(column) for column in pairs["columns"]} == {len(pairs["labels"])}


@pytest.mark.benchmark_data
def test_the_tests_have_their_published_sizes(data_folder):
    sizes = {name: len(content["labels"]) for name, content in training_sets.test_pairs().items()}
    assert sizes == {
        "STS-B test": 1379, "STS12": 1608, "STS13": 750, "STS14": 1500, "SICK-R test": 4927,
    }  # fmt: skip
    train, dev = training_sets.sts_training_pairs(), training_sets.sts_pairs("dev")
    assert len(train["labels"]) < 5749 and len(dev["labels"]) == 1500
    pairs = set(map(frozenset, zip(*train["columns"], strict=True)))
    assert not pairs & set(map(frozenset, zip(*dev["columns"], strict=True)))
