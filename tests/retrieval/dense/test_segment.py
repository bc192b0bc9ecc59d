"""Searching a segment of every kind, held to brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.retrieval.dense import _segment as segment_module
from embedtopics.retrieval.dense._build import build_dense
from embedtopics.retrieval.dense._segment import open_dense
from tests.retrieval.dense.conftest import KINDS, clustered, settings_of


def mask_of(rows, n):
    return np.isin(np.arange(n), rows)


def recall(found, truth_near, exact):
    return (exact >= truth_near[:, -1:] - 1e-6).mean()


@pytest.fixture(params=KINDS)
def opened(request, folders):
    return open_dense(folders[request.param])


@pytest.fixture
def never_few(monkeypatch):
    """Let filtered searches go by the index, however few rows pass."""
    monkeypatch.setattr(segment_module, "FEW_ROWS", 0)
    monkeypatch.setattr(segment_module, "FEW_SHARE", 0.0)


def test_finds_the_nearest_and_their_inner_products(opened, vectors):
    queries = clustered(3100, 48)[-40:]
    near, found = opened.search(queries, 10)
    products = queries.astype(np.float64) @ vectors.astype(np.float64).T
    exact = np.take_along_axis(products, found, axis=1)
    np.testing.assert_allclose(near, exact, atol=2e-6)
    assert (np.diff(near, axis=1) <= 0).all()
    best = -np.sort(-products, axis=1)[:, :10]
    assert recall(found, best, exact) >= (1.0 if opened.kind == "flat" else 0.95)


def test_similarity_depends_neither_on_the_batch_nor_on_the_kind(folders, vectors):
    queries = clustered(3100, 48)[-50:]
    values = {}
    for folder in folders.values():
        opened = open_dense(folder)
        together = opened.search(queries, 10)
        alone = [opened.search(query[None], 10) for query in queries]
        for whole, parts in zip(together, zip(*alone, strict=True), strict=True):
            np.testing.assert_array_equal(whole, np.concatenate(parts))
        for line, (near, rows) in enumerate(zip(*together, strict=True)):
            for similarity, row in zip(near, rows, strict=True):
                assert values.setdefault((line, row), similarity) == similarity


@pytest.mark.parametrize("share", [0.05, 0.5, 0.97])
def test_filter_by_the_index(opened, vectors, never_few, share):
    rng = np.random.default_rng(3)
    mask = rng.random(len(vectors)) < share
    queries = clustered(3100, 48)[-30:]
    near, found = opened.search(queries, 5, mask)
    assert mask[found].all()
    products = np.where(mask, queries.astype(np.float64) @ vectors.astype(np.float64).T, -2)
    exact = np.take_along_axis(products, found, axis=1)
    np.testing.assert_allclose(near, exact, atol=2e-6)
    assert recall(found, -np.sort(-products, axis=1)[:, :5], exact) >= 0.93


def test_filter_by_another_subject_than_that_of_the_query(folders, vectors, monkeypatch):
    monkeypatch.setattr(segment_module, "FEW_ROWS", 0)
    opened, shares = open_dense(folders["ivf"]), []
    for query in vectors[::300]:
        other = vectors[np.argmin(vectors @ query)]
        allowed = np.argsort(vectors @ other)[-900:]
        products = query.astype(np.float64) @ vectors.astype(np.float64).T
        found = opened.search(query[None], 10, mask_of(allowed, len(vectors)))[1][0]
        shares.append((products[found] >= np.sort(products[allowed])[-10] - 1e-6).mean())
    assert np.mean(shares) >= 0.95


@pytest.mark.parametrize("n_allowed", [0, 1, 7, 30])
def test_few_allowed_rows_are_compared_exactly(opened, vectors, n_allowed):
    rows = np.sort(np.random.default_rng(4).choice(len(vectors), n_allowed, replace=False))
    queries = clustered(3100, 48)[-25:]
    near, found = opened.search(queries, 10, mask_of(rows, len(vectors)))
    products = queries.astype(np.float64) @ vectors.astype(np.float64)[rows].T
    n = min(10, n_allowed)
    np.testing.assert_array_equal(found[:, :n], rows[np.argsort(-products, axis=1)[:, :n]])
    np.testing.assert_allclose(near[:, :n], -np.sort(-products, axis=1)[:, :n], atol=2e-6)
    assert (found[:, n:] == -1).all() and (near[:, n:] == -np.inf).all()


def test_k_rows_come_back_where_k_pass_far_from_the_query(opened, vectors, never_few):
    query = vectors[:1]
    far = np.argsort(query[0] @ vectors.T)[:200]
    near, found = opened.search(query, 12, mask_of(far, len(vectors)))
    assert set(found[0]) <= set(far) and len(set(found[0])) == 12
    assert np.isfinite(near).all()


@settings(max_examples=15, deadline=None)
@given(
    n=st.sampled_from([0, 1, 2, 3, 255, 256, 300]), d=st.integers(1, 19),
    kind=st.sampled_from(KINDS), k=st.integers(1, 12), data=st.data(),
)  # fmt: skip
def test_any_size_dimension_and_filter(tmp_path_factory, n, d, kind, k, data):
    vectors = clustered(n, d, seed=n + d)
    repeated = data.draw(st.sampled_from(["none", "some", "all"]))
    if n and repeated != "none":
        vectors = vectors[np.arange(n) % (1 if repeated == "all" else max(1, n // 3))]
    folder = tmp_path_factory.mktemp("any")
    build_dense(folder, vectors, settings_of(kind))
    mask = np.random.default_rng(k).random(n) < data.draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    queries = clustered(2, d, seed=99)
    near, found = open_dense(folder).search(queries, k, mask)
    n_there = min(k, int(mask.sum()))
    assert (found[:, n_there:] == -1).all() and (near[:, n_there:] == -np.inf).all()
    there = found[:, :n_there]
    assert mask[there].all() and all(len(set(line)) == n_there for line in there)
    products = queries.astype(np.float64) @ vectors.astype(np.float64).T
    exact = np.take_along_axis(products, there, axis=1)
    np.testing.assert_allclose(near[:, :n_there], exact, atol=2e-6)
    if open_dense(folder).kind == "flat":
        best = -np.sort(-np.where(mask, products, -9), axis=1)[:, :n_there]
        np.testing.assert_allclose(exact, best, atol=2e-6)
