"""A filter as Qdrant's own conditions, with the same answers for documents without a value."""

from __future__ import annotations

import re
from datetime import UTC
from typing import Any

from embedtopics.errors import InputError
from embedtopics.retrieval.filters import Condition, Every, Filter, Not, Period
from embedtopics.retrieval.filters.tree import Node

__all__ = ["METADATA", "check_key", "qdrant_filter"]

METADATA = "metadata"
"""Where in a point's payload the columns are."""

_EXACT = 1 << 53
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BOUNDS = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}


def check_key(column: str) -> str:
    """Return the path of a column in a payload, or refuse its name."""
    if _PLAIN_KEY.fullmatch(column):
        return f"{METADATA}.{column}"
    if not column or '"' in column or "\\" in column:
        raise InputError(
            f"Qdrant has no columns with a double quote or backslash in their name; got {column!r};"
            " rename it"
        )
    return f'{METADATA}."{column}"'


def qdrant_filter(where: Filter) -> Any:
    """Translate a filter.

    In Qdrant, as here, nothing compares with a value that is not there, and ``must_not`` holds
    for all else; so conditions and their negations divide the documents in two.

    Parameters
    ----------
    where : Filter

    Returns
    -------
    qdrant_client.models.Filter

    Raises
    ------
    InputError
        For what Qdrant cannot be asked: the order or the ends of texts, and integers from 2**53
        up, which it would round.
    """
    return _node(where.tree)


def _node(node: Node) -> Any:
    from qdrant_client import models

    if isinstance(node, Condition):
        return _condition(node)
    if isinstance(node, Not):
        return models.Filter(must_not=[_node(node.part)])
    parts = [_node(part) for part in node.parts]
    return models.Filter(must=parts) if isinstance(node, Every) else models.Filter(should=parts)


def _condition(condition: Condition) -> Any:
    from qdrant_client import models

    key = check_key(condition.column)
    empty = models.IsEmptyCondition(is_empty=models.PayloadField(key=key))
    if condition.operator == "is null":
        return models.Filter(must=[empty])
    if condition.kind in ("text", "boolean"):
        return _matched(condition, key, empty)
    asked = [_in_range(key, condition.operator, value, empty) for value in condition.values]
    return asked[0] if len(asked) == 1 else models.Filter(should=asked)


def _matched(condition: Condition, key: str, empty: Any) -> Any:
    from qdrant_client import models

    operator = condition.operator
    values: list[Any] = list(condition.values)
    match: Any
    if operator == "in" and condition.kind == "text":
        match = models.MatchAny(any=values)
    elif operator in ("==", "in"):
        found: list[Any] = [
            models.FieldCondition(key=key, match=models.MatchValue(value=value)) for value in values
        ]
        return models.Filter(should=found)
    elif operator in ("contains", "startswith"):
        if not values[0]:  # any text does
            return models.Filter(must_not=[empty])
        if not hasattr(models, "MatchSubstring"):
            raise InputError(
                f"this version of qdrant-client knows no {operator}; install 1.20 or newer"
            )
        one = models.MatchSubstring(substring=values[0])
        match = one if operator == "contains" else models.MatchPrefix(prefix=values[0])
    else:
        raise InputError(
            f"Qdrant cannot be asked for texts with {operator} (column {condition.column!r}); use "
            "==, in, contains or startswith, or search the collection itself"
        )
    return models.Filter(must=[models.FieldCondition(key=key, match=match)])


def _in_range(key: str, operator: str, value: Any, empty: Any) -> Any:
    from qdrant_client import models

    if isinstance(value, Period):
        return _in_time(key, operator, value, empty)
    if isinstance(value, int) and abs(value) >= _EXACT:
        raise InputError(
            f"Qdrant compares numbers as float64 and would round {value}; use numbers below 2**53, "
            "or keep such identifiers as text"
        )
    asked = float(value)
    bounds = {_BOUNDS[operator]: asked} if operator in _BOUNDS else {"gte": asked, "lte": asked}
    found = models.FieldCondition(key=key, range=models.Range(**bounds))
    return models.Filter(must=[found])


def _in_time(key: str, operator: str, period: Period, empty: Any) -> Any:
    from qdrant_client import models

    start = period.start.replace(tzinfo=UTC)
    stop = None if period.stop is None else period.stop.replace(tzinfo=UTC)
    present = models.Filter(must_not=[empty])
    if stop is None and operator == "<=":
        return present
    if stop is None and operator == ">":
        return models.Filter(must=[empty, present])  # never
    within = {"gte": start, "lt": stop}
    bounds = {
        "<": {"lt": start}, "<=": {"lt": stop}, ">": {"gte": stop}, ">=": {"gte": start},
    }  # fmt: skip
    chosen: Any = bounds.get(operator, within)
    found = models.FieldCondition(key=key, range=models.DatetimeRange(**chosen))
    return models.Filter(must=[found])
