"""The map: every document in two dimensions, coloured by topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.plots.annotations import label_annotations
from embedtopics.plots.labels import densest_points
from embedtopics.plots.palette import NOISE_COLOR, pale, spread_colors
from embedtopics.plots.text import FONT, INK, MUTED, cut, escape, wrap
from embedtopics.protocols import Int64Array
from embedtopics.results import NOISE, TopicResult

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["map"]

_LABEL_WIDTH = 18
_HOVER_WIDTH = 60
_MARGIN = {"l": 12, "r": 12, "t": 40, "b": 12}
_LEGEND_WIDTH = 230
# Constant templates with every text put in by reference: Plotly fills a template once, so a
# text that holds "%{x}" is shown and never read as a template.
_HOVER = "<b>%{fullData.name}</b><br>%{hovertext}<extra></extra>"
# Eight shadows make an outline that keeps a name legible over a thousand points.


def map(
    result: TopicResult,
    *,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
    max_labels: int = 30,
    hover_characters: int = 200,
) -> Figure:
    """Draw every document as a point, so that one sees how the topics lie to one another.

    Rows that share a text are one point; its hover text says how many they are. Documents of no
    topic lie in grey behind the others. The names stand where their topics are densest, the
    largest topics first; a name that finds no room without covering another is left out, and
    stays in the legend. Topics that are not stable are paler, where that was measured. A click in
    the legend hides a topic, a double click shows it alone.

    Parameters
    ----------
    result : TopicResult
    title : str, optional
    width, height : int, optional
        Pixels. Without them the figure fills its place, and names are placed for 1,100 by 720.
    max_labels : int
        Names on the map at most.
    hover_characters : int
        How much of a text is shown on hovering; 0 leaves the texts out, which keeps a figure of
        very many documents small.

    Returns
    -------
    plotly.graph_objects.Figure
        WebGL traces: the documents of no topic first, then one trace a topic.

    Raises
    ------
    InputError
        If a number is negative, or `width` or `height` is no larger than the margins.
    """
    import plotly.graph_objects as go

    _check(width, height, max_labels, hover_characters)
    labels = result.clustering.labels
    anchors = densest_points(result.map, labels, result.n_topics)
    colors = pale(spread_colors(anchors), result)
    hover = _hover_texts(result, hover_characters)
    traces = []
    for topic_id in range(NOISE, result.n_topics):
        members = np.flatnonzero(labels == topic_id)
        name = "No topic" if topic_id == NOISE else result.topics[topic_id].label
        color = NOISE_COLOR if topic_id == NOISE else colors[topic_id]
        if len(members):
            traces.append(_trace(result.map, members, name, color, hover))
    low, high = _bounds(result.map)
    margin = {**_MARGIN, "t": 60} if title else _MARGIN
    drawing = (
        (width or 1100) - margin["l"] - margin["r"] - (_LEGEND_WIDTH if traces else 0),
        (height or 720) - margin["t"] - margin["b"],
    )
    axis = {"visible": False, "showgrid": False, "zeroline": False}
    return go.Figure(
        data=traces,
        layout={
            "template": "none",
            "title": _title(title),
            "width": width,
            "height": height or 720,
            "margin": margin,
            "font": {"family": FONT, "size": 13, "color": INK},
            "xaxis": {**axis, "range": [low[0], high[0]]},
            "yaxis": {**axis, "range": [low[1], high[1]], "scaleanchor": "x"},
            "hovermode": "closest",
            "hoverlabel": {"align": "left", "font": {"family": FONT, "size": 13}},
            "dragmode": "pan",
            "legend": {
                "itemsizing": "constant",
                "traceorder": "normal",
                "font": {"size": 12, "color": INK},
                "x": 1.0,
                "xanchor": "left",
                "y": 1.0,
            },
            "showlegend": True,
            "annotations": _labels(result, anchors, colors, low, high, drawing, max_labels),
        },
    )


def _check(width: int | None, height: int | None, max_labels: int, hover_characters: int) -> None:
    """Refuse sizes and numbers that no figure can have."""
    for name, pixels in (("width", width), ("height", height)):
        if pixels is not None and pixels < 100:
            raise InputError(f"{name} must be None or at least 100 pixels; got {pixels}")
    for name, number in (("max_labels", max_labels), ("hover_characters", hover_characters)):
        if number < 0:
            raise InputError(f"{name} must be 0 or more; got {number}")


def _title(title: str | None) -> dict[str, Any] | None:
    """Return a title in the upper left corner."""
    if title is None:
        return None
    return {"text": escape(cut(title, 200)), "x": 0.01, "xanchor": "left", "font": {"size": 18}}


def _bounds(positions: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the lower left and upper right corner of the map, with some air around it."""
    if not len(positions):
        return np.zeros(2), np.ones(2)
    low, high = positions.min(axis=0).astype(float), positions.max(axis=0).astype(float)
    span = high - low
    air = 0.04 * span + np.where(span > 0, 0.0, 1.0)
    return low - air, high + air


def _hover_texts(result: TopicResult, length: int) -> npt.NDArray[Any] | None:
    """Return the hover text of each document as Plotly markup, shape (n_documents,)."""
    if length == 0:
        return None
    texts = result.corpus.texts
    hover = np.empty(len(result.documents), dtype=object)
    rows = zip(result.documents.first_rows.tolist(), result.documents.weights.tolist(), strict=True)
    for document, (row, n_rows) in enumerate(rows):
        lines = [escape(line) for line in wrap(cut(texts[row], length), _HOVER_WIDTH)]
        if n_rows > 1:
            lines.append(f"<i>{n_rows:,} rows share this text</i>")
        hover[document] = "<br>".join(lines)
    return hover


def _trace(
    positions: npt.NDArray[Any],
    members: Int64Array,
    name: str,
    color: str,
    hover: npt.NDArray[Any] | None,
) -> dict[str, Any]:
    """Return the points of one topic, or of none."""
    n_documents = len(positions)
    size = float(np.clip(13.0 - 2.2 * np.log10(n_documents), 3.0, 9.0))
    noise = color == NOISE_COLOR
    return {
        "type": "scattergl",
        "mode": "markers",
        "name": escape(cut(name, 32)),
        "x": positions[members, 0],
        "y": positions[members, 1],
        "marker": {
            "color": color,
            "size": 0.8 * size if noise else size,
            "opacity": 0.7 if noise else 0.8,
            "line": {"width": 0},
        },
        "hovertemplate": _HOVER if hover is not None else "%{fullData.name}<extra></extra>",
        "hovertext": None if hover is None else hover[members].tolist(),
        "hoverlabel": {
            "bgcolor": "#fff",
            "bordercolor": MUTED if noise else color,
            "font": {"color": INK},
        },
    }


def _labels(
    result: TopicResult,
    anchors: npt.NDArray[np.float64],
    colors: tuple[str, ...],
    low: npt.NDArray[Any],
    high: npt.NDArray[Any],
    drawing: tuple[int, int],
    max_labels: int,
) -> list[dict[str, Any]]:
    """Return the names of the topics as annotations that do not cover one another."""
    names = [wrap(cut(topic.label, 44), _LABEL_WIDTH, 3) or [""] for topic in result.topics]
    size = np.array(drawing, dtype=float)
    scale = float(np.min(size / (high - low)))  # the axes share one scale, so the tighter decides
    pixels = size / 2 + (anchors - (low + high) / 2) * scale
    return label_annotations(names, anchors, pixels, colors, drawing, max_labels)
