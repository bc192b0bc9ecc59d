import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

import embedtopics as et
from benchmarks.topic_stability import cold_refits, structureless
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import build_graph, unit_rows
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.topics import recluster, with_stability
from embedtopics.topics._resolution import (
    NOT_DRAWN,
    _induced,
    _interval,
    _widened,
    adjusted_rand,
    compare,
    recipe_of,
    replicate,
)
from tests.factories import with_threads

NEAR = 0.05
"""How far the figures may be from those of cold refits."""


@pytest.fixture(scope="module")
def measured(branched):
    return with_stability(branched, 8, random_state=3).stability


@pytest.fixture(scope="module")
def uneven():
    """Eight blobs of which some overlap, so that some topics come back and some do not."""
    rng = np.random.default_rng(5)
    centers = rng.normal(size=(8, 16))
    centers[1] = centers[0] + 0.35 * rng.normal(size=16)
    centers[3] = centers[2] + 0.25 * rng.normal(size=16)
    of_text = rng.integers(0, 8, 1200)
    vectors = centers[of_text] + 0.5 * rng.normal(size=(1200, 16))
    texts = [f"theme{blob} word{blob} text{i}" for i, blob in enumerate(of_text.tolist())]
    model = et.TopicModel(n_topics=8, languages=["en"])
    return model.fit(texts, embeddings=vectors).result_, texts, vectors


def labels_of(*values):
    return np.array(values, dtype=np.int32)


def means(found):
    return np.array(
        [found.recurrence.mean(), found.adjusted_rand.mean(), np.nanmean(found.agreement)]
    )


def same(one, other):
    for field in dataclasses.fields(one):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))


def test_figures_by_hand():
    labels = labels_of(0, 0, 0, 0, 1, 1, 1, -1, -1, 1)
    replicates = [
        labels_of(1, 1, 1, -2, 0, 0, -1, -1, 0, -2),
        labels_of(0, 0, -2, 1, 1, 1, -2, -1, -2, -2),
    ]
    found = compare(labels, replicates, np.ones(10, dtype=np.int64))
    # Topic 0: three of three, then two of three. Topic 1: two of four, then two of three.
    np.testing.assert_allclose(found.recurrence, [(1 + 2 / 3) / 2, (2 / 4 + 2 / 3) / 2])
    np.testing.assert_allclose(found.low, [2 / 3, 1 / 2])
    np.testing.assert_allclose(found.high, [1, 2 / 3])
    np.testing.assert_array_equal(found.agreement, np.float32([1, 1, 1, 0, 1, 1, 0, 1, 0, np.nan]))
    assert found.n_replicates == 2
    # Both hold documents 0, 1, 4, 5 and 7, of which the last is in no topic in either; the others
    # are divided alike.
    assert found.adjusted_rand.tolist() == [1.0]


def test_adjusted_rand_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    for high, other_high in ((0, 0), (0, 3), (4, 1), (9, 9), (200, 200)):
        one = rng.integers(0, high + 1, 150).astype(np.int32)
        other = np.where(rng.random(150) < 0.5, np.minimum(one, other_high), other_high)
        expected = adjusted_rand_score(one, other)
        assert adjusted_rand(one, other.astype(np.int32)) == pytest.approx(expected)
    assert adjusted_rand(labels_of(0), labels_of(5)) == 1.0


def test_rows_that_share_a_text_count():
    labels, found = labels_of(0, 0, 0), labels_of(0, 0, -1)
    assert compare(labels, [found], np.array([1, 2, 5])).recurrence.tolist() == [3 / 8]


def test_nothing_found_is_nothing_come_back():
    labels, none = labels_of(0, 0, 1, -1), labels_of(-1, -1, -1, -1)
    found = compare(labels, [none, none], np.ones(4, dtype=np.int64))
    assert found.recurrence.tolist() == [0.0, 0.0]
    assert found.adjusted_rand.tolist() == [0.0]
    assert found.agreement.tolist() == [0.0, 0.0, 0.0, 1.0]


