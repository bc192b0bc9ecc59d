"""The benchmark of coherence: what it compares, and its table."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import coherence  # noqa: E402
from benchmarks.corpora import LabelledCorpus  # noqa: E402
from benchmarks.options import Options  # noqa: E402
from benchmarks.topic_quality import word_tokens  # noqa: E402
from embedtopics.evaluation import npmi  # noqa: E402


@pytest.fixture(scope="module")
def corpus(toy):
    texts, vectors, themes = toy
    return LabelledCorpus("toy", texts, [str(theme) for theme in themes], vectors)


def test_topics_are_clusters_with_their_own_words(corpus, monkeypatch):
    monkeypatch.setattr(coherence, "N_TOPICS", 3)
    words = coherence.topic_words(corpus, word_tokens(corpus.texts))
    assert [len(topic) for topic in words] == [10, 10, 10]
    themes = ({"fruit", "apple"}, {"train", "rail"}, {"chess", "rook"})
    assert all(any(theme & set(topic) for topic in words) for theme in themes)


def test_both_are_timed_in_turns_and_agree(corpus, monkeypatch):
    monkeypatch.setattr(coherence, "N_TOPICS", 3)
    monkeypatch.setattr(coherence, "load_labelled", lambda name: corpus)
    result = coherence.measure(Options(quick=True))
    json.dumps(result, allow_nan=False)
    assert [one["corpus"] for one in result["corpora"]] == ["bbc_news"]
    rows = {row["measure"]: row for row in result["corpora"][0]["measures"]}
    assert list(rows) == ["c_npmi", "c_v", "c_uci", "u_mass"]
    assert all(row["largest_difference"] < 1e-6 for row in rows.values())
    tokens = word_tokens(corpus.texts)
    expected = npmi(coherence.topic_words(corpus, tokens), tokens).mean()
    assert rows["c_npmi"]["mean"] == pytest.approx(expected, abs=1e-4)


def test_table():
    row = {
        "measure": "c_v",
        "seconds": {"gensim": [9.0, 5.0, 7.0], "embedtopics": [0.07, 0.08, 0.06]},
        "largest_difference": 3e-16,
        "mean": 0.5,
    }
    corpus = {
        "corpus": "toy",
        "n_documents": 1234,
        "n_tokens": 9,
        "n_topics": 50,
        "measures": [row],
    }
    assert coherence.render({"gensim": "4.4.0", "corpora": [corpus]}).splitlines() == [
        "| corpus | measure | gensim, s | embedtopics, s | ratio | largest difference |",
        "| :-- | --: | --: | --: | --: | --: |",
        "| toy (1,234 documents) | c_v | 7.00 | 0.070 | 100 | 3e-16 |",
        "",
        "gensim 4.4.0.",
    ]
