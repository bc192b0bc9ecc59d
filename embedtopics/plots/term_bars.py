"""The terms that set each topic apart, as small bar charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from embedtopics.errors import InputError
from embedtopics.plots.palette import tint, topic_colors
from embedtopics.plots.text import FONT, INK, MUTED, cut, escape, nothing_to_draw
from embedtopics.results import Topic, TopicResult

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["terms"]

_PANELS = 16
_BAR = 25
_HEAD = 52
_GAP = 0.03


def terms(result: TopicResult, *, topics: Sequence[int] | None = None, n_terms: int = 8) -> Figure:
    """Draw the best terms of each topic as bars, one panel a topic.

    The bars of a panel start at zero and its longest fills it: they compare the terms of one
    topic, never two topics. The weight itself is in the hover text.

    Parameters
    ----------
    result : TopicResult
    topics : sequence of int, optional
        Topic ids, in the order to draw; without them the 16 largest topics.
    n_terms : int
        Terms of each topic at most.

    Returns
    -------
    plotly.graph_objects.Figure
        One bar trace a topic, in the topics' colours.

    Raises
    ------
    InputError
        If a topic id is not in the result, or `n_terms` is below 1.
    """
    import plotly.graph_objects as go

    if n_terms < 1:
        raise InputError(f"n_terms must be 1 or more; got {n_terms}")
    chosen = _choose(result, topics)
    colors = topic_colors(result)
    n_columns = next((n for n, most in ((1, 1), (2, 4), (3, 9)) if len(chosen) <= most), 4)
    n_rows = max(-(-len(chosen) // n_columns), 1)
    height = n_rows * (n_terms * _BAR + _HEAD)
    axes: dict[str, Any] = {}
    annotations: list[dict[str, Any]] = []
    for panel, topic in enumerate(chosen):
        row, column = divmod(panel, n_columns)
        left, top = column * (1 + _GAP) / n_columns, 1 - row / n_rows
        bottom, head = top - 1 / n_rows, top - _HEAD / height
        number = str(panel + 1) if panel else ""
        best = max(topic.weights[:n_terms], default=0.0)
        axes[f"xaxis{number}"] = _axis(
            [left, left + (1 + _GAP) / n_columns - _GAP], f"y{number}", [0, best or 1.0]
        )
        axes[f"yaxis{number}"] = _axis(
            [max(bottom, 0.0), head], f"x{number}", [n_terms - 0.5, -0.5]
        )
        annotations += [_heading(topic, left, head), *_names(topic, n_terms, number)]
    return go.Figure(
        data=[
            _bars(topic, colors[topic.topic_id], n_terms, str(panel + 1) if panel else "")
            for panel, topic in enumerate(chosen)
        ],
        layout={
            "template": "none",
            "height": height + 44,
            "margin": {"l": 16, "r": 16, "t": 32, "b": 12},
            "font": {"family": FONT, "size": 13, "color": INK},
            "showlegend": False,
            "bargap": 0.18,
            "hoverlabel": {"bgcolor": "#fff", "font": {"family": FONT, "color": INK}},
            "annotations": annotations or [nothing_to_draw()],
            **(axes or {"xaxis": {"visible": False}, "yaxis": {"visible": False}}),
        },
    )


def _choose(result: TopicResult, topics: Sequence[int] | None) -> list[Topic]:
    """Return the topics to draw, in the order to draw them."""
    if topics is None:
        return list(result.topics[:_PANELS])
    unknown = [topic_id for topic_id in topics if not 0 <= topic_id < result.n_topics]
    if unknown:
        raise InputError(
            f"topics must be ids from 0 to {result.n_topics - 1}; got {unknown[0]}; "
            "the table of topics lists those that exist"
        )
    return [result.topics[topic_id] for topic_id in topics]


def _axis(domain: list[float], anchor: str, scale: list[float]) -> dict[str, Any]:
    """Return an axis of one panel, unseen: the bars carry their names themselves."""
    return {
        "domain": domain,
        "anchor": anchor,
        "range": scale,
        "visible": False,
        "fixedrange": True,
    }


def _bars(topic: Topic, color: str, n_terms: int, number: str) -> dict[str, Any]:
    """Return the bars of one topic, pale enough to write on."""
    weights = topic.weights[:n_terms]
    return {
        "type": "bar",
        "orientation": "h",
        "x": list(weights),
        "y": list(range(len(weights))),
        "xaxis": f"x{number}",
        "yaxis": f"y{number}",
        "marker": {"color": tint(color, 0.45), "line": {"width": 0}},
        "hovertext": [escape(cut(term, 60)) for term in topic.keywords[:n_terms]],
        "hovertemplate": "%{hovertext}: %{x:.3g}<extra></extra>",
    }


def _names(topic: Topic, n_terms: int, number: str) -> list[dict[str, Any]]:
    """Return the terms, written over their bars so that none is cut by a narrow panel."""
    return [
        {
            "x": 0,
            "y": rank,
            "xref": f"x{number}",
            "yref": f"y{number}",
            "xanchor": "left",
            "xshift": 6,
            "text": escape(cut(term, 30)),
            "showarrow": False,
        }
        for rank, term in enumerate(topic.keywords[:n_terms])
    ]


def _heading(topic: Topic, left: float, bottom: float) -> dict[str, Any]:
    """Return the name and size of a topic, above its panel."""
    rows = "row" if topic.size == 1 else "rows"
    return {
        "x": left,
        "y": bottom,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "bottom",
        "align": "left",
        "text": f"<b>{escape(cut(topic.label, 30))}</b>"
        f'<br><span style="font-size:11px;color:{MUTED}">'
        f"topic {topic.topic_id} · {topic.size:,} {rows}</span>",
        "showarrow": False,
    }
