"""All uses of a word on a map for each layer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._word_maps import map_uses
from embedtopics.errors import InputError
from embedtopics.plots.annotations import HALO
from embedtopics.plots.panels import (
    ASSUMED_WIDTH,
    Panels,
    checked_sizes,
    chosen_columns,
    panel_layout,
)
from embedtopics.plots.text import INK, LEFT_TO_RIGHT, MUTED, cut, escape
from embedtopics.plots.word_uses import (
    USE_SCALE,
    UseGroup,
    checked_uses,
    grouped_uses,
    hover_texts,
)
from embedtopics.results import HiddenStates, WordMap, WordSenses

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["found_map", "legend_lines", "legend_place", "use_size", "word_map"]

Float64Array = npt.NDArray[np.float64]

_LEAST, _WIDEST = 196, 560
"""Pixels that a panel is wide."""
_LEGEND_LINE = 21
_TITLE = 46


def word_map(
    found: WordMap | HiddenStates,
    word: str | Sequence[str] | None = None,
    *,
    layer: str | int | Sequence[int] = "all",
    colors: Sequence[Any] | WordSenses | None = None,
    follow: Sequence[int] = (),
    same_scale: bool = False,
    columns: int | None = None,
    width: int | None = None,
    height: int | None = None,
    hover_characters: int = 240,
) -> Figure:
    """Draw all uses of a word on one map a layer, so that one sees where they part.

    The maps are turned to one another (see `embedtopics.probing.word_map`), and a use has the same
    colour in each: that of its label, or without labels a shade by its place along the first axis
    of the last map. Hovering shows the sentence and the number of the use. Above each map stand
    the mean cosine similarity of two uses, and the share of their variance that the map shows:
    where that is small, uses that lie together may be far apart.

    Parameters
    ----------
    found : WordMap or HiddenStates
        Of states, the map is made anew each time.
    word : str or sequence of str, optional
        With states.
    layer : "all", int or sequence of int
        Negative numbers count from the last.
    colors : sequence or WordSenses, optional
        A label for each use, each text or each unit of the states: senses, periods, sources.
        None and "" are no label; of more than 12, the rarest share a colour.
    follow : sequence of int
        Numbers of uses to ring on every map.
    same_scale : bool
        Whether all maps share one scale, on which layers that set uses apart little are small.
    columns : int, optional
    width, height : int, optional
        Pixels. Without a width the figure fills its place, and is laid out for 1,100.
    hover_characters : int
        How much of a sentence is shown on hovering.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        If the word does not occur, there is no such layer or use, or `colors` has another length.
    """
    import plotly.graph_objects as go

    checked_sizes(width, height)
    drawn, picked = found_map(found, word, layer)
    groups = grouped_uses(drawn, colors, drawn.coordinates[picked[-1]])
    followed = checked_uses(drawn, follow)
    lines = legend_lines(groups, width)
    panels = _places(len(picked), columns, width, height, lines)
    hover = hover_texts(drawn, hover_characters)
    reaches = [_reach(drawn.coordinates[at]) for at in picked]
    traces: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    notes = _title(drawn, panels)
    for place, at in enumerate(picked):
        reach = max(reaches) if same_scale else reaches[place]
        points = drawn.coordinates[at]
        number = str(place + 1) if place else ""
        axes |= _axes(number, panels.domain(place), reach)
        traces += _points(points, groups, hover, f"layer {drawn.layers[at]}", number)
        traces += _rings(points, followed, number)
        notes.append(panels.heading(place, _heading(drawn, at, panels.width), 3))
    layout = panel_layout(panels, width, height, notes)
    layout |= {**axes, "dragmode": "pan", **legend_place(panels, lines)}
    return go.Figure(data=traces, layout=layout)


def found_map(
    found: WordMap | HiddenStates,
    word: str | Sequence[str] | None,
    layer: str | int | Sequence[int],
) -> tuple[WordMap, list[int]]:
    """Return the map that is given, or make it, and the places of the layers that are meant."""
    if isinstance(found, HiddenStates):
        if word is None:
            raise InputError("expected a word to draw the uses of, got none")
        made = map_uses(found, word, layer)
        return made, list(range(len(made.layers)))
    if not isinstance(found, WordMap):
        raise InputError(
            f"expected a WordMap from probing.word_map, or HiddenStates; got {type(found).__name__}"
        )
    if word is not None:
        raise InputError(f"the map is of {found.word!r} already; give states with a word")
    if isinstance(layer, str) and layer == "all":
        return found, list(range(len(found.layers)))
    is_one = isinstance(layer, str) or not isinstance(layer, Iterable)
    wanted = [layer] if is_one else list(layer)  # type: ignore[arg-type]
    numbers = [
        max(found.layers) + 1 + one if isinstance(one, (int, np.integer)) and one < 0 else one
        for one in wanted
    ]
    for one, number in zip(wanted, numbers, strict=True):
        if number not in found.layers:
            kept = ", ".join(map(str, found.layers))
            raise InputError(f'expected "all" or one of the layers {kept}; got {one!r}')
    if not numbers:
        raise InputError("expected at least one layer, got none")
    return found, [found.layers.index(int(str(number))) for number in numbers]


def legend_lines(groups: Sequence[UseGroup], width: int | None) -> int:
    """Return how many lines the names of the labels take."""
    if not groups[0].name:
        return 0
    room = (width or ASSUMED_WIDTH) - 32
    widths = [7.2 * len(group.name) + 44 for group in groups]
    if sum(widths) <= room:
        return 1
    # in several lines Plotly gives every entry the width of the longest
    return -(-len(groups) // max(int(room / max(widths)), 1))


def legend_place(panels: Panels, lines: int) -> dict[str, Any]:
    """Return a legend above the panels, or none."""
    return {
        "showlegend": lines > 0,
        "legend": {
            "orientation": "h", "x": 0, "xanchor": "left", "yref": "container", "yanchor": "top",
            "y": 1 - (_TITLE + 4) / panels.size[1], "font": {"size": 12},
            "itemsizing": "constant", "traceorder": "normal",
        },
    }  # fmt: skip


def use_size(n_uses: int) -> float:
    """Return the size of a point, in pixels."""
    return float(np.clip(14.0 - 3.2 * math.log10(max(n_uses, 1)), 4.5, 11.0))


def _places(
    n: int, columns: int | None, width: int | None, height: int | None, lines: int
) -> Panels:
    """Return panels that are square where the height is free."""
    gap, sides = 16, 32
    inner = (width or ASSUMED_WIDTH) - sides
    n_columns = chosen_columns(n, columns, inner, _LEAST, gap)
    across = (inner - (n_columns - 1) * gap) / n_columns
    side = min(across, _WIDEST)
    top = _TITLE + lines * _LEGEND_LINE + (10 if lines else 0)
    head, foot, bottom = 24, 10, 8
    if height is not None:
        rows = -(-n // n_columns)
        side = max((height - top - bottom) / rows - head - foot, 40)
    return Panels(n, n_columns, across, side, head=head, foot=foot, gap=gap, top=top, bottom=bottom)


def _reach(points: Float64Array) -> float:
    """Return how far a square map goes from its middle."""
    return 1.1 * float(np.abs(points).max(initial=0.0)) or 1.0


def _axes(number: str, domain: tuple[list[float], list[float]], reach: float) -> dict[str, Any]:
    frame = {
        "range": [-reach, reach], "showticklabels": False, "ticks": "", "showgrid": False,
        "zeroline": True, "zerolinecolor": "#e6e9ed", "zerolinewidth": 1, "showline": True,
        "linecolor": "#d3d7dd", "mirror": True,
    }  # fmt: skip
    return {
        f"xaxis{number}": {**frame, "domain": domain[0], "anchor": f"y{number}"},
        f"yaxis{number}": {
            **frame, "domain": domain[1], "anchor": f"x{number}", "scaleanchor": f"x{number}",
        },
    }  # fmt: skip


def _points(
    points: Float64Array, groups: Sequence[UseGroup], hover: Sequence[str], layer: str, number: str
) -> list[dict[str, Any]]:
    """Return a trace for each label, which the legend shows and hides on all maps."""
    size = use_size(len(points))
    traces = []
    for group in groups:
        marker: dict[str, Any] = {
            "color": group.color, "size": size, "opacity": 0.8,
            "line": {"width": 0.5, "color": "#fff"},
        }  # fmt: skip
        if not isinstance(group.color, str):
            marker |= {"colorscale": USE_SCALE, "cmin": 0.0, "cmax": 1.0, "showscale": False}
        label = f"<b>{group.name}</b>, {layer}" if group.name else layer
        traces.append(
            {
                "type": "scatter", "mode": "markers", "name": group.name or layer,
                "x": points[group.members, 0].tolist(), "y": points[group.members, 1].tolist(),
                "xaxis": f"x{number}", "yaxis": f"y{number}", "marker": marker,
                "legendgroup": group.name, "showlegend": bool(group.name) and not number,
                "customdata": group.members.tolist(),
                "hovertext": [f"{label}<br>{hover[use]}" for use in group.members.tolist()],
                "hovertemplate": "%{hovertext}<extra></extra>",
                "hoverlabel": {"bordercolor": group.color if group.name else MUTED},
            }
        )  # fmt: skip
    return traces


def _rings(points: Float64Array, uses: Sequence[int], number: str) -> list[dict[str, Any]]:
    """Return a ring around each use that is to be followed, with its number."""
    if not uses:
        return []
    return [
        {
            "type": "scatter", "mode": "markers+text", "hoverinfo": "skip", "showlegend": False,
            "x": points[uses, 0].tolist(), "y": points[uses, 1].tolist(),
            "xaxis": f"x{number}", "yaxis": f"y{number}", "text": [str(use) for use in uses],
            "textposition": "top center",
            "textfont": {"size": 11, "color": INK, "weight": 650, "shadow": HALO},
            "marker": {
                "symbol": "circle-open", "size": use_size(len(points)) + 6, "color": INK,
                "line": {"width": 1.6},
            },
        }
    ]  # fmt: skip


def _title(found: WordMap, panels: Panels) -> list[dict[str, Any]]:
    """Return what is drawn, and what the figures above the maps mean."""
    n = len(found)
    encoder = escape(cut(found.encoder, 50))
    name = f"<b>{escape(cut(found.word, 60))}</b>{LEFT_TO_RIGHT}"
    lines = [
        f"{name} · {n:,} {'use' if n == 1 else 'uses'} · {encoder}",
        "above each map: mean cosine of two uses, and share of their variance that is shown",
    ]
    return [
        {
            "x": 0, "y": 1, "xref": "paper", "yref": "paper", "xanchor": "left",
            "yanchor": "top", "yshift": panels.top - 6 - 20 * place, "showarrow": False,
            "text": line, "align": "left",
            "font": {"size": 12, "color": MUTED} if place else {"size": 15, "color": INK},
        }
        for place, line in enumerate(lines)
    ]  # fmt: skip


def _heading(found: WordMap, at: int, width: float) -> str:
    """Return the name of a layer, with what its map shows."""
    cosine, share = found.similarity[at], found.shown[at]
    figures = [f"{cosine:.2f}"] if math.isfinite(cosine) else []
    figures += [f"{share:.0%}"] if math.isfinite(share) else []
    said = " · ".join(figures) or ("one use" if len(found) == 1 else "all alike")
    return (
        f'<b>layer {found.layers[at]}</b>  <span style="font-size:11px;color:{MUTED}">{said}</span>'
    )
