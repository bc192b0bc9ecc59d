"""How much the vectors of words depend on their contexts, by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from embedtopics.errors import InputError
from embedtopics.plots.layer_curves import GRID, Line, end_names, layer_axis, traces_of, value_range
from embedtopics.plots.palette import PALETTE
from embedtopics.plots.panels import (
    ASSUMED_WIDTH,
    Panels,
    checked_sizes,
    chosen_columns,
    panel_layout,
)
from embedtopics.plots.text import MUTED, cut, escape
from embedtopics.results import Contextualization

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["contextualization"]

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
    ("less what chance gives", _LESS),
)


def contextualization(
    found: Contextualization, *, width: int | None = None, height: int | None = None
) -> Figure:
    """Draw how much the vector of a word depends on its context, layer by layer.

    On the left the mean cosine of two uses of one word, that of a word and its sentence, and that
    of two words at random, which the space alone gives (anisotropy; Ethayarajh 2019). On the right
    the same less what chance gives: a word that has one vector whatever its context stays at 1
    less the anisotropy, one that the context decides falls to 0. Bands are 95 % intervals.

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
        raise InputError(
            f"expected Contextualization from probing.contextualization; got {type(found).__name__}"
        )
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
    return [
        {
            "x": 0, "y": 1, "xref": "paper", "yref": "paper", "xanchor": "left", "xshift": -34,
            "yanchor": "top", "yshift": panels.top - 8, "showarrow": False, "font": {"size": 14},
            "text": f"<b>{escape(cut(found.encoder, 50))}</b>"
            f'<span style="font-size:12px;color:{MUTED}"> · {n:,} words, '
            f"{int(found.n_uses.sum()):,} uses</span>",
        }
    ]  # fmt: skip
