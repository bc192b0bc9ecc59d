"""What stands beside layers: curves with their bands, level lines, and names at their ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from embedtopics.plots.palette import dark
from embedtopics.plots.panels import spread
from embedtopics.plots.text import MUTED

__all__ = ["GRID", "Line", "end_names", "layer_axis", "spell", "traces_of", "value_range"]

GRID = "#eef0f3"


@dataclass(frozen=True)
class Line:
    """One line of a panel.

    Parameters
    ----------
    name : str
        As it is shown, escaped.
    color, dash, symbol : str
        An empty symbol draws no points.
    layers : tuple of int
        Empty for a level that belongs to no layer.
    values, low, high : tuple of float
        One a layer, or a single one; NaN bounds where there is no interval.
    ns : tuple of int
        What each was measured on.
    """

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
    """Return a figure with three digits behind the point, fewer where it is large.

    Examples
    --------
    >>> spell(0.93149), spell(123.456), spell(float("nan"))
    ('0.931', '123.5', 'unknown')
    """
    if not math.isfinite(value):
        return "unknown"
    return f"{value:.3f}" if abs(value) < 100 else f"{value:,.1f}"


def traces_of(
    lines: Sequence[Line], span: tuple[float, float], number: str, unit: str
) -> list[dict[str, Any]]:
    """Return the bands of all lines, then the lines: no band lies over a line.

    Parameters
    ----------
    lines : sequence of Line
    span : tuple of float
        The layers from which and to which levels go.
    number : str
        Of the axes.
    unit : str
        What was counted, such as "units".
    """
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
