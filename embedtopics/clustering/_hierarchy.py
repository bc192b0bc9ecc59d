"""From a spanning tree to flat clusters: the hierarchy, its condensed tree, and a selection."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import is_count
from embedtopics.clustering._spanning_tree import checked_weights
from embedtopics.clustering.results import NOISE, Clustering, SpanningTree
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array, Int64Array


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The components of a graph at every distance, as a tree; all arrays (n_nodes,)."""

    parents: Int64Array
    levels: Float64Array
    n_documents: int

    def sizes(self, weights: Int64Array) -> Int64Array:
        """Return the weight in each node, given the documents' weights."""
        sizes = weights.tolist() + [0] * (len(self.parents) - self.n_documents)
        for node, parent in enumerate(self.parents.tolist()[:-1]):
            sizes[parent] += sizes[node]
        return np.array(sizes, dtype=np.int64)


_of_tree: WeakKeyDictionary[SpanningTree, Hierarchy] = WeakKeyDictionary()


def hierarchy_of(tree: SpanningTree) -> Hierarchy:
    """Return the components of a tree at every distance, computed once per tree."""
    hierarchy = _of_tree.get(tree)
    if hierarchy is None:
        hierarchy = _of_tree[tree] = merge(tree.edges, tree.distances, tree.core_distances)
    return hierarchy


def merge(edges: Int64Array, distances: Float64Array, core_distances: Float64Array) -> Hierarchy:
    """Add the edges of a spanning tree (n_documents - 1, 2) in order, and return the merges."""
    n_documents = len(core_distances)
    parents = _pairwise(edges, n_documents)
    levels = np.concatenate([core_distances, distances])
    nodes = np.arange(len(parents))
    absorbed = (nodes >= n_documents) & (levels == levels[parents])
    absorbed[-1] = False
    top = follow(np.where(absorbed, parents, nodes))
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
    parent_of = parents.tolist()
    ancestor = parents.tolist()
    for node, ends in enumerate(edges.tolist(), start=n_documents):
        for end in ends:
            while ancestor[end] != end:
                ancestor[end] = end = ancestor[ancestor[end]]
            parent_of[end] = ancestor[end] = node
    parents[:] = parent_of
    return parents


@dataclass(frozen=True, eq=False)
class CondensedTree:
    """Clusters of at least some size, and the density at which each part leaves them: (n_rows,).

    Clusters are numbered from `n_documents`, the root, and always higher than their parent. Row `i`
    is document `i`, and after the documents cluster ``i + 1``: the root has no row.
    """

    parent: Int64Array
    child: Int64Array
    lambda_: Float64Array
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
    if not is_count(min_cluster_size, 2):
        raise InputError("min_cluster_size", "an integer from 2 up", min_cluster_size)
    n_documents = tree.n_documents
    weights = checked_weights(weights, n_documents)
    hierarchy = hierarchy_of(tree)
    parents, levels = hierarchy.parents, hierarchy.levels
    nodes = np.arange(len(parents))
    sizes = hierarchy.sizes(weights)
    root = len(parents) - 1

    is_big = sizes >= min_cluster_size
    # Copies of a document separate at its core distance. They are a part of their own only if
    # they stood alone at a greater distance.
    is_big[:n_documents] &= levels[:n_documents] < levels[parents[:n_documents]]
    is_big[root] = True
    big_children = np.bincount(parents[:root][is_big[:root]], minlength=len(parents))
    starts = is_big & (big_children[parents] > 1)
    starts[root] = True

    cluster_node = follow(np.where(starts, nodes, parents))
    last_big = follow(np.where(is_big, nodes, parents))[:n_documents]
    heads = np.flatnonzero(starts)[::-1]
    number = np.empty(len(parents), dtype=np.int64)
    number[heads] = n_documents + np.arange(len(heads))
    left = np.concatenate([cluster_node[:n_documents], cluster_node[parents[heads[1:]]]])
    with np.errstate(divide="ignore"):
        lambda_ = 1.0 / np.concatenate([levels[last_big], levels[parents[heads[1:]]]])
    return CondensedTree(
        parent=number[left],
        child=np.concatenate([nodes[:n_documents], number[heads[1:]]]),
        lambda_=lambda_,
        size=np.concatenate([weights, sizes[heads[1:]]]),
        n_documents=n_documents,
    )


@dataclass(frozen=True, eq=False)
class Selection:
    """Clusters taken from a condensed tree, none inside another; both arrays (n_selected,)."""

    clusters: Int64Array
    stabilities: Float64Array


