"""Shares of classes, and means of numbers, over time or by group."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.inference.results import MeasuredShares
from embedtopics.plots._bars import heading
from embedtopics.plots._colors import PALETTE, tint
from embedtopics.plots._estimates import ESTIMATE_KEY, estimate_traces
from embedtopics.plots._inputs import check_input
from embedtopics.plots._labels import spread
from embedtopics.plots._theme import (
    MUTED,
    Canvas,
    Spec,
    axes_of,
    axis_keys,
    base_layout,
    caption,
    hover,
    interval_dots,
    name_axis,
    note,
    panel_figure,
    panel_note,
    scatter,
)

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

_PANELS = 12
_ROW = 26
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_POSITION = "position"
"""Name of the variable that `probing.Scale` measures."""


def shares(
    shares: MeasuredShares,
    *,
    classes: Sequence[Any] | None = None,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw the share of each class over time or by group, or means of numbers, with intervals.

    Dots are corrected estimates. Grey dots are estimates from the labels alone, and crosses are
    the shares of predicted classes without correction. Means of numbers, such as positions on a
    scale, are dots in descending order, and lines over time.

    Parameters
    ----------
    shares : MeasuredShares
        From `embedtopics.inference.shares`. Of numbers by two columns, the first is time, and each
        group of the second is a line.
    classes : sequence, optional
        Classes to draw; by default the 12 most frequent, or the last of two.
    title : str, optional
    width, height : int, optional
        Pixels; by default the width of the page, and the height that the content needs.

    Returns
    -------
    plotly.graph_objects.Figure
        One panel per class; one of all classes if there are no groups, and of means.

    Raises
    ------
    InputError
        If there is no such class, or the shares are of numbers, which have no classes.

    Examples
    --------
    >>> import embedtopics as et
    >>> frame = et.Corpus("embedtopics:demo").to_frame()
    >>> truth = (frame["theme"] == "chess").map({True: "chess", False: "other"})
    >>> mentioned = frame["text"].str.contains("chess").map({True: "chess", False: "other"})
    >>> gold = truth.where(frame.index % 3 == 0)  # people labelled a third of the texts
    >>> measured = et.inference.Measurement(gold, mentioned, sampling="random", data=frame)
    >>> shares = et.inference.shares(measured, by="source")
    >>> figure = et.plots.shares(shares, classes=["chess"])
    >>> [name.strip() for name in figure.layout.yaxis.ticktext]
    ['forum', 'newsletter', 'press', 'report']
    """
    canvas = Canvas(title, width, height)
    check_input(shares, "shares", MeasuredShares, "et.inference.shares(measurement, by)")

    table = shares.to_frame()
    if table["class"].isna().all():
        if classes is not None:
            raise InputError("classes", "left out for means of numbers", classes)
        return _means(table, shares, canvas)
    return _classes(table, classes, canvas)


def _classes(table: pd.DataFrame, classes: Sequence[Any] | None, canvas: Canvas) -> Figure:
    """Draw a panel for each class."""
    shown = _classes_shown(table, classes)
    groups = list(dict.fromkeys(table["group"]))
    if len(groups) == 1 and len(shown) > 1:
        return _classes_of_one_group(table, shown, classes is None, canvas)

    names = [_group_name(group) for group in groups]
    is_time = len(names) > 1 and all(_DATE.fullmatch(name) for name in names)

    height = 190 if is_time else max(70, _ROW * len(names) + 30)
    margin = {"t": 112, "b": 34, "l": 16}
    figure = panel_figure(canvas, [height] * len(shown), between=64, margin=margin)
    notes = []
    for panel, name in enumerate(shown):
        of_class = table[[value == name for value in table["class"]]]
        places = names if is_time else [groups.index(group) for group in of_class["group"]]
        for trace in estimate_traces(of_class, places, is_time=is_time):
            figure.add_trace(trace | axes_of(panel))

        x, y = axis_keys(panel)
        scale = {"tickformat": ".0%", "rangemode": "tozero", "showgrid": True}
        if is_time:
            figure.update_layout({y: scale})
        else:
            figure.update_layout({x: scale})
            figure.update_layout({y: name_axis(names, 36)})

        n_texts = int(of_class["n"].sum())
        n_gold = int(of_class["n_gold"].sum())
        about = f"{n_texts:,} texts, {n_gold:,} labelled"
        notes.append(panel_note(figure, panel, heading(str(name), about, 60)))

    key = ESTIMATE_KEY
    if classes is None and len(shown) > 1:
        key += _more_classes(table, shown)
    notes.append(note(key, 0.0, 1.0, size=12, color=MUTED, yshift=46))
    return figure.update_layout(annotations=notes, showlegend=False)


def _classes_of_one_group(
    table: pd.DataFrame, shown: Sequence[Any], is_default: bool, canvas: Canvas
) -> Figure:
    """Draw the classes of one group as the lines of one panel, so that they can be compared."""
    import plotly.graph_objects as go

    rows = table.set_index("class").loc[list(shown)]
    group = _group_name(rows["group"].iloc[0])
    about = f"{int(rows['n'].max()):,} texts, {int(rows['n_gold'].max()):,} labelled"
    key = ESTIMATE_KEY
    if is_default:
        key += _more_classes(table, shown)

    layout = base_layout(canvas, _ROW * len(shown) + 130, t=100, b=34, l=16) | {
        "xaxis": {"tickformat": ".0%", "rangemode": "tozero", "showgrid": True},
        "yaxis": name_axis([str(name) for name in shown], 36),
        "annotations": [
            note(heading(group, about, 60)),
            note(key, size=12, color=MUTED, yshift=46),
        ],
    }
    return go.Figure(estimate_traces(rows, range(len(rows)), is_time=False), layout)


