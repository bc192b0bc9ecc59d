import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.spatial import procrustes

from embedtopics.comparison._maps import align_maps, displacement, draw_maps, fit_similarity, narrow
from embedtopics.comparison._vectors import Vectors, neighbor_graph
from embedtopics.neighbors._graph import build_sparse_graph, unit_rows
from embedtopics.reduction._components import principal_start
from embedtopics.reduction._fuzzy import fuzzy_graph, positive_edges
from embedtopics.reduction._layout import edge_schedule, layout


def blobs(n=300, d=20, seed=0):
    rng = np.random.default_rng(seed)
    member = rng.integers(0, 8, n)
    return unit_rows(rng.normal(size=(8, d))[member] + 0.25 * rng.normal(size=(n, d))), member


def encoder(name, rows):
    rows = rows if isinstance(rows, np.ndarray) else csr_matrix(rows, dtype=np.float32)
    known = np.asarray((abs(rows)).sum(axis=1)).ravel() > 0
    return Vectors(name, rows, known, 0.0, {})


def drawn(*all_rows):
    encoders = [encoder(str(i), rows) for i, rows in enumerate(all_rows)]
    edges = [positive_edges(neighbor_graph([], made, 10, 0)) for made in encoders]
    return draw_maps(encoders, edges, 0), edges


def unaligned(rows, edges):
    return layout(edge_schedule(edges), principal_start(rows, 2), min_dist=0.1)


def surface(n=300, d=20, seed=0):
    """Return vectors on a bent sheet: unlike blobs, it has one map alone."""
    rng = np.random.default_rng(seed)
    u, v = rng.random((2, n))
    bent = np.column_stack([np.cos(2 * u), np.sin(2 * u), 0.8 * np.cos(v), 0.8 * np.sin(v)])
    return unit_rows(bent @ rng.normal(size=(4, d)))


@pytest.mark.parametrize(("make", "most"), [(surface, 0.04), (lambda: blobs()[0], 0.12)])
def test_encoders_that_are_equal_up_to_a_turn_give_the_same_map(make, most):
    rows = make()
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(20, 20)))[0]
    turned = unit_rows(rows @ turn)
    (first, second), edges = drawn(rows, turned)
    apart = displacement(unaligned(rows, edges[0]), unaligned(turned, edges[1])).mean()
    assert displacement(first, second).mean() < min(most, apart / 5)


def test_the_rest_stays_where_a_part_moved():
    rows, member = blobs()
    rng = np.random.default_rng(4)
    moved = np.sort(rng.permutation(300)[:40])
    stayed = np.setdiff1d(np.arange(300), moved)
    other = rows.copy()
    for document in moved:  # each takes the place of a document in another group
        strangers = stayed[member[stayed] != member[document]]
        other[document] = rows[rng.choice(strangers)] + 0.02 * rng.normal(size=20)
    (first, second), _ = drawn(rows, unit_rows(other))
    apart = displacement(first, second)
    assert np.median(apart[stayed]) < 0.15
    assert np.median(apart[moved]) > 5 * np.median(apart[stayed])


def test_a_document_without_neighbours_has_no_edges_and_a_place():
    rows, _ = blobs(120)
    words = csr_matrix(np.abs(rows) * (np.abs(rows) > 0.2))
    words = csr_matrix(words.multiply(1 / np.sqrt(words.multiply(words).sum(axis=1))))
    words = words.tolil()
    words[5] = 0
    words = csr_matrix(words, dtype=np.float32)
    maps, edges = drawn(rows, words)
    assert edges[1][5].nnz == 0 and edges[1][:, 5].nnz == 0
    assert np.isfinite(maps[1]).all()
    # It is where the other encoder puts it, not in a corner.
    assert displacement(*maps)[5] < 0.6


