"""Neighbour graph -> coordinates: one fuzzy graph, laid out for clustering and for the map."""

from __future__ import annotations

from embedtopics.reduction.fuzzy import fuzzy_graph
from embedtopics.reduction.layout import layout
from embedtopics.reduction.start import principal_start

__all__ = ["fuzzy_graph", "layout", "principal_start"]
