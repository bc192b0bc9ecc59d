"""Training: losses and metric along a run, and scores before and after."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from embedtopics.comparison.results import EncoderScores
from embedtopics.errors import InputError
from embedtopics.plots._colors import PALETTE, dark
from embedtopics.plots._inputs import check_input
from embedtopics.plots._theme import (
    GREY,
    INK,
    MUTED,
    Canvas,
    Spec,
    axes_of,
    caption,
    cut,
    empty_figure,
    escape,
    interval_dots,
    name_axis,
    note,
    panel_figure,
    panel_note,
    scatter,
    wrap,
)
from embedtopics.protocols import Float64Array, Int64Array
from embedtopics.training.results import Curves, Diagnosis, TrainingReport

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_VALIDATION, _SAMPLE, _METRIC = PALETTE[0], PALETTE[5], PALETTE[2]
_WINDOW = 0.08
"""Share of the run over which the training loss is smoothed."""

_EVIDENCE = {
    "just right": ("learned", "metric_gain", "late_slope"),
    "could learn more": ("learned", "late_slope"),
    "learns nothing": ("learned", "metric_gain"),
    "chaotic": ("collapse", "swings", "not_finite"),
    "overlearning": ("turn", "gap"),
    "uncertain": ("validations", "learned", "gap", "turn"),
}
"""Evidence to write below each verdict."""

_FIT = "et.training.fit(encoder, examples, out=folder)"
_LEGEND: Spec = {"x": 0, "y": 0, "yref": "container", "yanchor": "bottom"}
_HEIGHT, _CHARACTERS = 640, 58
"""Pixels of the figure, and characters of a line above it."""


def learning_curves(
    report: TrainingReport,
    *,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw the losses and the metric of a training run, with the verdict and its evidence.

    The training loss is drawn as logged (faint) and smoothed by a running mean. It includes dropout
    and batches that the model has just seen; compare the validation loss with the loss on the
    sample of training examples. The yellow band is the last third of the run, in which a run that
    could learn more still falls; an arrow shows where the validation loss turned.

    Parameters
    ----------
    report : TrainingReport
        From `embedtopics.training.fit`.
    title : str, optional
    width, height : int, optional
        Pixels; by default the width of the page, and the height that the content needs.

    Returns
    -------
    plotly.graph_objects.Figure
        The axis shows epochs up to the end of the run; hovering shows steps.

    Raises
    ------
    InputError
        If the report has no validation.

    Examples
    --------
    The report of a run that `training.fit` wrote beside its encoder is read by
    ``TrainingReport.load(folder)``; this one is made by hand:

    >>> import numpy as np
    >>> import pandas as pd
    >>> import embedtopics as et
    >>> curves = et.training.results.Curves(
    ...     training_steps=np.array([10, 20, 30, 40]),
    ...     training_loss=np.array([1.0, 0.7, 0.6, 0.5]),
    ...     validation_steps=np.array([0, 20, 40]),
    ...     validation_loss=np.array([1.1, 0.8, 0.7]),
    ...     sample_loss=np.array([1.1, 0.7, 0.6]),
    ...     metric=np.array([0.60, 0.70, 0.72]),
    ...     metric_name="Spearman correlation",
    ...     steps_per_epoch=20,
    ...     n_steps_planned=40,
    ...     n_validation=100,
    ...     n_sample=50,
    ... )
    >>> evidence = pd.DataFrame(columns=["name", "value", "low", "high", "threshold", "says"])
    >>> diagnosis = et.training.results.Diagnosis("just right", 0.9, {}, evidence, ())
    >>> report = et.training.TrainingReport(
    ...     objective="graded: cosine", base="all-MiniLM-L6-v2", folder="mine", settings={},
    ...     data={}, curves=curves, diagnosis=diagnosis, before_after=pd.DataFrame(), best_step=40,
    ...     n_steps=40, stopped="", seconds=60.0, examples_per_second=10.0,
    ... )
    >>> figure = et.plots.learning_curves(report, title="First run")
    >>> figure.layout.yaxis2.title.text, figure.layout.xaxis2.title.text
    ('Spearman correlation', 'epochs')
    """
    canvas = Canvas(title, width, height)
    check_input(report, "report", TrainingReport, _FIT)
    curves, diagnosis = report.curves, report.diagnosis
    if not len(curves.validation_steps):
        raise InputError("report", "one with at least one validation", found="none")
    has_metric = bool(np.isfinite(curves.metric).any())
    heading = _heading(diagnosis)
    margin = {"l": 70, "r": 24, "t": 40 + 19 * len(heading), "b": 130}
    inner = _HEIGHT - margin["t"] - margin["b"]
    heights = [0.58 * inner, 0.34 * inner] if has_metric else [inner]
    figure = panel_figure(
        canvas,
        heights,
        between=0.08 * inner,
        margin=margin,
        shared_xaxes=True,
    )
    metric = caption(curves.metric_name or "metric", 40)
    traces = _losses(curves)
    if has_metric:
        style: Spec = {"symbol": "circle", "width": 2.5, "legend": False}
        line = _line(curves, curves.validation_steps, curves.metric, metric, _METRIC, **style)
        traces.append(line | axes_of(1))
    figure.add_traces(traces + _best(curves, report.best_step, has_metric))
    figure.update_yaxes(showgrid=True, fixedrange=False)
    # The axis ends with the run; its title names the plan.
    n_steps = max([*curves.training_steps[-1:].tolist(), int(curves.validation_steps[-1])])
    end = max(1, n_steps) / curves.steps_per_epoch
    axis_title = "epochs"
    if n_steps < curves.n_steps_planned:
        planned = curves.n_steps_planned / curves.steps_per_epoch
        axis_title = f"epochs; {n_steps / curves.steps_per_epoch:.3g} of {planned:.3g} planned"
    figure.update_xaxes(range=[-0.015 * end, 1.015 * end], fixedrange=False)
    figure.update_xaxes(title=axis_title, row=len(heights))
    figure.update_yaxes(title="loss", range=_range(curves), row=1)
    if has_metric:
        figure.update_yaxes(title=metric, row=2)
    shapes, notes = _remarks(curves, diagnosis)
    return figure.update_layout(
        annotations=heading + notes, shapes=shapes, showlegend=True, legend=_LEGEND
    )


