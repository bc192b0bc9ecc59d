from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness
from threadpoolctl import threadpool_limits

from embedtopics.neighbors._graph import build_graph, unit_rows
from embedtopics.reduction._components import first_components, principal_start
from embedtopics.reduction._fuzzy import fuzzy_graph
from embedtopics.reduction._layout import curve_parameters, edge_schedule, layout
from tests.factories import with_threads


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(1)
    centers = rng.normal(size=(8, 20))
    themes = np.repeat(np.arange(8), 60)
    embeddings = unit_rows(centers[themes] + 0.5 * rng.normal(size=(480, 20)))
    return embeddings, fuzzy_graph(build_graph(embeddings)), themes


def test_keeps_neighborhoods(blobs):
    embeddings, fuzzy, themes = blobs
    positions = layout(fuzzy, principal_start(embeddings, 2), min_dist=0.1)
    assert trustworthiness(embeddings, positions, n_neighbors=15, metric="cosine") > 0.9
    centers = np.array([positions[themes == t].mean(axis=0) for t in range(8)])
    nearest_center = np.linalg.norm(positions[:, None] - centers, axis=2).argmin(axis=1)
    assert (nearest_center == themes).mean() > 0.98


@pytest.mark.slow
def test_as_trustworthy_as_umap_learn(blobs):
    import warnings

    embeddings, fuzzy, _ = blobs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # umap-learn warns of threads and an optional package
        import umap

        theirs = umap.UMAP(metric="cosine", random_state=0).fit_transform(embeddings)
    ours = layout(fuzzy, principal_start(embeddings, 2), min_dist=0.1)
    options = {"n_neighbors": 15, "metric": "cosine"}
    score = trustworthiness(embeddings, ours, **options)
    assert score > trustworthiness(embeddings, theirs, **options) - 0.02


def test_same_bits_for_any_number_of_threads(blobs, monkeypatch):
    monkeypatch.setattr(sys.modules["embedtopics.reduction._layout"], "ENOUGH_FOR_THREADS", 0)
    embeddings, fuzzy, _ = blobs
    start = principal_start(embeddings, 5)
    positions = list(with_threads(lambda: layout(fuzzy, start, n_epochs=8, seed=3)))
    for other in positions[1:]:
        np.testing.assert_array_equal(positions[0], other)


def test_seed_matters_and_start_is_left_alone(blobs):
    embeddings, fuzzy, _ = blobs
    start = principal_start(embeddings, 2)
    kept = start.copy()
    one, two = (layout(fuzzy, start, n_epochs=20, seed=s) for s in (1, 2))
    assert not np.array_equal(one, two)
    np.testing.assert_array_equal(start, kept)


def test_a_linked_pair_moves_together_and_strangers_apart():
    from scipy.sparse import csr_matrix

    fuzzy = csr_matrix(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], np.float32))
    start = np.array([[0, 0], [6, 0], [3, 0.5]], np.float32)
    end = layout(fuzzy, start, min_dist=0.1, n_epochs=200)
    assert np.linalg.norm(end[0] - end[1]) < 2.0
    assert np.isfinite(end).all()


@pytest.mark.parametrize("seed", range(4))
def test_close_groups_do_not_run_off_the_map(seed):
    # Many tight triples: pulls that are not mutual would let each run in one direction for ever.
    rng = np.random.default_rng(seed)
    triples = np.repeat(rng.normal(size=(150, 12)), 3, axis=0)
    embeddings = unit_rows(triples + 1e-3 * rng.normal(size=(450, 12)))
    fuzzy = fuzzy_graph(build_graph(embeddings))
    positions = layout(fuzzy, principal_start(embeddings, 2), min_dist=0.1, seed=seed)
    assert np.ptp(positions, axis=0).max() < 40


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_documents(n):
    embeddings = unit_rows(np.random.default_rng(0).normal(size=(n, 4)))
    start = principal_start(embeddings, 5)
    positions = layout(fuzzy_graph(build_graph(embeddings)), start)
    assert positions.shape == (n, 5) and np.isfinite(positions).all()


@pytest.mark.parametrize("n_components", [1, 2, 3, 5, 6])
def test_any_number_of_components_and_of_documents(n_components):
    # 300 documents are no whole number of those that are moved together.
    embeddings = unit_rows(np.random.default_rng(0).normal(size=(300, 8)))
    fuzzy = fuzzy_graph(build_graph(embeddings))
    positions = layout(fuzzy, principal_start(embeddings, n_components), n_epochs=30)
    assert positions.shape == (300, n_components) and np.isfinite(positions).all()
    nearest_neighbors = trustworthiness(embeddings, positions, n_neighbors=5)
    assert nearest_neighbors > (0.55 if n_components == 1 else 0.7)


def test_documents_that_start_in_one_place_stay_finite():
    fuzzy = fuzzy_graph(build_graph(unit_rows(np.random.default_rng(0).normal(size=(50, 4)))))
    assert np.isfinite(layout(fuzzy, np.zeros((50, 2), np.float32), n_epochs=20)).all()


