"""What another encoder does to a corpus: its neighbours, topics and classes."""

from __future__ import annotations

import pytest

from embedtopics.training import compare_before_after
from tests.training.tables import Table, random_vectors

DESCRIBED = ("10 nearest neighbours kept", "topics agree")


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


def test_a_large_corpus_is_sampled_and_says_so(toy):
    texts, rows, _ = toy
    encoder = Table(dict(zip(texts, rows, strict=True)))
    found = compare_before_after(encoder, encoder, corpus=texts, max_documents=60, n_resamples=100)
    assert {change.n for change in found} == {60}
    assert all(f"60 of {len(texts)} texts" in change.note for change in found)
    assert len(encoder.asked[0]) == 60
