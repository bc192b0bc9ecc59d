"""Intervals and sizes of samples against SciPy, published tables and brute force."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from embedtopics.evaluation import (
    sample_size,
    sample_size_for_alpha,
    sample_size_for_difference,
)
from embedtopics.evaluation._shares import share_interval
from tests.factories import refuses

Z = 1.959963984540054


def test_intervals_by_hand():
    # Wilson for 8 of 10, written out.
    middle, half = (8 + Z**2 / 2) / (10 + Z**2), Z * math.sqrt(8 * 2 / 10 + Z**2 / 4) / (10 + Z**2)
    assert share_interval(8, 10) == pytest.approx((middle - half, middle + half))
    # Clopper and Pearson where all are hits: the n-th root of half the error.
    assert share_interval(5, 5, method="exact") == pytest.approx((0.025 ** (1 / 5), 1.0))
    assert all(map(math.isnan, share_interval(0, 0)))


def test_published_sizes():
    assert sample_size(0.05) == 385  # the textbook's 384.16, rounded up
    assert sample_size(0.03) == 1068
    assert sample_size(0.05, population=10_000) == 370  # Krejcie and Morgan 1970
    assert sample_size(0.05, population=100) == 80
    assert sample_size(0.05, confidence=0.99) == 664
    assert sample_size_for_difference(0.5, 0.75, power=0.9) == 77  # 76.7 by R's power.prop.test
    assert sample_size_for_difference(0.75, 0.5, power=0.9) == 77
    # Krippendorff's table for two coders.
    assert sample_size_for_alpha(0.8, 0.25) == 139
    assert sample_size_for_alpha(0.667, 0.25) == 81


@given(st.integers(1, 40), st.floats(0.02, 0.3), st.sampled_from(["wilson", "exact"]))
def test_sizes_are_the_least_that_are_precise_enough(tenths, precision, method):
    share = tenths / 40
    n = sample_size(precision, share=share, method=method)

    def half(size):
        low, high = binomtest(round(share * size), size).proportion_ci(0.95, method)
        return (high - low) / 2

    # at sizes where the share is a whole number of hits, SciPy's interval is the one meant
    above, below = -(-n // 40) * 40, (n - 1) // 40 * 40
    assert half(above) <= precision + 1e-9
    if below:
        assert half(below) > precision - 1e-9


@given(st.floats(0.01, 0.2), st.integers(1, 5000))
def test_no_more_than_the_population(precision, population):
    n = sample_size(precision, population=population)
    assert 1 <= n <= min(population, sample_size(precision))


def test_bad_input():
    for bad in ({"precision": 0.6}, {"confidence": 1.0}, {"share": 1.2}, {"share": 0.0},
                {"population": 0}, {"method": "magic"}):  # fmt: skip
        with refuses(next(iter(bad))):
            sample_size(**bad)
    assert sample_size(0.1, share=0.0, method="exact") > 1
    with refuses("other_share"):
        sample_size_for_difference(0.5, 0.5)
    with refuses("power"):
        sample_size_for_difference(0.5, 0.6, power=1)
    with refuses("n_coders"):
        sample_size_for_alpha(n_coders=1)
    with refuses("n_hits"):
        share_interval(3, 2)
    with refuses("method"):
        share_interval(1, 2, method="normal")
