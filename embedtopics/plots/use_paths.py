"""The way of a word's uses through the layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.plots.annotations import HALO
from embedtopics.plots.labels import place_labels
from embedtopics.plots.palette import PALETTE, dark, tint
from embedtopics.plots.panels import ASSUMED_WIDTH, Panels, checked_sizes, panel_layout
from embedtopics.plots.text import INK, LEFT_TO_RIGHT, MUTED, cut, escape
from embedtopics.plots.word_maps import found_map, legend_lines, legend_place, use_size
from embedtopics.plots.word_uses import UseGroup, checked_uses, grouped_uses, hover_texts, marked
from embedtopics.results import HiddenStates, WordMap, WordSenses

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["word_paths"]

Float64Array = npt.NDArray[np.float64]

_MOST = 8
"""Paths that are told apart."""
_CHOSEN = 4
"""Paths where neither uses nor labels are given."""
_BEADS = 13
"""Layers up to which each has its number on the path."""
_SIZE = 12


def word_paths(
    found: WordMap | HiddenStates,
    word: str | Sequence[str] | None = None,
    *,
    uses: Sequence[int] | None = None,
    layer: str | int | Sequence[int] = "all",
    colors: Sequence[Any] | WordSenses | None = None,
    width: int | None = None,
    height: int = 620,
    hover_characters: int = 240,
) -> Figure:
    """Draw the way of some uses of a word through the layers, on one plane for all of them.

    Each layer is drawn less the mean of all uses there, so that what is seen is how the uses part
    and not how the layers drift. A path has a bead a layer, with its number; the other uses are
    points where they lie at the last layer.

    Parameters
    ----------
    found : WordMap or HiddenStates
    word : str or sequence of str, optional
        With states.
    uses : sequence of int, optional
        Numbers of uses, 8 at most; without them the use of each label that is nearest to the
        middle of its label, or without labels four that lie far apart.
    layer : "all", int or sequence of int
    colors : sequence or WordSenses, optional
        As for `word_map`.
    width, height : int, optional
        Pixels.
    hover_characters : int

    Returns
    -------
    plotly.graph_objects.Figure
        A trace of points for each label, then one for each path.

    Raises
    ------
    InputError
        If the word does not occur, there is no such layer or use, or `colors` has another length.
    """
    import plotly.graph_objects as go

    checked_sizes(width, height)
    drawn, picked = found_map(found, word, layer)
    places = drawn.joint[picked]
    groups = grouped_uses(drawn, colors, drawn.coordinates[picked[-1]])
    chosen = _typical(places[-1], groups) if uses is None else checked_uses(drawn, uses, _MOST)
    lines = legend_lines(groups, width)
    top = 56 + 21 * lines + (8 if lines else 0)
    inner = (width or ASSUMED_WIDTH) - 32
    panels = Panels(1, 1, inner, height - top - 12, head=0, foot=0, top=top)
    hover = hover_texts(drawn, hover_characters)
    drawing = (float(inner), float(height - top - 12))
    reach, centre = _window(places, chosen, drawing)
    traces = _background(places[-1], groups, hover)
    for number, use in enumerate(chosen):
        color = _color(groups, use, number)
        traces.append(_path(drawn, picked, places[:, use], use, color, hover[use]))
    axis = {
        "showticklabels": False, "ticks": "", "showgrid": False, "zeroline": True,
        "zerolinecolor": "#e6e9ed", "zerolinewidth": 1,
    }  # fmt: skip
    notes = _title(drawn, picked, len(chosen), top)
    pixels = (places[-1] - centre) / (2 * reach) * np.array(drawing) + np.array(drawing) / 2
    notes += _names(drawn, chosen, places, pixels, groups, drawing)
    layout = panel_layout(panels, width, height, notes)
    layout |= {
        "xaxis": {**axis, "range": [centre[0] - reach[0], centre[0] + reach[0]]},
        "yaxis": {**axis, "range": [centre[1] - reach[1], centre[1] + reach[1]],
                  "scaleanchor": "x"},
        "dragmode": "pan", **legend_place(panels, lines),
    }  # fmt: skip
    return go.Figure(data=traces, layout=layout)


def _typical(places: Float64Array, groups: Sequence[UseGroup]) -> list[int]:
    """Return the uses that stand for their labels, or some that lie far apart."""
    if groups[0].name:
        named = [group for group in groups if group.name != "no label"] or list(groups)
        chosen = []
        for group in named[:_MOST]:
            gaps = np.linalg.norm(
                places[group.members] - np.median(places[group.members], axis=0), axis=1
            )
            chosen.append(int(group.members[np.argmin(np.round(gaps, 9))]))
        return chosen
    gaps = np.linalg.norm(places, axis=1)
    chosen = [int(np.argmax(np.round(gaps, 9)))]
    while len(chosen) < min(_CHOSEN, len(places)):
        least = np.linalg.norm(places[:, None] - places[chosen], axis=-1).min(axis=1)
        chosen.append(int(np.argmax(np.round(least, 9))))
    return sorted(set(chosen))


def _window(
    places: Float64Array, chosen: Sequence[int], drawing: tuple[float, float]
) -> tuple[Float64Array, Float64Array]:
    """Return half the extent and the middle of what is drawn, at one scale along both axes."""
    shown = np.concatenate([places[-1], places[:, chosen].reshape(-1, 2)])
    low, high = shown.min(axis=0), shown.max(axis=0)
    size = np.array(drawing)
    scale = float(np.max((high - low) / size)) * 1.16 or 1.0
    return scale * size / 2, (low + high) / 2


def _color(groups: Sequence[UseGroup], use: int, number: int) -> str:
    """Return the colour of a path: that of its label."""
    for group in groups:
        if group.name and isinstance(group.color, str) and use in group.members:
            return group.color
    return PALETTE[number % len(PALETTE)]


def _background(
    points: Float64Array, groups: Sequence[UseGroup], hover: Sequence[str]
) -> list[dict[str, Any]]:
    """Return all uses at the last layer, pale."""
    return [
        {
            "type": "scatter", "mode": "markers", "name": group.name or "uses",
            "x": points[group.members, 0].tolist(), "y": points[group.members, 1].tolist(),
            "marker": {
                "size": use_size(len(points)), "opacity": 0.9, "line": {"width": 0},
                "color": tint(group.color, 0.4) if isinstance(group.color, str) else "#c9ced6",
            },
            "legendgroup": group.name, "showlegend": bool(group.name),
            "customdata": group.members.tolist(),
            "hovertext": [
                (f"<b>{group.name}</b><br>" if group.name else "") + hover[use]
                for use in group.members.tolist()
            ],
            "hovertemplate": "%{hovertext}<extra></extra>",
        }
        for group in groups
    ]  # fmt: skip


def _path(
    found: WordMap, picked: Sequence[int], points: Float64Array, use: int, color: str, hover: str
) -> dict[str, Any]:
    """Return the way of one use, with a bead a layer."""
    layers = [found.layers[at] for at in picked]
    step = -(-len(layers) // _BEADS)
    # where layers are many, the last is numbered and every so many before it
    numbered = [(len(layers) - 1 - place) % step == 0 for place in range(len(layers))]
    return {
        "type": "scatter", "mode": "lines+markers+text", "name": f"use {use}",
        "x": points[:, 0].tolist(), "y": points[:, 1].tolist(),
        "line": {"color": color, "width": 2},
        "marker": {
            "color": dark(color), "size": [16 if shown else 6 for shown in numbered],
            "opacity": 1, "line": {"width": 1, "color": "#fff"},
        },
        "text": [str(n) if shown else "" for n, shown in zip(layers, numbered, strict=True)],
        "textfont": {"size": 9.5, "color": "#fff"}, "textposition": "middle center",
        "showlegend": False,
        "hovertext": [f"<b>layer {layer}</b><br>{hover}" for layer in layers],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }  # fmt: skip


def _names(
    found: WordMap,
    chosen: Sequence[int],
    places: Float64Array,
    pixels: Float64Array,
    groups: Sequence[UseGroup],
    drawing: tuple[float, float],
) -> list[dict[str, Any]]:
    """Return what stands around the word in each use, near the end of its path."""
    spans = found.spans.tolist()
    texts = ["<br>".join(marked(found.sentences[u], spans[u], 46, 28)[:3]) for u in chosen]
    plain = [text.replace("<b>", "").replace("</b>", "").split("<br>") for text in texts]
    boxes = [(0.58 * _SIZE * max(map(len, lines)), 1.35 * _SIZE * len(lines)) for lines in plain]
    # beside the last bead, on the side to which the path goes
    shifts = []
    for use, (across, up) in zip(chosen, boxes, strict=True):
        way = places[-1, use] - places[0, use]
        shifts.append((np.sign(way[0] or 1) * (across / 2 + 14), 0.3 * np.sign(way[1]) * up))
    anchors = pixels[list(chosen)] + np.array(shifts).reshape(-1, 2)
    return [
        {
            "x": float(places[-1, use, 0]), "y": float(places[-1, use, 1]), "text": texts[label],
            "xshift": placed.shift[0] + shifts[label][0],
            "yshift": placed.shift[1] + shifts[label][1], "showarrow": False,
            "font": {"size": _SIZE, "color": dark(_color(groups, use, label)), "shadow": HALO},
        }
        for placed in place_labels(anchors, boxes, drawing, len(chosen))
        for label, use in [(placed.index, chosen[placed.index])]
    ]  # fmt: skip


def _title(found: WordMap, picked: Sequence[int], n: int, top: int) -> list[dict[str, Any]]:
    """Return what is drawn, and how much of it the plane shows."""
    first, last = found.layers[picked[0]], found.layers[picked[-1]]
    through = f"layers {first} to {last}" if len(picked) > 1 else f"layer {first}"
    name = f"<b>{escape(cut(found.word, 60))}</b>{LEFT_TO_RIGHT}"
    shares = found.shown_jointly[picked]
    shares = shares[np.isfinite(shares)]
    said = "one plane for all layers, each less the mean of its uses"
    if len(shares):
        low, high = f"{shares.min():.0%}", f"{shares.max():.0%}"
        between = low if low == high else f"{low} to {high}"
        said += f"; it shows {between} of a layer's variance"
    lines = [f"{name} · {n} of {len(found):,} uses through {through} · "
             f"{escape(cut(found.encoder, 40))}", said]  # fmt: skip
    return [
        {
            "x": 0, "y": 1, "xref": "paper", "yref": "paper", "xanchor": "left",
            "yanchor": "top", "yshift": top - 6 - 20 * place, "showarrow": False, "text": line,
            "align": "left",
            "font": {"size": 12, "color": MUTED} if place else {"size": 15, "color": INK},
        }
        for place, line in enumerate(lines)
    ]  # fmt: skip
