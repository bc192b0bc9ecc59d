"""A filter as a condition of SQL, with every value bound to a parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeAlias

from embedtopics.retrieval.filters._conditions import And, Condition, Filter, Node, Not, Period

Sql: TypeAlias = tuple[str, list[str | int | float]]


def filter_sql(where: Filter, column_sql: Callable[[str], str]) -> Sql:
    """Write a filter as a condition for SQLite.

    It is true or false for every row, never NULL, and so may be negated and joined with others.
    Plain comparisons can use an index of their column.
    """
    return _node(where.tree, column_sql)


def _node(node: Node, column_sql: Callable[[str], str]) -> Sql:
    if isinstance(node, Condition):
        return _condition(node, column_sql(node.column))
    if isinstance(node, Not):
        text, parameters = _node(node.part, column_sql)
        return f"NOT {text}", parameters
    parts = [_node(part, column_sql) for part in node.parts]
    return _joined(parts, "AND" if isinstance(node, And) else "OR")


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
    periods = [value for value in condition.values if isinstance(value, Period)]
    if periods:
        text, parameters = _joined([_date(column, operator, value) for value in periods], "OR")
    else:
        values = [v for v in condition.values if not isinstance(v, Period)]
        text, parameters = _compared(column, operator, values)
    return f"({column} IS NOT NULL AND {text})", parameters


def _compared(column: str, operator: str, values: Sequence[str | int | float]) -> Sql:
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
    start = _bound(value.start)
    stop = None if value.stop is None else _bound(value.stop)
    if operator in ("<", ">="):
        return f"{column} {operator} ?", [start]
    if operator == "<=":
        return (f"{column} < ?", [stop]) if stop else ("1", [])
    if operator == ">":
        return (f"{column} >= ?", [stop]) if stop else ("0", [])
    within: Sql = (f"{column} >= ?", [start])
    return _joined([within, (f"{column} < ?", [stop])], "AND") if stop else within


def _bound(moment: datetime) -> str:
    """Return the shortest text that stands before all texts of this moment and later ones.

    "2020-01-31" is before "2020-01-31T00:00:00", and so must midnight be when it is a bound.
    """
    text = moment.isoformat()
    return text.rstrip("0") if "." in text else text.removesuffix("T00:00:00")
