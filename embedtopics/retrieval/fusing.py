"""One order from two: what is near in meaning, and what shares words with the query.

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

Before that, similarities are measured anew from a query that has moved towards the best few
candidates (pseudo-relevance feedback, Rocchio 1971): they are what the query asks for in the words
and at the length of the collection. Candidates stay the same; nothing is searched twice.

Constants were chosen on the train queries of SciFact and half of those of Cranfield.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count, checked_share, is_number
from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array

__all__ = ["Fused", "FusionSettings", "fuse", "fused_scores", "moved_query", "reciprocal_ranks"]

FloatVector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FusionSettings:
    """How two orders become one.

    Parameters
    ----------
    method : {"scores", "ranks"}
        "ranks" is reciprocal rank fusion, which looks at no score.
    weight : float
        Share of the similarity, from 0 (words alone) to 1 (meaning alone); for "scores".
    feedback : int
        Towards how many of the best candidates the query moves; 0 for none. For "scores".
    feedback_weight : float
        How much their mean weighs beside the query's 1.
    rank_constant : float
        The k of reciprocal rank fusion.
    depth : int
        How many candidates each of the two searches should give, at least.
    """

    method: str = "scores"
    weight: float = 0.6
    feedback: int = 3
    feedback_weight: float = 0.6
    rank_constant: float = 60.0
    depth: int = 100

    def __post_init__(self) -> None:
        if self.method not in ("scores", "ranks"):
            raise InputError(f'method of fusion must be "scores" or "ranks", got {self.method!r}')
        checked_share(self.weight, "weight")
        checked_count(self.feedback, "feedback", 0)
        checked_count(self.depth, "depth")
        for name in ("feedback_weight", "rank_constant"):
            value = getattr(self, name)
            if not is_number(value) or not 0 <= value < float("inf"):
                raise InputError(f"{name} must be a number of 0 or more, got {value!r}")


@dataclass(frozen=True, eq=False)
class Fused:
    """Candidates of both searches in one order, best first; ties by number.

    Parameters
    ----------
    numbers : int64 ndarray of shape (n,)
        Of the candidates, as the caller counts them.
    scores : float64 ndarray of shape (n,)
        What they are ordered by.
    similarities : float64 ndarray of shape (n,)
        Cosine of each with the query as it was asked.
    bm25 : float64 ndarray of shape (n,)
    """

    numbers: Int64Array
    scores: FloatVector
    similarities: FloatVector
    bm25: FloatVector


def fuse(
    query: npt.NDArray[Any],
    dense: npt.NDArray[Any],
    lexical: npt.NDArray[Any],
    *,
    vectors_of: Callable[[Int64Array], npt.NDArray[Any]],
    bm25_of: Callable[[Int64Array], npt.NDArray[Any]],
    mean_vector: npt.NDArray[Any] | None = None,
    settings: FusionSettings | None = None,
) -> Fused:
    """Fuse what dense and lexical search found for one query.

    What only one of them found gets its other score worked out, never guessed.

    Parameters
    ----------
    query : ndarray of shape (n_dimensions,)
        Of length 1.
    dense, lexical : integer ndarray of shape (n,)
        Numbers of the passages found, best first, each once; one of the two may be empty.
    vectors_of : callable
        Given ascending numbers, it returns their vectors, of length 1.
    bm25_of : callable
        Given ascending numbers, it returns their BM25 scores.
    mean_vector : ndarray of shape (n_dimensions,), optional
        Mean of the vectors of all living passages, not scaled to length 1. Zero by default, which
        suits encoders whose unrelated texts have a cosine of 0.
    settings : FusionSettings, optional

    Returns
    -------
    Fused
        All candidates.

    Raises
    ------
    InputError
        If shapes do not go together, a number occurs twice in a list, or a value is not finite.
    """
    settings = settings or FusionSettings()
    query, dense, lexical = (
        np.asarray(query, dtype=np.float64),
        np.asarray(dense),
        np.asarray(lexical),
    )
    for name, found in (("dense", dense), ("lexical", lexical)):
        if found.ndim != 1 or len(np.unique(found)) != len(found):
            raise InputError(f"expected a list of different numbers for {name}, got {found!r}")
    numbers = np.union1d(dense, lexical).astype(np.int64)
    if not len(numbers):
        return Fused(numbers, np.zeros(0), np.zeros(0), np.zeros(0))
    vectors = _finite(vectors_of(numbers), (len(numbers), len(query)), "vectors_of")
    bm25 = _finite(bm25_of(numbers), (len(numbers),), "bm25_of")
    similarities = _cosines(vectors, query)
    if settings.method == "ranks":
        scores = reciprocal_ranks([dense, lexical], numbers, settings.rank_constant)
    else:
        mean = np.zeros(len(query)) if mean_vector is None else mean_vector
        mean = _finite(mean, (len(query),), "mean_vector")
        first = fused_scores(similarities, bm25, float(mean @ query), settings.weight)
        best = np.argsort(-first, kind="stable")[: settings.feedback]
        moved = moved_query(query, vectors[best], settings.feedback_weight)
        scores = fused_scores(_cosines(vectors, moved), bm25, float(mean @ moved), settings.weight)
    order = np.argsort(-scores, kind="stable")
    return Fused(numbers[order], scores[order], similarities[order], bm25[order])


def fused_scores(
    similarities: npt.NDArray[Any], bm25: npt.NDArray[Any], background: float, weight: float
) -> FloatVector:
    """Return the weighted mean of both scores, each scaled for this query.

    Parameters
    ----------
    similarities, bm25 : ndarray of shape (n_candidates,)
    background : float
        Mean cosine of the query with all passages.
    weight : float
        Share of the similarity.

    Returns
    -------
    float64 ndarray of shape (n_candidates,)
        From -1 to 1; below 0 for what is farther than the background and shares no word. A part
        that is the same for all (no word of the query, or all as far as the background) is 0.
    """
    above = np.asarray(similarities, dtype=np.float64) - background
    words = np.asarray(bm25, dtype=np.float64)
    return weight * _scaled(above) + (1 - weight) * _scaled(words)


def _scaled(part: FloatVector) -> FloatVector:
    """Divide by the value that is farthest from 0."""
    farthest = np.abs(part).max(initial=0.0)
    return part / farthest if farthest > 1e-9 else np.zeros(len(part))


def moved_query(query: npt.NDArray[Any], best: npt.NDArray[Any], weight: float) -> FloatVector:
    """Return a query vector moved towards the mean of some others (Rocchio 1971).

    Parameters
    ----------
    query : ndarray of shape (n_dimensions,)
    best : ndarray of shape (n, n_dimensions)
    weight : float
        Of their mean, beside the query's 1.

    Returns
    -------
    float64 ndarray of shape (n_dimensions,)
        Of length 1; the query itself where there are none, or they cancel it out.
    """
    query = np.asarray(query, dtype=np.float64)
    if not len(best) or weight == 0:
        return query
    moved = query + weight * np.asarray(best, dtype=np.float64).mean(axis=0)
    length = float(np.sqrt(moved @ moved))
    return moved / length if length > 1e-9 else query


def reciprocal_ranks(
    lists: list[npt.NDArray[Any]], numbers: npt.NDArray[Any], constant: float = 60.0
) -> FloatVector:
    """Return reciprocal rank fusion: the sum over the lists of 1 / (constant + rank).

    Cormack, Clarke and Büttcher (2009). A list that a number is not in adds nothing.

    Parameters
    ----------
    lists : list of integer ndarray
        Numbers, best first, each once.
    numbers : integer ndarray of shape (n,)
        Ascending; all that occur in the lists.
    constant : float

    Returns
    -------
    float64 ndarray of shape (n,)
    """
    scores = np.zeros(len(numbers))
    for found in lists:
        places = np.searchsorted(numbers, found)
        scores[places] += 1 / (constant + np.arange(1, len(found) + 1))
    return scores


def _cosines(vectors: FloatVector, query: FloatVector) -> FloatVector:
    # Not by BLAS, whose last bits depend on the number of threads.
    return np.asarray(np.einsum("id,d->i", vectors, query))


def _finite(values: npt.NDArray[Any], shape: tuple[int, ...], name: str) -> FloatVector:
    values = np.asarray(values, dtype=np.float64)
    if values.shape != shape or not np.isfinite(values).all():
        raise InputError(
            f"expected finite numbers of shape {shape} from {name}, got shape {values.shape}"
            + (" with NaN or infinity" if values.shape == shape else "")
        )
    return values
