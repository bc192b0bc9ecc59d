"""Figures of a result: pure functions that return a Plotly figure and never show it.

Plotly is loaded when the first figure is drawn, not when this room is imported.
"""

from __future__ import annotations

from embedtopics.plots.document_map import map
from embedtopics.plots.palette import NOISE_COLOR, topic_colors
from embedtopics.plots.size_bars import sizes
from embedtopics.plots.term_bars import terms

__all__ = ["NOISE_COLOR", "map", "sizes", "terms", "topic_colors"]
