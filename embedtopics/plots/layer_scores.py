"""What a probe reads at each layer, beside what it would read without the encoder."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from embedtopics.errors import InputError
from embedtopics.plots.layer_curves import (
    GRID,
    Line,
    end_names,
    layer_axis,
    spell,
    traces_of,
    value_range,
)
from embedtopics.plots.palette import PALETTE, dark
from embedtopics.plots.panels import (
    ASSUMED_WIDTH,
    Panels,
    checked_sizes,
    chosen_columns,
    panel_layout,
)
from embedtopics.plots.text import INK, LEFT_TO_RIGHT, MUTED, cut, escape
from embedtopics.results import LayerScores, ScalarMix
from embedtopics.results.probing import LOWER_IS_BETTER

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["layers"]

_MAIN, _STRIP, _BETWEEN = 300, 64, 30
"""Pixels of a panel: the scores, and each strip below them."""
_NAMES = 164
"""Pixels for the names at the right ends."""

# name, colour, dash, symbol; those of no layer have no symbol. The order is that of the names.
_KINDS = {
    "probe": ("probe", PALETTE[0], "solid", "circle"),
    "mlp": ("MLP probe", PALETTE[6], "solid", "diamond"),
    "cumulative mix": ("mix up to here", PALETTE[9], "solid", "square"),
    "control": ("control", PALETTE[5], "dash", "x"),
    "random model": ("random model", PALETTE[11], "dot", "triangle-up"),
    "scalar mix": ("scalar mix", PALETTE[3], "solid", ""),
    "combination": ("combination", PALETTE[13], "solid", ""),
    "embedding layer": ("embedding layer", PALETTE[2], "dashdot", ""),
    "word type": ("word type", PALETTE[8], "dash", ""),
    "majority": ("majority", "#6b7684", "dot", ""),
}
_SELECTIVITY = {"probe": PALETTE[0], "mlp": PALETTE[6]}


@dataclass(frozen=True)
class _Panel:
    """What is drawn of one task."""

    scores: LayerScores
    lines: list[Line]
    selectivity: list[Line]
    mix: ScalarMix | None

    @property
    def layers(self) -> list[int]:
        found = {n for line in (*self.lines, *self.selectivity) for n in line.layers}
        return sorted(found | set(self.mix.layers if self.mix else ())) or [0]


def layers(
    scores: LayerScores | Sequence[LayerScores],
    metric: str = "accuracy",
    *,
    same_scale: bool = True,
    columns: int | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw what a probe reads at each layer, beside its controls and baselines.

    Bands are 95 % intervals. The ring is around the layer with the best figure on the test part,
    which by that choice is on the high side (`LayerScores.chosen` is not). Below the scores stand
    the selectivity, which is what the probe reads beyond a control task (Hewitt & Liang 2019),
    where it was measured, and the weights of the scalar mix (Peters et al. 2018), with the
    extremes over seeds. A dotted line stands at the
    expected layer (Tenney et al. 2019).

    Parameters
    ----------
    scores : LayerScores or sequence of LayerScores
        From `embedtopics.probing.probe`; several are a panel each.
    metric : str
    same_scale : bool
        Whether the panels share one scale.
    columns : int, optional
    width, height : int, optional
        Pixels. Without a width the figure fills its place, and is laid out for 1,100.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        If there are no scores, or none of that metric.
    """
    import plotly.graph_objects as go

    checked_sizes(width, height)
    found = [_panel(one, metric) for one in _checked(scores)]
    n_strips = max(bool(one.selectivity) + bool(one.mix) for one in found)
    panels = _places(len(found), n_strips, columns, width, height)
    ranges = [value_range(one.lines, head=0.08) for one in found]
    if same_scale:
        ranges = [(min(low for low, _ in ranges), max(high for _, high in ranges))] * len(found)
    traces: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    notes: list[dict[str, Any]] = []
    for place, one in enumerate(found):
        parts = _parts(panels, place, one, n_strips)
        drawn = _drawn(one, metric, ranges[place], parts, 3 * place + 1)
        traces += drawn[0]
        axes |= drawn[1]
        notes += drawn[2]
        notes.append(panels.heading(place, _heading(one.scores, panels.width + _NAMES), 6))
    layout = {**panel_layout(panels, width, height, notes), **axes, "bargap": 0.3}
    return go.Figure(data=traces, layout={**layout, "showlegend": False})


