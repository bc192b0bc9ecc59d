"""Intervals of shares by hand."""

import math

import pytest

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
    with refuses("n_hits"):
        share_interval(3, 2)
    with refuses("method"):
        share_interval(1, 2, method="normal")
