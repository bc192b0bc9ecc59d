"""The shares of topics over time: a panel a topic, or lines in one chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.plots.palette import PALETTE, dark
from embedtopics.plots.panels import spread
from embedtopics.plots.text import FONT, INK, MUTED, cut, escape, nothing_to_draw
from embedtopics.results import TopicTrends

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

__all__ = ["over_time"]

_PANELS = 16
_LINES = 8
_PANEL, _HEAD, _FOOT = 92, 44, 30
_GAP = 0.035
_NAME = 34
_VERDICTS = {"emerging": PALETTE[2], "fading": PALETTE[5], "bursting": PALETTE[3]}
_PLAIN = PALETTE[0]
_DRAWN = np.array(["0000-01-01", "9999-12-31"], dtype="datetime64[us]")
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
        with `changes` those that change, the surest first, before the largest; the first 8 of
        these for lines.
    measure : {"share", "count"}
        Counts of rows have no intervals.
    style : {"panels", "lines"}
        A panel a topic, or lines in one chart, which are told apart up to about eight.
    changes : DataFrame, optional
        As `embedtopics.topics.changes` returns it: panels then say the verdict.
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
    import plotly.graph_objects as go

    if measure not in ("share", "count"):
        raise InputError(f"measure must be 'share' or 'count'; got {measure!r}")
    if style not in ("panels", "lines"):
        raise InputError(f"style must be 'panels' or 'lines'; got {style!r}")
    most = _PANELS if style == "panels" else _LINES
    chosen = _choose(trends, topics, changes, most)
    if not chosen:
        return go.Figure(layout=_layout(200, {}, [nothing_to_draw()]))
    if style == "lines":
        return _lines(trends, chosen, measure)
    return _panels(trends, chosen, measure, _verdicts(changes), same_scale)


def _choose(
    trends: TopicTrends, topics: Sequence[int] | None, changes: pd.DataFrame | None, most: int
) -> list[int]:
    """Return the topics to draw."""
    if topics is None:
        order = [*range(trends.n_topics)]
        if changes is not None:
            sure = changes[["q", "burst_q"]].min(axis=1).to_dict()
            says = _verdicts(changes)
            order.sort(key=lambda i: (says.get(i) not in _VERDICTS, sure.get(i, 1.0), i))
            n_changing = sum(says.get(i) in _VERDICTS for i in order)
            order[n_changing:] = sorted(order[n_changing:])
        return order[:most]
    unknown = [topic for topic in topics if not -1 <= topic < trends.n_topics]
    if unknown:
        raise InputError(
            f"topics must be ids from -1 (none) to {trends.n_topics - 1}; got {unknown[0]!r}"
        )
    return [int(topic) for topic in topics]


def _verdicts(changes: pd.DataFrame | None) -> dict[int, str]:
    if changes is None:
        return {}
    return dict(zip(changes["topic"].tolist(), changes["verdict"].tolist(), strict=True))


def _label(trends: TopicTrends, topic: int) -> str:
    return trends.labels[topic] if topic >= 0 else "No topic"


def _values(
    trends: TopicTrends, topic: int, measure: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64] | None]:
    """Return what to draw for a topic, and the upper ends of its intervals."""
    if measure == "count":
        return trends.counts[topic].astype(np.float64), None
    return trends.shares[topic], trends.high[topic]


def _middles(trends: TopicTrends) -> list[str]:
    """Return the middle of each period, where its point stands."""
    half = (trends.ends - trends.starts).astype(np.int64) // 2
    return [str(moment)[:19] for moment in trends.starts + half.astype("m8[us]")]


def _runs(known: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return where stretches of known values begin and end."""
    steps = np.diff(np.concatenate([[0], known.astype(np.int8), [0]]))
    return list(
        zip(np.flatnonzero(steps == 1).tolist(), np.flatnonzero(steps == -1).tolist(), strict=True)
    )


def _bands(
    trends: TopicTrends, topic: int, measure: str, color: str, number: str
) -> list[dict[str, Any]]:
    """Return the intervals of one topic, in stretches without gaps."""
    middles = _middles(trends)
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    pale = f"rgba({red},{green},{blue},0.2)"
    axes = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
    traces: list[dict[str, Any]] = []
    low, high = trends.low[topic], trends.high[topic]
    for begin, end in _runs(~np.isnan(low)) if measure == "share" else []:
        around = middles[begin:end]
        # A single period has no width of its own, and its band is a stroke.
        bounds = [*high[begin:end].tolist(), *low[begin:end][::-1].tolist()]
        traces.append(
            {
                "type": "scatter", "mode": "lines", "x": [*around, *around[::-1]], "y": bounds,
                "fill": "toself", "fillcolor": pale, "hoverinfo": "skip",
                "line": {"width": 0 if end - begin > 1 else 4, "color": pale}, **axes,
            }
        )  # fmt: skip
    return traces


