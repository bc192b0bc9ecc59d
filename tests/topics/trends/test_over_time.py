"""Topics over time: shares, and tests of change."""

import dataclasses
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import chi2_contingency

from benchmarks.trends import SHAPES, simulated_trends
from embedtopics import topics
from embedtopics.clustering.results import NOISE
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import wilson
from embedtopics.topics.trends._over_time import fit_shape
from tests.factories import make_result, refuses
from tests.topics.trends.conftest import assert_weights, weights_of


def test_counts_are_those_of_a_cross_table_of_rows(result):
    trends = topics.over_time(result, "month")
    frame = topics.documents(result)
    frame = frame[frame["status"] == "text"]
    months = frame["date"].dt.strftime("%Y-%m")
    expected = pd.crosstab(frame["topic"], months)
    found = trends.to_frame().pivot(index="topic", columns="period", values="count")
    assert (found == expected.reindex_like(found)).all(axis=None)
    assert trends.totals.tolist() == months.value_counts().sort_index().tolist()
    assert trends.shares.sum(axis=0) == pytest.approx(1.0)
    assert trends.counts[NOISE].sum() == (frame["topic"] == NOISE).sum()


def test_periods_without_rows_have_no_share(result):
    dates = np.where(np.arange(len(result.corpus)) % 2, "2020-01-15", "2020-04-02")
    trends = topics.over_time(result, "month", time=dates)
    assert trends.names == ("2020-01", "2020-02", "2020-03", "2020-04")
    assert trends.totals[1] == 0 and (trends.counts[:, 1] == 0).all()
    for values in (trends.shares, trends.low, trends.high):
        assert np.isnan(values[:, 1:3]).all() and not np.isnan(values[:, [0, 3]]).any()
    assert trends.terms.of(0, 1) == () and trends.terms.of(0, 0) != ()
    years = [1998] + [2001] * (len(dates) - 1)
    assert topics.over_time(result, time=years).names[0] == "1998"


def test_rows_without_a_date_are_left_out_and_counted(result):
    dates = result.corpus.time.copy()
    dates.iloc[:40] = pd.NaT
    trends = topics.over_time(result, "month", time=dates)
    with_text = int((result.distinct.of_row >= 0).sum())
    assert trends.totals.sum() == with_text - 40
    assert any(d.name == "rows_without_date" and d.value == 40 for d in trends.decisions)


def test_times_with_zones_are_cut_by_the_clocks_of_their_places(result):
    zone = timezone(timedelta(hours=5))
    moment = datetime(2021, 2, 1, 2, tzinfo=zone)  # still January in Greenwich
    dates = [datetime(2021, 3, 1, 2, tzinfo=UTC)] + [moment] * (len(result.corpus) - 1)

    trends = topics.over_time(result, "month", time=dates)

    assert trends.time_zone == "local"
    assert trends.names == ("2021-02", "2021-03")
    assert any(d.name == "time_zone" for d in trends.decisions)
    assert topics.over_time(result, "month").time_zone == "as given"


def test_dates_that_are_not_there():
    result = make_result(dated=False)
    for time in (None, ["2021", "2022", "2023"], "published", [None] * len(result.corpus)):
        with refuses("time"):
            topics.over_time(result, time=time)
    with pytest.raises(InputError):
        topics.over_time(result, time=["2021", "maybe", *["2021"] * (len(result.corpus) - 2)])


