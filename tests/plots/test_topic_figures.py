"""Circles of topics, the fall of weights, and the mixture of a text."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from embedtopics import plots, topics
from embedtopics.plots._colors import tint, topic_colors
from embedtopics.plots._labels import densest_points
from embedtopics.topics.results import TokenMixture
from tests.factories import make_result, refuses


def test_areas_are_as_the_rows():
    result = make_result(900, 12)
    figure = plots.topic_map(result)
    circles = figure.data[0]
    areas = np.square(circles.marker.size)
    sizes = np.array([topic.size for topic in result.topics])
    np.testing.assert_allclose(areas / areas[0], sizes / sizes[0])
    assert circles.marker.sizemode == "diameter"
    anchors = densest_points(result.map, result.clustering.labels, 12)
    np.testing.assert_allclose(np.column_stack([circles.x, circles.y]), anchors)
    assert list(circles.marker.color) == list(topic_colors(result))
    # All circles lie inside, and both axes have one scale.
    (x0, x1), (y0, y1) = figure.layout.xaxis.range, figure.layout.yaxis.range
    unit = (x1 - x0) / (1000 - 24)
    assert unit == pytest.approx((y1 - y0) / (700 - 24))
    radii = np.array(circles.marker.size) / 2 * unit
    assert (anchors[:, 0] - radii >= x0).all() and (anchors[:, 0] + radii <= x1).all()
    assert (anchors[:, 1] - radii >= y0).all() and (anchors[:, 1] + radii <= y1).all()


def test_names_on_the_map_do_not_overlap():
    result = make_result(2500, 60)
    figure = plots.topic_map(result, max_labels=40)
    (x0, x1), (y0, y1) = figure.layout.xaxis.range, figure.layout.yaxis.range
    boxes = []
    for name in figure.layout.annotations:
        lines = name.text.split("<br>")
        width, height = 0.58 * 12 * max(map(len, lines)), 1.35 * 12 * len(lines)
        x = (name.x - x0) / (x1 - x0) * 976 + name.xshift
        y = (name.y - y0) / (y1 - y0) * 676 + name.yshift
        boxes.append((x - width / 2, y - height / 2, x + width / 2, y + height / 2))
    assert 10 < len(boxes) <= 40
    for a, b in combinations(boxes, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_topic_map_without_topics_and_of_one():
    figure = plots.topic_map(make_result(30, 0))
    assert "No topics" in figure.layout.annotations[0].text
    one = plots.topic_map(make_result(30, 1))
    assert len(one.data[0].x) == 1 and np.isfinite(one.layout.xaxis.range).all()
    with refuses("width"):
        plots.topic_map(make_result(30, 1), width=100)
    with refuses("max_labels"):
        plots.topic_map(make_result(30, 1), max_labels=-1)


def test_lines_fall_by_weight():
    result = make_result(400, 10)
    figure = plots.term_decline(result, topics=[3, 1], n_terms=15)
    dense = result.topic_terms.toarray()
    others = [t for t in range(10) if t not in (1, 3)]
    for topic, line in zip([*others, 3, 1], figure.data, strict=True):
        expected = np.sort(dense[topic])[::-1][:15]
        np.testing.assert_allclose(line.y, expected[expected > 0])
        assert line.x[0] == 1 and line.showlegend == (topic in (1, 3))
        best = result.term_counts.terms[int(np.argmax(dense[topic]))]
        assert line.hovertext[0] == best
    colors = topic_colors(result)
    assert [line.line.color for line in figure.data[-2:]] == [colors[3], colors[1]]
    assert figure.layout.yaxis.type == "linear"
    assert plots.term_decline(result, log=True).layout.yaxis.type == "log"
    assert len(plots.term_decline(make_result(30, 0)).data) == 0
    with refuses("topics"):
        plots.term_decline(result, topics=[10])
    with refuses("n_terms"):
        plots.term_decline(result, n_terms=0)


def test_mixture_shows_shares_and_words():
    result = make_result(400, 6)
    found = topics.token_topics(result, 0, min_similarity=0.02)
    figure = plots.mixture(result, found, max_topics=3)
    bars, words = figure.data
    order = np.argsort(-found.shares, kind="stable")
    order = order[found.shares[order] > 0]
    shares = [*found.shares[order[:3]], found.shares[order[3:]].sum()]
    np.testing.assert_allclose(
        np.array(bars.x) / bars.x[0], np.array(shares) / shares[0], rtol=1e-5
    )
    notes = [a.text for a in figure.layout.annotations]
    assert result.topics[order[0]].label in notes[0] and f"<b>{shares[0]:.0%}</b>" in notes[0]
    assert f"{len(order) - 3} other topic" in notes[3]
    assert list(words.text) == list(found.tokens)
    frame = found.to_frame()
    boxes = figure.layout.shapes
    assert len(boxes) == (frame["topic"] >= 0).sum()
    colors, strongest = topic_colors(result), frame["weight"].max()
    held = frame[frame["topic"] >= 0]
    for box, (place, row) in zip(boxes, held.iterrows(), strict=True):
        assert box.x0 < words.x[place] < box.x1 and box.y0 < words.y[place] < box.y1
        share = 0.12 + 0.43 * row["weight"] / strongest
        assert box.fillcolor == tint(colors[row["topic"]], share)


def test_words_are_laid_out_without_overlap():
    result = make_result(60, 2)
    tokens = ("word", "<b>x</b>", "長い言葉", "a" * 90, "$m$", "%{x}") * 30
    weights = csr_matrix(np.tile([[0.5, 0.0]], (180, 1)).astype(np.float32))
    shares = np.array([1, 0], dtype=np.float32)
    figure = plots.mixture(result, TokenMixture(tokens, weights, shares), max_words=100)
    boxes = figure.layout.shapes
    assert len(boxes) == len(figure.data[1].text) == 100
    assert "80 more words" in [a.text for a in figure.layout.annotations]
    assert figure.data[1].text[1] == "&lt;b&gt;x&lt;/b&gt;" and len(figure.data[1].text[3]) == 32
    widest = figure.layout.xaxis2.range[1]
    for a, b in combinations(boxes, 2):
        assert a.x1 <= b.x0 or b.x1 <= a.x0 or a.y1 <= b.y0 or b.y1 <= a.y0
    assert all(box.x1 <= widest + 0.6 for box in boxes)
    # A box is as wide as its word: a character twice as wide counts twice.
    assert boxes[2].x1 - boxes[2].x0 == pytest.approx(8 + 1.2)


def test_mixture_of_nothing_and_bad_input():
    result = make_result(60, 2)
    nothing = topics.token_topics(result, "")
    figure = plots.mixture(result, nothing)
    assert "no words" in [a.text for a in figure.layout.annotations]
    assert any("No topic" in a.text for a in figure.layout.annotations)
    none = make_result(30, 0)
    assert len(plots.mixture(none, topics.token_topics(none, 0)).layout.shapes) == 0
    with refuses("mixture"):
        plots.mixture(result, topics.token_topics(none, 0))
    for wrong in ({"max_topics": 0}, {"max_words": 0}, {"width": 10}):
        with refuses(next(iter(wrong))):
            plots.mixture(result, nothing, **wrong)


def test_a_name_that_is_cut_says_so():
    long = "community detection, networks, modularity"
    result = make_result(300, 3, topic_labels=[long])
    texts = [note.text for note in plots.topic_map(result).layout.annotations]
    assert "community<br>detection,<br>networks…" in texts
