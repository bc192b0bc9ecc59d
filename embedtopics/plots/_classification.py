"""Classifiers: confusion, calibration, risk; regressions, and specification curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.classification.results import ClassificationReport
from embedtopics.errors import InputError
from embedtopics.inference.results import Regression
from embedtopics.plots._bars import heading
from embedtopics.plots._colors import PALETTE
from embedtopics.plots._estimates import ESTIMATE_KEY, estimate_traces
from embedtopics.plots._inputs import check_input
from embedtopics.plots._theme import (
    GREY,
    GRID,
    INK,
    PAGE_WIDTH,
    Canvas,
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
from embedtopics.protocols import Float64Array
from embedtopics.topics.results import CHOICES, Specifications, TopicEffects

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

_EDGE = 0.06
"""Share of a scale that is left free beside the longest interval."""

_ROW = 34
_MOST_LEVEL = 5
"""Classes up to which names stand level above a confusion matrix."""

_GLYPH = 7.5
"""Pixels of a letter of these names, as measured on the system fonts."""

_MOST = 40
_SCALE = [[0.0, "#ffffff"], [1.0, PALETTE[0]]]
_EVALUATE = "et.classification.evaluate(classifier, test, train)"
_ZERO_LINE: Spec = {"showgrid": True, "zeroline": True, "zerolinecolor": GREY}


def confusion(
    report: ClassificationReport,
    *,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw the confusion matrix: counts, coloured by their share of each true class.

    Parameters
    ----------
    report : ClassificationReport
        From `embedtopics.classification.evaluate`.
    title : str, optional
    width, height : int, optional
        Pixels; by default the width of the page, and the height that the content needs.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        For several labels per text, and for more than 40 classes.

    Examples
    --------
    >>> import embedtopics as et
    >>> frame = et.Corpus("embedtopics:demo").to_frame()
    >>> frame = frame[frame["theme"].isin(["chess", "cycling"])]
    >>> train = frame["text"][::2].tolist(), frame["theme"][::2].tolist()
    >>> test = frame["text"][1::2].tolist(), frame["theme"][1::2].tolist()
    >>> classifier = et.TextClassifier("tfidf").fit(*train)
    >>> report = et.classification.evaluate(classifier, test, train)
    >>> figure = et.plots.confusion(report)
    >>> [name.strip() for name in figure.layout.yaxis.ticktext]
    ['chess', 'cycling']
    """
    import plotly.graph_objects as go

    canvas = Canvas(title, width, height)
    check_input(report, "report", ClassificationReport, _EVALUATE)
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
    # Cells share the width that a page has beside its margins.
    canvas = canvas.sized(min(190 + max(64, min(96, 900 // n)) * n, PAGE_WIDTH))
    axis: Spec = {"tickvals": list(range(n)), "ticktext": names, "showgrid": False, "side": "top"}
    axis |= {"title": {"text": f"predicted ({counts.sum():,.0f} texts)", "standoff": 10}}
    top = 70.0
    if n > _MOST_LEVEL:
        # Names on end, below the title of their axis and that of the figure.
        axis["tickangle"] = -90
        top = max(top, 44 + _GLYPH * max(map(len, names)))
    true = {**name_axis(names, None), "title": {"text": "true", "standoff": 10}}
    layout: Spec = base_layout(canvas, n * _ROW + 30 + top, l=16, r=24, t=top, b=16)
    return go.Figure([trace], layout | {"xaxis": axis, "yaxis": true, "annotations": written})


def reliability(
    report: ClassificationReport,
    *,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw the accuracy by confidence, in bins of equal size.

    Parameters
    ----------
    report : ClassificationReport
        From `embedtopics.classification.evaluate`.
    title : str, optional
    width, height : int, optional
        Pixels; by default the width of the page, and the height that the content needs.

    Returns
    -------
    plotly.graph_objects.Figure

    Examples
    --------
    >>> import embedtopics as et
    >>> frame = et.Corpus("embedtopics:demo").to_frame()
    >>> frame = frame[frame["theme"].isin(["chess", "cycling"])]
    >>> train = frame["text"][::2].tolist(), frame["theme"][::2].tolist()
    >>> test = frame["text"][1::2].tolist(), frame["theme"][1::2].tolist()
    >>> classifier = et.TextClassifier("tfidf").fit(*train)
    >>> report = et.classification.evaluate(classifier, test, train)
    >>> figure = et.plots.reliability(report)
    >>> figure.layout.xaxis.title.text, figure.layout.yaxis.title.text
    ('confidence', 'accuracy')
    """
    import plotly.graph_objects as go

    canvas = Canvas(title, width, height).sized(480)
    check_input(report, "report", ClassificationReport, _EVALUATE)
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
    layout = base_layout(canvas, 420, l=16, r=24, t=48, b=16) | {
        "xaxis": {**axes, "title": {"text": "confidence"}},
        "yaxis": {**axes, "title": {"text": "accuracy", "standoff": 12}},
        "annotations": [note(text, yshift=10)],
    }
    style = {"color": GREY, "width": 1.5, "dash": "dot"}
    diagonal = scatter([0, 1], [0, 1], "lines", hoverinfo="skip", line=style)
    return go.Figure([diagonal, dots | hover(texts, "text")], layout)


def risk_coverage(
    report: ClassificationReport,
    *,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw the error of the most confident predictions against their share of the texts.

    The line above is a bound that holds at all points in 95 % of the samples of labels.

    Parameters
    ----------
    report : ClassificationReport
        From `embedtopics.classification.evaluate`.
    title : str, optional
    width, height : int, optional
        Pixels; by default the width of the page, and the height that the content needs.

    Returns
    -------
    plotly.graph_objects.Figure

    Examples
    --------
    >>> import embedtopics as et
    >>> frame = et.Corpus("embedtopics:demo").to_frame()
    >>> frame = frame[frame["theme"].isin(["chess", "cycling"])]
    >>> train = frame["text"][::2].tolist(), frame["theme"][::2].tolist()
    >>> test = frame["text"][1::2].tolist(), frame["theme"][1::2].tolist()
    >>> classifier = et.TextClassifier("tfidf").fit(*train)
    >>> report = et.classification.evaluate(classifier, test, train)
    >>> figure = et.plots.risk_coverage(report)
    >>> figure.layout.xaxis.title.text, figure.layout.yaxis.title.text
    ('coverage', 'error')
    """
    import plotly.graph_objects as go

    canvas = Canvas(title, width, height).sized(560)
    check_input(report, "report", ClassificationReport, _EVALUATE)
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
    layout = base_layout(canvas, 380, l=16, r=24, t=48, b=16) | {
        "xaxis": {**share, "range": [0, 1.03], "title": {"text": "coverage"}},
        "yaxis": {**share, "range": [0, top], "showgrid": True, "title": {"text": "error"}},
        "annotations": notes,
    }
    return go.Figure([trace | hover(texts, "text") for trace in (bound, error)], layout)


def forest(
    fit: Regression | TopicEffects,
    *,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw the coefficients of a regression, except intercepts, with their intervals.

    Dots are corrected estimates, grey dots those of the gold rows alone, crosses of predictions.
    Of the effects on topics, dots are marginal effects in points, in a panel for each covariate.

    Parameters
    ----------
    fit : Regression or TopicEffects
        From `embedtopics.inference.regress` or `embedtopics.topics.effects`.
    title : str, optional
    width, height : int, optional
        Pixels; by default the width of the page, and the height that the content needs.

    Returns
    -------
    plotly.graph_objects.Figure

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo"))
    >>> effects = et.topics.effects(model, "source", topics=[0, 1, 2])
    >>> figure = et.plots.forest(effects, title="Topics by source")
    >>> len(figure.data), figure.layout.title.text
    (3, 'Topics by source')
    """
    import plotly.graph_objects as go

    canvas = Canvas(title, width, height)
    calls = "et.inference.regress(measurement, formula) or et.topics.effects(model, formula)"
    check_input(fit, "fit", (Regression, TopicEffects), calls)
    if isinstance(fit, TopicEffects):
        return _forest_of_topics(fit, canvas)

    table = fit.to_frame().query("term != 'intercept'").rename(columns={"effect": "estimate"})
    table = table.assign(n=fit.n_rows, n_gold=fit.n_gold)
    names = table["term"].tolist()
    if len(fit.classes) > 1:
        names = (table["outcome"] + ": " + table["term"]).tolist()

    formula = f"<b>{caption(fit.formula, 50)}</b><br>{small(fit.family)}"
    layout = base_layout(canvas, 30 * len(names) + 130, t=90, b=36) | {
        "annotations": [note(f"{formula}<br>{small(ESTIMATE_KEY)}", yshift=10)],
        "xaxis": _ZERO_LINE | {"range": _padded(_known_numbers(table))},
        "yaxis": name_axis(names, 26),
    }
    traces = estimate_traces(table, range(len(table)), is_time=False, form=".3g")
    return go.Figure(traces, layout)


def _forest_of_topics(fit: TopicEffects, canvas: Canvas) -> Figure:
    effects = fit.marginal_effects()
    panels = list(effects.groupby(["covariate", "level"], sort=False))
    heights = [26 * len(fit.topics) + 24] * len(panels)
    figure = panel_figure(canvas, heights, between=64, margin={"t": 60, "b": 28})

    # The levels of a covariate have one scale, so that their intervals can be compared.
    spans: dict[Any, list[float]] = {
        covariate: _padded(100 * rows[["effect", "low", "high"]].to_numpy())
        for covariate, rows in effects.groupby("covariate", sort=False)
    }

    notes = []
    for panel, ((name, level), frame) in enumerate(panels):
        # Shares from 0 to 1 as percentage points; no rows are labelled.
        points = 100 * frame[["effect", "low", "high"]].rename(columns={"effect": "estimate"})
        points = points.assign(n=fit.n_rows, n_gold=0)
        for trace in estimate_traces(points, range(len(points)), is_time=False, form="+.3g"):
            figure.add_trace(trace | axes_of(panel))

        x, y = axis_keys(panel)
        axis = _ZERO_LINE | {
            "range": spans[name],
            "tickformat": ".3~g",
            "tickangle": 0,
            "nticks": 5,
        }
        figure.update_layout({x: axis, y: name_axis(list(frame["topic_name"]), 36)})
        reference, unit = frame[["reference", "unit"]].iloc[0]
        about = f"against {reference}" if reference else f"for one {unit} more"
        text = heading(f"{name}: {level}".rstrip(": "), f"points {about}", 60)
        notes.append(panel_note(figure, panel, text))
    return figure.update_layout(annotations=notes, showlegend=False)


def _known_numbers(table: pd.DataFrame) -> Float64Array:
    """Return all estimates and ends of intervals in a table of coefficients."""
    columns = ["estimate", "low", "high", "gold", "gold_low", "gold_high", "naive"]
    present = [name for name in columns if name in table]
    return table[present].to_numpy(dtype=np.float64)


def _padded(values: Float64Array) -> list[float]:
    """Return a range of values and zero, so that no interval seems cut at an edge."""
    finite = values[np.isfinite(values)]
    low = float(finite.min(initial=0.0))
    high = float(finite.max(initial=0.0))
    edge = _EDGE * (high - low) or 1.0
    return [low - edge, high + edge]


def specifications(
    answers: Specifications,
    *,
    topic: int | None = None,
    quantity: str | None = None,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw the specification curve: the estimates in ascending order, above their choices.

    Blue estimates agree with the conclusion of the main study, whose estimate is the dashed line;
    grey ones do not. Specifications without a matching topic are left out.

    Parameters
    ----------
    answers : Specifications
        From `embedtopics.topics.specifications`.
    topic : int, optional
        Topic of the main study, by default the first of the summary.
    quantity : str, optional
        By default the first of the topic.
    title : str, optional
    width, height : int, optional
        Pixels; by default the width of the page, and the height that the content needs.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        If the topic or the quantity is not in the summary.

    Examples
    --------
    >>> import embedtopics as et
    >>> corpus = et.Corpus("embedtopics:demo", limit=200)
    >>> answers = et.topics.specifications(corpus, ["tfidf"], n_topics=[4, 6])
    >>> figure = et.plots.specifications(answers)
    >>> [name.strip() for name in figure.layout.yaxis2.ticktext]
    ['n_topics: 4', 'n_topics: 6']
    """
    canvas = Canvas(title, width, height)
    check_input(answers, "answers", Specifications, "et.topics.specifications(corpus)")
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
    figure = panel_figure(
        canvas,
        [300, 24 * max(len(levels), 1)],
        between=12,
        margin={"t": 64, "b": 28},
    )
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
    above = panel_note(figure, 0, heading(f"{row['topic_name']}: {row['quantity']}", about, 70))
    missing = int(row["n"] - row["n_matched"])
    below = note(
        f"{missing} without such a topic" if missing else "", 1, 0, across="right", up="top"
    )
    return figure.update_layout(annotations=[above, below], showlegend=False)
