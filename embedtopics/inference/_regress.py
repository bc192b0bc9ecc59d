"""Regression on a measured variable, as outcome, as covariate, or both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, stdtr, stdtrit

from embedtopics._utils.checks import checked_choice, checked_level
from embedtopics.errors import InputError
from embedtopics.inference._design import Design, make_design, parse_covariates
from embedtopics.inference._measurement import Measurement
from embedtopics.inference._sample import Sample
from embedtopics.inference.results import Coefficients, MarginalEffect, Regression
from embedtopics.protocols import BoolArray, Float64Array, Int64Array

FAMILIES = ("linear", "logistic", "multinomial", "poisson")
MOST_STEPS = 50
LARGEST_ERROR = 30.0
"""Standard error, over the range of a column, beyond which a logistic model separates the rows."""


def regress(
    formula: str,
    measurements: Measurement | Sequence[Measurement],
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
    formula : str
        Such as "hostile ~ party * bs(year, df=3)", with names of measurements and columns of their
        data. Dates count in days, months or years from their mean; see `topics.effects`. Formulas
        can call functions, so do not accept them from untrusted sources.
    measurements : Measurement, or sequence of Measurement
        The measured variables among those of the formula, by name. All have the same rows and gold
        rows; units, probabilities and data are those of the first.
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
    double-sampling designs"). With a factor k of 1 it is design-based supervised learning (Egami,
    Hinck, Stewart and Wei 2023); k minimizes the variance of each coefficient, from 0 to 1, as in
    PPI++ (Angelopoulos, Duchi and Zrnic 2023). A prediction of a covariate in probabilities enters
    by the expected equations. Standard errors are robust to heteroscedasticity and to dependence
    within units (HC3), with Student's t for the effective number of gold units.
    """
    checked_level(confidence)
    by_name = _by_name(measurements)
    first = next(iter(by_name.values()))
    left, right = _sides(formula)
    is_gold = np.logical_and.reduce([one.is_gold for one in by_name.values()])
    if any((one.is_gold != is_gold).any() for one in by_name.values()):
        raise InputError("measurements", "with gold values of the same rows")
    design, measured = _design(right, by_name, first, is_gold, reference or {})
    outcome, family, classes = _outcome(left, by_name, first, family, target, design.rows)
    if not measured and left not in by_name:
        raise InputError("formula", f"one with a measured variable ({', '.join(by_name)})", formula)
    problem = _Problem.of(design, outcome, family, by_name, measured, first)
    gold, corrected, factor = problem.estimates()
    naive = problem.naive()
    names = _names(design.columns, classes)
    level = {"confidence": confidence}
    return Regression(
        corrected=_coefficients(corrected, **level),
        gold=_coefficients(gold, **level),
        naive=_coefficients(naive, **level),
        names=names,
        covariance=corrected.covariance,
        power=factor,
        marginal=tuple(_marginal(design, problem, corrected, classes, confidence)),
        formula=formula,
        family=family,
        classes=classes,
        n_rows=len(design.rows),
        n_gold=int(problem.sample.is_gold.sum()),
        n_units=int(problem.sample.unit.max()) + 1,
        decisions=(*first.decisions, *design.decisions),
    )


