from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.errors import InputError
from embedtopics.retrieval.fusing import (
    FusionSettings,
    fuse,
    fused_scores,
    moved_query,
    reciprocal_ranks,
)

NO_FEEDBACK = FusionSettings(feedback=0)


class Toy:
    """A collection of random vectors and scores, and what the two searches find in it."""

    def __init__(self, seed, n=40, d=6, depth=8):
        rng = np.random.default_rng(seed)
        self.vectors = rng.normal(size=(n, d)) + 0.7
        self.vectors /= np.linalg.norm(self.vectors, axis=1, keepdims=True)
        self.query = self.vectors[0] + rng.normal(size=d)
        self.query /= np.linalg.norm(self.query)
        self.bm25 = np.where(rng.random(n) < 0.5, rng.gamma(2, 3, size=n), 0)
        self.dense = np.argsort(-(self.vectors @ self.query))[:depth]
        self.lexical = np.argsort(-self.bm25)[:depth]
        self.mean = self.vectors.mean(axis=0)

    def fuse(self, settings=None, **changed):
        given = {
            "query": self.query, "dense": self.dense, "lexical": self.lexical,
            "vectors_of": lambda rows: self.vectors[rows],
            "bm25_of": lambda rows: self.bm25[rows],
            "mean_vector": self.mean, "settings": settings, **changed,
        }  # fmt: skip
        return fuse(**given)


def test_reciprocal_ranks_by_hand():
    numbers = np.array([3, 5, 8])
    found = reciprocal_ranks([np.array([5, 3]), np.array([8, 5])], numbers)
    np.testing.assert_allclose(found, [1 / 62, 1 / 61 + 1 / 62, 1 / 61])


def test_fused_scores_by_hand():
    found = fused_scores(np.array([0.5, 0.3, 0.1]), np.array([0.0, 8.0, 4.0]), 0.1, 0.6)
    np.testing.assert_allclose(found, [0.6, 0.3 + 0.4, 0.2])


def test_a_query_moves_towards_the_mean():
    found = moved_query(np.array([1.0, 0.0]), np.array([[0.0, 1.0], [0.0, 1.0]]), 1.0)
    np.testing.assert_allclose(found, [np.sqrt(0.5)] * 2)
    query = np.array([0.6, 0.8])
    assert moved_query(query, np.zeros((0, 2)), 1.0).tolist() == [0.6, 0.8]
    assert moved_query(query, -query[None], 1.0).tolist() == [0.6, 0.8]


@given(st.integers(0, 2**32 - 1), st.floats(0, 1), st.integers(0, 5), st.floats(0, 2))
def test_the_whole_recipe(seed, weight, n, feedback_weight):
    toy = Toy(seed)
    found = toy.fuse(FusionSettings(weight=weight, feedback=n, feedback_weight=feedback_weight))
    numbers = sorted({*toy.dense.tolist(), *toy.lexical.tolist()})

    def score(query):
        cosines, low = toy.vectors @ query, np.mean(toy.vectors @ query)
        farthest = max(abs(cosines[i] - low) for i in numbers)
        most = max(toy.bm25[i] for i in numbers)
        return {
            i: weight * (cosines[i] - low) / farthest + (1 - weight) * toy.bm25[i] / most
            for i in numbers
        }

    first = score(toy.query)
    top = sorted(numbers, key=lambda i: (-first[i], i))[:n]
    query = toy.query
    if top:
        query = query + feedback_weight * np.mean([toy.vectors[i] for i in top], axis=0)
        query = query / np.linalg.norm(query)
    expected = score(query)
    assert sorted(found.numbers.tolist()) == numbers
    np.testing.assert_allclose(found.scores, [expected[i] for i in found.numbers], atol=1e-9)
    assert (np.diff(found.scores) <= 0).all()
    np.testing.assert_allclose(found.similarities, toy.vectors[found.numbers] @ toy.query)
    assert found.bm25.tolist() == toy.bm25[found.numbers].tolist()


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 1), st.floats(-0.5, 0.9))
def test_stretched_and_moved_cosines_give_the_same_order(seed, stretch, move):
    toy = Toy(seed)
    cosines, bm25 = toy.vectors @ toy.query, toy.bm25
    one = fused_scores(cosines, bm25, cosines.mean(), 0.6)
    other = fused_scores(stretch * cosines + move, bm25, (stretch * cosines + move).mean(), 0.6)
    np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("settings", [None, FusionSettings(method="ranks")])
