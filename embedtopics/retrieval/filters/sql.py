"""A filter as a condition of SQL, with every value bound to a parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeAlias

from embedtopics.retrieval.filters.tree import Condition, Every, Filter, Node, Not, Period

__all__ = ["date_for_sql", "filter_sql"]

Parameter: TypeAlias = str | int | float
Sql: TypeAlias = tuple[str, list[Parameter]]


def filter_sql(
    where: Filter, column_sql: Callable[[str], str]
) -> tuple[str, tuple[Parameter, ...]]:
    """Write a filter as a condition for SQLite.

    It is true or false for every row, never NULL, and so may be negated and joined with others.
    Plain comparisons can use an index of their column.

    Parameters
    ----------
    where : Filter
    column_sql : callable
        Gives the SQL of a column, quoted. What it names must hold NULL where a document has no
        value, and texts as TEXT with the collation BINARY, integers and numbers as INTEGER or
        REAL, booleans as 0 and 1, and dates as TEXT in ISO 8601 with a "T" before the time,
        without a zone: "2020-01-31" or "2020-01-31T12:00:00".

    Returns
    -------
    condition : str
        With a "?" for each parameter; no value of the filter is in it.
    parameters : tuple

    Examples
    --------
    >>> from embedtopics.retrieval.filters import parse_filter
    >>> where = parse_filter("year > 2020", {"year": "integer"})
    >>> filter_sql(where, lambda name: f'"{name}"')
    ('("year" IS NOT NULL AND "year" > ?)', (2020,))
    """
    text, parameters = _node(where.tree, column_sql)
    return text, tuple(parameters)


def date_for_sql(moment: datetime) -> str:
    """Return the shortest text that stands before all texts of this moment and later ones.

    "2020-01-31" is before "2020-01-31T00:00:00", and so must midnight be when it is a bound.
    """
    text = moment.isoformat()
    if "." in text:
        return text.rstrip("0")
    return text.removesuffix("T00:00:00")


def _node(node: Node, column_sql: Callable[[str], str]) -> Sql:
    if isinstance(node, Condition):
        return _condition(node, column_sql(node.column))
    if isinstance(node, Not):
        text, parameters = _node(node.part, column_sql)
        return f"NOT {text}", parameters
    parts = [_node(part, column_sql) for part in node.parts]
    return _joined(parts, "AND" if isinstance(node, Every) else "OR")


def _joined(parts: Sequence[Sql], word: str) -> Sql:
    """Join as a balanced tree: SQLite refuses expressions that are deeper than 1,000."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    one, other = _joined(parts[:half], word), _joined(parts[half:], word)
    return f"({one[0]} {word} {other[0]})", [*one[1], *other[1]]


def _condition(condition: Condition, column: str) -> Sql:
    operator = condition.operator
    if operator == "is null":
        return f"({column} IS NULL)", []
    if condition.kind == "date":
        parts = [_date(column, operator, v) for v in condition.values if isinstance(v, Period)]
        text, parameters = _joined(parts, "OR")
    else:
        text, parameters = _compared(
            column, operator, [v for v in condition.values if not isinstance(v, Period)]
        )
    return f"({column} IS NOT NULL AND {text})", parameters


def _compared(column: str, operator: str, values: Sequence[Parameter]) -> Sql:
    values = [int(value) if isinstance(value, bool) else value for value in values]
    if operator == "in":
        return f"{column} IN ({', '.join('?' * len(values))})", values
    text = str(values[0])
    # Not LIKE, whose wildcards and case would have to be taken out of the text.
    if operator == "contains":
        return f"instr({column}, ?) > 0", [text]
    if operator == "startswith":
        return f"substr({column}, 1, ?) = ?", [len(text), text]
    if operator == "endswith":
        # As bytes, because substr takes a NUL for the end of a text. Of an empty text, whose last
        # 0 bytes it would take for all of them, always; of no bytes it would make NULL.
        end = f"{column} != '' AND substr(CAST({column} AS BLOB), -?) = CAST(? AS BLOB)"
        return (end, [len(text.encode()), text]) if text else ("1", [])
    return f"{column} {'=' if operator == '==' else operator} ?", values[:1]


def _date(column: str, operator: str, value: Period) -> Sql:
    start = date_for_sql(value.start)
    stop = None if value.stop is None else date_for_sql(value.stop)
    if operator in ("<", ">="):
        return f"{column} {operator} ?", [start]
    if operator == "<=":
        return (f"{column} < ?", [stop]) if stop else ("1", [])
    if operator == ">":
        return (f"{column} >= ?", [stop]) if stop else ("0", [])
    within: Sql = (f"{column} >= ?", [start])
    return _joined([within, (f"{column} < ?", [stop])], "AND") if stop else within
