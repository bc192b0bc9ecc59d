"""Results of inference: shares, differences of shares, regressions, and how many labels to give."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from embedtopics._utils.checks import checked_between
from embedtopics._utils.display import Displayed
from embedtopics.errors import InputError
from embedtopics.evaluation.results import Estimate
from embedtopics.protocols import Float64Array
from embedtopics.results import Decision

if TYPE_CHECKING:
    import pandas as pd


__all__ = ["LabelPlan", "MeasuredShares", "Regression"]

Z_OF_95 = float(ndtri(0.975))


class PredictedLabel(str):
    """A label that a language model gave: a text that is never taken as gold."""

    __slots__ = ()


COLUMNS = {
    "group": "",
    "class": "",
    "n": "int64",
    "n_gold": "int64",
    "estimate": "float64",
    "low": "float64",
    "high": "float64",
    "gold": "float64",
    "gold_low": "float64",
    "gold_high": "float64",
    "naive": "float64",
    "n_effective": "float64",
}
"""Columns of a table of shares, and the type of each number."""


def shares_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return one row for each share; numbers that a row does not have are NaN."""
    import pandas as pd

    cells = [[row.get(name, math.nan) for name in COLUMNS] for row in rows]
    frame = pd.DataFrame(cells, columns=list(COLUMNS))
    return frame.astype({name: kind for name, kind in COLUMNS.items() if kind})


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MeasuredShares(Displayed):
    """The share of each class in each group, corrected for the errors of predictions.

    Parameters
    ----------
    table : DataFrame
        The shares, see `to_frame`.
    name : str
        The measured variable.
    by : tuple of str
        Columns of the groups.
    confidence : float
    decisions : tuple of Decision

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import embedtopics as et
    >>> hostile = np.arange(400) % 4 == 0
    >>> coder = hostile | (np.arange(400) % 25 == 1)  # errs now and then
    >>> gold = np.where(np.arange(400) % 7 < 3, hostile, None)
    >>> data = pd.DataFrame({"side": np.where(np.arange(400) < 200, "left", "right")})
    >>> measured = et.inference.Measurement(gold, coder, sampling="random", data=data)
    >>> shares = et.inference.shares(measured, by="side")
    >>> shares.to_frame()[["group", "class", "n", "n_gold"]]
       group  class    n  n_gold
    0   left  False  200      87
    1  right  False  200      85
    2   left   True  200      87
    3  right   True  200      85
    >>> shares.difference("left", "right").n
    400
    """

    table: pd.DataFrame
    name: str
    by: tuple[str, ...] = ()
    confidence: float = 0.95
    decisions: tuple[Decision, ...] = ()

    _variances: Float64Array = field(default_factory=lambda: np.empty((0, 2)))
    """Of each row, by its gold rows and by the predictions of other rows, (n_rows, 2)."""

    _correlations: Mapping[Any, Float64Array] = field(default_factory=dict)
    """How the estimates of the groups correlate, by class, (n_groups, n_groups)."""

    _ends: Mapping[Any, Float64Array] = field(default_factory=dict)
    """Ends of the intervals of 0.95, which give p-values, by class, (n_groups, 2)."""

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each class and group.

        Returns
        -------
        DataFrame
            Columns group (None for all rows, a tuple if several columns are crossed) and class
            (None for numbers); n and n_gold, the rows and gold rows; estimate, low and high, the
            corrected share with its interval, NaN with fewer than two gold rows; gold, gold_low and
            gold_high, by the gold rows alone; naive, by the predictions alone, which their errors
            bias; n_effective, the number of gold rows that would be as precise without predictions.
        """
        return self.table.copy()

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
        frame = self.table[["group", "class", "n_gold", "low", "high"]].copy()
        z = float(ndtri(0.5 + self.confidence / 2))
        further = [math.nan] * len(frame)
        for row, (by_gold, by_predictions) in enumerate(self._variances.tolist()):
            if not math.isnan(by_gold):
                n_gold = int(frame["n_gold"].iloc[row])
                allowed = (width / (2 * z)) ** 2 - by_predictions
                total = math.ceil(by_gold * n_gold / allowed) if allowed > 0 else math.inf
                further[row] = max(0.0, total - n_gold)
        frame["further_gold"] = further
        return frame

    def _of_class(self, name: Any) -> pd.DataFrame:
        """Return the rows of a class, one for each group."""
        return self.table[[value == name for value in self.table["class"]]]

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

        Raises
        ------
        InputError
            There is no such group or class, or the shares were estimated without gold rows.

        Notes
        -----
        The interval combines those of both shares (Zou and Donner 2008), so it holds near 0 and 1.
        """
        names = list(self.table["class"])
        name = names[-1] if name is None else name
        if name not in names:
            classes = list(dict.fromkeys(names))
            raise InputError("name", f"one of the classes {', '.join(map(str, classes))}", name)
        rows = self._of_class(name)
        groups = list(rows["group"])
        for group, parameter in ((first, "first"), (second, "second")):
            if group not in groups:
                raise InputError(
                    parameter, f"one of the groups {', '.join(map(str, groups))}", group
                )
        if name not in self._correlations:
            remedy = "estimate them from gold rows"
            raise InputError("first", "a group of shares that have correlations", first, remedy)

        a = groups.index(first)
        b = groups.index(second)
        correlation = float(self._correlations[name][a, b])
        intervals = rows[["estimate", "low", "high"]].to_numpy()
        value = float(intervals[a, 0] - intervals[b, 0])
        low, high = _ends_of_difference(intervals[a], intervals[b], correlation)

        # The half of the interval of 0.95 that faces no difference gives the p-value.
        tested = intervals.copy()
        tested[:, 1:] = self._ends[name]
        test_low, test_high = _ends_of_difference(tested[a], tested[b], correlation)
        half = value - test_low if value > 0 else test_high - value
        score = math.nan
        if half > 0:
            score = abs(value) / half * Z_OF_95
        return Estimate(
            value=value,
            low=float(low),
            high=float(high),
            n=int(rows["n"].iloc[a] + rows["n"].iloc[b]),
            p=2 * float(ndtr(-score)),
        )

    def _summary(self) -> str:
        first = []
        for row in self.table.head(3).to_dict("records"):
            parts = [self.name if row["class"] is None else row["class"]]
            if row["group"] is not None:
                parts.append(f"in {row['group']}")
            name = " ".join(map(str, parts))
            first.append(f"{name} {row['estimate']:.3f} [{row['low']:.3f}, {row['high']:.3f}]")
        rest = len(self.table) - len(first)
        if rest > 0:
            first.append(f"and {rest:,} more")
        return ", ".join(first)


