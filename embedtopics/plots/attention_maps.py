"""Who looks at whom in a text: a matrix for each head."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._checks import is_whole
from embedtopics.errors import InputError
from embedtopics.plots.panels import (
    ASSUMED_WIDTH,
    Panels,
    checked_sizes,
    chosen_columns,
    panel_layout,
)
from embedtopics.plots.similarity_map import SCALE
from embedtopics.plots.text import INK, LEFT_TO_RIGHT, MUTED, cut, escape
from embedtopics.results import Attention

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["attention"]

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

    A row is where the token at its left takes its information from: its cells sum to 1. All heads
    share one scale. Much weight often lies on the first and last token, which is a way of looking
    nowhere; and weights do not tell what a decision rests on (Jain & Wallace 2019).

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
        raise InputError(f"expected Attention from probing.attention; got {type(found).__name__}")
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
        kept = ", ".join(map(str, found.layers))
        raise InputError(f"expected one of the layers {kept}; got {layer!r}")
    return int(number)


def _heads(head: int | Sequence[int] | str, n_heads: int) -> list[int]:
    if isinstance(head, str):
        if head != "all":
            raise InputError(f'expected head as a number, several or "all"; got {head!r}')
        return list(range(n_heads))
    wanted = list(head) if isinstance(head, Iterable) else [head]
    if not wanted:
        raise InputError("expected at least one head, got none")
    for one in wanted:
        if not is_whole(one) or not 0 <= one < n_heads:
            raise InputError(f"expected a head from 0 to {n_heads - 1}; got {one!r}")
    return [int(one) for one in wanted]


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
        + ": <b>%{customdata[0]}</b> looks at <b>%{customdata[1]}</b><br>%{z:.3f}<extra></extra>",
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
    room = max(int((panels.size[0] - 40) / 7.6) - 30, 20)
    text = f"{escape(cut(found.text, room))}{LEFT_TO_RIGHT}"
    lines = [
        f"<b>layer {layer}</b> · {text}",
        f"each row sums to 1: where its token takes from · {escape(cut(found.encoder, 50))}",
    ]
    return [
        {
            "x": 0, "y": 1, "xref": "paper", "yref": "paper", "xanchor": "left",
            "xshift": 16 - panels.left, "yanchor": "top", "yshift": panels.top - 5 - 20 * place,
            "showarrow": False, "text": line, "align": "left",
            "font": {"size": 12, "color": MUTED} if place else {"size": 14, "color": INK},
        }
        for place, line in enumerate(lines)
    ]  # fmt: skip
