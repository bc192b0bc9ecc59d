from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from embedtopics import probing
from embedtopics.probing import _layers as spaces
from tests.probing.made import made_states, random_states, reordered, unit


def brute(states, word, first, second, layer=0):
    """APD, excess and prototype distance, pair by pair."""
    vectors = states.layer(layer).astype(np.float64)
    uses = {
        g: [r for r in range(len(states)) if states.words[r] == word and states.of_text[r] in texts]
        for g, texts in enumerate((first, second))
    }
    between = [1 - unit(vectors[i]) @ unit(vectors[j]) for i in uses[0] for j in uses[1]]
    within = []
    for g in (0, 1):
        pairs = [
            1 - unit(vectors[i]) @ unit(vectors[j])
            for i, j in combinations(uses[g], 2) if states.of_text[i] != states.of_text[j]
        ]  # fmt: skip
        within.append(np.mean(pairs))
    means = [vectors[uses[g]].mean(axis=0) for g in (0, 1)]
    prototype = 1 - unit(means[0]) @ unit(means[1])
    return np.array([np.mean(between), np.mean(between) - np.mean(within), prototype])


def dated(n_texts, seed=0, shift=0.0, n_uses=(1, 4), width=5):
    """Texts of "w" and a filler; those of the second half lie elsewhere, by a shift."""
    rng = np.random.default_rng(seed)
    texts, vectors = [], []
    for t in range(n_texts):
        n = int(rng.integers(*n_uses))
        texts.append(f"id{t} " + " ".join(["w"] * n))
        topic = rng.normal(size=width) + 2
        topic[0] += shift * (t >= n_texts // 2)
        vectors += [rng.normal(size=width), *(topic + 0.3 * rng.normal(size=(n, width)))]
    return made_states(texts, [vectors]), ["a"] * (n_texts // 2) + ["b"] * (n_texts - n_texts // 2)


@pytest.mark.parametrize("size", [2, 8192])
def test_values_are_those_of_all_pairs_and_exact_p_that_of_all_deals(size, monkeypatch):
    monkeypatch.setattr(spaces.blocks, "__defaults__", (size,))
    states, groups = dated(7, seed=1, shift=1.5)
    found = probing.semantic_change(states, "w", groups, n_permutations=50, min_uses=2)
    [change] = found.words
    truth = brute(states, "w", {0, 1, 2}, {3, 4, 5, 6})
    measured = (change.apd, change.excess, change.prototype)
    np.testing.assert_allclose([m.value for m in measured], truth, atol=1e-12)
    every = np.array([
        brute(states, "w", set(chosen), set(range(7)) - set(chosen))
        for chosen in combinations(range(7), 3)
    ])  # fmt: skip
    assert change.exact and len(every) == 35
    np.testing.assert_allclose([m.by_chance for m in measured], every.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(
        [m.p for m in measured], (every >= truth - 1e-9).mean(axis=0), atol=1e-12
    )
    assert change.n_texts == (3, 4) and found.groups == ("a", "b")


def test_random_deals_come_near_to_the_exact_p():
    states, groups = dated(10, seed=5, shift=0.6)
    exact = probing.semantic_change(states, "w", groups, n_permutations=252).words[0]
    drawn = probing.semantic_change(states, "w", groups, n_permutations=251).words[0]
    assert exact.exact and not drawn.exact
    for name in ("apd", "excess", "prototype"):
        p, q = getattr(exact, name).p, getattr(drawn, name).p
        assert 0.02 < p < 0.9
        # Within four standard errors; and a p that is counted with the observed one.
        assert abs(p - q) < 4 * np.sqrt(p * (1 - p) / 251) + 1 / 252
        assert round(q * 252, 6) == round(q * 252)


def test_change_is_found_and_no_change_is_not():
    moved, groups = dated(40, seed=2, shift=3.0)
    change = probing.semantic_change(moved, "w", groups).words[0]
    for measure in (change.apd, change.excess, change.prototype):
        assert measure.p == measure.q == 1 / 2000
        assert measure.by_chance < measure.value and measure.low < measure.high
    for measure in (change.excess, change.prototype):
        assert measure.by_chance < measure.low


def test_p_is_uniform_where_uses_of_a_text_are_alike_but_nothing_changed():
    """Permuting uses instead of texts would find change in most of these."""
    p = []
    for seed in range(60):
        states, groups = dated(16, seed=100 + seed, n_uses=(1, 9))
        change = probing.semantic_change(
            states, "w", groups, n_permutations=99, n_resamples=50, random_state=seed
        ).words[0]
        p.append([change.apd.p, change.excess.p, change.prototype.p])
    # At most 8 of 60 below 0.05 with probability 0.99; a mean within 4 standard errors of 0.5.
    assert ((np.array(p) <= 0.05).sum(axis=0) <= 8).all()
    assert (np.abs(np.mean(p, axis=0) - 0.5) < 4 * np.sqrt(1 / 12 / 60)).all()


def test_intervals_hold_the_change_that_was_made():
    truth, held = true_excess(), 0
    for seed in range(40):
        states, groups = dated(24, seed=300 + seed, shift=2.0)
        excess = probing.semantic_change(
            states, "w", groups, n_permutations=9, n_resamples=200
        ).words[0].excess  # fmt: skip
        held += excess.low <= truth <= excess.high
    assert 33 <= held <= 40


def true_excess():
    """The excess over very many texts, by the product of mean unit vectors."""
    rng = np.random.default_rng(0)
    # Texts are weighed by their uses, which do not depend on the vectors.
    many = rng.normal(size=(2, 200_000, 5)) + 2
    many[1, :, 0] += 2.0
    means = unit(many + 0.3 * rng.normal(size=many.shape)).mean(axis=1)
    return -means[0] @ means[1] + (means[0] @ means[0] + means[1] @ means[1]) / 2


@settings(max_examples=25, deadline=None)
@given(st.permutations(range(6)), st.booleans())
def test_the_order_of_the_texts_and_of_the_groups_does_not_matter(order, swap):
    states, groups = dated(6, seed=9, shift=1.0)
    names = {"a": "b", "b": "a"} if swap else {"a": "a", "b": "b"}
    other, _ = reordered(states, order)
    asked = {"n_permutations": 10, "n_resamples": 20, "min_uses": 1}
    one = probing.semantic_change(states, "w", groups, **asked).words[0]
    two = probing.semantic_change(other, "w", [names[groups[t]] for t in order], **asked).words[0]
    if not swap:
        assert repr(one) == repr(two)  # to the last bit; without an interval, too
    for name in ("apd", "excess", "prototype"):
        assert abs(getattr(one, name).value - getattr(two, name).value) < 1e-12


def test_words_too_rare_are_listed_and_rates_are_those_of_scipy():
    rng = np.random.default_rng(0)
    texts, rows = [], []
    for t in range(8):
        texts.append("early Late tide" if t < 4 else "late tide flood")
        texts[-1] += f" seen seen id{t}"
        rows += list(rng.normal(size=(6, 4)) + (2 * (t < 4)) * np.array([1, 0, 0, 0]))
    states = made_states(texts, [rows])
    groups = [1990] * 4 + [2020] * 4
    found = probing.semantic_change(
        states, ["tide", "Late", "flood", "seen", "never"], groups, min_uses=4, n_permutations=70
    )
    assert {(r.word, r.n_uses, r.n_texts) for r in found.too_rare} == {
        ("flood", (0, 4), (0, 4)), ("never", (0, 0), (0, 0)),
    }  # fmt: skip
    assert {c.word for c in found.words} == {"tide", "late", "seen"}
    assert [c.excess.value for c in found.words] == sorted(
        (c.excess.value for c in found.words), reverse=True
    )
    for name in ("apd", "excess", "prototype"):
        p = [getattr(c, name).p for c in found.words]
        q = [getattr(c, name).q for c in found.words]
        np.testing.assert_allclose(q, false_discovery_control(p))
    frame = found.to_frame()
    assert list(frame["word"][-2:]) == ["flood", "never"] and frame["apd"][-2:].isna().all()
    assert frame.loc[0, "excess_p"] == found.words[0].excess.p
    assert found.groups == ("1990", "2020")


@pytest.mark.parametrize("empty", [(None, float("nan"), ""), (pd.NA, pd.NaT, None)])
def test_texts_without_a_group_are_left_out_and_counted(empty):
    states, groups = dated(9, seed=4)
    groups[4], groups[8], groups[0] = empty
    found = probing.semantic_change(states, "w", groups, min_uses=1)
    [change] = found.words
    truth = brute(states, "w", {1, 2, 3}, {5, 6, 7})
    np.testing.assert_allclose([change.apd.value, change.excess.value], truth[:2], atol=1e-12)
    assert [(d.name, d.value) for d in found.decisions] == [("texts_without_group", 3)]


@pytest.mark.parametrize(("n", "is_known"), [(2, False), (3, False), (4, True)])
def test_groups_of_so_few_texts_have_no_interval_of_the_excess(n, is_known):
    """Half of the draws of two texts hold one alone; all others are the two as they are."""
    states = random_states([f"w u{i} v" for i in range(2 * n)])
    [change] = probing.semantic_change(
        states, "w", ["a"] * n + ["b"] * n, min_uses=1, n_resamples=400
    ).words
    bounds = np.array([change.excess.low, change.excess.high])
    if is_known:
        assert bounds[0] < change.excess.value < bounds[1]
    else:
        assert np.isnan(bounds).all()
    assert change.apd.low < change.apd.high and change.prototype.low <= change.prototype.high
