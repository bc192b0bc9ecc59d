"""Attention weights in a text: a matrix for each head."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.checks import is_count, is_whole
from embedtopics.errors import InputError
from embedtopics.plots._hierarchy import SCALE
from embedtopics.plots._theme import (
    ASSUMED_WIDTH,
    LEFT_TO_RIGHT,
    axes_of,
    caption,
    checked_sizes,
    chosen_columns,
    color_bar,
    cut,
    panel_figure,
    panel_note,
    title_notes,
)
from embedtopics.probing.results import Attention

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_LEAST, _WIDEST = 190, 620
_TOKEN = 12
"""Characters of a token that are shown beside a matrix."""
_LETTER = 6.0
"""Pixels that a character takes there."""


def attention(
    found: Attention,
    layer: int,
    head: int | Sequence[int] | str = "all",
    *,
    columns: int | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw the attention in one text at one layer, a matrix a head.

    A row is how much the token at its left attends to each token: its cells sum to 1. All heads
    share one scale. Much weight often lies on the first and last token, which is a way of attending
    to nothing, and weights do not explain predictions (Jain & Wallace 2019).

    Parameters
    ----------
    found : Attention
        From `embedtopics.probing.attention`.
    layer : int
        From 1; negative numbers count from the last.
    head : int, sequence of int or "all"
        From 0.
    columns : int, optional
    width, height : int, optional
        Pixels. Without a width the figure fills its place, and is laid out for 1,100.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        If there is no such layer or head.
    """
    checked_sizes(width, height)
    if not isinstance(found, Attention):
        raise InputError("found", "Attention from probing.attention", found=type(found).__name__)
    number = found.layers[-1] + 1 + layer if is_whole(layer) and layer < 0 else layer
    if not is_whole(number) or number not in found.layers:
        raise InputError("layer", f"one of {', '.join(map(str, found.layers))}", layer)
    weights = np.asarray(found.weights[found.layers.index(number)], dtype=np.float64)
    heads: list[Any] = list(head) if isinstance(head, Iterable) else [head]
    if isinstance(head, str) and head == "all":
        heads = list(range(len(weights)))
    if not heads or not all(is_count(one, 0) and one < len(weights) for one in heads):
        raise InputError("head", f'"all", or numbers from 0 to {len(weights) - 1}', head)
    tokens = [caption(token, _TOKEN) + LEFT_TO_RIGHT for token in found.tokens]
    letters = max((len(cut(token, _TOKEN)) for token in found.tokens), default=1)
    beside = round(_LETTER * letters + 16)
    inner, gap = (width or ASSUMED_WIDTH) - 24 - 76, 14 + beside
    columns = chosen_columns(len(heads), columns, inner - beside, _LEAST, gap)
    across = min((inner - beside - (columns - 1) * gap) / columns, _WIDEST)
    n_rows, top, between = -(-len(heads) // columns), 76, 30 + beside
    side = across
    if height is not None:
        side = max((height - top - n_rows * between) / n_rows, 40)
    named = len(tokens) * 11 <= min(across, side)
    margin = {"l": 24 + beside * named, "r": 76, "t": top, "b": 14 + beside * named}
    figure = panel_figure(
        [side] * n_rows,
        columns,
        n=len(heads),
        between=between if named else 34,
        gap=gap if named else 14,
        width=width,
        margin=margin,
    )
    largest = float(weights[heads].max(initial=0.0)) or 1.0
    matrices = [_matrix(found, weights[one], one, largest) for one in heads]
    matrices[-1] |= {"showscale": True, "colorbar": color_bar("weight", 5)}
    notes = [
        panel_note(figure, panel, f"<b>head {one}</b>", yshift=3) for panel, one in enumerate(heads)
    ]
    figure.add_traces([matrix | axes_of(panel) for panel, matrix in enumerate(matrices)])
    frame = {
        "tickvals": list(range(len(tokens))),
        "ticktext": tokens,
        "showticklabels": named,
        "tickfont": {"size": 10},
        "constrain": "domain",
    }
    last = len(tokens) - 0.5
    figure.update_xaxes({**frame, "tickangle": -90, "range": [-0.5, last]}, constraintoward="left")
    figure.update_yaxes({**frame, "range": [last, -0.5]}, constraintoward="top")
    for panel in range(len(heads)):
        x, y = axes_of(panel).values()
        figure.layout[f"yaxis{y[1:]}"].scaleanchor = x
    space = max(int(((width or ASSUMED_WIDTH) - 40) / 7.6) - 30, 20)
    lines = [
        f"<b>layer {number}</b> · {caption(found.text, space)}{LEFT_TO_RIGHT}",
        f"each row sums to 1: what its token attends to · {caption(found.encoder, 50)}",
    ]
    title = title_notes(lines, top - 5, left=int(margin["l"]) - 16, size=14)
    return figure.update_layout(annotations=[*title, *notes])


def _matrix(found: Attention, weights: Any, head: int, largest: float) -> dict[str, Any]:
    tokens = [caption(token, 40) + LEFT_TO_RIGHT for token in found.tokens]
    gap = 1 if len(tokens) <= 40 else 0
    hover = ": <b>%{customdata[0]}</b> attends to <b>%{customdata[1]}</b><br>%{z:.3f}"
    return {
        "type": "heatmap",
        "z": weights.tolist(),
        "zmin": 0.0,
        "zmax": largest,
        "colorscale": SCALE,
        "name": f"head {head}",
        "xgap": gap,
        "ygap": gap,
        "customdata": [[[row, column] for column in tokens] for row in tokens],
        "hovertemplate": f"head {head}{hover}<extra></extra>",
        "showscale": False,
    }
