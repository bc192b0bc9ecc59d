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
    MUTED,
    Panels,
    checked_sizes,
    chosen_columns,
    cut,
    escape,
    panel_layout,
    title_notes,
)
from embedtopics.probing.results import Attention

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


_LEAST, _WIDEST = 190, 620
_TITLE = 52
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
    import plotly.graph_objects as go

    checked_sizes(width, height)
    if not isinstance(found, Attention):
        raise InputError("found", "Attention from probing.attention", found=type(found).__name__)
    number = _layer(found, layer)
    weights = np.asarray(found.weights[found.layers.index(number)], dtype=np.float64)
    heads = _heads(head, len(weights))
    names = [escape(cut(token, _TOKEN)) + LEFT_TO_RIGHT for token in found.tokens]
    panels, named = _places(found, len(heads), columns, width, height)
    largest = float(weights[heads].max(initial=0.0)) or 1.0
    traces, axes = [], dict[str, Any]()
    notes = _title(found, number, panels)
    for place, one in enumerate(heads):
        axis = str(place + 1) if place else ""
        traces.append(
            _matrix(found, weights[one], one, axis, largest, last=place == len(heads) - 1)
        )
        axes |= _axes(names, panels, place, axis, named)
        notes.append(panels.heading(place, f"<b>head {one}</b>", 3))
    return go.Figure(data=traces, layout={**panel_layout(panels, width, height, notes), **axes})


def _layer(found: Attention, layer: int) -> int:
    number = found.layers[-1] + 1 + layer if is_whole(layer) and layer < 0 else layer
    if not is_whole(number) or number not in found.layers:
        raise InputError("layer", f"one of {', '.join(map(str, found.layers))}", layer)
    return int(number)


def _heads(head: int | Sequence[int] | str, n_heads: int) -> list[int]:
    if isinstance(head, str) and head == "all":
        return list(range(n_heads))
    heads: list[Any] = list(head) if isinstance(head, Iterable) else [head]
    if not heads or not all(is_count(one, 0) and one < n_heads for one in heads):
        raise InputError("head", f'"all", or numbers from 0 to {n_heads - 1}', head)
    return [int(one) for one in heads]


def _places(
    found: Attention, n: int, columns: int | None, width: int | None, height: int | None
) -> tuple[Panels, bool]:
    """Return the panels, and whether the tokens can be written beside them."""
    longest = max((len(cut(token, _TOKEN)) for token in found.tokens), default=1)
    names = round(_LETTER * longest + 16)
    inner = (width or ASSUMED_WIDTH) - 24 - 76
    gap = 14 + names
    n_columns = chosen_columns(n, columns, inner - names, _LEAST, gap)
    across = (inner - names - (n_columns - 1) * gap) / n_columns
    across = min(across, _WIDEST)
    side = across
    if height is not None:
        side = max((height - _TITLE - 8) / -(-n // n_columns) - 24 - names, 40)
    named = len(found.tokens) * 11 <= min(across, side)
    return Panels(
        n, n_columns, across, side, head=24, foot=names + 6 if named else 10,
        gap=gap if named else 14, left=24 + (names if named else 0), right=76, top=_TITLE, bottom=8,
    ), named  # fmt: skip


def _matrix(
    found: Attention, weights: Any, head: int, axis: str, largest: float, *, last: bool
) -> dict[str, Any]:
    tokens = [escape(cut(token, 40)) + LEFT_TO_RIGHT for token in found.tokens]
    return {
        "type": "heatmap", "z": weights.tolist(), "zmin": 0.0, "zmax": largest,
        "colorscale": SCALE, "name": f"head {head}", "xaxis": f"x{axis}", "yaxis": f"y{axis}",
        "xgap": 1 if len(tokens) <= 40 else 0, "ygap": 1 if len(tokens) <= 40 else 0,
        "customdata": [[[row, column] for column in tokens] for row in tokens],
        "hovertemplate": "head " + str(head)
        + ": <b>%{customdata[0]}</b> attends to <b>%{customdata[1]}</b><br>%{z:.3f}<extra></extra>",
        "showscale": last,
        "colorbar": {
            "title": {"text": "weight", "font": {"color": MUTED, "size": 12}}, "thickness": 12,
            "len": 180, "lenmode": "pixels", "outlinewidth": 0, "y": 1, "yanchor": "top",
            "tickfont": {"color": MUTED, "size": 11}, "nticks": 5,
        },
    }  # fmt: skip


def _axes(
    names: Sequence[str], panels: Panels, place: int, axis: str, named: bool
) -> dict[str, Any]:
    across, up = panels.domain(place)
    frame = {
        "showgrid": False, "zeroline": False, "ticks": "", "tickvals": list(range(len(names))),
        "ticktext": names, "showticklabels": named, "tickfont": {"size": 10}, "constrain": "domain",
        "fixedrange": True,
    }  # fmt: skip
    return {
        f"xaxis{axis}": {
            **frame, "domain": across, "anchor": f"y{axis}", "tickangle": -90,
            "range": [-0.5, len(names) - 0.5], "constraintoward": "left",
        },
        f"yaxis{axis}": {
            **frame, "domain": up, "anchor": f"x{axis}", "range": [len(names) - 0.5, -0.5],
            "scaleanchor": f"x{axis}", "constraintoward": "top",
        },
    }  # fmt: skip


def _title(found: Attention, layer: int, panels: Panels) -> list[dict[str, Any]]:
    """Return the text, and how a matrix is read."""
    space = max(int((panels.size[0] - 40) / 7.6) - 30, 20)
    text = f"{escape(cut(found.text, space))}{LEFT_TO_RIGHT}"
    lines = [
        f"<b>layer {layer}</b> · {text}",
        f"each row sums to 1: what its token attends to · {escape(cut(found.encoder, 50))}",
    ]
    return title_notes(lines, panels.top - 5, left=panels.left - 16, size=14)
