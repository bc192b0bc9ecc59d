"""The heart of all edits."""

import dataclasses

import numpy as np
from scipy.sparse import csr_matrix

import embedtopics as et
from embedtopics.topics._relabel import regrouped, relabeled, with_own_share
from embedtopics.topics.results import Reason
from tests.factories import fields, make_result
from tests.topics.editing.altering import assert_same_topics


def again(result, labels=None, memberships=None, origins=None, **more):
    """Relabel with what is not given as it was."""
    return relabeled(
        result,
        result.clustering.labels if labels is None else labels,
        result.memberships if memberships is None else memberships,
        list(result.topics) if origins is None else origins,
        **{"name": "test", "parameters": {}, "message": "", **more},
    )


def test_the_same_labels_change_nothing(branched):
    assert_same_topics(again(branched), branched)


def test_any_numbering_is_put_in_the_order_of_sizes(branched):
    n = branched.n_topics
    sizes = [topic.size for topic in branched.topics]
    mixed = np.random.default_rng(0).permutation(n)
    # Topics of one size stay in the order in which they come.
    for size in set(sizes):
        alike = [topic for topic in range(n) if sizes[topic] == size]
        mixed[alike] = np.sort(mixed[alike])
    labels = np.append(mixed, -1)[branched.clustering.labels]
    back = np.argsort(mixed)
    same = again(
        branched, labels, branched.memberships[:, back], [branched.topics[t] for t in back],
        follows=mixed,
    )  # fmt: skip
    assert mixed.tolist() != list(range(n))
    np.testing.assert_array_equal(same.labels, branched.labels)
    np.testing.assert_array_equal(same.memberships.toarray(), branched.memberships.toarray())
    assert fields(same.topics) == fields(branched.topics)
    assert same.history[-1].new_ids == tuple(range(n))


def test_reasons_of_those_that_leave_and_join():
    result = make_result()
    labels = result.clustering.labels.copy()
    joins, leaves = np.flatnonzero(labels == -1)[0], np.flatnonzero(labels == 2)[:3]
    labels[joins], labels[leaves] = 4, -1
    for before in (result.clustering.reasons, None):
        clustering = dataclasses.replace(result.clustering, reasons=before)
        start = dataclasses.replace(result, clustering=clustering)
        changed = again(start, labels).clustering
        assert changed.reasons[leaves].tolist() == [Reason.REMOVED] * 3
        assert changed.reasons[joins] == Reason.IN_TOPIC
        np.testing.assert_array_equal(changed.reasons == Reason.IN_TOPIC, changed.labels >= 0)
        stayed = (labels == -1) & (result.clustering.labels == -1)
        expected = Reason.ISOLATED if before is None else before[stayed]
        np.testing.assert_array_equal(changed.reasons[stayed], expected)
        assert not changed.probabilities[labels == -1].any()


def test_given_names_stay_and_no_other_topic_takes_one(branched):
    taken = branched.topics[3].name  # the name that its keywords make
    renamed = et.topics.rename(branched, {3: "x", 0: taken})
    changed = again(et.topics.rename(renamed, {3: "y"}))
    assert changed.topics[0].name == taken and changed.topics[3].name == "y"
    origins = [changed.topics[0], *[None] * (branched.n_topics - 1)]
    unnamed = again(changed, origins=origins)
    labels = [topic.name for topic in unnamed.topics]
    assert labels[0] == taken and len(set(labels)) == len(labels)
    assert labels[3] == ", ".join(branched.topics[3].keywords[:4])
    assert [topic.is_named for topic in unnamed.topics] == [True] + [False] * (len(labels) - 1)


def test_regrouped_by_hand():
    shares = csr_matrix([[0.5, 0.25, 0.125], [0.0, 0.5, 0.5]], dtype=np.float32)
    assert regrouped(shares, [1, 0, 1], 2).toarray().tolist() == [[0.25, 0.625], [0.5, 0.5]]
    assert regrouped(shares, [0, -1, 0], 1).toarray().tolist() == [[0.625], [0.5]]
    assert regrouped(shares, [-1, -1, -1], 0).shape == (2, 0)


def test_own_share_by_hand():
    shares = csr_matrix([[0.9, 0.1], [0.3, 0.5], [0.0, 0.0], [0.2, 0.3]], dtype=np.float32)
    labels = np.array([0, 0, 1, -1], dtype=np.int32)
    expected = [[0.9, 0.1], [0.6 + 0.4 * 0.3, 0.4 * 0.5], [0.0, 0.6], [0.2, 0.3]]
    np.testing.assert_allclose(with_own_share(shares, labels).toarray(), expected, rtol=1e-6)
    nobody = np.full(4, -1, dtype=np.int32)
    assert with_own_share(shares[:, :0], nobody).shape == (4, 0)
