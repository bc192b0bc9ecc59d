"""Bars of sizes, terms and keyness; dots of recurrence."""

import numpy as np
import pandas as pd
import pytest

from embedtopics import plots
from embedtopics.plots import _bars
from embedtopics.plots._colors import NOISE_COLOR, tint, topic_colors
from tests.factories import make_result, with_stability


def test_sizes_account_for_every_row():
    result = make_result()
    bars = plots.sizes(result).data[0]
    assert sum(bars.x) == len(result.corpus)  # every row is in one bar
    assert list(bars.x[:6]) == [topic.size for topic in result.topics]
    assert list(bars.marker.color[:6]) == list(topic_colors(result))
    assert list(bars.marker.color[6:]) == [NOISE_COLOR] * 2
    assert bars.text[0] == f"{result.topics[0].size:,} · {result.topics[0].share:.1%}"


def test_sizes_sum_up_the_smaller_topics(monkeypatch):
    monkeypatch.setattr(_bars, "_BARS", 5)
    result = make_result(n_documents=600, n_topics=20)
    figure = plots.sizes(result)
    names = [name.strip() for name in figure.layout.yaxis.ticktext]
    assert names[5:] == ["15 smaller topics", "No topic", "Without text"]
    rest = sum(topic.size for topic in result.topics[5:])
    assert figure.data[0].text[5].startswith(f"{rest:,} ·")


def test_terms_draws_the_keywords_of_each_topic_best_on_top():
    result = make_result()
    figure = plots.terms(result, n_terms=5)
    assert len(figure.data) == result.n_topics
    colors = topic_colors(result)
    for topic, trace in zip(result.topics, figure.data, strict=True):
        assert list(trace.x) == list(topic.weights[:5])
        assert list(trace.hovertext) == list(topic.keywords[:5])
        assert trace.marker.color == tint(colors[topic.topic_id], 0.45)
    assert figure.layout.yaxis.range == (4.5, -0.5)
    shown = [a.text for a in figure.layout.annotations if a.xref == "x"]
    assert shown == list(result.topics[0].keywords[:5])


@pytest.mark.parametrize(("n_topics", "panels"), [(1, 1), (4, 4), (9, 9), (30, 15)])
def test_panels_do_not_overlap(n_topics, panels):
    layout = plots.terms(make_result(n_documents=400, n_topics=n_topics)).layout
    names = ["" if i == 0 else str(i + 1) for i in range(panels)]
    boxes = [(layout[f"xaxis{n}"].domain, layout[f"yaxis{n}"].domain) for n in names]
    assert f"xaxis{panels + 1}" not in layout
    for i, (x, y) in enumerate(boxes):
        assert 0 <= x[0] < x[1] <= 1 and 0 <= y[0] < y[1] <= 1
        for other_x, other_y in boxes[:i]:
            apart = x[0] >= other_x[1] or other_x[0] >= x[1]
            assert apart or y[0] >= other_y[1] or other_y[0] >= y[1]


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


def test_topics_from_the_stablest_down_each_with_interval_and_chance():
    labels = ["a", "b", "c", "<i>d</i> $x$"]
    result = make_result(n_topics=4, topic_labels=labels)
    chance = np.array([0.1, 0.2, 0.3, 0.4])
    measured = with_stability(result, [0.5, np.nan, 0.9, 0.7], chance)
    figure = plots.stability(measured)
    *lines, marks, dots = figure.data
    names = [name.strip() for name in figure.layout.yaxis.ticktext]
    assert names == ["c", "&lt;i&gt;d&lt;/i&gt; &#36;x&#36;", "a", "b (in no replicate)"]
    np.testing.assert_allclose(dots.x, [0.9, 0.7, 0.5, np.nan])
    np.testing.assert_allclose(marks.x, [0.3, 0.4, 0.1, 0.2])
    np.testing.assert_allclose(
        [line.x for line in lines[:3]], [[0.8, 0.95], [0.6, 0.75], [0.4, 0.55]]
    )
    assert [line.y for line in lines] == [(i, i) for i in range(4)]
    assert "3 replicates" in dots.name
    assert "topic 2" in dots.hovertext[0] and "from 0.80 to 0.95" in dots.hovertext[0]
    colors = topic_colors(measured)
    assert list(dots.marker.color) == [colors[i] for i in (2, 3, 0, 1)]
