"""Positions on an axis: of groups, over time, and of words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.plots import _theme as theme
from embedtopics.plots._colors import PALETTE, tint
from embedtopics.plots._labels import spread

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

    from embedtopics.inference.results import MeasuredShares

MOST = 40
_ALONG: theme.Spec = {
    "zeroline": True, "zerolinecolor": "#c3c9d1", "showgrid": True,
    "title": {"text": "position, in standard deviations of the texts"},
}  # fmt: skip


def positions(groups: MeasuredShares) -> Figure:
    """Draw the positions of groups with their intervals, or their paths over time.

    Parameters
    ----------
    groups : MeasuredShares
        From `Positions.by`. Of two columns, the first is time; each group of the second is a line.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    import plotly.graph_objects as go

    frame = groups.to_frame()
    frame["text"] = [
        f"<b>{theme.caption(str(row.group), 60)}</b><br>{row.estimate:+.2f} [{row.low:+.2f}, "
        f"{row.high:+.2f}]<br>{row.n:,} texts"
        for row in frame.itertuples()
    ]
    if len(groups.by) == 2:
        return _paths(frame)
    frame = frame.sort_values("estimate", ascending=False, ignore_index=True)
    sides: Any = [frame["estimate"] - frame["low"], frame["high"] - frame["estimate"]]
    place = (frame["estimate"], range(len(frame)), sides, list(frame["text"]))
    dots = theme.interval_dots(*place, marker={"color": PALETTE[0], "size": 9})
    axes = {"xaxis": _ALONG, "yaxis": theme.name_axis(list(frame["group"]), 36)}
    return go.Figure(dots, theme.base_layout(26 * len(frame) + 76, t=16, b=56) | axes)


def _paths(frame: Any) -> Figure:
    import plotly.graph_objects as go

    frame[["time", "name"]] = frame["group"].to_list()
    low, high = np.nanmin(frame[["estimate", "low"]]), np.nanmax(frame[["estimate", "high"]])
    traces, names, lasts = list[theme.Spec](), [], []
    for number, (name, rows) in enumerate(frame.groupby("name")):
        color, solid = PALETTE[number % len(PALETTE)], rows.dropna(subset="low")
        ends = [*solid["high"], *solid["low"][::-1]], [*solid["time"], *solid["time"][::-1]]
        filled = {"fill": "toself", "fillcolor": tint(color, 0.15), "opacity": 0.6}
        bare: Any = {"line": {"width": 0}, "hoverinfo": "skip"}
        traces.insert(0, theme.scatter(ends[1], ends[0], "lines", **filled, **bare))
        style: Any = {"line": {"color": color}, "marker": {"color": color}}
        style |= theme.hover(rows["text"])
        traces.append(theme.scatter(rows["time"], rows["estimate"], "lines+markers", **style))
        names.append((theme.caption(str(name), 24), color))
        lasts.append((rows["estimate"].iloc[-1] - low) / (high - low))
    notes = [
        theme.note(name, 1.0, height, color=color, xshift=8, up="middle", size=12)
        for (name, color), height in zip(names, spread(lasts, 0.05), strict=True)
    ]
    kind = "date" if frame["time"].str.match(r"\d{4}-\d\d-\d\d$").all() else "-"
    up = _ALONG | {"range": [low, high], "title": {"text": "position"}}
    axes = {"xaxis": {"type": kind}, "yaxis": up, "annotations": notes}
    return go.Figure(traces, theme.base_layout(420, t=20, r=170, b=40, l=56) | axes)


def axis(words: pd.DataFrame) -> Figure:
    """Draw words along an axis, the more frequent the higher, and 40 names from both ends inwards.

    Parameters
    ----------
    words : DataFrame
        `words_` of a fitted `probing.Scale`; seeds are in colour.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    import plotly.graph_objects as go

    x, y = words["position"].to_numpy(), np.log10(words["n_uses"].to_numpy())
    across, up = (factor / max(np.ptp(one), 1e-9) for factor, one in ((14, x), (26, y)))
    inwards, shown = np.argsort(-np.abs(np.arange(len(x)) - len(x) / 2), kind="stable"), list[int]()
    for row in sorted(inwards.tolist(), key=lambda row: not words["is_seed"][row])[: 3 * MOST]:
        apart = np.maximum(np.abs(x[row] - x[shown]) * across, np.abs(y[row] - y[shown]) * up)
        if len(shown) < MOST and (apart > 1).all():
            shown.append(row)
    texts = [
        f"<b>{theme.caption(str(row.word), 40)}</b><br>{row.position:+.2f}, {row.n_uses:,} uses"
        for row in words.itertuples()
    ]
    dots = theme.scatter(x, y, marker={"color": tint(theme.MUTED, 0.5), "size": 4}, hovertext=texts)
    colors = [PALETTE[0] if words["is_seed"][row] else theme.MUTED for row in shown]
    names: theme.Spec = {"text": [theme.caption(str(words["word"][row]), 24) for row in shown]}
    names |= {"textfont": {"size": 12, "color": colors}, "textposition": "top center"}
    powers = list(range(int(y.max()) + 1))
    labels = {"tickvals": powers, "ticktext": [f"{10**one:,}" for one in powers]}
    axes = {"xaxis": _ALONG, "yaxis": labels | {"title": {"text": "uses"}}}
    traces = [dots, theme.scatter(x[shown], y[shown], "text", hoverinfo="skip", **names)]
    return go.Figure(traces, theme.base_layout(460, t=20, b=50, l=60) | axes)
