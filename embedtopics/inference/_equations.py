"""Estimating equations of regressions: coefficients, robust errors and marginal effects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit, stdtr, stdtrit

from embedtopics.inference._design import Change
from embedtopics.inference._sample import Sample
from embedtopics.inference.results import Coefficients
from embedtopics.protocols import BoolArray, Float64Array, Int64Array

if TYPE_CHECKING:
    import pandas as pd

MOST_STEPS = 50
LARGEST_ERROR, CERTAIN = 30.0, 12.0
"""Standard error, over the range of a column, and log odds of a row, beyond which a logistic model
separates the rows."""

SMALL = 1e-5
"""Size of a column, relative to the largest, below which the columns are scaled first."""


def mean_of(family: str, eta: Float64Array) -> Float64Array:
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


def slopes_of(family: str, mean: Float64Array) -> Float64Array:
    """Return the derivatives of the means, (n, n_equations, n_equations)."""
    n, m = mean.shape
    if family == "linear":
        return np.broadcast_to(np.eye(m), (n, m, m))
    if family == "poisson":
        return mean[:, :, None]
    return mean[:, :, None] * np.eye(m) - mean[:, :, None] * mean[:, None, :]


def inverse_of(matrix: Float64Array) -> Float64Array:
    """Return the inverse of a symmetric matrix; the columns of absent levels, of 0, stay 0."""
    sizes = np.sqrt(np.abs(np.diag(matrix)))
    present = sizes[sizes > 0]
    if len(present) and present.min() < SMALL * present.max():
        # Columns in small units would be rounding errors beside the others.
        scale = np.outer(*[np.where(sizes > 0, sizes, 1.0)] * 2)
        return np.asarray(np.linalg.pinv(matrix / scale, hermitian=True) / scale)
    return np.asarray(np.linalg.pinv(matrix, hermitian=True))


@dataclass(frozen=True, eq=False)
class Equations:
    """Rows of estimating equations: covariates, outcomes, and the weight and row of each."""

    x: Float64Array  # (n, n_columns)
    y: Float64Array  # (n, n_equations)
    weight: Float64Array  # (n,)
    row: Int64Array  # (n,)

    @classmethod
    def together(cls, parts: list[Equations]) -> Equations:
        """Put equations below one another."""
        return cls(*map(np.concatenate, zip(*(vars(one).values() for one in parts), strict=True)))

    def moments(self, family: str, beta: Float64Array) -> Float64Array:
        """Return the moments of each row, (n, n_coefficients), without weights."""
        residual = self.y - mean_of(family, self.x @ beta)
        return (residual[:, :, None] * self.x[:, None, :]).reshape(len(self.x), -1)

    def slope(self, family: str, beta: Float64Array) -> Float64Array:
        """Return the weighted sum of the derivatives, (n_coefficients, n_coefficients)."""
        slopes = slopes_of(family, mean_of(family, self.x @ beta)) * self.weight[:, None, None]
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
            step = inverse_of(self.slope(family, beta)) @ total
            step = step.reshape(m, k).T
            beta = beta + step
            if np.abs(step).max() < 1e-10 * (1 + np.abs(beta).max()):
                break
        return beta


class FitEstimate(NamedTuple):
    """Coefficients (n_coefficients,), their covariance, and degrees of freedom of each."""

    beta: Float64Array
    covariance: Float64Array
    df: Float64Array

    def coefficients(self, confidence: float = 0.95) -> Coefficients:
        """Return the coefficients with errors, intervals and p-values."""
        errors = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        reach = stdtrit(self.df, 0.5 + confidence / 2) * errors
        ratio = np.abs(self.beta) / np.where(errors > 0, errors, np.inf)
        p = 2 * stdtr(self.df, -ratio)
        return Coefficients(self.beta, errors, self.beta - reach, self.beta + reach, p)

    def known(self, is_known: BoolArray, confidence: float = 0.95) -> Coefficients:
        """Return the coefficients, NaN but for those that are known, (n_coefficients,)."""
        found = vars(self.coefficients(confidence))
        return Coefficients(
            **{name: np.where(is_known, values, np.nan) for name, values in found.items()}
        )


@dataclass(frozen=True, eq=False)
class EquationFit:
    """A regression on rows whose outcomes are known: the solution of its equations.

    The equations count rows of the sample. `prior` are equations of no row, which keep the
    coefficients finite.
    """

    family: str
    equations: Equations
    sample: Sample
    prior: Equations | None = None

    @cached_property
    def beta(self) -> Float64Array:
        """Coefficients, (n_columns, n_equations)."""
        return self._all().solve(self.family)

    @cached_property
    def inverse(self) -> Float64Array:
        """The inverse of the slope at the solution, (n_coefficients, n_coefficients)."""
        return inverse_of(self._all().slope(self.family, self.beta))

    def _all(self) -> Equations:
        return Equations.together([one for one in (self.equations, self.prior) if one is not None])

    def separated_by(self) -> int | None:
        """Return the column that makes the outcomes of some rows certain, or None."""
        if self.family == "linear":
            return None
        x = self.equations.x
        span = np.maximum(np.ptp(x, axis=0), 1e-12)
        is_present = span > 1e-12
        span[0] = 1.0  # the intercept
        is_present[0] = True
        scale = np.outer(*[np.tile(span, self.beta.shape[1])] * 2)
        slope = self.equations.slope(self.family, self.beta) / scale
        log_odds = x @ self.beta

        if self.family == "poisson":
            # Counts are certain only if they are 0, in units of their mean.
            mean = float(np.average(self.equations.y[:, 0], weights=self.equations.weight))
            slope = slope / mean
            log_odds = np.minimum(log_odds - np.log(mean), 0.0)

        some = np.tile(is_present, self.beta.shape[1])
        least = np.linalg.eigvalsh(slope[np.ix_(some, some)])[0]
        if np.abs(log_odds).max() <= CERTAIN or least >= LARGEST_ERROR**-2:
            return None
        return int(np.abs(self.beta[1:] * span[1:, None]).max(axis=1).argmax()) + 1

    def leverage(self) -> Float64Array:
        """Return the factor by which the residual of each row is too small, (n_rows, 1) (HC3)."""
        x = self.equations.x
        slopes = slopes_of(self.family, mean_of(self.family, x @ self.beta))
        k, m = self.beta.shape
        share = np.zeros(len(x))
        for j in range(m):
            block = self.inverse[j * k : (j + 1) * k, j * k : (j + 1) * k]
            share = np.maximum(share, np.einsum("ni,ij,nj->n", x, block, x) * slopes[:, j, j])
        factor = np.ones((len(self.sample.weight), 1))
        of_row = 1 / (1 - np.clip(share * self.equations.weight, 0.0, 0.9))
        factor[self.equations.row, 0] = of_row
        return factor

    def df(self, combinations: Float64Array | None = None) -> Float64Array:
        """Return the effective number of units behind each coefficient, less one.

        Or behind each linear combination of coefficients, (n_coefficients, n_combinations).
        """
        x = self.equations.x
        slopes = slopes_of(self.family, mean_of(self.family, x @ self.beta))
        spread = np.sqrt(np.einsum("njj->nj", slopes))
        rows = (spread[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        to_sums = self.inverse if combinations is None else self.inverse @ combinations
        parts = np.zeros((len(self.sample.weight), to_sums.shape[1]))
        parts[self.equations.row] = rows @ to_sums * self.equations.weight[:, None]
        return np.maximum(self.sample.effective_units(parts) - 1, 1.0)

    def influence(self) -> Float64Array:
        """Return what each unit adds to the coefficients, (n_units, n_coefficients)."""
        rows = np.zeros((len(self.sample.weight), self.beta.size))
        rows[self.equations.row] = self.equations.moments(self.family, self.beta) @ self.inverse
        return self.sample.by_unit(self.sample.parts(rows, self.leverage()))

    def estimate(self) -> FitEstimate:
        """Return the coefficients, with the robust covariance of units and of the prior."""
        added = self.influence()
        covariance = added.T @ added
        if self.prior is not None:
            covariance = covariance + self.prior_covariance()
        return FitEstimate(self.beta.T.ravel(), covariance, self.df())

    def prior_covariance(self) -> Float64Array:
        """Return the covariance that the half rows of a prior add, each on its own side."""
        assert self.prior is not None
        x = self.prior.x
        weight = self.prior.weight[:, None]
        mean = mean_of(self.family, x @ self.beta)
        meat = x.T @ (x * 0.5 * weight**2 * (mean**2 + (1 - mean) ** 2))
        return np.asarray(self.inverse @ meat @ self.inverse)


class MarginalEffect(NamedTuple):
    """The mean change of the outcome for one unit of a variable, or from its reference."""

    target: str
    variable: str
    level: str
    effect: float
    low: float
    high: float
    p: float


def marginal_table(effects: Iterable[MarginalEffect]) -> pd.DataFrame:
    """Return one row for each effect."""
    import pandas as pd

    return pd.DataFrame(list(effects), columns=list(MarginalEffect._fields))


def marginal_effects(
    changes: Iterable[Change],
    fit: EquationFit,
    estimate: FitEstimate,
    classes: tuple[Any, ...],
    confidence: float = 0.95,
    knows: Callable[[Float64Array], bool] | None = None,
) -> Iterator[MarginalEffect]:
    """Yield the average marginal effect of each change of a variable, by the delta method.

    The estimate may differ from that of the fit, which gives the degrees of freedom. `knows` says
    whether a combination of the coefficients of one equation is determined; others are NaN.
    """
    beta = estimate.beta.reshape(len(classes), -1).T
    for name, level, after, before, width in changes:
        weight = 1 / (len(width) * width)
        means = [mean_of(fit.family, x @ beta) for x in (after, before)]
        slopes = [slopes_of(fit.family, mean) * weight[:, None, None] for mean in means]

        for j, class_name in enumerate(classes):
            value = np.array([weight @ (means[0][:, j] - means[1][:, j])])
            gradient = (slopes[0][:, j].T @ after - slopes[1][:, j].T @ before).ravel()
            variance = (gradient @ estimate.covariance @ gradient).reshape(1, 1)
            df = fit.df(gradient[:, None])
            effect = FitEstimate(value, variance, df).coefficients(confidence)

            ends = [effect.value, effect.low, effect.high, effect.p]
            of_equations = gradient.reshape(len(classes), -1)
            if knows is not None and not all(map(knows, of_equations)):
                ends = [np.array([np.nan])] * 4

            yield MarginalEffect(str(class_name), name, level, *(float(end[0]) for end in ends))
