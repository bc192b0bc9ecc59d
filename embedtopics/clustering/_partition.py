"""Partitions of coordinates into any number of clusters: Ward's tree, then steps of k-means."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from threadpoolctl import threadpool_limits

from embedtopics.protocols import Float64Array, FloatArray, Int32Array, Int64Array

MOST_MICRO_CLUSTERS = 400
"""Micro-clusters that Ward's tree is built over, and so the most clusters of a partition."""

MICRO_STEPS = 4
MOST_STEPS = 20
"""Steps of k-means; most partitions move no document after ten."""

ROWS_AT_ONCE = 8192


@dataclass(frozen=True, eq=False)
class Partitions:
    """Partitions of documents into any number of clusters; nothing is drawn at random.

    Micro-clusters (k-means from documents spread evenly over their order, which is that of their
    hashes and means nothing) are merged by Ward's criterion (Ward 1963, "Hierarchical grouping to
    optimize an objective function"); a cut of that tree is where k-means (Lloyd 1982) starts. Or it
    starts from groups that are known.

    Parameters
    ----------
    coordinates : float32 ndarray of shape (n_documents, n_components)
    weights : int64 ndarray of shape (n_documents,)
        Documents of weight 0 get a label and have no say.
    """

    coordinates: FloatArray
    weights: Int64Array

    def into(self, n_clusters: int) -> Int64Array:
        """Return labels from 0 (n_documents,) of so many clusters, or of `n_most`."""
        cluster = np.arange(self.n_most)
        for first, second in self._merges[: self.n_most - min(n_clusters, self.n_most)]:
            cluster[cluster == second] = first
        return self._steps(_numbered(cluster)[self._micro], MOST_STEPS)

    def around(self, groups: Int32Array) -> Int64Array:
        """Return labels (n_documents,) of as many clusters as there are groups, begun from these.

        Shapes: `groups` (n_documents,), numbered from 0 without gaps; -1 for documents in none.
        """
        inside = groups >= 0
        means, _ = cluster_means(self.coordinates[inside], self.weights[inside], groups[inside])
        return self._steps(self._nearest(means), MOST_STEPS)

    @property
    def n_most(self) -> int:
        """Most clusters that there can be."""
        return int(self._micro.max(initial=-1)) + 1

    @cached_property
    def _micro(self) -> Int64Array:
        counted = np.flatnonzero(self.weights > 0)
        n_micro = min(MOST_MICRO_CLUSTERS, max(1, len(counted) // 2))
        chosen = counted[np.arange(n_micro) * len(counted) // n_micro]
        labels = self._nearest(self.coordinates[chosen].astype(np.float64))
        return self._steps(_numbered(labels), MICRO_STEPS)

    @cached_property
    def _merges(self) -> Int64Array:
        """The merges of Ward's tree in order, (n_micro - 1, 2): the second joins the first."""
        means, sizes = cluster_means(self.coordinates, self.weights, self._micro)
        n_micro = len(sizes)
        cost = np.array([_ward(means, sizes, *one) for one in zip(means, sizes, strict=True)])
        np.fill_diagonal(cost, np.inf)
        merges = np.empty((n_micro - 1, 2), dtype=np.int64)
        gone = np.zeros(n_micro, dtype=np.bool_)
        for row in merges:
            i, j = row[:] = sorted(divmod(int(cost.argmin()), n_micro))
            means[i] = (sizes[i] * means[i] + sizes[j] * means[j]) / (sizes[i] + sizes[j])
            sizes[i] += sizes[j]
            gone[j] = True
            cost[i] = np.where(gone, np.inf, _ward(means, sizes, means[i], sizes[i]))
            cost[i, i] = np.inf
            cost[:, i] = cost[i]
            cost[j] = cost[:, j] = np.inf
        return merges

    def _steps(self, labels: Int64Array, most: int) -> Int64Array:
        """Take steps of k-means, but none that would leave a cluster without documents."""
        n_clusters, counted = int(labels.max(initial=-1)) + 1, self.weights > 0
        for _ in range(most):
            new = self._nearest(cluster_means(self.coordinates, self.weights, labels)[0])
            if (new == labels).all() or len(np.unique(new[counted])) < n_clusters:
                break
            labels = new
        return labels

    def _nearest(self, centers: Float64Array) -> Int64Array:
        """Return the center that is nearest to each document, (n_documents,)."""
        found = np.empty(len(self.coordinates), dtype=np.int64)
        half = np.float32(0.5) * np.einsum("ij,ij->i", centers, centers).astype(np.float32)
        directions = centers.T.astype(np.float32)
        # On one thread: the order in which BLAS sums depends on how many it has.
        with threadpool_limits(limits=1, user_api="blas"):
            for begin in range(0, len(found), ROWS_AT_ONCE):
                rows = slice(begin, begin + ROWS_AT_ONCE)
                found[rows] = (self.coordinates[rows] @ directions - half).argmax(axis=1)
        return found


def cluster_means(
    coordinates: FloatArray, weights: Int64Array, labels: Int32Array | Int64Array
) -> tuple[Float64Array, Float64Array]:
    """Return the mean of each cluster (n_clusters, n_components), and its weight."""
    sizes = np.bincount(labels, weights).astype(np.float64)
    sums = [np.bincount(labels, weights * column) for column in coordinates.T]
    return np.stack(sums, axis=1) / sizes[:, None], sizes


def _ward(
    means: Float64Array, sizes: Float64Array, mean: Float64Array, size: float
) -> Float64Array:
    """Return by how much merging a cluster with each of some raises the sum of squares."""
    away = means - mean
    return np.asarray(np.einsum("ij,ij->i", away, away) * sizes * size / (sizes + size))


def _numbered(labels: Int64Array) -> Int64Array:
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)
