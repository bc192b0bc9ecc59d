import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from embedtopics.topics import merge, reduce, rename
from embedtopics.topics._vectors import row_centroids, term_cosines
from embedtopics.topics.editing._merge import group_nearest
from tests.factories import make_result, refuses
from tests.topics.editing.altering import partition, with_anchors


def random_distances(seed, n):
    points = np.random.default_rng(seed).normal(size=(n, 3))
    return np.linalg.norm(points[:, None] - points[None], axis=2)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 30), st.data())
def test_groups_are_those_of_scipy(seed, n, data):
    distances = random_distances(seed, n)
    n_groups = data.draw(st.integers(1, n))
    labels = np.arange(n)
    for group in group_nearest(distances, n_groups):
        labels[list(group)] = group[0]
    tree = linkage(squareform(distances, checks=False), "average")
    expected = fcluster(tree, n_groups, "maxclust")
    assume(len(set(expected)) == n_groups)  # but for ties
    assert partition(labels) == partition(expected)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 20), st.data())
def test_anchors_stay_apart(seed, n, data):
    anchors = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    n_groups = data.draw(st.integers(max(1, anchors.sum()), n))
    distances = random_distances(seed, n)
    groups = group_nearest(distances, n_groups, np.outer(anchors, anchors))
    assert n - sum(map(len, groups)) + len(groups) == n_groups
    assert all(anchors[list(group)].sum() <= 1 for group in groups)
    # The same as brute force: at each step the nearest pair that may be merged.
    parts = [[item] for item in range(n)]
    while len(parts) > n_groups:
        pairs = [
            (distances[np.ix_(one, other)].mean(), i, j)
            for i, one in enumerate(parts)
            for j, other in enumerate(parts[:i])
            if anchors[one].sum() + anchors[other].sum() <= 1
        ]
        _, i, j = min(pairs)
        parts[j] += parts.pop(i)
    expected = sorted(tuple(sorted(part)) for part in parts if len(part) > 1)
    assert groups == expected


def test_equal_distances_are_merged_from_the_first():
    ones = np.ones((5, 5))
    assert group_nearest(ones, 3) == [(0, 1, 2)]


@pytest.mark.parametrize("by", ["terms", "embeddings"])
@pytest.mark.parametrize("n_topics", [2, 3, 5, 6])
def test_the_number_is_met_exactly(synthetic, by, n_topics):
    reduced = reduce(synthetic, n_topics, by=by)
    assert reduced.n_topics == n_topics == len(set(reduced.labels.tolist()) - {-1})
    assert reduced.coverage == synthetic.coverage
    np.testing.assert_allclose(
        reduced.memberships.sum(axis=1), synthetic.memberships.sum(axis=1), atol=1e-6
    )
    assert reduced.history[-1].parameters == {"n_topics": n_topics, "by": by}


@pytest.mark.parametrize("by", ["terms", "embeddings"])
def test_the_nearest_pair_is_merged_first(synthetic, by):
    if by == "terms":
        rows = synthetic.topic_terms.toarray()
    else:
        labels, weights = synthetic.clustering.labels, synthetic.documents.weights
        rows = np.array([
            np.average(synthetic.embeddings[labels == t], axis=0, weights=weights[labels == t])
            for t in range(6)
        ])  # fmt: skip
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = unit @ unit.T
    found = term_cosines(synthetic.topic_terms)
    if by == "embeddings":
        found = row_centroids(synthetic) @ row_centroids(synthetic).T
    np.testing.assert_allclose(found, cosines, atol=1e-5)
    np.fill_diagonal(cosines, -1)
    one, other = np.unravel_index(cosines.argmax(), cosines.shape)
    reduced, merged = reduce(synthetic, 5, by=by), merge(synthetic, [one, other])
    np.testing.assert_array_equal(reduced.labels, merged.labels)
    assert reduced.topics == merged.topics or repr(reduced.topics) == repr(merged.topics)


def test_as_many_as_there_are_changes_nothing(branched):
    same = reduce(branched, branched.n_topics)
    assert repr(same.topics) == repr(branched.topics)
    np.testing.assert_array_equal(same.labels, branched.labels)


def test_anchors_keep_their_names(synthetic):
    reduced = reduce(with_anchors(synthetic, 1, 3, 4), 3)
    labels = {topic.label for topic in reduced.topics if topic.is_seeded}
    assert labels == {"asked 1", "asked 3", "asked 4"}
    with refuses("n_topics"):
        reduce(with_anchors(synthetic, 1, 3, 4), 2)


def test_bad_arguments_and_few_topics(synthetic):
    for n_topics in (1, 0, -3, 2.0, True, "auto", 7):
        with refuses("n_topics"):
            reduce(synthetic, n_topics)
    with refuses("by"):
        reduce(synthetic, 3, by="words")
    assert reduce(make_result(60, 1), 1).n_topics == 1
    with refuses("n_topics"):
        reduce(make_result(60, 0), 2)


def test_names_that_give_way_are_told(synthetic):
    named = rename(synthetic, {topic: f"mine {topic}" for topic in range(6)})
    reduced = reduce(named, 4)
    left = {topic.label for topic in reduced.topics}
    assert all(topic.is_named for topic in reduced.topics)
    gone = sorted({f"mine {topic}" for topic in range(6)} - left)
    message = reduced.history[-1].message
    assert sorted(message.split("labels not kept: ")[1].split(", ")) == gone and len(gone) == 2
    assert "not kept" not in reduce(synthetic, 4).history[-1].message
