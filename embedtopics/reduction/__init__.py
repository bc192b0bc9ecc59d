"""Neighbour graph -> coordinates: one fuzzy graph, laid out for clustering and for the map."""

from __future__ import annotations

from embedtopics.reduction.fuzzy import fuzzy_graph
from embedtopics.reduction.layout import Springs, default_epochs, layout, springs_of
from embedtopics.reduction.start import first_components, principal_start

__all__ = [
    "Springs",
    "default_epochs",
    "first_components",
    "fuzzy_graph",
    "layout",
    "principal_start",
    "springs_of",
]
