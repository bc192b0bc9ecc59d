"""The shares of topics over time and by group."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from embedtopics.plots._bars import heading, left_out
from embedtopics.plots._colors import PALETTE, dark
from embedtopics.plots._inputs import check_input
from embedtopics.plots._theme import (
    HIDDEN,
    INK,
    MUTED,
    Canvas,
    Spec,
    axes_of,
    axis_keys,
    base_layout,
    caption,
    checked_topics,
    domains,
    empty_figure,
    hover,
    interval_dots,
    lined_axis,
    name_axis,
    note,
    panel_figure,
    panel_note,
    scatter,
    topic_name,
)
from embedtopics.topics.results import TopicGroups, TopicTrends

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

_PANELS = 15
_PANEL, _BETWEEN = 92, 60
_VERDICTS = {"rises": PALETTE[2], "falls": PALETTE[5], "peaks": PALETTE[3], "varies": PALETTE[1]}
_DRAWN = np.array(["0000-01-01", "9999-12-31"], dtype="datetime64[us]")
"""Plotly reads only years of four digits."""

_MARKED = 60
"""Number of periods up to which each has a dot."""


def over_time(
    trends: TopicTrends,
    *,
    topics: int | str | Sequence[int | str] | None = None,
    changes: pd.DataFrame | None = None,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw topics over time, in panels with the intervals of their shares.

    Each panel is as high as its largest value, which it names: panels compare shapes, not sizes.

    Parameters
    ----------
    trends : TopicTrends
        From `embedtopics.topics.over_time`.
    topics : int, str or sequence of them, optional
        Topics by id or name, in the order to draw, -1 for no topic. By default the 15 largest
        topics, or with `changes` those that change, by significance, before the largest.
    changes : DataFrame, optional
        From `embedtopics.topics.changes`; panels then show the verdicts.
    title : str, optional
    width, height : int, optional
        Pixels; by default the width of the page, and the height that the content needs.

    Returns
    -------
    plotly.graph_objects.Figure
        Periods without rows leave gaps; those with few rows are hollow dots, and set no scale.

    Raises
    ------
    InputError
        If a topic id does not exist.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo"))
    >>> trends = et.topics.over_time(model, "quarter", time="date")
    >>> figure = et.plots.over_time(trends, topics=[0, 1], changes=et.topics.changes(trends))
    >>> len([trace for trace in figure.data if trace.name])  # a line for each topic
    2
    """
    canvas = Canvas(title, width, height)
    check_input(trends, "trends", TopicTrends, "et.topics.over_time(model)")

    verdicts: dict[int, str] = {}
    order = list(range(trends.n_topics))
    if changes is not None:
        verdicts = dict(zip(changes["topic"].tolist(), changes["verdict"].tolist(), strict=True))
        q = changes["q"].to_numpy()
        order.sort(key=lambda i: (q[i] if _color_of(verdicts.get(i, "")) else 2.0, i))
    shown = order[:_PANELS] if topics is None else topics
    topic_ids = checked_topics(shown, trends.topic_names, -1)
    if not topic_ids:
        return empty_figure(canvas)
    figure = _panels(trends, topic_ids, verdicts, canvas)
    rest = left_out(trends.n_topics - len(topic_ids) if topics is None else 0)
    return figure.update_layout(annotations=[*figure.layout.annotations, *rest])


def _color_of(verdict: str) -> str:
    """Return the color of a verdict by its first word; empty if nothing changes."""
    return _VERDICTS.get(verdict.split(" ")[0], "")


