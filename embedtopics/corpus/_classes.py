"""Classes of rows: labels, groups and codes as people spell them, and which rows have none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from embedtopics.corpus._texts import compose, is_missing, replace_surrogates
from embedtopics.results import Decision

# What pandas.read_csv takes for a missing value, blank cells aside; "none" and "na" may be classes.
MISSING_CLASSES = frozenset(
    "NA N/A n/a #N/A #NA <NA> NaN nan -NaN -nan NaT NULL null None "
    "1.#IND -1.#IND 1.#QNAN -1.#QNAN".split()
)


class ClassColumn(NamedTuple):
    """The classes of a column, and the cells that stand for a missing class."""

    values: list[Any]
    """One for each row: a string, a Python number or bool, or None for no class."""

    markers: Counter[str]
    """How often a text such as "NA" or a blank one, as it is written, stands for no class."""

    def notes(self, stage: str, column: object) -> tuple[Decision, ...]:
        """Say how many cells count as missing although they hold a text."""
        if not self.markers:
            return ()
        n_rows = self.markers.total()
        shown = ", ".join(repr(marker) for marker, _ in self.markers.most_common(3))
        rows = "1 row has" if n_rows == 1 else f"{n_rows:,} rows have"
        message = f"{rows} no value in {column}: {shown} counts as missing."
        return (Decision(stage, "missing_classes", n_rows, message),)


def is_absent(text: str) -> bool:
    """Return whether a cell's text stands for no value: a blank one, or a marker such as "NA"."""
    stripped = text.strip()
    return not stripped or stripped in MISSING_CLASSES


def read_class(value: Any, known: Container[Any] = ()) -> Any:
    """Return a class in its one spelling, or None if there is none.

    A text is composed (Unicode NFC) and has single spaces; blank texts and markers such as "NA"
    are missing, unless they are among the `known` classes. A whole float becomes an integer,
    because pandas stores integers as floats where the column has gaps. Other values stay.
    """
    if is_missing(value):
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        text = " ".join(compose(replace_surrogates(value)).split())
        return None if is_absent(text) and text not in known else text
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def read_classes(values: Iterable[Any], known: Container[Any] = ()) -> ClassColumn:
    """Read a class for each row; `known` are classes, even if they look like markers."""
    classes: list[Any] = []
    markers: Counter[str] = Counter()
    for value in values:
        label = read_class(value, known)
        if label is None and isinstance(value, str):
            markers[value] += 1
        classes.append(label)
    return ClassColumn(classes, markers)


def spell_class(value: Any) -> str | None:
    """Return a class as text, or None if there is none."""
    label = read_class(value)
    return None if label is None else str(label)


def spell_column(values: pd.Series) -> pd.Series:
    """Return the classes of a column as text, None where there is none."""
    return pd.Series([spell_class(value) for value in values.tolist()], values.index, dtype=object)


def with_types_of(classes: Iterable[Any], values: Sequence[Any]) -> tuple[list[Any], list[str]]:
    """Return values with the types of the classes of the same spelling, and what changed.

    Whether "101" is a text or a number differs between files, by their other codes.
    """
    known = set(classes)
    class_of = {str(read_class(name, known)): name for name in known}
    typed = [value if value in known else class_of.get(str(value), value) for value in values]
    changed = {
        f"{value!r} is {name!r}": None
        for value, name in zip(values, typed, strict=True)
        if type(value) is not type(name)
    }
    return typed, list(changed)
