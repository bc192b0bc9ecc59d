"""Attention weights in a text: a matrix for each head."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.checks import is_count, is_whole
from embedtopics.errors import InputError
from embedtopics.plots._theme import (
    ASSUMED_WIDTH,
    LEFT_TO_RIGHT,
    SCALE,
    Spec,
    axes_of,
    axis_keys,
    caption,
    checked_sizes,
    color_bar,
    cut,
    fit_columns,
    panel_figure,
    panel_note,
    title_notes,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from embedtopics.probing.results import Attention

_LEAST, _WIDEST = 190, 620
"""Pixels of a matrix."""
_TOKEN, _LETTER = 12, 6.0
"""Characters of a token next to a matrix, and pixels of a character."""


def attention(
    result: Attention,
    layer: int,
    head: int | Sequence[int] | str = "all",
    *,
    width: int | None = None,
) -> Figure:
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
    width : int, optional
        Pixels. Without it the figure fills its container, and is laid out for 1,100.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        If there is no such layer or head.
    """
    checked_sizes(width)
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
    columns, across = fit_columns(len(heads), width, sides=100 + beside, least=_LEAST, gap=gap)
    side = min(across, _WIDEST)
    named = len(tokens) * 11 <= side
    margin = {"l": 24 + beside * named, "r": 76, "t": top, "b": 14 + beside * named}
    figure = panel_figure(
        [side] * -(-len(heads) // columns),
        columns,
        n=len(heads),
        between=30 + beside if named else 34,
        gap=gap if named else 14,
        width=width,
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
    space = max(int(((width or ASSUMED_WIDTH) - 40) / 7.6) - 30, 20)
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
        "hovertemplate": f"head {head}{about}<extra></extra>",
        "showscale": False,
    }
