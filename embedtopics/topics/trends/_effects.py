"""What the share of each topic depends on: dates, groups, numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import csr_matrix, hstack

from embedtopics._utils.checks import checked_count, checked_level, resolve_seed
from embedtopics.clustering.results import NOISE
from embedtopics.corpus._dates import read_dates
from embedtopics.corpus._texts import is_missing
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import RESAMPLES_AT_ONCE, interval
from embedtopics.protocols import Float64Array, Int32Array, Int64Array, RandomState
from embedtopics.topics._stability import NOT_HELD, best_matches, draw_replicates
from embedtopics.topics._vectors import members
from embedtopics.topics.results import TopicResult
from embedtopics.topics.trends._by_group import OTHER, repeated_rows, units_of, values_of
from embedtopics.topics.trends.results import TopicEffects

MOST_LEVELS = 50
FEWEST_UNITS = 5
"""Of a level; two or more with fewer are put together."""
N_REPLICATES = 5
_DATES = (("day", 1.0, 62.0), ("month", 365.2425 / 12, 730.5), ("year", 365.2425, np.inf))
"""Unit of dates, its days, and the days that are spanned up to which it is taken."""
NEAR = 1e-4
"""What a column may differ from those before it, for its length, and still follow from them: less
could not be estimated in the resamples."""


def effects(
    result: TopicResult,
    covariates: Any,
    *,
    reference: Mapping[str, Any] | None = None,
    units: Any = None,
    replicates: int | None = None,
    n_resamples: int = 500,
    confidence: float = 0.95,
    random_state: RandomState = 0,
    show_progress: bool | None = None,
) -> TopicEffects:
    """Measure how the share of each topic changes with dates, groups and numbers.

    One linear model a topic: the share of the rows in it on all covariates together, so that each
    effect is one with the others held.

    Parameters
    ----------
    result : TopicResult
    covariates : str, sequence of str, mapping or DataFrame
        Columns of the corpus, as "~ date + source" or ["date", "source"], or values for each row
        by name. Dates count in days where they span up to two months, in months up to two years,
        else in years, as `units` of the result says; numbers as they are; other values are levels,
        of which those with fewer than five units are put together. Rows that lack one are left out.
    reference : mapping of str to str, optional
        The level that the others of a covariate are compared with; by default the most frequent.
    units : str or array_like of shape (n_rows,), optional
        A column, or a value for each row, of what is independent, such as authors; by default each
        distinct text.
    replicates : int, optional
        Replicates of the clustering (see `with_stability`; each takes about half of a fit). By
        default five, or none where they cannot be drawn, which the decisions say. 0 takes the
        topics as given.
    n_resamples : int
        Of the bootstrap, which weighs units anew.
    confidence : float
    random_state : int, numpy.random.Generator or None
    show_progress : bool or None

    Returns
    -------
    TopicEffects

    Raises
    ------
    InputError
        If a covariate does not exist, does not vary, has more than 50 frequent levels or follows
        from others; or if a parameter is bad.

    Notes
    -----
    Least squares on shares, as `estimateEffect` of stm does: effects are differences of shares,
    and add up to 0 over all topics and none.

    Units are weighed anew by the Bayesian bootstrap (Rubin 1981), with half a row in a topic and
    half a row outside of it at every level, and two standard deviations to both sides of each
    number: Jeffreys' prior, so that a level none of whose rows is in a topic has an interval too.
    Percentiles are expanded for the effective number of units behind a coefficient, as by Student's
    t. In simulations, intervals of 0.95 hold effects of levels of 6 to 30 rows in 94 to 100 % of
    the cases, and those between 10 to 60 authors in 88 to 100 %; near a share of 0 they are wide.

    With replicates, each resample adds, with a random sign, what the coefficients change when the
    topics of one replicate take the place of the result's: the method of composition (Treier and
    Jackman 2008; Roberts et al. 2014, "Structural topic models for open-ended survey responses").
    """
    checked_count(n_resamples, "n_resamples", 20)
    confidence = checked_level(confidence)
    seed = resolve_seed(random_state)
    if not isinstance(reference, Mapping | None):
        raise InputError("reference", "a mapping of covariates to levels", reference)
    unit = units_of(result, units)
    levels = _Levels(dict(reference or {}), unit)
    design = make_design(result, covariates_in(covariates), levels)
    again, notes = _replicates(result, replicates, seed, show_progress)
    fit = _Fit.of(result, design, unit, units)
    shares = _of_labels(result.clustering.labels[fit.documents], result.n_topics)
    coefficients = fit.solve(fit.squares.sum(axis=0)[None], fit.products(shares).sum(axis=0)[None])
    draws = fit.draws(shares, n_resamples, seed)
    decisions = [*design.decisions, *fit.decisions, *notes]
    if again:
        shifts = _shifts(fit, result, again)
        rng = np.random.default_rng([seed, len(again)])
        drawn = shifts[rng.integers(0, len(shifts), n_resamples)]
        draws += drawn * rng.choice([-1.0, 1.0], n_resamples)[:, None, None]
    low, high = interval(draws, fit.n_effective, confidence)
    return TopicEffects(
        columns=tuple(design.columns),
        covariates=tuple(design.covariates),
        levels=tuple(design.levels),
        references=design.references,
        units=design.units,
        labels=tuple(topic.label for topic in result.topics),
        coefficients=coefficients[0],
        low=np.minimum(low, coefficients[0]),
        high=np.maximum(high, coefficients[0]),
        draws=draws,
        n_rows=len(design.rows),
        n_documents=len(fit.documents),
        n_replicates=len(again),
        confidence=confidence,
        decisions=tuple(decisions),
    )


@dataclass(eq=False)
class Design:
    """A design matrix (n_used, n_columns) over `rows` (n_used,), columns as in `TopicEffects`."""

    rows: Int64Array
    decisions: list[Decision]
    values: list[Float64Array]
    columns: list[str] = field(default_factory=lambda: ["intercept"])
    covariates: list[str] = field(default_factory=lambda: [""])
    levels: list[str] = field(default_factory=lambda: [""])
    references: dict[str, str] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)

    def add(self, values: Float64Array, covariate: str, level: str = "") -> None:
        self.values.append(values)
        self.columns.append(f"{covariate}: {level}" if level else covariate)
        self.covariates.append(covariate)
        self.levels.append(level)

    @cached_property
    def matrix(self) -> Float64Array:
        return np.column_stack(self.values)


class _Levels(NamedTuple):
    """The levels that others are compared with, and the unit of each row, (n_rows,)."""

    reference: dict[str, Any]
    units: Int64Array


def covariates_in(given: Any) -> dict[str, Any]:
    """Return covariates by name: names of columns, or values."""
    expected = "names of columns, as '~ date + source' or a list, or values by name"
    if isinstance(given, pd.DataFrame):
        return {str(name): given[name] for name in given.columns}
    if isinstance(given, str):
        names = [name.strip() for name in given.strip().removeprefix("~").split("+")]
        if any(not name or any(sign in name for sign in "~*:|^()") for name in names):
            raise InputError("covariates", expected, given)
        given = names
    if not isinstance(given, Mapping):
        names = list(given) if isinstance(given, Iterable) else [given]
        if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise InputError("covariates", f"different {expected}", given)
        given = {name: name for name in names}
    if not given:
        raise InputError("covariates", expected, given)
    return {str(name): values for name, values in given.items()}


def make_design(result: TopicResult, covariates: Mapping[str, Any], wanted: _Levels) -> Design:
    """Make the design matrix."""
    read: dict[str, tuple[pd.Series, str]] = {}
    decisions: list[Decision] = []
    known = result.documents.of_row >= 0
    n_text = int(known.sum())
    for name, given in covariates.items():
        values, _ = values_of(result, given, name)
        kind = _kind(values)
        if kind == "date":
            values, notes = read_dates(values, name)
            decisions += [note for note in notes if note.name == "time_zone"]
        read[name] = values, kind
        known &= [not (is_missing(v) or str(v).isspace() or v == "") for v in values.tolist()]
    rows = np.flatnonzero(known)
    if n_left := n_text - len(rows):
        message = f"{n_left:,} of {n_text:,} rows with text lack a covariate and are left out."
        decisions.append(Decision("trends", "rows_without_covariates", n_left, message))
    if len(rows) == 0:
        remedy = "leave out the one that is mostly missing"
        raise InputError("covariates", "known in rows with text", found="none", remedy=remedy)
    if unknown := [name for name in wanted.reference if read.get(name, (None, ""))[1] != "level"]:
        raise InputError("reference", "a mapping of covariates that have levels", unknown[0])
    design = Design(rows, decisions, [np.ones(len(rows))])
    for name, (values, kind) in read.items():
        if kind == "level":
            _add_levels(design, name, values.iloc[rows], wanted)
        else:
            _add_number(design, name, values.iloc[rows], kind)
    _check_rank(design)
    return design


def _kind(values: pd.Series) -> str:
    """Return "date", "number" or "level"."""
    # Columns of objects hold dates and numbers too, where some are missing.
    held = pd.api.types.infer_dtype(values, skipna=True) if values.dtype == object else ""
    if pd.api.types.is_datetime64_any_dtype(values) or held in ("date", "datetime", "datetime64"):
        return "date"
    is_number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    numbers = ("integer", "floating", "mixed-integer-float", "decimal")
    return "number" if is_number or held in numbers else "level"


def _add_number(design: Design, name: str, values: pd.Series, kind: str) -> None:
    if kind == "date":
        days = values.to_numpy(dtype="datetime64[us]").astype(np.int64) / 86_400e6
        unit, length = next((u, n) for u, n, most in _DATES if np.ptp(days) <= most)
        numbers = days / length
    else:
        unit, numbers = "unit", values.to_numpy(dtype=np.float64)
    if len(infinite := np.flatnonzero(~np.isfinite(numbers))):
        raise InputError(name, "finite", numbers[infinite[0]].item())
    if np.ptp(numbers) == 0:
        raise InputError(name, "of several values", numbers[0].item(), "leave it out")
    design.add(numbers - float(numbers.mean()), name)
    design.units[name] = unit


def _add_levels(design: Design, name: str, values: pd.Series, wanted: _Levels) -> None:
    reference = wanted.reference.get(name)
    texts = _with_rare_levels_pooled(design, name, values.astype(str), wanted)
    found, codes, sizes = np.unique(texts, return_inverse=True, return_counts=True)
    order = np.argsort(-sizes, kind="stable").tolist()
    levels = [str(found[place]) for place in order]
    if len(levels) > MOST_LEVELS:
        expected = f"a number, a date, or text of at most {MOST_LEVELS} levels"
        remedy = "put some together, or give numbers or dates, as by pandas.to_numeric"
        raise InputError(name, expected, found=f"text of {len(levels):,} levels", remedy=remedy)
    if len(levels) < 2:
        raise InputError(name, "of several values", levels[0], "leave it out")
    base = levels[0] if reference is None else str(reference)
    if base not in levels:
        expected = f"a level of {name!r} ({', '.join(map(repr, levels[:10]))})"
        raise InputError("reference", expected, reference)
    design.references[name] = base
    for place, level in zip(order, levels, strict=True):
        if level != base:
            design.add((codes == place).astype(np.float64), name, level)


def _with_rare_levels_pooled(
    design: Design, name: str, values: pd.Series, wanted: _Levels
) -> npt.NDArray[Any]:
    """Return levels (n_used,), those of too few units put together, and record that."""
    texts = values.to_numpy(dtype=object)
    units = pd.Series(wanted.units[design.rows]).groupby(texts).nunique()
    keep = str(wanted.reference[name]) if name in wanted.reference else None
    frequent = (units >= FEWEST_UNITS) | (units.index == keep)
    rare = units.index[~frequent]
    if len(rare) < 2 or not frequent.any():
        return texts
    other = OTHER
    while other in units.index[frequent]:
        other = f"({other})"
    message = (
        f"{len(rare):,} levels of {name!r} with fewer than {FEWEST_UNITS} units are put "
        f"together as {other!r}."
    )
    design.decisions.append(Decision("trends", f"{name}_levels_pooled", len(rare), message))
    return np.where(np.isin(texts, rare.to_numpy(dtype=object)), other, texts)


def _check_rank(design: Design) -> None:
    """Refuse columns that follow from others, and say which."""
    # The triangle has the same dependences as the matrix, and few rows.
    lengths = np.linalg.norm(design.matrix, axis=0)
    scaled: Float64Array = np.linalg.qr(design.matrix / lengths).R
    kept: list[int] = []
    for column in range(scaled.shape[1]):
        if np.linalg.matrix_rank(scaled[:, [*kept, column]], tol=NEAR) == len(kept) + 1:
            kept.append(column)
            continue
        solution = np.linalg.lstsq(scaled[:, kept], scaled[:, column], rcond=None)[0]
        partners = [repr(design.columns[kept[i]]) for i in np.flatnonzero(abs(solution) > 1e-3)]
        found = f"{design.columns[column]!r}, which follows from {', '.join(partners)}"
        raise InputError("covariates", "such that none follows from the others", found=found)


# Least squares of all topics, and of all resamples, from the sums of each text. statsmodels' OLS,
# fitted once a resample, takes 6 times as long and gives the same coefficients.


@dataclass(frozen=True, eq=False)
class _Fit:
    """What each text of each unit adds to the normal equations, whatever the topics are.

    Columns are scaled to length 1, so that years and millions solve equally well. `points` are rows
    that the prior adds, `weights` what they weigh; `n_effective` (n_columns,) counts the units.
    """

    documents: Int64Array
    units: csr_matrix  # (n_units, n_parts), which parts are of a unit
    sums: Float64Array
    squares: csr_matrix
    scale: Float64Array
    points: Float64Array
    weights: Float64Array
    n_effective: Float64Array
    decisions: tuple[Decision, ...]

    @classmethod
    def of(cls, result: TopicResult, design: Design, unit: Int64Array, given: Any) -> _Fit:
        rows = design.rows
        pairs = np.stack([result.documents.of_row[rows], unit[rows]])
        parts, place = np.unique(pairs, axis=1, return_inverse=True)
        scale = np.linalg.norm(design.matrix, axis=0)
        scaled = design.matrix / scale
        matrix = csr_matrix(scaled)
        member = members(place.ravel())
        squares = csr_matrix(member @ _outer_products(matrix))
        of_unit = np.unique(parts[1], return_inverse=True)[1]
        cells = np.full(len(unit), -1)
        cells[rows] = 0
        repeated = repeated_rows(result, cells, 1, given)
        points, weights = _prior(design, of_unit[place.ravel()], repeated.correlation)
        square = np.asarray(squares.sum(axis=0)).reshape(len(scale), -1)
        influence = scaled @ np.linalg.inv(square)
        together = members(of_unit[place.ravel()])
        # The variance that each unit contributes to a coefficient; Kish's number of equal ones.
        shared = repeated.correlation * np.square(together @ influence)
        shared += (1 - repeated.correlation) * (together @ np.square(influence))
        n_effective = shared.sum(axis=0) ** 2 / np.square(shared).sum(axis=0)
        sums = (member @ matrix).toarray()
        units = members(of_unit)
        return cls(
            parts[0], units, sums, squares, scale, points / scale, weights,
            np.maximum(n_effective, 1.1), repeated.decisions,
        )  # fmt: skip

    def draws(self, shares: csr_matrix, n_resamples: int, seed: int) -> Float64Array:
        """Return coefficients with units weighed anew, shape (n_resamples, n_topics, n_columns)."""
        n_columns = len(self.scale)
        columns = (self.units @ hstack([self.squares, self.products(shares)])).T.tocsr()
        outer = np.einsum("pi,pj->pij", self.points, self.points).reshape(-1, n_columns**2)
        rng = np.random.default_rng(seed)
        found = []
        for begin in range(0, n_resamples, RESAMPLES_AT_ONCE):
            size = min(RESAMPLES_AT_ONCE, n_resamples - begin)
            drawn = (columns @ rng.exponential(size=(columns.shape[1], size))).T
            inside, outside = self.weights * rng.gamma(0.5, size=(2, size, len(self.weights)))
            squares = drawn[:, : n_columns**2] + np.einsum("sp,pc->sc", inside + outside, outer)
            right = drawn[:, n_columns**2 :].reshape(size, -1, n_columns)
            right = right + np.einsum("sp,pc->sc", inside, self.points)[:, None]
            found.append(self.solve(squares, right))
        return np.concatenate(found)

    def products(self, shares: csr_matrix, held: Int64Array | None = None) -> csr_matrix:
        """Return what each text adds to the right side, shape (n, n_topics * n_columns)."""
        sums = self.sums if held is None else self.sums[held]
        n_columns = sums.shape[1]
        entries = np.repeat(np.arange(shares.shape[0]), np.diff(shares.indptr))
        data = shares.data[:, None] * sums[entries]
        places = shares.indices[:, None].astype(np.int64) * n_columns + np.arange(n_columns)
        ends = shares.indptr.astype(np.int64) * n_columns
        shape = (shares.shape[0], shares.shape[1] * n_columns)
        return csr_matrix((data.ravel(), places.ravel(), ends), shape=shape)

    def solve(self, squares: Any, products: Any) -> Float64Array:
        """Return coefficients, shape (n, n_topics, n_columns)."""
        n_columns = len(self.scale)
        left = np.asarray(squares, dtype=np.float64).reshape(-1, n_columns, n_columns)
        right = np.asarray(products, dtype=np.float64).reshape(len(left), -1, n_columns)
        found = np.linalg.solve(left, right.transpose(0, 2, 1)).transpose(0, 2, 1)
        return np.asarray(found / self.scale, dtype=np.float64)


def _prior(
    design: Design, unit: Int64Array, correlation: float
) -> tuple[Float64Array, Float64Array]:
    """Return the rows that the prior adds (n_points, n_columns), and their weights (n_points,)."""
    matrix = design.matrix
    points, weights = [], []

    def add(held: npt.NDArray[np.bool_]) -> None:
        sizes = np.bincount(unit[held]).astype(np.float64)
        points.append(matrix[held].mean(axis=0))
        weights.append(1 + correlation * (float(sizes @ sizes) / sizes.sum() - 1))

    everything = np.ones(len(matrix), dtype=bool)
    for name in dict.fromkeys(design.covariates[1:]):
        own = [i for i, covariate in enumerate(design.covariates) if covariate == name]
        if name in design.references:
            is_other = matrix[:, own] > 0
            for held in (~is_other.any(axis=1), *is_other.T):
                add(held)
            continue
        # Where the others are as they are on average with so high a number.
        number = matrix[:, own[0]] - matrix[:, own[0]].mean()
        for side in (-2.0, 2.0):
            add(everything)
            points[-1] += side * (number @ matrix) / len(matrix) / number.std()
    return np.array(points), np.array(weights)


def _outer_products(matrix: csr_matrix) -> csr_matrix:
    """Return the outer product of each row with itself, shape (n_rows, n_columns ** 2)."""
    n_rows, n_columns = matrix.shape
    n_entries = np.diff(matrix.indptr).astype(np.int64)
    partners = np.repeat(n_entries, n_entries)  # of each entry, those of its row
    one = np.repeat(np.arange(matrix.nnz), partners)
    other = np.arange(len(one)) - np.repeat(np.cumsum(partners) - partners, partners)
    other += np.repeat(np.repeat(matrix.indptr[:-1], n_entries), partners)
    places = matrix.indices[one].astype(np.int64) * n_columns + matrix.indices[other]
    ends = np.concatenate([[0], np.cumsum(n_entries**2)])
    products = matrix.data[one] * matrix.data[other]
    return csr_matrix((products, places, ends), shape=(n_rows, n_columns**2))


def _replicates(
    result: TopicResult, given: int | None, seed: int, show_progress: bool | None
) -> tuple[list[Int32Array], list[Decision]]:
    """Return the labels of the replicates, and why there are none where they cannot be drawn."""
    n = N_REPLICATES if given is None else checked_count(given, "replicates", 0)
    if not n or not result.n_topics:
        return [], []
    try:
        return draw_replicates(result, n, seed, "effects", show_progress), []
    except InputError as error:
        if given is not None:
            raise
        message = f"The intervals take the topics as given, without replicates: {error}."
        return [], [Decision("trends", "no_replicates", True, message)]


def _of_labels(labels: Int32Array, n_topics: int) -> csr_matrix:
    """Return which topic documents are in, the last for none, shape (n, n_topics + 1)."""
    places = labels % (n_topics + 1)  # noise is -1 and thus the last
    parts = np.ones(len(labels)), places, np.arange(len(labels) + 1)
    return csr_matrix(parts, shape=(len(labels), n_topics + 1))


def _shifts(fit: _Fit, result: TopicResult, replicates: list[Int32Array]) -> Float64Array:
    """Return how replicates change the coefficients on the documents that they hold."""
    n_topics, own = result.n_topics, result.clustering.labels
    # A level that a replicate does not hold is changed by nothing there.
    prior = np.einsum("p,pi,pj->ij", fit.weights, fit.points, fit.points).ravel()
    shifts = []
    for labels in replicates:
        both = np.flatnonzero(labels != NOT_HELD)
        _, match = best_matches(own[both], labels[both], result.documents.weights[both], n_topics)
        held = np.flatnonzero(labels[fit.documents] != NOT_HELD)
        found = labels[fit.documents[held]]
        n_found = int(found.max(initial=NOISE)) + 1
        matched = np.flatnonzero((match >= 0) & (match < n_found))
        ones = np.ones(len(matched) + 1)
        rows, columns = np.append(match[matched], n_found), np.append(matched, n_topics)
        taken = csr_matrix((ones, (rows, columns)), shape=(n_found + 1, n_topics + 1))
        theirs = csr_matrix(_of_labels(found, n_found) @ taken)
        ours = _of_labels(own[fit.documents[held]], n_topics)
        squares = np.asarray(fit.squares[held].sum(axis=0)).ravel() + prior
        change = fit.products(theirs, held).sum(axis=0) - fit.products(ours, held).sum(axis=0)
        shifts.append(fit.solve(squares, change)[0])
    return np.array(shifts)
