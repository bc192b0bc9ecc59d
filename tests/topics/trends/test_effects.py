import copy
import dataclasses

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from embedtopics import topics
from embedtopics.clustering.results import NOISE
from embedtopics.plots import forest
from embedtopics.topics.trends import _effects
from tests.factories import each, make_result, refuses


@pytest.fixture(scope="module")
def source(result):
    return np.random.default_rng(1).choice(["post", "times", "herald"], len(result.corpus))


def dummies(result, source):
    """Return the design, made by hand: months from the mean, two levels against the largest."""
    rows = np.flatnonzero(result.distinct.of_row >= 0)
    seconds = (result.corpus.time - pd.Timestamp("1970-01-01")).dt.total_seconds().to_numpy()[rows]
    months = seconds / (365.2425 / 12 * 86400)
    levels = pd.Series(source[rows]).value_counts().index
    columns = [np.ones(len(rows)), months - months.mean()]
    columns += [(source[rows] == level).astype(float) for level in levels[1:]]
    return rows, np.column_stack(columns), levels


def effects_with(replicates, monkeypatch, *args, **options):
    """Return the effects with replicates whose labels are given."""
    with monkeypatch.context() as patch:
        patch.setattr(_effects, "draw_replicates", lambda *_: replicates)
        return topics.effects(*args, n_replicates=len(replicates), **options)


def test_coefficients_are_those_of_least_squares(result, source):
    rows, design, levels = dummies(result, source)
    found = topics.effects(result, {"date": "date", "source": source})
    assert found.references == {"source": levels[0]}
    assert found.columns[2:] == tuple(f"source: {level}" for level in levels[1:])
    shares = result.labels[rows][:, None] == np.array([*range(result.n_topics), NOISE])
    expected = np.linalg.lstsq(design, shares.astype(float), rcond=None)[0]
    assert found.coefficients == pytest.approx(expected.T, abs=1e-6)
    assert found.coefficients[:, 1:].sum(axis=0) == pytest.approx(0.0, abs=1e-6)
    assert found.carries.startswith("sampling error only")


def test_one_group_covariate_gives_the_differences_of_shares(result, source):
    found = topics.effects(result, {"source": source}, reference={"source": "herald"})
    groups = topics.by_group(result, source)
    herald = groups.shares[:, groups.names.index("herald")]
    for column in (1, 2):
        other = groups.shares[:, groups.names.index(found.levels[column])]
        assert found.coefficients[:, column] == pytest.approx(other - herald)


def test_resamples_draw_distinct_texts_with_all_their_rows(result, source):
    # the interval is compared with one that is drawn by hand
    rows, design, _ = dummies(result, source)
    found = topics.effects(result, {"date": "date", "source": source})
    of_row = result.distinct.of_row[rows]
    members = [np.flatnonzero(of_row == d) for d in range(len(result.distinct))]
    shares = (result.labels[rows] == 0).astype(float)
    rng = np.random.default_rng(9)
    drawn = []
    for _ in range(600):
        taken = np.concatenate([members[d] for d in rng.integers(0, len(members), len(members))])
        drawn.append(np.linalg.lstsq(design[taken], shares[taken], rcond=None)[0])
    assert found.errors[0] == pytest.approx(np.std(drawn, axis=0), rel=0.12)


@pytest.mark.slow
@pytest.mark.smoke
def test_intervals_hold_planted_effects_nineteen_times_in_twenty():
    base = make_result(n_documents=400, n_topics=3, dated=False)
    rng = np.random.default_rng(4)
    n_documents, of_row = len(base.distinct), base.distinct.of_row
    inside = []
    for number in range(120):
        x = rng.uniform(-1, 1, n_documents)
        group = rng.integers(0, 2, n_documents)
        first = 0.3 + 0.15 * x + 0.1 * group  # and the others share the rest
        u = rng.random(n_documents)
        labels = np.where(u < first, 0, np.where(u < first + (1 - first) / 2, 1, 2))
        result = dataclasses.replace(
            base, clustering=dataclasses.replace(base.clustering, labels=labels.astype(np.int32))
        )
        found = topics.effects(
            result,
            {"x": x[of_row], "group": np.where(group[of_row] == 1, "b", "a")},
            reference={"group": "a"},
            random_state=number,
        )
        true = np.array([[0.15, 0.1], [-0.075, -0.05], [-0.075, -0.05]])
        low, high = found.low[:3, 1:], found.high[:3, 1:]
        inside.append((low < true) & (true < high))
        assert found.coefficients[:3, 1:] == pytest.approx(true, abs=0.25)
    # six figures of 120 runs; those of a run are not independent
    assert 0.91 < np.mean(inside) < 0.98


