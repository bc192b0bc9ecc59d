"""Columns of cells as columns of numbers.

A file of plain cells spells its numbers. A column is read as numbers if all of its cells spell
them in one notation: which character comes before the decimals, and which one, if any, separates
thousands. "1,234" alone is ambiguous, and so is "1.234" in a file whose other columns have decimal
commas. Cells with leading zeros are codes, and a plus sign before many digits begins the number of
a telephone. Such columns stay text, and so does one with a number that 64 bits cannot hold exactly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from embedtopics.corpus._classes import is_absent
from embedtopics.results import Decision

LARGEST_INTEGER = 2**63 - 1
"""The largest integer of 64 bits."""

MOST_CHARACTERS = 400
"""Characters of a cell that can be a number; 1e308 written out has 309 digits."""

PHONE_DIGITS = 7
"""Digits after a plus sign from which an integer is the number of a telephone."""

_EXPONENT = r"(?:[eE][-+]?[0-9]{1,3})?"
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_PHONE = re.compile(rf"\+[0-9]{{{PHONE_DIGITS},}}")
_OTHER_SIGNS = str.maketrans(
    {"\u00a0": " ", "\u2009": " ", "\u202f": " ", "\u2019": "'", "\u2212": "-"}
)
"""Other characters for spaces, apostrophes and minus signs."""


class Notation(NamedTuple):
    """The spelling of the numbers of a column."""

    decimal: str
    thousands: str = ""

    @property
    def pattern(self) -> re.Pattern[str]:
        """The pattern of a number; without separators if it has few digits before the decimals."""
        mark = re.escape(self.decimal)
        if not self.thousands:
            whole = r"(?:0|[1-9][0-9]*)"
        else:
            whole = rf"(?:[1-9][0-9]{{0,2}}(?:{re.escape(self.thousands)}[0-9]{{3}})+"
            whole += r"|0|[1-9][0-9]{0,3})"
        return re.compile(rf"[-+]?(?:{whole}(?:{mark}[0-9]*)?|{mark}[0-9]+){_EXPONENT}")

    def plain(self, cell: str) -> str:
        """Spell a number as Python does."""
        return cell.replace(self.thousands, "").replace(self.decimal, ".")


PLAIN = Notation(".")
POINTS_BETWEEN_THOUSANDS = Notation(",", ".")
_PATTERNS = {
    notation: notation.pattern
    for notation in (
        PLAIN,
        Notation(","),
        Notation(".", ","),
        POINTS_BETWEEN_THOUSANDS,
        Notation(".", " "),
        Notation(",", " "),
        Notation(".", "'"),
        Notation(",", "'"),
    )
}


_NUMERAL = re.compile("|".join(f"(?:{pattern.pattern})" for pattern in _PATTERNS.values()))


class NumeralColumn(NamedTuple):
    """The cells of a column that each spell a number, and the notations that all of them fit."""

    name: str
    cells: list[str]
    rows: list[int]
    notations: list[Notation]

    @property
    def example(self) -> str:
        """A cell that shows the notation."""
        return next((cell for cell in self.cells if not cell.isdigit()), max(self.cells, key=len))

    @property
    def decimals(self) -> set[str]:
        """The characters that may come before the decimals, none if nothing shows them."""
        if PLAIN not in self.notations:
            return {notation.decimal for notation in self.notations}
        is_shown = any("." in cell for cell in self.cells) and agree(self.cells, self.notations)
        return {"."} if is_shown else set()


def agree(cells: Sequence[str], notations: Sequence[Notation]) -> bool:
    """Return whether all notations read the same numbers from the cells."""
    readings = {tuple(notation.plain(cell) for cell in cells) for notation in notations}
    return len(readings) == 1


def infer_type(objects: pd.Series) -> pd.Series:
    """Infer the type of a column of objects; integers with missing values stay integers.

    Integers that a float cannot hold stay objects if the column has fractions as well.
    """
    integers = integers_with_gaps(objects)
    if integers is not objects:
        return integers
    present = [value for value in objects.tolist() if value is not None]
    are_integers = bool(present) and all(type(value) is int for value in present)
    if are_integers and len(present) < len(objects):
        return objects  # beyond 64 bits
    if not are_integers and has_inexact_integers(present):
        return objects
    return objects.infer_objects()


def integers_with_gaps(objects: pd.Series) -> pd.Series:
    """Return integers and None as a column of integers, if 64 bits hold them; others as given."""
    present = [value for value in objects.tolist() if value is not None]
    has_gaps = len(present) < len(objects)
    if has_gaps and present and all(type(value) is int for value in present):
        with suppress(OverflowError):
            return objects.astype("Int64")
    return objects


def has_inexact_integers(values: Sequence[object]) -> bool:
    """Return whether a list of numbers has integers that a float cannot hold."""
    if not all(type(value) in (int, float) for value in values):
        return False
    return any(type(value) is int and not _is_exact(value) for value in values)


def describe_inexact_columns(metadata: pd.DataFrame) -> list[Decision]:
    """Report columns of integers beyond the exact ones of floats, beside fractions."""
    names = []
    for name in metadata.columns:
        column = metadata[name]
        if column.dtype == object and has_inexact_integers(column[column.notna()].tolist()):
            names.append(str(name))

    if not names:
        return []

    message = (
        "Columns keep their integers, which a column of fractions cannot hold, as Python objects: "
        f"{', '.join(names)}."
    )
    return [Decision("corpus", "inexact_integers", names, message)]


def _is_exact(number: int) -> bool:
    try:
        return int(float(number)) == number
    except OverflowError:
        return False


def read_numbers(
    metadata: pd.DataFrame, others: Collection[str | None], delimiter: str = ""
) -> tuple[pd.DataFrame, list[Decision]]:
    """Return a table with its columns of numerals as numbers, and report them.

    The columns `others` stay as they are. `delimiter` is that of the file.
    """
    names = [name for name in metadata.columns if name not in others]
    candidates = [_numerals_of(metadata[name], name) for name in names]
    columns = [column for column in candidates if column is not None]

    # What comes before the decimals of other columns tells what an ambiguous separator means.
    evidence = [column.decimals for column in columns]
    shown = {mark for marks in evidence if len(marks) == 1 for mark in marks}
    decimal = shown.pop() if len(shown) == 1 else ""

    notation_of: dict[str, Notation] = {}
    numbers_of: dict[Any, pd.Series] = {}
    unread: dict[str, str] = {}
    for column in columns:
        notation = _choose(column, decimal, delimiter)
        numbers = None
        if notation is not None:
            numbers = _parse(column, notation, len(metadata))
        if notation is None or numbers is None:
            unread[str(column.name)] = max(column.cells, key=len)
        else:
            numbers_of[column.name] = pd.Series(numbers, index=metadata.index)
            notation_of[str(column.name)] = notation

    return with_columns(metadata, numbers_of), _describe(columns, notation_of, unread)


def with_columns(frame: pd.DataFrame, columns: Mapping[Any, pd.Series]) -> pd.DataFrame:
    """Return a frame with other values in some of its columns.

    They are put in all at once: pandas takes a time that grows with the square of their number to
    put them in one by one.
    """
    if not columns:
        return frame
    values = {name: columns.get(name, column) for name, column in frame.items()}
    changed = pd.DataFrame(values, index=frame.index)
    changed.columns = frame.columns
    return changed


def _numerals_of(values: pd.Series, name: str) -> NumeralColumn | None:
    """Return the numerals of a column, or None if a cell is none or has leading zeros."""
    cells: list[str] = []
    rows: list[int] = []
    n_texts = 0
    objects = values.tolist()

    for row in np.flatnonzero(values.notna()).tolist():
        value = objects[row]
        if type(value) in (int, float):  # workbooks hold numbers beside numerals
            cell = repr(value)
        elif isinstance(value, str) and len(value) <= MOST_CHARACTERS:
            if is_absent(value):
                continue
            cell = value.strip().translate(_OTHER_SIGNS)
            n_texts += 1
        else:
            return None

        if not _NUMERAL.fullmatch(cell):
            return None
        cells.append(cell)
        rows.append(row)

    if not n_texts or any(map(_PHONE.fullmatch, cells)):
        return None
    return NumeralColumn(name, cells, rows, _notations_of(cells))


def _notations_of(cells: Sequence[str]) -> list[Notation]:
    """Return the notations that all numerals fit, the plain one first.

    Next to the plain one, only that with points between thousands can read other numbers.
    """
    if all(map(_INTEGER.fullmatch, cells)):
        return [PLAIN]
    if all(map(_PATTERNS[PLAIN].fullmatch, cells)):
        notations = [PLAIN, POINTS_BETWEEN_THOUSANDS]
    else:
        notations = list(_PATTERNS)
    return [notation for notation in notations if all(map(_PATTERNS[notation].fullmatch, cells))]


def _choose(column: NumeralColumn, decimal: str, delimiter: str) -> Notation | None:
    """Return the notation of a column, or None if it has several.

    `decimal` comes before the decimals of other columns, if it is known.
    """
    notations = column.notations
    if not notations:
        return None
    if agree(column.cells, notations):
        return notations[0]
    if PLAIN in notations:  # the other reading has points between thousands
        may_be_thousands = decimal == "," or (not decimal and delimiter == ";")
        return None if may_be_thousands else PLAIN

    # In a file with commas between its cells, few would write decimals with commas in quotes.
    if not decimal and delimiter == ",":
        decimal = "."
    notations = [notation for notation in notations if notation.decimal == decimal]
    return notations[0] if notations and agree(column.cells, notations) else None


def _parse(column: NumeralColumn, notation: Notation, n_rows: int) -> Any:
    """Return the numbers of a column, (n_rows,), or None if 64 bits do not hold one of them."""
    numerals = [notation.plain(cell) for cell in column.cells]
    is_integer = [_INTEGER.fullmatch(numeral) is not None for numeral in numerals]
    if all(is_integer):
        integers: list[int | None] = [None] * n_rows
        for row, numeral in zip(column.rows, numerals, strict=True):
            integers[row] = int(numeral)
            if abs(int(numeral)) > LARGEST_INTEGER:
                return None
        return pd.array(integers, dtype="Int64" if None in integers else "int64")

    numbers = np.full(n_rows, np.nan)
    for row, numeral, is_whole in zip(column.rows, numerals, is_integer, strict=True):
        numbers[row] = float(numeral)
        is_lost = is_whole and not _is_exact(int(numeral))
        if is_lost or not math.isfinite(numbers[row]):
            return None
    return numbers


def _describe(
    columns: Sequence[NumeralColumn], notation_of: Mapping[str, Notation], unread: Mapping[str, str]
) -> list[Decision]:
    """Report the columns that are numbers, how they are spelled, and those that stay text."""
    decisions = []
    if notation_of:
        names = list(notation_of)
        message = f"Columns of numerals are read as numbers: {', '.join(names)}."
        decisions.append(Decision("corpus", "numeric_columns", names, message))

    spelled = []
    for column in columns:
        notation = notation_of.get(str(column.name), PLAIN)
        if notation != PLAIN:
            example = column.example
            spelled.append(f"{column.name} ({example!r} is {notation.plain(example)})")
    if spelled:
        message = f"Separators in numerals are read as follows: {', '.join(spelled)}."
        decisions.append(Decision("corpus", "number_separators", spelled, message))

    if unread:
        shown = ", ".join(f"{name} (such as {cell!r})" for name, cell in unread.items())
        message = (
            "Columns of numerals stay text, because a numeral can be read in two ways, is spelled "
            f"unlike the others, or has too many digits: {shown}."
        )
        decisions.append(Decision("corpus", "numerals_as_text", list(unread), message))
    return decisions
