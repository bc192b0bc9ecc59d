"""Krippendorff's alpha against his own examples, and by brute force."""

import math
from itertools import permutations

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.evaluation import krippendorff_alpha
from tests.factories import refuses

NO = None
# Krippendorff 2011, "Computing Krippendorff's alpha-reliability": examples A, B and C.
BINARY = [[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]]
NOMINAL = [list("aabbdcccedda"), list("babbbcccedDd".lower())]
FOUR = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NO, NO, NO],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NO, 3],
    [NO, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NO],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NO],
]


def test_published_examples():
    assert krippendorff_alpha(BINARY).alpha == pytest.approx(0.095, abs=5e-4)
    assert krippendorff_alpha(NOMINAL).alpha == pytest.approx(0.692, abs=5e-4)
    published = {"nominal": 0.743, "ordinal": 0.815, "interval": 0.849, "ratio": 0.797}
    for level, alpha in published.items():
        found = krippendorff_alpha(FOUR, level)
        assert found.alpha == pytest.approx(alpha, abs=5e-4), level
        # the last unit has one value only, which cannot be paired
        assert (found.n_units, found.n_values) == (11, 40)
        assert found.low < found.alpha < found.high <= 1


def brute_force(ratings, level):
    """Mean disagreement of pairs within units, over that of all pairs of values."""
    units = [[v for v in unit if v is not None] for unit in zip(*ratings, strict=True)]
    units = [unit for unit in units if len(unit) > 1]
    pool = [v for unit in units for v in unit]

    def apart(c, k):
        if level == "nominal":
            return float(c != k)
        if level == "ordinal":
            low, high = min(c, k), max(c, k)
            between = sum(low <= v <= high for v in pool)
            return (between - (pool.count(c) + pool.count(k)) / 2) ** 2 if c != k else 0.0
        if level == "interval":
            return (c - k) ** 2
        return ((c - k) / (c + k)) ** 2 if c + k else 0.0

    n = len(pool)
    if len(set(pool)) < 2:
        return math.nan
    within = sum(
        sum(apart(a, b) for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in units
    )
    overall = sum(apart(a, b) for a, b in permutations(pool, 2)) / (n - 1)
    return 1 - within / overall


@given(
    st.integers(2, 4).flatmap(
        lambda m: st.lists(
            st.lists(st.sampled_from([None, 0, 1, 2, 5]), min_size=m, max_size=m),
            min_size=1,
            max_size=8,
        )
    ),
    st.sampled_from(["nominal", "ordinal", "interval", "ratio"]),
)
def test_equals_brute_force(units, level):
    ratings = list(map(list, zip(*units, strict=True)))
    found = krippendorff_alpha(ratings, level, n_resamples=0).alpha
    np.testing.assert_allclose(found, brute_force(ratings, level), atol=1e-9)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval", "ratio"])
def test_interval_is_that_of_units_drawn_anew(level):
    rng = np.random.default_rng(2)
    drawn = []
    for _ in range(80):
        columns = rng.integers(0, 11, 11)
        drawn.append(brute_force([[row[c] for c in columns] for row in FOUR], level))
    found = krippendorff_alpha(FOUR, level, n_resamples=80, random_state=2)
    np.testing.assert_allclose([found.low, found.high], np.nanquantile(drawn, [0.025, 0.975]))


def test_nothing_to_tell():
    assert math.isnan(krippendorff_alpha([[1, 1], [1, 1]]).alpha)
    alone = krippendorff_alpha([[1, None], [None, 2]])
    assert math.isnan(alone.alpha) and (alone.n_units, alone.n_values) == (0, 0)
    assert krippendorff_alpha([["x", "y"], ["x", "y"]]).alpha == 1.0
    assert krippendorff_alpha([[1, "y"], [1.0, "y"]]).alpha == 1.0
    assert math.isnan(krippendorff_alpha(FOUR, n_resamples=0).low)


@given(st.integers(0, 1000))
def test_equals_the_package_krippendorff(seed):
    ratings = np.random.default_rng(seed).choice([0.0, 1, 2, 5, np.nan], (3, 12))
    ratings[:2, 0] = 0, 1
    for level in ("nominal", "ordinal", "interval", "ratio"):
        theirs = krippendorff.alpha(reliability_data=ratings, level_of_measurement=level)
        found = krippendorff_alpha(ratings, level, n_resamples=0).alpha
        assert found == pytest.approx(theirs, abs=1e-9)


def test_bad_input():
    with refuses("level"):
        krippendorff_alpha(FOUR, "rational")
    for ratings, level in (
        ([[1, 2], ["x", 2]], "interval"), ([[1, -1], [1, 2]], "ratio"),
        ([], "nominal"), ([1, 2], "nominal"), ([[1, 2], [1]], "nominal"),
    ):  # fmt: skip
        with refuses("ratings"):
            krippendorff_alpha(ratings, level)
