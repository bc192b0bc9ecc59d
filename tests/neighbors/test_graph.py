from __future__ import annotations

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.errors import InputError
from embedtopics.neighbors import _approximate as approximate
from embedtopics.neighbors import _graph as graph_module
from embedtopics.neighbors._expansion_kernels import expand_neighbors
from embedtopics.neighbors._graph import build_graph, nearest, unit_rows


def brute_force(embeddings, k):
    similarities = embeddings.astype(np.float64) @ embeddings.T.astype(np.float64)
    np.fill_diagonal(similarities, -np.inf)
    order = np.argsort(-similarities, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(similarities, order, axis=1)


def blobs(n, d=24, n_centers=12, seed=0):
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_centers, d))
    return unit_rows(centers[rng.integers(n_centers, size=n)] + 0.4 * rng.normal(size=(n, d)))


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_vectors_of_a_mapped_file_are_scaled_as_those_in_memory(tmp_path, monkeypatch, mode):
    monkeypatch.setattr(graph_module, "ROWS_AT_ONCE", 64)
    given = np.random.default_rng(0).normal(size=(1000, 24)).astype(np.float32)
    rows = np.random.default_rng(1).permutation(1000)[:900]
    expected = unit_rows(given[rows])
    np.save(tmp_path / "vectors.npy", given)
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode=mode)
    if mode != "r":
        mapped[3] *= 2  # in memory alone, of a copy; letting go of that would lose it
    assert (unit_rows(mapped, rows=rows) == expected).all()
    assert (mapped[3] == given[3] * (1 if mode == "r" else 2)).all()
    order = np.random.default_rng(2).permutation(1000)
    shuffled, place = given[order], np.argsort(order)
    assert (unit_rows(shuffled, rows=place[rows]) == expected).all()


def test_equals_all_pairs():
    embeddings = blobs(700)
    embeddings.setflags(write=False)
    found = build_graph(embeddings, 15)
    order, similarities = brute_force(embeddings, 15)
    np.testing.assert_array_equal(found.indices, order)
    np.testing.assert_allclose(found.similarities, similarities, atol=1e-6)
    assert (found.method, found.recall) == ("exact", 1.0)


@pytest.mark.parametrize("limit", [10_000, 500], ids=["exact", "ivf"])
def test_same_bits_for_any_number_of_threads(monkeypatch, limit):
    monkeypatch.setattr(graph_module, "EXACT_LIMIT", limit)
    embeddings = blobs(1500)
    before = faiss.omp_get_max_threads()
    try:
        graphs = []
        for threads in (1, 2, 4):
            faiss.omp_set_num_threads(threads)
            graphs.append(build_graph(embeddings, 15))
    finally:
        faiss.omp_set_num_threads(before)
    for other in graphs[1:]:
        np.testing.assert_array_equal(graphs[0].indices, other.indices)
        np.testing.assert_array_equal(graphs[0].similarities, other.similarities)


def test_ties_go_to_the_smaller_number():
    embeddings = unit_rows(np.repeat(np.eye(3, 4), 30, axis=0))
    found = build_graph(embeddings, 5)
    np.testing.assert_array_equal(found.indices[0], [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(found.indices[40], [30, 31, 32, 33, 34])
    assert (found.similarities == 1.0).all()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_fewer_documents_than_neighbors(n):
    found = build_graph(unit_rows(np.random.default_rng(0).normal(size=(n, 8))), 15)
    assert found.indices.shape == (n, n - 1) == found.similarities.shape


def test_nearest_does_not_depend_on_the_batch():
    embeddings, queries = blobs(900), blobs(50, seed=3)
    indices, similarities = nearest(queries, embeddings, 15)
    for row in (0, 17, 49):
        alone = nearest(queries[row : row + 1], embeddings, 15)
        np.testing.assert_array_equal(alone[0][0], indices[row])
        np.testing.assert_array_equal(alone[1][0], similarities[row])
    order = np.argsort(-(queries @ embeddings.T), axis=1)[:, :15]
    np.testing.assert_array_equal(indices, order)


@settings(max_examples=40, deadline=None)
@given(st.integers(3, 40), st.integers(1, 12), st.integers(0, 10_000))
def test_order_of_rows_does_not_matter(n, k, seed):
    rng = np.random.default_rng(seed)
    embeddings = unit_rows(rng.normal(size=(n, 6)))
    order = rng.permutation(n)
    found, moved = build_graph(embeddings, k), build_graph(embeddings[order], k)
    np.testing.assert_array_equal(order[moved.indices], found.indices[order])
    np.testing.assert_array_equal(moved.similarities, found.similarities[order])


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32])
def test_any_numeric_array_is_taken_and_left_alone(dtype):
    given_array = np.asfortranarray((np.arange(12).reshape(4, 3) + 1).astype(dtype))
    given_array.setflags(write=False)
    before = given_array.copy()
    unit = unit_rows(given_array)
    np.testing.assert_array_equal(given_array, before)
    expected = before.astype(float) / np.linalg.norm(before.astype(float), axis=1)[:, None]
    np.testing.assert_allclose(unit, expected, atol=1e-6)
    assert unit.dtype == np.float32 and unit.flags.c_contiguous


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_extreme_lengths_are_scaled_rightly(scale):
    np.testing.assert_allclose(unit_rows(np.array([[3.0, 4.0]]) * scale), [[0.6, 0.8]], rtol=1e-6)


