"""Marginal effects by the matrices of changed data, against calculations by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from embedtopics.errors import InputError
from embedtopics.inference import Measurement, regress

N = 900


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(11)
    frame = pd.DataFrame({"wave": rng.choice([1990, 1999, 2007], N), "x": rng.uniform(1, 5, N)})
    frame["side"] = rng.choice(["in", "out"], N, p=[0.6, 0.4])
    chance = 0.2 + 0.2 * (frame["wave"] == 1999) + 0.3 * (frame["x"] >= 3)
    frame["y"] = (rng.random(N) < chance).astype(int)
    return frame


def fit(rows, formula, **options):
    """Fit on rows whose gold values are all known, so that predictions change nothing."""
    measured = Measurement(rows["y"], rows["y"], sampling="random", data=rows, name="y")
    return regress(measured, formula, target=1, **options)


def marginal(regression):
    table = regression.marginal_effects()
    return {(row.variable, row.level): row.effect for row in table.itertuples()}


def coefficients(regression):
    terms = [term for _, term in regression.names]
    return dict(zip(terms, regression.corrected.value, strict=True))


def test_numbers_as_categories_have_the_effects_of_their_levels(rows):
    regression = fit(rows, "y ~ C(wave)")
    share = rows.groupby("wave")["y"].mean()
    effects = marginal(regression)
    assert list(effects) == [("wave", "1999"), ("wave", "2007")]
    assert effects["wave", "1999"] == pytest.approx(share[1999] - share[1990])
    assert effects["wave", "2007"] == pytest.approx(share[2007] - share[1990])
    assert coefficients(regression)["C(wave): 1999"] == pytest.approx(effects["wave", "1999"])


def test_the_reference_of_numbers_as_categories_can_be_given(rows):
    effects = marginal(fit(rows, "y ~ C(wave)", reference={"wave": 2007}))
    share = rows.groupby("wave")["y"].mean()
    assert list(effects) == [("wave", "1990"), ("wave", "1999")]
    assert effects["wave", "1990"] == pytest.approx(share[1990] - share[2007])
    with pytest.raises(InputError) as error:
        fit(rows, "y ~ C(wave)", reference={"wave": 2001})
    assert error.value.parameter == "reference"


@pytest.mark.parametrize("contrasts", ["contr.sum", "contr.treatment(base=1999)"])
def test_contrasts_do_not_change_the_effects_of_levels(rows, contrasts):
    effects = marginal(fit(rows, f"y ~ C(wave, {contrasts})"))
    plain = marginal(fit(rows, "y ~ C(wave)"))
    # Full gold: the share of the predictions is that of the gold rows, whatever the coding.
    assert effects == {key: pytest.approx(value, abs=1e-9) for key, value in plain.items()}


def test_categories_in_a_logistic_model_change_every_row(rows):
    regression = fit(rows, "y ~ C(wave) * side + x", family="logistic")
    beta = regression.corrected.value
    columns = [term for _, term in regression.names]

    def chance(wave):
        is_out = (rows["side"] == "out").to_numpy(dtype=float)
        values = {
            "intercept": 1.0,
            "C(wave): 1999": float(wave == 1999),
            "C(wave): 2007": float(wave == 2007),
            "side: out": is_out,
            "C(wave):side: 1999:out": float(wave == 1999) * is_out,
            "C(wave):side: 2007:out": float(wave == 2007) * is_out,
            "x": rows["x"] - rows["x"].mean(),
        }
        return expit(sum(b * values[name] for b, name in zip(beta, columns, strict=True))).mean()

    assert marginal(regression)["wave", "2007"] == pytest.approx(chance(2007) - chance(1990))


@pytest.mark.parametrize(
    "indicator", ["I(x >= 3)", "{x >= 3}", "np.floor(x / 3)", "I(1 * (x > 3))"]
)
def test_an_indicator_has_the_effect_of_its_coefficient(rows, indicator):
    regression = fit(rows, f"y ~ {indicator} + side")
    name = [term for _, term in regression.names][1]
    effects = marginal(regression)
    assert set(effects) == {(name, ""), ("side", "out")}
    assert effects[name, ""] == pytest.approx(coefficients(regression)[name])


def test_an_indicator_and_its_number_have_an_effect_each(rows):
    regression = fit(rows, "y ~ x + I(x >= 3)")
    effects = marginal(regression)
    beta = coefficients(regression)
    assert effects["x", ""] == pytest.approx(beta["x"])
    assert effects["I(x >= 3)", ""] == pytest.approx(beta["I(x >= 3)"])


def test_a_slope_that_begins_at_a_jump_is_the_slope_beside_it(rows):
    # Whole numbers, so that many rows stand at the jump.
    whole = rows.assign(x=np.round(rows["x"]))
    regression = fit(whole, "y ~ I(x * (x >= 3))")
    beta = regression.corrected.value[1]
    expected = beta * (whole["x"] >= 3).mean()
    assert marginal(regression)["x", ""] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("formula", "derivative"),
    [
        ("y ~ x + I(x ** 2)", lambda x, beta: beta["x"] + 2 * x * beta["I(x ** 2)"]),
        ("y ~ log(x)", lambda x, beta: beta["log(x)"] / x),
    ],
)
def test_curves_have_their_mean_derivative(rows, formula, derivative):
    regression = fit(rows, formula)
    expected = np.mean(derivative(rows["x"].to_numpy(), coefficients(regression)))
    assert marginal(regression)["x", ""] == pytest.approx(expected, rel=1e-3)


def test_an_interaction_has_the_mean_of_the_slopes_of_its_levels(rows):
    regression = fit(rows, "y ~ x:side")
    beta = coefficients(regression)
    is_out = (rows["side"] == "out").mean()
    expected = beta["x:side: in"] * (1 - is_out) + beta["x:side: out"] * is_out
    assert marginal(regression)["x", ""] == pytest.approx(expected, rel=1e-3)
