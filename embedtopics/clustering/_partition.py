"""Partitions of coordinates into any number of clusters: Ward's tree, then steps of k-means."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np
from threadpoolctl import ThreadpoolController

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
        one_parent = np.zeros(self.n_most, dtype=np.int64)
        start = self._merged(self._micro, one_parent, min(n_clusters, self.n_most))
        return self._steps(start, MOST_STEPS)

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

    def _divided(self, cells: Int64Array, n_clusters: int) -> Int64Array:
        """Divide cells into so many clusters, by Ward's tree and steps within each cell."""
        pieces = _numbered(cells * self.n_most + self._micro)
        start = self._merged(pieces, _parents(pieces, cells), n_clusters)
        found, n_before = np.empty_like(start), 0
        order = np.argsort(cells, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(cells[order])) + 1):
            inside = Partitions(self.coordinates[rows], self.weights[rows])
            found[rows] = n_before + inside._steps(_numbered(start[rows]), MOST_STEPS)
            n_before = int(found[rows].max()) + 1
        return found

    def _merged(self, labels: Int64Array, parents: Int64Array, n_clusters: int) -> Int64Array:
        """Merge clusters of one parent by Ward's criterion until so many are left.

        Shapes: `labels` (n_documents,), `parents` (n_before,); returns labels (n_documents,).
        """
        means, sizes = cluster_means(self.coordinates, self.weights, labels)
        merges, costs = [], []
        for parent in range(int(parents.max(initial=-1)) + 1):
            inside = np.flatnonzero(parents == parent)
            found, cost = ward_merges(means[inside], sizes[inside])
            merges.append(inside[found])
            # Rounding can put a merge below one within it by the last bit.
            costs.append(np.maximum.accumulate(cost))
        order = np.argsort(np.concatenate(costs), kind="stable")[: max(0, len(sizes) - n_clusters)]
        cluster = np.arange(len(sizes))
        for first, second in np.concatenate(merges)[order]:
            cluster[cluster == second] = first
        return _numbered(cluster)[labels]

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
        with _blas().limit(limits=1):
            for begin in range(0, len(found), ROWS_AT_ONCE):
                rows = slice(begin, begin + ROWS_AT_ONCE)
                found[rows] = (self.coordinates[rows] @ directions - half).argmax(axis=1)
        return found


@cache
def _blas() -> ThreadpoolController:
    """Return the control of NumPy's threads, which takes as long to find as many products."""
    return ThreadpoolController().select(user_api="blas")


@dataclass(frozen=True, eq=False)
class PartitionTree:
    """Partitions into any number of clusters that are nested: unions of some cells, or parts.

    Fewer clusters than cells are merged by Ward's criterion. For more, the cells are divided into
    twice their number, these again, and so on; what lies between two such numbers is merged within
    the coarser. Shapes: `cells` (n_documents,), from 0 without gaps.
    """

    partitions: Partitions
    cells: Int64Array
    _finer: list[Int64Array] = field(default_factory=list, init=False)

    def into(self, n_clusters: int) -> Int64Array:
        """Return labels from 0 (n_documents,) of so many clusters, or of `n_most`."""
        coarse, fine, step = np.zeros_like(self.cells), self.cells, 0
        while (n_fine := int(fine.max(initial=-1)) + 1) < n_clusters and n_fine < self.n_most:
            if step == len(self._finer):
                n_finer = min(2 * n_fine, self.n_most)
                self._finer.append(self.partitions._divided(fine, n_finer))
            coarse, fine, step = fine, self._finer[step], step + 1
        if n_fine <= n_clusters:
            return fine
        return self.partitions._merged(fine, _parents(fine, coarse), n_clusters)

    @property
    def n_most(self) -> int:
        """Most clusters that there can be; the micro-clusters are only made to divide cells."""
        return max(self.partitions.n_most, int(self.cells.max(initial=-1)) + 1)


def cluster_means(
    coordinates: FloatArray, weights: Int64Array, labels: Int32Array | Int64Array
) -> tuple[Float64Array, Float64Array]:
    """Return the mean of each cluster (n_clusters, n_components), and its weight."""
    sizes = np.bincount(labels, weights).astype(np.float64)
    sums = [np.bincount(labels, weights * column) for column in coordinates.T]
    return np.stack(sums, axis=1) / np.maximum(sizes, 1.0)[:, None], sizes


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


def _parents(labels: Int64Array, cells: Int64Array) -> Int64Array:
    """Return the cell that each label lies in, (n_labels,)."""
    parents = np.zeros(int(labels.max(initial=-1)) + 1, dtype=np.int64)
    parents[labels] = cells
    return parents


def _numbered(labels: Int64Array) -> Int64Array:
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)
