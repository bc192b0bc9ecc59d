import dataclasses

import numpy as np
import pytest

from embedtopics.terms import ClassTfidf
from embedtopics.topics import reassign, remove
from embedtopics.topics.results import Reason
from tests.factories import each, make_result, refuses, topic_counts
from tests.topics.editing.altering import assert_untouched, frozen

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
    labels, weights = result.clustering.labels, result.documents.weights
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
    joined = reassign(sparse, strategy, threshold=threshold)
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
    joined = reassign(sparse)
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
    joined = reassign(sparse, strategy)
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
    weights = sparse.documents.weights
    numbers = f"{weights[joins].sum():,} of {weights[~inside].sum():,}"
    assert numbers in joined.history[-1].message


def test_a_removed_topic_does_not_flow_into_others(branched):
    removed = remove(branched, 3)
    gone = removed.clustering.reasons == Reason.REMOVED
    joined = reassign(removed, "graph")
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
    assert (reassign(alone, strategy, threshold=0.0).clustering.labels[odd] == -1).all()


def test_where_nobody_is_outside():
    result = make_result(60, 2)
    labels = np.maximum(result.clustering.labels, 0)
    clustering = dataclasses.replace(result.clustering, labels=labels)
    full = dataclasses.replace(result, clustering=clustering)
    for strategy in STRATEGIES:
        assert "0 of 0" in reassign(full, strategy).history[-1].message
    with refuses("result"):
        reassign(make_result(40, 0))  # without topics there is nothing to assign to


def test_bad_arguments(sparse):
    for name, value in each(strategy=["distributions"], threshold=[1.5, True, "auto"]):
        with refuses(name):
            reassign(sparse, **{name: value})