def test_term_weights_are_the_averages_that_bertopic_describes(oracle):
    # BERTopic 0.17.4 assigns the average with the period before to a copy, so that its own switch
    # changes nothing; what it describes is computed here from its untuned weights.
    result, model, rows, texts = oracle
    rng = np.random.default_rng(4)
    bins = rng.choice([2000, 2001, 2003, 2004], len(result.corpus))  # nothing in 2002
    bins[(result.labels == 1) & (bins == 2001)] = 2000  # a topic that is away for once
    untuned = {"evolution_tuning": False, "global_tuning": False}
    seen, table = weights_of(model, "topics_over_time", texts, bins[rows].tolist(), **untuned)
    overall = result.topic_terms.toarray()
    overall /= overall.sum(axis=1, keepdims=True)
    trends = topics.over_time(result, "year", time=bins, n_terms=len(result.term_counts.terms))
    before = {}
    for period, (present, weights) in zip([0, 1, 3, 4], seen, strict=True):
        tuned = weights / weights.sum(axis=1, keepdims=True)
        for row, topic in enumerate(present):
            if topic in before:
                tuned[row] = (tuned[row] + before[topic]) / 2
            tuned[row] = (tuned[row] + overall[topic]) / 2
        before = dict(zip(present, tuned, strict=True))
        assert_weights(trends.terms, period, present, tuned)
    assert 1 not in seen[1][0]
    assert trends.terms.of(0, 2) == ()
    frequency = table.pivot(index="Topic", columns="Timestamp", values="Frequency").fillna(0)
    assert (frequency.to_numpy() == trends.counts[:-1][:, [0, 1, 3, 4]]).all()


def test_the_few_best_terms_are_the_first_of_all(result):
    few = topics.over_time(result, "week", n_terms=4).terms
    every = topics.over_time(result, "week", n_terms=len(result.term_counts.terms)).terms
    assert np.array_equal(few.ids, every.ids[:, :, :4])
    assert np.array_equal(few.weights, every.weights[:, :, :4])


@pytest.mark.parametrize(("n_units", "n_copies", "agreement"), [(60, 5, 1.0), (60, 8, 0.3)])
def test_intervals_of_rows_by_few_authors_hold_the_share(n_units, n_copies, agreement):
    base = make_result(n_documents=480, n_topics=3)
    rng = np.random.default_rng(0)
    shares, n = np.array([0.05, 0.15, 0.3, 0.5]), n_units * n_copies
    rows = np.flatnonzero(base.distinct.of_row >= 0)
    rows = rows[np.unique(base.distinct.of_row[rows], return_index=True)[1]][:n]
    held, alone = [], []
    for _ in range(40):
        taste = np.eye(4)[rng.choice(4, n_units, p=shares)]
        if agreement < 1:
            taste = rng.dirichlet(shares * (1 - agreement) / agreement, n_units)
        author = np.repeat(np.arange(n_units), n_copies)
        year = 2000 + rng.integers(0, 5, n_units)[author]
        labels = (taste[author].cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1)
        of_document = np.full(len(base.distinct), NOISE, dtype=np.int32)
        of_document[base.distinct.of_row[rows]] = np.where(labels >= 3, NOISE, labels)
        clustering = dataclasses.replace(base.clustering, labels=of_document)
        result = dataclasses.replace(base, clustering=clustering)
        dates, names = (np.full(len(base.corpus), None, dtype=object) for _ in range(2))
        dates[rows], names[rows] = [f"{one}-05-01" for one in year], [f"a{a}" for a in author]
        for found, units in ((held, names), (alone, None)):
            one = topics.over_time(result, "year", time=dates, units=units, n_terms=0)
            found.append(((one.low[:3].T <= shares[:3]) & (one.high[:3].T >= shares[:3])).mean())
            assert (one.n_effective <= one.totals + 1e-9).all()
    assert np.mean(held) > 0.92 > 0.8 > np.mean(alone)
    assert one.low == pytest.approx(wilson(one.counts, one.totals)[0])


def test_passages_of_a_document_are_one_unit():
    result = make_result(n_documents=60, n_topics=2)
    document = [f"d{row // 5}" for row in range(len(result.corpus))]
    by_hand = topics.over_time(result, "year", units=document)
    result.corpus.metadata["passage_of"] = document
    default = topics.over_time(result, "year")
    assert default.low == pytest.approx(by_hand.low)
    assert default.unit_counts.shape[0] == by_hand.unit_counts.shape[0] < len(set(document)) * 3
    assert [d.name for d in default.decisions] == ["correlation_in_units"]


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


def test_a_constant_share_has_few_small_p_values():
    rng = np.random.default_rng(3)
    frame = topics.changes(simulated_trends(np.full((120, 12), 0.05), 60, rng))
    assert 0.015 < (frame["p"] <= 0.05).mean() < 0.09
    assert (frame["p"] <= 0.5).mean() == pytest.approx(0.5, abs=0.1)
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
