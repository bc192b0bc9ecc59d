"""Regression on measured variables against statsmodels and known truths."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from embedtopics.errors import InputError
from embedtopics.inference import Measurement, regress
from embedtopics.inference._design import make_design, parse_covariates
from embedtopics.plots import forest

N = 2_000


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(3)
    party = rng.choice(["left", "right"], N, p=[0.6, 0.4])
    age = rng.normal(40, 10, N)
    mood = rng.normal(size=N)
    score = 0.4 * (party == "right") + 0.03 * (age - 40) - 0.5
    hostile = rng.random(N) < 1 / (1 + np.exp(-score))
    frame = pd.DataFrame({"party": party, "age": age, "mood": mood, "speaker": np.arange(N) // 4})
    frame["hostile"] = hostile.astype(int)
    frame["guess"] = np.where(rng.random(N) < 0.85, hostile, ~hostile).astype(int)
    frame["stance"] = np.where(hostile, "against", np.where(mood > 0.3, "for", "neutral"))
    frame["count"] = rng.poisson(np.exp(0.5 * hostile + 0.2))
    return frame


def coded(frame, name, predictions, n=400, **options):
    """A measurement with gold values of random rows."""
    rows = np.random.default_rng(5).choice(len(frame), n, replace=False)
    gold = frame[name].where(frame.index.isin(rows))
    options = {"sampling": "random", "data": frame.drop(columns=name), "name": name} | options
    return Measurement(gold, predictions, **options)


def on_gold(measurement, frame, columns=("age",)):
    x = frame[list(columns)].to_numpy(dtype=float)
    x = sm.add_constant(x - x.mean(axis=0))
    return x[measurement.sample.is_gold], frame[measurement.sample.is_gold]


@pytest.mark.parametrize("family", ["linear", "logistic", "poisson", "multinomial"])
def test_useless_predictions_leave_the_fit_of_the_gold_rows(people, family):
    name, model = {
        "linear": ("hostile", sm.OLS),
        "logistic": ("hostile", sm.Logit),
        "poisson": ("count", sm.Poisson),
        "multinomial": ("stance", sm.MNLogit),
    }[family]
    constant = people[name].mode()[0]
    kind = "number" if family == "poisson" else "auto"
    measurement = coded(people, name, [constant] * N, kind=kind)
    fit = regress(measurement, f"{name} ~ age", family=family)
    x, frame = on_gold(measurement, people)
    y = frame[name].astype("category").cat.codes if family == "multinomial" else frame[name]
    theirs = model(np.asarray(y), x).fit(disp=0) if family != "linear" else model(y, x).fit()
    expected = np.asarray(theirs.params).T.ravel()
    assert fit.gold.value == pytest.approx(expected, abs=1e-6)
    if family == "linear":
        assert fit.gold.error == pytest.approx(np.asarray(theirs.HC3_se), rel=1e-6)
        assert fit.corrected.value == pytest.approx(expected)
        assert fit.power == pytest.approx(0)


def test_perfect_predictions_are_as_good_as_gold_values_of_all_rows(people):
    measurement = coded(people, "hostile", people["hostile"])
    fit = regress(measurement, "hostile ~ age + party", reference={"party": "left"})
    x = np.column_stack([np.ones(N), people["age"] - people["age"].mean()])
    x = np.column_stack([x, people["party"] == "right"]).astype(float)
    theirs = sm.OLS(people["hostile"], x).fit(cov_type="HC3")
    assert [term for _, term in fit.names] == ["intercept", "age", "party: right"]
    # The factor is estimated, so the estimates differ by some of the error of the gold rows.
    assert np.all(fit.power > 0.9)
    assert np.all(abs(fit.corrected.value - theirs.params) < 0.2 * fit.gold.error)
    assert fit.corrected.error == pytest.approx(np.asarray(theirs.bse), rel=0.15)
    assert (fit.to_frame()["n_effective"] > 0.7 * N).all()


def test_units_give_the_errors_of_clusters(people):
    twice = pd.concat([people, people], ignore_index=True)
    twice["speaker"] = np.tile(np.arange(N), 2)
    is_gold = np.tile(np.arange(N) < 400, 2)
    gold = twice["hostile"].where(is_gold)
    rows = {"units": twice["speaker"], "data": twice[["age"]], "name": "hostile"}
    copied = Measurement(gold, [1] * 2 * N, sampling="random", **rows)
    once = Measurement(gold[:N], [1] * N, sampling="random", data=people[["age"]], name="hostile")
    errors = [regress(one, "hostile ~ age").gold.error for one in (copied, once)]
    assert errors[0] == pytest.approx(errors[1], rel=0.01)  # copies add nothing


def test_a_measured_covariate_is_corrected(people):
    measurement = coded(people, "hostile", people["guess"], 1_000)
    fit = regress(measurement, "mood ~ hostile + age")
    by_hand = regress(measurement, "count ~ hostile", family="poisson")
    truth = sm.Poisson(people["count"], sm.add_constant(people["hostile"])).fit(disp=0)
    assert by_hand.corrected.low[1] < truth.params["hostile"] < by_hand.corrected.high[1]
    assert by_hand.naive.high[1] < truth.params["hostile"]  # errors weaken it
    assert fit.names[1] == ("mood", "hostile: 1")
    assert by_hand.corrected.error[1] < by_hand.gold.error[1]


def test_outcome_and_covariate_can_both_be_measured(people):
    guess = np.where(np.random.default_rng(0).random(N) < 0.9, people["stance"], "neutral")
    stance = coded(people, "stance", guess, 1_000)
    hostile = coded(people, "hostile", people["guess"], 1_000)
    fit = regress([stance, hostile], "stance ~ hostile", target="against")
    # Who is hostile is against, always.
    assert fit.corrected.value == pytest.approx([0, 1], abs=0.02)
    assert fit.naive.value[1] < 0.9


def test_marginal_effects_agree_with_statsmodels(people):
    measurement = coded(people, "hostile", [1] * N)
    fit = regress(measurement, "hostile ~ age + mood", family="logistic")
    effects = fit.marginal_effects().set_index("variable")["effect"]
    x = people[["age", "mood"]].to_numpy()
    x = sm.add_constant(x - x.mean(axis=0))
    beta = fit.corrected.value
    chance = 1 / (1 + np.exp(-(x @ beta)))
    expected = (chance * (1 - chance)).mean() * beta[1:]
    assert effects[["age", "mood"]].to_numpy() == pytest.approx(expected, rel=1e-4)
    curved = regress(coded(people, "hostile", people["hostile"]), "hostile ~ bs(age, df=4)")
    true = regress(coded(people, "hostile", people["hostile"]), "hostile ~ age").marginal_effects()
    effect = curved.marginal_effects()["effect"][0]
    assert effect == pytest.approx(true["effect"][0], abs=0.003)


def test_the_table_is_made_for_latex(people):
    fit = regress(coded(people, "hostile", people["guess"]), "hostile ~ age")
    table = fit.to_latex()
    assert table.startswith("\\begin{tabular}{lrrr}") and "Rows & 2,000 & 400 & 2,000" in table
    assert "400 gold of 2,000 rows" in repr(fit)
    figure = forest(fit)
    assert [trace.x[0] for trace in figure.data] == [
        one.value[1] for one in (fit.gold, fit.naive, fit.corrected)
    ]
    assert figure.layout.yaxis.ticktext == ("age  ",)


@pytest.mark.parametrize(
    ("parameter", "formula", "options"),
    [
        ("formula", "hostile ~ age + (1 | speaker)", {}),
        ("formula", "hostile ~ height", {}),
        ("formula", "party ~ age + height", {}),
        ("formula", "age ~ mood", {}),
        ("formula", "hostile ~ bs(height, df=3)", {}),
        ("formula", "hostile ~ age +* mood", {}),
        ("party", "party ~ hostile", {}),
        ("formula", "hostile", {}),
        ("target", "hostile ~ age", {"target": "no"}),
        ("family", "hostile ~ age", {"family": "probit"}),
    ],
)
def test_formulas_that_cannot_be_are_refused(people, parameter, formula, options):
    measurement = coded(people, "hostile", people["guess"])
    with pytest.raises(InputError) as error:
        regress(measurement, formula, **options)
    assert error.value.parameter == parameter


def test_separated_gold_rows_are_refused(people):
    frame = people.assign(sign=np.where(people["hostile"] == 1, 1.0, -1.0) + people["mood"] / 9)
    measurement = coded(frame, "hostile", frame["guess"])
    with pytest.raises(InputError, match=r"separate.*'sign'") as error:
        regress(measurement, "hostile ~ age + sign", family="logistic")
    assert error.value.parameter == "formula"


@pytest.mark.parametrize("reference", [{}, {"camp": "b"}])
def test_levels_are_pooled_only_beside_a_level_of_enough_units(reference):
    unit = np.arange(12)
    few = pd.Series(list("abcd") * 3)
    many = pd.Series(list("aaaaaaabbcdd"))

    def levels(camp):
        terms, _ = parse_covariates("~ camp", {"camp"})
        used = np.ones(12, dtype=bool)
        design = make_design(terms, {"camp": camp}, used, unit, reference)
        return set(design.variables["camp"].cat.categories)

    assert levels(few) == {"a", "b", "c", "d"}
    assert levels(many) == {"a", "(other)", *reference.values()}