def _line(trends: TopicTrends, topic: int, measure: str, color: str, number: str) -> dict[str, Any]:
    """Return the line of one topic."""
    values, _ = _values(trends, topic, measure)
    few = trends.n_periods <= _MARKED
    return {
        "type": "scatter", "mode": "lines+markers" if few else "lines", "x": _middles(trends),
        "y": [None if np.isnan(value) else float(value) for value in values],
        "line": {"color": color, "width": 2}, "marker": {"color": color, "size": 4},
        "connectgaps": False, "cliponaxis": False,
        "name": escape(cut(_label(trends, topic), _NAME)),
        "text": _hovers(trends, topic), "hovertemplate": "%{text}<extra></extra>",
        "xaxis": f"x{number}", "yaxis": f"y{number}",
    }  # fmt: skip


def _hovers(trends: TopicTrends, topic: int) -> list[str]:
    hovers = []
    for period, name in enumerate(trends.names):
        line = f"<b>{escape(cut(_label(trends, topic), 60))}</b><br>{name}: "
        share = trends.shares[topic, period]
        if np.isnan(share):
            hovers.append(f"{line}no rows")
            continue
        low, high = trends.low[topic, period], trends.high[topic, period]
        line += (
            f"{share:.2%} ({low:.2%} to {high:.2%})<br>"
            f"{trends.counts[topic, period]:,} of {trends.totals[period]:,} rows"
        )
        terms = escape(cut(", ".join(trends.terms.of(topic, period)[:5]), 90))
        hovers.append(f"{line}<br>{terms}" if terms else line)
    return hovers


