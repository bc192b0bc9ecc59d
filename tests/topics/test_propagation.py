"""Label propagation, outliers, and topics of new texts."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from embedtopics.clustering.results import NOISE, Clustering
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.topics import _propagation as walking
from embedtopics.topics import assign, extend, recluster
from embedtopics.topics._clusters import ClusterCut
from embedtopics.topics._propagation import (
    FAR,
    LARGEST_MARGIN,
    MIN_MARGIN,
    NOWHERE,
    SLOTS,
    STEPS,
    assign_outliers,
    closeness,
    margin,
    propagate_labels,
    rank,
    vote,
)
from embedtopics.topics._vectors import (
    core_centroids,
    cosines,
    find_unique_vectors,
    row_centroids,
    spread_graph,
)
from embedtopics.topics.results import Reason
from tests.factories import make_result, with_threads


@pytest.fixture(autouse=True, params=["all shares", "slots"])
def kept_on_the_way(request, monkeypatch):
    """Both ways of walking have to pass all tests."""
    if request.param == "slots":
        monkeypatch.setattr(walking, "MOST_CELLS", 0)
    return request.param


def random_graph(n_documents, k, seed=0, low=-0.2):
    """Neighbours at random, with similarities that descend along each row."""
    rng = np.random.default_rng(seed)
    steps = np.argsort(rng.random((n_documents, n_documents - 1)), axis=1)[:, :k] + 1
    indices = (np.arange(n_documents)[:, None] + steps) % n_documents
    similarities = -np.sort(-rng.uniform(low, 1.0, (n_documents, k)), axis=1)
    return NeighborGraph(indices.astype(np.int32), similarities.astype(np.float32))


def long_graph(n_documents, k, seed=0):
    """As `random_graph`, for many documents: neighbours may repeat."""
    rng = np.random.default_rng(seed)
    indices = (
        np.arange(n_documents)[:, None] + rng.integers(1, 60, (n_documents, k))
    ) % n_documents
    similarities = -np.sort(-rng.uniform(0.0, 1.0, (n_documents, k)), axis=1)
    return NeighborGraph(indices.astype(np.int32), similarities.astype(np.float32))


def random_labels(n_documents, n_topics, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(-12, n_topics, n_documents)
    return np.where(labels < -9, NOWHERE, np.maximum(labels, -1)).astype(np.int32)


def by_matrices(graph, labels, n_topics):
    """Return the shares of all topics as the harmonic solution, cut after 30 steps."""
    n_documents = len(labels)
    chances = np.zeros((n_documents, n_documents))
    weights = np.maximum(graph.similarities.astype(np.float64), 0.0)
    for row, (others, of_row) in enumerate(zip(graph.indices, weights, strict=True)):
        if of_row.sum() > 0:
            np.add.at(chances[row], others, of_row / of_row.sum())
    shares = np.zeros((n_documents, n_topics))
    shares[labels >= 0, labels[labels >= 0]] = 1.0
    passing = labels == -1
    for _ in range(STEPS - 1):
        shares[passing] = (chances @ shares)[passing]
    return chances @ shares


def spread(propagated, n_topics):
    """Return the shares as a dense array."""
    dense = np.zeros((len(propagated.topics), n_topics))
    rows, slots = np.nonzero(propagated.topics >= 0)
    dense[rows, propagated.topics[rows, slots]] = propagated.shares[rows, slots]
    return dense


@pytest.mark.parametrize(("n_topics", "k"), [(1, 1), (2, 3), (7, 10), (16, 15), (16, 2)])
def test_equals_the_harmonic_solution(n_topics, k):
    graph = random_graph(250, k, seed=k)
    labels = random_labels(250, n_topics, seed=n_topics)
    propagated = propagate_labels(graph, labels, n_topics)
    expected = by_matrices(graph, labels, n_topics)
    np.testing.assert_allclose(spread(propagated, n_topics), expected, atol=1e-5)
    np.testing.assert_allclose(propagated.none, 1.0 - expected.sum(axis=1), atol=1e-5)


def test_shares_descend_and_unused_slots_are_marked():
    propagated = propagate_labels(random_graph(250, 15), random_labels(250, 12), 12)
    assert propagated.topics.shape == propagated.shares.shape == (250, SLOTS)
    assert (np.diff(propagated.shares, axis=1) <= 0).all()
    np.testing.assert_array_equal(propagated.topics >= 0, propagated.shares > 0)
    for topics in propagated.topics:
        found = topics[topics >= 0]
        assert len(set(found.tolist())) == len(found)


def test_a_hand_calculation():
    # 0 -- 1 -- 2 -- 3: topics at both ends; 4 leads to 1 and to where walks end without a topic.
    indices = np.array([[1, 2], [0, 2], [1, 3], [2, 1], [1, 5], [4, 3]], dtype=np.int32)
    similarities = np.array([[1, 0], [1, 1], [1, 1], [1, 0], [0.75, 0.25], [1, 1]], np.float32)
    labels = np.array([0, -1, -1, 1, -1, NOWHERE], dtype=np.int32)
    found = spread(propagate_labels(NeighborGraph(indices, similarities), labels, 2), 2)
    # Of a line with two inner places, each leads to its own end twice as often as to the other.
    third = 1 / 3
    expected = [
        [2 * third, third],  # the first step is always made, from a labelled document too
        [2 * third, third],
        [third, 2 * third],
        [third, 2 * third],
        [0.75 * 2 * third, 0.75 * third],
        [0.5 * 0.75 * 2 * third, 0.5 * 0.75 * third + 0.5],
    ]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_equal_shares_are_in_the_order_of_topics():
    indices = np.array([[3, 2, 1], [0, 2, 3], [0, 1, 3], [0, 1, 2]], dtype=np.int32)
    graph = NeighborGraph(indices, np.full((4, 3), 0.5, np.float32))
    propagated = propagate_labels(graph, np.array([-1, 2, 0, 1], dtype=np.int32), 3)
    assert propagated.topics[0, :4].tolist() == [0, 1, 2, -1]


def test_more_topics_than_slots_keep_the_largest_and_the_sum():
    n_topics = SLOTS + 9
    indices = (np.arange(n_topics + 1)[:, None] + np.arange(1, n_topics + 1)) % (n_topics + 1)
    graph = NeighborGraph(
        indices.astype(np.int32),
        np.tile(np.linspace(1.0, 0.5, n_topics), (n_topics + 1, 1)).astype(np.float32),
    )
    labels = np.append(np.arange(n_topics), -1).astype(np.int32)  # the last is in none
    propagated = propagate_labels(graph, labels, n_topics)
    # Its neighbours are the topics 0, 1, 2, ..., each a little farther away.
    expected = np.linspace(1.0, 0.5, n_topics)
    expected = expected[:SLOTS] / expected[:SLOTS].sum()
    assert propagated.topics[-1].tolist() == list(range(SLOTS))
    np.testing.assert_allclose(propagated.shares[-1], expected, atol=1e-6)
    np.testing.assert_allclose(propagated.none, 0.0, atol=1e-6)


def test_without_neighbors_or_topics_every_walk_is_lost():
    labels = np.array([0, -1, 1], dtype=np.int32)
    alone = NeighborGraph(np.empty((3, 0), np.int32), np.empty((3, 0), np.float32))
    assert (propagate_labels(alone, labels, 2).none == 1).all()
    assert (propagate_labels(random_graph(3, 2), np.full(3, -1, np.int32), 0).none == 1).all()


def test_shares_too_small_for_a_float_are_none():
    # All neighbours of document 0 but the last, where walks end, lead to the topic, each with
    # less than a float holds.
    indices = np.tile(np.arange(16, dtype=np.int32), (18, 1))
    indices[0] += 2
    similarities = np.full((18, 16), 0.5, dtype=np.float32)
    similarities[0, :-1] = 2e-45
    similarities[0, -1] = 1.0
    labels = np.full(18, -1, dtype=np.int32)
    labels[[1, 17]] = 0, NOWHERE
    propagated = propagate_labels(NeighborGraph(indices, similarities), labels, 1)
    assert (propagated.topics[0] == -1).all() and propagated.none[0] == 1
    assert (propagated.topics[1:17, 0] == 0).all() and (propagated.topics[:, 1:] == -1).all()


def test_same_bits_for_any_number_of_threads():
    graph = long_graph(9_000, 12)
    labels = random_labels(9_000, 40)
    found = list(with_threads(lambda: propagate_labels(graph, labels, 40)))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].topics, other.topics)
        np.testing.assert_array_equal(found[0].shares, other.shares)


def test_all_shares_are_exact_where_slots_are_too_few(kept_on_the_way):
    graph = random_graph(300, 15, seed=5, low=0.1)
    labels = random_labels(300, 60, seed=5)
    expected = by_matrices(graph, labels, 60)
    kept = np.sort(expected, axis=1)[:, -SLOTS:]
    kept *= (expected.sum(axis=1) / kept.sum(axis=1).clip(1e-30))[:, None]
    error = np.abs(propagate_labels(graph, labels, 60).shares - kept[:, ::-1]).max()
    assert error < 1e-5 if kept_on_the_way == "all shares" else 1e-4 < error < 0.2


@given(st.lists(st.sampled_from([(0.0, 1.0), (1.0, 0.0), (-0.0, 1.0), (0.5, 0.5)]), min_size=1))
def test_distinct_vectors_are_found(rows):
    vectors = np.array(rows, dtype=np.float32)
    unique = find_unique_vectors(vectors)
    assert np.array_equal(vectors[unique.first][unique.of_document], vectors)
    assert len(unique.first) == len(set(rows))
    assert unique.first.tolist() == sorted(rows.index(row) for row in set(rows))
    assert np.array_equal(unique.spread(unique.of(vectors)), vectors)


def test_a_copy_has_the_neighbours_of_its_vector():
    unique = find_unique_vectors(np.array([[1, 0], [1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32))
    graph = NeighborGraph(
        np.array([[2], [2], [1]], dtype=np.int32), np.array([[0.6], [0.8], [0.8]], np.float32)
    )
    spread = spread_graph(graph, unique)
    assert spread.indices.ravel().tolist() == [3, 3, 3, 2]
    assert np.allclose(spread.similarities.ravel(), [0.6, 0.6, 0.8, 0.8])


def test_cosines_of_zeros_and_centroids_of_no_topics():
    found = np.array([[0.0, 0], [2, 1], [0, 0]])
    np.testing.assert_allclose(cosines(found, np.array([[2.0, 0.0]])), [[0], [2 / 5**0.5], [0]])
    result = make_result(40, 0)
    shape = (0, result.embeddings.shape[1])
    assert row_centroids(result).shape == core_centroids(result).shape == shape


def assigned(graph, clusters, is_informative, weights, coverage="auto"):
    return assign_outliers(graph, ClusterCut(clusters, is_informative, None), weights, coverage)


def clustering(labels, n_topics):
    labels = np.asarray(labels, dtype=np.int32)
    probabilities = np.where(labels >= 0, 0.5, 0.0).astype(np.float32)
    return Clustering(labels, probabilities, np.linspace(0.9, 0.1, n_topics))


@st.composite
def problems(draw):
    """A graph, cores, which of them have a subject, and weights: all at random."""
    n = draw(st.integers(2, 30))
    k = draw(st.integers(0, 5))
    n_cores = draw(st.integers(0, 5))
    steps = draw(hnp.arrays(np.int64, (n, k), elements=st.integers(1, n - 1)))
    similarities = draw(
        hnp.arrays(
            np.float32, (n, k), elements=st.sampled_from(np.float32([-0.25, 0, 0.25, 0.5, 1]))
        )
    )
    indices = (np.arange(n)[:, None] + steps) % n
    labels = draw(hnp.arrays(np.int32, n, elements=st.integers(-1, n_cores - 1)))
    return (
        NeighborGraph(indices.astype(np.int32), -np.sort(-similarities, axis=1)),
        clustering(labels, n_cores),
        draw(hnp.arrays(np.bool_, n_cores)),
        draw(hnp.arrays(np.int64, n, elements=st.integers(1, 6))),
    )


def without_lonely(graph, cores, is_informative):
    """What is like no other document is in no core, and a core of such documents alone is none."""
    lonely = (graph.similarities <= 0).all(axis=1) & (graph.k > 0)
    is_left = [
        bool((of := cores.labels == core).any() <= (of & ~lonely).any())
        for core in range(len(is_informative))
    ]
    labels = np.where(lonely, NOISE, cores.labels)
    return clustering(labels, len(is_informative)), is_informative & np.array(is_left, dtype=bool)


coverages = st.one_of(st.just("auto"), st.sampled_from([0.0, 1.0]), st.floats(0, 1))


@settings(deadline=None, max_examples=300)
@given(problems(), coverages)
def test_laws(problem, coverage):
    graph, cores, is_informative, weights = problem
    joined = assigned(graph, cores, is_informative, weights, coverage)
    cores, is_informative = without_lonely(graph, cores, is_informative)
    if graph.k:
        assert (joined.clustering.labels[(graph.similarities <= 0).all(axis=1)] == NOISE).all()
    labels, reasons = joined.clustering.labels, joined.clustering.reasons
    n_topics = int(is_informative.sum())
    assert len(joined.clustering.persistence) == n_topics
    assert joined.memberships.shape == (len(labels), n_topics)

    in_core = np.append(is_informative, False)[cores.labels]
    # The cores with a subject stay as they are, under another number.
    pairs = set(zip(cores.labels[in_core].tolist(), labels[in_core].tolist(), strict=True))
    assert len({old for old, _ in pairs}) == len({new for _, new in pairs}) == len(pairs)
    assert all(new >= 0 for _, new in pairs)
    for old, new in pairs:
        assert joined.clustering.persistence[new] == cores.persistence[old]
    np.testing.assert_array_equal(joined.clustering.probabilities > 0, in_core)

    np.testing.assert_array_equal(reasons == Reason.IN_TOPIC, labels >= 0)
    np.testing.assert_array_equal(reasons == Reason.UNINFORMATIVE, (cores.labels >= 0) & ~in_core)

    sizes = np.bincount(labels[labels >= 0], weights[labels >= 0], minlength=n_topics)
    assert (np.diff(sizes) <= 0).all()

    shares = joined.memberships.toarray()
    assert (shares >= 0).all() and (shares.sum(axis=1) <= 1 + 1e-6).all()
    with_none = np.column_stack([shares, 1 - shares.sum(axis=1)])
    np.testing.assert_array_equal(with_none.argmax(axis=1), np.where(labels >= 0, labels, n_topics))


@settings(deadline=None, max_examples=300)
@given(problems(), st.floats(0, 1))
def test_the_wanted_coverage_is_met_within_a_document(problem, coverage):
    graph, cores, is_informative, weights = problem
    joined = assigned(graph, cores, is_informative, weights, coverage)
    cores, is_informative = without_lonely(graph, cores, is_informative)
    seeds = np.append(np.where(is_informative, np.cumsum(is_informative) - 1, NOWHERE), -1)
    seeds = seeds[cores.labels].astype(np.int32)
    leads = (propagate_labels(graph, seeds, int(is_informative.sum())).shares[:, 0] > 0) & (
        seeds == -1
    )
    inside = joined.clustering.labels >= 0
    new = inside & (seeds < 0)
    assert leads[new].all()
    wanted, covered = coverage * weights.sum(), weights[inside].sum()
    if new.any():  # without the heaviest that joined it were too little
        assert covered - weights[new].max() < wanted
    if (leads & ~inside).any():
        assert covered >= wanted - 1e-6


@settings(deadline=None, max_examples=100)
@given(problems())
def test_the_ends_of_the_scale(problem):
    graph, cores, is_informative, weights = problem
    cores, is_informative = without_lonely(graph, cores, is_informative)
    in_core = np.append(is_informative, False)[cores.labels]
    none = assigned(graph, cores, is_informative, weights, 0.0)
    np.testing.assert_array_equal(none.clustering.labels >= 0, in_core)
    everyone = assigned(graph, cores, is_informative, weights, 1.0)
    left = (cores.labels < 0) & (everyone.clustering.labels < 0)
    assert everyone.memberships[left].sum() == 0  # they lead to no topic at all
    assert everyone.min_margin == 0.0


@settings(deadline=None, max_examples=100)
@given(problems(), coverages, st.randoms(use_true_random=False))
def test_more_coverage_takes_in_more(problem, coverage, random):
    graph, cores, is_informative, weights = problem
    if coverage == "auto":
        return
    less = assigned(graph, cores, is_informative, weights, coverage * random.random())
    more = assigned(graph, cores, is_informative, weights, coverage)
    assert not ((less.clustering.labels >= 0) & (more.clustering.labels < 0)).any()
    assert less.min_margin >= more.min_margin


# Two cores of three documents each; then 6 to 11, whose neighbours are told below.
LABELS = [0, 0, 0, 1, 1, 1, -1, -1, -1, -1, -1, -1]
INDICES = np.array(
    [
        [1, 2, 1, 2], [0, 2, 0, 2], [0, 1, 0, 1],
        [4, 5, 4, 5], [3, 5, 3, 5], [3, 4, 3, 4],
        [0, 1, 3, 4],  # between both
        [0, 1, 2, 3],  # three to one: clearly the first
        [3, 4, 5, 3],  # the second alone
        [10, 11, 10, 11], [9, 11, 9, 11], [9, 10, 9, 10],  # of their own
    ],
    dtype=np.int32,
)  # fmt: skip


def join_twelve(coverage="auto", *, labels=LABELS, is_informative=(True, True), weights=None):
    graph = NeighborGraph(INDICES, np.full((12, 4), 0.5, np.float32))
    weights = np.ones(12, np.int64) if weights is None else weights
    is_informative = np.array(is_informative, dtype=bool)
    cores = clustering(labels, len(is_informative))
    return assigned(graph, cores, is_informative, weights, coverage)


def test_who_joins_by_hand():
    joined = join_twelve()
    found = joined.clustering
    assert found.labels.tolist() == [0, 0, 0, 1, 1, 1, -1, 0, 1, -1, -1, -1]
    assert found.reasons[6] == Reason.BETWEEN
    assert set(found.reasons[9:]) == {Reason.ISOLATED}
    assert joined.min_margin == MIN_MARGIN
    shares = joined.memberships.toarray()
    # Three fifths for the own label, the rest as the walks from the document end.
    np.testing.assert_allclose(shares[0], [1, 0], atol=1e-6)
    np.testing.assert_allclose(shares[6], [0.2, 0.2], atol=1e-6)
    np.testing.assert_allclose(shares[7], [0.6 + 0.4 * 0.75, 0.4 * 0.25], atol=1e-6)
    np.testing.assert_allclose(shares[9], [0, 0], atol=1e-6)


@pytest.mark.parametrize(
    ("coverage", "joining"),
    [(0.0, []), (0.5, []), (7 / 12, [8]), (0.6, [7, 8]), (9 / 12, [6, 7, 8]), (1.0, [6, 7, 8])],
)
def test_the_clearest_join_first(coverage, joining):
    inside = join_twelve(coverage).clustering.labels >= 0
    assert np.flatnonzero(inside[6:]).tolist() == [d - 6 for d in joining]


def test_of_equally_clear_ones_the_closer_join_first():
    # All of ten documents have neighbours in the one topic alone.
    indices = np.tile(np.array([0, 1], dtype=np.int32), (12, 1))
    indices[:2] = [[1, 2], [0, 2]]
    near = np.linspace(0.5, 0.9, 12, dtype=np.float32)
    graph = NeighborGraph(indices, np.column_stack([near, near]))
    cores = clustering([0, 0] + [-1] * 10, 1)
    joined = assigned(graph, cores, np.ones(1, bool), np.ones(12, np.int64), 0.5)
    assert np.flatnonzero(joined.clustering.labels == 0).tolist() == [0, 1, 8, 9, 10, 11]


def test_weights_count_for_coverage_and_for_the_order_of_topics():
    weights = np.ones(12, np.int64)
    weights[8] = 9  # joins the second core, which is then the larger
    joined = join_twelve(0.5, weights=weights)
    assert joined.clustering.labels.tolist() == [1, 1, 1, 0, 0, 0, -1, -1, 0, -1, -1, -1]
    np.testing.assert_array_equal(joined.clustering.persistence, [0.1, 0.9])


def test_a_core_without_subject_leads_nowhere():
    joined = join_twelve(is_informative=(False, True))
    found = joined.clustering
    assert found.labels.tolist() == [-1, -1, -1, 0, 0, 0, 0, -1, 0, -1, -1, -1]
    assert set(found.reasons[:3]) == {Reason.UNINFORMATIVE}
    assert found.reasons[7] == Reason.ISOLATED  # a quarter of its walks end in a topic
    assert joined.memberships.shape == (12, 1)
    np.testing.assert_array_equal(found.persistence, [0.1])


def test_a_far_document_joins_only_where_coverage_asks_for_it():
    n = 250
    indices = np.tile(np.array([0, 1], dtype=np.int32), (n, 1))
    indices[:2] = [[1, 2], [0, 2]]
    similarities = np.full((n, 2), 0.9, np.float32)
    similarities[-1] = 0.1
    graph, cores = NeighborGraph(indices, similarities), clustering([0, 0] + [-1] * (n - 2), 1)
    ones = np.ones(n, np.int64)
    auto, all_in = (assigned(graph, cores, np.ones(1, bool), ones, c) for c in ("auto", 1.0))
    assert auto.clustering.labels[-1] == -1 and (auto.clustering.labels[:-1] == 0).all()
    assert auto.clustering.reasons[-1] == Reason.ISOLATED
    assert (all_in.clustering.labels == 0).all()


def test_clearness_by_hand():
    best = np.array([0.6, 0.5, 0.3, 0.0, 1.0, 0.2], dtype=np.float32)
    second = np.array([0.3, 0.5, 0.1, 0.0, 0.0, 0.0], dtype=np.float32)
    none = np.array([0.1, 0.0, 0.6, 1.0, 0.0, 0.8], dtype=np.float32)
    # 2 topics; alike; a third of none is 0.2; no topic; one topic alone; 0.2 over 0.8 / 3.
    expected = [2.0, 1.0, 1.5, 0.0, LARGEST_MARGIN, 0.75]
    np.testing.assert_allclose(margin(best, second, none), expected, rtol=1e-6)


def test_closeness_and_rank_by_hand():
    similarities = np.array([[0.9, 0.7], [0.5, 0.5], [0.5, 0.1], [0.5, 0.1]], dtype=np.float32)
    near = closeness(similarities)
    np.testing.assert_allclose(near, [0.8, 0.5, 0.3, 0.3], rtol=1e-6)
    # Shares of the four that are closer: none, one, two, two; then of texts from outside.
    np.testing.assert_array_equal(rank(near, near), [0, 0.25, 0.5, 0.5])
    np.testing.assert_array_equal(rank(near, np.array([0.99, 0.6, 0.1])), [0, 0.25, 1.0])
    np.testing.assert_array_equal(closeness(np.empty((3, 0), np.float32)), [1, 1, 1])
    assert rank(near, near).max() <= FAR


def test_vote_by_hand():
    labels = np.array([0, 0, 1, -1], dtype=np.int32)
    indices = np.array([[0, 1, 2], [2, 3, 0], [3, 3, 3]], dtype=np.int32)
    similarities = np.array([[0.5, 0.3, 0.2], [0.4, 0.6, -0.5], [0.5, 0.5, 0.5]], np.float32)
    shares = vote(indices, similarities, labels, 2).toarray()
    np.testing.assert_allclose(shares, [[0.8, 0.2], [0.0, 0.4], [0, 0]], atol=1e-6)


def queries_of(vectors, n, seed, spread=0.1):
    """Return new texts with vectors near those of a fit."""
    rng = np.random.default_rng(seed)
    near = vectors[rng.integers(0, len(vectors), n)]
    return [f"new text {seed} {i}" for i in range(n)], near + spread * rng.normal(size=near.shape)


def readings(result):
    """The result itself, and at other resolutions and coverages."""
    yield result
    for n_topics in (2, 5, "fine"):
        yield recluster(result, n_topics)
    for coverage in (0.0, 0.8, 1.0):
        yield recluster(result, 8, coverage=coverage)


def test_many_queries_are_answered_block_by_block(branched, branches, monkeypatch):
    _, vectors = branches
    names, queries = queries_of(vectors, 50, seed=2)
    at_once = assign(branched, names, embeddings=queries)
    monkeypatch.setattr(sys.modules["embedtopics.topics._propagation"], "QUERIES_AT_ONCE", 7)
    in_blocks = assign(branched, names, embeddings=queries)
    np.testing.assert_array_equal(at_once.labels, in_blocks.labels)
    np.testing.assert_array_equal(at_once.memberships.toarray(), in_blocks.memberships.toarray())


@pytest.mark.parametrize("is_extended", [False, True])
def test_of_many_documents_those_near_are_searched_and_give_the_same(
    branched, branches, monkeypatch, is_extended
):
    names, queries = queries_of(branches[1], 200, seed=5, spread=0.2)
    result = branched
    if is_extended:  # what was added does not count
        result = extend(branched, *queries_of(branches[1], 40, seed=6)[:1],
                        embeddings=queries_of(branches[1], 40, seed=6)[1]).result  # fmt: skip
    exact = assign(result, names, embeddings=queries)
    monkeypatch.setattr(sys.modules["embedtopics.topics._propagation"], "EXACT_LIMIT", 100)
    found = assign(result, names, embeddings=queries)
    assert (found.labels == exact.labels).mean() > 0.97
    assert abs(found.memberships - exact.memberships).max(axis=1).toarray().mean() < 0.02


def test_shares_of_new_texts_are_those_of_their_neighbors(branched, branches):
    _, vectors = branches
    names, queries = queries_of(vectors, 80, seed=3, spread=0.25)
    for result in readings(branched):
        found = assign(result, names, embeddings=queries)
        shares = found.memberships.toarray()
        assert shares.shape == (80, result.n_topics) and (shares >= 0).all()
        assert (shares.sum(axis=1) <= 1 + 1e-6).all()
        unit = queries / np.linalg.norm(queries, axis=1, keepdims=True)
        similarities = unit @ result.embeddings.T.astype(np.float64)
        k, labels = result.graph.k, result.clustering.labels
        for row in range(80):
            near = np.argsort(-similarities[row])[:k]
            weights = np.maximum(similarities[row, near], 0)
            expected = np.zeros(result.n_topics + 1)
            np.add.at(expected, labels[near], weights / weights.sum())  # the last is none
            np.testing.assert_allclose(shares[row], expected[:-1], atol=1e-5)
            np.testing.assert_allclose(1 - shares[row].sum(), expected[-1], atol=1e-5)


def test_labels_of_new_texts_follow_from_shares_and_novelty(branched, branches):
    _, vectors = branches
    names, queries = queries_of(vectors, 200, seed=4, spread=0.3)
    for result in readings(branched):
        found = assign(result, names, embeddings=queries)
        shares = np.column_stack([found.memberships.toarray(), np.zeros((200, 2))])
        best, second = -np.sort(-shares, axis=1)[:, :2].T
        ratios = margin(best, second, np.clip(1 - shares.sum(axis=1), 0, 1))
        sure = (ratios >= result.settings["min_margin"]) & (found.novelty <= FAR) & (best > 0)
        np.testing.assert_array_equal(found.labels, np.where(sure, shares.argmax(axis=1), -1))


def test_novelty_is_calibrated_on_the_fit(branched, branches):
    texts, vectors = branches
    found = assign(branched, texts)
    has = branched.distinct
    # Each document once: half of them are closer to their neighbours than the middle one.
    of_documents = found.novelty[has.first_rows]
    assert np.median(of_documents) == pytest.approx(0.5, abs=0.01)
    assert of_documents.min() == 0.0 and of_documents.max() < 1.0
    names, queries = queries_of(vectors, 100, seed=5, spread=0.6)
    assert np.median(assign(branched, names, embeddings=queries).novelty) > 0.9


def test_empty_texts_have_no_topic_and_no_novelty(branched, branches):
    texts, vectors = branches
    queries = ["", texts[0], None, "a new text"]
    given = np.vstack([np.zeros(24), vectors[0], np.full(24, np.nan), vectors[1]])
    found = assign(branched, queries, embeddings=given)
    np.testing.assert_array_equal(np.isnan(found.novelty), [True, False, True, False])
    assert found.labels[[0, 2]].tolist() == [-1, -1]
    assert found.memberships.shape == (4, branched.n_topics)
    assert found.memberships.toarray()[[0, 2]].sum() == 0
