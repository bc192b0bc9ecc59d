"""Measures of pairs of vectors, beside NumPy, SciPy and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from embedtopics.evaluation._bootstrap import (
    difference_of,
    mean_of_estimates,
    mean_of_values,
    resampled_counts,
    resampled_sums,
)
from embedtopics.evaluation._pairs import (
    _best_thresholds,
    pair_class_scores,
    pair_similarities,
    pearson_correlation,
    spearman_correlation,
)
from tests.factories import refuses

FEW = {"n_resamples": 0}


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    first = rng.normal(size=(400, 24)).astype(np.float32)
    return first, (0.6 * first + rng.normal(size=first.shape)).astype(np.float32)


NUMBERS = st.lists(st.integers(-3, 3), min_size=3, max_size=30)


@settings(max_examples=60, deadline=None)
@given(NUMBERS, st.integers(0, 10_000))
def test_correlations_are_those_of_scipy_on_every_resample(numbers, seed):
    rng = np.random.default_rng(seed)
    first, second = np.array(numbers, dtype=float), rng.integers(-3, 3, len(numbers)) * 1e3 + 7
    for ours, theirs in ((spearman_correlation, spearmanr), (pearson_correlation, pearsonr)):
        found = ours(first, second, n_resamples=5, seed=seed)
        (times,) = resampled_counts(len(first), 5, seed)
        samples = [np.ones(len(first)), *times]
        for value, sample in zip([found.value, *found.drawn], samples, strict=True):
            rows = np.repeat(np.arange(len(first)), sample.astype(int))
            if np.ptp(first[rows]) == 0 or np.ptp(second[rows]) == 0:
                assert np.isnan(value)
            else:
                assert value == pytest.approx(theirs(first[rows], second[rows])[0], abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(4, 30))
def test_pair_classes_are_those_of_scikit_learn_on_every_resample(seed, n):
    rng = np.random.default_rng(seed)
    near, labels = rng.integers(0, 6, n) / 4, rng.permutation([0, 1, *rng.integers(0, 2, n - 2)])
    found = pair_class_scores(near, labels, n_resamples=5, seed=seed)
    for_accuracy, for_f1 = _best_thresholds(near, labels == 1)
    predicted, right = near >= for_f1, (near >= for_accuracy) == labels
    (times,) = resampled_counts(n, 5, seed)
    for place, sample in enumerate(times):
        rows = np.repeat(np.arange(n), sample.astype(int))
        assert found["best_accuracy"].drawn[place] == pytest.approx(right[rows].mean())
        if not 0 < labels[rows].sum() < n:
            continue
        expected = {
            "average_precision": average_precision_score(labels[rows], near[rows]),
            "area_under_curve": roc_auc_score(labels[rows], near[rows]),
            "best_f1": f1_score(labels[rows], predicted[rows]),
        }
        for name, value in expected.items():
            assert found[name].drawn[place] == pytest.approx(value)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_no_other_threshold_is_better(seed):
    rng = np.random.default_rng(seed)
    near, labels = rng.integers(0, 8, 12) / 4, rng.permutation([0, 1, *rng.integers(0, 2, 10)])
    found = pair_class_scores(near, labels, **FEW)
    for threshold in np.arange(-0.125, 2.2, 0.25):
        predicted = near >= threshold
        assert (predicted == labels).mean() <= found["best_accuracy"].value
        f1 = 2 * (predicted & (labels == 1)).sum() / (predicted.sum() + labels.sum())
        assert f1 <= found["best_f1"].value + 1e-12


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
    one, again = (spearman_correlation(near, scores) for _ in range(2))
    assert one.low < one.value < one.high and len(one.drawn) == 1000
    np.testing.assert_array_equal(one.drawn, again.drawn)
    other = spearman_correlation(other_near, scores)
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


def test_means():
    values = mean_of_values([1.0, np.nan, 0.0, 1.0], n_resamples=200, seed=1)
    assert values.value == pytest.approx(2 / 3) and values.n == 3
    other = mean_of_values([0.0, 1.0], n_resamples=200, seed=2)
    both = mean_of_estimates([values, other])
    assert both.value == pytest.approx((2 / 3 + 0.5) / 2) and both.n == 5
    assert 2 < both.n_units < 3 and both.low < both.value < both.high
    drawn = (values.drawn + other.drawn) / 2  # a resample may hold no value at all
    np.testing.assert_array_equal(both.drawn, drawn)


@pytest.mark.parametrize(
    ("call", "parameter"),
    [
        (lambda: pair_similarities([[1.0]], [[1.0, 2.0]]), "second"),
        (lambda: pair_similarities([[1.0], [np.nan]], [[1.0], [1.0]]), "first"),
        (lambda: pair_similarities([["a"]], [["b"]]), "first"),
        (lambda: spearman_correlation([1, 2], [1, 2]), "second"),
        (lambda: spearman_correlation([1, 2, 3], [1, 2]), "second"),
        (lambda: pearson_correlation([1, 2, np.inf], [1, 2, 3]), "first"),
        (lambda: pair_class_scores([0.1, 0.2], [1, 1]), "labels"),
        (lambda: pair_class_scores([0.1, 0.2], [1, 2]), "labels"),
        (lambda: pair_class_scores([0.1, np.nan], [1, 0]), "similarities"),
        (lambda: pair_class_scores([0.1], [1, 0]), "labels"),
        (lambda: mean_of_values([np.nan]), "values"),
        (lambda: mean_of_estimates([]), "estimates"),
        (lambda: list(resampled_counts(0)), "n_resamples"),
        (lambda: difference_of(mean_of_values([1, 2], **FEW), mean_of_values([1], **FEW)), "after"),
    ],
)
def test_bad_input(call, parameter):
    with refuses(parameter):
        call()
