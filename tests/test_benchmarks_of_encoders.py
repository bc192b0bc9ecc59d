"""The benchmarks of encoding and of the cache: their tables, and what their processes measure."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "benchmarks" / "systems"))

import encode_texts  # noqa: E402

from benchmarks import encoding, static_student, student_texts, vector_cache  # noqa: E402


def test_the_tables_of_encoding_by_hand():
    def encoder(kind, seconds, start, spearman):
        return {
            "encoder": kind, "seconds": {"short": seconds}, "starts": [start, 99.0, start],
            "spearman": spearman, "largest_difference": 2e-7, "lowest_cosine": 1 - 5e-8,
            "n_texts": 7,
        }  # fmt: skip

    result = {
        "versions": {"torch": "2.13.0"},
        "sets": [{"name": "short", "n_texts": 1_000, "n_tokens": 12_000}],
        "first_ever": {"float32": 7.7, "int8": 6.5},
        "encoders": [
            encoder("sentence-transformers", [2.0, 3.0, 4.0], 8.0, 0.8203),
            encoder("float32", [1.0, 2.0, 9.0], 1.0, 0.8203),
            encoder("int8", [1.0, 1.0, 1.0], 0.8, 0.82),
        ],
    }
    assert encoding.render(result).splitlines() == [
        "| encoder | short (1,000 texts), tokens/s | short, ratio | STS-B test "
        "| alone or in a batch: differs by | 1 - cosine |",
        "| :-- | --: | --: | --: | --: | --: |",
        "| sentence-transformers | 4,000 | 1.00 | 82.03 | 2e-07 | 5e-08 |",
        "| embedtopics, float32 | 6,000 | 1.50 | 82.03 | 2e-07 | 5e-08 |",
        "| embedtopics, int8 | 12,000 | 3.00 | 82.00 | 2e-07 | 5e-08 |",
        "",
        "| from the start of the process to the first embedding | s | ratio | first ever, s |",
        "| :-- | --: | --: | --: |",
        "| sentence-transformers | 8.00 | 1.0 | n/a |",
        "| embedtopics, float32 | 1.00 | 8.0 | 7.7 |",
        "| embedtopics, int8 | 0.80 | 10.0 | 6.5 |",
        "",
        "torch 2.13.0.",
    ]


def test_the_table_of_the_cache_by_hand():
    def run(past, into, out):
        times = {"past": past, "into": into, "out of": out}
        return {kind: {"seconds": seconds} for kind, seconds in times.items()}

    result = {
        "n_texts": 60_000,
        "n_bytes": 95_400_000,
        "runs": [run(100, 102, 0.5), run(100, 101, 0.4), run(200, 206, 0.6)],
    }
    assert vector_cache.render(result).splitlines()[-1] == (
        "| 60,000 | 100.0 | 102.0 | +2.0 % | 0.50 | 204 | 95 |"
    )


def test_what_the_processes_measure(tmp_path, monkeypatch):
    class Fake:
        """Gives each text its length, and a bit more in a batch."""

        def __call__(self, texts):
            return np.array([[len(text), 1.0 + 1e-3 * (len(texts) > 1)] for text in texts])

    monkeypatch.setattr(encode_texts, "load", lambda kind: Fake())
    (tmp_path / "texts.json").write_text(json.dumps({"a": ["x", "xx"], "b": ["xxx"]}))
    pairs = [{"sentence1": "a" * n, "sentence2": "b" * m, "score": -abs(n - m)}
             for n, m in ((1, 2), (1, 9), (3, 3))]  # fmt: skip
    (tmp_path / "pairs.json").write_text(json.dumps(pairs))
    found = encode_texts.alone("", tmp_path)
    assert found["n_texts"] == 3
    assert found["largest_difference"] == pytest.approx(1e-3)
    assert 1 - 1e-6 < found["lowest_cosine"] < 1
    assert encode_texts.score("", tmp_path)["spearman"] == pytest.approx(1.0)
    assert set(encode_texts.encode("", tmp_path)) == {"a", "b"}


def test_the_table_of_students_by_hand():
    def encoder(kind, spearman, accuracy, speeds, seconds):
        return {
            "encoder": kind, "dimensions": 256, "spearman": spearman, "knn_accuracy": accuracy,
            "titles_a_second": speeds, "seconds_to_make": seconds,
        }  # fmt: skip

    result = {
        "n_titles": 100_000,
        "sources": {"sts": 9_000, "news": 7_000},
        "student": {
            "stages": {"words": 12.34, "teacher": 300.0}, "n_words": 13_000, "n_phrases": 11_000,
            "agreement": [0.7, 0.8984],
        },
        "encoders": [
            encoder("student", 0.7512, 0.36, [3.0, 40_000.0, 41_000.0], 400.4),
            encoder("teacher", 0.8203, 0.4, [600.0], None),
        ],
    }  # fmt: skip
    lines = static_student.render(result).splitlines()
    assert lines[2] == "| student | 256 | 75.1 | 0.360 | 90.0 | 40,000 | 400 |"
    assert lines[3].startswith("| teacher | 256 | 82.0 | 0.400 | 100.0 | 600 | ")
    assert "100,000 titles" in lines[5] and "sts 9,000, news 7,000" in lines[5]
    assert "0.700 to 0.898" in lines[5]


@pytest.mark.benchmark_data
def test_nothing_is_learned_that_a_test_holds(data_folder):
    texts = student_texts.load_student_texts(quick=True)
    held_out = {student_texts._normal(title) for title in texts.test_titles}
    for row in student_texts._read_rows("stsb/en_test.jsonl.gz"):
        held_out |= {student_texts._normal(row[key]) for key in ("sentence1", "sentence2")}
    learned = {student_texts._normal(text) for text in [*texts.titles, *texts.general]}
    assert len(learned) > 5_000 and len(held_out) > 2_000
    assert not learned & held_out
    assert len(texts.test_titles) == len(texts.test_categories)
