from itertools import combinations

import numpy as np
import pytest

from embedtopics import probing
from embedtopics.probing import _geometry as lengths
from tests.probing.made import made_states, random_states

TEXTS = ["a b c d", "e f", "g", "h i j", "k l m n o"]


def brute_contributions(states, layer):
    vectors = states.layer(layer).astype(np.float64)
    pairs = [
        vectors[i] * vectors[j] / np.linalg.norm(vectors[i]) / np.linalg.norm(vectors[j])
        for i, j in combinations(np.flatnonzero(~states.missing), 2)
        if states.sentences[i] != states.sentences[j]
    ]
    return np.mean(pairs, axis=0)


@pytest.mark.parametrize("size", [1, 5, 8192])
def test_contributions_are_those_of_all_pairs_of_different_sentences(size, monkeypatch):
    monkeypatch.setattr(lengths, "ROWS_AT_ONCE", size)
    states = random_states(TEXTS, width=5, seed=2, missing=[3, 6])
    # Two sentences in the first text.
    object.__setattr__(
        states, "sentences", np.repeat([0, 1, 2, 3, 4, 5], [2, 2, 2, 1, 3, 5]).astype(np.int32)
    )
    found = probing.norms(states)
    for layer in range(3):
        truth = brute_contributions(states, layer)
        np.testing.assert_allclose(found.contributions[layer], truth, atol=1e-12)
        assert abs(found.mean_cosine[layer] - truth.sum()) < 1e-12
        vectors = states.layer(layer)[~states.missing].astype(np.float64)
        long = np.linalg.norm(vectors, axis=1)
        measured = [found.mean, found.sd, found.low, found.median, found.high]
        truth = [long.mean(), long.std(), *np.quantile(long, [0.025, 0.5, 0.975])]
        np.testing.assert_allclose([m[layer] for m in measured], truth, atol=1e-12)
        np.testing.assert_allclose(found.dimension_means[layer], vectors.mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(found.dimension_sds[layer], vectors.std(axis=0), atol=1e-12)
    assert found.n_units == 13


def test_a_dimension_that_dominates_is_found():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(1, 15, 40))
    vectors[0, :, 7] += 30
    found = probing.norms(made_states(TEXTS, vectors))
    assert np.flatnonzero(found.is_outlier[0]).tolist() == [7]
    frame = found.to_frame()
    assert frame.loc[0, "top_dimension"] == 7 and frame.loc[0, "n_outliers"] == 1
    share = found.contributions[0, 7] / found.mean_cosine[0]
    assert frame.loc[0, "top_share"] == share > 0.9


def test_layers_are_chosen_and_one_sentence_is_refused():
    states = random_states(TEXTS)
    assert probing.norms(states, layers=[-1, 0]).layers == (2, 0)
