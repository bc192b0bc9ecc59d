"""The map of documents, at several levels of a hierarchy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.plots import document_map
from embedtopics.plots.text import INK, MUTED, cut, escape
from embedtopics.results import NOISE, Topic, TopicHierarchy, TopicResult

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["hierarchical_map"]

_LEVELS = 6


def hierarchical_map(
    result: TopicResult,
    hierarchy: TopicHierarchy,
    *,
    levels: Sequence[int] | None = None,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
    max_labels: int = 30,
    hover_characters: int = 200,
) -> Figure:
    """Draw the map of documents with a slider that joins its topics, level by level.

    At each level documents have the colour and name of the group that their topic belongs to. The
    points are in the figure once, however many levels there are.

    Parameters
    ----------
    result : TopicResult
    hierarchy : TopicHierarchy
        Of this result.
    levels : sequence of int, optional
        Numbers of groups. Without them all topics, and half as many each time, at most 6 levels.
    title, width, height, max_labels, hover_characters
        As in `embedtopics.plots.map`.

    Returns
    -------
    plotly.graph_objects.Figure
        The map at its finest level, and a slider.

    Raises
    ------
    InputError
        If there is no such level, or the hierarchy is of other topics.
    """
    sizes = [topic.size for topic in result.topics]
    if sizes != [node.size for node in hierarchy.nodes[: hierarchy.n_topics]]:
        raise InputError(
            f"the hierarchy is of other topics ({hierarchy.n_topics}) than the result's "
            f"({result.n_topics}); make it of this result with topics.hierarchy"
        )
    chosen = _halved(hierarchy.n_topics) if levels is None else sorted({*levels}, reverse=True)
    if not chosen and hierarchy.n_topics:
        raise InputError("expected at least one level; got none; leave levels out for the default")
    look: dict[str, Any] = {
        "title": title,
        "width": width,
        "height": height,
        "max_labels": max_labels,
    }
    figure = document_map.map(result, **look, hover_characters=hover_characters)
    if not hierarchy.n_topics:
        return figure
    # The traces of the topics, in their order; a topic without documents on the map has none.
    drawn = sorted(set(result.clustering.labels.tolist()) - {NOISE})
    first = len(figure.data) - len(drawn)
    steps = []
    for level in chosen:
        groups = hierarchy.nodes_at(level)
        seen = document_map.map(
            _at(result, hierarchy, groups),
            **look,
            hover_characters=0,
        )
        color_of, group_of = _looks(seen, hierarchy, groups, drawn)
        steps.append(_step(hierarchy, level, drawn, first, group_of, color_of, seen))
    changes, layout = steps[0]["args"][:2]
    for place, trace in enumerate(figure.data[first:]):
        trace.update(
            name=changes["name"][place], legendgroup=changes["legendgroup"][place],
            showlegend=changes["showlegend"][place], legendrank=changes["legendrank"][place],
        )  # fmt: skip
        trace.marker.color = changes["marker.color"][place]
        trace.hoverlabel.bordercolor = changes["hoverlabel.bordercolor"][place]
    figure.update_layout(
        annotations=layout["annotations"],
        margin={"b": 84},
        height=(height or 720) + 72,
        sliders=[_slider(steps)] if len(steps) > 1 else [],
    )
    return figure


def _halved(n_topics: int) -> list[int]:
    """Return the levels to offer, finest first."""
    levels = [n_topics] if n_topics else []
    while levels and levels[-1] > 3 and len(levels) < _LEVELS:
        levels.append(-(-levels[-1] // 2))
    return levels


def _at(result: TopicResult, hierarchy: TopicHierarchy, groups: tuple[int, ...]) -> TopicResult:
    """Return the result as the map reads it, with groups in place of topics."""
    if len(groups) == hierarchy.n_topics:
        return result
    number = np.full(result.n_topics + 1, NOISE, dtype=np.int32)
    about = []
    for place, group in enumerate(groups):
        node = hierarchy.nodes[group]
        number[list(hierarchy.topics_under(group))] = place
        about.append(Topic(place, node.label, node.size, 0.0, node.terms, node.weights, ()))
    clustering = replace(result.clustering, labels=number[result.clustering.labels])
    return replace(result, clustering=clustering, topics=tuple(about), stability=None)


def _looks(
    seen: Figure, hierarchy: TopicHierarchy, groups: tuple[int, ...], drawn: list[int]
) -> tuple[dict[int, str], dict[int, int]]:
    """Return the colour of each group, and the group of each topic."""
    of_topic = {t: group for group in groups for t in hierarchy.topics_under(group)}
    if len(groups) == hierarchy.n_topics:
        present = [of_topic[topic] for topic in drawn]
    else:
        held = {of_topic[topic] for topic in drawn}
        present = [group for group in groups if group in held]
    traces = seen.data[len(seen.data) - len(present) :]
    colors = {group: trace.marker.color for group, trace in zip(present, traces, strict=True)}
    return colors, of_topic


def _step(
    hierarchy: TopicHierarchy,
    level: int,
    drawn: list[int],
    first: int,
    group_of: dict[int, int],
    color_of: dict[int, str],
    seen: Figure,
) -> dict[str, Any]:
    """Return one step of the slider: what changes in the traces, and the names on the map."""
    groups = [group_of[topic] for topic in drawn]
    colors = [color_of[group] for group in groups]
    rank = {group: place for place, group in enumerate(hierarchy.nodes_at(level))}
    # One of the topics of a group stands for it in the legend; a click there hides all of them.
    stands = {group: place for place, group in reversed(list(enumerate(groups)))}
    changes = {
        "marker.color": colors,
        "hoverlabel.bordercolor": colors,
        "name": [escape(cut(hierarchy.nodes[group].label, 32)) for group in groups],
        "legendgroup": [f"{level}:{group}" for group in groups],
        "legendrank": [1001 + rank[group] for group in groups],
        "showlegend": [stands[group] == place for place, group in enumerate(groups)],
        "visible": [True] * len(groups),
    }
    names = [annotation.to_plotly_json() for annotation in seen.layout.annotations]
    return {
        "label": f"{level:,}",
        "method": "update",
        "args": [changes, {"annotations": names}, list(range(first, first + len(drawn)))],
    }


def _slider(steps: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "active": 0,
        "steps": steps,
        "currentvalue": {"prefix": "topics: ", "font": {"size": 13, "color": INK}},
        "font": {"color": MUTED, "size": 12},
        "x": 0.0,
        "len": 0.6,
        "pad": {"t": 8, "b": 8},
        "bordercolor": "#c6ccd4",
        "bgcolor": "#e6e9ed",
    }
