"""Scores of a probe by layer, beside its baselines and controls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from embedtopics.errors import InputError
from embedtopics.plots._colors import PALETTE, dark
from embedtopics.plots._labels import spread
from embedtopics.plots._theme import (
    ASSUMED_WIDTH,
    HIDDEN,
    INK,
    LEFT_TO_RIGHT,
    MUTED,
    axes_of,
    caption,
    checked_sizes,
    chosen_columns,
    cut,
    escape,
    note,
    panel_figure,
    panel_note,
)
from embedtopics.probing.results import LOWER_IS_BETTER, LayerScores, ScalarMix

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_MAIN, _STRIP, _BETWEEN = 300, 64, 58
"""Pixels of a panel: the scores, each strip below them, and what is between them."""
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


@dataclass(frozen=True)
class Line:
    """One line of a panel: its scores by layer, or one score that is a level at all layers."""

    name: str
    color: str
    dash: str
    symbol: str
    scores: tuple[Any, ...]
    is_level: bool = False

    @property
    def layers(self) -> list[int]:
        """Its layers, none for a level."""
        return [] if self.is_level else [score.layer for score in self.scores]

    @property
    def end(self) -> float:
        """The value at its right end; NaN where there is none."""
        known = [score.value for score in self.scores if math.isfinite(score.value)]
        return known[-1] if known else math.nan

    def points(self, span: tuple[float, float]) -> list[tuple[float, Any]]:
        """Return where along the layers the scores stand: a level goes all the way."""
        if self.is_level:
            [score] = self.scores
            return [(x, score) for x in (span[0], sum(span) / 2, span[1])]
        return [(float(score.layer), score) for score in self.scores]


def spell(value: float) -> str:
    """Return a score with three decimals, one where it is large."""
    if not math.isfinite(value):
        return "unknown"
    return f"{value:.3f}" if abs(value) < 100 else f"{value:,.1f}"


def traces_of(
    lines: Sequence[Line], span: tuple[float, float], panel: int, unit: str
) -> list[dict[str, Any]]:
    """Return the bands of all lines, then the lines: no band lies over a line."""
    bands = [band for line in lines for band in _bands(line, span)]
    return [one | axes_of(panel) for one in (*bands, *(_trace(line, span, unit) for line in lines))]


def _has_interval(score: Any) -> bool:
    return math.isfinite(score.low) and math.isfinite(score.high)


def _bands(line: Line, span: tuple[float, float]) -> list[dict[str, Any]]:
    bands = []
    for known, group in groupby(line.points(span), key=lambda point: _has_interval(point[1])):
        own = list(group)
        if not known:
            continue
        if len(own) == 1:  # one layer alone has no width of its own
            [(x, score)] = own
            own = [(x - 0.12, score), (x + 0.12, score)]
        edge = [(x, s.low) for x, s in own] + [(x, s.high) for x, s in reversed(own)]
        band = {
            "type": "scatter",
            "mode": "lines",
            "fill": "toself",
            "hoverinfo": "skip",
            "name": line.name,
            "x": [x for x, _ in edge],
            "y": [y for _, y in edge],
            "line": {"width": 0},
            "fillcolor": line.color,
            "opacity": 0.1 if line.is_level else 0.16,
        }
        bands.append(band)
    return bands


def _trace(line: Line, span: tuple[float, float], unit: str) -> dict[str, Any]:
    points = line.points(span)
    hover = []
    for _, score in points:
        text = f"<b>{line.name}</b>" + ("" if line.is_level else f", layer {score.layer}")
        text += f"<br>{spell(score.value)}"
        if _has_interval(score):
            text += f" ({spell(score.low)} to {spell(score.high)})"
        hover.append(f"{text}<br>{score.n:,} {unit}")
    return {
        "type": "scatter",
        "mode": "lines+markers" if line.symbol else "lines",
        "name": line.name,
        "x": [x for x, _ in points],
        "y": [score.value if math.isfinite(score.value) else None for _, score in points],
        "line": {"color": line.color, "width": 2.5 if line.symbol else 1.6, "dash": line.dash},
        "marker": {"color": line.color, "symbol": line.symbol or "circle", "size": 7},
        "hovertext": hover,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "hoverlabel": {"bordercolor": line.color},
    }


def value_range(lines: Sequence[Line], head: float = 0.0) -> tuple[float, float]:
    """Return a range of all values and intervals, and 0 where near, with a share `head` free."""
    scores = [score for line in lines for score in line.scores]
    known = [v for s in scores for v in (s.value, s.low, s.high) if math.isfinite(v)]
    if not known:
        return 0.0, 1.0
    low, high = min(known), max(known)
    if 0 < low < 0.6 * high:
        low = 0.0
    air = 0.05 * (high - low) or 0.05 * abs(high) or 0.5
    return low - (0.0 if low == 0 else air), high + air + head * (high - low)


def layer_axis(layers: Sequence[int], pixels: float, *, named: bool = True) -> dict[str, Any]:
    """Return an axis of layers; the numbers stand apart however many there are."""
    step = max(-(-len(layers) * 24 // max(int(pixels), 1)), 1)
    return {
        "tickvals": list(layers[::step]),
        "showticklabels": named,
        "range": [min(layers) - 0.5, max(layers) + 0.5],
        "tickfont": {"size": 11},
        "title": {"text": "layer" if named else "", "standoff": 4},
    }


def end_names(
    figure: Figure, lines: Sequence[Line], span: tuple[float, float], panel: int, pixels: float
) -> list[dict[str, Any]]:
    """Return the names of lines beside their right ends, moved apart where they would touch."""
    named = [line for line in lines if math.isfinite(line.end)]
    shares = [(line.end - span[0]) / (span[1] - span[0]) for line in named]
    places = spread([min(max(share, 0.0), 1.0) for share in shares], 16 / pixels)
    texts = [f"{line.name} {spell(line.end)}" if line.is_level else line.name for line in named]
    x, y = (figure.layout[f"{name[0]}axis{name[1:]}"].domain for name in axes_of(panel).values())
    return [
        note(
            text, x[1], y[0] + (y[1] - y[0]) * place, up="middle", size=12,
            color=dark(line.color), xshift=7,
        )
        for line, text, place in zip(named, texts, places, strict=True)
    ]  # fmt: skip


@dataclass(frozen=True)
class _Panel:
    """What is drawn of one task."""

    scores: LayerScores
    lines: list[Line]
    selectivity: list[Line]
    mix: ScalarMix | None

    @property
    def layers(self) -> list[int]:
        """All layers."""
        found = {n for line in (*self.lines, *self.selectivity) for n in line.layers}
        return sorted(found | set(self.mix.layers if self.mix else ())) or [0]

    @property
    def n_strips(self) -> int:
        """Strips below the scores."""
        return bool(self.selectivity) + bool(self.mix)


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
    checked_sizes(width, height)
    given = [scores] if isinstance(scores, LayerScores) else list(scores)
    if not given or not all(isinstance(one, LayerScores) for one in given):
        kinds = ", ".join(type(one).__name__ for one in given) or "none"
        raise InputError("scores", "LayerScores from probing.probe, or several", found=kinds)
    found = [_panel(one, metric) for one in given]
    ranges = [value_range(one.lines, head=0.08) for one in found]
    if same_scale:
        ranges = [(min(low for low, _ in ranges), max(high for _, high in ranges))] * len(found)
    gap, margin = _NAMES + 56, {"l": 60, "r": _NAMES, "t": 44, "b": 56}
    inner = (width or ASSUMED_WIDTH) - margin["l"] - margin["r"]
    columns = chosen_columns(len(found), columns, inner, 280, gap)
    pixels = max((inner - (columns - 1) * gap) / columns, 80)
    depth = 1 + max(one.n_strips for one in found)  # the rows that a task may take
    blocks = -(-len(found) // columns)
    main = float(_MAIN)
    if height is not None:
        free = height - margin["t"] - margin["b"] - (blocks * depth - 1) * _BETWEEN
        main = max(free / blocks - (depth - 1) * _STRIP, 80)
    rows = [main, *[_STRIP] * (depth - 1)] * blocks
    figure = panel_figure(rows, columns, between=_BETWEEN, gap=gap, width=width, margin=margin)
    figure.update_xaxes(HIDDEN).update_yaxes(HIDDEN)
    for place, one in enumerate(found):
        block, column = divmod(place, columns)
        panels = [(block * depth + row) * columns + column for row in range(1 + one.n_strips)]
        _draw(figure, one, metric, ranges[place], panels, (pixels, main))
        heading = _heading(one.scores, pixels + _NAMES)
        figure.add_annotation(panel_note(figure, panels[0], heading, yshift=6))
    return figure.update_layout(bargap=0.3)


def _panel(scores: LayerScores, metric: str) -> _Panel:
    kinds = list(dict.fromkeys(s.what for s in scores.of(metric=metric)))
    if not kinds:
        known = ", ".join(sorted({s.metric for s in scores})) or "none"
        raise InputError("metric", f"one of those of {cut(scores.task, 60)!r}, {known}", metric)
    order = list(_KINDS)
    kinds.sort(key=lambda kind: order.index(kind) if kind in order else len(order))
    chosen: list[Line] = []
    if metric in ("accuracy", "macro F1"):
        own = [kind for kind in ("probe", "mlp") if scores.of(what=kind, metric="selectivity")]
        chosen = [_line(scores, kind, "selectivity") for kind in own]
    return _Panel(scores, [_line(scores, kind, metric) for kind in kinds], chosen, scores.mix)


def _line(scores: LayerScores, kind: str, metric: str) -> Line:
    found = scores.of(what=kind, metric=metric)
    name, color, dash, symbol = _KINDS.get(kind, (caption(kind, 24), "#4d5866", "solid", "circle"))
    by_layer = tuple(score for score in found if score.layer is not None)
    # the score of a single layer, such as that of the embeddings, is a level to compare with
    if not by_layer or (kind not in ("probe", "mlp") and len(by_layer) == 1):
        return Line(name, color, dash, "", found[-1:], is_level=True)
    return Line(name, color, dash, symbol or "circle", by_layer)


def _draw(
    figure: Figure,
    one: _Panel,
    metric: str,
    span: tuple[float, float],
    panels: Sequence[int],
    size: tuple[float, float],
) -> None:
    """Draw a task: its scores, and below them the strips that it has."""
    ends = (min(one.layers) - 0.4, max(one.layers) + 0.4)
    y = {"visible": True, "showgrid": True, "tickfont": {"size": 11}, "nticks": 3}
    title = {"text": caption(metric, 40), "standoff": 6}
    axes = {panels[0]: {**y, "nticks": 7, "range": list(span), "title": title}}
    notes = end_names(figure, one.lines, span, panels[0], size[1])
    best, expected = _best(one, metric, panels[0]), _expected(one.scores, span, panels[0])
    figure.add_traces(
        [*expected[0], *traces_of(one.lines, ends, panels[0], "test units"), *best[0]]
    )
    notes += [*expected[1], *best[1]]
    small: dict[str, Any] = {"size": 11, "color": MUTED, "yshift": 2}
    strips = list(panels[1:])
    if one.selectivity:
        panel = strips.pop(0)
        figure.add_traces(traces_of(one.selectivity, ends, panel, "test units"))
        low, high = value_range(one.selectivity)
        axes[panel] = {**y, "range": [min(low, 0.0), max(high, 0.0)]}
        notes.append(panel_note(figure, panel, "selectivity", **small))
    if one.mix:
        figure.add_traces([trace | axes_of(strips[0]) for trace in _weights(one.mix)])
        axes[strips[0]] = {**y, "rangemode": "tozero"}
        notes.append(panel_note(figure, strips[0], "weights of the scalar mix", **small))
    for panel, axis in axes.items():
        x = layer_axis(one.layers, size[0], named=panel == panels[-1])
        number = axes_of(panel)["xaxis"][1:]
        figure.update_layout({f"xaxis{number}": x | {"visible": True}, f"yaxis{number}": axis})
    for text in notes:
        figure.add_annotation(text)


def _best(
    one: _Panel, metric: str, panel: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a ring around the best layer of the probe, and what it is."""
    curves = [line for line in one.lines if not line.is_level]
    curve = next((line for line in curves if line.name == "probe"), curves[0] if curves else None)
    known = [s for s in curve.scores if math.isfinite(s.value)] if curve else []
    if curve is None or len(known) < 2:
        return [], []
    sign = -1 if metric in LOWER_IS_BETTER else 1
    best = max(known, key=lambda score: (sign * score.value, -score.layer))
    ring = {
        "type": "scatter",
        "mode": "markers",
        "x": [best.layer],
        "y": [best.value],
        "hoverinfo": "skip",
        "marker": {"symbol": "circle-open", "size": 16, "color": INK, "line": {"width": 2}},
        "name": "best layer",
        **axes_of(panel),
    }
    middle = (one.layers[0] + one.layers[-1]) / 2
    said = {
        "x": best.layer,
        "y": best.value,
        **{f"{name[0]}ref": axis for name, axis in axes_of(panel).items()},
        "text": f"layer {best.layer}: {spell(best.value)}",
        "yshift": 20,
        "xanchor": "left" if best.layer <= middle else "right",
        "font": {"size": 12, "color": dark(curve.color), "weight": 650},
        "bgcolor": "rgba(255,255,255,0.75)",
    }
    return [ring], [said]


