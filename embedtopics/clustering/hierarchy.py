"""From a spanning tree to the hierarchy of its connected components, level by level."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import Int64Array
from embedtopics.results import SpanningTree

__all__ = ["Hierarchy", "follow", "hierarchy_of", "merge"]


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The components of a graph at every distance, as a tree.

    Nodes ``0 .. n_documents - 1`` are the documents; the others are the components that come
    to be when the distance grows, nearest first, the last of them holding all documents.
    Components that meet at exactly the same distance become one node of many children, as
    Campello et al. (2013) prescribe: mutual reachability is full of equal distances, and
    joining them two by two would let the order of the rows decide which cluster a document
    belongs to.

    Parameters
    ----------
    parents : int64 ndarray of shape (n_nodes,)
        The component that each node joins; the last is its own parent. A parent's number is
        always higher than its child's.
    levels : float64 ndarray of shape (n_nodes,)
        Distance at which a component comes to be; for a document, its core distance.
    n_documents : int
    """

    parents: Int64Array
    levels: npt.NDArray[np.float64]
    n_documents: int

    def sizes(self, weights: Int64Array) -> Int64Array:
        """Return the weight in each node, given the documents' weights."""
        sizes = weights.tolist() + [0] * (len(self.parents) - self.n_documents)
        for node, parent in enumerate(self.parents.tolist()[:-1]):
            sizes[parent] += sizes[node]
        return np.array(sizes, dtype=np.int64)


_of_tree: WeakKeyDictionary[SpanningTree, Hierarchy] = WeakKeyDictionary()


def hierarchy_of(tree: SpanningTree) -> Hierarchy:
    """Return the components of a tree at every distance, worked out once for all its cuts."""
    found = _of_tree.get(tree)
    if found is None:
        found = _of_tree[tree] = merge(tree.edges, tree.distances, tree.core_distances)
    return found


def merge(
    edges: Int64Array, distances: npt.NDArray[np.float64], core_distances: npt.NDArray[np.float64]
) -> Hierarchy:
    """Add the edges of a spanning tree in order and note who meets whom.

    Parameters
    ----------
    edges : int64 ndarray of shape (n_documents - 1, 2)
    distances : float64 ndarray of shape (n_documents - 1,)
        Ascending.
    core_distances : float64 ndarray of shape (n_documents,)

    Returns
    -------
    Hierarchy
    """
    n_documents = len(core_distances)
    parents = _pairwise(edges, n_documents)
    levels = np.concatenate([core_distances, distances])
    itself = np.arange(len(parents))
    absorbed = (itself >= n_documents) & (levels == levels[parents])
    absorbed[-1] = False
    top = follow(np.where(absorbed, parents, itself))
    number = np.cumsum(~absorbed) - 1
    return Hierarchy(number[top[parents]][~absorbed], levels[~absorbed], n_documents)


def follow(pointers: Int64Array) -> Int64Array:
    """Return where each chain of pointers ends; an end points to itself."""
    while True:
        further = pointers[pointers]
        if np.array_equal(further, pointers):
            return pointers
        pointers = further


def _pairwise(edges: Int64Array, n_documents: int) -> Int64Array:
    """Return the parents in the binary tree in which each edge, in order, makes a node."""
    n_nodes = 2 * n_documents - 1
    parents = np.arange(n_nodes)
    made = parents.tolist()
    ancestor = parents.tolist()
    for node, ends in enumerate(edges.tolist(), start=n_documents):
        for end in ends:
            while ancestor[end] != end:
                ancestor[end] = end = ancestor[ancestor[end]]
            made[end] = ancestor[end] = node
    parents[:] = made
    return parents
