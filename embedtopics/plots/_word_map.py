"""The uses of a word: a map a layer, or paths through the layers on one plane."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.checks import is_count, is_number
from embedtopics.corpus._texts import is_missing
from embedtopics.errors import InputError
from embedtopics.plots._colors import NOISE_COLOR, PALETTE, dark, tint
from embedtopics.plots._labels import place_labels
from embedtopics.plots._map import HALO
from embedtopics.plots._theme import (
    ASSUMED_WIDTH,
    GREY,
    GRID,
    INK,
    LEFT_TO_RIGHT,
    MUTED,
    axes_of,
    caption,
    checked_sizes,
    chosen_columns,
    cut,
    escape,
    panel_figure,
    panel_note,
    plain,
    title_notes,
    wrap,
)
from embedtopics.probing.words.results import WordMap, WordSenses, WordUse
from embedtopics.protocols import Float64Array, Int64Array

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


SCALE = [
    [0.0, "#440154"], [0.28, "#3b528b"], [0.56, "#21918c"], [0.8, "#5ec962"], [1.0, "#c9cf2b"],
]  # fmt: skip
"""Shades for uses without labels; lightness rises evenly, for every kind of colour vision."""
MOST_LABELS, MOST_PATHS, FEW_PATHS = 12, 8, 4
"""Labels and paths that can be distinguished; paths without labels."""
MOST_NUMBERED = 13
"""Layers up to which each has its number on a path."""
NARROWEST, WIDEST, TITLE = 196, 560, 46
"""Pixels of a panel, and of the title."""
FONT_SIZE = 12
# Private characters mark the word while a sentence is cut and wrapped.
OPEN, CLOSE = "\ue000", "\ue001"
AXIS = {
    "showticklabels": False,
    "zeroline": True,
    "zerolinecolor": GRID,
    "zerolinewidth": 1,
    "fixedrange": False,
}


@dataclass(frozen=True, eq=False)
class _Group:
    """Uses that share a label: its escaped name, their numbers, and a colour or one each."""

    name: str
    members: Int64Array
    color: str | list[float]


def word_map(
    found: WordMap,
    *,
    colors: Sequence[Any] | WordSenses | None = None,
    follow: Sequence[int] = (),
    same_scale: bool = False,
    columns: int | None = None,
    width: int | None = None,
    height: int | None = None,
    hover_characters: int = 240,
) -> Figure:
    """Draw all uses of a word on one map a layer, which shows where they separate.

    A use has the same colour on all maps: that of its label, or without labels a shade by its
    place along the first axis of the last map. Hovering shows the sentence and the number of the
    use. Above each map are the mean cosine similarity of two uses, and the share of their variance
    that the map shows: where that is small, uses that lie together may be far apart.

    Parameters
    ----------
    found : WordMap
        From `embedtopics.probing.word_map`.
    colors : sequence or WordSenses, optional
        A label for each use, each text or each unit of the states: senses, periods, sources.
        None and "" are no label; of more than 12, the rarest share a colour.
    follow : sequence of int
        Numbers of uses to ring on every map.
    same_scale : bool
        Whether all maps share one scale, on which layers that separate uses little are small.
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
        If there is no such use, or `colors` has another length.
    """
    checked_sizes(width, height)
    groups = _grouped(found, colors)
    rings = _checked_uses(found, follow, "follow", len(found))
    hover = _hover_texts(found, hover_characters)
    n_lines = _legend_lines(groups, width)
    n, gap, between = len(found.layers), 16, 34
    inner = (width or ASSUMED_WIDTH) - 32
    columns = chosen_columns(n, columns, inner, NARROWEST, gap)
    n_rows, top = -(-n // columns), TITLE + n_lines * 21 + (10 if n_lines else 0) + 24
    up = min((inner - (columns - 1) * gap) / columns, WIDEST)  # square where the height is free
    if height is not None:
        up = max((height - top - n_rows * between) / n_rows, 40)
    margin = {"l": 16, "r": 16, "t": top, "b": 18}
    figure = panel_figure(
        [up] * n_rows, columns, n=n, between=between, gap=gap, width=width, margin=margin
    )
    reaches = [1.1 * float(np.abs(one).max(initial=0.0)) or 1.0 for one in found.coordinates]
    lines = [
        f"{_name(found)} · {_n_uses(found)} · {caption(found.encoder, 50)}",
        "above each map: mean cosine of two uses, share of variance shown",
    ]
    notes = title_notes(lines, top - 6)
    frame = {**AXIS, "showline": True, "linecolor": "#d3d7dd", "mirror": True}
    figure.update_xaxes(frame).update_yaxes(frame)
    for panel, (layer, points) in enumerate(zip(found.layers, found.coordinates, strict=True)):
        reach = max(reaches) if same_scale else reaches[panel]
        axes = axes_of(panel)
        for name, axis in axes.items():
            figure.layout[f"{name[0]}axis{axis[1:]}"].range = [-reach, reach]
        figure.layout[f"yaxis{axes['yaxis'][1:]}"].scaleanchor = axes["xaxis"]
        own = [_points(points, group, hover, f"layer {layer}") for group in groups]
        for trace in own + _rings(points, rings):
            shown = bool(trace.get("legendgroup")) and not panel
            figure.add_trace({**trace, **axes, "showlegend": shown})
        notes.append(panel_note(figure, panel, _heading(found, panel), yshift=3))
    return figure.update_layout(annotations=notes, dragmode="pan", **_legend(figure, n_lines))


def word_paths(
    found: WordMap,
    *,
    uses: Sequence[int] | None = None,
    colors: Sequence[Any] | WordSenses | None = None,
    width: int | None = None,
    height: int = 620,
    hover_characters: int = 240,
) -> Figure:
    """Draw the paths of some uses of a word through the layers, on one plane for all of them.

    Each layer is centred on the mean of all uses, so that the paths show how uses separate and
    not how layers drift. A path has a numbered bead a layer; the other uses are points where they
    lie at the last layer.

    Parameters
    ----------
    found : WordMap
        From `embedtopics.probing.word_map`.
    uses : sequence of int, optional
        Numbers of uses, 8 at most; by default the use of each label that is nearest to the median
        of its label, or without labels four that lie far apart.
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
        If there is no such use, or `colors` has another length.
    """
    checked_sizes(width, height)
    groups = _grouped(found, colors)
    last = found.joint[-1]
    chosen = _typical(last, groups)
    if uses is not None:
        chosen = _checked_uses(found, uses, "uses", MOST_PATHS)
    hover = _hover_texts(found, hover_characters)
    n_lines = _legend_lines(groups, width)
    top = TITLE + 10 + 21 * n_lines + (8 if n_lines else 0)
    size = np.array([(width or ASSUMED_WIDTH) - 32.0, height - top - 12.0])
    margin = {"l": 16, "r": 16, "t": top, "b": 12}
    figure = panel_figure([float(size[1])], width=width, margin=margin)
    shown = np.concatenate([last, found.joint[:, chosen].reshape(-1, 2)])
    low, high = shown.min(axis=0), shown.max(axis=0)
    centre, reach = (low + high) / 2, (float(np.max((high - low) / size)) * 1.16 or 1.0) * size / 2
    colors_of = [_color(groups, use, number) for number, use in enumerate(chosen)]
    figure.add_traces([_background(last, group, hover) for group in groups])
    paths = zip(chosen, colors_of, strict=True)
    figure.add_traces([_path(found, use, color, hover[use]) for use, color in paths])
    notes = title_notes(_paths_title(found, len(chosen)), top - 6)
    pixels = (last - centre) / (2 * reach) * size + size / 2
    notes += _use_labels(found, chosen, colors_of, pixels, (float(size[0]), float(size[1])))
    ranges = np.stack([centre - reach, centre + reach], axis=1).tolist()
    figure.update_xaxes({**AXIS, "range": ranges[0]})
    figure.update_yaxes({**AXIS, "range": ranges[1], "scaleanchor": "x"})
    return figure.update_layout(annotations=notes, dragmode="pan", **_legend(figure, n_lines))


def _grouped(found: WordMap, colors: Sequence[Any] | WordSenses | None) -> list[_Group]:
    """Return the uses by label; without labels as one group, shaded along the first axis."""
    if not isinstance(found, WordMap):
        raise InputError("found", "a WordMap from probing.word_map", found=type(found).__name__)
    if colors is None:
        along = np.round(found.coordinates[-1, :, 0], 12)
        ranks = np.argsort(np.argsort(along, kind="stable"))
        return [_Group("", np.arange(len(found)), (ranks / max(len(found) - 1, 1)).tolist())]
    given = _senses(found, colors) if isinstance(colors, WordSenses) else _labels(found, colors)
    known = [label for label in given if label is not None]
    if known and all(is_number(label) for label in known):
        names = [f"{label:g}" for label in sorted({float(label) for label in known})]
        labels = [None if label is None else f"{float(label):g}" for label in given]
    else:
        labels = [None if label is None else str(label) for label in given]
        counts = Counter(label for label in labels if label is not None)
        names = sorted(counts, key=lambda name: (-counts[name], name))

    def where(wanted: set[Any]) -> Int64Array:
        return np.array([i for i, label in enumerate(labels) if label in wanted], dtype=np.int64)

    members = {name: where({name}) for name in names}
    kept = set(names)
    if len(names) > MOST_LABELS:
        kept = set(sorted(names, key=lambda name: -len(members[name]))[: MOST_LABELS - 1])
    own = [name for name in names if name in kept]
    groups = [
        _Group(caption(name, 30) + LEFT_TO_RIGHT, members[name], color)
        for name, color in zip(own, PALETTE, strict=False)
    ]
    if len(own) < len(names):
        rest = where(set(names) - kept)
        groups.append(_Group(f"{len(names) - len(own):,} other labels", rest, GREY))
    without = where({None})
    return [_Group("no label", without, NOISE_COLOR), *groups] if len(without) else groups


def _senses(found: WordMap, senses: WordSenses) -> list[str | None]:
    """Return the sense of each use, None for those that have none."""
    of_row = {use.row: f"sense {n}" for use, n in zip(senses.uses, senses.labels, strict=True)}
    labels = [of_row.get(use.row) for use in found.uses]
    if not any(labels) or senses.encoder != found.encoder:
        expected = f"senses of the uses of {found.word!r} with {found.encoder}"
        said = f"those of {senses.word!r} with {senses.encoder}"
        raise InputError("colors", expected, found=said)
    return labels


def _labels(found: WordMap, colors: Sequence[Any]) -> list[Any]:
    given = list(colors)
    rows = {
        "use": (len(found), list(range(len(found)))),
        "text": (found.n_texts, [use.text for use in found.uses]),
        "unit": (found.n_units, [use.row for use in found.uses]),
    }
    fitting = [own for n, own in rows.values() if n == len(given)]
    if not fitting or any(own != fitting[0] for own in fitting):
        counts = ", ".join(f"{n:,} {name}s" for name, (n, _) in rows.items())
        ambiguous = ", which fits several of these" if fitting else ""
        raise InputError(
            "colors", f"a label for each of the {counts}", found=f"{len(given):,}{ambiguous}"
        )
    chosen = [given[row] for row in fitting[0]]
    return [None if is_missing(label) or label == "" else label for label in chosen]


def _checked_uses(found: WordMap, uses: Sequence[int], name: str, most: int) -> list[int]:
    for use in uses:
        if not is_count(use, 0) or use >= len(found):
            raise InputError(name, f"numbers of uses from 0 to {len(found) - 1}", use)
    if len(uses) > most:
        raise InputError(name, f"at most {most} uses", found=f"{len(uses)}")
    return [int(use) for use in uses]


def _name(found: WordMap) -> str:
    return f"<b>{caption(found.word, 60)}</b>{LEFT_TO_RIGHT}"


def _n_uses(found: WordMap) -> str:
    return f"{len(found):,} {'use' if len(found) == 1 else 'uses'}"


def _hover_texts(found: WordMap, length: int) -> list[str]:
    """Return the sentence of each use as Plotly markup, the word in bold, and its number."""
    if not is_count(length, 0):
        raise InputError("hover_characters", "an integer from 0 up", length)
    return [
        "<br>".join([*(marked(use, length) if length else []), f"<i>use {n}, text {use.text}</i>"])
        for n, use in enumerate(found.uses)
    ]


def marked(use: WordUse, length: int, width: int = 60) -> list[str]:
    """Return a sentence as escaped lines, the word in bold; a long one as the words around it."""
    before, word, after = use.parts
    word = cut(word, length)
    space = max(length - len(word), 0)
    left, right = plain(before), plain(after)
    n_left = min(len(left), max(space // 2, space - len(right)))
    n_right = min(len(right), space - n_left)
    if n_left < len(left):
        left = left[len(left) - n_left :]
        left = "…" + left[left.find(" ", 0, 20) + 1 :]  # from a whole word, if one is near
    if n_right < len(right):
        right = cut(right, n_right + 1) if n_right else "…"
    # plain() drops the spaces beside the word
    left += " " if before[-1:].isspace() else ""
    right = (" " if after[:1].isspace() else "") + right
    left, word, right = (part.replace(OPEN, "").replace(CLOSE, "") for part in (left, word, right))
    lines = [escape(line) for line in wrap(f"{left}{OPEN}{word}{CLOSE}{right}", width)]
    return [line.replace(OPEN, "<b>").replace(CLOSE, "</b>") for line in lines]


def _heading(found: WordMap, place: int) -> str:
    cosine, share = found.similarity[place], found.explained_variance[place]
    parts = [f"{cosine:.2f}"] if math.isfinite(cosine) else []
    parts += [f"{share:.0%}"] if math.isfinite(share) else []
    text = " · ".join(parts) or ("one use" if len(found) == 1 else "identical vectors")
    return (
        f"<b>layer {found.layers[place]}</b>  "
        f'<span style="font-size:11px;color:{MUTED}">{text}</span>'
    )


def _paths_title(found: WordMap, n_paths: int) -> list[str]:
    first, last = found.layers[0], found.layers[-1]
    through = f"layers {first} to {last}" if len(found.layers) > 1 else f"layer {first}"
    text = "one plane, each layer centred on its uses"
    shares = found.joint_explained_variance[np.isfinite(found.joint_explained_variance)]
    if len(shares):
        ends = dict.fromkeys((f"{shares.min():.0%}", f"{shares.max():.0%}"))
        text += f"; {' to '.join(ends)} of its variance shown"
    encoder = caption(found.encoder, 40)
    return [f"{_name(found)} · {n_paths} of {_n_uses(found)} through {through} · {encoder}", text]


def _legend_lines(groups: Sequence[_Group], width: int | None) -> int:
    """Return how many lines the names of the labels take."""
    if not groups[0].name:
        return 0
    space = (width or ASSUMED_WIDTH) - 32
    widths = [7.2 * len(group.name) + 44 for group in groups]
    # in several lines Plotly gives every entry the width of the longest
    return 1 if sum(widths) <= space else -(-len(groups) // max(int(space / max(widths)), 1))


def _legend(figure: Figure, n_lines: int) -> dict[str, Any]:
    place = {"yref": "container", "y": 1 - (TITLE + 4) / figure.layout.height, "yanchor": "top"}
    legend = {**place, "itemsizing": "constant", "traceorder": "normal"}
    return {"showlegend": n_lines > 0, "legend": legend}


def _size(n_uses: int) -> float:
    return float(np.clip(14.0 - 3.2 * math.log10(max(n_uses, 1)), 4.5, 11.0))


def _scatter(
    points: Float64Array, members: Sequence[int], hover: Sequence[str], **more: Any
) -> dict[str, Any]:
    own = points[list(members)]
    place = {"type": "scatter", "mode": "markers", "x": own[:, 0].tolist(), "y": own[:, 1].tolist()}
    return {**place, "hovertext": hover, "hovertemplate": "%{hovertext}<extra></extra>", **more}


def _dots(
    points: Float64Array, group: _Group, head: str, hover: Sequence[str], **marker: Any
) -> dict[str, Any]:
    """Return the uses of one label, which the legend shows and hides on all maps."""
    head = f"{head}<br>" if head else ""
    members = group.members.tolist()
    dots = {"size": _size(len(points)), **marker}
    more = {"legendgroup": group.name, "customdata": members, "marker": dots}
    return _scatter(points, members, [head + hover[use] for use in members], **more)


def _points(
    points: Float64Array, group: _Group, hover: Sequence[str], layer: str
) -> dict[str, Any]:
    marker: dict[str, Any] = {"color": group.color, "line": {"width": 0.5, "color": "#fff"}}
    if not isinstance(group.color, str):
        marker |= {"colorscale": SCALE, "cmin": 0.0, "cmax": 1.0, "showscale": False}
    head = f"<b>{group.name}</b>, {layer}" if group.name else layer
    border = {"bordercolor": group.color if group.name else MUTED}
    dots = _dots(points, group, head, hover, opacity=0.8, **marker)
    return dots | {"name": group.name or layer, "hoverlabel": border}


def _rings(points: Float64Array, uses: list[int]) -> list[dict[str, Any]]:
    if not uses:
        return []
    size = _size(len(points)) + 6
    ring = {"symbol": "circle-open", "size": size, "color": INK, "line": {"width": 1.6}}
    font = {"size": 11, "color": INK, "weight": 650, "shadow": HALO}
    text = {"text": [str(use) for use in uses], "textposition": "top center", "textfont": font}
    own = points[uses].T.tolist()
    rings = {"type": "scatter", "mode": "markers+text", "x": own[0], "y": own[1]}
    return [{**rings, "hoverinfo": "skip", "marker": ring, **text}]


def _typical(places: Float64Array, groups: Sequence[_Group]) -> list[int]:
    """Return a use for each label, near its median, or without labels some far apart."""
    if groups[0].name:
        chosen = []
        for group in [one for one in groups if one.name != "no label"] or groups:
            own = places[group.members]
            gaps = np.linalg.norm(own - np.median(own, axis=0), axis=1)
            chosen.append(int(group.members[np.argmin(np.round(gaps, 9))]))
        return chosen
    chosen = [int(np.argmax(np.round(np.linalg.norm(places, axis=1), 9)))]
    while len(chosen) < min(FEW_PATHS, len(places)):
        least = np.linalg.norm(places[:, None] - places[chosen], axis=-1).min(axis=1)
        chosen.append(int(np.argmax(np.round(least, 9))))
    return sorted(set(chosen))


def _color(groups: Sequence[_Group], use: int, number: int) -> str:
    """Return the colour of a path: that of its label."""
    for group in groups:
        if group.name and isinstance(group.color, str) and use in group.members:
            return group.color
    return PALETTE[number % len(PALETTE)]


def _background(points: Float64Array, group: _Group, hover: Sequence[str]) -> dict[str, Any]:
    """Return the uses of one label at the last layer, pale."""
    color = tint(group.color, 0.4) if isinstance(group.color, str) else "#c9ced6"
    head = f"<b>{group.name}</b>" if group.name else ""
    dots = _dots(points, group, head, hover, opacity=0.9, line={"width": 0}, color=color)
    return dots | {"name": group.name or "uses", "showlegend": bool(group.name)}


def _path(found: WordMap, use: int, color: str, hover: str) -> dict[str, Any]:
    """Return the path of one use, with a bead a layer; of many layers some are numbered."""
    n = len(found.layers)
    step = -(-n // MOST_NUMBERED)
    numbered = [(n - 1 - place) % step == 0 for place in range(n)]
    beads = {
        "color": dark(color),
        "size": [16 if shown else 6 for shown in numbered],
        "opacity": 1,
        "line": {"width": 1, "color": "#fff"},
    }
    return _scatter(
        found.joint[:, use],
        range(n),
        [f"<b>layer {layer}</b><br>{hover}" for layer in found.layers],
        mode="lines+markers+text",
        name=f"use {use}",
        line={"color": color, "width": 2},
        showlegend=False,
        marker=beads,
        text=[str(a) if shown else "" for a, shown in zip(found.layers, numbered, strict=True)],
        textfont={"size": 9.5, "color": "#fff"},
        textposition="middle center",
    )


def _use_labels(
    found: WordMap,
    chosen: Sequence[int],
    colors: Sequence[str],
    pixels: Float64Array,
    size: tuple[float, float],
) -> list[dict[str, Any]]:
    """Return the words around each use, beside the end of its path, where they do not overlap."""
    lines = [marked(found.uses[use], 46, 28)[:3] for use in chosen]
    bare = [[line.replace("<b>", "").replace("</b>", "") for line in own] for own in lines]
    boxes = [(0.58 * FONT_SIZE * max(map(len, own)), 1.35 * FONT_SIZE * len(own)) for own in bare]
    shifts = []
    for use, (across, up) in zip(chosen, boxes, strict=True):
        way = found.joint[-1, use] - found.joint[0, use]
        shifts.append((np.sign(way[0] or 1) * (across / 2 + 14), 0.3 * np.sign(way[1]) * up))
    anchors = pixels[list(chosen)] + np.array(shifts).reshape(-1, 2)
    notes = []
    for placed in place_labels(anchors, boxes, size, len(chosen)):
        n = placed.label
        x, y = found.joint[-1, chosen[n]].tolist()
        right, up = np.add(placed.shift, shifts[n]).tolist()
        font = {"size": FONT_SIZE, "color": dark(colors[n]), "shadow": HALO}
        text = {"x": x, "y": y, "text": "<br>".join(lines[n]), "showarrow": False, "font": font}
        notes.append({**text, "xshift": right, "yshift": up})
    return notes
