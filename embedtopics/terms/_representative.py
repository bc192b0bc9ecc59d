"""Best terms and representative documents of topics, and maximal marginal relevance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.terms.results import TermCounts


def best_terms(
    topic_terms: csr_matrix,
    term_counts: TermCounts,
    n: int,
    ngram_range: tuple[int, int] | None = None,
) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]]:
    """Return the ids and weights of the best terms of each topic, best first."""
    if ngram_range is None:
        allowed = np.ones(len(term_counts.terms), dtype=bool)
    else:
        lengths = term_counts.lengths
        allowed = (lengths >= ngram_range[0]) & (lengths <= ngram_range[1])
    best = []
    for start, end in zip(topic_terms.indptr[:-1], topic_terms.indptr[1:], strict=True):
        ids = topic_terms.indices[start:end].astype(np.int64)
        weights = np.asarray(topic_terms.data[start:end], dtype=np.float64)
        in_order = np.argsort(ids)
        usable = in_order[allowed[ids[in_order]]]
        selected = usable[largest(weights[usable], n)]
        best.append((ids[selected], weights[selected]))
    return best


def largest(values: npt.NDArray[np.float64], n: int, floor: float = 0.0) -> npt.NDArray[np.int64]:
    """Return the positions of the `n` largest values above 0, largest first, ties in order.

    A `floor` at or below the smallest of them saves time.
    """
    usable = np.flatnonzero(values >= floor if floor > 0 else values > 0)
    if len(usable) > n > 0:
        # Sort only values that can be among the largest, with ties at the limit.
        limit = np.partition(values[usable], -n)[-n]
        usable = usable[values[usable] >= limit]
    positions: npt.NDArray[np.int64] = usable[np.argsort(-values[usable], kind="stable")[:n]]
    return positions


def choose_diverse(
    relevance: npt.NDArray[Any],
    similarity: npt.NDArray[Any],
    n: int,
    diversity: float,
    clash: Callable[[int, int], bool],
    least: float = 0.0,
) -> list[int]:
    """Choose candidates by maximal marginal relevance (Carbonell and Goldstein 1998).

    The most relevant candidate comes first. Each next candidate i maximizes ``(1 - diversity) *
    relevance[i] - diversity * max(least, max over selected j of similarity)`` among those that
    clash with no selected candidate.
    """
    selected: list[int] = []
    free = np.ones(len(relevance), dtype=bool)
    nearest = np.full(len(relevance), least)
    while len(selected) < n and free.any():
        score = (1 - diversity) * relevance - diversity * nearest if selected else relevance
        best = int(np.argmax(np.where(free, score, -np.inf)))
        free[best] = False
        if any(clash(best, other) for other in selected):
            continue
        selected.append(best)
        nearest = np.maximum(nearest, similarity[best])
    return selected


class _Cosines:
    """Rows of a matrix of cosines, computed on access."""

    def __init__(self, vectors: npt.NDArray[Any]) -> None:
        self._vectors = np.asarray(vectors, dtype=np.float64)

    def __getitem__(self, place: int) -> npt.NDArray[np.float64]:
        # Not BLAS, whose last bits depend on the number of threads.
        return np.asarray(np.einsum("id,d->i", self._vectors, self._vectors[place]))


def scaled_relevance(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Divide scores by the best one, after a shift to at least 0."""
    above = scores - min(0.0, float(scores.min(initial=0.0)))
    best = float(above.max(initial=0.0))
    return np.asarray(above / best if best > 0 else above)


def diversify(
    relevance: npt.NDArray[Any], vectors: npt.NDArray[Any], k: int, diversity: float
) -> Int64Array:
    """Return k positions by maximal marginal relevance, without clashes."""
    cosines: Any = _Cosines(vectors)
    selected = choose_diverse(relevance, cosines, k, diversity, lambda *_: False, least=-1.0)
    return np.array(selected, dtype=np.int64)


DIVERSITY = 0.3
NEAR_DUPLICATE = 0.95
"""Cosine similarity from which two documents are near-duplicates for a reader."""


def representatives(
    embeddings: FloatArray,
    labels: npt.ArrayLike,
    probabilities: npt.ArrayLike | None = None,
    *,
    n: int = 5,
    n_topics: int | None = None,
) -> list[Int64Array]:
    """Choose documents of each topic near its centroid, without near-duplicates."""
    topic = np.asarray(labels)
    weights = np.ones(len(topic))
    if probabilities is not None:
        weights = np.asarray(probabilities, dtype=float)
    if n_topics is None:
        n_topics = int(topic.max(initial=-1)) + 1
    by_topic = []
    for number in range(n_topics):
        members = np.flatnonzero(topic == number)
        vectors = embeddings[members]
        relevance = np.einsum("id,d->i", vectors, centroid(vectors, weights[members]))
        by_topic.append(members[select_representatives(embeddings, relevance, n, members)])
    return by_topic


def centroid(vectors: FloatArray, probabilities: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the unit mean of weighted vectors, (n_dimensions,), or zeros."""
    weights = probabilities.astype(np.float64)
    if not weights.sum() > 0:
        weights = np.ones(len(vectors))
    # einsum, because the last bits of BLAS depend on the number of threads.
    summed = np.einsum("i,id->d", weights, vectors, dtype=np.float64)
    length = np.sqrt(np.einsum("d,d->", summed, summed))
    return np.asarray(summed / (length or 1.0))


def select_representatives(
    embeddings: FloatArray, relevance: npt.NDArray[Any], n: int, members: Int64Array
) -> Int64Array:
    """Return the positions of relevant and diverse documents among `members` (n_members,)."""
    pool = np.argsort(-relevance, kind="stable")[: 10 * n]
    pool.sort()
    vectors = embeddings[members[pool]]
    similarity = np.einsum("id,jd->ij", vectors, vectors)
    picked = choose_diverse(
        relevance[pool], similarity, n, DIVERSITY, lambda i, j: similarity[i, j] > NEAR_DUPLICATE
    )
    return pool[np.array(picked, dtype=np.int64)]
