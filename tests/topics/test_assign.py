import sys

import numpy as np
import pytest

from embedtopics.topics import assign, at_resolution, extend
from embedtopics.topics._propagation import FAR, margin


def queries_of(vectors, n, seed, spread=0.1):
    """Return new texts with vectors near those of a fit."""
    rng = np.random.default_rng(seed)
    near = vectors[rng.integers(0, len(vectors), n)]
    return [f"new text {seed} {i}" for i in range(n)], near + spread * rng.normal(size=near.shape)


def readings(result):
    """The result itself, and at other resolutions and coverages."""
    yield result
    for n_topics in (2, 5, "fine"):
        yield at_resolution(result, n_topics)
    for coverage in (0.0, 0.8, 1.0):
        yield at_resolution(result, 8, coverage=coverage)


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
    has = branched.documents
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
