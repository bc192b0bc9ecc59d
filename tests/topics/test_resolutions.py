import numpy as np
import pytest
from sklearn.cluster import KMeans

import embedtopics as et
from embedtopics.clustering import DensityClusterer
from embedtopics.clustering._resolution import topics_by_min_cluster_size
from embedtopics.clustering._spanning_tree import spanning_tree
from embedtopics.errors import InputError
from embedtopics.topics import at_resolution, levels
from embedtopics.topics._clusters import NotEnoughTopics, Resolution, choose_cut
from embedtopics.topics.results import Reason
from tests.factories import each, refuses
from tests.topics.editing.altering import assert_same_topics


def fit(branches, **parameters):
    texts, vectors = branches
    return (
        et.TopicModel(languages=[], random_state=2, **parameters)
        .fit(texts, embeddings=vectors)
        .result_
    )


@pytest.mark.parametrize("n_topics", [1, 2, 3, 4, 5, 7, 10, 12, np.int64(6)])
def test_an_integer_is_met_exactly(branched, n_topics):
    read = at_resolution(branched, n_topics)
    assert read.n_topics == len(read.topics) == n_topics
    assert set(read.clustering.labels) - {-1} == set(range(n_topics))
    assert sum(t.size for t in read.topics) == int((read.labels >= 0).sum())
    assert read.memberships.shape == (len(read.documents), n_topics)
    assert read.topic_terms.shape[0] == n_topics
    assert all(topic.keywords for topic in read.topics)
    sizes = [topic.size for topic in read.topics]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(
    ("n_topics", "more"),
    [
        *((n_topics, {}) for n_topics in (1, 3, 7, "fine", "coarse")),
        *((4, {"coverage": coverage}) for coverage in (0.0, 0.9, 1.0)),
    ],
)
def test_equals_a_fresh_fit(branched, branches, n_topics, more):
    fresh = fit(branches, n_topics=n_topics, **more)
    read = at_resolution(branched, n_topics, **more)
    assert_same_topics(fresh, read)
    for name in ("n_topics", "min_cluster_size", "coverage", "least_ratio"):
        assert fresh.settings[name] == read.settings[name]
    # And back again.
    assert_same_topics(at_resolution(fresh, "auto", coverage="auto"), branched)


def none_is_empty(labels, n_topics):
    return np.zeros(n_topics, dtype=bool)


@pytest.fixture(scope="module")
def twigs():
    """A line of twelve groups of 25: four branches, of two groups near and a third less near."""
    rng = np.random.default_rng(1)
    centers = (100.0 * np.arange(4)[:, None] + [0.0, 8.0, 22.0]).ravel()
    points = np.repeat(centers, 25) + 0.3 * rng.normal(size=300)
    return spanning_tree(points[:, None]), np.ones(300, np.int64)


def test_an_integer_merges_the_nearest_of_the_coarsest_cut(twigs):
    tree, weights = twigs
    cores = {k: choose_cut(tree, weights, Resolution(k), none_is_empty) for k in range(1, 13)}
    assert {cores[k].min_cluster_size for k in range(5, 13)} == {25}
    assert cores[4].min_cluster_size == 75
    near, branch = np.repeat(np.arange(12), 25) % 3 < 2, np.repeat(np.arange(4), 75)
    group = np.repeat(np.arange(12), 25)
    expected = {12: group, 8: np.where(near, branch, 100 + branch), 4: branch, 1: 0 * branch}
    for k, labels in expected.items():
        found = cores[k].clustering.labels
        assert len({*zip(found.tolist(), labels.tolist(), strict=True)}) == k
    for k in range(1, 12):
        finer, coarser = (cores[n].clustering.labels.tolist() for n in (k + 1, k))
        assert len(set(coarser)) == k and len({*zip(finer, coarser, strict=True)}) == k + 1


def test_merged_cores_have_no_persistence(twigs):
    tree, weights = twigs
    whole = choose_cut(tree, weights, Resolution(12), none_is_empty).clustering
    for k, n_merged in ((11, 1), (8, 4), (6, 4)):
        found = choose_cut(tree, weights, Resolution(k), none_is_empty).clustering
        merged = np.isnan(found.persistence)
        assert merged.sum() == n_merged
        np.testing.assert_array_equal(np.bincount(found.labels)[~merged], 25)
        assert np.isin(found.persistence[~merged], whole.persistence).all()
        np.testing.assert_array_equal(found.probabilities, whole.probabilities)


def test_names_are_ordered(branched):
    fine, auto, coarse = (at_resolution(branched, name) for name in ("fine", "auto", "coarse"))
    assert fine.n_topics >= auto.n_topics >= coarse.n_topics >= 2
    assert fine.n_topics > coarse.n_topics
    assert_same_topics(auto, branched)


def test_coverage_is_kept_unless_given(branched):
    cores = at_resolution(branched, 4, coverage=0.0)
    assert at_resolution(cores, 5).settings["coverage"] == 0.0
    assert (at_resolution(cores, 5).clustering.probabilities > 0).sum() == (
        at_resolution(cores, 5).clustering.labels >= 0
    ).sum()
    assert at_resolution(cores, 5, coverage="auto").settings["coverage"] == "auto"