def test_topics_that_do_not_come_back_have_wider_intervals(result, source, monkeypatch):
    labels = result.clustering.labels
    rng = np.random.default_rng(2)
    replicates = []
    for _ in range(20):
        found = labels.copy()
        found[labels == 1] = np.where(rng.random((labels == 1).sum()) < 0.5, 1, NOISE)
        found[rng.random(len(found)) < 0.5] = -2
        replicates.append(found)
    plain = topics.effects(result, {"source": source})
    carried = effects_with(replicates, monkeypatch, result, {"source": source})
    width, wider = plain.high - plain.low, carried.high - carried.low
    assert np.array_equal(plain.coefficients, carried.coefficients)
    assert (wider[1, 1:] > 1.1 * width[1, 1:]).all()
    for topic in (0, 2, 3, 4, 5):  # these come back as they are
        assert wider[topic] == pytest.approx(width[topic])
    assert "20 replicates" in carried.carries
    none = topics.effects(result, {"source": source}, n_replicates=0)
    assert none.n_replicates == 0 and np.array_equal(none.low, plain.low)


def test_replicates_are_made_of_a_fit(branched):
    source = np.where(np.arange(len(branched.corpus)) % 2, "a", "b")
    found = topics.effects(branched, {"source": source}, n_replicates=2)
    assert found.n_replicates == 2 and np.isfinite(found.low).all()
    again = topics.effects(branched, {"source": source}, n_replicates=2)
    assert np.array_equal(found.low, again.low)
    by_default = topics.effects(branched, {"source": source})
    assert by_default.n_replicates == 25 and not by_default.decisions
    foreign = dataclasses.replace(branched, tree=None)
    (note,) = topics.effects(foreign, {"source": source}).decisions
    assert note.name == "no_replicates" and "default stages" in note.message


def test_a_replicate_without_a_level_changes_nothing_of_it(result, monkeypatch):
    labels = result.clustering.labels
    level = np.where(np.arange(len(result.corpus)) < 6, "b", "a")
    inside = result.distinct.of_row[:6]
    without = labels.copy()
    without[inside] = -2
    plain, carried = (
        effects_with(given, monkeypatch, result, {"level": level}) for given in ([], [without])
    )
    assert carried.n_replicates == 1 and np.isfinite(carried.low).all()
    assert carried.errors == pytest.approx(plain.errors, abs=1e-9)


def test_formula_list_and_frame_say_the_same(result, source):
    result = with_columns(result, source=source)
    forms = ["~ date + source", ["date", "source"], {"date": "date", "source": source}]
    found = [topics.effects(result, form) for form in forms]
    assert np.array_equal(found[0].low, found[1].low)
    assert np.array_equal(found[0].low, found[2].low)


def test_rows_that_lack_a_covariate_are_left_out(result, source):
    some = source.astype(object)
    some[:50] = None
    found = topics.effects(result, {"source": some})
    assert found.n_rows == (result.distinct.of_row[50:] >= 0).sum()
    assert found.decisions[0].value == 50


def test_rare_levels_are_put_together_and_one_of_them_has_a_wide_interval(result, source):
    some = source.astype(object)
    some[0] = "once"
    found = topics.effects(result, {"source": some}, n_replicates=0)
    assert "source: once" in found.columns and not found.decisions
    column = found.columns.index("source: once")
    assert (found.high - found.low)[0, column] > 0.9
    some[:6] = ["once", "twice", "twice", "(other)", "(other)", "(other)"]
    found = topics.effects(result, {"source": some}, n_replicates=0)
    (note,) = found.decisions
    assert note.name == "source_levels_pooled" and note.value == 3
    assert "source: (other)" in found.columns and len(found.columns) == 4
    named = topics.effects(result, {"source": some}, reference={"source": "twice"}, n_replicates=0)
    assert named.references == {"source": "twice"} and len(named.columns) == 5