def _by_name(measurements: Measurement | Sequence[Measurement]) -> dict[str, Measurement]:
    several = [measurements] if isinstance(measurements, Measurement) else list(measurements)
    by_name = {one.name: one for one in several}
    if not several or len(by_name) < len(several):
        raise InputError("measurements", "one or several, each with its own name")
    if len({len(one) for one in several}) > 1:
        raise InputError("measurements", "of the same rows")
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
    is_gold: BoolArray,
    reference: dict[str, str],
) -> tuple[Design, list[str]]:
    """Return the design with gold values, or predicted ones, and the measured covariates."""
    names = set(map(str, first.data.columns)) | set(by_name)
    terms, variables = parse_covariates(f"~ {right}", names)
    columns: dict[str, pd.Series] = {}
    measured = []
    for name in variables:
        if name in by_name:
            measured.append(name)
            one = by_name[name]
            values = np.where(is_gold[:, None], one.truth, one.naive)
            if one.classes is None:
                columns[name] = pd.Series(values[:, 0])
            else:
                labels = np.array([str(label) for label in one.classes], dtype=object)
                columns[name] = pd.Series(labels[values.argmax(axis=1)])
                reference = {name: str(one.classes[0])} | reference
        elif name in first.data:
            columns[name] = first.data[name]
        else:
            raise InputError("formula", f"made of the columns {', '.join(sorted(names))}", name)
    rows = np.ones(len(first), dtype=np.bool_)
    return make_design(terms, columns, rows, first.sample.unit, reference), measured


class _Outcome(NamedTuple):
    """Values of the outcome: gold (or known) and predicted, (n_used, n_equations), and naive."""

    truth: Float64Array
    proxy: Float64Array
    naive: Float64Array


def _outcome(
    left: str,
    by_name: dict[str, Measurement],
    first: Measurement,
    family: str | None,
    target: Any,
    rows: Int64Array,
) -> tuple[_Outcome, str, tuple[Any, ...]]:
    """Return the outcome of the rows, the family, and the classes of its equations."""
    if family is not None:
        checked_choice(family, "family", FAMILIES)
    if left not in by_name:
        if left not in first.data:
            names = ", ".join([*by_name, *map(str, first.data.columns)])
            raise InputError("formula", f"with one of {names} on its left", left)
        values = first.data[left].to_numpy(dtype=np.float64)[rows, None]
        if np.isnan(values).any():
            row = int(rows[np.isnan(values[:, 0]).argmax()])
            raise InputError(left, "present in every row", None, "leave the row out", row=row)
        return _Outcome(values, values, values), family or "linear", (left,)
    one = by_name[left]
    arrays = [array[rows] for array in (one.truth, one.proxy, one.naive)]
    if one.classes is None:
        if family in ("logistic", "multinomial"):
            raise InputError("family", '"linear" or "poisson" for a number', family)
        return _Outcome(*arrays), family or "linear", (left,)
    if family == "multinomial" or (family is None and target is None and len(one.classes) > 2):
        return _Outcome(*(array[:, 1:] for array in arrays)), "multinomial", one.classes[1:]
    if target is None and len(one.classes) > 2:
        raise InputError("target", f"one of the classes {', '.join(map(repr, one.classes))}", None)
    target = one.classes[-1] if target is None else target
    if target not in one.classes:
        raise InputError("target", f"one of {', '.join(map(repr, one.classes))}", target)
    place = [one.classes.index(target)]
    return _Outcome(*(array[:, place] for array in arrays)), family or "linear", (target,)


def _mean(family: str, eta: Float64Array) -> Float64Array:
    """Return the mean of each equation from its linear predictor, (n, n_equations)."""
    if family == "logistic":
        return np.asarray(expit(eta))
    if family == "poisson":
        return np.exp(np.minimum(eta, 30.0))
    if family == "multinomial":
        top = np.maximum(eta.max(axis=1, keepdims=True), 0.0)
        raised = np.exp(eta - top)
        return np.asarray(raised / (np.exp(-top) + raised.sum(axis=1, keepdims=True)))
    return eta


def _slopes(family: str, mean: Float64Array) -> Float64Array:
    """Return the derivatives of the means, (n, n_equations, n_equations)."""
    n, m = mean.shape
    if family == "linear":
        return np.broadcast_to(np.eye(m), (n, m, m))
    if family == "poisson":
        return mean[:, :, None]
    return mean[:, :, None] * np.eye(m) - mean[:, :, None] * mean[:, None, :]


