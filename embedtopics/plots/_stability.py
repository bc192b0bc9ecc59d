"""How far each topic recurs in replicates, beside what chance alone would give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from embedtopics.errors import InputError
from embedtopics.plots._colors import dark, topic_colors
from embedtopics.plots._theme import GREY, caption, empty_figure, look, name_axis
from embedtopics.topics.results import TopicResult

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def stability(result: TopicResult) -> Figure:
    """Draw the recurrence of each topic with its interval and its chance level, stablest first.

    A dot is the mean overlap (Jaccard) of a topic with its best match in the replicates, the line
    through it holds nine tenths of them, and the grey mark is the value of random labels. A topic
    whose line reaches its grey mark is not distinguished from chance.

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
    if not result.topics:
        return empty_figure()
    if measured is None:
        raise InputError(
            "result", "one with a measured stability", remedy="take topics.with_stability(result)"
        )
    order = np.argsort(-np.nan_to_num(measured.recurrence, nan=-1.0), kind="stable").tolist()
    value, low, high = (v[order] for v in (measured.recurrence, measured.low, measured.high))
    shades = topic_colors(result)
    colors, rims = [shades[i] for i in order], [dark(shades[i]) for i in order]
    rows, names, texts = list(range(len(order))), [], []
    for place, topic in enumerate(order):
        known, label = not np.isnan(value[place]), result.topics[topic].label
        names.append(caption(label, 40) + ("" if known else " (in no replicate)"))
        texts.append(
            f"{caption(label, 60)}<br>topic {topic} · {result.topics[topic].size:,} rows<br>"
            f"recurs {value[place]:.2f}, nine in ten from {low[place]:.2f} to {high[place]:.2f}"
        )
    title = "overlap with the best match in a replicate (Jaccard)"
    ticks = {"range": [-0.02, 1.02], "tickvals": [0, 0.25, 0.5, 0.75, 1], "showgrid": True}
    layout = look(len(order) * 22 + 108, t=64, b=44) | {"showlegend": True}
    figure = go.Figure(layout=layout | {"xaxis": {**ticks, "title": title}})
    figure.update_yaxes(name_axis(names, None))
    hidden = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "showlegend": False}
    figure.add_traces(
        [
            {**hidden, "x": [low[i], high[i]], "y": [i, i], "line": {"color": rims[i], "width": 2}}
            for i in rows
        ]
    )
    if measured.chance is not None:
        mark = {"symbol": "line-ns-open", "size": 13, "color": GREY}
        chance = {"x": measured.chance[order].tolist(), "y": rows, "name": "chance alone"}
        chance["hovertemplate"] = "chance: %{x:.2f}<extra></extra>"
        figure.add_scatter(**chance, mode="markers", marker={**mark, "line_width": 2})
    return figure.add_scatter(
        mode="markers",
        name=f"recurrence, mean of {measured.n_replicates} replicates (line: nine tenths of them)",
        x=value.tolist(),
        y=rows,
        marker={"size": 11, "color": colors, "line": {"width": 1.5, "color": rims}},
        hovertext=texts,
        hovertemplate="%{hovertext}<extra></extra>",
    )
