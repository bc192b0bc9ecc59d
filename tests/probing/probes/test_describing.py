"""Bits of the online code, counted by hand."""

import itertools

import numpy as np
import pytest

from embedtopics import probing
from embedtopics.probing.probes._scores import portions_of
from embedtopics.probing.probes._units import TRAIN, label_units
from tests.probing.made import made_states, rows_of
from tests.probing.probes.problems import tagged_states


def test_portions_end_behind_sentences():
    assert portions_of(np.repeat(np.arange(2000), 5)) == [
        10, 20, 40, 80, 160, 320, 625, 1250, 2500, 5000, 10000,
    ]  # fmt: skip
    assert portions_of(np.repeat([4, 7, 8], [3, 5, 2])) == [3, 10]
    assert portions_of(np.zeros(6)) == [6]


def test_without_any_signal_labels_are_told_by_how_frequent_they_were_so_far():
    """Vectors of zeros: a probe knows the shares of the classes in what it was told, no more."""
    rng = np.random.default_rng(0)
    texts = [f"a{i} b{i} c{i} d{i}" for i in range(40)]
    tags = rng.choice(["X", "Y"], (40, 4), p=[0.8, 0.2]).tolist()
    tags = [["X", "Y", *own[2:]] for own in tags]  # both are in the first portion
    states = made_states(texts, np.zeros((1, 160, 3)))
    scores = probing.probe(states, tags, description_length=True)
    units = label_units(states, tags, 0)
    target = units.target[units.of(TRAIN)]
    assert scores.n_train == len(target) == 112
    bits = [1.0] * 4  # the first sentence, of two classes
    # 3.2 % of 112 is one sentence, 6.25 % nearly two, 12.5 % nearly four (14 of 16 or 12).
    ends = portions_of(units.group[units.of(TRAIN)])
    assert ends == [4, 8, 12, 28, 56, 112]
    for end, following in itertools.pairwise(ends):
        shares = np.bincount(target[:end], minlength=2) / end
        bits += (-np.log2(shares[target[end:following]])).tolist()
    (found,) = rows_of(scores, what="probe", metric="bits per label")
    assert found.value == pytest.approx(np.mean(bits), abs=2e-3)
    assert found.low < found.value < found.high and found.n == 112
    (shorter,) = rows_of(scores, what="probe", metric="compression")
    assert shorter.value == pytest.approx(1 / found.value)
    assert shorter.low == pytest.approx(1 / found.high)


def test_layers_with_more_signal_tell_labels_in_fewer_bits_than_controls_take(few_steps):
    states, tags = tagged_states(n_texts=60, signals=(0.0, 3.0))
    scores = probing.probe(states, tags, control=True, description_length=True)
    none, much = (one.value for one in rows_of(scores, what="probe", metric="bits per label"))
    assert much < 0.8 < none
    assert scores.best("bits per label")["layer"] == scores.best("compression")["layer"] == 1
    assert scores.best("compression")["value"] > 2
    for one in rows_of(scores, what="control", metric="bits per label"):
        assert one.value > 1.2
