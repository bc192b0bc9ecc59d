"""Clusters of unit vectors for every number of clusters, from one tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Cuts", "cut", "nearest_center"]

Float64Array = npt.NDArray[np.float64]
Int32Array = npt.NDArray[np.int32]

MOST_BRANCHES = 60
"""Branches that a tree is cut into at most, to find so many large ones beside single uses."""

MOST_STEPS = 50


@dataclass(frozen=True, eq=False)
class Cuts:
    """Clusters, and their mean silhouettes, by how many there are; numbers without are left out.

    Parameters
    ----------
    labels : mapping of int to int32 ndarray of shape (n,)
    widths : mapping of int to float
    """

    labels: Mapping[int, Int32Array]
    widths: Mapping[int, float]

    def best(self, numbers: Iterable[int]) -> int:
        """Return the number with the largest silhouette, of equals the least; 1 without any."""
        able = [k for k in numbers if k in self.widths]
        return max(able, key=lambda k: (self.widths[k], -k)) if able else 1


def cut(vectors: Float64Array, most: int, min_size: int) -> Cuts:
    """Cluster unit vectors into 2 to `most` clusters of at least `min_size`."""
    from scipy.cluster.hierarchy import fcluster, linkage

    n = len(vectors)
    if n < 2 * min_size:
        return Cuts({}, {})
    squared = np.maximum(2 - 2 * (vectors @ vectors.T), 0.0)
    distances = np.sqrt(squared[np.triu_indices(n, k=1)])
    tree = linkage(distances, method="ward")
    labels: dict[int, Int32Array] = {}
    widths: dict[int, float] = {}
    tried: set[int] = set()
    for n_branches in range(2, min(n, MOST_BRANCHES) + 1):
        branch = fcluster(tree, n_branches, "maxclust")
        large = np.flatnonzero(np.bincount(branch) >= min_size)
        if len(large) < 2 or len(large) > most or len(large) in tried:
            continue
        tried.add(len(large))
        found = _settled(vectors, [branch == one for one in large.tolist()])
        if np.bincount(found, minlength=len(large)).min() < min_size:
            continue
        labels[len(large)] = found
        widths[len(large)] = _mean_silhouette(vectors, found)
        if len(tried) == most - 1:
            break
    return Cuts(labels, widths)


def nearest_center(vectors: Float64Array, centers: Float64Array) -> Int32Array:
    """Return the centre of the largest cosine, of equals the first."""
    return (vectors @ centers.T).argmax(axis=1).astype(np.int32)


def _settled(vectors: Float64Array, members: list[npt.NDArray[np.bool_]]) -> Int32Array:
    """Move every vector to the nearest centre, until none moves (spherical k-means)."""
    labels = np.full(len(vectors), -1, dtype=np.int32)
    for _ in range(MOST_STEPS):
        sums = np.array([vectors[inside].sum(axis=0) for inside in members])
        lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))
        moved = nearest_center(vectors, sums / np.where(lengths > 0, lengths, 1.0)[:, None])
        if (moved == labels).all():
            break
        labels = moved
        members = [labels == one for one in range(len(members))]
    return labels


def _mean_silhouette(vectors: Float64Array, labels: Int32Array) -> float:
    """Return the mean of `embedtopics.evaluation.silhouettes`, for clusters of two or more.

    That one sees to the threads of BLAS at each call, which takes longer than all the sums.
    """
    belongs = np.eye(int(labels.max()) + 1)[labels]
    sizes = belongs.sum(axis=0)
    sums = vectors @ (belongs.T @ vectors).T
    between = 1 - sums / sizes
    own = np.arange(len(labels)), labels
    alone = np.einsum("ij,ij->i", vectors, vectors)
    within = 1 - (sums[own] - alone) / (sizes[labels] - 1)
    between[own] = np.inf
    nearest = between.min(axis=1)
    largest = np.maximum(within, nearest)
    widths = np.zeros(len(labels))
    np.divide(nearest - within, largest, out=widths, where=largest > 0)
    return float(widths.mean())
