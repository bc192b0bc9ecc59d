import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from embedtopics.clustering.results import NOISE, Clustering
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.topics._clusters import ClusterCut
from embedtopics.topics._propagation import (
    FAR,
    LARGEST_MARGIN,
    MIN_MARGIN,
    NOWHERE,
    assign_outliers,
    closeness,
    margin,
    propagate_labels,
    rank,
    vote,
)
from embedtopics.topics.results import Reason


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