@dataclass(frozen=True, eq=False)
class _Equations:
    """Rows of estimating equations: covariates, outcomes, and the weight and row of each."""

    x: Float64Array  # (n, n_columns)
    y: Float64Array  # (n, n_equations)
    weight: Float64Array  # (n,)
    row: Int64Array  # (n,)

    def of(self, chosen: Any, weight: Float64Array) -> _Equations:
        return _Equations(self.x[chosen], self.y[chosen], weight, self.row[chosen])

    def moments(self, family: str, beta: Float64Array) -> Float64Array:
        """Return the moments of each row, (n, n_coefficients), without weights."""
        residual = self.y - _mean(family, self.x @ beta)
        return (residual[:, :, None] * self.x[:, None, :]).reshape(len(self.x), -1)

    def slope(self, family: str, beta: Float64Array) -> Float64Array:
        """Return the weighted sum of the derivatives, (n_coefficients, n_coefficients)."""
        slopes = _slopes(family, _mean(family, self.x @ beta)) * self.weight[:, None, None]
        m, k = slopes.shape[1], self.x.shape[1]
        blocks = [
            [self.x.T @ (self.x * slopes[:, i, j][:, None]) for j in range(m)] for i in range(m)
        ]
        return np.block(blocks).reshape(m * k, m * k)

    def solve(self, family: str) -> Float64Array:
        """Return the coefficients (n_columns, n_equations) by Newton's method, with halving."""
        k, m = self.x.shape[1], self.y.shape[1]
        beta = np.zeros((k, m))
        if family == "poisson":
            beta[0] = np.log(max(float(self.weight @ self.y[:, 0] / self.weight.sum()), 1e-9))
        size = np.inf
        step = np.zeros((k, m))
        for _ in range(MOST_STEPS):
            total = self.weight @ self.moments(family, beta)
            if np.linalg.norm(total) > size * (1 + 1e-9) and np.linalg.norm(step) > 1e-10:
                step /= 2
                beta = beta - step
                continue
            size = float(np.linalg.norm(total))
            step = _inverse(self.slope(family, beta)) @ total
            step = step.reshape(m, k).T
            beta = beta + step
            if np.abs(step).max() < 1e-10 * (1 + np.abs(beta).max()):
                break
        return beta


def _inverse(matrix: Float64Array) -> Float64Array:
    return np.asarray(np.linalg.pinv(matrix, hermitian=True))


class _Estimate(NamedTuple):
    """Coefficients (n_coefficients,), their covariance, and degrees of freedom of each."""

    beta: Float64Array
    covariance: Float64Array
    df: Float64Array


