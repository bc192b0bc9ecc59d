"""The hierarchy of topics as a tree."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.plots._colors import dark, spread_colors
from embedtopics.plots._inputs import check_input
from embedtopics.plots._theme import (
    LEFT_TO_RIGHT,
    MUTED,
    Canvas,
    Spec,
    base_layout,
    caption,
    empty_figure,
    hover,
    name_axis,
    scatter,
)
from embedtopics.protocols import Float64Array
from embedtopics.topics.results import TopicHierarchy

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_LEAF = 19
_TRUNK = "#9aa3ad"
"""Colour of merges above the cut."""

_NAME_WIDTH = 34
_MOST_ON_A_SCREEN = 40


def hierarchy(
    hierarchy: TopicHierarchy,
    *,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw the tree in which topics merge, with the names of the topics on the right.

    Topics that merge far on the right are similar; the further left a merge is, the less its
    branches have in common. Each theme has its own colour, and its name above those of its topics.
    The points are merges: hovering shows their terms.

    Parameters
    ----------
    hierarchy : TopicHierarchy
        From `embedtopics.topics.hierarchy`.
    title : str, optional
    width, height : int, optional
        Pixels; by default the width of the page, and the height that the content needs.

    Returns
    -------
    plotly.graph_objects.Figure
        One line trace per colour, then the points of the merges.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo"))
    >>> tree = et.topics.hierarchy(model)
    >>> figure = et.plots.hierarchy(tree)
    >>> figure.layout.xaxis.title.text
    'merge distance'
    """
    import plotly.graph_objects as go

    canvas = Canvas(title, width, height)
    check_input(hierarchy, "hierarchy", TopicHierarchy, "et.topics.hierarchy(model)")
    n_topics = hierarchy.n_topics
    groups = hierarchy.themes
    if not n_topics:
        return empty_figure(canvas)
    colors = _colors(hierarchy, groups)
    heights = np.concatenate([np.zeros(n_topics), hierarchy.distances])
    places = np.zeros(len(hierarchy.names))
    theme_of = {topic: group for group in groups for topic in hierarchy.topics_under(group)}
    names, before = [], None
    for topic in hierarchy.order.tolist():
        group = theme_of[topic]
        if group != before and group >= n_topics and hierarchy.parents[group] >= 0:
            name = caption(hierarchy.names[group], _NAME_WIDTH)
            names.append(f'  <b><span style="color:{dark(colors[group])}">{name}</span></b>')
        before, places[topic] = group, len(names)
        size = f'<span style="color:{MUTED}">{hierarchy.sizes[topic]:,}</span>'
        names.append(f"  {caption(hierarchy.names[topic], _NAME_WIDTH)}{LEFT_TO_RIGHT}  {size}")
    for merge, children in enumerate(hierarchy.merges):
        places[n_topics + merge] = places[children].mean()
    reach = float(heights.max(initial=0.0)) or 1.0
    distance = {"range": [1.03 * reach, -0.01 * reach], "tickfont": {"color": MUTED}}
    # The top of a tall figure is seen first, so the scale is there.
    is_tall = n_topics > _MOST_ON_A_SCREEN
    side, top, bottom = ("top", 52, 28) if is_tall else ("bottom", 28, 52)
    axis_title = {"text": "merge distance", "standoff": 8}
    layout = base_layout(canvas, max(len(names), 3) * _LEAF + 92, l=24, r=16, t=top, b=bottom) | {
        "font": {"size": 12},
        "xaxis": {**distance, "side": side, "title": axis_title, "showgrid": True},
        "yaxis": {**name_axis(names, None), "side": "right", "range": [len(names) - 0.4, -0.6]},
    }
    traces = _lines(hierarchy, colors, heights, places)
    first = n_topics if len(hierarchy.merges) else 0  # the merges; without any, the topics
    table = hierarchy.to_frame().iloc[first:]
    marker = {"size": 7, "color": colors[first:], "line": {"color": "#fff", "width": 1}}
    texts = hover([_about(node) for node in table.to_dict("records")])
    points = scatter(heights[first:].tolist(), places[first:].tolist(), marker=marker, **texts)
    return go.Figure([*traces, points], layout)


def _colors(hierarchy: TopicHierarchy, groups: tuple[int, ...]) -> list[str]:
    """Return the colour of each node: that of its branch, or grey above the cut."""
    first = np.argsort(hierarchy.order)
    middles = np.array([first[list(hierarchy.topics_under(group))].mean() for group in groups])
    # Adjacent branches get different colours, however many topics they hold.
    ranks = np.argsort(np.argsort(middles)).astype(np.float64)
    colors = [_TRUNK] * len(hierarchy.names)
    shades = spread_colors(np.column_stack([np.zeros(len(groups)), ranks]))
    waiting = list(zip(groups, shades, strict=True))
    while waiting:
        node, color = waiting.pop()
        colors[node] = color
        if node >= hierarchy.n_topics:
            left, right = hierarchy.merges[node - hierarchy.n_topics].tolist()
            waiting += [(left, color), (right, color)]
    return colors


def _lines(
    hierarchy: TopicHierarchy, colors: list[str], heights: Float64Array, places: Float64Array
) -> list[Spec]:
    """Return the lines of the tree, one trace per colour."""
    of_color: dict[str, tuple[list[float | None], list[float | None]]] = {}
    for merge, children in enumerate(hierarchy.merges.tolist()):
        node = hierarchy.n_topics + merge
        for child in children:  # from the merge up or down, then to the child
            x, y = of_color.setdefault(colors[child], ([], []))
            x += [float(heights[node]), float(heights[node]), float(heights[child]), None]
            y += [float(places[node]), float(places[child]), float(places[child]), None]
    return [
        scatter(x, y, "lines", hoverinfo="skip", line={"color": color, "width": 1.6})
        for color, (x, y) in of_color.items()
    ]


def _about(node: dict[Hashable, Any]) -> str:
    """Return the hover text of a merge: its terms, four a line."""
    terms = [caption(term, 40) for term in node["terms"]]
    lines = [", ".join(terms[i : i + 4]) for i in range(0, len(terms), 4)]
    topics = "topic" if node["n_topics"] == 1 else "topics"
    rows = "row" if node["size"] == 1 else "rows"
    head = f"<b>{caption(node['name'], 60)}</b>"
    tail = f"{node['n_topics']} {topics}, {node['size']:,} {rows}, distance {node['distance']:.3g}"
    return "<br>".join([head, *lines, tail])
