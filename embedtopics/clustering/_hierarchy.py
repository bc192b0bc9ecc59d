"""From a spanning tree to the hierarchy of its connected components, level by level."""

import operator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from embedtopics.clustering._spanning_tree import checked_weights
from embedtopics.clustering.results import SpanningTree
from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The components of a graph at every distance, as a tree; all arrays (n_nodes,)."""

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
    """Add the edges of a spanning tree (n_documents - 1, 2) in order and note who meets whom."""
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


@dataclass(frozen=True, eq=False)
class CondensedTree:
    """Clusters of at least some size, and the density at which each part leaves them: (n_rows,).

    Clusters are numbered from `n_documents`, the root, and always higher than their parent. Row `i`
    is document `i`, and after the documents cluster ``i + 1``: the root has no row.
    """

    parent: Int64Array
    child: Int64Array
    lambda_: npt.NDArray[np.float64]
    size: Int64Array
    n_documents: int

    @property
    def n_clusters(self) -> int:
        """Number of clusters, the root among them."""
        return len(self.child) - self.n_documents + 1


def condense(
    tree: SpanningTree, min_cluster_size: int, weights: npt.ArrayLike | None = None
) -> CondensedTree:
    """Cut a spanning tree into clusters of `min_cluster_size` or more; `weights` (n_documents,)."""
    least = _checked_min_cluster_size(min_cluster_size)
    n_documents = tree.n_documents
    weights = checked_weights(weights, n_documents)
    hierarchy = hierarchy_of(tree)
    parents, levels = hierarchy.parents, hierarchy.levels
    itself = np.arange(len(parents))
    sizes = hierarchy.sizes(weights)
    root = len(parents) - 1

    is_big = sizes >= least
    # Copies of a document come apart at its core distance; they are a part in their own right
    # only if they stood alone at some greater distance.
    is_big[:n_documents] &= levels[:n_documents] < levels[parents[:n_documents]]
    is_big[root] = True
    big_children = np.bincount(parents[:root][is_big[:root]], minlength=len(parents))
    starts = is_big & (big_children[parents] > 1)
    starts[root] = True

    cluster_node = follow(np.where(starts, itself, parents))
    last_big = follow(np.where(is_big, itself, parents))[:n_documents]
    heads = np.flatnonzero(starts)[::-1]
    number = np.empty(len(parents), dtype=np.int64)
    number[heads] = n_documents + np.arange(len(heads))
    left = np.concatenate([cluster_node[:n_documents], cluster_node[parents[heads[1:]]]])
    with np.errstate(divide="ignore"):
        lambda_ = 1.0 / np.concatenate([levels[last_big], levels[parents[heads[1:]]]])
    return CondensedTree(
        parent=number[left],
        child=np.concatenate([itself[:n_documents], number[heads[1:]]]),
        lambda_=lambda_,
        size=np.concatenate([weights, sizes[heads[1:]]]),
        n_documents=n_documents,
    )


def _checked_min_cluster_size(min_cluster_size: int) -> int:
    try:
        value = operator.index(min_cluster_size)
    except TypeError:
        value = 0
    if value < 2 or isinstance(min_cluster_size, bool):
        raise InputError(
            f"min_cluster_size must be a whole number from 2 up; got {min_cluster_size!r}"
        )
    return value