def _ends_of_difference(
    first: Float64Array, second: Float64Array, correlation: float
) -> tuple[float, float]:
    """Return the ends of the interval of a difference (Zou and Donner 2008).

    Each array is (value, low, high).
    """
    value = float(first[0] - second[0])
    below = _together(first[0] - first[1], second[2] - second[0], correlation)
    above = _together(first[2] - first[0], second[0] - second[1], correlation)
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
    marginal : DataFrame
        Average marginal effects, see `marginal_effects`.
    formula, family : str
    classes : tuple
        Classes, or name, of the outcome of each equation.
    n_rows, n_gold, n_units : int
    decisions : tuple of Decision

    Examples
    --------
    >>> import numpy as np

    >>> import pandas as pd
    >>> import embedtopics as et
    >>> age = np.arange(400) % 50
    >>> votes = 2.0 + 0.1 * age + np.sin(np.arange(400))
    >>> gold = np.where(np.arange(400) % 2, votes, np.nan)
    >>> data = pd.DataFrame({"age": age})
    >>> measured = et.inference.Measurement(
    ...     gold, votes.round(), sampling="random", data=data, name="votes"
    ... )
    >>> fit = et.inference.regress(measured, "votes ~ age")
    >>> fit.marginal_effects()[["variable", "effect"]].round(1)
      variable  effect
    0      age     0.1
    """

    corrected: Coefficients
    gold: Coefficients
    naive: Coefficients
    names: tuple[tuple[str, str], ...]
    power: Float64Array
    marginal: pd.DataFrame
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

        Returns
        -------
        DataFrame
            Columns target, variable, level (empty for numbers), effect, low, high and p.
        """
        return self.marginal.copy()

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


@dataclass(frozen=True, eq=False, repr=False)
class LabelPlan(Displayed):
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

    Examples
    --------
    >>> import embedtopics as et
    >>> strata = {"likely": (100, 0.8), "rest": (900, 0.05)}  # rows and expected share
    >>> plan = et.inference.power(n_rows=1000, width=0.1, strata=strata)
    >>> plan.to_frame()
      stratum  labels
    0  likely      16
    1    rest      77
    """

    labels: float
    labels_alone: float
    correlation: float
    strata: Mapping[Any, int] = field(default_factory=dict)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each stratum, or one for all rows: stratum and labels."""
        import pandas as pd

        strata: dict[Any, float] = dict(self.strata)
        if not strata:
            strata[None] = self.labels
        return pd.DataFrame({"stratum": list(strata), "labels": list(strata.values())})

    def _summary(self) -> str:
        strata = "".join(f"; {name}: {n:,}" for name, n in self.strata.items())
        return (
            f"{self.labels:,.0f} gold rows to draw with predictions (correlation "
            f"{self.correlation:.2f}), {self.labels_alone:,.0f} without{strata}"
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
