"""Regressions whose gold rows leave something open: levels, cells and directions without them."""

import numpy as np
import pandas as pd
import pytest

from embedtopics.errors import InputError
from embedtopics.inference import Measurement, regress

N = 800
RNG = np.random.default_rng(23)
CITY = RNG.choice(["Bern", "Genf", "Basel"], N, p=[0.5, 0.44, 0.06])
MEN = RNG.choice(["man", "woman"], N)
X = RNG.normal(size=N)
TRUTH = (RNG.random(N) < 0.4).astype(int)
COUNT = RNG.poisson(2, N)


def part(values, is_gold):
    """Return values of the gold rows, and None for the others."""
    return pd.Series(values, dtype=object).where(is_gold, None)


def measured(is_gold, values=TRUTH, **options):
    data = pd.DataFrame({"city": CITY, "sex": MEN, "x": X})
    options = {"sampling": "random", "data": data, "name": "y"} | options
    return Measurement(part(values, is_gold), values, **options)


def some(of, n=200, seed=1):
    """Return a mask of n random rows among some."""
    rows = np.random.default_rng(seed).choice(np.flatnonzero(of), n, replace=False)
    return np.isin(np.arange(N), rows)


def table(fit):
    return fit.to_frame().set_index("term")


STANCE = np.where(TRUTH == 1, "for", np.where(X > 0, "against", "none"))
FAMILIES = [
    ("linear", TRUTH, {"target": 1}),
    ("logistic", TRUTH, {"target": 1}),
    ("poisson", COUNT, {}),
    ("multinomial", STANCE, {}),
]


@pytest.mark.parametrize(("family", "values", "options"), FAMILIES)
def test_a_level_without_gold_rows_is_nan_and_the_others_are_as_if_it_were_left_out(
    family, values, options
):
    is_gold = some(CITY != "Basel")
    kind = "number" if family == "poisson" else "auto"
    options = {"family": family, "reference": {"city": "Bern"}, **options}
    fit = regress(measured(is_gold, values, kind=kind), "y ~ city + x", **options)

    inside = CITY != "Basel"
    data = pd.DataFrame({"city": CITY, "x": X})[inside]
    gold = part(values, is_gold)[inside]
    without = Measurement(gold, values[inside], sampling="random", kind=kind, data=data, name="y")
    expected = regress(without, "y ~ city + x", **options)

    rows = fit.to_frame()
    is_basel = rows["term"] == "city: Basel"
    numbers = ["effect", "low", "high", "p", "gold", "gold_low", "gold_high", "naive"]
    assert rows.loc[is_basel, numbers].isna().all(axis=None)
    # The mean of x is that of all rows of the design, so intercepts differ.
    is_slope = ~is_basel & (rows["term"] != "intercept")
    others = expected.to_frame()
    others = others[others["term"] != "intercept"]
    assert rows.loc[is_slope, "effect"].to_numpy() == pytest.approx(
        others["effect"].to_numpy(), abs=1e-6
    )
    assert rows.loc[is_slope, "low"].to_numpy() == pytest.approx(others["low"].to_numpy(), abs=1e-6)

    effects = fit.marginal_effects()
    is_basel = effects["level"] == "Basel"
    assert effects.loc[is_basel, ["effect", "low", "high", "p"]].isna().all(axis=None)
    assert effects.loc[~is_basel, "effect"].notna().all()
    assert (fit.n_rows, len(fit.decisions)) == (inside.sum(), 1)
    assert f"{(CITY == 'Basel').sum()} rows" in fit.decisions[0].message
    assert "nan" not in fit.to_latex()


def test_a_cell_of_an_interaction_without_gold_rows_is_nan():
    is_cell = (CITY == "Genf") & (MEN == "woman")
    fit = regress(
        measured(some(~is_cell & (CITY != "Basel"), 250) | some(CITY == "Basel", 30)),
        "y ~ city * sex",
        target=1,
        reference={"city": "Bern", "sex": "man"},
    )
    rows = table(fit)
    assert np.isnan(rows.loc["city:sex: Genf:woman", "effect"])
    assert rows.loc[["city: Genf", "sex: woman"], "p"].notna().all()
    effects = fit.marginal_effects().set_index(["variable", "level"])["effect"]
    assert np.isnan(effects["city", "Genf"]) and np.isnan(effects["sex", "woman"])
    beta = rows["effect"]
    share = (MEN[~is_cell] == "woman").mean()
    expected = beta["city: Basel"] + share * beta["city:sex: Basel:woman"]
    assert effects["city", "Basel"] == pytest.approx(expected)


def test_an_indicator_without_gold_rows_is_nan():
    fit = regress(measured(some(X < 1)), "y ~ I(x >= 1)", target=1)
    assert table(fit).loc["I(x >= 1)"].drop("outcome").isna().all()
    assert fit.marginal_effects()["effect"].isna().all()


