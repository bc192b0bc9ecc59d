"""NPMI of pairs against the topic's mean, and against counting by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.errors import InputError
from embedtopics.evaluation import npmi, npmi_of_pairs
from embedtopics.terms import tokenize

TEXTS = st.lists(
    st.lists(st.sampled_from("alpha beta gamma delta".split()), max_size=14).map(" ".join),
    min_size=1,
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(TEXTS, st.sampled_from([None, 1, 3, 10]))
def test_mean_of_the_pairs_is_npmi(texts, window):
    stream = tokenize(texts)
    topic = ["alpha", "beta", "gamma"]
    pairs = npmi_of_pairs([topic], stream, window=window)[0]
    above = pairs[np.triu_indices(3, 1)]
    expected = npmi([topic], stream, window=window)[0]
    known = above[~np.isnan(above)]
    assert np.allclose(pairs, pairs.T, equal_nan=True) and np.isnan(np.diag(pairs)).all()
    assert math.isnan(expected) if len(known) == 0 else np.mean(known) == pytest.approx(expected)


@settings(max_examples=60, deadline=None)
@given(TEXTS)
def test_terms_of_several_words_by_documents(texts):
    stream = tokenize(texts)
    topic = ["alpha beta", "beta gamma delta", "gamma", "beta nowhere"]
    found = npmi_of_pairs([topic], stream, window=None)[0]
    holds = [[f" {term} " in f" {text} " for text in texts] for term in topic]
    share = np.mean(holds, axis=1)
    for i in range(4):
        for j in range(4):
            if i == j or share[i] == 0 or share[j] == 0:
                assert math.isnan(found[i, j])
                continue
            joint = np.mean(np.logical_and(holds[i], holds[j])) + 1e-12
            expected = math.log(joint / (share[i] * share[j])) / -math.log(joint)
            assert found[i, j] == pytest.approx(expected)


def test_no_terms():
    stream = tokenize(["alpha beta", ""])
    assert [m.shape for m in npmi_of_pairs([[], ["nowhere"]], stream)] == [(0, 0), (1, 1)]


def test_bad_input():
    with pytest.raises(InputError, match="window"):
        npmi_of_pairs([["a"]], tokenize(["a b"]), window=0)
    with pytest.raises(InputError, match="string"):
        npmi_of_pairs(["alpha"], tokenize(["alpha"]))
