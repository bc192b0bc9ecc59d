"""Seeded topics, and edits after the fit."""

import numpy as np

from embedtopics.topics.editing._regroup import _cannot_merge
from tests.factories import make_result
from tests.topics.editing.altering import with_anchors


def test_seeded_topics_stay_apart():
    expected = np.zeros((6, 6), dtype=bool)
    assert not _cannot_merge(make_result()).any()
    expected[np.ix_([1, 3, 4], [1, 3, 4])] = ~np.eye(3, dtype=bool)
    np.testing.assert_array_equal(_cannot_merge(with_anchors(make_result(), 1, 3, 4)), expected)
