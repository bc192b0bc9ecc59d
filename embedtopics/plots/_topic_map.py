"""The topics as circles on the map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count
from embedtopics.plots._colors import dark, pale, spread_colors
from embedtopics.plots._labels import densest_points
from embedtopics.plots._map import label_annotations
from embedtopics.plots._theme import (
    HIDDEN,
    caption,
    checked_sizes,
    cut,
    empty_figure,
    look,
    wrap,
)
from embedtopics.topics.results import TopicResult

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_MARGIN = 12
_INK_SHARE = 0.16
"""Share of the drawing that all circles cover together."""

_LARGEST = 0.11
"""Diameter of a circle at most, as a share of the shorter side."""


def topic_map(
    result: TopicResult, *, width: int = 1000, height: int = 700, max_labels: int = 60
) -> Figure:
    """Draw each topic as a circle where its documents are densest on the map.

    The areas of the circles are proportional to the rows of the topics. Topics have the places and
    colours of the map of documents; a name that would cover another is left out, and shown on
    hovering.

    Parameters
    ----------
    result : TopicResult
    width, height : int
        Pixels.
    max_labels : int
        Names on the map at most, the largest topics first.

    Returns
    -------
    plotly.graph_objects.Figure
        One trace of circles, largest first.

    Raises
    ------
    InputError
        If the figure is smaller than 200 pixels, or `max_labels` is negative.
    """
    import plotly.graph_objects as go

    checked_sizes(width, height, 200)
    checked_count(max_labels, "max_labels", 0)
    if not result.n_topics:
        return empty_figure()
    anchors = densest_points(result.map, result.clustering.labels, result.n_topics)
    colors = pale(spread_colors(anchors), result)
    drawing = (width - 2 * _MARGIN, height - 2 * _MARGIN)
    diameters = _diameters(np.array([topic.size for topic in result.topics], float), drawing)
    low, high = _bounds(anchors, diameters, drawing)
    # the small ones come last and lie on top
    circles = {
        "type": "scatter",
        "mode": "markers",
        "x": anchors[:, 0],
        "y": anchors[:, 1],
        "marker": {
            "size": diameters,
            "sizemode": "diameter",
            "color": list(colors),
            "opacity": 0.55,
            "line": {"width": 1, "color": [dark(color) for color in colors]},
        },
        "hovertext": [
            f"<b>{caption(topic.label, 60)}</b><br>{caption(', '.join(topic.keywords), 90)}<br>"
            f"topic {topic.topic_id}, {topic.size:,} {'row' if topic.size == 1 else 'rows'}, "
            f"{topic.share:.1%}"
            for topic in result.topics
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
    names = [wrap(cut(topic.label, 44), 18, 3) or [""] for topic in result.topics]
    pixels = (anchors - low) / (high - low) * np.array(drawing, dtype=float)
    axis = {**HIDDEN, "fixedrange": False}
    margin: dict[str, Any] = dict.fromkeys("lrtb", _MARGIN)
    layout = look(height, width, **margin) | {
        "xaxis": {**axis, "range": [low[0], high[0]]},
        "yaxis": {**axis, "range": [low[1], high[1]]},
        "dragmode": "pan",
        "annotations": label_annotations(names, anchors, pixels, colors, drawing, max_labels),
    }
    return go.Figure(data=[circles], layout=layout)


def _diameters(sizes: npt.NDArray[np.float64], drawing: tuple[int, int]) -> npt.NDArray[np.float64]:
    """Return diameters in pixels whose circles have areas in proportion to the sizes."""
    total = float(sizes.sum()) or 1.0
    share = drawing[0] * drawing[1] * _INK_SHARE / total
    diameters = 2.0 * np.sqrt(share * sizes / np.pi)
    largest = _LARGEST * min(drawing)
    scale = min(1.0, largest / max(float(diameters.max(initial=0.0)), 1e-9))
    return np.asarray(scale * diameters)


def _bounds(
    anchors: npt.NDArray[np.float64],
    diameters: npt.NDArray[np.float64],
    drawing: tuple[int, int],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the corners of the map in its own units: one scale, all circles inside."""
    present = np.isfinite(anchors).all(axis=1)
    if not present.any():
        return np.zeros(2), np.ones(2)
    low, high = anchors[present].min(axis=0), anchors[present].max(axis=0)
    rim = float(diameters.max(initial=0.0)) / 2 + 24  # names reach over the circles
    size = np.array(drawing, dtype=float)
    span = np.maximum(high - low, 1e-6)
    unit = float(np.max(span / np.maximum(size - 2 * rim, 50.0)))  # map units a pixel
    middle = (low + high) / 2
    return middle - unit * size / 2, middle + unit * size / 2
