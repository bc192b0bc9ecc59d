"""How many rows each topic holds, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from embedtopics.errors import InputError
from embedtopics.plots.palette import NOISE_COLOR, topic_colors
from embedtopics.plots.text import FONT, INK, cut, escape
from embedtopics.results import NOISE, TopicResult

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["sizes"]

_BAR = 26


class _Bar(NamedTuple):
    name: str
    length: int
    color: str
    note: str


def sizes(result: TopicResult, *, max_topics: int = 40) -> Figure:
    """Draw the rows of each topic as bars, largest first, and the rows of no topic in grey.

    The lines account for every row: topics beyond `max_topics` share one, rows of no topic and
    rows without text have one each. The shared line has figures and no bar, which would dwarf
    the bars of single topics. Where stability was measured, a topic's line says how far it comes
    back in replicates, and unstable topics are paler.

    Parameters
    ----------
    result : TopicResult
    max_topics : int
        Topics with a bar of their own.

    Returns
    -------
    plotly.graph_objects.Figure
        One bar trace.

    Raises
    ------
    InputError
        If `max_topics` is below 1.
    """
    import plotly.graph_objects as go

    if max_topics < 1:
        raise InputError(f"max_topics must be 1 or more; got {max_topics}")
    bars = _bars(result, max_topics)
    longest = max((bar.length for bar in bars), default=0) or 1
    position = list(range(len(bars)))
    return go.Figure(
        data=[
            {
                "type": "bar",
                "orientation": "h",
                "x": [bar.length for bar in bars],
                "y": position,
                "marker": {"color": [bar.color for bar in bars], "line": {"width": 0}},
                "text": [bar.note for bar in bars],
                "textposition": "outside",
                "textfont": {"color": INK, "size": 12},
                "cliponaxis": False,
                "hoverinfo": "skip",  # the bar says in writing all that there is to say
            }
        ],
        layout={
            "template": "none",
            "height": len(bars) * _BAR + 48,
            "margin": {"l": 16, "r": 110 if result.stability is None else 190, "t": 36, "b": 12},
            "font": {"family": FONT, "size": 13, "color": INK},
            "showlegend": False,
            "bargap": 0.25,
            "xaxis": {"visible": False, "fixedrange": True, "range": [0, longest]},
            "yaxis": {
                "range": [len(bars) - 0.5, -0.5],
                "tickvals": position,
                "ticktext": [escape(cut(bar.name, 36)) + "  " for bar in bars],
                "automargin": True,
                "fixedrange": True,
                "showgrid": False,
                "zeroline": False,
            },
        },
    )


def _bars(result: TopicResult, max_topics: int) -> list[_Bar]:
    """Return the bars from top to bottom."""
    of_row = result.documents.of_row
    n_empty = int(np.sum(of_row < 0))
    n_text = len(of_row) - n_empty
    n_noise = int(np.sum(result.labels == NOISE)) - n_empty

    def note(n_rows: int) -> str:
        return f"{n_rows:,} · {n_rows / n_text:.1%}" if n_text else f"{n_rows:,}"

    recurs = [""] * result.n_topics
    if result.stability is not None:
        recurs = [f" · recurs {value:.2f}" for value in result.stability.recurrence]
    bars = [
        _Bar(topic.label, topic.size, color, note(topic.size) + recurs[topic.topic_id])
        for topic, color in zip(result.topics, topic_colors(result), strict=True)
    ][:max_topics]
    rest = result.topics[max_topics:]
    if rest:
        n_rest = sum(topic.size for topic in rest)
        name = "1 smaller topic" if len(rest) == 1 else f"{len(rest):,} smaller topics"
        bars.append(_Bar(name, 0, NOISE_COLOR, note(n_rest)))
    bars.append(_Bar("No topic", n_noise, NOISE_COLOR, note(n_noise)))
    if n_empty:
        bars.append(_Bar("Without text", n_empty, NOISE_COLOR, f"{n_empty:,}"))
    return bars
