"""What training did to an encoder: differences with their intervals, around zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from embedtopics.plots.palette import PALETTE
from embedtopics.plots.text import FONT, INK, MUTED, cut, escape, wrap
from embedtopics.results import Change

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["before_after"]

_ROW = 26
_HEAD, _BETWEEN, _FOOT = 48, 76, 68
_GREY, _HOLLOW = "#8a94a3", "#ffffff"
_COLORS = {
    "better": PALETTE[0],
    "worse": PALETTE[5],
    "no difference shown": _GREY,
    "descriptive": "#3d4754",
}
_SYMBOLS = {
    "better": "triangle-right",
    "worse": "triangle-left",
    "no difference shown": "circle",
    "descriptive": "circle",
}
"""So that verdicts are told apart without colours, too."""


def before_after(changes: Sequence[Change]) -> Figure:
    """Draw what changed from one encoder to the one that was tuned from it.

    Above, the differences of scores with their intervals: to the right of zero the tuned encoder
    is better. Below, what is neither good nor bad, such as the share of neighbours kept: where it
    was (hollow) and where it is.

    Parameters
    ----------
    changes : sequence of Change
        As `TrainingReport.before_after`; those of a task stay together in their order.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    import plotly.graph_objects as go

    tasks = list(dict.fromkeys(change.task for change in changes))
    ordered = sorted(changes, key=lambda change: tasks.index(change.task))
    scores = [change for change in ordered if change.verdict != "descriptive"]
    levels = [change for change in ordered if change.verdict == "descriptive"]
    above, below = (len(part) * _ROW for part in (scores, levels))
    if not changes:
        return go.Figure(layout={**_layout(200), **_empty()})
    gap = _BETWEEN if scores and levels else 0
    drawn = max(above + gap + below, 2 * _ROW)
    axes: dict[str, Any] = {}
    traces: list[dict[str, Any]] = []
    annotations = []
    if scores:
        bottom = (gap + below) / drawn if levels else 0.0
        axes |= _axes("", (bottom, 1.0), scores, _reach(scores))
        traces += _differences(scores)
        text = "<b>difference</b>, after less before (95 % interval)"
        annotations.append(_heading(text, 1.0))
    if levels:
        top = below / drawn if scores else 1.0
        axes |= _axes("2", (0.0, top), levels, _span(levels))
        traces += _positions(levels)
        text = "<b>neither good nor bad</b>: before (hollow) and after (95 % interval)"
        annotations.append(_heading(text, top))
    return go.Figure(
        data=traces, layout={**_layout(drawn + _HEAD + _FOOT), **axes, "annotations": annotations}
    )


def _layout(height: float) -> dict[str, Any]:
    return {
        "template": "none",
        "height": height,
        "margin": {"l": 16, "r": 24, "t": _HEAD, "b": _FOOT},
        "font": {"family": FONT, "size": 13, "color": INK},
        "hoverlabel": {"bgcolor": "#fff", "align": "left", "font": {"family": FONT, "color": INK}},
        "legend": {"orientation": "h", "x": 0.5, "xanchor": "center", "y": 0.01,
                   "yanchor": "bottom", "yref": "container", "itemclick": False,
                   "itemdoubleclick": False},
    }  # fmt: skip


def _empty() -> dict[str, Any]:
    hidden = {"visible": False}
    note = {
        "x": 0.5, "y": 0.5, "xref": "paper", "yref": "paper", "showarrow": False,
        "text": "Nothing was compared", "font": {"size": 15, "color": MUTED},
    }  # fmt: skip
    return {"xaxis": hidden, "yaxis": hidden, "annotations": [note]}


def _heading(text: str, y: float) -> dict[str, Any]:
    return {
        "x": 0, "y": y, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom",
        "yshift": 8, "showarrow": False, "text": text,
    }  # fmt: skip


