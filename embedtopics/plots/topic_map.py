"""The topics as circles on the map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.plots.annotations import label_annotations
from embedtopics.plots.labels import densest_points
from embedtopics.plots.palette import dark, pale, spread_colors
from embedtopics.plots.text import FONT, INK, cut, escape, nothing_to_draw, wrap
from embedtopics.results import TopicResult

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["topic_map"]

_MARGIN = 12
_INK_SHARE = 0.16
"""Share of the drawing that all circles cover together."""

_LARGEST = 0.11
"""Diameter of a circle at most, as a share of the shorter side."""

_LABEL_WIDTH = 18


def topic_map(
    result: TopicResult, *, width: int = 1000, height: int = 700, max_labels: int = 60
) -> Figure:
    """Draw each topic as a circle where its documents lie thickest on the map.

    The areas of the circles are as the rows of the topics. Topics have the places and colours that
    they have on the map of documents; a name that finds no room without covering another is left
    out, and shown on hovering.

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

    if width < 200 or height < 200:
        raise InputError(f"width and height must be at least 200 pixels; got {width} and {height}")
    if max_labels < 0:
        raise InputError(f"max_labels must be 0 or more; got {max_labels}")
    anchors = densest_points(result.map, result.clustering.labels, result.n_topics)
    colors = pale(spread_colors(anchors), result)
    drawing = (width - 2 * _MARGIN, height - 2 * _MARGIN)
    diameters = _diameters(np.array([topic.size for topic in result.topics], float), drawing)
    low, high = _bounds(anchors, diameters, drawing)
    axis = {"visible": False, "showgrid": False, "zeroline": False}
    return go.Figure(
        data=[_circles(result, anchors, diameters, colors)],
        layout={
            "template": "none",
            "width": width,
            "height": height,
            "margin": {side: _MARGIN for side in "lrtb"},
            "font": {"family": FONT, "size": 13, "color": INK},
            "xaxis": {**axis, "range": [low[0], high[0]]},
            "yaxis": {**axis, "range": [low[1], high[1]]},
            "hovermode": "closest",
            "hoverlabel": {
                "bgcolor": "#fff",
                "align": "left",
                "font": {"family": FONT, "color": INK},
            },
            "dragmode": "pan",
            "showlegend": False,
            "annotations": _labels(result, anchors, colors, low, high, drawing, max_labels)
            if result.n_topics
            else [nothing_to_draw()],
        },
    )


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
    there = np.isfinite(anchors).all(axis=1)
    if not there.any():
        return np.zeros(2), np.ones(2)
    low, high = anchors[there].min(axis=0), anchors[there].max(axis=0)
    rim = float(diameters.max(initial=0.0)) / 2 + 24  # names reach over the circles
    room = np.array(drawing, dtype=float)
    span = np.maximum(high - low, 1e-6)
    unit = float(np.max(span / np.maximum(room - 2 * rim, 50.0)))  # map units a pixel
    middle = (low + high) / 2
    return middle - unit * room / 2, middle + unit * room / 2


def _circles(
    result: TopicResult,
    anchors: npt.NDArray[np.float64],
    diameters: npt.NDArray[np.float64],
    colors: tuple[str, ...],
) -> dict[str, Any]:
    """Return the circles; the small ones come last and lie on top."""
    return {
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
            f"<b>{escape(cut(topic.label, 60))}</b><br>"
            f"{escape(cut(', '.join(topic.keywords), 90))}<br>"
            f"topic {topic.topic_id}, {topic.size:,} {'row' if topic.size == 1 else 'rows'}, "
            f"{topic.share:.1%}"
            for topic in result.topics
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _labels(
    result: TopicResult,
    anchors: npt.NDArray[np.float64],
    colors: tuple[str, ...],
    low: npt.NDArray[np.float64],
    high: npt.NDArray[np.float64],
    drawing: tuple[int, int],
    max_labels: int,
) -> list[dict[str, Any]]:
    """Return the names as annotations that do not cover one another."""
    names = [wrap(cut(topic.label, 44), _LABEL_WIDTH, 3) or [""] for topic in result.topics]
    pixels = (anchors - low) / (high - low) * np.array(drawing, dtype=float)
    return label_annotations(names, anchors, pixels, colors, drawing, max_labels)
