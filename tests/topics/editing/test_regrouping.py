"""Documents in other topics: merged, reassigned and split."""

import contextlib
import dataclasses
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

import embedtopics as et
from embedtopics.clustering._hierarchy import labels_at
from embedtopics.clustering._resolution import subtree
from embedtopics.clustering._spanning_tree import spanning_tree
from embedtopics.errors import InputError
from embedtopics.topics import (
    ClassTfidf,
    merge,
    recluster,
    reduce_outliers,
    remove,
    rename,
    split,
)
from embedtopics.topics.editing._merge import group_nearest
from embedtopics.topics.results import Reason
from tests.factories import each, make_result, refuses, topic_counts
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
        found += [words[i] for i in ids] * int(result.distinct.weights[document])
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
    for name in ("corpus", "distinct", "embeddings", "graph", "map", "tree", "tokens",
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
    assert found.is_seeded and found.name == "asked 2"
    with refuses("topics"):
        merge(result, [2, 5])
    with refuses("topics"):
        merge(result, [[2, 1], [1, 5]])


def test_bad_topics(synthetic):
    not_groups = [[3], [3, 3], [[0, 1], [2, 2]], range(6)]
    for topics in (*not_groups, [[0, 1, 2], [2, 3, 4, 5]]):
        with refuses("topics"):
            merge(synthetic, topics)
    for topic in (6, -1):
        with refuses("topics"):
            merge(synthetic, [0, topic])


def random_points(seed, n):
    """Return points, their squared distances, and sizes."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 3))
    squared = np.square(points[:, None] - points[None]).sum(axis=2)
    return points, squared, rng.integers(1, 40, n)


def sum_of_squares(points):
    return np.square(points - points.mean(axis=0)).sum()


def groups_by_hand(points, sizes, n_groups, anchors, largest):
    """Merge, again and again, the pair that least increases the sum of squares."""
    parts = [[item] for item in range(len(points))]
    while len(parts) > n_groups:
        pairs = []
        for i, one in enumerate(parts):
            for j, other in enumerate(parts[:i]):
                if anchors[one].sum() + anchors[other].sum() > 1:
                    continue
                is_large = sizes[one].sum() + sizes[other].sum() > largest
                increase = sum_of_squares(points[one + other])
                increase -= sum_of_squares(points[one]) + sum_of_squares(points[other])
                pairs.append((is_large, increase, i, j))
        _, _, i, j = min(pairs)
        parts[j] += parts.pop(i)
    return sorted(tuple(sorted(part)) for part in parts if len(part) > 1)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 20), st.data())
def test_groups_are_those_of_ward_within_the_limit_of_size(seed, n, data):
    anchors = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    n_groups = data.draw(st.integers(max(1, anchors.sum()), n))
    points, squared, sizes = random_points(seed, n)
    groups = group_nearest(squared, n_groups, np.outer(anchors, anchors), sizes)

    largest = 2 * sizes.sum() / n_groups
    assert groups == groups_by_hand(points, sizes, n_groups, anchors, largest)
    assert n - sum(map(len, groups)) + len(groups) == n_groups
    assert all(anchors[list(group)].sum() <= 1 for group in groups)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 30), st.data())
def test_no_group_has_more_than_twice_the_mean_size(seed, n, data):
    n_groups = data.draw(st.integers(1, n))
    _, squared, sizes = random_points(seed, n)
    groups = group_nearest(squared, n_groups, np.zeros((n, n), dtype=bool), sizes)

    assert n - sum(map(len, groups)) + len(groups) == n_groups
    assert all(sizes[list(group)].sum() <= 2 * sizes.sum() / n_groups for group in groups)


def test_equal_distances_are_merged_from_the_first():
    ones = np.ones((5, 5))
    assert group_nearest(ones, 3, ones == 0, np.ones(5)) == [(0, 1, 2)]


@pytest.mark.parametrize("space", ["terms", "embeddings"])
def test_a_chain_of_similar_topics_is_no_giant(space, branched):
    reduced = merge(branched, n_topics=4, space=space)
    other = recluster(branched, 4)

    def largest_share(result):
        sizes = np.array([topic.size for topic in result.topics])
        return sizes.max() / sizes.sum()

    assert largest_share(reduced) <= 2 * largest_share(other)
    # Each of the four branches is one topic, as the vectors have them.
    assert partition(reduced.labels[reduced.labels >= 0]) == partition(
        other.labels[reduced.labels >= 0]
    )


@pytest.mark.parametrize("space", ["terms", "embeddings"])
@pytest.mark.parametrize("n_topics", [2, 3, 5, 6])
def test_the_number_is_met_exactly(synthetic, space, n_topics):
    reduced = merge(synthetic, n_topics=n_topics, space=space)
    assert reduced.n_topics == n_topics == len(set(reduced.labels.tolist()) - {-1})
    assert reduced.coverage == synthetic.coverage
    np.testing.assert_allclose(
        reduced.memberships.sum(axis=1), synthetic.memberships.sum(axis=1), atol=1e-6
    )
    assert reduced.history[-1].parameters == {"n_topics": n_topics, "space": space}


def test_bad_numbers_and_few_topics(synthetic):
    for n_topics in (1, 0, -3, 2.0, True, "auto", 7):
        with refuses("n_topics"):
            merge(synthetic, n_topics=n_topics)
    with refuses("space"):
        merge(synthetic, n_topics=3, space="words")
    assert merge(make_result(60, 1), n_topics=1).n_topics == 1
    with refuses("n_topics"):
        merge(make_result(60, 0), n_topics=2)


def test_topics_are_listed_or_counted_but_not_both(synthetic):
    for arguments in ({}, {"topics": [0, 1], "n_topics": 3}):
        with refuses("topics"):
            merge(synthetic, **arguments)
    with refuses("topics") as caught:
        merge(synthetic, 3)
    assert "n_topics=3" in str(caught.value)


STRATEGIES = ("graph", "terms", "embeddings")


@pytest.fixture(scope="module")
def sparse():
    """A result with a fourth of its documents in no topic, some of them near one."""
    result = make_result(600, 4, seed=3)
    labels = result.clustering.labels.copy()
    taken_out = np.flatnonzero(labels >= 0)[::8]
    labels[taken_out] = -1
    reasons = result.clustering.reasons.copy()
    reasons[taken_out] = Reason.BETWEEN
    probabilities = np.where(labels >= 0, result.clustering.probabilities, 0).astype(np.float32)
    clustering = dataclasses.replace(
        result.clustering, labels=labels, reasons=reasons, probabilities=probabilities
    )
    return dataclasses.replace(result, clustering=clustering)


def scores_by_hand(result, strategy):
    """Return the nearness of every document to every topic, of dense products."""
    labels, weights = result.clustering.labels, result.distinct.weights
    if strategy == "terms":
        by_topic = topic_counts(result)
        weighing = ClassTfidf().fit(by_topic)
        rows = weighing.transform(by_topic).toarray()
        documents = weighing.transform(result.term_counts.counts.astype(float)).toarray()
    else:
        documents = result.embeddings.astype(float)
        rows = np.array([
            np.average(documents[labels == t], axis=0, weights=weights[labels == t])
            for t in range(result.n_topics)
        ])  # fmt: skip
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    lengths = np.linalg.norm(documents, axis=1, keepdims=True)
    return documents / np.where(lengths > 0, lengths, 1) @ rows.T


@pytest.mark.parametrize("strategy", ["terms", "embeddings"])
@pytest.mark.parametrize("threshold", [None, 0.0, 0.3])
def test_equals_dense_products(sparse, strategy, threshold):
    joined = reduce_outliers(sparse, strategy, threshold=threshold)
    scores = scores_by_hand(sparse, strategy)
    labels = sparse.clustering.labels
    best, score = scores.argmax(axis=1), scores.max(axis=1)
    if threshold is None:
        usual = [np.quantile(scores[labels == t, t], 0.25, method="inverted_cdf") for t in range(4)]
        enough = score >= np.array(usual)[best]
    else:
        enough = (score >= threshold) & (score > 0)
    expected = np.where((labels == -1) & enough, best, labels)
    ids = np.append(joined.history[-1].new_ids, -1)
    np.testing.assert_array_equal(joined.clustering.labels, ids[expected])


def test_the_graph_strategy_by_hand(sparse):
    """Walks to absorption, as a linear system, of many more steps than are taken."""
    graph, labels = sparse.graph, sparse.clustering.labels
    n = len(labels)
    chances = np.zeros((n, n))
    np.put_along_axis(chances, graph.indices, np.maximum(graph.similarities, 0), axis=1)
    chances /= np.maximum(chances.sum(axis=1, keepdims=True), 1e-12)
    outside = labels == -1
    passing = chances[np.ix_(outside, outside)]
    ends = np.column_stack([chances[np.ix_(outside, labels == t)].sum(axis=1) for t in range(4)])
    shares = np.linalg.solve(np.eye(outside.sum()) - 0.9999 * passing, ends)
    joined = reduce_outliers(sparse)
    now = joined.clustering.labels[outside]
    ids = np.array(joined.history[-1].new_ids)
    clear = shares.max(axis=1) > 0.6
    took = now >= 0
    assert (took[clear]).mean() > 0.95  # but for those far from all others
    np.testing.assert_array_equal(now[took], ids[shares.argmax(axis=1)][took])
    assert not took[shares.max(axis=1) < 0.45].any()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_who_joins_and_who_does_not(sparse, strategy):
    before = frozen(sparse)
    joined = reduce_outliers(sparse, strategy)
    assert_untouched(sparse, before)
    was, now = sparse.clustering, joined.clustering
    ids = np.append(joined.history[-1].new_ids, -1)
    inside = was.labels >= 0
    np.testing.assert_array_equal(now.labels[inside], ids[was.labels[inside]])
    joins = ~inside & (now.labels >= 0)
    left = now.labels == -1
    assert joins.any() and left.any() and joined.coverage > sparse.coverage
    np.testing.assert_array_equal(now.reasons[left], was.reasons[left])
    assert (now.reasons[joins] == Reason.IN_TOPIC).all()
    np.testing.assert_array_equal(now.probabilities, was.probabilities)
    shares = joined.memberships.toarray()
    np.testing.assert_array_equal(shares.argmax(axis=1)[joins], now.labels[joins])
    assert shares.sum(axis=1).max() <= 1 + 1e-6
    weights = sparse.distinct.weights
    numbers = f"{weights[joins].sum():,} of {weights[~inside].sum():,}"
    assert numbers in joined.history[-1].message


def test_a_removed_topic_does_not_flow_into_others(branched):
    removed = remove(branched, 3)
    gone = removed.clustering.reasons == Reason.REMOVED
    joined = reduce_outliers(removed, "graph")
    assert (joined.clustering.labels[gone] >= 0).mean() < 0.1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_documents_like_nothing_stay(sparse, strategy):
    odd = np.flatnonzero(sparse.clustering.labels == -1)[:5]
    vectors = sparse.embeddings.copy()
    vectors[odd] = 0.0
    counts = sparse.term_counts.counts.tolil()
    counts[odd] = 0
    similarities = sparse.graph.similarities.copy()
    similarities[odd] = 0.0
    alone = dataclasses.replace(
        sparse,
        embeddings=vectors,
        graph=dataclasses.replace(sparse.graph, similarities=similarities),
        term_counts=dataclasses.replace(sparse.term_counts, counts=counts.tocsr()),
    )
    assert (reduce_outliers(alone, strategy, threshold=0.0).clustering.labels[odd] == -1).all()


def test_where_nobody_is_outside():
    result = make_result(60, 2)
    labels = np.maximum(result.clustering.labels, 0)
    clustering = dataclasses.replace(result.clustering, labels=labels)
    full = dataclasses.replace(result, clustering=clustering)
    for strategy in STRATEGIES:
        assert "0 of 0" in reduce_outliers(full, strategy).history[-1].message
    with refuses("result"):
        reduce_outliers(make_result(40, 0))  # without topics there is nothing to assign to


def test_bad_arguments(sparse):
    for name, value in each(strategy=["distributions"], threshold=[1.5, True, "auto"]):
        with refuses(name):
            reduce_outliers(sparse, **{name: value})


@pytest.fixture(scope="module")
def coarse(branched):
    """The four branches, each of three twigs."""
    return recluster(branched, 4)


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
    cut = labels_at(tree, 10, result.distinct.weights[members]).labels
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
    assert "dropped its name" in parted.history[-1].message
    assert not any(topic.is_named for topic in parted.topics)
    asked = split(with_anchors(coarse, 1), 1, 3)
    heir = asked.topics[asked.history[-1].new_ids[1]]
    assert heir.name == "asked 1" and heir.is_seeded
    assert sum(topic.is_seeded for topic in asked.topics) == 1


def test_bad_arguments_of_a_split(coarse):
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
    meet = np.where(np.eye(n), 0.0, np.inf)
    meet[edges[:, 0], edges[:, 1]] = meet[edges[:, 1], edges[:, 0]] = distances
    for between in range(n):
        meet = np.minimum(meet, np.maximum(meet[:, [between]], meet[between]))
    return meet
