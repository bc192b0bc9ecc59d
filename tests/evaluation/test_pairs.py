"""Measures of pairs of vectors, beside NumPy, SciPy and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, roc_auc_score

from embedtopics.evaluation._bootstrap import (
    difference_of,
    estimate_of_counts,
    mean_of_values,
    resampled_counts,
    resampled_sums,
)
from embedtopics.evaluation._pairs import (
    areas,
    over_thresholds,
    pair_class_scores,
    pair_similarities,
    precisions,
    rank_correlations,
)
from tests.factories import refuses


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    first = rng.normal(size=(400, 24)).astype(np.float32)
    return first, (0.6 * first + rng.normal(size=first.shape)).astype(np.float32)


NUMBERS = st.lists(st.integers(-3, 3), min_size=3, max_size=30)


@settings(max_examples=60, deadline=None)
@given(NUMBERS, st.integers(0, 10_000))
def test_rank_correlations_are_those_of_scipy_on_every_resample(numbers, seed):
    rng = np.random.default_rng(seed)
    first, second = np.array(numbers, dtype=float), rng.integers(-3, 3, len(numbers)) * 1e3 + 7
    measure = rank_correlations(first, second)
    times = np.concatenate([np.ones((1, len(first))), *resampled_counts(len(first), 5, seed)])
    for value, sample in zip(measure(times), times, strict=True):
        rows = np.repeat(np.arange(len(first)), sample.astype(int))
        if np.ptp(first[rows]) == 0 or np.ptp(second[rows]) == 0:
            assert np.isnan(value)
        else:
            assert value == pytest.approx(spearmanr(first[rows], second[rows])[0], abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(4, 30))
def test_pair_classes_are_those_of_scikit_learn_on_every_resample(seed, n):
    rng = np.random.default_rng(seed)
    near, labels = rng.integers(0, 6, n) / 4, rng.permutation([0, 1, *rng.integers(0, 2, n - 2)])
    times = np.concatenate([np.ones((1, n)), *resampled_counts(n, 5, seed)])
    averages, under_curve = (
        over_thresholds(near, labels, measure)(times) for measure in (precisions, areas)
    )
    for place, sample in enumerate(times):
        rows = np.repeat(np.arange(n), sample.astype(int))
        if 0 < labels[rows].sum() < n:
            expected = average_precision_score(labels[rows], near[rows])
            assert averages[place] == pytest.approx(expected)
            assert under_curve[place] == pytest.approx(roc_auc_score(labels[rows], near[rows]))
    scores = pair_class_scores(near, labels == 1)
    assert scores["average_precision"].value == averages[0]
    assert scores["area_under_curve"].value == under_curve[0]


def test_similarities_are_those_of_numpy_dense_and_sparse(pairs):
    first, second = (np.where(rows > 0.5, rows, 0) for rows in pairs)
    expected = (first.astype(float) * second).sum(axis=1)
    expected /= np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    dense = pair_similarities(first, second)
    np.testing.assert_allclose(dense, expected, atol=1e-5)
    sparse = pair_similarities(csr_matrix(first), csr_matrix(second))
    np.testing.assert_allclose(sparse, dense, rtol=0, atol=1e-6)
    for rows in pairs:  # equal vectors have a cosine of exactly one
        assert (pair_similarities(rows, rows) == 1.0).all()


def test_similarities_do_not_depend_on_blocks(pairs):
    assert pair_similarities([[0.0, 0.0]], [[1.0, 2.0]]).tolist() == [0.0]
    first, second = (np.tile(rows, (12, 1)) for rows in pairs)  # 4,800: more than one block
    np.testing.assert_array_equal(
        pair_similarities(first, second), np.tile(pair_similarities(*pairs), 12)
    )


def test_intervals_hold_the_figure_and_pair_with_one_seed(pairs):
    near, other_near = pair_similarities(*pairs), np.einsum("ij,ij->i", *pairs)
    scores = near + np.random.default_rng(3).normal(size=400) * 0.2
    one, again, other = (
        estimate_of_counts(rank_correlations(x, scores), 400, 1000, 0, bounds=(-1.0, 1.0))
        for x in (near, near, other_near)
    )
    assert one.low < one.value < one.high and len(one.drawn) == 1000
    np.testing.assert_array_equal(one.drawn, again.drawn)
    apart = difference_of(other, one)
    assert apart.value == other.value - one.value
    # Paired, the interval of a difference is narrower than that of one figure.
    assert apart.high - apart.low < one.high - one.low
    same = difference_of(one, one)
    assert same.low == same.value == same.high == 0.0
    assert repr(one).startswith("Estimate(0.")


def test_counts_are_what_sums_are_made_of():
    columns = np.random.default_rng(4).normal(size=(30, 2))
    times = np.concatenate(list(resampled_counts(30, 120, 5)))
    assert times.shape == (120, 30) and (times.sum(axis=1) == 30).all()
    np.testing.assert_allclose(times @ columns, resampled_sums(columns, 120, 5), atol=1e-12)


def test_bad_input():
    with refuses("first"):
        pair_similarities([[1.0], [np.nan]], [[1.0], [1.0]])
    with refuses("first"):
        pair_similarities([["a"]], [["b"]])
    with refuses("after"):
        difference_of(mean_of_values([1, 2]), mean_of_values([1, np.nan]))