def test_levels(branched):
    offered = levels(branched)
    numbers = [level.n_topics for level in offered]
    sizes = [level.min_cluster_size for level in offered]
    assert len(offered) >= 3 and sizes[0] == 5
    assert numbers == sorted(set(numbers), reverse=True) and numbers[-1] >= 2
    assert sizes == sorted(set(sizes))
    counted = topics_by_min_cluster_size(branched.tree, branched.documents.weights)
    assert numbers == counted[sizes].tolist()


def test_each_level_can_be_read(branched):
    for level in levels(branched):
        size = level.min_cluster_size
        read = at_resolution(branched, min_cluster_size=size, coverage=0.0)
        assert read.settings["min_cluster_size"] == size
        dissolved = len(np.unique(read.labels[read.reasons == Reason.UNINFORMATIVE]))
        assert dissolved == 0 and read.n_topics == level.n_topics
        assert read.coverage == pytest.approx(level.coverage)
        assert np.mean(read.clustering.persistence) == pytest.approx(level.persistence)
        least = np.bincount(read.labels[read.labels >= 0]).min()
        assert least >= size


def test_a_fit_goes_on_with_as_many_topics_as_there_are(branched, branches):
    fitted = fit(branches, n_topics=400)
    with pytest.raises(NotEnoughTopics) as raised:
        at_resolution(branched, 400)
    most = raised.value.best.n_informative
    assert fitted.n_topics == most
    noted = [d for d in fitted.decisions if d.name == "n_topics"]
    assert [d.value for d in noted] == [most]
    assert f"at most {most} here; got 400" in noted[0].message


@pytest.mark.parametrize("n_topics", [1, 2, 30])
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_few_texts_with_a_number_of_topics(n, n_topics):
    vectors = np.random.default_rng(n).normal(size=(n, 4))
    texts = [f"a few words about number {i}" for i in range(n)]
    result = (
        et.TopicModel(languages=["en"], n_topics=n_topics).fit(texts, embeddings=vectors).result_
    )
    assert len(result.labels) == n and result.n_topics <= n_topics
    noted = [d.value for d in result.decisions if d.name == "n_topics"]
    if result.tree is not None:
        assert noted == ([] if result.n_topics == n_topics else [result.n_topics])


def test_without_a_hierarchy_there_is_no_other_resolution(branches):
    class Other(KMeans):
        def fit_predict(self, X, y=None):
            self.tree_ = object()
            return super().fit_predict(X)

    for kind in (KMeans, Other):
        result = fit(branches, clusterer=kind(5, n_init=1, random_state=0))
        assert result.tree is None
        for ask in (at_resolution, levels):
            with refuses("result"):
                ask(result)


def test_a_density_clusterer_of_ones_own_keeps_its_hierarchy(branches, branched):
    own = fit(branches, clusterer=DensityClusterer(20, min_samples=5, selection="eom"))
    assert own.tree is not None and own.settings["min_cluster_size"] == 20
    assert at_resolution(own, 4).n_topics == 4
    again = fit(branches, clusterer=DensityClusterer())
    np.testing.assert_array_equal(again.labels, branched.labels)


WRONG = each(
    n_topics=[0, -3, 2.0, True, "medium", None],
    min_cluster_size=[1, "fine", 10.5],
    coverage=[1.5, "all"],
)


@pytest.mark.parametrize(
    "parameters",
    [
        *({name: value} for name, value in WRONG),
        {"n_topics": 4, "min_cluster_size": 10},
        {"n_topics": "fine", "min_cluster_size": 10},
    ],
)
def test_bad_arguments_are_explained(branched, branches, parameters):
    with pytest.raises(InputError):
        at_resolution(branched, **parameters)
    with pytest.raises(InputError):
        fit(branches, **parameters)


@pytest.mark.parametrize("parameters", [{"n_topics": 4}, {"min_cluster_size": 9}])
def test_resolution_and_a_clusterer_of_ones_own_exclude_one_another(branches, parameters):
    with refuses("n_topics"):
        fit(branches, clusterer=KMeans(5), **parameters)


def test_a_dissolved_topic_is_made_up_for_by_a_finer_cut(twigs):
    tree, weights = twigs

    def first_is_empty(labels, n_topics):
        return np.arange(n_topics) == labels[0]

    for wanted, size in ((2, 75), (3, 75), (4, 25), (8, 25), (11, 25)):
        cores = choose_cut(tree, weights, Resolution(wanted), first_is_empty)
        assert cores.min_cluster_size == size
        assert cores.n_informative == wanted and len(cores.is_informative) == wanted + 1
        dissolved = cores.clustering.labels[0]
        assert not cores.is_informative[dissolved]
        assert (cores.clustering.labels == dissolved).sum() == size  # merged with nothing
    with pytest.raises(NotEnoughTopics, match="at most 11 here; got 12"):
        choose_cut(tree, weights, Resolution(12), first_is_empty)


def test_a_weighting_can_be_given(branched):
    class Counts:
        def fit(self, topic_counts):
            return self

        def transform(self, topic_counts):
            return topic_counts

    read = at_resolution(branched, 4, weighting=Counts())
    labels = read.clustering.labels
    expected = np.zeros(read.topic_terms.shape)
    weighted = branched.term_counts.counts.multiply(branched.documents.weights[:, None]).toarray()
    np.add.at(expected, labels[labels >= 0], weighted[labels >= 0])
    np.testing.assert_array_equal(read.topic_terms.toarray(), expected)
