import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import cdist, squareform

from embedtopics.clustering import DensityClusterer
from embedtopics.clustering._resolution import (
    automatic_min_cluster_size,
    merge_nearest,
    named_min_cluster_size,
    topics_by_min_cluster_size,
)
from embedtopics.clustering._selection import labels_at
from embedtopics.clustering._spanning_tree import spanning_tree
from embedtopics.errors import InputError

grids = hnp.arrays(
    np.int64, st.tuples(st.integers(2, 30), st.integers(1, 2)), elements=st.integers(0, 12)
)
"""Few places for many points, so that points repeat and distances tie."""


@settings(deadline=None, max_examples=150)
@given(grids, st.integers(1, 5), st.data())
def test_counts_equal_the_cuts_at_every_size(points, min_samples, data):
    weights = data.draw(hnp.arrays(np.int64, len(points), elements=st.integers(1, 6)))
    tree = spanning_tree(points, min_samples=min_samples, weights=weights)
    counted = topics_by_min_cluster_size(tree, weights)
    total = int(weights.sum())
    assert counted.shape == (total + 2,) and (counted[:2] == 0).all()
    cut = [len(labels_at(tree, s, weights, "leaf").persistence) for s in range(2, total + 2)]
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


FOUR_PAIRS = [[0.0], [1.0], [3.0], [4.0], [10.0], [11.0], [30.0], [31.0]]
"""Pairs 2, 6 and 19 apart from one to the next."""


@pytest.mark.parametrize(
    ("n_topics", "expected"),
    [
        (5, [0, 0, 1, 1, 2, 2, 3, 3]),
        (4, [0, 0, 1, 1, 2, 2, 3, 3]),
        (3, [0, 0, 0, 0, 2, 2, 3, 3]),
        (2, [0, 0, 0, 0, 0, 0, 3, 3]),
        (1, [0, 0, 0, 0, 0, 0, 0, 0]),
    ],
)
def test_those_that_meet_first_are_merged_first(n_topics, expected):
    tree = spanning_tree(FOUR_PAIRS, min_samples=1)
    labels = np.repeat(np.arange(4, dtype=np.int32), 2)
    before = labels.copy()
    assert merge_nearest(tree, labels, n_topics).tolist() == expected
    np.testing.assert_array_equal(labels, before)


def test_the_lowest_number_stays_wherever_it_is():
    tree = spanning_tree(FOUR_PAIRS, min_samples=1)
    labels = np.array([5, 5, 2, 2, 7, 7, 0, 0], dtype=np.int32)
    assert merge_nearest(tree, labels, 3).tolist() == [2, 2, 2, 2, 7, 7, 0, 0]
    assert merge_nearest(tree, labels, 2).tolist() == [2, 2, 2, 2, 2, 2, 0, 0]
    noise = np.full(8, -1, dtype=np.int32)
    np.testing.assert_array_equal(merge_nearest(tree, noise, 3), noise)


def test_noise_between_clusters_is_a_bridge_and_stays_noise():
    # The first two are 20 apart with noise halfway, the second and the third 13 without.
    points = [[0.0], [1.0], [11.0], [21.0], [22.0], [35.0], [36.0]]
    labels = np.array([0, 0, -1, 1, 1, 2, 2], dtype=np.int32)
    tree = spanning_tree(points, min_samples=1)
    assert merge_nearest(tree, labels, 2).tolist() == [0, 0, -1, 0, 0, 2, 2]


def partition(labels):
    """Return the groups of documents, whatever their numbers."""
    return {frozenset(np.flatnonzero(labels == topic)) for topic in np.unique(labels[labels >= 0])}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_merging_equals_single_linkage_of_contracted_clusters(seed):
    points = np.random.default_rng(seed).normal(size=(80, 2))
    # With one neighbour in a core, mutual reachability is the distance itself.
    tree = spanning_tree(points, min_samples=1)
    labels = labels_at(tree, 3, method="leaf").labels
    distances = cdist(points, points)
    distances[(labels[:, None] == labels) & (labels >= 0)] = 0.0
    merges = linkage(squareform(distances), "single")
    n_left = len(partition(labels))
    assert n_left >= 5
    for distance in merges[:, 2]:
        expected = np.where(labels >= 0, fcluster(merges, distance, "distance"), -1)
        n_wanted = len(partition(expected))
        assert n_wanted in (n_left, n_left - 1)
        n_left = n_wanted
        assert partition(merge_nearest(tree, labels, n_wanted)) == partition(expected)
    assert n_left == 1


@settings(deadline=None, max_examples=100)
@given(grids, st.integers(1, 4), st.integers(2, 4))
def test_any_number_is_met_and_fewer_are_unions_of_more(points, min_samples, size):
    tree = spanning_tree(points, min_samples=min_samples)
    labels = labels_at(tree, size, method="leaf").labels
    finer = partition(labels)
    for wanted in range(len(finer), 0, -1):
        merged = merge_nearest(tree, labels, wanted)
        np.testing.assert_array_equal(merged < 0, labels < 0)
        coarser = partition(merged)
        assert len(coarser) == wanted
        assert all(sum(part <= whole for whole in coarser) == 1 for part in finer)
        finer = coarser


@pytest.mark.parametrize(
    ("n_rows", "expected"),
    [(1, 5), (20, 5), (40, 10), (160, 10), (400, 20), (7_000, 350), (60_000, 350), (540_000, 1050)],
)
def test_automatic_sizes(n_rows, expected):
    assert automatic_min_cluster_size(n_rows) == expected
    with pytest.raises(InputError):
        named_min_cluster_size("medium", n_rows)


@given(st.integers(1, 10**7), st.integers(0, 10**6))
def test_more_texts_never_make_a_smaller_size(n_rows, more):
    assert automatic_min_cluster_size(n_rows) <= automatic_min_cluster_size(n_rows + more)
    fine, auto, coarse = (named_min_cluster_size(n, n_rows) for n in ("fine", "auto", "coarse"))
    assert 5 <= fine <= auto < coarse


def test_the_clusterer_keeps_the_tree_that_it_cut():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(200, 2)) + 12.0 * rng.integers(0, 4, (200, 1))
    weights = rng.integers(1, 4, 200)
    fitted = DensityClusterer().fit(points, sample_weight=weights)
    assert fitted.min_cluster_size_ == automatic_min_cluster_size(int(weights.sum()))
    again = labels_at(fitted.tree_, fitted.min_cluster_size_, weights, "leaf")
    np.testing.assert_array_equal(again.labels, fitted.labels_)
    np.testing.assert_array_equal(again.probabilities, fitted.probabilities_)
    assert DensityClusterer().fit(points[:1]).tree_ is None
