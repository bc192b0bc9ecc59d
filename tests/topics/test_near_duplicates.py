"""Collections that hold many copies of each text."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from embedtopics import TopicModel
from embedtopics.neighbors._graph import unit_rows
from embedtopics.topics import with_stability
from embedtopics.topics._resolution import recipe_of
from embedtopics.topics._vectors import merge_near_duplicates

N_TEXTS, N_DIMENSIONS, N_THEMES = 300, 48, 6


def distinct(seed=0):
    """Vectors around the means of themes, and texts of their words."""
    rng = np.random.default_rng(seed)
    theme = rng.integers(0, N_THEMES, N_TEXTS)
    means = rng.normal(size=(N_THEMES, N_DIMENSIONS))
    vectors = unit_rows(means[theme] + 1.2 * rng.normal(size=(N_TEXTS, N_DIMENSIONS)))
    texts = [
        " ".join(f"word{one}x{i}" for i in rng.integers(0, 12, 8)) + f" text{row}"
        for row, one in enumerate(theme)
    ]
    return texts, vectors


def copies(vectors, times, similarity, seed=1):
    """Repeat vectors with noise, so that two copies have this similarity."""
    rng = np.random.default_rng(seed)
    repeated = np.repeat(vectors, times, axis=0)
    noise = unit_rows(rng.normal(size=repeated.shape))
    return unit_rows(repeated + np.sqrt(1 / similarity - 1) * noise)


def fit(texts, vectors):
    model = TopicModel(languages=[], random_state=0, show_progress=False)
    return model.fit(texts, embeddings=vectors).result_


@pytest.fixture(scope="module")
def once():
    return fit(*distinct())


@pytest.fixture(scope="module")
def copied():
    texts, vectors = distinct()
    return fit([f"{t} copy{i}" for t in texts for i in range(6)], copies(vectors, 6, 0.9))


def test_copies_of_every_text_leave_the_topics_as_they_are(once, copied):
    assert copied.n_topics == once.n_topics == N_THEMES
    assert abs(copied.coverage - once.coverage) < 0.05
    assert adjusted_rand_score(np.repeat(once.labels, 6), copied.labels) > 0.9
    assert "near_duplicates" in {one.name for one in copied.decisions}
    assert "near_duplicates" not in {one.name for one in once.decisions}


def test_copies_share_label_and_coordinates(copied):
    labels = copied.labels.reshape(N_TEXTS, 6)
    assert (labels == labels[:, :1]).all()
    coordinates = copied.coordinates[copied.distinct.of_row].reshape(N_TEXTS, 6, -1)
    assert (coordinates == coordinates[:, :1]).all()


def test_replicates_hold_all_copies_of_a_text_or_none(copied):
    recipe = recipe_of(copied)
    assert len(recipe.embeddings) == len(recipe.weights) == N_TEXTS
    assert recipe.lists.indices.max() < N_TEXTS
    measured = with_stability(copied, 4, show_progress=False).stability
    assert (measured.recurrence > 0.7).all()


def test_near_duplicates_share_their_mean():
    texts, vectors = distinct()
    repeated = copies(vectors, 4, 0.95)
    unique, graph = merge_near_duplicates(repeated, np.repeat(texts, 4).tolist(), 15, 0)
    assert len(unique.first) == len(graph) == N_TEXTS
    number = unique.of_document.reshape(N_TEXTS, 4)
    assert (number == number[:, :1]).all()
    means = unit_rows(repeated.reshape(N_TEXTS, 4, -1).mean(axis=1))
    np.testing.assert_allclose(unique.of(repeated)[number[:, 0]], means, atol=1e-6)
    assert unique.first.tolist() == sorted(unique.first.tolist())


def test_few_near_duplicates_and_whole_topics_stay_apart():
    texts, vectors = distinct()
    some = np.vstack([vectors, copies(vectors[:20], 1, 0.99)])
    assert merge_near_duplicates(some, texts + texts[:20], 15, 0)[0].all_distinct
    # Four themes of seventy-five near-duplicates are topics, not copies.
    themes = np.repeat(texts[:4], 75).tolist()
    assert merge_near_duplicates(copies(vectors[:4], 75, 0.95), themes, 15, 0)[0].all_distinct


def test_long_texts_of_similar_vectors_and_other_words_are_no_copies():
    repeated = copies(distinct()[1], 4, 0.95)
    texts = [" ".join(f"{row}x{i}" for i in range(200)) for row in range(len(repeated))]
    assert merge_near_duplicates(repeated, texts, 15, 0)[0].all_distinct
