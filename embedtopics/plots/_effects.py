"""Shares of topics: what they depend on, and how they differ between groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.checks import checked_count
from embedtopics.errors import InputError
from embedtopics.plots._colors import PALETTE
from embedtopics.plots._theme import (
    INK,
    MUTED,
    axes_of,
    caption,
    checked_topics,
    empty_figure,
    interval_dots,
    look,
    name_axis,
    note,
    panel_figure,
    panel_note,
    topic_name,
)
from embedtopics.topics.trends.results import TopicEffects, TopicGroups

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_ROW = 22
_LEVELS = 4
_SIGNIFICANT, _OPEN = PALETTE[0], "#9aa4b1"


def effects(
    found: TopicEffects,
    covariate: str | None = None,
    topics: Sequence[int] | None = None,
    *,
    max_topics: int = 30,
) -> Figure:
    """Draw the effect of one covariate on each topic, largest on top.

    Points whose interval includes zero are grey.

    Parameters
    ----------
    found : TopicEffects
    covariate : str, optional
        The first one by default. A categorical one has a panel for each of its first four levels,
        in the order of the first.
    topics : sequence of int, optional
        Topic ids; without them those with the largest effects in either direction.
    max_topics : int
        Topics without `topics`.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        If there is no such covariate or topic, or `max_topics` is below 1.
    """
    names = [name for name in dict.fromkeys(found.covariates) if name]
    wanted = names[0] if covariate is None else covariate
    if wanted not in names:
        raise InputError("covariate", f"one of {', '.join(map(repr, names))}", covariate)
    columns = [i for i, name in enumerate(found.covariates) if name == wanted][:_LEVELS]
    chosen = _largest_first(found, topics, columns, checked_count(max_topics, "max_topics"))
    if not chosen:
        return empty_figure()
    margin = {"r": 24, "t": 56, "b": 56}
    height = max(len(chosen), 2) * _ROW + 8
    figure = panel_figure([height], len(columns), gap=64, margin=margin, shared_yaxes=True)
    notes = []
    for panel, column in enumerate(columns):
        figure.add_trace(_effect_dots(found, chosen, column) | axes_of(panel))
        notes.append(panel_note(figure, panel, _covariate(found, column), yshift=6))
    zero = {"zeroline": True, "zerolinecolor": "#6b7684", "zerolinewidth": 1.5}
    figure.update_xaxes(zero, showgrid=True, nticks=5, tickfont_size=11)
    figure.update_yaxes(name_axis([topic_name(found.labels, topic) for topic in chosen]))
    error = "sampling error"
    error += f" and {found.n_replicates} replicates" if found.n_replicates else " only"
    about = f"percentage points of the rows; {found.confidence:.0%} intervals: {error}"
    notes.append(note(about, y=0, up="top", yshift=-24, size=11, color=MUTED))
    return figure.update_layout(annotations=notes)


def _largest_first(
    found: TopicEffects, topics: Sequence[int] | None, columns: list[int], most: int
) -> list[int]:
    """Return the topics to draw, the largest effect in the first panel on top."""
    if topics is None:
        size = abs(found.coefficients[:, columns]).max(axis=1)
        chosen = sorted(range(found.n_topics), key=lambda topic: (-size[topic], topic))[:most]
    else:
        chosen = checked_topics(topics, found.n_topics, -1)
    return sorted(chosen, key=lambda topic: (-found.coefficients[topic, columns[0]], topic))


def _effect_dots(found: TopicEffects, chosen: list[int], column: int) -> dict[str, Any]:
    """Return the effects of one column of the design as dots with intervals."""
    effect, low, high = (
        100 * values[chosen, column] for values in (found.coefficients, found.low, found.high)
    )
    beyond = (low > 0) | (high < 0)
    texts = [
        f"<b>{caption(topic_name(found.labels, topic), 60)}</b><br>"
        f"{e:+.2f} ({a:+.2f} to {b:+.2f}) percentage points"
        for topic, e, a, b in zip(chosen, effect, low, high, strict=True)
    ]
    ends = ((effect - low).tolist(), (high - effect).tolist())
    colors = [_SIGNIFICANT if one else _OPEN for one in beyond]
    more = {"marker": {"color": colors, "size": 8}, "error_x": {"color": _OPEN}}
    return interval_dots(effect.tolist(), range(len(chosen)), ends, texts, **more)


def _covariate(found: TopicEffects, column: int) -> str:
    """Return the heading of a panel: the covariate and its unit, or a level and its reference."""
    name = found.covariates[column]
    if name in found.references:
        what, about = found.levels[column], f"against {caption(found.references[name], 24)}"
    else:
        what, about = name, "per year" if found.units[name] == "year" else "per unit"
    return f'<b>{caption(what, 24)}</b> <span style="color:{MUTED}">{about}</span>'


_FEW = 5
"""Groups up to which each has dots of its own; more are tiles."""

_STEEP = 2.0
"""Doublings of a share at which a tile has its full colour."""


def by_group(
    groups: TopicGroups, topics: Sequence[int] | None = None, *, max_topics: int = 25
) -> Figure:
    """Draw how much each group has of each topic.

    Up to five groups are dots with the intervals of their shares. More are tiles with the share
    in them, blue where the group has more of the topic than all groups together, orange where it
    has less.

    Parameters
    ----------
    groups : TopicGroups
    topics : sequence of int, optional
        Topic ids, in the order to draw, -1 for no topic; without them the largest.
    max_topics : int
        Topics without `topics`.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    InputError
        If a topic id does not exist, or `max_topics` is below 1.
    """
    import plotly.graph_objects as go

    largest = range(min(checked_count(max_topics, "max_topics"), groups.n_topics))
    chosen = checked_topics(largest if topics is None else topics, groups.n_topics, -1)
    if not chosen:
        return empty_figure()
    names = name_axis([topic_name(groups.labels, topic) for topic in chosen])
    n_rows = max(len(chosen), 2)
    if len(groups.names) > _FEW:
        traces, axis = [_tiles(groups, chosen)], name_axis(groups.names, 22)
        axis = {**axis, "side": "top", "tickangle": -35, "range": axis["range"][::-1]}
        axis["tickfont"] = {"size": 11, "color": MUTED}
        layout = look(n_rows * 28 + 150, t=120)
    else:
        traces = [_dots(groups, chosen, group) for group in range(len(groups.names))]
        axis = {"rangemode": "tozero", "tickformat": ".1~%", "showgrid": True}
        axis["title"] = "share of the group's rows"
        layout = look(n_rows * 26 + 110, t=50, b=44) | {"showlegend": True}
    return go.Figure(data=traces, layout=layout | {"xaxis": axis, "yaxis": names})


def _dots(groups: TopicGroups, chosen: list[int], group: int) -> dict[str, Any]:
    """Return the shares in one group as dots with intervals."""
    shares, low, high = (
        values[chosen, group] for values in (groups.shares, groups.low, groups.high)
    )
    n_groups = len(groups.names)
    offset = (group - (n_groups - 1) / 2) * 0.6 / max(n_groups, 2)
    return interval_dots(
        shares.tolist(),
        [place + offset for place in range(len(chosen))],
        ((shares - low).tolist(), (high - shares).tolist()),
        [_hover(groups, topic, group) for topic in chosen],
        name=caption(groups.names[group], 30),
        marker={"color": PALETTE[group], "size": 7},
        error_x={"color": PALETTE[group]},
    )


def _tiles(groups: TopicGroups, chosen: list[int]) -> dict[str, Any]:
    """Return the shares as tiles, coloured by how far they lie from those of all groups."""
    together = groups.counts[chosen].sum(axis=1) / max(int(groups.totals.sum()), 1)
    # Half a row more on each side, so that a small group without a row is not infinitely rare.
    ratio = (groups.counts[chosen] + 0.5) / (np.outer(together, groups.totals) + 0.5)
    n_groups = range(len(groups.names))
    return {
        "type": "heatmap",
        "z": np.clip(np.log2(ratio), -_STEEP, _STEEP).tolist(),
        "x": list(n_groups),
        "y": list(range(len(chosen))),
        "zmin": -_STEEP,
        "zmax": _STEEP,
        "xgap": 2,
        "ygap": 2,
        "colorscale": [[0, "#f0a35c"], [0.5, "#f4f5f7"], [1, "#6fb1dd"]],
        "showscale": False,
        "text": [
            [f"{share:.1%}" if share == share else "" for share in row]
            for row in groups.shares[chosen]
        ],
        "texttemplate": "%{text}",
        "textfont": {"size": 11, "color": INK},
        "customdata": [[_hover(groups, topic, group) for group in n_groups] for topic in chosen],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _hover(groups: TopicGroups, topic: int, group: int) -> str:
    """Return the share of a topic in a group, its interval and its distinctive terms."""
    share, low, high = (v[topic, group] for v in (groups.shares, groups.low, groups.high))
    name, of = caption(topic_name(groups.labels, topic), 60), caption(groups.names[group], 40)
    text = f"<b>{name}</b>, {of}<br>{share:.2%} ({low:.2%} to {high:.2%}), "
    text += f"{groups.counts[topic, group]:,} of {groups.totals[group]:,} rows"
    distinctive = groups.distinctive.of(topic, group)[:6]
    if distinctive:
        text += "<br>distinctive terms: " + caption(", ".join(distinctive), 90)
    return text
