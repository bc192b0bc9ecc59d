"""Where two encoders differ: the documents whose neighbours change most, and their words."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.evaluation import jaccard_overlap, rank_biased_overlap
from embedtopics.protocols import Int32Array
from embedtopics.results import Move, NeighborGraph, Overlap, TermCounts
from embedtopics.terms import log_odds

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["compare_neighbors", "find_moves", "real_neighbors"]

N_TERMS = 5
"""Terms that are named for each side of a move."""

FEWEST_HOLDERS = 2
"""Neighbours that must hold a term for them to share it."""

LEAST_Z = 1.0
"""Standard errors by which a term must be more of the one side than of the other."""


def real_neighbors(graph: NeighborGraph) -> Int32Array:
    """Return the neighbours of a graph, -1 in place of those with a similarity of 0 or below."""
    return np.where(graph.similarities > 0, graph.indices, -1).astype(np.int32)


def compare_neighbors(graphs: Sequence[NeighborGraph]) -> tuple[Overlap, ...]:
    """Compare the neighbours of each document under every two encoders.

    Parameters
    ----------
    graphs : sequence of NeighborGraph
        Of the same documents.

    Returns
    -------
    tuple of Overlap
        0 where a document has no neighbours with one of both.
    """
    lists = [real_neighbors(graph) for graph in graphs]
    return tuple(
        Overlap(
            first,
            second,
            jaccard_overlap(lists[first], lists[second]),
            rank_biased_overlap(lists[first], lists[second]),
        )
        for first, second in combinations(range(len(lists)), 2)
    )


def find_moves(
    graphs: Sequence[NeighborGraph],
    overlaps: Sequence[Overlap],
    counts: TermCounts,
    n_moves: int,
) -> tuple[Move, ...]:
    """Find the documents whose neighbours change most, and what the old and the new ones say.

    The lowest rank-biased overlap comes first. Very many documents may share none of their
    neighbours; of these, such are taken as both encoders are sure of: whose neighbours are near,
    among all documents, with the one that puts them less near. A text that is far from everything
    has other neighbours with every encoder, and there is nothing in it. A text that keeps all its
    neighbours has not moved, in whatever order they come.

    Parameters
    ----------
    graphs : sequence of NeighborGraph
    overlaps : sequence of Overlap
        Of every two of them.
    counts : TermCounts
        Single words of the documents.
    n_moves : int
        Documents for every two encoders.

    Returns
    -------
    tuple of Move
    """
    lists = [real_neighbors(graph) for graph in graphs]
    nearness = [_nearness(graph) for graph in graphs]
    share = np.asarray(counts.counts.sum(axis=0), dtype=np.float64).ravel()
    n_documents = max(1, counts.counts.shape[0])
    moves = []
    for overlap in overlaps:
        one, other = lists[overlap.first], lists[overlap.second]
        sure = np.minimum(nearness[overlap.first], nearness[overlap.second])
        order = np.lexsort((-sure, overlap.rank_biased))
        known = (one >= 0).any(axis=1) & (other >= 0).any(axis=1)
        changes = known & (overlap.jaccard < 1)
        for document in order[changes[order]][:n_moves].tolist():
            before, after = set(one[document].tolist()), set(other[document].tolist())
            left, found = sorted(before - after - {-1}), sorted(after - before - {-1})
            # A prior of as many words as one side has on average: neither it nor they decide alone.
            prior = share * ((len(left) + len(found)) / (2 * n_documents))
            gained, lost = _terms(counts, found, left, prior)
            moves.append(
                Move(document, overlap.first, overlap.second, float(overlap.jaccard[document]),
                     gained, lost)
            )  # fmt: skip
    return tuple(moves)


def _nearness(graph: NeighborGraph) -> npt.NDArray[np.float64]:
    """Return the place of each document's mean similarity among those of all, from 0 to 1."""
    mean = graph.similarities.mean(axis=1, dtype=np.float64)
    return np.asarray(np.searchsorted(np.sort(mean), mean) / max(1, len(mean) - 1))


def _terms(
    counts: TermCounts, found: list[int], left: list[int], prior: npt.NDArray[np.float64]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the terms that the neighbours found share, and those that the neighbours left do."""
    new, old = counts.counts[found], counts.counts[left]
    z = log_odds(_sums(new), _sums(old), prior)
    return _best(counts.terms, z, new), _best(counts.terms, -z, old)


def _sums(rows: Any) -> npt.NDArray[np.float64]:
    return np.asarray(rows.sum(axis=0), dtype=np.float64).ravel()


def _best(terms: Sequence[str], z: npt.NDArray[np.float64], rows: Any) -> tuple[str, ...]:
    """Return the terms of the highest z among those that enough rows hold, ties by name."""
    holders = np.bincount(rows.indices, minlength=len(terms))
    shared = np.flatnonzero((holders >= FEWEST_HOLDERS) & (z >= LEAST_Z))
    order = shared[np.argsort(-z[shared], kind="stable")][:N_TERMS]
    return tuple(terms[i] for i in order.tolist())
