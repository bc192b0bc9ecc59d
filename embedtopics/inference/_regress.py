"""Regression on a measured variable, as outcome, as covariate, or both."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.checks import checked_between, checked_choice
from embedtopics.errors import InputError
from embedtopics.inference._design import Design, make_design, parse_covariates
from embedtopics.inference._equations import (
    EquationFit,
    Equations,
    FitEstimate,
    inverse_of,
    marginal_effects,
    marginal_table,
)
from embedtopics.inference._gold import (
    MIN_RARE,
    correlation_in_units,
    half_rows,
    has_rare_kind,
    read_gold,
)
from embedtopics.inference._measurement import Measurement, measurement_of
from embedtopics.inference._sample import Sample
from embedtopics.inference.results import Regression
from embedtopics.protocols import Float64Array, Int64Array
from embedtopics.results import Decision

N_DRAWS = 50
FAMILIES = ("linear", "logistic", "multinomial", "poisson")


def regress(
    measurement: Any,
    formula: str,
    *,
    family: str | None = None,
    target: Any = None,
    reference: dict[str, str] | None = None,
    confidence: float = 0.95,
) -> Regression:
    """Fit a regression in which measured variables are corrected for the errors of predictions.

    The model is fitted to the gold rows. The same model, fitted to the predictions of the gold rows
    and of all rows, then takes away what chance put into the gold rows. A prediction that says
    nothing about the gold values leaves the fit to the gold rows as it was.

    Parameters
    ----------
    measurement : Measurement, object with ``measurement()``, or sequence of these
        The measured variables among those of the formula, by name. All have the same rows and gold
        rows; units, probabilities and data are those of the first.
    formula : str
        Such as "hostile ~ party * bs(year, df=3)", with names of measurements and columns of their
        data. Dates count in days, months or years from their mean; see `topics.effects`. Numbers
        that interact with others count from their mean, too. `C(year)` takes numbers as levels.
        Formulas can call functions, so do not accept them from untrusted sources.
    family : {"linear", "logistic", "multinomial", "poisson"}, optional
        By default "linear"; "multinomial" for a measured outcome of more than two classes without
        a target. With classes, "linear" models the probability.
    target : object, optional
        The class that is modelled; by default the larger one of two.
    reference : mapping of str to str, optional
        Level to which the others of a covariate are compared; by default the most frequent, and the
        first class of a measured covariate.
    confidence : float

    Returns
    -------
    Regression

    Raises
    ------
    InputError
        If the formula has random effects or names a missing column, columns depend linearly on
        others, or a logistic model separates the gold rows.

    Notes
    -----
    With estimates b of the gold rows' values, g of their predictions and a of all predictions, the
    estimate is b + k (a - g) (Chen and Chen 2000, "A unified approach to regression analysis under
    double-sampling designs"). The factor k minimizes the variance of each coefficient, from 0 to 1,
    as in PPI++ (Angelopoulos, Duchi and Zrnic 2023). Design-based supervised learning (Egami,
    Hinck, Stewart and Wei 2023) corrects the outcomes instead. A prediction of a covariate in
    probabilities enters by the expected equations. Standard errors are robust to heteroscedasticity
    and to dependence within units (HC3), with Student's t for the effective number of gold units.
    Draws of a measurement add the variance of coefficients over them (Rubin 1987).

    Examples
    --------
    >>> import embedtopics as et
    >>> corpus = et.Corpus("embedtopics:demo")
    >>> rows = corpus.metadata.assign(text=corpus.texts)
    >>> rows["coder"] = rows["text"].str.contains("heat|pump").map({True: "heat", False: "other"})
    >>> truth = (rows["theme"] == "heat_pumps").map({True: "heat", False: "other"})
    >>> is_read = rows.index.isin(rows.sample(200, random_state=0).index)
    >>> rows["people"] = truth.where(is_read)  # None for rows that nobody read
    >>> measured = et.inference.Measurement.from_frame(rows, "people", "coder", sampling="random")
    >>> fit = et.inference.regress(measured, "people ~ source", target="heat")
    >>> fit
    Regression(people ~ source, linear; 200 gold of 670 rows, 670 units)
    >>> fit.to_frame()["term"].tolist()
    ['intercept', 'source: forum', 'source: newsletter', 'source: report']
    """
    checked_between(confidence, "confidence", 0, 1)
    if isinstance(measurement, str):
        remedy = 'pass the formula second: regress(measurement, "hostile ~ party")'
        raise InputError("measurement", "a Measurement", measurement, remedy)
    if not isinstance(formula, str):
        raise InputError("formula", 'a text such as "hostile ~ party + year"', formula)
    by_name = _by_name(measurement)
    first = next(iter(by_name.values()))
    left, right = _sides(formula)
    design, measured = _design(right, by_name, first, reference or {})
    if not measured and left not in by_name:
        raise InputError("formula", f"one with a measured variable ({', '.join(by_name)})", formula)

    # Leave out what no gold row tells anything about.
    sample = first.sample.take(design.rows)
    n_gold = int(sample.is_gold.sum())
    if n_gold <= design.matrix.shape[1] + 1:
        found = f"{n_gold} for {design.matrix.shape[1]} coefficients"
        raise InputError("gold", "more rows than coefficients", found=found)
    known = read_gold(design, sample)
    design = design.take(known.is_kept)
    rows = design.rows
    n = np.arange(len(design.rows))
    sample = first.sample.take(rows)
    x = design.matrix
    (truth, proxy, guess), family, classes = _outcome(left, by_name, first, family, target, rows)

    inside = sample.is_gold
    of_gold = Equations(x[inside], truth[inside], sample.weight[inside], n[inside])
    gold = EquationFit(family, of_gold, sample)

    if (column := gold.separated_by()) is not None:
        remedy = 'use family="linear", leave it out, or code more rows'
        expected = "one that does not separate the gold rows"
        found = f"{design.columns[column]!r}, which makes some classes certain"
        raise InputError("formula", expected, None, remedy, found=found)

    decisions = [*first.decisions, *design.decisions, *known.decisions]
    smooth = gold
    is_class = left in by_name and by_name[left].classes is not None
    if family == "linear" and is_class and has_rare_kind(of_gold.x, of_gold.y[:, 0]):
        smooth = _smoothed(gold, design)
        message = (
            f"A level has fewer than {MIN_RARE} gold rows of a kind: in the errors, half a gold "
            "row more of each kind counts at each level."
        )
        decisions.append(Decision("inference", "few_gold_in_level", MIN_RARE, message))

    corrected, factor = _corrected(gold, smooth, _expanded(design, proxy, by_name, measured))

    by_draws: Any = 0.0
    if any(variable.draws is not None for variable in by_name.values()):
        options: Any = {"family": family, "target": target, "reference": reference}
        drawn = ([variable._at_draw(i) for variable in by_name.values()] for i in range(N_DRAWS))
        values = np.array([regress(draw, formula, **options).corrected.value for draw in drawn])
        by_draws = np.cov(np.nan_to_num(values), rowvar=False) * (1 + 1 / N_DRAWS)

    gold_alone = gold.estimate()._replace(covariance=smooth.estimate().covariance)
    corrected = corrected._replace(covariance=corrected.covariance + by_draws)
    gold_alone = gold_alone._replace(covariance=gold_alone.covariance + by_draws)

    if measured:
        x = design.matrix_with(**{name: _cells(by_name[name])[rows] for name in measured})

    ones = np.ones(len(n))
    naive = EquationFit(family, Equations(x, guess, ones, n), Sample.of(ones, n * 0, sample.unit))
    is_known = np.array([known.knows(direction) for direction in np.eye(x.shape[1])] * len(classes))
    is_present = np.tile(~known.is_absent, len(classes))
    effects = marginal_effects(
        design.changes(), gold, corrected, classes, confidence, knows=known.knows
    )

    return Regression(
        corrected=corrected.known(is_known, confidence),
        gold=gold_alone.known(is_known, confidence),
        naive=naive.estimate().known(is_present, confidence),
        names=tuple((str(name), column) for name in classes for column in design.columns),
        power=factor,
        marginal=marginal_table(effects),
        formula=formula,
        family=family,
        classes=classes,
        n_rows=len(design.rows),
        n_gold=int(inside.sum()),
        n_units=int(sample.unit.max()) + 1,
        decisions=tuple(decisions),
    )


def _smoothed(gold: EquationFit, design: Design) -> EquationFit:
    """Return the fit with half a gold row more of each kind at each level, for the errors."""
    rows = gold.equations.row
    unit = gold.sample.unit[rows]
    correlation = correlation_in_units(gold.equations.y[:, 0], unit)
    prior = half_rows(design, gold.equations.x, unit, correlation, gold.equations.weight)
    return replace(gold, prior=prior)


def _by_name(measurement: Any) -> dict[str, Measurement]:
    """Return the measured variables by name."""
    several = list(measurement) if isinstance(measurement, list | tuple) else [measurement]
    variables = [measurement_of(variable) for variable in several]
    by_name = {variable.name: variable for variable in variables}
    is_same = all(
        np.array_equal(variable.sample.is_gold, variables[0].sample.is_gold)
        for variable in variables
    )
    if not variables or len(by_name) < len(variables) or not is_same:
        expected = "one or several, each with its own name, with gold values of the same rows"
        raise InputError("measurement", expected, variables)
    return by_name


def _sides(formula: str) -> tuple[str, str]:
    """Return the name on the left of a formula, and its right side."""
    if "|" in formula:
        remedy = "random effects of a group become units=; its fixed effects are a covariate"
        raise InputError("formula", "one without random effects", formula, remedy)
    left, _, right = formula.partition("~")
    if not left.strip() or not right.strip():
        raise InputError("formula", 'one such as "hostile ~ party + year"', formula)
    return left.strip(), right.strip()


def _design(
    right: str,
    by_name: dict[str, Measurement],
    first: Measurement,
    reference: dict[str, str],
) -> tuple[Design, list[str]]:
    """Return the design with gold values, or predicted ones, and the measured covariates."""
    names = set(map(str, first.data.columns)) | set(by_name)
    terms, variables = parse_covariates(f"~ {right}", names)
    columns: dict[str, pd.Series] = {}
    is_gold, measured = first.sample.is_gold, [name for name in variables if name in by_name]
    for name in variables:
        if name in by_name:
            one = by_name[name]
            columns[name] = pd.Series(np.where(is_gold, _cells(one, one.truth), _cells(one)))
            if one.classes is not None:
                reference = {name: str(one.classes[0])} | reference
        elif name in first.data:
            columns[name] = first.data[name]
        else:
            raise InputError("formula", f"made of the columns {', '.join(sorted(names))}", name)
    return make_design(
        terms, columns, np.ones(len(first), dtype=np.bool_), first.sample.unit, reference
    ), measured


def _cells(one: Measurement, values: Float64Array | None = None) -> npt.NDArray[Any]:
    """Return the number, or the class in words, of each row: the predicted one by default."""
    values = one.naive if values is None else values
    if one.classes is None:
        return values[:, 0]
    return np.asarray(np.array([*map(str, one.classes)], dtype=object)[values.argmax(axis=1)])


def _outcome(
    left: str,
    by_name: dict[str, Measurement],
    first: Measurement,
    family: str | None,
    target: Any,
    rows: Int64Array,
) -> tuple[list[Float64Array], str, tuple[Any, ...]]:
    """Return the gold, predicted and naive outcomes, the family, and the classes."""
    checked_choice(family or "linear", "family", FAMILIES)
    if left not in by_name:
        if left not in first.data:
            names = ", ".join([*by_name, *map(str, first.data.columns)])
            raise InputError("formula", f"with one of {names} on its left", left)
        values = pd.to_numeric(first.data[left], "coerce").to_numpy(dtype=np.float64)[rows, None]
        if np.isnan(values).any():
            row = int(rows[np.isnan(values[:, 0]).argmax()])
            raise InputError(left, "a number in every row", first.data[left].iloc[row], row=row)
        return [values] * 3, family or "linear", (left,)
    one = by_name[left]
    arrays = [array[rows] for array in (one.truth, one.proxy, one.naive)]
    if one.classes is None:
        if family in ("logistic", "multinomial"):
            raise InputError("family", '"linear" or "poisson" for a number', family)
        return arrays, family or "linear", (left,)
    if family == "multinomial" or (family is None and target is None and len(one.classes) > 2):
        return [array[:, 1:] for array in arrays], "multinomial", one.classes[1:]
    target = one.classes[-1] if target is None and len(one.classes) == 2 else target
    if target not in one.classes:
        raise InputError("target", f"one of {', '.join(map(repr, one.classes))}", target)
    column = one.classes.index(target)
    return [array[:, [column]] for array in arrays], family or "linear", (target,)


def _corrected(
    gold: EquationFit, smooth: EquationFit, predicted: Equations
) -> tuple[FitEstimate, Float64Array]:
    """Correct the estimate of the gold rows by the equations of predictions; and the factors k.

    The errors of the gold values are those of `smooth`, which may have a prior.
    """
    family, sample, beta = gold.family, gold.sample, gold.beta
    of_predicted = np.zeros((len(sample.weight), beta.size))
    moments = predicted.moments(family, beta) * predicted.weight[:, None]
    np.add.at(of_predicted, predicted.row, moments)

    by_all = inverse_of(predicted.slope(family, beta))
    weights = predicted.weight * sample.weight[predicted.row]  # 0 without a gold value
    by_gold = inverse_of(replace(predicted, weight=weights).slope(family, beta))
    shift = by_all @ of_predicted.sum(axis=0) - by_gold @ (sample.weight @ of_predicted)

    # The factor from 0 to 1 that minimizes the variance of each coefficient.
    a = smooth.influence()
    b = of_predicted @ by_all - sample.parts(of_predicted @ by_gold, gold.leverage())
    b = sample.by_unit(b)
    square = np.square(b).sum(axis=0)
    factor = np.clip(-(a * b).sum(axis=0) / np.where(square > 0, square, 1.0), 0.0, 1.0)

    both = a + factor * b
    covariance = both.T @ both
    if smooth.prior is not None:
        covariance = covariance + smooth.prior_covariance()
    return FitEstimate(beta.T.ravel() + factor * shift, covariance, gold.df()), factor


def _expanded(
    design: Design, proxy: Float64Array, by_name: dict[str, Measurement], measured: list[str]
) -> Equations:
    """Return the equations of the predictions: each row once for each value of its covariates."""
    rows, n = design.rows, len(design.rows)
    if not measured:
        return Equations(design.matrix, proxy, np.ones(n), np.arange(n))
    scenarios: list[list[tuple[str, Any, Float64Array]]] = []
    for name in measured:
        one = by_name[name]
        if one.classes is None:
            scenarios.append([(name, one.proxy[rows, 0], np.ones(n))])
            continue
        shares = np.clip(one.proxy[rows], 0.0, None)
        shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-12)
        levels = design.variables[name].cat.categories
        scenarios.append(
            [(name, str(c), shares[:, i]) for i, c in enumerate(one.classes) if str(c) in levels]
        )
    parts = []
    for combination in product(*scenarios):
        weight = np.prod([share for *_, share in combination], axis=0)
        chosen = np.flatnonzero(weight > 0)
        matrix = design.matrix_with(**{name: value for name, value, _ in combination})
        parts.append(Equations(matrix[chosen], proxy[chosen], weight[chosen], chosen))
    return Equations.together(parts)