def select(condensed: CondensedTree, allow_single_cluster: bool = False) -> Selection:
    """Select the leaves of a condensed tree.

    A cluster's stability is the sum, over the weight that leaves it, of the density at which the
    weight leaves minus the density at which the cluster begins. An infinite density (points in one
    place) counts as the highest finite one: otherwise a repeated document would outweigh all.
    """
    stabilities = _stabilities(condensed)
    is_leaf = np.ones(len(stabilities), dtype=bool)
    is_leaf[condensed.parent[condensed.n_documents :] - condensed.n_documents] = False
    is_leaf[0] &= allow_single_cluster
    clusters = np.flatnonzero(is_leaf)
    return Selection(clusters + condensed.n_documents, stabilities[clusters])


def label(condensed: CondensedTree, selection: Selection) -> Clustering:
    """Label the documents with the selected clusters."""
    n_documents = condensed.n_documents
    owners = _owners(condensed, selection)
    if len(selection.clusters) and selection.clusters[0] == n_documents:
        leaves_root = condensed.parent == n_documents
        owners[condensed.lambda_[:n_documents] < condensed.lambda_[leaves_root].max()] = NOISE
    weights = condensed.size[:n_documents]
    is_in = owners != NOISE
    n_selected = len(selection.clusters)

    weight = np.bincount(owners[is_in], weights=weights[is_in], minlength=n_selected)
    first = np.full(n_selected, n_documents)
    np.minimum.at(first, owners[is_in], np.flatnonzero(is_in))
    order = np.lexsort((first, -weight))
    rank = np.empty(n_selected, dtype=np.int32)
    rank[order] = np.arange(n_selected, dtype=np.int32)
    labels = np.full(n_documents, NOISE, dtype=np.int32)
    labels[is_in] = rank[owners[is_in]]

    # The highest finite density at which anything leaves each cluster; 0 if nothing does.
    deepest = np.zeros(condensed.n_clusters)
    finite = np.isfinite(condensed.lambda_)
    np.maximum.at(deepest, condensed.parent[finite] - n_documents, condensed.lambda_[finite])
    density = condensed.lambda_[:n_documents][is_in]
    bound = deepest[selection.clusters - n_documents][owners[is_in]]
    is_deepest = density >= bound
    probabilities = np.zeros(n_documents)
    probabilities[is_in] = np.where(is_deepest, 1.0, density / np.where(is_deepest, 1.0, bound))
    persistence = selection.stabilities / (weight * _highest_density(condensed))
    return Clustering(labels, probabilities.astype(np.float32), persistence[order])


def labels_at(
    tree: SpanningTree,
    min_cluster_size: int,
    weights: npt.ArrayLike | None = None,
    allow_one_place: bool = False,
) -> Clustering:
    """Cluster the documents of a spanning tree at one resolution; `weights` (n_documents,).

    With `allow_one_place`, documents that all lie in one place are a cluster.
    """
    condensed = condense(tree, min_cluster_size, weights)
    one_place = allow_one_place and not tree.distances.any()
    big_enough = int(condensed.size[: condensed.n_documents].sum()) >= min_cluster_size
    return label(condensed, select(condensed, one_place and big_enough))


def _stabilities(condensed: CondensedTree) -> Float64Array:
    """Return the excess of mass of every cluster, the root first."""
    lambda_ = np.minimum(condensed.lambda_, _highest_density(condensed))
    birth = np.concatenate([[0.0], lambda_[condensed.n_documents :]])
    cluster = condensed.parent - condensed.n_documents
    excess = condensed.size * (lambda_ - birth[cluster])
    stabilities = np.zeros(condensed.n_clusters)
    np.add.at(stabilities, cluster, excess)
    return stabilities


def _highest_density(condensed: CondensedTree) -> float:
    """Return the highest finite density in the tree; 1 if there is none."""
    finite = condensed.lambda_[np.isfinite(condensed.lambda_)]
    return float(finite.max()) if len(finite) else 1.0


def _owners(condensed: CondensedTree, selection: Selection) -> Int64Array:
    """Return the position of each document's cluster in the selection; noise is -1."""
    n_documents = condensed.n_documents
    owner = [NOISE] * condensed.n_clusters
    for position, cluster in enumerate(selection.clusters.tolist()):
        owner[cluster - n_documents] = position
    above = condensed.parent[n_documents:] - n_documents
    for cluster, parent in enumerate(above.tolist(), start=1):
        if owner[cluster] == NOISE:
            owner[cluster] = owner[parent]
    return np.array(owner)[condensed.parent[:n_documents] - n_documents]
