import warnings

import numpy as np
import pytest
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.utils.estimator_checks import parametrize_with_checks

from embedtopics.clustering._density import cluster
from embedtopics.evaluation import evaluate_clustering
from embedtopics.topics import DensityClusterer
from tests.factories import refuses


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    centers = 14.0 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])
    sizes = [90, 30, 150, 60, 45]
    themes = np.repeat(np.arange(5), sizes)
    points = centers[themes] + rng.normal(size=(len(themes), 3))
    noise = rng.uniform(-25, 25, size=(40, 3))
    return np.vstack([points, noise]).astype(np.float32), np.append(themes, np.full(40, -1))


ONES = np.ones(415, np.int64)


def test_finds_blobs_numbered_from_the_largest(blobs):
    points, themes = blobs
    found = cluster(DensityClusterer(15), points, ONES)
    scores = evaluate_clustering(themes[themes >= 0], found.labels[themes >= 0])
    assert scores.nmi_covered == pytest.approx(1.0)
    sizes = np.bincount(found.labels[found.labels >= 0])
    assert len(sizes) == 5 and (np.diff(sizes) <= 0).all()
    assert (found.probabilities[found.labels < 0] == 0).all()
    assert 0 < found.probabilities[found.labels >= 0].min() and found.probabilities.max() == 1.0
    assert len(found.persistence) == 5


def test_any_clusterer_takes_its_place(blobs):
    points, _ = blobs
    theirs = cluster(HDBSCAN(min_cluster_size=15, min_samples=10, copy=True), points, ONES)
    assert (np.diff(np.bincount(theirs.labels[theirs.labels >= 0])) <= 0).all()
    assert theirs.probabilities.max() == 1.0  # scikit-learn's probabilities are taken over
    means = cluster(KMeans(4, n_init=1, random_state=0), points, ONES)
    assert set(means.labels) == {0, 1, 2, 3} and (means.probabilities == 1).all()
    assert np.isnan(means.persistence).all()


@pytest.mark.slow
@pytest.mark.smoke
def test_hdbscan_takes_its_place(blobs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hdbscan warns of syntax that Python deprecated
        import hdbscan

        points, _ = blobs
        theirs = cluster(hdbscan.HDBSCAN(min_cluster_size=15, min_samples=10), points, ONES)
    ours = cluster(DensityClusterer(15), points, ONES)
    assert evaluate_clustering(theirs.labels, ours.labels).ari > 0.95
    np.testing.assert_allclose(np.sort(theirs.persistence), np.sort(ours.persistence), atol=0.05)


def test_numbers_go_by_weight_and_persistence_follows_them():
    class Fixed:
        cluster_persistence_ = np.array([0.1, 0.2, 0.3])

        def fit_predict(self, X, y=None):
            return np.array([1, 1, 0, 2, 2, 2, -1])

    for weight, labels, persistence in (
        (1, [1, 1, 2, 0, 0, 0, -1], [0.3, 0.2, 0.1]),
        (10, [2, 2, 0, 1, 1, 1, -1], [0.1, 0.3, 0.2]),
    ):
        found = cluster(Fixed(), np.zeros((7, 2)), np.array([1, 1, weight, 1, 1, 1, 1]))
        np.testing.assert_array_equal(found.labels, labels)
        np.testing.assert_array_equal(found.persistence, persistence)


def test_all_in_one_place_are_one_topic_and_few_are_none():
    found = cluster(DensityClusterer(5), np.ones((40, 3)), np.ones(40, np.int64))
    assert set(found.labels) == {0}
    for n in (1, 2, 3):
        few = cluster(DensityClusterer(5), np.ones((n, 3)), np.ones(n, np.int64))
        assert few.labels.tolist() == [-1] * n


def test_bad_clusterers_and_parameters_are_named():
    class Wrong:
        def fit_predict(self, X, y=None):
            return np.zeros((3, 3))

    with refuses("clusterer"):
        cluster(Wrong(), np.zeros((3, 2)), np.ones(3, np.int64))
    with refuses("min_cluster_size"):
        DensityClusterer(1).fit(np.zeros((3, 2)))


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([DensityClusterer()])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)
