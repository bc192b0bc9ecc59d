"""Agreement against scikit-learn on the same labels, and of coders by hand."""

import itertools
import math

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    completeness_score,
    homogeneity_score,
    normalized_mutual_info_score,
)

from embedtopics.evaluation import dawid_skene, evaluate_clustering, krippendorff_alpha
from embedtopics.evaluation._bootstrap import interval
from tests.factories import refuses

ORACLES = {
    "nmi": normalized_mutual_info_score,
    "ami": adjusted_mutual_info_score,
    "ari": adjusted_rand_score,
    "homogeneity": homogeneity_score,
    "completeness": completeness_score,
}
PAIRS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(-1, 3)), min_size=1, max_size=30
).map(lambda pairs: (np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])))


@given(PAIRS)
def test_equals_scikit_learn(labels):
    true, predicted = labels
    found = evaluate_clustering(true, predicted)
    covered = predicted >= 0
    assert found.coverage == covered.mean()
    assert (found.n, found.n_covered) == (len(true), covered.sum())
    for name, oracle in ORACLES.items():
        assert getattr(found, name) == pytest.approx(oracle(true, predicted), abs=1e-9), name
        inside = getattr(found, name + "_covered")
        if covered.any():
            expected = oracle(true[covered], predicted[covered])
            assert inside == pytest.approx(expected, abs=1e-9), name
        else:
            assert math.isnan(inside)


def test_intervals_are_those_of_documents_drawn_anew():
    rng = np.random.default_rng(4)
    true = rng.integers(0, 4, 200)
    predicted = np.where(rng.random(200) < 0.6, true, rng.integers(-1, 3, 200))
    found = evaluate_clustering(true, predicted, n_resamples=60, random_state=5)
    drawn = {name + part: [] for name in ORACLES for part in ("", "_covered")}
    again = np.random.default_rng(5)
    for _ in range(60):
        rows = again.integers(0, 200, 200)
        a, b = true[rows], predicted[rows]
        for name, oracle in ORACLES.items():
            drawn[name].append(oracle(a, b))
            drawn[name + "_covered"].append(oracle(a[b >= 0], b[b >= 0]))
    for name, values in drawn.items():
        # the chance level in the adjusted mutual information is not drawn anew
        tolerance = 0.01 if name.startswith("ami") else 1e-9
        expected = np.array(interval(values, 200)) - np.mean(values) + getattr(found, name)
        np.testing.assert_allclose(found.intervals[name], expected, atol=tolerance, err_msg=name)
    assert found.intervals["coverage"][0] < found.coverage < found.intervals["coverage"][1]
    assert evaluate_clustering(true, predicted, n_resamples=60, random_state=5) == found


def test_rows_of_one_text_are_drawn_together():
    rng = np.random.default_rng(6)
    true, predicted = rng.integers(0, 2, 100), rng.integers(0, 2, 100)
    alone = evaluate_clustering(true, predicted, n_resamples=300)
    thrice = (np.repeat(true, 3), np.repeat(predicted, 3))
    units = np.repeat(np.arange(100), 3)
    together = evaluate_clustering(*thrice, n_resamples=300, units=units)
    assert together.intervals["homogeneity"] == pytest.approx(alone.intervals["homogeneity"])
    low, high = evaluate_clustering(*thrice, n_resamples=300).intervals["homogeneity"]
    wide = alone.intervals["homogeneity"]
    assert high - low < 0.8 * (wide[1] - wide[0])


def test_table_of_figures_and_perfect_labels():
    found = evaluate_clustering(["x", "x", "y", "y"], [1, 1, 0, 0])
    assert all(getattr(found, name) == pytest.approx(1.0) for name in ORACLES)
    found = evaluate_clustering(list("aabb"), [0, 0, 1, -1], n_resamples=20)
    frame = found.to_frame().set_index(["measure", "documents"])
    assert frame.loc[("coverage", "all"), "value"] == 0.75
    assert frame.loc[("ari", "covered"), "value"] == 1.0
    assert frame.loc[("ari", "covered"), "n"] == 3 and frame.loc[("ari", "all"), "n"] == 4
    assert (frame["low"] <= frame["high"]).all()
    assert evaluate_clustering(list("ab"), [0, 1]).to_frame()["low"].isna().all()
    nothing = evaluate_clustering(list("ab"), [-1, -1], n_resamples=5)
    assert math.isnan(nothing.intervals["nmi_covered"][0])


def test_bad_input():
    for labels in (([0, 1], [0]), ([], []), ([0, 1], [0.0, 1.0])):
        with refuses("labels_pred"):
            evaluate_clustering(*labels)
    for missing in (None, float("nan")):
        with refuses("labels_true", row=1):
            evaluate_clustering(np.array(["a", missing, "b"], dtype=object), [0, 1, 1])


def alpha_of(*ratings):
    return krippendorff_alpha(np.array([list(row) for row in ratings], dtype=object)).value


