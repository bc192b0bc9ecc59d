"""How far each topic comes back in replicates, beside what chance alone would bring back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.plots.palette import dark, topic_colors
from embedtopics.plots.text import FONT, INK, MUTED, cut, escape, nothing_to_draw
from embedtopics.results import TopicResult

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["stability"]

_LINE = 22
_HEAD = 64
_FOOT = 44
_CHANCE = "#8a94a3"


def stability(result: TopicResult) -> Figure:
    """Draw the recurrence of each topic with its interval and its chance level, stablest first.

    A dot is the mean overlap (Jaccard) of a topic with its best match in the replicates, the line
    through it holds nine tenths of them, and the grey mark is what labels dealt at random would
    give. A topic whose line reaches its grey mark is not told from chance.

    Parameters
    ----------
    result : TopicResult
        With a measured stability.

    Returns
    -------
    plotly.graph_objects.Figure
        All topics: the least stable are those that one wants to see.

    Raises
    ------
    InputError
        If stability was not measured.
    """
    import plotly.graph_objects as go

    measured = result.stability
    if measured is None and result.topics:
        raise InputError(
            "expected a result with a measured stability; this one has none: "
            "take topics.with_stability(result)"
        )
    shown = _order(result)
    height = len(shown) * _LINE
    layout: dict[str, Any] = {
        "template": "none",
        "height": height + _HEAD + _FOOT,
        "margin": {"l": 16, "r": 24, "t": _HEAD, "b": _FOOT},
        "font": {"family": FONT, "size": 13, "color": INK},
        "hoverlabel": {"bgcolor": "#fff", "font": {"family": FONT, "color": INK}},
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "yref": "paper"},
    }
    if not shown or measured is None:
        hidden = {"visible": False}
        return go.Figure(
            layout={**layout, "height": 200, "xaxis": hidden, "yaxis": hidden,
                    "annotations": [nothing_to_draw()]}
        )  # fmt: skip
    return go.Figure(
        data=_traces(result, shown),
        layout={**layout, **_axes(result, shown)},
    )


def _order(result: TopicResult) -> list[int]:
    """Return the topics from the stablest down; those that no replicate held come last."""
    if result.stability is None:
        return []
    recurrence = np.nan_to_num(result.stability.recurrence, nan=-1.0)
    return [int(topic) for topic in np.argsort(-recurrence, kind="stable")]


def _traces(result: TopicResult, shown: list[int]) -> list[dict[str, Any]]:
    """Return the intervals, the chance levels and the dots, in the order in which they lie."""
    measured = result.stability
    assert measured is not None
    lines = list(range(len(shown)))
    colors = [topic_colors(result)[topic] for topic in shown]
    value = measured.recurrence[shown]
    low, high = measured.low[shown], measured.high[shown]
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": [low[i], high[i]],
            "y": [i, i],
            "line": {"color": dark(colors[i]), "width": 2},
            "hoverinfo": "skip",
            "showlegend": False,
        }
        for i in lines
    ]
    if measured.chance is not None:
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "chance alone",
                "x": measured.chance[shown].tolist(),
                "y": lines,
                "marker": {"symbol": "line-ns-open", "size": 13, "color": _CHANCE,
                           "line": {"width": 2, "color": _CHANCE}},
                "hovertemplate": "chance: %{x:.2f}<extra></extra>",
            }
        )  # fmt: skip
    names = [escape(cut(result.topics[topic].label, 60)) for topic in shown]
    notes = [
        f"{names[i]}<br>topic {topic} · {result.topics[topic].size:,} rows<br>"
        f"recurs {value[i]:.2f}, nine in ten from {low[i]:.2f} to {high[i]:.2f}"
        for i, topic in enumerate(shown)
    ]
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": f"recurrence, mean of {measured.n_replicates} replicates "
            "(line: nine tenths of them)",
            "x": value.tolist(),
            "y": lines,
            "marker": {"size": 11, "color": colors,
                       "line": {"width": 1.5, "color": [dark(color) for color in colors]}},
            "hovertext": notes,
            "hovertemplate": "%{hovertext}<extra></extra>",
        }
    )  # fmt: skip
    return traces


def _axes(result: TopicResult, shown: list[int]) -> dict[str, Any]:
    measured = result.stability
    assert measured is not None
    names = [
        escape(cut(result.topics[topic].label, 40))
        + (" (in no replicate)" if np.isnan(measured.recurrence[topic]) else "")
        + "  "
        for topic in shown
    ]
    return {
        "xaxis": {
            "range": [-0.02, 1.02],
            "tickvals": [0, 0.25, 0.5, 0.75, 1],
            "gridcolor": "#e6e9ee",
            "zeroline": False,
            "fixedrange": True,
            "title": {"text": "overlap with the best match in a replicate (Jaccard)",
                      "font": {"size": 12, "color": MUTED}},
        },
        "yaxis": {
            "range": [len(shown) - 0.5, -0.5],
            "tickvals": list(range(len(shown))),
            "ticktext": names,
            "automargin": True,
            "fixedrange": True,
            "showgrid": False,
            "zeroline": False,
        },
    }  # fmt: skip
