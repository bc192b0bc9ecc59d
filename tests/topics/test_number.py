"""The evidence for a number of topics, by hand and on planted groups."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import embedtopics as et
from embedtopics.clustering.results import Level
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.terms.results import TermCounts
from embedtopics.topics._support import Judge, best_level, n_themes, numbers_to_try


def test_gain_and_share_by_hand():
    """Four documents of one word each; those of a topic share their word."""
    words = csr_matrix(np.eye(2, dtype=np.int32)[[0, 0, 1, 1]])
    counts = TermCounts(words, ("a", "b"), np.ones(2, dtype=np.int8))
    indices = np.array([[1, 2], [0, 2], [3, 0], [2, 0]], dtype=np.int32)
    graph = NeighborGraph(indices, np.ones((4, 2), dtype=np.float32), "exact", 1.0)
    judge = Judge(counts, graph, np.ones(4, dtype=bool))
    level = judge.level(np.array([0, 0, 1, 1]))
    assert level.n_topics == 2 and level.neighbor_share == 0.5
    # The other half of a topic holds one word, this one; the corpus has it at one half. The prior
    # weighs 30 documents of one word.
    assert level.word_gain == pytest.approx(np.log((1 / 0.5 + 30) / (1 + 30)))
    apart = judge.level(np.array([0, 1, 0, 1]))
    # The halves of a topic are even and odd documents: nothing is in the other half here.
    assert apart.word_gain == 0.0


def test_the_automatic_number_is_where_words_gain_no_more_or_neighbors_part():
    def levels(gains, shares):
        return [Level(n, *pair) for n, pair in enumerate(zip(gains, shares, strict=True), start=2)]

    gains = [0.1, 0.5, 0.96, 0.99, 1.0]
    assert best_level(levels(gains, [1.0, 0.95, 0.9, 0.85, 0.8])) == 2
    assert best_level(levels(gains, [0.9, 0.8, 0.6, 0.5, 0.4])) == 1
    assert best_level(levels(gains, [0.6, 0.5, 0.4, 0.3, 0.2])) == 0


def test_numbers_to_try_grow_by_a_fifth():
    assert numbers_to_try(1) == []
    assert numbers_to_try(12) == [2, 3, 4, 5, 6, 7, 8, 10, 11]


def test_themes_end_where_a_merge_is_high():
    heights = np.array([1.0] * 14 + [5.0] * 5)  # twenty topics: six after the low merges
    assert n_themes(heights) == 6
    assert n_themes(np.ones(6)) == 7


@pytest.mark.parametrize("n_groups", [3, 12, 30])
def test_planted_groups_are_the_topics(n_groups):
    rng = np.random.default_rng(n_groups)
    group = np.repeat(np.arange(n_groups), 40)
    vectors = rng.normal(size=(n_groups, 32))[group] + 0.4 * rng.normal(size=(len(group), 32))
    texts = [
        " ".join(f"word{g}x{i}" for i in rng.integers(0, 6, 8)) + f" all{rng.integers(50)}"
        for g in group
    ]
    model = et.TopicModel(languages=[], show_progress=False)
    result = model.fit(texts, embeddings=vectors).result_
    assert result.n_topics == n_groups
    coarse = et.topics.at_resolution(result, "coarse").n_topics
    assert coarse == n_groups if n_groups < 8 else 4 <= coarse <= 12


def test_vectors_without_groups_are_no_topics():
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{i}" for i in rng.integers(0, 300, 12)) for _ in range(2_000)]
    model = et.TopicModel(languages=[], show_progress=False)
    result = model.fit(texts, embeddings=rng.normal(size=(2_000, 64))).result_
    assert result.n_topics <= 1
