"""How far coders agree beyond chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.evaluation.bootstrap import interval, resampled_sums
from embedtopics.protocols import Int64Array

__all__ = ["Reliability", "krippendorff_alpha"]

LEVELS = ("nominal", "ordinal", "interval", "ratio")

Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Reliability:
    """Krippendorff's alpha with its bootstrap interval.

    Parameters
    ----------
    alpha : float
        1 where all agree, 0 where they agree as by chance, below where they disagree by system;
        NaN where nothing can be told, because all values are alike or no unit has two.
    low, high : float
        NaN without resamples.
    n_units : int
        Units with at least two values; others tell nothing.
    n_values : int
        Values in these units.
    """

    alpha: float
    low: float
    high: float
    n_units: int
    n_values: int


def krippendorff_alpha(
    ratings: npt.ArrayLike,
    level: str = "nominal",
    *,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Reliability:
    """Measure how far coders agree, 1 less the observed over the expected disagreement.

    For any number of coders, with missing values (Krippendorff 2011, "Computing Krippendorff's
    alpha-reliability", section E).

    Parameters
    ----------
    ratings : array_like of shape (n_coders, n_units)
        What each coder says of each unit; None or NaN where nothing. Strings or numbers for
        "nominal", numbers for the other levels.
    level : {"nominal", "ordinal", "interval", "ratio"}
        What a disagreement is worth: each the same; the square of the values between, counted
        as often as they are used; the square of the difference; or that over the sum.
    n_resamples : int
        Resamples of the units for the interval; 0 for none.
    confidence : float
    seed : int

    Returns
    -------
    Reliability

    Raises
    ------
    InputError
        Where the ratings are no table, a value does not fit the level, or the level is unknown.

    Notes
    -----
    The interval is the percentile interval of alphas of units drawn with replacement, the
    expected disagreement drawn with them.

    Examples
    --------
    >>> found = krippendorff_alpha([[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]])
    >>> round(found.alpha, 3), found.n_units
    (0.095, 10)
    """
    if level not in LEVELS:
        raise InputError(f"level must be one of {', '.join(LEVELS)}; got {level!r}")
    values, codes = _coded(ratings, level)
    pairable = (codes >= 0).sum(axis=0) >= 2
    codes = codes[:, pairable]
    n_units, n_values = codes.shape[1], int((codes >= 0).sum())
    nothing = float("nan")
    if n_units == 0:
        return Reliability(nothing, nothing, nothing, 0, 0)
    cells, by_unit = _coincidences(codes, len(values))
    total = np.asarray(by_unit.sum(axis=0)).reshape(1, -1)
    alpha = float(_alphas(total, cells, values, level)[0])
    low = high = nothing
    if n_resamples:
        drawn = _alphas(resampled_sums(by_unit, n_resamples, seed), cells, values, level)
        low, high = (float(bound) for bound in interval(drawn, confidence))
    return Reliability(alpha, low, high, n_units, n_values)


def _coded(ratings: npt.ArrayLike, level: str) -> tuple[npt.NDArray[Any], Int64Array]:
    """Return the distinct values in order, and the place of each rating in them; -1 for none."""
    import pandas as pd

    try:
        table = np.array(ratings, dtype=object)
    except ValueError:
        table = np.empty(0, dtype=object)
    if table.ndim != 2 or not table.size:
        raise InputError(
            "ratings must be a table, a row for each coder and a column for each unit, with None "
            f"for what is missing; got shape {table.shape}"
        )
    is_missing = np.asarray(pd.isna(table))
    known = table[~is_missing]
    if level == "nominal":
        names = [_name(value) for value in known]
        distinct, places = np.unique(np.array(names, dtype=object), return_inverse=True)
        values: npt.NDArray[Any] = np.arange(len(distinct))
    else:
        values, places = np.unique(_numbers(known, table, is_missing), return_inverse=True)
    if level == "ratio" and len(values) and values[0] < 0:
        raise InputError(f"ratings of level 'ratio' must be 0 or more; got {values[0]:g}")
    codes = np.full(table.shape, -1, dtype=np.int64)
    codes[~is_missing] = places
    return values, codes


def _name(value: Any) -> str:
    """Return a category as a string; 1 and 1.0 are one category."""
    is_whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    return str(int(value)) if is_whole else str(value)


def _numbers(
    known: npt.NDArray[Any], table: npt.NDArray[Any], is_missing: npt.NDArray[Any]
) -> Float64Array:
    found = np.empty(len(known))
    for place, value in enumerate(known):
        try:
            found[place] = float(value)
        except (TypeError, ValueError):
            found[place] = np.nan
        if not np.isfinite(found[place]):
            coder, unit = np.argwhere(~is_missing)[place]
            raise InputError(
                f"ratings must be numbers but for level 'nominal'; got {value!r} of coder "
                f"{coder} for unit {unit}"
            )
    return found


def _coincidences(codes: Int64Array, n_values: int) -> tuple[Int64Array, Any]:
    """Return the pairs of values that occur, and how often in each unit.

    Returns
    -------
    cells : int64 ndarray of shape (n_cells, 2)
    by_unit : csr_matrix of shape (n_units, n_cells)
        Each ordered pair of a unit of m values counts 1 / (m - 1).
    """
    from scipy.sparse import csr_matrix

    n_coders = len(codes)
    n_each = (codes >= 0).sum(axis=0)
    units, cells, weights = [], [], []
    for one in range(n_coders):
        for other in range(n_coders):
            both = np.flatnonzero((codes[one] >= 0) & (codes[other] >= 0))
            if one != other and len(both):
                units.append(both)
                cells.append(codes[one, both] * n_values + codes[other, both])
                weights.append(1.0 / (n_each[both] - 1))
    found, column = np.unique(np.concatenate(cells), return_inverse=True)
    by_unit = csr_matrix(
        (np.concatenate(weights), (np.concatenate(units), column)),
        shape=(codes.shape[1], len(found)),
    )
    return np.column_stack([found // n_values, found % n_values]), by_unit


def _alphas(
    counts: Float64Array, cells: Int64Array, values: npt.NDArray[Any], level: str
) -> Float64Array:
    """Return the alpha of each row of coincidences, shape (n_tables,)."""
    first, second = cells.T
    used = np.zeros((len(counts), len(values)))
    for column, value in enumerate(first.tolist()):  # exact sums, whatever the threads of BLAS
        used[:, value] += counts[:, column]
    n = used.sum(axis=1)
    if level == "nominal":
        observed = (counts * (first != second)).sum(axis=1)
        expected = n * n - (used * used).sum(axis=1)
    elif level == "ratio":
        observed = (counts * _ratio_apart(values[first], values[second])).sum(axis=1)
        apart = _ratio_apart(values[:, None], values[None, :])
        expected = np.einsum("ti,ij,tj->t", used, apart, used)
    else:
        # On an ordinal scale a value stands where the middle of its users does.
        places = np.cumsum(used, axis=1) - used / 2 if level == "ordinal" else values[None, :]
        places = places - places.mean(axis=1, keepdims=True)
        observed = (counts * (places[:, first] - places[:, second]) ** 2).sum(axis=1)
        squares, sums = (used * places**2).sum(axis=1), (used * places).sum(axis=1)
        expected = 2 * (n * squares - sums * sums)
    single = (used > 0).sum(axis=1) < 2  # nothing to agree on
    alphas = np.full(len(counts), np.nan)
    np.divide(observed * (n - 1), expected, out=alphas, where=~single)
    return 1.0 - alphas


def _ratio_apart(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> Float64Array:
    total = one + other
    return np.asarray(
        np.where(total > 0, (one - other) / np.where(total > 0, total, 1.0), 0.0) ** 2
    )
