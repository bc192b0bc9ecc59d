import dataclasses

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

import embedtopics as et
from embedtopics.clustering._hierarchy import labels_at
from embedtopics.clustering._partition import Partitioner
from embedtopics.clustering._spanning_tree import spanning_tree
from embedtopics.clustering.results import Clustering
from embedtopics.errors import InputError
from embedtopics.topics import DensityClusterer, levels, recluster
from embedtopics.topics._clusters import (
    ClusterCut,
    ClusterTree,
    NotEnoughTopics,
    Resolution,
    _clusters_around,
)
from embedtopics.topics._resolution import recipe_of, replicate
from tests.factories import refuses, topic_counts
from tests.topics.editing.altering import assert_same_topics


def fit(branches, **parameters):
    texts, vectors = branches
    model = et.TopicModel(languages=[], random_state=2, **parameters)
    return model.fit(texts, embeddings=vectors).result_


@pytest.mark.parametrize("n_topics", [1, 2, 3, 4, 5, 7, 10, 12, np.int64(6)])
def test_an_integer_is_met_exactly(branched, n_topics):
    read = recluster(branched, n_topics)
    assert read.n_topics == len(read.topics) == n_topics
    assert set(read.clustering.labels) - {-1} == set(range(n_topics))
    assert sum(t.size for t in read.topics) == int((read.labels >= 0).sum())
    assert read.memberships.shape == (len(read.distinct), n_topics)
    assert read.topic_terms.shape[0] == n_topics
    assert all(topic.keywords for topic in read.topics)
    sizes = [topic.size for topic in read.topics]
    assert sizes == sorted(sizes, reverse=True)


def test_nearly_all_texts_of_a_topic_share_a_coarser_topic(branched):
    before = np.zeros(len(branched.distinct), dtype=int)
    for n_topics in range(2, 13):
        labels = recluster(branched, n_topics, coverage=1.0).clustering.labels
        shared = np.zeros((n_topics, n_topics - 1))
        np.add.at(shared, (labels, before), 1)
        assert shared.max(axis=1).sum() > 0.99 * len(labels)
        before = labels


@pytest.mark.parametrize(
    ("n_topics", "more"),
    [
        *((n_topics, {}) for n_topics in (1, 3, 7, "fine", "coarse")),
        *((4, {"coverage": coverage}) for coverage in (0.0, 0.9, 1.0)),
    ],
)
def test_equals_a_fresh_fit(branched, branches, n_topics, more):
    fresh = fit(branches, n_topics=n_topics, **more)
    read = recluster(branched, n_topics, **more)
    assert_same_topics(fresh, read)
    for name in ("n_topics", "min_cluster_size", "coverage", "min_margin"):
        assert fresh.settings[name] == read.settings[name]
    # And back again.
    assert_same_topics(recluster(fresh, "auto", coverage="auto"), branched)


def none_is_empty(labels, n_topics):
    return np.zeros(n_topics, dtype=bool)


@pytest.fixture(scope="module")
def twigs():
    """A line of twelve groups of 25: four branches, of two groups near and a third less near."""
    rng = np.random.default_rng(1)
    centers = (100.0 * np.arange(4)[:, None] + [0.0, 8.0, 22.0]).ravel()
    points = (np.repeat(centers, 25) + 0.3 * rng.normal(size=300))[:, None]
    weights = np.ones(300, np.int64)
    return spanning_tree(points), Partitioner(points.astype(np.float32), weights), weights


def test_an_integer_divides_the_documents_into_so_many(twigs):
    group = np.repeat(np.arange(12), 25)
    near, branch = group % 3 < 2, group // 3
    expected = {12: group, 8: np.where(near, branch, 100 + branch), 4: branch, 1: 0 * branch}
    for k, labels in expected.items():
        cut = ClusterTree(*twigs, none_is_empty).cut(Resolution(k))
        assert cut.n_informative == k and cut.min_cluster_size == 10
        for found in (cut.clustering.labels, cut.partition):
            assert len({*zip(found.tolist(), labels.tolist(), strict=True)}) == k