def test_bad_vectors_are_refused_and_zeros_kept_where_that_is_wanted():
    not_finite = [[[1.0, np.nan], [1, 1]], [[1.0, 1], [np.inf, 1]]]
    for bad in (*not_finite, [[1.0, 1], [0, 0]], [1.0, 2.0], [["a", "b"]]):
        with pytest.raises(InputError):
            unit_rows(bad)
    kept = unit_rows([[0.0, 0.0], [3.0, 4.0]], keep_zeros=True)
    np.testing.assert_allclose(kept, [[0, 0], [0.6, 0.8]], atol=1e-7)
    with pytest.raises(InputError):
        unit_rows([[0.0, 0.0], [np.nan, 4.0]], keep_zeros=True)


def refined(monkeypatch, embeddings, k=15):
    monkeypatch.setattr(graph_module, "EXACT_LIMIT", 100)
    return build_graph(embeddings, k)


def share_found(embeddings, found):
    similarities = embeddings @ embeddings.T
    np.fill_diagonal(similarities, -np.inf)
    truth = -np.partition(-similarities, found.k - 1, axis=1)[:, found.k - 1 : found.k]
    return (found.similarities >= truth - 1e-6).mean()


@pytest.mark.parametrize("n_dimensions", [8, 60])
def test_recall_is_honest_on_data_without_structure(monkeypatch, n_dimensions):
    embeddings = unit_rows(np.random.default_rng(0).normal(size=(5000, n_dimensions)))
    found = refined(monkeypatch, embeddings)
    assert found.recall == pytest.approx(share_found(embeddings, found), abs=0.03)


def test_approximate_lists_are_sorted_full_and_without_repeats(monkeypatch):
    embeddings = blobs(3000)
    found = refined(monkeypatch, embeddings)
    assert found.method == "ivf" and found.recall >= 0.97
    assert found.recall == pytest.approx(share_found(embeddings, found), abs=0.03)
    itself = np.arange(3000)[:, None]
    listed = np.sort(np.hstack([itself, found.indices]), axis=1)
    assert (np.diff(listed, axis=1) > 0).all() and found.indices.min() >= 0
    assert (np.diff(found.similarities, axis=1) <= 0).all()
    expected = np.einsum("ijk,ik->ij", embeddings[found.indices], embeddings)
    np.testing.assert_allclose(found.similarities, expected, atol=1e-6)


def test_many_equal_vectors_beside_a_few_others(monkeypatch):
    others = blobs(100)
    embeddings = np.vstack([np.repeat(others[:1], 2000, axis=0), others])
    found = refined(monkeypatch, embeddings)
    assert (found.similarities[:2000] == found.similarities[0, 0]).all()
    assert found.recall >= 0.97 and share_found(embeddings, found) >= 0.97


def test_a_document_far_from_all_lists_gets_its_neighbors(monkeypatch):
    # Two far groups, one of them smaller than a list of neighbours.
    rng = np.random.default_rng(0)
    embeddings = unit_rows(
        np.vstack([[1, 0, 0, 0], [-1, 0, 0, 0]])[np.repeat([0, 1], [2000, 5])]
        + 0.01 * rng.normal(size=(2005, 4))
    )
    found = refined(monkeypatch, embeddings)
    order, _ = brute_force(embeddings, 15)
    np.testing.assert_array_equal(np.sort(found.indices[2000:, :4]), np.sort(order[2000:, :4]))
    assert found.indices.min() >= 0


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 30), st.integers(1, 6), st.integers(1, 4), st.integers(0, 10_000))
def test_friends_of_friends_equal_sets(n, k, most, seed):
    rng = np.random.default_rng(seed)
    k, most = min(k, n - 1), min(k, n - 1, most)
    indices = np.array(
        [rng.permutation(np.delete(np.arange(n), i))[:k] for i in range(n)], dtype=np.int32
    )
    indices[rng.random(n) < 0.2, -1] = -1
    fresh = rng.random(indices.shape) < 0.5
    offsets, followers, fresh_followers = approximate._followers(indices, fresh)
    candidates = np.full((n, 2 * most * (2 * most + 1)), -1, dtype=np.int32)
    expand_neighbors(indices, fresh, offsets, followers, fresh_followers, most, 0, candidates)
    edges = [
        [(j, f) for j, f in zip(indices[i, :most], fresh[i, :most], strict=True) if j >= 0]
        + [
            (follower, fresh[follower, rank])
            for rank in range(k)
            for follower in range(n)
            if indices[follower, rank] == i
        ][:most]
        for i in range(n)
    ]
    for i in range(n):
        expected = {j for j, _ in edges[i]}
        expected |= {other for j, new in edges[i] for other, newer in edges[j] if new or newer}
        found = [j for j in candidates[i].tolist() if j >= 0]
        assert len(found) == len(set(found))
        assert set(found) == expected - {i} - set(indices[i].tolist())


