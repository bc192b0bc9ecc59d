"""The topics of one text, and the words that speak for them."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.plots.palette import tint, topic_colors
from embedtopics.plots.text import FONT, INK, LEFT_TO_RIGHT, MUTED, cut, escape
from embedtopics.results import TokenMixture, TopicResult

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["mixture"]

_MONO = "ui-monospace, Menlo, 'DejaVu Sans Mono', 'Liberation Mono', 'Courier New', monospace"
_SIZE = 13
_GLYPH = 0.602 * _SIZE
"""Pixels of one character of these fonts, in which words can be laid out without measuring."""

_LINE = 25
_BAR = 27
_MARGIN = 20
_GAP = 24
_LONGEST = 32
"""Characters of a word that are shown."""


def mixture(
    result: TopicResult,
    mixture: TokenMixture,
    *,
    max_topics: int = 8,
    max_words: int = 400,
    width: int = 900,
) -> Figure:
    """Draw the topics of a text as bars, and below them its words in the topics' colours.

    A word has the colour of the topic for which it has the most weight, the stronger the more;
    words without any are grey. Hovering shows the weights.

    Parameters
    ----------
    result : TopicResult
        In which the mixture was found.
    mixture : TokenMixture
        Of `embedtopics.topics.token_topics`.
    max_topics : int
        Bars at most; what is left shares one.
    max_words : int
        Words shown.
    width : int
        Pixels.

    Returns
    -------
    plotly.graph_objects.Figure
        One bar trace, then the words as one text trace.

    Raises
    ------
    InputError
        If the mixture is of other topics, or a number is too small.
    """
    import plotly.graph_objects as go

    if len(mixture.shares) != result.n_topics:
        raise InputError(
            f"the mixture is of {len(mixture.shares)} topics and the result of {result.n_topics}; "
            "give the result in which it was found"
        )
    for name, number, least in (
        ("max_topics", max_topics, 1), ("max_words", max_words, 1), ("width", width, 400),
    ):  # fmt: skip
        if number < least:
            raise InputError(f"{name} must be {least} or more; got {number}")
    colors = topic_colors(result)
    n_columns = int((width - 2 * _MARGIN) / _GLYPH)
    lines, columns, lengths = _laid_out(mixture.tokens[:max_words], n_columns)
    bars, notes = _bars(result, mixture, colors, max_topics)
    n_lines = (max(lines) + 1 if lines else 1) + (len(mixture.tokens) > max_words)
    inside = len(notes) * _BAR + _GAP + n_lines * _LINE
    split = 1 - len(notes) * _BAR / inside
    words = _words(result, mixture, lines, columns, lengths)
    rest = len(mixture.tokens) - max_words
    more = [_note(f"{rest:,} more words", n_lines - 1)] if rest > 0 else []
    hidden = {"visible": False, "fixedrange": True}
    return go.Figure(
        data=[bars, words],
        layout={
            "template": "none",
            "width": width,
            "height": inside + 2 * _MARGIN,
            "margin": {side: _MARGIN for side in "lrtb"},
            "font": {"family": FONT, "size": 13, "color": INK},
            "showlegend": False,
            "bargap": 0.2,
            "hovermode": "closest",
            "hoverlabel": {
                "bgcolor": "#fff", "align": "left", "font": {"family": FONT, "color": INK},
            },
            "xaxis": {**hidden, "range": [0, 1], "anchor": "y"},
            "yaxis": {**hidden, "range": [len(notes) - 0.5, -0.5], "domain": [split, 1]},
            "xaxis2": {
                **hidden, "range": [0, (width - 2 * _MARGIN) / _GLYPH], "anchor": "y2",
            },
            "yaxis2": {
                **hidden, "range": [n_lines - 0.5, -0.5], "anchor": "x2",
                "domain": [0, n_lines * _LINE / inside],
            },
            "annotations": [
                *notes, *more, *([] if mixture.tokens else [_note("no words", 0)]),
            ],
            "shapes": _backgrounds(mixture, colors, lines, columns, lengths),
        },
    )  # fmt: skip


def _bars(
    result: TopicResult, mixture: TokenMixture, colors: tuple[str, ...], max_topics: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the bars, and what is written on them."""
    shares = mixture.shares.astype(float)
    order = np.argsort(-shares, kind="stable")
    order = order[shares[order] > 0]
    shown = [
        (result.topics[topic].label, float(shares[topic]), colors[topic])
        for topic in order[:max_topics].tolist()
    ]
    rest = order[max_topics:]
    if len(rest):
        name = "1 other topic" if len(rest) == 1 else f"{len(rest)} other topics"
        shown.append((name, float(shares[rest].sum()), "#9aa3ad"))
    if not shown:
        shown.append(("No topic", 0.0, "#9aa3ad"))
    longest = max(share for _, share, _ in shown) or 1.0
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": [share / longest for _, share, _ in shown],
        "y": list(range(len(shown))),
        "marker": {"color": [tint(color, 0.45) for _, _, color in shown], "line": {"width": 0}},
        "hoverinfo": "skip",  # the bar says in writing all that there is to say
    }
    notes = [
        {
            "x": 0, "y": place, "xref": "x", "yref": "y", "xanchor": "left", "xshift": 6,
            "text": f"{escape(cut(name, 60))}{LEFT_TO_RIGHT} <b>{share:.0%}</b>",
            "showarrow": False,
        }
        for place, (name, share, _) in enumerate(shown)
    ]  # fmt: skip
    return bars, notes


