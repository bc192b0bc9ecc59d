"""Covariates -> the design matrix of a linear model, by the formulas of formulaic."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.display import one_line
from embedtopics.corpus._columns import read_dates
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.protocols import BoolArray, Float64Array, Int64Array

if TYPE_CHECKING:
    from formulaic.parser.types import Term

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


Change: TypeAlias = tuple[str, str, Float64Array, Float64Array, Float64Array]
"""A variable and its level, the matrices (n_used, n_columns) after and before it changes, and the
size of the change in each row."""


@dataclass(frozen=True, eq=False)
class Design:
    """A design matrix over `rows` (n_used,), with columns as in `TopicEffects`.

    `variables` are the values of `rows`; `specification` and `offsets` make other matrices of them,
    of the columns, and `centers` of the variables that count from a mean.
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

    def matrix_with(self, **values: Any) -> Float64Array:
        """Return the matrix (n_used, n_columns) that it would be with other values of variables."""
        variables = self.variables.copy()
        for name, value in values.items():
            column = variables[name]
            if hasattr(column, "cat"):
                cells = [value] * len(column) if isinstance(value, str) else value
                value = pd.Categorical(cells, categories=column.cat.categories)
            variables[name] = value
        for name, center in self.centers.items():
            variables[name] = variables[name] - center
        matrix = self.specification.get_model_matrix(variables, context={}, na_action="ignore")
        return np.asarray(matrix, dtype=np.float64) - self.offsets

    def changes(self) -> Iterator[Change]:
        """Yield the changes of each variable from its reference, or by a step."""
        for name in map(str, self.variables):
            column = self.variables[name]
            if hasattr(column, "cat"):
                base, *levels = column.cat.categories
                before, width = self.matrix_with(**{name: base}), np.ones(len(column))
                for level in levels:
                    yield name, level, self.matrix_with(**{name: level}), before, width
                continue
            step, low, high = float(column.std()) * 1e-3, column.min(), column.max()
            # Splines are not defined outside of the numbers that they were fitted to.
            ends = (column + step).clip(upper=high), (column - step).clip(lower=low)
            after, before = (self.matrix_with(**{name: value}) for value in ends)
            yield name, "", after, before, (ends[0] - ends[1]).to_numpy()


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
            raise InputError("covariates", expected, covariates) from None
        terms = [] if hasattr(formula, "rhs") else list(formula)
        if len(terms) < 2 or str(terms[0]) != "1":
            with_terms = "a formula with an intercept and other terms, without a left side"
            raise InputError("covariates", with_terms, covariates)
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
        raise InputError("covariates", expected, covariates)
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
    for name, values in columns.items():
        kind = _kind(values)
        if kind == "date":
            values, notes = read_dates(values, name)
            decisions += [note for note in notes if note.name == "time_zone"]
        series[name] = values, kind
        is_complete &= values.notna().to_numpy()
        if kind == "level":
            codes, levels = pd.factorize(values)
            is_complete &= np.array([*(str(one).strip() != "" for one in levels), False])[codes]
    rows = np.flatnonzero(is_complete)
    if n_dropped := int(is_used.sum()) - len(rows):
        message = f"{n_dropped:,} of {is_used.sum():,} rows lack a covariate and are left out."
        decisions.append(Decision("inference", "rows_without_covariates", n_dropped, message))
    if len(rows) == 0:
        remedy = "leave out the one that is mostly missing"
        raise InputError("covariates", "present in rows with text", found="none", remedy=remedy)
    if unknown := [name for name in reference if series.get(name, (None, ""))[1] != "level"]:
        raise InputError("reference", "a mapping of covariates that have levels", unknown[0])
    variables: dict[str, Any] = {}
    units = {}
    for name, (values, kind) in series.items():
        used = values.iloc[rows]
        if kind == "level":
            texts, pooled = _pool_rare_levels(name, used, unit_of_row[rows], reference)
            variables[name] = _read_levels(name, texts, reference.get(name))
            decisions += pooled
        else:
            variables[name], units[name] = _read_numbers(name, used, kind)
    return _build(rows, terms, pd.DataFrame(variables), units, tuple(decisions))


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
    if len(levels) > MAX_LEVELS:
        expected = f"a number, a date, or text of at most {MAX_LEVELS} levels"
        remedy = "merge some levels, or convert the text to numbers or dates"
        raise InputError(name, expected, found=f"text of {len(levels):,} levels", remedy=remedy)
    if len(levels) < 2:
        raise InputError(name, "a variable with several values", levels[0], "leave it out")
    base = levels[0] if reference is None else str(reference)
    if base not in levels:
        expected = f"a level of {name!r} ({', '.join(map(repr, levels[:10]))})"
        raise InputError("reference", expected, reference)
    categories = [base, *(level for level in levels if level != base)]
    return pd.Categorical(unique.astype(str)[codes.ravel()], categories=categories)


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
    in_functions = " ".join(f.expr for term in terms for f in term.factors if f.expr not in units)
    words = set(re.findall(r"\w+", in_functions))
    centers = {name: float(variables[name].mean()) for name in units if name not in words}
    centred = variables.assign(**{name: variables[name] - mean for name, mean in centers.items()})
    options: dict[str, Any] = {"context": {}, "output": "numpy", "na_action": "ignore"}
    try:
        model = Formula(terms).get_model_matrix(centred, **options)
    except FormulaicError as error:
        expected = "a formula of columns and known functions"
        raise InputError("covariates", expected, found=one_line(error)) from None
    matrix = np.ascontiguousarray(model, dtype=np.float64)
    columns = list(model.model_spec.column_names)
    covariates, levels = ["" for _ in columns], ["" for _ in columns]
    references: dict[str, str] = {}
    units_of_terms = {}
    offsets = np.zeros(len(columns))
    for term, indices in list(model.model_spec.term_indices.items())[1:]:
        names = [factor.expr for factor in term.factors]
        covariate = ":".join(names)
        if set(names) <= set(variables) - set(units):
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
            raise InputError("covariates", "terms with finite values", found=reason)
    _check_rank(matrix, columns)
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
    )


def _check_rank(matrix: Float64Array, columns: list[str]) -> None:
    """Refuse linearly dependent columns, and name them."""
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
        reason = f"{columns[column]!r}, which follows from {', '.join(partners)}"
        raise InputError("covariates", "linearly independent", found=reason)