def test_the_order_of_equal_candidates_is_that_of_their_numbers(settings):
    toy = Toy(1)
    same = toy.fuse(
        settings, dense=np.array([7, 4]), lexical=np.array([4, 7]),
        vectors_of=lambda rows: np.tile(toy.vectors[0], (len(rows), 1)),
        bm25_of=lambda rows: np.ones(len(rows)),
    )  # fmt: skip
    assert same.numbers.tolist() == [4, 7]
    assert same.scores[0] == same.scores[1]


def test_one_part_alone_keeps_its_order():
    toy, none = Toy(2), np.zeros(0, np.int64)
    by_meaning = toy.fuse(NO_FEEDBACK, lexical=none, bm25_of=lambda rows: np.zeros(len(rows)))
    assert by_meaning.numbers.tolist() == toy.dense.tolist()
    by_words = toy.fuse(FusionSettings(feedback=0, weight=0.0), dense=none)
    held = toy.bm25[toy.lexical] > 0
    assert by_words.numbers.tolist()[: held.sum()] == toy.lexical[held].tolist()
    assert len(toy.fuse(dense=none, lexical=none).numbers) == 0
    ranks = toy.fuse(FusionSettings(method="ranks"), lexical=none)
    assert ranks.numbers.tolist() == toy.dense.tolist()


def test_ranks_look_at_no_score():
    toy = Toy(3)
    found = toy.fuse(FusionSettings(method="ranks"))
    rank = [{n: r for r, n in enumerate(of.tolist(), 1)} for of in (toy.dense, toy.lexical)]
    expected = [sum(1 / (60 + r[n]) for r in rank if n in r) for n in found.numbers.tolist()]
    np.testing.assert_allclose(found.scores, expected)
    np.testing.assert_allclose(found.similarities, toy.vectors[found.numbers] @ toy.query)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dense": np.array([1, 1])}, "different numbers for dense"),
        ({"bm25_of": lambda rows: np.full(len(rows), np.nan)}, "from bm25_of.*NaN"),
        ({"bm25_of": lambda rows: np.zeros(1)}, "from bm25_of"),
        ({"vectors_of": lambda rows: np.zeros((len(rows), 2))}, "from vectors_of"),
        ({"mean_vector": np.zeros(3)}, "from mean_vector"),
    ],
)
def test_bad_parts_are_refused(changed, message):
    with pytest.raises(InputError, match=message):
        Toy(0).fuse(**changed)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("method", "sum"), ("weight", 1.5), ("weight", float("nan")), ("feedback", -1),
        ("depth", 0), ("feedback_weight", -0.1), ("rank_constant", float("inf")),
        ("rank_constant", "60"),
    ],
)  # fmt: skip
def test_bad_settings_are_refused(name, value):
    with pytest.raises(InputError, match=name):
        FusionSettings(**{name: value})


def test_candidates_behind_the_background_keep_their_order():
    # A filter may leave none that is nearer than the mean of the collection.
    found = fused_scores(np.array([-0.3, -0.1, -0.5]), np.zeros(3), 0.0, 0.6)
    np.testing.assert_allclose(found, [-0.36, -0.12, -0.6])
    # Nor does the nearest, hardly before it, make the others so far that words count for nothing.
    found = fused_scores(np.array([1e-6, -0.2, -0.5]), np.array([0.0, 3.0, 0.0]), 0.0, 0.6)
    np.testing.assert_allclose(found, [0.6 * 2e-6, 0.4 - 0.24, -0.6])


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 30)), min_size=1, max_size=9),
    st.floats(-1, 1), st.floats(0, 1),
)  # fmt: skip
def test_fused_scores_are_bounded(candidates, background, weight):
    similarities, bm25 = np.array(candidates).T
    found = fused_scores(similarities, bm25, background, weight)
    assert np.abs(found).max() <= 1 + 1e-12
