"""Columns of the corpus -> the design matrix of a linear model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics.corpus.dates import read_dates
from embedtopics.corpus.hashing import is_missing
from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.results import Decision, TopicResult
from embedtopics.topics.trends.rows import values_of

__all__ = ["SECONDS_A_YEAR", "Design", "covariates_in", "make_design"]

Float64Array = npt.NDArray[np.float64]

SECONDS_A_YEAR = 365.2425 * 86_400
MOST_LEVELS = 50
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")

NEAR = 1e-4
"""What a column may differ from those before it, for its length, and still follow from them: less
could not be told in the resamples."""


@dataclass(eq=False)
class _Columns:
    """What is collected on the way, a covariate after the other."""

    values: list[Float64Array] = field(default_factory=list)
    names: list[str] = field(default_factory=lambda: ["intercept"])
    covariates: list[str] = field(default_factory=lambda: [""])
    levels: list[str] = field(default_factory=lambda: [""])
    references: dict[str, str] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    origins: dict[str, float] = field(default_factory=dict)
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Design:
    """A design matrix and the meaning of its columns, as in `TopicEffects`.

    Parameters
    ----------
    matrix : float64 ndarray of shape (n_used, n_columns)
        The first column is 1.
    rows : int64 ndarray of shape (n_used,)
        Rows of the corpus that have a text and a value of every covariate.
    about : mapping of str
        columns, covariates, levels, references, units, origins and ranges.
    decisions : tuple of Decision
    """

    matrix: Float64Array
    rows: Int64Array
    about: Mapping[str, Any]
    decisions: tuple[Decision, ...]


def covariates_in(given: Any) -> dict[str, Any]:
    """Return covariates by name: names of columns, or values.

    Understood are a formula of names joined by + ("~ date + source"), a list of names, and a
    mapping or a data frame of values.

    Raises
    ------
    InputError
        Where there are none, one is named twice, or the formula asks for more than a sum.
    """
    if isinstance(given, pd.DataFrame):
        given = {str(name): given[name] for name in given.columns}
    if isinstance(given, Mapping):
        named = [(str(name), values) for name, values in given.items()]
    elif not isinstance(given, Iterable):
        raise InputError(f"covariates must be names of columns, or values by name; got {given!r}")
    else:
        names = _formula(given) if isinstance(given, str) else list(given)
        if not all(isinstance(name, str) for name in names):
            raise InputError(f"covariates must be names of columns; got {given!r}")
        named = [(name, name) for name in names]
    if not named:
        raise InputError("effects need at least one covariate, such as '~ date'; got none")
    twice = {name for name, _ in named if sum(name == other for other, _ in named) > 1}
    if twice:
        raise InputError(f"each covariate must be named once; got {sorted(twice)[0]!r} twice")
    return dict(named)


def _formula(text: str) -> list[str]:
    names = [name.strip() for name in text.strip().removeprefix("~").split("+")]
    if any(not name or any(sign in name for sign in "~*:|^()") for name in names):
        raise InputError(
            f"a formula is names of columns joined by +, such as '~ date + source'; got {text!r}; "
            "give other columns as a list of names or a mapping of values"
        )
    return names


def make_design(
    result: TopicResult, covariates: Mapping[str, Any], reference: Mapping[str, Any]
) -> Design:
    """Make the design matrix.

    Dates are counted in years and numbers as they are, both from their means; other values are
    levels, each compared with a level of reference: the one named, else the most frequent.

    Raises
    ------
    InputError
        Where a covariate does not vary, has too many levels, or follows from the others.
    """
    corpus = result.corpus
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
        missing = np.array([is_missing(v) or str(v).isspace() or v == "" for v in values.tolist()])
        known &= ~missing
    rows = np.flatnonzero(known)
    if len(rows) < n_text:
        n_left = n_text - len(rows)
        message = f"{n_left:,} of {n_text:,} rows with text lack a covariate and are left out."
        decisions.append(Decision("trends", "rows_without_covariates", n_left, message))
    if len(rows) == 0:
        raise InputError(
            f"none of the {len(corpus)} rows has a text and a value of each covariate; "
            "leave out the covariate that is mostly missing"
        )
    unknown = [name for name in reference if name not in read]
    if unknown:
        raise InputError(f"reference names {unknown[0]!r}, which is no covariate; "
                         f"these are: {', '.join(map(repr, read))}")  # fmt: skip
    columns = _Columns()
    for name, (values, kind) in read.items():
        used = values.iloc[rows]
        if kind == "level":
            _add_levels(columns, name, used, reference.get(name))
        elif name in reference:
            raise InputError(f"reference names {name!r}, which is counted and has no levels")
        else:
            _add_number(columns, name, used, kind)
    matrix = np.column_stack([np.ones(len(rows)), *columns.values])
    _check_rank(matrix, columns.names)
    about = {
        "columns": tuple(columns.names), "covariates": tuple(columns.covariates),
        "levels": tuple(columns.levels), "references": columns.references,
        "units": columns.units, "origins": columns.origins, "ranges": columns.ranges,
    }  # fmt: skip
    return Design(matrix, rows, about, tuple(decisions))


def _kind(values: pd.Series) -> str:
    if pd.api.types.is_datetime64_any_dtype(values):
        return "date"
    if pd.api.types.is_bool_dtype(values):
        return "level"
    # Columns of objects hold dates and numbers too, where some are missing.
    held = pd.api.types.infer_dtype(values, skipna=True) if values.dtype == object else ""
    if held in ("date", "datetime", "datetime64"):
        return "date"
    is_number = pd.api.types.is_numeric_dtype(values) or held in _NUMBERS
    return "number" if is_number else "level"


def _add_number(columns: _Columns, name: str, values: pd.Series, kind: str) -> None:
    if kind == "date":
        moments = values.to_numpy(dtype="datetime64[us]").astype(np.int64)
        numbers = moments / (1e6 * SECONDS_A_YEAR)
    else:
        numbers = values.to_numpy(dtype=np.float64)
    infinite = np.flatnonzero(~np.isfinite(numbers))
    if len(infinite):
        raise InputError(f"covariate {name!r} must be finite; got {numbers[infinite[0]]}")
    origin = float(numbers.mean())
    centred = numbers - origin
    if np.ptp(numbers) == 0:
        raise InputError(f"covariate {name!r} has one value only and explains nothing; "
                         "leave it out")  # fmt: skip
    columns.values.append(centred)
    columns.names.append(name)
    columns.covariates.append(name)
    columns.levels.append("")
    columns.units[name] = "year" if kind == "date" else "unit"
    columns.origins[name] = origin * (SECONDS_A_YEAR if kind == "date" else 1.0)
    columns.ranges[name] = float(centred.min()), float(centred.max())


def _add_levels(columns: _Columns, name: str, values: pd.Series, reference: Any) -> None:
    texts = values.astype(str).to_numpy(dtype=object)
    found, codes, sizes = np.unique(texts, return_inverse=True, return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    levels = [str(found[place]) for place in order]
    if len(levels) > MOST_LEVELS:
        raise InputError(
            f"covariate {name!r} has {len(levels):,} levels, more than {MOST_LEVELS}; put some "
            "together, or give dates and numbers as such (pandas.to_datetime, pandas.to_numeric)"
        )
    if len(levels) < 2:
        raise InputError(f"covariate {name!r} has one value only ({levels[0]!r}) and explains "
                         "nothing; leave it out")  # fmt: skip
    base = levels[0] if reference is None else str(reference)
    if base not in levels:
        raise InputError(
            f"the reference of {name!r} must be one of its levels, "
            f"{', '.join(map(repr, levels[:10]))}; got {reference!r}"
        )
    columns.references[name] = base
    for place, level in zip(order.tolist(), levels, strict=True):
        if level == base:
            continue
        columns.values.append((codes == place).astype(np.float64))
        columns.names.append(f"{name}: {level}")
        columns.covariates.append(name)
        columns.levels.append(level)


def _check_rank(matrix: Float64Array, names: list[str]) -> None:
    """Refuse columns that follow from others, and say which."""
    # The triangle has the same dependences as the matrix, and few rows.
    scaled: Float64Array = np.linalg.qr(matrix / np.linalg.norm(matrix, axis=0)).R
    kept: list[int] = []
    for column in range(scaled.shape[1]):
        if np.linalg.matrix_rank(scaled[:, [*kept, column]], tol=NEAR) == len(kept) + 1:
            kept.append(column)
            continue
        solution = np.linalg.lstsq(scaled[:, kept], scaled[:, column], rcond=None)[0]
        partners = [names[kept[i]] for i in np.flatnonzero(np.abs(solution) > 1e-3)]
        raise InputError(
            f"the effect of {names[column]!r} cannot be told from those of "
            f"{', '.join(map(repr, partners))}: in the {len(matrix):,} rows one follows from the "
            "others; leave one of them out"
        )
