"""The hierarchy of some of the documents of a tree."""

from __future__ import annotations

import numpy as np

from embedtopics.protocols import Int64Array
from embedtopics.results import SpanningTree

__all__ = ["induced_tree"]


def induced_tree(tree: SpanningTree, kept: Int64Array) -> SpanningTree:
    """Return a spanning tree of some documents that meet where they met in the whole.

    The others stay where they are and link what they linked, but count for nothing: two kept
    documents come together at the distance at which they did in the hierarchy of all, and a
    cluster reaches a smallest size by its kept documents alone.

    Parameters
    ----------
    tree : SpanningTree
    kept : int64 ndarray of shape (n_kept,)
        Documents, ascending; at least one.

    Returns
    -------
    SpanningTree
        Of the kept documents, numbered as they stand in `kept`.

    Examples
    --------
    >>> from embedtopics.clustering.spanning_tree import spanning_tree
    >>> tree = spanning_tree([[0.0], [1.0], [3.0], [7.0]], min_samples=1)
    >>> part = induced_tree(tree, np.array([0, 2, 3]))
    >>> part.edges.tolist(), part.distances.tolist()
    ([[0, 1], [0, 2]], [2.0, 4.0])
    """
    number = np.full(tree.n_documents, -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    stands_for = number.tolist()
    ancestor = list(range(tree.n_documents))
    edges, distances = [], []
    for (first, second), distance in zip(tree.edges.tolist(), tree.distances.tolist(), strict=True):
        low, high = sorted((_top(ancestor, first), _top(ancestor, second)))
        ancestor[high] = low
        ends = sorted(end for end in (stands_for[low], stands_for[high]) if end >= 0)
        if len(ends) == 2:
            edges.append(ends)
            distances.append(distance)
        stands_for[low] = ends[0] if ends else -1
    found = np.array(edges, dtype=np.int64).reshape(-1, 2)
    lengths = np.array(distances, dtype=np.float64)
    order = np.lexsort((found[:, 1], found[:, 0], lengths))
    return SpanningTree(found[order], lengths[order], tree.core_distances[kept])


def _top(ancestor: list[int], node: int) -> int:
    while ancestor[node] != node:
        ancestor[node] = node = ancestor[ancestor[node]]
    return node