def test_edges_pull_as_often_as_their_weights_say_and_at_both_ends_at_once(blobs):
    from embedtopics.reduction._kernels import CYCLE, SUB_STEPS

    _, fuzzy, _ = blobs
    schedule = edge_schedule(fuzzy, seed=3)
    n_documents = fuzzy.shape[0]
    times = np.zeros(fuzzy.shape)
    for step in range(CYCLE * SUB_STEPS):
        first = schedule.starts[step, 0]
        pulled = np.repeat(np.arange(n_documents), schedule.counts[step])
        pulling = schedule.pulling[first : first + len(pulled)]
        of_step = np.zeros(fuzzy.shape)
        np.add.at(of_step, (schedule.order[pulled], schedule.order[pulling]), 1)
        np.testing.assert_array_equal(of_step, of_step.T)
        times += of_step
    # Twice an epoch, for each edge has two directions; the rest is rounded up or down at random.
    wanted = CYCLE * 2 * fuzzy.toarray() / fuzzy.data.max()
    assert np.abs(times - wanted).max() < 1
    assert times.sum() == pytest.approx(wanted.sum(), rel=0.02)


def test_documents_of_several_chunks_have_their_own_pulls():
    from embedtopics.reduction._kernels import ROWS_AT_ONCE

    embeddings = unit_rows(np.random.default_rng(0).normal(size=(2 * ROWS_AT_ONCE + 30, 6)))
    schedule = edge_schedule(fuzzy_graph(build_graph(embeddings)))
    sums = np.add.reduceat(schedule.counts, [0, ROWS_AT_ONCE, 2 * ROWS_AT_ONCE], axis=1)
    in_order = np.concatenate([[0], np.cumsum(sums.ravel())])
    np.testing.assert_array_equal(schedule.starts.ravel(), in_order[:-1])
    assert len(schedule.pulling) == in_order[-1]


def test_forces_equal_the_formulas():
    from embedtopics.reduction._kernels import _look_up
    from embedtopics.reduction._layout import force_tables

    a, b = curve_parameters(0.1)
    pulls, pushes = force_tables(a, b)
    for squared in np.float32([1e-12, 3e-4, 0.1, 1.0, 2.5, 77.7, 1e6]):
        power = float(squared) ** b
        pull = -2 * a * b * power / (squared * (1 + a * power))
        push = 2 * b / ((0.001 + squared) * (1 + a * power))
        assert _look_up.py_func(pulls, squared) == pytest.approx(pull, rel=2e-3)
        assert _look_up.py_func(pushes, squared) == pytest.approx(push, rel=2e-3)


def test_curve_equals_umap_learns_published_values():
    # The values that umap-learn's documentation gives for min_dist = 0.1, spread = 1.
    a, b = curve_parameters(0.1)
    assert (a, b) == (pytest.approx(1.5769, abs=1e-3), pytest.approx(0.8951, abs=1e-3))


def test_start_is_the_same_for_any_number_of_threads():
    embeddings = unit_rows(np.random.default_rng(0).normal(size=(3000, 96)))
    starts = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            starts.append(principal_start(embeddings, 5))
    np.testing.assert_array_equal(*starts)


def test_one_schedule_serves_several_layouts(blobs):
    embeddings, fuzzy, _ = blobs
    start = principal_start(embeddings, 5)
    schedule = edge_schedule(fuzzy, seed=3, n_epochs=40)
    for n_components in (5, 2):
        part = first_components(start, n_components)
        np.testing.assert_array_equal(
            layout(schedule, part, n_epochs=40), layout(fuzzy, part, n_epochs=40, seed=3)
        )


def test_the_first_components_are_those_of_the_larger_start(blobs):
    embeddings, _, _ = blobs
    of_five = first_components(principal_start(embeddings, 5), 2)
    np.testing.assert_allclose(of_five, principal_start(embeddings, 2), rtol=1e-5, atol=1e-5)


def test_a_layout_that_nobody_wants_ends_before_its_time(blobs):
    embeddings, fuzzy, _ = blobs
    asked = []

    def stop():
        asked.append(1)
        return len(asked) > 2

    start = principal_start(embeddings, 2)
    layout(fuzzy, start, n_epochs=10**9, stop=stop)
    assert len(asked) == 3


def test_a_layout_goes_on_where_another_ended(blobs):
    graph, start = fuzzy_graph(build_graph(blobs[0], 10)), principal_start(blobs[0], 2)
    steps = iter([False] * 5 + [True])
    begun = layout(graph, start, n_epochs=60, stop=lambda: next(steps))  # five steps of 4 epochs
    whole = layout(graph, start, n_epochs=60)
    assert not np.array_equal(begun, whole)
    np.testing.assert_array_equal(layout(graph, begun, n_epochs=60, first_epoch=20), whole)
    np.testing.assert_array_equal(layout(graph, start, n_epochs=60, first_epoch=60), start)


def test_start_in_many_dimensions_is_that_of_principal_components():
    rng = np.random.default_rng(3)
    strong = rng.normal(size=(120, 4)) * [9.0, 6.0, 4.0, 2.5]
    wide = (strong @ rng.normal(size=(4, 2500)) / 50 + 0.01 * rng.normal(size=(120, 2500))) + 0.3
    start = principal_start(wide.astype(np.float32), 4)
    expected = PCA(4, svd_solver="full").fit_transform(wide)
    expected *= 10 / np.abs(expected).max()
    np.testing.assert_allclose(np.abs(start), np.abs(expected), atol=1e-3)
    with threadpool_limits(limits=1):
        assert (principal_start(wide.astype(np.float32), 4) == start).all()
    assert principal_start(wide[:3].astype(np.float32), 5).shape == (3, 5)
