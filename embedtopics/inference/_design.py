"""Covariates -> the design matrix of a linear model, by the formulas of formulaic.

Marginal effects compare the matrices of changed data. A number changes by a small step, a level
to each other level. A number that a formula only takes as categories, `C(year)`, is read as levels.
Other functions of numbers that jump, such as `I(x >= 2)`, are variables of their own: what a small
step of the number does to them depends on the few rows beside the jump, so the number changes
without them, and they change without the number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.display import one_line
from embedtopics.corpus._classes import spell_class
from embedtopics.corpus._dates import read_dates
from embedtopics.errors import InputError
from embedtopics.protocols import BoolArray, Float64Array, Int64Array
from embedtopics.results import Decision

if TYPE_CHECKING:
    from formulaic.parser.types import Factor, Term

OTHER = "(other)"
"""The level of pooled levels."""
MAX_LEVELS = 50
MIN_UNITS = 5
"""Units below which a level is rare; two or more rare levels are pooled."""
_DATES = (("day", 1.0, 62.0), ("month", 365.2425 / 12, 730.5), ("year", 365.2425, np.inf))
"""Unit of dates, its days, and the longest span in days for which it is taken."""
TOLERANCE = 1e-4
"""Distance of a column, relative to its length, from the span of the columns before it, up to which
it counts as linearly dependent: less could not be estimated in the resamples."""

STEP = 1e-3
"""Step of a number to both sides, in standard deviations, for a marginal effect."""

JUMP = 5e-3
"""Part of the range of a function that a step cannot change unless the function jumps: the step to
both sides is a three thousandth of a range of six standard deviations."""


Change: TypeAlias = tuple[str, str, Float64Array, Float64Array, Float64Array]
"""A variable and its level, the matrices (n_used, n_columns) after and before it changes, and the
size of the change in each row."""


@dataclass(frozen=True, eq=False)
class Design:
    """A design matrix over `rows` (n_used,), with columns as in `TopicEffects`.

    `variables` are the values of `rows`; `specification` and `offsets` make other matrices of them,
    of the columns, and `centers` of the variables that count from a mean. `jumps` are variables
    that follow from others, by their formulas, such as "I(x >= 2)". `changing` are the variables
    that the columns depend on when nothing else changes, and `coded` the numbers whose contrasts
    compare them with a base.
    """

    rows: Int64Array
    matrix: Float64Array
    columns: tuple[str, ...]
    covariates: tuple[str, ...]
    levels: tuple[str, ...]
    references: dict[str, str]
    units: dict[str, str]
    decisions: tuple[Decision, ...]
    variables: pd.DataFrame
    specification: Any
    offsets: Float64Array
    centers: dict[str, float]
    jumps: dict[str, Any]
    changing: tuple[str, ...]
    coded: frozenset[str]

    def take(self, is_kept: BoolArray) -> Design:
        """Return the design of some of its rows (n_used,), with all columns."""
        return replace(
            self,
            rows=self.rows[is_kept],
            matrix=self.matrix[is_kept],
            variables=self.variables[is_kept],
        )

    def matrix_with(self, **values: Any) -> Float64Array:
        """Return the matrix (n_used, n_columns) that it would be with other values of variables."""
        variables = self.variables.copy()
        for name, value in values.items():
            column = variables[name]
            if hasattr(column, "cat"):
                cells = [value] * len(column) if isinstance(value, str) else value
                value = pd.Categorical(cells, categories=column.cat.categories)
            variables[name] = value

        for name, formula in self.jumps.items():
            if name not in values:
                variables[name] = _evaluate(formula, variables)

        for name, center in self.centers.items():
            variables[name] = variables[name] - center

        matrix = self.specification.get_model_matrix(variables, context={}, na_action="ignore")
        return np.asarray(matrix, dtype=np.float64) - self.offsets

    def changes(self) -> Iterator[Change]:
        """Yield the changes of each variable from its reference, or by a step.

        Variables that follow from others stay when these change.
        """
        others = {name: self.variables[name] for name in self.jumps}
        for name in self.changing:
            column = self.variables[name]
            values: dict[str, Any] = dict(others)
            n = len(column)
            levels: list[Any] = []
            if name in self.coded:
                levels = np.unique(column).tolist()
            elif hasattr(column, "cat"):
                levels = list(column.cat.categories)

            if levels:
                base, *levels = levels
                before = self.matrix_with(**{**values, name: base})
                for level in levels:
                    after = self.matrix_with(**{**values, name: level})
                    yield name, str(spell_class(level)), after, before, np.ones(n)
                continue

            if name in self.jumps:
                # The effect of one unit, from the lowest value to the highest.
                low = float(column.min())
                high = float(column.max())
                if low == high:  # rows with other values were left out
                    high += 1.0
                before = self.matrix_with(**{**values, name: np.full(n, low)})
                after = self.matrix_with(**{**values, name: np.full(n, high)})
                yield name, "", after, before, np.full(n, high - low)
                continue

            yield name, "", *self._step(name, values)

    def _step(
        self, name: str, others: dict[str, Any]
    ) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Return the matrices after and before a small step of a number, and its size in rows."""
        column = self.variables[name]
        step = float(column.std()) * STEP
        # Splines are not defined outside of the numbers that they were fitted to.
        upper = (column + step).clip(upper=column.max())
        lower = (column - step).clip(lower=column.min())
        after = self.matrix_with(**{**others, name: upper}).copy()
        before = self.matrix_with(**{**others, name: lower}).copy()
        width = (upper - lower).to_numpy(copy=True)

        # Beside a jump, as in I(x * (x >= 2)), the step goes to the side without it.
        span = np.ptp(self.matrix, axis=0)
        is_jump = (np.abs(after - before) > JUMP * np.maximum(span, 1e-12)).any(axis=1)
        rise = np.abs(after - self.matrix).max(axis=1)
        fall = np.abs(self.matrix - before).max(axis=1)
        goes_up = is_jump & (rise <= fall) & (upper > column).to_numpy()
        goes_down = is_jump & (fall < rise) & (lower < column).to_numpy()
        before[goes_up] = self.matrix[goes_up]
        width[goes_up] = (upper - column).to_numpy()[goes_up]
        after[goes_down] = self.matrix[goes_down]
        width[goes_down] = (column - lower).to_numpy()[goes_down]
        return after, before, width


