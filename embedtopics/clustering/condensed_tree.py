"""Which clusters of a given smallest size come, split and dissolve as the density grows."""

from __future__ import annotations

import operator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedtopics.clustering.hierarchy import follow, hierarchy_of
from embedtopics.clustering.spanning_tree import checked_weights
from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.results import SpanningTree

__all__ = ["CondensedTree", "condense"]


@dataclass(frozen=True, eq=False)
class CondensedTree:
    """Clusters of at least some size, and the density at which each part leaves them.

    Clusters are numbered from `n_documents`, the root that holds everything; a cluster's number
    is higher than its parent's. The rows are first the documents, row `i` for document `i`, and
    then the clusters but the root, row `i` for cluster ``i + 1``.

    Parameters
    ----------
    parent : int64 ndarray of shape (n_rows,)
        Cluster that the child leaves.
    child : int64 ndarray of shape (n_rows,)
        Document or cluster.
    lambda_ : float64 ndarray of shape (n_rows,)
        Density, one over the distance, at which it does; infinite for points in one place.
    size : int64 ndarray of shape (n_rows,)
        Weight of the child.
    n_documents : int
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
    """Cut a spanning tree into clusters of at least `min_cluster_size`.

    From the lowest density up, a cluster that falls into several parts of the smallest size
    splits into them; with one such part it lives on as that part; smaller parts fall out of it
    as single documents. All edges of the same length are cut at once, so that a document that
    is held to several clusters by equal edges alone belongs to none of them, and the order of
    the documents decides nothing. (hdbscan and fast_hdbscan cut such edges one by one: they
    give these documents to one of the clusters, with the least strength in it.)

    A document whose own weight reaches `min_cluster_size` counts as a part of that size, and
    dissolves at its core distance.

    Parameters
    ----------
    tree : SpanningTree
    min_cluster_size : int
        Smallest weight of a cluster, at least 2.
    weights : array_like of int, shape (n_documents,), optional
        Those that the tree was built with; default 1 each.

    Returns
    -------
    CondensedTree

    Raises
    ------
    InputError
        When `min_cluster_size` is not a whole number from 2 up, or the weights do not fit.

    References
    ----------
    Campello, Moulavi and Sander (2013), "Density-Based Clustering Based on Hierarchical Density
    Estimates", section 3.3; McInnes and Healy (2017), "Accelerated Hierarchical Density Based
    Clustering", section III.
    """
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
