"""The tree of topics."""

import numpy as np
import pytest

from embedtopics import plots, topics
from tests.factories import make_result

MARKUP = "<b>bold</b> $x$ %{x}"


@pytest.fixture(scope="module")
def result():
    return make_result(600, 9, topic_labels=[MARKUP])


@pytest.fixture(scope="module")
def tree(result):
    return topics.hierarchy(result)


def places_of_topics(figure, tree):
    """The rows of the topics; rows in bold are names of themes."""
    names = enumerate(figure.layout.yaxis.ticktext)
    rows = [float(row) for row, name in names if not name.startswith("  <b>")]
    return dict(zip(tree.order.tolist(), rows, strict=True))


def test_every_merge_is_drawn_where_it_takes_place(result, tree):
    figure = plots.hierarchy(tree)
    *lines, points = figure.data
    np.testing.assert_allclose(points.x, tree.distances)
    # Each merge is halfway between its parts, and each part has a line to it.
    place = dict(zip(range(9, 17), points.y, strict=True)) | places_of_topics(figure, tree)
    height = dict.fromkeys(range(9), 0.0) | dict(zip(range(9, 17), points.x, strict=True))
    drawn = set()
    for line in lines:
        corners = [
            tuple(np.round(c, 6)) for c in zip(line.x, line.y, strict=True) if c[0] is not None
        ]
        drawn |= {tuple(corners[i : i + 3]) for i in range(0, len(corners), 3)}
    for merge, children in enumerate(tree.merges.tolist()):
        node = 9 + merge
        assert place[node] == pytest.approx(np.mean([place[child] for child in children]))
        for child in children:
            way = [(height[node], place[node]), (height[node], place[child]),
                   (height[child], place[child])]  # fmt: skip
            assert tuple(tuple(np.round(corner, 6)) for corner in way) in drawn
    names = [name for name in figure.layout.yaxis.ticktext if not name.startswith("  <b>")]
    assert [tree.names[t][:12] in n for t, n in zip(tree.order, names, strict=True)].count(
        False
    ) == 1  # the one with markup
    assert all(tree.terms[9 + i][0] in text for i, text in enumerate(points.hovertext))


def test_branches_of_the_cut_have_a_colour_each(tree):
    figure = plots.hierarchy(tree)
    color_at = {}
    for line in figure.data[:-1]:
        ends = [y for x, y in zip(line.x, line.y, strict=True) if x == 0]
        color_at.update(dict.fromkeys(ends, line.line.color))
    colors = {topic: color_at[place] for topic, place in places_of_topics(figure, tree).items()}
    groups = [tree.topics_under(node) for node in tree.themes]
    n = len(groups)
    assert [len({colors[t] for t in group}) for group in groups] == [1] * n
    assert len(set(colors.values())) == n and len(figure.data) == n + 2  # grey above, and points
    themes = [name for name in figure.layout.yaxis.ticktext if name.startswith("  <b>")]
    assert len(themes) == sum(len(group) > 1 for group in groups)


@pytest.mark.parametrize(("n_topics", "points"), [(0, 0), (1, 1), (2, 1)])
def test_small_trees_can_be_drawn(n_topics, points):
    small = make_result(60, n_topics)
    tree = topics.hierarchy(small)
    figure = plots.hierarchy(tree)
    assert not n_topics or len(figure.data[-1].x) == points
    notes = [a.text for a in figure.layout.annotations]
    assert ("No topics were found" in notes) == (n_topics == 0)


def test_numbers_stand_after_names_that_are_written_from_right_to_left():
    arabic = "\u0633\u064a\u0627\u0633\u0629"
    result = make_result(300, 4, topic_labels=[arabic])
    tree = topics.hierarchy(result)
    size = result.topics[0].size
    leaves = plots.hierarchy(tree).layout.yaxis.ticktext
    assert any(f"{arabic}\u200e  <span" in leaf and f">{size}<" in leaf for leaf in leaves)
    row = int(np.flatnonzero(result.labels == 0)[0])
    bars = plots.mixture(topics.mixture(result, row)).layout.annotations
    assert any(bar.text.startswith(f"{arabic}\u200e <b>") for bar in bars)


def test_the_scale_of_a_tall_tree_is_at_its_top():
    sides = [
        plots.hierarchy(topics.hierarchy(make_result(2000, n))).layout.xaxis.side for n in (12, 60)
    ]
    assert sides == ["bottom", "top"]