def parse_covariates(covariates: Any, columns: Set[str]) -> tuple[list[Term], dict[str, Any]]:
    """Return the terms of a model, the intercept first, and its variables by name."""
    from formulaic import Formula
    from formulaic.errors import FormulaicError
    from formulaic.parser.types import Factor, Term

    expected = "a formula such as '~ date + source', names of columns, or values by name"
    if isinstance(covariates, str):
        try:
            formula = Formula(covariates)
        except FormulaicError:
            raise InputError("formula", expected, covariates) from None
        terms = [] if hasattr(formula, "rhs") else list(formula)
        if len(terms) < 2 or str(terms[0]) != "1":
            with_terms = "a formula with an intercept and other terms, without a left side"
            raise InputError("formula", with_terms, covariates)
        # `Formula.required_variables` lacks those within stateful functions such as splines.
        variables: dict[str, Any] = {}
        for factor in (factor for term in terms[1:] for factor in term.factors):
            words = re.findall(r"`([^`]+)`|([^\W\d]\w*)", factor.expr)
            is_name = factor.eval_method.value == "lookup"
            used_names = [factor.expr] if is_name else sorted(columns & set(map("".join, words)))
            variables |= {name: name for name in used_names}
        return terms, variables
    pairs = covariates.items() if isinstance(covariates, Mapping) else ((c, c) for c in covariates)
    variables = {str(name): values for name, values in pairs}
    if not variables:
        raise InputError("formula", expected, covariates)
    factors = [Factor("1", eval_method="literal")]
    factors += [Factor(name, eval_method="lookup") for name in variables]
    return [Term([factor]) for factor in factors], variables