def _known(values: Sequence[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]


def _reach(changes: Sequence[Change]) -> tuple[float, float]:
    """Return an axis on which zero is seen, and differences both ways have the same scale."""
    values = _known([v for c in changes for v in (c.low, c.high, c.difference)])
    low, high = min([*values, 0.0]), max([*values, 0.0])
    margin = 0.08 * (high - low) or 0.01
    return low - margin, high + margin


def _span(changes: Sequence[Change]) -> tuple[float, float]:
    values = _known([v for c in changes for v in (*_after(c), c.before)])
    low, high = min([*values, 0.0]), max([*values, 1.0])
    return low - 0.02 * (high - low), high + 0.02 * (high - low)


def _after(change: Change) -> tuple[float, float, float]:
    """Return the figure after training and its interval, before standing fast."""
    return change.after, change.before + change.low, change.before + change.high


def _axes(
    number: str, domain: tuple[float, float], changes: Sequence[Change], span: tuple[float, float]
) -> dict[str, Any]:
    names = []
    last = None
    for change in changes:
        metric = escape(cut(change.metric, 44))
        task = f"<b>{escape(cut(change.task, 24))}</b>  " if change.task != last else ""
        unknown = "" if math.isfinite(change.difference) else " (unknown)"
        names.append(f"{task}{metric}{unknown}  ")
        last = change.task
    return {
        f"xaxis{number}": {
            "range": list(span), "anchor": f"y{number}", "gridcolor": "#e6e9ed", "nticks": 9,
            "zeroline": True, "zerolinecolor": "#6b7684", "zerolinewidth": 1.5,
            "fixedrange": True, "tickformat": "" if number else "+", "tickfont": {"size": 11},
        },
        f"yaxis{number}": {
            "domain": list(domain), "range": [len(changes) - 0.5, -0.5], "fixedrange": True,
            "tickvals": list(range(len(changes))), "ticktext": names, "automargin": True,
            "showgrid": False, "zeroline": False, "anchor": f"x{number}",
        },
    }  # fmt: skip


def _differences(changes: Sequence[Change]) -> list[dict[str, Any]]:
    """Return a trace for each verdict, which is its entry in the legend."""
    traces = []
    for verdict in ("better", "worse", "no difference shown"):
        rows = [i for i, change in enumerate(changes) if change.verdict == verdict]
        if rows:
            chosen = [changes[i] for i in rows]
            points = [(c.difference, c.low, c.high) for c in chosen]
            drawn = {**_points(rows, chosen, points, verdict), "xaxis": "x", "yaxis": "y"}
            traces.append({**drawn, "name": verdict, "showlegend": True})
    return traces


def _positions(changes: Sequence[Change]) -> list[dict[str, Any]]:
    rows = list(range(len(changes)))
    filled = _points(rows, changes, [_after(c) for c in changes], "descriptive")
    hollow = {
        "type": "scatter", "mode": "markers", "x": [_or_none(c.before) for c in changes],
        "y": rows, "hoverinfo": "skip",
        "marker": {"size": 10, "color": _HOLLOW,
                   "line": {"width": 2, "color": _COLORS["descriptive"]}},
    }  # fmt: skip
    both = ({**hollow, "xaxis": "x2", "yaxis": "y2"}, {**filled, "xaxis": "x2", "yaxis": "y2"})
    return [{**trace, "showlegend": False} for trace in both]


def _points(
    rows: Sequence[int],
    changes: Sequence[Change],
    points: Sequence[tuple[float, float, float]],
    verdict: str,
) -> dict[str, Any]:
    color = _COLORS[verdict]
    return {
        "type": "scatter", "mode": "markers", "x": [_or_none(value) for value, _, _ in points],
        "y": list(rows),
        "marker": {"size": 11, "color": color, "symbol": _SYMBOLS[verdict]},
        "error_x": {
            "type": "data", "symmetric": False, "thickness": 2, "width": 0, "color": color,
            "array": [_or_none(high - value) for value, _, high in points],
            "arrayminus": [_or_none(value - low) for value, low, _ in points],
        },
        "text": [_hover(change) for change in changes],
        "hovertemplate": "%{text}<extra></extra>",
    }  # fmt: skip


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _hover(change: Change) -> str:
    looks = f", look {change.n_looks:,} at them" if change.n_looks else ""
    lines = [
        f"<b>{escape(cut(change.task, 40))}</b>  {escape(cut(change.metric, 60))}",
        f"{_number(change.before)} before, {_number(change.after)} after: "
        f"{_number(change.difference, '+')} "
        f"({_number(change.low, '+')} to {_number(change.high, '+')})",
        f"<b>{escape(cut(change.verdict, 40))}</b>, {change.n:,} examples{looks}",
    ]
    lines += [escape(line) for line in wrap(cut(change.note, 400), 72)]
    return "<br>".join(lines)


def _number(value: float, sign: str = "") -> str:
    return f"{value:{sign}.3f}" if math.isfinite(value) else "unknown"