def _panels(
    trends: TopicTrends, chosen: list[int], measure: str, verdicts: dict[int, str], same: bool
) -> Figure:
    import plotly.graph_objects as go

    n_columns = next((n for n, most in ((1, 1), (2, 4), (3, 9)) if len(chosen) <= most), 4)
    n_rows = -(-len(chosen) // n_columns)
    height = n_rows * (_PANEL + _HEAD) + _FOOT
    tops = [_top(trends, topic, measure) for topic in chosen]
    axes: dict[str, Any] = {}
    annotations: list[dict[str, Any]] = []
    traces: list[dict[str, Any]] = []
    for panel, topic in enumerate(chosen):
        row, column = divmod(panel, n_columns)
        left = column * (1 + _GAP) / n_columns
        right = left + (1 + _GAP) / n_columns - _GAP
        roof = 1 - row * (_PANEL + _HEAD) / height
        head = roof - _HEAD / height
        number = str(panel + 1) if panel else ""
        is_last = panel + n_columns >= len(chosen)
        top = max(tops) if same else tops[panel]
        axes[f"xaxis{number}"] = _time_axis(trends, [left, right], f"y{number}")
        axes[f"yaxis{number}"] = {
            "domain": [head - _PANEL / height, head], "anchor": f"x{number}", "range": [0, top],
            "visible": False, "fixedrange": True,
        }  # fmt: skip
        says = verdicts.get(topic, "")
        color = _VERDICTS.get(says, _PLAIN)
        traces += _bands(trends, topic, measure, color, number)
        traces.append(_line(trends, topic, measure, color, number))
        annotations.append(_heading(trends, topic, says, color, left, head))
        annotations.append(_roof(_spell(top, measure), right, head))
        if is_last:
            annotations += _ends(trends, left, right, head - _PANEL / height)
    return go.Figure(data=traces, layout=_layout(height + 40, axes, annotations))


def _top(trends: TopicTrends, topic: int, measure: str) -> float:
    """Return the largest value to be seen in a panel."""
    values, high = _values(trends, topic, measure)
    shown = values if high is None else high
    # A period of three rows has an interval up to the roof, which must not flatten the line.
    bound = 3 * float(np.nanmax(values, initial=0.0))
    largest = (
        min(float(np.nanmax(shown, initial=0.0)), bound)
        if bound
        else float(np.nanmax(shown, initial=0.0))
    )
    return largest or 1.0


def _spell(value: float, measure: str) -> str:
    if measure == "count":
        return f"{value:,.0f}"
    return f"{value:.0%}" if value >= 0.1 else f"{value:.1%}" if value >= 0.01 else f"{value:.2%}"


def _ends(trends: TopicTrends, left: float, right: float, bottom: float) -> list[dict[str, Any]]:
    """Return the names of the first and the last period, inside the ends of a panel.

    Names of ticks lie around them, where they are cut at the edge of the figure and run into those
    of the next panel.
    """
    single = trends.n_periods == 1
    places = [((left + right) / 2, "center", 0)] if single else [
        (left, "left", 0), (right, "right", -1)
    ]  # fmt: skip
    return [
        {
            "x": x, "y": bottom, "xref": "paper", "yref": "paper", "xanchor": anchor,
            "yanchor": "top", "yshift": -3, "showarrow": False, "text": trends.names[period],
            "font": {"size": 10, "color": MUTED},
        }
        for x, anchor, period in places
    ]  # fmt: skip


def _time_axis(trends: TopicTrends, domain: list[float], anchor: str) -> dict[str, Any]:
    """Return an axis with marks at its first and its last period, and no names."""
    middles = _middles(trends)
    ends = [0] if trends.n_periods == 1 else [0, trends.n_periods - 1]
    pad = (trends.ends[-1] - trends.starts[0]) // 60
    # Plotly reads years of four digits.
    bounds = np.clip([trends.starts[0] - pad, trends.ends[-1] + pad], *_DRAWN)
    return {
        "domain": domain, "anchor": anchor, "type": "date", "fixedrange": True,
        "range": [str(moment)[:19] for moment in bounds],
        "tickvals": [middles[i] for i in ends], "showticklabels": False,
        "tickangle": 0, "tickfont": {"size": 10, "color": MUTED},
        "showgrid": False, "zeroline": False, "linecolor": "#c3c9d1", "showline": True,
        "ticks": "outside", "ticklen": 3, "tickcolor": "#c3c9d1",
    }  # fmt: skip


def _heading(
    trends: TopicTrends, topic: int, says: str, color: str, left: float, bottom: float
) -> dict[str, Any]:
    note = f"topic {topic} · " if topic >= 0 else ""
    note += f"{int(trends.counts[topic].sum()):,} rows"
    strong = f'<span style="color:{dark(color)}"><b>{says}</b></span>'
    verdict = f" · {strong if says in _VERDICTS else says}" if says else ""
    return {
        "x": left, "y": bottom, "xref": "paper", "yref": "paper", "xanchor": "left",
        "yanchor": "bottom", "align": "left", "showarrow": False,
        "text": f"<b>{escape(cut(_label(trends, topic), _NAME))}</b>"
        f'<br><span style="font-size:11px;color:{MUTED}">{note}{verdict}</span>',
    }  # fmt: skip


def _roof(spelled: str, right: float, bottom: float) -> dict[str, Any]:
    """Return the value at which a panel ends, written above its right end."""
    return {
        "x": right, "y": bottom, "xref": "paper", "yref": "paper", "xanchor": "right",
        "yanchor": "bottom", "showarrow": False, "text": f"0 to {spelled}",
        "font": {"size": 10, "color": MUTED},
    }  # fmt: skip


def _lines(trends: TopicTrends, chosen: list[int], measure: str) -> Figure:
    import plotly.graph_objects as go

    top = max(_top(trends, topic, measure) for topic in chosen)
    height = 460
    bands: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    ends: list[float] = []
    for place, topic in enumerate(chosen):
        color = PALETTE[place % len(PALETTE)]
        bands += _bands(trends, topic, measure, color, "")
        lines.append(_line(trends, topic, measure, color, ""))
        values, _ = _values(trends, topic, measure)
        known = values[~np.isnan(values)]
        ends.append(float(known[-1]) / top if len(known) else 0.0)
    places = spread(ends, 17 / (height - 70))
    annotations = [
        {
            "x": 1, "y": place, "xref": "paper", "yref": "paper", "xanchor": "left", "xshift": 8,
            "yanchor": "middle", "showarrow": False,
            "text": escape(cut(_label(trends, topic), 30)),
            "font": {"size": 12, "color": dark(PALETTE[number % len(PALETTE)])},
        }
        for number, (topic, place) in enumerate(zip(chosen, places, strict=True))
    ]  # fmt: skip
    axis = _time_axis(trends, [0, 1], "y")
    axis["showticklabels"] = True
    wanted = np.unique(np.linspace(0, trends.n_periods - 1, min(trends.n_periods, 7)).astype(int))
    middles = _middles(trends)
    axis["tickvals"] = [middles[i] for i in wanted]
    axis["ticktext"] = [trends.names[i] for i in wanted]
    scale = {
        "range": [0, top], "tickformat": ",.0f" if measure == "count" else ".1~%", "nticks": 6,
        "gridcolor": "#e6e9ed", "zeroline": False, "fixedrange": True,
    }  # fmt: skip
    layout = _layout(height, {"xaxis": axis, "yaxis": scale}, annotations)
    layout["margin"] = {"l": 56, "r": 230, "t": 30, "b": 40}
    return go.Figure(data=[*bands, *lines], layout=layout)  # no band over any line


def _layout(height: int, axes: dict[str, Any], annotations: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "template": "none",
        "height": height,
        "margin": {"l": 16, "r": 16, "t": 12, "b": 28},
        "font": {"family": FONT, "size": 13, "color": INK},
        "showlegend": False,
        "hoverlabel": {"bgcolor": "#fff", "font": {"family": FONT, "color": INK}},
        "annotations": annotations,
        **(axes or {"xaxis": {"visible": False}, "yaxis": {"visible": False}}),
    }