def _laid_out(tokens: tuple[str, ...], n_columns: int) -> tuple[list[int], list[int], list[int]]:
    """Return the line, the first column and the columns of each word."""
    lines, columns, lengths = [], [], []
    line = column = 0
    for token in tokens:
        length = sum(
            2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in cut(token, _LONGEST)
        )
        if column and column + length > n_columns:
            line, column = line + 1, 0
        lines.append(line)
        columns.append(column)
        lengths.append(length)
        column += length + 2
    return lines, columns, lengths


def _words(
    result: TopicResult,
    mixture: TokenMixture,
    lines: list[int],
    columns: list[int],
    lengths: list[int],
) -> dict[str, Any]:
    """Return the words as one trace."""
    weights = mixture.weights[: len(lines)].toarray()
    has_any = [bool((row > 0).any()) for row in weights]
    hover = []
    for place, token in enumerate(mixture.tokens[: len(lines)]):
        best = np.argsort(-weights[place], kind="stable")[:4]
        said = [
            f"{escape(cut(result.topics[topic].label, 50))}: {weights[place, topic]:.2f}"
            for topic in best.tolist()
            if weights[place, topic] > 0
        ]
        hover.append("<br>".join([f"<b>{escape(cut(token, 60))}</b>", *(said or ["no topic"])]))
    return {
        "type": "scatter",
        "mode": "text",
        "x": [column + length / 2 for column, length in zip(columns, lengths, strict=True)],
        "y": lines,
        "xaxis": "x2",
        "yaxis": "y2",
        "text": [escape(cut(token, _LONGEST)) for token in mixture.tokens[: len(lines)]],
        "textfont": {
            "family": _MONO,
            "size": _SIZE,
            "color": [INK if some else MUTED for some in has_any],
        },
        "hovertext": hover,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "cliponaxis": False,
    }


def _backgrounds(
    mixture: TokenMixture,
    colors: tuple[str, ...],
    lines: list[int],
    columns: list[int],
    lengths: list[int],
) -> list[dict[str, Any]]:
    """Return a coloured box behind each word that speaks for a topic."""
    if not mixture.weights.nnz:
        return []
    frame = mixture.to_frame()
    strongest = float(frame["weight"].max())
    boxes = []
    for topic, weight, line, column, length in zip(
        frame["topic"].tolist(), frame["weight"].tolist(), lines, columns, lengths, strict=False
    ):
        if topic >= 0:
            boxes.append(
                {
                    "type": "rect", "xref": "x2", "yref": "y2", "layer": "below",
                    "x0": column - 0.6, "x1": column + length + 0.6,
                    "y0": line - 0.42, "y1": line + 0.42,
                    "fillcolor": tint(colors[topic], 0.12 + 0.43 * weight / strongest),
                    "line": {"width": 0},
                }
            )  # fmt: skip
    return boxes


def _note(text: str, line: int) -> dict[str, Any]:
    """Return a remark on a line of the words."""
    return {
        "x": 0, "y": line, "xref": "x2", "yref": "y2", "xanchor": "left", "text": text,
        "font": {"color": MUTED}, "showarrow": False,
    }  # fmt: skip
