"""Contextualization of words, similarity of layers, and attention."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.checks import is_count, is_whole
from embedtopics.errors import InputError
from embedtopics.plots._colors import PALETTE
from embedtopics.plots._layers import Line, end_names, layer_axis, traces_of, value_range
from embedtopics.plots._theme import (
    ASSUMED_WIDTH,
    INK,
    LEFT_TO_RIGHT,
    SCALE,
    Spec,
    axes_of,
    axis_keys,
    caption,
    color_bar,
    cut,
    fit_columns,
    hover,
    panel_figure,
    panel_note,
    small,
    title_notes,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from embedtopics.probing.results import Attention, Contextualization, LayerSimilarity

_NAMES = 190
_BASELINE = "#6b7684"
# measure, caption, colour and symbol
_PANELS = {
    "cosine similarity": (
        ("self-similarity", "one word in two contexts", PALETTE[0], "circle"),
        ("intra-sentence similarity", "word and its sentence", PALETTE[5], "square"),
        ("anisotropy", "two random words", _BASELINE, ""),
    ),
    "minus the value by chance": (
        ("corrected self-similarity", "one word in two contexts", PALETTE[0], "circle"),
        ("corrected intra-sentence similarity", "word and its sentence", PALETTE[5], "square"),
        ("corrected maximum explainable variance", "explained by one direction", PALETTE[2],
         "diamond"),
    ),
}  # fmt: skip
_LARGEST, _SMALLEST, _PRINTED = 58, 12, 32
"""Pixels of a cell, and those from which its value is written in it."""
_DARK = 0.66
"""Value from which text in a cell is white."""


def contextualization(result: Contextualization, *, width: int | None = None) -> Figure:
    """Draw how much the vector of a word depends on its context, layer by layer.

    On the left: the mean cosine of two uses of a word, of a word and its sentence, and of two
    random words (anisotropy; Ethayarajh 2019). On the right: the same minus the value by chance. A
    word with one vector in all contexts stays at 1 minus the anisotropy; a word whose vector
    depends only on the context falls to 0. Bands are 95 % intervals.

    Parameters
    ----------
    result : Contextualization
        From `embedtopics.probing.contextualization`.
    width : int, optional
        Pixels, by default those of the page; below 700 the panels are above each other.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    gap, up, n_rows = _NAMES + 40, 330.0, 1 + ((width or ASSUMED_WIDTH) < 700)
    across = ((width or ASSUMED_WIDTH) - 50 - _NAMES - gap * (2 - n_rows)) * n_rows / 2
    margin = {"l": 50, "r": _NAMES, "t": 76, "b": 50}
    size: Spec = {"gap": gap, "width": width, "margin": margin}
    figure = panel_figure([up] * n_rows, 3 - n_rows, between=80, **size)
    counted = small(f"· {len(result.words):,} words, {int(result.n_uses.sum()):,} uses")
    notes = title_notes([f"<b>{caption(result.encoder, 50)}</b> {counted}"], 68, left=34, size=14)
    measures = {score.measure for score in result}
    figure.update_xaxes(layer_axis(result.layers, across))
    figure.update_yaxes(showgrid=True, tickfont={"size": 11}, zeroline=True)
    for panel, (name, kinds) in enumerate(_PANELS.items()):
        lines = [
            Line(label, color, "solid" if symbol else "dash", symbol, result.of(measure=measure))
            for measure, label, color, symbol in kinds
            if measure in measures
        ]
        low, high = value_range(lines)
        span = (min(low, 0.0), high)
        ends = (min(result.layers) - 0.4, max(result.layers) + 0.4)
        figure.add_traces(traces_of(lines, ends, panel, "words or sentences"))
        figure.layout[axis_keys(panel)[1]].update(range=span, zerolinecolor="#c3c9d1")
        notes += end_names(figure, lines, span, panel, up)
        notes.append(panel_note(figure, panel, f"<b>{name}</b>", yshift=5))
    return figure.update_layout(annotations=notes)