def make_design(
    terms: list[Term],
    columns: Mapping[str, pd.Series],
    is_used: BoolArray,
    unit_of_row: Int64Array,
    reference: Mapping[str, Any],
) -> Design:
    """Make the design matrix of the rows to use in which every variable has a value."""
    series: dict[str, tuple[pd.Series, str]] = {}
    decisions: list[Decision] = []
    is_complete = is_used.copy()
    categories = _categories(terms)

    for name, values in columns.items():
        kind = _kind(values)
        if kind == "date":
            values, notes = read_dates(values, name)
            decisions += [note for note in notes if note.name == "time_zone"]
        if kind != "level" and name in categories:
            kind = "category"
        series[name] = values, kind
        is_complete &= values.notna().to_numpy()
        if kind == "level":
            codes, levels = pd.factorize(values)
            is_text = [str(level).strip() != "" for level in levels]
            is_complete &= np.array([*is_text, False])[codes]  # the last one for missing values

    rows = np.flatnonzero(is_complete)
    if n_dropped := int(is_used.sum()) - len(rows):
        message = f"{n_dropped:,} of {is_used.sum():,} rows lack a covariate and are left out."
        decisions.append(Decision("inference", "rows_without_covariates", n_dropped, message))
    if len(rows) == 0:
        remedy = "leave out the one that is mostly missing"
        raise InputError("formula", "present in rows with text", found="none", remedy=remedy)

    if unknown := [name for name in reference if series.get(name, (None, ""))[1] not in LEVELS]:
        raise InputError("reference", "a mapping of covariates that have levels", unknown[0])

    variables: dict[str, Any] = {}
    units = {}
    for name, (values, kind) in series.items():
        used = values.iloc[rows]
        if kind == "category":
            variables[name] = _read_categories(name, used, reference.get(name))
        elif kind == "level":
            texts, pooled = _pool_rare_levels(name, used, unit_of_row[rows], reference)
            variables[name] = _read_levels(name, texts, reference.get(name))
            decisions += pooled
        else:
            variables[name], units[name] = _read_numbers(name, used, kind)

    return _build(rows, terms, pd.DataFrame(variables), units, tuple(decisions))


CONTRASTS = "contr."
"""How a formula names other contrasts than those with the first level."""

LEVELS = ("level", "category")
"""Kinds of variables that have levels: texts, and numbers that are categories."""


def _categories(terms: list[Term]) -> set[str]:
    """Return the variables that a formula takes as categories only, as in `C(year)`."""
    inside: set[str] = set()
    elsewhere: set[str] = set()
    for factor in (factor for term in terms for factor in term.factors):
        # Contrasts with a base name a number, so that the levels stay numbers.
        category = re.fullmatch(r"C\((?:`([^`]+)`|([^\W\d]\w*))(?:,.*)?\)", factor.expr)
        if category and not (CONTRASTS in factor.expr and "base" in factor.expr):
            inside.add(category[1] or category[2])
        elif factor.eval_method.value == "lookup":
            elsewhere.add(factor.expr)
        else:
            elsewhere |= set(map("".join, re.findall(r"`([^`]+)`|([^\W\d]\w*)", factor.expr)))
    return inside - elsewhere


def _kind(values: pd.Series) -> str:
    """Return "date", "number" or "level"."""
    # Columns of objects hold dates and numbers too, where some are missing.
    inferred = pd.api.types.infer_dtype(values, skipna=True) if values.dtype == object else ""
    dates = ("date", "datetime", "datetime64")
    if pd.api.types.is_datetime64_any_dtype(values) or inferred in dates:
        return "date"
    is_number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    numbers = ("integer", "floating", "mixed-integer-float", "decimal")
    return "number" if is_number or inferred in numbers else "level"


