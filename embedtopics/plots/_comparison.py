"""The maps of several encoders side by side, with a table of their scores."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from embedtopics.clustering.results import NOISE
from embedtopics.comparison.results import Comparison, EncoderView
from embedtopics.errors import InputError
from embedtopics.plots._colors import NOISE_COLOR, group_colors
from embedtopics.plots._inputs import check_input
from embedtopics.plots._labels import densest_points
from embedtopics.plots._map import bounds, cloud, hover_texts, label_annotations
from embedtopics.plots._theme import (
    FONT,
    HIDDEN,
    INK,
    MUTED,
    Canvas,
    Spec,
    axes_of,
    axis_keys,
    caption,
    cut,
    panel_figure,
    panel_note,
    panel_size,
    wrap,
)
from embedtopics.protocols import Float64Array

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


_SIDE = 12
_GAP = 18
_NAME = 36
"""Pixels above a map for the name of the encoder."""

_TOOLS = 38
"""Pixels of Plotly's toolbar at the upper right, over the legend."""

_LABELS = 8
"""Maximum number of names on a map."""

_LEGEND_LINE = 22
_LEGEND_LINES = 4


def comparison(
    comparison: Comparison,
    *,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw the maps of all encoders side by side, and their scores below.

    A group has one colour in all maps, and a click in the legend hides it in all. The maps share
    their axes, so that moving one moves all. Four encoders or more take two rows. In the table a
    score is bold only if its interval lies above those of all other encoders.

    Parameters
    ----------
    comparison : Comparison
        From `embedtopics.comparison.compare_encoders`.
    title : str, optional
    width, height : int, optional
        Pixels; by default the figure fills its page, names are placed for 1,100, and the height is
        that which the maps and the scores need.

    Returns
    -------
    plotly.graph_objects.Figure
        For each encoder a WebGL trace of documents in no group, and one for each group; then a
        table, if there are scores.

    Raises
    ------
    InputError
        If `width` or `height` leaves too little space for the maps.

    Examples
    --------
    >>> import embedtopics as et
    >>> corpus = et.Corpus("embedtopics:demo", limit=200)
    >>> encoders = {"words": "tfidf", "random": et.encoders.RandomProjectionEncoder()}
    >>> compared = et.comparison.compare_encoders(encoders, corpus, "theme", n_resamples=100)
    >>> figure = et.plots.comparison(compared, width=900)
    >>> [note.text for note in figure.layout.annotations if note.text.startswith("<b>")]
    ['<b>words</b>', '<b>random</b>']
    """
    canvas = Canvas(title, width, height)
    call = "et.comparison.compare_encoders(encoders, corpus)"
    check_input(comparison, "comparison", Comparison, call)
    result = comparison
    low, high = corners = bounds(np.vstack([view.map for view in result.encoders]).astype(float))
    rows = score_rows(result)
    present = [g for g in range(NOISE, len(result.group_names)) if np.any(result.groups == g)]
    shape = float(np.clip((high - low)[1] / (high - low)[0], 0.72, 1.05))
    figure, map_size = _panels(result, rows, len(present), canvas, shape)
    hover = hover_texts(result.corpus.texts, result.distinct)
    colors = [*group_colors(result), NOISE_COLOR]
    names = [*result.group_names, "No group"]
    n_documents = max(len(result.distinct), 1)
    largest = float(np.clip(11.0 - 2.0 * np.log10(n_documents), 2.5, 8.0))
    traces, notes = [], []
    for panel, view in enumerate(result.encoders):
        axes = axes_of(panel)
        for group in present:
            members = np.flatnonzero(result.groups == group)
            legend: Spec = {"legendgroup": str(group), "showlegend": panel == 0, **axes}
            style = (names[group], colors[group], largest)
            traces.append(cloud(view.map, members, style, hover, **legend))
        name = f"<b>{caption(view.name, max(int(map_size[0] / 10), 8))}</b>"
        notes.append(panel_note(figure, panel, name, yshift=4, size=14))
        labels = _labels(result, view, colors, corners, map_size)
        notes += [{**note, "xref": axes["xaxis"], "yref": axes["yaxis"]} for note in labels]
        figure.layout[axis_keys(panel)[1]].scaleanchor = axes["xaxis"]
    axis = {**HIDDEN, "fixedrange": False}
    figure.update_xaxes({**axis, "range": [low[0], high[0]], "matches": "x"})
    figure.update_yaxes({**axis, "range": [low[1], high[1]], "matches": "y"})
    figure.layout.xaxis.matches = figure.layout.yaxis.matches = None
    figure.add_traces(traces)
    if rows:
        broken = breaks_lines(len(result.encoders), canvas.width)
        scores = score_table(result.names, rows, broken=broken)
        n_rows = -(-len(result.encoders) // count_columns(len(result.encoders)))
        figure.add_trace(scores, row=n_rows + 1, col=1)
    return figure.update_layout(annotations=notes, dragmode="pan")


def count_columns(n_encoders: int) -> int:
    """Return how many maps stand side by side."""
    return n_encoders if n_encoders < 4 else 2 if n_encoders == 4 else 3


def _panels(
    result: Comparison, rows: tuple[ScoreRow, ...], n_entries: int, canvas: Canvas, shape: float
) -> tuple[Figure, tuple[float, float]]:
    """Return empty panels with a legend above and a table below, and the size of a panel."""
    n_encoders, columns = len(result.encoders), count_columns(len(result.encoders))
    n_rows = math.ceil(n_encoders / columns)
    inner = canvas.assumed_width - 2 * _SIDE
    panel_width = (inner - (columns - 1) * _GAP) / columns
    if panel_width < 100:
        least = 100 * columns + 2 * _SIDE + (columns - 1) * _GAP
        raise InputError("width", f"at least {least} pixels for {n_encoders} maps", canvas.width)
    entry = max([56, *(7 * len(cut(name, 32)) for name in result.group_names)])
    lines = min(math.ceil(n_entries / max(inner // (entry + 40), 1)), _LEGEND_LINES)
    top = _TOOLS + lines * _LEGEND_LINE + _NAME
    broken = breaks_lines(n_encoders, canvas.width)
    table = sum(line_height(row, broken=broken) for row in rows) + HEAD + 6 if rows else 0
    panel_height = float(np.clip(panel_width * shape, 220, 620))
    figure = panel_figure(
        canvas,
        [panel_height] * n_rows,
        columns,
        n=n_encoders,
        between=_NAME + _GAP,
        gap=_GAP,
        table=table,
        margin={"l": _SIDE, "r": _SIDE, "t": top, "b": _SIDE},
    )
    drawing = figure.layout.height - figure.layout.margin.t - _SIDE
    legend: Spec = {"entrywidth": entry, "entrywidthmode": "pixels", "itemsizing": "constant"}
    legend |= {"maxheight": _LEGEND_LINES * 19 + 4, "y": 1 + _NAME / drawing}
    figure.update_layout(legend=legend, legend_traceorder="normal", showlegend=True)
    return figure, panel_size(figure, 0, canvas)


def _labels(
    result: Comparison,
    view: EncoderView,
    colors: list[str],
    corners: tuple[Float64Array, Float64Array],
    panel: tuple[float, float],
) -> list[Spec]:
    """Return the names of the largest groups where these are densest, none over another."""
    n_groups = len(result.group_names)
    sizes = np.bincount(result.groups[result.groups >= 0], minlength=n_groups)
    order = np.argsort(-sizes, kind="stable")
    names = [wrap(cut(result.group_names[g], 32), 18, 2) or [""] for g in order]
    anchors = densest_points(view.map, result.groups, n_groups)[order]
    shown = [colors[group] for group in order.tolist()]
    return label_annotations(names, anchors, corners, shown, panel, _LABELS, size=11)


# Plotly adds at least 8 pixels above and below the text of a row, and cuts off rows beyond the
# table.
HEAD = 31
"""Pixels of the row of names above the scores."""

_NAMES = {
    "knn_accuracy": "k-NN accuracy",
    "probe_accuracy": "probe accuracy",
    "probe_macro_f1": "probe macro-F1",
    "trustworthiness": "trustworthiness of the map",
    "continuity": "continuity of the map",
    "documents_per_second": "texts per second",
    "megabytes": "vectors, MB",
}
"""Names of measures that differ from those in the scores."""

UNRANKED = {"silhouette"}
"""Measures without a leader: silhouettes depend on how an encoder spreads its vectors."""

_LINE = 17
_AIR = 16
"""Pixels that Plotly adds above and below the text of a cell, together."""


class ScoreInterval(NamedTuple):
    """The score of an encoder in a measure, NaN if unknown, and whether it leads."""

    value: float
    low: float
    high: float
    best: bool = False


class ScoreRow(NamedTuple):
    """A measure: the scores in the order of the encoders, and the largest number of documents."""

    measure: str
    scores: tuple[ScoreInterval, ...]
    n: int


def score_rows(result: Comparison) -> tuple[ScoreRow, ...]:
    """Arrange the scores of a comparison, and find significant leaders."""
    frame, rows = result.scores, []
    for measure in dict.fromkeys(frame["measure"].tolist()):
        of_measure = frame[frame["measure"] == measure].set_index("encoder")
        scores = [
            ScoreInterval(*of_measure.loc[name, ["value", "low", "high"]].astype(float))
            if name in of_measure.index
            else ScoreInterval(math.nan, math.nan, math.nan)
            for name in result.names
        ]
        measured = [place for place, score in enumerate(scores) if not math.isnan(score.value)]
        if len(measured) > 1 and measure not in UNRANKED:
            leader = max(measured, key=lambda place: scores[place].value)
            # Comparisons with NaN are false, so an unknown interval is never beaten.
            others = [scores[place].high for place in measured if place != leader]
            if all(high < scores[leader].low for high in others):
                scores[leader] = scores[leader]._replace(best=True)
        rows.append(ScoreRow(str(measure), tuple(scores), int(of_measure["n"].max())))
    return tuple(rows)


def name_measure(measure: str) -> str:
    """Return the displayed name of a measure."""
    return _NAMES.get(measure, measure)


def spell(value: float) -> str:
    """Return a number with three significant places, or a dash if it is unknown."""
    if math.isnan(value):
        return "\u2013"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 3
    return f"{value:,.{digits}f}".replace("-", "\u2212")


def line_height(row: ScoreRow, *, broken: bool) -> int:
    """Return the height of a row of the table in pixels."""
    lines = max(len(wrap(cut(name_measure(row.measure), 80), 26)), 2 if broken else 1)
    return lines * _LINE + _AIR


def score_table(names: tuple[str, ...], rows: tuple[ScoreRow, ...], *, broken: bool) -> Spec:
    """Return a Plotly table of the scores; if `broken`, intervals are below the values."""
    n_encoders = len(names)
    between = "<br>" if broken else " "
    cells = [[f"<span>{caption(name_measure(row.measure), 80)}</span>" for row in rows]]
    cells += [[_cell(row.scores[place], between) for row in rows] for place in range(n_encoders)]
    plain = {"align": ["left", *["right"] * n_encoders], "line": {"width": 0}}
    heads = ["", *(caption(name, max(16, 68 // n_encoders)) for name in names)]
    font = {"family": FONT, "size": 12, "color": MUTED}
    fill = [["#f6f7f9" if i % 2 == 0 else "#fff" for i in range(len(rows))]]
    header = {"values": heads, "height": HEAD, "fill": {"color": "#fff"}, "font": font}
    body = {"values": cells, "fill": {"color": fill}, "height": _LINE + _AIR}
    return {
        "type": "table",
        "columnwidth": [1.5, *[1.0] * n_encoders],
        "header": header | plain,
        "cells": body | {"font": font | {"size": 12.5, "color": INK}} | plain,
    }


def breaks_lines(n_encoders: int, width: int | None) -> bool:
    """Return whether a column is too narrow for a value and its interval side by side."""
    return (width or 800) / (n_encoders + 1.5) < 165  # the column of names takes 1.5


def _cell(score: ScoreInterval, between: str) -> str:
    """Return a score with its interval, in bold if it leads."""
    # Every cell has a mark, because Plotly sets marked text a little lower than plain text.
    mark = "b" if score.best else "span"
    value = f"<{mark}>{spell(score.value)}</{mark}>"
    if math.isnan(score.low) or math.isnan(score.high):
        return value
    return f"{value}{between}[{spell(score.low)}, {spell(score.high)}]"