def _losses(curves: Curves) -> list[Spec]:
    traces = []
    steps, loss, validated = curves.training_steps, curves.training_loss, curves.validation_steps
    if len(steps):
        faint: Spec = {"width": 1, "opacity": 0.3, "legend": False}
        traces.append(_line(curves, steps, loss, "training loss, as logged", GREY, **faint))
        smooth = _smooth(steps, loss)
        traces.append(_line(curves, steps, smooth, "training loss, smoothed", GREY))
    if np.isfinite(curves.sample_loss).any():
        name = f"{curves.n_sample:,} training examples, without dropout"
        dashed: Spec = {"dash": "dash", "symbol": "diamond"}
        traces.append(_line(curves, validated, curves.sample_loss, name, _SAMPLE, **dashed))
    name = f"{curves.n_validation:,} validation examples"
    dots: Spec = {"symbol": "circle", "width": 2.5}
    traces.append(_line(curves, validated, curves.validation_loss, name, _VALIDATION, **dots))
    return traces


def _line(
    curves: Curves, steps: Int64Array, values: Float64Array, name: str, color: str,
    *, width: float = 2, opacity: float = 1.0, dash: str = "solid", symbol: str = "",
    legend: bool = True,
) -> Spec:  # fmt: skip
    return scatter(
        (steps / curves.steps_per_epoch).tolist(),
        [float(value) if np.isfinite(value) else None for value in values],
        "lines+markers" if symbol else "lines",
        name=name,
        line={"color": color, "width": width, "dash": dash},
        opacity=opacity,
        marker={"symbol": symbol or "circle", "size": 6, "color": color},
        customdata=steps.tolist(),
        showlegend=legend,
        hovertemplate=f"epoch %{{x:.2f}}, step %{{customdata:,}}: %{{y:.4g}}<extra>{name}</extra>",
    )


