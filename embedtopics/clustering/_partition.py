"""Partitions of coordinates into any number of clusters: Ward's tree, then steps of k-means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np
from scipy.sparse import csc_matrix
from threadpoolctl import ThreadpoolController

from embedtopics.protocols import Float64Array, FloatArray, Int32Array, Int64Array

MOST_MICRO_CLUSTERS = 400
"""Micro-clusters that Ward's tree is built over, and so the most clusters of a partition."""

MICRO_STEPS = 4
MOST_STEPS = 20
"""Steps of k-means; most partitions move no document after ten."""

VECTOR_STEPS, COORDINATE_SHARE = 3, 0.4
"""Steps of k-means with the vectors, and the weight of the coordinates beside them, both scaled to
a variance of 1. Chosen on nine labelled corpora; 30 steps, or a weight of 0.3 to 0.6, change the
mean agreement with the classes by at most 0.002."""

ROWS_AT_ONCE = 8192

Spaces = Sequence[tuple[FloatArray, float]]  # (n_documents, any), factor of squared distances


@dataclass(frozen=True, eq=False)
class Partitioner:
    """Partitions of documents into any number of clusters; nothing is drawn at random.

    Micro-clusters are merged by Ward's criterion (Ward 1963, "Hierarchical grouping to optimize an
    objective function"). k-means (Lloyd 1982) starts from a cut of that tree, or from given groups.
    The micro-clusters come from k-means that starts from documents at equal steps in the order of
    their content hashes, which carries no meaning.

    Parameters
    ----------
    coordinates : float32 ndarray of shape (n_documents, n_components)
    weights : int64 ndarray of shape (n_documents,)
        Documents of weight 0 get a label but do not move the means.
    vectors : float32 ndarray of shape (n_documents, n_dimensions) or None
        What the coordinates are made from, for `refined`.
    """

    coordinates: FloatArray
    weights: Int64Array
    vectors: FloatArray | None = None

    def into(self, n_clusters: int) -> Int64Array:
        """Return labels (n_documents,) of `n_clusters` clusters, at most `n_most`."""
        merges = self._merges(self._micro, np.zeros(self.n_most, dtype=np.int64))
        return self._steps(merged(self._micro, merges, n_clusters), MOST_STEPS)

    def around(self, groups: Int32Array) -> Int64Array:
        """Return labels (n_documents,) of one cluster per group, by k-means from the groups' means.

        Shapes: `groups` (n_documents,), numbered from 0 without gaps; -1 for no group.
        """
        inside = groups >= 0
        means, _ = cluster_means(self.coordinates[inside], self.weights[inside], groups[inside])
        return self._steps(self._nearest([means]), MOST_STEPS)

    def refined(self, labels: Int64Array) -> Int64Array:
        """Take steps of k-means in the coordinates, then in vectors and coordinates together."""
        if self.vectors is None:
            return labels
        labels = self._steps(labels, MOST_STEPS)
        shares = (self.vectors, 1.0), (self.coordinates, COORDINATE_SHARE**2)
        spaces = [(array, share / _variance(array, self.weights)) for array, share in shares]
        return self._steps(labels, VECTOR_STEPS, spaces)

    @property
    def n_most(self) -> int:
        """Largest number of clusters."""
        return int(self._micro.max(initial=-1)) + 1

    @cached_property
    def _micro(self) -> Int64Array:
        counted = np.flatnonzero(self.weights > 0)
        n_micro = min(MOST_MICRO_CLUSTERS, max(1, len(counted) // 2))
        seeds = counted[np.arange(n_micro) * len(counted) // n_micro]
        labels = self._nearest([self.coordinates[seeds].astype(np.float64)])
        return self._steps(_numbered(labels), MICRO_STEPS)

    def _divided(self, partition: Int64Array, n_clusters: int) -> Int64Array:
        """Divide a partition into `n_clusters`, by Ward's tree and k-means in each cluster."""
        pieces = _numbered(partition * self.n_most + self._micro)
        merges = self._merges(pieces, _parents(pieces, partition))
        start = merged(pieces, merges, n_clusters)

        labels = np.empty_like(start)
        n_before = 0
        order = np.argsort(partition, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(partition[order])) + 1):
            inside = Partitioner(self.coordinates[rows], self.weights[rows])
            labels[rows] = n_before + inside._steps(_numbered(start[rows]), MOST_STEPS)
            n_before = int(labels[rows].max()) + 1

        return labels

    def _merges(self, labels: Int64Array, parents: Int64Array) -> Int64Array:
        """Return Ward's merges of clusters with the same parent, the cheapest first, (n_merges, 2).

        Shapes: `labels` (n_documents,), `parents` (n_clusters,).
        """
        means, sizes = cluster_means(self.coordinates, self.weights, labels)
        merges, costs = [], []
        for parent in range(int(parents.max(initial=-1)) + 1):
            inside = np.flatnonzero(parents == parent)
            pairs, cost = ward_merges(means[inside], sizes[inside])
            merges.append(inside[pairs])
            # Rounding can put a merge below one within it by the last bit.
            costs.append(np.maximum.accumulate(cost))
        return np.concatenate(merges)[np.argsort(np.concatenate(costs), kind="stable")]

    def _steps(self, labels: Int64Array, most: int, spaces: Spaces = ()) -> Int64Array:
        """Take steps of k-means, and stop before a step that would empty a cluster."""
        n_clusters, counted = int(labels.max(initial=-1)) + 1, self.weights > 0
        spaces = spaces or [(self.coordinates, 1.0)]
        for _ in range(most):
            means = [cluster_means(array, self.weights, labels)[0] for array, _ in spaces]
            new = self._nearest(means, spaces)
            if (new == labels).all() or not np.bincount(new[counted], minlength=n_clusters).all():
                break
            labels = new
        return labels

    def _nearest(self, centers: Sequence[Float64Array], spaces: Spaces = ()) -> Int64Array:
        """Return the center that is nearest to each document, (n_documents,)."""
        nearest, parts = np.empty(len(self.coordinates), dtype=np.int64), []
        half, spaces = np.zeros(len(centers[0])), spaces or [(self.coordinates, 1.0)]
        for (array, factor), means in zip(spaces, centers, strict=True):
            parts.append((array, (factor * means).T.astype(np.float32)))
            half += factor / 2 * np.einsum("ij,ij->i", means, means)
        # On one thread: the order in which BLAS sums depends on how many it has.
        with _blas().limit(limits=1):
            for begin in range(0, len(nearest), ROWS_AT_ONCE):
                rows = slice(begin, begin + ROWS_AT_ONCE)
                near = sum(array[rows] @ directions for array, directions in parts)
                nearest[rows] = (near - half.astype(np.float32)).argmax(axis=1)
        return nearest


@cache
def _blas() -> ThreadpoolController:
    """Return the control of NumPy's threads, which takes as long to find as many products."""
    return ThreadpoolController().select(user_api="blas")


@dataclass(frozen=True, eq=False)
class PartitionTree:
    """Nested partitions into any number of clusters, around a first one.

    Fewer clusters are merged by Ward's criterion. For more, the clusters are divided into twice
    their number, these again, and so on; numbers in between are merged within the coarser
    partition. Shapes: `partition` (n_documents,), labels from 0 without gaps.
    """

    partitioner: Partitioner
    partition: Int64Array
    _finer: list[Int64Array] = field(default_factory=list, init=False)
    _merges: dict[int, Int64Array] = field(default_factory=dict, init=False)

    def into(self, n_clusters: int) -> Int64Array:
        """Return labels (n_documents,) of `n_clusters` clusters, at most `n_most`."""
        coarse = np.zeros_like(self.partition)
        fine = self.partition
        step = 0
        while (n_fine := int(fine.max(initial=-1)) + 1) < n_clusters and n_fine < self.n_most:
            if step == len(self._finer):
                n_finer = min(2 * n_fine, self.n_most)
                self._finer.append(self.partitioner._divided(fine, n_finer))
            coarse = fine
            fine = self._finer[step]
            step += 1

        if n_fine <= n_clusters:
            return fine
        if step not in self._merges:
            self._merges[step] = self.partitioner._merges(fine, _parents(fine, coarse))
        return merged(fine, self._merges[step], n_clusters)

    @property
    def n_most(self) -> int:
        """Largest number of clusters; micro-clusters are made only to divide the partition."""
        return max(self.partitioner.n_most, int(self.partition.max(initial=-1)) + 1)


def cluster_means(
    coordinates: FloatArray, weights: Int64Array, labels: Int32Array | Int64Array
) -> tuple[Float64Array, Float64Array]:
    """Return the mean of each cluster (n_clusters, n_components), and its weight."""
    sizes = np.bincount(labels, weights).astype(np.float64)
    sums = np.zeros((len(sizes), coordinates.shape[1]))
    for begin in range(0, len(labels), ROWS_AT_ONCE):
        rows = slice(begin, begin + ROWS_AT_ONCE)
        n_rows = len(labels[rows])
        # One entry a column: nothing to sort, and documents are added up in their order.
        entries = weights[rows].astype(np.float64), labels[rows], np.arange(n_rows + 1)
        sums += csc_matrix(entries, (len(sizes), n_rows)) @ coordinates[rows]
    return sums / np.maximum(sizes, 1.0)[:, None], sizes


def _variance(array: FloatArray, weights: Int64Array) -> float:
    """Return the mean squared distance of documents (n_documents, any) to their mean."""
    middle = cluster_means(array, weights, np.zeros(len(array), dtype=np.int64))[0]
    squares = np.einsum("ij,ij->i", array, array) * weights
    return max(float(squares.sum() / max(1, weights.sum()) - (middle**2).sum()), 1e-12)


def ward_merges(means: Float64Array, sizes: Float64Array) -> tuple[Int64Array, Float64Array]:
    """Return the merges of Ward's tree in order, (n_clusters - 1, 2), and what they cost.

    The second of a pair, which has the higher number, joins the first. Shapes: `means` (n_clusters,
    n_components), `sizes` (n_clusters,).
    """
    means, sizes = means.copy(), sizes.copy()
    n_clusters = len(sizes)
    cost = np.array([_ward(means, sizes, *one) for one in zip(means, sizes, strict=True)])
    np.fill_diagonal(cost, np.inf)
    merges, costs = np.empty((n_clusters - 1, 2), dtype=np.int64), np.empty(n_clusters - 1)
    gone = np.zeros(n_clusters, dtype=np.bool_)
    for step, row in enumerate(merges):
        i, j = row[:] = sorted(divmod(int(cost.argmin()), n_clusters))
        costs[step] = cost[i, j]
        means[i] = (sizes[i] * means[i] + sizes[j] * means[j]) / max(sizes[i] + sizes[j], 1.0)
        sizes[i] += sizes[j]
        gone[j] = True
        cost[i] = np.where(gone, np.inf, _ward(means, sizes, means[i], sizes[i]))
        cost[i, i] = np.inf
        cost[:, i] = cost[i]
        cost[j] = cost[:, j] = np.inf
    return merges, costs


def _ward(
    means: Float64Array, sizes: Float64Array, mean: Float64Array, size: float
) -> Float64Array:
    """Return by how much merging a cluster with each of some raises the sum of squares."""
    away = means - mean
    both = np.maximum(sizes + size, 1.0)
    return np.asarray(np.einsum("ij,ij->i", away, away) * sizes * size / both)


def merged(labels: Int64Array, merges: Int64Array, n_clusters: int) -> Int64Array:
    """Return labels (n_documents,) after the first merges, which leave `n_clusters`."""
    cluster = np.arange(int(labels.max(initial=-1)) + 1)
    for first, second in merges[: max(0, len(cluster) - n_clusters)]:
        cluster[cluster == second] = first
    return _numbered(cluster)[labels]


def _parents(labels: Int64Array, partition: Int64Array) -> Int64Array:
    """Return the cluster of the partition that each label lies in, (n_labels,)."""
    parents = np.zeros(int(labels.max(initial=-1)) + 1, dtype=np.int64)
    parents[labels] = partition
    return parents


def _numbered(labels: Int64Array) -> Int64Array:
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)