def test_a_topic_that_no_replicate_holds_is_unknown():
    labels = labels_of(0, 0, 1)
    replicates = [labels_of(0, -2, -2), labels_of(-2, 0, -2)]
    found = compare(labels, replicates, np.ones(3, dtype=np.int64))
    np.testing.assert_array_equal(found.recurrence, [1.0, np.nan])
    np.testing.assert_array_equal([found.low, found.high], [[1.0, np.nan]] * 2)
    np.testing.assert_array_equal(found.adjusted_rand, [0.0])  # they share no document


def test_nine_in_ten_fall_into_the_interval():
    values = np.random.default_rng(0).random((21, 2000))
    low, high = _interval(values[:-1])
    assert 0.88 <= np.mean((low <= values[-1]) & (values[-1] <= high)) <= 0.92


@st.composite
def labellings(draw):
    """Topics of a whole and of replicates, all at random, and weights."""
    n = draw(st.integers(1, 25))
    whole = draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n))
    replicates = draw(
        st.lists(st.lists(st.integers(-2, 3), min_size=n, max_size=n), min_size=1, max_size=4)
    )
    weights = draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))
    return labels_of(*whole), [labels_of(*one) for one in replicates], np.array(weights)


@settings(deadline=None)
@given(labellings())
def test_figures_are_shares_and_order_does_not_matter(problem):
    labels, replicates, weights = problem
    found = compare(labels, replicates, weights)
    for values in (found.recurrence, found.low, found.high, found.agreement, found.chance):
        known = values[~np.isnan(values)]
        assert ((known >= 0) & (known <= 1)).all()
    known = ~np.isnan(found.recurrence)
    assert (found.low[known] <= found.recurrence[known] + 1e-12).all()
    assert (found.recurrence[known] <= found.high[known] + 1e-12).all()
    turned = compare(labels[::-1], [one[::-1] for one in replicates], weights[::-1])
    np.testing.assert_array_equal(turned.recurrence, found.recurrence)
    np.testing.assert_allclose(turned.adjusted_rand, found.adjusted_rand, atol=1e-12)


@settings(deadline=None)
@given(labellings())
def test_what_comes_back_wholly_has_one_everywhere(problem):
    labels, _, weights = problem
    found = compare(labels, [labels, labels], weights)
    present = np.isin(np.arange(len(found.recurrence)), labels)
    assert (found.recurrence[present] == 1).all()
    assert (found.agreement == 1).all()
    assert found.adjusted_rand.tolist() == [1.0 if (labels >= 0).any() else 0.0]


def test_clear_topics_come_back(branched, measured):
    assert len(measured.recurrence) == len(measured.low) == branched.n_topics
    assert measured.recurrence.min() > 0.6
    assert (measured.chance < 0.2).all()
    assert np.nanmean(measured.agreement) > 0.8
    assert len(measured.adjusted_rand) == 8 * 7 // 2
    assert measured.adjusted_rand.mean() > 0.7


def test_replicates_hold_half_and_differ(branched):
    recipe = recipe_of(branched)
    one, other = (replicate(recipe, np.random.default_rng(seed)) for seed in (0, 1))
    n_documents = len(branched.distinct)
    for labels in (one, other):
        assert (labels != NOT_DRAWN).sum() == round(n_documents / 2)
        assert labels.max() >= 1
    both = (one != NOT_DRAWN) & (other != NOT_DRAWN)
    assert abs(both.mean() - 1 / 4) < 0.06


def test_the_seed_decides(branched, measured):
    same(with_stability(branched, 8, random_state=3).stability, measured)
    other = with_stability(branched, 8, random_state=4).stability
    assert (other.recurrence != measured.recurrence).any()
    assert (
        with_stability(branched, 2, random_state=np.random.default_rng(0)).stability.low <= 1
    ).all()


def test_threads_do_not_matter(branched, measured):
    for found in with_threads(lambda: with_stability(branched, 8, random_state=3).stability):
        same(found, measured)


def test_a_number_of_topics_is_met_in_every_replicate(branched):
    recipe = recipe_of(recluster(branched, 4))
    for seed in range(4):
        assert replicate(recipe, np.random.default_rng(seed)).max() == 3


