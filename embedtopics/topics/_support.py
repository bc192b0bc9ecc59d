"""What words and neighbors support: informative topics, and the number of topics."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from embedtopics.clustering.results import NOISE
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import BoolArray, Float64Array, Int32Array, Int64Array
from embedtopics.terms._counts import count_by_topic
from embedtopics.terms.results import TermCounts

MIN_GAIN = 0.03
"""Gain, in nats a word, below which a topic is uninformative. Groups of texts with shuffled words,
from three corpora at several resolutions, gain -0.08 to 0.01 in the median; groups of real texts
0.05 to 1.5."""

MIN_WORDS = 300
"""Minimum number of words of a tested topic; few short texts may share no word by chance."""

PRIOR_DOCUMENTS, LEVEL_PRIORS = (30, 100, 1000), (30, 100, 300)
"""Weights of the words of the corpus, in documents of mean length: the best one counts."""

MAX_DOCUMENTS = 1024
"""Maximum number of tested documents of a topic; more would hardly change the median."""


@dataclass(frozen=True)
class Level:
    """A number of topics, and the evidence for it."""

    n_topics: int
    word_gain: float
    """How much better the topic of a text predicts its words than the corpus, in nats a word."""
    neighbor_share: float
    """Share of the five nearest neighbors of a text that are in its topic."""


def uninformative_topics(
    counts: TermCounts, labels: Int32Array, n_topics: int
) -> npt.NDArray[np.bool_]:
    """Return a mask of the uninformative topics: dense, but with words of the whole corpus."""
    gains, n_words = word_gains(counts, labels, n_topics)
    return np.asarray((n_words >= MIN_WORDS) & (gains < MIN_GAIN))


def word_gains(
    counts: TermCounts, labels: Int32Array, n_topics: int
) -> tuple[npt.NDArray[np.float64], Int64Array]:
    """Measure how much better a topic's other half predicts its documents than the corpus.

    The gain is the mean log-likelihood of a word under the other half, mixed with the rest of the
    corpus, minus that under the rest alone, in nats: the median over documents (a mean would depend
    on a few odd texts), at the best of three weights.
    """
    is_word, counted = np.flatnonzero(counts.lengths == 1), counts.counts
    holds = csr_matrix(
        ((counted.data != 0).astype(np.int32), counted.indices, counted.indptr), counted.shape
    )
    # Documents are in the order of a content hash, so that any halving is random.
    half_of = np.arange(len(labels)) % 2
    group_of = np.where(labels == NOISE, n_topics, labels)  # the last group is no topic

    def count(half: int) -> csr_matrix:
        of_half = np.where(half_of == half, group_of, NOISE)
        return count_by_topic(holds, of_half, n_topics + 1)[:, is_word]

    with ThreadPoolExecutor(2) as threads:
        groups = list(threads.map(count, (0, 1)))
    total = np.sum([np.asarray(group.sum(axis=0)).ravel() for group in groups], axis=0)
    mean_length = max(1.0, total.sum() / max(1, len(labels)))
    halves = [group[:n_topics] for group in groups]
    sizes = np.stack([np.asarray(half.sum(axis=1)).ravel() for half in halves])
    n_words = sizes.sum(axis=0)
    order = np.argsort(labels, kind="stable")
    begins = np.searchsorted(labels[order], np.arange(n_topics + 1))
    first_of_each = [order[b : min(e, b + MAX_DOCUMENTS)] for b, e in pairwise(begins)]
    judged = np.concatenate([*first_of_each, np.empty(0, np.int64)]).astype(np.int64)
    words = holds[judged][:, is_word]
    lifts, starts = _lifts(words, labels[judged], half_of[judged], halves, total)
    lengths = np.diff(starts)
    other_size = sizes[1 - half_of[judged], labels[judged]]
    best = np.full(n_topics, -np.inf)
    for documents in PRIOR_DOCUMENTS:
        prior = documents * mean_length
        seen = np.concatenate([[0.0], np.cumsum(np.log1p(lifts / prior))])
        mean = (seen[starts[1:]] - seen[starts[:-1]]) / np.maximum(lengths, 1)
        gain = np.where(lengths > 0, mean + np.log(prior / (other_size + prior)), 0.0)
        best = np.maximum(best, _medians(gain, labels[judged], n_topics))
    return np.where(n_words >= total.sum(), np.inf, best), n_words.astype(np.int64)


def _lifts(
    holds: csr_matrix,
    topics: Int32Array,
    half_of: npt.NDArray[np.int64],
    halves: list[csr_matrix],
    total: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], Int64Array]:
    """Return the counts of words in the other half over their shares elsewhere, and offsets."""
    rows = np.repeat(np.arange(len(topics)), np.diff(holds.indptr))
    topic, word = topics[rows], holds.indices
    half_counts = [np.zeros(0)] * 2
    if len(rows):  # for none, SciPy returns a sparse matrix
        half_counts = [np.asarray(half[topic, word], np.float64).ravel() for half in halves]
    in_topic = half_counts[0] + half_counts[1]
    in_other = np.where(half_of[rows] == 0, half_counts[1], half_counts[0])
    # Half a count more, so that no word is impossible elsewhere.
    elsewhere = total[word] - in_topic + 0.5
    topic_size = sum(np.asarray(half.sum(axis=1)).ravel() for half in halves)
    outside = total.sum() - topic_size + 0.5 * len(total)
    return in_other * outside[topic] / elsewhere, holds.indptr.astype(np.int64)


def _medians(
    values: npt.NDArray[np.float64], groups: Int32Array, n_groups: int
) -> npt.NDArray[np.float64]:
    """Return the median of each group; groups ascend and none is empty."""
    order = np.lexsort((values, groups))
    begins = np.searchsorted(groups, np.arange(n_groups + 1))
    size = np.diff(begins)
    ordered = values[order]
    if not len(ordered):
        return np.full(n_groups, np.inf)
    last = len(ordered) - 1
    low = np.minimum(begins[:-1] + np.maximum(size - 1, 0) // 2, last)
    high = np.minimum(begins[:-1] + size // 2, last)
    return np.where(size > 0, (ordered[low] + ordered[high]) / 2, np.inf)


ENOUGH_GAIN, ENOUGH_NEIGHBORS = 0.96, 0.7

N_NEIGHBORS = 5

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
    """Judges partitions of documents by two figures.

    The word gain, in nats a word, is how much better the topic of a document predicts its words
    than the corpus does; the words of a topic are those of its other half. It rises while topics
    become more precise. The neighbor share, that of a document's five nearest neighbors in its
    topic, falls as topics become smaller. "auto" is the smallest number with 96 % of the largest
    gain, but at most the largest one with a share of .7; or a number just above with clearly
    separate clusters. Both constants were chosen on nine labelled corpora of 4 to 151 classes.
    """

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
        gains = np.zeros(len(LEVEL_PRIORS))
        for half, other in ((0, 1), (1, 0)):
            in_other = np.bincount(cells[other], minlength=n_cells)[cells[half]]
            lift = in_other.astype(np.float32) / self._shares[half]
            sizes = np.bincount(of_word[other], minlength=n_topics).astype(np.float32)
            size = sizes[of_word[half]]
            for i, n_documents in enumerate(LEVEL_PRIORS):
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
    """Return the number of themes: 4 to 12, at most half as many as topics, or all below eight."""
    n_topics = len(heights) + 1
    most = min(MANY_THEMES, n_topics // 2)
    return clearest(heights, FEW_THEMES, most) if most >= FEW_THEMES else n_topics
