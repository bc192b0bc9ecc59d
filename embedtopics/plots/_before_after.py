"""The effect of training on an encoder: differences with their intervals, around zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from embedtopics.plots._colors import PALETTE
from embedtopics.plots._theme import (
    GREY,
    axes_of,
    caption,
    cut,
    empty_figure,
    escape,
    interval_dots,
    name_axis,
    panel_figure,
    panel_note,
    wrap,
)
from embedtopics.training.results import Change

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_ROW = 26
_VERDICTS = {
    "better": (PALETTE[0], "triangle-right"),
    "worse": (PALETTE[5], "triangle-left"),
    "no difference shown": (GREY, "circle"),
    "descriptive": ("#3d4754", "circle"),
}
"""Colour and shape, so that verdicts can be distinguished without colours."""


def before_after(changes: Sequence[Change]) -> Figure:
    """Draw what changed from an encoder to the one that was fine-tuned from it.

    Above, the differences of scores with their intervals: to the right of zero the tuned encoder
    is better. Below, what is neither good nor bad, such as the share of neighbours kept: its value
    before (hollow) and after.

    Parameters
    ----------
    changes : sequence of Change
        As `TrainingReport.before_after`; those of a task stay together in their order.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    tasks = list(dict.fromkeys(change.task for change in changes))
    ordered = sorted(changes, key=lambda change: tasks.index(change.task))
    scores = [change for change in ordered if change.verdict != "descriptive"]
    levels = [change for change in ordered if change.verdict == "descriptive"]
    parts = [part for part in (scores, levels) if part]
    if not parts:
        return empty_figure("Nothing was compared")
    heights = [max(len(part), 2 if len(parts) == 1 else 1) * _ROW for part in parts]
    figure = panel_figure(heights, between=76, margin={"r": 24, "t": 48, "b": 68})
    legend: dict[str, Any] = {"x": 0.5, "xanchor": "center", "y": 0.01, "yref": "container"}
    legend |= {"itemclick": False, "itemdoubleclick": False}
    figure.update_layout(legend=legend, showlegend=True)
    for panel, part in enumerate(parts):
        text = "<b>neither good nor bad</b>: before (hollow) and after (95 % interval)"
        traces, reach = _positions(part), (0.0, 1.0, 0.02)
        if part is scores:
            text = "<b>difference</b>, after minus before (95 % interval)"
            traces, reach = _differences(part), (0.0, 0.0, 0.08)
            figure.update_xaxes(tickformat="+", row=1)
        figure.add_traces([trace | axes_of(panel) for trace in traces])
        figure.add_annotation(panel_note(figure, panel, text, yshift=8))
        figure.update_yaxes(name_axis(_names(part), None), row=panel + 1)
        figure.update_xaxes(range=_reach(traces, *reach), row=panel + 1)
    zero = {"zeroline": True, "zerolinecolor": "#6b7684", "zerolinewidth": 1.5}
    return figure.update_xaxes(zero, showgrid=True, nticks=9, tickfont_size=11)


def _names(changes: Sequence[Change]) -> list[str]:
    """Return the metric of each row, and its task where it is the first of it."""
    names, last = [], None
    for change in changes:
        task = f"<b>{caption(change.task, 24)}</b>  " if change.task != last else ""
        unknown = "" if math.isfinite(change.difference) else " (unknown)"
        names.append(f"{task}{caption(change.metric, 44)}{unknown}")
        last = change.task
    return names


def _reach(
    traces: Sequence[dict[str, Any]], low: float, high: float, share: float
) -> tuple[float, float]:
    """Return the span of an axis that holds all points and intervals, and `low` and `high`."""
    ends = [low, high]
    for trace in traces:
        bars = trace.get("error_x", {"array": [0] * len(trace["x"])})
        for x, up, down in zip(
            trace["x"], bars["array"], bars.get("arrayminus", bars["array"]), strict=True
        ):
            ends += [] if x is None else [x, x + (up or 0), x - (down or 0)]
    low, high = min(ends), max(ends)
    edge = share * (high - low) or 0.01
    return low - edge, high + edge


def _differences(changes: Sequence[Change]) -> list[dict[str, Any]]:
    """Return a trace for each verdict, which is its entry in the legend."""
    traces = []
    for verdict in list(_VERDICTS)[:3]:
        rows = [i for i, change in enumerate(changes) if change.verdict == verdict]
        if rows:
            chosen = [changes[i] for i in rows]
            traces.append(_dots(rows, chosen, [change.difference for change in chosen], verdict))
    return traces


def _positions(changes: Sequence[Change]) -> list[dict[str, Any]]:
    """Return the values before, hollow, and those after."""
    rows = list(range(len(changes)))
    after = _dots(rows, changes, [change.after for change in changes], "descriptive")
    rim = {"width": 2, "color": _VERDICTS["descriptive"][0]}
    before = {
        "type": "scatter",
        "mode": "markers",
        "x": [_finite(change.before) for change in changes],
        "y": rows,
        "hoverinfo": "skip",
        "showlegend": False,
        "marker": {"size": 10, "color": "#fff", "line": rim},
    }
    return [before, after | {"showlegend": False}]


def _dots(
    rows: Sequence[int], changes: Sequence[Change], values: Sequence[float], verdict: str
) -> dict[str, Any]:
    """Return values with the intervals of their differences."""
    color, symbol = _VERDICTS[verdict]
    ends = (
        [_finite(change.difference - change.low) for change in changes],
        [_finite(change.high - change.difference) for change in changes],
    )
    return interval_dots(
        [_finite(value) for value in values],
        rows,
        ends,
        [_hover(change) for change in changes],
        name=verdict,
        showlegend=True,
        marker={"size": 11, "color": color, "symbol": symbol},
        error_x={"thickness": 2, "color": color},
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _hover(change: Change) -> str:
    """Return a change in words, with its note."""
    difference, low, high = (_spell(v, "+") for v in (change.difference, change.low, change.high))
    looks = f", test set log: use {change.n_looks:,}" if change.n_looks else ""
    lines = [
        f"<b>{caption(change.task, 40)}</b>  {caption(change.metric, 60)}",
        f"{_spell(change.before)} before, {_spell(change.after)} after: {difference} "
        f"({low} to {high})",
        f"<b>{caption(change.verdict, 40)}</b>, {change.n:,} examples{looks}",
        *(escape(line) for line in wrap(cut(change.note, 400), 72)),
    ]
    return "<br>".join(lines)


def _spell(value: float, sign: str = "") -> str:
    return f"{value:{sign}.3f}" if math.isfinite(value) else "unknown"