def _panels(
    trends: TopicTrends, topic_ids: list[int], verdicts: dict[int, str], canvas: Canvas
) -> Figure:
    # A period of three rows has a share of 67 % by chance, which is no part of the curve.
    few = np.flatnonzero((trends.totals > 0) & (trends.totals < trends.min_rows)).tolist()
    blank = np.where(np.isin(np.arange(trends.n_periods), few), np.nan, 0.0)
    parts = {name: getattr(trends, name) + blank for name in ("shares", "low", "high")}
    whole, trends = trends, dataclasses.replace(trends, **parts)
    n = len(topic_ids)
    columns = min(n, 2)  # that fit into 420 pixels
    heights = [_PANEL] * -(-n // columns)
    margin = {"l": 40, "t": 84, "b": 58}
    figure = panel_figure(
        canvas,
        heights,
        columns,
        n=n,
        between=_BETWEEN,
        gap=48,
        margin=margin,
    )
    traces, notes = [], []
    for panel, topic in enumerate(topic_ids):
        verdict, top = verdicts.get(topic, ""), _top(trends, topic)
        color = _color_of(verdict) or PALETTE[0]
        drawn = [*_bands(trends, topic, color), _line(trends, topic, color)]
        drawn += _hollow(whole, few, topic, color, top)
        traces += [trace | axes_of(panel) for trace in drawn]
        figure.layout[axis_keys(panel)[1]].range = [0, top]
        shade = dark(color) if _color_of(verdict) else MUTED
        word = re.sub(" in (?:the )?", " ", verdict).replace(" to ", "\u2013")
        about = f"{int(trends.counts[topic].sum()):,} rows"
        if word:
            about = f'<b><span style="color:{shade}">{word}</span></b>'
        text = heading(topic_name(trends.topic_names, topic), about, columns)
        notes.append(panel_note(figure, panel, text, size=12))
        ceiling = {"across": "right", "up": "top", "xshift": -4, "size": 10, "color": MUTED}
        notes.append(panel_note(figure, panel, _spell(top), **ceiling))
        if panel + columns >= n:
            notes += _ends(figure, trends, panel)
    ends = [0] if trends.n_periods == 1 else [0, trends.n_periods - 1]
    figure.update_xaxes(_time_axis(trends, ends), showticklabels=False)
    figure.update_yaxes(HIDDEN)
    key = []
    if few:
        key.append(f"hollow: fewer than {trends.min_rows:,} rows")
    if any(_is_cut(trends, topic) for topic in topic_ids):
        key.append("bands end at the top of a panel")
    if key:
        text = "; ".join(key)
        notes.append(note(text, 0.0, 0.0, up="top", yshift=-22, size=11, color=MUTED))
    return figure.add_traces(traces).update_layout(annotations=notes)


def _hollow(trends: TopicTrends, few: list[int], topic: int, color: str, top: float) -> list[Spec]:
    """Return the dots of periods with few rows, inside the panel."""
    middles, shares = _middles(trends), np.minimum(trends.shares[topic], top)
    marker = {"color": color, "size": 5, "symbol": "circle-open", "opacity": 0.6}
    texts = hover([_hover(trends, topic, i) for i in few], "text")
    x = [middles[i] for i in few]
    return [scatter(x, shares[few].tolist(), marker=marker, **texts)] if few else []


def _ends(figure: Figure, trends: TopicTrends, panel: int) -> list[Spec]:
    """Return the names of the first and the last period, inside the ends of a panel."""
    x, y = domains(figure, panel)
    ends = [(x[0], "left", 0), (x[1], "right", -1)]
    if trends.n_periods == 1:
        ends = [(sum(x) / 2, "center", 0)]
    place: Spec = {"up": "top", "yshift": -3, "size": 10, "color": MUTED}
    return [note(trends.names[i], end, y[0], across=across, **place) for end, across, i in ends]


def _middles(trends: TopicTrends) -> list[str]:
    """Return the middle of each period, the position of its point."""
    half = (trends.ends - trends.starts).astype(np.int64) // 2
    return [str(moment)[:19] for moment in trends.starts + half.astype("m8[us]")]


def _time_axis(trends: TopicTrends, ticks: list[int]) -> Spec:
    middles = _middles(trends)
    pad = (trends.ends[-1] - trends.starts[0]) // 60
    bounds = np.clip([trends.starts[0] - pad, trends.ends[-1] + pad], *_DRAWN)
    axis: Spec = {"type": "date", "range": [str(moment)[:19] for moment in bounds], "tickangle": 0}
    axis |= {"tickvals": [middles[i] for i in ticks], "ticktext": [trends.names[i] for i in ticks]}
    line = {"linecolor": "#c3c9d1", "showline": True, "ticks": "outside", "ticklen": 3}
    return {**axis, **line, "tickcolor": "#c3c9d1", "tickfont": {"size": 10, "color": MUTED}}


def _bands(trends: TopicTrends, topic: int, color: str) -> list[Spec]:
    """Return the intervals of one topic, one band for each stretch without gaps."""
    middles, low, high = _middles(trends), trends.low[topic], trends.high[topic]
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    pale = f"rgba({red},{green},{blue},0.2)"
    band: Spec = {"fill": "toself", "hoverinfo": "skip", "fillcolor": pale}
    steps = np.diff(np.concatenate([[0], (~np.isnan(low)).astype(np.int8), [0]]))
    traces = []
    for begin, end in zip(np.flatnonzero(steps == 1), np.flatnonzero(steps == -1), strict=True):
        x = middles[begin:end]
        # A single period has no width, so its band is a stroke.
        line = {"width": 0 if end - begin > 1 else 4, "color": pale}
        bounds = [*high[begin:end].tolist(), *low[begin:end][::-1].tolist()]
        traces.append(scatter([*x, *x[::-1]], bounds, "lines", **band, line=line))
    return traces


def _line(trends: TopicTrends, topic: int, color: str) -> Spec:
    values = trends.shares[topic].astype(np.float64)
    return scatter(
        _middles(trends),
        [None if np.isnan(value) else float(value) for value in values],
        "lines+markers" if trends.n_periods <= _MARKED else "lines",
        line={"color": color, "width": 2},
        marker={"color": color, "size": 4},
        connectgaps=False,
        name=caption(topic_name(trends.topic_names, topic), 34),
        **hover([_hover(trends, topic, period) for period in range(trends.n_periods)], "text"),
    )


def _hover(trends: TopicTrends, topic: int, period: int) -> str:
    """Return the share of a topic in a period, its interval and its terms there."""
    share, low, high = (v[topic, period] for v in (trends.shares, trends.low, trends.high))
    name = caption(topic_name(trends.topic_names, topic), 60)
    line = f"<b>{name}</b> (topic {topic})<br>{trends.names[period]}: "
    if np.isnan(share):
        return f"{line}no rows"
    line += (
        f"{share:.2%} ({low:.2%} to {high:.2%})<br>"
        f"{trends.counts[topic, period]:,} of {trends.totals[period]:,} rows"
    )
    terms = caption(", ".join(trends.terms.of(topic, period)[:5]), 90)
    return f"{line}<br>{terms}" if terms else line


def _top(trends: TopicTrends, topic: int) -> float:
    """Return the largest value that a panel shows."""
    largest = float(np.nanmax(trends.high[topic], initial=0.0))
    bound = 1.6 * float(np.nanmax(trends.shares[topic], initial=0.0))
    return min(largest, bound or largest) or 1.0


def _is_cut(trends: TopicTrends, topic: int) -> bool:
    """Return whether an interval of a topic exceeds its panel."""
    return float(np.nanmax(trends.high[topic], initial=0.0)) > _top(trends, topic)


def _spell(value: float) -> str:
    return f"{value:.0%}" if value >= 0.1 else f"{value:.1%}" if value >= 0.01 else f"{value:.2%}"


_ROWS = 25
_FEW = 5
"""Number of groups up to which they are drawn as dots; more are tiles."""

_MANY = 8
"""Number of groups up to which their rows, and tenths of a per cent, fit into the tiles."""
_STEEP = 2.0
"""Doublings of a share at which a tile has its full colour."""


def by_group(
    groups: TopicGroups,
    *,
    topics: int | str | Sequence[int | str] | None = None,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw the share of each topic in each group.

    Up to five groups are dots with the intervals of their shares. More groups are tiles with the
    shares in them: blue if the share is above that of all rows, orange if it is below.

    Parameters
    ----------
    groups : TopicGroups
        From `embedtopics.topics.by_group`.
    topics : int, str or sequence of them, optional
        Topics by id or name, in the order to draw, -1 for no topic; by default the 25 largest.
    title : str, optional
    width, height : int, optional
        Pixels; by default the width of the page, and the height that the content needs.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        If a topic id does not exist.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo"))
    >>> groups = et.topics.by_group(model, "source")
    >>> figure = et.plots.by_group(groups, topics=[0, 1, 2])
    >>> [dots.name for dots in figure.data][:2]
    ['press (193 rows)', 'forum (176 rows)']
    """
    import plotly.graph_objects as go

    canvas = Canvas(title, width, height)
    check_input(groups, "groups", TopicGroups, "et.topics.by_group(model)")

    largest = range(min(_ROWS, groups.n_topics))
    topic_ids = checked_topics(largest if topics is None else topics, groups.topic_names, -1)
    if not topic_ids:
        return empty_figure(canvas)

    names = lined_axis([topic_name(groups.topic_names, topic) for topic in topic_ids])
    n_rows = max(len(topic_ids), 2)

    if (n_groups := len(groups.names)) > _FEW:
        sizes = [
            caption(name, 18) + (f"<br>{n:,} rows" if n_groups <= _MANY else "")
            for name, n in zip(groups.names, groups.totals.tolist(), strict=True)
        ]

        traces = [_tiles(groups, topic_ids)]
        names_above = name_axis(sizes, None)
        axis: Spec = {**names_above, "side": "top", "tickangle": -35 if n_groups <= _MANY else -90}
        axis["range"] = names_above["range"][::-1]
        axis["tickfont"] = {"size": 11, "color": MUTED}

        layout = base_layout(canvas, n_rows * 32 + 212, t=140, b=72)
        key = (
            'share of the group\'s rows,<br><span style="color:#2f7fb5">blue</span> above that of '
            'all rows,<br><span style="color:#b96a1c">orange</span> below; grey: under 20 rows'
        )
        notes = [note(key, 0.0, 0.0, up="top", yshift=-10, size=11, color=MUTED)]
    else:
        traces = [_group_dots(groups, topic_ids, group) for group in range(len(groups.names))]
        axis = {"rangemode": "tozero", "tickformat": ".1~%", "showgrid": True}
        axis["title"] = "share of the group's rows"
        top = 40 + 20 * n_groups  # a line of the legend for each group
        layout = base_layout(canvas, n_rows * 32 + top + 70, t=top, b=64) | {"showlegend": True}
        notes = []

    n_others = groups.n_topics - len(topic_ids) if topics is None else 0
    notes += left_out(n_others)
    layout |= {"xaxis": axis, "yaxis": names, "annotations": notes}
    return go.Figure(data=traces, layout=layout)


def _group_dots(groups: TopicGroups, topic_ids: list[int], group: int) -> Spec:
    shares, low, high = (
        values[topic_ids, group] for values in (groups.shares, groups.low, groups.high)
    )
    n_groups = len(groups.names)
    offset = (group - (n_groups - 1) / 2) * 0.6 / max(n_groups, 2)
    return interval_dots(
        shares.tolist(),
        [place + offset for place in range(len(topic_ids))],
        ((shares - low).tolist(), (high - shares).tolist()),
        [_group_hover(groups, topic, group) for topic in topic_ids],
        name=f"{caption(groups.names[group], 30)} ({groups.totals[group]:,} rows)",
        marker={"color": PALETTE[group], "size": 7},
        error_x={"color": PALETTE[group]},
    )


def _tiles(groups: TopicGroups, topic_ids: list[int]) -> Spec:
    """Return the shares as tiles, coloured by their ratio to those of all groups."""
    together = groups.counts[topic_ids].sum(axis=1) / max(int(groups.totals.sum()), 1)
    # Half a row is added to both, so that a small group without a row has a finite ratio.
    ratio = (groups.counts[topic_ids] + 0.5) / (np.outer(together, groups.totals) + 0.5)
    n_groups = range(len(groups.names))
    form = ".1%" if len(groups.names) <= _MANY else ".0%"
    texts = [
        [f"{share:{form}}" if share == share else "" for share in row]
        for row in groups.shares[topic_ids]
    ]
    scale = [[0, "#f0a35c"], [0.5, "#f4f5f7"], [1, "#6fb1dd"]]
    ratio[:, groups.totals < 20] = 1.0
    tiles: Spec = {"type": "heatmap", "z": np.clip(np.log2(ratio), -_STEEP, _STEEP).tolist()}
    tiles |= {"x": list(n_groups), "y": list(range(len(topic_ids))), "xgap": 2, "ygap": 2}
    tiles |= {"zmin": -_STEEP, "zmax": _STEEP, "colorscale": scale, "showscale": False}
    tiles |= {"text": texts, "texttemplate": "%{text}", "textfont": {"color": INK}}
    about = [[_group_hover(groups, topic, group) for group in n_groups] for topic in topic_ids]
    return {**tiles, **hover(about, "customdata")}


def _group_hover(groups: TopicGroups, topic: int, group: int) -> str:
    """Return the share of a topic in a group, its interval and its distinctive terms."""
    share, low, high = (v[topic, group] for v in (groups.shares, groups.low, groups.high))
    name, of = caption(topic_name(groups.topic_names, topic), 60), caption(groups.names[group], 40)
    text = f"<b>{name}</b>, {of}<br>{share:.2%} ({low:.2%} to {high:.2%}), "
    text += f"{groups.counts[topic, group]:,} of {groups.totals[group]:,} rows"
    distinctive = groups.distinctive.of(topic, group)[:6]
    if distinctive:
        text += "<br>distinctive terms: " + caption(", ".join(distinctive), 90)
    return text
