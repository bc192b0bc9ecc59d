import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from embedtopics.clustering._hierarchy import labels_at
from embedtopics.clustering._resolution import (
    automatic_min_cluster_size,
    default_min_cluster_size,
    topics_by_min_cluster_size,
)
from embedtopics.clustering._spanning_tree import spanning_tree
from embedtopics.topics import DensityClusterer

grids = hnp.arrays(
    np.int64, st.tuples(st.integers(2, 30), st.integers(1, 2)), elements=st.integers(0, 12)
)
"""Few places for many points, so that points repeat and distances tie."""


@settings(deadline=None, max_examples=150)
@given(grids, st.integers(1, 5), st.data())
def test_counts_equal_the_cuts_at_every_size(points, min_samples, data):
    weights = data.draw(hnp.arrays(np.int64, len(points), elements=st.integers(1, 6)))
    tree = spanning_tree(points, min_samples=min_samples)
    counted = topics_by_min_cluster_size(tree, weights)
    total = int(weights.sum())
    assert counted.shape == (total + 2,) and (counted[:2] == 0).all()
    cut = [len(labels_at(tree, s, weights).persistence) for s in range(2, total + 2)]
    np.testing.assert_array_equal(counted[2:], cut)


@settings(deadline=None, max_examples=100)
@given(grids, st.integers(1, 5))
def test_a_larger_smallest_size_never_has_more_topics(points, min_samples):
    counted = topics_by_min_cluster_size(spanning_tree(points, min_samples=min_samples))
    assert (np.diff(counted[2:]) <= 0).all()


def test_a_hand_count():
    # Three pairs and a triple: four parts of two, the triple alone reaches three, and the root
    # is no cluster.
    points = [[0.0], [1.0], [10.0], [11.0], [30.0], [31.0], [32.1], [70.0], [71.0]]
    counted = topics_by_min_cluster_size(spanning_tree(points, min_samples=1))
    # Of four the two pairs on the left, which meet at 9, and nothing else: no two clusters.
    assert counted.tolist() == [0, 0, 4, 2, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("n_rows", "expected"),
    [
        (1, 5),
        (20, 5),
        (40, 10),
        (400, 10),
        (1_000, 25),
        (7_000, 120),
        (20_000, 120),
        (180_000, 360),
    ],
)
def test_automatic_sizes(n_rows, expected):
    assert automatic_min_cluster_size(n_rows) == expected


@given(st.integers(1, 10**7), st.integers(0, 10**6))
def test_more_texts_never_make_a_smaller_size(n_rows, more):
    assert automatic_min_cluster_size(n_rows) <= automatic_min_cluster_size(n_rows + more)


@settings(deadline=None)
@given(st.integers(1, 3_000), st.integers(1, 50))
def test_copies_of_every_text_make_sizes_as_much_larger(n_texts, n_copies):
    coordinates = np.arange(2.0 * n_texts).reshape(-1, 2)

    def size(weights):
        return default_min_cluster_size(coordinates, np.array(weights))

    one = size([1] * n_texts)
    assert n_texts < 20 or abs(size([n_copies] * n_texts) - n_copies * one) <= n_copies / 2
    assert one == automatic_min_cluster_size(n_texts)
    assert size([n_copies] * n_texts) == automatic_min_cluster_size(n_texts, n_copies)
    copied = default_min_cluster_size(
        np.repeat(coordinates, n_copies, axis=0), np.ones(n_texts * n_copies, dtype=int)
    )
    assert copied == automatic_min_cluster_size(n_texts, n_copies)


def test_many_copies_of_one_text_change_the_size_little():
    weights = np.ones(1_000, dtype=int)
    weights[0] = 20_000
    assert default_min_cluster_size(np.arange(2_000.0).reshape(-1, 2), weights) == 25


def test_the_clusterer_keeps_the_tree_that_it_cut():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(200, 2)) + 12.0 * rng.integers(0, 4, (200, 1))
    weights = rng.integers(1, 4, 200)
    fitted = DensityClusterer().fit(points, sample_weight=weights)
    assert fitted.min_cluster_size_ == default_min_cluster_size(points, weights)
    again = labels_at(fitted.tree_, fitted.min_cluster_size_, weights)
    np.testing.assert_array_equal(again.labels, fitted.labels_)
    np.testing.assert_array_equal(again.probabilities, fitted.probabilities_)
    assert DensityClusterer().fit(points[:1]).tree_ is None
