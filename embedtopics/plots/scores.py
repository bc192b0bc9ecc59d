"""The scores of a comparison as a table: a measure a row, an encoder a column."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from embedtopics.plots.text import FONT, INK, MUTED, cut, escape, wrap
from embedtopics.results import Comparison

__all__ = [
    "HEAD", "UNRANKED", "Score", "ScoreRow", "breaks_lines", "line_height", "name_measure",
    "score_rows", "score_table", "spell",
]  # fmt: skip

# Plotly makes a line as high as its text with 8 pixels above and below it, whatever less is asked
# for, and cuts off what then goes beyond the table.
HEAD = 31
"""Pixels of the line of names over the scores."""

_NAMES = {
    "knn_accuracy": "k-NN accuracy",
    "probe_accuracy": "probe accuracy",
    "probe_macro_f1": "probe macro-F1",
    "trustworthiness": "trustworthiness of the map",
    "continuity": "continuity of the map",
    "documents_per_second": "texts a second",
    "megabytes": "vectors, MB",
}
"""What measures are called for people, where that is not their name in the scores."""

UNRANKED = {"silhouette"}
"""Measures in which nobody leads: a silhouette depends on how an encoder spreads its vectors."""

_LINE = 17
_AIR = 16
"""Pixels that Plotly leaves above and below the text of a cell, together; with less, rows grow
beyond what is asked for and the last is cut off."""


@dataclass(frozen=True)
class Score:
    """What one encoder reaches in one measure.

    Parameters
    ----------
    value, low, high : float
        The measure and its interval; NaN where unknown.
    best : bool
        Whether it leads, and its interval lies above the intervals of all other encoders.
    """

    value: float
    low: float
    high: float
    best: bool = False


@dataclass(frozen=True)
class ScoreRow:
    """One measure.

    Parameters
    ----------
    measure : str
    scores : tuple of Score
        In the order of the encoders.
    n : int
        Documents that were looked at; the most of any encoder.
    """

    measure: str
    scores: tuple[Score, ...]
    n: int


def score_rows(result: Comparison) -> tuple[ScoreRow, ...]:
    """Arrange the scores of a comparison, and find who leads for certain.

    Measures come in the order in which they first appear. Where there are intervals, more is
    better. An encoder leads only where its interval lies above those of all others that have a
    value; where an interval is unknown, nobody leads, and nobody does in silhouettes, which do not
    compare encoders.

    Parameters
    ----------
    result : Comparison

    Returns
    -------
    tuple of ScoreRow
    """
    frame = result.scores
    rows = []
    for measure in dict.fromkeys(frame["measure"].tolist()):
        own = frame[frame["measure"] == measure]
        known = {
            name: Score(float(value), float(low), float(high))
            for name, value, low, high in zip(
                own["encoder"], own["value"], own["low"], own["high"], strict=True
            )
        }
        unknown = Score(math.nan, math.nan, math.nan)
        scores = [known.get(name, unknown) for name in result.names]
        marked = tuple(scores) if measure in UNRANKED else _mark_best(scores)
        rows.append(ScoreRow(str(measure), marked, int(own["n"].max())))
    return tuple(rows)


def _mark_best(scores: list[Score]) -> tuple[Score, ...]:
    """Mark the score whose interval lies above all others, if there is one."""
    known = [place for place, score in enumerate(scores) if not math.isnan(score.value)]
    if len(known) > 1:
        leader = max(known, key=lambda place: scores[place].value)
        low = scores[leader].low
        # a comparison with NaN is false, so an unknown interval is never beaten
        if all(scores[place].high < low for place in known if place != leader):
            first = scores[leader]
            scores[leader] = Score(first.value, first.low, first.high, best=True)
    return tuple(scores)


def name_measure(measure: str) -> str:
    """Return what a measure is called for people.

    Examples
    --------
    >>> name_measure("knn_accuracy"), name_measure("recall")
    ('k-NN accuracy', 'recall')
    """
    return _NAMES.get(measure, measure)


def spell(value: float) -> str:
    """Return a figure as the tables show it, or a dash where it is not known.

    Examples
    --------
    >>> spell(0.84217), spell(61.25), spell(1234.6)
    ('0.842', '61.2', '1,235')
    """
    if math.isnan(value):
        return "\u2013"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 3
    return f"{value:,.{digits}f}".replace("-", "\u2212")


def line_height(row: ScoreRow, *, broken: bool) -> int:
    """Return the pixels that a row of the table takes."""
    lines = max(len(wrap(cut(name_measure(row.measure), 80), 26)), 2 if broken else 1)
    return lines * _LINE + _AIR


def score_table(
    names: tuple[str, ...], rows: tuple[ScoreRow, ...], share: float, *, broken: bool
) -> dict[str, Any]:
    """Return a Plotly table of the scores that fills the lowest `share` of a figure.

    Intervals stand beside their values, or below them where lines are `broken`.
    """
    n_encoders = len(names)
    between = "<br>" if broken else " "
    cells = [[f"<span>{escape(cut(name_measure(row.measure), 80))}</span>" for row in rows]]
    cells += [[_cell(row.scores[place], between) for row in rows] for place in range(n_encoders)]
    align = ["left", *["right"] * n_encoders]
    return {
        "type": "table",
        "domain": {"x": [0.0, 1.0], "y": [0.0, share]},
        "columnwidth": [1.5, *[1.0] * n_encoders],
        "header": {
            "values": ["", *(escape(cut(name, max(18, 96 // n_encoders))) for name in names)],
            "align": align,
            "fill": {"color": "#fff"},
            "line": {"width": 0},
            "height": HEAD,
            "font": {"family": FONT, "size": 12, "color": MUTED},
        },
        "cells": {
            "values": cells,
            "align": align,
            "fill": {"color": [["#f6f7f9" if i % 2 == 0 else "#fff" for i in range(len(rows))]]},
            "line": {"width": 0},
            "height": _LINE + _AIR,
            "font": {"family": FONT, "size": 12.5, "color": INK},
        },
    }


def breaks_lines(n_encoders: int, width: int | None) -> bool:
    """Tell whether a column is too narrow for a value and its interval side by side.

    A figure without a width of its own may be shown as narrow as 800 pixels.

    Examples
    --------
    >>> breaks_lines(3, None), breaks_lines(4, None), breaks_lines(4, 1300)
    (False, True, False)
    """
    return (width or 800) / (n_encoders + 1.5) < 165  # the names of measures take 1.5


def _cell(score: Score, between: str) -> str:
    """Return a score with its interval, bold where it leads for certain."""
    # a mark of some kind in every cell: Plotly sets marked text a little lower than plain
    mark = "b" if score.best else "span"
    value = f"<{mark}>{spell(score.value)}</{mark}>"
    if math.isnan(score.low) or math.isnan(score.high):
        return value
    return f"{value}{between}[{spell(score.low)}, {spell(score.high)}]"
