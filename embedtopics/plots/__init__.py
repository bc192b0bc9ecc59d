"""Figures of a result: pure functions that return a Plotly figure and never show it.

Plotly is loaded when the first figure is drawn, not when this room is imported.
"""

from __future__ import annotations

from embedtopics.plots.by_group import by_group
from embedtopics.plots.comparison import comparison
from embedtopics.plots.document_map import map
from embedtopics.plots.effects import effects
from embedtopics.plots.over_time import over_time
from embedtopics.plots.palette import NOISE_COLOR, group_colors, topic_colors
from embedtopics.plots.size_bars import sizes
from embedtopics.plots.term_bars import terms

__all__ = [
    "NOISE_COLOR", "by_group", "comparison", "effects", "group_colors", "map", "over_time", "sizes",
    "terms", "topic_colors",
]  # fmt: skip
