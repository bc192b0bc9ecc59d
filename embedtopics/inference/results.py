"""Results of inference: shares, differences of shares, regressions, and how many labels to give."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from embedtopics._utils.checks import checked_between
from embedtopics._utils.display import Displayed
from embedtopics.errors import InputError
from embedtopics.evaluation.results import Estimate, ScoreTable
from embedtopics.protocols import Float64Array
from embedtopics.results import Decision

if TYPE_CHECKING:
    import pandas as pd


Z_OF_95 = float(ndtri(0.975))


class PredictedLabel(str):
    """A label that a language model gave: a text that is never taken as gold."""

    __slots__ = ()


class Variance(NamedTuple):
    """The variance of an estimate by its gold rows, and by the predictions of other rows."""

    gold: float
    predictions: float


@dataclass(frozen=True)
class MeasuredShare:
    """The share of a class, or the mean of a number, in a group.

    Parameters
    ----------
    group : str or tuple of str or None
        None for all rows.
    name : object or None
        The class; None for numbers.
    n, n_gold : int
        Rows, and gold rows.
    estimate, low, high : float
        The corrected share with its interval; NaN with fewer than two gold rows.
    gold, gold_low, gold_high : float
        The share by the gold rows alone.
    naive : float
        The share by the predictions alone, which their errors bias.
    n_effective : float
        Number of gold rows that would be as precise without predictions.
    variance : Variance or None
        Of the estimate; None without gold rows.
    """

    group: Any
    name: Any = field(metadata={"column": "class"})
    n: int
    n_gold: int
    estimate: float
    low: float
    high: float
    gold: float = math.nan
    gold_low: float = math.nan
    gold_high: float = math.nan
    naive: float = math.nan
    n_effective: float = math.nan
    variance: Variance | None = field(default=None, metadata={"column": None})


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MeasuredShares(ScoreTable[MeasuredShare]):
    """The share of each class in each group, corrected for the errors of predictions.

    Parameters
    ----------
    rows : tuple of MeasuredShare
    decisions : tuple of Decision
    name : str
        The measured variable.
    by : tuple of str
        Columns of the groups.
    confidence : float
    correlations : mapping of object to float64 ndarray of shape (n_groups, n_groups)
        For each class, how the estimates of the groups correlate.
    ends : mapping of object to float64 ndarray of shape (n_groups, 2)
        For each class, the ends of the intervals of 0.95, which give p-values.
    """

    name: str
    by: tuple[str, ...] = ()
    confidence: float = 0.95
    correlations: Mapping[Any, Float64Array] = field(default_factory=dict)
    ends: Mapping[Any, Float64Array] = field(default_factory=dict)

    row_type = MeasuredShare

    def further_gold(self, width: float) -> pd.DataFrame:
        """Return the number of further gold rows that would narrow each interval to `width`.

        It is infinite if more predictions are needed as well, and NaN if the variance is unknown.
        The rows must be drawn like the first ones. Intervals treat the rows as a sample, so more
        may be needed than there are.

        Raises
        ------
        InputError
            `width` is not between 0 and 1.
        """
        checked_between(width, "width", 0, 1)
        frame = self.to_frame()[["group", "class", "n_gold", "low", "high"]].copy()
        frame["further_gold"] = [_further(one, width, self.confidence) for one in self]
        return frame

    def difference(self, first: Any, second: Any, name: Any = None) -> Estimate:
        """Compare a class in two groups: the share in the first, less that in the second.

        Parameters
        ----------
        first, second : str or tuple of str
            Groups.
        name : object, optional
            The class; by default the last one.

        Returns
        -------
        Estimate
            With its p-value; `n` counts the rows of both groups.

        Notes
        -----
        The interval combines those of both shares (Zou and Donner 2008), so it holds near 0 and 1.
        """
        name = self.rows[-1].name if name is None else name
        rows = self.of(name=name)
        groups = [row.group for row in rows]
        for group, parameter in ((first, "first"), (second, "second")):
            if group not in groups:
                raise InputError(
                    parameter, f"one of the groups {', '.join(map(str, groups))}", group
                )
        if name not in self.correlations:
            remedy = "estimate them from gold rows"
            raise InputError("first", "a group of shares that have correlations", first, remedy)
        a, b = groups.index(first), groups.index(second)
        correlation = float(self.correlations[name][a, b])
        value = rows[a].estimate - rows[b].estimate
        low, high = _ends_of_difference(rows[a], rows[b], correlation)

        # The half of the interval of 0.95 that faces no difference gives the p-value.
        of_tests = [
            replace(rows[place], low=float(ends[0]), high=float(ends[1]))
            for place, ends in ((a, self.ends[name][a]), (b, self.ends[name][b]))
        ]
        test_low, test_high = _ends_of_difference(of_tests[0], of_tests[1], correlation)
        half = value - test_low if value > 0 else test_high - value
        score = math.nan
        if half > 0:
            score = abs(value) / half * Z_OF_95
        n_rows = rows[a].n + rows[b].n
        return Estimate(value, low, high, n_rows, p=2 * float(ndtr(-score)))

    def _summary(self) -> str:
        first = []
        for one in self.rows[:3]:
            name = self.name if one.name is None else one.name
            first.append(f"{name} {one.estimate:.3f} [{one.low:.3f}, {one.high:.3f}]")
        return ", ".join(first + ["..."] * (len(self) > 3))


def _further(row: MeasuredShare, width: float, confidence: float) -> float:
    if row.variance is None:
        return math.nan
    allowed = (width / (2 * float(ndtri(0.5 + confidence / 2)))) ** 2 - row.variance.predictions
    total = math.ceil(row.variance.gold * row.n_gold / allowed) if allowed > 0 else math.inf
    return max(0.0, total - row.n_gold)


def _ends_of_difference(
    first: MeasuredShare, second: MeasuredShare, correlation: float
) -> tuple[float, float]:
    """Return the ends of the interval of a difference (Zou and Donner 2008)."""
    value = first.estimate - second.estimate
    below = _together(first.estimate - first.low, second.high - second.estimate, correlation)
    above = _together(first.high - first.estimate, second.estimate - second.low, correlation)
    return value - below, value + above


def _together(a: float, b: float, correlation: float) -> float:
    return math.sqrt(max(a * a + b * b - 2 * correlation * a * b, 0.0))


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Coefficients of a regression, each (n_coefficients,), with errors, intervals and p-values."""

    value: Float64Array
    error: Float64Array
    low: Float64Array
    high: Float64Array
    p: Float64Array


