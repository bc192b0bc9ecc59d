from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from embedtopics.terms import ClassTfidf
from embedtopics.topics import merge, reduce, rename, update_terms
from embedtopics.topics.editing._regroup import group_nearest
from tests.factories import make_result, refuses, topic_counts
from tests.topics.editing.altering import (
    assert_same,
    assert_untouched,
    frozen,
    partition,
    with_anchors,
)

QUICK = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def texts_of(result, topic):
    """Return the words of all rows of a topic, one list."""
    words, offsets = result.tokens.words, result.tokens.offsets
    found = []
    for document in np.flatnonzero(result.clustering.labels == topic):
        ids = result.tokens.ids[offsets[document] : offsets[document + 1]]
        found += [words[i] for i in ids] * int(result.documents.weights[document])
    return found


def test_weights_are_those_of_the_words_put_together(synthetic):
    merged = merge(synthetic, [[0, 4], [1, 2]])
    held = [Counter(texts_of(merged, topic)) for topic in range(4)]
    counts = np.array([[row[term] for term in merged.term_counts.terms] for row in held])
    frequency, lengths = counts.sum(axis=0), counts.sum(axis=1, keepdims=True)
    expected = counts / lengths * np.log1p(lengths.mean() / np.where(frequency > 0, frequency, 1))
    np.testing.assert_allclose(merged.topic_terms.toarray(), expected, atol=1e-12)


def test_everything_follows(branched):
    before = frozen(branched)
    merged = merge(branched, [2, 0])
    assert merged.n_topics == branched.n_topics - 1 == len(merged.topics)
    edit = merged.history[-1]
    assert (edit.name, edit.parameters) == ("merge", {"topics": [[0, 2]]})
    assert [mark.topic_id for mark in edit.marks] == [0, 2]
    new = edit.new_ids[0]
    assert edit.new_ids[2] == new
    old = branched.clustering.labels
    np.testing.assert_array_equal(np.append(edit.new_ids, -1)[old], merged.clustering.labels)
    np.testing.assert_array_equal(
        merged.clustering.probabilities, branched.clustering.probabilities
    )
    np.testing.assert_array_equal(merged.reasons, branched.reasons)
    assert np.isnan(merged.topics[new].persistence)
    assert merged.topics[new].size == branched.topics[0].size + branched.topics[2].size
    for topic in branched.topics:
        if topic.topic_id not in (0, 2):
            same = merged.topics[edit.new_ids[topic.topic_id]]
            assert same.persistence == topic.persistence and same.size == topic.size
            assert same.representatives == topic.representatives
    sizes = [topic.size for topic in merged.topics]
    assert sizes == sorted(sizes, reverse=True)
    for name in ("corpus", "documents", "embeddings", "graph", "map", "tree", "tokens",
                 "term_counts"):  # fmt: skip
        assert getattr(merged, name) is getattr(branched, name)
    assert_untouched(branched, before)


@QUICK
@given(st.permutations(range(6)), st.integers(1, 2), st.integers(0, 99))
def test_the_order_of_merging_does_not_matter(order, n_each, seed):
    result = make_result(120, 6, seed)
    one, two = order[: 1 + n_each], order[3 : 4 + n_each]
    at_once = merge(result, [one, two])
    other_way = merge(result, [two[::-1], one[::-1]])
    assert_same(at_once, other_way)
    first = merge(result, one)
    after = merge(first, sorted({first.history[-1].new_ids[t] for t in two}))
    assert partition(after.clustering.labels) == partition(at_once.clustering.labels)
    assert after.coverage == at_once.coverage == result.coverage
    np.testing.assert_allclose(
        np.sort(after.memberships.toarray(), axis=1),
        np.sort(at_once.memberships.toarray(), axis=1),
        atol=1e-6,
    )
    assert sorted(t.keywords for t in after.topics) == sorted(t.keywords for t in at_once.topics)


def test_groups_that_share_a_topic_are_one(synthetic):
    assert_same(merge(synthetic, [[0, 1], [1, 3]]), merge(synthetic, [0, 1, 3]))


def test_an_anchor_stays_one_and_keeps_its_name(synthetic):
    result = with_anchors(rename(synthetic, {0: "Named"}), 2, 5)
    merged = merge(result, [0, 2, 3])
    found = merged.topics[merged.history[-1].new_ids[2]]
    assert found.is_seeded and found.label == "asked 2"
    with refuses("topics"):
        merge(result, [2, 5])
    with refuses("topics"):
        merge(result, [[2, 1], [1, 5]])


def test_a_weighting_stays(synthetic):
    weighted = update_terms(synthetic, weighting=ClassTfidf(bm25=True))
    assert weighted.settings["weighting"]["bm25"] is True
    later = merge(merge(weighted, [0, 1]), [0, 1])
    expected = ClassTfidf(bm25=True).fit_transform(topic_counts(later))
    np.testing.assert_allclose(later.topic_terms.toarray(), expected.toarray())


def test_bad_topics(synthetic):
    not_groups = [[3], [3, 3], [[0, 1], [2, 2]], range(6)]
    for topics in (*not_groups, [[0, 1, 2], [2, 3, 4, 5]]):
        with refuses("topics"):
            merge(synthetic, topics)
    for topic in (6, -1):
        with refuses("topic"):
            merge(synthetic, [0, topic])


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


def test_bad_numbers_and_few_topics(synthetic):
    for n_topics in (1, 0, -3, 2.0, True, "auto", 7):
        with refuses("n_topics"):
            reduce(synthetic, n_topics)
    with refuses("by"):
        reduce(synthetic, 3, by="words")
    assert reduce(make_result(60, 1), 1).n_topics == 1
    with refuses("n_topics"):
        reduce(make_result(60, 0), 2)
