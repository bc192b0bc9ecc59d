"""The map: every document in two dimensions, coloured by topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics.clustering.results import NOISE
from embedtopics.corpus.results import DistinctDocuments
from embedtopics.plots._colors import NOISE_COLOR, dark, pale, spread_colors
from embedtopics.plots._labels import densest_points, place_labels
from embedtopics.plots._theme import (
    HIDDEN,
    INK,
    MUTED,
    PAGE_WIDTH,
    Canvas,
    Spec,
    base_layout,
    caption,
    cut,
    escape,
    name_lines,
    wrap,
)
from embedtopics.protocols import Int64Array

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

HALO = ", ".join(f"{x}px {y}px 2px #fff" for x in (-1, 0, 1) for y in (-1, 0, 1) if x or y)
"""A white rim of eight shadows, which makes a name legible over lines and points."""

_HEIGHT = 720
_TOOLS = 40
"""Pixels of the toolbar of Plotly, above the map."""

_LEGEND_WIDTH = 230
_LEAST_FOR_LEGEND = 700
_NAMES, _CHARACTERS = 30, 200
"""Maximum number of names on the map, and of characters of a text on hovering."""


def map(
    result: FittedTopics,
    *,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw every document as a point, coloured by topic.

    Rows with the same text are one point; its hover text counts them. Outliers are grey behind the
    others. Names are placed where their topics are densest, the largest topics first; a name that
    would cover another is left out, and stays in the legend. If stability was measured, unstable
    topics are paler. A click in the legend hides a topic; a double click isolates it.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    title : str, optional
    width, height : int, optional
        Pixels. Without them the figure fills its page, and names are placed for 700 by 720; below a
        width of 700 there is no legend.

    Returns
    -------
    plotly.graph_objects.Figure
        WebGL traces: the outliers first, then one trace per topic.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo"))
    >>> figure = et.plots.map(model, title="What people wrote", width=800)
    >>> figure.layout.title.text, figure.layout.width
    ('What people wrote', 800)
    """
    import plotly.graph_objects as go

    canvas = Canvas(title, width, height)
    result = result_of(result)
    labels = result.clustering.labels
    anchors = densest_points(result.map, labels, result.n_topics)
    colors = [*pale(spread_colors(anchors), result), NOISE_COLOR]
    names = [*(topic.name for topic in result.topics), "No topic"]
    hover = hover_texts(result.corpus.texts, result.distinct, repeats=True)
    largest = float(np.clip(13.0 - 2.2 * np.log10(max(len(labels), 1)), 3.0, 9.0))
    traces = []
    for topic_id in range(NOISE, result.n_topics):
        members = np.flatnonzero(labels == topic_id)
        if len(members):
            style = (names[topic_id], colors[topic_id], largest)
            traces.append(cloud(result.map, members, style, hover))
    low, high = bounds(result.map)
    has_legend = canvas.assumed_width >= _LEAST_FOR_LEGEND
    top = _TOOLS
    if title:
        top = 16  # the tools stand beside the title
    layout = base_layout(canvas, _HEIGHT - canvas.title_band, l=12, r=12, t=top, b=12)
    margin = layout["margin"]
    # Names that have space in a notebook or an image file have it on wide pages too.
    legend_width = _LEGEND_WIDTH if has_legend else 0
    drawing = (
        (canvas.width or PAGE_WIDTH) - margin["l"] - margin["r"] - legend_width,
        layout["height"] - margin["t"] - margin["b"],
    )
    labelled = [name_lines(cut(name, 44), 18, 3) or [""] for name in names[:-1]]
    notes = label_annotations(labelled, anchors, (low, high), colors, drawing, _NAMES)
    legend = {"orientation": "v", "x": 1.0, "xanchor": "left", "yanchor": "top"}
    axis = {**HIDDEN, "fixedrange": False}
    layout |= {
        "xaxis": {**axis, "range": [low[0], high[0]]},
        "yaxis": {**axis, "range": [low[1], high[1]], "scaleanchor": "x"},
        "dragmode": "pan",
        "legend": {**legend, "itemsizing": "constant", "traceorder": "normal"},
        "showlegend": has_legend,
        "annotations": notes,
    }
    return go.Figure(data=traces, layout=layout)


def bounds(positions: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the lower left and upper right corner of a map, with a margin around it."""
    if not len(positions):
        return np.zeros(2), np.ones(2)
    low, high = positions.min(axis=0).astype(float), positions.max(axis=0).astype(float)
    span = high - low
    air = 0.04 * span + np.where(span > 0, 0.0, 1.0)
    return low - air, high + air


def hover_texts(
    texts: Sequence[str], documents: DistinctDocuments, *, repeats: bool = False
) -> npt.NDArray[Any]:
    """Return the hover text of each document as Plotly markup, shape (n_documents,)."""
    hover = np.empty(len(documents), dtype=object)
    rows = zip(documents.first_rows.tolist(), documents.weights.tolist(), strict=True)
    for document, (row, n_rows) in enumerate(rows):
        lines = [escape(line) for line in wrap(cut(texts[row], _CHARACTERS), 60)]
        if repeats and n_rows > 1:
            lines.append(f"<i>{n_rows:,} rows share this text</i>")
        hover[document] = "<br>".join(lines)
    return hover


def cloud(
    positions: npt.NDArray[Any],
    members: Int64Array,
    style: tuple[str, str, float],
    hover: npt.NDArray[Any],
    **more: Any,
) -> Spec:
    """Return the points of a topic or group, or of outliers, with their name, colour and size."""
    name, color, size = style
    noise = color == NOISE_COLOR
    marker = {"color": color, "size": 0.8 * size if noise else size, "line": {"width": 0}}
    # The template is constant and refers to the texts: Plotly fills it once, so a text that holds
    # "%{x}" is never read as a template.
    texts = "<b>%{fullData.name}</b><br>%{hovertext}<extra></extra>"
    label = {"bgcolor": "#fff", "bordercolor": MUTED if noise else color, "font": {"color": INK}}
    return {
        "type": "scattergl",
        "mode": "markers",
        "name": caption(name, 32),
        "x": positions[members, 0],
        "y": positions[members, 1],
        "marker": {**marker, "opacity": 0.7 if noise else 0.8},
        "hovertemplate": texts,
        "hovertext": hover[members].tolist(),
        "hoverlabel": label,
        **more,
    }


def label_annotations(
    names: Sequence[Sequence[str]],
    anchors: npt.NDArray[np.float64],
    corners: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    colors: Sequence[str],
    drawing: tuple[float, float],
    max_labels: int,
    *,
    size: int = 12,
) -> list[Spec]:
    """Return names as annotations at anchors (n_names, 2), none over another."""
    low, high = corners
    area = np.array(drawing, dtype=float)
    # Both axes have one scale, that of the tighter side.
    scale = float(np.min(area / (high - low)))
    pixels = area / 2 + (anchors - (low + high) / 2) * scale
    # A glyph is about 0.58 of the font size wide, as measured on the system fonts of FONT.
    boxes = [
        (0.58 * size * max(len(line) for line in lines), 1.35 * size * len(lines))
        for lines in names
    ]
    font = {"size": size, "weight": 650, "shadow": HALO}
    return [
        {
            "x": float(anchors[place.label, 0]),
            "y": float(anchors[place.label, 1]),
            "xshift": place.shift[0],
            "yshift": place.shift[1],
            "text": "<br>".join(escape(line) for line in names[place.label]),
            "showarrow": False,
            "font": {**font, "color": dark(colors[place.label])},
        }
        for place in place_labels(pixels, boxes, drawing, max_labels)
    ]
