from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.plots._labels import densest_points, place_labels


def test_the_densest_point_is_in_the_thick_of_a_bent_topic():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, np.pi, 400)
    arc = np.column_stack([np.cos(angle), np.sin(angle)]) * 10
    core = rng.normal((-10, 0), 0.3, size=(200, 2))
    positions = np.vstack([arc, core]).astype(np.float32)
    found = densest_points(positions, np.zeros(600, dtype=np.int32), 1)
    assert np.linalg.norm(found[0] - [-10, 0]) < 1.5
    assert np.linalg.norm(positions.mean(axis=0) - [-10, 0]) > 4  # where the mean would put it


def test_the_densest_point_is_a_document_of_the_topic():
    rng = np.random.default_rng(1)
    positions = rng.normal(size=(50, 2)).astype(np.float32)
    labels = rng.integers(-1, 3, 50).astype(np.int32)
    for topic, point in enumerate(densest_points(positions, labels, 3)):
        assert (positions[labels == topic] == point).all(axis=1).any()


def test_topics_of_one_point_of_equal_points_and_of_none():
    positions = np.array([[1, 2], [3, 4], [3, 4]], dtype=np.float32)
    found = densest_points(positions, np.array([0, 1, 1], dtype=np.int32), 3)
    np.testing.assert_array_equal(found[:2], [[1, 2], [3, 4]])
    assert np.isnan(found[2]).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**16), st.integers(0, 60), st.integers(0, 40))
def test_placed_labels_never_overlap_and_stay_inside(seed, n_labels, max_labels):
    rng = np.random.default_rng(seed)
    size = (600.0, 400.0)
    anchors = rng.uniform(0, 1, (n_labels, 2)) * size
    boxes = [(float(w), 16.0) for w in rng.uniform(20, 160, n_labels)]
    placed = place_labels(anchors, boxes, size, max_labels)
    assert len(placed) <= max_labels
    edges = []
    for place in placed:
        centre, half = anchors[place.label] + place.shift, np.array(boxes[place.label]) / 2
        edges.append((*(centre - half), *(centre + half)))
        assert (centre - half >= -0.1).all()
        assert (centre + half <= np.array(size) + 0.1).all()
    for i, a in enumerate(edges):
        for b in edges[:i]:
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_the_first_label_stands_on_its_anchor_and_the_next_moves_aside():
    anchors = np.array([[200.0, 200.0], [200.0, 200.0], [np.nan, np.nan]])
    first, second = place_labels(anchors, [(80, 16)] * 3, (400, 400), 10)
    assert (first.label, first.shift) == (0, (0.0, 0.0))
    assert (second.label, second.shift[0]) == (1, 0.0)
    assert 16 <= abs(second.shift[1]) <= 40


def test_a_label_without_room_is_left_out():
    anchors = np.full((12, 2), 200.0)
    placed = place_labels(anchors, [(300, 16)] * 12, (400, 400), 12)
    assert 1 < len(placed) < 12
