"""The uses of a word: one map for each layer, or paths through the layers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.checks import is_number
from embedtopics.corpus._texts import is_missing
from embedtopics.errors import InputError
from embedtopics.plots._colors import NOISE_COLOR, PALETTE, dark, tint
from embedtopics.plots._inputs import check_input
from embedtopics.plots._labels import place_labels
from embedtopics.plots._map import HALO
from embedtopics.plots._theme import (
    GREY,
    GRID,
    LEFT_TO_RIGHT,
    MUTED,
    Canvas,
    Spec,
    axes_of,
    axis_keys,
    caption,
    cut,
    escape,
    fit_columns,
    hover,
    panel_figure,
    panel_note,
    panel_size,
    plain,
    scatter,
    small,
    title_notes,
    wrap,
)
from embedtopics.probing.words.results import WordMap
from embedtopics.protocols import Float64Array, Int64Array

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


SCALE = [
    [0.0, "#440154"], [0.28, "#3b528b"], [0.56, "#21918c"], [0.8, "#5ec962"], [1.0, "#c9cf2b"],
]  # fmt: skip
"""Shades of uses without labels, whose lightness rises evenly."""
MOST_LABELS, FEW_PATHS = 12, 4
"""Distinguishable labels, and paths without labels."""
MOST_NUMBERED = 13
"""Number of layers up to which a path names each."""
NARROWEST, WIDEST, TITLE, HEIGHT = 186, 560, 46, 620
"""Pixels of a panel, of the title, and of a figure of paths."""
FONT_SIZE, CHARACTERS = 12, 240
"""Pixels of a letter, and characters of a sentence on hovering."""
# Private characters that mark the word while a sentence is cut and wrapped.
OPEN, CLOSE = "\ue000", "\ue001"
AXIS: Spec = {"showticklabels": False, "zeroline": True, "zerolinecolor": GRID}
AXIS |= {"zerolinewidth": 1, "fixedrange": False}


@dataclass(frozen=True, eq=False)
class _Group:
    """Uses of one label: its escaped name, their numbers, and one colour or a shade each."""

    name: str
    members: Int64Array
    color: str | list[float]


def word_map(
    uses: WordMap,
    *,
    labels: Sequence[Any] | None = None,
    paths: bool = False,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw all uses of a word on one map for each layer, to show where they separate.

    A use has the same colour on all maps: that of its label, or without labels a shade by its
    position along the first axis of the last map. Hovering shows the sentence and the number of
    the use. Above each map are the mean cosine similarity of two uses, and the share of their
    variance that the map shows: if this is small, uses that are near on the map may be far apart.

    With `paths`, one common plane shows the paths of some uses through the layers. Each layer is
    centred on the mean of all uses, so that the paths show how uses separate, not how layers drift.
    A path has a numbered bead for each layer; the other uses are points at their positions in the
    last layer. The path of a label is that of its use nearest to the median of the label; without
    labels, the paths of four uses that are far apart are drawn.

    Parameters
    ----------
    uses : WordMap
        From `embedtopics.probing.word_map`.
    labels : sequence, optional
        A label for each text, such as the sense of the word, a period or a source.
        None and "" are no label; of more than 12 labels, the rarest share a colour.
    paths : bool
        Whether to draw paths through the layers, instead of a map for each layer.
    title : str, optional
    width, height : int, optional
        Pixels; by default those of the page, with a layout for 1,100, and what the maps need.

    Returns
    -------
    plotly.graph_objects.Figure
        Of paths, a trace of points for each label, then one for each path.

    Raises
    ------
    InputError
        If `labels` has another length.

    Examples
    --------
    >>> import embedtopics as et
    >>> texts = ["The bat flew off.", "He swung the bat.", "A bat hung there.", "The bat broke."]
    >>> states = et.probing.hidden_states("all-MiniLM-L6-v2", texts, layers=[0, 6])
    >>> uses = et.probing.word_map(states, "bat")
    >>> figure = et.plots.word_map(uses, labels=["animal", "sport", "animal", "sport"])
    >>> len(figure.data)  # two labels on the maps of two layers
    4
    >>> paths = et.plots.word_map(uses, paths=True)
    >>> len([path for path in paths.data if path.mode == "lines+markers+text"])
    4
    """
    canvas = Canvas(title, width, height)
    check_input(uses, "uses", WordMap, 'et.probing.word_map(states, "word")')
    groups = _grouped(uses, labels)
    if paths:
        return _draw_paths(uses, groups, canvas)
    return _draw_maps(uses, groups, canvas)


