import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics import probing
from embedtopics.probing import _geometry as kernels
from embedtopics.probing import _layers as spaces
from tests.probing.made import made_states, random_states, reordered

TEXTS = [f"text{i} " + "word " * (i % 4 + 1) + "end" for i in range(24)]
N = sum(len(text.split()) for text in TEXTS)


def centered_gram(x):
    x = np.asarray(x, dtype=np.float64)
    h = np.eye(len(x)) - 1 / len(x)
    return h @ (x @ x.T) @ h


def gram_cka(x, y):
    k, m = centered_gram(x), centered_gram(y)
    return (k * m).sum() / np.linalg.norm(k) / np.linalg.norm(m)


def vectors_of(states, layer):
    return states.layer(layer)[~states.missing].astype(np.float64)


@pytest.mark.parametrize("size", [5, 2048])
def test_values_are_those_of_the_gram_matrices(size, monkeypatch):
    whole = spaces.blocks
    monkeypatch.setattr(kernels, "blocks", lambda n, _: whole(n, size))
    states = random_states(TEXTS, width=6, seed=1, missing=[3, 40])
    alone = probing.cka(states)
    for i in range(3):
        for j in range(3):
            truth = gram_cka(vectors_of(states, i), vectors_of(states, j))
            assert abs(alone.values[i, j] - truth) < 1e-12
    assert (alone.n_units, alone.n_texts) == (N - 2, 24)
    np.testing.assert_array_equal(np.diag(alone.values), 1.0)


def test_errors_are_those_of_leaving_out_texts(monkeypatch):
    texts = TEXTS[:10]
    states = random_states(texts, width=6, seed=4)
    found = probing.cka(states)
    without = []
    for text in range(10):
        rest = [t for t in range(10) if t != text]
        rows = np.flatnonzero(states.of_text != text)
        fewer = made_states([texts[t] for t in rest], [v[rows] for v in states.vectors])
        without.append(probing.cka(fewer).values)
    truth = np.sqrt(9 * np.var(without, axis=0))
    np.testing.assert_allclose(found.errors, truth, atol=1e-11)
    assert (found.errors[0, 1:] > 0.001).all()
    monkeypatch.setattr(kernels, "N_FOLDS", 11)
    assert np.isnan(probing.cka(states).errors).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.01, 100))
def test_rotation_scale_and_shift_change_nothing(seed, scale):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, 5))
    turned = x @ np.linalg.qr(rng.normal(size=(5, 5)))[0] * scale + scale * rng.normal(size=5)
    y = np.tanh(x) + rng.normal(size=(N, 5))
    states = made_states(TEXTS, [x, turned, y])
    for layer, exact in enumerate((x, turned, y)):
        vectors = list(states.vectors)
        vectors[layer] = exact
        object.__setattr__(states, "vectors", tuple(vectors))
    found = probing.cka(states).values
    np.testing.assert_allclose(found[0, 1], 1, atol=1e-9)
    np.testing.assert_allclose(found[0, 2], found[1, 2], atol=1e-9)
    np.testing.assert_array_equal(found, found.T)
    assert ((found >= 0) & (found <= 1 + 1e-12)).all()


def test_a_draw_holds_whole_texts_and_does_not_depend_on_their_order(monkeypatch):
    monkeypatch.setattr(kernels, "MOST_UNITS", 40)
    states = random_states(TEXTS, width=5, seed=6)
    found = probing.cka(states, random_state=3)
    [decision] = found.decisions
    assert 40 <= found.n_units == decision.value < 47
    other, _ = reordered(states)
    again = probing.cka(other, random_state=3)
    np.testing.assert_array_equal(again.values, found.values)
    np.testing.assert_array_equal(again.errors, found.errors)


def test_a_layer_without_variance_has_no_alignment():
    rng = np.random.default_rng(0)
    states = made_states(TEXTS, [np.full((N, 3), 0.1), rng.normal(size=(N, 3))])
    found = probing.cka(states)
    assert np.isnan(found.values[0]).all() and found.values[1, 1] == 1
