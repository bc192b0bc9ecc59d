"""The part of a hierarchy that some of its documents see."""

from __future__ import annotations

import numpy as np

from embedtopics.protocols import Int64Array
from embedtopics.results import SpanningTree

__all__ = ["subtree"]


def subtree(tree: SpanningTree, documents: Int64Array) -> SpanningTree:
    """Restrict a spanning tree to some of its documents.

    Two documents meet in it at the distance at which they meet in the whole, where others may lie
    between them: the single-linkage hierarchy of the whole, without the other documents.

    Parameters
    ----------
    tree : SpanningTree
    documents : int64 ndarray of shape (n_kept,)
        Ascending, each once; at least one.

    Returns
    -------
    SpanningTree
        Of ``n_kept`` documents, numbered as they stand in `documents`.

    Examples
    --------
    >>> from embedtopics.clustering.spanning_tree import spanning_tree
    >>> whole = spanning_tree([[0.0], [1.0], [3.0], [7.0]], min_samples=1)
    >>> part = subtree(whole, np.array([0, 2, 3]))
    >>> part.edges.tolist(), part.distances.tolist()
    ([[0, 1], [0, 2]], [2.0, 4.0])
    """
    ancestor = list(range(tree.n_documents))
    # The first kept document of each component, by its number among the kept; -1 for none.
    kept_in = np.full(tree.n_documents, -1, dtype=np.int64)
    kept_in[documents] = np.arange(len(documents))
    first = kept_in.tolist()
    edges: list[list[int]] = []
    places: list[int] = []
    for place, ends in enumerate(tree.edges.tolist()):
        if len(edges) == len(documents) - 1:
            break
        one, other = (_top(ancestor, end) for end in ends)
        ancestor[other] = one
        if first[other] < 0:
            continue
        if first[one] >= 0:
            edges.append(sorted((first[one], first[other])))
            places.append(place)
            first[one] = min(first[one], first[other])
        else:
            first[one] = first[other]
    ends_of = np.array(edges, dtype=np.int64).reshape(-1, 2)
    distances = tree.distances[places]
    order = np.lexsort((ends_of[:, 1], ends_of[:, 0], distances))
    return SpanningTree(ends_of[order], distances[order], tree.core_distances[documents])


def _top(ancestor: list[int], node: int) -> int:
    while ancestor[node] != node:
        ancestor[node] = node = ancestor[ancestor[node]]
    return node
