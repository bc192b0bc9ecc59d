"""The benchmark of encoders: what it compares and records, and its tables."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import comparison as benchmark  # noqa: E402
from benchmarks import corpora  # noqa: E402
from benchmarks.corpora import LabelledCorpus  # noqa: E402
from embedtopics.comparison import compare, score_table  # noqa: E402


@pytest.fixture(scope="module")
def corpus(toy):
    texts, vectors, themes = toy
    return LabelledCorpus("toy", texts, [str(theme) for theme in themes], vectors)


@pytest.fixture(scope="module")
def result(corpus):
    encoders = {"tfidf": "tfidf", "given": corpus.embeddings}
    return compare(
        corpus.texts, encoders, corpus.classes, n_moves=0, n_resamples=100, random_state=42
    )


class Counting:
    """An encoder that counts the texts that it is given."""

    def __init__(self):
        self.seen = []

    def encode(self, texts):
        self.seen.append(list(texts))


def test_time_is_estimated_on_a_part_and_scaled_to_the_whole(result, monkeypatch):
    clock = iter([10.0, 12.0])
    monkeypatch.setattr(benchmark.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(benchmark, "N_TIMED", 9)
    encoder = Counting()
    assert benchmark.estimate_seconds(encoder, result) == pytest.approx(2.0 * 135 / 9)
    texts = result.corpus.document_texts()
    assert encoder.seen == [texts[:4], texts[:9]]


def test_everything_is_recorded_and_only_given_vectors_have_an_estimate(corpus, result):
    found = benchmark.record(corpus, result, 30.0)
    json.dumps(found, allow_nan=False)
    assert (found["n_rows"], found["n_documents"], found["n_classes"]) == (135, 135, 3)
    learnt, given = found["encoders"]
    assert (learnt["is_estimate"], given["is_estimate"]) == (False, True)
    assert learnt["seconds"] == pytest.approx(result.encoders[0].seconds, abs=1e-3)
    assert (given["seconds"], given["documents_a_second"]) == (30.0, 4.5)
    expected = score_table(result, numeric=True)
    for encoder in found["encoders"]:
        assert set(benchmark.MEASURES) <= set(encoder["scores"])
        for measure, score in encoder["scores"].items():
            for key in ("value", "low", "high"):
                wanted = expected.loc[encoder["encoder"], (measure, key)]
                assert score[key] == pytest.approx(wanted, abs=1e-6)
    assert [(row["first"], row["second"]) for row in found["overlaps"]] == [("tfidf", "given")]
    assert found["overlaps"][0]["jaccard"] == pytest.approx(
        float(result.overlaps[0].jaccard.mean()), abs=1e-5
    )
    assert {row["encoder"] for row in found["differences"]} == {"given"}


def test_the_sample_that_warms_up_goes_through_the_whole_corpus(corpus):
    head = benchmark._head(corpus, 45)
    assert head.texts == corpus.texts[::3] and head.classes == corpus.classes[::3]
    np.testing.assert_array_equal(head.embeddings, corpus.embeddings[::3])


def scores(value):
    known = {"value": value, "low": value - 0.02, "high": value + 0.02, "n": 10}
    return {name: known for name in benchmark.MEASURES if name != "silhouette"} | {
        "silhouette": {"value": None, "low": None, "high": None, "n": 0}
    }


def test_tables():
    overlap = {
        "first": "a", "second": "b", "jaccard": 0.25, "jaccard_low": 0.2, "jaccard_high": 0.3,
        "jaccard_chance": 0.0041,
    }  # fmt: skip
    encoders = [
        {"encoder": "a", "scores": scores(0.9), "seconds": 1.234, "is_estimate": False,
         "documents_a_second": 1620.7, "megabytes": 0.25},
        {"encoder": "b", "scores": scores(0.5), "seconds": 250.6, "is_estimate": True,
         "documents_a_second": 7.98, "megabytes": 12.0},
    ]  # fmt: skip
    corpus = {
        "corpus": "toy", "n_documents": 2000, "encoders": encoders, "overlaps": [overlap]
    }  # fmt: skip
    high, low = "0.900 [0.880, 0.920]", "0.500 [0.480, 0.520]"
    assert benchmark.render(
        {"distill_seconds": 19.26, "corpora": [corpus, corpus | {"corpus": "other"}]}
    ).splitlines()[:13] == [
        "| corpus | encoder | k-NN accuracy | probe accuracy | silhouette | trustworthiness "
        "| continuity | s | texts/s | MB |",
        "| :-- | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
        f"| toy (2,000 texts) | a | {high} | {high} | n/a | {high} | {high} | 1.2 | 1,621 | 0.2 |",
        f"| toy (2,000 texts) | b | {low} | {low} | n/a | {low} | {low} | 251* | 8* | 12.0 |",
        f"| other (2,000 texts) | a | {high} | {high} | n/a | {high} | {high} | 1.2 | 1,621 "
        "| 0.2 |",
        f"| other (2,000 texts) | b | {low} | {low} | n/a | {low} | {low} | 251* | 8* | 12.0 |",
        "",
        "| neighbours in common | toy | other |",
        "| :-- | --: | --: |",
        "| a, b | 0.250 [0.200, 0.300] | 0.250 [0.200, 0.300] |",
        "| by chance | 0.0041 | 0.0041 |",
        "",
        "Making the static encoder took 19.3 s, once for all corpora. An asterisk marks what was "
        "estimated from a sample.",
    ]


@pytest.mark.benchmark_data
def test_the_french_corpus_is_all_of_its_parts(data_folder, monkeypatch):
    monkeypatch.setattr(corpora, "DATA", data_folder)
    texts, classes, _ = corpora._read_masakhanews_fra()
    assert len(texts) == len(classes) == 250 + 211 + 422
    assert len(set(classes)) == 5
    assert texts[250:] != texts[:-250]
