"""How much the vectors of words depend on their contexts, by layer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.plots._colors import PALETTE
from embedtopics.plots._hierarchy import SCALE
from embedtopics.plots._layers import GRID, Line, end_names, layer_axis, traces_of, value_range
from embedtopics.plots._theme import (
    ASSUMED_WIDTH,
    INK,
    MUTED,
    Panels,
    checked_sizes,
    chosen_columns,
    cut,
    escape,
    panel_layout,
    title_notes,
)
from embedtopics.probing.results import Contextualization, LayerSimilarity

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


_NAMES = 190
_BASELINE = "#6b7684"
# measure, its baseline, their colours
_COSINES = (
    ("self-similarity", "one word in two contexts", PALETTE[0], "circle"),
    ("intra-sentence similarity", "word and its sentence", PALETTE[5], "square"),
    ("anisotropy", "two words at random", _BASELINE, ""),
)
_LESS = (
    ("corrected self-similarity", "one word in two contexts", PALETTE[0], "circle"),
    ("corrected intra-sentence similarity", "word and its sentence", PALETTE[5], "square"),
    ("corrected maximum explainable variance", "explained by one direction", PALETTE[2], "diamond"),
)
_PANELS = (
    ("cosine similarity", _COSINES),
    ("minus what chance gives", _LESS),
)


def contextualization(
    found: Contextualization, *, width: int | None = None, height: int | None = None
) -> Figure:
    """Draw how much the vector of a word depends on its context, layer by layer.

    On the left the mean cosine of two uses of one word, that of a word and its sentence, and that
    of two random words (anisotropy; Ethayarajh 2019). On the right the same minus what chance
    gives: a word with one vector in all contexts stays at 1 minus the anisotropy, one whose vector
    depends on the context alone falls to 0. Bands are 95 % intervals.

    Parameters
    ----------
    found : Contextualization
        From `embedtopics.probing.contextualization`.
    width, height : int, optional
        Pixels. Without a width the figure fills its place, and is laid out for 1,100.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        If given something else.
    """
    import plotly.graph_objects as go

    checked_sizes(width, height)
    if not isinstance(found, Contextualization):
        expected = "Contextualization from probing.contextualization"
        raise InputError("found", expected, found=type(found).__name__)
    inner = (width or ASSUMED_WIDTH) - 50 - _NAMES
    gap = _NAMES + 40
    columns = chosen_columns(len(_PANELS), None, inner, 260, gap)
    across = (inner - (columns - 1) * gap) / columns
    rows = -(-len(_PANELS) // columns)
    up = 330.0 if height is None else max((height - 50) / rows - 30 - 46, 80)
    panels = Panels(
        len(_PANELS), columns, max(across, 80), up, head=30, foot=46, gap=gap, left=50,
        right=_NAMES, top=46, bottom=4,
    )  # fmt: skip
    traces: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    notes = _title(found, panels)
    ends = (min(found.layers) - 0.4, max(found.layers) + 0.4)
    for place, (name, kinds) in enumerate(_PANELS):
        lines = _lines(found, kinds)
        low, high = value_range(lines)
        span = (min(low, 0.0), high)
        number = str(place + 1) if place else ""
        domain = panels.domain(place)
        traces += traces_of(lines, ends, number, "words or sentences")
        axes[f"xaxis{number}"] = layer_axis(found.layers, domain[0], number, across, named=True)
        axes[f"yaxis{number}"] = {
            "domain": domain[1], "anchor": f"x{number}", "gridcolor": GRID, "zeroline": True,
            "zerolinecolor": "#c3c9d1", "range": list(span), "tickfont": {"size": 11},
            "fixedrange": True,
        }  # fmt: skip
        notes += end_names(lines, span, domain, panels.height)
        notes.append(panels.heading(place, f"<b>{name}</b>", 5))
    layout = {**panel_layout(panels, width, height, notes), **axes, "showlegend": False}
    return go.Figure(data=traces, layout=layout)


def _lines(found: Contextualization, kinds: tuple[tuple[str, str, str, str], ...]) -> list[Line]:
    lines = []
    measured = {score.measure for score in found.scores}
    for measure, name, color, symbol in kinds:
        if measure in measured:
            scores = found.of(measure)
            lines.append(
                Line(
                    name, color, "solid" if symbol else "dash", symbol,
                    tuple(s.layer for s in scores), tuple(s.value for s in scores),
                    tuple(s.low for s in scores), tuple(s.high for s in scores),
                    tuple(s.n for s in scores),
                )
            )  # fmt: skip
    return lines


def _title(found: Contextualization, panels: Panels) -> list[dict[str, Any]]:
    n = len(found.words)
    text = (
        f"<b>{escape(cut(found.encoder, 50))}</b>"
        f'<span style="font-size:12px;color:{MUTED}"> · {n:,} words, '
        f"{int(found.n_uses.sum()):,} uses</span>"
    )
    return title_notes([text], panels.top - 8, left=34, size=14)


# How similar layers are: a matrix of the layers of one or two encoders.

_LARGEST, _SMALLEST = 58, 12
"""Pixels of a cell."""
_PRINTED = 32
"""Pixels of a cell from which on its value is written in it."""
_DARK = 0.66
"""Share of the scale from which on text is white."""


def cka(found: LayerSimilarity, *, width: int | None = None, height: int | None = None) -> Figure:
    """Draw how similar the layers of one encoder, or of two, are on the same words.

    Values are written into the cells where these are large enough, and shown with their standard
    errors on hovering. Layer 0 is at the lower left, as in a diagram of two axes.

    Parameters
    ----------
    found : LayerSimilarity
        From `embedtopics.probing.cka`.
    width, height : int, optional
        Pixels; by default the cells have a readable size.

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
        raise InputError("found", "LayerSimilarity from probing.cka", found=type(found).__name__)
    n_up, n_across = found.values.shape
    left, right, top, bottom = 76, 92, 62, 56
    space = (width or ASSUMED_WIDTH) - left - right, (height or 860) - top - bottom
    cell = float(np.clip(min(space[0] / n_across, space[1] / n_up), 1, _LARGEST))
    cell = cell if width or height else max(cell, _SMALLEST)
    panels = Panels(
        1, 1, cell * n_across, cell * n_up, head=0, foot=0, left=left, right=right, top=top,
        bottom=bottom,
    )  # fmt: skip
    # the title and the scale need space where the layers are few
    drawn = (width or max(panels.size[0], 460), height or max(panels.size[1], 330))
    own = found.encoder_a == found.encoder_b
    notes = [*_matrix_title(found, top, own, drawn[0]), *_values(found, cell)]
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
    """Return both layers, their similarity and its standard error."""
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
    """Return the values for the cells, where these are large enough."""
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


def _matrix_title(found: LayerSimilarity, top: int, own: bool, width: int) -> list[dict[str, Any]]:
    space = max(int((width - 40) / 8.6), 20)
    names = found.encoder_a if own else f"{found.encoder_a} and {found.encoder_b}"
    lines = [
        f"<b>{escape(cut(names, space))}</b>",
        f"{escape(cut(found.measure, 40))} · {found.n_units:,} units of {found.n_texts:,} texts",
    ]
    return title_notes(lines, top - 6, left=60, size=14)
