"""One ranking from two: by similar meaning, and by words shared with the query.

Scores are fused after they were put on one scale for each query. A similarity is measured from
what the query has with any passage of the collection (its *background*: the cosine with the mean
vector, which is the mean cosine with all passages) to the best candidate; BM25 from 0 to the best:

    score = weight * (similarity - background) / (best similarity - background)
            + (1 - weight) * bm25 / best bm25

Where a candidate is farther below the background than the best one is above it, as a filter may
have it, similarities are divided by that distance instead, lest the words count for nothing.

That is the convex combination of Bruch, Gai and Ingber (2023), who take a theoretical minimum for
each scale. A cosine's -1 is none that a text ever has, and encoders differ in where unrelated texts
lie (near 0, or at 0.7), which the background takes out: the order is the same for any encoder
whose cosines are those of another, stretched and moved.

Before that, similarities are measured again from a query that has moved towards the best few
candidates (pseudo-relevance feedback, Rocchio 1971): they are what the query asks for in the words
and at the length of the collection. Candidates stay the same; nothing is searched twice.

Constants were chosen on the train queries of SciFact and half of those of Cranfield.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import Float64Array, Int64Array

WEIGHT = 0.6
"""Share of the similarity, from 0 (words alone) to 1 (meaning alone)."""
DEPTH = 100
"""How many candidates each of the two searches gives, at least."""
FEEDBACK = 3
"""Towards how many of the best candidates the query moves."""
FEEDBACK_WEIGHT = 0.6
"""Weight of their mean; the query has weight 1."""


class Fused(NamedTuple):
    """Places of the candidates in fused order, ties by place, and what each place scores, (n,)."""

    order: Int64Array
    scores: Float64Array
    similarities: Float64Array


def fuse_scores(
    query: npt.NDArray[Any],
    vectors: npt.NDArray[Any],
    bm25: Float64Array,
    mean_vector: Float64Array,
    weight: float = WEIGHT,
    feedback: int = FEEDBACK,
) -> Fused:
    """Order candidates by the weighted mean of both scores, of `vectors` (n, n_dimensions)."""
    query, vectors = np.asarray(query, dtype=np.float64), np.asarray(vectors, dtype=np.float64)
    similarities = _cosines(vectors, query)
    first = weighted_mean(similarities, bm25, float(mean_vector @ query), weight)
    best = np.argsort(-first, kind="stable")[:feedback]
    moved = move_query(query, vectors[best], FEEDBACK_WEIGHT)
    scores = weighted_mean(_cosines(vectors, moved), bm25, float(mean_vector @ moved), weight)
    return Fused(np.argsort(-scores, kind="stable"), scores, similarities)


def weighted_mean(
    similarities: Float64Array, bm25: Float64Array, background: float, weight: float
) -> Float64Array:
    """Return the weighted mean of both scores, each scaled for this query, (n,)."""
    return weight * _scaled(similarities - background) + (1 - weight) * _scaled(bm25)


def _scaled(part: Float64Array) -> Float64Array:
    """Divide by the value that is farthest from 0."""
    farthest = np.abs(part).max(initial=0.0)
    return part / farthest if farthest > 1e-9 else np.zeros(len(part))


def move_query(query: Float64Array, best: Float64Array, weight: float) -> Float64Array:
    """Return a query vector moved towards the mean of some others (Rocchio 1971)."""
    if not len(best) or weight == 0:
        return query
    moved = query + weight * best.mean(axis=0)
    length = float(np.sqrt(moved @ moved))
    return moved / length if length > 1e-9 else query


def _cosines(vectors: Float64Array, query: Float64Array) -> Float64Array:
    # Not by BLAS, whose last bits depend on the number of threads.
    return np.asarray(np.einsum("id,d->i", vectors, query))
