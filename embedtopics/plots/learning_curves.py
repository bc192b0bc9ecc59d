"""Loss and metric along a training run, with what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.plots.palette import PALETTE, dark
from embedtopics.plots.text import FONT, INK, MUTED, cut, escape, wrap
from embedtopics.results import Curves, Diagnosis, StudentReport, TrainingReport

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["learning_curves"]

Float64Array = npt.NDArray[np.float64]

_VALIDATION, _SAMPLE, _METRIC = PALETTE[0], PALETTE[5], PALETTE[2]
_TRAINING = "#8a94a3"
_BAND = "#fff4d6"
_GRID = "#eef0f3"
_WINDOW = 0.08
"""Share of the run over which the training loss is smoothed."""

_SAYS = {
    "just right": ("learned", "late_slope", "gap"),
    "could learn more": ("late_slope", "learned"),
    "learns nothing": ("learned", "metric_gain"),
    "chaotic": ("back_and_forth", "together", "not_finite"),
    "overlearning": ("turn", "gap"),
    "uncertain": ("validations", "learned", "gap", "turn"),
}
"""Evidence that is written below each verdict."""


def learning_curves(
    report: TrainingReport | StudentReport | Curves,
    diagnosis: Diagnosis | None = None,
    *,
    width: int | None = None,
    height: int = 640,
) -> Figure:
    """Draw the losses and the metric of a training run, with the verdict and what it rests on.

    The training loss is drawn as noted, faint, and smoothed by a running mean. It holds dropout and
    batches that were just learned from; what the validation loss is to be compared with is the loss
    on the sample of training examples. The yellow band is the last third of the learning, in which
    a run that could learn more still falls; an arrow shows where the validation loss turned.

    Parameters
    ----------
    report : TrainingReport, StudentReport or Curves
        A report brings its own diagnosis and best step.
    diagnosis : Diagnosis, optional
        Of curves, from `training.read_curves`; without it, the curves are drawn alone.
    width, height : int
        Pixels.

    Returns
    -------
    plotly.graph_objects.Figure
        Epochs run to the right, up to where the run ended; steps stand beside the pointer.

    Raises
    ------
    InputError
        If given something else, or curves without validations.
    """
    import plotly.graph_objects as go

    curves, read, best = _parts(report, diagnosis)
    has_metric = bool(np.isfinite(curves.metric).any())
    heading = _heading(read)
    top = 24 + 19 * len(heading)
    low = 0.36 if has_metric else 0.0
    panels = {"yaxis": (low + 0.06 if has_metric else 0.0, 1.0), "yaxis2": (0.0, low - 0.02)}
    traces = _losses(curves)
    traces += _metric(curves) if has_metric else []
    traces += _best(curves, best, has_metric)
    epochs, span = _epochs(curves)
    axis = {"gridcolor": _GRID, "zeroline": False, "automargin": True}
    layout: dict[str, Any] = {
        "template": "none", "height": height, "width": width,
        "margin": {"l": 70, "r": 24, "t": top + 34, "b": 56},
        "font": {"family": FONT, "size": 13, "color": INK},
        "hoverlabel": {"bgcolor": "#fff", "font": {"family": FONT, "color": INK}},
        "hovermode": "closest",
        "legend": {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "font": {"size": 12}},
        "xaxis": {
            "title": {"text": epochs, "font": {"color": MUTED}}, "range": span,
            "showgrid": False, "zeroline": False, "anchor": "y2" if has_metric else "y",
        },
        "yaxis": {
            **axis, "domain": panels["yaxis"], "title": {"text": "loss", "font": {"color": MUTED}},
            "range": _range(curves),
        },
        "shapes": _band(curves, read), "annotations": heading + _turn(curves, read),
    }  # fmt: skip
    if has_metric:
        name = escape(cut(curves.metric_name or "metric", 40))
        layout["yaxis2"] = {
            **axis, "domain": panels["yaxis2"], "title": {"text": name, "font": {"color": MUTED}}
        }  # fmt: skip
    return go.Figure(data=traces, layout=layout)


def _parts(
    report: TrainingReport | StudentReport | Curves, diagnosis: Diagnosis | None
) -> tuple[Curves, Diagnosis | None, int | None]:
    best = None
    if isinstance(report, (TrainingReport, StudentReport)):
        best, curves = report.best_step, report.curves
        diagnosis = diagnosis or report.diagnosis
    elif isinstance(report, Curves):
        curves = report
    else:
        raise InputError(f"expected a TrainingReport or its Curves; got {type(report).__name__}")
    if not len(curves.validation_steps):
        raise InputError("expected curves with at least one validation; got none")
    return curves, diagnosis, best


def _losses(curves: Curves) -> list[dict[str, Any]]:
    traces = []
    if len(curves.training_steps):
        steps, loss = curves.training_steps, curves.training_loss
        traces = [
            _line(curves, steps, loss, "training loss, as noted", _TRAINING, width=1, opacity=0.3,
                  legend=False),
            _line(curves, steps, _smooth(steps, loss), "training loss, smoothed", _TRAINING),
        ]  # fmt: skip
    if np.isfinite(curves.sample_loss).any():
        name = f"{curves.n_sample:,} training examples, without dropout"
        traces.append(
            _line(curves, curves.validation_steps, curves.sample_loss, name, _SAMPLE,
                  dash="dash", symbol="diamond")
        )  # fmt: skip
    name = f"{curves.n_validation:,} validation examples"
    traces.append(
        _line(curves, curves.validation_steps, curves.validation_loss, name, _VALIDATION,
              symbol="circle", width=2.5)
    )  # fmt: skip
    return traces


def _metric(curves: Curves) -> list[dict[str, Any]]:
    name = escape(cut(curves.metric_name or "metric", 40))
    line = _line(curves, curves.validation_steps, curves.metric, name, _METRIC, symbol="circle",
                 width=2.5, legend=False)  # fmt: skip
    return [{**line, "yaxis": "y2"}]


def _line(
    curves: Curves, steps: npt.NDArray[np.int64], values: Float64Array, name: str, color: str,
    *, width: float = 2, opacity: float = 1.0, dash: str = "solid", symbol: str = "",
    legend: bool = True,
) -> dict[str, Any]:  # fmt: skip
    return {
        "type": "scatter", "mode": "lines+markers" if symbol else "lines", "name": name,
        "x": (steps / curves.steps_per_epoch).tolist(),
        "y": [float(value) if np.isfinite(value) else None for value in values],
        "line": {"color": color, "width": width, "dash": dash}, "opacity": opacity,
        "marker": {"symbol": symbol or "circle", "size": 6, "color": color},
        "customdata": steps.tolist(), "showlegend": legend,
        "hovertemplate": "epoch %{x:.2f}, step %{customdata:,}: %{y:.4g}"
        f"<extra>{name}</extra>",
    }  # fmt: skip


def _epochs(curves: Curves) -> tuple[str, list[float]]:
    """Return the title and the span of the axis: what was planned and not done is left out."""
    done = max([*curves.training_steps[-1:].tolist(), int(curves.validation_steps[-1])])
    end = max(1, done) / curves.steps_per_epoch
    title = "epochs"
    if done < curves.n_steps_planned:
        planned = curves.n_steps_planned / curves.steps_per_epoch
        title = f"epochs; {done / curves.steps_per_epoch:.3g} of {planned:.3g} planned"
    return title, [-0.015 * end, 1.015 * end]


def _best(curves: Curves, step: int | None, has_metric: bool) -> list[dict[str, Any]]:
    """Return a ring around the best validation, in each panel."""
    at = np.flatnonzero(curves.validation_steps == step)
    if len(at):
        best, name = int(at[0]), "kept: best validation"
    else:
        figures = curves.metric if has_metric else -curves.validation_loss
        if not np.isfinite(figures).any():
            return []
        best, name = int(np.nanargmax(figures)), "best validation"
    ring = {"symbol": "circle-open", "size": 15, "color": INK, "line": {"width": 2, "color": INK}}
    panels = [("y", curves.validation_loss)] + ([("y2", curves.metric)] if has_metric else [])
    return [
        {
            "type": "scatter", "mode": "markers", "name": name, "yaxis": axis, "marker": ring,
            "x": [float(curves.validation_steps[best] / curves.steps_per_epoch)],
            "y": [float(values[best])], "customdata": [int(curves.validation_steps[best])],
            "showlegend": axis == "y",
            "hovertemplate": f"{name}<br>epoch %{{x:.2f}}, step %{{customdata:,}}: %{{y:.4g}}"
            "<extra></extra>",
        }
        for axis, values in panels
        if np.isfinite(values[best])
    ]  # fmt: skip


def _smooth(steps: npt.NDArray[np.int64], loss: Float64Array) -> Float64Array:
    """Return the mean of the losses noted within a window around each step."""
    half = _WINDOW / 2 * max(int(steps[-1] - steps[0]), 1)
    left = np.searchsorted(steps, steps - half)
    right = np.searchsorted(steps, steps + half, side="right")
    total = np.concatenate([[0.0], np.cumsum(np.where(np.isfinite(loss), loss, 0.0))])
    known = np.concatenate([[0], np.cumsum(np.isfinite(loss))])
    counts = known[right] - known[left]
    return np.where(counts > 0, (total[right] - total[left]) / np.maximum(counts, 1), np.nan)


def _range(curves: Curves) -> list[float] | None:
    """Return the span of the losses that are compared; single batches may lie outside of it."""
    steps, loss = curves.training_steps, curves.training_loss
    smooth = _smooth(steps, loss) if len(steps) else np.empty(0)
    shown = np.concatenate([curves.validation_loss, curves.sample_loss, smooth])
    shown = shown[np.isfinite(shown)]
    if not len(shown):
        return None
    low, high = float(shown.min()), float(shown.max())
    edge = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
    return [low - edge, high + edge]


def _band(curves: Curves, read: Diagnosis | None) -> list[dict[str, Any]]:
    """Return the band over the last third of the learning."""
    for item in read.evidence if read else ():
        if item.name == "late_step":
            return [{
                "type": "rect", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below",
                "x0": item.value / curves.steps_per_epoch, "x1": item.high / curves.steps_per_epoch,
                "fillcolor": _BAND, "line": {"width": 0},
            }]  # fmt: skip
    return []


def _turn(curves: Curves, read: Diagnosis | None) -> list[dict[str, Any]]:
    """Return notes inside the drawing: the name of the band, and an arrow at a turn."""
    found = {item.name: item for item in read.evidence} if read else {}
    notes: list[dict[str, Any]] = []
    if "late_step" in found:
        notes.append({
            "x": found["late_step"].high / curves.steps_per_epoch, "y": 1, "yref": "paper",
            "text": "last third of the learning", "showarrow": False, "xanchor": "right",
            "yanchor": "top", "font": {"size": 11, "color": MUTED},
        })  # fmt: skip
    if read is None or read.verdict != "overlearning" or "turn_step" not in found:
        return notes
    step = found["turn_step"].value
    at = int(np.argmin(np.abs(curves.validation_steps - step)))
    notes.append({
        "x": float(curves.validation_steps[at] / curves.steps_per_epoch),
        "y": float(curves.validation_loss[at]), "text": "turns here", "showarrow": True,
        "arrowhead": 2, "arrowwidth": 1.5, "arrowcolor": dark(_VALIDATION), "ax": 0, "ay": -46,
        "font": {"size": 12, "color": dark(_VALIDATION)},
        "bgcolor": "rgba(255,255,255,0.8)",
    })  # fmt: skip
    return notes


def _heading(read: Diagnosis | None) -> list[dict[str, Any]]:
    """Return the verdict, what it rests on and the first advice, one annotation a line."""
    if read is None:
        return []
    sure = f"{100 * read.confidence:.0f} % of the redrawn curves agree"
    if read.verdict == "uncertain":
        sure = "the curves do not say enough" if read.confidence == 1 else "noise would decide"
    lines = [
        f'<b>{escape(read.verdict.capitalize())}</b> <span style="color:{MUTED}">{sure}</span>'
    ]
    known = {item.name: item.says for item in read.evidence}
    said = [known[name] for name in _SAYS[read.verdict] if name in known][:2]
    lines += [escape(line) for text in said for line in wrap(text, 120, 1)]
    lines += [f"→ {escape(line)}" for text in read.advice[:1] for line in wrap(text, 116, 1)]
    return [
        {
            "x": 0, "y": 1, "xref": "paper", "yref": "paper", "text": line, "showarrow": False,
            "xanchor": "left", "yanchor": "bottom", "align": "left",
            "yshift": 30 + 19 * (len(lines) - 1 - number),
            "font": {"size": 16 if number == 0 else 13, "color": INK},
        }
        for number, line in enumerate(lines)
    ]  # fmt: skip
