"""Estimates with intervals: corrected ones, those of labels alone, and predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from embedtopics.plots._colors import PALETTE
from embedtopics.plots._theme import GREY, INK, Spec, hover, scatter

if TYPE_CHECKING:
    import pandas as pd

ESTIMATE_KEY = (
    f'<b><span style="color:{PALETTE[0]}">● corrected</span></b>  '
    f'<span style="color:{GREY}">● labels alone</span>  ✕ predicted'
)
"""Key to the traces of `estimate_traces`."""


def estimate_traces(
    table: pd.DataFrame, places: Sequence[Any], *, is_time: bool, form: str = ".1%"
) -> list[Spec]:
    """Return the traces of a panel, from back to front: labels, predictions, corrected estimates.

    Parameters
    ----------
    table : DataFrame
        Columns estimate, low and high; n and n_gold, the texts and those of them with a label. If
        they are known, gold, gold_low and gold_high (labels alone) and naive (predictions alone).
    places : sequence
        Position of each row on the other axis: a date, or the number of a line from the top.
    is_time : bool
        Whether the places are dates, which run from left to right.
    form : str
        Format of an estimate.
    """
    traces = []
    if "gold" in table and table["gold"].notna().any():
        by_labels = _interval_dots(
            table,
            ("gold", "gold_low", "gold_high"),
            places,
            shift=0.28,
            color="#b4bbc4",
            size=6,
            is_time=is_time,
            form=form,
        )
        traces.append(by_labels)

    if "naive" in table and table["naive"].notna().any():
        predicted = table["naive"].tolist()
        texts = [f"{value:{form}} predicted" for value in predicted]
        cross = {"symbol": "x-thin", "size": 8, "line": {"width": 1.5, "color": INK}}
        trace = _oriented(predicted, places, is_time) | {"marker": cross}
        traces.append(trace | hover(texts, "text"))

    corrected = _interval_dots(
        table,
        ("estimate", "low", "high"),
        places,
        color=PALETTE[0],
        size=9,
        is_time=is_time,
        form=form,
    )
    if is_time:
        corrected["mode"] = "lines+markers"
    traces.append(corrected)
    return traces


def _interval_dots(
    table: pd.DataFrame,
    columns: tuple[str, str, str],
    places: Sequence[Any],
    *,
    shift: float = 0.0,
    color: str,
    size: int,
    is_time: bool,
    form: str,
) -> Spec:
    """Return dots with intervals: the columns of their values, low ends and high ends.

    A `shift` moves the dots of a line down, so that those of two estimates do not cover each other.
    """
    value, low, high = table[list(columns)].to_numpy().T
    if not is_time:
        places = [place + shift for place in places]

    intervals: Spec = {
        "type": "data",
        "symmetric": False,
        "array": (high - value).tolist(),
        "arrayminus": (value - low).tolist(),
        "color": color,
        "width": 0,
        "thickness": 1.5,
    }
    error = "error_y" if is_time else "error_x"
    style: Spec = {
        "marker": {"size": size, "color": color},
        "line": {"color": color, "width": 2},
        error: intervals,
    }

    texts = [
        f"{middle:{form}} [{left:{form}}, {right:{form}}]"
        for middle, left, right in zip(value, low, high, strict=True)
    ]
    for row, (n, n_gold) in enumerate(zip(table["n"], table["n_gold"], strict=True)):
        if n_gold > 0:
            texts[row] += f", {n_gold:,} of {n:,} texts labelled"

    return _oriented(value.tolist(), places, is_time) | style | hover(texts, "text")


def _oriented(values: Sequence[float], places: Sequence[Any], is_time: bool) -> Spec:
    """Return points with dates from left to right, or with lines from top to bottom."""
    if is_time:
        return scatter(list(places), list(values))
    return scatter(list(values), list(places))