def _best(curves: Curves, step: int, has_metric: bool) -> list[Spec]:
    """Return a ring around the best validation, in each panel."""
    positions = np.flatnonzero(curves.validation_steps == step)
    if not len(positions):
        return []
    best, name = int(positions[0]), "kept: best validation"
    marker = {"symbol": "circle-open", "size": 15, "color": INK, "line": {"width": 2}}
    about = f"{name}<br>epoch %{{x:.2f}}, step %{{customdata:,}}: %{{y:.4g}}<extra></extra>"
    ring: Spec = {"name": name, "marker": marker, "hovertemplate": about}
    x = [float(curves.validation_steps[best] / curves.steps_per_epoch)]
    panels = [curves.validation_loss, curves.metric][: 1 + has_metric]
    return [
        scatter(x, [float(values[best])], **ring, customdata=[step], showlegend=not panel)
        | axes_of(panel)
        for panel, values in enumerate(panels)
        if np.isfinite(values[best])
    ]


def _smooth(steps: Int64Array, loss: Float64Array) -> Float64Array:
    """Return the mean of the losses logged within a window around each step."""
    half = _WINDOW / 2 * max(int(steps[-1] - steps[0]), 1)
    left = np.searchsorted(steps, steps - half)
    right = np.searchsorted(steps, steps + half, side="right")
    total = np.concatenate([[0.0], np.cumsum(np.where(np.isfinite(loss), loss, 0.0))])
    finite = np.concatenate([[0], np.cumsum(np.isfinite(loss))])
    counts = finite[right] - finite[left]
    return np.where(counts > 0, (total[right] - total[left]) / np.maximum(counts, 1), np.nan)


def _range(curves: Curves) -> list[float] | None:
    """Return the span of the compared losses; losses of single batches may exceed it."""
    steps, loss = curves.training_steps, curves.training_loss
    smooth = _smooth(steps, loss) if len(steps) else np.empty(0)
    shown = np.concatenate([curves.validation_loss, curves.sample_loss, smooth])
    shown = shown[np.isfinite(shown)]
    if not len(shown):
        return None
    low, high = float(shown.min()), float(shown.max())
    edge = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
    return [low - edge, high + edge]


