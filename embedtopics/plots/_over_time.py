"""The shares of topics over time: a panel a topic, or lines in one chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.checks import checked_choice
from embedtopics.plots._bars import heading, panel_columns
from embedtopics.plots._colors import PALETTE, dark
from embedtopics.plots._labels import spread
from embedtopics.plots._theme import (
    HIDDEN,
    MUTED,
    axes_of,
    caption,
    checked_topics,
    empty_figure,
    look,
    note,
    panel_figure,
    panel_note,
    topic_name,
)
from embedtopics.topics.trends.results import TopicTrends

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

_PANELS = 16
_LINES = 8
_PANEL, _BETWEEN = 92, 44
_NAME = 34
_VERDICTS = {"emerging": PALETTE[2], "fading": PALETTE[5], "bursting": PALETTE[3]}
_DRAWN = np.array(["0000-01-01", "9999-12-31"], dtype="datetime64[us]")
"""Plotly reads years of four digits."""

_MARKED = 60
"""Periods up to which each one has a dot."""


def over_time(
    trends: TopicTrends,
    topics: Sequence[int] | None = None,
    *,
    measure: str = "share",
    style: str = "panels",
    changes: pd.DataFrame | None = None,
    same_scale: bool = False,
) -> Figure:
    """Draw topics over time, with the intervals of their shares.

    Parameters
    ----------
    trends : TopicTrends
    topics : sequence of int, optional
        Topic ids, in the order to draw, -1 for no topic; without them the 16 largest topics, or
        with `changes` those that change, the most significant first, before the largest; the
        first 8 of these for lines.
    measure : {"share", "count"}
        Counts of rows have no intervals.
    style : {"panels", "lines"}
        A panel a topic, or lines in one chart, which can be distinguished up to about eight.
    changes : DataFrame, optional
        As `embedtopics.topics.changes` returns it: panels then show the verdict.
    same_scale : bool
        Whether the panels share one scale; otherwise each is as high as its largest value, which
        is written in it, and panels compare shapes and not sizes.

    Returns
    -------
    plotly.graph_objects.Figure
        Periods without rows leave gaps.

    Raises
    ------
    InputError
        If a topic id does not exist, or a parameter is bad.
    """
    checked_choice(measure, "measure", ("share", "count"))
    checked_choice(style, "style", ("panels", "lines"))
    verdicts: dict[int, str] = {}
    order = list(range(trends.n_topics))
    if changes is not None:
        verdicts = dict(zip(changes["topic"].tolist(), changes["verdict"].tolist(), strict=True))
        q = changes[["q", "burst_q"]].min(axis=1).to_dict()
        changing = [i for i in order if verdicts.get(i) in _VERDICTS]
        order = sorted(changing, key=lambda i: (q.get(i, 1.0), i))
        order += [i for i in range(trends.n_topics) if verdicts.get(i) not in _VERDICTS]
    most = _PANELS if style == "panels" else _LINES
    chosen = checked_topics(order[:most] if topics is None else topics, trends.n_topics, -1)
    if not chosen:
        return empty_figure()
    if style == "lines":
        return _lines(trends, chosen, measure)
    return _panels(trends, chosen, measure, verdicts, same_scale)


def _panels(
    trends: TopicTrends, chosen: list[int], measure: str, verdicts: dict[int, str], same: bool
) -> Figure:
    """Return a panel for each topic."""
    columns = panel_columns(len(chosen))
    heights = [_PANEL] * -(-len(chosen) // columns)
    margin = {"t": 56, "b": 58}
    figure = panel_figure(heights, columns, n=len(chosen), between=_BETWEEN, gap=40, margin=margin)
    tops = [_top(trends, topic, measure) for topic in chosen]
    traces, notes = [], []
    for panel, topic in enumerate(chosen):
        axes = axes_of(panel)
        verdict, top = verdicts.get(topic, ""), max(tops) if same else tops[panel]
        color = _VERDICTS.get(verdict, PALETTE[0])
        drawn = [*_bands(trends, topic, measure, color), _line(trends, topic, measure, color)]
        traces += [trace | axes for trace in drawn]
        figure.layout[f"yaxis{axes['yaxis'][1:]}"].range = [0, top]
        about = f"topic {topic} · " if topic >= 0 else ""
        about += f"{int(trends.counts[topic].sum()):,} rows"
        if verdict in _VERDICTS:
            about += f' · <b><span style="color:{dark(color)}">{verdict}</span></b>'
        elif verdict:
            about += f" · {verdict}"
        text = heading(topic_name(trends.labels, topic), about, _NAME if columns < 4 else 26)
        notes.append(panel_note(figure, panel, text))
        scale: dict[str, Any] = {"size": 10, "color": MUTED, "right": True}
        notes.append(panel_note(figure, panel, f"0 to {_spell(top, measure)}", **scale))
        if panel + columns >= len(chosen):
            notes += _ends(figure, trends, panel)
    ends = [0] if trends.n_periods == 1 else [0, trends.n_periods - 1]
    figure.update_xaxes(_time_axis(trends, ends), showticklabels=False)
    figure.update_yaxes(HIDDEN)
    return figure.add_traces(traces).update_layout(annotations=notes)


def _ends(figure: Figure, trends: TopicTrends, panel: int) -> list[dict[str, Any]]:
    """Return the names of the first and the last period, inside the ends of a panel."""
    x, y = (figure.layout[f"{name[0]}axis{name[1:]}"].domain for name in axes_of(panel).values())
    ends = [(x[0], "left", 0), (x[1], "right", -1)]
    if trends.n_periods == 1:
        ends = [(sum(x) / 2, "center", 0)]
    place: dict[str, Any] = {"up": "top", "yshift": -3, "size": 10, "color": MUTED}
    return [note(trends.names[i], at, y[0], across=across, **place) for at, across, i in ends]


def _lines(trends: TopicTrends, chosen: list[int], measure: str) -> Figure:
    """Return all topics in one chart, their names at the ends of the lines."""
    import plotly.graph_objects as go

    top = max(_top(trends, topic, measure) for topic in chosen)
    height, bands, lines, ends = 460, [], [], []
    for place, topic in enumerate(chosen):
        color = PALETTE[place % len(PALETTE)]
        bands += _bands(trends, topic, measure, color)
        lines.append(_line(trends, topic, measure, color))
        known = [value for value in lines[-1]["y"] if value is not None]
        ends.append(known[-1] / top if known else 0.0)
    names = [topic_name(trends.labels, topic) for topic in chosen]
    above: dict[str, Any] = {"up": "middle", "xshift": 8, "size": 12}
    notes = [
        note(caption(name, 30), 1, y, **above, color=dark(line["line"]["color"]))
        for name, line, y in zip(names, lines, spread(ends, 17 / (height - 70)), strict=True)
    ]
    wanted = np.unique(np.linspace(0, trends.n_periods - 1, min(trends.n_periods, 7)).astype(int))
    scale = {"range": [0, top], "tickformat": ",.0f" if measure == "count" else ".1~%"}
    layout = look(height, l=56, r=230, t=30, b=40) | {
        "xaxis": _time_axis(trends, wanted.tolist()),
        "yaxis": {**scale, "nticks": 6, "showgrid": True},
        "annotations": notes,
    }
    return go.Figure(data=[*bands, *lines], layout=layout)  # no band over any line


def _middles(trends: TopicTrends) -> list[str]:
    """Return the middle of each period, where its point stands."""
    half = (trends.ends - trends.starts).astype(np.int64) // 2
    return [str(moment)[:19] for moment in trends.starts + half.astype("m8[us]")]


def _time_axis(trends: TopicTrends, ticks: list[int]) -> dict[str, Any]:
    """Return an axis with marks at some of the periods."""
    middles = _middles(trends)
    pad = (trends.ends[-1] - trends.starts[0]) // 60
    bounds = np.clip([trends.starts[0] - pad, trends.ends[-1] + pad], *_DRAWN)
    return {
        "type": "date",
        "range": [str(moment)[:19] for moment in bounds],
        "tickvals": [middles[i] for i in ticks],
        "ticktext": [trends.names[i] for i in ticks],
        "tickfont": {"size": 10, "color": MUTED},
        "tickangle": 0,
        "linecolor": "#c3c9d1",
        "showline": True,
        "ticks": "outside",
        "ticklen": 3,
        "tickcolor": "#c3c9d1",
    }


def _bands(trends: TopicTrends, topic: int, measure: str, color: str) -> list[dict[str, Any]]:
    """Return the intervals of one topic, in stretches without gaps."""
    if measure == "count":
        return []
    middles, low, high = _middles(trends), trends.low[topic], trends.high[topic]
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    pale = f"rgba({red},{green},{blue},0.2)"
    band = {"type": "scatter", "mode": "lines", "fill": "toself", "hoverinfo": "skip"}
    steps = np.diff(np.concatenate([[0], (~np.isnan(low)).astype(np.int8), [0]]))
    traces = []
    for begin, end in zip(np.flatnonzero(steps == 1), np.flatnonzero(steps == -1), strict=True):
        around = middles[begin:end]
        # A single period has no width of its own, and its band is a stroke.
        line = {"width": 0 if end - begin > 1 else 4, "color": pale}
        bounds = [*high[begin:end].tolist(), *low[begin:end][::-1].tolist()]
        traces.append(
            {**band, "x": [*around, *around[::-1]], "y": bounds, "fillcolor": pale, "line": line}
        )
    return traces


def _line(trends: TopicTrends, topic: int, measure: str, color: str) -> dict[str, Any]:
    """Return the line of one topic."""
    values = (trends.counts if measure == "count" else trends.shares)[topic].astype(np.float64)
    return {
        "type": "scatter",
        "mode": "lines+markers" if trends.n_periods <= _MARKED else "lines",
        "x": _middles(trends),
        "y": [None if np.isnan(value) else float(value) for value in values],
        "line": {"color": color, "width": 2},
        "marker": {"color": color, "size": 4},
        "connectgaps": False,
        "cliponaxis": False,
        "name": caption(topic_name(trends.labels, topic), _NAME),
        "text": [_hover(trends, topic, period) for period in range(trends.n_periods)],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _hover(trends: TopicTrends, topic: int, period: int) -> str:
    """Return the share of a topic in a period, its interval and its terms there."""
    share, low, high = (v[topic, period] for v in (trends.shares, trends.low, trends.high))
    line = f"<b>{caption(topic_name(trends.labels, topic), 60)}</b><br>{trends.names[period]}: "
    if np.isnan(share):
        return f"{line}no rows"
    line += (
        f"{share:.2%} ({low:.2%} to {high:.2%})<br>"
        f"{trends.counts[topic, period]:,} of {trends.totals[period]:,} rows"
    )
    terms = caption(", ".join(trends.terms.of(topic, period)[:5]), 90)
    return f"{line}<br>{terms}" if terms else line


def _top(trends: TopicTrends, topic: int, measure: str) -> float:
    """Return the largest value to be seen in a panel."""
    if measure == "count":
        return float(trends.counts[topic].max(initial=0)) or 1.0
    largest = float(np.nanmax(trends.high[topic], initial=0.0))
    # A period of three rows has an interval up to the top, which must not flatten the line.
    bound = 3 * float(np.nanmax(trends.shares[topic], initial=0.0))
    return min(largest, bound or largest) or 1.0


def _spell(value: float, measure: str) -> str:
    if measure == "count":
        return f"{value:,.0f}"
    return f"{value:.0%}" if value >= 0.1 else f"{value:.1%}" if value >= 0.01 else f"{value:.2%}"