@dataclass(frozen=True, eq=False)
class _Problem:
    """The equations of gold values and of predictions, and the design of the gold rows."""

    family: str
    gold: _Equations
    predicted: _Equations  # of all rows
    naive_equations: _Equations
    sample: Sample

    @classmethod
    def of(
        cls,
        design: Design,
        outcome: _Outcome,
        family: str,
        by_name: dict[str, Measurement],
        measured: list[str],
        first: Measurement,
    ) -> _Problem:
        rows, n = design.rows, len(design.rows)
        sample = first.sample.take(rows)
        gold = sample.is_gold
        if gold.sum() <= design.matrix.shape[1] + 1:
            found = f"{gold.sum()} for {design.matrix.shape[1]} coefficients"
            raise InputError("gold", "more rows than coefficients", found=found)
        place = np.arange(n)
        of_gold = _Equations(
            design.matrix[gold], outcome.truth[gold], sample.weight[gold], place[gold]
        )
        expanded = _expanded(design, outcome, by_name, measured)
        naive_x = design.matrix
        if measured:
            values = {name: _naive_values(by_name[name], rows) for name in measured}
            naive_x = design.matrix_with(**values)
        naive = _Equations(naive_x, outcome.naive, np.ones(n), place)
        return cls(family, of_gold, expanded, naive, sample)

    def estimates(self) -> tuple[_Estimate, _Estimate, Float64Array]:
        """Return the estimate by gold rows alone, the corrected one, and the factors k."""
        family, gold, predicted = self.family, self.gold, self.predicted
        beta = gold.solve(family)
        self._check_separation(beta)
        inverse = _inverse(gold.slope(family, beta))
        leverage = self._leverage(inverse, beta)
        sample = self.sample
        of_gold = np.zeros((len(sample.weight), beta.size))
        of_gold[gold.row] = gold.moments(family, beta) @ inverse
        of_predicted = np.zeros_like(of_gold)
        moments = predicted.moments(family, beta) * predicted.weight[:, None]
        np.add.at(of_predicted, predicted.row, moments)
        by_all = _inverse(predicted.slope(family, beta))
        inside = sample.is_gold[predicted.row]
        weights = (predicted.weight * sample.weight[predicted.row])[inside]
        by_gold = _inverse(predicted.of(inside, weights).slope(family, beta))
        shift = by_all @ of_predicted.sum(axis=0) - by_gold @ (sample.weight @ of_predicted)
        a = sample.by_unit(sample.parts(of_gold, leverage))
        b = of_predicted @ by_all - sample.parts(of_predicted @ by_gold, leverage)
        b = sample.by_unit(b)
        square = np.square(b).sum(axis=0)
        factor = np.clip(-(a * b).sum(axis=0) / np.where(square > 0, square, 1.0), 0.0, 1.0)
        df = self._degrees(inverse, beta)
        both, flat = a + factor * b, beta.T.ravel()
        return (
            _Estimate(flat, a.T @ a, df),
            _Estimate(flat + factor * shift, both.T @ both, df),
            factor,
        )

    def naive(self) -> _Estimate:
        """Return the estimate that takes predictions for the truth."""
        equations = self.naive_equations
        beta = equations.solve(self.family)
        rows = equations.moments(self.family, beta) @ _inverse(equations.slope(self.family, beta))
        sums = self.sample.by_unit(rows)
        n = len(sums)
        covariance = sums.T @ sums * n / max(n - 1, 1)
        df = np.full(beta.size, float(max(n - beta.shape[0], 1)))
        return _Estimate(beta.T.ravel(), covariance, df)

    def _leverage(self, inverse: Float64Array, beta: Float64Array) -> Float64Array:
        """Return the factor by which the residual of each row is too small, (n_used, 1) (HC3)."""
        x, m = self.gold.x, beta.shape[1]
        slopes = _slopes(self.family, _mean(self.family, x @ beta))
        k = x.shape[1]
        share = np.zeros(len(x))
        for j in range(m):
            block = inverse[j * k : (j + 1) * k, j * k : (j + 1) * k]
            share = np.maximum(share, np.einsum("ni,ij,nj->n", x, block, x) * slopes[:, j, j])
        factor = np.ones((len(self.sample.weight), 1))
        factor[self.gold.row, 0] = 1 / (1 - np.clip(share * self.gold.weight, 0.0, 0.9))
        return factor

    def _degrees(self, inverse: Float64Array, beta: Float64Array) -> Float64Array:
        """Return the effective number of gold units behind each coefficient, less one."""
        slopes = _slopes(self.family, _mean(self.family, self.gold.x @ beta))
        spread = np.sqrt(np.einsum("njj->nj", slopes))
        rows = (spread[:, :, None] * self.gold.x[:, None, :]).reshape(len(self.gold.x), -1)
        parts = np.zeros((len(self.sample.weight), rows.shape[1]))
        parts[self.gold.row] = rows @ inverse * self.gold.weight[:, None]
        return np.maximum(self.sample.effective_units(parts) - 1, 1.0)

    def _check_separation(self, beta: Float64Array) -> None:
        if self.family not in ("logistic", "multinomial"):
            return
        span = np.maximum(np.ptp(self.gold.x, axis=0), 1e-12)
        span[0] = 1.0  # the intercept
        slope = self.gold.slope(self.family, beta) / np.outer(*[np.tile(span, beta.shape[1])] * 2)
        if np.linalg.eigvalsh(slope)[0] < LARGEST_ERROR**-2:
            remedy = 'use family="linear", leave out a covariate, or code more rows'
            raise InputError("formula", "one that does not separate the gold rows", remedy=remedy)