def test_a_broad_cluster_counts_if_its_parts_are_informative(twigs):
    def broad_is_empty(labels, n_topics):
        return np.bincount(labels[labels >= 0], minlength=n_topics) > 75

    halves = ClusterTree(*twigs, broad_is_empty).cut(Resolution(2))
    assert halves.n_informative == 2 and set(halves.clustering.labels) == {0, 1}


def test_a_cluster_has_the_mean_persistence_of_its_dense_groups(twigs):
    tree, _, weights = twigs
    dense = labels_at(tree, 10, weights)
    cut = ClusterTree(*twigs, none_is_empty).cut(Resolution(4))
    for cluster in range(4):
        inside = dense.labels[cut.partition == cluster]
        expected = dense.persistence[inside[inside >= 0]].mean()
        assert cut.clustering.persistence[cluster] == pytest.approx(expected)
    np.testing.assert_array_equal(cut.clustering.probabilities, dense.probabilities)


def test_names_are_ordered(branched):
    fine, auto, coarse = (recluster(branched, name) for name in ("fine", "auto", "coarse"))
    assert fine.n_topics >= auto.n_topics >= coarse.n_topics >= 2
    assert fine.n_topics > coarse.n_topics
    assert_same_topics(auto, branched)


def test_coverage_is_kept_unless_given(branched):
    cores = recluster(branched, 4, coverage=0.0)
    assert recluster(cores, 5).settings["coverage"] == 0.0
    assert (recluster(cores, 5).clustering.probabilities > 0).sum() == (
        recluster(cores, 5).clustering.labels >= 0
    ).sum()
    assert recluster(cores, 5, coverage="auto").settings["coverage"] == "auto"


def test_levels(branched):
    offered = levels(branched)
    numbers = offered["n_topics"].tolist()
    assert numbers == sorted(set(numbers)) and numbers[0] == 2
    assert branched.n_topics in numbers
    for level in offered.iloc[::3].itertuples():
        cut = recluster(branched, level.n_topics, coverage=1.0)
        neighbors = cut.graph.indices[:, :5]
        labels = cut.clustering.labels
        share = (labels[neighbors] == labels[:, None]).mean()
        assert level.neighbor_share == pytest.approx(share, abs=0.02)  # outliers have no label


@pytest.mark.slow
def test_a_fit_goes_on_with_as_many_topics_as_there_are(branched, branches):
    fitted = fit(branches, n_topics=400)
    with pytest.raises(NotEnoughTopics) as raised:
        recluster(branched, 400)
    most = raised.value.best.n_informative
    assert fitted.n_topics == most
    noted = [d for d in fitted.decisions if d.name == "n_topics"]
    assert [d.value for d in noted] == [most]
    assert f"at most {most} here; got 400" in noted[0].message


def test_without_a_hierarchy_there_is_no_other_resolution(branches):
    class Other(KMeans):
        def fit_predict(self, X, y=None):
            self.tree_ = object()
            return super().fit_predict(X)

    for kind in (KMeans, Other):
        result = fit(branches, clusterer=kind(5, n_init=1, random_state=0))
        assert result.tree is None
        for ask in (recluster, levels):
            with refuses("result"):
                ask(result)


def test_a_density_clusterer_of_ones_own_keeps_its_hierarchy(branches, branched):
    own = fit(branches, clusterer=DensityClusterer(20, min_samples=5))
    assert own.tree is not None and own.settings["min_cluster_size"] == 20
    assert recluster(own, 4).n_topics == 4


def test_bad_arguments_are_explained(branched):
    wrong = {"n_topics": 0}, {"n_topics": "medium"}, {"min_cluster_size": 1}, {"coverage": 1.5}
    for parameters in (*wrong, {"n_topics": 4, "min_cluster_size": 10}):
        with pytest.raises(InputError):
            recluster(branched, **parameters)


@pytest.mark.parametrize("parameters", [{"n_topics": 4}, {"min_cluster_size": 9}])
def test_resolution_and_a_clusterer_of_ones_own_exclude_one_another(branches, parameters):
    with refuses("n_topics"):
        fit(branches, clusterer=KMeans(5), **parameters)


