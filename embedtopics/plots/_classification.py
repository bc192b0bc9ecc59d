"""Classifiers: what they mistake, whether they know how sure to be, and the shares of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.classification.results import (
    ClassificationReport,
    Prevalence,
    RiskCoverage,
    ShareOfClass,
)
from embedtopics.errors import InputError
from embedtopics.plots._bars import heading
from embedtopics.plots._colors import PALETTE
from embedtopics.plots._theme import (
    GREY,
    INK,
    MUTED,
    axes_of,
    caption,
    look,
    name_axis,
    note,
    panel_figure,
    panel_note,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_ROW, _MOST, _PANELS = 34, 40, 12
_SCALE = [[0.0, "#ffffff"], [1.0, PALETTE[0]]]


def confusion(report: ClassificationReport) -> Figure:
    """Draw which classes are taken for which: the shares of each true class, and the counts.

    Parameters
    ----------
    report : ClassificationReport

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        For several labels a text, and for more than 40 classes.
    """
    import plotly.graph_objects as go

    if report.confusion is None or len(report.classes) > _MOST:
        wanted = f"one of at most {_MOST} classes, one a text"
        raise InputError("report", wanted, found=f"{len(report.classes)} classes, {report.head}")
    counts = report.confusion
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    names = [caption(str(name), 24) for name in report.classes]
    n = len(names)
    trace = go.Heatmap(
        z=shares, zmin=0, zmax=1, colorscale=_SCALE, showscale=False, xgap=2, ygap=2,
        customdata=counts, hovertemplate="%{customdata:.0f} texts (%{z:.1%})<extra></extra>",
    )  # fmt: skip
    written = [
        note(f"{counts[i, j]:,.0f}", j, i, across="center", up="middle", xref="x", yref="y",
             size=12 if n < 12 else 10, color="#ffffff" if shares[i, j] > 0.6 else INK)
        for i in range(n) for j in range(n) if counts[i, j] and n <= 20
    ]  # fmt: skip
    width = 190 + max(64, min(96, 900 // n)) * n
    layout: dict[str, Any] = look(n * _ROW + 100, width, l=16, r=24, t=70, b=16)
    axis = {"tickvals": list(range(n)), "ticktext": names, "showgrid": False, "side": "top"}
    axis |= {"title": {"text": f"predicted ({counts.sum():,.0f} texts)", "standoff": 10}}
    if n > 5:
        axis["tickangle"] = -90
    true = {**name_axis(names, None), "title": {"text": "true", "standoff": 10}}
    return go.Figure(
        data=[trace],
        layout=layout | {"xaxis": axis, "yaxis": true, "annotations": written},
    )  # fmt: skip


def reliability(report: ClassificationReport) -> Figure:
    """Draw the share of right predictions by how sure the classifier was, in bins of equal size.

    Parameters
    ----------
    report : ClassificationReport

    Returns
    -------
    plotly.graph_objects.Figure
    """
    import plotly.graph_objects as go

    sure, right, n = report.calibration.T
    reach = 1.96 * np.sqrt(np.maximum(right * (1 - right), 0.25 / n) / n)
    low, high = np.minimum(reach, right), np.minimum(reach, 1 - right)
    line = {"mode": "lines", "line": {"color": GREY, "width": 1.5, "dash": "dot"}}
    hover = [f"{s:.0%} sure, {r:.0%} right, {int(k):,} texts" for s, r, k in report.calibration]
    dots = go.Scatter(
        x=sure, y=right, mode="lines+markers", marker={"size": 9, "color": PALETTE[0]},
        line={"color": PALETTE[0]}, cliponaxis=False, text=hover,
        hovertemplate="%{text}<extra></extra>",
        error_y={"array": high, "arrayminus": low, "thickness": 1.5, "width": 0},
    )  # fmt: skip
    text = f"<b>Expected calibration error {report.calibration_error:.3f}</b> · {report.n:,} texts"
    least = float(min(sure.min(), (right - low).min())) - 0.03
    axes = {"range": [max(0.0, least), 1.01], "tickformat": ".0%", "showgrid": True}
    layout = look(420, 480, l=16, r=24, t=48, b=16) | {
        "xaxis": {**axes, "title": {"text": "confidence"}},
        "yaxis": {**axes, "title": {"text": "share right", "standoff": 12}},
        "annotations": [note(text, yshift=10)],
    }
    diagonal = go.Scatter(x=[0, 1], y=[0, 1], hoverinfo="skip", **line)
    return go.Figure(data=[diagonal, dots], layout=layout)


def risk_coverage(found: ClassificationReport | RiskCoverage) -> Figure:
    """Draw the error among the surest texts for each share of them that is predicted.

    The line above is a bound that holds at all points in 95 % of the samples of labels.

    Parameters
    ----------
    found : ClassificationReport or RiskCoverage

    Returns
    -------
    plotly.graph_objects.Figure
    """
    import plotly.graph_objects as go

    curve = found.risk_coverage if isinstance(found, ClassificationReport) else found
    if curve is None:
        raise InputError("found", "of a classifier of one label a text", found="several labels")
    common: dict[str, Any] = {"x": curve.coverage, "mode": "lines+markers"}
    hover = [
        f"{c:.0%} predicted: {e:.1%} wrong, at most {h:.1%}"
        for c, e, h in zip(curve.coverage, curve.error, curve.high, strict=True)
    ]
    more: dict[str, Any] = {"text": hover, "hovertemplate": "%{text}<extra></extra>"}
    bound = go.Scatter(y=curve.high, line={"color": PALETTE[3], "dash": "dot"},
                       marker={"size": 5}, **common, **more)  # fmt: skip
    error = go.Scatter(y=curve.error, line={"color": PALETTE[0]}, marker={"size": 8}, **common,
                       **more)  # fmt: skip
    top = float(max(curve.high.max(), 0.02)) * 1.08
    place: dict[str, Any] = {"xref": "x", "yref": "y", "size": 12, "across": "right"}
    notes = [
        note("bound (95 %)", 1.0, float(curve.high[-1]), color=PALETTE[3], yshift=6, **place),
        note("error", 1.0, float(curve.error[-1]), color=PALETTE[0], up="top", yshift=-40, **place),
        note(f"<b>Error among the surest</b> · {curve.n:,} labelled texts", yshift=10),
    ]
    layout = look(380, 560, l=16, r=24, t=48, b=16) | {
        "xaxis": {"range": [0, 1.03], "tickformat": ".0%", "title": {"text": "texts predicted"}},
        "yaxis": {"range": [0, min(1.0, top)], "tickformat": ".0%", "showgrid": True,
                  "title": {"text": "share wrong"}},
        "annotations": notes,
    }  # fmt: skip
    return go.Figure(data=[bound, error], layout=layout)


def prevalence(found: Prevalence, classes: Sequence[Any] | None = None) -> Figure:
    """Draw the share of each class over time or groups, with its interval.

    Dots are corrected estimates; grey ones beside them come from the labels alone, and a cross is
    the share of predicted classes, which no label has corrected.

    Parameters
    ----------
    found : Prevalence
    classes : sequence, optional
        Those to draw; by default the 12 of the largest shares, and the last of two.

    Returns
    -------
    plotly.graph_objects.Figure
        A panel a class.

    Raises
    ------
    InputError
        If there is no such class.
    """
    known = list(dict.fromkeys(one.name for one in found))
    chosen = list(classes) if classes is not None else known[-1:]
    if classes is None and len(known) > 2:
        sizes = {name: [one.share for one in found if one.name == name] for name in known}
        chosen = sorted(known, key=lambda name: -float(np.mean(sizes[name])))[:_PANELS]
    if not chosen or any(name not in known for name in chosen):
        raise InputError("classes", f"some of the classes {known}", classes)
    groups = list(dict.fromkeys(one.group for one in found))
    names = ["all texts" if group is None else group for group in groups]
    is_time = found.by is not None and len(names) > 1 and all(map(_is_date, names))
    height = 190 if is_time else max(70, 26 * len(names) + 30)
    margin = {"t": 112, "b": 34, "l": 16}
    figure = panel_figure([height] * len(chosen), between=64, margin=margin)
    notes = []
    for panel, name in enumerate(chosen):
        shares = [one for one in found if one.name == name]
        axes = axes_of(panel)
        places = names if is_time else [groups.index(one.group) for one in shares]
        for trace in _share_traces(shares, places, is_time):
            figure.add_trace(trace | axes)
        figure.update_layout({
            f"{'y' if is_time else 'x'}axis{axes['xaxis'][1:]}":
                {"tickformat": ".0%", "rangemode": "tozero", "showgrid": True},
        })  # fmt: skip
        if not is_time:
            figure.update_layout({f"yaxis{axes['yaxis'][1:]}": name_axis(names, 36)})
        about = f"{sum(one.n for one in shares):,} texts, {shares[0].n_labelled:,} labelled"
        if len(shares) > 1:
            n_labelled = sum(one.n_labelled for one in shares)
            about = f"{sum(one.n for one in shares):,} texts, {n_labelled:,} labelled"
        notes.append(panel_note(figure, panel, heading(str(name), about, 60)))
    key = (f'<b><span style="color:{PALETTE[0]}">● corrected</span></b>  '
           f'<span style="color:{GREY}">● labels alone</span>  ✕ predicted')  # fmt: skip
    if classes is None and len(known) > len(chosen) > 1:
        key += f"<br>and {len(known) - len(chosen):,} more classes"
    notes.append(note(key, 0.0, 1.0, size=12, color=MUTED, yshift=46))
    return figure.update_layout(annotations=notes, showlegend=False)


def _is_date(name: str) -> bool:
    return len(name) == 10 and name[4] == name[7] == "-" and name.replace("-", "").isdigit()


def _share_traces(
    shares: Sequence[ShareOfClass], places: Sequence[Any], is_time: bool
) -> list[dict[str, Any]]:
    """Return what is drawn of one class: labels alone, predictions, and estimates on top."""

    def dots(value: str, low: str, high: str, color: str, size: int, shift: float) -> Any:
        values = [getattr(one, value) for one in shares]
        ends = {
            "type": "data", "symmetric": False, "width": 0, "thickness": 1.5, "color": color,
            "array": [getattr(one, high) - v for one, v in zip(shares, values, strict=True)],
            "arrayminus": [v - getattr(one, low) for one, v in zip(shares, values, strict=True)],
        }  # fmt: skip
        hover = [
            f"{v:.1%} [{getattr(one, low):.1%}, {getattr(one, high):.1%}], "
            f"{one.n_labelled:,} of {one.n:,} texts labelled"
            for one, v in zip(shares, values, strict=True)
        ]
        moved = list(places) if is_time else [place + shift for place in places]
        across, up = (moved, values) if is_time else (values, moved)
        return {
            "type": "scatter", "mode": "lines+markers" if is_time and size > 6 else "markers",
            "x": across, "y": up, "marker": {"size": size, "color": color},
            "line": {"color": color, "width": 2}, f"error_{'y' if is_time else 'x'}": ends,
            "text": hover, "hovertemplate": "%{text}<extra></extra>",
        }  # fmt: skip

    predicted = [one.predicted for one in shares]
    x, y = (list(places), predicted) if is_time else (predicted, list(places))
    cross = {"symbol": "x-thin", "size": 8, "line": {"width": 1.5, "color": INK}}
    marks = {"type": "scatter", "mode": "markers", "x": x, "y": y, "marker": cross,
             "hovertemplate": "%{text}<extra></extra>",
             "text": [f"{value:.1%} predicted" for value in predicted]}  # fmt: skip
    made = [marks, dots("share", "low", "high", PALETTE[0], 9, 0.0)]
    if any(one.labels_share == one.labels_share for one in shares):
        made.insert(0, dots("labels_share", "labels_low", "labels_high", "#b4bbc4", 6, 0.28))
    return made