@pytest.mark.parametrize("n_level", [6, 12])
def test_levels_of_a_dozen_rows_hold_their_effect(n_level):
    base = make_result(n_documents=300, n_topics=3, dated=False)
    rng = np.random.default_rng(n_level)
    n, shares, held = len(base.distinct), np.array([0.05, 0.2, 0.5]), []
    for number in range(50):
        labels = np.minimum(np.searchsorted(shares.cumsum(), rng.random(n)), 3)
        labels = np.where(labels == 3, NOISE, labels).astype(np.int32)
        result = dataclasses.replace(
            base, clustering=dataclasses.replace(base.clustering, labels=labels)
        )
        level = np.where(rng.permutation(n) < n_level, "rare", "usual")[base.distinct.of_row]
        found = topics.effects(result, {"level": level}, n_replicates=0, random_state=number)
        held.append((found.low[:3, 1] <= 0) & (found.high[:3, 1] >= 0))
    # Percentiles of resampled texts hold the first in 27 to 45 % of the cases.
    assert (np.mean(held, axis=0) > 0.9).all()


def test_rows_of_an_author_are_no_more_than_one_witness():
    base = make_result(n_documents=300, n_topics=3, dated=False)
    rng = np.random.default_rng(0)
    n, of_row, held, alone = len(base.distinct), base.distinct.of_row, [], []
    for number in range(30):
        author = rng.integers(0, 30, n)
        taste = rng.dirichlet(np.full(4, 0.7), 30)[author]
        labels = (taste.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1)
        labels = np.where(labels == 3, NOISE, labels).astype(np.int32)
        result = dataclasses.replace(
            base, clustering=dataclasses.replace(base.clustering, labels=labels)
        )
        group = np.where(author % 2, "odd", "even")[of_row]
        names = np.array([f"author {a}" for a in author])[of_row]
        for found, units in ((held, names), (alone, None)):
            one = topics.effects(
                result, {"group": group}, units=units, n_replicates=0,
                random_state=number,
            )  # fmt: skip
            found.append((one.low[:3, 1] <= 0) & (one.high[:3, 1] >= 0))
            assert any("correlate" in d.message for d in one.decisions) == (units is not None)
    assert np.mean(held) > 0.9 > 0.75 > np.mean(alone)


COVARIATES = ["y ~ date", "0 + date", "~ 1", []]
COLUMNS = {
    "same": ["x"] * 313,
    "flat": [2.0] * 313,
    "wide": [np.inf] * 313,
    "short": [1, 2],
    "many": [f"v{i}" for i in range(313)],
}


@pytest.mark.parametrize(
    ("covariates", "parameter"),
    [
        *((covariates, "formula") for covariates in COVARIATES),
        *(({name: column}, name) for name, column in COLUMNS.items()),
        ({"gone": [None] * 313}, "formula"),
        ("~ weather", "weather"),
    ],
)
def test_bad_covariates(result, covariates, parameter):
    assert len(result.corpus) == 313
    with refuses(parameter):
        topics.effects(result, covariates)


@pytest.mark.parametrize("apart", [0.0, 1e-9, 1e-7, 1e-6, 1e-5])
def test_numbers_that_nearly_follow_from_others_are_refused(result, apart):
    rng = np.random.default_rng(0)
    x = rng.normal(size=len(result.corpus))
    near = 3 * x + apart * rng.normal(size=len(x))
    place = np.where(x > 0, "north", "south")
    with refuses("formula"):
        topics.effects(result, {"source": place == "north", "place": place})
    with refuses("formula"):
        topics.effects(result, {"a": x, "c": rng.normal(size=len(x)), "b": near})
    found = topics.effects(result, {"a": x, "b": 3 * x + 1e-2 * rng.normal(size=len(x))})
    assert np.isfinite(found.low).all()
    assert {one.name for one in found.decisions} == {"no_replicates"}


