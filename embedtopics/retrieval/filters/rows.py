"""A filter asked of one document at a time, for collections that are not in SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any

from embedtopics.corpus.hashing import is_missing
from embedtopics.retrieval.filters.checking import Unfit, in_utc, period_of
from embedtopics.retrieval.filters.tree import Condition, Every, Filter, Node, Not, Period

__all__ = ["passes"]


def passes(where: Filter, row: Mapping[str, Any]) -> bool:
    """Tell whether a document passes a filter.

    Parameters
    ----------
    where : Filter
    row : mapping
        The document's metadata by column; a column that is not there, None, NaN, NaT and NA are
        no value. Dates may be dates, datetimes or texts in ISO 8601; without a zone, in UTC.

    Returns
    -------
    bool

    Examples
    --------
    >>> from embedtopics.retrieval.filters import parse_filter
    >>> where = parse_filter("date == '2020'", {"date": "date"})
    >>> passes(where, {"date": "2020-05-17"}), passes(where, {})
    (True, False)
    """
    return _passes(where.tree, row)


def _passes(node: Node, row: Mapping[str, Any]) -> bool:
    if isinstance(node, Condition):
        return _holds(node, row.get(node.column))
    if isinstance(node, Not):
        return not _passes(node.part, row)
    join = all if isinstance(node, Every) else any
    return join(_passes(part, row) for part in node.parts)


def _holds(condition: Condition, value: Any) -> bool:
    has_value = not is_missing(value)
    if condition.operator == "is null" or not has_value:
        return condition.operator == "is null" and not has_value
    if condition.kind == "date":
        moment = _moment(value)
        return any(
            _in_time(condition.operator, moment, period)
            for period in condition.values
            if isinstance(period, Period)
        )
    if condition.operator in ("==", "in"):
        return value in condition.values
    asked: Any = condition.values[0]
    answers: dict[str, Callable[[], Any]] = {
        "<": lambda: value < asked,
        "<=": lambda: value <= asked,
        ">": lambda: value > asked,
        ">=": lambda: value >= asked,
        "contains": lambda: asked in value,
        "startswith": lambda: value.startswith(asked),
        "endswith": lambda: value.endswith(asked),
    }
    return bool(answers[condition.operator]())


def _in_time(operator: str, moment: datetime, period: Period) -> bool:
    is_before_stop = period.stop is None or moment < period.stop
    if operator == "<":
        return moment < period.start
    if operator == "<=":
        return is_before_stop
    if operator == ">":
        return not is_before_stop
    if operator == ">=":
        return moment >= period.start
    return moment >= period.start and is_before_stop


def _moment(value: Any) -> datetime:
    if isinstance(value, datetime):
        return in_utc(value)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    try:
        return period_of(str(value)).start
    except Unfit as error:
        raise ValueError(str(error)) from None
