"""Differences between an encoder and the one it came from, drawn as they are."""

import math

import pytest

from embedtopics.plots import before_after
from embedtopics.training.results import Change

CHANGES = (
    Change("test", "Spearman", 0.8, 0.85, 0.05, 0.02, 0.07, 1379, "better", 3, "A <b> & $x$ note."),
    Change("stsb", "Spearman", 0.82, 0.75, -0.07, -0.09, -0.05, 1379, "worse", 1),
    Change("corpus", "neighbours kept", 1.0, 0.4, -0.6, -0.62, -0.58, 500, "descriptive"),
    Change("test", "Pearson", 0.8, 0.79, -0.01, -0.04, 0.02, 1379, "no difference shown", 3),
    Change("test", "AUC", 0.8, math.nan, math.nan, math.nan, math.nan, 9, "no difference shown"),
)


def points(figure, axis):
    """Return value, low and high by the name of the row."""
    found = {}
    rows = figure.layout[f"yaxis{axis}"]
    for trace in figure.data:
        if (trace.yaxis or "y") != f"y{axis}" or trace.error_x.array is None:
            continue
        for x, y, up, down in zip(
            trace.x, trace.y, trace.error_x.array, trace.error_x.arrayminus, strict=True
        ):
            name = rows.ticktext[rows.tickvals.index(y)].strip()
            found[name] = (None,) * 3 if x is None else (x, x - down, x + up)
    return found


def test_dots_and_lines_are_the_differences_and_their_intervals():
    figure = before_after(CHANGES)
    scores = points(figure, "")
    assert list(figure.layout.yaxis.ticktext) == [
        "<b>test</b>  Spearman  ", "Pearson  ", "AUC (unknown)  ", "<b>stsb</b>  Spearman  ",
    ]  # fmt: skip
    assert scores["<b>test</b>  Spearman"] == pytest.approx((0.05, 0.02, 0.07))
    assert scores["<b>stsb</b>  Spearman"] == pytest.approx((-0.07, -0.09, -0.05))
    assert scores["AUC (unknown)"] == (None, None, None)
    assert points(figure, "2") == {
        "<b>corpus</b>  neighbours kept": pytest.approx((0.4, 0.38, 0.42))
    }
    (hollow,) = [trace for trace in figure.data if trace.hoverinfo == "skip"]
    assert list(hollow.x) == [1.0]
    low, high = figure.layout.xaxis.range
    assert low < -0.09 and high > 0.07


def test_verdicts_differ_in_colour_and_shape():
    named = {trace.name: trace for trace in before_after(CHANGES).data if trace.showlegend}
    assert set(named) == {"better", "worse", "no difference shown"}
    assert len({trace.marker.color for trace in named.values()}) == 3
    assert len({trace.marker.symbol for trace in named.values()}) == 3


def test_hover_says_how_many_examples_and_looks_and_shows_notes_as_text():
    (better,) = [trace for trace in before_after(CHANGES).data if trace.name == "better"]
    (text,) = better.text
    assert "1,379 examples, test set log: use 3" in text
    assert "0.800 before, 0.850 after: +0.050 (+0.020 to +0.070)" in text
    assert "A &lt;b&gt; &amp; &#36;x&#36; note." in text
    hostile = Change("<script>", "<i>", 0, 1, 1, 0.5, 1.5, 1, "better")
    assert "<script" not in before_after([hostile]).to_json().replace("\\u003c", "<")


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_any_part_can_be_drawn(n):
    figure = before_after(CHANGES[2 : 2 + n])
    assert figure.layout.height > 0
    assert bool(figure.data) == bool(n)
    only_scores = before_after(CHANGES[:2])
    assert only_scores.layout.yaxis.domain == (0.0, 1.0)
    assert {trace.yaxis for trace in only_scores.data} == {"y"}
