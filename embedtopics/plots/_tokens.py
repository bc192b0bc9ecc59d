"""Texts cut into pieces, as a tokenizer reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from embedtopics.plots._colors import PALETTE
from embedtopics.plots._theme import INK, MUTED, cut, escape, look
from embedtopics.pretraining.results import TokenizerReport

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_LINE, _GAP = 24, 14
_CHARACTER, _FONT = 7.85, 13
"""Width of a character of a fixed-width font of that size, in pixels."""


def tokens(report: TokenizerReport, *, width: int = 900) -> Figure:
    """Draw the examples of a tokenizer report: each piece on a colour of its own.

    Parameters
    ----------
    report : TokenizerReport
    width : int
        Pixels.

    Returns
    -------
    plotly.graph_objects.Figure
        Texts from those cut least to those cut most; a word of several colours was not known.
    """
    import plotly.graph_objects as go

    n_columns = int((width - 48) / _CHARACTER)
    shapes: list[dict[str, Any]] = []
    places: list[tuple[float, float, str]] = []
    y = 0.0
    for example in report.examples:
        column, color = 0, 0
        for part in example:
            # A piece may begin or end with a space, which `cut` would take away.
            text = " " * part[:1].isspace() + cut(part, n_columns) if part.strip() else " "
            if column + len(text) > n_columns:
                column, y = 0, y + _LINE
                text = text.lstrip()
            if text.strip():
                left = column * _CHARACTER
                shapes.append({
                    "type": "rect", "x0": left, "x1": left + len(text) * _CHARACTER,
                    "y0": y - 8, "y1": y + 10, "line": {"width": 0}, "opacity": 0.32,
                    "fillcolor": PALETTE[color % 4], "layer": "below",
                })  # fmt: skip
                places.append((left, y, text))
                color += 1
            column += len(text)
        y += _LINE + _GAP
    trace = go.Scatter(
        x=[x for x, _, _ in places], y=[y for _, y, _ in places], mode="text",
        text=[escape(text).replace(" ", "\u00a0") for _, _, text in places],
        textposition="middle right",
        textfont={"family": "monospace", "size": _FONT, "color": INK}, hoverinfo="skip",
    )  # fmt: skip
    layout: dict[str, Any] = look(int(y) + 84, width, l=24, r=24, t=64, b=16)
    hidden = {"visible": False, "fixedrange": True}
    title = (
        f"{report.fertility:.2f} pieces a word, {report.share_cut:.1%} of the words in three or "
        "more"
    )
    below = f"{cut(report.encoder, 60)}; texts from those cut least to those cut most"
    small = f"font-size:12px;color:{MUTED}"
    return go.Figure(
        trace,
        layout=go.Layout(
            **layout,
            shapes=shapes,
            xaxis={**hidden, "range": [0, width - 48]},
            yaxis={**hidden, "range": [y - _GAP, -_LINE / 2]},
            title={
                "text": f"{title}<br><span style='{small}'>{escape(below)}</span>",
                "font": {"size": 15},
            },
        ),
    )
