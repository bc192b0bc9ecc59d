"""What another encoder does to a corpus: its neighbours, topics and classes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from embedtopics.training import _compare as on_corpus
from embedtopics.training import compare_before_after
from tests.training.tables import Table, random_vectors

DESCRIBED = ("10 nearest neighbours kept", "topics of two runs agree (ARI)")


def test_figures_on_a_corpus_have_a_level_to_compare_with(toy):
    texts, rows, themes = toy
    before = dict(zip(texts, rows, strict=True))
    noise = random_vectors(texts, 9, 16)
    found = {
        change.metric: change
        for change in compare_before_after(
            Table(before), Table(noise), corpus=texts, classes=themes, n_resamples=300
        )
    }
    kept, topics = (found[name] for name in DESCRIBED)
    assert kept.verdict == topics.verdict == "descriptive"
    chance = 10 / (len(texts) - 1)
    assert kept.before == 1 and kept.after == pytest.approx(chance, abs=0.04)
    assert f"{chance:.1%}" in kept.note
    assert kept.low < kept.difference < kept.high < -0.8
    assert topics.before > 0.9 and abs(topics.after) < 0.1
    for name in ("10-NN accuracy", "NMI of topics and classes", "AMI of topics and classes"):
        assert found[name].verdict == "worse" and found[name].n_looks == 0
    assert found["10-NN accuracy"].before == 1


def test_the_agreement_of_topics_names_what_two_runs_of_each_encoder_reach(monkeypatch):
    # Groups by formula: of either encoder two runs, which agree by so much and no more.
    rng = np.random.default_rng(0)
    n = 80
    runs = [rng.integers(0, 3, n).astype(np.int32) for _ in range(4)]
    runs[1] = np.where(np.arange(n) < 60, runs[0], runs[1])
    drawn = iter([*runs, *runs[:2], *runs[:2]])
    monkeypatch.setattr(on_corpus, "dense_groups", lambda *_: next(drawn))
    texts = [f"text {i}" for i in range(n)]
    encoders = [Table(random_vectors(texts, seed)) for seed in (0, 1)]
    (_, found) = compare_before_after(*encoders, corpus=texts, n_resamples=100)
    own, again, new, newer = runs
    assert found.before == pytest.approx(adjusted_rand_score(own, again))
    both = adjusted_rand_score(own, newer), adjusted_rand_score(new, again)
    assert found.after == pytest.approx(np.mean(both))
    assert f"agree by {found.before:.2f} before" in found.note
    assert f"by {adjusted_rand_score(new, newer):.2f} after" in found.note
    # One encoder beside itself reaches what its own two runs do, which is not 1.
    (_, same) = compare_before_after(encoders[0], encoders[0], corpus=texts, n_resamples=100)
    assert same.after == same.before == found.before < 0.9
    assert same.difference == same.low == same.high == 0


def test_where_no_topics_are_found_their_agreement_is_unknown():
    texts = [f"text {i}" for i in range(30)]
    encoders = [Table(random_vectors(texts, seed)) for seed in (0, 1)]
    (_, found) = compare_before_after(*encoders, corpus=texts, n_resamples=100)
    assert np.isnan([found.before, found.after, found.difference, found.low, found.high]).all()
    assert found.verdict == "descriptive" and "no topics" in found.note


def test_a_large_corpus_is_sampled_and_says_so(toy):
    texts, rows, _ = toy
    encoder = Table(dict(zip(texts, rows, strict=True)))
    found = compare_before_after(encoder, encoder, corpus=texts, max_documents=60, n_resamples=100)
    assert {change.n for change in found} == {60}
    assert all(f"60 of {len(texts)} texts" in change.note for change in found)
    assert len(encoder.asked[0]) == 60
