"""The exact search, held to every pair compared on its own."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.retrieval.dense._exact import BATCH, merge_nearest, nearest_among, nearest_exactly


def one_by_one(queries, vectors, rows, k):
    """Compare each pair in a call of its own, and sort by similarity, then row."""
    near = np.array(
        [
            [nearest_among(q[None], vectors, np.array([[r]]), 1)[0][0, 0] for r in rows]
            for q in queries
        ]
    )
    order = np.array([np.lexsort((rows, -line))[:k] for line in near])
    return np.take_along_axis(near, order, axis=1), rows[order]


def unit(rng, n, d):
    vectors = rng.normal(size=(n, d))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 60), d=st.integers(1, 40), k=st.integers(1, 60), seed=st.integers(0, 99),
    n_queries=st.sampled_from([1, 2, BATCH, BATCH + 3]), share=st.floats(0, 1),
    repeated=st.booleans(),
)  # fmt: skip
def test_equals_every_pair_on_its_own(n, d, k, seed, n_queries, share, repeated):
    rng = np.random.default_rng(seed)
    vectors = unit(rng, n, d)
    if repeated:
        vectors = vectors[rng.integers(max(1, n // 5), size=n)]
    queries = unit(rng, n_queries, d)
    rows = np.sort(rng.choice(n, max(1, int(share * n)), replace=False))
    k = min(k, len(rows))
    expected = one_by_one(queries, vectors, rows, k)
    near, found = nearest_exactly(queries, vectors, rows, k)
    np.testing.assert_array_equal(found, expected[1])
    np.testing.assert_array_equal(near, expected[0])
    true = np.einsum("ij,ikj->ik", queries.astype(float), vectors[found].astype(float))
    np.testing.assert_allclose(near, true, atol=d * 2.0**-23)


def test_a_place_settled_by_the_last_bit_is_settled_by_our_sums():
    # More near-equal vectors than are fetched beyond k: the answer must not depend on FAISS's sums.
    rng = np.random.default_rng(1)
    base = unit(rng, 1, 384)
    vectors = base + 1e-7 * rng.normal(size=(400, 384)).astype(np.float32)
    queries = np.repeat(base, BATCH, axis=0)
    together = nearest_exactly(queries, vectors, np.arange(400), 10)
    alone = nearest_exactly(base, vectors, np.arange(400), 10)
    np.testing.assert_array_equal(together[1], np.repeat(alone[1], BATCH, axis=0))
    np.testing.assert_array_equal(together[0], np.repeat(alone[0], BATCH, axis=0))


def test_blocks_of_gathered_rows_give_what_all_rows_give(monkeypatch):
    monkeypatch.setattr("embedtopics.retrieval.dense._exact.ROWS_AT_ONCE", 64)
    rng = np.random.default_rng(2)
    vectors, queries = unit(rng, 1000, 16), unit(rng, BATCH, 16)
    rows = np.flatnonzero(rng.random(1000) < 0.9)
    near, found = nearest_exactly(queries, vectors, rows, 30)
    alone = [nearest_among(q[None], vectors, rows[None], 30) for q in queries]
    np.testing.assert_array_equal(found, np.concatenate([rows for _, rows in alone]))
    np.testing.assert_array_equal(near, np.concatenate([values for values, _ in alone]))


@given(
    lists=st.lists(
        st.lists(st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.integers(0, 20)), max_size=6),
        min_size=1,
        max_size=4,
    ),
    k=st.integers(1, 12),
)
def test_merging_equals_sorting_what_all_segments_found(lists, k):
    found, expected = [], []
    for segment, entries in enumerate(lists):
        entries = sorted({row: near for near, row in entries}.items(), key=lambda e: (-e[1], e[0]))
        near = np.full((1, 6), -np.inf, dtype=np.float32)
        rows = np.full((1, 6), -1, dtype=np.int64)
        for place, (row, similarity) in enumerate(entries):
            near[0, place], rows[0, place] = similarity, row
            expected.append((-np.float32(similarity), segment, row))
        found.append((near, rows))
    near, segments, rows = merge_nearest(found, k)
    expected = sorted(expected)[:k]
    n = len(expected)
    assert list(zip(-near[0, :n], segments[0, :n], rows[0, :n], strict=True)) == expected
    assert near.shape == segments.shape == rows.shape == (1, k)
    assert (rows[0, n:] == -1).all() and (segments[0, n:] == -1).all()
    assert (near[0, n:] == -np.inf).all()
    assert (near.dtype, segments.dtype, rows.dtype) == (np.float32, np.int64, np.int64)
