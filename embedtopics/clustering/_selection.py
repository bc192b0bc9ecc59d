"""From a condensed tree to flat clusters: which to take, and who belongs to them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedtopics.clustering._hierarchy import CondensedTree, condense
from embedtopics.clustering.results import NOISE, Clustering, SpanningTree
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array, Int64Array

EVEN = 1e-9
"""Relative difference of stabilities that is rounding: the sums depend on the order of terms."""


@dataclass(frozen=True, eq=False)
class Selection:
    """Clusters taken from a condensed tree, none inside another; both arrays (n_selected,)."""

    clusters: Int64Array
    stabilities: Float64Array


def select(
    condensed: CondensedTree, method: str = "eom", allow_single_cluster: bool = False
) -> Selection:
    """Choose the clusters of a condensed tree by their stability, or its leaves.

    A cluster's stability is the sum, over the weight that leaves it, of the density at which it
    leaves less that at which the cluster came to be. An infinite density (points in one place)
    counts as the highest finite one: else a repeated document would outweigh everything.
    """
    if method not in ("eom", "leaf"):
        raise InputError(f'method must be "eom" or "leaf"; got {method!r}')
    stabilities = _stabilities(condensed)
    parents = condensed.parent[condensed.n_documents :] - condensed.n_documents
    if method == "eom":
        chosen = _largest_excess_of_mass(stabilities, parents, allow_single_cluster)
    else:
        chosen = np.ones(len(stabilities), dtype=bool)
        chosen[parents] = False
        chosen[0] &= allow_single_cluster
    clusters = np.flatnonzero(chosen)
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
    method: str = "eom",
    allow_one_place: bool = False,
) -> Clustering:
    """Cluster the documents of a spanning tree at one resolution; `weights` (n_documents,).

    With `allow_one_place`, documents that all lie in one place, without an outside, are a cluster.
    """
    condensed = condense(tree, min_cluster_size, weights)
    one_place = allow_one_place and not tree.distances.any()
    big_enough = int(condensed.size[: condensed.n_documents].sum()) >= min_cluster_size
    return label(condensed, select(condensed, method, one_place and big_enough))


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


def _largest_excess_of_mass(
    stabilities: Float64Array, parents: Int64Array, allow_root: bool
) -> npt.NDArray[np.bool_]:
    """Say which clusters to take; `parents` are those of the clusters after the root."""
    own = stabilities.tolist()
    above = [-1, *parents.tolist()]
    best_below = [0.0] * len(own)
    is_best = [False] * len(own)
    for cluster in range(len(own) - 1, -1 if allow_root else 0, -1):
        is_best[cluster] = best_below[cluster] <= own[cluster] * (1 + EVEN)
        if cluster:
            best = own[cluster] if is_best[cluster] else best_below[cluster]
            best_below[above[cluster]] += best
    is_inside = [False] * len(own)
    for cluster in range(1, len(own)):
        is_inside[cluster] = is_inside[above[cluster]] or is_best[above[cluster]]
    return np.array([best and not inside for best, inside in zip(is_best, is_inside, strict=True)])


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
