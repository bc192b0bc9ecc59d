from __future__ import annotations

import pandas as pd
import pytest

from embedtopics import plots
from tests.factories import refuses


@pytest.fixture
def frame():
    rows = [("<b>a</b>", 9.0, 2.0), ("b", 4.0, 3.0), ("c", 0.0, 0.0), ("d", -1.0, -3.0),
            ("$e$", -5.0, -1.0)]  # fmt: skip
    made = pd.DataFrame(rows, columns=["term", "statistic", "effect"])
    for side in ("target", "reference"):
        made[f"count_{side}"], made[f"rate_{side}"] = 3, 1234.5
    return made


def written(figure):
    return [a.text for a in figure.layout.annotations if a.yref == "y"]


def test_terms_of_the_target_are_on_the_right_strongest_on_top(frame):
    figure = plots.keyness(frame, target="<i>Left</i>", reference="Right")
    right, left = figure.data
    assert (list(right.x), list(right.y)) == ([9.0, 4.0], [0, 1])
    assert (list(left.x), list(left.y)) == ([-5.0, -1.0], [0, 1])
    assert figure.layout.xaxis.range == (-9.0, 9.0)
    assert written(figure) == ["&lt;b&gt;a&lt;/b&gt;", "b", "&#36;e&#36;", "d"]
    headings = [a.text for a in figure.layout.annotations if a.yref == "paper"]
    assert "&lt;i&gt;Left&lt;/i&gt;" in headings[0] and "Right" in headings[1]
    assert "<b>&lt;b&gt;a" in right.hovertext[0] and "3 and 3 occ" in right.hovertext[0]


def test_the_number_of_terms_and_the_length_are_chosen(frame):
    figure = plots.keyness(frame, n_terms=1, value="effect")
    assert [list(trace.x) for trace in figure.data] == [[2.0], [-1.0]]


def test_a_side_without_terms_says_so(frame):
    figure = plots.keyness(frame.head(0))
    assert sum("no term" in a.text for a in figure.layout.annotations) == 2


def test_bad_arguments(frame):
    for change in ({"n_terms": 0}, {"value": "p"}):
        with refuses(*change):
            plots.keyness(frame, **change)
    with refuses("frame"):
        plots.keyness(frame.drop(columns="effect"))
