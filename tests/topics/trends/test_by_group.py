import numpy as np
import pandas as pd
import pytest

from embedtopics import topics
from embedtopics.evaluation._bootstrap import wilson
from embedtopics.terms._weighting import log_odds
from embedtopics.topics.trends import _by_group
from tests.factories import refuses
from tests.topics.trends.conftest import assert_weights, weights_of


@pytest.fixture(scope="module")
def sources(result):
    return np.random.default_rng(1).choice(["post", "times", "herald"], len(result.corpus))


def test_counts_and_shares_are_those_of_a_cross_table(result, sources):
    groups = topics.by_group(result, sources)
    has_text = result.distinct.of_row >= 0
    expected = pd.crosstab(result.labels[has_text], sources[has_text])
    found = groups.to_frame().pivot(index="topic", columns="group", values="count")
    assert (found == expected.reindex_like(found)).all(axis=None)
    assert list(groups.totals) == sorted(groups.totals, reverse=True)
    assert groups.shares == pytest.approx(groups.counts / groups.totals)
    # Rows of one text in one group have one topic, and are worth a single row.
    place = [sources == name for name in groups.names]
    counted = [np.bincount(result.distinct.of_row[has_text & own]) for own in place]
    effective = groups.totals**2 / [float(sizes @ sizes) for sizes in counted]
    low, high = wilson(groups.shares * effective, effective)
    assert groups.low == pytest.approx(low) and groups.high == pytest.approx(high)


def test_term_weights_equal_those_of_bertopic(oracle):
    result, model, rows, texts = oracle
    rng = np.random.default_rng(5)
    sources = rng.choice(["a", "b", "c"], len(result.corpus), p=[0.6, 0.3, 0.1])
    seen, table = weights_of(model, "topics_per_class", texts, sources[rows].tolist())
    classes = table["Class"].unique()
    groups = topics.by_group(result, sources, n_terms=len(result.term_counts.terms))
    assert len(seen) == 3
    for name, (present, expected) in zip(classes, seen, strict=True):
        assert_weights(groups.terms, groups.names.index(name), present, expected)
    for row in table.itertuples():
        assert groups.counts[row.Topic, groups.names.index(row.Class)] == row.Frequency


def test_distinctive_terms_are_those_of_the_log_odds_within_the_topic(result, sources):
    groups = topics.by_group(result, sources, n_terms=6)
    counts = result.term_counts.counts
    of_row = result.distinct.of_row
    for topic in (0, 3):
        held = {}
        for name in groups.names:
            rows = np.flatnonzero((result.labels == topic) & (sources == name))
            held[name] = np.asarray(counts[of_row[rows]].sum(axis=0)).ravel()
        together = sum(held.values())
        for place, name in enumerate(groups.names):
            z = log_odds(held[name], together - held[name], together / 3)
            best = np.argsort(-z, kind="stable")[:6]
            assert groups.distinctive.ids[topic, place].tolist() == best.tolist()
            assert groups.distinctive.weights[topic, place] == pytest.approx(z[best])


def test_rows_without_a_group_are_left_out(result):
    source = np.array(["a"] * len(result.corpus), dtype=object)
    source[:20], source[20:30], source[30] = None, " ", "b"
    groups = topics.by_group(result, source)
    assert groups.names == ("a", "b") and groups.totals[1] == 1
    expected = {"rows_without_group": 30, "missing_classes": 10}
    assert {d.name: d.value for d in groups.decisions} == expected


def test_spellings_of_one_group_are_one(result):
    source = np.array(["Go\u0308teborg", "Göteborg", " Göteborg ", "n/a", "Malmö"], dtype=object)
    source = np.resize(source, len(result.corpus))

    groups = topics.by_group(result, source)

    assert groups.names == ("Göteborg", "Malmö")


def test_many_groups_are_put_together(result, monkeypatch):
    monkeypatch.setattr(_by_group, "MAX_GROUPS", 5)
    source = [f"s{i % 50 if i > 200 else 0}" for i in range(len(result.corpus))]
    groups = topics.by_group(result, source)
    assert groups.names[0] == "s0" and groups.names[-1] == "(other)" and len(groups.names) == 5
    assert groups.totals.sum() == (result.distinct.of_row >= 0).sum()
    assert groups.decisions[0].value == 46


def test_numbers_ascend(result):
    numbers = pd.Series(np.where(np.arange(len(result.corpus)) % 3, 10.0, 9.0))
    numbers[3] = np.nan
    found = topics.by_group(result, numbers)
    assert found.names == ("9", "10") and found.totals[0] < found.totals[1]
    assert [d.name for d in found.decisions] == ["rows_without_group"]


def test_groups_that_are_not_there(result):
    n_rows = len(result.corpus)
    for group in (None, "source", ["a", "b"], [None] * n_rows):
        with refuses("by"):
            topics.by_group(result, group)
