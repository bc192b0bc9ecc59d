import contextlib
import dataclasses

import numpy as np
import pytest
from sklearn.cluster import KMeans

import embedtopics as et
from embedtopics.clustering._hierarchy import labels_at
from embedtopics.clustering._resolution import subtree
from embedtopics.clustering._spanning_tree import spanning_tree
from embedtopics.errors import InputError
from embedtopics.topics import at_resolution, rename, split
from tests.factories import each, make_result, refuses
from tests.topics.editing.altering import assert_untouched, frozen, partition, with_anchors


@pytest.fixture(scope="module")
def coarse(branched):
    """The four branches, each of three twigs."""
    return at_resolution(branched, 4)


def test_a_branch_comes_apart_into_its_twigs(coarse, branched):
    before = frozen(coarse)
    parted = split(coarse, 1, 3)
    assert_untouched(coarse, before)
    assert parted.n_topics == 6
    members = coarse.clustering.labels == 1
    twigs = branched.clustering.labels[members]
    found = parted.clustering.labels[members]
    both = (twigs >= 0) & (found >= 0)
    pairs = {*zip(twigs[both].tolist(), found[both].tolist(), strict=True)}
    agreeing = sum(np.bincount(found[both][twigs[both] == t]).max() for t in set(twigs[both]))
    assert agreeing / both.sum() > 0.98 and len({new for _, new in pairs}) == 3


def test_the_other_topics_stay(coarse):
    parted = split(coarse, 2, 2)
    edit = parted.history[-1]
    others = np.flatnonzero(coarse.clustering.labels != 2)
    ids = np.append(edit.new_ids, -1)
    was, now = coarse.clustering, parted.clustering
    np.testing.assert_array_equal(now.labels[others], ids[was.labels[others]])
    np.testing.assert_array_equal(now.probabilities[others], was.probabilities[others])
    for topic in (0, 1, 3):
        same = parted.topics[ids[topic]]
        assert same.representatives == coarse.topics[topic].representatives
        assert same.size == coarse.topics[topic].size
        shares = parted.memberships[:, [ids[topic]]] - coarse.memberships[:, [topic]]
        assert abs(shares).max() < 1e-6
    parts = sorted(set(range(5)) - {ids[t] for t in (0, 1, 3)})
    whole = coarse.memberships[:, [2]].toarray().ravel()
    np.testing.assert_allclose(parted.memberships.toarray()[:, parts].sum(axis=1), whole, atol=1e-6)
    assert ids[2] == parts[0]  # the largest
    assert edit.name == "split" and edit.parameters["topic"] == 2


def test_no_document_leaves_and_its_own_part_is_its_largest_share(coarse):
    parted = split(coarse, 0, 3)
    members = np.flatnonzero(coarse.clustering.labels == 0)
    found = parted.clustering.labels[members]
    assert (found >= 0).all() and parted.coverage == coarse.coverage
    np.testing.assert_array_equal(parted.memberships.toarray().argmax(axis=1)[members], found)
    assert (parted.memberships.toarray()[members, found] >= 0.5).all()
    assert (parted.clustering.probabilities[members] > 0).any()
    assert np.isnan([t.persistence for t in parted.topics]).sum() == 3


def test_without_a_hierarchy_the_coordinates_serve(branches, branched):
    texts, vectors = branches
    clusterer = KMeans(4, n_init=3, random_state=0)
    model = et.TopicModel(languages=[], random_state=2, clusterer=clusterer)
    result = model.fit(texts, embeddings=vectors).result_
    assert result.tree is None
    parted = split(result, 0)
    members = result.clustering.labels == 0
    found = parted.clustering.labels[members]
    assert len(set(found)) >= 2 and parted.coverage == result.coverage
    tree = spanning_tree(result.coordinates[members])
    cut = labels_at(tree, 10, result.documents.weights[members]).labels
    both = cut >= 0
    assert partition(cut[both]) == partition(found[both])


def test_what_is_one_does_not_come_apart(branched):
    with refuses("n_topics"):
        split(split(branched, 0, 2), 0, 40)
    whole = make_result(200, 2)
    equal = dataclasses.replace(whole, coordinates=np.zeros_like(whole.coordinates))
    with refuses("n_topics"):
        split(equal, 0)
    labels = np.where(whole.clustering.labels == 1, -1, whole.clustering.labels)
    labels[np.flatnonzero(whole.clustering.labels == 1)[0]] = 1
    clustering = dataclasses.replace(whole.clustering, labels=labels)
    with refuses("n_topics"):
        split(dataclasses.replace(whole, clustering=clustering), 1)  # a topic of one document


def test_a_twig_has_no_subjects_within_it(branched):
    """Its words are drawn at random: fewer are split by themselves than by number."""

    def n_split(wanted):
        parted = 0
        for topic in range(branched.n_topics):
            with contextlib.suppress(InputError):
                parted += split(branched, topic, wanted).n_topics > branched.n_topics
        return parted

    assert n_split("auto") < n_split(2)


def test_names(coarse):
    named = rename(coarse, {1: "Branch"})
    parted = split(named, 1, 2)
    assert "dropped its label" in parted.history[-1].message
    assert not any(topic.is_named for topic in parted.topics)
    asked = split(with_anchors(coarse, 1), 1, 3)
    heir = asked.topics[asked.history[-1].new_ids[1]]
    assert heir.label == "asked 1" and heir.is_seeded
    assert sum(topic.is_seeded for topic in asked.topics) == 1


def test_bad_arguments(coarse):
    for name, value in each(n_topics=[1, 0, 2.5, "medium", 200]):
        with refuses(name):
            split(coarse, 0, **{name: value})
    with refuses("topic"):
        split(coarse, 9)


def test_a_subtree_is_the_hierarchy_without_the_others():
    """Kept documents meet at the distance at which they meet in the whole, by brute force."""
    rng = np.random.default_rng(4)
    points = rng.normal(size=(40, 2)).round(1)  # with ties
    tree = spanning_tree(points, min_samples=3)
    for n_kept in (1, 2, 7, 40):
        kept = np.sort(rng.choice(40, n_kept, replace=False))
        part = subtree(tree, kept)
        assert part.n_documents == n_kept and len(part.edges) == n_kept - 1
        np.testing.assert_array_equal(part.core_distances, tree.core_distances[kept])
        assert (np.diff(part.distances) >= 0).all()
        np.testing.assert_array_equal(
            meeting(part.edges, part.distances, n_kept),
            meeting(tree.edges, tree.distances, 40)[np.ix_(kept, kept)],
        )


def meeting(edges, distances, n):
    """Return the distance at which every two documents meet (the largest on their way)."""
    meet = np.full((n, n), np.inf)
    np.fill_diagonal(meet, 0)
    together = [{i} for i in range(n)]
    for (one, other), distance in zip(edges.tolist(), distances.tolist(), strict=True):
        for a in together[one]:
            for b in together[other]:
                meet[a, b] = meet[b, a] = distance
        both = together[one] | together[other]
        for member in both:
            together[member] = both
    return meet