def _read_numbers(name: str, values: pd.Series, kind: str) -> tuple[Float64Array, str]:
    """Return numbers, those of dates from their mean, and their unit."""
    if kind == "date":
        days = values.to_numpy(dtype="datetime64[us]").astype(np.int64) / 86_400e6
        unit, length = next((u, n) for u, n, longest in _DATES if np.ptp(days) <= longest)
        numbers = days / length
    else:
        unit, numbers = "unit", values.to_numpy(dtype=np.float64)
    if len(infinite := np.flatnonzero(~np.isfinite(numbers))):
        raise InputError(name, "finite", numbers[infinite[0]].item())
    if np.ptp(numbers) == 0:
        raise InputError(name, "a variable with several values", numbers[0].item(), "leave it out")
    return numbers - float(numbers.mean()) if kind == "date" else numbers, unit


def _read_levels(name: str, texts: npt.NDArray[Any], reference: Any) -> pd.Categorical:
    """Return levels with the reference first, then the most frequent."""
    unique, codes, sizes = np.unique(texts, return_inverse=True, return_counts=True)
    order = np.argsort(-sizes, kind="stable").tolist()
    levels = [str(unique[place]) for place in order]
    return _as_levels(name, unique.astype(str)[codes.ravel()], levels, reference)


def _as_levels(name: str, texts: Any, levels: list[str], reference: Any) -> pd.Categorical:
    """Return the levels (n_used,), with the reference, or else the first level, as the base."""
    if len(levels) > MAX_LEVELS:
        expected = f"a number, a date, or text of at most {MAX_LEVELS} levels"
        remedy = "merge some levels, or convert the text to numbers or dates"
        raise InputError(name, expected, found=f"text of {len(levels):,} levels", remedy=remedy)
    if len(levels) < 2:
        raise InputError(name, "a variable with several values", levels[0], "leave it out")

    base = levels[0] if reference is None else str(spell_class(reference))
    if base not in levels:
        expected = f"a level of {name!r} ({', '.join(map(repr, levels[:10]))})"
        raise InputError("reference", expected, reference)

    categories = [base, *(level for level in levels if level != base)]
    return pd.Categorical(texts, categories=categories)


def _read_categories(name: str, values: pd.Series, reference: Any) -> pd.Categorical:
    """Return numbers or dates as levels in ascending order, the reference before the others."""
    texts = [str(spell_class(value)) for value in values.tolist()]
    level_of = dict(sorted(zip(values.tolist(), texts, strict=True), key=lambda pair: pair[0]))
    return _as_levels(name, texts, list(dict.fromkeys(level_of.values())), reference)


def _pool_rare_levels(
    name: str, values: pd.Series, unit_of_row: Int64Array, reference: Mapping[str, Any]
) -> tuple[npt.NDArray[Any], list[Decision]]:
    """Return levels (n_used,), with those of few units as one level, and record that."""
    texts = values.astype(str).to_numpy(dtype=object)
    n_units = pd.Series(unit_of_row).groupby(texts).nunique()
    base = str(reference[name]) if name in reference else None
    is_frequent = n_units >= MIN_UNITS
    rare = n_units.index[~is_frequent & (n_units.index != base)]
    if len(rare) < 2 or not is_frequent.any():
        return texts, []
    other = OTHER
    while other in n_units.index.difference(rare):
        other = f"({other})"
    few = f"{len(rare):,} levels of {name!r} with fewer than {MIN_UNITS} units"
    message = f"{few} are pooled as {other!r}."
    decision = Decision("inference", f"{name}_levels_pooled", len(rare), message)
    return np.where(np.isin(texts, rare.to_numpy(dtype=object)), other, texts), [decision]


