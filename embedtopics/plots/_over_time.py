"""The shares of topics: over time, by group, and what they depend on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.checks import checked_choice, checked_count
from embedtopics.errors import InputError
from embedtopics.plots._bars import heading, left_out, panel_columns
from embedtopics.plots._colors import PALETTE, dark
from embedtopics.plots._labels import spread
from embedtopics.plots._theme import (
    HIDDEN,
    INK,
    MUTED,
    axes_of,
    caption,
    checked_topics,
    empty_figure,
    interval_dots,
    look,
    name_axis,
    note,
    panel_figure,
    panel_note,
    topic_name,
)
from embedtopics.topics.trends.results import TopicEffects, TopicGroups, TopicTrends

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

_PANELS = 15
_LINES = 8
_PANEL, _BETWEEN = 92, 44
_NAME = 34

_VERDICTS = {"emerging": PALETTE[2], "fading": PALETTE[5], "bursting": PALETTE[3]}
_DRAWN = np.array(["0000-01-01", "9999-12-31"], dtype="datetime64[us]")
"""Plotly reads years of four digits."""

_FEW_ROWS = 0.1
"""Share of a usual period's rows below which a period does not rule the scale."""

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
    """Draw topics over time, in panels with the intervals of their shares.

    Parameters
    ----------
    trends : TopicTrends
    topics : sequence of int, optional
        Topic ids, in the order to draw, -1 for no topic; without them the 15 largest topics, or
        with `changes` those that change, the most significant first, before the largest; the
        first 8 of these for lines.
    measure : {"share", "count"}
        Counts of rows have no intervals.
    style : {"panels", "lines"}
        A panel a topic, or lines in one chart, which can be distinguished up to about eight; their
        intervals, which would cover one another, stand beside the pointer.
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
        changing = [i for i in order if _color_of(verdicts.get(i, ""))]
        order = sorted(changing, key=lambda i: (q.get(i, 1.0), i))
        order += [i for i in range(trends.n_topics) if not _color_of(verdicts.get(i, ""))]
    most = _PANELS if style == "panels" else _LINES
    chosen = checked_topics(order[:most] if topics is None else topics, trends.n_topics, -1)
    if not chosen:
        return empty_figure()
    if style == "lines":
        return _lines(trends, chosen, measure)
    figure = _panels(trends, chosen, measure, verdicts, same_scale)
    rest = left_out(trends.n_topics - len(chosen) if topics is None else 0)
    return figure.update_layout(annotations=[*figure.layout.annotations, *rest])


def _color_of(verdict: str) -> str:
    """Return the color of a verdict, of two the first; empty where nothing changes."""
    return _VERDICTS.get(verdict.split(", ")[0], "")


def _panels(
    trends: TopicTrends, chosen: list[int], measure: str, verdicts: dict[int, str], same: bool
) -> Figure:
    columns = panel_columns(len(chosen))
    heights = [_PANEL] * -(-len(chosen) // columns)
    margin = {"t": 56, "b": 58}
    figure = panel_figure(heights, columns, n=len(chosen), between=_BETWEEN, gap=40, margin=margin)
    tops = [_top(trends, topic, measure) for topic in chosen]
    traces, notes = [], []
    for panel, topic in enumerate(chosen):
        axes = axes_of(panel)
        verdict, top = verdicts.get(topic, ""), max(tops) if same else tops[panel]
        color = _color_of(verdict) or PALETTE[0]
        drawn = [*_bands(trends, topic, measure, color), _line(trends, topic, measure, color)]
        traces += [trace | axes for trace in drawn]
        figure.layout[f"yaxis{axes['yaxis'][1:]}"].range = [0, top]
        about = [f"topic {topic}"] if topic >= 0 else []
        if columns < 3:
            about.append(f"{int(trends.counts[topic].sum()):,} rows")
        about.append(f"0 to {_spell(top, measure)}")
        if _color_of(verdict):
            about.append(f'<b><span style="color:{dark(color)}">{verdict}</span></b>')
        elif verdict:
            about.append(verdict)
        name = topic_name(trends.labels, topic)
        text = heading(name, " · ".join(about), columns)
        notes.append(panel_note(figure, panel, text, size=12))
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
    height, lines, ends = 460, [], []
    for place, topic in enumerate(chosen):
        color = PALETTE[place % len(PALETTE)]
        lines.append(_line(trends, topic, measure, color))
        known = [value for value in lines[-1]["y"] if value is not None]
        ends.append(known[-1] / top if known else 0.0)
    names = [topic_name(trends.labels, topic) for topic in chosen]
    above: dict[str, Any] = {"up": "middle", "xshift": 8, "size": 12}
    notes = [
        note(caption(name, 30), 1, y, **above, color=dark(line["line"]["color"]))
        for name, line, y in zip(names, lines, spread(ends, 17 / (height - 70)), strict=True)
    ]
    wanted = np.unique(np.linspace(0, trends.n_periods - 1, min(trends.n_periods, 4)).astype(int))
    scale = {"range": [0, top], "tickformat": ",.0f" if measure == "count" else ".1~%"}
    layout = look(height, l=56, r=230, t=30, b=40) | {
        "xaxis": _time_axis(trends, wanted.tolist()),
        "yaxis": {**scale, "nticks": 6, "showgrid": True},
        "annotations": notes,
    }
    return go.Figure(data=lines, layout=layout)


def _middles(trends: TopicTrends) -> list[str]:
    """Return the middle of each period, where its point stands."""
    half = (trends.ends - trends.starts).astype(np.int64) // 2
    return [str(moment)[:19] for moment in trends.starts + half.astype("m8[us]")]


def _time_axis(trends: TopicTrends, ticks: list[int]) -> dict[str, Any]:
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
    values = (trends.counts if measure == "count" else trends.shares)[topic].astype(np.float64)
    return {
        "type": "scatter",
        "mode": "lines+markers" if trends.n_periods <= _MARKED else "lines",
        "x": _middles(trends),
        "y": [None if np.isnan(value) else float(value) for value in values],
        "line": {"color": color, "width": 2},
        "marker": {"color": color, "size": 4},
        "connectgaps": False,
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
    # A period of three rows has a share of 67 % by chance, and an interval up to the top: neither
    # may flatten the line. What lies above is cut off; hovering says it.
    usual = trends.totals >= _FEW_ROWS * np.median([1, *trends.totals[trends.totals > 0]])
    largest = float(np.nanmax(trends.high[topic][usual], initial=0.0))
    bound = 1.6 * float(np.nanmax(trends.shares[topic][usual], initial=0.0))
    return min(largest, bound or largest) or 1.0


def _spell(value: float, measure: str) -> str:
    if measure == "count":
        return f"{value:,.0f}"
    return f"{value:.0%}" if value >= 0.1 else f"{value:.1%}" if value >= 0.01 else f"{value:.2%}"


_ROW = 22
_EFFECT_COLUMNS, _EFFECT_PANELS, _WITH_ROWS = 2, 12, 12
"""Panels side by side and in all, and topics of each where there are several rows of panels."""

_SIGNIFICANT, _OPEN = PALETTE[0], "#9aa4b1"


def effects(
    found: TopicEffects,
    covariate: str | None = None,
    topics: Sequence[int] | None = None,
    *,
    max_topics: int = 30,
) -> Figure:
    """Draw the effects of covariates on each topic, those of the first panel largest on top.

    Points whose interval includes zero are grey.

    Parameters
    ----------
    found : TopicEffects
    covariate : str, optional
        All by default. A categorical one has a panel for each level but the reference; beyond
        twelve panels a note says how many levels are left out.
    topics : sequence of int, optional
        Topic ids; without them those with the largest effects in either direction.
    max_topics : int
        Topics without `topics`; 12 at most where panels stand in several rows.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        If there is no such covariate or topic, or `max_topics` is below 1.
    """
    names = [name for name in dict.fromkeys(found.covariates) if name]
    if covariate is not None and covariate not in names:
        raise InputError("covariate", f"one of {', '.join(map(repr, names))}", covariate)
    wanted = names if covariate is None else [covariate]
    every = [i for i, name in enumerate(found.covariates) if name in wanted]
    columns = every[:_EFFECT_PANELS]
    most = checked_count(max_topics, "max_topics")
    across = min(len(columns), _EFFECT_COLUMNS)
    most = min(most, _WITH_ROWS) if len(columns) > across else most
    chosen = _largest_first(found, topics, columns, most)
    if not chosen:
        return empty_figure()
    margin = {"r": 24, "t": 56, "b": 64}
    heights = [max(len(chosen), 2) * _ROW + 8] * -(-len(columns) // across)
    figure = panel_figure(
        heights, across, n=len(columns), between=76, gap=64, margin=margin, shared_yaxes=True
    )
    notes = []
    for panel, column in enumerate(columns):
        figure.add_trace(_effect_dots(found, chosen, column) | axes_of(panel))
        notes.append(panel_note(figure, panel, _covariate(found, column), yshift=6))
    zero = {"zeroline": True, "zerolinecolor": "#6b7684", "zerolinewidth": 1.5}
    figure.update_xaxes(zero, showgrid=True, nticks=4, tickangle=0, tickfont_size=11)
    figure.update_yaxes(name_axis([topic_name(found.labels, topic) for topic in chosen]))
    error = "sampling error"
    error += f" and {found.n_replicates} replicates" if found.n_replicates else " only"
    about = f"percentage points of the rows<br>{found.confidence:.0%} intervals: {error}"
    if len(every) > len(columns):
        about += f"; and {len(every) - len(columns):,} more levels"
    notes.append(note(about, y=0, up="top", yshift=-24, size=11, color=MUTED))
    return figure.update_layout(annotations=notes)


def _largest_first(
    found: TopicEffects, topics: Sequence[int] | None, columns: list[int], most: int
) -> list[int]:
    """Return the topics to draw, the largest effect in the first panel on top."""
    if topics is None:
        size = abs(found.coefficients[:, columns]).max(axis=1)
        chosen = sorted(range(found.n_topics), key=lambda topic: (-size[topic], topic))[:most]
    else:
        chosen = checked_topics(topics, found.n_topics, -1)
    return sorted(chosen, key=lambda topic: (-found.coefficients[topic, columns[0]], topic))


def _effect_dots(found: TopicEffects, chosen: list[int], column: int) -> dict[str, Any]:
    effect, low, high = (
        100 * values[chosen, column] for values in (found.coefficients, found.low, found.high)
    )
    beyond = (low > 0) | (high < 0)
    texts = [
        f"<b>{caption(topic_name(found.labels, topic), 60)}</b><br>"
        f"{e:+.2f} ({a:+.2f} to {b:+.2f}) percentage points"
        for topic, e, a, b in zip(chosen, effect, low, high, strict=True)
    ]
    ends = ((effect - low).tolist(), (high - effect).tolist())
    colors = [_SIGNIFICANT if one else _OPEN for one in beyond]
    more = {"marker": {"color": colors, "size": 8}, "error_x": {"color": _OPEN}}
    return interval_dots(effect.tolist(), range(len(chosen)), ends, texts, **more)


def _covariate(found: TopicEffects, column: int) -> str:
    """Return the heading of a panel: the covariate and its unit, or a level and its reference."""
    name = found.covariates[column]
    if name in found.references:
        what, about = found.levels[column], f"against {caption(found.references[name], 24)}"
    else:
        what, about = name, f"per {found.units[name]}"
    return (
        f'<b>{caption(what, 24)}</b><br><span style="font-size:11px;color:{MUTED}">{about}</span>'
    )


_FEW = 5
"""Groups up to which each has dots of its own; more are tiles."""

_MANY = 8
"""Groups from which on their rows, and tenths of a per cent, would not fit into the tiles."""

_STEEP = 2.0
"""Doublings of a share at which a tile has its full colour."""


def by_group(
    groups: TopicGroups, topics: Sequence[int] | None = None, *, max_topics: int = 25
) -> Figure:
    """Draw how much each group has of each topic.

    Up to five groups are dots with the intervals of their shares. More are tiles with the share
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

    largest = range(min(checked_count(max_topics, "max_topics"), groups.n_topics))
    chosen = checked_topics(largest if topics is None else topics, groups.n_topics, -1)
    if not chosen:
        return empty_figure()
    names = name_axis([topic_name(groups.labels, topic) for topic in chosen])
    n_rows = max(len(chosen), 2)
    if len(groups.names) > _FEW:
        sizes = [
            caption(name, 18) + (f"<br>{n:,} rows" if len(groups.names) <= _MANY else "")
            for name, n in zip(groups.names, groups.totals.tolist(), strict=True)
        ]
        traces, axis = [_tiles(groups, chosen)], name_axis(sizes, None)
        axis = {**axis, "side": "top", "tickangle": -35, "range": axis["range"][::-1]}
        axis["tickfont"] = {"size": 11, "color": MUTED}
        layout = look(n_rows * 28 + 196, t=120, b=66)
        key = (
            'share of the group\'s rows: <span style="color:#2f7fb5">blue</span> above that of<br>'
            'all rows, <span style="color:#b96a1c">orange</span> below, up to four times'
        )
        notes = [note(key, 0.0, 0.0, up="top", yshift=-10, size=11, color=MUTED)]
    else:
        traces = [_group_dots(groups, chosen, group) for group in range(len(groups.names))]
        axis = {"rangemode": "tozero", "tickformat": ".1~%", "showgrid": True}
        axis["title"] = "share of the group's rows"
        layout = look(n_rows * 26 + 130, t=50, b=64) | {"showlegend": True}
        notes = []
    notes += left_out(groups.n_topics - len(chosen) if topics is None else 0)
    layout |= {"xaxis": axis, "yaxis": names, "annotations": notes}
    return go.Figure(data=traces, layout=layout)


