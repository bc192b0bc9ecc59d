"""Classifiers: confusion, calibration, risk; prevalence, regressions, and specification curves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.classification.results import ClassificationReport
from embedtopics.errors import InputError
from embedtopics.inference.results import MeasuredShares, Regression
from embedtopics.plots._bars import heading
from embedtopics.plots._colors import PALETTE
from embedtopics.plots._theme import (
    GREY,
    GRID,
    INK,
    MUTED,
    Spec,
    axes_of,
    axis_keys,
    base_layout,
    caption,
    hover,
    name_axis,
    note,
    panel_figure,
    panel_note,
    scatter,
    small,
)
from embedtopics.topics.results import CHOICES, Specifications, TopicEffects

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

_ROW, _MOST, _PANELS = 34, 40, 12
_KEY = (
    f'<b><span style="color:{PALETTE[0]}">● corrected</span></b>  '
    f'<span style="color:{GREY}">● labels alone</span>  ✕ predicted'
)
_SCALE = [[0.0, "#ffffff"], [1.0, PALETTE[0]]]
_ZERO_LINE: Spec = {"showgrid": True, "zeroline": True, "zerolinecolor": GREY}


def confusion(report: ClassificationReport) -> Figure:
    """Draw the confusion matrix: counts, coloured by their share of each true class.

    Parameters
    ----------
    report : ClassificationReport

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        For several labels per text, and for more than 40 classes.
    """
    import plotly.graph_objects as go

    if report.confusion is None or len(report.classes) > _MOST:
        expected = f"one of at most {_MOST} classes, one per text"
        raise InputError("report", expected, found=f"{len(report.classes)} classes, {report.head}")
    counts = report.confusion
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    names = [caption(str(name), 24) for name in report.classes]
    n = len(names)
    trace = go.Heatmap(
        z=shares, zmin=0, zmax=1, colorscale=_SCALE, showscale=False, xgap=2, ygap=2,
        customdata=counts, hovertemplate="%{customdata:.0f} texts (%{z:.1%})<extra></extra>",
    )  # fmt: skip
    place: Spec = {"across": "center", "up": "middle", "xref": "x", "yref": "y"}
    place["size"] = 12 if n < 12 else 10
    colors = np.where(shares > 0.6, "#ffffff", INK).tolist()
    cells = [(i, j) for i in range(n) for j in range(n) if counts[i, j] and n <= 20]
    written = [note(f"{counts[i, j]:,.0f}", j, i, **place, color=colors[i][j]) for i, j in cells]
    width = 190 + max(64, min(96, 900 // n)) * n
    axis: Spec = {"tickvals": list(range(n)), "ticktext": names, "showgrid": False, "side": "top"}
    axis |= {"title": {"text": f"predicted ({counts.sum():,.0f} texts)", "standoff": 10}}
    if n > 5:
        axis["tickangle"] = -90
    true = {**name_axis(names, None), "title": {"text": "true", "standoff": 10}}
    layout: Spec = base_layout(n * _ROW + 100, width, l=16, r=24, t=70, b=16)
    return go.Figure([trace], layout | {"xaxis": axis, "yaxis": true, "annotations": written})


def reliability(report: ClassificationReport) -> Figure:
    """Draw the accuracy by confidence, in bins of equal size.

    Parameters
    ----------
    report : ClassificationReport

    Returns
    -------
    plotly.graph_objects.Figure
    """
    import plotly.graph_objects as go

    confidence, accuracy, n = report.calibration.T
    error = 1.96 * np.sqrt(np.maximum(accuracy * (1 - accuracy), 0.25 / n) / n)
    low, high = np.minimum(error, accuracy), np.minimum(error, 1 - accuracy)
    texts = [
        f"confidence {s:.0%}, {r:.0%} right, {int(k):,} texts" for s, r, k in report.calibration
    ]
    bars = {"array": high, "arrayminus": low, "thickness": 1.5, "width": 0}
    look: Spec = {"marker": {"size": 9, "color": PALETTE[0]}, "line": {"color": PALETTE[0]}}
    dots = scatter(confidence, accuracy, "lines+markers", **look, cliponaxis=False, error_y=bars)
    text = f"<b>Expected calibration error {report.calibration_error:.3f}</b> · {report.n:,} texts"
    least = float(min(confidence.min(), (accuracy - low).min())) - 0.03
    axes = {"range": [max(0.0, least), 1.01], "tickformat": ".0%", "showgrid": True}
    layout = base_layout(420, 480, l=16, r=24, t=48, b=16) | {
        "xaxis": {**axes, "title": {"text": "confidence"}},
        "yaxis": {**axes, "title": {"text": "accuracy", "standoff": 12}},
        "annotations": [note(text, yshift=10)],
    }
    style = {"color": GREY, "width": 1.5, "dash": "dot"}
    diagonal = scatter([0, 1], [0, 1], "lines", hoverinfo="skip", line=style)
    return go.Figure([diagonal, dots | hover(texts, "text")], layout)


def risk_coverage(report: ClassificationReport) -> Figure:
    """Draw the error of the most confident predictions against their share of the texts.

    The line above is a bound that holds at all points in 95 % of the samples of labels.

    Parameters
    ----------
    report : ClassificationReport

    Returns
    -------
    plotly.graph_objects.Figure
    """
    import plotly.graph_objects as go

    curve = report.risk_coverage
    if curve is None:
        raise InputError("report", "of a classifier of one label per text", found="several labels")
    texts = [
        f"{c:.0%} predicted: {e:.1%} wrong, at most {h:.1%}"
        for c, e, h in zip(curve.coverage, curve.error, curve.high, strict=True)
    ]
    dotted = {"color": PALETTE[3], "dash": "dot"}
    bound = scatter(curve.coverage, curve.high, "lines+markers", line=dotted, marker={"size": 5})
    error = scatter(curve.coverage, curve.error, "lines+markers", line={"color": PALETTE[0]})
    error |= {"marker": {"size": 8}}
    place: Spec = {"xref": "x", "yref": "y", "size": 12, "across": "right"}
    notes = [
        note("bound (95 %)", 1.0, float(curve.high[-1]), color=PALETTE[3], yshift=6, **place),
        note("error", 1.0, float(curve.error[-1]), color=PALETTE[0], up="top", yshift=-40, **place),
        note(f"<b>Error by coverage</b> · {curve.n:,} labelled texts", yshift=10),
    ]
    top = min(1.0, float(max(curve.high.max(), 0.02)) * 1.08)
    share = {"tickformat": ".0%"}
    layout = base_layout(380, 560, l=16, r=24, t=48, b=16) | {
        "xaxis": {**share, "range": [0, 1.03], "title": {"text": "coverage"}},
        "yaxis": {**share, "range": [0, top], "showgrid": True, "title": {"text": "error"}},
        "annotations": notes,
    }
    return go.Figure([trace | hover(texts, "text") for trace in (bound, error)], layout)


def prevalence(estimates: MeasuredShares, classes: Sequence[Any] | None = None) -> Figure:
    """Draw the prevalence of each class over time or by group, with intervals.

    Dots are corrected estimates. Grey dots are estimates from the labels alone, and crosses are
    the shares of predicted classes without correction.

    Parameters
    ----------
    estimates : MeasuredShares
    classes : sequence, optional
        Classes to draw; by default the 12 most frequent, or the last of two.

    Returns
    -------
    plotly.graph_objects.Figure
        One panel per class.

    Raises
    ------
    InputError
        If there is no such class.
    """
    every = list(dict.fromkeys(share.name for share in estimates))
    shown = list(classes) if classes is not None else every[-1:]
    if classes is None and len(every) > 2:
        sums = {name: sum(share.estimate for share in estimates.of(name=name)) for name in every}
        shown = sorted(every, key=lambda name: -sums[name])[:_PANELS]
    if not shown or any(name not in every for name in shown):
        raise InputError("classes", f"some of the classes {every}", classes)

    groups = list(dict.fromkeys(share.group for share in estimates))
    names = [_group_name(group) for group in groups]

    is_date = [re.fullmatch(r"\d{4}-\d\d-\d\d", name) for name in names]
    is_time = bool(estimates.by) and len(names) > 1 and all(is_date)

    height = 190 if is_time else max(70, 26 * len(names) + 30)
    margin = {"t": 112, "b": 34, "l": 16}
    figure = panel_figure([height] * len(shown), between=64, margin=margin)
    notes = []
    frame = estimates.to_frame()
    for panel, name in enumerate(shown):
        shares = [share for share in estimates if share.name == name]
        table = frame[[share.name == name for share in estimates]]
        places = names if is_time else [groups.index(share.group) for share in shares]
        for trace in _estimate_traces(table, places, is_time=is_time):
            figure.add_trace(trace | axes_of(panel))

        x, y = axis_keys(panel)
        scale = {"tickformat": ".0%", "rangemode": "tozero", "showgrid": True}
        if is_time:
            figure.update_layout({y: scale})
        else:
            figure.update_layout({x: scale})
            figure.update_layout({y: name_axis(names, 36)})

        n_texts = sum(share.n for share in shares)
        n_gold = sum(share.n_gold for share in shares)
        about = f"{n_texts:,} texts, {n_gold:,} labelled"
        notes.append(panel_note(figure, panel, heading(str(name), about, 60)))

    key = _KEY
    if classes is None and len(every) > len(shown) > 1:
        key += f"<br>and {len(every) - len(shown):,} more classes"
    notes.append(note(key, 0.0, 1.0, size=12, color=MUTED, yshift=46))
    return figure.update_layout(annotations=notes, showlegend=False)


def forest(fit: Regression | TopicEffects) -> Figure:
    """Draw the coefficients of a regression, except intercepts, with their intervals.

    Dots are corrected estimates, grey dots those of the gold rows alone, crosses of predictions.
    Of the effects on topics, dots are marginal effects in points, in a panel for each covariate.

    Parameters
    ----------
    fit : Regression or TopicEffects

    Returns
    -------
    plotly.graph_objects.Figure
    """
    import plotly.graph_objects as go

    if isinstance(fit, TopicEffects):
        return _forest_of_topics(fit)

    table = fit.to_frame().query("term != 'intercept'").rename(columns={"effect": "estimate"})
    table = table.assign(n=fit.n_rows, n_gold=fit.n_gold)
    names = table["term"].tolist()
    if len(fit.classes) > 1:
        names = (table["outcome"] + ": " + table["term"]).tolist()

    text = f"<b>{caption(fit.formula, 50)}</b><br>{small(fit.family)}<br>{small(_KEY)}"
    layout = base_layout(30 * len(names) + 130, t=90, b=36) | {
        "title": {"text": text, "x": 0.02, "y": 1, "pad": {"t": 12}, "font": {"size": 13}},
        "xaxis": _ZERO_LINE,
        "yaxis": name_axis(names, 26),
    }
    traces = _estimate_traces(table, range(len(table)), is_time=False, form=".3g")
    return go.Figure(traces, layout)


def _forest_of_topics(fit: TopicEffects) -> Figure:
    panels = list(fit.marginal_effects().groupby(["covariate", "level"], sort=False))
    heights = [26 * len(fit.topics) + 24] * len(panels)
    figure = panel_figure(heights, between=64, margin={"t": 60, "b": 28})
    notes = []
    for panel, ((name, level), frame) in enumerate(panels):
        # Shares from 0 to 1 as percentage points; topics have no labels.
        points = 100 * frame[["effect", "low", "high"]].rename(columns={"effect": "estimate"})
        points = points.assign(n=fit.n_rows, n_gold=0)
        for trace in _estimate_traces(points, range(len(points)), is_time=False, form="+.3g"):
            figure.add_trace(trace | axes_of(panel))

        x, y = axis_keys(panel)
        axis = _ZERO_LINE | {"tickformat": "+.3~g", "tickangle": 0, "nticks": 5}
        figure.update_layout({x: axis, y: name_axis(list(frame["label"]), 36)})
        reference, unit = frame[["reference", "unit"]].iloc[0]
        about = f"against {reference}" if reference else f"for one {unit} more"
        title = heading(f"{name}: {level}".rstrip(": "), f"points {about}", 60)
        notes.append(panel_note(figure, panel, title))
    return figure.update_layout(annotations=notes, showlegend=False)


def _group_name(group: Any) -> str:
    if group is None:
        return "all texts"
    return group if isinstance(group, str) else ", ".join(group)


def _estimate_traces(
    table: pd.DataFrame, places: Sequence[Any], *, is_time: bool, form: str = ".1%"
) -> list[Spec]:
    """Return the traces of a panel, from back to front: labels, predictions, corrected estimates.

    Parameters
    ----------
    table : DataFrame
        Columns estimate, low and high; n and n_gold, the texts and those of them with a label. If
        they are known, gold, gold_low and gold_high (labels alone) and naive (predictions alone).
    places : sequence
        Position of each row on the other axis: a date, or the number of a line from the top.
    is_time : bool
        Whether the places are dates, which run from left to right.
    form : str
        Format of an estimate.
    """
    traces = []
    if "gold" in table and table["gold"].notna().any():
        by_labels = _interval_dots(
            table,
            ("gold", "gold_low", "gold_high"),
            places,
            shift=0.28,
            color="#b4bbc4",
            size=6,
            is_time=is_time,
            form=form,
        )
        traces.append(by_labels)

    if "naive" in table and table["naive"].notna().any():
        predicted = table["naive"].tolist()
        texts = [f"{value:{form}} predicted" for value in predicted]
        cross = {"symbol": "x-thin", "size": 8, "line": {"width": 1.5, "color": INK}}
        trace = _oriented(predicted, places, is_time) | {"marker": cross}
        traces.append(trace | hover(texts, "text"))

    corrected = _interval_dots(
        table,
        ("estimate", "low", "high"),
        places,
        color=PALETTE[0],
        size=9,
        is_time=is_time,
        form=form,
    )
    if is_time:
        corrected["mode"] = "lines+markers"
    traces.append(corrected)
    return traces


def _interval_dots(
    table: pd.DataFrame,
    columns: tuple[str, str, str],
    places: Sequence[Any],
    *,
    shift: float = 0.0,
    color: str,
    size: int,
    is_time: bool,
    form: str,
) -> Spec:
    """Return dots with intervals: the columns of their values, low ends and high ends.

    A `shift` moves the dots of a line down, so that those of two estimates do not cover each other.
    """
    value, low, high = table[list(columns)].to_numpy().T
    if not is_time:
        places = [place + shift for place in places]

    intervals: Spec = {
        "type": "data",
        "symmetric": False,
        "array": (high - value).tolist(),
        "arrayminus": (value - low).tolist(),
        "color": color,
        "width": 0,
        "thickness": 1.5,
    }
    error = "error_y" if is_time else "error_x"
    style: Spec = {
        "marker": {"size": size, "color": color},
        "line": {"color": color, "width": 2},
        error: intervals,
    }

    texts = [
        f"{middle:{form}} [{left:{form}}, {right:{form}}]"
        for middle, left, right in zip(value, low, high, strict=True)
    ]
    for row, (n, n_gold) in enumerate(zip(table["n"], table["n_gold"], strict=True)):
        if n_gold > 0:
            texts[row] += f", {n_gold:,} of {n:,} texts labelled"

    return _oriented(value.tolist(), places, is_time) | style | hover(texts, "text")


def _oriented(values: Sequence[float], places: Sequence[Any], is_time: bool) -> Spec:
    """Return points with dates from left to right, or with lines from top to bottom."""
    if is_time:
        return scatter(list(places), list(values))
    return scatter(list(values), list(places))


def specifications(
    answers: Specifications, topic: int | None = None, quantity: str | None = None
) -> Figure:
    """Draw the specification curve: the estimates in ascending order, above their choices.

    Blue estimates agree with the conclusion of the main study, whose estimate is the dashed line;
    grey ones do not. Specifications without a matching topic are left out.

    Parameters
    ----------
    answers : Specifications
        topic : int, optional
        Topic of the main study, by default the first of the summary.
    quantity : str, optional
        By default the first of the topic.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        If the topic or the quantity is not in the summary.
    """
    rows = answers.summary
    for name, value in (("topic", topic), ("quantity", quantity)):
        rows = rows if value is None else rows[rows[name] == value]
    if not len(rows):
        raise InputError("topic", "one of the summary, with its quantity", (topic, quantity))
    row = rows.iloc[0]
    frame = answers.estimates.dropna(subset="estimate")
    frame = frame[(frame["topic"] == row["topic"]) & (frame["quantity"] == row["quantity"])]
    frame = frame.sort_values(["estimate", "specification"]).reset_index(drop=True)
    varied = [one for one in CHOICES if answers.choices[one].nunique() > 1]
    levels = [(one, level) for one in varied for level in answers.choices[one].unique()]
    figure = panel_figure([300, 24 * max(len(levels), 1)], between=12, margin={"t": 64, "b": 28})
    texts = [
        f"{one.estimate:.3g} [{one.low:.3g}, {one.high:.3g}]<br>"
        + caption(", ".join(f"{name} {getattr(one, name)}" for name in varied), 90)
        for one in frame.itertuples()
    ]
    x = np.arange(len(frame))
    for agrees, color in ((True, PALETTE[0]), (False, GREY)):
        part = np.flatnonzero(frame["agrees"] == agrees)
        some = frame.iloc[part]
        ends = {
            "array": some["high"] - some["estimate"],
            "arrayminus": some["estimate"] - some["low"],
        }
        bars = {**ends, "type": "data", "symmetric": False, "width": 0, "thickness": 1.2}
        marker = {"color": color, "size": 7}
        shown = hover([texts[i] for i in part])
        figure.add_trace(scatter(x[part], some["estimate"], error_y=bars, marker=marker, **shown))
        for place, (name, level) in enumerate(levels):
            used = x[part[(some[name] == level).to_numpy()]]
            dots = scatter(used, np.full(len(used), place), marker={"color": color, "size": 6})
            figure.add_trace(dots | {"hoverinfo": "skip"} | axes_of(1))
    span = {"range": [-0.7, max(len(frame), 1) - 0.3], "showticklabels": False}
    axes = [axis_keys(panel) for panel in (0, 1)]
    names = [f"{name}: {level}" for name, level in levels] or ["no choice varies"]
    zero = {"showgrid": True, "zeroline": True, "zerolinecolor": INK, "nticks": 6}
    figure.update_layout({axes[0][0]: span, axes[0][1]: zero, axes[1][0]: span})
    figure.update_layout({axes[1][1]: name_axis(names, 36) | {"showgrid": True, "gridcolor": GRID}})
    figure.add_hline(
        row["estimate"], line={"dash": "dash", "width": 1, "color": GREY}, row=1, col=1
    )
    about = f"{row['agreement']:.0%} of {row['n']} specifications agree with the main study"
    title = panel_note(figure, 0, heading(f"{row['label']}: {row['quantity']}", about, 70))
    missing = int(row["n"] - row["n_matched"])
    below = note(
        f"{missing} without such a topic" if missing else "", 1, 0, across="right", up="top"
    )
    return figure.update_layout(annotations=[title, below], showlegend=False)
