"""How alike layers are: a matrix of the layers of one or two encoders."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.plots.panels import ASSUMED_WIDTH, Panels, checked_sizes, panel_layout
from embedtopics.plots.similarity_map import SCALE
from embedtopics.plots.text import INK, MUTED, cut, escape
from embedtopics.results import LayerSimilarity

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["cka"]

_LARGEST, _SMALLEST = 58, 12
"""Pixels of a cell."""
_PRINTED = 32
"""Pixels of a cell from which on its value is written in it."""
_DARK = 0.66
"""Share of the scale from which on text is white."""


def cka(found: LayerSimilarity, *, width: int | None = None, height: int | None = None) -> Figure:
    """Draw how alike the layers of one encoder, or of two, are on the same words.

    Values are written into the cells where these are large enough, and shown with their standard
    errors on hovering. Layer 0 is at the lower left, as in a diagram of two axes.

    Parameters
    ----------
    found : LayerSimilarity
        From `embedtopics.probing.cka`.
    width, height : int, optional
        Pixels; without them the cells are as large as is good for them.

    Returns
    -------
    plotly.graph_objects.Figure
        One heat map from 0 to 1; values below 0, which the debiased measure has, are as light as 0.

    Raises
    ------
    InputError
        If given something else.
    """
    import plotly.graph_objects as go

    checked_sizes(width, height, 200)
    if not isinstance(found, LayerSimilarity):
        raise InputError(f"expected LayerSimilarity from probing.cka; got {type(found).__name__}")
    n_up, n_across = found.values.shape
    left, right, top, bottom = 76, 92, 62, 56
    room = (width or ASSUMED_WIDTH) - left - right, (height or 860) - top - bottom
    cell = float(np.clip(min(room[0] / n_across, room[1] / n_up), 1, _LARGEST))
    cell = cell if width or height else max(cell, _SMALLEST)
    panels = Panels(
        1, 1, cell * n_across, cell * n_up, head=0, foot=0, left=left, right=right, top=top,
        bottom=bottom,
    )  # fmt: skip
    # the title and the scale need room where the layers are few
    drawn = (width or max(panels.size[0], 460), height or max(panels.size[1], 330))
    own = found.encoder_a == found.encoder_b
    notes = [*_title(found, top, own, drawn[0]), *_values(found, cell)]
    layout = panel_layout(panels, drawn[0], drawn[1], notes)
    names = [escape(cut(name, 44)) for name in (found.encoder_a, found.encoder_b)]
    for key, layers, name, size in (
        ("yaxis", found.layers_a, names[0], cell), ("xaxis", found.layers_b, names[1], cell),
    ):  # fmt: skip
        step = max(math.ceil(15 / size), 1)
        layout[key] = {
            "range": [-0.5, len(layers) - 0.5], "showgrid": False, "zeroline": False, "ticks": "",
            "tickvals": list(range(0, len(layers), step)), "fixedrange": True,
            "ticktext": [str(layer) for layer in layers[::step]], "tickfont": {"size": 11},
            "title": {"text": "layer" if own else f"layer of {name}", "standoff": 6,
                      "font": {"size": 12, "color": MUTED}},
            "constrain": "domain",
            "constraintoward": "left" if key == "xaxis" else "top",
        }  # fmt: skip
    layout["yaxis"]["scaleanchor"] = "x"
    return go.Figure(data=[_heat(found, cell)], layout=layout)


def _heat(found: LayerSimilarity, cell: float) -> dict[str, Any]:
    gap = 1 if cell >= 10 else 0
    return {
        "type": "heatmap", "z": _or_none(found.values), "zmin": 0.0, "zmax": 1.0,
        "colorscale": SCALE, "xgap": gap, "ygap": gap, "text": _hover(found),
        "hovertemplate": "%{text}<extra></extra>",
        "colorbar": {
            "title": {"text": "CKA", "font": {"color": MUTED, "size": 12}}, "thickness": 12,
            "len": 180, "lenmode": "pixels", "outlinewidth": 0, "y": 1, "yanchor": "top",
            "tickfont": {"color": MUTED, "size": 11}, "nticks": 6,
        },
    }  # fmt: skip


def _or_none(values: Any) -> list[list[float | None]]:
    return [[float(v) if math.isfinite(v) else None for v in row] for row in values]


def _hover(found: LayerSimilarity) -> list[list[str]]:
    """Return both layers, how alike they are, and how sure that is."""
    own = found.encoder_a == found.encoder_b
    first, second = (
        "" if own else f" of {escape(cut(name, 44))}" for name in (found.encoder_a, found.encoder_b)
    )
    rows = []
    for up, a in enumerate(found.layers_a):
        row = []
        for across, b in enumerate(found.layers_b):
            value, error = found.values[up, across], found.errors[up, across]
            said = f"{value:.3f}" if math.isfinite(value) else "unknown"
            said += f", standard error {error:.3f}" if math.isfinite(error) else ""
            row.append(f"layer {a}{first}<br>layer {b}{second}<br><b>{said}</b>")
        rows.append(row)
    return rows


def _values(found: LayerSimilarity, cell: float) -> list[dict[str, Any]]:
    """Return the values for the cells, where these have room for them."""
    if cell < _PRINTED:
        return []
    return [
        {
            "x": across, "y": up, "showarrow": False, "text": f"{value:.2f}",
            "font": {"size": 11, "color": "#fff" if value >= _DARK else INK},
        }
        for up, row in enumerate(found.values.tolist())
        for across, value in enumerate(row)
        if math.isfinite(value)
    ]  # fmt: skip


def _title(found: LayerSimilarity, top: int, own: bool, width: int) -> list[dict[str, Any]]:
    room = max(int((width - 40) / 8.6), 20)
    names = found.encoder_a if own else f"{found.encoder_a} and {found.encoder_b}"
    lines = [
        f"<b>{escape(cut(names, room))}</b>",
        f"{escape(cut(found.measure, 40))} · {found.n_units:,} units of {found.n_texts:,} texts",
    ]
    return [
        {
            "x": 0, "y": 1, "xref": "paper", "yref": "paper", "xanchor": "left", "xshift": -60,
            "yanchor": "top", "yshift": top - 6 - 20 * place, "showarrow": False, "text": line,
            "align": "left",
            "font": {"size": 12, "color": MUTED} if place else {"size": 14, "color": INK},
        }
        for place, line in enumerate(lines)
    ]  # fmt: skip
