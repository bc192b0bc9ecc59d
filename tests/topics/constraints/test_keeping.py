"""Seeded topics, and edits after the fit."""

import numpy as np

from embedtopics import topics
from embedtopics.topics.editing._merge import _cannot_merge
from tests.factories import make_result, refuses
from tests.topics.editing.altering import with_anchors


def test_seeded_topics_stay_apart():
    expected = np.zeros((6, 6), dtype=bool)
    assert not _cannot_merge(make_result()).any()
    expected[np.ix_([1, 3, 4], [1, 3, 4])] = ~np.eye(3, dtype=bool)
    np.testing.assert_array_equal(_cannot_merge(with_anchors(make_result(), 1, 3, 4)), expected)


def test_a_level_of_the_tree_joins_no_anchors():
    asked = with_anchors(make_result(), 0, 1, 2)
    tree = topics.hierarchy(asked)
    for n_topics in range(1, 7):
        read = topics.at_level(asked, tree, n_topics)
        assert {t.label for t in read.topics if t.is_seeded} == {"asked 0", "asked 1", "asked 2"}
        n_more = read.n_topics - n_topics
        assert (f"require {n_more} more" in read.history[-1].message) == (n_more > 0)
    with refuses("topics"):
        topics.at_level(asked, topics=[[0, 1]])
