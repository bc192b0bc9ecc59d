"""The documents to read first in each topic."""

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
    """Return for each topic the terms of highest weight and these weights, best first."""
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
        chosen = usable[largest(weights[usable], n)]
        best.append((ids[chosen], weights[chosen]))
    return best


def largest(values: npt.NDArray[np.float64], n: int, floor: float = 0.0) -> npt.NDArray[np.int64]:
    """Return the places of the `n` largest values above 0, largest first; ties to the earlier.

    A `floor` that is known to be at or below the last of them saves looking at the others.
    """
    usable = np.flatnonzero(values >= floor if floor > 0 else values > 0)
    if len(usable) > n > 0:
        # Sort only what can be among the largest, ties at the limit included.
        limit = np.partition(values[usable], -n)[-n]
        usable = usable[values[usable] >= limit]
    found: npt.NDArray[np.int64] = usable[np.argsort(-values[usable], kind="stable")[:n]]
    return found


def choose_diverse(
    relevance: npt.NDArray[Any],
    similarity: npt.NDArray[Any],
    n: int,
    diversity: float,
    clash: Callable[[int, int], bool],
    least: float = 0.0,
) -> list[int]:
    """Choose candidates one after the other by maximal marginal relevance.

    The most relevant comes first. Then, each time, the candidate i is taken that has the highest
    ``(1 - diversity) * relevance[i] - diversity * max(least, max over chosen j of similarity)``
    (Carbonell and Goldstein 1998) among those that clash with none of the chosen.
    """
    chosen: list[int] = []
    free = np.ones(len(relevance), dtype=bool)
    nearest = np.full(len(relevance), least)
    while len(chosen) < n and free.any():
        score = (1 - diversity) * relevance - diversity * nearest if chosen else relevance
        best = int(np.argmax(np.where(free, score, -np.inf)))
        free[best] = False
        if any(clash(best, other) for other in chosen):
            continue
        chosen.append(best)
        nearest = np.maximum(nearest, similarity[best])
    return chosen


class _Cosines:
    """Rows of a matrix of cosines, each computed when it is asked for."""

    def __init__(self, vectors: npt.NDArray[Any]) -> None:
        self._vectors = np.asarray(vectors, dtype=np.float64)

    def __getitem__(self, place: int) -> npt.NDArray[np.float64]:
        # Not by BLAS, whose last bits depend on the number of threads.
        return np.asarray(np.einsum("id,d->i", self._vectors, self._vectors[place]))


def scaled_relevance(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Divide scores of any kind by the best; counted from the lowest where some are below 0."""
    above = scores - min(0.0, float(scores.min(initial=0.0)))
    best = float(above.max(initial=0.0))
    return np.asarray(above / best if best > 0 else above)


def diversify(
    relevance: npt.NDArray[Any], vectors: npt.NDArray[Any], k: int, diversity: float
) -> Int64Array:
    """Return k of n places by maximal marginal relevance (Carbonell and Goldstein 1998)."""
    cosines: Any = _Cosines(vectors)
    chosen = choose_diverse(relevance, cosines, k, diversity, lambda *_: False, least=-1.0)
    return np.array(chosen, dtype=np.int64)


DIVERSITY = 0.3
NEAR_DUPLICATE = 0.95
"""Cosine similarity from which two documents tell a reader the same."""


def representatives(
    embeddings: FloatArray,
    labels: npt.ArrayLike,
    strengths: npt.ArrayLike | None = None,
    *,
    n: int = 5,
    n_topics: int | None = None,
) -> list[Int64Array]:
    """Choose typical documents of each topic: nearest to its centroid, without near duplicates."""
    topic = np.asarray(labels)
    strength = np.ones(len(topic)) if strengths is None else np.asarray(strengths, dtype=float)
    if n_topics is None:
        n_topics = int(topic.max(initial=-1)) + 1
    chosen = []
    for number in range(n_topics):
        members = np.flatnonzero(topic == number)
        vectors = embeddings[members]
        relevance = np.einsum("id,d->i", vectors, centroid(vectors, strength[members]))
        chosen.append(members[most_typical(embeddings, relevance, n, members)])
    return chosen


def centroid(vectors: FloatArray, strengths: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the mean of vectors by strength, of length 1, (n_dimensions,), or zeros."""
    weights = strengths.astype(np.float64)
    if not weights.sum() > 0:
        weights = np.ones(len(vectors))
    # einsum and not BLAS, whose last bits depend on the number of threads.
    summed = np.einsum("i,id->d", weights, vectors, dtype=np.float64)
    length = np.sqrt(np.einsum("d,d->", summed, summed))
    return np.asarray(summed / (length or 1.0))


def most_typical(
    embeddings: FloatArray, relevance: npt.NDArray[Any], n: int, members: Int64Array
) -> Int64Array:
    """Return the places of relevant and diverse documents among some, both (n_members,)."""
    pool = np.argsort(-relevance, kind="stable")[: 10 * n]
    pool.sort()
    vectors = embeddings[members[pool]]
    similarity = np.einsum("id,jd->ij", vectors, vectors)
    picked = choose_diverse(
        relevance[pool], similarity, n, DIVERSITY, lambda i, j: similarity[i, j] > NEAR_DUPLICATE
    )
    return pool[np.array(picked, dtype=np.int64)]