def test_coverage_is_that_of_the_result(uneven):
    shares = []
    for coverage in (0.0, 0.9, 1.0):
        recipe = recipe_of(recluster(uneven[0], coverage=coverage))
        labels = replicate(recipe, np.random.default_rng(0))
        shares.append(np.mean(labels[labels != NOT_DRAWN] >= 0))
    assert shares[0] < shares[1] == pytest.approx(0.9, abs=0.01)
    assert shares[2] == 1.0


def test_neighbors_in_a_half_are_its_nearest():
    rng = np.random.default_rng(0)
    vectors = unit_rows(rng.normal(size=(600, 6)))
    lists = _widened(build_graph(vectors, 10), vectors, 34)
    assert lists.k == 34
    held = np.sort(rng.choice(600, 300, replace=False))
    found = _induced(lists, held, vectors[held], 10)
    true = build_graph(vectors[held], 10)
    assert (found.indices != np.arange(300)[:, None]).all()
    assert found.indices.min() >= 0
    assert (np.diff(found.similarities, axis=1) <= 0).all()
    exact = np.einsum("id,ikd->ik", vectors[held], vectors[held][found.indices])
    np.testing.assert_allclose(found.similarities, exact, atol=1e-6)
    assert (found.similarities >= true.similarities[:, -1:]).mean() > 0.93


def test_short_lists_are_filled_by_search():
    vectors = unit_rows(np.random.default_rng(0).normal(size=(40, 5)))
    nobody = NeighborGraph(np.full((40, 6), -1, np.int32), np.full((40, 6), -np.inf, np.float32))
    held = np.arange(0, 40, 2)
    found = _induced(nobody, held, vectors[held], 4)
    true = build_graph(vectors[held], 4)
    np.testing.assert_array_equal(found.indices, true.indices)
    np.testing.assert_array_equal(found.similarities, true.similarities)


@pytest.mark.parametrize("n_documents", [2, 3, 5, 12, 25])
def test_few_documents(n_documents):
    rng = np.random.default_rng(n_documents)
    texts = [f"word{i} other{i % 3}" for i in range(n_documents)]
    result = et.TopicModel(languages=[]).fit(texts, embeddings=rng.normal(size=(n_documents, 4)))
    found = with_stability(result.result_, 3).stability
    assert len(found.agreement) == n_documents
    assert len(found.recurrence) == result.result_.n_topics


def test_other_stages_cannot_be_repeated(toy):
    texts, vectors, _ = toy
    for stages in ({"clusterer": KMeans(3, n_init=1, random_state=0)}, {"reducer": PCA(2)}):
        model = et.TopicModel(languages=["en"], **stages).fit(texts, embeddings=vectors)
        with pytest.raises(InputError):
            with_stability(model.result_)
    alone = et.TopicModel(languages=["en"]).fit(["one text"], embeddings=[[1.0, 0.0]])
    with pytest.raises(InputError):
        with_stability(alone.result_)


@pytest.mark.slow
def test_figures_are_those_of_cold_refits(uneven):
    result, texts, vectors = uneven
    # The means of twenty of either vary by some 0.02.
    found = with_stability(result, 40, random_state=0).stability
    refits = cold_refits(result, texts, vectors, range(40))
    cold = compare(result.clustering.labels, refits, result.distinct.weights)
    assert 0.3 < found.recurrence.mean() < 0.95  # topics that all come back would show little
    np.testing.assert_allclose(means(found), means(cold), atol=NEAR)


@pytest.mark.parametrize("n_topics", ["auto", "fine"])
def test_without_structure_nothing_comes_back(n_topics):
    data = structureless(800, 384)
    model = et.TopicModel(n_topics=n_topics, languages=[])
    result = model.fit(data.texts, embeddings=data.embeddings).result_
    assert result.n_topics >= 2
    found = with_stability(result, 10).stability
    assert abs(found.adjusted_rand.mean()) < NEAR
    assert abs((found.recurrence - found.chance).mean()) < 0.1
