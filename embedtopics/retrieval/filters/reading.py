"""Reading a filter in any of its forms, and writing a tree as an expression again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.retrieval.filters.checking import (
    Unfit,
    check_columns,
    checked_condition,
    found_column,
)
from embedtopics.retrieval.filters.parsing import parse_expression
from embedtopics.retrieval.filters.tokens import KEYWORDS
from embedtopics.retrieval.filters.tree import Condition, Every, Filter, Node, Not, Period, Some

__all__ = ["MOST_VALUES", "expression_of", "parse_filter"]

MOST_VALUES = 30_000
"""Values in one filter, a date counting twice; SQLite binds at most 32,766."""

_MOST_SHOWN = 200
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")


def parse_filter(where: str | Mapping[str, Any] | Filter, columns: Mapping[str, str]) -> Filter:
    r"""Read which documents are wanted, by their metadata.

    An expression compares columns with values, joined by ``and``, ``or``, ``not`` and
    parentheses (``and`` binds closer than ``or``; keywords in any case)::

        year >= 2020 and source == 'Le Monde'
        topic in (1, 2) or title contains 'budget'
        date between '2020-01' and '2020-06-15' and not (author is null)
        "column with spaces" != 1

    - **Texts** stand in single or double quotes; a quote inside is doubled or follows a backslash.
      They are compared by code point: case and accents count, in ``==`` and ``<`` as in
      ``contains``, ``startswith`` and ``endswith``; nothing in them is a wildcard.
    - **Dates** are texts in ISO 8601 and name a stretch of time: ``date == '2020'`` is any moment
      of that year, ``date > '2020-01-31'`` is from the first of February on, and
      ``date <= '2020-01-31'`` is to the end of that day. Times with a zone are converted to UTC.
      A year may be written as a number: ``date >= 2020``.
    - **A document without a value** passes no comparison. It passes whatever is the negation of
      one: ``year != 2020``, ``year not in (1, 2)`` and ``not year < 2020`` hold for it, as in
      pandas. So each filter and its negation divide the documents in two; ask ``is null`` or
      ``is not null`` where that matters.

    As a mapping, ``{"year": 2020, "source": ["a", "b"]}``, each column must be equal to its value,
    or to one of several; None asks for documents without a value.

    Parameters
    ----------
    where : str, mapping or Filter
        A filter that was read before is taken as it is, if its columns are still there. An
        expression has at most 10,000 characters and 100 levels, a filter at most 30,000 values.
    columns : mapping of str to {"text", "integer", "real", "boolean", "date", "missing"}
        What the documents can be asked for; "missing" is a column in which none has a value, which
        may be compared with anything.

    Returns
    -------
    Filter

    Raises
    ------
    InputError
        Where a part makes no sense: the message names the character, and shows the part between
        marks; for a column that is not there, those with similar names.

    Examples
    --------
    >>> str(parse_filter({"year": [2020, 2021]}, {"year": "integer"}))
    'year in (2020, 2021)'
    >>> parse_filter("yaer > 3", {"year": "integer"})
    Traceback (most recent call last):
        ...
    embedtopics.errors.InputError: filter, character 1: there is no column 'yaer'; did you mean
    'year'?; in: >>>yaer<<< > 3
    """
    check_columns({name: kind for name, kind in columns.items() if kind != "missing"})
    if isinstance(where, Filter):
        _check_again(where.tree, columns)
        return where
    if isinstance(where, str):
        return Filter(where.strip(), parse_expression(where, columns))
    if not isinstance(where, Mapping):
        raise InputError(
            "expected a filter as text, such as \"year >= 2020 and source == 'a'\", or as a "
            f"mapping, such as {{'year': 2020}}; got a {type(where).__name__}"
        )
    if not where:
        raise InputError("expected a filter with some column; got an empty mapping; leave it out")
    parts = tuple(_condition_of(name, value, columns) for name, value in where.items())
    tree = parts[0] if len(parts) == 1 else Every(parts)
    n_values = _n_values(tree)
    if n_values > MOST_VALUES:
        raise InputError(
            f"a filter has at most {MOST_VALUES:,} values, a date counting twice; got "
            f"{n_values:,}; split it"
        )
    return Filter(_shown(tree), tree)


def _check_again(node: Node, columns: Mapping[str, str]) -> None:
    if isinstance(node, Condition):
        if columns.get(node.column) not in (node.kind, "missing"):
            raise InputError(
                f"the filter was read for a {node.kind} column {node.column!r}; here it is "
                f"{columns.get(node.column, 'absent')}; read its text again"
            )
        return
    for part in (node.part,) if isinstance(node, Not) else node.parts:
        _check_again(part, columns)


def _condition_of(name: Any, value: Any, columns: Mapping[str, str]) -> Node:
    """Return what one entry of a mapping asks."""
    try:
        kind = found_column(str(name), columns)
        is_list = isinstance(value, (list, tuple, set, frozenset, np.ndarray)) or (
            hasattr(value, "tolist") and getattr(value, "ndim", 0) == 1
        )
        if not is_list:
            return _equal_to_any(str(name), kind, [_plain(value)])
        items = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else list(value)
        if not items:
            raise Unfit("expected at least one value; got an empty list")
        return _equal_to_any(str(name), kind, [_plain(item) for item in items])
    except Unfit as error:
        raise InputError(f"filter, entry {str(name)!r}: {error}") from None


def _equal_to_any(name: str, kind: str, values: list[Any]) -> Node:
    known = tuple(value for value in values if value is not None)
    parts: list[Node] = []
    if known:
        parts.append(checked_condition(name, kind, "==" if len(known) == 1 else "in", known))
    if len(known) < len(values):
        parts.append(checked_condition(name, kind, "is null", ()))
    return parts[0] if len(parts) == 1 else Some(tuple(parts))


def _plain(value: Any) -> Any:
    """Return a value as the parser would give it; None where it is missing."""
    if isinstance(value, np.datetime64):
        value = None if np.isnat(value) else value.astype("datetime64[us]").item()
    elif isinstance(value, np.generic):
        value = value.item()
    # NaN and NaT are the values that are not equal to themselves.
    is_missing = value is None or type(value).__name__ in ("NAType", "NaTType") or value != value
    if is_missing:
        return None
    if isinstance(value, str):
        if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
            raise Unfit("a text may hold neither NUL nor half a character; correct it")
        return value
    if isinstance(value, datetime):  # pandas timestamps are datetimes
        return value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise Unfit(f"an integer must fit into 64 bits; got {value}")
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        raise Unfit("a number must be finite")
    if isinstance(value, (int, float)):
        return value
    raise Unfit(
        f"expected a number, text, date, true or false, or a list of these; got a "
        f"{type(value).__name__}; write other conditions as text, such as 'year >= 2020'"
    )


def _n_values(node: Node) -> int:
    if isinstance(node, Condition):
        return len(node.values) * (2 if node.kind == "date" else 1)
    return sum(_n_values(part) for part in ((node.part,) if isinstance(node, Not) else node.parts))


def _shown(tree: Node) -> str:
    text = expression_of(tree)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."


def expression_of(node: Node) -> str:
    """Write a tree as an expression that is read as the same tree.

    Examples
    --------
    >>> columns = {"a": "integer", "b": "text"}
    >>> expression_of(parse_filter("not(a!=1 OR b is null)", columns).tree)
    'not (not a == 1 or b is null)'
    """
    if isinstance(node, Condition):
        return _condition_text(node)
    if isinstance(node, Not):
        inside = expression_of(node.part)
        is_joined = isinstance(node.part, (Every, Some))
        return f"not ({inside})" if is_joined else f"not {inside}"
    word = " and " if isinstance(node, Every) else " or "
    return word.join(
        f"({expression_of(part)})" if isinstance(part, (Every, Some)) else expression_of(part)
        for part in node.parts
    )


def _condition_text(condition: Condition) -> str:
    name = condition.column
    if not _PLAIN_NAME.fullmatch(name) or name.lower() in KEYWORDS:
        name = _quoted(name, '"')
    if condition.operator == "is null":
        return f"{name} is null"
    values = [_value_text(value) for value in condition.values]
    if condition.operator == "in":
        return f"{name} in ({', '.join(values)})"
    return f"{name} {condition.operator} {values[0]}"


def _value_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Period):
        return f"'{value.text}'"
    return _quoted(value, "'") if isinstance(value, str) else repr(value)


def _quoted(text: str, quote: str) -> str:
    written = text.replace("\\", "\\\\").replace(quote, "\\" + quote)
    written = written.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f"{quote}{written}{quote}"
