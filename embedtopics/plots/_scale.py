"""Words along an axis of meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import NotFittedError

from embedtopics.errors import InputError
from embedtopics.plots._colors import PALETTE, tint
from embedtopics.plots._shares import number_axis
from embedtopics.plots._theme import MUTED, PAGE_WIDTH, Canvas, base_layout, caption, scatter
from embedtopics.protocols import Float64Array

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

_MOST_NAMES = 40

# Pixels of a letter of the names (as measured on the system fonts), around a name, and of a line.
_GLYPH = 7.0
_AIR = 4.0
_LINE = 17.0
_HALF_A_NAME = 56.0


def axis(
    scale: Any,
    *,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw words along an axis, the more frequent the higher, and 40 names from both ends inwards.

    Parameters
    ----------
    scale : fitted probing.Scale
        Its seeds are in colour.
    title : str, optional
    width, height : int, optional
        Pixels; by default the width of the page, and the height that the content needs.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    NotFittedError
        If the scale is not fitted.

    Examples
    --------
    >>> import embedtopics as et
    >>> scale = et.probing.Scale(["good", "happy", "excellent"], ["bad", "sad", "terrible"])
    >>> texts = ["A good and happy day.", "An excellent, happy meal.", "A good friend is happy."]
    >>> texts += ["A bad and sad day.", "A terrible, sad meal.", "A bad, terrible evening."]
    >>> texts += ["An excellent, good evening."]
    >>> figure = et.plots.axis(scale.fit(texts))
    >>> figure.layout.yaxis.title.text
    'uses'
    """
    import plotly.graph_objects as go

    canvas = Canvas(title, width, height)
    words = _words_of(scale)
    layout = base_layout(canvas, 460, t=20, b=50, l=60)
    margin = layout["margin"]
    # Names that stand beside each other in a notebook do so on a wider page too.
    drawing = (
        (canvas.width or PAGE_WIDTH) - margin["l"] - margin["r"],
        layout["height"] - margin["t"] - margin["b"],
    )

    x = words["position"].to_numpy()
    y = np.log10(words["n_uses"].to_numpy())
    shown = _names_shown(words, x, y, drawing)
    texts = [
        f"<b>{caption(str(row.word), 40)}</b><br>{row.position:+.2f}, {row.n_uses:,} uses"
        for row in words.itertuples()
    ]
    dots = scatter(x, y, marker={"color": tint(MUTED, 0.5), "size": 4}, hovertext=texts)
    colors = [PALETTE[0] if words["is_seed"][row] else MUTED for row in shown]
    names = scatter(
        x[shown],
        y[shown],
        "text",
        text=[caption(str(words["word"][row]), 24) for row in shown],
        textfont={"size": 12, "color": colors},
        textposition="top center",
        hoverinfo="skip",
    )

    powers = list(range(int(y.max()) + 1))
    uses = {"tickvals": powers, "ticktext": [f"{10**power:,}" for power in powers]}
    # The outermost names need space at the ends.
    edge = _HALF_A_NAME / drawing[0] * float(np.ptp(x) or 1.0)
    span = [float(x.min()) - edge, float(x.max()) + edge]
    position = number_axis("position, in standard deviations of the texts")
    axes = {
        "xaxis": position | {"range": span},
        "yaxis": uses | {"title": {"text": "uses"}},
    }
    return go.Figure([dots, names], layout | axes)


def _words_of(scale: Any) -> pd.DataFrame:
    """Return the words of a fitted scale."""
    words: pd.DataFrame | None = getattr(scale, "words_", None)
    if words is not None:
        return words

    # A topic model could be fitted too, but has no words of an axis.
    is_scale = hasattr(scale, "fit") and not hasattr(scale, "predict")
    if is_scale and not isinstance(scale, type):
        raise NotFittedError(
            f"this {type(scale).__name__} is not fitted yet; call fit(texts) first"
        )
    raise InputError(
        "scale",
        "a fitted Scale",
        remedy="call et.probing.Scale(positive, negative).fit(texts) first",
        found=type(scale).__name__,
    )


def _names_shown(
    words: pd.DataFrame,
    x: Float64Array,
    y: Float64Array,
    drawing: tuple[float, float],
) -> list[int]:
    """Return the rows of words whose names stand beside each other: seeds, then the outermost."""
    left = _in_pixels(x, drawing[0])
    up = _in_pixels(y, drawing[1])
    half = np.array([_GLYPH * len(caption(str(word), 24)) / 2 + _AIR for word in words["word"]])

    inwards = np.argsort(-np.abs(np.arange(len(x)) - len(x) / 2), kind="stable").tolist()
    candidates = sorted(inwards, key=lambda row: not words["is_seed"][row])
    shown: list[int] = []
    for row in candidates[: 3 * _MOST_NAMES]:
        is_beside = np.abs(left[row] - left[shown]) > half[row] + half[shown]
        is_above = np.abs(up[row] - up[shown]) > _LINE
        if len(shown) < _MOST_NAMES and (is_beside | is_above).all():
            shown.append(row)
    return shown


def _in_pixels(values: Float64Array, pixels: float) -> Float64Array:
    """Return values on a scale of pixels."""
    return np.asarray((values - values.min()) * pixels / max(float(np.ptp(values)), 1e-9))
