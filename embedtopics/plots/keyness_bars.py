"""The terms that set two sets of documents apart, as bars to both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from embedtopics.errors import InputError
from embedtopics.plots.text import FONT, INK, MUTED, cut, escape

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

__all__ = ["keyness"]

_BAR = 25
_TARGET, _REFERENCE = "#7fb8d8", "#f0c67a"
"""Tints of the first two colours of the palette, pale enough to write on."""

_COLUMNS = (
    "term", "statistic", "effect", "count_target", "count_reference", "rate_target",
    "rate_reference",
)  # fmt: skip


class _Side(NamedTuple):
    name: str
    rows: list[Any]
    sign: int
    color: str


def keyness(
    frame: pd.DataFrame,
    *,
    n_terms: int = 15,
    value: str = "statistic",
    target: str = "target",
    reference: str = "reference",
) -> Figure:
    """Draw the terms of the target to the right and those of the reference to the left.

    The strongest stand on top, in the order of the frame; counts and rates are in the hover text.

    Parameters
    ----------
    frame : DataFrame
        From `embedtopics.topics.keyness`.
    n_terms : int
        Terms of each side at most.
    value : {"statistic", "effect"}
        Column that gives the bars their length.
    target, reference : str
        What both sides are called.

    Returns
    -------
    plotly.graph_objects.Figure
        One bar trace for each side.

    Raises
    ------
    InputError
        If the frame is not one of keyness, or another argument is bad.
    """
    import plotly.graph_objects as go

    if n_terms < 1:
        raise InputError(f"n_terms must be 1 or more; got {n_terms}")
    if value not in ("statistic", "effect"):
        raise InputError(f"expected value among statistic, effect; got {value!r}")
    missing = [name for name in _COLUMNS if name not in getattr(frame, "columns", ())]
    if missing:
        raise InputError(
            f"expected a frame from topics.keyness; got one without the column {missing[0]!r}"
        )
    lines = [row for row in frame.itertuples() if getattr(row, value) != 0]
    positive = [row for row in lines if getattr(row, value) > 0]
    negative = [row for row in lines[::-1] if getattr(row, value) < 0]
    sides = [
        _Side(target, positive[:n_terms], 1, _TARGET),
        _Side(reference, negative[:n_terms], -1, _REFERENCE),
    ]
    longest = max((abs(getattr(row, value)) for side in sides for row in side.rows), default=1.0)
    n_lines = max(*(len(side.rows) for side in sides), 1)
    return go.Figure(
        data=[_bars(side, value) for side in sides],
        layout={
            "template": "none",
            "height": n_lines * _BAR + 92,
            "margin": {"l": 16, "r": 16, "t": 68, "b": 24},
            "font": {"family": FONT, "size": 13, "color": INK},
            "showlegend": False,
            "barmode": "overlay",
            "bargap": 0.18,
            "hoverlabel": {"bgcolor": "#fff", "font": {"family": FONT, "color": INK}},
            "xaxis": {"visible": False, "fixedrange": True, "range": [-longest, longest]},
            "yaxis": {"visible": False, "fixedrange": True, "range": [n_lines - 0.5, -0.5]},
            "shapes": [_middle()],
            "annotations": [note for side in sides for note in _writing(side)],
        },
    )


def _bars(side: _Side, value: str) -> dict[str, Any]:
    """Return the bars of one side."""
    return {
        "type": "bar",
        "orientation": "h",
        "name": escape(cut(side.name, 40)),
        "x": [getattr(row, value) for row in side.rows],
        "y": list(range(len(side.rows))),
        "marker": {"color": side.color, "line": {"width": 0}},
        "hovertext": [_hover(row) for row in side.rows],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def _hover(row: Any) -> str:
    counts = f"{row.count_target:,} : {row.count_reference:,}"
    rates = f"{row.rate_target:,.0f} : {row.rate_reference:,.0f}"
    return (
        f"<b>{escape(cut(row.term, 60))}</b><br>statistic {row.statistic:,.1f}, "
        f"effect {row.effect:.2f}<br>times {counts}<br>in a million {rates}"
    )


def _writing(side: _Side) -> list[dict[str, Any]]:
    """Return the name of a side, and its terms, written from the middle over their bars."""
    anchor = "left" if side.sign > 0 else "right"
    place = {"x": 0, "xref": "x", "xanchor": anchor, "xshift": 8 * side.sign, "showarrow": False}
    none = "" if side.rows else "<br>no term"
    heading = {
        **place, "y": 1, "yref": "paper", "yanchor": "bottom", "yshift": 10, "align": anchor,
        "text": f"<b>{escape(cut(side.name, 28))}</b>"
        f'<span style="font-size:11px;color:{MUTED}">{none}</span>',
    }  # fmt: skip
    terms = [
        {**place, "y": line, "yref": "y", "text": escape(cut(row.term, 32))}
        for line, row in enumerate(side.rows)
    ]
    return [heading, *terms]


def _middle() -> dict[str, Any]:
    """Return the line between both sides."""
    return {
        "type": "line", "xref": "x", "yref": "paper", "x0": 0, "x1": 0, "y0": 0, "y1": 1,
        "line": {"color": MUTED, "width": 1},
    }  # fmt: skip