@settings(max_examples=50)
@given(
    n=st.integers(2, 60), n_dimensions=st.integers(1, 40), k=st.integers(1, 10),
    spread=st.sampled_from([0.0, 1e-3, 1.0]), seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_short_forms_change_nothing(n, n_dimensions, k, spread, seed):
    rng = np.random.default_rng(seed)
    vectors = unit_rows(rng.normal(size=n_dimensions) + spread * rng.normal(size=(n, n_dimensions)))
    candidates = np.array([rng.permutation(n) for _ in range(n)], dtype=np.int32)
    short = approximate.quantize(vectors)
    lists = []
    for forms in (None, (short, short)):
        found = approximate.no_neighbors(n, min(k, n - 1))
        approximate.keep_nearest(
            found, vectors, vectors, candidates, exclude=np.arange(n), codes=forms
        )
        lists.append(found)
    np.testing.assert_array_equal(lists[0][0], lists[1][0])
    np.testing.assert_array_equal(lists[0][1], lists[1][1])


def test_short_forms_spare_the_full_comparison():
    rng = np.random.default_rng(0)
    vectors = unit_rows(rng.normal(size=(200, 64)))
    short = approximate.quantize(vectors)
    products = short.values.astype(np.float64) @ short.values.T.astype(np.float64)
    products *= np.outer(short.scale[:, 0], short.scale[:, 0])
    allowed = short.scale[:, 1][:, None] + short.scale[:, 1]
    difference = np.abs(vectors.astype(np.float64) @ vectors.T - products)
    assert (difference <= allowed).all()
    assert allowed.max() < 0.02
    # A list that is full of better ones is left as it is, whatever the vectors say in full.
    found = (np.full((200, 1), 7, np.int32), np.full((200, 1), 0.99, np.float32))
    others = np.tile(np.arange(100, dtype=np.int32), (200, 1))
    unlike = np.ones_like(vectors)
    approximate.keep_nearest(
        found, unlike, unlike, others, exclude=np.arange(200), codes=(short, short)
    )
    assert (found[0][100:] == 7).all()


def test_documents_far_from_others_are_looked_for_in_more_lists(monkeypatch):
    monkeypatch.setattr(graph_module, "EXACT_LIMIT", 1000)
    vectors = unit_rows(np.random.default_rng(0).normal(size=(3000, 24)))
    monkeypatch.setattr(approximate, "ROUNDS", 0)
    monkeypatch.setattr(approximate, "ROUGH_RECALL", 0.1)
    monkeypatch.setattr(approximate, "MOST_SEARCHES", 0)
    assert build_graph(vectors, 10).recall < 0.8
    asked = []
    plain = approximate._search
    monkeypatch.setattr(
        approximate,
        "_search",
        lambda corpus, own, rows, n: asked.append((rows, n)) or plain(corpus, own, rows, n),
    )
    monkeypatch.setattr(approximate, "MOST_SEARCHES", 2)
    found = build_graph(vectors, 10)
    assert found.recall > 0.95
    assert found.recall == pytest.approx(share_found(vectors, found), abs=0.03)
    sizes = [len(rows) for rows, _ in asked if len(rows) != approximate.RECALL_SAMPLE]
    assert sizes[0] == 3000 and any(size < 3000 for size in sizes[1:])


@pytest.mark.parametrize("rows", [None, np.arange(0, 5000, 2)], ids=["all", "some"])
def test_rows_of_a_larger_array_are_searched_as_if_they_were_alone(monkeypatch, rows):
    monkeypatch.setattr(graph_module, "EXACT_LIMIT", 1000)
    monkeypatch.setattr(approximate, "BLOCK", 700)
    vectors = unit_rows(np.random.default_rng(0).normal(size=(5000, 24)))
    found = build_graph(vectors, 10, rows=rows)
    alone = build_graph(vectors if rows is None else vectors[rows], 10)
    np.testing.assert_array_equal(found.indices, alone.indices)
    np.testing.assert_array_equal(found.similarities, alone.similarities)


def test_a_candidate_that_is_listed_stays_there_once():
    vectors = blobs(40)
    once = np.tile(np.arange(40, dtype=np.int32), (40, 1))
    found, again = approximate.no_neighbors(40, 5), approximate.no_neighbors(40, 5)
    approximate.keep_nearest(found, vectors, vectors, once, exclude=np.arange(40))
    for _ in range(2):
        approximate.keep_nearest(
            again, vectors, vectors, np.hstack([once, once]), exclude=np.arange(40)
        )
    np.testing.assert_array_equal(found[0], again[0])
    np.testing.assert_array_equal(found[1], again[1])
