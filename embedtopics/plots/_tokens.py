"""Texts cut into tokens, as a tokenizer reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedtopics.plots._colors import PALETTE
from embedtopics.plots._theme import INK, MUTED, Spec, base_layout, cut, escape, scatter

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from embedtopics.pretraining.results import TokenizerReport

_LINE, _GAP = 24, 14
_CHARACTER, _FONT = 7.85, 13
"""Width of a character of a fixed-width font of this size, in pixels."""


def tokens(report: TokenizerReport, *, width: int = 900) -> Figure:
    """Draw the examples of a tokenizer report, with a colour for each token.

    Parameters
    ----------
    report : TokenizerReport
    width : int
        Pixels.

    Returns
    -------
    plotly.graph_objects.Figure
        Texts from the least to the most divided; the tokenizer does not know a word of several
        colours.
    """
    import plotly.graph_objects as go

    n_columns = int((width - 48) / _CHARACTER)
    shapes: list[Spec] = []
    places: list[tuple[float, float, str]] = []
    y = 0.0
    for example in report.examples:
        column, color = 0, 0
        for part in example:
            # A token may begin or end with a space, which `cut` removes.
            text = " " * part[:1].isspace() + cut(part, n_columns) if part.strip() else " "
            if column + len(text) > n_columns:
                column, y = 0, y + _LINE
                text = text.lstrip()
            if text.strip():
                left = column * _CHARACTER
                box = {"x0": left, "x1": left + len(text) * _CHARACTER, "y0": y - 8, "y1": y + 10}
                fill = {"line": {"width": 0}, "opacity": 0.32, "fillcolor": PALETTE[color % 4]}
                shapes.append({"type": "rect", **box, **fill, "layer": "below"})
                places.append((left, y, text))
                color += 1
            column += len(text)
        y += _LINE + _GAP
    trace = scatter(
        [x for x, _, _ in places],
        [y for _, y, _ in places],
        "text",
        text=[escape(text).replace(" ", "\u00a0") for _, _, text in places],
        textposition="middle right",
        textfont={"family": "monospace", "size": _FONT, "color": INK},
        hoverinfo="skip",
    )
    title = f"{report.fertility:.2f} tokens per word, {report.share_cut:.1%} of words in 3 or more"
    below = f"{cut(report.encoder, 60)}; texts from the least to the most divided"
    markup = f"<span style='font-size:12px;color:{MUTED}'>{escape(below)}</span>"
    hidden = {"visible": False, "fixedrange": True}
    layout = base_layout(int(y) + 84, width, l=24, r=24, t=64, b=16) | {
        "shapes": shapes,
        "xaxis": {**hidden, "range": [0, width - 48]},
        "yaxis": {**hidden, "range": [y - _GAP, -_LINE / 2]},
        "title": {"text": f"{title}<br>{markup}", "font": {"size": 15}},
    }
    return go.Figure([trace], layout)
