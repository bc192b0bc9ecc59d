"""The shares of topics in groups: points with intervals, or a table of tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.plots.palette import PALETTE
from embedtopics.plots.text import FONT, INK, MUTED, cut, escape, nothing_to_draw
from embedtopics.results import TopicGroups

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["by_group", "label_axis"]

_FEW = 5
"""Groups that have points of their own; more are tiles."""

_ROW = 26
_STEEP = 2.0
"""Doublings of a share at which a tile has its full colour."""


def by_group(
    groups: TopicGroups, topics: Sequence[int] | None = None, *, max_topics: int = 25
) -> Figure:
    """Draw how much each group has of each topic.

    Up to five groups are points with the intervals of their shares. More are tiles with the share
    in them, blue where the group has more of the topic than all groups together, orange where it
    has less.

    Parameters
    ----------
    groups : TopicGroups
    topics : sequence of int, optional
        Topic ids, in the order to draw, -1 for no topic; without them the largest.
    max_topics : int
        Topics without `topics`.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        If a topic id does not exist, or `max_topics` is below 1.
    """
    import plotly.graph_objects as go

    if max_topics < 1:
        raise InputError(f"max_topics must be 1 or more; got {max_topics}")
    chosen = [*range(groups.n_topics)][:max_topics] if topics is None else list(topics)
    unknown = [topic for topic in chosen if not -1 <= topic < groups.n_topics]
    if unknown:
        raise InputError(
            f"topics must be ids from -1 (none) to {groups.n_topics - 1}; got {unknown[0]!r}"
        )
    if not chosen:
        hidden = {"visible": False}
        return go.Figure(layout={"template": "none", "height": 200, "xaxis": hidden,
                                 "yaxis": hidden, "annotations": [nothing_to_draw()]})  # fmt: skip
    few = len(groups.names) <= _FEW
    traces, axes = (_points if few else _tiles)(groups, chosen)
    names = [groups.labels[topic] if topic >= 0 else "No topic" for topic in chosen]
    row = _ROW if few else _ROW + 2
    return go.Figure(
        data=traces,
        layout={
            "template": "none",
            "height": max(len(chosen), 2) * row + (110 if few else 150),
            "margin": {"l": 16, "r": 24, "t": 50 if few else 120, "b": 44 if few else 16},
            "font": {"family": FONT, "size": 13, "color": INK},
            "hoverlabel": {"bgcolor": "#fff", "font": {"family": FONT, "color": INK}},
            "showlegend": few,
            "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
            "yaxis": label_axis(names),
            **axes,
        },
    )


def label_axis(names: Sequence[str], length: int = 40) -> dict[str, Any]:
    """Return an axis of names from top to bottom."""
    return {
        "range": [len(names) - 0.5, -0.5], "tickvals": list(range(len(names))),
        "ticktext": [escape(cut(name, length)) + "  " for name in names], "automargin": True,
        "fixedrange": True, "showgrid": False, "zeroline": False, "ticks": "",
    }  # fmt: skip


def _points(groups: TopicGroups, chosen: list[int]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    traces = []
    n_groups = len(groups.names)
    for group, name in enumerate(groups.names):
        shares = groups.shares[chosen, group]
        offset = (group - (n_groups - 1) / 2) * 0.6 / max(n_groups, 2)
        traces.append(
            {
                "type": "scatter", "mode": "markers", "name": escape(cut(name, 30)),
                "x": shares.tolist(), "y": [place + offset for place in range(len(chosen))],
                "marker": {"color": PALETTE[group], "size": 7},
                "error_x": {
                    "type": "data", "symmetric": False, "thickness": 1.5, "width": 0,
                    "color": PALETTE[group],
                    "array": (groups.high[chosen, group] - shares).tolist(),
                    "arrayminus": (shares - groups.low[chosen, group]).tolist(),
                },
                "text": [_hover(groups, topic, group) for topic in chosen],
                "hovertemplate": "%{text}<extra></extra>",
            }
        )  # fmt: skip
    axis = {
        "rangemode": "tozero", "tickformat": ".1~%", "gridcolor": "#e6e9ed", "zeroline": False,
        "fixedrange": True, "title": {"text": "share of the group's rows", "font": {"size": 12}},
    }  # fmt: skip
    return traces, {"xaxis": axis}


def _tiles(groups: TopicGroups, chosen: list[int]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    together = groups.counts[chosen].sum(axis=1) / max(int(groups.totals.sum()), 1)
    shares = groups.shares[chosen]
    # Half a row more on each side, so that a small group without a row is not infinitely rare.
    ratio = (groups.counts[chosen] + 0.5) / (np.outer(together, groups.totals) + 0.5)
    tiles = np.clip(np.log2(ratio), -_STEEP, _STEEP)
    trace = {
        "type": "heatmap", "z": tiles.tolist(), "x": list(range(len(groups.names))),
        "y": list(range(len(chosen))), "zmin": -_STEEP, "zmax": _STEEP, "xgap": 2, "ygap": 2,
        "colorscale": [[0, "#f0a35c"], [0.5, "#f4f5f7"], [1, "#6fb1dd"]], "showscale": False,
        "text": [[f"{share:.1%}" if share == share else "" for share in row] for row in shares],
        "texttemplate": "%{text}", "textfont": {"size": 11, "color": INK},
        "customdata": [
            [_hover(groups, topic, group) for group in range(len(groups.names))]
            for topic in chosen
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }  # fmt: skip
    axis = {
        "side": "top", "tickvals": list(range(len(groups.names))),
        "ticktext": [escape(cut(name, 22)) for name in groups.names], "tickangle": -35,
        "tickfont": {"size": 11, "color": MUTED}, "automargin": True, "fixedrange": True,
        "showgrid": False, "zeroline": False, "ticks": "",
    }  # fmt: skip
    return [trace], {"xaxis": axis}


def _hover(groups: TopicGroups, topic: int, group: int) -> str:
    label = groups.labels[topic] if topic >= 0 else "No topic"
    lines = [
        f"<b>{escape(cut(label, 60))}</b>, {escape(cut(groups.names[group], 40))}",
        f"{groups.shares[topic, group]:.2%} ({groups.low[topic, group]:.2%} to "
        f"{groups.high[topic, group]:.2%}), {groups.counts[topic, group]:,} of "
        f"{groups.totals[group]:,} rows",
    ]
    says = groups.distinctive.of(topic, group)[:6]
    if says:
        lines.append("says more often: " + escape(cut(", ".join(says), 90)))
    return "<br>".join(lines)
