"""The maps of several encoders side by side, and their scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.plots.annotations import label_annotations
from embedtopics.plots.labels import densest_points
from embedtopics.plots.palette import NOISE_COLOR, group_colors
from embedtopics.plots.scores import (
    HEAD,
    ScoreRow,
    breaks_lines,
    line_height,
    score_rows,
    score_table,
)
from embedtopics.plots.text import FONT, INK, MUTED, cut, escape, wrap
from embedtopics.results import NOISE, Comparison, EncoderView

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["comparison", "count_columns"]

_GAP = 18
_SIDE = 12
_NAME = 36
"""Pixels above a map, for the encoder's name."""
_TOOLS = 38
"""Pixels that Plotly's tools take at the upper right, over the legend."""
_LEGEND_LINE = 22
_LEGEND_LINES = 4
_LABEL_SIZE = 11
# As in the map of one result: every text is put in by reference and never read as a template.
_HOVER = "<b>%{fullData.name}</b><br>%{hovertext}<extra></extra>"


@dataclass(frozen=True)
class _Places:
    """Where everything goes, in pixels."""

    width: int
    height: int
    top: int
    columns: int
    panel: tuple[float, float]
    table: int

    @property
    def inner(self) -> tuple[float, float]:
        """Width and height of what lies within the margins."""
        return float(self.width - 2 * _SIDE), float(self.height - self.top - _SIDE)

    def domain(self, place: int) -> tuple[list[float], list[float]]:
        """Return the shares of the inner width and height that a map takes."""
        row, column = divmod(place, self.columns)
        width, height = self.inner
        left = column * (self.panel[0] + _GAP)
        upper = height - row * (self.panel[1] + _NAME + _GAP) - _NAME
        return (
            [left / width, min((left + self.panel[0]) / width, 1.0)],
            [max((upper - self.panel[1]) / height, 0.0), upper / height],
        )


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
        If a number is negative, or `width` or `height` leaves no room for the maps.
    """
    import plotly.graph_objects as go

    for name, number in (("max_labels", max_labels), ("hover_characters", hover_characters)):
        if number < 0:
            raise InputError(f"{name} must be 0 or more; got {number}")
    colors = group_colors(result)
    low, high = _bounds(result)
    rows = score_rows(result)
    present = [g for g in range(NOISE, len(result.group_names)) if np.any(result.groups == g)]
    places = _arrange(result, rows, len(present), width, height, bool(title), high - low)
    hover = _hover_texts(result, hover_characters)
    layout: dict[str, Any] = {
        "template": "none",
        "title": _title(title),
        "width": width,
        "height": places.height,
        "margin": {"l": _SIDE, "r": _SIDE, "t": places.top, "b": _SIDE},
        "font": {"family": FONT, "size": 13, "color": INK},
        "hovermode": "closest",
        "hoverlabel": {"align": "left", "font": {"family": FONT, "size": 13}},
        "dragmode": "pan",
        "showlegend": True,
        "legend": _legend(result),
        "annotations": [],
    }
    data: list[dict[str, Any]] = []
    for place, view in enumerate(result.encoders):
        data += [_trace(result, view, place, g, colors, hover) for g in present]
        layout |= _axes(place, places, low, high)
        layout["annotations"] += [
            _name(view, place, places),
            *_labels(result, view, place, colors, (low, high), places.panel, max_labels),
        ]
    if rows:
        broken = breaks_lines(len(result.encoders), width)
        share = (places.table - _GAP) / places.inner[1]
        data.append(score_table(result.names, rows, share, broken=broken))
    return go.Figure(data=data, layout=layout)


def count_columns(n_encoders: int) -> int:
    """Return how many maps stand side by side.

    Examples
    --------
    >>> [count_columns(n) for n in range(1, 7)]
    [1, 2, 3, 2, 3, 3]
    """
    return n_encoders if n_encoders < 4 else 2 if n_encoders == 4 else 3


def _arrange(
    result: Comparison,
    rows: tuple[ScoreRow, ...],
    n_entries: int,
    width: int | None,
    height: int | None,
    titled: bool,
    span: npt.NDArray[np.float64],
) -> _Places:
    """Return where everything goes, or refuse a size that leaves no room."""
    n_encoders = len(result.encoders)
    columns = count_columns(n_encoders)
    n_rows = math.ceil(n_encoders / columns)
    whole = width or 1100
    panel_width = (whole - 2 * _SIDE - (columns - 1) * _GAP) / columns
    per_line = max((whole - 2 * _SIDE) // (_entry_width(result) + 40), 1)
    lines = min(math.ceil(n_entries / per_line), _LEGEND_LINES)
    top = (52 if titled else _TOOLS) + lines * _LEGEND_LINE
    broken = breaks_lines(n_encoders, width)
    table = sum(line_height(row, broken=broken) for row in rows)
    table += HEAD + 6 + _GAP if rows else 0
    around = top + n_rows * _NAME + (n_rows - 1) * _GAP + table + _SIDE
    if height is None:
        shape = float(np.clip(span[1] / span[0], 0.72, 1.05))
        panel_height = float(np.clip(panel_width * shape, 220, 620))
    else:
        panel_height = (height - around) / n_rows
    if panel_width < 100:
        raise InputError(
            f"{columns} maps side by side need a width of at least "
            f"{100 * columns + 2 * _SIDE + (columns - 1) * _GAP} pixels; got {width}"
        )
    if panel_height < 100:
        raise InputError(
            f"the maps and the table need a height of at least {around + 100 * n_rows} pixels; "
            f"got {height}; leave it out to have it follow from the width"
        )
    tall = height or round(around + n_rows * panel_height)
    return _Places(whole, tall, top, columns, (panel_width, panel_height), table)


def _entry_width(result: Comparison) -> int:
    """Return the pixels that the longest name takes in the legend."""
    longest = max((len(cut(name, 32)) for name in result.group_names), default=0)
    return max(7 * longest, 56)


def _legend(result: Comparison) -> dict[str, Any]:
    """Return a legend over the maps that scrolls where it would take more than a few lines."""
    return {
        "orientation": "h",
        "x": 0.0,
        "xanchor": "left",
        "y": 1.0,
        "yanchor": "bottom",
        "entrywidth": _entry_width(result),
        "entrywidthmode": "pixels",
        "maxheight": _LEGEND_LINES * _LEGEND_LINE + 4,
        "itemsizing": "constant",
        "traceorder": "normal",
        "font": {"size": 12, "color": INK},
    }


def _title(title: str | None) -> dict[str, Any] | None:
    """Return a title in the upper left corner."""
    if not title:
        return None
    return {
        "text": escape(cut(title, 200)),
        "x": 0.01,
        "xanchor": "left",
        "y": 1.0,
        "yanchor": "top",
        "pad": {"t": 14},
        "font": {"size": 18},
    }


def _bounds(result: Comparison) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the corners of what all maps span together, with some air around it."""
    every = np.vstack([view.map for view in result.encoders]).astype(np.float64)
    if not len(every):
        return np.zeros(2), np.ones(2)
    low, high = every.min(axis=0), every.max(axis=0)
    span = high - low
    air = 0.04 * span + np.where(span > 0, 0.0, 1.0)
    return low - air, high + air


