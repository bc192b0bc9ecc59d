"""Regression of uses on covariates, against least squares, hand calculation and shuffles."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import false_discovery_control, kstest

from embedtopics import Corpus, probing
from embedtopics.probing.words import _regression
from embedtopics.probing.words._regression import _least_squares, _measure
from tests.factories import refuses
from tests.probing.made import made_states, random_states, reordered, rows_of

N, WIDTH = 60, 6


def problem(shift=2.0, seed=0):
    """A word in texts of two parties, whose vector is moved by the party; and the parties."""
    rng = np.random.default_rng(seed)
    party = np.array(["left", "right"])[(np.arange(N) % 3 == 0).astype(int)]
    texts = [f"id{i} tax red blue" for i in range(N)]
    vectors = rng.normal(size=(2, N, 4, WIDTH))
    vectors[:, :, 2, 0] += 4
    vectors[:, :, 3, 0] -= 4
    vectors[:, party == "right", 1, 0] += shift
    vectors[:, party == "left", 1, 0] -= shift
    data = pd.DataFrame({"party": party, "year": 1990 + np.arange(N) % 10,
                         "speaker": [f"s{i // 4}" for i in range(N)]})  # fmt: skip
    return made_states(texts, vectors.reshape(2, -1, WIDTH)), data


def test_coefficients_are_those_of_least_squares_and_norms_those_of_group_means():
    states, data = problem()
    uses = probing.regress_uses(states, "tax", "party", data=data, n_permutations=99)
    [fit], [effect] = uses.fits, rows_of(uses)
    y, x = fit.vectors.astype(np.float64), fit.design.matrix
    np.testing.assert_allclose(fit.coefficients, np.linalg.lstsq(x, y, rcond=None)[0], atol=1e-9)
    assert np.linalg.norm(y, axis=1).max() <= 1 + 1e-6  # the mean of unit vectors
    is_right = x[:, 1] == 1
    groups = y[is_right], y[~is_right]
    squared = np.square(groups[0].mean(axis=0) - groups[1].mean(axis=0)).sum()
    squared -= sum(one.var(axis=0, ddof=1).sum() / len(one) for one in groups)
    assert (effect.term, effect.level, effect.n, effect.n_units) == ("party", "right", N, N)
    assert effect.norm == pytest.approx(np.sqrt(squared), rel=1e-9)
    assert effect.low < effect.norm < effect.high and effect.p == effect.q == 0.01


def test_what_is_subtracted_is_the_robust_variance_of_every_component():
    states, data = problem(shift=0.3)
    uses = probing.regress_uses(states, "tax", "party + year", data=data, n_permutations=9)
    fit = uses.fits[0]
    x = fit.design.matrix
    models = [sm.OLS(y, x).fit() for y in fit.vectors.T.astype(np.float64)]
    for column, model in enumerate(models):
        np.testing.assert_allclose(fit.coefficients[:, column], model.params, atol=1e-9)
    [effect] = [one for one in rows_of(uses) if one.level]
    size = sum(model.params[1] ** 2 - model.HC2_se[1] ** 2 for model in models)
    assert effect.norm == pytest.approx(np.sqrt(max(size, 0)), abs=1e-9)
    # A number moves the uses by its slope times its spread.
    [slope] = [one for one in rows_of(uses) if one.term == "year"]
    levels = np.quantile(data["year"], (np.arange(10) + 0.5) / 10)
    size = sum(model.params[2] ** 2 - model.HC2_se[2] ** 2 for model in models) * levels.var()
    assert slope.norm == pytest.approx(np.sqrt(max(size, 0)), abs=1e-9)


def test_units_that_are_groups_of_rows_have_the_variance_of_their_means():
    rng = np.random.default_rng(3)
    unit = np.repeat(np.arange(12), 5)
    x = np.column_stack([np.ones(60), unit % 2])
    y = rng.normal(size=(60, 4)) + rng.normal(size=(12, 4))[unit]
    fit = _least_squares(x, y, unit, "word")
    norm, *_ = _measure(fit, np.array([[0.0, 1.0]]), 9, 0)
    means = y.reshape(12, 5, 4).mean(axis=1)
    groups = means[1::2], means[::2]
    squared = np.square(groups[0].mean(axis=0) - groups[1].mean(axis=0)).sum()
    squared -= sum(one.var(axis=0, ddof=1).sum() / 6 for one in groups)
    assert norm == pytest.approx(np.sqrt(max(squared, 0.0)), abs=1e-9)


@pytest.mark.parametrize("kind", ["rows", "units", "within units", "beside another"])
def test_p_values_are_uniform_where_the_covariate_means_nothing(kind, monkeypatch):
    monkeypatch.setattr(_regression, "N_RESAMPLES", 10)  # of the intervals, which are not tested
    rng = np.random.default_rng(7)
    n, p = 48, []
    unit = np.arange(n) if kind in ("rows", "beside another") else np.arange(n) // 3
    for _ in range(200):
        noise = rng.normal(size=(n, 3)) * rng.uniform(0.5, 2, (n, 1))
        noise += rng.normal(size=(n, 3))[unit]
        x = [np.ones(n), rng.normal(size=n) if kind == "within units" else rng.normal(size=n)[unit]]
        if kind == "beside another":
            x.append(x[1] + rng.normal(size=n))
            noise += 2 * x[2][:, None]
        fit = _least_squares(np.column_stack(x), noise, unit, "word")
        p.append(_measure(fit, np.eye(len(x))[[1]], 99, len(p))[3])
    assert kstest(np.array(p) - rng.uniform(0, 0.01, 200), "uniform").pvalue > 0.01


def test_predictions_are_group_means_and_are_described_by_words_and_passages():
    states, data = problem()
    uses = probing.regress_uses(states, "tax", "~ party", data=data, n_permutations=9)
    fit = uses.fits[0]
    right = uses.predict({"party": "right"}, k=3)
    is_right = fit.design.matrix[:, 1] == 1
    np.testing.assert_allclose(right.vector, fit.vectors[is_right].mean(axis=0), atol=1e-6)
    assert right.words[0] == "red" and uses.predict({"party": "left"}).words[0] == "blue"
    assert all(data["party"][text] == "right" for text in right.uses["text"])
    compared = uses.difference({"party": "right"}, {"party": "left"}, k=2)
    np.testing.assert_allclose(compared.first.vector, fit.coefficients[1], atol=1e-9)
    assert (compared.first.words[0], compared.second.words[0]) == ("red", "blue")
    assert list(compared.to_frame()["profile"]) == ["party right"] * 2 + ["party left"] * 2
    assert "red" in repr(compared) and "party right" in compared._repr_html_()


def test_a_planted_trend_and_its_interaction_are_found():
    states, data = problem(shift=0.0)
    rows = np.flatnonzero(np.array(states.words) == "tax")
    rises = np.where(data["party"] == "right", data["year"] - 1994.5, 0.0)
    for layer in states.vectors:
        layer[rows, 1] += (2 * rises).astype(np.float16)
    uses = probing.regress_uses(states, "tax", "party * year", data=data, n_permutations=199)
    assert rows_of(uses, term="party:year")[0].p == 0.005
    assert rows_of(uses, term="year")[0].p < 0.02
    early, late = (uses.predict({"party": "right", "year": y}).vector[1] for y in (1991, 1998))
    assert late - early > 0.5
    curved = probing.regress_uses(states, "tax", "bs(year, df=4)", data=data, n_permutations=199)
    [effect] = rows_of(curved)
    assert effect.p < 0.05


def test_years_as_categories_are_compared_with_the_first():
    states, data = problem(shift=0.0)
    years = sorted(set(data["year"]))
    uses = probing.regress_uses(states, "tax", "C(year)", data=data, n_permutations=9)
    levels = uses.to_frame()["level"].tolist()
    assert levels[: len(years) - 1] == [str(year) for year in years[1:]]

    fit = uses.fits[0]
    is_last = fit.design.matrix[:, -1] == 1
    last = uses.predict({"year": years[-1]})
    np.testing.assert_allclose(last.vector, fit.vectors[is_last].mean(axis=0), atol=1e-6)


def test_neither_the_order_of_texts_nor_another_run_changes_anything():
    states, data = problem(shift=0.2)
    options = {"units": "speaker", "n_permutations": 49}
    other, order = reordered(states)
    moved = data.iloc[order].reset_index(drop=True)
    one, again, shuffled = (
        probing.regress_uses(*of_texts, "party + year", data=rows, **options)
        for of_texts, rows in [((states, "tax"), data)] * 2 + [((other, "tax"), moved)]
    )
    pd.testing.assert_frame_equal(one.to_frame(), again.to_frame(), check_exact=True)
    for a, b in zip(rows_of(one), rows_of(shuffled), strict=True):
        figures = [(e.norm, e.low, e.high, e.p) for e in (a, b)]
        np.testing.assert_allclose(*figures, atol=1e-6)


def test_several_words_share_false_discoveries_and_forms_of_one_word_its_uses():
    states, data = problem(shift=0.4)
    words = {"tax": ["Tax"], "colours": ["red", "blue"], "red": ["red"]}
    uses = probing.regress_uses(states, words, "party", data=data, n_permutations=99)
    table = uses.to_frame()
    assert table["n"].tolist() == [N, 2 * N, N]
    assert rows_of(uses, word="colours")[0].n_units == N
    np.testing.assert_allclose(table["q"], false_discovery_control(table["p"]))
    with refuses("word"):
        uses.predict({})


def test_all_words_are_compared_with_the_reference_of_the_first():
    def levels(party):
        texts = [f"id{i} {'tax red' if i < 24 else 'red' if i < 54 else 'blue'}" for i in range(N)]
        uses = probing.regress_uses(
            random_states(texts), ["tax", "red", "blue"], "party", n_permutations=9,
            data=pd.DataFrame({"party": party}),
        )  # fmt: skip
        return [(one.word, one.level) for one in rows_of(uses) if one.level]

    # "left" is the most frequent party with "tax", but not with "red", and not there with "blue".
    party = ["left", "left", "right"] * 8 + ["right"] * 26 + ["green"] * 8 + ["right"] * 2
    assert levels(party) == [
        ("tax", "right"), ("red", "right"), ("red", "green"), ("blue", "right"),
    ]  # fmt: skip


def test_rows_without_a_covariate_and_rare_levels_are_reported():
    states, data = problem()
    data.loc[[3, 7], "party"] = None
    uses = probing.regress_uses(states, "tax", "party", data=data, n_permutations=9)
    assert uses.to_frame()["n"][0] == N - 2
    assert [d.value for d in uses.decisions if d.name == "rows_without_covariates"] == [2]


def test_a_corpus_is_read_by_sentences_and_dates_are_years(tiny_bert):
    texts = [f"the {'mat' if i % 2 else 'dog'} {i}. the cat ran." for i in range(30)]
    dates = pd.date_range("2000-01-01", periods=30, freq="40D")
    corpus = Corpus(pd.DataFrame({"text": texts, "date": dates}), text="text")
    options = {"encoder": tiny_bert, "n_permutations": 9, "show_progress": False}
    uses = probing.regress_uses(corpus, "Cat", "date", **options)
    assert uses.to_frame()["n"][0] == 30
    assert set(uses.fits[0].uses["sentence"]) == {"the cat ran."}
    assert uses.predict({"date": 2001.5}).word == "Cat"
    with refuses("profile"):
        uses.predict({"date": 1990})
    with pytest.raises(ValueError, match="'cat'"):
        probing.regress_uses(corpus, "catt", "date", **options)


def test_bad_questions_are_refused_in_one_sentence():
    states, data = problem()
    data["copy"] = data["party"].str.upper()
    cases = [
        ("taxx", "party", {}, "word"), ("tax", "party + copy", {}, "formula"),
        ("tax", "partei", {}, "formula"), ("tax", "party", {"units": "who"}, "units"),
        ("tax", "party +", {}, "formula"), ("tax", "party", {"data": data[:5]}, "data"),
        ("tax", "party", {"reference": {"party": "green"}}, "reference"),
        ("id1", "party", {}, "words"),
    ]  # fmt: skip
    for word, covariates, options, parameter in cases:
        with refuses(parameter):
            probing.regress_uses(states, word, covariates, **{"data": data, **options})
    with pytest.raises(ValueError, match="'tax'"):
        probing.regress_uses(states, "taxx", "party", data=data)
    with refuses("words"):
        few = data.assign(unit=np.arange(N) % 2, noise=np.random.default_rng(0).normal(size=N))
        probing.regress_uses(states, "tax", "year + noise", units="unit", data=few)
    uses = probing.regress_uses(states, "tax", "party", data=data, n_permutations=9)
    for profile in ({"partei": "left"}, {"party": "green"}, {"party": "left", "x": 1}):
        with refuses("profile"):
            uses.predict(profile)
