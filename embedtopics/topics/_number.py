"""The number of topics that the words support and that neighbors share.

A partition into n topics is judged by two figures. The word gain, in nats a word, is how much
better the topic of a document predicts its words than the corpus does, where the words of a topic
are those of its other half (documents that are not judged by themselves). It rises while topics
become more precise, and stays level when they divide what their words do not. The neighbor share is
the share of a document's five nearest neighbors that are in its topic. It falls as topics become
smaller, faster where they have no borders.

"auto" is the smallest number with 96 % of the largest word gain, but at most the largest one with a
neighbor share of .7. The numbers that are tried are a fifth apart; if a number just above has
clearly separate clusters, it counts instead. Both constants were chosen on nine labelled corpora of
204 to 5,000 texts with 4 to 151 classes.
"""

from __future__ import annotations

import numpy as np

from embedtopics.clustering.results import Level
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import BoolArray, Float64Array, Int64Array
from embedtopics.terms.results import TermCounts

ENOUGH_GAIN, ENOUGH_NEIGHBORS = 0.96, 0.7

N_NEIGHBORS = 5

PRIOR_DOCUMENTS = (30, 100, 300)
"""Weights of the words of the corpus, in documents of mean length; the best one counts."""

SAMPLE = 10_000
"""Documents that are judged. They are ordered by a hash, so that the first are a fair sample."""

BEYOND = 4
"""How many times the number that neighbors allow is tried, to find the largest word gain."""

FEWEST_A_TOPIC = 8
"""Mean documents of a topic below which no number is tried."""

MOST = 100
"""Largest automatic number: more topics are hard to read, even under themes."""

FEW_SMALL = 1 / 20
"""Largest share of topics with fewer than five texts."""

STEP = 2**0.25

FEW_THEMES, MANY_THEMES = 4, 12


class Judge:
    """Judges partitions of documents by their words and neighbors."""

    def __init__(self, counts: TermCounts, graph: NeighborGraph, counted: BoolArray) -> None:
        self._rows = np.flatnonzero(counted)[:SAMPLE]
        words = counts.counts[self._rows][:, np.flatnonzero(counts.lengths == 1)]
        self._halves, self._n_words = (words[::2], words[1::2]), words.nnz
        in_corpus = np.bincount(words.indices, minlength=words.shape[1]) + 0.5
        self._share = (in_corpus / in_corpus.sum()).astype(np.float32)
        self._shares = [self._share[half.indices] for half in self._halves]
        self._mean_length = words.nnz / max(1, len(self._rows))
        self._neighbors = graph.indices[self._rows, :N_NEIGHBORS]

    def level(self, partition: Int64Array) -> Level:
        """Judge a partition (n_documents,), numbered from 0 without gaps."""
        of_row = partition[self._rows]
        same = partition[self._neighbors] == of_row[:, None]
        share = float(same.mean()) if same.size else 1.0
        return Level(int(partition.max()) + 1, self._word_gain(of_row), share)

    def _word_gain(self, topic: Int64Array) -> float:
        """Return the gain of the words of all documents, in nats a word."""
        if not self._n_words:
            return 0.0
        n_topics, n_cells = int(topic.max()) + 1, (int(topic.max()) + 1) * len(self._share)
        of_word = [np.repeat(topic[h::2], np.diff(self._halves[h].indptr)) for h in (0, 1)]
        cells = [of_word[h] * len(self._share) + self._halves[h].indices for h in (0, 1)]
        gains = np.zeros(len(PRIOR_DOCUMENTS))
        for half, other in ((0, 1), (1, 0)):
            in_other = np.bincount(cells[other], minlength=n_cells)[cells[half]]
            lift = in_other.astype(np.float32) / self._shares[half]
            sizes = np.bincount(of_word[other], minlength=n_topics).astype(np.float32)
            size = sizes[of_word[half]]
            for i, n_documents in enumerate(PRIOR_DOCUMENTS):
                prior = np.float32(n_documents * self._mean_length)
                gains[i] += np.log((lift + prior) / (size + prior)).sum(dtype=np.float64)
        return float(gains.max()) / self._n_words


def numbers_to_try(n_most: int) -> list[int]:
    """Return numbers of topics from 2 up to `n_most`, each about a fifth larger."""
    steps = 2 * STEP ** np.arange(1 + np.log(max(2, n_most) / 2) / np.log(STEP))
    return [int(n) for n in np.unique(np.round(steps)) if n <= n_most]


def best_level(levels: list[Level]) -> int:
    """Return the position of the automatic number among levels of ascending numbers."""
    shared = [i for i, level in enumerate(levels) if level.neighbor_share >= ENOUGH_NEIGHBORS]
    gains = np.array([level.word_gain for level in levels])
    enough = int(np.argmax(gains >= ENOUGH_GAIN * gains.max()))
    return min(enough, shared[-1]) if shared else 0


CLEAR = 1.5
"""Ratio of the heights of two merges from which the groups between them are clear."""


def clearest(heights: Float64Array, fewest: int, most: int, least: float = 0.0) -> int:
    """Return the number of groups whose next merge is highest relative to the one before.

    `heights` are those of the merges of a tree, in order; the number is from `fewest` to `most`. It
    is `fewest` if no ratio reaches `least`.
    """
    n_leaves = len(heights) + 1
    numbers = np.arange(max(2, fewest), min(most, n_leaves - 1) + 1)
    if not len(numbers):
        return min(fewest, n_leaves)
    before, following = heights[n_leaves - numbers - 1], heights[n_leaves - numbers]
    ratios = following / np.maximum(before, 1e-12)
    return int(numbers[np.argmax(ratios)]) if ratios.max() >= least else fewest


def n_themes(heights: Float64Array) -> int:
    """Return the number of themes over topics: 4 to 12, at most half as many as topics.

    Fewer than eight topics are their own themes.
    """
    n_topics = len(heights) + 1
    most = min(MANY_THEMES, n_topics // 2)
    return clearest(heights, FEW_THEMES, most) if most >= FEW_THEMES else n_topics
