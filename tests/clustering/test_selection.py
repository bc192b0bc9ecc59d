import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score

from embedtopics.clustering._hierarchy import condense, label, labels_at, select
from embedtopics.clustering._spanning_tree import spanning_tree


def blobs(seed, n=1500, n_blobs=12, n_components=4):
    """Blobs of uneven size and density in a fifth of uniform noise."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-10, 10, (n_blobs, n_components))
    which = rng.choice(n_blobs, n * 4 // 5, p=rng.dirichlet(np.ones(n_blobs)))
    spread = rng.uniform(0.2, 1.0, n_blobs)
    inside = centers[which] + rng.normal(size=(len(which), n_components)) * spread[which, None]
    noise = rng.uniform(-12, 12, (n - len(which), n_components))
    return np.vstack([inside, noise])


def by_hdbscan(points, **settings):
    import hdbscan

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings |= {"algorithm": "boruvka_kdtree", "approx_min_span_tree": False}
        found = hdbscan.HDBSCAN(**settings).fit(points)
    return found.labels_, found.probabilities_, found.cluster_persistence_


def assert_same_partition(labels, others):
    """Both are noise together, and equal up to the numbers."""
    np.testing.assert_array_equal(labels < 0, others < 0)
    assert len(np.unique(labels)) == len(np.unique(others))
    assert len(set(zip(labels.tolist(), others.tolist(), strict=True))) == len(np.unique(labels))


def assert_same_as_library(found, labels, probabilities, persistence):
    assert_same_partition(found.labels, labels)
    assert adjusted_rand_score(found.labels, labels) == 1.0
    np.testing.assert_allclose(found.probabilities, probabilities, atol=1e-5)
    theirs = [labels[np.argmax(found.labels == topic)] for topic in range(len(persistence))]
    np.testing.assert_allclose(found.persistence, np.asarray(persistence)[theirs], atol=1e-5)


# With one neighbour in a core, no two edges that matter are equal: the libraries must agree.
@pytest.mark.parametrize("least", [5, 20])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_equals_hdbscan_without_ties(seed, least):
    points = blobs(seed)
    options = {"min_cluster_size": least, "cluster_selection_method": "leaf"}
    theirs = by_hdbscan(points, min_samples=1, **options)
    found = labels_at(spanning_tree(points, min_samples=1), least)
    assert found.labels.max() > 2
    assert_same_as_library(found, *theirs)


@pytest.mark.parametrize("least", [5, 20])
@pytest.mark.parametrize("min_samples", [5, 10])
def test_equals_hdbscan_on_a_tree_whose_ties_are_broken(min_samples, least):
    from hdbscan._hdbscan_linkage import label as single_linkage
    from hdbscan.hdbscan_ import _tree_to_labels

    tree = spanning_tree(blobs(3), min_samples=min_samples)
    apart = tree.distances * (1 + 1e-9 * np.arange(len(tree.distances)))
    tree = replace(tree, distances=apart)
    linkage = single_linkage(np.c_[tree.edges, apart])
    labels, probabilities, persistence, *_ = _tree_to_labels(
        None, linkage, min_cluster_size=least, cluster_selection_method="leaf"
    )
    found = labels_at(tree, least)
    assert_same_as_library(found, labels, probabilities, persistence)


def by_definition(points, min_samples, least):
    """HDBSCAN* of a small data set as Campello et al. define it, from the lowest density up."""
    distances, places = cdist(points, points), np.unique(points, axis=0)
    core = np.sort(cdist(points, places), axis=1)[:, min(min_samples, len(places) - 1)]
    reach = np.maximum(distances, np.maximum.outer(core, core))

    def leaves(members, is_root=False):
        """Return the clusters without parts among some members."""
        rest = members
        while True:
            inside = reach[np.ix_(rest, rest)]
            for level in np.unique(inside)[::-1]:
                part_of = connected_components(inside < level, directed=False)[1]
                if part_of.any():
                    break
            parts = [rest[part_of == part] for part in range(part_of.max() + 1)]
            parts = [part for part in parts if len(part) >= least]
            if not parts:
                return [] if is_root else [members]
            if len(parts) > 1:
                return [leaf for part in parts for leaf in leaves(part)]
            rest = parts[0]

    labels = np.full(len(points), -1)
    for number, members in enumerate(leaves(np.arange(len(points)), is_root=True)):
        labels[members] = number
    return labels


grids = hnp.arrays(
    np.int64, st.tuples(st.integers(2, 16), st.integers(1, 2)), elements=st.integers(0, 9)
)


@settings(deadline=None, max_examples=200)
@given(grids, st.integers(1, 5), st.integers(2, 5), st.data())
def test_weights_equal_repeated_rows_and_the_definition(points, min_samples, least, data):
    n = len(points)
    weights = np.array(data.draw(st.lists(st.integers(1, 6), min_size=n, max_size=n)))
    of_row = np.repeat(np.arange(n), weights)
    tree = spanning_tree(points, min_samples=min_samples)
    weighted = labels_at(tree, least, weights)
    expected = by_definition(points[of_row], min_samples, least)
    assert_same_partition(weighted.labels[of_row], expected)
    tree = spanning_tree(points[of_row], min_samples=min_samples)
    repeated = labels_at(tree, least)
    np.testing.assert_array_equal(weighted.labels[of_row], repeated.labels)
    np.testing.assert_allclose(weighted.probabilities[of_row], repeated.probabilities, rtol=1e-6)
    np.testing.assert_allclose(weighted.persistence, repeated.persistence, rtol=1e-9, atol=1e-12)


TWO_GROUPS = [[20.0], [0.0], [1.0], [5.0], [6.0], [8.0]]
"""A document far off, then a pair 1 apart, 4 away from three that are held by 1 and 2."""


def test_a_hand_calculation():
    found = labels_at(spanning_tree(TWO_GROUPS, min_samples=1), 2)
    assert found.labels.tolist() == [-1, 1, 1, 0, 0, 0]
    assert found.probabilities.tolist() == [0.0, 1.0, 1.0, 1.0, 1.0, 0.5]
    # Both are born at density 1/4; the densest place in the tree is 1.
    three, pair = (2 * (1 - 1 / 4) + (1 / 2 - 1 / 4)) / 3, 2 * (1 - 1 / 4) / 2
    np.testing.assert_allclose(found.persistence, [three, pair])
    assert found.labels.dtype == np.int32
    assert found.probabilities.dtype == np.float32


def test_topics_are_numbered_by_weight_and_then_by_first_document():
    points = [[0.0], [1.0], [50.0], [51.0], [100.0], [101.0]]
    tree = spanning_tree(points, min_samples=1)
    assert labels_at(tree, 2).labels.tolist() == [0, 0, 1, 1, 2, 2]
    weights = [1, 1, 1, 1, 2, 1]
    tree = spanning_tree(points, min_samples=1)
    assert labels_at(tree, 2, weights).labels.tolist() == [1, 1, 2, 2, 0, 0]


def test_documents_in_one_place_leave_finite_strengths():
    points = np.vstack([np.zeros((30, 2)), np.random.default_rng(0).normal(size=(200, 2))])
    points = np.vstack([points, points + 40.0])
    found = labels_at(spanning_tree(points), 100)
    assert np.unique(found.labels).tolist() == [0, 1]
    assert (found.probabilities > 0).all()
    assert (found.probabilities[:30] == 1.0).all()
    assert ((found.persistence > 0) & (found.persistence < 1)).all()


@pytest.mark.parametrize("points", [np.zeros((1, 2)), np.zeros((2, 2)), np.zeros((40, 2))])
def test_one_place_is_no_cluster_unless_the_root_may_be_one(points):
    condensed = condense(spanning_tree(points), 2)
    nothing = label(condensed, select(condensed))
    assert (nothing.labels == -1).all() and (nothing.probabilities == 0).all()
    assert nothing.persistence.shape == (0,)
    whole = label(condensed, select(condensed, allow_single_cluster=True))
    assert (whole.labels == 0).all() and (whole.probabilities == 1).all()


@pytest.mark.parametrize("least", [100, 400])
def test_a_single_cluster_equals_hdbscan(least):
    points = np.random.default_rng(5).normal(size=(500, 3))
    theirs = by_hdbscan(points, min_cluster_size=least, min_samples=1, allow_single_cluster=True)
    condensed = condense(spanning_tree(points, min_samples=1), least)
    found = label(condensed, select(condensed, allow_single_cluster=True))
    assert_same_as_library(found, *theirs)


def test_one_place_is_a_cluster_where_that_is_allowed():
    tree = spanning_tree(np.ones((40, 2)))
    assert set(labels_at(tree, 40, allow_one_place=True).labels) == {0}
    assert set(labels_at(tree, 41, allow_one_place=True).labels) == {-1}
    assert set(labels_at(tree, 40).labels) == {-1}
    # Wherever there is an outside, the whole is none.
    tree = spanning_tree(np.append(np.ones(40), 2.0)[:, None])
    assert set(labels_at(tree, 41, allow_one_place=True).labels) == {-1}
