"""How alike topics are, every two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.plots.text import FONT, INK, LEFT_TO_RIGHT, MUTED, cut, escape, nothing_to_draw
from embedtopics.results import TopicHierarchy

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["SCALE", "similarity"]

_NAMED_CELL = 12
"""Pixels of a cell from which on there is room for the names."""

# Lightness falls evenly, so that the order is seen by every kind of colour vision and in print.
SCALE = [
    [0.0, "#f7fbff"],
    [0.25, "#c6dbef"],
    [0.5, "#6baed6"],
    [0.75, "#2171b5"],
    [1.0, "#08306b"],
]


def similarity(hierarchy: TopicHierarchy, *, n_groups: int | None = None) -> Figure:
    """Draw the similarity of every two topics, in the order of the tree.

    Topics that merge lie side by side, so that groups of like topics are dark squares along the
    diagonal. The names are left out where there is no room for them; hovering shows them.

    Parameters
    ----------
    hierarchy : TopicHierarchy
    n_groups : int, optional
        Draw lines around the groups of this level.

    Returns
    -------
    plotly.graph_objects.Figure
        One heat map; the diagonal is empty, for every topic is like itself.

    Raises
    ------
    InputError
        If there is no such level.
    """
    import plotly.graph_objects as go

    n_topics = hierarchy.n_topics
    order = hierarchy.order
    cell = int(np.clip(760 / max(n_topics, 1), 4, 30))
    values = hierarchy.similarities[np.ix_(order, order)].astype(float)
    np.fill_diagonal(values, np.nan)
    # The ids keep topics of one name apart, which an axis of names would take for one.
    names = [
        f"{escape(cut(hierarchy.nodes[t].label, 34))}{LEFT_TO_RIGHT} [{t}]" for t in order.tolist()
    ]
    seen = values[~np.isnan(values)]
    axis = {
        "type": "category",
        "range": [-0.5, n_topics - 0.5],
        "showgrid": False,
        "zeroline": False,
        "constrain": "domain",
        "visible": n_topics > 0,
    }
    named = {"automargin": True, "dtick": 1, "ticklen": 6, "tickcolor": "#fff"}
    unnamed = {"showticklabels": False, "ticks": ""}
    side = n_topics * cell
    return go.Figure(
        data=[
            {
                "type": "heatmap",
                "z": values,
                "x": names,
                "y": names,
                "colorscale": SCALE,
                "zmin": min(float(seen.min()), 0.0) if len(seen) else 0.0,
                "zmax": float(seen.max()) if len(seen) else 1.0,
                "xgap": 1 if cell > 8 else 0,
                "ygap": 1 if cell > 8 else 0,
                "hovertemplate": "%{y}<br>%{x}<br>similarity %{z:.2f}<extra></extra>",
                "colorbar": {
                    "title": {"text": "similarity", "font": {"color": MUTED}},
                    "thickness": 12, "len": 200, "lenmode": "pixels", "outlinewidth": 0,
                    "y": 1, "yanchor": "top", "tickfont": {"color": MUTED},
                },
            }
        ],
        layout={
            "template": "none",
            "height": max(side, 160) + 60,
            "width": max(side, 160) + (390 if cell >= _NAMED_CELL else 150),
            "margin": {"l": 24, "r": 96, "t": 24, "b": 24},
            "font": {"family": FONT, "size": 12, "color": INK},
            "hoverlabel": {"bgcolor": "#fff", "font": {"family": FONT, "color": INK}},
            "xaxis": {**axis, **unnamed},
            "yaxis": {
                **axis, **(named if cell >= _NAMED_CELL else unnamed),
                "range": [n_topics - 0.5, -0.5], "scaleanchor": "x",
            },
            "shapes": [] if n_groups is None else _frames(hierarchy, n_groups),
            "annotations": [] if n_topics else [nothing_to_draw()],
        },
    )  # fmt: skip


def _frames(hierarchy: TopicHierarchy, n_groups: int) -> list[dict[str, Any]]:
    """Return a square around each group of a level that holds several topics."""
    place = np.argsort(hierarchy.order)
    frames = []
    for group in hierarchy.cut(n_groups):
        begin, end = place[list(group)].min() - 0.5, place[list(group)].max() + 0.5
        if len(group) > 1:
            frames.append(
                {
                    "type": "rect", "x0": begin, "x1": end, "y0": begin, "y1": end,
                    "line": {"color": "#d55e00", "width": 1.5},
                }
            )  # fmt: skip
    return frames
