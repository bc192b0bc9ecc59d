"""How fast the weights of a topic's terms fall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.plots.palette import topic_colors
from embedtopics.plots.text import FONT, INK, MUTED, cut, escape, nothing_to_draw
from embedtopics.results import TopicResult

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["term_decline"]

_COLORED = 8
_OTHER = "#b4bbc4"


def term_decline(
    result: TopicResult,
    *,
    topics: Sequence[int] | None = None,
    n_terms: int = 20,
    log: bool = False,
    height: int = 520,
) -> Figure:
    """Draw the weight of each topic's terms by their rank, to see how many say something.

    Where a line bends and turns flat, further terms tell little more of the topic. Terms are ranked
    by their weight, not chosen as the keywords are.

    Parameters
    ----------
    result : TopicResult
    topics : sequence of int, optional
        Topics to colour, the others are grey; without it the 8 largest.
    n_terms : int
        Terms of each topic.
    log : bool
        Whether weights are on a logarithmic scale.
    height : int
        Pixels.

    Returns
    -------
    plotly.graph_objects.Figure
        One line trace a topic, the grey ones first.

    Raises
    ------
    InputError
        If a topic id is not in the result, or `n_terms` is below 1.
    """
    import plotly.graph_objects as go

    if n_terms < 1:
        raise InputError(f"n_terms must be 1 or more; got {n_terms}")
    chosen = list(range(min(_COLORED, result.n_topics))) if topics is None else list(topics)
    unknown = [topic for topic in chosen if not 0 <= topic < result.n_topics]
    if unknown:
        raise InputError(
            f"topics must be ids from 0 to {result.n_topics - 1}; got {unknown[0]}; "
            "the table of topics lists those that exist"
        )
    colors = topic_colors(result)
    others = [topic for topic in range(result.n_topics) if topic not in set(chosen)]
    return go.Figure(
        data=[
            *(_line(result, topic, None, n_terms) for topic in others),
            *(_line(result, topic, colors[topic], n_terms) for topic in chosen),
        ],
        layout={
            "template": "none",
            "height": height,
            "margin": {"l": 70, "r": 24, "t": 24, "b": 56},
            "font": {"family": FONT, "size": 13, "color": INK},
            "hovermode": "closest",
            "hoverlabel": {"bgcolor": "#fff", "font": {"family": FONT, "color": INK}},
            "legend": {"font": {"size": 12}},
            "xaxis": {
                "title": {"text": "rank of the term", "font": {"color": MUTED}},
                "range": [0.5, n_terms + 0.5],
                "dtick": max(1, n_terms // 10),
                "tick0": 1,
                "showgrid": False,
                "zeroline": False,
                "visible": result.n_topics > 0,
            },
            "yaxis": {
                "title": {"text": "weight", "font": {"color": MUTED}},
                "type": "log" if log else "linear",
                "rangemode": "tozero",
                "gridcolor": "#eef0f3",
                "zeroline": False,
                "exponentformat": "power",
                "visible": result.n_topics > 0,
            },
            "annotations": [] if result.n_topics else [nothing_to_draw()],
        },
    )


def _line(result: TopicResult, topic: int, color: str | None, n_terms: int) -> dict[str, Any]:
    """Return the line of one topic; in grey and without a place in the legend if of no colour."""
    row = result.topic_terms[[topic], :].tocoo()
    usable = np.flatnonzero(row.data > 0)
    order = usable[np.lexsort((row.col[usable], -row.data[usable]))[:n_terms]]
    name = escape(cut(result.topics[topic].label, 36))
    return {
        "type": "scatter",
        "mode": "lines" if color is None else "lines+markers",
        "name": name,
        "x": list(range(1, len(order) + 1)),
        "y": row.data[order].tolist(),
        "line": {"color": color or _OTHER, "width": 1 if color is None else 2.2},
        "opacity": 0.5 if color is None else 1.0,
        "marker": {"size": 5},
        "hovertext": [escape(cut(result.term_counts.terms[row.col[i]], 60)) for i in order],
        "hovertemplate": "%{x}. %{hovertext}: %{y:.3g}<extra>%{fullData.name}</extra>",
        "showlegend": color is not None,
    }