def _more_classes(table: pd.DataFrame, shown: Sequence[Any]) -> str:
    """Return a line with the number of classes that a figure leaves out."""
    n_more = table["class"].nunique() - len(shown)
    return f"<br>and {n_more:,} more classes" if n_more > 0 else ""


def _classes_shown(table: pd.DataFrame, classes: Sequence[Any] | None) -> list[Any]:
    """Return the classes to draw, from top to bottom."""
    every = list(dict.fromkeys(table["class"]))
    if classes is None:
        if len(every) <= 2:
            return every[-1:]
        sums = table.groupby("class", sort=False)["estimate"].sum()
        return sorted(every, key=lambda name: -sums[name])[:_PANELS]

    shown = [classes] if isinstance(classes, str) else list(classes)
    if not shown or any(name not in every for name in shown):
        raise InputError("classes", f"some of the classes {every}", classes)
    return shown


def _group_name(group: Any) -> str:
    """Return the name of a group of rows; groups by several columns are tuples."""
    if group is None:
        return "all texts"
    return group if isinstance(group, str) else ", ".join(map(str, group))


def _means(table: pd.DataFrame, shares: MeasuredShares, canvas: Canvas) -> Figure:
    """Draw means of numbers as positions along their scale, or over time."""
    import plotly.graph_objects as go

    table = table.assign(group_name=[_group_name(group) for group in table["group"]])
    texts = [
        f"<b>{caption(str(row.group_name), 60)}</b><br>{row.estimate:+.2f} [{row.low:+.2f}, "
        f"{row.high:+.2f}]<br>{row.n:,} texts"
        for row in table.itertuples()
    ]
    table = table.assign(text=texts)

    scale_name = caption(shares.name, 60)
    if len(shares.by) == 2:
        times, names = zip(*table["group"], strict=True)
        return _paths(table.assign(time=times, name=names), scale_name, canvas)
    is_date = [_DATE.fullmatch(name) for name in table["group_name"]]
    if len(table) > 1 and all(is_date):
        return _paths(table.assign(time=table["group_name"], name=""), scale_name, canvas)

    table = table.sort_values("estimate", ascending=False, ignore_index=True)
    dots = interval_dots(
        table["estimate"],
        range(len(table)),
        (table["estimate"] - table["low"], table["high"] - table["estimate"]),
        table["text"].tolist(),
        marker={"color": PALETTE[0], "size": 9},
    )
    if shares.name == _POSITION:
        scale_name = "position, in standard deviations of the texts"
    axes = {
        "xaxis": number_axis(scale_name),
        "yaxis": name_axis(table["group_name"].tolist(), 36),
    }
    return go.Figure(dots, base_layout(canvas, _ROW * len(table) + 76, t=16, b=56) | axes)


def _paths(table: pd.DataFrame, scale_name: str, canvas: Canvas) -> Figure:
    """Draw a line of means over time for each name, in the column `name`."""
    import plotly.graph_objects as go

    low = np.nanmin(table[["estimate", "low"]])
    high = np.nanmax(table[["estimate", "high"]])
    bands: list[Spec] = []
    lines: list[Spec] = []
    names = []
    heights = []
    for number, (name, rows) in enumerate(table.groupby("name")):
        color = PALETTE[number % len(PALETTE)]
        measured = rows.dropna(subset="low")
        band = scatter(
            [*measured["time"], *measured["time"][::-1]],
            [*measured["high"], *measured["low"][::-1]],
            "lines",
            fill="toself",
            fillcolor=tint(color, 0.15),
            opacity=0.6,
            line={"width": 0},
            hoverinfo="skip",
        )
        bands.insert(0, band)
        line = scatter(
            rows["time"],
            rows["estimate"],
            "lines+markers",
            line={"color": color},
            marker={"color": color},
            **hover(rows["text"]),
        )
        lines.append(line)
        names.append((caption(str(name), 24), color))
        heights.append((rows["estimate"].iloc[-1] - low) / ((high - low) or 1.0))

    notes = [
        note(name, 1.0, height, color=color, xshift=8, up="middle", size=12)
        for (name, color), height in zip(names, spread(heights, 0.05), strict=True)
    ]
    has_names = any(name for name, _ in names)
    kind = "date" if table["time"].map(str).str.match(r"\d{4}-\d\d-\d\d$").all() else "-"
    layout = base_layout(canvas, 420, t=20, r=170 if has_names else 24, b=40, l=56) | {
        "xaxis": {"type": kind},
        "yaxis": number_axis(scale_name) | {"range": [low, high]},
        "annotations": notes,
    }
    return go.Figure([*bands, *lines], layout)


def number_axis(name: str) -> Spec:
    """Return the axis of a number, with a line at 0."""
    return {
        "zeroline": True,
        "zerolinecolor": "#c3c9d1",
        "showgrid": True,
        "title": {"text": name},
    }
