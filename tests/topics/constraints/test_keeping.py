"""What was asked for before a fit, and edits after it."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics import topics
from embedtopics.topics.constraints._protocol import cannot_merge
from embedtopics.topics.results import Reason, TopicConstraints
from tests.factories import make_result, refuses
from tests.topics.editing.altering import with_anchors


def guided(result, pairs=(), **changes):
    """Return the result as if documents had been kept apart, or known, before the fit."""
    n = len(result.documents)
    apart = np.array(sorted(map(sorted, pairs)), dtype=np.int64).reshape(-1, 2)
    constraints = TopicConstraints(
        np.full(n, -1, np.int32), (), np.zeros(n, np.float32), cannot_link=apart
    )
    return dataclasses.replace(result, constraints=dataclasses.replace(constraints, **changes))


def first_of(result, topic, n=1):
    return np.flatnonzero(result.clustering.labels == topic)[:n].tolist()


def together(result):
    one, other = result.clustering.labels[result.constraints.cannot_link].T
    return int(((one == other) & (one >= 0)).sum())


def decision(result, name):
    return next((d for d in result.decisions if d.name == name), None)


@pytest.fixture(scope="module")
def parted():
    """Six topics; texts of 0 and 1, and of 2 and 5, are to be kept apart."""
    result = make_result()
    two = [(first_of(result, a)[0], first_of(result, b)[0]) for a, b in ((0, 1), (2, 5))]
    return guided(result, two)


def test_which_topics_stay_apart(parted):
    expected = np.zeros((6, 6), dtype=bool)
    for one, other in ((0, 1), (2, 5)):
        expected[one, other] = expected[other, one] = True
    np.testing.assert_array_equal(cannot_merge(parted), expected)
    expected[np.ix_([1, 3, 4], [1, 3, 4])] = ~np.eye(3, dtype=bool)
    np.testing.assert_array_equal(cannot_merge(with_anchors(parted, 1, 3, 4)), expected)
    assert not cannot_merge(make_result()).any()


@pytest.mark.parametrize("by", ["terms", "embeddings"])
def test_reducing_joins_no_pair(parted, by):
    for n_topics in (5, 4, 3, 2):
        reduced = topics.reduce(parted, n_topics, by=by)
        assert reduced.n_topics == n_topics and together(reduced) == 0
        assert decision(reduced, "pairs_joined") is None


def test_reducing_says_where_pairs_leave_no_way(parted):
    each = [first_of(parted, topic)[0] for topic in range(6)]
    all_distinct = guided(parted, [(a, b) for a in each for b in each if a < b])
    with refuses("n_topics"):
        topics.reduce(all_distinct, 4)
    assert topics.reduce(all_distinct, 6).n_topics == 6


def test_a_level_of_the_tree_joins_no_pair_and_no_anchors(parted):
    tree = topics.hierarchy(parted)
    for n_topics in range(1, 7):
        read = topics.at_level(parted, tree, n_topics)
        assert together(read) == 0 and n_topics <= read.n_topics
        n_more = read.n_topics - n_topics
        assert (f"require {n_more} more" in read.history[-1].message) == (n_more > 0)
    assert topics.at_level(parted, tree, 1).n_topics > 1
    asked = with_anchors(make_result(), 0, 1, 2)
    read = topics.at_level(asked, topics.hierarchy(asked), 1)
    assert {t.label for t in read.topics if t.is_seeded} == {"asked 0", "asked 1", "asked 2"}
    with refuses("topics"):
        topics.at_level(asked, topics=[[0, 1]])


def test_merging_by_hand_is_done_and_told(parted):
    merged = topics.merge(parted, [0, 1])
    told = decision(merged, "pairs_joined")
    assert told.value == 1 and "Since merge, 1 pairs of texts" in told.message
    after = topics.remove(merged, [merged.n_topics - 1])
    assert sum(d.name == "pairs_joined" for d in after.decisions) == 1  # told once
    assert decision(topics.merge(parted, [0, 2]), "pairs_joined") is None
    assert decision(topics.replay(parted, merged), "pairs_joined") == told


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["graph", "terms", "embeddings"]),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), min_size=1, max_size=400),
)
def test_no_text_joins_one_from_which_it_is_kept_apart(strategy, drawn):
    plain = make_result()
    labels = plain.clustering.labels
    pairs = [(a, b) for a, b in drawn if a != b and (labels[a] != labels[b] or labels[a] < 0)]
    if not pairs:
        return
    result = guided(plain, set(pairs))
    joined = topics.reassign(result, strategy, threshold=0)
    assert together(joined) == 0 and decision(joined, "pairs_joined") is None
    unbound = topics.reassign(plain, strategy, threshold=0)
    # Topics are numbered by size, and so not always alike in both.
    number = dict(zip(unbound.history[-1].new_ids, joined.history[-1].new_ids, strict=True))
    free = np.array([number.get(topic, -1) for topic in unbound.clustering.labels.tolist()])
    stays = (joined.clustering.labels != free) & (joined.clustering.labels == -1)
    # Who stays out would have met another in the topic.
    for document in np.flatnonzero(stays).tolist():
        mates = [a + b - document for a, b in pairs if document in (a, b)]
        assert free[document] in joined.clustering.labels[mates]
    kept = joined.clustering.reasons[stays]
    np.testing.assert_array_equal(kept, plain.clustering.reasons[stays])
    assert (kept != Reason.IN_TOPIC).all()


def test_labels_given_whole(fit, mixed):
    texts, vectors, classes = mixed
    some = classes.copy()
    some[::7] = None
    result = fit((texts, vectors), topics.ManualLabels(some))
    n_without = int((result.labels < 0).sum())
    joined = topics.reassign(result, "embeddings", threshold=0)
    told = decision(joined, "not_labeled_joined")
    assert told.value == n_without - int((joined.labels < 0).sum()) > 0


def test_edits_keep_a_guide_that_still_fits(parted, tmp_path):
    edited = topics.split(topics.merge(parted, [[0, 2], [1, 3]]), 0, 2)
    edited = topics.remove(edited, [edited.n_topics - 1])
    assert edited.constraints is parted.constraints
    topics.save_result(edited, tmp_path / "saved")
    loaded = topics.load_result(tmp_path / "saved")
    np.testing.assert_array_equal(loaded.constraints.cannot_link, parted.constraints.cannot_link)
    again = topics.reduce(loaded, 2)
    assert repr(again.topics) == repr(topics.reduce(edited, 2).topics) and together(again) == 0
