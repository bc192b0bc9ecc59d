"""Columns of data sets as texts, numbers and classes, or one line that says what is wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.evaluation.correlations import LEAST
from embedtopics.protocols import Int64Array
from embedtopics.results import Decision

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Rows", "by_hash", "numbered"]


class Rows:
    """The rows of a file, or some of them, with the place that each has there.

    Parameters
    ----------
    path : Path
        As `Corpus.from_file` reads them.

    Raises
    ------
    InputError
        Where the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        from embedtopics.corpus.readers import read_file

        self.path = path
        self._frame: pd.DataFrame = read_file(path).frame.reset_index(drop=True)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._frame)

    def where(self, column: str, value: Any) -> Rows:
        """Return the rows that have a value in a column; none is an error."""
        cells = self.cells(column)
        places = np.flatnonzero([cell == value for cell in cells])
        if not len(places):
            there = ", ".join(sorted({repr(cell) for cell in cells})[:10])
            raise InputError(
                f"{self.path.name}: expected rows with {value!r} in the column {column!r}; there "
                f"are {there}"
            )
        return self.at(places)

    def at(self, places: npt.NDArray[np.integer[Any]]) -> Rows:
        """Return rows by their place among these."""
        taken = object.__new__(Rows)
        taken.path, taken._frame = self.path, self._frame.iloc[places]
        return taken

    def cells(self, column: str) -> list[Any]:
        """Return a column as it is."""
        return list(self._column(column))

    def texts(self, column: str, *, some_empty: bool = False) -> tuple[str, ...]:
        """Return a column of texts, or refuse it; documents to be searched may be empty."""
        return self._checked(
            column, lambda cell: isinstance(cell, str) and (some_empty or bool(cell.strip())),
            "a text",
        )  # fmt: skip

    def lists(self, column: str) -> tuple[list[str], ...]:
        """Return a column of lists of texts, or refuse it."""
        return self._checked(column, _is_list_of_texts, "a list of texts")

    def numbers(self, column: str) -> npt.NDArray[np.float64]:
        """Return a column of finite numbers, or refuse it."""
        cells = self._checked(column, _is_number, "a number")
        return np.array([float(cell) for cell in cells], dtype=np.float64)

    def scores(
        self, column: str, scale: tuple[float, float] = (-np.inf, np.inf)
    ) -> npt.NDArray[np.float64]:
        """Return a column of scores that a correlation can be taken with, or refuse it."""
        low, high = scale
        what = "a number" if np.isinf(high) else f"a number from {low:g} to {high:g}"
        cells = self._checked(
            column, lambda cell: _is_number(cell) and low <= float(cell) <= high, what
        )
        scores = np.array([float(cell) for cell in cells], dtype=np.float64)
        if len(scores) < LEAST:
            raise InputError(
                f"{self.path.name}: expected at least {LEAST} pairs, got {len(scores)}, of which "
                "a correlation says nothing"
            )
        if (scores == scores[0]).all():
            raise InputError(
                f"{self.path.name}: expected scores that differ in the column {column!r}; all "
                f"{len(scores)} are {scores[0]:g}"
            )
        return scores

    def names(self, column: str) -> dict[Any, int]:
        """Return the place of each row by its name in a column, or refuse names that recur."""
        places: dict[Any, int] = {}
        for place, name in enumerate(self.cells(column)):
            if name in places:
                raise InputError(
                    f"{self.path.name}: expected names that differ in the column {column!r}; got "
                    f"{name!r} more than once"
                )
            places[name] = place
        return places

    def _checked(self, column: str, is_good: Callable[[Any], bool], what: str) -> tuple[Any, ...]:
        cells = self._column(column)
        for row, cell in zip(cells.index.tolist(), cells, strict=True):
            if not is_good(cell):
                raise InputError(
                    f"{self.path.name}, row {row + 1}: expected {what} in the column {column!r}; "
                    f"got {cell!r:.60}; correct or remove the row"
                )
        return tuple(cells)

    def _column(self, name: str) -> pd.Series[Any]:
        if name not in self._frame:
            raise InputError(
                f"{self.path.name}: expected a column {name!r}; it has "
                f"{', '.join(map(repr, self._frame.columns))}"
            )
        return self._frame[name]


def numbered(
    named: Sequence[str], names: Sequence[str] | None = None, *, where: str = ""
) -> tuple[Int64Array, tuple[str, ...]]:
    """Return classes as places among their sorted names.

    Parameters
    ----------
    named : sequence of str
        Class of each row.
    names : sequence of str, optional
        The classes that there may be.
    where : str
        What is named in an error.

    Raises
    ------
    InputError
        For a class that is not among `names`.
    """
    known = tuple(sorted(set(named))) if names is None else tuple(names)
    places = {name: place for place, name in enumerate(known)}
    for row, name in enumerate(named):
        if name not in places:
            raise InputError(
                f"{where}, example {row + 1}: expected a class among {', '.join(known)}, which "
                f"the training rows have; got {name!r}"
            )
    return np.array([places[name] for name in named], dtype=np.int64), known


def by_hash(
    columns: Sequence[Sequence[Any]], most: int, what: str, task: str
) -> tuple[Int64Array, tuple[Decision, ...]]:
    """Choose some examples by the hash of their texts, which no order of the rows changes.

    Returns
    -------
    places : int64 ndarray
        Of at most `most` examples; all, in their order, where there are no more.
    decisions : tuple of Decision
        What was left out.
    """
    n = len(columns[0])
    if n <= most:
        return np.arange(n), ()
    keys = [
        hashlib.sha256(repr(row).encode("utf-8", "surrogatepass")).digest()
        for row in zip(*columns, strict=True)
    ]
    chosen = np.array(sorted(range(n), key=keys.__getitem__)[:most], dtype=np.int64)
    message = f"{task}: {most:,} of {n:,} {what} were used, chosen by the hash of their texts."
    return chosen, (Decision("evaluation", f"{task}_sample", most, message),)


def _is_number(cell: Any) -> bool:
    try:
        return not isinstance(cell, bool) and bool(np.isfinite(float(cell)))
    except (TypeError, ValueError):
        return False


def _is_list_of_texts(cell: Any) -> bool:
    return isinstance(cell, (list, np.ndarray)) and all(isinstance(part, str) for part in cell)
