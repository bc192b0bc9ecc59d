"""Tests of changes with units that have rows in several periods, such as authors who stay."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from embedtopics import topics
from embedtopics.topics.trends._change_test import UnitTable, _groups_of_sizes
from tests.factories import make_result
from tests.topics.trends.test_over_time import trends_of

N_PERIODS = 12


def trends_by(author, period, topic, n_topics=2):
    """Return trends of rows (n_rows,) with an author, a period and a topic each."""
    parts, place = np.unique(np.stack([period, author]), axis=1, return_inverse=True)
    shape = parts.shape[1], n_topics + 1
    counts = np.zeros((n_topics, N_PERIODS), dtype=int)
    np.add.at(counts, (topic, period), 1)
    totals = np.bincount(period, minlength=N_PERIODS)
    return dataclasses.replace(
        trends_of(counts, totals),
        unit_periods=parts[0],
        unit_counts=csr_matrix((np.ones(len(author)), (place.ravel(), topic)), shape=shape),
        units=np.unique(parts[1], return_inverse=True)[1],
    )


def stays(seed, n_authors=40):
    """Return rows of authors with topics of their own, in four consecutive periods each."""
    rng = np.random.default_rng(seed)
    author = np.repeat(np.arange(n_authors), 32)
    first = np.arange(n_authors) % (N_PERIODS - 3)
    period = first[author] + np.tile(np.arange(32) // 8, n_authors)
    topic = (rng.random(len(author)) < rng.choice([0.0, 1.0], n_authors)[author]).astype(int)
    return author, period, topic


def test_authors_who_stay_with_their_topics_are_no_change():
    found, as_new_authors = [], []
    for seed in range(20):
        trends = trends_by(*stays(seed))
        found.append(topics.changes(trends)["p"][0])
        separate = dataclasses.replace(trends, units=None)
        as_new_authors.append(topics.changes(separate)["p"][0])
    assert np.mean(np.array(found) <= 0.05) <= 0.1
    assert np.mean(np.array(as_new_authors) <= 0.05) >= 0.2


def test_a_change_within_authors_is_found():
    author = np.repeat(np.arange(30), N_PERIODS)
    period = np.tile(np.arange(N_PERIODS), 30)
    topic = (np.random.default_rng(0).random(len(author)) < 0.1 + 0.06 * period).astype(int)
    frame = topics.changes(trends_by(author, period, topic))
    assert frame["verdict"].tolist() == ["falls", "rises"]


def test_draws_keep_the_rows_of_periods_and_topics():
    trends = trends_by(*stays(1))
    table = UnitTable.of(trends, np.arange(2), np.arange(N_PERIODS))
    rng = np.random.default_rng(0)
    for _ in range(3):
        counts = table.blocks.drawn(rng, 2, N_PERIODS)
        assert counts.sum(axis=0).tolist() == trends.totals.tolist()
        assert counts.sum(axis=1).tolist() == trends.counts[:2].sum(axis=1).tolist()
        assert (counts != trends.counts[:2]).any()


def test_neither_the_order_of_rows_nor_the_names_of_authors_matter():
    author, period, topic = stays(2)
    order = np.random.default_rng(1).permutation(len(author))
    renamed = np.random.default_rng(2).permutation(40)[author]
    one = topics.changes(trends_by(author, period, topic))
    other = topics.changes(trends_by(renamed[order], period[order], topic[order]))
    pd.testing.assert_frame_equal(one, other)


def test_units_change_places_with_units_of_about_as_many_rows():
    lengths = np.array([1] * 12 + [2] * 11 + [30] * 8 + [33] * 8 + [90] * 2)
    group = _groups_of_sizes(lengths)
    # Groups have at least ten units, so that the two of 90 rows have others.
    assert [sorted(set(lengths[group == one].tolist())) for one in np.unique(group)] == [
        [1],
        [2],
        [30, 33, 90],
    ]


def test_only_units_of_several_periods_are_numbered_and_reported():
    result = make_result(n_documents=60, n_topics=2)
    dates = pd.Series(pd.date_range("2001-01-15", periods=len(result.corpus), freq="D"))
    alone = topics.over_time(result, "month", time=dates, units=np.arange(len(dates)))
    assert alone.units is None
    stay = topics.over_time(result, "month", time=dates, units=np.arange(len(dates)) % 7)
    assert len(stay.units) == len(stay.unit_periods)
    notes = {note.name: note.value for note in stay.decisions}
    assert notes["units_in_several_periods"] == len(set(stay.units)) == 7


def test_odds_ratios_of_authors_who_stay_are_less_sure():
    trends = trends_by(*stays(3))
    separate = topics.changes(dataclasses.replace(trends, units=None)).iloc[0]
    together = topics.changes(trends).iloc[0]
    assert together["odds_ratio"] == pytest.approx(separate["odds_ratio"])
    assert together["high"] / together["low"] > 1.5 * separate["high"] / separate["low"]