def _build(
    rows: Int64Array,
    terms: list[Term],
    variables: pd.DataFrame,
    units: Mapping[str, str],
    decisions: tuple[Decision, ...],
) -> Design:
    """Evaluate the terms, and name the columns."""
    from formulaic import Formula
    from formulaic.errors import FormulaicError

    # Then the effect of a level is that at the mean of a number with which it interacts.
    words = _words_in_functions(terms, units)
    centers = {name: float(variables[name].mean()) for name in units if name not in words}

    try:
        terms, jumps = _with_jumps(terms, variables, units)
    except FormulaicError as error:
        raise _wrong_formula(error) from None
    values_of_jumps = {name: _evaluate(formula, variables) for name, formula in jumps.items()}
    variables = variables.assign(**values_of_jumps)
    is_level = {name: hasattr(variables[name], "cat") for name in map(str, variables)}
    centred = variables.assign(**{name: variables[name] - mean for name, mean in centers.items()})

    options: dict[str, Any] = {"context": {}, "output": "numpy", "na_action": "ignore"}
    try:
        model = Formula(terms).get_model_matrix(centred, **options)
    except FormulaicError as error:
        raise _wrong_formula(error) from None

    matrix = np.ascontiguousarray(model, dtype=np.float64)
    columns = list(model.model_spec.column_names)
    covariates = ["" for _ in columns]
    levels = ["" for _ in columns]
    references = {name: variables[name].cat.categories[0] for name in is_level if is_level[name]}
    units_of_terms = {}
    offsets = np.zeros(len(columns))

    for term, indices in list(model.model_spec.term_indices.items())[1:]:
        names = [factor.expr for factor in term.factors]
        covariate = ":".join(names)
        if all(is_level.get(name, False) for name in names):
            references[covariate] = ":".join(variables[name].cat.categories[0] for name in names)
        elif names[0] in units and len(names) == 1:
            units_of_terms[covariate] = units[covariate]
            if units[covariate] == "unit":  # dates are centred
                offsets[indices[0]] = float(centred[covariate].to_numpy().mean())
        for index in indices:
            covariates[index] = covariate
            # Columns are named as "source[T.press]", "date:source[T.press]" or "bs(date)[1]".
            suffix = columns[index].removeprefix(covariate)
            pattern = r"\[(?:T\.)?(.*)\]" if len(names) == 1 else r"\[(?:T\.)?([^\]]*)\]"
            levels[index] = ":".join(re.findall(pattern, suffix))
            columns[index] = f"{covariate}: {levels[index]}" if levels[index] else covariate

    columns[0] = "intercept"
    matrix -= offsets
    for name, column in zip(columns, matrix.T, strict=True):
        if not (np.isfinite(column).all() and column.any()):
            reason = f"{name!r}, which is zero in all rows or not finite"
            raise InputError("formula", "terms with finite values", found=reason)
    if (dependence := find_dependence(matrix, columns)) is not None:
        raise InputError("formula", "linearly independent", found=dependence)
    used = _words_in_functions(terms, jumps) | {f.expr for term in terms for f in term.factors}

    return Design(
        rows=rows,
        matrix=matrix,
        columns=tuple(columns),
        covariates=tuple(covariates),
        levels=tuple(levels),
        references=references,
        units=units_of_terms,
        decisions=decisions,
        variables=variables,
        specification=model.model_spec,
        offsets=offsets,
        centers=centers,
        jumps=jumps,
        changing=tuple(name for name in is_level if name in used),
        coded=frozenset(_coded(terms, units)),
    )


def _coded(terms: list[Term], units: Mapping[str, str]) -> set[str]:
    """Return the numbers with contrasts of their own, which have no small steps."""
    contrasts = [f.expr for term in terms for f in term.factors if CONTRASTS in f.expr]
    return set(re.findall(r"\w+", " ".join(contrasts))) & set(units)


def _wrong_formula(error: Exception) -> InputError:
    expected = "a formula of columns and known functions"
    return InputError("formula", expected, found=one_line(error))


def _words_in_functions(terms: list[Term], names: Mapping[str, Any]) -> set[str]:
    """Return the words of the factors of terms that are not among some names."""
    factors = [factor.expr for term in terms for factor in term.factors]
    return set(re.findall(r"\w+", " ".join(factor for factor in factors if factor not in names)))