def _draw_maps(result: WordMap, groups: list[_Group], canvas: Canvas) -> Figure:
    """Draw a map for each layer."""
    texts = _hover_texts(result)
    n_lines = _legend_lines(groups, canvas)
    top = TITLE + n_lines * 21 + (10 if n_lines else 0) + 24

    n, gap = len(result.layers), 16
    columns, across = fit_columns(
        n,
        sides=32,
        least=NARROWEST,
        gap=gap,
        width=canvas.assumed_width,
    )
    figure = panel_figure(
        canvas,
        [min(across, WIDEST)] * -(-n // columns),  # square maps
        columns,
        n=n,
        between=34,
        gap=gap,
        margin={"l": 16, "r": 16, "t": top, "b": 18},
    )
    lines = [
        f"{_name(result)} · {_n_uses(result)} · {caption(result.encoder, 50)}",
        "above each map: mean cosine of uses, share of variance",
    ]
    notes = title_notes(lines, top - 6)

    frame = {**AXIS, "showline": True, "linecolor": "#d3d7dd", "mirror": True}
    figure.update_xaxes(frame).update_yaxes(frame)
    for panel, (layer, points) in enumerate(zip(result.layers, result.coordinates, strict=True)):
        limit = 1.1 * float(np.abs(points).max(initial=0.0)) or 1.0
        for key in axis_keys(panel):
            figure.layout[key].range = [-limit, limit]
        axes = axes_of(panel)
        figure.layout[axis_keys(panel)[1]].scaleanchor = axes["xaxis"]

        for group in groups:
            trace = _points(points, group, texts, f"layer {layer}")
            is_shown = bool(trace.get("legendgroup")) and not panel
            figure.add_trace({**trace, **axes, "showlegend": is_shown})
        notes.append(panel_note(figure, panel, _heading(result, panel), yshift=3))

    legend = _legend(figure, n_lines, canvas)
    return figure.update_layout(annotations=notes, dragmode="pan", **legend)


def _draw_paths(result: WordMap, groups: list[_Group], canvas: Canvas) -> Figure:
    """Draw the paths of some uses through the layers."""
    last = result.joint[-1]
    numbers = _typical(last, groups)
    texts = _hover_texts(result)
    n_lines = _legend_lines(groups, canvas)
    top = TITLE + 10 + 21 * n_lines + (8 if n_lines else 0)
    margin = {"l": 16, "r": 16, "t": top, "b": 12}
    figure = panel_figure(canvas, [HEIGHT - top - 12.0], margin=margin)
    size = np.array(panel_size(figure, 0, canvas))

    shown = np.concatenate([last, result.joint[:, numbers].reshape(-1, 2)])
    low, high = shown.min(axis=0), shown.max(axis=0)
    centre, reach = (low + high) / 2, (float(np.max((high - low) / size)) * 1.16 or 1.0) * size / 2
    shades = [_color(groups, use, i) for i, use in enumerate(numbers)]
    figure.add_traces([_background(last, group, texts) for group in groups])
    paths = zip(numbers, shades, strict=True)
    figure.add_traces([_path(result, use, color, texts[use]) for use, color in paths])

    notes = title_notes(_paths_title(result, len(numbers)), top - 6)
    pixels = (result.joint - centre) / (2 * reach) * size + size / 2
    notes += _use_labels(result, numbers, shades, pixels, (float(size[0]), float(size[1])))
    ranges = np.stack([centre - reach, centre + reach], axis=1).tolist()
    figure.update_xaxes({**AXIS, "range": ranges[0]})
    figure.update_yaxes({**AXIS, "range": ranges[1], "scaleanchor": "x"})
    legend = _legend(figure, n_lines, canvas)
    return figure.update_layout(annotations=notes, dragmode="pan", **legend)


def _grouped(result: WordMap, row_labels: Sequence[Any] | None) -> list[_Group]:
    """Return the uses by label, or without labels as one group shaded along the first axis."""
    n = len(result)
    if row_labels is None:
        along = np.round(result.coordinates[-1, :, 0], 12)
        ranks = np.argsort(np.argsort(along, kind="stable"))
        return [_Group("", np.arange(n), (ranks / max(n - 1, 1)).tolist())]
    raw = _labels(result, row_labels)
    present = [label for label in raw if label is not None]
    if present and all(is_number(label) for label in present):
        names = [f"{label:g}" for label in sorted({float(label) for label in present})]
        labels = [None if label is None else f"{float(label):g}" for label in raw]
    else:
        labels = [None if label is None else str(label) for label in raw]
        counts = Counter(label for label in labels if label is not None)
        names = sorted(counts, key=lambda name: (-counts[name], name))

    def uses_of(wanted: set[Any]) -> Int64Array:
        return np.array([i for i, label in enumerate(labels) if label in wanted], dtype=np.int64)

    members = {name: uses_of({name}) for name in names}
    frequent = set(names)
    if len(names) > MOST_LABELS:
        frequent = set(sorted(names, key=lambda name: -len(members[name]))[: MOST_LABELS - 1])
    shown = [name for name in names if name in frequent]
    groups = [
        _Group(caption(name, 30) + LEFT_TO_RIGHT, members[name], color)
        for name, color in zip(shown, PALETTE, strict=False)
    ]
    if len(shown) < len(names):
        rest = uses_of(set(names) - frequent)
        groups.append(_Group(f"{len(names) - len(shown):,} other labels", rest, GREY))
    without = uses_of({None})
    return [_Group("no label", without, NOISE_COLOR), *groups] if len(without) else groups


def _labels(result: WordMap, row_labels: Sequence[Any]) -> list[Any]:
    """Return the label of each use; None if it has none."""
    labels = list(row_labels)
    if len(labels) != result.n_texts:
        raise InputError("labels", f"a label for each of the {result.n_texts:,} texts", labels)
    of_uses = [labels[text] for text in result.uses["text"]]
    return [None if is_missing(label) or label == "" else label for label in of_uses]


def _name(result: WordMap) -> str:
    return f"<b>{caption(result.word, 60)}</b>{LEFT_TO_RIGHT}"


def _n_uses(result: WordMap) -> str:
    return f"{len(result):,} {'use' if len(result) == 1 else 'uses'}"


def _hover_texts(result: WordMap) -> list[str]:
    """Return the sentence of each use as Plotly markup, with the word in bold, and its number."""
    hover_texts = []
    for use, text in enumerate(result.uses["text"]):
        lines = [*_marked_use(result, use, CHARACTERS), f"<i>use {use}, text {text}</i>"]
        hover_texts.append("<br>".join(lines))
    return hover_texts


def _marked_use(result: WordMap, use: int, length: int, width: int = 60) -> list[str]:
    row = result.uses.iloc[use]
    end = row["offset"] + row["end"] - row["start"]
    return marked(row["sentence"], (row["offset"], end), length, width)


def marked(sentence: str, word_span: tuple[int, int], length: int, width: int = 60) -> list[str]:
    """Return a sentence, or the part around the word, as escaped lines with the word in bold."""
    start, end = word_span
    before, after = sentence[:start], sentence[end:]
    word = cut(sentence[start:end], length)
    space = max(length - len(word), 0)
    left, right = plain(before), plain(after)
    n_left = min(len(left), max(space // 2, space - len(right)))
    n_right = min(len(right), space - n_left)
    if n_left < len(left):
        left = left[len(left) - n_left :]
        left = "…" + left[left.find(" ", 0, 20) + 1 :]  # begin with a whole word, if one is near
    if n_right < len(right):
        right = cut(right, n_right + 1) if n_right else "…"
    # plain() drops the spaces around the word.
    left += " " if before[-1:].isspace() else ""
    right = (" " if after[:1].isspace() else "") + right
    left, word, right = (part.replace(OPEN, "").replace(CLOSE, "") for part in (left, word, right))
    lines = [escape(line) for line in wrap(f"{left}{OPEN}{word}{CLOSE}{right}", width)]
    return [line.replace(OPEN, "<b>").replace(CLOSE, "</b>") for line in lines]


def _heading(result: WordMap, place: int) -> str:
    cosine, share = result.similarity[place], result.explained_variance[place]
    parts = [f"{cosine:.2f}"] if math.isfinite(cosine) else []
    parts += [f"{share:.0%}"] if math.isfinite(share) else []
    text = " · ".join(parts) or ("one use" if len(result) == 1 else "identical vectors")
    return f"<b>layer {result.layers[place]}</b>  {small(text)}"


def _paths_title(result: WordMap, n_paths: int) -> list[str]:
    first, last = result.layers[0], result.layers[-1]
    text = f"layers {first} to {last}, each centred" if len(result.layers) > 1 else f"layer {first}"
    shares = result.joint_explained_variance[np.isfinite(result.joint_explained_variance)]
    if len(shares):
        ends = dict.fromkeys((f"{shares.min():.0%}", f"{shares.max():.0%}"))
        text += f"; {' to '.join(ends)} of its variance shown"
    parts = _name(result), f"{n_paths} of {_n_uses(result)}", caption(result.encoder, 40)
    return [" · ".join(parts), text]


def _legend_lines(groups: Sequence[_Group], canvas: Canvas) -> int:
    """Return the number of lines of the legend."""
    if not groups[0].name:
        return 0
    space = canvas.assumed_width - 32
    widths = [7.2 * len(group.name) + 44 for group in groups]
    # In several lines, Plotly gives every entry the width of the longest.
    return 1 if sum(widths) <= space else -(-len(groups) // max(int(space / max(widths)), 1))


def _legend(figure: Figure, n_lines: int, canvas: Canvas) -> Spec:
    below_title = canvas.title_band + TITLE + 4
    place = {
        "yref": "container",
        "y": 1 - below_title / figure.layout.height,
        "yanchor": "top",
    }
    legend = {**place, "itemsizing": "constant", "traceorder": "normal"}
    return {"showlegend": n_lines > 0, "legend": legend}


def _size(n_uses: int) -> float:
    return float(np.clip(14.0 - 3.2 * math.log10(max(n_uses, 1)), 4.5, 11.0))


def _dots(
    points: Float64Array, group: _Group, head: str, texts: Sequence[str], **marker: Any
) -> Spec:
    """Return the uses of one label, which the legend shows and hides on all maps."""
    head = f"{head}<br>" if head else ""
    members = group.members.tolist()
    x, y = points[members].T.tolist()
    more: Spec = {"legendgroup": group.name, "customdata": members}
    more |= {"marker": {"size": _size(len(points)), **marker}}
    return scatter(x, y, **hover([head + texts[use] for use in members]), **more)


def _points(points: Float64Array, group: _Group, texts: Sequence[str], layer: str) -> Spec:
    marker: Spec = {"color": group.color, "line": {"width": 0.5, "color": "#fff"}}
    if not isinstance(group.color, str):
        marker |= {"colorscale": SCALE, "cmin": 0.0, "cmax": 1.0, "showscale": False}
    head = f"<b>{group.name}</b>, {layer}" if group.name else layer
    border = {"bordercolor": group.color if group.name else MUTED}
    dots = _dots(points, group, head, texts, opacity=0.8, **marker)
    return dots | {"name": group.name or layer, "hoverlabel": border}


def _typical(places: Float64Array, groups: Sequence[_Group]) -> list[int]:
    """Return the use nearest to the median of each label, or some far apart without labels."""
    if groups[0].name:
        typical = []
        for group in [one for one in groups if one.name != "no label"] or groups:
            points = places[group.members]
            gaps = np.linalg.norm(points - np.median(points, axis=0), axis=1)
            typical.append(int(group.members[np.argmin(np.round(gaps, 9))]))
        return typical
    typical = [int(np.argmax(np.round(np.linalg.norm(places, axis=1), 9)))]
    while len(typical) < min(FEW_PATHS, len(places)):
        least = np.linalg.norm(places[:, None] - places[typical], axis=-1).min(axis=1)
        typical.append(int(np.argmax(np.round(least, 9))))
    return sorted(set(typical))


def _color(groups: Sequence[_Group], use: int, number: int) -> str:
    """Return the colour of a path, which is that of its label."""
    for group in groups:
        if group.name and isinstance(group.color, str) and use in group.members:
            return group.color
    return PALETTE[number % len(PALETTE)]


def _background(points: Float64Array, group: _Group, texts: Sequence[str]) -> Spec:
    """Return the uses of one label at the last layer, in a pale colour."""
    color = tint(group.color, 0.4) if isinstance(group.color, str) else "#c9ced6"
    head = f"<b>{group.name}</b>" if group.name else ""
    dots = _dots(points, group, head, texts, opacity=0.9, line={"width": 0}, color=color)
    return dots | {"name": group.name or "uses", "showlegend": bool(group.name)}


def _path(result: WordMap, use: int, color: str, text: str) -> Spec:
    """Return the path of one use with a bead for each layer; some of many layers are numbered."""
    n = len(result.layers)
    step = -(-n // MOST_NUMBERED)
    numbered = [(n - 1 - place) % step == 0 for place in range(n)]
    beads: Spec = {"color": dark(color), "size": [16 if shown else 6 for shown in numbered]}
    beads |= {"opacity": 1, "line": {"width": 1, "color": "#fff"}}
    x, y = result.joint[:, use].T.tolist()
    return scatter(
        x,
        y,
        "lines+markers+text",
        name=f"use {use}",
        line={"color": color, "width": 2},
        showlegend=False,
        marker=beads,
        text=[str(a) if shown else "" for a, shown in zip(result.layers, numbered, strict=True)],
        textfont={"size": 9.5, "color": "#fff"},
        textposition="middle center",
        **hover([f"<b>layer {layer}</b><br>{text}" for layer in result.layers]),
    )


def _use_labels(
    result: WordMap,
    uses: Sequence[int],
    colors: Sequence[str],
    pixels: Float64Array,
    size: tuple[float, float],
) -> list[Spec]:
    """Return the words around each use at the end of its path, without overlaps."""
    lines = [_marked_use(result, use, 46, 28)[:3] for use in uses]
    bare = [[line.replace("<b>", "").replace("</b>", "") for line in text] for text in lines]
    boxes = [(0.58 * FONT_SIZE * max(map(len, t)), 1.35 * FONT_SIZE * len(t)) for t in bare]
    shifts = []
    for use, (across, up) in zip(uses, boxes, strict=True):
        way = result.joint[-1, use] - result.joint[0, use]
        shifts.append((np.sign(way[0] or 1) * (across / 2 + 14), 0.3 * np.sign(way[1]) * up))
    anchors = pixels[-1, list(uses)] + np.array(shifts).reshape(-1, 2)
    notes = []
    for placed in place_labels(anchors, boxes, size, len(uses), pixels[:, list(uses)]):
        n = placed.label
        x, y = result.joint[-1, uses[n]].tolist()
        right, up = np.add(placed.shift, shifts[n]).tolist()
        font = {"size": FONT_SIZE, "color": dark(colors[n]), "shadow": HALO}
        text = {"x": x, "y": y, "text": "<br>".join(lines[n]), "showarrow": False, "font": font}
        notes.append({**text, "xshift": right, "yshift": up})
    return notes
