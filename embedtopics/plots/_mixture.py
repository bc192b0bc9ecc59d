"""Words of texts in colours: those of their topics, or of their tokens."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import numpy as np

from embedtopics.plots._colors import PALETTE, tint, topic_colors
from embedtopics.plots._inputs import check_input
from embedtopics.plots._theme import (
    HIDDEN,
    INK,
    LEFT_TO_RIGHT,
    MUTED,
    PAGE_WIDTH,
    Canvas,
    Spec,
    axes_of,
    base_layout,
    caption,
    cut,
    escape,
    hover,
    panel_figure,
    scatter,
    title_notes,
)
from embedtopics.pretraining.results import TokenizerReport
from embedtopics.topics.results import Mixture

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_MONO = "ui-monospace, Menlo, 'DejaVu Sans Mono', 'Liberation Mono', 'Courier New', monospace"
_SIZE = 13
_GLYPH = 0.602 * _SIZE
"""Pixels of a character of these fonts, so that words can be laid out without measuring."""

_LINE, _BAR, _MARGIN, _GAP = 25, 27, 20, 24
_TOPICS, _WORDS = 8, 400
"""Topics with a bar each, and words of the figure."""
_LONGEST = 32
"""Maximum number of characters of a word."""


def mixture(
    mixture: Mixture,
    *,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw the topics of a text as bars, and its words below in the colours of the topics.

    A word has the colour of the topic in which it has the largest weight, more intense for larger
    weights; words without weight are grey. Hovering shows the weights.

    Parameters
    ----------
    mixture : Mixture
        From `embedtopics.topics.mixture`.
    title : str, optional
    width, height : int, optional
        Pixels; by default 700, because words do not flow when a page resizes the figure, and the
        height that the content needs.

    Returns
    -------
    plotly.graph_objects.Figure
        One bar trace of at most 8 topics and the others, then at most 400 words as one text trace.

    Raises
    ------
    InputError
        If it is no `Mixture`.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo"))
    >>> mixture = et.topics.mixture(model, 0)
    >>> figure = et.plots.mixture(mixture)
    >>> len(figure.data[1].text) == len(mixture.tokens)
    True
    """
    canvas = Canvas(title, width, height).sized(PAGE_WIDTH)
    check_input(mixture, "mixture", Mixture, "et.topics.mixture(model, row)")
    colors = topic_colors(mixture.result)
    bars, notes = _bars(mixture, colors)
    n_columns = (canvas.assumed_width - 2 * _MARGIN) / _GLYPH
    places = _lay_out(_shown(mixture)[:_WORDS], int(n_columns))
    rest = len(mixture.tokens) - _WORDS
    n_lines = (places[-1][0] + 1 if places else 1) + (rest > 0)
    words = {"xref": "x2", "yref": "y2", "x": 0, "xanchor": "left", "font": {"color": MUTED}}
    if rest > 0:
        notes.append({**words, "y": n_lines - 1, "text": f"{rest:,} more words"})
    if not mixture.tokens:
        notes.append({**words, "y": 0, "text": "no words"})
    heights = [len(bars["x"]) * _BAR, n_lines * _LINE]
    margin = dict.fromkeys("lrtb", _MARGIN)
    figure = panel_figure(canvas, heights, between=_GAP, margin=margin)
    figure.add_traces([bars, _words(mixture, places) | axes_of(1)])
    for row, reach, n_rows in ((1, 1, len(bars["x"])), (2, n_columns, n_lines)):
        figure.update_xaxes({**HIDDEN, "range": [0, reach]}, row=row)
        figure.update_yaxes({**HIDDEN, "range": [n_rows - 0.5, -0.5]}, row=row)
    boxes = _backgrounds(mixture, colors, places)
    return figure.update_layout(bargap=0.2, annotations=notes, shapes=boxes)


def _bars(mixture: Mixture, colors: tuple[str, ...]) -> tuple[Spec, list[Spec]]:
    shares = mixture.shares.astype(float)
    order = np.argsort(-shares, kind="stable")
    order = order[shares[order] > 0]
    shown = [
        (mixture.topic_names[topic], float(shares[topic]), colors[topic])
        for topic in order[:_TOPICS].tolist()
    ]
    rest = order[_TOPICS:]
    if len(rest):
        name = "1 other topic" if len(rest) == 1 else f"{len(rest)} other topics"
        shown.append((name, float(shares[rest].sum()), "#9aa3ad"))
    if not shown:
        shown.append(("No topic", 0.0, "#9aa3ad"))
    longest = max(share for _, share, _ in shown) or 1.0
    bars: Spec = {"type": "bar", "orientation": "h"}
    bars["x"] = [share / longest for _, share, _ in shown]
    bars |= {"y": list(range(len(shown))), "hoverinfo": "skip"}
    bars["marker"] = {"color": [tint(color, 0.45) for _, _, color in shown]}
    place = {"x": 0, "xref": "x", "yref": "y", "xanchor": "left", "xshift": 6}
    notes = [
        {**place, "y": i, "text": f"{caption(name, 60)}{LEFT_TO_RIGHT} <b>{share:.0%}</b>"}
        for i, (name, share, _) in enumerate(shown)
    ]
    return bars, notes


