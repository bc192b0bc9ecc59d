"""Uninformative topics, whose words do not predict one another."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from embedtopics.clustering.results import NOISE
from embedtopics.protocols import Int32Array, Int64Array
from embedtopics.terms._counts import count_by_topic
from embedtopics.terms.results import TermCounts

MIN_GAIN = 0.03
"""Gain, in nats a word, below which a topic is uninformative. Groups of texts with shuffled words,
from three corpora at several resolutions, gain -0.08 to 0.01 in the median; groups of real texts
0.05 to 1.5."""

MIN_WORDS = 300
"""Minimum number of words of a tested topic; few short texts may share no word by chance."""

PRIOR_DOCUMENTS = (30, 100, 1000)
"""Weights of the words of the corpus, in documents of mean length."""

MAX_DOCUMENTS = 1024
"""Maximum number of tested documents of a topic; more would hardly change the median."""


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

    The different words of a document are predicted by the words of the other half, mixed with those
    of the rest of the corpus. The gain is the mean log-likelihood of a word minus that under the
    rest of the corpus alone, in nats. The gain of a topic is the median of its documents, at the
    best of three weights; a mean would depend on a few odd texts.
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
    judged = _first_of_each(labels, n_topics)
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


def _first_of_each(labels: Int32Array, n_topics: int) -> Int64Array:
    """Return the first documents of each topic, in the order of topics."""
    order = np.argsort(labels, kind="stable")
    begins = np.searchsorted(labels[order], np.arange(n_topics + 1))
    first_documents = [order[b : min(e, b + MAX_DOCUMENTS)] for b, e in pairwise(begins)]
    return np.concatenate([*first_documents, np.empty(0, np.int64)]).astype(np.int64)


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
    half_counts = [_at(half, topic, word) for half in halves]
    in_topic = half_counts[0] + half_counts[1]
    in_other = np.where(half_of[rows] == 0, half_counts[1], half_counts[0])
    # Half a count more, so that no word is impossible elsewhere.
    elsewhere = total[word] - in_topic + 0.5
    topic_size = sum(np.asarray(half.sum(axis=1)).ravel() for half in halves)
    outside = total.sum() - topic_size + 0.5 * len(total)
    return in_other * outside[topic] / elsewhere, holds.indptr.astype(np.int64)


def _at(matrix: csr_matrix, rows: Int32Array, columns: Int32Array) -> npt.NDArray[np.float64]:
    """Return single values of a sparse matrix."""
    if not len(rows):  # SciPy returns a sparse matrix here
        return np.zeros(0)
    return np.asarray(matrix[rows, columns], dtype=np.float64).ravel()


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