@pytest.mark.parametrize(("days", "unit", "length"), [
    (50, "day", 1.0), (500, "month", 365.2425 / 12), (5000, "year", 365.2425),
])  # fmt: skip
def test_dates_count_in_a_unit_that_fits_their_span(result, days, unit, length):
    place = np.linspace(0, days, len(result.corpus))
    dates = pd.Timestamp("2001-01-01") + pd.to_timedelta(place, unit="D")
    found = topics.effects(result, {"when": dates.to_numpy()})
    plain = topics.effects(result, {"when": place / length})
    assert found.units == {"when": unit}
    assert found.coefficients[:, 1] == pytest.approx(plain.coefficients[:, 1], abs=1e-6)


def test_dates_and_numbers_among_missing_values_are_counted(result):
    dates = [None, *(moment.date() for moment in result.corpus.time[1:].dt.normalize())]
    numbers = np.array([None, *(i % 7 for i in range(1, len(dates)))], dtype=object)
    found = topics.effects(result, {"when": dates, "how_many": numbers})
    assert found.columns == ("intercept", "when", "how_many")
    assert found.units == {"when": "month", "how_many": "unit"}
    same = topics.effects(
        result,
        {"when": result.corpus.time.where(numbers != None), "how_many": pd.to_numeric(numbers)},  # noqa: E711
    )
    assert same.coefficients == pytest.approx(found.coefficients)


