"""Intervals of resamples drawn by hand, and of shares."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import binomtest, norm, t

from embedtopics.evaluation._bootstrap import (
    bounded_interval,
    interval,
    mean_of_values,
    resampled_means,
    resampled_sums,
    wilson,
)
from tests.factories import refuses


def drawn_documents(n_documents, n_resamples, seed):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, n_documents, n_documents) for _ in range(n_resamples)]


def test_sums_are_those_of_the_documents_drawn():
    columns = np.random.default_rng(1).normal(size=(37, 3))
    expected = [columns[drawn].sum(axis=0) for drawn in drawn_documents(37, 120, 5)]
    np.testing.assert_allclose(resampled_sums(columns, 120, 5), expected, atol=1e-12)
    np.testing.assert_allclose(resampled_sums(csr_matrix(columns), 120, 5), expected, atol=1e-12)


def test_means_are_over_the_documents_that_have_a_value():
    values = np.random.default_rng(1).normal(size=(30, 2))
    values[4:11, 1] = np.nan
    expected = [np.nanmean(values[drawn], axis=0) for drawn in drawn_documents(30, 70, 0)]
    np.testing.assert_allclose(resampled_means(values, 70, 0), expected, atol=1e-12)


def test_a_resample_without_any_value_is_unknown():
    values = np.array([[1.0], [np.nan]])
    drawn = drawn_documents(2, 40, 0)
    means = resampled_means(values, 40, 0).ravel()
    assert [np.isnan(m) for m in means] == [0 not in rows for rows in drawn]
    assert interval(means, 2) == (1.0, 1.0)


def test_unknown_figures_are_left_out_column_by_column():
    drawn = np.random.default_rng(2).normal(size=(90, 2, 3))
    drawn[:40, 1, 0] = np.nan
    drawn[:, 0, 2] = np.nan
    low, high = interval(drawn, np.inf, 0.8)
    assert np.isnan([low[0, 2], high[0, 2]]).all()
    for place in [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]:
        expected = np.nanquantile(drawn[:, *place], [0.1, 0.9])
        assert [low[place], high[place]] == pytest.approx(expected.tolist(), abs=1e-12)


def test_intervals_of_few_units_reach_as_far_as_students_t():
    drawn = np.random.default_rng(3).normal(size=(4000, 3))
    low, high = interval(drawn, [5, np.inf, 1])
    reach = np.sqrt(5 / 4) * t.ppf(0.975, 4)
    tail = [norm.sf(reach), norm.cdf(reach)]
    assert [low[0], high[0]] == pytest.approx(np.quantile(drawn[:, 0], tail).tolist())
    assert [low[1], high[1]] == pytest.approx(np.quantile(drawn[:, 1], [0.025, 0.975]).tolist())
    assert np.isnan([low[2], high[2]]).all()


def test_a_score_that_never_varies_counts_as_hits():
    found = mean_of_values(np.ones(10))
    assert (found.low, found.high) == pytest.approx([float(end) for end in wilson(10, 10)])
    assert found.low < 0.73
    assert np.isnan(mean_of_values([1.0]).low)
    # A mean of hits has the variance of a share: as many trials as units, less one.
    drawn = np.random.default_rng(0).binomial(40, 0.3, 100_000) / 40
    low, high = bounded_interval(0.3, drawn, 40)
    wide = binomtest(12, 40).proportion_ci(0.95, method="wilson")
    assert (low, high) == pytest.approx(tuple(wide), abs=0.012)
    assert high - low > wide.high - wide.low


@pytest.mark.parametrize(("n", "easy"), [(5, (1, 4)), (10, (6, 1)), (30, (20, 0.7))])
def test_intervals_of_few_queries_hold_the_mean_score(n, easy):
    def scores(n_queries):
        ranks = rng.geometric(np.clip(rng.beta(*easy, n_queries), 0.01, 1))
        return np.where(ranks <= 10, 1 / ranks, 0.0)

    rng = np.random.default_rng(n)
    true, held, percentiles = scores(200_000).mean(), 0, 0
    for _ in range(300):
        values = scores(n)
        drawn = rng.multinomial(n, np.full(n, 1 / n), 300) @ values / n
        low, high = bounded_interval(values.mean(), drawn, n)
        held += low <= true <= high
        low, high = np.quantile(drawn, [0.025, 0.975])
        percentiles += low <= true <= high
    # Percentiles hold it in 15 to 94 % of the cases.
    assert 0.9 < held / 300 and percentiles <= held


def test_bad_input():
    with refuses("confidence"):
        interval([1, 2], 2, 95)


def test_intervals_of_shares_are_those_of_scipy():
    for hits, n in [(0, 7), (1, 7), (3, 10), (50, 50), (400, 1000)]:
        low, high = binomtest(hits, n).proportion_ci(0.9, method="wilson")
        assert wilson(hits, n, 0.9) == pytest.approx((low, high), abs=1e-12)
    assert all(map(math.isnan, wilson(0, 0)))