def _with_jumps(
    terms: list[Term], variables: pd.DataFrame, units: Mapping[str, str]
) -> tuple[list[Term], dict[str, Any]]:
    """Return terms in which functions of numbers that jump are variables, and their formulas."""
    from formulaic.parser.types import Factor, Term

    jumps: dict[str, Any] = {}
    for factor in {f.expr: f for term in terms for f in term.factors}.values():
        words = set(re.findall(r"\w+", factor.expr))
        numbers = [name for name in units if name in words]
        if factor.eval_method.value == "lookup" or CONTRASTS in factor.expr or not numbers:
            continue
        formula = _formula_of(factor, variables)
        if _jumps(formula, variables, numbers):
            jumps[factor.expr] = formula
    factors = {name: Factor(name, eval_method="lookup") for name in jumps}
    renamed = [Term([factors.get(f.expr, f) for f in term.factors]) for term in terms]
    return renamed, jumps


def _formula_of(factor: Factor, variables: pd.DataFrame) -> Any:
    """Return what evaluates a factor alone: one column, or one for each of its levels."""
    from formulaic import Formula
    from formulaic.parser.types import Term

    options: dict[str, Any] = {"context": {}, "output": "numpy", "na_action": "ignore"}
    return Formula([Term([factor])]).get_model_matrix(variables, **options).model_spec


def _columns_of(formula: Any, variables: pd.DataFrame) -> Float64Array:
    matrix = formula.get_model_matrix(variables, context={}, na_action="ignore")
    return np.asarray(matrix, dtype=np.float64)


def _jumps(formula: Any, variables: pd.DataFrame, numbers: list[str]) -> bool:
    """Return whether a function of numbers is constant but for jumps."""
    names = list(formula.column_names)
    if len(names) > 1 and all("[" in name for name in names):
        return any(kind.value == "categorical" for kind, _ in formula.encoder_state.values())

    values = _columns_of(formula, variables)
    upper = variables.copy()
    lower = variables.copy()
    for name in numbers:
        column = variables[name]
        step = float(column.std()) * STEP
        upper[name] = (column + step).clip(upper=column.max())
        lower[name] = (column - step).clip(lower=column.min())

    moved = np.abs(_columns_of(formula, upper) - _columns_of(formula, lower))
    is_small = ~((moved == 0) | (moved > JUMP * np.ptp(values, axis=0)))
    return not is_small.any()


def _evaluate(formula: Any, variables: pd.DataFrame) -> Any:
    """Return the values of a function that jumps: numbers, or the level of each row."""
    values = _columns_of(formula, variables)
    if values.shape[1] == 1:
        return values[:, 0]
    levels = [re.findall(r"\[(?:T\.)?(.*)\]", name)[0] for name in formula.column_names]
    levels = [str(spell_class(_number_or_text(level))) for level in levels]
    codes = values.argmax(axis=1)
    return pd.Categorical(np.array(levels, dtype=object)[codes], categories=levels)


def _number_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def find_dependence(matrix: Float64Array, columns: Sequence[str]) -> str | None:
    """Return a column that depends linearly on others, in words, or None."""
    # The triangle has the same dependences as the matrix, and few rows.
    scaled: Float64Array = np.linalg.qr(matrix / np.linalg.norm(matrix, axis=0)).R
    independent: list[int] = []
    for column in range(scaled.shape[1]):
        rank = np.linalg.matrix_rank(scaled[:, [*independent, column]], tol=TOLERANCE)
        if rank == len(independent) + 1:
            independent.append(column)
            continue
        solution = np.linalg.lstsq(scaled[:, independent], scaled[:, column], rcond=None)[0]
        partners = [repr(columns[independent[i]]) for i in np.flatnonzero(abs(solution) > 1e-3)]
        return f"{columns[column]!r}, which follows from {', '.join(partners)}"
    return None