def cka(result: LayerSimilarity) -> Figure:
    """Draw how similar the layers of an encoder are on the same words.

    Cells show their values if they are large enough, and the standard errors in the hover texts.
    Layer 0 is at the lower left.

    Parameters
    ----------
    result : LayerSimilarity
        From `embedtopics.probing.cka`.

    Returns
    -------
    plotly.graph_objects.Figure
        One heat map from 0 to 1.
    """
    n_layers = len(result.layers)
    left, right, top, bottom = 76, 92, 62, 56
    space = ASSUMED_WIDTH - left - right, 860 - top - bottom
    cell = float(np.clip(min(space) / n_layers, _SMALLEST, _LARGEST))
    # The title and the scale need space where the layers are few.
    width = max(round(cell * n_layers) + left + right, 460)
    height = max(round(cell * n_layers) + top + bottom, 330)
    margin = {"l": left, "r": right, "t": top, "b": bottom}
    figure = panel_figure([height - top - bottom], width=width, margin=margin)
    figure.add_trace(_heat_map(result, cell))
    step = max(math.ceil(15 / cell), 1)
    for update, side in ((figure.update_yaxes, "top"), (figure.update_xaxes, "left")):
        update(
            range=[-0.5, n_layers - 0.5],
            tickvals=list(range(0, n_layers, step)),
            ticktext=[str(layer) for layer in result.layers[::step]],
            tickfont={"size": 11},
            title={"text": "layer", "standoff": 6},
            constrain="domain",
            constraintoward=side,
        )
    figure.update_yaxes(scaleanchor="x")
    lines = [
        f"<b>{caption(result.encoder, max(int((width - 40) / 8.6), 20))}</b>",
        f"linear CKA · {result.n_units:,} units of {result.n_texts:,} texts",
    ]
    notes = title_notes(lines, top - 6, left=60, size=14)
    return figure.update_layout(annotations=[*notes, *_printed(result, cell)])


def _heat_map(result: LayerSimilarity, cell: float) -> Spec:
    texts = []
    for a, values, errors in zip(result.layers, result.values, result.errors, strict=True):
        row = []
        for b, value, error in zip(result.layers, values, errors, strict=True):
            shown = f"{value:.3f}" if math.isfinite(value) else "unknown"
            shown += f", standard error {error:.3f}" if math.isfinite(error) else ""
            row.append(f"layer {a}<br>layer {b}<br><b>{shown}</b>")
        texts.append(row)
    gap = 1 if cell >= 10 else 0
    z = [[v if math.isfinite(v) else None for v in row] for row in result.values.tolist()]
    heat: Spec = {"type": "heatmap", "z": z, "zmin": 0.0, "zmax": 1.0, "colorscale": SCALE}
    heat |= {"xgap": gap, "ygap": gap, "colorbar": color_bar("CKA", 6)}
    return {**heat, **hover(texts, "text")}


def _printed(result: LayerSimilarity, cell: float) -> list[Spec]:
    """Return the values as annotations of cells that are large enough."""
    if cell < _PRINTED:
        return []
    colors = np.where(result.values >= _DARK, "#fff", INK).tolist()
    place = {"showarrow": False}
    return [
        {"x": x, "y": y, "text": f"{v:.2f}", **place, "font": {"size": 11, "color": colors[y][x]}}
        for y, row in enumerate(result.values.tolist())
        for x, v in enumerate(row)
        if math.isfinite(v)
    ]


_LEAST, _WIDEST = 190, 620
"""Pixels of a matrix."""
_TOKEN, _LETTER = 12, 6.0
"""Characters of a token next to a matrix, and pixels of a character."""


