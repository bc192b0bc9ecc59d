import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial.distance import cdist

from embedtopics.clustering._spanning_tree import spanning_tree
from tests.factories import each, refuses


def reachability(points, min_samples):
    """All mutual reachabilities and core distances, from the definition; copies count once."""
    distances, places = cdist(points, points), np.unique(points, axis=0)
    core = np.sort(cdist(points, places), axis=1)[:, min(min_samples, len(places) - 1)]
    return np.maximum(distances, np.maximum.outer(core, core)), core


def lightest_total(points, min_samples):
    """Sorted edge weights of scipy's tree; 1 is added since its sparse graphs have no zeros."""
    matrix = reachability(points, min_samples)[0] + 1.0
    np.fill_diagonal(matrix, 0.0)
    return np.sort(minimum_spanning_tree(matrix).data) - 1.0


def is_tree(tree):
    n = tree.n_documents
    adjacency = np.zeros((n, n))
    adjacency[tree.edges[:, 0], tree.edges[:, 1]] = 1
    return len(tree.edges) == n - 1 and connected_components(adjacency, directed=False)[0] == 1


def examples():
    rng = np.random.default_rng(7)
    blobs = rng.normal(size=(400, 5)) * rng.uniform(0.05, 1, (400, 1))
    return {
        "blobs of uneven density": blobs + 6 * rng.integers(0, 3, (400, 1)),
        "uniform noise": rng.uniform(size=(500, 5)),
        "two far clusters": np.vstack([blobs[:200], blobs[200:] + 1e4]),
        "many tight far clusters": np.repeat(rng.normal(size=(40, 3)) * 100, 12, axis=0)
        + rng.normal(size=(480, 3)) * 1e-3,
        "identical points among others": np.vstack([np.zeros((300, 2)), blobs[:100, :2]]),
        "all identical": np.ones((50, 3)),
        "a line": np.c_[rng.uniform(size=300), np.zeros((300, 2))],
        "a grid": np.stack(np.meshgrid(*[np.arange(7.0)] * 3), axis=-1).reshape(-1, 3),
        "densities over many scales": rng.normal(size=(400, 3))
        * np.exp(rng.uniform(-12, 3, (400, 1))),
        "two": np.array([[0.0], [2.0]]),
        "three": np.array([[0.0], [2.0], [3.0]]),
    }


@pytest.mark.parametrize("min_samples", [1, 4, 10])
@pytest.mark.parametrize("points", examples().values(), ids=examples())
def test_the_tree_is_the_lightest(points, min_samples):
    tree = spanning_tree(points, min_samples=min_samples)
    matrix, core = reachability(points, min_samples)
    assert is_tree(tree)
    np.testing.assert_allclose(tree.distances, lightest_total(points, min_samples), atol=1e-6)
    np.testing.assert_allclose(tree.distances, matrix[tuple(tree.edges.T)], atol=1e-6)
    np.testing.assert_allclose(tree.core_distances, core, atol=1e-9)


def test_edges_are_in_order():
    tree = spanning_tree(examples()["a grid"], min_samples=3)
    assert (tree.edges[:, 0] < tree.edges[:, 1]).all()
    keys = list(zip(tree.distances, *tree.edges.T, strict=True))
    assert keys == sorted(keys)


def test_a_hand_calculation():
    # Distances to the second neighbour are 3, 2, 3 and 6. The first three places are within
    # 3 of one another, with cores of at most 3; the last is 4 away, but its core is 6.
    tree = spanning_tree([[0.0], [1.0], [3.0], [7.0]], min_samples=2)
    assert tree.core_distances.tolist() == [3.0, 2.0, 3.0, 6.0]
    assert tree.distances.tolist() == [3.0, 3.0, 6.0]
    alone = spanning_tree([[1.0, 2.0]])
    assert alone.edges.shape == (0, 2) and alone.core_distances.tolist() == [0.0]


small = hnp.arrays(
    np.int64, st.tuples(st.integers(2, 14), st.integers(1, 2)), elements=st.integers(0, 6)
)


@settings(deadline=None, max_examples=60)
@given(small, st.integers(1, 6), st.data())
def test_repeated_rows_join_at_their_core_distance(points, min_samples, data):
    points = np.unique(points, axis=0)
    n = len(points)
    times = np.array(data.draw(st.lists(st.integers(1, 4), min_size=n, max_size=n)))
    once = spanning_tree(points, min_samples=min_samples)
    repeated = spanning_tree(points[np.repeat(np.arange(n), times)], min_samples=min_samples)
    np.testing.assert_array_equal(np.repeat(once.core_distances, times), repeated.core_distances)
    within = np.repeat(once.core_distances, times - 1)
    np.testing.assert_array_equal(
        np.sort(np.concatenate([once.distances, within])), repeated.distances
    )


@settings(deadline=None, max_examples=40)
@given(small, st.integers(1, 6), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(points, min_samples, random):
    order = list(range(len(points)))
    random.shuffle(order)
    tree = spanning_tree(points, min_samples=min_samples)
    shuffled = spanning_tree(points[order], min_samples=min_samples)
    np.testing.assert_array_equal(shuffled.distances, tree.distances)
    np.testing.assert_array_equal(shuffled.core_distances, tree.core_distances[order])


def test_repeated_runs_and_layouts_of_memory_are_bit_identical():
    points = examples()["blobs of uneven density"].astype(np.float32)
    points.setflags(write=False)
    first = spanning_tree(points)
    for same in (points, np.asfortranarray(points), points.astype(np.float64)):
        again = spanning_tree(same)
        assert np.array_equal(again.edges, first.edges)
        assert np.array_equal(again.distances, first.distances)
    assert (first.edges.dtype, first.distances.dtype) == (np.int64, np.float64)


def test_one_thread_and_many_give_the_same(monkeypatch):
    from scipy.spatial import cKDTree

    from embedtopics.clustering import _spanning_tree as boruvka

    points = examples()["uniform noise"]
    threaded = []
    original = cKDTree.query

    def count(self, *args, workers=1, **others):
        threaded.append(workers)
        return original(self, *args, workers=workers, **others)

    class Counting(cKDTree):
        query = count

    monkeypatch.setattr("scipy.spatial.cKDTree", Counting)
    alone = spanning_tree(points)
    monkeypatch.setattr(boruvka, "WORTH_THREADS", 1)
    together = spanning_tree(points)
    assert set(threaded) == {1, -1}
    assert np.array_equal(alone.edges, together.edges)
    assert np.array_equal(alone.distances, together.distances)


@pytest.mark.parametrize("points", examples().values(), ids=examples())
def test_small_blocks_of_neighbors_give_the_same(points, monkeypatch):
    whole = spanning_tree(points, min_samples=4)
    monkeypatch.setattr("embedtopics.clustering._spanning_tree.BLOCK", 50)
    assert np.array_equal(spanning_tree(points, min_samples=4).edges, whole.edges)


NOT_POINTS = [[1.0, 2.0], np.empty((0, 2)), [["a"]], [[0.0], [np.nan], [1.0]], [[np.inf]]]


@pytest.mark.parametrize(
    ("name", "value"), each(coordinates=NOT_POINTS, min_samples=[0, 2.5, True])
)
def test_bad_input_is_explained(name, value):
    with refuses(name):
        spanning_tree(**{"coordinates": [[0.0], [1.0]], name: value})
