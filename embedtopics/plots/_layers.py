"""Scores of a probe by layer, with its baselines and controls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from embedtopics.errors import InputError
from embedtopics.plots._colors import PALETTE, dark
from embedtopics.plots._inputs import check_input
from embedtopics.plots._labels import spread
from embedtopics.plots._theme import (
    INK,
    LEFT_TO_RIGHT,
    MUTED,
    Canvas,
    Spec,
    axes_of,
    axis_keys,
    caption,
    cut,
    domains,
    escape,
    hover,
    note,
    panel_figure,
    panel_note,
    panel_size,
    scatter,
    small,
)
from embedtopics.probing.results import LOWER_IS_BETTER, LayerScores, ScalarMix

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

_MAIN, _STRIP, _BETWEEN = 300, 64, 58
"""Pixels of the scores, of a strip below them, and between panels."""
_NAMES = 164
"""Pixels for the names of the lines at the right."""

# Name, colour, dash and symbol of each kind of score; kinds without layers have no symbol.
_KINDS = {
    "probe": ("probe", PALETTE[0], "solid", "circle"),
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
    """A line of a panel: scores by layer, or one score as a level across all layers.

    The scores are rows of a table, with layer, value, low, high and n.
    """

    name: str
    color: str
    dash: str
    symbol: str
    scores: tuple[Any, ...]
    is_level: bool = False

    @property
    def layers(self) -> list[int]:
        """The layers of the scores; none for a level."""
        return [] if self.is_level else [score.layer for score in self.scores]

    @property
    def end(self) -> float:
        """The value at the right end; NaN if no value is known."""
        values = [score.value for score in self.scores if math.isfinite(score.value)]
        return values[-1] if values else math.nan

    def points(self, span: tuple[float, float]) -> list[tuple[float, Any]]:
        """Return the positions of the scores along the layers; a level spans all of them."""
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
) -> list[Spec]:
    """Return the bands of all lines, then the lines, which no band covers."""
    bands = [band for line in lines for band in _bands(line, span)]
    return [one | axes_of(panel) for one in (*bands, *(_trace(line, span, unit) for line in lines))]


def _has_interval(score: Any) -> bool:
    return math.isfinite(score.low) and math.isfinite(score.high)


def _bands(line: Line, span: tuple[float, float]) -> list[Spec]:
    bands = []
    opacity = 0.1 if line.is_level else 0.16
    fill = {"line": {"width": 0}, "fillcolor": line.color, "opacity": opacity}
    for is_known, group in groupby(line.points(span), key=lambda point: _has_interval(point[1])):
        points = list(group)
        if not is_known:
            continue
        if len(points) == 1:  # a single layer has no width
            [(x, score)] = points
            points = [(x - 0.12, score), (x + 0.12, score)]
        edge = [(x, s.low) for x, s in points] + [(x, s.high) for x, s in reversed(points)]
        band = scatter([x for x, _ in edge], [y for _, y in edge], "lines", fill="toself")
        bands.append({**band, "hoverinfo": "skip", "name": line.name, **fill})
    return bands


def _trace(line: Line, span: tuple[float, float], unit: str) -> Spec:
    points = line.points(span)
    texts = []
    for _, score in points:
        text = f"<b>{line.name}</b>" + ("" if line.is_level else f", layer {score.layer}")
        text += f"<br>{spell(score.value)}"
        if _has_interval(score):
            text += f" ({spell(score.low)} to {spell(score.high)})"
        texts.append(f"{text}<br>{score.n:,} {unit}")
    return scatter(
        [x for x, _ in points],
        [score.value if math.isfinite(score.value) else None for _, score in points],
        "lines+markers" if line.symbol else "lines",
        name=line.name,
        line={"color": line.color, "width": 2.5 if line.symbol else 1.6, "dash": line.dash},
        marker={"color": line.color, "symbol": line.symbol or "circle", "size": 7},
        hoverlabel={"bordercolor": line.color},
        **hover(texts),
    )


def value_range(lines: Sequence[Line], head: float = 0.0) -> tuple[float, float]:
    """Return a range of all values and intervals, and 0 if near, with a share `head` above."""
    scores = [score for line in lines for score in line.scores]
    values = [v for s in scores for v in (s.value, s.low, s.high) if math.isfinite(v)]
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    if 0 < low < 0.6 * high:
        low = 0.0
    air = 0.05 * (high - low) or 0.05 * abs(high) or 0.5
    return low - (0.0 if low == 0 else air), high + air + head * (high - low)


def layer_axis(layers: Sequence[int], pixels: float, *, named: bool = True) -> Spec:
    """Return an axis of layers, whose numbers do not touch."""
    step = max(-(-len(layers) * 24 // max(int(pixels), 1)), 1)
    axis: Spec = {"tickvals": list(layers[::step]), "showticklabels": named}
    axis["tickfont"] = {"size": 11}
    axis |= {"range": [min(layers) - 0.5, max(layers) + 0.5]}
    return {**axis, "title": {"text": "layer" if named else "", "standoff": 4}}


def end_names(
    figure: Figure, lines: Sequence[Line], span: tuple[float, float], panel: int, pixels: float
) -> list[Spec]:
    """Return the names of lines at their right ends, moved apart where they would touch."""
    named = [line for line in lines if math.isfinite(line.end)]
    shares = [(line.end - span[0]) / (span[1] - span[0]) for line in named]
    places = spread([min(max(share, 0.0), 1.0) for share in shares], 16 / pixels)
    texts = [f"{line.name} {spell(line.end)}" if line.is_level else line.name for line in named]
    x, y = domains(figure, panel)
    heights = [y[0] + (y[1] - y[0]) * place for place in places]
    look: Spec = {"up": "middle", "size": 12, "xshift": 7}
    return [
        note(text, x[1], height, **look, color=dark(line.color))
        for line, text, height in zip(named, texts, heights, strict=True)
    ]


@dataclass(frozen=True)
class _Panel:
    """The lines and the mix of one task."""

    scores: LayerScores
    lines: list[Line]
    selectivity: list[Line]
    mix: ScalarMix | None

    @property
    def layers(self) -> list[int]:
        """All layers."""
        layers = {n for line in (*self.lines, *self.selectivity) for n in line.layers}
        return sorted(layers | set(self.mix.layers if self.mix else ())) or [0]

    @property
    def n_strips(self) -> int:
        """Strips below the scores."""
        return bool(self.selectivity) + bool(self.mix)


def layers(
    scores: LayerScores,
    *,
    metric: str = "accuracy",
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw the scores of a probe at each layer, with its controls and baselines.

    Bands are 95 % intervals. The ring marks the layer with the best score on the test part, which
    is optimistic, because this part selects it (`LayerScores.chosen` is not). Below the scores
    are, if measured: the selectivity, which is the score minus that of a control task (Hewitt &
    Liang 2019), and the weights of the scalar mix (Peters et al. 2018) with their extremes over
    seeds.

    Parameters
    ----------
    scores : LayerScores
        From `embedtopics.probing.probe`.
    metric : str
    title : str, optional
    width, height : int, optional
        Pixels; by default the width of the page, and the height that the content needs.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        If there are no scores of that metric.

    Examples
    --------
    >>> import embedtopics as et
    >>> nouns = ["cat", "dog", "fox", "owl"]
    >>> texts = [f"{name} sees the {noun}" for name in ["Ana", "Ben", "Eva"] for noun in nouns]
    >>> tags = [["name", "verb", "article", "noun"]] * len(texts)
    >>> states = et.probing.hidden_states("all-MiniLM-L6-v2", texts, layers=[0, 6])
    >>> scores = et.probing.probe(states, tags)
    >>> figure = et.plots.layers(scores)
    >>> figure.layout.xaxis.title.text, figure.layout.yaxis.title.text
    ('layer', 'accuracy')
    """
    canvas = Canvas(title, width, height)
    check_input(scores, "scores", LayerScores, "et.probing.probe(states, labels)")

    task = _panel(scores, metric)
    figure = panel_figure(
        canvas,
        [_MAIN, *[_STRIP] * task.n_strips],
        between=_BETWEEN,
        margin={"l": 60, "r": _NAMES, "t": 44, "b": 56},
    )
    pixels = panel_size(figure, 0, canvas)
    _draw(figure, task, metric, value_range(task.lines, head=0.08), pixels)
    heading = _heading(scores, pixels[0] + _NAMES)
    figure.add_annotation(panel_note(figure, 0, heading, yshift=6))
    return figure.update_layout(bargap=0.3)