def _checked(scores: LayerScores | Sequence[LayerScores]) -> list[LayerScores]:
    given = [scores] if isinstance(scores, LayerScores) else list(scores)
    if not given:
        raise InputError("expected LayerScores from probing.probe, got none")
    for one in given:
        if not isinstance(one, LayerScores):
            raise InputError(
                f"expected LayerScores from probing.probe, or several; got {type(one).__name__}"
            )
    return given


def _panel(scores: LayerScores, metric: str) -> _Panel:
    kinds = list(dict.fromkeys(s.what for s in scores.scores if s.metric == metric))
    if not kinds:
        known = ", ".join(sorted({s.metric for s in scores.scores})) or "none"
        task = cut(scores.task, 60)
        raise InputError(f"expected one of the metrics of {task!r}, {known}; got {metric!r}")
    order = list(_KINDS)
    kinds.sort(key=lambda kind: order.index(kind) if kind in order else len(order))
    lines = [_line(scores, kind, metric) for kind in kinds]
    chosen: list[Line] = []
    if metric in ("accuracy", "macro F1"):
        own = [k for k in _SELECTIVITY if scores.of(k, "selectivity")]
        chosen = [_line(scores, kind, "selectivity") for kind in own]
    return _Panel(scores, lines, chosen, scores.mix)


def _line(scores: LayerScores, kind: str, metric: str) -> Line:
    found = scores.of(kind, metric)
    plain = (escape(cut(kind, 24)), "#4d5866", "solid", "circle")
    name, color, dash, symbol = _KINDS.get(kind, plain)
    by_layer = [score for score in found if score.layer is not None]
    # one figure of one layer, such as that of the embeddings, is a level to compare with
    is_level = not by_layer or (kind not in ("probe", "mlp") and len(by_layer) == 1)
    used = found[-1:] if is_level else by_layer
    return Line(
        name, color, dash, "" if is_level else symbol or "circle",
        () if is_level else tuple(s.layer for s in used if s.layer is not None),
        tuple(s.value for s in used), tuple(s.low for s in used), tuple(s.high for s in used),
        tuple(s.n for s in used),
    )  # fmt: skip


