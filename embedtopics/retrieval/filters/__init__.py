"""Which documents are wanted, by their metadata: read, checked, and asked of SQL or of rows."""

from __future__ import annotations

from embedtopics.retrieval.filters.reading import expression_of, parse_filter
from embedtopics.retrieval.filters.rows import passes
from embedtopics.retrieval.filters.sql import filter_sql
from embedtopics.retrieval.filters.tree import KINDS, Condition, Every, Filter, Not, Period, Some

__all__ = [
    "KINDS",
    "Condition",
    "Every",
    "Filter",
    "Not",
    "Period",
    "Some",
    "expression_of",
    "filter_sql",
    "parse_filter",
    "passes",
]
