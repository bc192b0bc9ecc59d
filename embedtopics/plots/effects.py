"""What the shares of topics depend on: effects with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from embedtopics.errors import InputError
from embedtopics.plots.by_group import label_axis
from embedtopics.plots.palette import PALETTE
from embedtopics.plots.text import FONT, INK, MUTED, cut, escape, nothing_to_draw
from embedtopics.results import TopicEffects

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["effects"]

_ROW = 22
_LEVELS = 4
_SURE, _OPEN = PALETTE[0], "#9aa4b1"


def effects(
    found: TopicEffects,
    covariate: str | None = None,
    topics: Sequence[int] | None = None,
    *,
    max_topics: int = 30,
) -> Figure:
    """Draw the effect of one covariate on each topic, largest on top.

    Points whose interval reaches across zero are grey.

    Parameters
    ----------
    found : TopicEffects
    covariate : str, optional
        The first one by default. One of levels has a panel for each of the first four levels, in
        the order of the first.
    topics : sequence of int, optional
        Topic ids; without them those with the largest effects either way.
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
    import plotly.graph_objects as go

    columns = _columns(found, covariate)
    chosen = _choose(found, topics, columns, max_topics)
    hidden = {"visible": False}
    if not chosen:
        return go.Figure(layout={"template": "none", "height": 200, "xaxis": hidden,
                                 "yaxis": hidden, "annotations": [nothing_to_draw()]})  # fmt: skip
    names = [found.labels[topic] if topic >= 0 else "No topic" for topic in chosen]
    axes: dict[str, Any] = {"yaxis": label_axis(names)}
    traces, annotations = [], []
    for panel, column in enumerate(columns):
        number = str(panel + 1) if panel else ""
        left, right = (panel + 0.02) / len(columns), (panel + 0.94) / len(columns)
        traces.append(_points(found, chosen, column, number))
        axes[f"xaxis{number}"] = {
            "domain": [left, right], "anchor": "y", "ticksuffix": "", "nticks": 5,
            "gridcolor": "#e6e9ed", "zeroline": True, "zerolinecolor": "#6b7684",
            "zerolinewidth": 1.5, "fixedrange": True, "tickfont": {"size": 11},
        }  # fmt: skip
        annotations.append(
            {
                "x": left, "y": 1, "xref": "paper", "yref": "paper", "xanchor": "left",
                "yanchor": "bottom", "yshift": 6, "showarrow": False, "align": "left",
                "text": _heading(found, column),
            }
        )  # fmt: skip
    annotations.append(
        {
            "x": 0, "y": 0, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "top",
            "yshift": -24, "showarrow": False, "font": {"size": 11, "color": MUTED},
            "text": f"percentage points of the rows; {found.confidence:.0%} intervals: "
            f"{_short(found)}",
        }
    )  # fmt: skip
    return go.Figure(
        data=traces,
        layout={
            "template": "none",
            "height": max(len(chosen), 2) * _ROW + 120,
            "margin": {"l": 16, "r": 24, "t": 56, "b": 56},
            "font": {"family": FONT, "size": 13, "color": INK},
            "hoverlabel": {"bgcolor": "#fff", "font": {"family": FONT, "color": INK}},
            "showlegend": False,
            "annotations": annotations,
            **axes,
        },
    )


def _columns(found: TopicEffects, covariate: str | None) -> list[int]:
    names = [name for name in dict.fromkeys(found.covariates) if name]
    wanted = names[0] if covariate is None else covariate
    if wanted not in names:
        raise InputError(
            f"there is no covariate {wanted!r} in the model; "
            f"these are: {', '.join(map(repr, names))}"
        )
    return [i for i, name in enumerate(found.covariates) if name == wanted][:_LEVELS]


def _choose(
    found: TopicEffects, topics: Sequence[int] | None, columns: list[int], max_topics: int
) -> list[int]:
    """Return the topics to draw, the largest effect in the first panel on top."""
    if max_topics < 1:
        raise InputError(f"max_topics must be 1 or more; got {max_topics}")
    chosen = list(range(found.n_topics)) if topics is None else list(topics)
    unknown = [topic for topic in chosen if not -1 <= topic < found.n_topics]
    if unknown:
        raise InputError(
            f"topics must be ids from -1 (none) to {found.n_topics - 1}; got {unknown[0]!r}"
        )
    if topics is None:
        size = abs(found.coefficients[:, columns]).max(axis=1)
        chosen = sorted(chosen, key=lambda topic: (-size[topic], topic))[:max_topics]
    return sorted(chosen, key=lambda topic: (-found.coefficients[topic, columns[0]], topic))


def _points(found: TopicEffects, chosen: list[int], column: int, number: str) -> dict[str, Any]:
    effect, low, high = (
        100 * values[chosen, column] for values in (found.coefficients, found.low, found.high)
    )
    colors = [_OPEN if not (a > 0 or b < 0) else _SURE for a, b in zip(low, high, strict=True)]
    return {
        "type": "scatter", "mode": "markers", "x": effect.tolist(),
        "y": list(range(len(chosen))), "xaxis": f"x{number}", "yaxis": "y",
        "marker": {"color": colors, "size": 8},
        "error_x": {
            "type": "data", "symmetric": False, "array": (high - effect).tolist(),
            "arrayminus": (effect - low).tolist(), "thickness": 1.5, "width": 0,
            "color": _OPEN,
        },
        "text": [
            f"<b>{escape(cut(found.labels[topic] if topic >= 0 else 'No topic', 60))}</b><br>"
            f"{e:+.2f} ({a:+.2f} to {b:+.2f}) percentage points"
            for topic, e, a, b in zip(chosen, effect, low, high, strict=True)
        ],
        "hovertemplate": "%{text}<extra></extra>",
    }  # fmt: skip


def _heading(found: TopicEffects, column: int) -> str:
    name = found.covariates[column]
    if name in found.references:
        against = escape(cut(found.references[name], 24))
        level = escape(cut(found.levels[column], 24))
        return f'<b>{level}</b> <span style="color:{MUTED}">against {against}</span>'
    unit = "a year" if found.units[name] == "year" else "for each unit"
    return f'<b>{escape(cut(name, 24))}</b> <span style="color:{MUTED}">{unit}</span>'


def _short(found: TopicEffects) -> str:
    if not found.n_replicates:
        return "sampling error only"
    return f"sampling error and {found.n_replicates} replicates of the topics"