def test_a_dissolved_topic_is_made_up_for_by_a_finer_cut(twigs):
    def first_is_empty(labels, n_topics):
        return np.arange(n_topics) == labels[0]

    for wanted in (2, 3, 4, 8, 11):
        cut = ClusterTree(*twigs, first_is_empty).cut(Resolution(wanted))
        assert cut.n_informative == wanted and len(cut.is_informative) == wanted + 1
        dissolved = cut.clustering.labels[0]
        assert not cut.is_informative[dissolved]
        assert (cut.clustering.labels == dissolved).sum() == 25  # merged with nothing


def test_a_weighting_of_ones_own_stays(branched):
    class Counts:
        def fit(self, topic_counts):
            return self

        def transform(self, topic_counts):
            return topic_counts

    read = recluster(dataclasses.replace(branched, weighting=Counts()), 4)
    assert (read.topic_terms != topic_counts(read)).nnz == 0


def test_the_levels_are_a_table(branched):
    table = levels(branched, 2, random_state=4, show_progress=False)

    assert list(table) == [
        "n_topics", "word_gain", "neighbor_share", "recurrence", "examples", "suggested"
    ]  # fmt: skip
    assert table["n_topics"].is_monotonic_increasing and table["n_topics"].is_unique
    (suggested,) = table["n_topics"][table["suggested"]]
    assert suggested == recluster(branched).n_topics == branched.n_topics
    assert all(len(examples) == 2 for examples in table["examples"])
    assert table["recurrence"].between(-1, 1).all()

    again = levels(branched, 2, random_state=4, show_progress=False)
    pd.testing.assert_frame_equal(again, table)
    unmeasured = levels(branched)
    assert unmeasured["recurrence"].isna().all()
    others = ["n_topics", "word_gain", "neighbor_share", "examples", "suggested"]
    pd.testing.assert_frame_equal(unmeasured[others], table[others])


def test_the_examples_are_names_of_that_many_topics(branched):
    table = levels(branched)
    for n_topics, examples in zip(table["n_topics"], table["examples"], strict=True):
        topics = recluster(branched, n_topics, coverage=1.0).topics
        assert examples == [topics[0].name, topics[n_topics // 2].name]


def test_recurrence_is_the_adjusted_rand_index_with_random_halves(branched):
    level = levels(branched, 2, show_progress=False).iloc[-1]
    labels = recluster(branched, level.n_topics, coverage=1.0).clustering.labels
    recipe = dataclasses.replace(
        recipe_of(branched), coverage=1.0, resolution=Resolution(level.n_topics)
    )
    same = []
    for number in range(2):
        of_half = replicate(recipe, np.random.default_rng([0, number]))
        both = (of_half >= -1) & ((of_half >= 0) | (labels >= 0))
        same.append(adjusted_rand_score(labels[both], of_half[both]))
    assert level.recurrence == pytest.approx(np.mean(same))


def test_one_topic_has_no_levels():
    one = et.TopicModel(languages=[], show_progress=False)
    one = one.fit([f"word{i}" for i in range(80)], embeddings=np.ones((80, 6))).result_
    assert levels(one).empty and levels(one, 2).empty
    with refuses("n_replicates"):
        levels(one, -1)


def test_a_cluster_with_hardly_a_dense_document_is_all_core():
    partition = np.repeat([0, 1, 2], [20, 20, 10]).astype(np.int64)
    labels = np.full(50, -1, dtype=np.int32)
    labels[:12], labels[20] = 0, 1  # a single document of the second dense group
    dense = Clustering(labels, (labels >= 0).astype(np.float32), np.array([0.5, 0.4]))
    cut = _clusters_around(
        ClusterCut(dense, np.ones(2, dtype=bool), 5), partition, lambda _, n: np.zeros(n, bool)
    )
    sizes = np.bincount(cut.clustering.labels[cut.clustering.labels >= 0])
    assert sorted(sizes.tolist()) == [10, 12, 20]
