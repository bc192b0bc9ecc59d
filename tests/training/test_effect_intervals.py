"""Figures of resamples against oracles, and intervals that keep their error rate."""

from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from embedtopics.evaluation._bootstrap import interval
from embedtopics.training import _figures as statistics
from embedtopics.training._compare import judge
from embedtopics.training._figures import Difference, Figure, compare_scores, holm, p_of, units_of
from tests.training.tables import examples_of


def weights_of(n, seed):
    return np.random.default_rng(seed).multinomial(n, np.ones(n) / n, size=5).astype(float)


@pytest.mark.parametrize("seed", range(3))
def test_statistics_of_counts_are_those_of_repeated_examples(seed):
    rng = np.random.default_rng(seed)
    n = 60
    scores, truth = rng.normal(size=n).round(1), rng.integers(0, 6, n) / 5
    yes = rng.integers(0, 2, n)
    counts = weights_of(n, seed)
    for row, weights in enumerate(counts.astype(int)):
        drawn = np.repeat(np.arange(n), weights)
        x, y, z = scores[drawn], truth[drawn], yes[drawn]
        for statistic, gold, value in (
            (statistics.rank_correlations, truth, stats.spearmanr(x, y).statistic),
            (statistics.pearson, truth, stats.pearsonr(x, y).statistic),
            (statistics.mean, truth, x.mean()),
            (statistics.auc, yes, roc_auc_score(z, x)),
        ):
            assert statistic(scores, gold)(counts)[row] == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    ("statistic", "n"),
    [
        (statistics.rank_correlations, 60),
        pytest.param(statistics.mean, 60, marks=pytest.mark.slow),
        pytest.param(statistics.auc, 80, marks=pytest.mark.slow),
    ],
)
def test_of_equal_encoders_one_in_twenty_is_called_different(statistic, n, monkeypatch):
    # Finding the libraries of threads takes most of the time of so many small samples.
    monkeypatch.setattr("threadpoolctl.threadpool_limits", lambda **_: nullcontext())
    rng = np.random.default_rng(20260)
    called = 0
    for draw in range(300):
        signal = rng.normal(size=n)
        truth = signal + rng.normal(size=n)
        if statistic is not statistics.rank_correlations:
            truth = (truth > 0).astype(float)
        scores = [signal + rng.normal(size=n) for _ in range(2)]
        if statistic is statistics.mean:
            scores = [(np.sign(score) == np.sign(truth - 0.5)).astype(float) for score in scores]
        figure = Figure("", statistic, *scores, truth, np.arange(n))
        found = compare_scores(figure, 300, draw)
        called += found.p <= 0.05 and (found.low > 0 or found.high < 0)
    # A binomial of 300 and 0.05 is between 5 and 26 in 999 of 1,000 cases; an exact test of few
    # discordant answers may stay below.
    assert (1 if statistic is statistics.mean else 5) <= called <= 26


@settings(deadline=None, max_examples=60)
@given(
    values=st.lists(st.integers(-4, 30), min_size=100, max_size=150),
    half=st.booleans(),
    n_units=st.sampled_from([12, 60, 2000]),
)
def test_the_p_value_is_the_level_at_which_the_interval_reaches_zero(values, half, n_units):
    drawn = np.array(values) + (0.3 if half else 0.0)
    low, high = interval(drawn, n_units)
    found = p_of(drawn, n_units)
    assert found == p_of(-drawn[::-1], n_units)
    if abs(found - 0.05) > 1e-9:
        assert (found < 0.05) == (low > 0 or high < 0)


def test_what_hinders_a_verdict_is_named():
    close = Difference(0.5, 0.6, 0.001, 0.2, 0.049, 200, 150, 0.001)
    assert judge("test", "f", close, 200, "").change.verdict == "better"
    few = Difference(0.5, 0.6, 0.001, 0.2, 0.0625, 200, 5, 0.0625)
    held = judge("test", "f", few, 200, "").change
    assert held.verdict == "no difference shown" and "a test for the 5 of 200" in held.note
    rough = Difference(0.5, 0.6, 0.001, 0.2, 0.06, 4, 4, 0.0)
    held = judge("test", "f", rough, 4, "").change
    assert held.verdict == "no difference shown" and "exact test" not in held.note
    assert "4 independent examples" in held.note


def test_interval_is_that_of_students_t_for_the_mean_of_many_examples():
    rng = np.random.default_rng(1)
    before, after = rng.normal(size=(2, 400))
    figure = Figure("", statistics.mean, before, after + 0.1, before, np.arange(400))
    found = compare_scores(figure, 20_000, 0)
    exact = stats.ttest_rel(after + 0.1, before).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(exact), abs=0.004)
    few = Figure("", statistics.mean, before[:8], after[:8], before[:8], np.arange(8))
    found = compare_scores(few, 20_000, 0)
    exact = stats.ttest_rel(after[:8], before[:8]).confidence_interval(0.95)
    assert found.high - found.low == pytest.approx(exact.high - exact.low, rel=0.15)


def test_a_handful_of_changed_answers_shows_nothing():
    none, places = np.zeros(500), np.arange(500)
    few, enough = (
        compare_scores(Figure("", statistics.mean, none, 1.0 * (places < n), none, places), 2000, 0)
        for n in (5, 12)
    )
    assert few.low > 0  # resamples alone would call it better
    assert few.p == pytest.approx(stats.binomtest(5, 5).pvalue)
    assert enough.p < 0.05


def test_examples_that_share_a_text_are_drawn_together():
    columns = (("a", "b", "c", "x", "y"), ("b", "k", "l", "l", "z"))
    units, _ = units_of(examples_of("pairs", columns))
    assert units[0] == units[1] and units[2] == units[3]
    assert len(set(units.tolist())) == 3
    # Twenty copies of each of 30 answers are 30 witnesses, not 600.
    rng = np.random.default_rng(0)
    scores = np.repeat(rng.normal(size=(2, 30)), 20, axis=1)
    alone, together = (
        compare_scores(Figure("", statistics.mean, *scores, scores[0], units), 2000, 0)
        for units in (np.arange(600), np.repeat(np.arange(30), 20))
    )
    ratio = (together.high - together.low) / (alone.high - alone.low)
    assert ratio == pytest.approx(np.sqrt(20), rel=0.15)


@pytest.mark.parametrize("p", [[0.01, 0.04, 0.03], [0.5], [0.04, 0.04], [0.2, 0.001, 0.9, 0.02]])
def test_holm_is_that_of_the_definition(p):
    order = sorted(range(len(p)), key=p.__getitem__)
    expected, highest = {}, 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p) - rank) * p[i]))
        expected[i] = highest
    assert holm(p) == pytest.approx([expected[i] for i in range(len(p))])
