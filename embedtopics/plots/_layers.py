"""Scores of a probe by layer, beside its baselines and controls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from embedtopics.errors import InputError
from embedtopics.plots._colors import PALETTE, dark
from embedtopics.plots._labels import spread
from embedtopics.plots._theme import (
    ASSUMED_WIDTH,
    INK,
    LEFT_TO_RIGHT,
    MUTED,
    Panels,
    checked_sizes,
    chosen_columns,
    cut,
    escape,
    panel_layout,
)
from embedtopics.probing.results import LOWER_IS_BETTER, LayerScores, ScalarMix

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


# Curves by layer with their bands, level lines, and names at their ends.

GRID = "#eef0f3"


@dataclass(frozen=True)
class Line:
    """One line of a panel."""

    name: str
    color: str
    dash: str
    symbol: str
    layers: tuple[int, ...]
    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    ns: tuple[int, ...]

    @property
    def end(self) -> float:
        """The value at its right end; NaN where there is none."""
        known = [value for value in self.values if math.isfinite(value)]
        return known[-1] if known else math.nan


def spell(value: float) -> str:
    """Return a score with three decimals, one where it is large."""
    if not math.isfinite(value):
        return "unknown"
    return f"{value:.3f}" if abs(value) < 100 else f"{value:,.1f}"


def traces_of(
    lines: Sequence[Line], span: tuple[float, float], number: str, unit: str
) -> list[dict[str, Any]]:
    """Return the bands of all lines, then the lines: no band lies over a line."""
    bands = [band for line in lines for band in _bands(line, span, number)]
    return [*bands, *(_trace(line, span, number, unit) for line in lines)]


def _stretched(line: Line, span: tuple[float, float]) -> tuple[list[float], list[int]]:
    """Return where along the layers values stand, and which of them: levels go all the way."""
    if line.layers:
        return list(map(float, line.layers)), list(range(len(line.layers)))
    return [span[0], (span[0] + span[1]) / 2, span[1]], [0, 0, 0]


def _bands(line: Line, span: tuple[float, float], number: str) -> list[dict[str, Any]]:
    x, places = _stretched(line, span)
    known = [math.isfinite(line.low[p]) and math.isfinite(line.high[p]) for p in places]
    bands = []
    begin = 0
    while begin < len(x):
        end = begin
        while end < len(x) and known[end]:
            end += 1
        if end > begin:
            chosen = places[begin:end]
            along = x[begin:end]
            # one layer alone has no width of its own
            along = along if len(along) > 1 else [along[0] - 0.12, along[0] + 0.12]
            chosen = chosen if len(chosen) > 1 else chosen * 2
            bands.append(
                {
                    "type": "scatter", "mode": "lines", "fill": "toself", "hoverinfo": "skip",
                    "x": [*along, *along[::-1]], "showlegend": False,
                    "y": [*(line.low[p] for p in chosen), *(line.high[p] for p in chosen[::-1])],
                    "line": {"width": 0}, "fillcolor": line.color,
                    "opacity": 0.16 if line.layers else 0.1,
                    "xaxis": f"x{number}", "yaxis": f"y{number}", "name": line.name,
                }
            )  # fmt: skip
        begin = max(end, begin + 1)
    return bands


def _trace(line: Line, span: tuple[float, float], number: str, unit: str) -> dict[str, Any]:
    x, places = _stretched(line, span)
    hover = []
    for place in places:
        said = f"<b>{line.name}</b>"
        said += f", layer {line.layers[place]}" if line.layers else ""
        said += f"<br>{spell(line.values[place])}"
        if math.isfinite(line.low[place]) and math.isfinite(line.high[place]):
            said += f" ({spell(line.low[place])} to {spell(line.high[place])})"
        hover.append(f"{said}<br>{line.ns[place]:,} {unit}")
    values = [line.values[place] for place in places]
    return {
        "type": "scatter", "mode": "lines+markers" if line.symbol else "lines",
        "name": line.name, "x": x, "y": [v if math.isfinite(v) else None for v in values],
        "line": {"color": line.color, "width": 2.5 if line.symbol else 1.6, "dash": line.dash},
        "marker": {"color": line.color, "symbol": line.symbol or "circle", "size": 7},
        "hovertext": hover, "hovertemplate": "%{hovertext}<extra></extra>", "showlegend": False,
        "xaxis": f"x{number}", "yaxis": f"y{number}",
        "hoverlabel": {"bordercolor": line.color},
    }  # fmt: skip


def value_range(lines: Sequence[Line], head: float = 0.0) -> tuple[float, float]:
    """Return a range that holds all values and intervals, and 0 where it is near.

    `head` is the share of it that is left free at the top.
    """
    known = [
        v for line in lines for v in (*line.values, *line.low, *line.high) if math.isfinite(v)
    ]  # fmt: skip
    if not known:
        return 0.0, 1.0
    low, high = min(known), max(known)
    if 0 < low < 0.6 * high:
        low = 0.0
    air = 0.05 * (high - low) or 0.05 * abs(high) or 0.5
    return low - (0.0 if low == 0 else air), high + air + head * (high - low)


def layer_axis(
    layers: Sequence[int], domain: Sequence[float], number: str, pixels: float, *, named: bool
) -> dict[str, Any]:
    """Return an axis of layers; the numbers stand apart however many there are."""
    step = max(-(-len(layers) * 24 // max(int(pixels), 1)), 1)
    ticks = [layer for place, layer in enumerate(layers) if place % step == 0]
    low, high = min(layers), max(layers)
    return {
        "domain": list(domain), "anchor": f"y{number}", "tickvals": ticks,
        "ticktext": [str(tick) for tick in ticks], "showticklabels": named,
        "range": [low - 0.5, high + 0.5], "showgrid": False, "zeroline": False,
        "tickfont": {"size": 11}, "fixedrange": True,
        "title": {"text": "layer" if named else "", "font": {"color": MUTED, "size": 12},
                  "standoff": 4},
    }  # fmt: skip


def end_names(
    lines: Sequence[Line],
    span: tuple[float, float],
    domain: tuple[Sequence[float], Sequence[float]],
    pixels: float,
) -> list[dict[str, Any]]:
    """Return the names of lines beside their right ends, moved apart where they would touch."""
    low, high = span
    named = [line for line in lines if math.isfinite(line.end)]
    heights = [min(max((line.end - low) / (high - low), 0.0), 1.0) for line in named]
    places = spread(heights, 16 / pixels)
    bottom, top = domain[1]
    return [
        {
            "x": domain[0][1], "y": bottom + (top - bottom) * place, "xref": "paper",
            "yref": "paper", "xanchor": "left", "xshift": 7, "yanchor": "middle",
            "showarrow": False, "align": "left",
            "text": f"{line.name} {spell(line.end)}" if not line.layers else line.name,
            "font": {"size": 12, "color": dark(line.color)},
        }
        for line, place in zip(named, places, strict=True)
    ]  # fmt: skip


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
    """Draw the scores of a probe at each layer, beside its controls and baselines.

    Bands are 95 % intervals. The ring marks the layer with the best score on the test part, which
    is too optimistic by that choice (`LayerScores.chosen` is not). Below the scores are, where
    they were measured, the selectivity, by which the probe exceeds a control task (Hewitt & Liang
    2019), and the weights of the scalar mix (Peters et al. 2018) with their extremes over seeds. A
    dotted line marks the expected layer (Tenney et al. 2019).

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
    if not given or not all(isinstance(one, LayerScores) for one in given):
        kinds = ", ".join(type(one).__name__ for one in given) or "none"
        raise InputError("scores", "LayerScores from probing.probe, or several", found=kinds)
    return given


def _panel(scores: LayerScores, metric: str) -> _Panel:
    kinds = list(dict.fromkeys(s.what for s in scores.scores if s.metric == metric))
    if not kinds:
        known = ", ".join(sorted({s.metric for s in scores.scores})) or "none"
        raise InputError("metric", f"one of those of {cut(scores.task, 60)!r}, {known}", metric)
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
    # the score of a single layer, such as that of the embeddings, is a level to compare with
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
    """Return the task, and beside it as much of the rest as there is space for."""
    name = cut(scores.task, 28)
    space = max(int((pixels - 8.5 * len(name)) / 6.4), 4)
    said = cut(f"{scores.n_test:,} in the test · {scores.encoder}", space)
    return (
        f"<b>{escape(name)}</b>{LEFT_TO_RIGHT}  "
        f'<span style="font-size:11px;color:{MUTED}">{escape(said)}</span>'
    )