def _expected(
    scores: LayerScores, span: tuple[float, float], panel: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a dotted line at the expected layer, with its name at its foot."""
    at = scores.expected_layer
    if not math.isfinite(at):
        return [], []
    low, high = scores.expected_layer_interval
    within = f" ({low:.1f} to {high:.1f})" if math.isfinite(low) and math.isfinite(high) else ""
    axes = axes_of(panel)
    line = {
        "type": "scatter",
        "mode": "lines",
        "x": [at, at],
        "y": list(span),
        "hoverinfo": "skip",
        "line": {"color": MUTED, "width": 1.2, "dash": "dot"},
        "name": "expected layer",
        **axes,
    }
    place = {"xref": axes["xaxis"], "yref": f"{axes['yaxis']} domain", "xshift": 3}
    text = f"expected layer {at:.1f}{within}"
    white = "rgba(255,255,255,0.75)"
    return [line], [note(text, at, 0, size=11, color=MUTED, bgcolor=white) | place]


def _weights(mix: ScalarMix) -> list[dict[str, Any]]:
    """Return the mean weight of each layer as bars, with the extremes over the seeds."""
    mean, low, high = (getattr(mix.weights, name)(axis=0) for name in ("mean", "min", "max"))
    n = len(mix.weights)
    ends = [f" ({a:.3f} to {b:.3f})" if n > 1 else "" for a, b in zip(low, high, strict=True)]
    seeds = "1 seed" if n == 1 else f"{n} seeds"
    extremes = {"array": (high - mean).tolist(), "arrayminus": (mean - low).tolist()}
    line = {"color": MUTED, "width": 1, "dash": "dot"}
    return [
        {
            "type": "bar",
            "x": list(mix.layers),
            "y": mean.tolist(),
            "marker": {"color": PALETTE[3], "opacity": 0.75},
            "name": "weight",
            "error_y": {
                "type": "data", "symmetric": False, **extremes, "thickness": 1.2, "width": 2,
                "color": INK, "visible": n > 1,
            },
            "hovertext": [
                f"<b>layer {layer}</b><br>{m:.3f}{end}<br>{seeds}"
                for layer, m, end in zip(mix.layers, mean, ends, strict=True)
            ],
            "hovertemplate": "%{hovertext}<extra></extra>",
        },
        {
            "type": "scatter",
            "mode": "lines",
            "hoverinfo": "skip",
            "x": [min(mix.layers) - 0.5, max(mix.layers) + 0.5],
            "y": [1 / len(mix.layers)] * 2,
            "line": line,
            "name": "equal weights",
        },
    ]  # fmt: skip


def _heading(scores: LayerScores, pixels: float) -> str:
    """Return the task, and beside it as much of the rest as there is space for."""
    name = cut(scores.task, 28)
    space = max(int((pixels - 8.5 * len(name)) / 6.4), 4)
    said = caption(f"{scores.n_test:,} in the test · {scores.encoder}", space)
    return (
        f"<b>{escape(name)}</b>{LEFT_TO_RIGHT}  "
        f'<span style="font-size:11px;color:{MUTED}">{said}</span>'
    )
