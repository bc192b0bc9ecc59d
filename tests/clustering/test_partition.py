"""Partitions into any number of clusters, compared with SciPy's Ward and scikit-learn's k-means."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from embedtopics.clustering._partition import (
    COORDINATE_SHARE,
    MOST_MICRO_CLUSTERS,
    MOST_STEPS,
    VECTOR_STEPS,
    Partitioner,
    PartitionTree,
    ward_merges,
)


def points(n=400, n_groups=5, spread=0.3, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_groups
    found = rng.normal(size=(n_groups, 6))[truth] + spread * rng.normal(size=(n, 6))
    return found.astype(np.float32), truth


def unweighted(found):
    return Partitioner(found, np.ones(len(found), dtype=np.int64))


def inertia(found, labels):
    means = np.stack([found[labels == one].mean(axis=0) for one in range(labels.max() + 1)])
    return ((found - means[labels]) ** 2).sum()


@pytest.mark.parametrize("n_clusters", [2, 7, 20])
def test_the_sum_of_squares_is_near_the_best_of_many_starts(n_clusters):
    found, _ = points(800, 12, spread=0.8)
    best = KMeans(n_clusters, n_init=20, random_state=0).fit(found)
    assert inertia(found, unweighted(found).into(n_clusters)) < 1.03 * best.inertia_


def test_the_merges_of_points_are_scipys_ward():
    found, _ = points(40, 4, spread=0.5)
    merges, costs = ward_merges(found.astype(np.float64), np.ones(40))
    tree = linkage(found.astype(np.float64), "ward")
    # SciPy's distance is the root of twice what a merge adds to the sum of squares.
    np.testing.assert_allclose(np.sqrt(2 * costs), tree[:, 2], rtol=1e-9)
    cluster = np.arange(40)
    for n_left, (first, second) in zip(range(39, 0, -1), merges, strict=True):
        cluster[cluster == second] = first
        assert adjusted_rand_score(fcluster(tree, n_left, "maxclust"), cluster) == 1.0


@pytest.mark.parametrize(
    "n_cells", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 12))]
)
def test_partitions_of_all_numbers_are_one_tree(n_cells):
    found, truth = points(600, 12, spread=0.4)
    made = unweighted(found)
    tree = PartitionTree(made, made.into(n_cells))
    before = np.zeros(600, dtype=np.int64)
    for k in range(1, tree.n_most + 1):
        labels = tree.into(k)
        assert set(labels.tolist()) == set(range(k))
        assert len({*zip(labels.tolist(), before.tolist(), strict=True)}) == k
        before = labels
    np.testing.assert_array_equal(tree.into(n_cells), tree.partition)
    np.testing.assert_array_equal(tree.into(tree.n_most + 9), before)
    assert adjusted_rand_score(truth, tree.into(12)) > 0.8


@settings(deadline=None, max_examples=60)
@given(
    hnp.arrays(np.float32, st.tuples(st.integers(1, 60), st.integers(1, 3)),
               elements=st.integers(-3, 3).map(np.float32)),
    st.integers(1, 40),
    st.data(),
)  # fmt: skip
def test_any_number_is_met_up_to_the_most(found, n_clusters, data):
    weights = data.draw(hnp.arrays(np.int64, len(found), elements=st.integers(0, 3)))
    if not weights.any():
        weights[0] = 1
    made = Partitioner(found, weights)
    labels = made.into(n_clusters)
    assert labels.shape == (len(found),)
    assert set(labels[weights > 0].tolist()) == set(range(min(n_clusters, made.n_most)))
    assert 1 <= made.n_most <= max(1, (weights > 0).sum() // 2)


def test_weights_count_as_copies_and_zero_has_no_say():
    found, _ = points(60, 3, spread=0.6)
    far = np.full((5, 6), 50.0, dtype=np.float32)
    alone = unweighted(found).into(3)
    mixed = Partitioner(np.concatenate([found, far]), np.repeat([1, 0], [60, 5]))
    np.testing.assert_array_equal(mixed.into(3)[:60], alone)
    weights = np.random.default_rng(1).integers(1, 4, 60)
    labels = Partitioner(found, weights).into(3)
    again = KMeans(3, init=np.stack([
        np.average(found[labels == one], axis=0, weights=weights[labels == one]) for one in range(3)
    ]), n_init=1).fit(np.repeat(found, weights, axis=0))  # fmt: skip
    np.testing.assert_array_equal(again.labels_, np.repeat(labels, weights))


def test_last_bits_change_nothing_and_there_is_a_limit():
    found, _ = points(2_000, 30, spread=0.5)
    noise = 1e-6 * np.random.default_rng(3).normal(size=found.shape)
    made, other = unweighted(found), unweighted((found + noise).astype(np.float32))
    assert made.n_most <= MOST_MICRO_CLUSTERS
    for k in (3, 17, 60):
        assert adjusted_rand_score(made.into(k), other.into(k)) > 0.99


def test_vectors_refine_a_partition_like_k_means_from_its_means():
    rng = np.random.default_rng(4)
    vectors, _ = points(500, 8, spread=0.9)
    coordinates = (vectors[:, :3] + 0.5 * rng.normal(size=(500, 3))).astype(np.float32)
    weights = rng.integers(1, 4, 500)
    start = Partitioner(coordinates, weights).into(8)
    refined = Partitioner(coordinates, weights, vectors).refined(start)
    assert (refined != start).any()

    def scaled(array):
        away = array - np.average(array, axis=0, weights=weights)
        return away / np.sqrt(np.average((away**2).sum(axis=1), weights=weights))

    space = np.hstack([scaled(vectors), COORDINATE_SHARE * scaled(coordinates)])
    expected = start
    for array, most in ((coordinates, MOST_STEPS), (space, VECTOR_STEPS)):
        for _ in range(most):
            members = [expected == one for one in range(8)]
            means = [
                np.average(array[inside], axis=0, weights=weights[inside]) for inside in members
            ]
            expected = cdist(array, np.stack(means)).argmin(axis=1)
    np.testing.assert_array_equal(refined, expected)
