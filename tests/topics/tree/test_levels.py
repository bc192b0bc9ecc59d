"""A result read at a level of its hierarchy, and the tree as text."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from embedtopics import topics
from embedtopics.errors import InputError
from embedtopics.terms import ClassTfidf
from tests.factories import make_result, refuses


def test_at_level_joins_what_the_tree_joins(branched):
    tree = topics.hierarchy(branched)
    read = topics.at_level(branched, tree, 4)
    groups = tree.cut(4)
    assert read.n_topics == 4
    sizes = [sum(branched.topics[t].size for t in group) for group in groups]
    assert [topic.size for topic in read.topics] == sizes  # both are largest first
    new_of = np.full(branched.n_topics + 1, -1)
    for number, group in enumerate(groups):
        new_of[list(group)] = number
    np.testing.assert_array_equal(read.labels, new_of[branched.labels])
    dense = branched.memberships.toarray()
    expected = np.column_stack([dense[:, list(group)].sum(axis=1) for group in groups])
    np.testing.assert_allclose(read.memberships.toarray(), expected, atol=1e-6)
    assert read.history[-1].new_ids == tuple(new_of[:-1])
    assert read.term_counts is branched.term_counts and read.tokens is branched.tokens
    again = topics.at_level(branched, tree, distance=float(tree.distances[-4]))
    assert repr(again.topics) == repr(read.topics)


def test_given_names_stay():
    result = make_result(300, 5)
    named = [(t, f"mine {t.topic_id}", t.topic_id != 4) for t in result.topics]
    given = tuple(replace(t, label=label, is_named=is_named) for t, label, is_named in named)
    result = replace(result, topics=given)
    read = topics.at_level(result, topics=[[3, 0], [2, 4]])
    assert {t.label for t in read.topics if t.is_named} == {"mine 0", "mine 1", "mine 2"}
    assert read.history[-1].message.endswith("labels not kept: mine 3")
    asked = tuple(replace(t, is_seeded=t.topic_id == 3) for t in given)
    read = topics.at_level(replace(result, topics=asked), topics=[[0, 3]])
    assert {t.label for t in read.topics if t.is_seeded} == {"mine 3"}
    assert read.history[-1].message.endswith("labels not kept: mine 0")
    same = topics.at_level(result, topics.hierarchy(result), 5)
    np.testing.assert_array_equal(same.labels, result.labels)
    assert "gave way" not in same.history[-1].message


def test_a_weighting_of_the_users_own(branched):
    foreign = replace(branched, settings={**branched.settings, "weighting": "Mine()"})
    with pytest.raises(InputError):
        topics.at_level(foreign, topics=[[0, 1]])
    read = topics.at_level(foreign, topics=[[0, 1]], weighting=ClassTfidf(sqrt_tf=True))
    plain = topics.at_level(branched, topics=[[0, 1]])
    assert abs(read.topic_terms - plain.topic_terms).max() > 0


@pytest.mark.parametrize("n_topics", [0, 1])
def test_few_topics(n_topics):
    result = make_result(40, n_topics)
    read = topics.at_level(result, topics.hierarchy(result), n_topics)
    assert read.n_topics == n_topics and read.memberships.shape == (len(result.documents), n_topics)
    np.testing.assert_array_equal(read.labels, result.labels)


def test_bad_levels():
    result = make_result()
    tree = topics.hierarchy(result)
    whole, both = {"hierarchy": tree}, {"hierarchy": tree, "topics": [[0, 1]]}
    for options in ({}, whole, both, {"topics": [[0, 9]]}):
        with refuses(""):
            topics.at_level(result, **options)
    with refuses("topics"):
        topics.at_level(result, topics=[[0, 1], [1, 2]])
    with refuses("hierarchy"):
        topics.at_level(make_result(seed=5), tree, 2)
    with refuses("n_topics"):
        topics.at_level(result, tree, 7)


def test_text_has_every_node_once():
    result = make_result(500, 12)
    tree = topics.hierarchy(result)
    lines = topics.tree_text(tree).splitlines()
    assert len(lines) == len(tree.nodes) == 23
    assert lines[0] == f"{tree.nodes[22].label} · {tree.nodes[22].size:,}"
    shown = [line.lstrip("│ ├└─") for line in lines if "[" in line]
    topics_ = [(t, result.topics[t]) for t in tree.order]
    assert shown == [f"[{t}] {topic.label} · {topic.size:,}" for t, topic in topics_]
    merges = {f"{node.label} · {node.size:,}" for node in tree.nodes[12:]}
    assert {line.lstrip("│ ├└─") for line in lines} >= merges


def test_text_of_levels_branches_there_only():
    tree = topics.hierarchy(make_result(500, 12))
    lines = topics.tree_text(tree, levels=[7, 3], n_terms=2).splitlines()
    depths = [next(i for i, c in enumerate(line) if c not in "│ ├└─") // 3 for line in lines]
    assert depths.count(0) == 1 and depths.count(1) == 3 and max(depths) <= 3
    wanted = {*tree.nodes_at(1), *tree.nodes_at(3), *tree.nodes_at(7), *range(12)}
    assert len(lines) == len(wanted)
    root = tree.nodes[22]
    assert lines[0] == f"{', '.join(root.terms[:2])} · {root.size:,}"
    with refuses("n_topics"):
        topics.tree_text(tree, levels=[40])
    with pytest.raises(InputError):
        topics.tree_text(tree, n_terms=0)


def test_text_of_a_deep_tree_and_of_strange_names():
    n = 1500
    result = make_result(20, 1)
    topics_ = tuple(replace(result.topics[0], topic_id=t, label=f"a\nb{t}") for t in range(n))
    no_terms = csr_matrix((n, len(result.term_counts.terms)))
    deep = replace(result, topics=topics_, topic_terms=no_terms)
    labels = replace(result.clustering, labels=np.full_like(result.clustering.labels, -1))
    place = np.arange(n, dtype=float)
    # Each topic merges with all before it: a chain as deep as there are topics.
    apart = np.maximum(place[:, None], place) * (1 - np.eye(n))
    tree = topics.hierarchy(replace(deep, clustering=labels), by=apart, linkage="single")
    text = topics.tree_text(tree)
    assert len(text.splitlines()) == 2 * n - 1 and "a b7 ·" in text
