"""Hierarchies against calculations by hand, the laws of cuts, and results read at a level."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import linkage
from scipy.sparse import csr_matrix
from scipy.spatial.distance import squareform
from sklearn.metrics import adjusted_rand_score

from embedtopics import topics
from embedtopics.topics import ClassTfidf
from embedtopics.topics.reading._hierarchy import _link
from embedtopics.topics.results import TopicHierarchy
from tests.factories import make_result, refuses, topic_counts


def cut(tree, n_topics):
    """Return the topics of each group at a level."""
    return tuple(map(tree.topics_under, tree.nodes_at(n_topics)))


@pytest.mark.parametrize("space", ["terms", "embeddings"])
def test_merges_are_those_of_scipy(space):
    result = make_result(400, 9, seed=3)
    rows = result.topic_terms.toarray()
    if space == "embeddings":
        labels, of_row = result.labels, result.distinct.of_row
        rows = np.array([result.embeddings[of_row[labels == t]].mean(axis=0) for t in range(9)])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    steps = linkage(squareform(np.clip(1 - rows @ rows.T, 0, 2), checks=False), "ward")
    tree = topics.hierarchy(result, space=space)
    for i, (one, other, distance, _) in enumerate(steps):
        assert set(tree.merges[i]) == {int(one), int(other)}
        assert tree.distances[i] == pytest.approx(distance, abs=1e-6)


def test_coordinates_are_merged_by_what_is_added_to_the_sum_of_squares():
    result = make_result(400, 9, seed=3)
    labels, weights = result.clustering.labels, result.distinct.weights

    def squares(group):
        inside = np.isin(labels, list(group))
        points, w = result.coordinates[inside].astype(float), weights[inside]
        return (w[:, None] * (points - np.average(points, axis=0, weights=w)) ** 2).sum()

    tree = topics.hierarchy(result)
    groups = [frozenset([t]) for t in range(9)]
    for merge in range(8):
        pairs = [(a, b) for i, a in enumerate(groups) for b in groups[:i]]
        costs = [squares(a | b) - squares(a) - squares(b) for a, b in pairs]
        a, b = pairs[int(np.argmin(costs))]
        assert frozenset(tree.topics_under(9 + merge)) == a | b
        assert tree.distances[merge] == pytest.approx(np.sqrt(2 * min(costs)), rel=1e-4)
        groups = [group for group in groups if group not in (a, b)] + [a | b]


def test_groups_of_the_hierarchy_are_nearly_the_topics_of_coarser_resolutions(branched):
    tree, labels = topics.hierarchy(branched), branched.clustering.labels
    for n_topics in range(2, branched.n_topics):
        coarser = topics.recluster(branched, n_topics).clustering.labels
        group_of = {t: g for g, group in enumerate(cut(tree, n_topics)) for t in group}
        both = (labels >= 0) & (coarser >= 0)
        groups = [group_of[topic] for topic in labels[both]]
        assert adjusted_rand_score(groups, coarser[both]) > 0.98


def test_merged_terms_are_weighed_from_summed_counts():
    weighting = ClassTfidf(bm25=True)
    result = replace(make_result(400, 7), weighting=weighting)
    tree = topics.hierarchy(result)
    counts = topic_counts(result).toarray()
    fitted = ClassTfidf(bm25=True).fit(counts)
    for merge in range(6):
        node = tree.to_frame().loc[7 + merge]
        members = list(tree.topics_under(7 + merge))
        weights = fitted.transform(counts[members].sum(axis=0, keepdims=True)).toarray().ravel()
        column = [result.term_counts.terms.index(term) for term in node.terms]
        assert len(column) and (weights[column] >= np.sort(weights)[-30]).all()
        assert node["size"] == sum(result.topics[t].size for t in members)
        assert node.n_topics == len(members)
    assert weighting.__dict__ == ClassTfidf(bm25=True).__dict__  # fitted is a copy


def test_keywords_of_merges_repeat_no_stem(branched):
    tree = topics.hierarchy(branched)
    for terms in tree.terms[branched.n_topics :]:
        words = [word for term in terms for word in {*term.split(" ")}]
        assert len(words) == len(set(words)) and len(terms) <= 10
    assert len(set(tree.names)) == len(tree.names) == 2 * branched.n_topics - 1


def test_no_terms_no_topics_one_topic():
    none = topics.hierarchy(make_result(30, 0))
    assert none.names == () and cut(none, 0) == ()
    assert none.to_text() == "no topics" and len(none.to_frame()) == 0
    one = topics.hierarchy(make_result(30, 1))
    assert cut(one, 1) == ((0,),) and one.merges.shape == (0, 2)
    assert one.to_text().startswith("[0] ") and one.to_text([1])
    result = make_result(60, 3)
    silent = csr_matrix(result.topic_terms.shape)
    zeros = csr_matrix(result.term_counts.counts.shape, dtype=np.int32)
    counts = replace(result.term_counts, counts=zeros)
    mute = topics.hierarchy(replace(result, topic_terms=silent, term_counts=counts), space="terms")
    assert mute.terms[3:] == ((), ())
    under = [[mute.names[topic] for topic in mute.topics_under(node)] for node in (3, 4)]
    for name, parts in zip(mute.names[3:], under, strict=True):
        assert sorted(name.split(", ")) == sorted(", ".join(parts).split(", "))
    # One topic without terms lies at distance 1 from all and merges like any other.
    lacking = result.topic_terms.toarray()
    lacking[1] = 0.0
    lacking = replace(result, topic_terms=csr_matrix(lacking))
    tree = topics.hierarchy(lacking, space="terms")
    assert cut(tree, 2)[-1] == (1,) or cut(tree, 2)[0] == (1,)


def test_frame_says_where_each_node_belongs():
    tree = topics.hierarchy(make_result(300, 6))
    frame = tree.to_frame([1, 3]).set_index("node")
    assert (frame["at_1"] == 10).all() and frame.loc[10, "parent"] == -1
    for node, row in frame.iterrows():
        if row["parent"] >= 0:
            assert node in (frame.loc[row["parent"], "left"], frame.loc[row["parent"], "right"])
        members = set(tree.topics_under(node))
        holders = [group for group in tree.nodes_at(3) if members <= set(tree.topics_under(group))]
        assert row["at_3"] == (holders[0] if holders else -1)


@st.composite
def distance_matrices(draw):
    n = draw(st.integers(1, 12))
    cells = draw(st.lists(st.integers(0, 8), min_size=n * n, max_size=n * n))
    upper = np.triu(np.array(cells, dtype=float).reshape(n, n) / 8, 1)
    return upper + upper.T


def tree_of(distances):
    """A tree of topics with these distances."""
    merges, heights, order = _link(distances)
    names = [f"a\nb{t}" for t in range(len(distances))]
    sizes = [30] * len(distances)
    for number, (one, other) in enumerate(merges.tolist()):
        names.append(f"m{number}")
        sizes.append(sizes[one] + sizes[other])
    terms = tuple(() for _ in names)
    return TopicHierarchy(merges, heights, order, tuple(names), np.array(sizes), terms, "terms")


@settings(max_examples=60, deadline=None)
@given(distance_matrices())
def test_cuts_have_so_many_groups_and_are_nested(matrix):
    """Many distances are equal here, which must not merge more than was asked for."""
    n = len(matrix)
    tree = tree_of(matrix)
    assert (np.diff(tree.distances) >= 0).all()
    assert sorted(tree.order.tolist()) == list(range(n))
    finer = None
    for n_groups in range(n, 0, -1):
        groups = cut(tree, n_groups)
        assert len(groups) == n_groups
        assert sorted(t for group in groups for t in group) == list(range(n))
        if finer is not None:
            assert all(any(set(f) <= set(g) for g in groups) for f in finer)
        finer = groups
        # What one group holds lies side by side in the order.
        place = np.argsort(tree.order)
        assert all(np.ptp(place[list(group)]) == len(group) - 1 for group in groups)


def test_bad_cuts_and_levels():
    result = make_result()
    tree = topics.hierarchy(result)
    with refuses("space"):
        topics.hierarchy(result, space="words")
    for wrong in (0, 7, 2.5):
        with refuses("n_topics"):
            cut(tree, wrong)
    with refuses("node"):
        tree.topics_under(11)


def test_text_has_every_node_once():
    result = make_result(500, 12)
    tree = topics.hierarchy(result)
    lines = tree.to_text().splitlines()
    assert len(lines) == len(tree.names) == 23
    assert lines[0] == f"{tree.names[22]} · {tree.sizes[22]:,}"
    shown = [line.lstrip("│ ├└─") for line in lines if "[" in line]
    topics_ = [(t, result.topics[t]) for t in tree.order]
    assert shown == [f"[{t}] {topic.name} · {topic.size:,}" for t, topic in topics_]
    merges = {f"{tree.names[node]} · {tree.sizes[node]:,}" for node in range(12, 23)}
    assert {line.lstrip("│ ├└─") for line in lines} >= merges


def test_text_of_levels_branches_there_only():
    tree = topics.hierarchy(make_result(500, 12))
    lines = tree.to_text([7, 3]).splitlines()
    depths = [next(i for i, c in enumerate(line) if c not in "│ ├└─") // 3 for line in lines]
    assert depths.count(0) == 1 and depths.count(1) == 3 and max(depths) <= 3
    wanted = {*tree.nodes_at(1), *tree.nodes_at(3), *tree.nodes_at(7), *range(12)}
    assert len(lines) == len(wanted)
    assert lines[0] == f"{tree.names[22]} · {tree.sizes[22]:,}"
    with refuses("n_topics"):
        tree.to_text([40])


def test_text_of_a_deep_tree_and_of_strange_names():
    n = 1500
    # Each topic merges with all before it: a chain as deep as there are topics.
    merges = np.array([[0, 1], *([t, n + t - 2] for t in range(2, n))], dtype=np.int32)
    names = (*(f"a\nb{t}" for t in range(n)), *(f"m{t}" for t in range(n - 1)))
    sizes = np.array([30] * n + [30 * (t + 2) for t in range(n - 1)])
    heights, order = np.arange(n - 1.0), np.arange(n)[::-1]
    tree = TopicHierarchy(merges, heights, order, names, sizes, ((),) * len(names), "terms")
    text = tree.to_text()
    assert len(text.splitlines()) == 2 * n - 1 and "a b7 ·" in text
