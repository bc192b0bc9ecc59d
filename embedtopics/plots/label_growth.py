"""The metric over the number of labelled examples, with its forecast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.plots.palette import PALETTE, tint
from embedtopics.plots.text import FONT, INK, MUTED, cut, escape
from embedtopics.results import LabelCurve

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["label_curve"]

_CURVE = PALETTE[0]
_POINTS = PALETTE[5]


def label_curve(curve: LabelCurve, *, width: int | None = None, height: int = 460) -> Figure:
    """Draw the metric over the number of labels, the fitted law and where it leads.

    Dots are fits, the line is the power law through them, dashed where it goes beyond what was
    tried, and the band holds 95 % of the laws that may be.

    Parameters
    ----------
    curve : LabelCurve
        From `training.label_curve` or `training.fit_label_curve`.
    width, height : int
        Pixels.

    Returns
    -------
    plotly.graph_objects.Figure
        Sizes run to the right on a logarithmic scale.

    Raises
    ------
    InputError
        If given something else.
    """
    import plotly.graph_objects as go

    if not isinstance(curve, LabelCurve):
        raise InputError(
            f"expected a LabelCurve from training.label_curve; got {type(curve).__name__}"
        )
    name = escape(cut(curve.metric_name or "metric", 40))
    sizes = sorted({*curve.sizes.tolist(), *curve.forecast_sizes.tolist()})
    ticks = _ticks(sizes)
    heading = [
        {
            "x": 0, "y": 1, "xref": "paper", "yref": "paper", "showarrow": False,
            "xanchor": "left", "yanchor": "bottom", "text": escape(cut(line, 130)),
            "yshift": 32 + 19 * (len(curve.gains) - 1 - number),
            "font": {"size": 13, "color": INK},
        }
        for number, line in enumerate(curve.gains)
    ]  # fmt: skip
    return go.Figure(
        data=_traces(curve),
        layout={
            "template": "none", "height": height, "width": width,
            "margin": {"l": 70, "r": 24, "t": 50 + 19 * len(curve.gains), "b": 56},
            "font": {"family": FONT, "size": 13, "color": INK},
            "hoverlabel": {"bgcolor": "#fff", "font": {"family": FONT, "color": INK}},
            "legend": {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom",
                       "font": {"size": 12}},
            "xaxis": {
                "type": "log", "title": {"text": "labelled examples", "font": {"color": MUTED}},
                "tickvals": ticks, "ticktext": [f"{tick:,}" for tick in ticks],
                "showgrid": False, "zeroline": False,
            },
            "yaxis": {
                "title": {"text": name, "font": {"color": MUTED}}, "gridcolor": "#eef0f3",
                "zeroline": False, "automargin": True,
            },
            "annotations": heading,
        },
    )  # fmt: skip


def _traces(curve: LabelCurve) -> list[dict[str, Any]]:
    largest = int(curve.sizes.max())
    ahead = curve.forecast_sizes
    between = np.geomspace(ahead[0], ahead[-1], 200).round().astype(np.int64)
    fine = np.unique(np.concatenate([between, ahead]))
    law = curve.ceiling - curve.scale * fine.astype(np.float64) ** -curve.exponent
    band: dict[str, Any] = {
        "type": "scatter", "mode": "lines", "fill": "toself", "name": "95 % interval",
        "x": [*ahead.tolist(), *ahead[::-1].tolist()],
        "y": [*curve.high.tolist(), *curve.low[::-1].tolist()],
        "line": {"width": 0}, "fillcolor": tint(_CURVE, 0.18), "hoverinfo": "skip",
    }  # fmt: skip
    lines = [
        {
            "type": "scatter", "mode": "lines", "name": label,
            "x": fine[chosen].tolist(), "y": law[chosen].tolist(),
            "line": {"color": _CURVE, "width": 2.5, "dash": dash},
            "hovertemplate": "%{x:,}: %{y:.3f}<extra></extra>",
        }
        for label, dash, chosen in (
            ("power law", "solid", fine <= largest), ("forecast", "dash", fine >= largest),
        )
        if chosen.any()
    ]  # fmt: skip
    fits = {
        "type": "scatter", "mode": "markers", "name": "fits, one a seed",
        "x": curve.sizes.tolist(), "y": curve.metric.tolist(), "customdata": curve.seeds.tolist(),
        "marker": {"color": _POINTS, "size": 8, "symbol": "diamond",
                   "line": {"color": "#fff", "width": 1}},
        "hovertemplate": "%{x:,} examples, seed %{customdata}: %{y:.3f}<extra></extra>",
    }  # fmt: skip
    return [band, *lines, fits]


def _ticks(sizes: list[int]) -> list[int]:
    """Return sizes that stand apart on a logarithmic scale, the largest among them."""
    apart = np.log(sizes[-1] / sizes[0]) / 9
    chosen = [sizes[-1]]
    for size in reversed(sizes):
        if np.log(chosen[-1] / size) >= apart:
            chosen.append(size)
    return chosen[::-1]