def test_many_levels_take_the_memory_of_the_rows_and_not_of_all_pairs_of_levels(monkeypatch):
    import tracemalloc

    n_levels, n_documents = 20, 2000
    result = make_result(n_documents=n_documents, n_topics=2, dated=False)
    rng = np.random.default_rng(0)
    levels = {
        name: rng.integers(0, n_levels, len(result.corpus)).astype(str) for name in ("a", "b")
    }
    tracemalloc.start()
    topics.effects(result, levels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n_documents * (2 * n_levels) ** 2 / 3


WRONG = each(
    reference=[{"source": "mirror"}, {"date": "2020"}],
    link=["probit"],
    topics=[[99], [-1], {"none": []}],
    units=["nobody", [1, 2]],
    n_replicates=[-1],
)


@pytest.mark.parametrize(
    ("options", "parameter"),
    [*(({name: value}, name) for name, value in WRONG), ({"n_replicates": 3}, "result")],
)
def test_bad_options(result, source, options, parameter):
    with refuses(parameter):
        topics.effects(result, {"source": source}, **options)


def with_columns(result, **columns):
    corpus = copy.copy(result.corpus)
    vars(corpus)["metadata"] = corpus.metadata.assign(**columns)
    return dataclasses.replace(result, corpus=corpus)


def test_interactions_are_those_of_least_squares(result, source):
    words = np.arange(len(source)) % 17
    result = with_columns(result, source=source, words=words)
    found = topics.effects(result, "~ words * source", n_replicates=0)
    reference = found.references["source"]
    others = found.levels[2:4]
    assert found.covariates[4:] == ("words:source",) * 2 and found.levels[4:] == others
    used = result.distinct.of_row >= 0
    levels = np.array([source == level for level in others], dtype=float)
    centred = words - words[used].mean()
    raw = np.vstack([np.ones(len(words)), centred, levels, levels * centred])[:, used].T
    inside = np.equal.outer(result.labels[used], [*range(result.n_topics), -1]).astype(float)
    expected = np.linalg.lstsq(raw, inside, rcond=None)[0].T
    assert reference not in others
    assert found.coefficients == pytest.approx(expected, abs=1e-9)


def test_splines_have_a_column_for_each_basis_function(result, source):
    result = with_columns(result, source=source)
    found = topics.effects(result, "~ bs(date, df=4) + source", n_replicates=0)
    assert found.covariates[1:5] == ("bs(date, df=4)",) * 4
    assert found.levels[1:5] == ("1", "2", "3", "4")
    assert found.coefficients.sum(axis=0)[1:] == pytest.approx(0, abs=1e-9)
    assert np.isfinite(found.errors).all()


def test_the_logit_link_is_that_of_quasi_likelihood(result, source):
    rows, design, levels = dummies(result, source)
    covariates = {"date": "date", "source": source}
    found = topics.effects(result, covariates, link="logit", n_replicates=0)
    y = (result.labels[rows] == 0).astype(float)
    clusters = {"cov_type": "cluster", "cov_kwds": {"groups": result.distinct.of_row[rows]}}
    theirs = sm.GLM(y, design, family=sm.families.Binomial()).fit(**clusters)
    assert found.coefficients[0] == pytest.approx(theirs.params, rel=1e-6)
    assert found.errors[0] == pytest.approx(theirs.bse, rel=0.03)  # HC3 for theirs of clusters
    effects = found.marginal_effects().set_index(["topic", "level"])
    other = design.copy()
    other[:, 2:] = 0.0
    base = theirs.predict(other).mean()
    other[:, 2] = 1.0
    assert effects.loc[(0, levels[1]), "effect"] == pytest.approx(
        theirs.predict(other).mean() - base
    )
    assert effects.loc[0, "share"].iloc[0] == pytest.approx(y.mean())


def test_topics_add_up(result, source):
    covariates = {"source": source}
    plain = topics.effects(result, covariates)
    both = topics.effects(result, covariates, topics={"both": [0, 2], "one": 1})
    assert both.topics == ("0+2", 1) and both.topic_names == ("both", "one")
    assert both.coefficients[0] == pytest.approx(plain.coefficients[[0, 2]].sum(axis=0))
    pd.testing.assert_frame_equal(plain.marginal_effects(), plain.to_frame())
    points = 100 * both.marginal_effects()["effect"][::2]
    assert list(forest(both).data[0].x) == points.tolist()
    table = both.to_latex()
    assert f"Rows & {both.n_rows:,}" in table and both.topic_names[0] in table


def test_a_level_without_a_topic_has_finite_log_odds(result):
    of_topic = result.labels == 0
    level = np.where(np.cumsum(~of_topic) * ~of_topic % 20 == 1, "without", "with")
    found = topics.effects(result, {"level": level}, link="logit", n_replicates=0)
    assert "separate" in found.decisions[-1].message
    # Half a text is added inside and outside at both levels (Haldane 1940).
    used = result.distinct.of_row >= 0
    a, b = (np.sum(used & of_topic & (level == one)) + 0.5 for one in ("without", "with"))
    c, d = (np.sum(used & ~of_topic & (level == one)) + 0.5 for one in ("without", "with"))
    assert found.coefficients[0, 1] == pytest.approx(np.log(a * d / (b * c)), rel=1e-3)
    assert found.low[0, 1] < found.coefficients[0, 1] < found.high[0, 1] < np.inf


def test_years_as_categories_and_indicators_give_differences_of_shares(result):
    rng = np.random.default_rng(5)
    year = rng.choice([1980, 1985, 1991], len(result.corpus))
    score = rng.normal(size=len(result.corpus))
    corpus = copy.copy(result.corpus)
    metadata = corpus.metadata.assign(year=year, score=score)
    object.__setattr__(corpus, "metadata", metadata)
    result = dataclasses.replace(result, corpus=corpus)
    rows = np.flatnonzero(result.distinct.of_row >= 0)
    is_first = result.labels[rows] == 0

    table = topics.effects(result, "~ C(year)", n_replicates=0).marginal_effects()
    table = table[table["topic"] == 0].set_index("level")
    share = pd.Series(is_first).groupby(year[rows]).mean()
    assert table["effect"].tolist() == pytest.approx(
        [share[1985] - share[1980], share[1991] - share[1980]]
    )
    assert table["reference"].tolist() == ["1980", "1980"]

    table = topics.effects(result, "~ I(score > 0.3)", n_replicates=0).marginal_effects()
    is_above = score[rows] > 0.3
    difference = is_first[is_above].mean() - is_first[~is_above].mean()
    assert table.loc[table["topic"] == 0, "effect"].tolist() == pytest.approx([difference])
