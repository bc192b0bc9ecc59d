"""The topics of one text, and the weights of its words."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import numpy as np

from embedtopics._utils.checks import checked_count
from embedtopics.errors import InputError
from embedtopics.plots._colors import tint, topic_colors
from embedtopics.plots._theme import (
    HIDDEN,
    INK,
    LEFT_TO_RIGHT,
    MUTED,
    Spec,
    axes_of,
    caption,
    checked_sizes,
    cut,
    hover,
    panel_figure,
    scatter,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from embedtopics.topics.results import TokenMixture, TopicResult

_MONO = "ui-monospace, Menlo, 'DejaVu Sans Mono', 'Liberation Mono', 'Courier New', monospace"
_SIZE = 13
_GLYPH = 0.602 * _SIZE
"""Pixels of a character of these fonts, so that words can be laid out without measuring."""

_LINE = 25
_BAR = 27
_MARGIN = 20
_GAP = 24
_LONGEST = 32
"""Maximum number of characters of a word."""


def mixture(
    result: TopicResult,
    mixture: TokenMixture,
    *,
    max_topics: int = 8,
    max_words: int = 400,
    width: int = 900,
) -> Figure:
    """Draw the topics of a text as bars, and its words below in the colours of the topics.

    A word has the colour of the topic in which it has the largest weight, more intense for larger
    weights; words without weight are grey. Hovering shows the weights.

    Parameters
    ----------
    result : TopicResult
        The result of the mixture.
    mixture : TokenMixture
        From `embedtopics.topics.token_topics`.
    max_topics : int
        Maximum number of bars; other topics share one.
    max_words : int
        Maximum number of words.
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
    if len(mixture.shares) != result.n_topics:
        expected = f"of the result's {result.n_topics} topics"
        raise InputError("mixture", expected, found=f"one of {len(mixture.shares)}")
    checked_count(max_words, "max_words")
    checked_sizes(width, None, 400)
    colors = topic_colors(result)
    bars, notes = _bars(result, mixture, colors, checked_count(max_topics, "max_topics"))
    n_columns = (width - 2 * _MARGIN) / _GLYPH
    places = _lay_out(_shown(mixture)[:max_words], int(n_columns))
    rest = len(mixture.tokens) - max_words
    n_lines = (places[-1][0] + 1 if places else 1) + (rest > 0)
    words = {"xref": "x2", "yref": "y2", "x": 0, "xanchor": "left", "font": {"color": MUTED}}
    if rest > 0:
        notes.append({**words, "y": n_lines - 1, "text": f"{rest:,} more words"})
    if not mixture.tokens:
        notes.append({**words, "y": 0, "text": "no words"})
    heights = [len(bars["x"]) * _BAR, n_lines * _LINE]
    margin = dict.fromkeys("lrtb", _MARGIN)
    figure = panel_figure(heights, between=_GAP, width=width, margin=margin)
    figure.add_traces([bars, _words(result, mixture, places) | axes_of(1)])
    for row, reach, n_rows in ((1, 1, len(bars["x"])), (2, n_columns, n_lines)):
        figure.update_xaxes({**HIDDEN, "range": [0, reach]}, row=row)
        figure.update_yaxes({**HIDDEN, "range": [n_rows - 0.5, -0.5]}, row=row)
    boxes = _backgrounds(mixture, colors, places)
    return figure.update_layout(bargap=0.2, annotations=notes, shapes=boxes)


def _bars(
    result: TopicResult, mixture: TokenMixture, colors: tuple[str, ...], max_topics: int
) -> tuple[Spec, list[Spec]]:
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
    bars: Spec = {
        "type": "bar",
        "orientation": "h",
        "x": [share / longest for _, share, _ in shown],
    }
    bars |= {"y": list(range(len(shown))), "hoverinfo": "skip"}
    bars["marker"] = {"color": [tint(color, 0.45) for _, _, color in shown]}
    place = {"x": 0, "xref": "x", "yref": "y", "xanchor": "left", "xshift": 6}
    notes = [
        {**place, "y": i, "text": f"{caption(name, 60)}{LEFT_TO_RIGHT} <b>{share:.0%}</b>"}
        for i, (name, share, _) in enumerate(shown)
    ]
    return bars, notes


def _shown(mixture: TokenMixture) -> tuple[str, ...]:
    """Return the words as written, if known, with case and punctuation."""
    return mixture.written or mixture.tokens


def _lay_out(tokens: tuple[str, ...], n_columns: int) -> list[tuple[int, int, int]]:
    """Return the line, the first column and the number of columns of each word."""
    places = []
    line = column = 0
    for token in tokens:
        length = sum(
            2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in cut(token, _LONGEST)
        )
        if column and column + length > n_columns:
            line, column = line + 1, 0
        places.append((line, column, length))
        column += length + 2
    return places


def _words(result: TopicResult, mixture: TokenMixture, places: list[tuple[int, int, int]]) -> Spec:
    tokens, texts, inks = mixture.tokens[: len(places)], [], []
    for token, weights in zip(tokens, mixture.weights[: len(places)].toarray(), strict=True):
        best = [topic for topic in np.argsort(-weights, kind="stable")[:4] if weights[topic] > 0]
        about = [f"{caption(result.topics[t].label, 50)}: {weights[t]:.2f}" for t in best]
        texts.append("<br>".join([f"<b>{caption(token, 60)}</b>", *(about or ["no topic"])]))
        inks.append(INK if best else MUTED)
    return scatter(
        [column + length / 2 for _, column, length in places],
        [line for line, _, _ in places],
        "text",
        text=[caption(word, _LONGEST) for word in _shown(mixture)[: len(places)]],
        textfont={"family": _MONO, "size": _SIZE, "color": inks},
        cliponaxis=False,
        **hover(texts),
    )


def _backgrounds(
    mixture: TokenMixture, colors: tuple[str, ...], places: list[tuple[int, int, int]]
) -> list[Spec]:
    if not mixture.weights.nnz:
        return []
    frame = mixture.to_frame()
    strongest = float(frame["weight"].max())
    box = {"type": "rect", "xref": "x2", "yref": "y2", "layer": "below", "line": {"width": 0}}
    words = zip(frame["topic"].tolist(), frame["weight"].tolist(), places, strict=False)
    boxes = []
    for topic, weight, (line, column, length) in words:
        if topic >= 0:
            place: Spec = {"x0": column - 0.6, "x1": column + length + 0.6}
            place |= {"y0": line - 0.42, "y1": line + 0.42}
            color = tint(colors[topic], 0.12 + 0.43 * weight / strongest)
            boxes.append({**box, **place, "fillcolor": color})
    return boxes