def _group_dots(groups: TopicGroups, chosen: list[int], group: int) -> dict[str, Any]:
    shares, low, high = (
        values[chosen, group] for values in (groups.shares, groups.low, groups.high)
    )
    n_groups = len(groups.names)
    offset = (group - (n_groups - 1) / 2) * 0.6 / max(n_groups, 2)
    return interval_dots(
        shares.tolist(),
        [place + offset for place in range(len(chosen))],
        ((shares - low).tolist(), (high - shares).tolist()),
        [_group_hover(groups, topic, group) for topic in chosen],
        name=f"{caption(groups.names[group], 30)} ({groups.totals[group]:,} rows)",
        marker={"color": PALETTE[group], "size": 7},
        error_x={"color": PALETTE[group]},
    )


def _tiles(groups: TopicGroups, chosen: list[int]) -> dict[str, Any]:
    """Return the shares as tiles, coloured by how far they lie from those of all groups."""
    together = groups.counts[chosen].sum(axis=1) / max(int(groups.totals.sum()), 1)
    # Half a row more on each side, so that a small group without a row is not infinitely rare.
    ratio = (groups.counts[chosen] + 0.5) / (np.outer(together, groups.totals) + 0.5)
    n_groups = range(len(groups.names))
    form = ".1%" if len(groups.names) <= _MANY else ".0%"
    return {
        "type": "heatmap",
        "z": np.clip(np.log2(ratio), -_STEEP, _STEEP).tolist(),
        "x": list(n_groups),
        "y": list(range(len(chosen))),
        "zmin": -_STEEP,
        "zmax": _STEEP,
        "xgap": 2,
        "ygap": 2,
        "colorscale": [[0, "#f0a35c"], [0.5, "#f4f5f7"], [1, "#6fb1dd"]],
        "showscale": False,
        "text": [
            [f"{share:{form}}" if share == share else "" for share in row]
            for row in groups.shares[chosen]
        ],
        "texttemplate": "%{text}",
        "textfont": {"size": 11, "color": INK},
        "customdata": [
            [_group_hover(groups, topic, group) for group in n_groups] for topic in chosen
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _group_hover(groups: TopicGroups, topic: int, group: int) -> str:
    """Return the share of a topic in a group, its interval and its distinctive terms."""
    share, low, high = (v[topic, group] for v in (groups.shares, groups.low, groups.high))
    name, of = caption(topic_name(groups.labels, topic), 60), caption(groups.names[group], 40)
    text = f"<b>{name}</b>, {of}<br>{share:.2%} ({low:.2%} to {high:.2%}), "
    text += f"{groups.counts[topic, group]:,} of {groups.totals[group]:,} rows"
    distinctive = groups.distinctive.of(topic, group)[:6]
    if distinctive:
        text += "<br>distinctive terms: " + caption(", ".join(distinctive), 90)
    return text
