"""The tree in which topics merge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.plots.annotations import HALO
from embedtopics.plots.palette import dark, spread_colors
from embedtopics.plots.text import FONT, INK, LEFT_TO_RIGHT, MUTED, cut, escape, nothing_to_draw
from embedtopics.results import TopicHierarchy, TopicNode

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["hierarchy"]

_LEAF = 19
_TRUNK = "#9aa3ad"
"""Colour of merges above the cut."""

_NAME_WIDTH = 34
_MOST_GROUPS = 16
_MOST_ON_A_SCREEN = 40
_TITLE = {"text": "distance at which topics merge", "standoff": 8}
_HOVER = "%{hovertext}<extra></extra>"
# Eight shadows make an outline that keeps a name legible over a line.


def hierarchy(
    hierarchy: TopicHierarchy, *, n_groups: int | None = None, width: int | None = None
) -> Figure:
    """Draw the tree in which topics merge, its topics by name on the right.

    Two topics that meet far on the right are alike; the further left a merge, the less its parts
    have in common. Each branch below the cut has a colour of its own, and its name where it
    begins. The points are merges: hovering shows their terms.

    Parameters
    ----------
    hierarchy : TopicHierarchy
    n_groups : int, optional
        Branches to colour. Without it the level with the widest gap among those of 2 to 16 groups
        (more than 2 for many topics) in which no group holds more than half of the texts.
    width : int, optional
        Pixels; without it the figure fills its place. The height follows from the topics.

    Returns
    -------
    plotly.graph_objects.Figure
        One line trace a colour, then the points of the merges.

    Raises
    ------
    InputError
        If there is no such level, or the width is below 300.
    """
    import plotly.graph_objects as go

    if width is not None and width < 300:
        raise InputError(f"width must be None or at least 300 pixels; got {width}")
    n_topics = hierarchy.n_topics
    n_groups = _natural_level(hierarchy) if n_groups is None else n_groups
    groups = hierarchy.nodes_at(n_groups)
    colors = _colors(hierarchy, groups)
    heights, places = _positions(hierarchy)
    reach = float(heights.max(initial=0.0)) or 1.0
    names = [hierarchy.nodes[topic] for topic in hierarchy.order.tolist()]
    # Of a tall figure the top is seen first, and the scale must be there.
    is_tall = n_topics > _MOST_ON_A_SCREEN
    return go.Figure(
        data=[
            *_lines(hierarchy, colors, heights, places),
            _points(hierarchy, colors, heights, places),
        ],
        layout={
            "template": "none",
            "width": width,
            "height": max(n_topics, 3) * _LEAF + 92,
            "margin": {"l": 24, "r": 16, "t": 52 if is_tall else 28, "b": 28 if is_tall else 52},
            "font": {"family": FONT, "size": 12, "color": INK},
            "showlegend": False,
            "hovermode": "closest",
            "hoverlabel": {
                "bgcolor": "#fff", "align": "left", "font": {"family": FONT, "color": INK},
            },
            "xaxis": {
                "range": [1.03 * reach, -0.01 * reach],
                "title": {**_TITLE, "font": {"color": MUTED}},
                "side": "top" if is_tall else "bottom",
                "tickfont": {"color": MUTED},
                "showgrid": True,
                "gridcolor": "#eef0f3",
                "zeroline": False,
                "fixedrange": True,
                "visible": n_topics > 0,
            },
            "yaxis": {
                "range": [n_topics - 0.4, -0.6],
                "side": "right",
                "tickvals": list(range(n_topics)),
                "ticktext": [_leaf_name(node) for node in names],
                "ticks": "",
                "automargin": True,
                "fixedrange": True,
                "showgrid": False,
                "zeroline": False,
                "visible": n_topics > 0,
            },
            "annotations": [
                *_group_names(hierarchy, groups, colors, heights, places),
                *([] if n_topics else [nothing_to_draw()]),
            ],
        },
    )  # fmt: skip


def _natural_level(hierarchy: TopicHierarchy) -> int:
    """Return the number of groups after whose last merge the next is furthest away."""
    # From single topics to the first merge it is always far: they are no level to find.
    least = max(2, min(round(hierarchy.n_topics**0.5 / 2), _MOST_GROUPS // 2))
    levels = [level for level in hierarchy.levels()[1:] if least <= level.n_topics <= _MOST_GROUPS]
    if not levels:
        return min(hierarchy.n_topics, 1)
    total = hierarchy.nodes[-1].size
    even = [level for level in levels if 2 * level.largest <= total] or levels
    return max(even, key=lambda level: level.gap).n_topics


def _colors(hierarchy: TopicHierarchy, groups: tuple[int, ...]) -> list[str]:
    """Return the colour of each node: that of its branch, or grey above the cut."""
    first = np.argsort(hierarchy.order)
    places = [first[list(hierarchy.topics_under(group))] for group in groups]
    middles = np.array([[0.0, np.mean(place)] for place in places]).reshape(-1, 2)
    # Branches side by side are told apart by their order alone, however many topics they hold.
    ranks = np.argsort(np.argsort(middles[:, 1])).astype(np.float64)
    colors = [_TRUNK] * len(hierarchy.nodes)
    shades = spread_colors(np.column_stack([np.zeros(len(groups)), ranks]))
    waiting = list(zip(groups, shades, strict=True))
    while waiting:
        node, color = waiting.pop()
        colors[node] = color
        if node >= hierarchy.n_topics:
            left, right = hierarchy.merges[node - hierarchy.n_topics].tolist()
            waiting += [(left, color), (right, color)]
    return colors


def _positions(hierarchy: TopicHierarchy) -> tuple[np.ndarray, np.ndarray]:
    """Return the distance of each node, and its place from top to bottom."""
    n_topics = hierarchy.n_topics
    heights = np.concatenate([np.zeros(n_topics), hierarchy.distances])
    places = np.zeros(len(hierarchy.nodes))
    places[hierarchy.order] = np.arange(n_topics)
    for merge, children in enumerate(hierarchy.merges):
        places[n_topics + merge] = places[children].mean()
    return heights, places


def _lines(
    hierarchy: TopicHierarchy, colors: list[str], heights: np.ndarray, places: np.ndarray
) -> list[dict[str, Any]]:
    """Return the lines of the tree, all of one colour as one trace."""
    of_color: dict[str, tuple[list[float | None], list[float | None]]] = {}
    n_topics = hierarchy.n_topics
    for merge, children in enumerate(hierarchy.merges.tolist()):
        node = n_topics + merge
        for child in children:  # from the merge up or down, then to the child
            x, y = of_color.setdefault(colors[child], ([], []))
            x += [float(heights[node]), float(heights[node]), float(heights[child]), None]
            y += [float(places[node]), float(places[child]), float(places[child]), None]
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "x": x,
            "y": y,
            "line": {"color": color, "width": 1.6},
            "hoverinfo": "skip",
        }
        for color, (x, y) in of_color.items()
    ]


def _points(
    hierarchy: TopicHierarchy, colors: list[str], heights: np.ndarray, places: np.ndarray
) -> dict[str, Any]:
    """Return the points of the merges, which show what they are about; without any, of topics."""
    shown = range(hierarchy.n_topics if len(hierarchy.merges) else 0, len(hierarchy.nodes))
    return {
        "type": "scatter",
        "mode": "markers",
        "x": heights[shown.start :].tolist(),
        "y": places[shown.start :].tolist(),
        "marker": {
            "size": 7,
            "color": [colors[node] for node in shown],
            "line": {"color": "#fff", "width": 1},
        },
        "hovertext": [_about(hierarchy.nodes[node], float(heights[node])) for node in shown],
        "hovertemplate": _HOVER,
    }


def _leaf_name(node: TopicNode) -> str:
    size = f'<span style="color:{MUTED}">{node.size:,}</span>'
    return f"  {escape(cut(node.label, _NAME_WIDTH))}{LEFT_TO_RIGHT}  {size}"


def _about(node: TopicNode, height: float) -> str:
    """Return what is shown of a merge: its terms, a few a line."""
    terms = [escape(cut(term, 40)) for term in node.terms]
    lines = [", ".join(terms[i : i + 4]) for i in range(0, len(terms), 4)]
    topics = "topic" if node.n_topics == 1 else "topics"
    rows = "row" if node.size == 1 else "rows"
    head = f"<b>{escape(cut(node.label, 60))}</b>"
    tail = f"{node.n_topics} {topics}, {node.size:,} {rows}, distance {height:.3g}"
    return "<br>".join([head, *lines, tail])


def _group_names(
    hierarchy: TopicHierarchy,
    groups: tuple[int, ...],
    colors: list[str],
    heights: np.ndarray,
    places: np.ndarray,
) -> list[dict[str, Any]]:
    """Return the names of the branches, where each leaves the trunk."""
    return [
        {
            "x": float(heights[hierarchy.parents[group]]),
            "y": float(places[group]),
            "xanchor": "left",
            "yanchor": "bottom",
            "xshift": 4,
            "yshift": -1,
            "text": f"<b>{escape(cut(hierarchy.nodes[group].label, _NAME_WIDTH))}</b>",
            "font": {"size": 11, "color": dark(colors[group]), "shadow": HALO},
            "showarrow": False,
        }
        for group in groups
        if group >= hierarchy.n_topics and hierarchy.parents[group] >= 0
    ]
