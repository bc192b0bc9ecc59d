import dataclasses
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, false_discovery_control

from embedtopics import topics
from embedtopics.topics.trends._changes import find_bursts, fit_slopes, strongest_p
from embedtopics.topics.trends.results import CellTerms, TopicTrends
from tests.factories import make_result


def trends_of(counts, totals):
    """Return trends of some topics; the rest of the totals is in none."""
    counts, totals = np.asarray(counts), np.asarray(totals)
    n_topics, n_periods = counts.shape
    every = np.vstack([counts, totals - counts.sum(axis=0)])
    starts = np.arange("2000", str(2000 + n_periods), dtype="M8[Y]").astype("M8[us]")
    return TopicTrends(
        every="year",
        names=tuple(str(2000 + i) for i in range(n_periods)),
        starts=starts,
        ends=starts,
        time_zone="as given",
        labels=tuple(f"topic {i}" for i in range(n_topics)),
        counts=every,
        totals=totals,
        n_effective=totals.astype(float),
        shares=every,
        low=every,
        high=every,
        terms=CellTerms((), np.zeros((n_topics, n_periods, 0), int), np.zeros((0, 0, 0))),
        n_undated=0,
    )


def test_slopes_are_those_of_a_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    totals = rng.integers(20, 200, 9)
    places = np.linspace(-0.5, 0.5, 9)
    counts = rng.binomial(totals, 1 / (1 + np.exp(2 - np.outer([1.5, -0.7, 0.0], places))))
    fitted = fit_slopes(counts, totals, places, 0.95)
    for row in range(3):
        x = np.concatenate([places, places])[:, None]
        y = np.repeat([1, 0], 9)
        weights = np.concatenate([counts[row], totals - counts[row]])
        other = LogisticRegression(C=1e12, tol=1e-12, max_iter=10_000).fit(x, y, weights)
        assert fitted.slope[row] == pytest.approx(other.coef_[0, 0], abs=1e-5)
        ends = other.predict_proba([[-0.5], [0.5]])[:, 1]
        assert (fitted.first[row], fitted.last[row]) == pytest.approx(tuple(ends), abs=1e-6)


def test_interval_and_p_value_say_the_same():
    rng = np.random.default_rng(1)
    totals = rng.integers(50, 150, 15)
    shares = 0.05 * np.exp(np.outer(rng.normal(size=200), np.linspace(-0.5, 0.5, 15)))
    fitted = fit_slopes(rng.binomial(totals, shares), totals, np.linspace(-0.5, 0.5, 15), 0.9)
    excluded = (fitted.low > 0) | (fitted.high < 0)
    assert 20 < excluded.sum() < 180
    assert np.array_equal(excluded, fitted.p < 0.1)
    assert (fitted.low <= fitted.slope).all() and (fitted.slope <= fitted.high).all()


def test_a_topic_at_the_end_only_has_an_infinite_slope_and_a_finite_bound():
    counts = np.array([[0, 0, 0, 0, 0, 0, 0, 30]])
    frame = topics.changes(trends_of(counts, [100] * 8))
    (row,) = frame.to_dict("records")
    assert row["odds_ratio"] > 1e15 and row["high"] == np.inf and 5 < row["low"] < np.inf
    assert row["verdict"] in ("emerging", "bursting") and row["p"] < 1e-6
    assert row["share_first"] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("n_periods", [6, 22])