def _shown(mixture: Mixture) -> tuple[str, ...]:
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


def _words(mixture: Mixture, places: list[tuple[int, int, int]]) -> Spec:
    tokens, texts, inks = mixture.tokens[: len(places)], [], []
    for token, weights in zip(tokens, mixture.weights[: len(places)].toarray(), strict=True):
        best = [topic for topic in np.argsort(-weights, kind="stable")[:4] if weights[topic] > 0]
        about = [f"{caption(mixture.topic_names[t], 50)}: {weights[t]:.2f}" for t in best]
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
    mixture: Mixture, colors: tuple[str, ...], places: list[tuple[int, int, int]]
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


_STEP, _SPACE = 24, 14
_CELL = 7.85
"""Pixels of a line, between texts, and of a character of a fixed-width font."""


def tokens(
    report: TokenizerReport,
    *,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw the examples of a tokenizer report, with a colour for each token.

    Parameters
    ----------
    report : TokenizerReport
        From `embedtopics.pretraining.tokenizer_report`.
    title : str, optional
    width, height : int, optional
        Pixels; by default 700, because texts do not flow when a page resizes the figure, and the
        height that the content needs.

    Returns
    -------
    plotly.graph_objects.Figure
        Texts from the least to the most divided; the tokenizer does not know a word of several
        colours.

    Examples
    --------
    >>> import embedtopics as et
    >>> corpus = ["The bees swarmed early.", "An unprecedented thermostat."]
    >>> report = et.pretraining.tokenizer_report("all-MiniLM-L6-v2", corpus)
    >>> figure = et.plots.tokens(report)
    >>> list(figure.data[0].text)[:5]
    ['The', 'bees', 'swarm', 'ed', 'early']
    """
    import plotly.graph_objects as go

    canvas = Canvas(title, width, height).sized(PAGE_WIDTH)
    call = "et.pretraining.tokenizer_report(encoder, corpus)"
    check_input(report, "report", TokenizerReport, call)

    across = canvas.assumed_width - 48
    n_columns = max(int(across / _CELL), 1)
    shapes: list[Spec] = []
    places: list[tuple[float, float, str]] = []
    y = 0.0
    for example in report.examples:
        column, color = 0, 0
        for part in example:
            # A token may begin or end with a space, which `cut` removes.
            text = " " * part[:1].isspace() + cut(part, n_columns) if part.strip() else " "
            if column + len(text) > n_columns:
                column, y = 0, y + _STEP
                text = text.lstrip()
            if text.strip():
                left = column * _CELL
                box = {"x0": left, "x1": left + len(text) * _CELL, "y0": y - 8, "y1": y + 10}
                fill = {"line": {"width": 0}, "opacity": 0.32, "fillcolor": PALETTE[color % 4]}
                shapes.append({"type": "rect", **box, **fill, "layer": "below"})
                places.append((left, y, text))
                color += 1
            column += len(text)
        y += _STEP + _SPACE
    trace = scatter(
        [x for x, _, _ in places],
        [y for _, y, _ in places],
        "text",
        text=[escape(text).replace(" ", "\u00a0") for _, _, text in places],
        textposition="middle right",
        textfont={"family": "monospace", "size": _SIZE, "color": INK},
        hoverinfo="skip",
    )
    about = f"{report.fertility:.2f} tokens per word, {report.share_cut:.1%} of words in 3 or more"
    below = f"{cut(report.encoder, 60)}; texts from the least to the most divided"
    hidden = {"visible": False, "fixedrange": True}
    layout = base_layout(canvas, int(y) + 84, l=24, r=24, t=64, b=16) | {
        "shapes": shapes,
        "xaxis": {**hidden, "range": [0, across]},
        "yaxis": {**hidden, "range": [y - _SPACE, -_STEP / 2]},
        "annotations": title_notes([about, escape(below)], 54),
    }
    return go.Figure([trace], layout)