def _panel(scores: LayerScores, metric: str) -> _Panel:
    table = scores.to_frame()
    kinds = table.loc[table["metric"] == metric, "what"].unique().tolist()
    if not kinds:
        metrics = ", ".join(sorted(set(table["metric"]))) or "none"
        raise InputError("metric", f"one of those of {cut(scores.task, 60)!r}, {metrics}", metric)
    order = list(_KINDS)
    kinds.sort(key=lambda kind: order.index(kind) if kind in order else len(order))
    selectivity: list[Line] = []
    if metric in ("accuracy", "macro F1"):
        probed = table[table["what"] == "probe"]
        if "selectivity" in set(probed["metric"]):
            selectivity = [_line(table, "probe", "selectivity")]
    lines = [_line(table, kind, metric) for kind in kinds]
    return _Panel(scores, lines, selectivity, scores.mix)


def _line(table: pd.DataFrame, kind: str, metric: str) -> Line:
    rows = table[(table["what"] == kind) & (table["metric"] == metric)]
    name, color, dash, symbol = _KINDS.get(kind, (caption(kind, 24), "#4d5866", "solid", "circle"))
    by_layer = tuple(rows[rows["layer"].notna()].itertuples(index=False))
    # The score of a single layer, such as that of the embeddings, is a level to compare with.
    if not by_layer or (kind != "probe" and len(by_layer) == 1):
        level = tuple(rows.tail(1).itertuples(index=False))
        return Line(name, color, dash, "", level, is_level=True)
    return Line(name, color, dash, symbol or "circle", by_layer)


