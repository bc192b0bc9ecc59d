"""Figures of a result: pure functions that return a Plotly figure and never show it.

Plotly is loaded when the first figure is drawn, not when this room is imported.
"""

from __future__ import annotations

from embedtopics.plots.attention_maps import attention
from embedtopics.plots.before_after import before_after
from embedtopics.plots.by_group import by_group
from embedtopics.plots.comparison import comparison
from embedtopics.plots.contexts import contextualization
from embedtopics.plots.dendrogram import hierarchy
from embedtopics.plots.document_map import map
from embedtopics.plots.effects import effects
from embedtopics.plots.keyness_bars import keyness
from embedtopics.plots.label_growth import label_curve
from embedtopics.plots.layer_scores import layers
from embedtopics.plots.layer_similarity import cka
from embedtopics.plots.learning_curves import learning_curves
from embedtopics.plots.level_map import hierarchical_map
from embedtopics.plots.mixture import mixture
from embedtopics.plots.over_time import over_time
from embedtopics.plots.palette import NOISE_COLOR, group_colors, topic_colors
from embedtopics.plots.similarity_map import similarity
from embedtopics.plots.size_bars import sizes
from embedtopics.plots.stability_dots import stability
from embedtopics.plots.term_bars import terms
from embedtopics.plots.term_decline import term_decline
from embedtopics.plots.topic_map import topic_map
from embedtopics.plots.use_paths import word_paths
from embedtopics.plots.word_maps import word_map

__all__ = [
    "NOISE_COLOR",
    "attention",
    "before_after",
    "by_group",
    "cka",
    "comparison",
    "contextualization",
    "effects",
    "group_colors",
    "hierarchical_map",
    "hierarchy",
    "keyness",
    "label_curve",
    "layers",
    "learning_curves",
    "map",
    "mixture",
    "over_time",
    "similarity",
    "sizes",
    "stability",
    "term_decline",
    "terms",
    "topic_colors",
    "topic_map",
    "word_map",
    "word_paths",
]
