"""Contextualization of words, layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedtopics.plots._colors import PALETTE
from embedtopics.plots._inputs import check_input
from embedtopics.plots._layers import Line, end_names, layer_axis, traces_of, value_range
from embedtopics.plots._theme import (
    PAGE_WIDTH,
    Canvas,
    axis_keys,
    caption,
    panel_figure,
    panel_note,
    panel_size,
    small,
    title_notes,
)
from embedtopics.probing.results import Contextualization

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_NAMES = 190
_PANEL = 330
_LEAST_FOR_TWO = 900
"""Pixels of a figure from which its panels and their names stand side by side."""
_BASELINE = "#6b7684"
# measure, caption, colour and symbol
_PANELS = {
    "cosine similarity": (
        ("self-similarity", "one word in two contexts", PALETTE[0], "circle"),
        ("intra-sentence similarity", "word and its sentence", PALETTE[5], "square"),
        ("anisotropy", "two random words", _BASELINE, ""),
    ),
    "minus the value by chance": (
        ("corrected self-similarity", "one word in two contexts", PALETTE[0], "circle"),
        ("corrected intra-sentence similarity", "word and its sentence", PALETTE[5], "square"),
    ),
}  # fmt: skip


def contextualization(
    contextualization: Contextualization,
    *,
    title: str | None = None,
    width: int | None = None,
    height: int | None = None,
) -> Figure:
    """Draw how much the vector of a word depends on its context, layer by layer.

    First panel: the mean cosine of two uses of a word, of a word and its sentence, and of two
    random words (anisotropy; Ethayarajh 2019). Second panel: the same minus the value by chance. A
    word with one vector in all contexts stays at 1 minus the anisotropy; a word whose vector
    depends only on the context falls to 0. Bands are 95 % intervals.

    Parameters
    ----------
    contextualization : Contextualization
        From `embedtopics.probing.contextualization`.
    title : str, optional
    width, height : int, optional
        Pixels; by default the width of the page, and the height that the content needs. The panels
        are side by side from a width of 900.

    Returns
    -------
    plotly.graph_objects.Figure

    Examples
    --------
    >>> import embedtopics as et
    >>> texts = ["The river bank.", "A river bank.", "The river has a bank.", "No river, no bank."]
    >>> states = et.probing.hidden_states("all-MiniLM-L6-v2", texts)
    >>> result = et.probing.contextualization(states, min_uses=3)
    >>> figure = et.plots.contextualization(result)
    >>> [note.text for note in figure.layout.annotations if note.text.startswith("<b>")][1:]
    ['<b>cosine similarity</b>', '<b>minus the value by chance</b>']
    """
    canvas = Canvas(title, width, height)
    result = contextualization
    call = "et.probing.contextualization(states)"
    check_input(result, "contextualization", Contextualization, call)

    columns = 2 if (canvas.width or PAGE_WIDTH) >= _LEAST_FOR_TWO else 1
    figure = panel_figure(
        canvas,
        [_PANEL] * (2 // columns),
        columns,
        between=80,
        gap=_NAMES + 40,
        margin={"l": 50, "r": _NAMES, "t": 76, "b": 50},
    )
    across, up = panel_size(figure, 0, canvas)
    counted = small(f"· {len(result.words):,} words, {int(result.n_uses.sum()):,} uses")
    notes = title_notes([f"<b>{caption(result.encoder, 50)}</b> {counted}"], 68, left=34, size=14)
    rows_of_measure = dict(list(result.to_frame().groupby("measure")))
    figure.update_xaxes(layer_axis(result.layers, across))
    figure.update_yaxes(showgrid=True, tickfont={"size": 11}, zeroline=True)
    for panel, (name, kinds) in enumerate(_PANELS.items()):
        lines = []
        for measure, label, color, symbol in kinds:
            if measure in rows_of_measure:
                dash = "solid" if symbol else "dash"
                scores = tuple(rows_of_measure[measure].itertuples(index=False))
                lines.append(Line(label, color, dash, symbol, scores))
        low, high = value_range(lines)
        span = (min(low, 0.0), high)
        ends = (min(result.layers) - 0.4, max(result.layers) + 0.4)
        figure.add_traces(traces_of(lines, ends, panel, "words or sentences"))
        figure.layout[axis_keys(panel)[1]].update(range=span, zerolinecolor="#c3c9d1")
        notes += end_names(figure, lines, span, panel, up)
        notes.append(panel_note(figure, panel, f"<b>{name}</b>", yshift=5))
    return figure.update_layout(annotations=notes)