def attention(result: Attention, layer: int, head: int | Sequence[int] | str = "all") -> Figure:
    """Draw the attention in one text at one layer, as a matrix for each head.

    A row shows how much the token at its left attends to each token; its cells sum to 1. All heads
    share one scale. Much weight often lies on the first and last token, which heads use to attend
    to nothing; and weights do not explain predictions (Jain & Wallace 2019).

    Parameters
    ----------
    result : Attention
        From `embedtopics.probing.attention`.
    layer : int
        From 1; negative numbers count from the last.
    head : int, sequence of int or "all"
        From 0.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        If there is no such layer or head.
    """
    number = result.layers[-1] + 1 + layer if is_whole(layer) and layer < 0 else layer
    if not is_whole(number) or number not in result.layers:
        raise InputError("layer", f"one of {', '.join(map(str, result.layers))}", layer)
    weights = np.asarray(result.weights[result.layers.index(number)], dtype=np.float64)
    heads: list[Any] = list(head) if isinstance(head, Iterable) else [head]
    if isinstance(head, str) and head == "all":
        heads = list(range(len(weights)))
    if not heads or not all(is_count(one, 0) and one < len(weights) for one in heads):
        raise InputError("head", f'"all", or numbers from 0 to {len(weights) - 1}', head)
    tokens = [caption(token, _TOKEN) + LEFT_TO_RIGHT for token in result.tokens]
    letters = max((len(cut(token, _TOKEN)) for token in result.tokens), default=1)
    beside, top = round(_LETTER * letters + 16), 76
    gap = 14 + beside
    columns, across = fit_columns(len(heads), sides=100 + beside, least=_LEAST, gap=gap)
    side = min(across, _WIDEST)
    named = len(tokens) * 11 <= side
    margin = {"l": 24 + beside * named, "r": 76, "t": top, "b": 14 + beside * named}
    figure = panel_figure(
        [side] * -(-len(heads) // columns),
        columns,
        n=len(heads),
        between=30 + beside if named else 34,
        gap=gap if named else 14,
        margin=margin,
    )
    largest = float(weights[heads].max(initial=0.0)) or 1.0
    matrices = [_matrix(result, weights[one], one, largest) for one in heads]
    matrices[-1] |= {"showscale": True, "colorbar": color_bar("weight", 5)}
    notes = [
        panel_note(figure, panel, f"<b>head {one}</b>", yshift=3) for panel, one in enumerate(heads)
    ]
    figure.add_traces([matrix | axes_of(panel) for panel, matrix in enumerate(matrices)])
    axis: Spec = {"tickvals": list(range(len(tokens))), "ticktext": tokens, "showticklabels": named}
    axis |= {"tickfont": {"size": 10}, "constrain": "domain"}
    last = len(tokens) - 0.5
    figure.update_xaxes({**axis, "tickangle": -90, "range": [-0.5, last]}, constraintoward="left")
    figure.update_yaxes({**axis, "range": [last, -0.5]}, constraintoward="top")
    for panel in range(len(heads)):
        figure.layout[axis_keys(panel)[1]].scaleanchor = axes_of(panel)["xaxis"]
    space = max(int((ASSUMED_WIDTH - 40) / 7.6) - 30, 20)
    lines = [
        f"<b>layer {number}</b> · {caption(result.text, space)}{LEFT_TO_RIGHT}",
        f"each row sums to 1: the attention of its token · {caption(result.encoder, 50)}",
    ]
    title = title_notes(lines, top - 5, left=int(margin["l"]) - 16, size=14)
    return figure.update_layout(annotations=[*title, *notes])


def _matrix(result: Attention, weights: Any, head: int, largest: float) -> Spec:
    tokens = [caption(token, 40) + LEFT_TO_RIGHT for token in result.tokens]
    gap = 1 if len(tokens) <= 40 else 0
    about = ": <b>%{customdata[0]}</b> attends to <b>%{customdata[1]}</b><br>%{z:.3f}"
    matrix: Spec = {"type": "heatmap", "z": weights.tolist(), "zmin": 0.0, "zmax": largest}
    matrix |= {"colorscale": SCALE, "showscale": False, "xgap": gap, "ygap": gap}
    pairs = [[[row, column] for column in tokens] for row in tokens]
    template = f"head {head}{about}<extra></extra>"
    return {**matrix, "name": f"head {head}", "customdata": pairs, "hovertemplate": template}