def _hover_texts(result: Comparison, length: int) -> npt.NDArray[Any] | None:
    """Return the hover text of each document as Plotly markup, shape (n_documents,)."""
    if length == 0:
        return None
    texts = result.corpus.texts
    hover = np.empty(len(result.documents), dtype=object)
    for document, row in enumerate(result.documents.first_rows.tolist()):
        hover[document] = "<br>".join(escape(line) for line in wrap(cut(texts[row], length), 60))
    return hover


def _trace(
    result: Comparison,
    view: EncoderView,
    place: int,
    group: int,
    colors: tuple[str, ...],
    hover: npt.NDArray[Any] | None,
) -> dict[str, Any]:
    """Return the points of one group, or of none, in one map."""
    members = np.flatnonzero(result.groups == group)
    noise = group == NOISE
    color = NOISE_COLOR if noise else colors[group]
    name = "No group" if noise else result.group_names[group]
    size = float(np.clip(11.0 - 2.0 * np.log10(max(len(view.map), 1)), 2.5, 8.0))
    number = "" if place == 0 else str(place + 1)
    return {
        "type": "scattergl",
        "mode": "markers",
        "name": escape(cut(name, 32)),
        "legendgroup": str(group),
        "showlegend": place == 0,
        "xaxis": f"x{number}",
        "yaxis": f"y{number}",
        "x": view.map[members, 0],
        "y": view.map[members, 1],
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


def _axes(
    place: int, places: _Places, low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]
) -> dict[str, Any]:
    """Return the two axes of a map: unseen, of one scale, and those of the other maps."""
    number = "" if place == 0 else str(place + 1)
    across, up = places.domain(place)
    unseen = {"visible": False, "showgrid": False, "zeroline": False}
    x = {**unseen, "domain": across, "anchor": f"y{number}", "range": [low[0], high[0]]}
    y = {**unseen, "domain": up, "anchor": f"x{number}", "range": [low[1], high[1]]}
    y["scaleanchor"] = f"x{number}"
    if place:
        x["matches"], y["matches"] = "x", "y"
    return {f"xaxis{number}": x, f"yaxis{number}": y}


def _name(view: EncoderView, place: int, places: _Places) -> dict[str, Any]:
    """Return the encoder's name over its map, at its left edge."""
    across, up = places.domain(place)
    longest = max(int(places.panel[0] / 8), 8)
    return {
        "text": f"<b>{escape(cut(view.name, longest))}</b>",
        "x": across[0],
        "y": up[1],
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "bottom",
        "yshift": 4,
        "showarrow": False,
        "font": {"size": 14, "color": INK},
    }


def _labels(
    result: Comparison,
    view: EncoderView,
    place: int,
    colors: tuple[str, ...],
    bounds: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]],
    panel: tuple[float, float],
    max_labels: int,
) -> list[dict[str, Any]]:
    """Return names of the largest groups where they lie thickest, none over another."""
    low, high = bounds
    n_groups = len(result.group_names)
    anchors = densest_points(view.map, result.groups, n_groups)
    sizes = np.bincount(result.groups[result.groups >= 0], minlength=n_groups)
    order = np.argsort(-sizes, kind="stable")
    names = [wrap(cut(result.group_names[g], 32), 18, 2) or [""] for g in order]
    size = np.array(panel)
    scale = float(np.min(size / (high - low)))
    anchors = anchors[order]
    pixels = size / 2 + (anchors - (low + high) / 2) * scale
    number = "" if place == 0 else str(place + 1)
    axes = {"xref": f"x{number}", "yref": f"y{number}"}
    shown = [colors[group] for group in order.tolist()]
    made = label_annotations(names, anchors, pixels, shown, panel, max_labels, size=_LABEL_SIZE)
    return [annotation | axes for annotation in made]