def _places(
    n: int, n_strips: int, columns: int | None, width: int | None, height: int | None
) -> Panels:
    inner = (width or ASSUMED_WIDTH) - 60 - _NAMES
    gap = _NAMES + 56
    n_columns = chosen_columns(n, columns, inner, 280, gap)
    across = (inner - (n_columns - 1) * gap) / n_columns
    up: float = _MAIN + n_strips * (_STRIP + _BETWEEN)
    head, foot, top, bottom = 34, 52, 10, 4
    if height is not None:
        up = max((height - top - bottom) / -(-n // n_columns) - head - foot, 120)
    return Panels(
        n, n_columns, max(across, 80), up, head=head, foot=foot, gap=gap, left=60, right=_NAMES,
        top=top, bottom=bottom,
    )  # fmt: skip


def _parts(
    panels: Panels, place: int, one: _Panel, n_strips: int
) -> list[tuple[list[float], list[float], float]]:
    """Return the domains and heights of the scores and of the strips that a task has."""
    across, (bottom, top) = panels.domain(place)
    share = (top - bottom) / panels.height
    strip = min(_STRIP, 0.16 * panels.height)
    between = min(_BETWEEN, 0.075 * panels.height)
    main = panels.height - n_strips * (strip + between)
    parts = [(across, [top - main * share, top], main)]
    for _ in range(bool(one.selectivity) + bool(one.mix)):
        upper = parts[-1][1][0] - between * share
        parts.append((across, [max(upper - strip * share, 0.0), upper], strip))
    return parts


def _drawn(
    one: _Panel, metric: str, span: tuple[float, float],
    parts: Sequence[tuple[list[float], list[float], float]], first: int,
) -> tuple[list[dict[str, Any]], dict[str, Any], list[dict[str, Any]]]:  # fmt: skip
    """Return the traces, axes and notes of a task."""
    numbers = [str(first + i) if first + i > 1 else "" for i in range(len(parts))]
    ends = (min(one.layers) - 0.4, max(one.layers) + 0.4)
    pixels = (parts[0][0][1] - parts[0][0][0]) * ASSUMED_WIDTH
    axes: dict[str, Any] = {}
    for (across, up, _), number in zip(parts, numbers, strict=True):
        axes[f"xaxis{number}"] = layer_axis(
            one.layers, across, number, pixels, named=number == numbers[-1]
        )
        axes[f"yaxis{number}"] = {
            "domain": up, "anchor": f"x{number}", "gridcolor": GRID, "zeroline": False,
            "tickfont": {"size": 11}, "nticks": 7 if number == numbers[0] else 3,
        }  # fmt: skip
    axes[f"yaxis{numbers[0]}"] |= {
        "range": list(span), "title": {"text": escape(cut(metric, 40)), "standoff": 6,
                                       "font": {"color": MUTED, "size": 12}},
    }  # fmt: skip
    unit = "test units"
    traces = traces_of(one.lines, ends, numbers[0], unit)
    notes = end_names(one.lines, span, (parts[0][0], parts[0][1]), parts[0][2])
    best = _best(one, metric, numbers[0])
    expected = _expected(one.scores, span, numbers[0])
    traces = [*expected[0], *traces, *best[0]]
    notes = [*notes, *expected[1], *best[1]]
    axes_of_strips = numbers[1:]
    for number, (across, up, _) in zip(axes_of_strips, parts[1:], strict=True):
        is_selectivity = bool(one.selectivity) and number == axes_of_strips[0]
        name = "selectivity" if is_selectivity else "weights of the scalar mix"
        if is_selectivity:
            traces += traces_of(one.selectivity, ends, number, unit)
            low, high = value_range(one.selectivity)
            axes[f"yaxis{number}"] |= {"range": [min(low, 0.0), max(high, 0.0)]}
        elif one.mix:
            traces += _weights(one.mix, number)
            axes[f"yaxis{number}"] |= {"rangemode": "tozero"}
        notes.append(_strip_name(name, across, up))
    return traces, axes, notes


def _best(
    one: _Panel, metric: str, number: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a ring around the best layer of the probe, and what it is."""
    curves = [line for line in one.lines if line.layers and line.name == "probe"]
    curves = curves or [line for line in one.lines if line.layers]
    known = [
        (value, layer)
        for layer, value in zip(curves[0].layers, curves[0].values, strict=True)
        if math.isfinite(value)
    ] if curves else []  # fmt: skip
    if len(known) < 2:
        return [], []
    sign = -1 if metric in LOWER_IS_BETTER else 1
    value, layer = max(known, key=lambda pair: (sign * pair[0], -pair[1]))
    color = curves[0].color
    ring = {
        "type": "scatter", "mode": "markers", "x": [layer], "y": [value], "hoverinfo": "skip",
        "marker": {"symbol": "circle-open", "size": 16, "color": INK, "line": {"width": 2}},
        "showlegend": False, "name": "best layer", "xaxis": f"x{number}", "yaxis": f"y{number}",
    }  # fmt: skip
    middle = (one.layers[0] + one.layers[-1]) / 2
    note = {
        "x": layer, "y": value, "xref": f"x{number}", "yref": f"y{number}",
        "text": f"layer {layer}: {spell(value)}", "showarrow": False,
        "yshift": 20, "xanchor": "left" if layer <= middle else "right",
        "font": {"size": 12, "color": dark(color), "weight": 650},
        "bgcolor": "rgba(255,255,255,0.75)",
    }  # fmt: skip
    return [ring], [note]


def _expected(
    scores: LayerScores, span: tuple[float, float], number: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a dotted line at the expected layer, with its name at its foot."""
    at = scores.expected_layer
    if not math.isfinite(at):
        return [], []
    low, high = scores.expected_layer_interval
    within = f" ({low:.1f} to {high:.1f})" if math.isfinite(low) and math.isfinite(high) else ""
    line = {
        "type": "scatter", "mode": "lines", "x": [at, at], "y": list(span), "hoverinfo": "skip",
        "line": {"color": MUTED, "width": 1.2, "dash": "dot"}, "showlegend": False,
        "name": "expected layer", "xaxis": f"x{number}", "yaxis": f"y{number}",
    }  # fmt: skip
    note = {
        "x": at, "y": 0, "xref": f"x{number}", "yref": f"y{number} domain", "yanchor": "bottom",
        "xanchor": "left", "xshift": 3, "showarrow": False,
        "text": f"expected layer {at:.1f}{within}", "font": {"size": 11, "color": MUTED},
        "bgcolor": "rgba(255,255,255,0.75)",
    }  # fmt: skip
    return [line], [note]


def _weights(mix: ScalarMix, number: str) -> list[dict[str, Any]]:
    """Return the mean weight of each layer as bars, with the extremes over the seeds."""
    mean = mix.weights.mean(axis=0)
    low, high = mix.weights.min(axis=0), mix.weights.max(axis=0)
    n = len(mix.weights)
    seeds = "1 seed" if n == 1 else f"{n} seeds"
    return [
        {
            "type": "bar", "x": list(mix.layers), "y": mean.tolist(), "showlegend": False,
            "marker": {"color": PALETTE[3], "opacity": 0.75}, "name": "weight",
            "error_y": {
                "type": "data", "symmetric": False, "array": (high - mean).tolist(),
                "arrayminus": (mean - low).tolist(), "thickness": 1.2, "width": 2, "color": INK,
                "visible": n > 1,
            },
            "hovertext": [
                f"<b>layer {layer}</b><br>{m:.3f}"
                + (f" ({a:.3f} to {b:.3f})" if n > 1 else "") + f"<br>{seeds}"
                for layer, m, a, b in zip(mix.layers, mean, low, high, strict=True)
            ],
            "hovertemplate": "%{hovertext}<extra></extra>",
            "xaxis": f"x{number}", "yaxis": f"y{number}",
        },
        {
            "type": "scatter", "mode": "lines", "hoverinfo": "skip", "showlegend": False,
            "x": [min(mix.layers) - 0.5, max(mix.layers) + 0.5], "y": [1 / len(mix.layers)] * 2,
            "line": {"color": MUTED, "width": 1, "dash": "dot"}, "name": "equal weights",
            "xaxis": f"x{number}", "yaxis": f"y{number}",
        },
    ]  # fmt: skip


def _strip_name(name: str, across: Sequence[float], up: Sequence[float]) -> dict[str, Any]:
    return {
        "x": across[0], "y": up[1], "xref": "paper", "yref": "paper", "xanchor": "left",
        "yanchor": "bottom", "yshift": 2, "showarrow": False, "text": name,
        "font": {"size": 11, "color": MUTED},
    }  # fmt: skip


def _heading(scores: LayerScores, pixels: float) -> str:
    """Return the task, and beside it as much of the rest as there is room for."""
    name = cut(scores.task, 28)
    room = max(int((pixels - 8.5 * len(name)) / 6.4), 4)
    said = cut(f"{scores.n_test:,} in the test · {scores.encoder}", room)
    return (
        f"<b>{escape(name)}</b>{LEFT_TO_RIGHT}  "
        f'<span style="font-size:11px;color:{MUTED}">{escape(said)}</span>'
    )
