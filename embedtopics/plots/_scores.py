"""The scores of a comparison as a table: a measure a row, an encoder a column."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from embedtopics.comparison.results import Comparison
from embedtopics.plots._theme import FONT, INK, MUTED, caption, cut, wrap

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


class Score(NamedTuple):
    """What one encoder reaches in one measure, NaN where unknown, and whether it leads."""

    value: float
    low: float
    high: float
    best: bool = False


class ScoreRow(NamedTuple):
    """One measure: the scores in the order of the encoders, and the most documents of any."""

    measure: str
    scores: tuple[Score, ...]
    n: int


def score_rows(result: Comparison) -> tuple[ScoreRow, ...]:
    """Arrange the scores of a comparison, and find who leads for certain.

    Measures come in the order in which they first appear. Where there are intervals, more is
    better. An encoder leads only where its interval lies above those of all others that have a
    value; where an interval is unknown, nobody leads, and nobody does in silhouettes, which do not
    compare encoders.
    """
    frame, rows = result.scores, []
    for measure in dict.fromkeys(frame["measure"].tolist()):
        own = frame[frame["measure"] == measure].set_index("encoder")
        scores = [
            Score(*own.loc[name, ["value", "low", "high"]].astype(float))
            if name in own.index
            else Score(math.nan, math.nan, math.nan)
            for name in result.names
        ]
        known = [place for place, score in enumerate(scores) if not math.isnan(score.value)]
        if len(known) > 1 and measure not in UNRANKED:
            leader = max(known, key=lambda place: scores[place].value)
            # a comparison with NaN is false, so an unknown interval is never beaten
            others = [scores[place].high for place in known if place != leader]
            if all(high < scores[leader].low for high in others):
                scores[leader] = scores[leader]._replace(best=True)
        rows.append(ScoreRow(str(measure), tuple(scores), int(own["n"].max())))
    return tuple(rows)


def name_measure(measure: str) -> str:
    """Return what a measure is called for people."""
    return _NAMES.get(measure, measure)


def spell(value: float) -> str:
    """Return a figure as the tables show it, or a dash where it is not known."""
    if math.isnan(value):
        return "\u2013"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 3
    return f"{value:,.{digits}f}".replace("-", "\u2212")


def line_height(row: ScoreRow, *, broken: bool) -> int:
    """Return the pixels that a row of the table takes."""
    lines = max(len(wrap(cut(name_measure(row.measure), 80), 26)), 2 if broken else 1)
    return lines * _LINE + _AIR


def score_table(
    names: tuple[str, ...], rows: tuple[ScoreRow, ...], *, broken: bool
) -> dict[str, Any]:
    """Return a Plotly table of the scores.

    Intervals stand beside their values, or below them where lines are `broken`.
    """
    n_encoders = len(names)
    between = "<br>" if broken else " "
    cells = [[f"<span>{caption(name_measure(row.measure), 80)}</span>" for row in rows]]
    cells += [[_cell(row.scores[place], between) for row in rows] for place in range(n_encoders)]
    plain = {"align": ["left", *["right"] * n_encoders], "line": {"width": 0}}
    heads = ["", *(caption(name, max(18, 96 // n_encoders)) for name in names)]
    font = {"family": FONT, "size": 12, "color": MUTED}
    fill = [["#f6f7f9" if i % 2 == 0 else "#fff" for i in range(len(rows))]]
    return {
        "type": "table",
        "columnwidth": [1.5, *[1.0] * n_encoders],
        "header": {"values": heads, "height": HEAD, "fill": {"color": "#fff"}, "font": font}
        | plain,
        "cells": {
            "values": cells,
            "fill": {"color": fill},
            "height": _LINE + _AIR,
            "font": font | {"size": 12.5, "color": INK},
        }
        | plain,
    }


def breaks_lines(n_encoders: int, width: int | None) -> bool:
    """Return whether a column is too narrow for a value and its interval side by side.

    A figure without a width of its own may be shown as narrow as 800 pixels.
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
