"""The maps of several encoders side by side, and their scores."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.checks import checked_count
from embedtopics.clustering.results import NOISE
from embedtopics.comparison.results import Comparison, EncoderView
from embedtopics.errors import InputError
from embedtopics.plots._colors import NOISE_COLOR, group_colors
from embedtopics.plots._labels import densest_points
from embedtopics.plots._map import bounds, cloud, hover_texts, label_annotations
from embedtopics.plots._scores import (
    HEAD,
    ScoreRow,
    breaks_lines,
    line_height,
    score_rows,
    score_table,
)
from embedtopics.plots._theme import (
    ASSUMED_WIDTH,
    HIDDEN,
    axes_of,
    caption,
    cut,
    look,
    panel_figure,
    panel_note,
    wrap,
)
from embedtopics.protocols import Float64Array

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_SIDE = 12
_GAP = 18
_NAME = 36
"""Pixels above a map, for the encoder's name."""

_TOOLS = 38
"""Pixels of Plotly's tools at the upper right, over the legend."""

_LEGEND_LINE = 22
_LEGEND_LINES = 4


def comparison(
    result: Comparison,
    *,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
    max_labels: int = 8,
    hover_characters: int = 200,
) -> Figure:
    """Draw the maps of all encoders side by side, and their scores below.

    A group has one colour in all maps, and a click in the legend hides it in all. The maps share
    their axes, for a place means the same in each: moving one moves all. Four encoders or more
    take two rows. In the table a score is bold only where its interval lies above those of all
    other encoders.

    Parameters
    ----------
    result : Comparison
    title : str, optional
    width, height : int, optional
        Pixels. Without a width the figure fills its place, and names are placed for 1,100; the
        height follows from it.
    max_labels : int
        Names of groups on each map at most, largest groups first.
    hover_characters : int
        How much of a text is shown on hovering; 0 leaves the texts out. Each map holds its own
        copy of them, so that less is better where there are very many documents.

    Returns
    -------
    plotly.graph_objects.Figure
        For each encoder a WebGL trace of documents in no group, and one for each group; then a
        table, where there are scores.

    Raises
    ------
    InputError
        If a number is negative, or `width` or `height` leaves too little space for the maps.
    """
    checked_count(max_labels, "max_labels", 0)
    checked_count(hover_characters, "hover_characters", 0)
    low, high = corners = bounds(np.vstack([view.map for view in result.encoders]).astype(float))
    rows = score_rows(result)
    present = [g for g in range(NOISE, len(result.group_names)) if np.any(result.groups == g)]
    shape = float(np.clip((high - low)[1] / (high - low)[0], 0.72, 1.05))
    figure, panel_size = _panels(result, rows, len(present), title, (width, height), shape)
    hover = hover_texts(result.corpus.texts, result.documents, hover_characters)
    colors = [*group_colors(result), NOISE_COLOR]
    names = [*result.group_names, "No group"]
    n_documents = max(len(result.documents), 1)
    largest = float(np.clip(11.0 - 2.0 * np.log10(n_documents), 2.5, 8.0))
    traces, notes = [], []
    for panel, view in enumerate(result.encoders):
        axes = axes_of(panel)
        for group in present:
            members = np.flatnonzero(result.groups == group)
            legend = {"legendgroup": str(group), "showlegend": panel == 0, **axes}
            look_of = (names[group], colors[group], largest)
            traces.append(cloud(view.map, members, look_of, hover, **legend))
        name = f"<b>{caption(view.name, max(int(panel_size[0] / 8), 8))}</b>"
        notes.append(panel_note(figure, panel, name, yshift=4, size=14))
        own = _labels(result, view, colors, corners, panel_size, max_labels)
        notes += [{**note, "xref": axes["xaxis"], "yref": axes["yaxis"]} for note in own]
        figure.layout[f"yaxis{axes['yaxis'][1:]}"].scaleanchor = axes["xaxis"]
    axis = {**HIDDEN, "fixedrange": False}
    figure.update_xaxes({**axis, "range": [low[0], high[0]], "matches": "x"})
    figure.update_yaxes({**axis, "range": [low[1], high[1]], "matches": "y"})
    figure.layout.xaxis.matches = figure.layout.yaxis.matches = None
    figure.add_traces(traces)
    if rows:
        scores = score_table(result.names, rows, broken=breaks_lines(len(result.encoders), width))
        n_rows = -(-len(result.encoders) // count_columns(len(result.encoders)))
        figure.add_trace(scores, row=n_rows + 1, col=1)
    return figure.update_layout(annotations=notes, dragmode="pan")


def count_columns(n_encoders: int) -> int:
    """Return how many maps stand side by side."""
    return n_encoders if n_encoders < 4 else 2 if n_encoders == 4 else 3


def _panels(
    result: Comparison,
    rows: tuple[ScoreRow, ...],
    n_entries: int,
    title: str | None,
    size: tuple[int | None, int | None],
    shape: float,
) -> tuple[Figure, tuple[float, float]]:
    """Return empty panels with a legend above and a table below, and the size of a panel."""
    width, height = size
    n_encoders, columns = len(result.encoders), count_columns(len(result.encoders))
    n_rows = math.ceil(n_encoders / columns)
    inner = (width or ASSUMED_WIDTH) - 2 * _SIDE
    panel_width = (inner - (columns - 1) * _GAP) / columns
    entry = max([56, *(7 * len(cut(name, 32)) for name in result.group_names)])
    lines = min(math.ceil(n_entries / max(inner // (entry + 40), 1)), _LEGEND_LINES)
    top = (52 if title else _TOOLS) + lines * _LEGEND_LINE + _NAME
    broken = breaks_lines(n_encoders, width)
    table = sum(line_height(row, broken=broken) for row in rows) + HEAD + 6 if rows else 0
    between = _NAME + _GAP
    around = top + (n_rows - 1 + bool(rows)) * between + table + _SIDE
    panel_height = float(np.clip(panel_width * shape, 220, 620))
    if height is not None:
        panel_height = (height - around) / n_rows
    for name, pixels, given, least in (
        ("width", panel_width, width, 100 * columns + 2 * _SIDE + (columns - 1) * _GAP),
        ("height", panel_height, height, around + 100 * n_rows),
    ):
        if pixels < 100:
            raise InputError(name, f"at least {least} pixels for {n_encoders} maps", given)
    figure = panel_figure(
        [panel_height] * n_rows,
        columns,
        n=n_encoders,
        between=between,
        gap=_GAP,
        table=table,
        width=width,
        margin={"l": _SIDE, "r": _SIDE, "t": top, "b": _SIDE},
    )
    drawing = figure.layout.height - top - _SIDE
    legend = {"entrywidth": entry, "entrywidthmode": "pixels", "itemsizing": "constant"}
    legend |= {"maxheight": _LEGEND_LINES * _LEGEND_LINE + 4, "y": 1 + _NAME / drawing}
    figure.update_layout(legend=legend, legend_traceorder="normal", showlegend=True)
    if title:
        figure.update_layout(title=look(0, title=title)["title"])
    return figure, (panel_width, panel_height)


def _labels(
    result: Comparison,
    view: EncoderView,
    colors: list[str],
    bounds: tuple[Float64Array, Float64Array],
    panel: tuple[float, float],
    max_labels: int,
) -> list[dict[str, Any]]:
    """Return names of the largest groups where they are densest, none over another."""
    low, high = bounds
    n_groups = len(result.group_names)
    sizes = np.bincount(result.groups[result.groups >= 0], minlength=n_groups)
    order = np.argsort(-sizes, kind="stable")
    names = [wrap(cut(result.group_names[g], 32), 18, 2) or [""] for g in order]
    anchors = densest_points(view.map, result.groups, n_groups)[order]
    size = np.array(panel)
    pixels = size / 2 + (anchors - (low + high) / 2) * float(np.min(size / (high - low)))
    shown = [colors[group] for group in order.tolist()]
    return label_annotations(names, anchors, pixels, shown, panel, max_labels, size=11)