def test_edges_with_nothing_in_common_are_none():
    # Three pairs of documents without a word in common: two of each three neighbours are filled in.
    pairs = csr_matrix(np.repeat(np.eye(3, dtype=np.float32), 2, axis=0))
    edges = positive_edges(build_sparse_graph(pairs, 3)).toarray()
    np.testing.assert_array_equal(edges > 0, np.kron(np.eye(3), 1 - np.eye(2)) > 0)
    # Real neighbours keep their weights.
    rows, _ = blobs(100)
    graph = neighbor_graph([], encoder("all", rows), 6, 0)
    assert (positive_edges(graph) != fuzzy_graph(graph)).nnz == 0


def test_sparse_vectors_are_narrowed_to_their_leading_directions():
    rng = np.random.default_rng(0)
    low = rng.normal(size=(200, 5)) @ rng.normal(size=(5, 60))
    exact = np.linalg.svd(low)[1][:5]
    found = np.linalg.svd(narrow(csr_matrix(low.astype(np.float32)), 0).astype(float))[1]
    np.testing.assert_allclose(found[:5], exact, rtol=1e-3)
    assert found[5:].max() < 1e-2 * exact[4]


def similar(positions, angle, scale=1.0, shift=(0.0, 0.0), mirrored=False):
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    if mirrored:
        turn = turn @ np.diag([1.0, -1.0])
    return scale * positions @ turn + shift


@pytest.fixture
def positions():
    rng = np.random.default_rng(0)
    return rng.normal(size=(12, 2))[rng.integers(0, 12, 400)] * 5 + rng.normal(size=(400, 2))


@settings(max_examples=40, deadline=None)
@given(st.floats(-3, 3), st.floats(0.2, 5), st.floats(-50, 50), st.booleans(), st.integers(0, 1000))
def test_a_map_turned_mirrored_scaled_and_moved_is_found_again(angle, scale, shift, mirrored, seed):
    goal = np.random.default_rng(seed).normal(size=(30, 2))
    moved = similar(goal, angle, scale, (shift, -shift), mirrored)
    np.testing.assert_allclose(fit_similarity(moved, goal), goal, atol=1e-5)


def test_documents_that_moved_do_not_pull_the_rest(positions):
    other = positions.copy()
    other[:120] += [40, 25]
    fitted = fit_similarity(similar(other, 2.0, 0.4, (3, 3), mirrored=True), positions)
    np.testing.assert_allclose(fitted[120:], positions[120:], atol=0.01)
    # Least squares is led astray by them.
    goal, plain, _ = procrustes(positions, other)
    assert displacement(goal[120:], plain[120:]).mean() > 0.1


def test_all_maps_take_the_frame_of_the_target(positions):
    maps = [similar(positions, angle, 1 + angle, (angle, 0)) for angle in (0.1, 1.0, 2.5)]
    for aligned in align_maps(maps, positions):
        # The mean is centred: the frame's turn and size are those of the target.
        np.testing.assert_allclose(aligned, positions - positions.mean(axis=0), atol=1e-3)
    # Noise shrinks no map.
    rng = np.random.default_rng(2)
    maps = [positions + rng.normal(size=positions.shape) * noise for noise in (0.1, 3.0)]
    clear, blurred = align_maps(maps, positions)
    assert blurred.std() == pytest.approx(clear.std(), rel=0.15)


def test_displacement_is_nought_for_the_same_and_one_for_another(positions):
    assert displacement(positions, positions).max() == 0
    rng = np.random.default_rng(3)
    first, second = rng.normal(size=(2, 100_000, 2))
    assert np.sqrt((displacement(first, second) ** 2).mean()) == pytest.approx(1, abs=0.01)
    # A map without extent is no error.
    flat = np.zeros((5, 2))
    assert np.isfinite(fit_similarity(flat, np.random.default_rng(0).normal(size=(5, 2)))).all()
    assert np.isfinite(align_maps([flat, flat], flat)).all()
    assert displacement(flat, flat).tolist() == [0] * 5
