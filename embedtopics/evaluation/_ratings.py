"""Ratings of coders as codes: one spelling of each class, missing ratings, and the order of values.

Words have an order only if it is given, by `order` or by ordered categories of pandas. Numbers,
numerals and dates have their own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics.corpus._classes import read_class, spell_class
from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array

_NUMERAL = re.compile(r"[+-]?\d+(?:[.,]\d+)?")


class Ratings(NamedTuple):
    """The code of each rating, (n_coders, n_units), -1 if it is missing, and its value by code."""

    codes: Int64Array
    values: list[Any]


def read_ratings(
    ratings: Any, level: str = "nominal", order: Sequence[Any] | None = None
) -> Ratings:
    """Read a row of ratings for each coder; values ascend, in the given order if there is one."""
    array = ratings if isinstance(ratings, np.ndarray) else None
    if array is not None and array.dtype.kind in "fiub" and order is None:
        return _read_numbers(_checked(array))
    rows = _rows_of(ratings)
    known = _order_of(ratings, order)
    cells = [[read_class(value) for value in row] for row in rows]
    present = {value for row in cells for value in row if value is not None}
    reading = _readings(present, level, known)

    values = _ascending(set(reading.values()), level, known)
    place = {value: code for code, value in enumerate(values)}
    codes = np.full((len(cells), len(cells[0])), -1, dtype=np.int64)
    for coder, row in enumerate(cells):
        for unit, value in enumerate(row):
            if value is not None:
                codes[coder, unit] = place[reading[value]]
    return Ratings(codes, values)


def _read_numbers(array: npt.NDArray[Any]) -> Ratings:
    import pandas as pd

    if np.isinf(array).any():
        raise InputError("ratings", "finite", float(array[np.isinf(array)][0]))
    flat, values = pd.factorize(array.ravel(), sort=True)
    return Ratings(flat.reshape(array.shape).astype(np.int64), list(values))


def _checked(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.ndim != 2:
        raise InputError("ratings", "a row for each coder", found=f"{array.ndim} dimensions")
    return array


def _rows_of(ratings: Any) -> list[list[Any]]:
    """Return the ratings of each coder as lists of one length."""
    import pandas as pd

    if isinstance(ratings, pd.DataFrame):
        return [list(row) for row in ratings.itertuples(index=False)]
    if isinstance(ratings, np.ndarray):
        return [list(row) for row in _checked(ratings)]

    several = list(ratings)
    if several and all(isinstance(row, pd.Series) for row in several):
        index = several[0].index
        if any(not row.index.equals(index) for row in several):
            if any(not row.index.is_unique or set(row.index) != set(index) for row in several):
                raise InputError("ratings", "Series with the same units in their indexes")
            several = [row.reindex(index) for row in several]

    rows = []
    for row in several:
        if isinstance(row, str) or not np.iterable(row):
            raise InputError("ratings", "a row for each coder", row)
        rows.append(list(row))

    if not rows or len({len(row) for row in rows}) > 1:
        found = f"lengths {', '.join(str(len(row)) for row in rows) or 'of none'}"
        raise InputError("ratings", "a rating of each unit in every row, or None", found=found)
    return rows


def _order_of(ratings: Any, order: Sequence[Any] | None) -> list[Any] | None:
    """Return the values from lowest to highest, as given or by ordered categories."""
    import pandas as pd

    if order is not None:
        known = [read_class(value) for value in order]
        if isinstance(order, str) or len(set(known)) < len(known) or None in known:
            raise InputError("order", "the different values, from lowest to highest", order)
        return known

    if isinstance(ratings, pd.DataFrame):
        types = list(ratings.dtypes)
    elif isinstance(ratings, np.ndarray):
        types = []
    else:
        types = [getattr(row, "dtype", None) for row in ratings]

    found: list[list[Any]] = []
    for dtype in types:
        if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
            categories = [read_class(value) for value in dtype.categories]
            if categories not in found:
                found.append(categories)

    if len(found) > 1:
        remedy = "give the order of all values by order="
        raise InputError("ratings", "categories of one order", found[1], remedy)
    return found[0] if found else None


def _readings(present: set[Any], level: str, known: list[Any] | None) -> dict[Any, Any]:
    """Return what each value that occurs is read as: numerals as numbers where numbers count."""
    texts = [value for value in present if isinstance(value, str)]
    are_numerals = all(_NUMERAL.fullmatch(text) for text in texts)
    is_mixed = bool(texts) and len(texts) < len(present)
    if known is None and texts and are_numerals and (is_mixed or level != "nominal"):
        numbers = {text: _number(text) for text in texts}
        return {value: numbers.get(value, value) for value in present}
    if known is None and is_mixed:
        return {value: spell_class(value) for value in present}
    if known is None:
        return {value: value for value in present}

    # Of ordered values, 1 and "1" are one.
    place = {str(value): value for value in known}
    for value in present:
        if str(value) not in place:
            raise InputError("order", f"a list of all values, {value!r} among them", known)
    return {value: place[str(value)] for value in present}


def _number(text: str) -> float:
    value = float(text.replace(",", "."))
    return int(value) if value.is_integer() else value


def _ascending(values: set[Any], level: str, known: list[Any] | None) -> list[Any]:
    """Return values in ascending order, which words have only if it is known."""
    words = sorted(value for value in values if isinstance(value, str))
    if level == "interval" and words:
        raise InputError("ratings", 'numbers for level="interval"', words[0])

    if known is not None:
        return [value for value in known if value in values]
    if level == "ordinal" and words:
        remedy = 'pass order=, such as order=["low", "high"]'
        raise InputError("order", "given for ratings in words", None, remedy)

    try:
        return sorted(values)
    except TypeError:  # of different kinds
        if level != "nominal":
            raise InputError("ratings", "of one kind", found="several kinds") from None
        return sorted(values, key=lambda value: (type(value).__name__, str(value)))
