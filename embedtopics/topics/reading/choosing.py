"""Which documents of a topic to read: in the middle, at its edge, all over it, or by lot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import Int64Array
from embedtopics.results import TopicResult
from embedtopics.terms.selection import choose_diverse
from embedtopics.terms.typical import DIVERSITY, NEAR_DUPLICATE
from embedtopics.topics.reading.selecting import drawn

__all__ = ["WAYS", "Candidates", "chosen"]

FloatVector = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Documents to choose from.

    Parameters
    ----------
    result : TopicResult
    documents : int64 ndarray of shape (n_candidates,)
        Ascending, and so in the order of their content hashes.
    closeness : float64 ndarray of shape (n_candidates,)
        To the middle of their topic.
    others : float64 ndarray of shape (n_candidates,)
        Largest share of another topic.
    seed : int
    """

    result: TopicResult
    documents: Int64Array
    closeness: FloatVector
    others: FloatVector
    seed: int

    def similarity(self, place: int, places: Int64Array) -> FloatVector:
        """Return the cosines of one candidate with others."""
        vectors = self.result.embeddings
        one, several = vectors[self.documents[place]], vectors[self.documents[places]]
        return np.asarray(np.einsum("id,d->i", several, one, dtype=np.float64))


def chosen(candidates: Candidates, how: str, n: int) -> tuple[Int64Array, FloatVector]:
    """Return the places of the candidates to read, in order, and by what they were ordered."""
    return WAYS[how](candidates, n)


def _central(candidates: Candidates, n: int) -> tuple[Int64Array, FloatVector]:
    """Take those nearest to the middle, but for near duplicates of one taken before."""
    taken: list[int] = []
    for place in np.argsort(-candidates.closeness, kind="stable").tolist():
        if len(taken) == n:
            break
        if not (candidates.similarity(place, np.array(taken, np.int64)) > NEAR_DUPLICATE).any():
            taken.append(place)
    places = np.array(taken, dtype=np.int64)
    return places, candidates.closeness[places]


def _typical(candidates: Candidates, n: int) -> tuple[Int64Array, FloatVector]:
    """Take central ones that are not all alike; of a whole topic its representatives."""
    pool = np.argsort(-candidates.closeness, kind="stable")[: 10 * n]
    pool.sort()
    vectors = candidates.result.embeddings[candidates.documents[pool]]
    similarity = np.einsum("id,jd->ij", vectors, vectors)
    closeness = candidates.closeness[pool]
    picked = choose_diverse(
        closeness, similarity, n, DIVERSITY, lambda i, j: similarity[i, j] > NEAR_DUPLICATE
    )
    places = pool[np.array(picked, dtype=np.int64)]
    return places, candidates.closeness[places]


def _diverse(candidates: Candidates, n: int) -> tuple[Int64Array, FloatVector]:
    """Take each time the one least like those taken, of the half nearest to the middle.

    Farthest-first traversal (Gonzalez, 1985, "Clustering to minimize the maximum intercluster
    distance"). The outer half is left out, for the farthest of all are strays.
    """
    order = np.argsort(-candidates.closeness, kind="stable")
    pool = order[: max(n, -(-len(order) // 2))]
    taken: list[int] = []
    nearest = np.full(len(pool), -np.inf)
    scores: list[float] = []
    while len(taken) < min(n, len(pool)):
        # The first of the pool is the most central.
        best = int(np.argmin(nearest)) if taken else 0
        scores.append(float(nearest[best]) if taken else float("nan"))
        taken.append(best)
        nearest = np.maximum(nearest, candidates.similarity(int(pool[best]), pool))
        nearest[taken] = np.inf
    return pool[np.array(taken, dtype=np.int64)], np.array(scores, dtype=np.float64)


def _boundary(candidates: Candidates, n: int) -> tuple[Int64Array, FloatVector]:
    """Take those with the largest share of another topic."""
    places = np.argsort(-candidates.others, kind="stable")[:n]
    return places, candidates.others[places]


def _random(candidates: Candidates, n: int) -> tuple[Int64Array, FloatVector]:
    """Draw, each document with the same chance."""
    hashes = candidates.result.documents.hashes[candidates.documents]
    keys = drawn(hashes, candidates.seed)
    places = np.argsort(keys, kind="stable")[:n]
    return places, keys[places] / 2.0**64


WAYS: dict[str, Callable[[Candidates, int], tuple[Int64Array, FloatVector]]] = {
    "central": _central,
    "typical": _typical,
    "diverse": _diverse,
    "boundary": _boundary,
    "random": _random,
}