def test_words_of_a_text_are_resampled_together():
    rng = np.random.default_rng(0)
    ratings = np.repeat(rng.integers(0, 2, (2, 40)), 25, axis=1)  # all words of a text alike
    alone, grouped = (
        krippendorff_alpha(ratings, units=units) for units in (None, np.arange(1000) // 25)
    )
    texts = krippendorff_alpha(ratings[:, ::25])
    assert alone.value == grouped.value == pytest.approx(texts.value, abs=0.02)
    assert grouped.high - grouped.low == pytest.approx(texts.high - texts.low, rel=0.05)
    assert alone.high - alone.low < (texts.high - texts.low) / 3


def test_published_alphas():
    # Krippendorff 2011, "Computing Krippendorff's alpha-reliability": examples A, B and C.
    assert alpha_of("0100000010", "1110010000") == pytest.approx(0.095, abs=5e-4)
    assert alpha_of("aabbdcccedda", "babbbccceddd") == pytest.approx(0.692, abs=5e-4)
    four = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]
    rows = [[None if value == "." else value for value in row] for row in four]
    assert alpha_of(*rows) == pytest.approx(0.743, abs=5e-4)
    assert math.isnan(alpha_of("11", "11")) and alpha_of("xy", "xy") == 1.0
    assert math.isnan(alpha_of(["1", None], [None, "2"]))


@given(st.integers(0, 1000))
def test_alpha_equals_that_of_the_package_krippendorff(seed):
    ratings = np.random.default_rng(seed).choice([0.0, 1, 2, 5, np.nan], (4, 12))
    ratings[:2, 0] = 0, 1
    theirs = krippendorff.alpha(reliability_data=ratings, level_of_measurement="nominal")
    named = [[None if math.isnan(value) else str(value) for value in row] for row in ratings]
    assert alpha_of(*named) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_alpha_is_that_of_the_krippendorff_package(level):
    rng = np.random.default_rng(0)
    ratings = np.round(rng.normal(size=40) + rng.normal(0, 0.7, (3, 40)))
    ratings[rng.random(ratings.shape) < 0.1] = np.nan
    found = krippendorff_alpha(ratings, level)
    expected = krippendorff.alpha(ratings, level_of_measurement=level)
    assert found.value == pytest.approx(expected)
    assert found.low < found.value < found.high < found.low + 0.6
    with refuses("level"):
        krippendorff_alpha(ratings, "ratio")
    with refuses("ratings"):
        krippendorff_alpha(ratings[0], level)


ACCURACIES = 0.9, 0.8, 0.7


def test_dawid_skene_finds_the_errors_that_made_the_ratings():
    """The 8 patterns of 3 coders are exactly as frequent as shares and accuracies imply."""
    columns = []
    for pattern in itertools.product("ab", repeat=3):
        of_class = [
            share
            * np.prod([a if r == true else 1 - a for a, r in zip(ACCURACIES, pattern, strict=True)])
            for share, true in ((0.7, "a"), (0.3, "b"))
        ]
        columns += [pattern] * round(10_000 * sum(of_class))
        if pattern == ("a", "b", "b"):
            expected = of_class[0] / sum(of_class)
    result = dawid_skene(np.array(columns).T, n_resamples=20)
    assert result.classes == ("a", "b")
    np.testing.assert_allclose(result.shares, [0.7, 0.3], atol=1e-3)
    assert (result.low < result.shares + 1e-3).all() and (result.shares < result.high).all()
    for confusion, right in zip(result.confusion, ACCURACIES, strict=True):
        np.testing.assert_allclose(confusion, [[right, 1 - right], [1 - right, right]], atol=1e-3)
    row = columns.index(("a", "b", "b"))
    assert result.posterior[row, 0] == pytest.approx(expected, abs=1e-3)
    silent = dawid_skene(np.array([*columns, (None,) * 3], dtype=object).T, n_resamples=2)
    np.testing.assert_allclose(silent.posterior[-1], silent.shares, atol=1e-3)
    with refuses("ratings"):
        dawid_skene(np.array(columns).T[:2])


@pytest.mark.slow
def test_intervals_of_dawid_skene_hold_the_shares():
    share, n_draws, hits = 0.3, 40, 0
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        truth = rng.random(300) < share
        ratings = [np.where(rng.random(300) < right, truth, ~truth) for right in ACCURACIES]
        result = dawid_skene(ratings, n_resamples=100, random_state=seed)
        hits += result.low[1] <= share <= result.high[1]
    assert 0.85 * n_draws <= hits


def test_the_errors_of_coders_are_at_their_fixed_point_if_the_shares_stand_still():
    """Ratings that mean the same with classes exchanged: both shares are a half throughout."""
    patterns = {(0, 0, 0): 30, (0, 0, 1): 14, (0, 1, 0): 9, (1, 0, 0): 3}
    columns = []
    for pattern, times in patterns.items():
        columns += [pattern] * times + [tuple(1 - rating for rating in pattern)] * times
    result = dawid_skene(np.array(columns).T, n_resamples=2)

    # Maximize, step by step, by hand.
    ratings = np.array(columns)
    of_class = np.stack([(ratings == 0).mean(axis=1), (ratings == 1).mean(axis=1)], axis=1)
    for _ in range(2_000):
        shares = of_class.mean(axis=0)
        right = [
            [of_class[ratings[:, coder] == k, k].sum() / of_class[:, k].sum() for k in (0, 1)]
            for coder in range(3)
        ]
        likelihood = np.tile(shares, (len(ratings), 1))
        for coder, k in itertools.product(range(3), (0, 1)):
            is_right = ratings[:, coder] == k
            likelihood[:, k] *= np.where(is_right, right[coder][k], 1 - right[coder][k])
        of_class = likelihood / likelihood.sum(axis=1, keepdims=True)

    assert result.shares == pytest.approx([0.5, 0.5])
    diagonal = result.confusion[:, [0, 1], [0, 1]]
    np.testing.assert_allclose(diagonal, right, atol=1e-4)
    np.testing.assert_allclose(result.posterior, of_class, atol=1e-4)
