"""What a filter says, as values that cannot change: conditions, and how they are joined."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

__all__ = [
    "KINDS",
    "OPERATORS",
    "Condition",
    "Every",
    "Filter",
    "Node",
    "Not",
    "Period",
    "Some",
    "Value",
]

KINDS = ("text", "integer", "real", "boolean", "date")
"""What the columns of metadata hold."""

ORDERED = ("<", "<=", ">", ">=")
TEXTUAL = ("contains", "startswith", "endswith")
OPERATORS = ("==", *ORDERED, "in", *TEXTUAL, "is null")
"""What a condition asks; ``!=``, ``not in`` and ``is not null`` are negations of these."""


@dataclass(frozen=True)
class Period:
    """The stretch of time that a date names: "2020-01" is a month, "2020-01-31" a day.

    Parameters
    ----------
    text : str
        ISO 8601, as precise as it was written.
    start : datetime
        First moment, in UTC and without a zone.
    stop : datetime or None
        First moment behind; None behind the last that Python knows.
    """

    text: str
    start: datetime
    stop: datetime | None


Value: TypeAlias = str | int | float | bool | Period


@dataclass(frozen=True)
class Condition:
    """One question about one column.

    Parameters
    ----------
    column : str
    kind : str
        One of `KINDS`; "" before the columns are known.
    operator : str
        One of `OPERATORS`.
    values : tuple of Value
        One, or for "in" some, or for "is null" none.
    """

    column: str
    kind: str
    operator: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Not:
    """True where a part is not."""

    part: Node


@dataclass(frozen=True)
class Every:
    """True where all parts are; they are two or more."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Some:
    """True where at least one part is; they are two or more."""

    parts: tuple[Node, ...]


Node: TypeAlias = Condition | Not | Every | Some


@dataclass(frozen=True)
class Filter:
    """A filter whose columns and types were checked.

    Parameters
    ----------
    text : str
        The filter as an expression; that of the caller where there was one.
    tree : Node
    """

    text: str
    tree: Node

    def __str__(self) -> str:
        return self.text

    @property
    def columns(self) -> frozenset[str]:
        """Names of the columns that it asks for."""
        return _columns_of(self.tree)


def _columns_of(node: Node) -> frozenset[str]:
    if isinstance(node, Condition):
        return frozenset((node.column,))
    parts = (node.part,) if isinstance(node, Not) else node.parts
    return frozenset().union(*map(_columns_of, parts))
