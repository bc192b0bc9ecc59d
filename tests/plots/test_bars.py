from __future__ import annotations

import pytest

from embedtopics import plots
from embedtopics.plots._colors import NOISE_COLOR, tint, topic_colors
from tests.factories import make_result, refuses


def test_sizes_account_for_every_row():
    result = make_result()
    bars = plots.sizes(result).data[0]
    assert sum(bars.x) == len(result.corpus)  # every row is in one bar
    assert list(bars.x[:6]) == [topic.size for topic in result.topics]
    assert list(bars.marker.color[:6]) == list(topic_colors(result))
    assert list(bars.marker.color[6:]) == [NOISE_COLOR] * 2
    assert bars.text[0] == f"{result.topics[0].size:,} · {result.topics[0].share:.1%}"


def test_sizes_sum_up_the_smaller_topics():
    result = make_result(n_documents=600, n_topics=20)
    figure = plots.sizes(result, max_topics=5)
    names = [name.strip() for name in figure.layout.yaxis.ticktext]
    assert names[5:] == ["15 smaller topics", "No topic", "Without text"]
    rest = sum(topic.size for topic in result.topics[5:])
    assert figure.data[0].text[5].startswith(f"{rest:,} ·")


def test_sizes_without_topics():
    figure = plots.sizes(make_result(n_documents=1, n_topics=0))
    assert list(figure.data[0].x) == [1, 1]
    with refuses("max_topics"):
        plots.sizes(make_result(), max_topics=0)


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


@pytest.mark.parametrize(("n_topics", "panels"), [(1, 1), (4, 4), (9, 9), (30, 16)])
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


def test_terms_of_chosen_topics_in_the_order_given():
    figure = plots.terms(make_result(), topics=[4, 1])
    headings = [a.text for a in figure.layout.annotations if a.xref == "paper"]
    assert ["topic 4" in headings[0], "topic 1" in headings[1]] == [True, True]


def test_terms_escape_labels_and_keywords():
    result = make_result(topic_labels=["<b>x</b> %{y}"])
    assert "&lt;b&gt;x&lt;/b&gt; %{y}" in plots.terms(result).layout.annotations[0].text


def test_terms_without_topics_says_so():
    figure = plots.terms(make_result(n_documents=3, n_topics=0))
    assert figure.layout.annotations[0].text == "No topics were found"


def test_terms_refuses_what_does_not_exist():
    with refuses("topics"):
        plots.terms(make_result(), topics=[0, 9])
    with refuses("n_terms"):
        plots.terms(make_result(), n_terms=0)
