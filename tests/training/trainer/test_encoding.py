"""Groups of like length, and gradients that do not depend on them."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.training._settings import TrainingSettings
from embedtopics.training.trainer import _batching as encoding
from embedtopics.training.trainer._batching import BatchEncoder, groups_of_like_length


@given(st.lists(st.integers(1, 80), min_size=1, max_size=60), st.integers(1, 4000))
def test_groups_hold_each_text_once_within_the_budget(lengths, budget):
    groups = groups_of_like_length(lengths, budget)
    assert sorted(np.concatenate(groups).tolist()) == list(range(len(lengths)))
    for group in groups:
        longest = max(lengths[place] for place in group)
        assert len(group) == 1 or len(group) * longest <= budget


@given(st.lists(st.integers(1, 200), min_size=1, max_size=8))
def test_groups_cost_the_least_of_all_cuts(lengths):
    def cost(cuts):
        bounds = [0, *cuts, len(lengths)]
        ordered = sorted(lengths)
        return sum(
            (end - begin) * ordered[end - 1] + encoding.TOKENS_WORTH_A_PASS
            for begin, end in itertools.pairwise(bounds)
        )

    places = range(1, len(lengths))
    best = min(
        cost(cuts) for n in range(len(lengths)) for cuts in itertools.combinations(places, n)
    )
    groups = groups_of_like_length(lengths, 10**9)
    found = sum(
        len(group) * max(lengths[place] for place in group) + encoding.TOKENS_WORTH_A_PASS
        for group in groups
    )
    assert found == best


def gradients(data, tokens_at_once, seed=11):
    data.model.zero_grad()
    batch = data.batch(data.examples, range(16), np.random.default_rng(0))
    loss = BatchEncoder(data.forward, tokens_at_once).learn(
        batch.columns, lambda vectors: data.loss_of(batch, vectors), lambda x: x.backward(), seed
    )
    found = {n: p.grad.clone() for n, p in data.model.named_parameters() if p.grad is not None}
    return float(loss), found


@pytest.fixture()
def of_one_padded_batch(data_of):
    """Loss and gradients as one would compute them: both columns padded, one pass each."""
    data, _ = data_of(TrainingSettings(), dropout=0.0)
    data.model.train()
    data.model.zero_grad()
    batch = data.batch(data.examples, range(16), np.random.default_rng(0))
    vectors = [
        data.model(data.trainable.features(column))["sentence_embedding"]
        for column in batch.columns
    ]
    loss = ((torch.cosine_similarity(*vectors) - batch.labels) ** 2).mean()
    loss.backward()
    return (
        data,
        float(loss.detach()),
        {name: p.grad.clone() for name, p in data.model.named_parameters() if p.grad is not None},
    )


@pytest.mark.parametrize("tokens_at_once", [10**9, 60, 16])
def test_groups_and_recomputation_leave_loss_and_gradients_as_they_are(
    of_one_padded_batch, tokens_at_once, monkeypatch
):
    monkeypatch.setattr(encoding, "TOKENS_WORTH_A_PASS", 1)
    data, loss, expected = of_one_padded_batch
    found_loss, found = gradients(data, tokens_at_once)
    assert found_loss == pytest.approx(loss, rel=1e-5)
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-4, atol=1e-7)


def test_recomputed_groups_have_the_same_dropout(data_of, monkeypatch):
    monkeypatch.setattr(encoding, "TOKENS_WORTH_A_PASS", 0)
    data, _ = data_of(TrainingSettings(), dropout=0.3)
    data.model.train()
    batch = data.batch(data.examples, range(16), np.random.default_rng(0))
    lengths = [len(ids) for column in batch.columns for ids in column]
    groups = groups_of_like_length(lengths, 10**9)
    budget = max(len(g) * max(lengths[i] for i in g) for g in groups)
    assert len(groups) > 2
    kept, kept_gradients = gradients(data, 10**9)
    again, again_gradients = gradients(data, budget)
    assert again == kept
    for name, gradient in kept_gradients.items():
        torch.testing.assert_close(again_gradients[name], gradient, rtol=1e-5, atol=1e-8)
    assert gradients(data, 10**9, seed=12)[0] != kept


def test_vectors_come_back_in_order(data_of):
    data, _ = data_of(TrainingSettings())
    data.model.eval()
    texts = data.examples.columns[0]
    found = BatchEncoder(data.forward, 50).encode(texts)
    for place in (0, 7, 31):
        with torch.no_grad():
            alone = data.forward([texts[place]])[0]
        torch.testing.assert_close(found[place], alone, rtol=1e-5, atol=1e-6)
