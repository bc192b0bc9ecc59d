import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import silhouette_samples

from embedtopics import probing
from tests.probing.made import made_states, reordered, rows_of, unit


@pytest.fixture
def labelled():
    """Texts of "bank" (two senses) and "bow" (three), some twice, some with two uses."""
    rng = np.random.default_rng(5)
    texts, rows, senses = [], [], []
    for i in range(30):
        words = ["bank"] * (1 + i % 3 // 2) if i % 2 else ["Bow"]
        texts.append(f"id{i % 25} " + " ".join(words))
        rows.append(rng.normal(size=4))
        for word in words:
            sense = f"{word}_{rng.integers(2 + (word == 'Bow'))}"
            senses.append(sense)
            rows.append(rng.normal(size=4) + 1.5 * np.eye(4)[int(sense[-1])])
    rows = np.array(rows)
    return made_states(texts, [rows, rng.normal(size=rows.shape)]), senses


def units_of(states, word):
    return [r for r in range(len(states)) if states.words[r].lower() == word]


def senses_of(senses, word):
    return [sense for sense in senses if sense.lower().startswith(word)]


def brute(states, units, senses, layer):
    vectors = unit(states.layer(layer).astype(np.float64)[units])
    text = [states.texts[states.of_text[r]] for r in units]
    nn = []
    for i in range(len(units)):
        rest = [j for j in range(len(units)) if text[j] != text[i]]
        near = max(rest, key=lambda j: vectors[i] @ vectors[j])
        nn.append(senses[near] == senses[i])
    return np.mean(nn), silhouette_samples(vectors, senses, metric="cosine").mean()


@pytest.mark.parametrize("word", ["bank", "bow"])
def test_figures_are_those_of_every_use_in_turn(labelled, word):
    states, senses = labelled
    units, own = units_of(states, word), senses_of(senses, word)
    found = probing.sense_separation(states, word, own)
    assert found.word == word
    for layer in (0, 1):
        truth = brute(states, units, own, layer)
        for measure, value in zip(("1-NN accuracy", "silhouette"), truth, strict=True):
            score = rows_of(found, measure=measure)[layer]
            assert abs(score.value - value) < 1e-9
            assert score.low <= score.value <= score.high and score.n == len(units)
    counts = np.unique(own, return_counts=True)[1]
    assert rows_of(found, measure="majority")[0].value == counts.max() / counts.sum()
    frame = found.to_frame()
    assert len(frame) == 5 and frame["layer"].isna().sum() == 1


def test_the_order_of_the_texts_does_not_matter(labelled):
    states, senses = labelled
    other, order = reordered(states)
    rows = np.concatenate([np.arange(len(states))[states.rows_of(t)] for t in order])
    sense_of = dict(zip(units_of(states, "bow"), senses_of(senses, "bow"), strict=True))
    moved = [sense_of[r] for r in rows.tolist() if r in sense_of]
    one = probing.sense_separation(states, "bow", list(sense_of.values()))
    two = probing.sense_separation(other, "bow", moved)
    for a, b in zip(rows_of(one), rows_of(two), strict=True):
        np.testing.assert_allclose([a.value, a.low, a.high], [b.value, b.low, b.high], atol=1e-12)


@pytest.mark.parametrize("empty", ["", None, float("nan"), pd.NA])
def test_what_is_left_out_is_told(labelled, empty):
    states, senses = labelled
    fewer = [empty if i in (2, 5) else s for i, s in enumerate(senses_of(senses, "bank"))]
    found = probing.sense_separation(states, "bank", fewer)
    assert {d.name: d.value for d in found.decisions} == {"uses_left_out": 2}
    assert rows_of(found, measure="majority")[0].n == len(fewer) - 2