@dataclass(frozen=True)
class MarginalEffect:
    """The mean change of the outcome for one unit of a variable, or from its reference."""

    target: str
    variable: str
    level: str
    effect: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, eq=False, repr=False)
class Regression(Displayed):
    """A regression on measured variables, corrected, beside those without correction.

    Parameters
    ----------
    corrected, gold, naive : Coefficients
        With the correction, by the gold rows alone, and by predictions taken for the truth.
    names : tuple of (str, str)
        Outcome, or class, and term of each coefficient.
    power : float64 ndarray of shape (n_coefficients,)
        Factor of the predictions, from 0 (useless) to 1.
    marginal : tuple of MarginalEffect
        Average marginal effects.
    formula, family : str
    classes : tuple
        Classes, or name, of the outcome of each equation.
    n_rows, n_gold, n_units : int
    decisions : tuple of Decision
    """

    corrected: Coefficients
    gold: Coefficients
    naive: Coefficients
    names: tuple[tuple[str, str], ...]
    power: Float64Array
    marginal: tuple[MarginalEffect, ...]
    formula: str
    family: str
    classes: tuple[Any, ...]
    n_rows: int
    n_gold: int
    n_units: int
    decisions: tuple[Decision, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each coefficient.

        Returns
        -------
        DataFrame
            Columns outcome, term, effect, low, high, p (NaN if the gold rows do not determine the
            effect or its error, which the decisions explain); gold, gold_low and gold_high by the
            gold rows alone; naive by the predictions; n_effective, the number of gold rows that
            would be as precise without predictions.
        """
        import pandas as pd

        fit, gold, error = self.corrected, self.gold, self.corrected.error
        n_effective = self.n_gold * np.square(gold.error / np.where(error > 0, error, np.nan))
        columns = ["effect", "low", "high", "p", "gold", "gold_low", "gold_high", "naive"]
        arrays = (fit.value, fit.low, fit.high, fit.p, gold.value, gold.low, gold.high)
        frame = pd.DataFrame(self.names, columns=["outcome", "term"])
        frame[columns] = np.column_stack([*arrays, self.naive.value])
        return frame.assign(n_effective=n_effective)

    def marginal_effects(self) -> pd.DataFrame:
        """Return the average marginal effect of each variable, with intervals.

        Numbers change by one unit at the values of each row; levels are compared to the reference.
        """
        import pandas as pd

        return pd.DataFrame([vars(one) for one in self.marginal])

    def to_latex(self) -> str:
        """Return a regression table for LaTeX: corrected, gold rows alone, naive, with booktabs."""
        models = {
            "Corrected": (self.corrected, self.n_rows),
            "Gold rows alone": (self.gold, self.n_gold),
            "Predictions alone": (self.naive, self.n_rows),
        }
        names = [": ".join(pair[len(self.classes) == 1 :]) for pair in self.names]
        return latex_regression(names, models)

    def _summary(self) -> str:
        return (
            f"{self.formula}, {self.family}; {self.n_gold:,} gold of {self.n_rows:,} rows, "
            f"{self.n_units:,} units"
        )


@dataclass(frozen=True, repr=False)
class LabelPlan:
    """How many gold rows an interval or an effect needs.

    Parameters
    ----------
    labels : float
        With predictions; infinite if no number suffices for so few rows.
    labels_alone : float
        Without predictions.
    correlation : float
        Correlation of predictions, or strata, and truth that the plan assumes.
    strata : mapping of object to int
        Gold rows of each stratum; further ones, as `labels`, if it has some.
    """

    labels: float
    labels_alone: float
    correlation: float
    strata: Mapping[Any, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return both numbers."""
        strata = "".join(f"; {name}: {n:,}" for name, n in self.strata.items())
        return (
            f"LabelPlan({self.labels:,.0f} gold rows to draw with predictions (correlation "
            f"{self.correlation:.2f}), {self.labels_alone:,.0f} without{strata})"
        )


STARS = (0.05, 0.01, 0.001)
"""P-values below which a coefficient has one, two and three stars."""

_TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip


def latex_regression(names: Sequence[str], models: Mapping[str, tuple[Coefficients, int]]) -> str:
    """Return models of the same terms, and their rows, as columns; errors are in parentheses."""
    lines = [["", *models]]
    for i, name in enumerate(names):
        fits = [coefficients for coefficients, _ in models.values()]
        stars = ["*" * sum(fit.p[i] < level for level in STARS) for fit in fits]
        values = [_number(fit.value[i], mark) for fit, mark in zip(fits, stars, strict=True)]
        errors = [_number(fit.error[i], "()") for fit in fits]
        lines += [[name, *values], ["", *errors]]
    lines.append(["Rows", *(f"{n:,}" for _, n in models.values())])
    cells = [["".join(_TEX.get(sign, sign) for sign in cell) for cell in line] for line in lines]
    head, *rows = [" & ".join(line) + r" \\" for line in cells]
    body = [r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
    return "\n".join([f"\\begin{{tabular}}{{l{'r' * len(models)}}}", *body])


def _number(value: float, mark: str) -> str:
    """Return a number with its stars, or in parentheses; "--" if it is unknown."""
    if math.isnan(value):
        return "" if mark == "()" else "--"
    return f"({value:.3f})" if mark == "()" else f"{value:.3f}{mark}"