def _remarks(curves: Curves, diagnosis: Diagnosis) -> tuple[list[Spec], list[Spec]]:
    """Return a band over the last third of the run with its caption, and an arrow at a turn."""
    evidence: Any = diagnosis.evidence.set_index("name")
    shapes, notes = [], []
    if "late_step" in evidence.index:
        begin = evidence.at["late_step", "value"] / curves.steps_per_epoch
        end = evidence.at["late_step", "high"] / curves.steps_per_epoch
        band = {"type": "rect", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
        shapes = [{**band, "x0": begin, "x1": end, "fillcolor": "#fff4d6", "line": {"width": 0}}]
        name = "last third of the run"
        notes = [note(name, end, across="right", up="top", size=11, color=MUTED, xref="x")]
    if diagnosis.verdict == "overlearning" and "turn_step" in evidence.index:
        turn_step = evidence.at["turn_step", "value"]
        turn = int(np.argmin(np.abs(curves.validation_steps - turn_step)))
        color = dark(_VALIDATION)
        arrow = {"showarrow": True, "arrowhead": 2, "arrowwidth": 1.5, "arrowcolor": color}
        x = float(curves.validation_steps[turn] / curves.steps_per_epoch)
        place = {"x": x, "ax": 0, "y": float(curves.validation_loss[turn]), "ay": -46}
        text = {"text": "turns here", "font": {"size": 12, "color": color}}
        notes.append({**arrow, **place, **text, "bgcolor": "rgba(255,255,255,0.8)"})
    return shapes, notes


def _heading(diagnosis: Diagnosis) -> list[Spec]:
    """Return the verdict, its evidence and the first advice as annotations, one a line."""
    sure = f"{100 * diagnosis.confidence:.0f} % of the resampled curves agree"
    if diagnosis.verdict == "uncertain":
        sure = "too little evidence" if diagnosis.confidence == 1 else "within the noise"
    verdict = escape(diagnosis.verdict.capitalize())
    lines = [f"<b>{verdict}</b>", f'<span style="color:{MUTED}">{sure}</span>']
    says = dict(zip(diagnosis.evidence["name"], diagnosis.evidence["says"], strict=True))
    texts = [says[name] for name in _EVIDENCE[diagnosis.verdict] if name in says][:2]
    texts += [f"→ {text}" for text in diagnosis.advice[:1]]
    lines += [escape(line) for text in texts for line in wrap(text, _CHARACTERS, 3)]
    return [
        note(line, yshift=12 + 19 * (len(lines) - 1 - i), size=13 if i else 16)
        for i, line in enumerate(lines)
    ]


_ROW = 48
_VERDICTS = {
    "better": (PALETTE[0], "triangle-right"),
    "worse": (PALETTE[5], "triangle-left"),
    "no difference shown": (GREY, "circle"),
    "descriptive": ("#3d4754", "circle"),
}
"""Colour and shape of each verdict."""


def before_after(
    report: TrainingReport | EncoderScores,
    *,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw the scores of an encoder before and after fine-tuning.

    Above: the differences of scores with their intervals; to the right of zero the tuned encoder is
    better. Below: measures that are neither good nor bad, such as the share of neighbours kept,
    with the value before (hollow) and after.

    Parameters
    ----------
    report : TrainingReport or EncoderScores
        From `embedtopics.training.fit` or `embedtopics.comparison.evaluate_encoders`.
    title : str, optional
    width, height : int, optional
        Pixels; by default the width of the page, and the height that the content needs.

    Returns
    -------
    plotly.graph_objects.Figure

    Examples
    --------
    >>> import embedtopics as et
    >>> corpus = et.Corpus("embedtopics:demo", limit=200)
    >>> words = et.encoders.TfidfEncoder(n_components=50)
    >>> encoders = {"random": et.encoders.RandomProjectionEncoder(), "words": words}
    >>> scores = et.comparison.evaluate_encoders(
    ...     encoders, corpus=corpus, labels="theme", n_resamples=100
    ... )
    >>> figure = et.plots.before_after(scores)
    >>> [note.text for note in figure.layout.annotations]
    ['<b>difference</b> (95 % interval)', '<b>descriptive measures</b>: before (hollow), after']
    """
    canvas = Canvas(title, width, height)
    check_input(report, "report", (TrainingReport, EncoderScores), _FIT)
    if isinstance(report, EncoderScores):
        changes = _changes_of(report)
    else:
        changes = list(report.before_after.itertuples())
    tasks = list(dict.fromkeys(change.task for change in changes))
    ordered = sorted(changes, key=lambda change: tasks.index(change.task))
    scores = [change for change in ordered if change.verdict != "descriptive"]
    levels = [change for change in ordered if change.verdict == "descriptive"]
    parts = [part for part in (scores, levels) if part]
    if not parts:
        return empty_figure(canvas, "Nothing was compared")
    heights = [max(len(part), 2 if len(parts) == 1 else 1) * _ROW for part in parts]
    margin = {"r": 24, "t": 48, "b": 68}
    figure = panel_figure(canvas, heights, between=76, margin=margin)
    legend = _LEGEND | {"itemclick": False, "itemdoubleclick": False}
    figure.update_layout(legend=legend, showlegend=True)
    for panel, part in enumerate(parts):
        text = "<b>descriptive measures</b>: before (hollow), after"
        traces, reach = _positions(part), (0.0, 1.0, 0.02)
        if part is scores:
            text = "<b>difference</b> (95 % interval)"
            traces, reach = _differences(part), (0.0, 0.0, 0.08)
        figure.add_traces([trace | axes_of(panel) for trace in traces])
        figure.add_annotation(panel_note(figure, panel, text, yshift=8))
        figure.update_yaxes(name_axis(_names(part), None), row=panel + 1)
        figure.update_xaxes(range=_reach(traces, *reach), row=panel + 1)
    zero = {"zeroline": True, "zerolinecolor": "#6b7684", "zerolinewidth": 1.5}
    return figure.update_xaxes(zero, showgrid=True, nticks=5, tickangle=0, tickfont_size=11)


Change: TypeAlias = Any
"""A row of a table of changes."""


def _changes_of(scores: EncoderScores) -> list[Change]:
    """Return the differences of encoders; with several encoders, a task names the encoder too."""
    frame = scores.differences().assign(n_test_evaluations=0)  # no log of a test set
    if frame["encoder"].nunique() > 1:
        frame["task"] = frame["encoder"] + ", " + frame["task"]
    return list(frame.itertuples())


def _names(changes: Sequence[Change]) -> list[str]:
    """Return the metric of each row, and the task in its first row."""
    names, last = [], None
    for change in changes:
        task = f"<b>{caption(change.task, 24)}</b><br>" if change.task != last else ""
        unknown = "" if math.isfinite(change.difference) else " (unknown)"
        names.append(task + "<br>".join(map(escape, wrap(change.metric, 24, 2))) + unknown)
        last = change.task
    return names


def _reach(traces: Sequence[Spec], low: float, high: float, share: float) -> tuple[float, float]:
    """Return a span that holds all points and intervals, and `low` and `high`."""
    ends = [low, high]
    for trace in traces:
        bars = trace.get("error_x", {"array": [0] * len(trace["x"])})
        for x, up, down in zip(
            trace["x"], bars["array"], bars.get("arrayminus", bars["array"]), strict=True
        ):
            ends += [] if x is None else [x, x + (up or 0), x - (down or 0)]
    low, high = min(ends), max(ends)
    edge = share * (high - low) or 0.01
    return low - edge, high + edge


def _differences(changes: Sequence[Change]) -> list[Spec]:
    """Return a trace for each verdict."""
    traces = []
    for verdict in list(_VERDICTS)[:3]:
        rows = [i for i, change in enumerate(changes) if change.verdict == verdict]
        if rows:
            subset = [changes[i] for i in rows]
            traces.append(_dots(rows, subset, [change.difference for change in subset], verdict))
    return traces


def _positions(changes: Sequence[Change]) -> list[Spec]:
    """Return the values before (hollow) and after."""
    rows = list(range(len(changes)))
    after = _dots(rows, changes, [change.after for change in changes], "descriptive")
    rim = {"width": 2, "color": _VERDICTS["descriptive"][0]}
    before = scatter(
        [_finite(change.before) for change in changes],
        rows,
        hoverinfo="skip",
        showlegend=False,
        marker={"size": 10, "color": "#fff", "line": rim},
    )
    return [before, after | {"showlegend": False}]


def _dots(
    rows: Sequence[int], changes: Sequence[Change], values: Sequence[float], verdict: str
) -> Spec:
    """Return values with the intervals of their differences."""
    color, symbol = _VERDICTS[verdict]
    ends = (
        [_finite(change.difference - change.low) for change in changes],
        [_finite(change.high - change.difference) for change in changes],
    )
    return interval_dots(
        [_finite(value) for value in values],
        rows,
        ends,
        [_hover(change) for change in changes],
        name=verdict,
        showlegend=True,
        marker={"size": 11, "color": color, "symbol": symbol},
        error_x={"thickness": 2, "color": color},
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _hover(change: Change) -> str:
    difference, low, high = (_spell(v, "+") for v in (change.difference, change.low, change.high))
    uses = f", test set log: use {change.n_test_evaluations:,}" if change.n_test_evaluations else ""
    lines = [
        f"<b>{caption(change.task, 40)}</b>  {caption(change.metric, 60)}",
        f"{_spell(change.before)} before, {_spell(change.after)} after: {difference} "
        f"({low} to {high})",
        f"<b>{caption(change.verdict, 40)}</b>, {change.n:,} examples{uses}",
        *(escape(line) for line in wrap(cut(change.note, 400), 72)),
    ]
    return "<br>".join(lines)


def _spell(value: float, sign: str = "") -> str:
    return f"{value:{sign}.3f}" if math.isfinite(value) else "unknown"