def _draw(
    figure: Figure,
    task: _Panel,
    metric: str,
    span: tuple[float, float],
    pixels: tuple[float, float],
) -> None:
    """Draw a task: its scores in a panel of `pixels` across and up, and the strips below."""
    ends = (min(task.layers) - 0.4, max(task.layers) + 0.4)
    y = {"showgrid": True, "tickfont": {"size": 11}, "nticks": 3}
    title = {"text": caption(metric, 40), "standoff": 6}
    axes: dict[int, Spec] = {0: {**y, "nticks": 7, "range": list(span), "title": title}}
    notes = end_names(figure, task.lines, span, 0, pixels[1])
    best = _best(task, metric)
    lines = traces_of(task.lines, ends, 0, "test units")
    figure.add_traces([*lines, *best[0]])
    notes += best[1]
    caption_font: Spec = {"size": 11, "color": MUTED, "yshift": 2}
    if task.selectivity:
        figure.add_traces(traces_of(task.selectivity, ends, 1, "test units"))
        low, high = value_range(task.selectivity)
        axes[1] = {**y, "range": [min(low, 0.0), max(high, 0.0)]}
        notes.append(panel_note(figure, 1, "selectivity", **caption_font))
    if task.mix:
        figure.add_traces([trace | axes_of(task.n_strips) for trace in _weights(task.mix)])
        axes[task.n_strips] = {**y, "rangemode": "tozero"}
        notes.append(panel_note(figure, task.n_strips, "weights of the scalar mix", **caption_font))
    for panel, axis in axes.items():
        x = layer_axis(task.layers, pixels[0], named=panel == task.n_strips)
        figure.update_layout(dict(zip(axis_keys(panel), (x, axis), strict=True)))
    for text in notes:
        figure.add_annotation(text)


def _best(task: _Panel, metric: str) -> tuple[list[Spec], list[Spec]]:
    """Return a ring around the best layer of the probe, and its caption."""
    curves = [line for line in task.lines if not line.is_level]
    curve = next((line for line in curves if line.name == "probe"), curves[0] if curves else None)
    scores = [s for s in curve.scores if math.isfinite(s.value)] if curve else []
    if curve is None or len(scores) < 2:
        return [], []
    sign = -1 if metric in LOWER_IS_BETTER else 1
    best = max(scores, key=lambda score: (sign * score.value, -score.layer))
    marker = {"symbol": "circle-open", "size": 16, "color": INK, "line": {"width": 2}}
    ring = scatter([best.layer], [best.value], marker=marker, hoverinfo="skip", name="best layer")
    label = {
        **{"x": best.layer, "y": best.value, "xref": "x", "yref": "y"},
        "text": f"layer {best.layer}: {spell(best.value)}",
        "yshift": 20,
        "xanchor": "left" if best.layer <= (task.layers[0] + task.layers[-1]) / 2 else "right",
        "font": {"size": 12, "color": dark(curve.color), "weight": 650},
        "bgcolor": "rgba(255,255,255,0.75)",
    }
    return [ring], [label]


def _weights(mix: ScalarMix) -> list[Spec]:
    """Return the mean weight of each layer as bars, with the extremes over seeds."""
    mean, low, high = (getattr(mix.weights, name)(axis=0) for name in ("mean", "min", "max"))
    n = len(mix.weights)
    ends = [f" ({a:.3f} to {b:.3f})" if n > 1 else "" for a, b in zip(low, high, strict=True)]
    seeds = "1 seed" if n == 1 else f"{n} seeds"
    texts = [
        f"<b>layer {layer}</b><br>{m:.3f}{end}<br>{seeds}"
        for layer, m, end in zip(mix.layers, mean, ends, strict=True)
    ]
    error: Spec = {"type": "data", "symmetric": False, "thickness": 1.2, "width": 2, "color": INK}
    error |= {"array": (high - mean).tolist(), "arrayminus": (mean - low).tolist()}
    bars: Spec = {"type": "bar", "x": list(mix.layers), "y": mean.tolist(), "name": "weight"}
    bars |= {"marker": {"color": PALETTE[3], "opacity": 0.75}, **hover(texts)}
    span, level = [min(mix.layers) - 0.5, max(mix.layers) + 0.5], [1 / len(mix.layers)] * 2
    style = {"color": MUTED, "width": 1, "dash": "dot"}
    equal = scatter(span, level, "lines", hoverinfo="skip", line=style, name="equal weights")
    return [{**bars, "error_y": error | {"visible": n > 1}}, equal]


def _heading(scores: LayerScores, pixels: float) -> str:
    """Return the task, and as much of the test set and encoder as fits."""
    name = cut(scores.task, 28)
    space = max(int((pixels - 8.5 * len(name)) / 6.4), 4)
    about = caption(f"{scores.n_test:,} test units · {scores.encoder}", space)
    return f"<b>{escape(name)}</b>{LEFT_TO_RIGHT}  {small(about)}"
