"""How much the vectors of words depend on their contexts, by layer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.plots._colors import PALETTE
from embedtopics.plots._hierarchy import SCALE
from embedtopics.plots._layers import Line, end_names, layer_axis, traces_of, value_range
from embedtopics.plots._theme import (
    ASSUMED_WIDTH,
    INK,
    MUTED,
    caption,
    checked_sizes,
    chosen_columns,
    color_bar,
    panel_figure,
    panel_note,
    title_notes,
)
from embedtopics.probing.results import Contextualization, LayerSimilarity

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_NAMES = 190
_BASELINE = "#6b7684"
# measure, its name, colour and symbol
_PANELS = {
    "cosine similarity": (
        ("self-similarity", "one word in two contexts", PALETTE[0], "circle"),
        ("intra-sentence similarity", "word and its sentence", PALETTE[5], "square"),
        ("anisotropy", "two words at random", _BASELINE, ""),
    ),
    "minus what chance gives": (
        ("corrected self-similarity", "one word in two contexts", PALETTE[0], "circle"),
        ("corrected intra-sentence similarity", "word and its sentence", PALETTE[5], "square"),
        (
            "corrected maximum explainable variance",
            "explained by one direction",
            PALETTE[2],
            "diamond",
        ),
    ),
}
_LARGEST, _SMALLEST = 58, 12
"""Pixels of a cell."""
_PRINTED = 32
"""Pixels of a cell from which on its value is written in it."""
_DARK = 0.66
"""Share of the scale from which on text is white."""


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
    checked_sizes(width, height)
    if not isinstance(found, Contextualization):
        expected = "Contextualization from probing.contextualization"
        raise InputError("found", expected, found=type(found).__name__)
    gap, margin = _NAMES + 40, {"l": 50, "r": _NAMES, "t": 76, "b": 50}
    inner = (width or ASSUMED_WIDTH) - 50 - _NAMES
    columns = chosen_columns(len(_PANELS), None, inner, 260, gap)
    across = max((inner - (columns - 1) * gap) / columns, 80)
    rows, between = -(-len(_PANELS) // columns), 76
    up = 330.0
    if height is not None:
        up = max((height - 126 - (rows - 1) * between) / rows, 80)
    figure = panel_figure(
        [up] * rows, columns, between=between, gap=gap, width=width, margin=margin
    )
    text = (
        f"<b>{caption(found.encoder, 50)}</b>"
        f'<span style="font-size:12px;color:{MUTED}"> · {len(found.words):,} words, '
        f"{int(found.n_uses.sum()):,} uses</span>"
    )
    notes = title_notes([text], 68, left=34, size=14)
    measured = {score.measure for score in found}
    figure.update_xaxes(layer_axis(found.layers, across))
    figure.update_yaxes(showgrid=True, tickfont={"size": 11}, zeroline=True)
    for panel, (name, kinds) in enumerate(_PANELS.items()):
        lines = [
            Line(called, color, "solid" if symbol else "dash", symbol, found.of(measure=measure))
            for measure, called, color, symbol in kinds
            if measure in measured
        ]
        low, high = value_range(lines)
        span = (min(low, 0.0), high)
        ends = (min(found.layers) - 0.4, max(found.layers) + 0.4)
        figure.add_traces(traces_of(lines, ends, panel, "words or sentences"))
        row, column = divmod(panel, columns)
        figure.update_yaxes(range=span, zerolinecolor="#c3c9d1", row=row + 1, col=column + 1)
        notes += end_names(figure, lines, span, panel, up)
        notes.append(panel_note(figure, panel, f"<b>{name}</b>", yshift=5))
    return figure.update_layout(annotations=notes)


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
        One heat map from 0 to 1.

    Raises
    ------
    InputError
        If given something else.
    """
    checked_sizes(width, height, 200)
    if not isinstance(found, LayerSimilarity):
        raise InputError("found", "LayerSimilarity from probing.cka", found=type(found).__name__)
    n_up, n_across = found.values.shape
    left, right, top, bottom = 76, 92, 62, 56
    space = (width or ASSUMED_WIDTH) - left - right, (height or 860) - top - bottom
    cell = float(np.clip(min(space[0] / n_across, space[1] / n_up), 1, _LARGEST))
    cell = cell if width or height else max(cell, _SMALLEST)
    # the title and the scale need space where the layers are few
    width = width or max(round(cell * n_across) + left + right, 460)
    height = height or max(round(cell * n_up) + top + bottom, 330)
    margin = {"l": left, "r": right, "t": top, "b": bottom}
    figure = panel_figure([height - top - bottom], width=width, margin=margin)
    figure.add_trace(_heat(found, cell))
    own = found.encoder_a == found.encoder_b
    for update, layers, encoder, side in (
        (figure.update_yaxes, found.layers_a, found.encoder_a, "top"),
        (figure.update_xaxes, found.layers_b, found.encoder_b, "left"),
    ):
        step = max(math.ceil(15 / cell), 1)
        title = "layer" if own else f"layer of {caption(encoder, 44)}"
        update(
            range=[-0.5, len(layers) - 0.5],
            tickvals=list(range(0, len(layers), step)),
            ticktext=[str(layer) for layer in layers[::step]],
            tickfont={"size": 11},
            title={"text": title, "standoff": 6},
            constrain="domain",
            constraintoward=side,
        )
    figure.update_yaxes(scaleanchor="x")
    names = found.encoder_a if own else f"{found.encoder_a} and {found.encoder_b}"
    lines = [
        f"<b>{caption(names, max(int((width - 40) / 8.6), 20))}</b>",
        f"linear CKA · {found.n_units:,} units of {found.n_texts:,} texts",
    ]
    notes = title_notes(lines, top - 6, left=60, size=14)
    return figure.update_layout(annotations=[*notes, *_printed(found, cell)])


def _heat(found: LayerSimilarity, cell: float) -> dict[str, Any]:
    own = found.encoder_a == found.encoder_b
    first, second = (
        "" if own else f" of {caption(name, 44)}" for name in (found.encoder_a, found.encoder_b)
    )
    texts = []
    for a, values, errors in zip(found.layers_a, found.values, found.errors, strict=True):
        row = []
        for b, value, error in zip(found.layers_b, values, errors, strict=True):
            shown = f"{value:.3f}" if math.isfinite(value) else "unknown"
            shown += f", standard error {error:.3f}" if math.isfinite(error) else ""
            row.append(f"layer {a}{first}<br>layer {b}{second}<br><b>{shown}</b>")
        texts.append(row)
    return {
        "type": "heatmap",
        "z": [[v if math.isfinite(v) else None for v in row] for row in found.values.tolist()],
        "zmin": 0.0,
        "zmax": 1.0,
        "colorscale": SCALE,
        "xgap": 1 if cell >= 10 else 0,
        "ygap": 1 if cell >= 10 else 0,
        "text": texts,
        "hovertemplate": "%{text}<extra></extra>",
        "colorbar": color_bar("CKA", 6),
    }


def _printed(found: LayerSimilarity, cell: float) -> list[dict[str, Any]]:
    """Return the values for the cells, where these are large enough."""
    if cell < _PRINTED:
        return []
    return [
        {
            "x": across,
            "y": up,
            "text": f"{value:.2f}",
            "showarrow": False,
            "font": {"size": 11, "color": "#fff" if value >= _DARK else INK},
        }
        for up, row in enumerate(found.values.tolist())
        for across, value in enumerate(row)
        if math.isfinite(value)
    ]