@pytest.mark.parametrize("family", ["linear", "logistic"])
def test_columns_that_the_gold_rows_do_not_tell_apart_are_refused(family):
    a = (X > 0).astype(float)
    b = np.where(RNG.random(N) < 0.5, a, 1 - a)
    data = pd.DataFrame({"a": a, "b": b, "x": X})
    gold = part(TRUTH, some(a == b))
    one = Measurement(gold, TRUTH, sampling="random", data=data, name="y")
    with pytest.raises(InputError, match="'b', which follows from") as error:
        regress(one, "y ~ a + b", target=1, family=family)
    assert error.value.parameter == "formula"

    # Nor if they differ by rounding errors only.
    nearly = one.data.assign(b=np.where(a == b, a + 1e-9 * X, b))
    one = Measurement(gold, TRUTH, sampling="random", data=nearly, name="y")
    with pytest.raises(InputError) as error:
        regress(one, "y ~ a + b", target=1, family=family)
    assert error.value.parameter == "formula"


def test_a_reference_without_gold_rows_is_refused():
    with pytest.raises(InputError, match="choose another reference") as error:
        regress(measured(some(CITY != "Basel")), "y ~ city", target=1, reference={"city": "Basel"})
    assert error.value.parameter == "formula"


@pytest.mark.parametrize(("values", "kind"), [(TRUTH, "auto"), (X, "number")])
def test_an_effect_that_a_single_gold_unit_decides_is_nan(values, kind):
    basel = np.flatnonzero(CITY == "Basel")[:3]
    is_gold = some(CITY != "Basel") | np.isin(np.arange(N), basel)
    options = {"target": 1} if kind == "auto" else {}
    units = np.arange(N)
    separate = regress(measured(is_gold, values, kind=kind), "y ~ city", **options)
    assert table(separate).loc["city: Basel", "high"] > table(separate).loc["city: Basel", "low"]

    # The three gold rows have one author.
    units[basel] = N
    fit = regress(measured(is_gold, values, kind=kind, units=units), "y ~ city", **options)
    assert table(fit).loc["city: Basel", ["effect", "low", "high", "p"]].isna().all()
    assert table(fit).loc["city: Genf", ["effect", "low", "high", "p"]].notna().all()
    assert any("single gold unit decides city: Basel" in one.message for one in fit.decisions)


def test_equal_gold_rows_of_a_level_count_half_a_row_more_of_each_kind():
    # Six gold rows of Basel without the class; predictions are useless, so all is in the gold rows.
    basel = np.flatnonzero(CITY == "Basel")[:6]
    is_bern = some(CITY == "Bern", 100)
    is_gold = is_bern | np.isin(np.arange(N), basel)
    values = np.where(CITY == "Basel", 0, TRUTH)
    data = pd.DataFrame({"city": CITY})
    inside = CITY != "Genf"
    one = Measurement(
        part(values, is_gold)[inside], np.ones(inside.sum()), sampling="random",
        data=data[inside], name="y",
    )  # fmt: skip
    fit = regress(one, "y ~ city", target=1, reference={"city": "Bern"})

    # Each city has its mean with half a row more of each kind, and the residuals of HC3.
    def variance(hits, n):
        mean = (hits + 0.5) / (n + 1)
        squares = hits * (1 - mean) ** 2 + (n - hits) * mean**2
        prior = 0.5 * (mean**2 + (1 - mean) ** 2)
        return (squares / (1 - 1 / (n + 1)) ** 2 + prior) / (n + 1) ** 2

    hits = int(values[is_bern].sum())
    expected = np.sqrt(variance(hits, 100) + variance(0, 6))
    row = table(fit).loc["city: Basel"]
    assert row["effect"] == pytest.approx(-hits / 100)
    assert fit.gold.error[1] == pytest.approx(expected, rel=0.02)
    assert fit.corrected.error[1] == pytest.approx(fit.gold.error[1], rel=1e-6)


def test_counts_that_are_zero_in_a_level_have_no_poisson_effect():
    counts = np.where(CITY == "Genf", 0, COUNT)
    one = measured(some(CITY != "Basel"), counts, kind="number")
    with pytest.raises(InputError, match="separate") as error:
        regress(one, "y ~ city", family="poisson")
    assert error.value.parameter == "formula"


def test_the_unit_of_a_number_does_not_change_its_test():
    data = pd.DataFrame({"x": X, "tiny": X * 1e-10, "huge": X * 1e10})
    gold = part(TRUTH, some(X < 9))
    one = Measurement(gold, TRUTH, sampling="random", data=data, name="y")
    fits = [regress(one, f"y ~ {name}", target=1).corrected for name in data]
    for fit, factor in zip(fits, (1, 1e-10, 1e10), strict=True):
        assert fit.value[1] * factor == pytest.approx(fits[0].value[1], rel=1e-6)
        assert fit.p[1] == pytest.approx(fits[0].p[1], rel=1e-6)
