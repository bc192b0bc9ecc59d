import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics import probing
from embedtopics.probing.words import _uses
from tests.factories import refuses
from tests.probing.made import made_states, random_states, reordered, unit

TEXTS = (
    "the bat flew", "a Bat hit the ball", "bat and bat", "no animal here", "BAT", "the bat slept",
)  # fmt: skip


def states_of(texts=TEXTS, **more):
    return random_states(texts, n_layers=4, width=6, **more)


def units(states, layer, rows):
    return unit(states.layer(layer)[rows])


def test_the_uses_are_found_in_the_order_of_the_texts_whatever_their_capitals():
    found = probing.word_map(states_of(), "bat")
    assert found.uses["word"].tolist() == ["bat", "Bat", "bat", "bat", "BAT", "bat"]
    assert found.uses["text"].tolist() == [0, 1, 2, 2, 4, 5]
    for use in found.uses.itertuples():
        assert use.sentence[use.offset : use.offset + use.end - use.start] == use.word
    assert found.uses["sentence"][2] == "bat and bat" and found.uses["offset"][3] == 8
    both = probing.word_map(states_of(), ["bat", "ball"])
    assert len(both) == 7 and both.word == "bat, ball"


def test_each_layer_is_projected_on_its_principal_components():
    states = states_of()
    found = probing.word_map(states, "bat")
    for place, layer in enumerate(found.layers):
        vectors = units(states, layer, found.uses["row"])
        centred = vectors - vectors.mean(axis=0)
        _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
        expected = centred @ axes[:2].T
        # a turn or a reflection leaves the inner products as they are
        own = found.coordinates[place]
        np.testing.assert_allclose(own @ own.T, expected @ expected.T, atol=1e-12)
        share = (sizes[:2] ** 2).sum() / (sizes**2).sum()
        assert found.explained_variance[place] == pytest.approx(share)
        cosines = vectors @ vectors.T
        pairs = cosines[np.triu_indices(len(found), 1)]
        assert found.similarity[place] == pytest.approx(pairs.mean())


def test_the_joint_plane_is_that_of_all_layers_less_their_means():
    states = states_of()
    found = probing.word_map(states, "bat")
    parts = [units(states, layer, found.uses["row"]) for layer in found.layers]
    stacked = np.concatenate([one - one.mean(axis=0) for one in parts])
    axes = np.linalg.svd(stacked, full_matrices=False)[2]
    expected = stacked @ axes[:2].T
    joint = found.joint.reshape(-1, 2)
    np.testing.assert_allclose(joint @ joint.T, expected @ expected.T, atol=1e-12)
    totals = [np.square(one - one.mean(axis=0)).sum() for one in parts]
    shares = np.square(found.joint).sum(axis=(1, 2)) / totals
    np.testing.assert_allclose(found.joint_explained_variance, shares)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_no_rotation_or_reflection_lays_a_layer_nearer_to_the_next(seed):
    from scipy.linalg import orthogonal_procrustes

    found = probing.word_map(states_of(seed=seed), "bat")
    for here, after in zip(found.coordinates, found.coordinates[1:], strict=False):
        best, _ = orthogonal_procrustes(here, after)
        apart = np.square(here - after).sum()
        assert apart == pytest.approx(np.square(here @ best - after).sum(), abs=1e-9)


def test_the_order_of_the_texts_changes_no_bit():
    states = states_of()
    moved, _ = reordered(states, [4, 2, 0, 5, 1, 3])
    first, second = (probing.word_map(each, "bat") for each in (states, moved))
    places = [(use.sentence, use.offset) for use in second.uses.itertuples()]
    same = [places.index((use.sentence, use.offset)) for use in first.uses.itertuples()]
    assert np.array_equal(first.coordinates, second.coordinates[:, same])
    assert np.array_equal(first.joint, second.joint[:, same])


def test_a_sample_is_that_of_the_texts_and_is_recorded(monkeypatch):
    monkeypatch.setattr(_uses, "MOST_USES", 7)
    texts = [f"bat number {i}" for i in range(40)]
    states = random_states(texts, seed=1)
    found = probing.word_map(states, "bat")
    assert len(found) == 7 and found.decisions[0].name == "sampled"
    back = random_states(texts[::-1], seed=1)
    again = probing.word_map(back, "bat")
    assert set(again.uses["sentence"]) == set(found.uses["sentence"])


def test_missing_uses_are_left_out_and_counted():
    states = random_states(["bat one", "bat two", "bat three"], missing=(2,))
    found = probing.word_map(states, "bat")
    assert found.uses["text"].tolist() == [0, 2]
    (decision,) = found.decisions
    assert decision.name == "missing" and decision.value == 1
    with refuses("word"):
        probing.word_map(random_states(["bat one"], missing=(0,)), "bat")


def test_uses_that_are_one_point_stay_in_the_middle():
    one = probing.word_map(random_states(["a bat"]), "bat")
    assert not one.coordinates.any() and np.isnan(one.similarity).all()
    vectors = np.random.default_rng(0).normal(size=(2, 3, 4))
    vectors[0] = vectors[0, 0]
    found = probing.word_map(made_states(["bat", "bat", "bat"], vectors), "bat")
    assert not found.coordinates[0].any() and np.isnan(found.explained_variance[0])
    assert found.similarity[0] == pytest.approx(1.0, abs=1e-3)
    two = probing.word_map(random_states(["bat a", "bat b"]), "bat")
    assert two.explained_variance == pytest.approx(np.ones(3))
    assert not two.coordinates[-1, :, 1].any()
