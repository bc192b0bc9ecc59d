import dataclasses

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import chi2_contingency, false_discovery_control

from benchmarks.trends import SHAPES, simulated_trends
from embedtopics import topics
from embedtopics.topics.trends._over_time import fit_shape
from tests.factories import make_result


def trends_of(counts, totals):
    """Return trends of topics with the shares of `counts`, whose texts are independent."""
    counts, totals = np.asarray(counts), np.asarray(totals)
    trends = simulated_trends(np.ones((len(counts), len(totals))), 1, np.random.default_rng(0))
    periods = np.repeat(np.arange(len(totals)), totals)
    number = np.arange(len(periods)) - np.repeat(np.cumsum(totals) - totals, totals)
    inside = [number < np.repeat(row, totals) for row in counts]
    units = np.array([*inside, 1 - np.sum(inside, axis=0)], dtype=float).T
    every = np.vstack([counts, totals - counts.sum(axis=0)])
    parts = {"unit_periods": periods, "unit_counts": csr_matrix(units)}
    names = tuple(str(2000 + i) for i in range(len(totals)))
    return dataclasses.replace(trends, counts=every, totals=totals, names=names, **parts)


HUMP = [4, 8, 20, 48, 100, 120, 100, 48, 12, 4]


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        (HUMP, "peaks in 2004 to 2006"),
        ([4, 4, 4, 4, 4, 4, 120, 4, 4, 4], "peaks in 2006"),
        ([4, 8, 20, 30, 44, 60, 80, 95, 110, 120], "rises"),
        ([60, 62, 58, 61, 20, 22, 19, 21, 18, 20], "falls"),
        (HUMP[5:] + HUMP[:5], "varies"),
        ([20, 90] * 5, "varies"),
        ([40, 44, 37, 41, 43, 38, 40, 36, 42, 40], "no trend found"),
    ],
)
def test_verdicts(counts, verdict):
    (row,) = topics.changes(trends_of([counts], [400] * 10)).to_dict("records")
    assert row["verdict"] == verdict
    assert (row["q"] <= 0.05) == (row["p"] <= 0.05) == (verdict != "no trend found")
    assert row["low"] < row["odds_ratio"] < row["high"]
    if verdict == "peaks in 2006":
        assert (row["peak_start"], row["share_from"], row["share_to"]) == ("2006", 0.01, 0.3)
        assert row["explained"] == pytest.approx(1)
    if verdict == "rises":  # thirds of four periods
        assert (row["share_from"], row["share_to"]) == (62 / 1600, 405 / 1600)


def test_odds_ratio_and_dispersion_by_hand():
    (row,) = topics.changes(trends_of([[10, 20, 40]], [100] * 3)).to_dict("records")
    table = np.array([[10, 20, 40], [90, 80, 60]])
    # Pearson's chi-square, with n - 1 in the variance of a unit
    chi2 = chi2_contingency(table).statistic * 299 / 300
    assert row["dispersion"] == pytest.approx(chi2 / 2)
    # effective sizes are 100 times 299 / 300, half a text is added to each cell
    n = 100 * 299 / 300
    a, b, c, d = 0.4 * n + 0.5, 0.6 * n + 0.5, 0.1 * n + 0.5, 0.9 * n + 0.5
    assert row["odds_ratio"] == pytest.approx(a * d / (b * c))
    width = 1.959964 * np.sqrt(1 / a + 1 / b + 1 / c + 1 / d)
    assert row["low"] == pytest.approx(a * d / (b * c) * np.exp(-width))


def test_a_constant_share_has_few_small_p_values_and_q_are_those_of_scipy():
    rng = np.random.default_rng(3)
    frame = topics.changes(simulated_trends(np.full((300, 12), 0.05), 60, rng))
    assert 0.015 < (frame["p"] <= 0.05).mean() < 0.09
    assert (frame["p"] <= 0.5).mean() == pytest.approx(0.5, abs=0.1)
    assert frame["q"].to_numpy() == pytest.approx(false_discovery_control(frame["p"]))
    assert (frame["verdict"] == "no trend found").all()


@pytest.mark.parametrize("name", list(SHAPES))
def test_shapes_have_their_words(name):
    change, word = SHAPES[name]
    shares = 1 / (1 + 19 * np.exp(-2 * change))
    assert fit_shape(shares, 400 / (shares * (1 - shares))).word == word


def test_rows_of_one_unit_are_no_change():
    trends = trends_of([[10, 10, 60, 10, 10, 10]], [200] * 6)
    assert topics.changes(trends)["verdict"][0] == "peaks in 2002"
    rows = trends.unit_counts.toarray()
    copies = (trends.unit_periods == 2) & (rows[:, 0] > 0)
    merged = np.vstack([rows[~copies], [[60, 0]]])
    periods = np.append(trends.unit_periods[~copies], 2)
    one = dataclasses.replace(trends, unit_periods=periods, unit_counts=csr_matrix(merged))
    assert topics.changes(one)["verdict"][0] == "no trend found"


def test_the_order_of_units_does_not_matter():
    trends = trends_of([[3, 8, 4, 9], [20, 9, 14, 11]], [50, 40, 30, 60])
    order = np.random.default_rng(0).permutation(180)
    parts = {"unit_periods": trends.unit_periods[order], "unit_counts": trends.unit_counts[order]}
    frame = topics.changes(dataclasses.replace(trends, **parts))
    assert frame["p"].tolist() == topics.changes(trends)["p"].tolist()


def test_periods_without_rows_are_passed_over():
    with_gaps = topics.changes(trends_of([[2, 0, 4, 5, 0, 11, 12]], [50, 0, 60, 40, 0, 70, 50]))
    without = topics.changes(trends_of([[2, 4, 5, 11, 12]], [50, 60, 40, 70, 50]))
    assert with_gaps["p"].tolist() == without["p"].tolist()


def test_topics_that_cannot_be_tested():
    totals = np.array([10, 10, 10])
    frame = topics.changes(trends_of([[0, 0, 0], [3, 1, 2], [4, 0, 0]], totals))
    assert frame["verdict"].tolist() == ["not tested", "no trend found", "not tested"]
    for counts in ([[10, 10, 10]], [[1, 5]]):
        frame = topics.changes(trends_of(counts, totals[: len(counts[0])]))
        assert frame["verdict"].tolist() == ["not tested"] and np.isnan(frame["q"]).all()
    none = topics.over_time(make_result(n_documents=40, n_topics=0), "week")
    assert len(topics.changes(none)) == 0