def test_a_topic_that_sets_in_all_at_once_is_no_steady_one(n_periods):
    # Around a straight line it scatters most of all, and for many periods alike.
    rng = np.random.default_rng(6)
    totals = np.full(n_periods, 150)
    later = np.where(np.arange(n_periods) < n_periods // 2, 0, rng.binomial(150, 0.1, n_periods))
    others = rng.binomial(150, 0.03, size=(10, n_periods))
    frame = topics.changes(trends_of(np.vstack([later, others]), totals))
    assert frame["verdict"][0] in ("emerging", "bursting") and frame["low"][0] > 3
    assert (frame["verdict"][1:] == "no trend found").all()


@pytest.mark.parametrize("dispersed", [False, True])
def test_without_change_few_topics_have_small_p_values(dispersed):
    rng = np.random.default_rng(2)
    totals = rng.integers(500, 1500, 20)
    shares = np.full((2000, 20), 0.03)
    if dispersed:
        shares = rng.beta(0.03 * 150, 0.97 * 150, size=shares.shape)
    fitted = fit_slopes(rng.binomial(totals, shares), totals, np.linspace(-0.5, 0.5, 20), 0.95)
    # four standard errors around 0.05 reach from 0.03 to 0.07; the test may be careful
    assert 0.015 < (fitted.p <= 0.05).mean() < 0.065
    assert (fitted.p <= 0.5).mean() == pytest.approx(0.45, abs=0.08)
    bursts = [
        strongest_p(row, totals, find_bursts(row, totals))
        for row in rng.binomial(totals, shares[:1000])
    ]
    assert np.mean(np.array(bursts) <= 0.05) < 0.05
    assert np.median(fitted.dispersion) == pytest.approx(7.6 if dispersed else 1.0, rel=0.3)


@pytest.mark.parametrize("n_rows", [5, 8])
def test_few_rows_without_change_have_few_small_p_values(n_rows):
    rng = np.random.default_rng(3)
    counts = rng.multinomial(n_rows, np.full(12, 1 / 12), size=1500)
    frame = topics.changes(trends_of(counts, np.full(12, 50_000)))
    assert 0.02 < (frame["p"] <= 0.05).mean() < 0.067
    few = counts[:, :4][counts[:, :4].sum(axis=1) < 5]
    assert topics.changes(trends_of(few, [50_000] * 4))["p"].isna().all()


def test_all_verdicts_on_planted_changes():
    rng = np.random.default_rng(3)
    totals = rng.integers(800, 1200, 24)
    flat = np.full((40, 24), 0.01)
    rising = 0.01 * np.exp(np.linspace(-0.8, 0.8, 24)) * np.ones((10, 1))
    burst = np.full((10, 24), 0.01)
    burst[:, 9:12] *= 4
    shares = np.vstack([flat, rising, rising[:, ::-1], burst])
    frame = topics.changes(trends_of(rng.binomial(totals, shares), totals))
    verdicts = frame["verdict"].to_numpy()
    assert (verdicts[:40] == "no trend found").sum() >= 38
    assert (verdicts[40:50] == "emerging").all()
    assert (verdicts[50:60] == "fading").all()
    assert (verdicts[60:] == "bursting").all()
    assert set(frame["burst_start"][60:]) == {"2009"} and set(frame["burst_end"][60:]) == {"2011"}
    true = np.exp(1.6)
    inside = (frame["low"][40:50] < true) & (true < frame["high"][40:50])
    assert inside.sum() >= 8


def test_a_trend_and_a_burst_can_both_be_said():
    rng = np.random.default_rng(0)
    totals = np.full(24, 1000)
    rising = 0.01 * np.exp(np.linspace(-0.8, 0.8, 24)) * np.ones((10, 1))
    both, late = rising.copy(), np.full((10, 24), 0.01)
    both[:, 7:9] *= 4
    late[:, 20:22] *= 5  # a burst near the end lifts the slope, and is no trend
    shares = np.vstack([rising, both, both[:, ::-1], late, np.full((10, 24), 0.01)])
    verdicts = topics.changes(trends_of(rng.binomial(totals, shares), totals))["verdict"].to_numpy()
    assert (verdicts[:10] == "emerging").all()
    assert (verdicts[10:20] == "emerging, bursting").sum() >= 9
    assert (verdicts[20:30] == "fading, bursting").sum() >= 9
    assert (verdicts[30:40] == "bursting").sum() >= 9
    assert (verdicts[40:] == "no trend found").sum() >= 9


@pytest.mark.parametrize(
    ("n_periods", "least"), [(6, 16), pytest.param(12, 36, marks=pytest.mark.slow)]
)
def test_odds_that_triple_are_found_among_ten_topics(n_periods, least):
    rng = np.random.default_rng(n_periods)
    totals, odds = np.full(n_periods, 400), np.full((10, n_periods), 0.05 / 0.95)
    odds[0] *= 3 ** np.linspace(-0.5, 0.5, n_periods)
    found, wrong = 0, 0
    for _ in range(40):
        counts = rng.binomial(totals, odds / (1 + odds))
        verdicts = topics.changes(trends_of(counts, np.full(n_periods, 400)))["verdict"]
        found += verdicts[0] == "emerging"
        wrong += (verdicts[1:] != "no trend found").any()
    # Before dispersions were shrunken as far as they agree, 5 and 28 of 40.
    assert found >= least and wrong <= 4


def test_a_topic_that_nearly_vanishes_is_fading_where_others_come_and_go():
    rng, place, found = np.random.default_rng(0), np.linspace(0, 1, 12), 0
    for _ in range(20):
        first = 1 / (1 + np.exp(-np.linspace(np.log(2 / 3), np.log(1 / 99), 12)))
        peaks = np.exp(-0.5 * ((place - rng.random(8)[:, None]) / 0.15) ** 2) + 0.05
        shares = np.vstack([first, 0.99 * (1 - first) * peaks / peaks.sum(axis=0)])
        counts = [rng.multinomial(60, [*column, 1 - column.sum()])[:-1] for column in shares.T]
        verdict = topics.changes(trends_of(np.transpose(counts), [60] * 12))["verdict"][0]
        found += verdict.startswith("fading")
    assert found >= 18


def test_copies_of_a_text_make_no_burst():
    totals = np.full(10, 200)
    counts = np.full((1, 10), 10)
    counts[0, 4] = 60
    bursting = trends_of(counts, totals)
    (verdict,) = topics.changes(bursting)["verdict"]
    assert verdict == "bursting"
    worth = totals.astype(float)
    worth[4] = 200**2 / (140 + 60**2)  # sixty rows are of one text
    (verdict,) = topics.changes(dataclasses.replace(bursting, n_effective=worth))["verdict"]
    assert verdict == "no trend found"


def test_q_values_are_those_of_scipy_over_both_tests():
    rng = np.random.default_rng(4)
    totals = rng.integers(100, 200, 10)
    frame = topics.changes(trends_of(rng.binomial(totals, 0.03, size=(20, 10)), totals))
    expected = false_discovery_control(np.concatenate([frame["p"], frame["burst_p"]]))
    assert np.concatenate([frame["q"], frame["burst_q"]]) == pytest.approx(expected)


def test_bursts_are_the_cheapest_of_all_sequences():
    rng = np.random.default_rng(5)
    for _ in range(60):
        n = int(rng.integers(2, 9))
        totals = rng.integers(5, 30, n)
        counts = rng.binomial(totals, rng.choice([0.05, 0.4], n))
        if not 0 < counts.sum() < totals.sum():
            continue
        base = counts.sum() / totals.sum()
        rates = base, min(2 * base, (1 + base) / 2)
        fits = np.array([binom.logpmf(counts, totals, rate) for rate in rates])
        best = None
        for states in product([0, 1], repeat=n):
            entered = sum(now > was for was, now in zip((0, *states), states, strict=False))
            cost = entered * np.log(n) - fits[states, np.arange(n)].sum()
            if best is None or cost < best[0] - 1e-9:
                best = cost, states
        found = np.zeros(n, dtype=int)
        for burst in find_bursts(counts, totals):
            found[burst.first : burst.last + 1] = 1
        assert tuple(found.tolist()) == best[1]


def test_the_strength_of_a_burst_is_kleinbergs_weight():
    counts, totals = np.array([1, 0, 9, 8, 1, 2, 1, 0]), np.full(8, 20)
    (burst,) = find_bursts(counts, totals)
    base = counts.sum() / totals.sum()
    expected = sum(binom.logpmf(r, 20, 2 * base) - binom.logpmf(r, 20, base) for r in counts[2:4])
    assert burst.strength == pytest.approx(expected)
    # the other periods scatter no more than binomial counts, so this is the plain binomial tail
    p = binom.sf(16, counts.sum(), 2 / 8) * 36
    assert strongest_p(counts, totals, [burst]) == pytest.approx(p)


def test_periods_without_rows_are_passed_over():
    totals = np.array([50, 0, 60, 40, 0, 70, 50])
    counts = np.array([[2, 0, 4, 5, 0, 11, 12], [3, 0, 3, 2, 0, 4, 3]])
    frame = topics.changes(trends_of(counts, totals))
    places = np.array([0, 2, 3, 5, 6]) / 6 - 0.5
    held = totals > 0
    fitted = fit_slopes(counts[:, held], totals[held], places, 0.95)
    assert frame["p"].to_numpy() == pytest.approx(fitted.p)


def test_topics_that_cannot_be_tested():
    totals = np.array([10, 10, 10])
    frame = topics.changes(trends_of([[0, 0, 0], [3, 1, 2], [4, 0, 0]], totals))
    assert frame["verdict"].tolist() == ["not tested", "no trend found", "not tested"]
    for counts in ([[10, 10, 10]], [[1, 5]]):
        frame = topics.changes(trends_of(counts, totals[: len(counts[0])]))
        assert frame["verdict"].tolist() == ["not tested"] and np.isnan(frame["q"]).all()
    none = topics.over_time(make_result(n_documents=40, n_topics=0), "week")
    assert len(topics.changes(none)) == 0
