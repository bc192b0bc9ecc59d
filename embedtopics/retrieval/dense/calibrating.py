"""How far an index must look: measured on queries, and measured again on others."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.retrieval.dense._threads import one_thread
from embedtopics.retrieval.dense.exact import nearest_among, nearest_exactly
from embedtopics.retrieval.dense.graph import Graph
from embedtopics.retrieval.dense.segment import DenseSegment
from embedtopics.retrieval.dense.settings import DenseSettings

__all__ = ["K", "Sample", "calibrated", "measured", "samples", "share_found"]

K = 10
"""Neighbours on which recall is measured."""

MOST_QUERIES = 500
"""Queries of a sample."""

MARGIN = 0.4
"""Share of what may be missed that is left for the error of the sample, about half a point of
recall, and for queries that are a little unlike it."""

LOST_TO_CODES = 0.25
"""Share of what may be missed that too few candidates may cost; the rest is for the lists."""

CANDIDATES = (20, 30, 50, 75, 100, 150, 200, 300, 400, 600, 800)
"""Numbers of candidates that are tried."""

TIMED = 50
"""Queries whose search is timed, one by one."""

TIMED_EXACTLY = 5
"""Those that are compared with every vector, which takes longer."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Queries whose nearest vectors are known.

    Parameters
    ----------
    queries : float32 ndarray of shape (n_queries, d)
    itself : int64 ndarray of shape (n_queries,)
        Row of each query, which is left out of its answer; -1 where it is none of the vectors.
    least : float32 ndarray of shape (n_queries,)
        Similarity of the last of the K nearest.
    k : int
        K, or fewer where there are fewer vectors.
    """

    queries: FloatArray
    itself: Int64Array
    least: FloatArray
    k: int


def samples(vectors: FloatArray, queries: FloatArray | None, seed: int) -> tuple[Sample, Sample]:
    """Return a sample to calibrate on, and another to measure on, without a common query.

    Parameters
    ----------
    vectors : float32 ndarray of shape (n, d)
    queries : float32 ndarray of shape (n_queries, d), optional
        Real ones, two at least; by default some of the vectors themselves. Zero vectors are not
        asked: all are as near to them, so that whatever is found would count as right.
    seed : int
    """
    rng = np.random.default_rng([seed, 1])
    asked = np.flatnonzero((vectors if queries is None else queries).any(axis=1))
    n = len(asked)
    drawn = asked[rng.choice(n, min(2 * MOST_QUERIES, n), replace=False)]
    halves = np.sort(drawn[::2]), np.sort(drawn[1::2] if n > 1 else drawn)
    first, second = (
        _with_truth(vectors, rows, None if queries is None else queries[rows]) for rows in halves
    )
    return first, second


def _with_truth(vectors: FloatArray, rows: Int64Array, queries: FloatArray | None) -> Sample:
    """Find the K nearest of each query exactly."""
    n = len(vectors)
    itself = rows if queries is None else np.full(len(rows), -1, dtype=np.int64)
    asking = np.ascontiguousarray(vectors[rows]) if queries is None else queries
    k = min(K, max(0, n - 1) if queries is None else n)
    near, found = nearest_exactly(asking, vectors, np.arange(n), min(k + 1, n))
    near, _ = _without(itself, near, found, k)
    least = near[:, -1] if k else np.zeros(len(rows), dtype=np.float32)
    return Sample(asking, itself, least, k)


def _without(
    itself: Int64Array, near: FloatArray, found: Int64Array, k: int
) -> tuple[FloatArray, Int64Array]:
    """Leave each query out of its own answer."""
    order = np.argsort(found == itself[:, None], axis=1, kind="stable")[:, :k]
    return np.take_along_axis(near, order, axis=1), np.take_along_axis(found, order, axis=1)


def share_found(segment: DenseSegment, sample: Sample, vectors: FloatArray) -> float:
    """Return the recall at ten: the share of the nearest, or others as near, that are found.

    Parameters
    ----------
    segment : DenseSegment
    sample : Sample
    vectors : float32 ndarray of shape (n, d)
        As they were given, not rounded to float16: what is nearest is told by them.
    """
    if not sample.k or not len(sample.queries):
        return 1.0
    near, found = segment.search(sample.queries, min(sample.k + 1, len(segment)))
    _, found = _without(sample.itself, near, found, sample.k)
    exact = nearest_among(sample.queries, vectors, found, sample.k)[0]
    return float((exact >= sample.least[:, None]).mean())


def calibrated(
    segment: DenseSegment, sample: Sample, vectors: FloatArray, settings: DenseSettings
) -> DenseSegment:
    """Return the segment with the least effort that gives the wanted recall, by some margin.

    What the caller set stays. Where no effort suffices, the largest is taken.
    """
    index = segment.index
    if index is None:
        return segment
    missed = 1.0 - settings.recall

    def recall_at(breadth: int, n_candidates: int) -> float:
        trial = replace(segment, breadth=breadth, n_candidates=n_candidates)
        return share_found(trial, sample, vectors)

    n_candidates = settings.n_candidates or 1
    if not isinstance(index, Graph) and settings.n_candidates is None:
        share = LOST_TO_CODES if index.widest > 1 else 1.0 - MARGIN
        places = _least(
            lambda place: recall_at(index.widest, CANDIDATES[place]),
            0, len(CANDIDATES) - 1, 1.0 - share * missed,
        )  # fmt: skip
        n_candidates = CANDIDATES[places]
    asked = settings.ef_search if isinstance(index, Graph) else settings.n_probe
    breadth = asked or _least(
        lambda breadth: recall_at(breadth, n_candidates),
        index.narrowest, index.widest, 1.0 - (1.0 - MARGIN) * missed,
    )  # fmt: skip
    return replace(segment, breadth=min(breadth, index.widest), n_candidates=n_candidates)


def _least(recall: Callable[[int], float], low: int, high: int, wanted: float) -> int:
    """Return the least number whose recall suffices, by doubling and halving; else the highest."""
    step, top = 1, low
    while top < high and recall(top) < wanted:
        low, step = top + 1, 2 * step
        top = min(high, top + step)
    while low < top:
        middle = (low + top) // 2
        if recall(middle) < wanted:
            low = middle + 1
        else:
            top = middle
    return top


def measured(segment: DenseSegment, sample: Sample, vectors: FloatArray) -> dict[str, Any]:
    """Return recall and speed on a sample, queries one by one on one thread."""
    about: dict[str, Any] = {
        "k": sample.k,
        "n_queries": len(sample.queries),
        "recall": share_found(segment, sample, vectors),
    }
    if sample.k and len(sample.queries):
        every = np.arange(len(vectors))
        with one_thread():
            about["queries_per_second"] = _speed(
                lambda query: segment.search(query, sample.k), sample.queries[:TIMED]
            )
            about["exact_queries_per_second"] = _speed(
                lambda query: nearest_exactly(query, vectors, every, sample.k),
                sample.queries[:TIMED_EXACTLY],
            )
    return about


def _speed(search: Callable[[FloatArray], Any], queries: FloatArray) -> float:
    """Return queries a second, by the median, for others may use the machine."""
    seconds = []
    for number in range(len(queries)):
        start = time.perf_counter()
        search(queries[number : number + 1])
        seconds.append(time.perf_counter() - start)
    return float(1.0 / max(float(np.median(seconds)), 1e-9))