def _naive_values(one: Measurement, rows: Int64Array) -> Any:
    if one.classes is None:
        return one.naive[rows, 0]
    return [str(one.classes[code]) for code in one.naive[rows].argmax(axis=1)]


def _expanded(
    design: Design, outcome: _Outcome, by_name: dict[str, Measurement], measured: list[str]
) -> _Equations:
    """Return the equations of the predictions: each row once for each value of its covariates."""
    rows, n = design.rows, len(design.rows)
    if not measured:
        return _Equations(design.matrix, outcome.proxy, np.ones(n), np.arange(n))
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
        parts.append(_Equations(matrix[chosen], outcome.proxy[chosen], weight[chosen], chosen))
    return _Equations(
        *(np.concatenate([getattr(part, field) for part in parts]) for field in ("x", "y")),
        *(np.concatenate([getattr(part, field) for part in parts]) for field in ("weight", "row")),
    )


def _names(columns: tuple[str, ...], classes: tuple[Any, ...]) -> tuple[tuple[str, str], ...]:
    """Return the class and the column of each coefficient."""
    return tuple((str(one), column) for one in classes for column in columns)


def _coefficients(estimate: _Estimate, confidence: float) -> Coefficients:
    errors = np.sqrt(np.maximum(np.diag(estimate.covariance), 0.0))
    reach = stdtrit(estimate.df, 0.5 + confidence / 2) * errors
    ratio = np.abs(estimate.beta) / np.where(errors > 0, errors, np.inf)
    return Coefficients(
        value=estimate.beta,
        error=errors,
        low=estimate.beta - reach,
        high=estimate.beta + reach,
        p=2 * stdtr(estimate.df, -ratio),
    )


def _marginal(
    design: Design,
    problem: _Problem,
    estimate: _Estimate,
    classes: tuple[Any, ...],
    confidence: float,
) -> Any:
    """Yield the average marginal effect of each variable, by the delta method."""
    k, m = design.matrix.shape[1], len(classes)
    beta = estimate.beta.reshape(m, k).T
    for name in map(str, design.variables):
        column = design.variables[name]
        if hasattr(column, "cat"):
            base, *levels = column.cat.categories
            changes: list[tuple[str, Any, Any, float]] = [(one, one, base, 1.0) for one in levels]
        else:
            step = float(column.std()) * 1e-3
            changes = [("", column + step, column - step, 2 * step)]
        for level, after, before, width in changes:
            ends = [design.matrix_with(**{name: value}) for value in (after, before)]
            means = [_mean(problem.family, x @ beta) for x in ends]
            slopes = [_slopes(problem.family, mean) for mean in means]
            for j, one in enumerate(classes):
                value = float((means[0][:, j] - means[1][:, j]).mean() / width)
                parts = [
                    np.einsum("nm,nk->mk", slope[:, j, :], x) / len(x)
                    for slope, x in zip(slopes, ends, strict=True)
                ]
                gradient = (parts[0] - parts[1]).ravel() / width
                error = float(np.sqrt(max(gradient @ estimate.covariance @ gradient, 0.0)))
                used = np.abs(gradient) > 1e-12
                df = float(estimate.df[used].min()) if used.any() else 1.0
                reach = float(stdtrit(df, 0.5 + confidence / 2)) * error
                p = 2 * float(stdtr(df, -abs(value) / error)) if error > 0 else 1.0
                yield MarginalEffect(str(one), name, level, value, value - reach, value + reach, p)
